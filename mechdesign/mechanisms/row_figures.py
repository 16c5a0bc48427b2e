"""The design that is returned for a verified tree: its channel with all figures in the record.

`row_search` calls `finished_design` last, with the tree, the audit that it passed, and the bounds.
Information is in nats, kept shares are shares of H(X | K). For example, let H(X | K) be 2.5 nats,
and let two levels keep 1 and 0.5 nats. Then the levels have ``kept`` 0.4 and 0.2, and the design
has the ``nmi`` 0.6.

`_levels` makes a `LevelSummary` for each level of the tree; the log-lifts that it spent are those
of the exact audit. `_messages` says what was left out for want of time.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np

from mechdesign.auditing.rows import RowAudit
from mechdesign.channel.row_channel import RowChannel
from mechdesign.core.wording import about
from mechdesign.mechanisms.result import TaskUtility
from mechdesign.mechanisms.row_bound import RowBound
from mechdesign.mechanisms.row_grown import Grown
from mechdesign.mechanisms.row_result import LevelSummary, RowDesign
from mechdesign.mechanisms.row_splits import Trial
from mechdesign.tables.records import Records

NEARLY_ALL = 0.999
"""Kept share from which a bound of 1 says all that there is to say."""


@dataclass(frozen=True, eq=False)
class VerifiedTree:
    """A tree that passed the exact audit: how its levels share the budgets, the tree in floating
    point, the channel of integers, and the audit.
    """

    trial: Trial
    grown: Grown
    channel: RowChannel
    audit: RowAudit


def finished_design(
    records: Records,
    tree: VerifiedTree,
    bound: RowBound,
    purpose: TaskUtility | None,
    *,
    entropy: float,
    begun: float,
) -> RowDesign:
    """The design, its figures in the record of the channel.

    Parameters
    ----------
    records : Records
        The table, its groups in the order of the request.
    tree : VerifiedTree
    bound : RowBound
    purpose : TaskUtility or None
        What is kept of the task, if there is one.
    entropy : float
        H(X | K) in nats.
    begun : float
        When the design began, on the clock of `time.perf_counter`.
    """
    grown = tree.grown
    channel = tree.channel
    # The unit of kept shares. Where H(X | K) is zero, nothing is kept in any unit.
    unit = entropy
    if not unit > 0.0:
        unit = 1.0
    information = math.fsum(grown.information)
    # Sums of rounded logarithms may exceed the entropy by a hair.
    nmi = min(information / unit, 1.0)
    # The proven bound has a margin for rounding, what is kept has none.
    upper = max(bound.upper_bound_nmi, nmi)
    utility = {
        "nmi": nmi,
        "mutual_information": information,
        "entropy": entropy,
        "truth": grown.truth,
        "stopped": grown.stopped,
    }
    if purpose is not None:
        utility |= {"task": purpose.column, **purpose.figures}
    record = replace(
        channel.record,
        achieved=dict(vars(tree.audit.achieved)),
        utility={name: value for name, value in utility.items() if value is not None},
        certificate={"upper_bound_nmi": upper, "trivial_mass": bound.trivial},
    )
    # Weights are no records, so their sum is no number of them.
    count = None
    if records.is_counts:
        count = records.total
    return RowDesign(
        channel=replace(channel, record=record),
        audit=tree.audit,
        nmi=nmi,
        upper_bound_nmi=upper,
        entropy=entropy,
        truth=grown.truth,
        levels=_levels(records, tree, unit),
        stopped=grown.stopped,
        records=count,
        messages=_messages(grown, bound, nmi),
        seconds=time.perf_counter() - begun,
        purpose=purpose,
    )


def _levels(
    records: Records, tree: VerifiedTree, unit: float
) -> tuple[LevelSummary, ...]:
    """What each level keeps, as a share of `unit` nats, and what it spends."""
    trial = tree.trial
    truth_of = tree.grown.truth
    given = len(records.groups) - len(trial.order)
    shares = np.array(trial.split) / sum(trial.split)
    levels: list[LevelSummary] = []
    for k, variable in enumerate(tree.channel.levels):
        truth = None
        if truth_of is not None:
            truth = {name: truth_of[name] for name in variable.columns}
        summary = LevelSummary(
            columns=variable.columns,
            truth=truth,
            constant=_most_frequent_cells(records, given + trial.order[k]),
            kept=tree.grown.information[k] / unit,
            spent=tree.audit.spent[k],
            share=float(shares[k]),
        )
        levels.append(summary)
    return tuple(levels)


def _most_frequent_cells(records: Records, place: int) -> dict[str, float]:
    """The share of the most frequent cell of every column of a group: what a constant would leave
    unchanged.
    """
    variable = records.groups[place]
    codes = records.codes[:, place]
    masses = np.bincount(codes, records.masses, len(variable)).tolist()
    largest: dict[str, float] = {}
    for k, name in enumerate(variable.columns):
        # Crossed symbols have the same cell in one of their columns.
        cells: dict[str, float] = {}
        for symbol, mass in zip(variable.symbols, masses, strict=True):
            cells[symbol[k]] = cells.get(symbol[k], 0.0) + mass
        largest[name] = min(max(cells.values()), 1.0)
    return largest


def _messages(grown: Grown, bound: RowBound, nmi: float) -> tuple[str, ...]:
    """What was not done for want of time."""
    messages: list[str] = []
    if not grown.in_time:
        messages.append(
            "the time limit was met: prefixes that were not reached release the rest as a "
            "constant, and large levels may change more than they need; allow more seconds"
        )
    if bound.trivial > 0.0 and nmi < NEARLY_ALL:
        messages.append(
            "nothing better than the whole information was proven as a bound for "
            f"{about(100.0 * bound.trivial)} % of the records in time"
        )
    return tuple(messages)
