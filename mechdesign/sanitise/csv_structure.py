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

LF, CR = 10, 13

ONE, TOP = np.uint64(1), np.uint64(63)
"""Shifts by one bit, and to or from the other end of a word."""

Bytes = NDArray[np.uint8]
Positions = NDArray[np.int64]
Mask = NDArray[np.bool_]
Words = NDArray[np.uint64]


class Misquoted(Exception):
    """There is text after a closing quote, at byte `position`."""

    def __init__(self, position: int) -> None:
        super().__init__(f"byte {position}")
        self.position = position


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


def split(text: bytes, delimiter: int, quote: int | None, width: int = 0) -> Rows:
    """Find the cells of all complete rows at the beginning of `text`; faster if all have `width` cells.

    What comes after the last line break outside quotes belongs to no row. The text must not end with CR or a
    quote unless the file ends there, since the next byte tells what they mean.

    Raises
    ------
    Misquoted
        If there is text after a closing quote.
    """
    quotes = quote is not None and quote in text
    size = len(text) if quotes else 1 + max(text.rfind(b"\n"), text.rfind(b"\r"))
    data = np.frombuffer(text, np.uint8, size)
    breaks, delimiters = data == LF, data == delimiter
    if CR in text:
        returns = data == CR
        edges = delimiters | breaks | returns if quotes else breaks
        breaks[1:] &= ~returns[:-1]
        breaks |= returns
    else:
        edges = delimiters | breaks if quotes else breaks
    lines = breaks
    if quote is not None and quotes:
        lines = breaks.copy()
        outside = _outside(data, edges, delimiter, quote)
        breaks &= outside
        delimiters &= outside
    count = int(np.count_nonzero(breaks))
    breaks |= delimiters
    ends = np.flatnonzero(breaks)
    last = _last_of_rows(data, ends, delimiter, count, width)
    ends = ends[: last[-1] + 1 if len(last) else 0]
    after = _after(data, ends[last])
    starts = np.concatenate([np.zeros(min(1, len(after)), np.int64), after[:-1]])
    end = int(after[-1]) if len(after) else 0
    return Rows(
        ends, last, starts, end, quotes, int(np.count_nonzero(lines[:end])) if quotes else len(starts)
    )


def _last_of_rows(data: Bytes, ends: Positions, delimiter: int, breaks: int, width: int) -> Positions:
    """Which of the cells end a row, where there are so many line breaks among the ends."""
    if width and len(ends) == breaks * width and bool((data[ends[width - 1 :: width]] != delimiter).all()):
        return np.arange(width - 1, len(ends), width)
    return np.flatnonzero(data[ends] != delimiter)


def _after(data: Bytes, breaks: Positions) -> Positions:
    """Where the next row begins after each line break."""
    after = breaks + 1
    after += (data[breaks] == CR) & (data[np.minimum(after, len(data) - 1)] == LF)
    return after


def _outside(data: Bytes, edges: Mask, delimiter: int, quote: int) -> Mask:
    """Which bytes are not within quotes (those that open count as within, those that close do not).

    Mostly every odd quote opens (or is the second of two in a cell) and every even one closes (or is the first of
    two). This is certain if each odd one has a delimiter, a line break, a quote or nothing before it, and each even
    one has the same after it. If not, the quotes are gone through one by one.

    Parameters
    ----------
    data : bytes
    edges : mask
        Delimiters and all bytes of line breaks.
    """
    quotes = _packed(data == quote)
    marked = _packed(edges) | quotes
    inside = _odd(quotes)
    before = marked << ONE | ONE
    before[1:] = marked[1:] << ONE | marked[:-1] >> TOP
    after = marked >> ONE
    after[:-1] |= marked[1:] << TOP
    after[-1] |= ONE << np.uint64((len(data) - 1) % 64)  # nothing comes after the last byte
    if (quotes & ((inside & ~before) | (~inside & ~after))).any():
        marks = data == quote
        at = np.flatnonzero(marks)
        marks[at] = _turns(data, at, delimiter, quote)
        inside = _odd(_packed(marks))
    return np.unpackbits(
        (~inside).astype("<u8", copy=False).view(np.uint8), count=len(data), bitorder="little"
    ).view(np.bool_)


def _packed(marks: Mask) -> Words:
    """The marks as bits, 64 a word, the first one lowest."""
    bits = np.zeros(-(-len(marks) // 64) * 8, np.uint8)
    bits[: -(-len(marks) // 8)] = np.packbits(marks, bitorder="little")
    return bits.view("<u8").astype(np.uint64, copy=False)


def _odd(bits: Words) -> Words:
    """For every bit, whether the number of ones up to it is odd."""
    odd = bits.copy()
    for shift in (1, 2, 4, 8, 16, 32):
        odd ^= odd << np.uint64(shift)
    carried = np.bitwise_xor.accumulate(odd >> TOP)
    odd[1:] ^= np.uint64(0) - carried[:-1]
    return odd


def _turns(data: Bytes, at: Positions, delimiter: int, quote: int) -> Mask:
    """Which of the quotes begin or end quoted text, one after the other; the rest stand for themselves."""
    ends = {LF, CR, delimiter}
    before = data[np.maximum(at - 1, 0)].tolist()
    after = data[np.minimum(at + 1, len(data) - 1)].tolist()
    turns = [False] * len(at)
    inside, doubled = False, False
    for i, position in enumerate(at.tolist()):
        if doubled:
            doubled = False
        elif not inside:
            if position > 0 and before[i] not in ends:
                continue
            inside = True
        elif position + 1 < len(data) and after[i] == quote:
            doubled = True
        elif position + 1 == len(data) or after[i] in ends:
            inside = False
        else:
            raise Misquoted(position + 1)
        turns[i] = True
    return np.array(turns)


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
