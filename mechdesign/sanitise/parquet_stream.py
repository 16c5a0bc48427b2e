"""A Parquet file as a source of batches."""

# pyarrow tells too little of its types for the strict mode.
# pyright: basic
from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, Literal

from mechdesign.cells import require_column
from mechdesign.errors import InputError
from mechdesign.exact import quoted
from mechdesign.parquet import named_errors
from mechdesign.sanitise.compression import Compression
from mechdesign.sanitise.inputs import RawInput
from mechdesign.sanitise.parquet_layout import Layout
from mechdesign.sanitise.parquet_sink import ParquetSink
from mechdesign.sanitise.streams import Output

ROWS_PER_BATCH = 1 << 16
"""Most rows of a batch: those of one draw."""

CELLS_PER_BATCH = 1 << 20
"""Most cells of a batch."""

BUFFER = 1 << 16
"""Bytes read ahead in every column, where whole columns of a row group would take much memory."""


class ParquetSource:
    """Reads a Parquet file; see `streams.Source`.

    Raises
    ------
    InputError
        If it cannot be read, or two columns have the same name.
    """

    kind: Literal["Parquet"] = "Parquet"
    unit: Literal["rows"] = "rows"

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
            raise InputError(f"{self.name}: the column {quoted(twice[0])} is there more than once")
        self.layout = Layout.of(self.metadata, self.schema)
        self.records: int = self.metadata.num_rows
        self.size = self.records
        self.position = 0

    def __enter__(self) -> ParquetSource:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def batches(self, *, encode: Sequence[str] = (), read: Sequence[str] = ()) -> Iterator[ParquetBatch]:
        """All records, some at a time, none across two row groups; once.

        Columns of text whose values repeat come as codes; so do those to `encode`, where their type allows it.
        """
        import pyarrow.parquet as pq

        for name in (*encode, *read):
            require_column(name, self.header)
        plain = set(read) - set(encode)
        coded = [name for name in self.layout.repeating(self.schema) if name not in plain]
        coded += [name for name in encode if self.layout.is_text(self.schema, name) and name not in coded]
        rows = min(ROWS_PER_BATCH, max(1, CELLS_PER_BATCH // max(1, len(self.header))))
        with (
            named_errors(self.name),
            pq.ParquetFile(
                self._raw.path or self._raw.stream,
                read_dictionary=coded,
                metadata=self.metadata,
                pre_buffer=False,
                buffer_size=BUFFER,
            ) as file,
        ):
            for group in range(file.num_row_groups):
                batches = file.iter_batches(rows, row_groups=[group], use_threads=False)
                for batch in batches:
                    yield ParquetBatch(batch, frozenset(encode))
                    self.position += batch.num_rows

    def where(self, record: int) -> str:
        """The file and the row."""
        return f"{self.name}, row {record + 1}"

    def sink(
        self, target: BinaryIO, outputs: Sequence[Output], *, compression: Compression | None = None
    ) -> ParquetSink:
        """A Parquet file with the same types, metadata, compression and row groups."""
        if compression:
            raise InputError(
                f"{self.name} is a Parquet file and so is the output: its columns are compressed as they are there; "
                f"it cannot be packed with {compression} on top"
            )
        return ParquetSink(self, target, outputs)

    def close(self) -> None:
        """Close the file, if it was opened here."""
        self._raw.close()


class ParquetBatch:
    """Some records of a Parquet file; see `streams.Batch`."""

    def __init__(self, stored: Any, encode: frozenset[str]) -> None:
        self.stored = stored
        """The record batch, with codes in place of text where that is faster."""
        self._encode = encode

    @property
    def num_rows(self) -> int:
        """How many records."""
        return self.stored.num_rows

    def column(self, name: str, /) -> Any:
        """A column, as codes if `Source.batches` was asked to encode it and its type allows it."""
        import pyarrow as pa

        column = self.stored.column(self.stored.schema.get_field_index(name))
        kind = column.type
        as_it_is = pa.types.is_dictionary(kind) or pa.types.is_null(kind) or pa.types.is_nested(kind)
        if name not in self._encode or as_it_is or isinstance(kind, pa.BaseExtensionType):
            return column
        return column.dictionary_encode()
