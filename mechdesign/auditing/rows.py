"""The exact verdict on a row channel: every leaf of the tree, in integers.

For a prefix of released symbols, N(s) = sum of count(row) * product of the tree's integers along
the prefix, over the rows with the sensitive symbol s. Its lift is

    P(s | prefix) / prior(s) = N(s) T / (n(s) N),   N = sum of N(s), T = sum of n(s),

with the prior n(s) of the whole table (total promise) or of the stratum (relative one): the powers
of 2^53 in N(s) and N are the same and cancel. Leaves are all that can be seen of a release, and a
prefix is a mean of its leaves; so the largest and the smallest lift of all prefixes are those of
the leaves. Quotients are compared by multiplication of integers, and only the extreme ones are held
against exp of a budget, by enclosures (`Extreme.used`).

The module takes the tree and the counts as they are and knows nothing of how the tree was grown.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.auditing.demands import Demand, Extreme, allowed_sides
from mechdesign.auditing.verdict import Achieved
from mechdesign.channel.row_channel import RELATIVE, RowChannel
from mechdesign.core.display import Described
from mechdesign.core.errors import InputError, require_type
from mechdesign.core.integers import Integers
from mechdesign.core.row_tree import NO_PAIR, LevelTable
from mechdesign.core.wording import at_most, quoted
from mechdesign.notions import Notion
from mechdesign.tables.records import Records, bins_by_column

BLOCK = 1 << 18
"""Pairs of row and prefix that are held at a time where they can be split (some 40 MB of Python
integers).
"""

MEANS = (
    "a promise about rows bounds single lifts: use alip, lip, ldp, max-lift or min-lift"
)


@dataclass(frozen=True)
class RowWorst:
    """The released row that uses most of its budget, in proportion.

    `row` has the given and released texts up to the point from which nothing depends on the record
    any more, `lift` is that of `sensitive`, correctly rounded, and `against` the other symbol of an
    LDP comparison.
    """

    sensitive: str
    row: tuple[str, ...]
    lift: float
    against: str | None = None


@dataclass(frozen=True, repr=False)
class RowAudit(Described):
    """An exact verdict on a row channel.

    Attributes
    ----------
    satisfied : bool
    notion : Notion
    promise : {"total", "relative"}
    achieved : Achieved
        Smallest doubles (nats) that bound all lifts of released rows, measured as the promise
        measures them.
    worst : RowWorst
    given : Achieved or None
        Lifts of the given columns alone, against the whole table; None without given columns.
    spent : tuple of Achieved
        What prefixes use, level by level: the first entry is that of the first level.
    leaves : int
    """

    satisfied: bool
    notion: Notion
    promise: str
    achieved: Achieved
    worst: RowWorst
    given: Achieved | None
    spent: tuple[Achieved, ...]
    leaves: int

    def __repr__(self) -> str:
        verdict = "satisfied" if self.satisfied else "VIOLATED"
        sides = ", ".join(
            f"{name} {at_most(value)}" for name, value in vars(self.achieved).items()
        )
        return (
            f"RowAudit({self.notion.text}, {self.promise}: {verdict}; achieved {sides})"
        )

    def summary(self) -> str:
        """The verdict, the worst row and what each level uses, as text."""
        verdict = "satisfied" if self.satisfied else "VIOLATED"
        row = ", ".join(map(quoted, self.worst.row)) or "any row"
        lines = [
            f"{verdict}: {self.notion.text}, {self.promise} promise, {self.leaves:,} leaves "
            "checked exactly",
            f"achieved: eps_l {at_most(self.achieved.eps_l)}, eps_u "
            f"{at_most(self.achieved.eps_u)}, eps_ldp {at_most(self.achieved.eps_ldp)}",
            f"worst: {quoted(self.worst.sensitive)} after {row}, lift {self.worst.lift:.6g}",
        ]
        for k, used in enumerate(self.spent):
            lines.append(
                f"up to level {k + 1}: eps_l {at_most(used.eps_l)}, eps_u {at_most(used.eps_u)}"
            )
        if self.given is not None:
            lines.append(
                f"given columns alone: eps_l {at_most(self.given.eps_l)}, eps_u "
                f"{at_most(self.given.eps_u)}"
            )
        return "\n".join(lines)


@dataclass(eq=False)
class Block:
    """Pairs of a row and a prefix of one length, sorted by the node that the prefix leads to."""

    level: int
    rows: Integers
    nodes: Integers
    weights: NDArray[Any]

    def halves(self) -> tuple[Block, Block] | None:
        """Two blocks with different nodes; None where all pairs belong to one."""
        middle = int(self.nodes[len(self.nodes) // 2])
        cut = int(np.searchsorted(self.nodes, middle))
        if cut == 0:
            cut = int(np.searchsorted(self.nodes, middle, side="right"))
        if cut == len(self.nodes):
            return None
        return self._part(slice(None, cut)), self._part(slice(cut, None))

    def _part(self, part: slice) -> Block:
        return Block(self.level, self.rows[part], self.nodes[part], self.weights[part])


class LeafMasses:
    """The integers N(s) of all prefixes of a channel on a table, some at a time."""

    def __init__(self, channel: RowChannel, records: Records) -> None:
        self.channel = channel
        self.records = records
        self.strata = channel.strata_of(records.codes[:, : len(channel.given)])
        if (self.strata < 0).any():
            raise InputError(
                "the table has a combination of given symbols that the channel does not know"
            )

    def __iter__(self) -> Iterator[tuple[int, Integers, NDArray[Any]]]:
        """Level, slots (k,), and N as a (k, |S|) array of Python integers, of prefixes that end in
        these slots.
        """
        for block, pairs in self.blocks():
            table = self.channel.tree.levels[block.level]
            yield block.level, *self._slot_masses(table, pairs, block)

    def blocks(self) -> Iterator[tuple[Block, Integers]]:
        """All pairs of a row and a prefix, some at a time, each with its pair of node and input in
        the tree; every node is in one block.
        """
        tree = self.channel.tree
        nodes = tree.roots[self.strata]
        order = np.argsort(nodes, kind="stable")
        # A stratum with a constant root releases its given columns only: `_start` counts it.
        order = order[~tree.levels[0].constant[nodes[order]]]
        waiting = [Block(0, order, nodes[order], self.records.integers[order])]
        # Depth first: the last block goes on before others are begun, so few are held.
        while waiting:
            block = waiting.pop()
            if not len(block.rows):
                continue
            halves = None
            if len(block.rows) > BLOCK:
                halves = block.halves()
            # Halves share no node, and a slot belongs to one node: every N(s) is complete.
            if halves is not None:
                waiting += halves
                continue
            table = tree.levels[block.level]
            pairs = self._pairs(table, block)
            yield block, pairs
            if block.level + 1 < len(tree.levels):
                waiting.append(self._below(table, pairs, block))

    def _pairs(self, table: LevelTable, block: Block) -> Integers:
        column = len(self.channel.given) + block.level
        pairs = table.pairs(block.nodes, self.records.codes[block.rows, column])
        if (pairs == NO_PAIR).any():
            columns = ",".join(self.channel.levels[block.level].columns)
            raise InputError(
                "the table has a combination of symbols that the channel does not "
                f"know (at {quoted(columns)}): it is not the table that the channel "
                "was designed for"
            )
        return pairs

    def _slot_masses(
        self, table: LevelTable, pairs: Integers, block: Block
    ) -> tuple[Integers, NDArray[Any]]:
        """N(s) of every slot that the block reaches; equal pairs with equal secrets are added up
        first.
        """
        size = len(self.records.sensitive)
        # One key for (pair of node and input, secret): records with the same key go through
        # the same row of the tree, so their weights are added before it is expanded.
        keys, weights = sums_by_key(
            pairs * size + self.records.secrets[block.rows], block.weights
        )
        owner, entries = table.expanded(keys // size)
        # Python integers: after two levels a product exceeds 64 bits.
        products = weights[owner] * table.rows.values[entries].astype(object)
        # One key for (slot, secret): N(s) of a slot sums over all inputs that reach it.
        reached = table.rows.indices[entries] * size + keys[owner] % size
        keys, sums = sums_by_key(reached, products)
        slots, place = np.unique(keys // size, return_inverse=True)
        masses = np.zeros((len(slots), size), dtype=object)
        masses[place, keys % size] = sums
        return slots, masses

    def _below(self, table: LevelTable, pairs: Integers, block: Block) -> Block:
        """The pairs of rows and prefixes that are one level longer, where something still depends
        on the row.
        """
        owner, entries = table.expanded(pairs)
        slots = table.rows.indices[entries]
        # Below a leaf nothing depends on the record, so longer prefixes have its lifts.
        moving = ~self.channel.tree.ends(block.level)[slots]
        owner = owner[moving]
        entries = entries[moving]
        weights = block.weights[owner] * table.rows.values[entries].astype(object)
        nodes = table.slot_children[slots[moving]]
        order = np.argsort(nodes, kind="stable")
        return Block(
            block.level + 1, block.rows[owner][order], nodes[order], weights[order]
        )


def sums_by_key(keys: Integers, values: NDArray[Any]) -> tuple[Integers, NDArray[Any]]:
    """Different keys, ascending, and the exact sum of the values of each."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    return ordered[starts], np.add.reduceat(values[order], starts)


class Extremes:
    """The largest quotient of every side and budget among prefixes, by comparison of integers."""

    def __init__(self) -> None:
        self.most: dict[tuple[str, float], Extreme] = {}

    def add(self, masses: list[int], demand: Demand, place: int) -> None:
        """Count in a prefix with the masses N(s); `place` is remembered as its output."""
        output = sum(masses)
        sums = demand.sums
        total = demand.total
        for side, budget, members in demand.groups:
            symbols = members
            if not all(sums):
                # Against its own prior a stratum has no lift of a secret without records (0/0).
                symbols = [s for s in members if sums[s]]
                if not symbols:
                    continue
            # l(s) = masses[s] total / (sums[s] output): total and output are common to all
            # symbols, so masses[s] / sums[s] orders them, compared by cross products.
            high = symbols[0]
            low = symbols[0]
            for s in symbols[1:]:
                if masses[s] * sums[high] > masses[high] * sums[s]:
                    high = s
                if masses[s] * sums[low] < masses[low] * sums[s]:
                    low = s
            against = None
            if side == "eps_u":
                s = high
                over = masses[s] * total, sums[s] * output
            elif side == "eps_l":
                s = low
                over = sums[s] * output, masses[s] * total
            else:
                s = high
                against = demand.names[low]
                over = masses[s] * sums[low], masses[low] * sums[s]
            # a / b > c / d as a d > c b; a zero denominator is infinity.
            best = self.most.get((side, budget))
            if best is None or over[0] * best.over[1] > best.over[0] * over[1]:
                lift = masses[s] * total, sums[s] * output
                name = demand.names[s]
                self.most[side, budget] = Extreme(
                    side, budget, over, lift, name, place, against
                )

    @property
    def achieved(self) -> Achieved:
        """The smallest doubles that bound them."""
        used = {"eps_l": 0.0, "eps_u": 0.0, "eps_ldp": 0.0}
        for extreme in self.most.values():
            used[extreme.side] = max(used[extreme.side], extreme.used)
        return Achieved(**used)


def demands_by_stratum(
    channel: RowChannel, records: Records, strata: Integers, notion: Notion
) -> list[Demand]:
    """The prior and the budgets of every stratum of a channel."""
    rows = [np.flatnonzero(strata == k) for k in range(len(channel.strata))]
    return promise_demands(records, rows, channel.record.promise, notion)


def promise_demands(
    records: Records, strata: Sequence[Integers], promise: str, notion: Notion
) -> list[Demand]:
    """The prior and the budgets of strata, each the places of its rows; with a relative promise the
    prior is the stratum's own.

    Raises
    ------
    InputError
        If the notion bounds averages.
    """
    limits = notion.limits
    if limits.mean is not None:
        raise InputError(f"{notion.name} bounds averages: {MEANS}")
    sides = allowed_sides(records.sensitive, notion)
    lower = tuple(low for low, _ in sides)
    upper = tuple(high for _, high in sides)
    whole = records.sensitive_counts()
    demands: list[Demand] = []
    for rows in strata:
        # Total: l = P(s | row) / P(s). Relative: l = P(s | row) / P(s | given columns).
        sums = whole
        if promise == RELATIVE:
            sums = records.sensitive_counts(rows)
        demands.append(
            Demand((), sums, records.sensitive.names, lower, upper, limits.ratio)
        )
    return demands


def table_on(
    channel: RowChannel,
    table: Any = None,
    *,
    weight: str | None = None,
    missing: Any = "refuse",
) -> Records:
    """The rows of a table over the columns of a channel; those that the channel carries where none
    is given.
    """
    if table is None:
        if channel.table is None:
            raise InputError(
                "this row channel carries no table (a public one): give the table to audit it on "
                "(--table)"
            )
        return channel.table
    if isinstance(table, Records):
        return table.on(channel.sensitive, channel.groups)
    bins = bins_by_column(channel.groups)
    records = Records.from_table(
        table,
        sensitive=channel.sensitive.columns,
        groups=[variable.columns for variable in channel.groups],
        weight=weight,
        missing=missing,
        bins=bins or None,
    )
    return records.on(channel.sensitive, channel.groups)


def audit_rows(
    channel: RowChannel,
    table: Any = None,
    notion: Notion | None = None,
    *,
    weight: str | None = None,
    missing: Any = "refuse",
) -> RowAudit:
    """Decide exactly whether a row channel keeps a promise on a table.

    Parameters
    ----------
    channel : RowChannel
    table : frame or Records, optional
        By default the rows that the channel carries.
    notion : Notion, optional
        By default what the channel was designed for, with its budgets of single symbols.
    weight, missing : as for `Records.from_table`

    Raises
    ------
    InputError
        If the table has other columns or symbols, or a row that the channel does not know, or the
        notion bounds averages.
    """
    require_type("channel", channel, RowChannel)
    records = table_on(channel, table, weight=weight, missing=missing)
    asked = channel.notion if notion is None else notion
    require_type("notion", asked, Notion, "; write one, as in LIP(0.5)")
    masses = LeafMasses(channel, records)
    demands = demands_by_stratum(channel, records, masses.strata, asked)
    strata = _strata_of_slots(channel)
    by_level = [Extremes() for _ in channel.levels]
    for level, slots, sums in masses:
        extremes = by_level[level]
        own: list[int] = strata[level][slots].tolist()
        for slot, stratum, values in zip(
            slots.tolist(), own, sums.tolist(), strict=True
        ):
            extremes.add(values, demands[stratum], slot)
    # The given columns are seen with every row, so a stratum alone must keep the promise, too.
    start = _start(channel, records, masses.strata, demands)
    return _verdict(channel, records, asked, by_level, start, masses.strata)


def _start(
    channel: RowChannel, records: Records, strata: Integers, demands: Sequence[Demand]
) -> Extremes:
    """Extremes of the strata before anything else is released; `place` is the stratum."""
    extremes = Extremes()
    for k in range(len(channel.strata)):
        counts = records.sensitive_counts(np.flatnonzero(strata == k))
        # A stratum without records on this table is never released.
        if sum(counts):
            extremes.add(counts, demands[k], k)
    return extremes


def _worst_extreme(
    by_level: Sequence[Extremes], start: Extremes
) -> tuple[int | None, Extreme]:
    """The extreme that uses the largest share of its budget, and its level.

    The level is None for the given columns. Used budgets are the smallest doubles: of equal shares
    a violated one comes first.
    """
    finite: list[tuple[int | None, Extreme]] = []
    for level, extremes in ((None, start), *enumerate(by_level)):
        for extreme in extremes.most.values():
            if math.isfinite(extreme.budget):
                finite.append((level, extreme))
    return max(finite, key=lambda pair: pair[1].used / pair[1].budget)


def _verdict(
    channel: RowChannel,
    records: Records,
    notion: Notion,
    by_level: Sequence[Extremes],
    start: Extremes,
    strata: Integers,
) -> RowAudit:
    level, worst = _worst_extreme(by_level, start)
    is_satisfied = True
    for extremes in (start, *by_level):
        is_satisfied &= all(extreme.kept for extreme in extremes.most.values())
    top, bottom = worst.lift
    lift = math.inf
    if bottom:
        lift = top / bottom
    row = prefix_texts(channel, level, worst.y)
    given: Achieved | None = None
    if channel.given:
        given = given_lifts(channel, records, strata)
    spent: list[Achieved] = []
    used = start.achieved
    for extremes in by_level:
        # Leaves of earlier levels are whole rows already: what they use stays used.
        used = _larger(used, extremes.achieved)
        spent.append(used)
    return RowAudit(
        satisfied=is_satisfied,
        notion=notion,
        promise=channel.record.promise,
        achieved=used,
        worst=RowWorst(worst.sensitive, row, lift, worst.against),
        given=given,
        spent=tuple(spent),
        leaves=channel.tree.leaves,
    )


def _larger(one: Achieved, other: Achieved) -> Achieved:
    return Achieved(
        max(one.eps_l, other.eps_l),
        max(one.eps_u, other.eps_u),
        max(one.eps_ldp, other.eps_ldp),
    )


def given_lifts(channel: RowChannel, records: Records, strata: Integers) -> Achieved:
    """What the given columns alone tell, measured against the whole table."""
    whole = records.sensitive_counts()
    # Infinite budgets: nothing is judged here, only measured.
    free = (math.inf,) * len(whole)
    demand = Demand((), whole, channel.sensitive.names, free, free, math.inf)
    extremes = Extremes()
    for k in range(len(channel.strata)):
        counts = records.sensitive_counts(np.flatnonzero(strata == k))
        if sum(counts):
            extremes.add(counts, demand, k)
    return extremes.achieved


def _strata_of_slots(channel: RowChannel) -> list[Integers]:
    """The stratum of every slot of every level; that of shared constant nodes means nothing."""
    tree = channel.tree
    nodes = np.zeros(tree.levels[0].nodes, dtype=np.int64)
    nodes[tree.roots] = np.arange(len(tree.roots))
    strata: list[Integers] = []
    for k, table in enumerate(tree.levels):
        slots = nodes[table.slot_nodes]
        strata.append(slots)
        # A child has the stratum of its slot; constant nodes that several slots share keep
        # the last one, and no prefix is followed through them.
        if k + 1 < len(tree.levels):
            nodes = np.zeros(tree.levels[k + 1].nodes, dtype=np.int64)
            nodes[table.slot_children] = slots
    return strata


def prefix_texts(channel: RowChannel, level: int | None, place: int) -> tuple[str, ...]:
    """Given and released texts up to a slot of a level; with `level` None those of the stratum
    `place`.
    """
    tree = channel.tree
    texts: list[tuple[str, ...]] = []
    stratum = place
    slot = place
    # From the slot up to the root: the parent is the slot whose child is this node.
    while level is not None:
        table = tree.levels[level]
        texts.append(channel.texts_of(level, int(table.slot_outputs[slot])))
        node = int(table.slot_nodes[slot])
        if level == 0:
            stratum = int(np.flatnonzero(tree.roots == node)[0])
            level = None
        else:
            level -= 1
            slot = int(np.flatnonzero(tree.levels[level].slot_children == node)[0])
    for variable, code in zip(
        reversed(channel.given), reversed(channel.strata[stratum]), strict=True
    ):
        texts.append(variable.symbols[code])
    in_order: list[str] = []
    for part in reversed(texts):
        in_order += part
    return tuple(in_order)
