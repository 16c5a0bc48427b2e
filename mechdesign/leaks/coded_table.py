"""A table held as integer codes: one array a column, for looking at its columns together.

`TableBuilder` numbers the values of a column in the order in which they come. It keeps the numbers
for all batches, so a value has the same code in each of them. The cells b, a, b and then a, c
become the codes 0, 1, 0, 1, 2 with the values (b, a, c).

Text is kept once for each distinct value, so a table of N records and m columns takes about 4 N m
bytes. A reader to whom that is too much may keep every second record (`TableBuilder.halve`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError, errors_naming
from mechdesign.core.files import PathLike
from mechdesign.core.wording import quoted
from mechdesign.formats.cell_forms import CellForm
from mechdesign.formats.cells import encode, encoded_columns
from mechdesign.formats.opening import open_source
from mechdesign.formats.text_options import TextOptions
from mechdesign.leaks.crossing import TextNumbers

Codes: TypeAlias = NDArray[np.int32]


@dataclass(frozen=True)
class CodedColumn:
    """One column: record i has the value ``values[codes[i]]``; a missing cell is the empty text."""

    name: str
    codes: Codes
    values: tuple[str, ...]


@dataclass(frozen=True)
class CodedTable:
    """Columns of equal length, and the columns that hold no symbols (lists, structures, bytes)."""

    records: int
    columns: Mapping[str, CodedColumn]
    unreadable: tuple[str, ...]


def coded_table(source: Any, text: TextOptions | None = None) -> CodedTable:
    """Read a file, or take a pandas, polars or pyarrow table.

    Raises
    ------
    InputError
        If the file cannot be read, or the frame is of no known kind.
    """
    if isinstance(source, (str, Path)):
        return _coded_file(source, text)
    return _coded_frame(source)


def _coded_file(path: PathLike, text: TextOptions | None) -> CodedTable:
    """A file, read batch by batch."""
    with open_source(path, text) as table, errors_naming(table.name):
        builder = TableBuilder(table.header)
        for batch in table.batches():
            builder.records += batch.num_rows
            for name in builder.readable():
                builder.add(name, batch.column(name))
        return builder.table()


def _coded_frame(frame: Any) -> CodedTable:
    """A data frame, whose columns are each one batch."""
    import narwhals as nw

    # This call checks the kind of the frame and refuses two columns of one name.
    encoded_columns(frame, [])
    table = nw.from_native(frame, eager_only=True)
    builder = TableBuilder(table.columns)
    builder.records = len(table)
    for name in table.columns:
        builder.add(name, table.get_column(name).to_native())
    return builder.table()


class TableBuilder:
    """Collects the codes of every column, batch by batch.

    For each batch the caller adds its number of records to `records`, and calls `add` with the
    cells of every column of `readable()`; `halve` may follow. Last, `table` gives the whole.
    """

    def __init__(self, header: Sequence[str]) -> None:
        self.records = 0
        self._unreadable: list[str] = []
        # Of each column: the numbers of its texts, and the codes of its batches.
        self._numbers: dict[str, TextNumbers] = {}
        self._parts: dict[str, list[Codes]] = {}
        for name in header:
            self._numbers[name] = TextNumbers()
            self._parts[name] = []

    def readable(self) -> list[str]:
        """The columns that hold symbols, as far as they were read."""
        return [name for name in self._parts if name not in self._unreadable]

    def add(self, name: str, cells: Any) -> None:
        """Add the next cells of a column; a column of lists or bytes is set aside."""
        try:
            column = encode(cells, name)
        except InputError:
            self._unreadable.append(name)
            return
        numbers = self._numbers[name].of(column)
        self._parts[name].append(numbers.astype(np.int32))

    def halve(self) -> None:
        """Keep every second record only, from the first on."""
        for name in self.readable():
            codes = np.concatenate(self._parts[name])
            # A copy: a view would hold the memory of all records.
            self._parts[name] = [codes[::2].copy()]
        self.records = -(-self.records // 2)

    def table(self) -> CodedTable:
        """The records so far; values that none of them has any more are left out."""
        columns: dict[str, CodedColumn] = {}
        for name in self.readable():
            parts = self._parts[name] or [np.zeros(0, np.int32)]
            values = tuple(self._numbers[name].number_of)
            codes = np.concatenate(parts)
            columns[name] = _without_unused(CodedColumn(name, codes, values))
        return CodedTable(self.records, columns, tuple(self._unreadable))


def _without_unused(column: CodedColumn) -> CodedColumn:
    """The column without values that no record has."""
    used = np.bincount(column.codes, minlength=len(column.values)) > 0
    if used.all():
        return column
    # The new number of a value is how many used ones come before it.
    numbers = np.cumsum(used) - 1
    values = tuple(np.array(column.values, dtype=object)[used].tolist())
    return CodedColumn(column.name, numbers[column.codes].astype(np.int32), values)


def in_form(table: CodedTable, form: CellForm) -> CodedTable:
    """The table with the texts of its cells in a form; equal texts have one code then."""
    if form.changes_nothing:
        return table
    columns: dict[str, CodedColumn] = {}
    for name, column in table.columns.items():
        number_of: dict[str, int] = {}
        for value in map(form.text, column.values):
            number_of.setdefault(value, len(number_of))
        places = [number_of[form.text(value)] for value in column.values]
        codes = np.array(places, dtype=np.int32)[column.codes]
        columns[name] = CodedColumn(name, codes, tuple(number_of))
    return CodedTable(table.records, columns, table.unreadable)


def without_gaps(table: CodedTable, missing: str, names: Sequence[str]) -> CodedTable:
    """The table after the treatment of empty cells in some columns.

    Parameters
    ----------
    missing : 'refuse', 'symbol' or 'drop'
        Whether an empty cell is an error, one more value, or leaves its record out.

    Raises
    ------
    InputError
        If a cell is empty that must not be, or no record is left.
    """
    if missing == "symbol":
        return table
    complete = np.ones(table.records, dtype=bool)
    for name in names:
        column = table.columns[name]
        if "" not in column.values:
            continue
        empty = column.codes == column.values.index("")
        if missing == "refuse" and empty.any():
            raise InputError(
                f"the column {quoted(name)} has an empty cell, in record "
                f"{int(np.argmax(empty)) + 1:,}; fill it, or say what it means (--missing)"
            )
        complete &= ~empty
    if complete.all():
        return table
    if not complete.any():
        raise InputError(
            "every record has an empty cell; look at fewer columns (--columns), or let empty cells "
            "be a value (--missing symbol)"
        )
    columns: dict[str, CodedColumn] = {}
    for name, column in table.columns.items():
        left = CodedColumn(name, column.codes[complete], column.values)
        columns[name] = _without_unused(left)
    return CodedTable(int(np.count_nonzero(complete)), columns, table.unreadable)
