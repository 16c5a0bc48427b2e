"""Released files and their originals: read side by side, and compared by their headers and types."""

# pyarrow and narwhals tell too little of their types for the strict mode.
# pyright: basic
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mechdesign.analysis.checking import Finding
from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike
from mechdesign.core.numbers import listed, quoted
from mechdesign.formats.cells import Encoded, encode, require_column
from mechdesign.formats.inputs import TextOptions
from mechdesign.formats.opening import Batch, Source, open_source
from mechdesign.sanitise.plan import lookalikes

Difference = tuple[int, str, str, str]
"""Position in the batch, column, cell of the original, cell of the release."""


class RecordSlice:
    """Some consecutive records of a batch; its columns are cut out of the file when they are asked for."""

    def __init__(self, batch: Batch, first: int, size: int, columns: dict[str, Any]) -> None:
        self._batch = batch
        self._first = first
        self._size = size
        self._columns = columns

    def __len__(self) -> int:
        return self._size

    def column(self, name: str) -> Any:
        """A column as a pyarrow array."""
        if name not in self._columns:
            self._columns[name] = self._batch.column(name)
        return self._columns[name].slice(self._first, self._size)

    def cells(self, names: Sequence[str]) -> list[Encoded]:
        """The cells of some columns as text."""
        return [encode(self.column(name), name) for name in names]

    def split(self, size: int) -> tuple[RecordSlice, RecordSlice | None]:
        """The first `size` records, and the others if there are any."""
        first = RecordSlice(self._batch, self._first, size, self._columns)
        if size == self._size:
            return first, None
        return first, RecordSlice(self._batch, self._first + size, self._size - size, self._columns)

    def first_difference(
        self, original: RecordSlice, names: Sequence[str], *, as_text: bool = False
    ) -> Difference | None:
        """The first cell of the columns `names` that differs from the original's, if any; a CSV holds only texts."""
        found: list[Difference] = []
        for name in names:
            was, now = original.column(name), self.column(name)
            at = _first_unequal_text(was, now, name) if as_text else _first_unequal(was, now)
            if at is not None:
                found.append((at, name, str(was[at].as_py()), str(now[at].as_py())))
        return min(found, default=None)


class TableFile:
    """A CSV or Parquet file that is read once; a context manager."""

    def __init__(self, path: PathLike, options: TextOptions | None) -> None:
        self._source: Source = open_source(path, options)
        self._stream: Iterator[Batch] = iter(())
        self._seen = 0
        self.name = self._source.name
        self.kind = self._source.kind
        self.header = self._source.header

    def __enter__(self) -> TableFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._source.close()

    def require(self, names: Sequence[str]) -> None:
        """Raise InputError, naming the file, unless the table has all these columns."""
        for name in names:
            try:
                require_column(name, self.header)
            except InputError as error:
                raise InputError(f"{self.name}: {error}") from None

    def batches(self, symbols: Sequence[str], read: Sequence[str] = ()) -> Iterator[RecordSlice]:
        """All records in order; once."""
        self._stream = self._source.batches(
            encode=symbols, read=[n for n in read if n not in symbols], whole=False
        )
        for batch in self._stream:
            self._seen += batch.num_rows
            if batch.num_rows:
                yield RecordSlice(batch, 0, batch.num_rows, {})

    def size(self) -> int:
        """Number of records of the whole file; reads on to its end."""
        return self._seen + sum(batch.num_rows for batch in self._stream)

    def place(self, record: int) -> str:
        """Where a record (from 0) stands, for a message; may read the file again."""
        return self._source.where(record)

    def type_of(self, name: str) -> str:
        """The type of a column, for comparison."""
        schema = getattr(self._source, "schema", None)
        return "text" if schema is None else str(schema.field(name).type)


def pairs(
    before: Iterator[RecordSlice], after: Iterator[RecordSlice]
) -> Iterator[tuple[RecordSlice, RecordSlice]]:
    """Records of both, equally many at a time, in order, until one of them ends."""
    old, new = next(before, None), next(after, None)
    while old is not None and new is not None:
        size = min(len(old), len(new))
        (one, old_rest), (other, new_rest) = old.split(size), new.split(size)
        yield one, other
        old = next(before, None) if old_rest is None else old_rest
        new = next(after, None) if new_rest is None else new_rest


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


def _first_unequal_text(was: Any, now: Any, name: str) -> int | None:
    """The same for a column of a CSV and one of a Parquet file: by their texts, 1.50 being 1.5."""
    old, new = (
        np.array([*column.texts, ""], object)[column.codes]
        for column in (encode(was, name), encode(now, name))
    )
    return next((int(at) for at in np.flatnonzero(old != new) if not _same_number(old[at], new[at])), None)


def _same_number(one: str, other: str) -> bool:
    try:
        return float(one) == float(other)
    except ValueError:
        return False


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Where things stand in the files."""

    useful: tuple[str, ...]
    released: tuple[str, ...]
    private: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    identity: tuple[str, ...] = ()


def private_columns(table: TableFile, columns: Columns) -> list[Finding]:
    """Columns that a release has no more."""
    allowed = {*columns.released, *columns.ignored}
    found = [
        f"the {what} column {quoted(name)}"
        for what, names in (("sensitive", columns.private), ("useful", columns.useful))
        for name in names
        if name in table.header and name not in allowed
    ]
    known = allowed | {*columns.private, *columns.useful}
    found += [
        f"the column {quoted(name)}, which looks like the sensitive column {quoted(like)},"
        for name, like in lookalikes(table.header, columns.private, known)
    ]
    return [Finding("private column", f"{table.name}: {what} is in the released file") for what in found]


def header_changes(before: TableFile, after: TableFile, columns: Columns) -> list[Finding]:
    """Columns that have gone, come or moved."""
    special = {*columns.useful, *columns.released, *columns.private, *columns.ignored}
    old, new = ([name for name in table.header if name not in special] for table in (before, after))
    gone, come = ([n for n in one if n not in other] for one, other in ((old, new), (new, old)))
    wrong: list[str] = []
    if gone:
        wrong.append(f"the column {listed(gone)} of the original is not there")
    if come:
        wrong.append(f"the column {listed(come)} is not in the original")
    if not wrong and old != new:
        wrong.append("the columns are in another order than in the original")
    return [Finding("columns", f"{after.name}: {what}") for what in wrong]


def compared(before: TableFile, after: TableFile, columns: Columns) -> list[str]:
    """Columns to compare: in both files, and no released or ignored ones."""
    left_out = {*columns.released, *columns.ignored}
    return [name for name in after.header if name in before.header and name not in left_out]


def type_changes(before: TableFile, after: TableFile, names: Sequence[str]) -> list[Finding]:
    """Columns that have another type than in the original; a CSV has none to compare."""
    if before.kind != after.kind:
        return []
    types = [(name, before.type_of(name), after.type_of(name)) for name in names]
    wrong = [
        f"{quoted(n)} has the type {now}, but {was} in the original" for n, was, now in types if was != now
    ]
    return [Finding("columns", f"{after.name}: the column {what}") for what in wrong]


def names_in_files(names: Sequence[str], mapping: Mapping[str, str]) -> tuple[str, ...]:
    """`names` as the files call them."""
    return tuple(mapping.get(name, name) for name in names)
