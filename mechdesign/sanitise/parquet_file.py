"""Applying a channel to a Parquet file, batch by batch."""

# pyarrow and narwhals tell too little of their types for the strict mode.
# pyright: basic
from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mechdesign.cells import encode
from mechdesign.draws import Randomness
from mechdesign.errors import InputError
from mechdesign.frames import UnknownSymbol, codes_of
from mechdesign.parquet import ParquetText
from mechdesign.sampling import Sampler
from mechdesign.sanitise.plan import FileChannel, Plan, Wishes, make_plan

PANDAS = b"pandas"
"""Where pandas keeps what it wants to know of the columns, in the metadata of the schema."""


def apply_parquet(
    channel: FileChannel,
    source: str,
    target: Path,
    sampler: Sampler,
    stream: Randomness,
    *,
    columns: Mapping[str, str] | None,
    keep_sensitive: bool,
) -> tuple[int, Plan]:
    """Write the sanitised copy of a Parquet file; the number of records and what was done.

    Raises
    ------
    InputError
        As `apply_file.sanitise_file`.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    labels = pa.array(channel.outputs, pa.string())
    with ParquetText(source) as table:
        try:
            wishes = Wishes(rename=columns or {}, keep_sensitive=keep_sensitive)
            plan = make_plan([channel], table.header, wishes)
            place = next(column.source for column in plan.columns if column.release is not None)
            removed = sorted(set(plan.inputs[0]) - {place}, reverse=True)
        except InputError as error:
            raise InputError(f"{source}: {error}") from None
        schema = _schema(table.schema, plan, place, removed)
        records = 0
        with pq.ParquetWriter(target, schema) as writer:
            for batch in table.batches():
                try:
                    cells = [encode(batch.column(at), table.header[at]) for at in plan.inputs[0]]
                    codes = codes_of(cells, channel.useful)
                except UnknownSymbol as error:
                    raise InputError(f"{source}, row {records + error.position + 1}: {error.what}") from None
                except InputError as error:
                    raise InputError(f"{source}: {error}") from None
                drawn = pa.array(sampler.draw(codes, stream))
                released = pa.DictionaryArray.from_arrays(drawn, labels).dictionary_decode()
                kept = [
                    released if i == place else column
                    for i, column in enumerate(batch.columns)
                    if i not in removed
                ]
                writer.write_batch(pa.RecordBatch.from_arrays(kept, schema=schema))
                records += batch.num_rows
    return records, plan


def _schema(schema: Any, plan: Plan, place: int, removed: list[int]) -> Any:
    """The schema of the output: text in place of X, all else as it was."""
    import pyarrow as pa

    fields = [
        pa.field(plan.released[0], pa.string(), nullable=field.nullable) if i == place else field
        for i, field in enumerate(schema)
        if i not in removed
    ]
    metadata = dict(schema.metadata or {})
    if PANDAS in metadata:
        replaced = schema.names[place]
        gone = {schema.names[i] for i in removed}
        metadata[PANDAS] = _pandas_metadata(metadata[PANDAS], replaced, plan.released[0], gone)
    return pa.schema(fields, metadata)


def _pandas_metadata(text: bytes, replaced: str, column: str, gone: set[str]) -> bytes:
    """pandas' own notes, with the released column as text: else pandas would turn labels into, say, integers."""
    notes = json.loads(text)
    kept: list[dict[str, Any]] = []
    for note in notes.get("columns", []):
        if note.get("field_name") in gone:
            continue
        if note.get("field_name") == replaced:
            note |= {
                "name": column,
                "field_name": column,
                "pandas_type": "unicode",
                "numpy_type": "object",
                "metadata": None,
            }
        kept.append(note)
    notes["columns"] = kept
    notes["index_columns"] = [
        column if index == replaced else index
        for index in notes.get("index_columns", [])
        if not (isinstance(index, str) and index in gone)
    ]
    return json.dumps(notes).encode()
