"""The table of the page: read once, by the reader of the command line, and kept in memory.

A file of the command line (`read_path`) and an upload end in `read_content`:

1. `open_source` reads CSV, packed or alone in a zip archive, Parquet, and files of SPSS, Stata and
   SAS; others get its sentence. Cells of a CSV stay as they are written: a code 01234 keeps its
   zero.
2. A CSV is read as its first bytes advise (`likely_text`): "job;age" is read with semicolons.
   `reading` says so in words. Lines above the header are passed over where none of them has two
   cells (`_text_of`).
3. `_check` refuses a table without records, with one column, or with unclear names.

The bytes are never written under a name, so nothing is left when the page ends.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mechdesign.core.errors import FileError, InputError, errors_naming
from mechdesign.core.wording import quoted
from mechdesign.formats.csv_text import TextOptions
from mechdesign.formats.opening import Source, open_source
from mechdesign.leaks.doctor import likely_text

MOST_COLUMNS = 1_000
"""Columns of a table that the page shows; more take a browser minutes."""

LONGEST_CELL = 10_000
"""Characters of a cell that can be a category."""

ENDINGS = (
    ".csv",
    ".tsv",
    ".txt",
    ".gz",
    ".zst",
    ".zip",
    ".parquet",
    ".sav",
    ".zsav",
    ".dta",
    ".sas7bdat",
    ".xpt",
)
"""Names of files that the page offers to open; the content decides."""


@dataclass(frozen=True, eq=False)
class MemoryTable:
    """A table in memory.

    Attributes
    ----------
    path : str
        Where the file is; of an upload its name alone, because browsers tell no more.
    frame : pyarrow.Table
        The cells; those of a CSV are text, and empty ones are null.
    text : TextOptions or None
        How a CSV was read; None for other formats.
    sha256 : str
        The hash of the bytes of the file.
    """

    path: str
    frame: Any
    text: TextOptions | None
    sha256: str

    @property
    def name(self) -> str:
        """The file without its folder."""
        return os.path.basename(self.path)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns in the order of the file."""
        return tuple(self.frame.column_names)

    @property
    def records(self) -> int:
        """The number of rows."""
        return self.frame.num_rows

    @property
    def reading(self) -> str:
        """How the text was read, where that was not the usual way; or nothing."""
        usual = TextOptions()
        text = self.text or usual
        parts: list[str] = []
        if text.encoding != usual.encoding:
            parts.append(f"in the encoding {text.encoding}")
        if text.delimiter != usual.delimiter:
            parts.append(f"with {quoted(text.delimiter)} between the cells")
        if text.skip_lines:
            noun = "line" if text.skip_lines == 1 else "lines"
            parts.append(f"below {text.skip_lines} {noun} above the header")
        return " and ".join(parts)

    def with_columns(self, names: tuple[str, ...]) -> MemoryTable:
        """The same table with these columns alone."""
        frame = self.frame.select(list(names))
        return MemoryTable(self.path, frame, self.text, self.sha256)


def read_path(path: str) -> MemoryTable:
    """Read the file that the command line names."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    return read_content(path, content)


def read_content(path: str, content: bytes | bytearray) -> MemoryTable:
    """Read the bytes of a data file.

    Raises
    ------
    InputError
        If it cannot be read, a name is missing or appears twice, or there are no records.
    """
    name = os.path.basename(path)
    # Messages begin with the name once, whoever raises them.
    with errors_naming(name):
        text = _text_of(name, content)
        with open_source(io.BytesIO(content), text, name=name) as source:
            _check_width(source.header)
            frame = _frame(source)
            table = MemoryTable(
                path=path,
                frame=frame,
                text=text if source.kind == "CSV" else None,
                sha256=hashlib.sha256(content).hexdigest(),
            )
        _check(table)
    return table


def _text_of(name: str, content: bytes | bytearray) -> TextOptions:
    """How a CSV is read."""
    text = likely_text(io.BytesIO(content), name=name)
    if not text.skip_lines:
        return text
    # A header that is narrower than its rows is a mistake, and no title: whoever took the first row
    # for the header would show the cells of a person as names of columns.
    with open_source(
        io.BytesIO(content), replace(text, skip_lines=0), name=name, repeated_names=True
    ) as source:
        # Spreadsheets write a first line that names the delimiter, which divides it, too: sep=;
        names_delimiter = source.header[0].casefold() == "sep="
        if len(source.header) > 1 and not names_delimiter:
            return replace(text, skip_lines=0)
    return text


def _frame(source: Source) -> Any:
    """The records of a file as a pyarrow table."""
    import pyarrow

    header = list(source.header)
    if not all(header):
        raise FileError(
            source.name,
            f"{source.name}: a column has no name: write one into the header",
        )
    # Codes while it is read: most columns repeat few texts.
    coded = header if source.kind == "CSV" else []
    stored = [] if source.kind == "CSV" else header
    chunks: dict[str, list[Any]] = {name: [] for name in header}
    for batch in source.batches(encode=coded, read=stored):
        for name in header:
            chunks[name].append(batch.column(name))
    columns: dict[str, Any] = {}
    for name in header:
        # Emptied on the way, so that no two forms of the whole table are in memory at once.
        parts = chunks.pop(name)
        columns[name] = _column(parts, is_text=source.kind == "CSV")
    return pyarrow.table(columns)


def _column(parts: list[Any], *, is_text: bool) -> Any:
    """A column from those of the batches; empty cells of a CSV are null."""
    import pyarrow
    import pyarrow.compute

    if not is_text:
        return pyarrow.chunked_array(parts) if parts else pyarrow.array([])
    compute: Any = pyarrow.compute
    texts: list[Any] = []
    for part in parts:
        cells = part.cast(pyarrow.string())
        is_empty = compute.equal(cells, "")
        texts.append(compute.if_else(is_empty, pyarrow.scalar(None), cells))
    return pyarrow.chunked_array(texts, pyarrow.string())


def _check_width(header: Sequence[str]) -> None:
    """Refuse too few columns, and too many: before they are read, which takes a while."""
    if len(header) < 2:
        raise InputError(
            "there is a single column; one to protect and one to release are needed"
        )
    if len(header) > MOST_COLUMNS:
        raise InputError(
            f"there are {len(header):,} columns, and the page shows {MOST_COLUMNS:,} at most: "
            "leave out those that are neither protected nor released, or use the command line"
        )


def _check(table: MemoryTable) -> None:
    """Refuse a table from which nothing can be released."""
    if table.records == 0:
        raise InputError("there are no records below the header")
    for name in table.columns:
        if _longest(table.frame.column(name)) > LONGEST_CELL:
            raise InputError(
                f"the column {quoted(name)} has a cell of more than {LONGEST_CELL:,} characters, "
                "which is no category: leave the column out, or use the command line"
            )


def _longest(column: Any) -> int:
    """The characters of the longest text of a column; 0 where it holds no texts."""
    import pyarrow
    import pyarrow.compute

    if not pyarrow.types.is_string(column.type):
        return 0
    compute: Any = pyarrow.compute
    return compute.max(compute.utf8_length(column)).as_py() or 0
