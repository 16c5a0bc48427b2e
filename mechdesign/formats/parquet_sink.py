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

*The notes* (metadata) of a file and of its columns are kept true. `metadata_of` makes the notes of
an output from those of its source:

- Arrow's own types are left out, because the sink writes them anew.
- Spark's schema is left out, because Spark would trust it more than the file.
- pandas' notes have an entry for each column, which goes, stays or is renewed with the column.
- Other notes may say anything of the records. Where not all columns are kept, a sink leaves them
  out (`column_notes_alone`, `plain_field`). Otherwise they stay, and the user gets their names
  (`free_notes`).

For example, a column of integers is replaced by one of labels:

    before  {"name": "age", "field_name": "age", "pandas_type": "int64", "numpy_type": "int64"}
    after   {"name": "age", "field_name": "age", "pandas_type": "unicode", "numpy_type": "object"}
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np

from mechdesign.formats.arrow_arrays import (
    KeptColumn,
    Output,
    WrittenColumn,
    check_outputs,
    field_of,
    released_dictionary,
    values_of,
    without_dictionaries,
)
from mechdesign.formats.compression import LeftOpen

# -------------------------------------------------------------------------------- notes

ARROW_SCHEMA = b"ARROW:schema"
"""The key of Arrow's own types in the metadata of a file."""

PANDAS = b"pandas"
"""The key of pandas' notes on the columns in the metadata of a schema."""

SPARK = b"org.apache.spark.sql.parquet.row.metadata"
"""The key of Spark's own schema. Spark trusts it more than the file, so it is left out."""

FIELD_ID = b"PARQUET:field_id"
"""The key of a number that pyarrow notes on every column of some files."""

_UNDERSTOOD = (ARROW_SCHEMA, PANDAS, SPARK, b"org.apache.spark.version")
"""Keys whose notes concern the columns as such, and are kept true."""

_TEXTS = ("string", "large_string", "string_view")
"""Arrow's names of the types of text."""

_ATTRIBUTES = "attributes"
"""The member of pandas' notes that holds ``DataFrame.attrs``, which the user wrote."""


def free_notes(schema: Any) -> list[str]:
    """Names of the notes in a file, and on its columns, that stay in it and may say anything."""
    metadata = schema.metadata or {}
    names: list[str] = []
    for key in metadata:
        if key not in _UNDERSTOOD:
            names.append(key.decode(errors="replace"))
    for column in schema:
        for key in column.metadata or {}:
            if key != FIELD_ID:
                names.append(f"{column.name}: {key.decode(errors='replace')}")
    try:
        pandas = json.loads(metadata.get(PANDAS, b"{}"))
    except ValueError:
        # Not of pandas: such notes are left out of every output.
        return names
    if isinstance(pandas, dict) and pandas.get(_ATTRIBUTES):
        names.append(f"pandas: {_ATTRIBUTES}")
    return names


def column_notes_alone(metadata: dict[bytes, bytes]) -> dict[bytes, bytes]:
    """The notes of an output that concern its columns as such, and nothing that a user wrote.

    The range of row numbers that pandas notes as an index is left out, too: it would disclose which
    part of a larger table this was, and how many records were left out.
    """
    notes = {key: text for key, text in metadata.items() if key in _UNDERSTOOD}
    if PANDAS in notes:
        pandas = json.loads(notes[PANDAS])
        pandas.pop(_ATTRIBUTES, None)
        # The name of a column, or the description of a range.
        indexes = pandas["index_columns"]
        pandas["index_columns"] = [index for index in indexes if isinstance(index, str)]
        notes[PANDAS] = json.dumps(pandas).encode()
    return notes


def plain_field(field: Any) -> Any:
    """A field without the notes on it, except for pyarrow's number."""
    notes = field.metadata or {}
    if FIELD_ID in notes:
        return field.with_metadata({FIELD_ID: notes[FIELD_ID]})
    return field.with_metadata(None)


def metadata_of(schema: Any, outputs: Sequence[Output]) -> dict[bytes, bytes]:
    """The metadata of the output, true of the columns that it has."""
    # The sink writes Arrow's types anew, and Spark would trust the old ones.
    notes = schema.metadata or {}
    metadata: dict[bytes, bytes] = {}
    for key, text in notes.items():
        if key not in (ARROW_SCHEMA, PANDAS, SPARK):
            metadata[key] = text
    # Notes of an unknown form are left out: they could be wrong of the output.
    with suppress(ValueError, AttributeError, TypeError, KeyError):
        metadata[PANDAS] = _pandas_notes(json.loads(notes[PANDAS]), schema, outputs)
    return metadata


def _pandas_notes(notes: Any, schema: Any, outputs: Sequence[Output]) -> bytes:
    """pandas' notes, with the written columns as text.

    Otherwise pandas would turn labels into integers, for example.
    """
    names = schema.names
    # What becomes of every column of the source. One in neither set was left out.
    kept: set[str] = set()
    replacing: dict[str, WrittenColumn] = {}
    added: list[WrittenColumn] = []
    for output in outputs:
        if isinstance(output, KeptColumn):
            kept.add(names[output.position])
        elif output.replaces is None:
            added.append(output)
        else:
            replacing[names[output.replaces]] = output

    columns: list[dict[str, Any]] = []
    for note in notes.get("columns", []):
        name = note.get("field_name")
        if name in replacing:
            source_kind = schema.field(name).type
            columns.append(_renewed_note(note, replacing[name], source_kind))
        elif name in kept or name not in names:
            # A note on no column describes an index without one.
            columns.append(note)
    for output in added:
        # Numbers and times need no note: their arrow type says all.
        if _holds_labels(output.kind):
            columns.append(_note(output))

    index_columns: list[Any] = []
    for index in notes.get("index_columns", []):
        # What is not the name of a column describes a range, which has no column.
        if not isinstance(index, str):
            index_columns.append(index)
        elif index in replacing:
            index_columns.append(replacing[index].name)
        elif index in kept or index not in names:
            index_columns.append(index)

    notes["columns"] = columns
    notes["index_columns"] = index_columns
    return json.dumps(notes).encode()


def _renewed_note(
    note: dict[str, Any], output: WrittenColumn, source_kind: Any
) -> dict[str, Any]:
    """The note on a column that `output` replaces."""
    # Of the same type, only the names may differ.
    same_kind = output.kind == source_kind
    if same_kind and not _holds_labels(output.kind):
        return note | {"name": output.name, "field_name": output.name}
    return note | _note(output)


def _holds_labels(kind: Any) -> bool:
    """Whether a written column of this type holds labels, and not numbers or times."""
    import pyarrow as pa

    return kind is None or str(kind) in _TEXTS or pa.types.is_dictionary(kind)


def _note(output: WrittenColumn) -> dict[str, Any]:
    """pandas' note on a written column."""
    import pyarrow as pa

    metadata = None
    if output.kind is None or str(output.kind) in _TEXTS:
        pandas_type = "unicode"
        numpy_type = "object"
    elif pa.types.is_dictionary(output.kind):
        pandas_type = "categorical"
        numpy_type = str(output.kind.index_type)
        metadata = {"ordered": False}
    else:
        numpy_type = np.dtype(output.kind.to_pandas_dtype()).name
        pandas_type = numpy_type
    return {
        "name": output.name,
        "field_name": output.name,
        "metadata": metadata,
        "pandas_type": pandas_type,
        "numpy_type": numpy_type,
    }


# --------------------------------------------------------------------------------- sink

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
