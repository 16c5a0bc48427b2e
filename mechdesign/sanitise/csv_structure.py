"""Where the cells of a piece of CSV text end, found on whole arrays of bytes.

The text is UTF-8, in which delimiters, quotes and line breaks are bytes of their own. The rules are those of
`csv.reader` in its strict mode: a cell that begins with a quote ends with one, quotes inside it are doubled, and
quotes elsewhere stand for themselves; a line ends with CR, LF or both.
"""

# pyarrow tells too little of its types for the strict mode.
# pyright: basic
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.sanitise.csv_quotes import CR, LF, Bytes, Mask, Positions, Words, bits_of, outside_quotes


@dataclass(frozen=True)
class Rows:
    """The complete rows of a piece of text.

    Parameters
    ----------
    ends : (cells,) integer array
        Position after the last byte of every cell: that of a delimiter, or of a line break.
    last : (rows,) integer array
        Which of the cells are the last of their row.
    starts : (rows,) integer array
        Position of the first byte of every row.
    size : int
        Bytes of all rows, line breaks included.
    quotes : bool
        Whether there are quotes in the text.
    lines : int
        Line breaks of all rows, those within quotes too.
    """

    ends: Positions
    last: Positions
    starts: Positions
    size: int
    quotes: bool
    lines: int

    def __len__(self) -> int:
        return len(self.starts)

    def widths(self) -> Positions:
        """Cells of every row, 0 for a blank line."""
        widths = np.diff(self.last, prepend=-1)
        widths[(widths == 1) & (self.ends[self.last] == self.starts)] = 0
        return widths


class Splitter:
    """Finds the cells of pieces of text, one after the other.

    Its masks are made once: fresh memory for every piece would take longer than what is written there.

    Parameters
    ----------
    delimiter : int
    quote : int or None
    """

    def __init__(self, delimiter: int, quote: int | None) -> None:
        self._delimiter = delimiter
        self._quote = quote
        self._masks = np.empty((3, 0), np.bool_)

    def split(self, text: bytes, width: int = 0) -> Rows:
        """Find the cells of all complete rows at the beginning of `text`; faster if all have `width` cells.

        What comes after the last line break outside quotes belongs to no row. The text must not end with CR or a
        quote unless the file ends there, since the next byte tells what they mean.

        Raises
        ------
        Misquoted
            If there is text after a closing quote.
        """
        quotes = self._quote is not None and self._quote in text
        size = len(text) if quotes else 1 + max(text.rfind(b"\n"), text.rfind(b"\r"))
        if self._masks.shape[1] < size:
            self._masks = np.empty((3, size + size // 8), np.bool_)
        breaks, marks, other = self._masks[:, :size]
        data = np.frombuffer(text, np.uint8, size)
        np.equal(data, LF, out=breaks)
        np.equal(data, self._delimiter, out=marks)
        returns = CR in text
        if returns:
            np.equal(data, CR, out=other)
        edges = self._edges(marks, breaks, other if returns else None) if quotes else None
        if returns:
            breaks |= other
            np.logical_not(other, out=other)
            breaks[1:] &= other[:-1] | (data[1:] == CR)
        count = int(np.count_nonzero(breaks))
        marks |= breaks
        if self._quote is not None and edges is not None:
            bits = bits_of(marks) & outside_quotes(data, edges, self._delimiter, self._quote)
            marked = np.unpackbits(
                bits.astype("<u8", copy=False).view(np.uint8), count=size, bitorder="little"
            )
            ends = np.flatnonzero(marked.view(np.bool_))  # faster than of integers
        else:
            ends = np.flatnonzero(marks)
        last = self._last(data, ends, None if quotes else count, width)
        ends = ends[: last[-1] + 1 if len(last) else 0]
        after = ends[last] + 1
        if returns:
            after += (data[after - 1] == CR) & (data[np.minimum(after, size - 1)] == LF)
        end = int(after[-1]) if len(after) else 0
        starts = np.concatenate([np.zeros(min(1, len(after)), np.int64), after[:-1]])
        return Rows(ends, last, starts, end, quotes, int(np.count_nonzero(breaks[:end])) if quotes else count)

    def _edges(self, delimiters: Mask, breaks: Mask, returns: Mask | None) -> Words:
        """Delimiters and all bytes of line breaks."""
        edges = bits_of(delimiters) | bits_of(breaks)
        return edges if returns is None else edges | bits_of(returns)

    def _last(self, data: Bytes, ends: Positions, breaks: int | None, width: int) -> Positions:
        """Which of the cells end a row, where there are so many line breaks among the ends (None: not counted)."""
        regular = width and (len(ends) == breaks * width if breaks is not None else False)
        if regular and bool((data[ends[width - 1 :: width]] != self._delimiter).all()):
            return np.arange(width - 1, len(ends), width)
        return np.flatnonzero(data[ends] != self._delimiter)


def pieces_of(text: bytes, offsets: NDArray[np.int32]) -> Any:
    """The pieces of `text` between offsets that never go back, as a pyarrow array that copies nothing.

    Raises
    ------
    IndexError
        If they go back, or beyond the text: pyarrow would read memory that is not the text's.
    """
    import pyarrow as pa

    if offsets[0] < 0 or offsets[-1] > len(text) or bool((offsets[1:] < offsets[:-1]).any()):
        raise IndexError("offsets must ascend within the text")
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text)]
    return pa.Array.from_buffers(pa.string(), len(offsets) - 1, buffers)
