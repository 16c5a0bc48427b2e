"""The tree of a row channel as flat tables of integers, with steps down for many rows at once.

A node is what has been released of a row so far. It holds a small channel for the next level: a row
of integers for every input symbol that occurs there, over the node's own outputs. Every output
leads to a node of the next level. A *constant* node has no inputs and one output, which it gives to
every row whatever its symbol is. Constant nodes may be shared by several parents, because nothing
below them depends on the row.

The tables of one level are flat: *pairs* are (node, input) in ascending order, *slots* are (node,
output) in the order of the nodes. So one table of integers, pairs by slots, holds all channels of a
level.

A draw walks down one level at a time, for all rows together: `pairs` finds the pair of each row's
node and input, the row of that pair gives the probabilities of the slots, and the drawn slot has
the node of the next level in `slot_children`. For example, a root with the inputs 0 and 1 and the
outputs 0 and 1 has the pairs (0, 0), (0, 1) and as many slots. If its second slot leads to a
constant node, nothing below it depends on a row that got the output 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.integers import NOWHERE, IntegerRows, Integers, places_in

DENOMINATOR = 2**53
"""Every row of every node sums to this, so that its probabilities are doubles without rounding."""

END = -1
"""The child of a slot of the last level."""

NO_PAIR = NOWHERE
"""Place of an input that does not occur at a node."""

NO_SLOT = NOWHERE
"""Place of an output that a node does not have."""


@dataclass(frozen=True, eq=False)
class LevelTable:
    """All nodes of one level.

    Parameters
    ----------
    size : int
        Number of input symbols of the level.
    nodes : int
        Number of nodes.
    pair_nodes, pair_inputs : (pairs,) arrays
        Node and input of each pair, in ascending order.
    slot_nodes, slot_outputs, slot_children : (slots,) arrays
        Node of each slot in ascending order, code of the output, and node of the next level (`END`
        on the last).
    rows : IntegerRows, (pairs, slots)
        Integers of each pair over the slots of its node.
    """

    size: int
    nodes: int
    pair_nodes: Integers
    pair_inputs: Integers
    slot_nodes: Integers
    slot_outputs: Integers
    slot_children: Integers
    rows: IntegerRows

    def check(self, place: str, outputs: int, below: int) -> None:
        """Raise InputError unless the tables fit together.

        The level has so many `outputs`, and so many nodes of the next level are `below`, none
        after the last level. `place` begins the message.
        """
        self._check_nodes(place, outputs)
        self._check_children(place, below)
        self._check_rows(place)

    def _check_nodes(self, place: str, outputs: int) -> None:
        """Pairs and slots are in range, different and in order; every node has an output."""
        ranges = (
            (self.pair_nodes, self.nodes),
            (self.pair_inputs, self.size),
            (self.slot_nodes, self.nodes),
            (self.slot_outputs, outputs),
        )
        for values, size in ranges:
            if not _within(values, size):
                raise InputError(f"{place}: a node, input or output is out of range")
        # As one integer each, pairs of integers in range are ordered as the pairs are.
        slots = self.slot_nodes * outputs + self.slot_outputs
        if (np.diff(self._keys) <= 0).any() or (np.diff(slots) <= 0).any():
            raise InputError(
                f"{place}: inputs and outputs of a node must be different and ascend"
            )
        if len(np.unique(self.slot_nodes)) < self.nodes:
            raise InputError(f"{place}: a node has no output")

    def _check_children(self, place: str, below: int) -> None:
        """Every slot leads to a node of the next level, and a constant node has one slot."""
        lowest = END if below == 0 else 0
        too_low = self.slot_children < lowest
        too_high = self.slot_children >= below
        if too_low.any() or too_high.any():
            raise InputError(f"{place}: an output leads to no node of the next level")
        constant = np.bincount(self.slot_nodes[self._slots_of_constants])
        if constant.size and constant.max() > 1:
            raise InputError(f"{place}: a node without inputs must have one output")

    def _check_rows(self, place: str) -> None:
        """Every row is a distribution over its node's slots, and no slot has probability zero."""
        owners = self.pair_nodes[self.rows.row_of]
        if (owners != self.slot_nodes[self.rows.indices]).any():
            raise InputError(
                f"{place}: a row has an entry on an output of another node"
            )
        for row, total in enumerate(self.rows.row_sums()):
            if total != DENOMINATOR:
                raise InputError(f"{place}: row {row + 1} sums to {total}, not to 2^53")
        # The one output of a constant node has no entries, and yet it is always drawn.
        used = np.zeros(len(self.slot_nodes), dtype=np.bool_)
        used[self.rows.indices] = True
        used[self._slots_of_constants] = True
        if not used.all():
            raise InputError(f"{place}: an output has no mass")

    @cached_property
    def constant(self) -> NDArray[np.bool_]:
        """(nodes,) array: whether a node has no inputs."""
        without = np.ones(self.nodes, dtype=np.bool_)
        without[self.pair_nodes] = False
        return without

    @property
    def _slots_of_constants(self) -> NDArray[np.bool_]:
        return self.constant[self.slot_nodes]

    @cached_property
    def first_slot(self) -> Integers:
        """(nodes,) array of the first slot of every node."""
        return np.searchsorted(self.slot_nodes, np.arange(self.nodes))

    @cached_property
    def _keys(self) -> Integers:
        """(pairs,) ascending integers, one for each node with its input."""
        return self.pair_nodes * self.size + self.pair_inputs

    def pairs(self, nodes: Integers, inputs: Integers) -> Integers:
        """The pair of each node and input.

        `NO_PAIR` where the input does not occur at the node, as at all constant nodes.
        """
        return places_in(self._keys, nodes * self.size + inputs)

    def slots(self, nodes: Integers, outputs: Integers, labels: int) -> Integers:
        """The slot of each node and output; `NO_SLOT` where the node does not have the output.

        The level has so many output `labels`; a negative output is an unknown one.
        """
        keys = self.slot_nodes * labels + self.slot_outputs
        places = places_in(keys, nodes * labels + outputs)
        # The key of a negative output is that of an output of the node before.
        return np.where(outputs < 0, NO_SLOT, places)

    def expanded(self, pairs: Integers) -> tuple[Integers, Integers]:
        """All entries of the rows of some pairs: (entries,) arrays of owners and of places.

        The owner of an entry is the place of its pair in `pairs`; the place of the entry is that
        in `rows`.
        """
        first = self.rows.indptr[pairs]
        lengths = self.rows.indptr[pairs + 1] - first
        owner = np.repeat(np.arange(len(pairs)), lengths)
        # Entry j of the result is entry j - before of its row, which begins at `first`.
        before = np.cumsum(lengths) - lengths
        return owner, np.arange(len(owner)) + np.repeat(first - before, lengths)


@dataclass(frozen=True, eq=False)
class RowTree:
    """A node of the first level for every stratum of the given columns, and the levels in order."""

    roots: Integers
    levels: tuple[LevelTable, ...]

    def check(self, outputs: tuple[int, ...]) -> None:
        """Raise InputError unless this is a tree over levels with so many output labels."""
        if not self.levels or len(outputs) != len(self.levels):
            raise InputError(f"there must be tables for {len(outputs)} levels")
        if not _within(self.roots, self.levels[0].nodes):
            raise InputError("roots: a root is no node of the first level")
        for k, level in enumerate(self.levels):
            last = k + 1 == len(self.levels)
            below = 0 if last else self.levels[k + 1].nodes
            level.check(f"levels[{k}]", outputs[k], below)
        self._check_parents()

    def _check_parents(self) -> None:
        """Every node is reached, and one that is not constant from one parent only.

        So a prefix of released symbols names the node.
        """
        parents = self.roots
        for k, level in enumerate(self.levels):
            times = np.bincount(parents, minlength=level.nodes)
            if (times == 0).any():
                raise InputError(f"levels[{k}]: a node is never reached")
            if (times[~level.constant] > 1).any():
                raise InputError(f"levels[{k}]: two outputs lead to the same node")
            parents = level.slot_children
            if k + 1 < len(self.levels):
                # A row that has left the tree must never have an influence again.
                below = self.levels[k + 1].constant
                leaving = level.constant[level.slot_nodes]
                if not below[parents[leaving]].all():
                    raise InputError(
                        f"levels[{k}]: a constant node must lead to a constant node"
                    )

    def ends(self, level: int) -> NDArray[np.bool_]:
        """(slots,) array: whether nothing below a slot of a level depends on the row."""
        table = self.levels[level]
        if level + 1 == len(self.levels):
            return np.ones(len(table.slot_nodes), dtype=np.bool_)
        return self.levels[level + 1].constant[table.slot_children]

    @cached_property
    def leaves(self) -> int:
        """Number of different prefixes after which nothing depends on the row."""
        count = int(self.levels[0].constant[self.roots].sum())
        for k, table in enumerate(self.levels):
            # Below a constant node the prefix has been counted already.
            moving = ~table.constant[table.slot_nodes]
            count += int((self.ends(k) & moving).sum())
        return count


def _within(values: Integers, size: int) -> bool:
    return not values.size or (int(values.min()) >= 0 and int(values.max()) < size)
