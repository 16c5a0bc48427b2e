"""The masses of every prefix of a row channel on a table, in integers.

For a prefix of released symbols,

    N(s) = sum over the rows with the sensitive symbol s of count(row) * product of the tree's
           integers along the prefix,

which is the expected number of records with s and this prefix, in units of 2^(-53 j) for a prefix
of the length j (every node's integers sum to 2^53).

`PrefixMasses` walks the tree level by level, with all pairs of a row and a prefix of one length at
a time (`Block`). Where these are too many for memory, it splits them into blocks of whole nodes and
goes depth first. A prefix leads to a node of the tree. In the tables of a level (`core.row_tree`),
a pair is a node and an input symbol, and a slot is a node and an output: a slot is a prefix that is
one symbol longer.

Example, with node integers that sum to 4 in place of 2^53: three records of the row a have the
secret s, one record of the row b has t, and the root gives the output y with 3/4 for a and 1/4 for
b. The prefix y has N(s) = 3 * 3 and N(t) = 1 * 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mechdesign.channel.row_channel import RowChannel
from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.core.row_tree import NO_PAIR, LevelTable
from mechdesign.core.wording import quoted
from mechdesign.tables.records import Records, bins_by_column

BLOCK = 1 << 18
"""Pairs of row and prefix that are held at a time where they can be split (some 40 MB of Python
integers).
"""


@dataclass(eq=False)
class Block:
    """Pairs of a row and a prefix of one length, sorted by the node that the prefix leads to.

    `rows` has the position of the row in the table, `nodes` the node of the level, and `weights`
    the count of the row times the integers along the prefix, as Python integers.
    """

    level: int
    rows: Integers
    nodes: Integers
    weights: NDArray[Any]

    def halves(self) -> tuple[Block, Block] | None:
        """Two blocks with different nodes; None where all pairs belong to one."""
        # A node stays whole: the cut is before the node in the middle, or behind it if it is the
        # first.
        middle = int(self.nodes[len(self.nodes) // 2])
        cut = int(np.searchsorted(self.nodes, middle))
        if cut == 0:
            cut = int(np.searchsorted(self.nodes, middle, side="right"))
        if cut == len(self.nodes):
            return None
        return self._part(slice(None, cut)), self._part(slice(cut, None))

    def _part(self, part: slice) -> Block:
        return Block(self.level, self.rows[part], self.nodes[part], self.weights[part])


class SlotMasses(NamedTuple):
    """Prefixes that end in `slots` (k,) of a level, and N(s) of each as a (k, |S|) array of Python
    integers.
    """

    level: int
    slots: Integers
    masses: NDArray[Any]


class PrefixMasses:
    """The integers N(s) of all prefixes of a channel on a table, some at a time.

    Iterate over it for N(s), as `rows` does; every prefix comes once. `blocks` gives the pairs of
    row and prefix that they are sums of. `strata` has the stratum of every row.
    """

    def __init__(self, channel: RowChannel, records: Records) -> None:
        self.channel = channel
        self.records = records
        self.strata = channel.strata_of(records.codes[:, : len(channel.given)])
        if (self.strata < 0).any():
            raise InputError(
                "the table has a combination of given symbols that the channel does not know"
            )

    def __iter__(self) -> Iterator[SlotMasses]:
        """N(s) of the prefixes of one block after the other."""
        for block, pairs in self.blocks():
            table = self.channel.tree.levels[block.level]
            yield self._slot_masses(table, pairs, block)

    def blocks(self) -> Iterator[tuple[Block, Integers]]:
        """All pairs of a row and a prefix, some at a time, each with its pair of node and input in
        the tree; every node is in one block.
        """
        tree = self.channel.tree
        nodes = tree.roots[self.strata]
        order = np.argsort(nodes, kind="stable")
        # A stratum with a constant root releases its given columns only: it has no prefix.
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
        """For each pair of row and prefix, that of node and input symbol in the tree."""
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
    ) -> SlotMasses:
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
        return SlotMasses(block.level, slots, masses)

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


def texts_of_row(
    channel: RowChannel, stratum: int, outputs: Iterable[int]
) -> tuple[str, ...]:
    """Given and released texts of a prefix: its stratum, and its output of each level so far."""
    texts: tuple[str, ...] = ()
    for variable, code in zip(channel.given, channel.strata[stratum], strict=True):
        texts += variable.symbols[code]
    for level, output in enumerate(outputs):
        texts += channel.texts_of(level, output)
    return texts
