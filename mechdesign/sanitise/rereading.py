"""Reading two table files side by side, whatever the sizes of their batches."""

# pyarrow and narwhals tell too little of their types for the strict mode.
# pyright: basic
from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np

from mechdesign.cells import Encoded, encode
from mechdesign.csv_text import CsvText
from mechdesign.errors import InputError
from mechdesign.files import PathLike, is_parquet
from mechdesign.parquet import ParquetText

Difference = tuple[int, str, str, str]
"""Position in the batch, column, cell of the original, cell of the release."""


class Batch(Protocol):
    """Some consecutive records of a table."""

    def __len__(self) -> int: ...

    def cells(self, names: Sequence[str]) -> list[Encoded]:
        """The cells of some columns as text."""
        ...

    def part(self, first: int, last: int) -> Any:
        """The records from `first` to before `last`."""
        ...

    def first_difference(self, original: Any, names: Sequence[str]) -> Difference | None:
        """The first cell of the columns `names` that differs from the original's, if any."""
        ...


class Table(Protocol):
    """A table file that is read once, from its first record to its last."""

    path: str
    kind: str
    header: list[str]

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[Batch]:
        """All records in order; to be called once. Batches may have only the columns that are named."""
        ...

    def place(self, record: int) -> str:
        """Where a record (from 0) stands, for a message."""
        ...

    def type_of(self, name: str) -> str:
        """The type of a column, for comparison."""
        ...

    def size(self) -> int:
        """Number of records of the whole file; reads on to its end."""
        ...


@contextmanager
def open_table(path: PathLike) -> Generator[Table]:
    """Open a CSV or a Parquet file.

    Raises
    ------
    InputError
        If it cannot be read, or is neither.
    """
    if is_parquet(path):
        with ParquetText(os.fspath(path)) as parquet:
            yield _ParquetTable(parquet)
    else:
        with CsvText(path) as text:
            yield _CsvTable(text)


def pairs(before: Table, after: Table) -> Iterator[tuple[Any, Any]]:
    """Batches of equal length from both, in order, until one of them ends."""
    streams = before.batches(), after.batches()
    heads: list[Any] = [next(stream, None) for stream in streams]
    while heads[0] is not None and heads[1] is not None:
        size = min(map(len, heads))
        yield heads[0].part(0, size), heads[1].part(0, size)
        for k, stream in enumerate(streams):
            heads[k] = heads[k].part(size, len(heads[k])) if len(heads[k]) > size else next(stream, None)


class _CsvBatch:
    def __init__(self, rows: list[list[str]], place: dict[str, int]) -> None:
        self._rows = rows
        self._place = place

    def __len__(self) -> int:
        return len(self._rows)

    def cells(self, names: Sequence[str]) -> list[Encoded]:
        return [_encoded([row[self._place[name]] for row in self._rows]) for name in names]

    def part(self, first: int, last: int) -> _CsvBatch:
        return _CsvBatch(self._rows[first:last], self._place)

    def column(self, name: str) -> list[str]:
        at = self._place[name]
        return [row[at] for row in self._rows]

    def first_difference(self, original: _CsvBatch, names: Sequence[str]) -> Difference | None:
        found: list[Difference] = []
        for name in names:
            was, now = original.column(name), self.column(name)
            if was != now:
                at = next(i for i, (a, b) in enumerate(zip(was, now, strict=True)) if a != b)
                found.append((at, name, was[at], now[at]))
        return min(found, default=None)


def _encoded(texts: list[str]) -> Encoded:
    index: dict[str, int] = {}
    codes = np.fromiter((index.setdefault(text, len(index)) for text in texts), np.int64, len(texts))
    return Encoded(codes, tuple(index))


class _CsvTable:
    kind = "CSV"

    def __init__(self, text: CsvText) -> None:
        self._text = text
        self.path = text.path
        self.header = text.header
        self._place = {name: i for i, name in enumerate(text.header)}
        self._stream = text.batches()
        self._seen = 0

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[Batch]:
        for rows in self._stream:
            self._seen += len(rows)
            yield _CsvBatch(rows, self._place)

    def place(self, record: int) -> str:
        return f"{self.path}, line {self._text.line_of(record)}"

    def type_of(self, name: str) -> str:
        return "text"

    def size(self) -> int:
        return self._seen + sum(map(len, self._stream))


class _ParquetBatch:
    def __init__(self, batch: Any) -> None:
        self._batch = batch

    def __len__(self) -> int:
        return self._batch.num_rows

    def cells(self, names: Sequence[str]) -> list[Encoded]:
        return [encode(self._batch.column(name), name) for name in names]

    def part(self, first: int, last: int) -> _ParquetBatch:
        return _ParquetBatch(self._batch.slice(first, last - first))

    def column(self, name: str) -> Any:
        return self._batch.column(name)

    def first_difference(self, original: _ParquetBatch, names: Sequence[str]) -> Difference | None:
        found: list[Difference] = []
        for name in names:
            was, now = original.column(name), self.column(name)
            at = _first_unequal(was, now)
            if at is not None:
                found.append((at, name, str(was[at].as_py()), str(now[at].as_py())))
        return min(found, default=None)


def _first_unequal(was: Any, now: Any) -> int | None:
    """Position of the first cell that differs (NaN equals NaN), if any."""
    import pyarrow as pa

    was, now = (
        column.dictionary_decode() if pa.types.is_dictionary(column.type) else column for column in (was, now)
    )
    if was.type == now.type and was.equals(now):
        return None
    if was.type == now.type and pa.types.is_floating(was.type):
        a, b = (column.to_numpy(zero_copy_only=False) for column in (was, now))
        there = [column.is_valid().to_numpy(zero_copy_only=False) for column in (was, now)]
        same = (there[0] == there[1]) & (~there[0] | (a == b) | (np.isnan(a) & np.isnan(b)))
        return None if same.all() else int(np.argmin(same))
    cells = zip(was.to_pylist(), now.to_pylist(), strict=True)
    return next((i for i, (a, b) in enumerate(cells) if a != b and repr(a) != repr(b)), None)


class _ParquetTable:
    kind = "Parquet"

    def __init__(self, parquet: ParquetText) -> None:
        self._parquet = parquet
        self.path = parquet.path
        self.header = parquet.header
        self._stream: Iterator[Any] = iter(())
        self._seen = 0

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[Batch]:
        self._stream = self._parquet.batches(columns)
        for batch in self._stream:
            self._seen += batch.num_rows
            yield _ParquetBatch(batch)

    def place(self, record: int) -> str:
        return f"{self.path}, row {record + 1}"

    def type_of(self, name: str) -> str:
        return str(self._parquet.schema.field(name).type)

    def size(self) -> int:
        return self._seen + sum(batch.num_rows for batch in self._stream)


def same_kind(before: Table, after: Table) -> None:
    """Refuse to compare a CSV with a Parquet file.

    Raises
    ------
    InputError
        Naming both.
    """
    if before.kind != after.kind:
        raise InputError(
            f"{before.path} is {before.kind} and {after.path} is {after.kind}; a release has the kind of its original"
        )
