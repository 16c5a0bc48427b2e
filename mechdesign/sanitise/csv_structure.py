"""Where the cells of a piece of CSV text end, found on whole arrays of bytes.

The text is UTF-8, in which delimiters, quotes and line breaks are bytes of their own. The rules are those of
`csv.reader` in its strict mode: a cell that begins with a quote ends with one, quotes inside it are doubled, and
quotes elsewhere stand for themselves; a line ends with CR, LF or both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LF, CR = 10, 13

Bytes = NDArray[np.uint8]
Positions = NDArray[np.int64]


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
        Which of the cells are the last of their row; None where every row has `width` cells.
    width : int
        Cells of the first row.
    starts : (rows,) integer array
        Position of the first byte of every row.
    size : int
        Bytes of all rows, line breaks included.
    quotes : bool
        Whether there are quotes in the text.
    """

    ends: Positions
    last: Positions
    starts: Positions
    size: int
    quotes: bool

    def __len__(self) -> int:
        return len(self.starts)

    def widths(self) -> Positions:
        """Cells of every row, 0 for a blank line."""
        widths = np.diff(self.last, prepend=-1)
        widths[(widths == 1) & (self.ends[self.last] == self.starts)] = 0
        return widths


def split(text: bytes, delimiter: int, quote: int | None) -> Rows:
    """Find the cells of all complete rows at the beginning of `text`.

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
    marks = data == LF
    if CR in text:
        returns = data == CR
        marks[1:] &= ~returns[:-1]
        marks |= returns
    marks |= data == delimiter
    ends = np.flatnonzero(marks) if quote is None or not quotes else _outside(data, marks, delimiter, quote)
    last = np.flatnonzero(data[ends] != delimiter)
    ends = ends[: last[-1] + 1] if len(last) else ends[:0]
    after = _after(data, ends[last])
    starts = np.concatenate([np.zeros(min(1, len(after)), np.int64), after[:-1]])
    return Rows(ends, last, starts, int(after[-1]) if len(after) else 0, quotes)


def _after(data: Bytes, breaks: Positions) -> Positions:
    """Where the next row begins after each line break."""
    after = breaks + 1
    both = (data[breaks] == CR) & (data[np.minimum(after, len(data) - 1)] == LF)
    return after + both


def _outside(data: Bytes, marks: NDArray[np.bool_], delimiter: int, quote: int) -> Positions:
    """Positions of the delimiters and line breaks that are not within quotes."""
    places = np.flatnonzero(marks | (data == quote))
    is_quote = data[places] == quote
    turns = is_quote
    at = places[is_quote]
    if not _in_pairs(data, at, delimiter, quote):
        turns = is_quote.copy()
        turns[is_quote] = _turns(data, at, delimiter, quote)
    inside = np.cumsum(turns) & 1
    return places[~is_quote & (inside == 0)]


def _in_pairs(data: Bytes, at: Positions, delimiter: int, quote: int) -> bool:
    """Whether every odd quote opens or doubles and every even one closes or doubles: then all of them do.

    A quote that opens has a delimiter, a line break or nothing before it; one that closes has a delimiter or a line
    break after it; a doubled one closes and opens, so it has a quote there instead.
    """
    allowed = np.zeros(256, np.bool_)
    allowed[[LF, CR, delimiter, quote]] = True
    opening, closing = at[0::2], at[1::2]
    before = data[np.maximum(opening - 1, 0)]
    after = data[np.minimum(closing + 1, len(data) - 1)]
    return bool(allowed[before[opening > 0]].all() and allowed[after[closing < len(data) - 1]].all())


def _turns(data: Bytes, at: Positions, delimiter: int, quote: int) -> NDArray[np.bool_]:
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
