"""Strict CSV, every cell as the text that was written.

UTF-8 (with or without a byte-order mark), commas, double quotes, a header, and rows of the header's
length. Nothing is guessed: ``01234``, ``NA`` and blanks stay. Blank lines are allowed at the end only.
"""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TextIO

from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike, reason
from mechdesign.core.numbers import quoted

CELLS_PER_BATCH = 1 << 14
"""Cells held in memory at a time, about 1 MB: larger batches leave the processor's cache and are slower."""

MARK = "\ufeff"
"""Byte-order mark that some programs put before UTF-8 text."""

Row = list[str]


class CsvText:
    """A CSV file, read in batches of rows; a context manager.

    Parameters
    ----------
    path : path
        Of a text file (see `files.is_parquet`).
    repeated_header : bool
        Whether header cells may be equal.

    Attributes
    ----------
    header : list of str
    has_mark : bool
        Whether the file begins with a byte-order mark.
    newline : str
        How its first line ends.

    Raises
    ------
    InputError
        If the header is missing or repeats a name.
    """

    def __init__(self, path: PathLike, *, repeated_header: bool = False) -> None:
        self.path = os.fspath(path)
        self._stream = self._open()
        self._reader = csv.reader(self._stream, strict=True)
        self._records = 0
        try:
            self.header = self._read_header(repeated_header)
        except InputError:
            self._stream.close()
            raise

    def __enter__(self) -> CsvText:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def _open(self) -> TextIO:
        try:
            with open(self.path, "rb") as raw:
                first = raw.readline(1 << 20)
            self.has_mark = first.startswith(MARK.encode())
            self.newline = "\r\n" if first.endswith(b"\r\n") else "\n"
            return open(self.path, encoding="utf-8-sig", newline="")
        except OSError as error:
            raise InputError(f"{self.path} cannot be read: {reason(error)}") from None

    def _read_header(self, repeated: bool) -> Row:
        rows = self._take(1)
        header = rows[0] if rows else []
        if not header:
            raise InputError(f"{self.path}: the first line is blank; it must name the columns")
        twice = [name for name, times in Counter(header).items() if times > 1]
        if twice and not repeated:
            raise InputError(f"{self.path}: the header has the column {quoted(twice[0])} more than once")
        return header

    def _take(self, size: int) -> list[Row]:
        try:
            return list(islice(self._reader, size))
        except UnicodeDecodeError:
            raise InputError(
                f"{self.path}, line {self._undecodable()}: not UTF-8 text; save the file as UTF-8"
            ) from None
        except OSError as error:
            raise InputError(f"{self.path} cannot be read: {reason(error)}") from None
        except csv.Error as error:
            raise InputError(f"{self.path}, line {self._reader.line_num}: {_explained(error)}") from None

    def _undecodable(self) -> int:
        with open(self.path, "rb") as raw:
            for number, line in enumerate(raw, 1):
                try:
                    line.decode()
                except UnicodeDecodeError:
                    return number
        return 0

    def batches(self) -> Iterator[list[Row]]:
        """The rows after the header, some at a time, every one as long as the header.

        Raises
        ------
        InputError
            On a short or long row, a broken quote, or text that is not UTF-8; it names the line.
        """
        width = len(self.header)
        size = max(1, CELLS_PER_BATCH // width)
        blank = False
        while rows := self._take(size):
            filled = len(rows)
            while filled and not rows[filled - 1]:
                filled -= 1
            if filled and blank:
                raise InputError(
                    f"{self.path}, line {self.line_of(self._records)}: a blank line within the table"
                )
            blank = blank or filled < len(rows)
            del rows[filled:]
            if rows and set(map(len, rows)) != {width}:
                at = next(i for i, row in enumerate(rows) if len(row) != width)
                line, row = self.line_of(self._records + at), rows[at]
                what = (
                    f"has {len(row)} cell(s) where the header has {width}"
                    if row
                    else "is blank within the table"
                )
                raise InputError(f"{self.path}, line {line}: the row {what}")
            if rows:
                yield rows
            self._records += len(rows)

    def line_of(self, record: int) -> int:
        """Number of the line where a record begins (records count from 0, the header's line is 1)."""
        return self.find(lambda position, _: position == record)

    def find(self, wanted: Callable[[int, Row], bool]) -> int:
        """Number of the line where the first record begins for which `wanted(position, row)` holds."""
        with open(self.path, encoding="utf-8-sig", newline="") as stream:
            reader = csv.reader(stream, strict=True)
            next(reader)
            line = reader.line_num
            for position, row in enumerate(reader):
                if wanted(position, row):
                    break
                line = reader.line_num
        return line + 1


def _explained(error: csv.Error) -> str:
    text = str(error)
    if "field larger" in text:
        return f"a cell of more than {csv.field_size_limit():,} characters; is a quote never closed?"
    if "unexpected end" in text:
        return "the file ends within quotes; a quote is never closed"
    return f"not a CSV row ({text})"
