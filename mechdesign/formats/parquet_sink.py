"""Writing Parquet files: a source with some columns exchanged.

A copy keeps the types, nulls, metadata, compression and row groups of its source. Encodings,
statistics and the order that rows were sorted in are left to the writer.

`ParquetSink.write` puts the kept and the written columns of a batch together, and lets them wait in
memory (`_put`). Where the source ends a row group, or the waiting batches are too large, they
become a row group of the output (`_flush`). The first columns decide the types, so the file is
begun with them (`_begun`).

Columns of repeated text travel as codes into a dictionary, which the writer puts into the file as
it is. The dictionary of a source has its values in the order of the source, and may have values of
records that are left out. So every row group gets dictionaries of its own
(`released_dictionary`): the values that its records have, in the order of these records.

    source      codes 2, 0, 2   into ("b", "a", "c")
    output      codes 0, 1, 0   into ("c", "b")
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from mechdesign.formats.arrow_arrays import released_dictionary, without_dictionaries
from mechdesign.formats.compression import LeftOpen
from mechdesign.formats.file_notes import (
    ARROW_SCHEMA,
    column_notes_alone,
    metadata_of,
    plain_field,
)
from mechdesign.formats.outputs import (
    KeptColumn,
    Output,
    WrittenColumn,
    check_outputs,
    field_of,
    values_of,
)

PENDING = 48 << 20
"""Most bytes of a row group in memory (48 MB). A larger row group is split."""

WRITTEN = 1 << 20
"""Bytes written at a time."""

DEFAULT_CODEC = "SNAPPY"
"""The usual compression of Parquet files, where the source has none."""


@dataclass(frozen=True)
class ParquetLayout:
    """How a Parquet file is written.

    Attributes
    ----------
    schema : pyarrow.Schema
        The columns of the source.
    codecs : mapping
        The compression of every stored column, by its path.
    group_ends : set of int
        Numbers of records of the source up to the end of each row group.
    keeps_schema : bool
        Whether the source stores its arrow types.
    """

    schema: Any
    codecs: Mapping[str, str] = field(default_factory=dict[str, str])
    group_ends: frozenset[int] = frozenset()
    keeps_schema: bool = False

    @classmethod
    def of_texts(cls, names: Sequence[str]) -> ParquetLayout:
        """The layout of a source in which every cell is text, such as a CSV."""
        import pyarrow as pa

        return cls(pa.schema([(name, pa.string()) for name in names]))


class ParquetSink(AbstractContextManager["ParquetSink"]):
    """Writes a Parquet file; a context manager that closes it.

    The row groups are those of the source. One that takes more than `PENDING` bytes in memory is
    split. After an exception nothing more reaches the target.
    """

    def __init__(
        self, layout: ParquetLayout, target: BinaryIO, outputs: Sequence[Output]
    ) -> None:
        check_outputs(outputs, len(layout.schema.names))
        self.records = 0
        self._layout = layout
        self._group_ends = layout.group_ends
        self._outputs = list(outputs)
        self._fields = [field_of(output, layout.schema) for output in outputs]
        self._metadata = metadata_of(layout.schema, outputs)
        self._target = LeftOpen(target)
        self._schema: Any = None
        """The types as they are written, in which text may be codes."""
        self._buffered: Any = None
        self._writer: Any = None
        """Opened with the first columns, which decide the types that are written."""
        self._pending: list[Any] = []
        self._pending_bytes = 0

    def __exit__(self, *raised: object) -> None:
        if raised[0] is not None:
            # Closing the writer below would otherwise end the half file as if it were whole.
            self._target.abandoned = True
            self._pending.clear()
        self.close()

    def merge_groups(self) -> None:
        """Give up the row groups of the source.

        Where records may be left out, the sizes of the groups would disclose how many of each.
        """
        self._group_ends = frozenset()

    def leave_out_notes(self) -> None:
        """Write no notes of the source but those on its columns as such."""
        self._metadata = column_notes_alone(self._metadata)
        self._fields = [plain_field(field) for field in self._fields]

    def write(self, batch: Any, written: Sequence[Any]) -> None:
        """Write a batch of the source with its written columns."""
        fresh = iter(written)
        columns: list[Any] = []
        for output in self._outputs:
            if isinstance(output, KeptColumn):
                columns.append(batch.texts(output.position))
            else:
                columns.append(values_of(next(fresh), output.kind))
        self._put(columns)
        # No batch of a source spans two row groups.
        if self._pending and self._group_ends and batch.end in self._group_ends:
            self._flush()

    def write_packed(self, part: Any) -> None:
        """Write a record batch of the output."""
        self._put(part.columns)

    def _put(self, columns: Sequence[Any]) -> None:
        """Add records to the row group that is pending."""
        import pyarrow as pa

        columns = [without_dictionaries(column) for column in columns]
        if self._writer is None:
            self._writer = self._begun([column.type for column in columns])
        part = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        self._pending.append(part)
        self._pending_bytes += part.nbytes
        self.records += part.num_rows
        if self._pending_bytes > PENDING:
            self._flush()

    def _flush(self) -> None:
        """Write the pending batches as a row group."""
        import pyarrow as pa

        table = pa.Table.from_batches(self._pending).unify_dictionaries()
        for place, column in enumerate(table.columns):
            if pa.types.is_dictionary(column.type):
                coded = released_dictionary(column.combine_chunks())
                table = table.set_column(place, table.schema.field(place), coded)
        self._pending.clear()
        self._pending_bytes = 0
        if table.num_rows:
            self._writer.write_table(table, row_group_size=table.num_rows)
        # Without this the memory of a row group stays with arrow's pool.
        del table
        pa.default_memory_pool().release_unused()

    def close(self) -> None:
        """Write what is pending and end the file; the target stays open."""
        if self._pending:
            self._flush()
        if self._writer is None:
            # No records: the file has the columns all the same.
            self._writer = self._begun([field.type for field in self._fields])
        self._writer.close()
        self._buffered.close()

    def _begun(self, kinds: Sequence[Any]) -> Any:
        """A writer of columns of these types, which readers see as the types of the fields."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        metadata = dict(self._metadata)
        if self._layout.keeps_schema:
            schema = pa.schema(self._fields, self._metadata)
            metadata[ARROW_SCHEMA] = base64.b64encode(schema.serialize().to_pybytes())
        stored_fields: list[Any] = []
        for seen, kind in zip(self._fields, kinds, strict=True):
            stored_fields.append(
                pa.field(seen.name, kind, seen.nullable, seen.metadata)
            )
        self._schema = pa.schema(stored_fields)
        # Without a buffer the writer, perhaps a thread of its own, waits for the interpreter at
        # every page.
        python_file = pa.PythonFile(self._target, "w")
        self._buffered = pa.BufferedOutputStream(python_file, WRITTEN)
        writer = pq.ParquetWriter(
            self._buffered,
            self._schema,
            compression=self._codecs(),
            # This would store the types of the codes. Without it the writer leaves all metadata
            # out, so they are added below.
            store_schema=False,
            use_compliant_nested_type=False,
        )
        writer.add_key_value_metadata(metadata)
        return writer

    def _codecs(self) -> Any:
        """The compression of every output: that of the column that it is or replaces."""
        codecs = self._layout.codecs
        first = next(iter(codecs.values()), DEFAULT_CODEC)
        # One name is the compression of all columns; a dictionary has one for each.
        if len(set(codecs.values())) < 2:
            return first
        chosen = dict(codecs)
        for output in self._outputs:
            if isinstance(output, WrittenColumn):
                replaced = self._layout.schema.names[output.replaces or 0]
                chosen[output.name] = codecs.get(replaced, first)
        return chosen
