"""CSV text in blocks of complete rows.

The text is UTF-8, in which delimiters, quotes and line breaks are bytes of their own. The rules are those of
`csv.reader` in its strict mode: a cell that begins with a quote ends with one, quotes inside it are doubled, and
quotes elsewhere stand for themselves; a line ends with CR, LF or both. `Splitter` finds the cells of a piece of text
(`_csv.c`), and `Blocks` reads a file piece by piece and refuses rows that are not as long as the header.
"""

# pyarrow tells too little of its types for the strict mode.
# pyright: basic
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.formats import _csv
from mechdesign.formats.inputs import TextInput, Undecodable

CR = 13

Positions = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Rows:
    """The complete rows of a piece of text; from byte `misquoted` on, unless it is -1, there is text behind a quote."""

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
        """Cells of every row, 0 for a blank line."""
        widths = np.diff(self.last, prepend=-1)
        widths[(widths == 1) & (self.ends[self.last] == self.starts)] = 0
        return widths


class Splitter:
    """Finds the cells of pieces of text, one after the other.

    Its arrays are made once: fresh memory for every piece would take longer than what is written there.
    """

    def __init__(self, delimiter: int, quote: int | None) -> None:
        self._delimiter = delimiter
        self._quote = -1 if quote is None else quote
        self._found = np.empty((3, 0), np.int64)

    def split(self, text: bytes) -> Rows:
        """Find the cells of all complete rows at the beginning of `text`.

        What comes after the last line break outside quotes belongs to no row. The text must not end with CR or a
        quote unless the file ends there, since the next byte tells what they mean.
        """
        if self._found.shape[1] < len(text):
            self._found = np.empty((3, len(text) + len(text) // 8), np.int64)
        cells, count, size, lines, misquoted = _csv.split(
            text, self._delimiter, self._quote, *self._found
        )
        sizes = (cells, count, count)
        ends, last, starts = (
            found[:k].copy() for found, k in zip(self._found, sizes, strict=True)
        )
        quotes = self._quote >= 0 and self._quote in text
        return Rows(ends, last, starts, size, quotes, lines, misquoted)


def pieces_of(text: bytes, offsets: NDArray[np.int32]) -> Any:
    """The pieces of `text` between offsets that never go back, as a pyarrow array that copies nothing."""
    import pyarrow as pa

    if (
        offsets[0] < 0
        or offsets[-1] > len(text)
        or bool((offsets[1:] < offsets[:-1]).any())
    ):
        raise IndexError("offsets must ascend within the text")
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text)]
    return pa.Array.from_buffers(pa.string(), len(offsets) - 1, buffers)


BLOCK = 1 << 20
"""Bytes read at a time; arrays of a block stay in the processor's cache."""

HEADER = 1 << 16
"""Bytes read for the header, which are gone through again."""

LONGEST = 1 << 24
"""Bytes of the longest record (16 MB): a quote that is never closed must not fill the memory."""

BLANK = "is blank within the table"


@dataclass(frozen=True)
class TextBlock:
    """Some rows of the file."""

    text: bytes
    ends: Positions
    starts: Positions
    size: int
    quotes: bool
    line: int
    record: int

    def line_of(self, row: int) -> int:
        """Number of the line where a row begins."""
        return self.line + line_breaks(self.text[: int(self.starts[row])])

    def select(self, rows: Mask, /) -> Self:
        """Some of the rows; lines and records are no longer those of the file."""
        at = np.flatnonzero(rows)
        bounds = np.append(self.starts, self.size)
        text = b"".join([self.text[bounds[i] : bounds[i + 1]] for i in at.tolist()])
        starts = np.cumsum(np.append(0, bounds[at + 1] - bounds[at]))
        ends = self.ends[at] + (starts[:-1] - self.starts[at])[:, None]
        return replace(
            self, text=text, ends=ends, starts=starts[:-1], size=int(starts[-1])
        )


def line_breaks(text: bytes) -> int:
    """How many lines end in `text`, at CR, LF or both."""
    feeds = text.count(b"\n")
    return feeds + text.count(b"\r") - text.count(b"\r\n") if b"\r" in text else feeds


class Blocks:
    """Reads a file of text block by block; the first row is the header."""

    def __init__(
        self, source: TextInput, name: str, delimiter: str, quote: str | None
    ) -> None:
        self._source = source
        self._name = name
        self._delimiter = ord(delimiter)
        self._quote = None if quote is None else ord(quote)
        self._splitter = Splitter(self._delimiter, self._quote)
        self._width = 0
        self._line = 1
        self._blank_line = 0
        self._rest = b""
        self._ended, self.completed = False, False
        self.records = 0
        self.header, self.newline = self._take_header()

    def _take_header(self) -> tuple[list[bytes], bytes]:
        """The first row; what follows is left to be read again."""
        text, rows = self._next()
        self._require_text(text, rows.size)
        width = int(rows.widths()[0]) if len(rows) else 0
        if not width:
            raise InputError(
                f"{self._name}: the first line is blank; it must name the columns"
            )
        ends = rows.ends[:width].tolist()
        cells = [
            text[start:end]
            for start, end in zip([0, *(e + 1 for e in ends[:-1])], ends, strict=True)
        ]
        after = int(rows.starts[1]) if len(rows) > 1 else rows.size
        newline = text[ends[-1] : after]
        self._rest = text[after : rows.size] + self._rest
        if self._rest and self.completed:
            self._rest = self._rest[:-1] + newline
        self._line += line_breaks(text[:after])
        return cells, newline

    def __iter__(self) -> Iterator[TextBlock]:
        width = self._width = len(self.header)
        while self._rest or not self._ended:
            text, rows = self._next()
            self._require_text(text, rows.size)
            count = self._regular(text, rows, width)
            if count:
                ends = rows.ends[: count * width].reshape(count, width)
                size = int(rows.starts[count]) if count < len(rows) else rows.size
                yield TextBlock(
                    text,
                    ends,
                    rows.starts[:count],
                    size,
                    rows.quotes,
                    self._line,
                    self.records,
                )
                self.records += count
            self._line += rows.lines

    def _next(self) -> tuple[bytes, Rows]:
        """Text that begins with a row, and its complete rows: at least one unless the file is at its end."""
        text, wanted = self._rest, BLOCK if self._width else min(BLOCK, HEADER)
        while True:
            text = self._more(text, wanted)
            rows = self._splitter.split(text)
            if rows.misquoted >= 0:
                what = f"not a CSV row ({chr(self._delimiter)!r} expected after the closing quote)"
                self._refuse(text[: rows.misquoted], what)
            if len(rows) or self._ended:
                break
            if len(text) >= LONGEST:
                self._refuse(
                    b"",
                    f"a record of more than {LONGEST:,} bytes; is a quote never closed?",
                )
            wanted = len(text)
        self._rest = text[rows.size :]
        if self._ended and self._rest:
            self._refuse(
                text[: rows.size],
                "the file ends within quotes; a quote is never closed",
            )
        return text, rows

    def _more(self, text: bytes, size: int) -> bytes:
        """`text` and some more, up to a byte that does not depend on the next one."""
        # Whether a carriage return ends a line alone, and a quote its cell, shows in the next byte.
        pending = (CR, self._quote)
        parts = [text]
        while not self._ended:
            try:
                part = self._source.read(size)
            except Undecodable:
                self._refuse(b"".join(parts), self._no_text())
            self._ended = not part
            parts.append(part)
            if part and part[-1] not in pending:
                break
        else:
            last = next((part[-1:] for part in reversed(parts) if part), b"\n")
            if last not in (b"\n", b"\r"):
                self.completed = True
                parts.append(getattr(self, "newline", b"\n"))
        return b"".join(parts)

    def _require_text(self, text: bytes, size: int) -> None:
        """Refuse among the first `size` bytes those that are no characters, and NUL, which is none that a table has."""
        if not text.isascii():
            try:
                text[:size].decode()
            except UnicodeDecodeError as error:
                self._refuse(text[: error.start], self._no_text())
        nul = text.find(b"\0", 0, size)
        if nul >= 0:
            self._refuse(
                text[:nul], "a NUL character, which is no text; is this a CSV file?"
            )

    def _no_text(self) -> str:
        if self._source.encoding == "utf-8":
            return "not UTF-8 text; save the file as UTF-8, or name its encoding (--encoding)"
        return f"not {self._source.encoding} text; name the encoding of the file (--encoding)"

    def _regular(self, text: bytes, rows: Rows, width: int) -> int:
        """How many rows there are before blank lines that end the file; every one must be as long as the header."""
        count = filled = len(rows)
        expected = np.arange(width - 1, len(rows.ends), width)
        if not np.array_equal(rows.last, expected) or (
            width == 1 and (rows.ends == rows.starts).any()
        ):
            widths = rows.widths()
            filled = int(np.flatnonzero(widths)[-1]) + 1 if widths.any() else 0
            wrong = np.flatnonzero(widths[:filled] != width)
            if len(wrong) and not self._blank_line:
                cells = int(widths[wrong[0]])
                what = (
                    f"has {cells} cell(s) where the header has {width}"
                    if cells
                    else BLANK
                )
                self._refuse(text[: int(rows.starts[wrong[0]])], f"the row {what}")
        if filled and self._blank_line:
            raise InputError(f"{self._name}, line {self._blank_line}: the row {BLANK}")
        if filled < count and not self._blank_line:
            self._blank_line = self._line + line_breaks(
                text[: int(rows.starts[filled])]
            )
        return filled

    def _refuse(self, before: bytes, what: str) -> NoReturn:
        """Refuse the line that begins or goes on after `before`, which is where this block begins."""
        raise InputError(
            f"{self._name}, line {self._line + line_breaks(before)}: {what}"
        )
