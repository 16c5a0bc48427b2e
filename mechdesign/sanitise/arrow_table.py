"""Sanitised arrow tables and batches: all other columns are the same buffers, with their types and nulls."""

# pyarrow tells too little of its types for the strict mode.
# pyright: basic
from __future__ import annotations

import json
from typing import Any

from mechdesign.frames import arrow_type, is_text, own_values, rebuild
from mechdesign.sanitise.plan import Plan
from mechdesign.sanitise.recipe import Drawer, stands_for

PANDAS = b"pandas"
"""Where pandas keeps what it wants to know of the columns, in the metadata of the schema."""


def sanitised_arrow(table: Any, drawer: Drawer, *, first_row: int = 0, numbers: Any = None) -> Any:
    """The released Table or RecordBatch.

    Parameters
    ----------
    table : pyarrow Table or RecordBatch
    drawer : Drawer
        Made for the header of the table.
    first_row, numbers
        As those of `Drawer.draw`.

    Raises
    ------
    InputError
        As `Drawer.draw`.
    """
    drawn = drawer.draw(table.column, table.num_rows, first_row=first_row, numbers=numbers)
    columns: list[Any] = []
    for column in drawer.plan.columns:
        if column.release is None:
            columns.append(table.column(column.source))
        else:
            released, like = drawn[column.release], table.column(stands_for(drawer.plan, column))
            columns.append(rebuild(like, released.codes, released.labels, column.name, own=drawer.own))
    return type(table).from_arrays(columns, schema=released_schema(table.schema, drawer))


def released_schema(schema: Any, drawer: Drawer) -> Any:
    """The schema of the output: labels in the place of X, all else as it was, pandas' notes kept right."""
    import pyarrow as pa

    plan = drawer.plan
    fields: list[Any] = []
    for column in plan.columns:
        if column.release is None:
            fields.append(schema.field(column.source))
        else:
            like = schema.field(stands_for(plan, column))
            nullable = column.source is None or like.nullable
            own = drawer.own and own_values(drawer.labels[column.release], like.type) is not None
            kind = like.type if own else arrow_type(like.type)
            fields.append(pa.field(column.name, kind, nullable=nullable))
    metadata = dict(schema.metadata or {})
    if PANDAS in metadata:
        metadata[PANDAS] = _notes(json.loads(metadata[PANDAS]), schema, pa.schema(fields), plan)
    return pa.schema(fields, metadata)


def _notes(notes: dict[str, Any], before: Any, after: Any, plan: Plan) -> bytes:
    """pandas' own notes, with the released columns as labels: else pandas would turn them into, say, integers."""
    old = {note.get("field_name"): note for note in notes.get("columns", [])}
    columns: list[Any] = []
    renamed: dict[str, str] = {}
    for column, field in zip(plan.columns, after, strict=True):
        note = old.get(before.names[stands_for(plan, column)])
        if column.release is not None:
            if column.source is not None:
                renamed[before.names[column.source]] = column.name
            note = note and note | _as_labels(column.name, field.type)
        if note:
            columns.append(note)
    index = notes.get("index_columns", [])
    kept = set(after.names) | set(renamed)
    index = [
        renamed.get(i, i) if isinstance(i, str) else i for i in index if not isinstance(i, str) or i in kept
    ]
    return json.dumps(notes | {"columns": columns, "index_columns": index}).encode()


def _as_labels(name: str, kind: Any) -> dict[str, Any]:
    import pyarrow as pa

    note: dict[str, Any] = {"name": name, "field_name": name}
    if not (pa.types.is_dictionary(kind) or is_text(kind)):
        return note  # symbols of the type that the column had
    note["metadata"] = None
    if pa.types.is_dictionary(kind):
        return note | {
            "pandas_type": "categorical",
            "numpy_type": str(kind.index_type),
            "metadata": {"ordered": False},
        }
    return note | {"pandas_type": "unicode", "numpy_type": "object"}
