"""A CSV file in blocks of complete rows, each as long as the header.

A scanner in C finds the cells of as many complete rows as the text in memory has (`_next`). What is
left, the beginning of a row, goes before the next piece. A row with too many or too few cells, or
bytes that are no text, end the reading with the number of the line. For example, behind the header
``a,b`` the first piece ends within a row:

    piece       1,22<LF>3,
    block       starts [0], ends [[1, 4]], size 5, line 2, record 0
    left over   3,
    piece       4<LF>
    block       text 3,4<LF>, starts [0], ends [[1, 3]], size 4, line 3, record 1

Blank lines may end the file, and only the file. So the rows before them are given out, and the
first one is remembered until further rows make it a fault (`_regular_rows`).

*Cells* of a piece of text are positions of bytes. The text is UTF-8, in which delimiters, quotes
and line breaks are single bytes that occur in no other character. The rules are those of
`csv.reader` in its strict mode: a cell that begins with a quote ends with one, quotes inside it are
doubled, and other quotes are ordinary characters; a line ends with CR, LF or both. The splitting
itself is compiled (`_csv_rows.c`).

For example, the two rows ``a,b`` and ``1,"2,3"``, with LF after each, have cells that end at the
bytes 1, 3, 5 and 11. The last cells of the rows are number 1 and 3, and the rows start at 0 and 4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import FileError
from mechdesign.formats import _csv
from mechdesign.formats.column_names import lines_above_header, misfit_hint, title_hint
from mechdesign.formats.csv_quotes import HiddenRecords, hidden_records
from mechdesign.formats.csv_text import (
    A_NUL,
    AUTO,
    TextInput,
    TextOptions,
    Undecodable,
)

# -------------------------------------------------------------------------------- cells

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


# ------------------------------------------------------------------------------- blocks

CR = 13
BACKSLASH = 92
"""The bytes of a carriage return and of a backslash."""

BLANKS = b" \t"
"""What may stand between a delimiter and a quote in files of other programs."""

Mask = NDArray[np.bool_]

BLOCK = 1 << 22
"""Bytes read at a time. Of a smaller block the steps in Python take longer than its cells."""

WIDE = 500
"""Columns of a table from which on a block holds `LEAST_ROWS`, if it can: every step of a release
costs some microseconds for each column of a block, however few its rows.
"""

LEAST_ROWS = 256

LARGEST_BLOCK = 1 << 23
"""Bytes that are read at a time for so many rows, at most."""

HEADER = 1 << 16
"""Bytes read for the header. They are split once more for the records."""

MOST_BLANKS = 100
"""Bytes behind a closing quote that are looked at."""

NO_BLANKS = "take the blanks between delimiters and quotes out of the file"
"""The remedy for `"a", "b"`, which other programs read as two cells without blanks."""

LONGEST = 1 << 24
"""Most bytes of a record (16 MB): an unclosed quote must not fill the memory."""

BLANK = "is blank within the table"
"""The fault of a blank line before further rows."""

QUESTION_CODES = re.compile(rb'(?:^|\n)"?\{""?ImportId""?:')
"""The beginning of the row of codes in an export of Qualtrics."""


@dataclass(frozen=True)
class TextBlock:
    """Some rows of a file.

    Attributes
    ----------
    text : bytes
        The text, which begins with the first row.
    ends : (n, number of columns) array
        Where each cell ends.
    starts : (n,) array
        Where each row starts.
    size : int
        Bytes up to the end of the last row.
    quotes : bool
        Whether there is any quote in the text.
    line : int
        The number of the first line in the file, from 1.
    record : int
        The number of the first record in the file, from 0.
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

    def select(self, rows: Mask, /) -> Self:
        """Some of the rows; their line and record numbers in the file are lost."""
        selected = np.flatnonzero(rows)
        bounds = np.append(self.starts, self.size)
        text = b"".join(
            [self.text[bounds[i] : bounds[i + 1]] for i in selected.tolist()]
        )
        lengths = bounds[selected + 1] - bounds[selected]
        new_bounds = np.cumsum(np.append(0, lengths))
        starts = new_bounds[:-1]
        # All cells of a row move by as many bytes as its start.
        moved = starts - self.starts[selected]
        ends = self.ends[selected] + moved[:, None]
        return replace(
            self, text=text, ends=ends, starts=starts, size=int(new_bounds[-1])
        )


class Blocks:
    """Reads a file of text block by block; the first row is the header.

    Attributes
    ----------
    header : list of bytes
        The cells of the first row, with their quotes.
    lines_above : int
        How many lines at the beginning of the file look like a title or a comment.
    newline : bytes
        The line break after the header.
    records : int
        Records read so far.
    completed : bool
        Whether the last line of the file had no line break and was given one.
    hidden : HiddenRecords or None
        The first cell of the last block that holds whole records.
    """

    def __init__(self, source: TextInput, name: str, options: TextOptions) -> None:
        self._source = source
        self._name = name
        self._options = options
        self._delimiter = ord(options.delimiter)
        self._quote = None if options.quote is None else ord(options.quote)
        self._splitter = Splitter(self._delimiter, self._quote)
        self._line = 1
        self._blank_line = 0
        """The first of the blank lines read last, which may end only the file.

        0 if there are none.
        """
        self._rest = b""
        """Text that was read and not yet split into rows."""
        self._ended = False
        self.completed = False
        self.hidden: HiddenRecords | None = None
        self.records = 0
        self.newline = b"\n"
        self.lines_above = self._look_for_header()
        if options.skip_lines == AUTO:
            self._skip(self.lines_above)
        else:
            self._skip(options.skip_lines)
        self.header = self._take_header()
        self._refuse_question_lines()

    def _look_for_header(self) -> int:
        """How many lines above the header look like a title or a comment."""
        self._rest = self._more(self._rest, min(BLOCK, HEADER))
        return lines_above_header(
            self._rest, self._options.delimiter, self._options.quote
        )

    def _skip(self, lines: int) -> None:
        """Pass over some lines, whatever is in them."""
        left = lines
        while left:
            end = _end_of_line(self._rest)
            if end < 0:
                if self._ended:
                    raise FileError(
                        self._name,
                        f"{self._name} has fewer lines than are skipped (--skip-lines {lines})",
                    )
                self._rest = self._more(self._rest, HEADER)
                continue
            self._rest = self._rest[end:]
            self._line += 1
            left -= 1

    def _take_header(self) -> list[bytes]:
        """The first row; what follows it is read again."""
        text, rows = self._next(min(BLOCK, HEADER))
        self._require_text(text, rows.size)
        width = int(rows.widths()[0]) if len(rows) else 0
        if not width:
            raise FileError(
                self._name,
                f"{self._name}: the first line is blank; it must name the columns"
                f"{self._title()}",
            )
        cells: list[bytes] = []
        start = 0
        # Each delimiter is one byte, so the next cell begins behind it.
        for end in rows.ends[:width].tolist():
            cells.append(text[start:end])
            start = end + 1
        after = int(rows.starts[1]) if len(rows) > 1 else rows.size
        self.newline = text[start - 1 : after]
        self._rest = text[after : rows.size] + self._rest
        if self._rest and self.completed:
            # The last line was completed with a line feed, before its kind was known.
            self._rest = self._rest[:-1] + self.newline
        self._line += line_breaks(text[:after])
        return cells

    def _refuse_question_lines(self) -> None:
        """Refuse what Qualtrics writes below the header: they would count as people."""
        found = QUESTION_CODES.search(self._rest)
        if found is None:
            return
        above = self._rest[: found.start() + 1] if found.start() else b""
        # The questions themselves are one row, of several lines often.
        if len(self._splitter.split(above)) > 1:
            return
        last = self._line + line_breaks(above)
        raise FileError(
            self._name,
            f"{self._name}, line {last}: the rows down to this one are the questions and codes "
            "that Qualtrics writes below the header, and would count as people; delete them "
            f"(sed '{self._line},{last}d')",
        )

    def __iter__(self) -> Iterator[TextBlock]:
        width = len(self.header)
        block_size = BLOCK
        while self._rest or not self._ended:
            text, rows = self._next(block_size)
            self._require_text(text, rows.size)
            count = self._regular_rows(text, rows, width)
            if count:
                # Blank lines at the end of the text are not part of the block.
                size = int(rows.starts[count]) if count < len(rows) else rows.size
                block = TextBlock(
                    text=text,
                    ends=rows.ends[: count * width].reshape(count, width),
                    starts=rows.starts[:count],
                    size=size,
                    quotes=rows.quotes,
                    line=self._line,
                    record=self.records,
                )
                self.hidden = None
                # Usually a record is a line, and no cell has to be looked at.
                if rows.lines > len(rows):
                    self.hidden = hidden_records(
                        text, block.starts, block.ends, size, self._options.delimiter
                    )
                yield block
                self.records += count
                if width > WIDE:
                    rows_size = LEAST_ROWS * (size // count)
                    block_size = max(BLOCK, min(rows_size, LARGEST_BLOCK))
            self._line += rows.lines

    def _next(self, size: int) -> tuple[bytes, Rows]:
        """Text that begins with a row, and its complete rows: at least one, except at the end.

        It reads about `size` bytes, and more while they do not complete a row.
        """
        text = self._rest
        while True:
            text = self._more(text, size)
            rows = self._splitter.split(text)
            if rows.misquoted >= 0:
                delimiter = repr(chr(self._delimiter))
                before = text[: rows.misquoted]
                # The quote is the last byte.
                escaped = before[-2:-1] == bytes((BACKSLASH,))
                remedy = "a quote within a cell is written twice"
                if self._is_blank_end(text[rows.misquoted :][:MOST_BLANKS]):
                    remedy = NO_BLANKS
                elif escaped:
                    remedy += ", not behind a backslash"
                raise self._fault(
                    before,
                    f"not a CSV row ({delimiter} expected after the closing quote); {remedy}",
                )
            if len(rows) or self._ended:
                break
            if len(text) >= LONGEST:
                raise self._fault(
                    b"",
                    f"a record of more than {LONGEST:,} bytes; is a quote never closed?",
                )
            # Twice as much text at every attempt, so that a long record takes linear time.
            size = len(text)
        self._rest = text[rows.size :]
        if self._ended and self._rest:
            raise self._fault(
                text[: rows.size],
                "the file ends within quotes; a quote is never closed",
            )
        return text, rows

    def _more(self, text: bytes, size: int) -> bytes:
        """`text` and more, up to a byte whose meaning does not depend on the next one."""
        # The next byte decides whether CR ends a line alone, and whether a quote ends its cell.
        undecided = (CR, self._quote)
        parts = [text]
        while not self._ended:
            try:
                part = self._source.read(size)
            except Undecodable:
                raise self._fault(b"".join(parts), self._not_text()) from None
            parts.append(part)
            self._ended = not part
            if part and part[-1] not in undecided:
                return b"".join(parts)
        # The end of the file. Half of a record may be missing, so the user is told.
        text = b"".join(parts)
        if text and text[-1:] not in (b"\n", b"\r"):
            self.completed = True
            text += self.newline
        return text

    def _require_text(self, text: bytes, size: int) -> None:
        """Refuse bytes among the first `size` that are not characters, and NUL."""
        if not text.isascii():
            try:
                text[:size].decode()
            except UnicodeDecodeError as error:
                raise self._fault(text[: error.start], self._not_text()) from None
        nul = text.find(b"\0", 0, size)
        if nul >= 0:
            raise self._fault(text[:nul], A_NUL)

    def _not_text(self) -> str:
        """The fault of bytes that are no text in the encoding of the file."""
        if self._source.encoding == "utf-8":
            return "not UTF-8 text; save the file as UTF-8, or name its encoding (--encoding)"
        return f"not {self._source.encoding} text; name the encoding of the file (--encoding)"

    def _regular_rows(self, text: bytes, rows: Rows, width: int) -> int:
        """The number of rows before the blank lines at the end; all must have `width` cells."""
        filled = len(rows)
        # The usual case: every row has `width` cells, and none is blank.
        last_cells = np.arange(width - 1, len(rows.ends), width)
        regular = np.array_equal(rows.last, last_cells)
        if not regular or (width == 1 and (rows.ends == rows.starts).any()):
            widths = rows.widths()
            filled = int(np.flatnonzero(widths)[-1]) + 1 if widths.any() else 0
            wrong = np.flatnonzero(widths[:filled] != width)
            # A blank line of an earlier block is the earlier fault.
            if len(wrong) and not self._blank_line:
                place = int(wrong[0])
                cells = int(widths[place])
                problem = f"has {cells} cell(s) where the header has {width}"
                hint = self._misfit(text, rows, widths[:filled])
                row = text[int(rows.starts[place]) : int(rows.ends[rows.last[place]])]
                if cells > width and bytes((BACKSLASH, self._delimiter)) in row:
                    hint = (
                        f"; a {self._options.delimiter!r} within a cell is put in quotes, not "
                        "behind a backslash"
                    )
                elif cells > width and self._has_blank_before_quote(row):
                    hint = f"; a quote behind a blank opens no cell: {NO_BLANKS}"
                if not hint and cells < width:
                    hint = "; write all cells of a row, empty ones too, or take the row away"
                elif not hint:
                    hint = f"; a {self._options.delimiter!r} within a cell is put in quotes"
                raise self._fault(
                    text[: int(rows.starts[place])],
                    f"the row {problem}{hint}" if cells else self._blank(),
                )
        if filled and self._blank_line:
            raise FileError(
                self._name, f"{self._name}, line {self._blank_line}: {self._blank()}"
            )
        if filled < len(rows) and not self._blank_line:
            # Blank lines may end the file: the next block decides.
            before = text[: int(rows.starts[filled])]
            self._blank_line = self._line + line_breaks(before)
        return filled

    def _has_blank_before_quote(self, row: bytes) -> bool:
        """Whether a cell of a row begins with a blank and then a quote."""
        if self._quote is None:
            return False
        quote = bytes((self._quote,))
        for cell in row.split(bytes((self._delimiter,))):
            inner = cell.lstrip(BLANKS)
            if inner != cell and inner.startswith(quote):
                return True
        return False

    def _is_blank_end(self, behind: bytes) -> bool:
        """Whether what is behind a closing quote is blanks up to the end of the cell."""
        ends = (bytes((self._delimiter,)), b"\n", b"\r")
        inner = behind.lstrip(BLANKS)
        # More of the cell may not have been read yet.
        return inner != behind and (not inner or inner.startswith(ends))

    def _misfit(self, text: bytes, rows: Rows, widths: Positions) -> str:
        """What rows are that do not fit the header, where it can be seen; otherwise empty."""
        # What is wrong with every row is seen in the first ones.
        if self.records:
            return ""
        lasts: list[bytes] = []
        for last in rows.last[: len(widths)].tolist():
            start = int(rows.ends[last - 1]) + 1 if last else 0
            lasts.append(text[start : int(rows.ends[last])])
        hint = misfit_hint(widths.tolist(), self.header, lasts, self._options.delimiter)
        hint = hint or self._title()
        if not hint and len(self.header) == 1:
            hint = (
                f"; in a table of one column a cell with a {self._options.delimiter!r} is written "
                "in quotes"
            )
        return hint

    def _blank(self) -> str:
        """The fault of a blank line, which is often that below a title."""
        title = "" if self.records else self._title()
        if title or len(self.header) > 1:
            return f"the row {BLANK}{title or '; remove it'}"
        return f"the row {BLANK}; in a table of one column an empty cell is written in quotes"

    def _title(self) -> str:
        """What to do about lines above the header, if there are any that nobody spoke of."""
        return "" if self._options.skip_lines else title_hint(self.lines_above)

    def _fault(self, before: bytes, problem: str) -> FileError:
        """An error about the line that begins, or goes on, after `before` in this block."""
        line = self._line + line_breaks(before)
        return FileError(self._name, f"{self._name}, line {line}: {problem}")


def _end_of_line(text: bytes) -> int:
    """Where the first line of a text ends, behind its line break; -1 if it does not."""
    ends = [text.find(mark) for mark in (b"\n", b"\r") if mark in text]
    if not ends:
        return -1
    end = min(ends)
    # CR and LF together end one line.
    if text[end : end + 2] == b"\r\n":
        return end + 2
    return end + 1
