"""Released rows as paths in the tree of a row channel: which slot of every level each record went
through.

The given symbols of a record choose its stratum, where the tree begins. The output of each level
then leads from one node to the next. A record whose text is no output, or whose output has no child
there, cannot come from the channel; from there on its slots are `IMPOSSIBLE`.

A slot is one output of one node, numbered through the level. If the root has the outputs a and b,
and each leads to a node with the outputs x and y, the record (b, x) has the slot 1 on the first
level, goes to the second node, and has the slot 2 on the second level.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from mechdesign.channel.row_channel import RowChannel
from mechdesign.core.integers import Integers
from mechdesign.core.row_tree import NO_SLOT
from mechdesign.formats.cells import Encoded
from mechdesign.formats.column_names import require_column
from mechdesign.formats.distinct import Numbering
from mechdesign.tables.columns import positions_of

Columns: TypeAlias = Mapping[str, Encoded]
"""The columns of a table by their names."""

IMPOSSIBLE = NO_SLOT
"""The slot of a record that the channel cannot have released."""


@dataclass(frozen=True, eq=False)
class RowPaths:
    """Paths of N released records.

    Attributes
    ----------
    channel : RowChannel
    given : tuple of (N,) integers
        The symbol of each given column; -1 for one that the channel does not know.
    nodes : tuple of (N,) integers
        The node of each level; undefined from the first impossible level on.
    slots : tuple of (N,) integers
        The slot of each level, `IMPOSSIBLE` from the first output on that the node does not have.
    """

    channel: RowChannel
    given: tuple[Integers, ...]
    nodes: tuple[Integers, ...]
    slots: tuple[Integers, ...]

    def __len__(self) -> int:
        return len(self.slots[0])

    @property
    def impossible(self) -> Integers:
        """Positions of the records that the channel cannot have released."""
        return np.flatnonzero(self.slots[-1] == IMPOSSIBLE)


def paths_of(channel: RowChannel, columns: Columns) -> RowPaths:
    """The paths of released records.

    Parameters
    ----------
    channel : RowChannel
    columns : mapping of str to Encoded
        The columns of the released table.

    Raises
    ------
    InputError
        If a released column is missing.
    """
    for name in channel.output_columns:
        require_column(name, list(columns))
    cells = [columns[name] for name in channel.output_columns]
    width = sum(len(variable.columns) for variable in channel.given)
    given = _given_symbols(channel, cells[:width])
    strata = _strata(channel, given, len(cells[0]))
    # Where a record has no stratum, or no further node, any node does: its slot is IMPOSSIBLE.
    possible = strata >= 0
    node = channel.tree.roots[np.maximum(strata, 0)]
    nodes: list[Integers] = []
    slots: list[Integers] = []
    for level, table in enumerate(channel.tree.levels):
        # The columns of a level come after those of the levels before.
        columns_of_level = len(channel.texts_of(level, 0))
        outputs = _outputs(channel, level, cells[width : width + columns_of_level])
        width += columns_of_level
        slot = table.slots(node, outputs, len(channel.labels[level]))
        possible = possible & (slot != NO_SLOT)
        nodes.append(node)
        slots.append(np.where(possible, slot, IMPOSSIBLE))
        # For NO_SLOT this reads the child of another slot, but the record stays impossible.
        node = np.maximum(table.slot_children[slot], 0)
    return RowPaths(channel, tuple(given), tuple(nodes), tuple(slots))


def _given_symbols(channel: RowChannel, cells: Sequence[Encoded]) -> list[Integers]:
    """The code of every record in each given column; -1 for a missing or an unknown symbol."""
    symbols: list[Integers] = []
    # A crossed variable takes as many cells of a record as columns were crossed.
    start = 0
    for variable in channel.given:
        end = start + len(variable.columns)
        codes = positions_of(cells[start:end], variable)
        symbols.append(np.maximum(codes, -1))
        start = end
    return symbols


def _strata(channel: RowChannel, given: Sequence[Integers], records: int) -> Integers:
    """The stratum of every record; -1 where a given symbol, or their combination, is unknown."""
    codes = np.zeros((records, len(given)), dtype=np.int64)
    for k, symbols in enumerate(given):
        codes[:, k] = symbols
    # Records with an unknown symbol are looked up with another one, and overwritten below.
    strata = channel.strata_of(np.maximum(codes, 0))
    return np.where((codes < 0).any(axis=1), -1, strata)


def _outputs(channel: RowChannel, level: int, cells: Sequence[Encoded]) -> Integers:
    """The output code of every record, -1 for a text that is none."""
    codes: dict[tuple[str, ...], int] = {}
    for output in range(len(channel.labels[level])):
        codes[channel.texts_of(level, output)] = output
    # Each distinct text is looked up once, however many records have it.
    numbering = Numbering()
    numbers = numbering.number(cells)
    code_of_number = [codes.get(texts, -1) for texts in numbering.texts]
    return np.array(code_of_number, dtype=np.int64)[numbers]
