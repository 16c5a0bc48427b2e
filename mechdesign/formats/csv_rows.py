"""The cells of a piece of CSV text, as positions of bytes.

The text is UTF-8, in which delimiters, quotes and line breaks are single bytes that occur in no
other character. The rules are those of `csv.reader` in its strict mode: a cell that begins with a
quote ends with one, quotes inside it are doubled, and other quotes are ordinary characters; a line
ends with CR, LF or both. The splitting itself is compiled (`_csv_rows.c`).

For example, the two rows ``a,b`` and ``1,"2,3"``, with LF after each, have cells that end at the
bytes 1, 3, 5 and 11. The last cells of the rows are number 1 and 3, and the rows start at 0 and 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.formats import _csv

Positions = NDArray[np.int64]


@dataclass(frozen=True)
class Rows:
    """The complete rows of a piece of text.

    Attributes
    ----------
    ends : (number of cells,) array
        Where each cell ends.
    last : (n,) array
        The number of the last cell of each row.
    starts : (n,) array
        Where each row starts.
    size : int
        Bytes up to the end of the last complete row.
    quotes : bool
        Whether there is any quote in the text.
    lines : int
        Lines that end in the rows; a cell in quotes may have several.
    misquoted : int
        The first byte of text behind a closing quote, -1 if there is none.
    """

    ends: Positions
    last: Positions
    starts: Positions
    size: int
    quotes: bool
    lines: int
    misquoted: int

    def __len__(self) -> int:
        return len(self.starts)

    def widths(self) -> Positions:
        """The number of cells of every row, 0 for a blank line."""
        widths = np.diff(self.last, prepend=-1)
        # A blank line has one cell, which is empty and has no quotes.
        blank = (widths == 1) & (self.ends[self.last] == self.starts)
        widths[blank] = 0
        return widths


class Splitter:
    """Finds the cells of many pieces of text.

    It reuses its arrays: fresh memory for every piece takes longer to get than to fill.
    """

    def __init__(self, delimiter: int, quote: int | None) -> None:
        self._delimiter = delimiter
        self._quote = -1 if quote is None else quote
        self._ends = np.empty(0, np.int64)
        self._last = np.empty(0, np.int64)
        self._starts = np.empty(0, np.int64)

    def split(self, text: bytes) -> Rows:
        """Find the cells of all complete rows at the beginning of `text`.

        What follows the last line break outside quotes belongs to no row. Unless the file ends
        there, the text must not end with CR or a quote: the next byte decides what they mean.
        """
        self._make_room(len(text))
        cells, count, size, lines, misquoted = _csv.split(
            text, self._delimiter, self._quote, self._ends, self._last, self._starts
        )
        # Copies, because the next piece of text fills the same arrays.
        return Rows(
            ends=self._ends[:cells].copy(),
            last=self._last[:count].copy(),
            starts=self._starts[:count].copy(),
            size=size,
            quotes=self._quote >= 0 and self._quote in text,
            lines=lines,
            misquoted=misquoted,
        )

    def _make_room(self, size: int) -> None:
        """Make the arrays large enough for a text of `size` bytes."""
        # Every byte may end a cell or a row. The eighth more saves reallocations.
        if len(self._ends) < size:
            room = size + size // 8
            self._ends = np.empty(room, np.int64)
            self._last = np.empty(room, np.int64)
            self._starts = np.empty(room, np.int64)


def pieces_of(text: bytes, offsets: NDArray[np.int32]) -> Any:
    """The pieces of `text` between ascending offsets, as a pyarrow array that copies nothing."""
    import pyarrow as pa

    descends = bool((offsets[1:] < offsets[:-1]).any())
    # Arrow checks nothing and would read beyond the text.
    if offsets[0] < 0 or offsets[-1] > len(text) or descends:
        raise IndexError("offsets must ascend within the text")
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text)]
    return pa.Array.from_buffers(pa.string(), len(offsets) - 1, buffers)


def line_breaks(text: bytes) -> int:
    """How many lines end in `text`, with CR, LF or both."""
    feeds = text.count(b"\n")
    if b"\r" not in text:
        return feeds
    # CR and LF together end one line, which both counts include.
    return feeds + text.count(b"\r") - text.count(b"\r\n")
