"""Writing a Parquet file: the columns of the source, some of them exchanged, stored as they are there."""

# pyarrow tells too little of its types for the strict mode.
# pyright: basic
from __future__ import annotations

import base64
import io
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

from mechdesign.sanitise.compression import LeftOpen
from mechdesign.sanitise.parquet_layout import ARROW_SCHEMA, Layout, Leaf
from mechdesign.sanitise.parquet_notes import SPARK, spark_notes
from mechdesign.sanitise.streams import Kept, Output, Written, check_outputs

if TYPE_CHECKING:
    from mechdesign.sanitise.parquet_stream import ParquetBatch, ParquetSource

PANDAS = b"pandas"
"""Where pandas keeps what it wants to know of the columns, in the metadata of the schema."""

PENDING = 48 << 20
"""Bytes of a row group that are held until they are written (48 MB); a larger one is split."""


class ParquetSink:
    """Writes a Parquet file as its source is stored; see `streams.Sink`.

    Row groups are those of the source, unless one takes more than `PENDING` in memory.
    """

    def __init__(self, source: ParquetSource, target: BinaryIO, outputs: Sequence[Output]) -> None:
        check_outputs(outputs, len(source.header))
        self.records = 0
        self._outputs = list(outputs)
        self._layout = source.layout
        self._fields = [_field(output, source.schema) for output in outputs]
        self._metadata = _metadata(source.schema, outputs)
        self._target = LeftOpen(target)
        self._writer: Any = None
        self._schema: Any = None
        self._ends = set[int]()
        end = 0
        for rows in source.layout.groups:
            end += rows
            self._ends.add(end)
        self._pending: list[Any] = []
        self._pending_bytes = 0

    def __enter__(self) -> ParquetSink:
        return self

    def __exit__(self, *raised: object) -> None:
        if raised[0] is not None:
            self._target.abandoned = True
            self._pending.clear()
        self.close()

    def write(self, batch: ParquetBatch, written: Sequence[Any]) -> None:
        """Write a batch of the source; see `streams.Sink`."""
        import pyarrow as pa

        fresh = iter(written)
        columns = [
            batch.stored.column(output.position)
            if isinstance(output, Kept)
            else _coded(next(fresh))
            if output.kind is None
            else _plain(next(fresh), output.kind)
            for output in self._outputs
        ]
        if self._writer is None:
            self._writer = self._begun([column.type for column in columns])
        part = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        self._pending.append(part)
        self._pending_bytes += part.nbytes
        self.records += batch.num_rows
        if self.records in self._ends or self._pending_bytes > PENDING:
            self._flush()

    def _flush(self) -> None:
        """Write what is pending as one row group."""
        import pyarrow as pa

        table = pa.Table.from_batches(self._pending).unify_dictionaries()
        self._pending.clear()
        self._pending_bytes = 0
        if table.num_rows:
            self._writer.write_table(table, row_group_size=table.num_rows)

    def close(self) -> None:
        """Write what is left and the end of the file; the target stays open."""
        if self._pending:
            self._flush()
        if self._writer is None:
            self._writer = self._begun([field.type for field in self._fields])
        self._writer.close()

    def _begun(self, kinds: Sequence[Any]) -> Any:
        """Begin the file with columns of these types, which are read back as those of the fields."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        true = pa.schema(self._fields, self._metadata)
        metadata = dict(self._metadata)
        if self._layout.arrow_schema:
            metadata[ARROW_SCHEMA] = base64.b64encode(true.serialize().to_pybytes())
        fields = [
            pa.field(field.name, kind, field.nullable, field.metadata)
            for field, kind in zip(self._fields, kinds, strict=True)
        ]
        self._schema = pa.schema(fields)
        properties = _properties(self._schema, self._outputs, self._layout)
        writer = pq.ParquetWriter(self._target, self._schema, store_schema=False, **properties)
        # Without `store_schema`, which would store the types of the codes, the writer leaves all metadata out.
        writer.add_key_value_metadata(metadata)
        return writer


def _field(output: Output, schema: Any) -> Any:
    import pyarrow as pa

    if isinstance(output, Kept):
        return schema.field(output.position)
    nullable = output.replaces is None or schema.field(output.replaces).nullable
    return pa.field(output.name, output.kind or pa.string(), nullable=nullable)


def _coded(column: Any) -> Any:
    """A written column as codes into text: the file stores them so, and is read as its schema says."""
    import pyarrow as pa

    kind = pa.dictionary(pa.int32(), pa.string())
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if column.type == kind:
        return column
    if not pa.types.is_dictionary(column.type):
        return column.cast(pa.string()).dictionary_encode()
    indices, texts = column.indices.cast(pa.int32()), column.dictionary.cast(pa.string())
    return pa.DictionaryArray.from_arrays(indices, texts)


def _plain(column: Any, kind: Any) -> Any:
    """A written column as an array of this type."""
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    decoded = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    return decoded.cast(kind)


def _metadata(schema: Any, outputs: Sequence[Output]) -> dict[bytes, bytes]:
    metadata = {key: text for key, text in (schema.metadata or {}).items() if key != ARROW_SCHEMA}
    for key, rewritten in ((PANDAS, _pandas_notes), (SPARK, spark_notes)):
        if key in metadata:
            notes = rewritten(metadata.pop(key), schema.names, outputs)
            if notes is not None:
                metadata[key] = notes
    return metadata


def _pandas_notes(text: bytes, names: Sequence[str], outputs: Sequence[Output]) -> bytes | None:
    """pandas' own notes, with the written columns as text: else pandas would turn labels into, say, integers.

    None if they are not understood, and better left out.
    """
    try:
        return _rewritten(json.loads(text), names, outputs)
    except (ValueError, AttributeError, TypeError):
        return None


def _rewritten(notes: Any, names: Sequence[str], outputs: Sequence[Output]) -> bytes:
    kept = {names[output.position] for output in outputs if isinstance(output, Kept)}
    replaced = {
        names[output.replaces]: output.name
        for output in outputs
        if isinstance(output, Written) and output.replaces is not None
    }
    typed = {output.name for output in outputs if isinstance(output, Written) and output.kind is not None}
    columns: list[dict[str, Any]] = []
    for note in notes.get("columns", []):
        field = note.get("field_name")
        if field in replaced and replaced[field] in typed:
            columns.append(note | {"name": replaced[field], "field_name": replaced[field]})
        elif field in replaced:
            columns.append(note | _text_note(replaced[field]))
        elif field in kept or field not in names:
            columns.append(note)
    for output in outputs:
        if isinstance(output, Written) and output.replaces is None and output.kind is None:
            columns.append(_text_note(output.name))
    notes["columns"] = columns
    notes["index_columns"] = [
        replaced.get(index, index) if isinstance(index, str) else index
        for index in notes.get("index_columns", [])
        if not (isinstance(index, str) and index in names and index not in kept and index not in replaced)
    ]
    return json.dumps(notes).encode()


def _text_note(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "field_name": name,
        "pandas_type": "unicode",
        "numpy_type": "object",
        "metadata": None,
    }


def _properties(schema: Any, outputs: Sequence[Output], layout: Layout) -> dict[str, Any]:
    """Options of the writer, so that every column is stored as the one it is or replaces."""
    stored: list[Leaf] = []
    for output in outputs:
        if isinstance(output, Kept):
            stored.extend(layout.columns[output.position])
        elif output.replaces is not None:
            stored.append(Leaf(layout.columns[output.replaces][0].compression))
        else:
            stored.append(Leaf(layout.columns[0][0].compression))
    paths = _paths(schema)
    pairs = list(zip(paths, stored, strict=True))
    encodings = {path: leaf.encoding for path, leaf in pairs if leaf.encoding}
    options: dict[str, Any] = {
        "compression": {path: leaf.compression for path, leaf in pairs},
        "use_dictionary": [path for path, leaf in pairs if leaf.dictionary],
        "write_statistics": [path for path, leaf in pairs if leaf.statistics],
        "use_compliant_nested_type": False,
        "use_deprecated_int96_timestamps": layout.int96,
    }
    if encodings:
        options["column_encoding"] = encodings
    if sorting := _sorting(outputs, layout):
        options["sorting_columns"] = sorting
    return options


def _sorting(outputs: Sequence[Output], layout: Layout) -> list[Any]:
    """What the rows stay sorted by: the source's sorting up to the first column that is not kept."""
    import pyarrow.parquet as pq

    stored = [i for i, leaves in enumerate(layout.columns) for _ in leaves]
    places: dict[int, int] = {}
    place = 0
    for output in outputs:
        if isinstance(output, Kept):
            for i, column in enumerate(stored):
                if column == output.position:
                    places[i] = place
                    place += 1
        else:
            place += 1
    sorting: list[Any] = []
    for column in layout.sorting:
        if column.column_index not in places:
            break
        sorting.append(pq.SortingColumn(places[column.column_index], column.descending, column.nulls_first))
    return sorting


def _paths(schema: Any) -> list[str]:
    """What a writer calls the columns of the file that a schema takes, in order."""
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    with pq.ParquetWriter(sink, schema, store_schema=False, use_compliant_nested_type=False):
        pass
    columns = pq.ParquetFile(io.BytesIO(sink.getvalue())).schema
    return [columns.column(i).path for i in range(len(columns))]
