"""A table held as integer codes: one array a column, for looking at its columns together.

`TableBuilder` numbers the values of a column in the order in which they come. It keeps the numbers
for all batches, so a value has the same code in each of them. The cells b, a, b and then a, c
become the codes 0, 1, 0, 1, 2 with the values (b, a, c).

Text is kept once for each distinct value, and a code takes one byte where a column has at most 256
values, two up to 65,536, and four beyond. A reader to whom that is too much may keep every second
record (`TableBuilder.halve`).

A column that names records, such as a number of a customer, has as many texts as records, and
nothing but how many differ is asked of it. From `MOST_TEXTS` values on such a column of a file is
kept as hashes of 64 bits (`HashedValues`), by which two different texts become one with a chance of
about N^2 / 2^65: one in a million for five million records. If it turns out later that it does not
name records, the file is read once more.
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
from mechdesign.core.integers import Integers
from mechdesign.core.wording import quoted
from mechdesign.formats.arrow_arrays import without_nulls
from mechdesign.formats.cell_forms import CellForm
from mechdesign.formats.cells import (
    Encoded,
    encode,
    encoded_columns,
    simple_texts,
)
from mechdesign.formats.census import Hashes
from mechdesign.formats.column_names import require_text_names
from mechdesign.formats.digests import RowHasher
from mechdesign.formats.distinct import numbered
from mechdesign.formats.opening import open_source
from mechdesign.formats.text_options import TextOptions
from mechdesign.leaks.crossing import TextNumbers

Codes: TypeAlias = NDArray[np.integer[Any]]

IDENTIFIER_SHARE = 0.95
"""A column with so many values a record identifies its records."""

MOST_TEXTS = 1 << 17
"""Values from which on a column that names records is kept as hashes (20 MB of texts)."""


class HashedValues(Sequence[str]):
    """The values of a column that names records: how many there are, but not their texts.

    Parameters
    ----------
    size : int
        The number of different values.
    empty : int, optional
        The place of the empty text, if it is one of them.
    """

    def __init__(self, size: int, empty: int | None = None) -> None:
        self._size = size
        self._empty = empty

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, place: Any) -> Any:
        raise LookupError("the texts of a column that names records are not kept")

    def __contains__(self, text: object) -> bool:
        return text == "" and self._empty is not None

    def index(self, value: str, start: int = 0, stop: int | None = None) -> int:
        """The place of the empty text."""
        if value or self._empty is None:
            raise ValueError("only the empty text has a known place")
        return self._empty


@dataclass(frozen=True)
class CodedColumn:
    """One column: record i has the value ``values[codes[i]]``; a missing cell is the empty text."""

    name: str
    codes: Codes
    values: Sequence[str]


@dataclass(frozen=True)
class CodedTable:
    """Columns of equal length, and the columns that hold no symbols (lists, structures, bytes)."""

    records: int
    columns: Mapping[str, CodedColumn]
    unreadable: tuple[str, ...]


def combined_codes(columns: Sequence[CodedColumn], records: int) -> Integers:
    """A number below k for each of the k distinct combinations of values.

    They are renumbered at every step: the product of the numbers of values may exceed 2**63.
    """
    codes = np.zeros(records, np.int64)
    count = 1
    for column in columns:
        codes *= len(column.values)
        codes += column.codes
        # In place: of a long table they are most of the memory.
        codes[:], count = numbered(codes, count * len(column.values))
    return codes


def coded_table(
    source: Any, text: TextOptions | None = None, *, hashing: bool = False
) -> CodedTable:
    """Read a file, or take a pandas, polars or pyarrow table.

    With `hashing` a column of a file that names records may have `HashedValues`.

    Raises
    ------
    InputError
        If the file cannot be read, or the frame is of no known kind.
    """
    if isinstance(source, (str, Path)):
        return _coded_file(source, text, hashing=hashing)
    return _coded_frame(source)


def _coded_file(
    path: PathLike, text: TextOptions | None, *, hashing: bool
) -> CodedTable:
    """A file, read batch by batch."""
    # Columns that seemed to name records at first.
    in_full: set[str] = set()
    while True:
        with open_source(path, text) as table, errors_naming(table.name):
            builder = TableBuilder(table.header)
            for batch in table.batches():
                builder.records += batch.num_rows
                for name in builder.readable():
                    builder.add(name, batch.column(name))
                    if hashing and name not in in_full:
                        builder.hash_identifier(name)
            coded = builder.table()
        wrong = [
            name
            for name, column in coded.columns.items()
            if isinstance(column.values, HashedValues)
            and len(column.values) < IDENTIFIER_SHARE * coded.records
        ]
        if not wrong:
            return coded
        in_full.update(wrong)


def _coded_frame(frame: Any) -> CodedTable:
    """A data frame, whose columns are each one batch."""
    import narwhals as nw

    # This call checks the kind of the frame and refuses two columns of one name.
    encoded_columns(frame, [])
    table = nw.from_native(frame, eager_only=True)
    require_text_names(table.columns)
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
        # Of columns whose texts were given up: the hashes of their batches.
        self._hashes: dict[str, list[Hashes]] = {}
        # The same key always: the figures of a table are the same in every run.
        self._hasher = RowHasher(bytes(32))
        for name in header:
            self._numbers[name] = TextNumbers()
            self._parts[name] = []

    def readable(self) -> list[str]:
        """The columns that hold symbols, as far as they were read."""
        return [name for name in self._parts if name not in self._unreadable]

    def add(self, name: str, cells: Any) -> None:
        """Add the next cells of a column; a column of lists or bytes is set aside."""
        if name in self._hashes:
            self._hashes[name].append(hashed_cells(self._hasher, name, cells))
            return
        try:
            column = encode(cells, name)
        except InputError:
            self._unreadable.append(name)
            return
        texts = self._numbers[name]
        numbers = texts.of(column)
        self._parts[name].append(numbers.astype(code_type(len(texts))))

    def hash_identifier(self, name: str) -> None:
        """Keep hashes in place of the texts of a column that names records so far."""
        texts = self._numbers[name]
        enough = max(MOST_TEXTS, IDENTIFIER_SHARE * self.records)
        if name in self._hashes or len(texts) < enough:
            return
        values = Encoded(np.arange(len(texts)), tuple(texts.number_of))
        of_value = self._hasher.identifiers([values])
        self._hashes[name] = [of_value[codes] for codes in self._parts[name]]
        self._parts[name] = []
        self._numbers[name] = TextNumbers()

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
            if name in self._hashes:
                hashes = np.concatenate(self._hashes.pop(name))
                empty = self._hasher.identifiers([Encoded(np.zeros(1, int), ("",))])
                columns[name] = _column_of_hashes(name, hashes, empty[0])
                continue
            # One after the other, so that no column is in memory twice beside the others.
            parts = self._parts.pop(name) or [np.zeros(0, np.uint8)]
            values = tuple(self._numbers[name].number_of)
            codes = np.concatenate(parts)
            columns[name] = _without_unused(CodedColumn(name, codes, values))
        return CodedTable(self.records, columns, tuple(self._unreadable))


def hashed_cells(hasher: RowHasher, name: str, cells: Any) -> Hashes:
    """The hashes of the cells of a column; a missing one is the empty text."""
    texts = simple_texts(cells)
    if texts is None:
        column = encode(cells, name)
        empty = len(column.texts)
        codes = np.where(column.codes < 0, empty, column.codes)
        column = Encoded(codes, (*column.texts, ""))
        return hasher.identifiers([column])
    return hasher.identifiers([without_nulls(texts)])


def code_type(values: int) -> type[np.integer[Any]]:
    """The smallest type for the codes of so many values."""
    if values <= 1 << 8:
        return np.uint8
    return np.uint16 if values <= 1 << 16 else np.int32


def _column_of_hashes(name: str, hashes: Hashes, empty: np.uint64) -> CodedColumn:
    """The column with these hashes of cells; `empty` is that of the empty text."""
    codes, count = numbered(hashes, 1 << 64)
    of_empty = np.flatnonzero(hashes == empty)
    place = int(codes[of_empty[0]]) if of_empty.size else None
    return CodedColumn(name, codes, HashedValues(count, place))


def _without_unused(column: CodedColumn) -> CodedColumn:
    """The column without values that no record has."""
    used = np.bincount(column.codes, minlength=len(column.values)) > 0
    if used.all():
        return column
    # The new number of a value is how many used ones come before it.
    numbers = np.cumsum(used) - 1
    if isinstance(column.values, HashedValues):
        count = int(np.count_nonzero(used))
        codes = numbers[column.codes].astype(np.int32)
        place: int | None = None
        if "" in column.values and used[column.values.index("")]:
            place = int(numbers[column.values.index("")])
        return CodedColumn(column.name, codes, HashedValues(count, place))
    values = tuple(np.array(column.values, dtype=object)[used].tolist())
    codes = numbers[column.codes].astype(code_type(len(values)))
    return CodedColumn(column.name, codes, values)


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
        codes = np.array(places, code_type(len(number_of)))[column.codes]
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
