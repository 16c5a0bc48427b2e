"""What boxes are filled with: the rows of the table in each box, and the counts of its symbols.

A released box can be replaced by a row of the table in it, which depends on the record through the
box alone. `rows` are drawn for that, from all records. `counts` are for estimates, and count the
records that the promise was proven on alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.core.integers import LARGEST_INTEGER, Integers
from mechdesign.tables.box_coder import BoxCoder, Stratum
from mechdesign.tables.row_boxes import box_name

RowsByBox: TypeAlias = tuple[tuple[tuple[int, ...], ...], ...]
"""The distinct rows of each box: entry [b][i] has the codes of row i, and then its records."""

SymbolCounts: TypeAlias = tuple[tuple[tuple[int, ...], ...], ...]
"""Records by box, column and symbol: entry [b][j][x] counts those in box b with symbol x."""


@dataclass(frozen=True)
class BoxFill:
    """The rows and the counts of the boxes, stratum by stratum.

    Parameters
    ----------
    rows : tuple of RowsByBox
        Empty for each stratum where labels of boxes are released.
    counts : tuple of SymbolCounts
        Empty for a stratum that releases nothing.
    """

    rows: tuple[RowsByBox, ...]
    counts: tuple[SymbolCounts, ...]

    @property
    def has_rows(self) -> bool:
        """True if boxes are filled with rows."""
        return any(self.rows)

    def check(self, coder: BoxCoder, records: Sequence[Mapping[str, int]]) -> None:
        """Refuse rows and counts that are not those of their boxes.

        Parameters
        ----------
        coder : BoxCoder
        records : sequence of mapping of box name to int
            For each stratum the records of the proof in each box that has some.
        """
        if not len(self.rows) == len(self.counts) == len(coder.strata):
            raise InputError("there must be rows and counts of every stratum")
        sizes = [len(variable) for variable in coder.columns]
        for stratum, rows, counts, of_boxes in zip(
            coder.strata, self.rows, self.counts, records, strict=True
        ):
            if rows:
                _check_rows(stratum, rows, sizes)
            if counts:
                _check_counts(stratum, counts, sizes, of_boxes)


def _check_rows(stratum: Stratum, by_box: RowsByBox, sizes: Sequence[int]) -> None:
    """Refuse rows that are not in their boxes."""
    if len(by_box) != len(stratum.boxes):
        raise InputError("there must be rows to fill every box")
    for box, rows in enumerate(by_box):
        # A box that no record is in is never released, so nothing fills it.
        if not rows:
            continue
        table = _table_of(rows, len(sizes) + 1)
        codes = table[:, :-1]
        if (codes < 0).any() or (codes >= np.array(sizes)).any():
            raise InputError("a row that fills a box has no symbol of its column")
        if (table[:, -1] < 1).any():
            raise InputError("a row that fills a box has no record")
        if (stratum.boxes.of(codes) != box).any():
            raise InputError("a row that fills a box lies in another one")


def _table_of(rows: Sequence[Sequence[int]], width: int) -> Integers:
    """The rows as an array; all must have this width."""
    if any(len(row) != width for row in rows):
        raise InputError(
            "a row that fills a box must have a code for every column, and its records"
        )
    if any(not -1 <= number <= LARGEST_INTEGER for row in rows for number in row):
        raise InputError("a row that fills a box has no number of records")
    return np.array(rows, dtype=np.int64)


def _check_counts(
    stratum: Stratum,
    by_box: SymbolCounts,
    sizes: Sequence[int],
    records: Mapping[str, int],
) -> None:
    """Refuse counts of the symbols in a box that are not those of its records."""
    if len(by_box) != len(stratum.boxes):
        raise InputError("there must be counts of the symbols in every box")
    for box, columns in enumerate(by_box):
        if [len(counts) for counts in columns] != sizes:
            raise InputError("every symbol of every column needs a count in a box")
        total = records.get(box_name(box), 0)
        for counts in columns:
            if min(counts) < 0 or sum(counts) != total:
                raise InputError(
                    "the counts of symbols in a box are not those of its records"
                )
