"""The table of the page: read once, kept in memory, every cell as text.

A file of the command line (`read_path`) and an upload end in `read_content`:

1. Bytes that begin with PAR1 are Parquet (`_parquet`), whose cells stay as they are stored.
2. Others are CSV (`_csv`). The delimiter is the one of `DELIMITERS` that the header has most often:
   "job;age" is read with semicolons. The header also has the names, by which pyarrow is told that
   every column is text, so that a code 01234 keeps its zero.
3. `_check` refuses a table without records, with one column, or with unclear names.

The bytes are never written anywhere, so nothing is left when the page ends.
"""

from __future__ import annotations

import csv
import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mechdesign.core.errors import InputError, errors_naming
from mechdesign.core.wording import quoted

DELIMITERS = (",", ";", "\t")
"""What may stand between cells; the one that the header has most often is taken."""

PARQUET = b"PAR1"
"""The first bytes of every Parquet file."""


MOST_COLUMNS = 1_000
"""Columns of a table that the page shows; more take a browser minutes."""

LONGEST_CELL = 10_000
"""Characters of a cell that can be a category."""


@dataclass(frozen=True, eq=False)
class MemoryTable:
    """A table in memory.

    Attributes
    ----------
    path : str
        Where the file is; of an upload its name alone, because browsers tell no more.
    frame : pyarrow.Table
        The cells; those of a CSV are text, and empty ones are null, as on the command line.
    delimiter : str or None
        Between the cells of a CSV; None for Parquet.
    """

    path: str
    frame: Any
    delimiter: str | None

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns in the order of the file."""
        return tuple(self.frame.column_names)

    @property
    def records(self) -> int:
        """The number of rows."""
        return self.frame.num_rows

    def with_columns(self, names: tuple[str, ...]) -> MemoryTable:
        """The same table with these columns alone."""
        return MemoryTable(self.path, self.frame.select(list(names)), self.delimiter)


def read_path(path: str) -> MemoryTable:
    """Read the file that the command line names."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    return read_content(path, content)


def read_content(path: str, content: bytes) -> MemoryTable:
    """Read the bytes of a CSV or Parquet file.

    Raises
    ------
    InputError
        If they are neither, a name is missing or appears twice, or there are no records.
    """
    name = os.path.basename(path)
    with errors_naming(name):
        if content.startswith(PARQUET):
            table = MemoryTable(path, _parquet(content), None)
        else:
            table = _csv(path, content)
        _check(table)
    return table


def _parquet(content: bytes) -> Any:
    """The pyarrow table of a Parquet file."""
    import pyarrow
    import pyarrow.parquet

    try:
        return pyarrow.parquet.read_table(io.BytesIO(content))
    except (pyarrow.ArrowException, OSError, ValueError):
        # Of a damaged file pyarrow raises errors of the system, as if it could not be opened.
        raise InputError("this is no Parquet file that can be read") from None


def _csv(path: str, content: bytes) -> MemoryTable:
    """The table of a CSV file, with the delimiter that its header suggests."""
    import pyarrow
    import pyarrow.csv

    # The header is read first: its names are needed to tell pyarrow that every column is text.
    line, _, _ = content.partition(b"\n")
    try:
        header = line.decode("utf-8-sig").rstrip("\r")
    except UnicodeDecodeError:
        raise InputError("the text is not UTF-8: save the file as UTF-8") from None
    # Of equal counts, such as none at all, the first wins: the comma.
    delimiter = max(DELIMITERS, key=header.count)
    names = next(csv.reader([header], delimiter=delimiter), [])
    try:
        frame = pyarrow.csv.read_csv(
            io.BytesIO(content),
            parse_options=pyarrow.csv.ParseOptions(
                delimiter=delimiter, newlines_in_values=True
            ),
            # A code such as 01234 stays as it is written.
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(names, pyarrow.string()),
                strings_can_be_null=True,
                null_values=[""],
            ),
        )
    except pyarrow.ArrowException:
        # The message of the library quotes the row, which is a person's.
        raise InputError(
            "this is no CSV file with a header and the same number of cells in every row, in UTF-8"
        ) from None
    return MemoryTable(path, frame, delimiter)


def _check(table: MemoryTable) -> None:
    """Refuse a table from which nothing can be released."""
    names = table.columns
    for name in names:
        if not name:
            raise InputError("a column has no name: write one into the first line")
        if names.count(name) > 1:
            raise InputError(f"two columns are called {quoted(name)}: rename one")
    if len(names) < 2:
        raise InputError(
            "there is a single column; one to protect and one to release are needed"
        )
    if table.records == 0:
        raise InputError("there are no records below the header")
    if len(names) > MOST_COLUMNS:
        raise InputError(
            f"there are {len(names):,} columns, and the page shows {MOST_COLUMNS:,} at most: leave "
            "out those that are neither protected nor released, or use the command line"
        )
    for name in names:
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
