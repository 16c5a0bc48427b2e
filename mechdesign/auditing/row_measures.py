"""Every utility and leakage measure of a row channel, from its integers.

What is released is the whole row: the given columns as they are, and an output of every level. Each
leaf (`row_leaves`) is therefore an output like that of a channel of one column, with the masses
P(s, leaf), and all measures of leakage are those of `leakages` and `average_measures`. They compare
with P(s) of the whole table, whatever the promise is: the given columns are part of what is seen.

Given what is released before it, the output of a level depends on its own symbol alone. So the
information splits into a sum over the nodes v of the tree,

    I(X; Y | K) = sum over levels j of sum over nodes v of P(v) [H(X_j | v) - H(X_j | v, Y_j)],

with K the given columns (docs/explanation/rows-theory.md, proposition 12). The terms are sums of
logarithms of quotients of integers,

    P(v) H(X_j | v)      = sum over x of P(v, x) log (P(v) / P(v, x)),
    P(v) H(X_j | v, Y_j) = sum over x, y of P(v, x, y) log (P(v, y) / P(v, x, y)),

rounded so that I is never claimed to be larger than it is. `row_utility` walks the tree once for
them. The integers of one node, or of one node and output, are a `Group` of masses and their sum,
and `measures.sum_of_logs` adds the terms of all groups of a level.

`measure_rows` puts this together with the leakages of all leaves (`row_leaves.row_law`) and with
the maximal leakage of the row itself (`_leakage_of_rows`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.auditing.extremes import Achieved, log_upper
from mechdesign.auditing.measures import (
    BREACHES,
    ROUNDOFF,
    SUM_ERROR,
    ChannelMeasures,
    Group,
    Utility,
    released_measures,
    sum_of_logs,
)
from mechdesign.auditing.output_masses import OutputMasses, ReleasedMasses
from mechdesign.auditing.row_leaves import RowLaw, row_law
from mechdesign.auditing.row_masses import PrefixMasses, sums_by_key, table_on
from mechdesign.auditing.rows import audit_rows
from mechdesign.channel.row_channel import RowChannel
from mechdesign.channel.row_record import TOTAL
from mechdesign.core.row_tree import DENOMINATOR
from mechdesign.tables.records import Records


def measure_rows(
    channel: RowChannel,
    table: Any = None,
    alphas: Sequence[float] = (2.0,),
    orders: Sequence[float] = (),
    breaches: Sequence[float] = BREACHES,
) -> ChannelMeasures:
    """Measure a row channel on a table, by default on that of the channel.

    Parameters
    ----------
    channel : RowChannel
    table : frame or Records, optional
    alphas, orders, breaches
        As for `auditing.measures.measure`.

    Returns
    -------
    ChannelMeasures
        Its outputs are the leaves; the utility is conditional on the given columns.
    """
    records = table_on(channel, table)
    worth = row_utility(channel, records)
    utility_measures = {
        "entropy": worth.entropy,
        "mutual_information": worth.mutual_information,
        "conditional_entropy": worth.entropy - worth.mutual_information,
        "nmi": worth.nmi,
        "maximal_leakage_of_useful": _leakage_of_rows(channel, records),
    }
    return released_measures(
        _released(row_law(channel, records)),
        utility_measures,
        _achieved(channel, records),
        alphas,
        orders,
        breaches,
    )


def row_utility(channel: RowChannel, table: Any = None) -> Utility:
    """I(X;Y|K), H(X|K) and their quotient, 1 where X is constant, as `auditing.measures.utility`
    gives them for one column.
    """
    records = table_on(channel, table)
    total = sum(records.counts)
    entropy = _entropy(records, len(channel.given))
    if not entropy:
        return Utility(0.0, 0.0, 1.0)
    # Level by level the groups of H(X_j | v), the masses P(v, x) of each node, and of H(X_j | v,
    # Y_j), the masses P(v, x, y) of each node and output.
    before: list[list[Group]] = [[] for _ in channel.levels]
    after: list[list[Group]] = [[] for _ in channel.levels]
    for block, pairs in PrefixMasses(channel, records).blocks():
        # P(v, x) of every pair of a node and an input, in integers.
        present, masses = sums_by_key(pairs, block.weights)
        level = channel.tree.levels[block.level]
        before[block.level] += _groups(level.pair_nodes[present], masses)
        # P(v, x, y), grouped by the slot of v and y.
        owner, entries = level.expanded(present)
        products = masses[owner] * level.rows.values[entries].astype(object)
        after[block.level] += _groups(level.rows.indices[entries], products)
    information = 0.0
    # P(v, x) of the level j is in units of 2^(-53 j) / N, and P(v, x, y) of the next unit.
    scale = total
    for level_before, level_after in zip(before, after, strict=True):
        information += sum_of_logs(level_before, scale) * (1.0 - SUM_ERROR)
        scale *= DENOMINATOR
        information -= sum_of_logs(level_after, scale) * (1.0 + SUM_ERROR)
    # Each of the few sums and differences above rounds once, relative to at most H(X|K).
    information -= 4 * len(before) * ROUNDOFF * entropy
    information = min(max(0.0, information), entropy)
    share = math.nextafter(information / (entropy * (1.0 + SUM_ERROR)), -math.inf)
    return Utility(information, entropy, max(0.0, share))


def _groups(keys: NDArray[Any], masses: NDArray[Any]) -> list[Group]:
    """The masses with the same key, and their sum; groups of one have no entropy and are left
    out.
    """
    order = np.argsort(keys, kind="stable")
    ends = np.flatnonzero(np.diff(keys[order])) + 1
    groups: list[Group] = []
    for part in np.split(masses[order], ends):
        if len(part) > 1:
            integers: list[int] = part.tolist()
            groups.append((integers, sum(integers)))
    return groups


def _entropy(records: Records, given: int) -> float:
    """H(X | K) of the released columns in nats."""
    _, stratum = np.unique(records.codes[:, :given], axis=0, return_inverse=True)
    _, row = np.unique(records.codes, axis=0, return_inverse=True)
    # The same row occurs once for each of its secrets.
    first, masses = sums_by_key(row.ravel(), records.integers)
    stratum_of_row = np.zeros(len(first), dtype=np.int64)
    stratum_of_row[row.ravel()] = stratum.ravel()
    return sum_of_logs(_groups(stratum_of_row, masses), sum(records.counts))


def _achieved(channel: RowChannel, records: Records) -> Achieved:
    """The budgets that all leaves keep against P(s) of the whole table."""
    record = replace(channel.record, promise=TOTAL)
    return audit_rows(replace(channel, record=record), records).achieved


def _released(law: RowLaw) -> ReleasedMasses:
    """The leaves of a law that some record may reach, as outputs."""
    sums: list[int] = law.priors.sum(axis=0).tolist()
    # A secret that the table does not have has no lift.
    present = [s for s, count in enumerate(sums) if count]
    prior = [sums[s] for s in present]
    total = sum(prior)
    labels: list[str] = []
    outputs: list[OutputMasses] = []
    for leaf, row in enumerate(law.masses.tolist()):
        masses = [row[s] for s in present]
        labels.append(", ".join(law.texts(leaf)))
        outputs.append(OutputMasses(masses, sum(masses), prior, total))
    return ReleasedMasses(labels, outputs, law.total)


def _leakage_of_rows(channel: RowChannel, records: Records) -> float:
    """log of the sum over released rows y of the largest W(y|x) over the rows x of the table.

    This maximal leakage bounds what is told of the row itself, whatever its distribution. A leaf
    belongs to one stratum, so its largest entry is one among the rows of the stratum.
    """
    # With every count 1 the weights of a block are the entries of W alone.
    ones = replace(records, counts=(1,) * len(records))
    masses = PrefixMasses(channel, ones)
    levels = len(channel.levels)
    # A stratum with a constant root releases its given columns alone.
    largest = _constant_strata(channel, masses) * DENOMINATOR**levels
    for block, pairs in masses.blocks():
        level = channel.tree.levels[block.level]
        owner, entries = level.expanded(pairs)
        slots = level.rows.indices[entries]
        products = block.weights[owner] * level.rows.values[entries].astype(object)
        # The largest entry of every slot that is a leaf, all brought to the unit of the last level.
        leaves = channel.tree.ends(block.level)[slots]
        order = np.argsort(slots[leaves], kind="stable")
        keys = slots[leaves][order]
        if not len(keys):
            continue
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        most = np.maximum.reduceat(products[leaves][order], starts)
        largest += int(most.sum()) * DENOMINATOR ** (levels - block.level - 1)
    return log_upper(largest, DENOMINATOR**levels)


def _constant_strata(channel: RowChannel, masses: PrefixMasses) -> int:
    """The number of strata on the table whose root is constant."""
    roots = channel.tree.roots[np.unique(masses.strata)]
    return int(channel.tree.levels[0].constant[roots].sum())
