"""A CSV file in blocks of complete rows, every row as long as the header."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from mechdesign.errors import InputError
from mechdesign.sanitise.csv_quotes import Misquoted, Positions
from mechdesign.sanitise.csv_structure import Rows, Splitter
from mechdesign.sanitise.csv_text_input import TextInput, Undecodable

BLOCK = 1 << 20
"""Bytes read at a time; arrays of a block stay in the processor's cache."""

HEADER = 1 << 16
"""Bytes read for the header, which are gone through again."""

LONGEST = 1 << 24
"""Bytes of the longest record (16 MB): a quote that is never closed must not fill the memory."""


BLANK = "is blank within the table"

RETURN = 13
"""A carriage return: whether it ends a line alone shows in the next byte."""


@dataclass(frozen=True)
class Block:
    """Some rows of the file.

    Parameters
    ----------
    text : bytes
        UTF-8, beginning with the first row; what is beyond the last one does not matter.
    ends : (rows, cells) integer array
        Position after the last byte of every cell.
    starts : (rows,) integer array
        Position of the first byte of every row.
    size : int
        Bytes of all rows.
    quotes : bool
        Whether there are quotes in the text.
    line : int
        Number of the line where the first row begins.
    record : int
        Number of the first row's record, from 0.
    """

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


def line_breaks(text: bytes) -> int:
    """How many lines end in `text`, at CR, LF or both."""
    feeds = text.count(b"\n")
    return feeds + text.count(b"\r") - text.count(b"\r\n") if b"\r" in text else feeds


class Blocks:
    """Reads a file of text block by block; the first row is the header.

    Parameters
    ----------
    source : TextInput
    name : str
        What messages call the file.
    delimiter : str
    quote : str or None

    Attributes
    ----------
    header : list of bytes
        The cells of the first row as they are written.
    newline : bytes
        How the header's line ends (LF if the file ends there).
    records : int
        Read so far.

    Raises
    ------
    InputError
        If the header's line is blank, or the first block is no table.
    """

    def __init__(self, source: TextInput, name: str, delimiter: str, quote: str | None) -> None:
        self._source = source
        self._name = name
        self._delimiter = ord(delimiter)
        self._quote = None if quote is None else ord(quote)
        self._splitter = Splitter(self._delimiter, self._quote)
        self._width = 0
        self._line = 1
        self._blank_line = 0
        self._rest = b""
        self._ended, self._completed = False, False
        self.records = 0
        self.header, self.newline = self._take_header()

    def _take_header(self) -> tuple[list[bytes], bytes]:
        """The first row; what follows is left to be read again."""
        text, rows = self._next()
        self._require_text(text, rows.size)
        width = int(rows.widths()[0]) if len(rows) else 0
        if not width:
            raise InputError(f"{self._name}: the first line is blank; it must name the columns")
        ends = rows.ends[:width].tolist()
        cells = [text[start:end] for start, end in zip([0, *(e + 1 for e in ends[:-1])], ends, strict=True)]
        after = int(rows.starts[1]) if len(rows) > 1 else rows.size
        newline = text[ends[-1] : after]
        self._rest = text[after : rows.size] + self._rest
        if self._rest and self._completed:
            self._rest = self._rest[:-1] + newline
        self._line += line_breaks(text[:after])
        return cells, newline

    def __iter__(self) -> Iterator[Block]:
        """All blocks that have rows, once.

        Raises
        ------
        InputError
            On a short, long or blank row, a broken quote, or text that is none; it names the line.
        """
        width = self._width = len(self.header)
        while self._rest or not self._ended:
            text, rows = self._next()
            self._require_text(text, rows.size)
            count = self._regular(text, rows, width)
            if count:
                ends = rows.ends[: count * width].reshape(count, width)
                size = int(rows.starts[count]) if count < len(rows) else rows.size
                yield Block(text, ends, rows.starts[:count], size, rows.quotes, self._line, self.records)
                self.records += count
            self._line += rows.lines

    def _next(self) -> tuple[bytes, Rows]:
        """Text that begins with a row, and its complete rows: at least one unless the file is at its end."""
        text, wanted = self._rest, BLOCK if self._width else min(BLOCK, HEADER)
        while True:
            text = self._more(text, wanted)
            try:
                rows = self._splitter.split(text, self._width)
            except Misquoted as error:
                self._refuse(
                    text[: error.position],
                    f"not a CSV row ({chr(self._delimiter)!r} expected after the closing quote)",
                )
            if len(rows) or self._ended:
                break
            if len(text) >= LONGEST:
                self._refuse(b"", f"a record of more than {LONGEST:,} bytes; is a quote never closed?")
            wanted = len(text)
        self._rest = text[rows.size :]
        if self._ended and self._rest:
            self._refuse(text[: rows.size], "the file ends within quotes; a quote is never closed")
        return text, rows

    def _more(self, text: bytes, size: int) -> bytes:
        """`text` and some more, up to a byte that does not depend on the next one."""
        pending = (RETURN,) if self._quote is None else (RETURN, self._quote)
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
                self._completed = True
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
            self._refuse(text[:nul], "a NUL character, which is no text; is this a CSV file?")

    def _no_text(self) -> str:
        if self._source.encoding == "utf-8":
            return "not UTF-8 text; save the file as UTF-8, or name its encoding (--encoding)"
        return f"not {self._source.encoding} text; name the encoding of the file (--encoding)"

    def _regular(self, text: bytes, rows: Rows, width: int) -> int:
        """How many rows there are before blank lines that end the file; every one must be as long as the header."""
        count = len(rows)
        if (
            len(rows.ends) == count * width
            and np.array_equal(rows.last, np.arange(width - 1, count * width, width))
            and (width > 1 or bool((rows.ends > rows.starts).all()))
        ):
            filled = count
        else:
            widths = rows.widths()
            filled = int(np.flatnonzero(widths)[-1]) + 1 if widths.any() else 0
            wrong = np.flatnonzero(widths[:filled] != width)
            if len(wrong) and not self._blank_line:
                cells = int(widths[wrong[0]])
                what = f"has {cells} cell(s) where the header has {width}" if cells else BLANK
                self._refuse(text[: int(rows.starts[wrong[0]])], f"the row {what}")
        if filled and self._blank_line:
            raise InputError(f"{self._name}, line {self._blank_line}: the row {BLANK}")
        if filled < count and not self._blank_line:
            self._blank_line = self._line + line_breaks(text[: int(rows.starts[filled])])
        return filled

    def _refuse(self, before: bytes, what: str) -> NoReturn:
        """Refuse the line that begins or goes on after `before`, which is where this block begins."""
        raise InputError(f"{self._name}, line {self._line + line_breaks(before)}: {what}")
