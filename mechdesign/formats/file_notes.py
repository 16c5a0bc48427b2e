"""The notes (metadata) in a Parquet file and on its columns, kept true of an output.

`metadata_of` makes the notes of an output from those of its source:

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

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from mechdesign.formats.outputs import KeptColumn, Output, WrittenColumn

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
    for field in schema:
        for key in field.metadata or {}:
            if key != FIELD_ID:
                names.append(f"{field.name}: {key.decode(errors='replace')}")
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
