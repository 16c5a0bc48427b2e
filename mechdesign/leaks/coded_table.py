"""A table held as integer codes: one array a column, for looking at its columns together.

`TableBuilder` numbers the values of a column in the order in which they come. It keeps the numbers
for all batches, so a value has the same code in each of them. The cells b, a, b and then a, c
become the codes 0, 1, 0, 1, 2 with the values (b, a, c).

Text is kept once for each distinct value, and a code takes one byte where a column has at most 256
values, two up to 65,536, and four beyond. A reader to whom that is too much may keep every second
record (`TableBuilder.halve`).

A column that names records, such as a number of a customer, has as many texts as records, and
nothing but how many differ is asked of it. From `MOST_TEXTS` values on such a column is kept as
hashes of 64 bits (`HashedValues`), by which two different texts become one with a chance of about
N^2 / 2^65: one in a million for five million records. If it turns out later that it does not name
records, the table is read once more.

*Rows with weights.* Most tables have far fewer different rows than records. From `FOLDED_FROM`
records on, equal rows can be folded into one, with a weight that says how many records
have it (`TableBuilder.fold`). The records a x, b y, a x become the rows a x and b y of the weights
2 and 1. A column of hashes would leave no two rows alike. So it is kept beside the rows, with the
row of each hash: all up to `MOST_HASHES`, and beyond those of one value in two, four or more,
chosen by their hashes, so that the order of the records does not matter. Where the first records
are mostly different, the table is held record by record.

*Samples.* A caller whom estimates suffice names the columns whose equal records belong together
(`sample_by`): then no more than about `MOST_CELLS` cells of such a table are held. Whenever there
are more, one of two rows is dropped, chosen by a hash of these columns. So the sample is one of
rows: whoever has a row that is held, all of its records are. Where one column has nearly as many
values as there are rows, as a number of a person, it alone decides, and all rows of a person stay
together. Of columns of hashes those of all records are counted as beside folded rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError, errors_naming
from mechdesign.core.integers import Integers
from mechdesign.core.wording import quoted
from mechdesign.formats.arrow_arrays import without_nulls
from mechdesign.formats.cells import (
    CellForm,
    Encoded,
    encode,
    encoded_columns,
    simple_texts,
)
from mechdesign.formats.census import Hashes
from mechdesign.formats.column_names import require_text_names
from mechdesign.formats.csv_text import TextOptions
from mechdesign.formats.digests import RowHasher
from mechdesign.formats.distinct import numbered
from mechdesign.formats.opening import Batch, Source, open_source
from mechdesign.formats.parquet import ROWS_PER_BATCH
from mechdesign.leaks.evidence import TextNumbers

Codes: TypeAlias = NDArray[np.integer[Any]]

AS_THEY_ARE = CellForm()

IDENTIFIER_SHARE = 0.95
"""A column with so many values a record identifies its records."""

MOST_TEXTS = 1 << 17
"""Values from which on a column that names records is kept as hashes (20 MB of texts)."""

FOLDED_FROM = 1 << 18
"""Records from which on equal rows are folded into one: up to here a table takes a few megabytes.
"""

MOST_HASHES = 1 << 20
"""Records whose hash is kept of a column beside folded rows (12 MB); of more, those of some values.
"""

MOST_ONE_IN = 1 << 20
"""Where even one value in so many is too much, one value has nearly all records: it stays."""


MOST_CELLS = 1 << 23
"""Cells that are held of a table of mostly different rows (8 to 32 MB): of more, those of some
rows."""

MOST_COMBINATIONS = 1 << 62
"""Combinations of values that are told apart by integers of eight bytes."""

WIDE = 0.05
"""Values a record from which on a column decides by itself which rows are held: those of people
have tens of records each, and others would make samples of few values."""


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
    """One column: row i has the value ``values[codes[i]]``; a missing cell is the empty text.

    Attributes
    ----------
    name : str
    codes : (n,) array
    values : sequence of str
    weights : (n,) array, optional
        How many records each row stands for; by default one.
    rows : (n,) array, optional
        Of a column of hashes beside folded rows: the row of the table that each code belongs to.
    one_in : int
        Of such a column the records of one in so many values are held.
    of_sample : bool
        Whether its table is a sample of rows.
    """

    name: str
    codes: Codes
    values: Sequence[str]
    weights: Integers | None = None
    rows: Integers | None = None
    one_in: int = 1
    of_sample: bool = False

    @property
    def records(self) -> int:
        """How many records are held."""
        return len(self.codes) if self.weights is None else int(self.weights.sum())

    def counts(self) -> Integers:
        """How many of the records held have each value."""
        return counted(self.codes, self.weights, len(self.values))


@dataclass(frozen=True)
class CodedTable:
    """Columns of equal length, and the columns that hold no symbols (lists, structures, bytes).

    With `weights` a row stands for so many records; else each is one of them. Of a sample `records`
    are those that are held, of one in `one_in` rows, and `read` all of them. `first_empty` is the
    number of the first record with an empty cell, by column; None where nobody asked. `name` is
    that of a file, in messages.
    """

    records: int
    columns: Mapping[str, CodedColumn]
    unreadable: tuple[str, ...]
    weights: Integers | None = None
    one_in: int = 1
    read: int = 0
    first_empty: Mapping[str, int] | None = None
    name: str | None = None

    @property
    def rows(self) -> int:
        """How many rows are held."""
        return self.records if self.weights is None else len(self.weights)


def counted(codes: Codes, weights: Integers | None, size: int) -> Integers:
    """How many records have each code below `size`."""
    if weights is None:
        return np.bincount(codes, minlength=size)
    # Sums of integers below 2^53 are exact in floating point.
    return np.bincount(codes, weights, size).astype(np.int64)


def combined_codes(columns: Sequence[CodedColumn], rows: int) -> Integers:
    """A number below k for each of the k distinct combinations of values, row by row.

    Renumbering keeps the order, so it makes no difference after which columns it is done.
    """
    codes = np.zeros(rows, np.int64)
    possible = 1
    for column in columns:
        size = len(column.values)
        if possible * size > MOST_COMBINATIONS:
            # In place: of a long table they are most of the memory.
            codes[:], possible = numbered(codes, possible)
        codes *= size
        codes += column.codes
        possible *= size
    codes[:], _ = numbered(codes, possible)
    return codes


def coded_table(
    source: Any,
    text: TextOptions | None = None,
    *,
    hashing: bool = False,
    folding: bool = False,
    sample_by: Callable[[Sequence[str]], Sequence[str]] | None = None,
    form: CellForm = AS_THEY_ARE,
    numbering_empty: bool = False,
) -> CodedTable:
    """Read a file, or take a pandas, polars or pyarrow table, with its cells in a form.

    With `hashing` a column that names records may have `HashedValues`; with `folding` the rows of a
    long table have weights. With `sample_by`, which gives columns for those of the header, a long
    table of different rows is a sample. With `numbering_empty` it has `first_empty`.

    Raises
    ------
    InputError
        If the file cannot be read, or the frame is of no known kind.
    """
    # Columns that seemed to name records at first.
    in_full: set[str] = set()
    while True:
        with _opened(source, text) as table, _errors_of(table.name):
            builder = TableBuilder(table.header, form)
            together = () if sample_by is None else sample_by(table.header)
            for batch in table.batches():
                if numbering_empty:
                    builder.look_for_empty(batch)
                held = builder.sampled(batch)
                builder.records += batch.num_rows if held is None else len(held)
                for name in builder.readable():
                    builder.add(name, _held_cells(batch, name, held))
                    if hashing and name not in in_full:
                        builder.hash_identifier(name)
                if folding:
                    builder.fold()
                builder.narrow(together)
            coded = replace(builder.table(), name=table.name)
            if numbering_empty:
                coded = replace(coded, first_empty=builder.first_empty)
        wrong = [
            name
            for name, column in coded.columns.items()
            if isinstance(column.values, HashedValues)
            and builder.different(column) < IDENTIFIER_SHARE * coded.read
        ]
        if not wrong:
            return coded
        in_full.update(wrong)


def _errors_of(name: str | None) -> AbstractContextManager[None]:
    """Begin the messages of errors with the name of a file, if there is one."""
    return nullcontext() if name is None else errors_naming(name)


def _opened(
    source: Any, text: TextOptions | None
) -> AbstractContextManager[Source | _FrameSource]:
    """A file, or a data frame that is read in the same way."""
    if isinstance(source, (str, Path)):
        return open_source(source, text)
    return nullcontext(_FrameSource(source))


class _FrameSource:
    """A data frame, read in batches like a file: beside it no more than a batch is in memory."""

    name = None

    def __init__(self, frame: Any) -> None:
        import narwhals as nw

        # This call checks the kind of the frame and refuses two columns of one name.
        encoded_columns(frame, [])
        self._table = nw.from_native(frame, eager_only=True)
        require_text_names(self._table.columns)
        self.header: list[str] = self._table.columns

    def batches(self) -> Iterator[_FrameBatch]:
        """All records, in their order."""
        for start in range(0, len(self._table), ROWS_PER_BATCH):
            yield _FrameBatch(self._table[start : start + ROWS_PER_BATCH])


class _FrameBatch:
    """Some records of a data frame."""

    def __init__(self, table: Any) -> None:
        self._table = table
        self.num_rows = len(table)

    def column(self, name: str) -> Any:
        """The cells of a column, as the frame has them."""
        return self._table.get_column(name).to_native()

    def held(self, name: str, places: Integers) -> Any:
        """Some cells of a column."""
        return self._table.get_column(name)[places.tolist()].to_native()


def _held_cells(batch: Batch | _FrameBatch, name: str, places: Integers | None) -> Any:
    """The cells of a column that are held: all, or those at some places."""
    if places is None:
        return batch.column(name)
    if isinstance(batch, _FrameBatch):
        return batch.held(name, places)
    return batch.column(name).take(places)


def even_sample(table: Source, names: Sequence[str], most: int) -> CodedTable:
    """At most so many records, evenly spread over a file of unknown length, in one pass.

    The sample begins with every record. Whenever it is full, every second one is dropped, and from
    then on half as many are taken: with the step 4 it holds the records 0, 4, 8, ..
    """
    builder = TableBuilder(names)
    step = 1
    position = 0
    for batch in table.batches():
        # Every step-th record of the file, wherever its batches begin.
        first = -position % step
        rows = np.arange(first, batch.num_rows, step)
        position += batch.num_rows
        builder.records += len(rows)
        if not len(rows):
            continue
        for name in builder.readable():
            cells = batch.column(name)
            if step > 1:
                cells = cells.take(rows)
            builder.add(name, cells)
        while builder.records > most:
            builder.halve()
            step *= 2
    return builder.table()


class TableBuilder:
    """Collects the codes of every column, batch by batch, with their cells in a form.

    For each batch the caller adds its number of records to `records`, and calls `add` with the
    cells of every column of `readable()`; `halve`, `fold` or `narrow` may follow, and before a
    batch `look_for_empty` and `sampled`. Last, `table` gives the whole.

    Attributes
    ----------
    first_empty : dict of str to int
        The number of the first record with an empty cell in each column that has one, from 1, of
        the batches that were looked at.
    """

    def __init__(self, header: Sequence[str], form: CellForm = AS_THEY_ARE) -> None:
        self.records = 0
        self.first_empty: dict[str, int] = {}
        self._looked_at = 0
        self._form = form
        self._unreadable: list[str] = []
        # Of each column: the numbers of its texts, and the codes of its batches.
        self._numbers: dict[str, TextNumbers] = {}
        self._parts: dict[str, list[Codes]] = {}
        # Of columns whose texts were given up: the hashes of their batches.
        self._hashes: dict[str, list[Hashes]] = {}
        # Of rows that were folded: their weights, and the hashes beside them.
        self._folds = True
        self._weights: Integers | None = None
        self._folded_records = 0
        self._beside: dict[str, _HashSample] = {}
        # Of a sample of rows: the columns that decide, the hashes of the records in them, all
        # records, and what is known of columns of hashes in all of them.
        self._together: tuple[str, ...] = ()
        self._keys: list[Hashes] = []
        self._one_in = 1
        self._read = 0
        self._whole: dict[str, _HashSample] = {}
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
            self._hashes[name].append(
                hashed_cells(self._hasher, name, cells, self._form)
            )
            return
        try:
            column = self._form.cells(encode(cells, name))
        except InputError:
            self._unreadable.append(name)
            return
        texts = self._numbers[name]
        numbers = texts.of(column)
        self._parts[name].append(numbers.astype(code_type(len(texts))))

    def look_for_empty(self, batch: Batch | _FrameBatch) -> None:
        """Note the first record of a column whose cell is empty, before any record is left out."""
        for name in self.readable():
            if name in self.first_empty:
                continue
            try:
                column = self._form.cells(encode(batch.column(name), name))
            except InputError:
                # `add` sets it aside.
                continue
            # The code -1 of a missing cell leads to the last entry.
            empty = np.array([*(not text for text in column.texts), True])[column.codes]
            if empty.any():
                self.first_empty[name] = self._looked_at + int(np.argmax(empty)) + 1
        self._looked_at += batch.num_rows

    def hash_identifier(self, name: str) -> None:
        """Keep hashes in place of the texts of a column that names records so far."""
        texts = self._numbers[name]
        enough = max(MOST_TEXTS, IDENTIFIER_SHARE * self.records)
        if name in self._hashes or len(texts) < enough:
            return
        # Folded rows stand for several records, which have one hash each.
        if self._weights is not None:
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

    def sampled(self, batch: Batch | _FrameBatch) -> Integers | None:
        """The places of the records of a batch that are held; None for all."""
        self._read += batch.num_rows
        if self._one_in == 1:
            return None
        for name, sample in self._whole.items():
            cells = batch.column(name)
            hashes = hashed_cells(self._hasher, name, cells, self._form)
            sample.add(hashes, np.zeros(len(hashes), np.int64))
        keys = self._hasher.identifiers(
            [
                _identifying(name, batch.column(name), self._form)
                for name in self._together
            ]
        )
        held = _smallest(keys, self._one_in)
        self._keys.append(keys[held])
        return np.flatnonzero(held)

    def narrow(self, together: Sequence[str]) -> None:
        """Drop one of two rows while too many cells are held; `together` are the columns whose
        equal records belong together, if a sample is wanted.
        """
        names = self.readable()
        most = max(FOLDED_FROM, MOST_CELLS // max(len(names), 1))
        while together and self._weights is None and self.records > most:
            if self._one_in == 1 and not self._begin_sample(together):
                return
            self._one_in *= 2
            keys = np.concatenate(self._keys)
            held = _smallest(keys, self._one_in)
            self._keys = [keys[held]]
            self.records = len(self._keys[0])
            for name in names:
                self._narrow(name, held)

    def _begin_sample(self, together: Sequence[str]) -> bool:
        """Choose the columns that decide; whether there are any."""
        sizes = {
            name: len(self._numbers[name])
            for name in together
            if name in self._parts and name not in self._hashes
        }
        if not sizes:
            return False
        widest = max(sizes, key=lambda name: sizes[name])
        self._together = tuple(sizes)
        if sizes[widest] >= WIDE * self.records:
            self._together = (widest,)
        columns: list[Encoded] = []
        for name in self._together:
            codes = np.concatenate(self._parts[name]).astype(np.int64)
            columns.append(Encoded(codes, tuple(self._numbers[name].number_of)))
        self._keys = [self._hasher.identifiers(columns)]
        for name, parts in self._hashes.items():
            hashes = np.concatenate(parts)
            self._whole[name] = _HashSample()
            self._whole[name].add(hashes, np.zeros(len(hashes), np.int64))
        return True

    def _narrow(self, name: str, held: NDArray[np.bool_]) -> None:
        """Some records of a column, and their texts."""
        if name in self._hashes:
            self._hashes[name] = [np.concatenate(self._hashes[name])[held]]
            return
        texts = list(self._numbers[name].number_of)
        codes = np.concatenate(self._parts[name])[held]
        used = np.flatnonzero(np.bincount(codes, minlength=len(texts)))
        numbers = np.zeros(len(texts), np.int64)
        numbers[used] = np.arange(len(used))
        self._numbers[name] = TextNumbers()
        for k, place in enumerate(used.tolist()):
            self._numbers[name].number_of[texts[place]] = k
        self._parts[name] = [numbers[codes].astype(code_type(len(used)))]

    def different(self, column: CodedColumn) -> int:
        """About how many values a column of hashes has in all records."""
        whole = self._whole.get(column.name)
        if whole is None:
            return len(column.values) * column.one_in
        return len(np.unique(whole.hashes)) * whole.one_in

    def fold(self) -> None:
        """Fold equal rows into one, once there are enough new records beside those folded.

        Where the first ones are mostly different, nothing is ever folded.
        """
        rows = 0 if self._weights is None else len(self._weights)
        # As many as there are rows at least, so that no row is folded again and again.
        if self._folds and self.records - self._folded_records >= max(
            FOLDED_FROM, rows
        ):
            self._fold()

    def _fold(self) -> None:
        """Fold the new records into the rows before; rows keep the order of their appearance."""
        new = self.records - self._folded_records
        weights = np.ones(new, np.int64)
        before = 0
        if self._weights is not None:
            before = len(self._weights)
            weights = np.concatenate([self._weights, weights])
        columns: list[CodedColumn] = []
        for name in self.readable():
            if name not in self._hashes:
                codes = np.concatenate(self._parts[name])
                values = tuple(self._numbers[name].number_of)
                columns.append(CodedColumn(name, codes, values))
        codes = combined_codes(columns, len(weights))
        order = np.sort(first_places(codes))
        if self._weights is None and 2 * len(order) > new:
            # Weights would take more than they save.
            self._folds = False
            return
        numbers = np.empty_like(order)
        numbers[codes[order]] = np.arange(len(order))
        row_of = numbers[codes]
        self._weights = counted(row_of, weights, len(order))
        for column in columns:
            self._parts[column.name] = [column.codes[order]]
        # Rows that were there before come first, and so their numbers are the same.
        for name in self.readable():
            if name in self._hashes:
                sample = self._beside.setdefault(name, _HashSample())
                sample.add(np.concatenate(self._hashes[name]), row_of[before:])
                self._hashes[name] = []
        self._folded_records = self.records

    def table(self) -> CodedTable:
        """The records so far; values that none of them has any more are left out."""
        if self._weights is not None and self.records > self._folded_records:
            self._fold()
        columns: dict[str, CodedColumn] = {}
        for name in self.readable():
            if name in self._hashes:
                sample = self._beside.pop(name, None)
                if sample is None:
                    hashes = np.concatenate(self._hashes.pop(name))
                else:
                    hashes = sample.hashes
                empty = self._hasher.identifiers([Encoded(np.zeros(1, int), ("",))])
                column = _column_of_hashes(name, hashes, empty[0])
                if sample is not None:
                    column = replace(column, rows=sample.rows, one_in=sample.one_in)
                columns[name] = replace(column, of_sample=self._one_in > 1)
                continue
            # One after the other, so that no column is in memory twice beside the others.
            parts = self._parts.pop(name) or [np.zeros(0, np.uint8)]
            values = tuple(self._numbers[name].number_of)
            codes = np.concatenate(parts)
            column = CodedColumn(name, codes, values, self._weights)
            column = replace(_without_unused(column), of_sample=self._one_in > 1)
            columns[name] = column
        return CodedTable(
            self.records,
            columns,
            tuple(self._unreadable),
            self._weights,
            self._one_in,
            max(self._read, self.records),
        )


class _HashSample:
    """The hashes of a column beside folded rows, and the row of each.

    Attributes
    ----------
    hashes, rows : (n,) arrays
    one_in : int
        The records of one in so many values are held: those with the smallest hashes.
    """

    def __init__(self) -> None:
        self.hashes = np.zeros(0, np.uint64)
        self.rows = np.zeros(0, np.int32)
        self.one_in = 1

    def add(self, hashes: Hashes, rows: Integers) -> None:
        """Add the next records."""
        hashes, rows = self._held(hashes, rows.astype(np.int32))
        self.hashes = np.concatenate([self.hashes, hashes])
        self.rows = np.concatenate([self.rows, rows])
        while len(self.hashes) > MOST_HASHES and self.one_in < MOST_ONE_IN:
            self.one_in *= 2
            self.hashes, self.rows = self._held(self.hashes, self.rows)

    def _held(self, hashes: Hashes, rows: Any) -> tuple[Hashes, Any]:
        """Those that are in the sample."""
        small = _smallest(hashes, self.one_in)
        return hashes[small], rows[small]


def _smallest(hashes: Hashes, one_in: int) -> NDArray[np.bool_]:
    """Which hashes are among the smallest, of which there is one in so many."""
    return hashes <= np.uint64((1 << 64) // one_in - 1)


def first_places(codes: Integers) -> Integers:
    """The first place of every code; all below the largest must occur."""
    first = np.zeros(int(codes.max(initial=-1)) + 1, np.int64)
    # Of several writes to one place the last remains.
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    return first


def hashed_cells(
    hasher: RowHasher, name: str, cells: Any, form: CellForm = AS_THEY_ARE
) -> Hashes:
    """The hashes of the cells of a column; a missing one is the empty text."""
    return hasher.identifiers([_identifying(name, cells, form)])


def _identifying(name: str, cells: Any, form: CellForm) -> Any:
    """The cells of a column in a form, as a part of an identifier."""
    texts = simple_texts(cells) if form.changes_nothing else None
    if texts is None:
        column = form.cells(encode(cells, name))
        empty = len(column.texts)
        codes = np.where(column.codes < 0, empty, column.codes)
        return Encoded(codes, (*column.texts, ""))
    return without_nulls(texts)


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
    return replace(column, codes=codes, values=values)


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
        columns[name] = replace(column, codes=codes, values=tuple(number_of))
    return replace(table, columns=columns)


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
    if table.first_empty is not None:
        for name in names:
            if name in table.first_empty:
                raise _empty_cell(name, table.first_empty[name])
        return table
    complete = np.ones(table.records, dtype=bool)
    for name in names:
        column = table.columns[name]
        if "" not in column.values:
            continue
        empty = column.codes == column.values.index("")
        if missing == "refuse" and empty.any():
            raise _empty_cell(name, int(np.argmax(empty)) + 1)
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


def _empty_cell(name: str, number: int) -> InputError:
    """The error for a cell that must not be empty."""
    return InputError(
        f"the column {quoted(name)} has an empty cell, in record {number:,}; fill it, or say what "
        "it means (--missing)"
    )
