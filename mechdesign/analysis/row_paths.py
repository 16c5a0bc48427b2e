"""Released rows as paths in the tree of a row channel: which slot of every level each record went
through.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mechdesign.channel.row_channel import RowChannel
from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.core.wording import listed
from mechdesign.formats.cells import Encoded
from mechdesign.formats.column_names import require_column
from mechdesign.formats.distinct import Numbering
from mechdesign.tables.columns import positions_of

IMPOSSIBLE = -1
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
        The node of each level; meaningless where the record is impossible before.
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


def paths_of(channel: RowChannel, columns: Mapping[str, Encoded]) -> RowPaths:
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
    absent = [name for name in channel.output_columns if name not in columns]
    if absent:
        for name in absent:
            require_column(name, list(columns))
        raise InputError(f"the released table has no column {listed(absent)}")
    cells = [columns[name] for name in channel.output_columns]
    given: list[Integers] = []
    start = 0
    for variable in channel.given:
        end = start + len(variable.columns)
        given.append(np.maximum(positions_of(cells[start:end], variable), -1))
        start = end
    records = len(cells[0])
    stacked = np.zeros((records, len(given)), dtype=np.int64)
    for k, codes in enumerate(given):
        stacked[:, k] = codes
    strata = channel.strata_of(np.maximum(stacked, 0))
    strata = np.where((stacked < 0).any(axis=1), -1, strata)
    nodes: list[Integers] = []
    slots: list[Integers] = []
    alive = strata >= 0
    node = channel.tree.roots[np.maximum(strata, 0)]
    for level, table in enumerate(channel.tree.levels):
        end = start + len(channel.texts_of(level, 0))
        outputs = _outputs(channel, level, cells[start:end])
        start = end
        width = len(channel.labels[level])
        keys = table.slot_nodes * width + table.slot_outputs
        wanted = node * width + outputs
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        alive = alive & (outputs >= 0) & (keys[place] == wanted)
        nodes.append(node)
        slots.append(np.where(alive, place, IMPOSSIBLE))
        node = np.maximum(table.slot_children[place], 0)
    return RowPaths(channel, tuple(given), tuple(nodes), tuple(slots))


def _outputs(channel: RowChannel, level: int, cells: Sequence[Encoded]) -> Integers:
    """The output code of every record, -1 for a text that is none."""
    codes: dict[tuple[str, ...], int] = {}
    for output in range(len(channel.labels[level])):
        codes[channel.texts_of(level, output)] = output
    numbering = Numbering()
    numbers = numbering.number(cells)
    code_of_number = [codes.get(texts, -1) for texts in numbering.texts]
    return np.array(code_of_number, dtype=np.int64)[numbers]
