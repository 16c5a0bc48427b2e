"""Reading Parquet files as batches of records.

`ParquetSource` reads the metadata once, with the schema and the compression of every column.
`batches` then goes through the row groups one by one (`_group`). No batch spans two of them, so
memory is bounded by one, and a sink can end its row groups where the source does. A `ParquetBatch`
is an arrow batch of at most 65,536 rows and 2^20 cells. Text that repeats few values stays codes
into its dictionary, as it is stored. `where` names a record in a message by its row.

Every column that is read holds its dictionary, which in a very wide row group is too much memory.
Then, if all columns are wanted, `_group_in_slices` reads slices of them one after the other into
temporary files, and puts the batches together from these:

    200 columns of 1 MB or more: at 40 MB a slice, 6 slices of 33 or 34 columns
    batch 1 = batch 1 of slice 1, of slice 2, .., side by side
"""

from __future__ import annotations

import errno
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.arguments import repeated
from mechdesign.core.errors import FileError
from mechdesign.core.files import NamelessFile, reason
from mechdesign.core.wording import quoted
from mechdesign.formats.arrow_arrays import (
    Output,
    arrow_integers,
    as_codes,
    taken_records,
)
from mechdesign.formats.cells import encode
from mechdesign.formats.column_names import require_columns
from mechdesign.formats.compression import Compression, LeftOpen
from mechdesign.formats.inputs import RawInput
from mechdesign.formats.int96 import int96_unit
from mechdesign.formats.parquet_sink import ARROW_SCHEMA, ParquetLayout, ParquetSink

REPEATING = 4
"""Encoded bytes per value up to which a column of text is taken to repeat few values."""

ROWS_PER_BATCH = 1 << 16
"""Most rows of a batch: those of one draw."""

CELLS_PER_BATCH = 1 << 20
"""Most cells of a batch, so that batches of wide tables stay small."""

STORED_TEXTS = ("string", "large_string", "binary", "large_binary")
"""Types that are stored as text or bytes."""

BUFFER = 1 << 16
"""Bytes read ahead in every column. Whole columns of a row group would take much memory."""

DICTIONARY = 1 << 20
"""Most bytes of a column chunk that count for the memory of its reader. Most of them are the
dictionary of its distinct values."""

AT_ONCE = 40 << 20
"""Most such bytes of the columns that are read together. Their readers take three times as much."""

NO_ROOM = (
    "{} is so wide that its columns are read in turn, and wait in the folder of temporary "
    "files, which is full; name "
    "another one (TMPDIR)"
)

_CODEC_NAMES = {"UNCOMPRESSED": "NONE", "LZ4_RAW": "LZ4"}
"""Names of compressions that pyarrow reads and writes differently."""


def stored_columns(metadata: Any) -> tuple[dict[str, str], set[str]]:
    """The compression of every stored column by its path, and the columns that repeat few values.

    The latter are stored as codes into a small dictionary.
    """
    codecs: dict[str, str] = {}
    repeating: set[str] = set()
    # The column chunks of an empty row group have no encodings.
    all_groups = map(metadata.row_group, range(metadata.num_row_groups))
    groups = [group for group in all_groups if group.num_rows]
    if not groups:
        return codecs, repeating
    for i in range(metadata.num_columns):
        chunks = [group.column(i) for group in groups]
        path = chunks[0].path_in_schema
        codec = str(chunks[0].compression)
        codecs[path] = _CODEC_NAMES.get(codec, codec)
        values = sum(chunk.num_values for chunk in chunks)
        size = sum(chunk.total_uncompressed_size for chunk in chunks)
        coded = any("DICTIONARY" in encoding for encoding in chunks[0].encodings)
        if coded and values and size / values < REPEATING:
            repeating.add(path)
    return codecs, repeating


@contextmanager
def named_errors(name: str) -> Generator[None]:
    """Turn errors of pyarrow into `FileError` with the name of the file."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise _explained(error, name) from None


def _explained(error: Exception, name: str) -> FileError:
    """The error as one about the file."""
    # The operating system gives a number to its errors, arrow does not.
    if isinstance(error, OSError) and error.errno:
        # Nothing but waiting slices is written while a file is read, so they filled the disk.
        if error.errno == errno.ENOSPC:
            return FileError(name, NO_ROOM.format(name))
        why = reason(error)
    else:
        why = str(error).partition("\n")[0]
    return FileError(name, f"{name} cannot be read as Parquet: {why}")


class ParquetSource(AbstractContextManager["ParquetSource"]):
    """Reads a Parquet file of `size` rows.

    `statistics` is the program that wrote the file which became this one, if there is one.
    """

    kind: Literal["Parquet"] = "Parquet"
    cut = False
    """As of a CSV. Half of a Parquet file cannot be read at all."""
    hidden_note = None
    """As of a CSV. Nothing is quoted in Parquet."""

    def __init__(self, raw: RawInput, statistics: str | None = None) -> None:
        import pyarrow.parquet as pq

        self.name = raw.name
        self.statistics = statistics
        self._raw = raw
        stored = raw.path or raw.stream
        with named_errors(self.name):
            self._int96_unit = int96_unit(stored, self.name)
        with (
            named_errors(self.name),
            pq.ParquetFile(
                stored, coerce_int96_timestamp_unit=self._int96_unit
            ) as file,
        ):
            self.schema: Any = file.schema_arrow
            self.metadata: Any = file.metadata
        self.header: list[str] = list(self.schema.names)
        twice = repeated(self.header)
        if twice is not None:
            raise FileError(
                self.name,
                f"{self.name}: the column {quoted(twice)} is there more than once; give one of "
                "them another name",
            )
        self.codecs, self._repeating = stored_columns(self.metadata)
        self.records: int = self.metadata.num_rows
        self.size = self.records
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
        """All records in batches, none of which spans two row groups.

        Columns of text that repeat few values come as codes, unless they are in `read`.

        Parameters
        ----------
        encode : sequence of str
            Columns that are wanted as codes, where their type allows it.
        read : sequence of str
            Other columns that are wanted.
        whole : bool
            Whether all columns are wanted, or only those that are named.

        Raises
        ------
        FileChanged
            After the last batch, if the file changed since it was opened.
        """
        import pyarrow.parquet as pq

        require_columns((*encode, *read), self.header)
        names = self.header if whole else list(dict.fromkeys((*encode, *read)))
        # Wide batches have fewer rows, so that their cells stay within `CELLS_PER_BATCH`.
        rows = min(ROWS_PER_BATCH, max(1, CELLS_PER_BATCH // max(1, len(names))))
        self.position = 0
        with (
            named_errors(self.name),
            pq.ParquetFile(
                self._raw.path or self._raw.stream,
                pre_buffer=False,
                buffer_size=BUFFER,
                page_checksum_verification=True,
                read_dictionary=self._read_as_codes(encode, read),
                coerce_int96_timestamp_unit=self._int96_unit,
                metadata=self.metadata,
            ) as file,
        ):
            for group in range(file.num_row_groups):
                for batch in self._group(file, group, rows, None if whole else names):
                    yield ParquetBatch(batch, encode, self.position + batch.num_rows)
                    self.position += batch.num_rows
        self._raw.check()

    def _read_as_codes(self, encode: Sequence[str], read: Sequence[str]) -> list[str]:
        """Columns of text that the reader is asked to return as codes."""
        plain = set(read) - set(encode)
        # A dictionary keeps the order of the names, each once.
        candidates: dict[str, None] = {}
        for name in self.header:
            # A name with a dot would mean a field of another column.
            if name in self._repeating and name not in plain and "." not in name:
                candidates[name] = None
        candidates.update(dict.fromkeys(encode))
        kinds = {field.name: str(field.type) for field in self.schema}
        return [name for name in candidates if kinds[name] in STORED_TEXTS]

    def _group(
        self, file: Any, group: int, rows: int, names: Sequence[str] | None
    ) -> Iterator[Any]:
        """The record batches of a row group, of at most `rows` rows.

        Without `names` they have all columns.
        """
        slices = self._slices(group)
        # A name with a dot would mean fields of other columns as well.
        dotted = any("." in name for name in self.header)
        if slices > 1 and names is None and not dotted:
            yield from self._group_in_slices(file, group, rows, slices)
            return
        yield from file.iter_batches(
            columns=names, batch_size=rows, row_groups=[group], use_threads=False
        )

    def _slices(self, group: int) -> int:
        """How many slices of the columns of a row group have to be read in turn."""
        stored = self.metadata.row_group(group)
        # The reader of a column holds its dictionary and little else.
        size = 0
        for i in range(stored.num_columns):
            size += min(stored.column(i).total_uncompressed_size, DICTIONARY)
        return min(len(self.header), 1 + size // AT_ONCE)

    def _group_in_slices(
        self, file: Any, group: int, rows: int, slices: int
    ) -> Iterator[Any]:
        """A row group whose column readers would take too much memory together.

        Slices of the columns are read in turn and wait in temporary files.
        """
        import pyarrow as pa

        # The readers of one slice are gone before those of the next begin. Arrow streams on disk
        # give batches back one by one.
        schema = file.schema_arrow
        with ExitStack() as waiting:
            streams: list[Any] = []
            for places in np.array_split(np.arange(len(schema)), slices):
                path = str(waiting.enter_context(closing(NamelessFile())).path)
                part_schema = pa.schema([schema.field(int(i)) for i in places])
                with (
                    pa.OSFile(path, "wb") as out,
                    pa.ipc.new_stream(out, part_schema) as writer,
                ):
                    for batch in file.iter_batches(
                        columns=part_schema.names,
                        batch_size=rows,
                        row_groups=[group],
                        use_threads=False,
                    ):
                        writer.write_batch(batch)
                stream = waiting.enter_context(pa.OSFile(path))
                streams.append(pa.ipc.open_stream(stream))
            # The slices of a batch have the same number of rows.
            for parts in zip(*streams, strict=True):
                columns: list[Any] = []
                for part in parts:
                    columns.extend(part.columns)
                yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def where(self, record: int) -> str:
        """The file and the row of a record."""
        return f"{self.name}, row {record + 1}"

    def sink(
        self,
        target: BinaryIO,
        outputs: Sequence[Output],
        *,
        compression: Compression | None = None,
    ) -> ParquetSink:
        """A sink for a Parquet file with the same types, metadata, compression and row groups."""
        groups = range(self.metadata.num_row_groups)
        group_ends = accumulate(self.metadata.row_group(i).num_rows for i in groups)
        layout = ParquetLayout(
            schema=self.schema,
            codecs=self.codecs,
            group_ends=frozenset(group_ends),
            keeps_schema=ARROW_SCHEMA in (self.metadata.metadata or {}),
        )
        return ParquetSink(layout, target, outputs)

    def write_table(
        self,
        target: BinaryIO,
        columns: Mapping[str, Sequence[Any]],
        *,
        compression: Compression | None = None,
    ) -> None:
        """Write a new Parquet file."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table(dict(columns)), LeftOpen(target))

    def close(self) -> None:
        """Close the file if it was opened here."""
        self._raw.close()


@dataclass(frozen=True)
class ParquetBatch:
    """Some records of a Parquet file, in order.

    Attributes
    ----------
    stored : pyarrow.RecordBatch
        The records, with codes in place of text where that is faster.
    encode : sequence of str
        Columns that are wanted as codes.
    end : int
        Records of the file up to the last one of the batch.
    """

    stored: Any
    encode: Sequence[str]
    end: int

    @property
    def num_rows(self) -> int:
        """How many records."""
        return self.stored.num_rows

    def column(self, name: str, /) -> Any:
        """A column, as codes if `ParquetSource.batches` was asked for it and its type allows it."""
        import pyarrow as pa

        types = pa.types
        column = self.stored.column(self.stored.schema.get_field_index(name))
        kind = column.type
        if name not in self.encode:
            return column
        if types.is_dictionary(kind) or types.is_null(kind) or types.is_nested(kind):
            return column
        if isinstance(kind, pa.BaseExtensionType):
            return column
        return as_codes(column)

    def texts(self, position: int) -> Any:
        """The column at `position` as it is stored."""
        return self.stored.column(position)

    def some(self, step: int, /) -> ParquetBatch:
        """Every `step`-th record, for an inspection."""
        if step == 1:
            return self
        return self.select(np.arange(self.num_rows) % step == 0)

    def packed(self) -> Any:
        """The records as an arrow batch, for `ParquetSink.write_packed`."""
        return self.stored

    def select(self, rows: NDArray[np.bool_], /) -> ParquetBatch:
        """Some of the records."""
        places = arrow_integers(np.flatnonzero(rows))
        return replace(self, stored=taken_records(self.stored, places))

    def rows(self) -> list[list[str]]:
        """All cells as text, row by row; a null is an empty text."""
        columns: list[list[str]] = []
        for column, name in zip(
            self.stored.columns, self.stored.schema.names, strict=True
        ):
            encoded = encode(column, name)
            # The code -1 of a null leads to the empty text at the end.
            texts = np.array([*encoded.texts, ""], dtype=object)
            columns.append(texts[encoded.codes].tolist())
        return [list(row) for row in zip(*columns, strict=True)]
