"""The content of the report on a row channel: the audit, what each column keeps, the worst rows.

Everything is computed again from the channel file, so `report` on a file and `design --report`
show the same. `row_report` has three steps:

1. The exact audit (`audit_rows`), and the law P(s, y) of the released row y (`row_law`).
2. `level_joints` sends all rows of the table down the tree and adds up P(x_j, y_j) of every level
   j. The ledger of a level (`ColumnLedger`) has H(X_j) and I(X_j; Y_j) of this table.
3. `worst_rows` takes the posterior P(s|y) of every released row y, and lists those with the largest
   |ln P(s|y) / P(s)|.

For example, the ledger of a column of two values, kept with probability 0.9, on 100 records of
each value::

    P(x, y)   0.45 0.05 | 0.05 0.45
    entropy   H(X) = 0.693    kept  I(X;Y) = 0.368    truth  0.9

`rows_page` lays this content out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.auditing.row_leaves import RowLaw, row_law
from mechdesign.auditing.rows import RowAudit, audit_rows
from mechdesign.channel.row_channel import RowChannel
from mechdesign.channel.row_record import RELATIVE, TRUTH
from mechdesign.core.errors import InputError
from mechdesign.mechanisms.result import TaskUtility

MOST_WORST = 10
"""Rows whose posterior moves most that the page lists."""


@dataclass(frozen=True)
class ColumnLedger:
    """Where the information of the columns of one level went, in nats.

    `kept` is I(X_j; Y_j), `entropy` H(X_j); the difference is lost to privacy. `truth` is the share
    of unchanged cells (None with free outputs). `spent` has the smallest and the largest factor by
    which prefixes up to here change the probability of a secret.
    """

    columns: tuple[str, ...]
    entropy: float
    kept: float
    truth: float | None
    spent: tuple[float, float]


@dataclass(frozen=True)
class WorstRow:
    """A released row, its probability, and the prior and posterior of every secret."""

    row: tuple[str, ...]
    share: float
    prior: tuple[float, ...]
    posterior: tuple[float, ...]

    @property
    def move(self) -> float:
        """Largest absolute log-lift |ln P(s|y) / P(s)| of a secret, in nats."""
        largest = 0.0
        for before, after in zip(self.prior, self.posterior, strict=True):
            if before == 0.0:
                # A secret that does not occur in the stratum has no lift.
                continue
            if after == 0.0:
                return math.inf
            largest = max(largest, abs(math.log(after / before)))
        return largest


@dataclass(frozen=True)
class RowReport:
    """What the page shows, made by `row_report`; `ledgers` in the order of the levels.

    `nmi`, the bound and the `task` come from the channel file, where the search left them; None if
    the file lacks them.
    """

    channel: RowChannel
    audit: RowAudit
    ledgers: tuple[ColumnLedger, ...]
    worst: tuple[WorstRow, ...]
    nmi: float | None
    upper_bound_nmi: float | None
    task: TaskUtility | None


def row_report(channel: RowChannel) -> RowReport:
    """Compute the report of a channel on its own table.

    Raises
    ------
    InputError
        If the channel is a public one, without its table.
    """
    if channel.table is None:
        raise InputError(
            "this row channel carries no table (a public one), and its report is computed from "
            "the table: report on the file that has it"
        )
    audit = audit_rows(channel)
    law = row_law(channel)
    utility = channel.record.utility or {}
    certificate = channel.record.certificate or {}
    return RowReport(
        channel=channel,
        audit=audit,
        ledgers=_ledgers(channel, audit, law),
        worst=worst_rows(law),
        nmi=utility.get("nmi"),
        upper_bound_nmi=certificate.get("upper_bound_nmi"),
        task=_task(utility),
    )


def _task(utility: Mapping[str, Any]) -> TaskUtility | None:
    """What the record says of the column that the rows were made to tell of."""
    if "task" not in utility:
        return None
    return TaskUtility(
        column=str(utility["task"]),
        task_kept=float(utility["task_kept"]),
        task_upper_bound=float(utility["task_upper_bound"]),
    )


def _ledgers(
    channel: RowChannel, audit: RowAudit, law: RowLaw
) -> tuple[ColumnLedger, ...]:
    """Where the information of the columns of every level went."""
    joints = level_joints(channel)
    ledgers: list[ColumnLedger] = []
    for level, joint in enumerate(joints):
        truth = None
        if channel.record.objective == TRUTH:
            # With this objective output i is symbol i, so the diagonal is P(Y_j = X_j).
            truth = float(np.trace(joint))
        spent = audit.spent[level]
        ledger = ColumnLedger(
            columns=channel.levels[level].columns,
            entropy=_entropy(joint.sum(axis=1)),
            # Rounding can make an information of 0 negative.
            kept=max(0.0, _information(joint)),
            truth=truth,
            spent=(math.exp(-spent.eps_l), math.exp(spent.eps_u)),
        )
        ledgers.append(ledger)
    return tuple(ledgers)


def level_joints(channel: RowChannel) -> list[NDArray[np.float64]]:
    """P(x_j, y_j) of every level on the channel's own table, as (symbols, outputs) arrays.

    All rows go down the tree together, level by level. The state is a list of paths: path i is a
    row `rows[i]` at a node `nodes[i]`, and `weights[i]` is the probability that the row is drawn
    and reaches the node. At each level every path branches into the outputs that its node can draw
    for the symbol of its row: of weight v and probability q, a branch adds v q to P(x_j, y_j). A
    constant node has one output, whatever the symbol.
    """
    records = channel.table
    if records is None:
        raise TypeError("a public channel has no table")
    strata = channel.strata_of(records.codes[:, : len(channel.given)])
    rows = np.arange(len(records))
    nodes = channel.tree.roots[strata]
    weights = records.masses
    joints: list[NDArray[np.float64]] = []
    for level, table in enumerate(channel.tree.levels):
        inputs = records.codes[rows, len(channel.given) + level]
        joint = np.zeros((len(channel.levels[level]), len(channel.labels[level])))
        is_constant = table.constant[nodes]
        constant = np.flatnonzero(is_constant)
        random = np.flatnonzero(~is_constant)

        # One branch for each constant path, then those of the others, in this order everywhere
        # below: the slot of the output in its node, the path it comes from, its probability.
        pairs = table.pairs(nodes[random], inputs[random])
        owner, entries = table.expanded(pairs)
        slots = np.concatenate(
            [table.first_slot[nodes[constant]], table.rows.indices[entries]]
        )
        sources = np.concatenate([constant, random[owner]])
        shares = np.ones(len(sources))
        # Probabilities are integers over 2^53, so these quotients are exact.
        shares[len(constant) :] = table.rows.values[entries] / 2.0**53

        weights = weights[sources] * shares
        np.add.at(joint, (inputs[sources], table.slot_outputs[slots]), weights)
        joints.append(joint)

        # The branches are the paths of the next level.
        rows = rows[sources]
        nodes = table.slot_children[slots]
    return joints


def _entropy(shares: NDArray[np.float64]) -> float:
    """H of a distribution, in nats; 0 log 0 counts as 0."""
    positive = shares[shares > 0.0]
    return float(-(positive * np.log(positive)).sum())


def _information(joint: NDArray[np.float64]) -> float:
    """I(X;Y) = H(X) + H(Y) - H(X,Y) of a joint table, in nats."""
    return (
        _entropy(joint.sum(axis=0))
        + _entropy(joint.sum(axis=1))
        - _entropy(joint.ravel())
    )


def worst_rows(law: RowLaw, most: int = MOST_WORST) -> tuple[WorstRow, ...]:
    """The released rows whose posterior moves most, measured as the promise measures it."""
    rows: list[WorstRow] = []
    priors = _priors(law)
    # P(s | leaf) of every released row, which is a leaf of the tree.
    posteriors = law.joint / law.shares[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        lifts = np.abs(np.log(posteriors / priors))
    # 0 / 0 is a secret that does not occur in the stratum, which no row can move.
    moves = np.nan_to_num(lifts, nan=0.0, posinf=math.inf).max(axis=1)
    # Stable, so that ties stand in the order of the leaves and a page is always the same.
    for leaf in np.argsort(-moves, kind="stable")[:most].tolist():
        row = WorstRow(
            row=law.texts(leaf),
            share=float(law.shares[leaf]),
            prior=tuple(priors[leaf].tolist()),
            posterior=tuple(posteriors[leaf].tolist()),
        )
        rows.append(row)
    return tuple(rows)


def _priors(law: RowLaw) -> NDArray[np.float64]:
    """(leaves, |S|) prior that the promise compares with: the table's, or the stratum's."""
    # The relative promise is about P(s|y,k) / P(s|k), with the given columns k of the leaf.
    if law.channel.record.promise != RELATIVE:
        return np.broadcast_to(law.prior, law.masses.shape)
    counts = law.priors.astype(np.float64)[law.strata]
    return counts / counts.sum(axis=1, keepdims=True)
