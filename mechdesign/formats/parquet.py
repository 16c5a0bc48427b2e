"""Parquet files: read as batches of records, and written with some columns exchanged.

A copy keeps the types of the source, its nulls, metadata, compression and row groups. What pandas has noted
of its columns is kept true (`outputs`). Encodings, statistics and the order that rows were
sorted in are left to the writer.
"""

# pyarrow tells too little of its types for the strict mode.
# pyright: basic
from __future__ import annotations

import base64
import errno
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.files import NamelessFile, reason
from mechdesign.core.numbers import quoted
from mechdesign.formats.cells import arrow_integers, encode, require_column
from mechdesign.formats.compression import Compression, LeftOpen
from mechdesign.formats.inputs import RawInput
from mechdesign.formats.outputs import (
    ARROW_SCHEMA,
    KeptColumn,
    Output,
    WrittenColumn,
    check_outputs,
    field_of,
    metadata_of,
    values_of,
)

PENDING = 48 << 20
"""Bytes of a row group that are held until they are written (48 MB); a larger one is split."""

WRITTEN = 1 << 20
"""Bytes that are written at a time."""


class ParquetSink(AbstractContextManager["ParquetSink"]):
    """Writes a Parquet file as its source is stored; a context manager that closes it if all went well.

    Row groups are those of the source, less the records left out, unless one takes more than `PENDING` in memory.
    """

    def __init__(
        self, source: Any, target: BinaryIO, outputs: Sequence[Output]
    ) -> None:
        import pyarrow as pa

        check_outputs(outputs, len(source.header))
        self.records = self._pending_bytes = 0
        self._outputs = list(outputs)
        self._source = source
        # Of a CSV all is text.
        schema = getattr(source, "schema", None) or pa.schema(
            [(name, pa.string()) for name in source.header]
        )
        self._fields = [field_of(output, schema) for output in outputs]
        self._metadata = metadata_of(schema, outputs)
        self._target = LeftOpen(target)
        self._writer: Any = None
        self._schema: Any = None
        self._stored = getattr(source, "metadata", None)
        groups = range(0 if self._stored is None else self._stored.num_row_groups)
        self._ends = set(
            accumulate(source.metadata.row_group(i).num_rows for i in groups)
        )
        self._pending: list[Any] = []

    def __exit__(self, *raised: object) -> None:
        if raised[0] is not None:
            self._target.abandoned = True
            self._pending.clear()
        self.close()

    def write(self, batch: Any, written: Sequence[Any]) -> None:
        """Write a batch of the source, with the columns that were written anew."""
        fresh = iter(written)
        self._put([
            batch.texts(output.position)
            if isinstance(output, KeptColumn)
            else values_of(next(fresh), output.kind)
            for output in self._outputs
        ])  # fmt: skip
        if self._pending and self._ends and batch.end in self._ends:
            self._flush()

    def write_packed(self, part: Any) -> None:
        """Write a record batch of the output."""
        self._put(part.columns)

    def _put(self, columns: Sequence[Any]) -> None:
        import pyarrow as pa

        if self._writer is None:
            self._writer = self._begun([column.type for column in columns])
        part = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        self._pending.append(part)
        self._pending_bytes += part.nbytes
        self.records += part.num_rows
        if self._pending_bytes > PENDING:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa

        table = pa.Table.from_batches(self._pending).unify_dictionaries()
        self._pending.clear()
        self._pending_bytes = 0
        if table.num_rows:
            self._writer.write_table(table, row_group_size=table.num_rows)
        del table
        pa.default_memory_pool().release_unused()

    def close(self) -> None:
        """Write what is left and the end of the file; the target stays open."""
        if self._pending:
            self._flush()
        if self._writer is None:
            self._writer = self._begun([field.type for field in self._fields])
        self._writer.close()
        self._buffered.close()

    def _begun(self, kinds: Sequence[Any]) -> Any:
        """Begin the file with columns of these types, which are read back as those of the fields."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        true = pa.schema(self._fields, self._metadata)
        metadata = dict(self._metadata)
        if self._stored is not None and ARROW_SCHEMA in (self._stored.metadata or {}):
            metadata[ARROW_SCHEMA] = base64.b64encode(true.serialize().to_pybytes())
        fields = [
            pa.field(field.name, kind, field.nullable, field.metadata)
            for field, kind in zip(self._fields, kinds, strict=True)
        ]
        self._schema = pa.schema(fields)
        how: dict[str, Any] = {
            "store_schema": False,
            "use_compliant_nested_type": False,
        }
        # Without a buffer the writer, a thread of its own maybe, waits for the interpreter at every page.
        self._buffered = pa.BufferedOutputStream(
            pa.PythonFile(self._target, "w"), WRITTEN
        )
        writer = pq.ParquetWriter(
            self._buffered, self._schema, compression=self._codecs(), **how
        )
        # Without `store_schema`, which would store the types of the codes, the writer leaves all metadata out.
        writer.add_key_value_metadata(metadata)
        return writer

    def _codecs(self) -> Any:
        """The compression of every column of the file: that of the column which it is or replaces."""
        codecs, header = getattr(self._source, "codecs", {}), self._source.header
        first = next(iter(codecs.values()), DEFAULT_CODEC)
        if len(set(codecs.values())) < 2:
            return first
        written = [
            output for output in self._outputs if isinstance(output, WrittenColumn)
        ]
        return codecs | {
            o.name: codecs.get(header[o.replaces or 0], first) for o in written
        }


DEFAULT_CODEC = "SNAPPY"
"""What Parquet files mostly have, where a file does not tell."""

REPEATING = 4
"""Bytes a value, encoded, up to which a column of text is taken to repeat few values."""


def stored_columns(metadata: Any) -> tuple[dict[str, str], set[str]]:
    """The compression of every column that is stored, by its path, and those that are codes and repeat few values."""
    groups = [
        group
        for group in map(metadata.row_group, range(metadata.num_row_groups))
        if group.num_rows
    ]
    codecs: dict[str, str] = {}
    repeating: set[str] = set()
    for i in range(metadata.num_columns if groups else 0):
        chunks = [group.column(i) for group in groups]
        path, codec = chunks[0].path_in_schema, str(chunks[0].compression)
        codecs[path] = {"UNCOMPRESSED": "NONE", "LZ4_RAW": "LZ4"}.get(codec, codec)
        values = sum(chunk.num_values for chunk in chunks)
        size = sum(chunk.total_uncompressed_size for chunk in chunks)
        if (
            any("DICTIONARY" in each for each in chunks[0].encodings)
            and values
            and size / values < REPEATING
        ):
            repeating.add(path)
    return codecs, repeating


ROWS_PER_BATCH = 1 << 16
"""Most rows of a batch: those of one draw."""

CELLS_PER_BATCH = 1 << 20
"""Most cells of a batch."""

STORED_TEXTS = ("string", "large_string", "binary", "large_binary")
"""Types of text and bytes, stored as such."""

BUFFER = 1 << 16
"""Bytes read ahead in every column, where whole columns of a row group would take much memory."""

DICTIONARY = 1 << 20
"""Bytes of a column of a row group, at most, that count for what its reader takes, mostly for different values."""

AT_ONCE = 40 << 20
"""Such bytes of columns that are read together; their readers take three times as much."""

NO_ROOM = (
    "{} is so wide that its columns are read in turn, and wait in the folder of temporary files, which is full; name "
    "another one (TMPDIR)"
)


@contextmanager
def named_errors(path: str) -> Generator[None]:
    """Errors of pyarrow as InputError with the name of the file."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if (
            getattr(error, "errno", None) == errno.ENOSPC
        ):  # nothing else is written here
            raise InputError(NO_ROOM.format(path)) from None
        text = (
            reason(error)
            if isinstance(error, OSError) and error.errno
            else str(error).partition("\n")[0]
        )
        raise InputError(f"{path} cannot be read as Parquet: {text}") from None


class ParquetSource(AbstractContextManager["ParquetSource"]):
    """Reads a Parquet file, of `size` rows."""

    kind: Literal["Parquet"] = "Parquet"
    cut = False
    """As of a CSV; half of such a file cannot be read."""

    def __init__(self, raw: RawInput) -> None:
        import pyarrow.parquet as pq

        self.name = raw.name
        self._raw = raw
        with named_errors(self.name), pq.ParquetFile(raw.path or raw.stream) as file:
            self.schema: Any = file.schema_arrow
            self.metadata: Any = file.metadata
        self.header: list[str] = list(self.schema.names)
        twice = [name for name, times in Counter(self.header).items() if times > 1]
        if twice:
            raise InputError(
                f"{self.name}: the column {quoted(twice[0])} is there more than once"
            )
        self.codecs, self._repeating = stored_columns(self.metadata)
        self.records = self.size = self.metadata.num_rows
        self.position = 0

    def __exit__(self, *raised: object) -> None:
        self.close()

    def batches(
        self,
        *,
        encode: Sequence[str] = (),
        read: Sequence[str] = (),
        whole: bool = True,
    ) -> Iterator[ParquetBatch]:
        """All records, some at a time, none across two row groups.

        Columns of text whose values repeat come as codes; so do those to `encode`, where their type allows it.
        """
        import pyarrow.parquet as pq

        for name in (*encode, *read):
            require_column(name, self.header)
        names = self.header if whole else list(dict.fromkeys((*encode, *read)))
        plain = set(read) - set(encode)
        repeating = [
            name
            for name in self.header
            if name in self._repeating - plain and "." not in name
        ]
        kinds = {field.name: str(field.type) for field in self.schema}
        coded = [
            name
            for name in dict.fromkeys((*repeating, *encode))
            if kinds[name] in STORED_TEXTS
        ]
        rows = min(ROWS_PER_BATCH, max(1, CELLS_PER_BATCH // max(1, len(names))))
        self.position = 0
        how: dict[str, Any] = {
            "pre_buffer": False,
            "buffer_size": BUFFER,
            "page_checksum_verification": True,
        }
        how |= {"read_dictionary": coded, "metadata": self.metadata}
        with (
            named_errors(self.name),
            pq.ParquetFile(self._raw.path or self._raw.stream, **how) as file,
        ):
            for group in range(file.num_row_groups):
                for batch in self._group(file, group, rows, None if whole else names):
                    yield ParquetBatch(batch, encode, self.position + batch.num_rows)
                    self.position += batch.num_rows

    def _group(
        self, file: Any, group: int, rows: int, names: Sequence[str] | None
    ) -> Iterator[Any]:
        """A row group; columns whose readers take too much memory together are read in turn, and wait in files."""
        import pyarrow as pa

        stored = self.metadata.row_group(group)
        chunks = [
            stored.column(i).total_uncompressed_size for i in range(stored.num_columns)
        ]
        slices = min(
            len(self.header),
            1 + sum(min(size, DICTIONARY) for size in chunks) // AT_ONCE,
        )
        how: dict[str, Any] = {
            "batch_size": rows,
            "row_groups": [group],
            "use_threads": False,
        }
        # Names with dots would mean fields of others, too.
        if slices <= 1 or names is not None or any("." in name for name in self.header):
            yield from file.iter_batches(columns=names, **how)
            return
        schema = file.schema_arrow
        with ExitStack() as waiting:
            streams: list[Any] = []
            for at in np.array_split(np.arange(len(schema)), slices):
                path = str(waiting.enter_context(closing(NamelessFile())).path)
                some = pa.schema([schema.field(int(i)) for i in at])
                with (
                    pa.OSFile(path, "wb") as out,
                    pa.ipc.new_stream(out, some) as writer,
                ):
                    for batch in file.iter_batches(columns=some.names, **how):
                        writer.write_batch(batch)
                streams.append(
                    pa.ipc.open_stream(waiting.enter_context(pa.OSFile(path)))
                )
            for parts in zip(*streams, strict=True):  # of so many rows each
                columns = [column for part in parts for column in part.columns]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def where(self, record: int) -> str:
        """The file and the row."""
        return f"{self.name}, row {record + 1}"

    def sink(
        self,
        target: BinaryIO,
        outputs: Sequence[Output],
        *,
        compression: Compression | None = None,
    ) -> ParquetSink:
        """A Parquet file with the same types, metadata, compression and row groups."""
        return ParquetSink(self, target, outputs)

    def write_table(
        self,
        target: BinaryIO,
        columns: Mapping[str, Sequence[Any]],
        *,
        compression: Compression | None = None,
    ) -> None:
        """A new Parquet file."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table(dict(columns)), LeftOpen(target))

    def close(self) -> None:
        """Close the file, if it was opened here."""
        self._raw.close()


@dataclass(frozen=True)
class ParquetBatch:
    """Some records of a Parquet file, in order."""

    stored: Any
    """The record batch, with codes in place of text where that is faster."""
    encode: Sequence[str]
    end: int
    """How many records of the file there are up to its last one."""

    @property
    def num_rows(self) -> int:
        """How many records."""
        return self.stored.num_rows

    def column(self, name: str, /) -> Any:
        """A column, as codes if `Source.batches` was asked to encode it and its type allows it."""
        import pyarrow as pa

        column = self.stored.column(self.stored.schema.get_field_index(name))
        kind = column.type
        as_it_is = (
            pa.types.is_dictionary(kind)
            or pa.types.is_null(kind)
            or pa.types.is_nested(kind)
        )
        if (
            name not in self.encode
            or as_it_is
            or isinstance(kind, pa.BaseExtensionType)
        ):
            return column
        return column.dictionary_encode()

    def texts(self, position: int) -> Any:
        """The column at `position`, as it is stored."""
        return self.stored.column(position)

    def some(self, step: int, /) -> ParquetBatch:
        """Every so manieth record."""
        return self if step == 1 else self.select(np.arange(self.num_rows) % step == 0)

    def packed(self) -> Any:
        """The records as an arrow batch, for `ParquetSink.write_packed`."""
        return self.stored

    def select(self, rows: NDArray[np.bool_], /) -> ParquetBatch:
        """Some of the records."""
        return replace(
            self, stored=self.stored.take(arrow_integers(np.flatnonzero(rows)))
        )

    def rows(self) -> list[list[str]]:
        """All cells as text, row by row."""
        columns = map(encode, self.stored.columns, self.stored.schema.names)
        cells = [
            np.array([*column.texts, ""], dtype=object)[column.codes].tolist()
            for column in columns
        ]
        return [list(row) for row in zip(*cells, strict=True)]
