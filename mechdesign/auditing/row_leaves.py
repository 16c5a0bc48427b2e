"""The law of what a row channel releases: P(s, leaf) for every leaf, from exact integers.

A leaf is a prefix after which nothing depends on the record, so all that can be learned from a
released row is which leaf it belongs to. The outputs of the constant levels below a leaf are part
of it, and hence every leaf is one whole released row.

`row_law` takes N(s) of every prefix from `row_masses.PrefixMasses` and keeps the prefixes that are
leaves: a prefix ends in a slot, and the tree knows the slots below which all nodes are constant.
The released symbols of a leaf are the outputs on the way to its slot (`_paths_of_slots`), and those
of the constant nodes below (`_constant_outputs`).

N(s) of a prefix of the length j is in units of 2^(-53 j). Here all leaves have the unit of the
longest prefix, so that their integers can be added and compared: with k levels, N(s) of a leaf of
the length j is multiplied by 2^(53 (k - j)). Example with two levels, and integers that sum to 4 in
place of 2^53: four records have s, and the root gives each of them the outputs y and z with 3/4 and
1/4. Below y everything is constant, so (y, any) is a leaf with N(s) = 4 * 3 * 4. Below z a record
gets u or v with 2/4 each: the leaves (z, u) and (z, v) have N(s) = 4 * 1 * 2. The sum of the three
is 4 * 4^2, all records.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.auditing.row_masses import PrefixMasses, table_on, texts_of_row
from mechdesign.channel.row_channel import RowChannel
from mechdesign.core.integers import Integers
from mechdesign.core.row_tree import DENOMINATOR


@dataclass(frozen=True, eq=False)
class RowLaw:
    """The exact joint law of the secret and the released row.

    Attributes
    ----------
    channel : RowChannel
    strata : (leaves,) array
        Stratum of the given columns of every leaf.
    outputs : (leaves, levels) array
        Code of the output of every level.
    masses : (leaves, |S|) array of Python integers
        N(s, leaf) in units of one record divided by 2^(53 levels).
    priors : (strata, |S|) array of Python integers
        Records of every secret in every stratum.
    """

    channel: RowChannel
    strata: Integers
    outputs: Integers
    masses: NDArray[Any]
    priors: NDArray[Any]

    def __len__(self) -> int:
        return len(self.strata)

    @cached_property
    def total(self) -> int:
        """Sum of all masses: the number of records in their unit."""
        return int(self.masses.sum())

    @cached_property
    def joint(self) -> NDArray[np.float64]:
        """(leaves, |S|) array of P(s, leaf), each correctly rounded."""
        total = self.total
        # Python rounds a quotient of integers correctly, however long they are.
        shares = [mass / total for mass in self.masses.ravel().tolist()]
        return np.array(shares, dtype=np.float64).reshape(self.masses.shape)

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """(leaves,) array of P(leaf), each correctly rounded."""
        total = self.total
        return np.array([sum(row) / total for row in self.masses.tolist()])

    @cached_property
    def prior(self) -> NDArray[np.float64]:
        """(|S|,) array of P(s) in the whole table."""
        sums = self.priors.sum(axis=0).tolist()
        total = sum(sums)
        return np.array([count / total for count in sums])

    def texts(self, leaf: int) -> tuple[str, ...]:
        """Given and released texts of a leaf."""
        stratum = int(self.strata[leaf])
        return texts_of_row(self.channel, stratum, self.outputs[leaf].tolist())


def row_law(channel: RowChannel, table: Any = None) -> RowLaw:
    """The law of the released row on a table; by default on that of the channel.

    Parameters
    ----------
    channel : RowChannel
    table : frame or Records, optional

    Raises
    ------
    InputError
        If the channel carries no table and none is given, or the table has rows that the channel
        does not know.
    """
    records = table_on(channel, table)
    prefix_masses = PrefixMasses(channel, records)
    prior_rows: list[list[int]] = []
    for stratum in range(len(channel.strata)):
        rows = np.flatnonzero(prefix_masses.strata == stratum)
        prior_rows.append(records.sensitive_counts(rows))
    priors = np.array(prior_rows, dtype=object)

    # Leaves that end at the root come first, then those of the levels, block by block.
    parts = [_leaves_at_roots(channel, prefix_masses.strata, priors)]
    paths = _paths_of_slots(channel)
    for level, slots, masses in prefix_masses:
        is_leaf = channel.tree.ends(level)[slots]
        parts.append(
            _leaves_at_slots(channel, paths[level], slots[is_leaf], masses[is_leaf])
        )
    return RowLaw(
        channel,
        strata=np.concatenate([part.strata for part in parts]),
        outputs=np.concatenate([part.outputs for part in parts]),
        masses=np.concatenate([part.masses for part in parts]),
        priors=priors,
    )


@dataclass(frozen=True, eq=False)
class _Leaves:
    """Some of the leaves; the arrays are those of `RowLaw`."""

    strata: Integers
    outputs: Integers
    masses: NDArray[Any]


@dataclass(frozen=True, eq=False)
class _SlotPaths:
    """How the slots of one level are reached: from the stratum (slots,), by the outputs so far
    (slots, level + 1).
    """

    level: int
    strata: Integers
    outputs: Integers


def _leaves_at_roots(
    channel: RowChannel, strata: Integers, priors: NDArray[Any]
) -> _Leaves:
    """Leaves of the strata of which nothing but the given columns is released: their roots are
    constant.

    `strata` are those of the records. N(s) of such a leaf is the number of records with s.
    """
    roots = channel.tree.roots
    constant = np.flatnonzero(channel.tree.levels[0].constant[roots])
    reached = constant[np.isin(constant, strata)]
    unit = DENOMINATOR ** len(channel.levels)
    outputs = _constant_outputs(channel, 0, roots[reached])
    return _Leaves(reached, outputs, priors[reached] * unit)


def _leaves_at_slots(
    channel: RowChannel, paths: _SlotPaths, slots: Integers, masses: NDArray[Any]
) -> _Leaves:
    """The leaves that end in these slots of a level, whose N(s) are in the unit of the level."""
    level = paths.level
    children = channel.tree.levels[level].slot_children[slots]
    below = _constant_outputs(channel, level + 1, children)
    outputs = np.column_stack([paths.outputs[slots], below])
    # The levels below a leaf are certain: probability DENOMINATOR / DENOMINATOR each.
    unit = DENOMINATOR ** (len(channel.levels) - level - 1)
    return _Leaves(paths.strata[slots], outputs, masses * unit)


def _paths_of_slots(channel: RowChannel) -> list[_SlotPaths]:
    """How every slot of every level is reached; of slots of shared constant nodes any one way.

    From the roots down: a slot has the stratum of its node and one output more, and hands both to
    its child.
    """
    tree = channel.tree
    # Stratum and outputs of the nodes of one level, here of the roots, which have no output yet.
    strata = np.zeros(tree.levels[0].nodes, dtype=np.int64)
    strata[tree.roots] = np.arange(len(tree.roots))
    before = np.zeros((tree.levels[0].nodes, 0), dtype=np.int64)
    paths: list[_SlotPaths] = []
    for level, table in enumerate(tree.levels):
        slot_strata = strata[table.slot_nodes]
        outputs = np.column_stack([before[table.slot_nodes], table.slot_outputs])
        paths.append(_SlotPaths(level, slot_strata, outputs))
        if level + 1 < len(tree.levels):
            nodes = tree.levels[level + 1].nodes
            strata = np.zeros(nodes, dtype=np.int64)
            strata[table.slot_children] = slot_strata
            before = np.zeros((nodes, level + 1), dtype=np.int64)
            before[table.slot_children] = outputs
    return paths


def _constant_outputs(channel: RowChannel, first: int, nodes: Integers) -> Integers:
    """(nodes, levels left) outputs below constant nodes of the level `first`, and of these.

    A constant node has one slot, so its output is certain, and its child is constant too.
    """
    columns: list[Integers] = []
    for table in channel.tree.levels[first:]:
        slots = table.first_slot[nodes]
        columns.append(table.slot_outputs[slots])
        nodes = table.slot_children[slots]
    if not columns:
        return np.zeros((len(nodes), 0), dtype=np.int64)
    return np.column_stack(columns)
