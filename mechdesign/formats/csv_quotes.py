"""Records that a pair of lone quotes hides within one cell of a CSV file.

A quote that opens a cell is taken for text up to the next one, over any number of lines. Two lone
quotes, each alone in its own record, make one cell of all records between them, and no row of the
table has a wrong number of cells. For example, the text ::

    a,b
    1,"u
    2,v
    3,u
    4,v
    5,u"

has one record, whose second cell has three lines that look like records: `2,v`, `3,u` and `4,v`.

A cell with lines of its own is usually somebody's text, so a note is made only of one whose inner
lines all have as many cells as a record. `hidden_records` looks for such a cell in the longest rows
of a block: several records are longer than one, and looking at all rows of a table of texts would
take a tenth of the time of a release.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.wording import seen

Positions = NDArray[np.int64]

FEWEST_INSIDE = 3
"""Lines like records within a cell of which a note is made; fewer may be somebody's text."""

MOST_ROWS = 100
"""Rows of a block that are looked at, the longest ones. It takes a hundredth of the time of a
release."""


class HiddenRecords(NamedTuple):
    """A cell that holds whole records.

    Attributes
    ----------
    row : int
        The row of the cell in its block.
    column : int
        The number of its column.
    inside : int
        How many of its lines look like records.
    """

    row: int
    column: int
    inside: int

    def note(self, file: str, line: int, name: str) -> str:
        """What the user is told; `line` is where the row begins in the file, `name` the column."""
        return (
            f"{file}, line {line}: the cell of {seen(name)} {holding_records(self.inside)}; "
            f"{REMEDY}"
        )


REMEDY = "correct the file, or read it without quotes (--quote none)"


def holding_records(inside: int) -> str:
    """The second half of a sentence about a cell that holds so many lines like records."""
    return (
        f"holds {inside:,} lines with as many cells as a record, as where a quote opens that is "
        "closed far below, and these records are missing"
    )


def records_inside(cell: str, width: int, delimiters: Sequence[str]) -> int:
    """The lines within a cell, the first and last left out, if all look like records.

    Parameters
    ----------
    cell : str
        The text of the cell.
    width : int
        The number of columns of the table. A line of a single column looks like anything.
    delimiters : sequence of str
        What may stand between the cells of a record.
    """
    lines = cell.splitlines()[1:-1]
    if not lines or width < 2:
        return 0
    for delimiter in delimiters:
        if all(line.count(delimiter) == width - 1 for line in lines):
            return len(lines)
    return 0


def hidden_records(
    text: bytes, starts: Positions, ends: Positions, size: int, delimiter: str
) -> HiddenRecords | None:
    """A cell that holds at least `FEWEST_INSIDE` records, in the longest rows of a block.

    Parameters
    ----------
    text : bytes
        The block, in UTF-8.
    starts : (n,) array
        Where the rows start.
    ends : (n, width) array
        Where the cells end.
    size : int
        Bytes up to the end of the last row.
    delimiter : str
        What stands between the cells of a record.

    Returns
    -------
    HiddenRecords or None
        The first such cell of these rows.
    """
    width = ends.shape[1]
    fewest = (FEWEST_INSIDE + 1) * (width - 1)
    for row in _longest_rows(starts, size):
        start = int(starts[row])
        # Most texts have fewer delimiters than the row and the records inside have together.
        if text.count(delimiter.encode(), start, int(ends[row, -1])) < fewest:
            continue
        for column, end in enumerate(ends[row].tolist()):
            inside = records_inside(text[start:end].decode(), width, [delimiter])
            if inside >= FEWEST_INSIDE:
                return HiddenRecords(row, column, inside)
            start = end + 1
    return None


def _longest_rows(starts: Positions, size: int) -> list[int]:
    """The numbers of the longest rows, fewer than `MOST_ROWS` of more, in ascending order."""
    if len(starts) < MOST_ROWS:
        return [*range(len(starts))]
    lengths = np.diff(starts, append=size)
    # The shortest of the longest rows may have the length of thousands.
    enough = np.partition(lengths.astype(np.int32), -MOST_ROWS)[-MOST_ROWS]
    return np.flatnonzero(lengths > enough).tolist()
