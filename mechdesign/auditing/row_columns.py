"""A row channel as one channel of the crossed columns: the column of integers of every leaf.

A leaf (`row_leaves`) is one whole released row. Its column has, for each row x of the table, the
product of the tree's integers along the path, which is W(leaf|x) times 2^(53 j) for a leaf of the
length j. Lifts of a leaf do not change when its column is multiplied by a constant, so every leaf
keeps a unit of its own.

Example with integers that sum to 4 in place of 2^53: two rows (a, c) and (b, c), a root that gives
the output y with 3/4 for a and 1/4 for b, and a node below y that gives u with 2/4 for c. The leaf
(y, u) has the column (3 * 2, 1 * 2).

`leaf_columns` begins with one path for each row, from the root of its stratum, and makes all paths
one level longer at a time: a path at a node with an input symbol continues to every output with a
positive entry. A path that comes to a constant node has ended, and its product is an entry of the
column of its leaf.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.auditing.columns import Entries
from mechdesign.auditing.row_masses import texts_of_row
from mechdesign.channel.row_channel import RowChannel
from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.core.row_tree import NO_PAIR, LevelTable
from mechdesign.core.wording import listed, quoted
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import Variable

Refuse = Callable[[str], InputError]
"""The error for what is too large, which is told how much there is of what."""

MOST_ENTRIES = 2_000_000
"""Pairs of row and leaf that are held: some 400 MB of Python integers."""


@dataclass(frozen=True)
class LeafColumns:
    """The columns of all leaves that a table reaches, and the released texts of each leaf."""

    columns: list[Entries]
    outputs: list[tuple[str, ...]]


@dataclass(frozen=True, eq=False)
class _Paths:
    """Pairs of a row of the table and what may have been released of it so far.

    `rows` are positions in the table and `nodes` what the path leads to; `weights` are the products
    along the path, Python integers, and `prefixes` the output of every level so far, (pairs,
    levels).
    """

    rows: Integers
    nodes: Integers
    weights: NDArray[Any]
    prefixes: Integers

    def __len__(self) -> int:
        return len(self.rows)

    def part(self, chosen: NDArray[np.bool_]) -> _Paths:
        """The paths that a mask chooses."""
        return _Paths(
            self.rows[chosen],
            self.nodes[chosen],
            self.weights[chosen],
            self.prefixes[chosen],
        )


def leaf_columns(channel: RowChannel, table: Joint, refuse: Refuse) -> LeafColumns:
    """The column of every leaf over the useful symbols of a table that has the channel's columns.

    Raises
    ------
    InputError
        If the table lacks a column, or has a combination of symbols that the channel does not know;
        or the error of `refuse` where rows and leaves have more pairs than memory is planned for.
    """
    codes = _codes_on(channel, table)
    given = len(channel.given)
    strata = channel.strata_of(codes[:, :given])
    if (strata < 0).any():
        raise InputError(
            "the table has a combination of given symbols that the channel does not know"
        )
    tree = channel.tree
    # Python integers: the product of two levels exceeds 64 bits.
    ones = np.empty(len(codes), dtype=object)
    ones[:] = 1
    paths = _Paths(
        rows=np.arange(len(codes)),
        nodes=tree.roots[strata],
        weights=ones,
        prefixes=np.zeros((len(codes), 0), dtype=np.int64),
    )
    # (row, entry) of every leaf, by its stratum and its outputs.
    entries_of_leaf: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    held = 0
    for level, level_table in enumerate(tree.levels):
        # Below a constant node nothing depends on the row: the prefix is a leaf.
        ended = level_table.constant[paths.nodes]
        held += _add(entries_of_leaf, paths.part(ended), strata)
        paths = paths.part(~ended)
        pairs = _pairs(channel, level, paths, codes[:, given + level])
        indptr = level_table.rows.indptr
        # The number of outputs of each pair, before memory is taken for the longer paths.
        longer = held + int((indptr[pairs + 1] - indptr[pairs]).sum())
        if longer > MOST_ENTRIES:
            raise refuse(f"{longer:,} pairs of a row and what may be released of it")
        paths = _next_level(level_table, paths, pairs)
    _add(entries_of_leaf, paths, strata)
    return _leaf_columns(channel, entries_of_leaf)


def _pairs(
    channel: RowChannel, level: int, paths: _Paths, inputs: Integers
) -> Integers:
    """The pair of node and symbol that each path continues from."""
    pairs = channel.tree.levels[level].pairs(paths.nodes, inputs[paths.rows])
    if (pairs == NO_PAIR).any():
        columns = ",".join(channel.levels[level].columns)
        raise InputError(
            "the table has a combination of symbols that the channel does not know (at "
            f"{quoted(columns)}): it is not the table that the channel was designed for"
        )
    return pairs


def _next_level(table: LevelTable, paths: _Paths, pairs: Integers) -> _Paths:
    """The paths that are one level longer."""
    owner, entries = table.expanded(pairs)
    slots = table.rows.indices[entries]
    return _Paths(
        rows=paths.rows[owner],
        nodes=table.slot_children[slots],
        weights=paths.weights[owner] * table.rows.values[entries].astype(object),
        prefixes=np.column_stack([paths.prefixes[owner], table.slot_outputs[slots]]),
    )


def _add(
    entries_of_leaf: dict[tuple[int, ...], list[tuple[int, int]]],
    paths: _Paths,
    strata: Integers,
) -> int:
    """Add paths that ended as entries of their leaves, and return how many they are."""
    entries = zip(
        strata[paths.rows].tolist(),
        paths.prefixes.tolist(),
        paths.rows.tolist(),
        paths.weights.tolist(),
        strict=True,
    )
    for stratum, prefix, row, weight in entries:
        entries_of_leaf.setdefault((stratum, *prefix), []).append((row, weight))
    return len(paths)


def _leaf_columns(
    channel: RowChannel, entries_of_leaf: dict[tuple[int, ...], list[tuple[int, int]]]
) -> LeafColumns:
    """The column and the texts of every leaf, in the order of strata and outputs."""
    columns: list[Entries] = []
    outputs: list[tuple[str, ...]] = []
    for prefix in sorted(entries_of_leaf):
        # By row: `Entries` ascend.
        entries = sorted(entries_of_leaf[prefix])
        rows, weights = zip(*entries, strict=True)
        columns.append((rows, weights))
        stratum, *places = prefix
        outputs.append(texts_of_row(channel, stratum, places))
    return LeafColumns(columns, outputs)


def _codes_on(channel: RowChannel, table: Joint) -> Integers:
    """(|X|, groups) codes of the channel's variables in every useful symbol of the table."""
    columns: list[Integers] = []
    for variable in channel.groups:
        columns.append(np.array(_codes_of(variable, table.useful), dtype=np.int64))
    return np.column_stack(columns)


def _codes_of(variable: Variable, whole: Variable) -> list[int]:
    """The code of the variable's symbol in every symbol of `whole`."""
    absent = [name for name in variable.columns if name not in whole.columns]
    if absent:
        raise InputError(
            f"the table has no useful column {listed(absent)}, which the channel releases"
        )
    places = [whole.columns.index(name) for name in variable.columns]
    codes: list[int] = []
    for symbol in whole.symbols:
        part = tuple(symbol[place] for place in places)
        if part not in variable.index:
            raise InputError(
                f"the channel has no row for the symbol {quoted(', '.join(part))} of "
                f"{quoted(','.join(variable.columns))} in the table"
            )
        codes.append(variable.index[part])
    return codes
