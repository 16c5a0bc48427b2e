"""What a job says that its output holds, and the schema that follows from it.

Columns of the source stay as they are, others are written anew. What pandas has noted of the columns is kept true, what
Spark has is left out; other notes stay as they are, and are named to the user.
"""

# pyarrow tells too little of its types for the strict mode.
# pyright: basic
from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from mechdesign.core.errors import InputError


@dataclass(frozen=True)
class KeptColumn:
    """A column of the output that is the source's column at `position`, as it is."""

    position: int


@dataclass(frozen=True)
class WrittenColumn:
    """A column of text that the job writes; `replaces` is the source's column it stands for, if there is one.

    A Parquet file takes the compression of the replaced column over, and pandas' notes on it. With a `kind`, an arrow
    type, the column is of this type there, and so are the arrays written.
    """

    name: str
    replaces: int | None = None
    kind: Any = None


Output: TypeAlias = KeptColumn | WrittenColumn


def check_outputs(outputs: Sequence[Output], width: int) -> None:
    """Refuse outputs that are no columns of a source with `width` columns, or kept out of order."""
    kept = [output.position for output in outputs if isinstance(output, KeptColumn)]
    if (
        not outputs
        or kept != sorted(set(kept))
        or (kept and not 0 <= kept[0] <= kept[-1] < width)
    ):
        raise InputError(
            f"the outputs must be columns of the source in their order, not {kept} of {width}"
        )


def values_of(column: Any, kind: Any = None) -> Any:
    """A written column as an array of this type; of none, as codes into text, which a file is told to take as text."""
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if not pa.types.is_dictionary(column.type):
        return (
            column.cast(pa.string()).dictionary_encode()
            if kind is None
            else column.cast(kind)
        )
    indices, values = (
        column.indices.cast(pa.int32()),
        column.dictionary.cast(kind or pa.string()),
    )
    coded = pa.DictionaryArray.from_arrays(indices, values)
    return coded if kind is None else coded.dictionary_decode()


ARROW_SCHEMA = b"ARROW:schema"
"""Where Arrow keeps its own types, in the metadata of the file."""

PANDAS = b"pandas"
"""Where pandas keeps what it wants to know of the columns, in the metadata of the schema."""

SPARK = b"org.apache.spark.sql.parquet.row.metadata"
"""Where Spark keeps its own schema, which it believes more than the file; left out, so that it reads the file's."""

FIELD_ID = b"PARQUET:field_id"
"""What pyarrow notes on every column of some files, a number."""

_HARMLESS = (ARROW_SCHEMA, PANDAS, SPARK, b"org.apache.spark.version")
"""Notes on the columns as such, which are kept true."""

_TEXTS = ("string", "large_string", "string_view")
"""Arrow's names of types of text."""

_ATTRIBUTES = "attributes"
"""Where pandas' own notes hold what the user wrote into ``DataFrame.attrs``."""


def free_notes(schema: Any) -> list[str]:
    """Names of the notes in a file, and on its columns, that may say anything, and stay in it."""
    metadata = schema.metadata or {}
    found = [key.decode(errors="replace") for key in metadata if key not in _HARMLESS]
    found += [f"{field.name}: {key.decode(errors='replace')}" for field in schema for key in field.metadata or {}
              if key != FIELD_ID]  # fmt: skip
    try:
        pandas = json.loads(metadata.get(PANDAS, b"{}"))
    except ValueError:
        return found
    if isinstance(pandas, dict) and pandas.get(_ATTRIBUTES):
        found.append(f"pandas: {_ATTRIBUTES}")
    return found


def field_of(output: Output, schema: Any) -> Any:
    """The field of a column of the output."""
    import pyarrow as pa

    if isinstance(output, KeptColumn):
        return schema.field(output.position)
    nullable = output.replaces is None or schema.field(output.replaces).nullable
    return pa.field(output.name, output.kind or pa.string(), nullable=nullable)


def metadata_of(schema: Any, outputs: Sequence[Output]) -> dict[bytes, bytes]:
    """The metadata of the output: what is noted of the columns is true of those it has."""
    notes = schema.metadata or {}
    metadata = {
        key: text
        for key, text in notes.items()
        if key not in (ARROW_SCHEMA, PANDAS, SPARK)
    }
    # What is not understood is better left out.
    with suppress(ValueError, AttributeError, TypeError, KeyError):
        metadata[PANDAS] = _rewritten(json.loads(notes[PANDAS]), schema, outputs)
    return metadata


def _rewritten(notes: Any, schema: Any, outputs: Sequence[Output]) -> bytes:
    """pandas' own notes, with the written columns as text: else pandas would turn labels into, say, integers."""
    names = schema.names
    kept = {
        names[output.position] for output in outputs if isinstance(output, KeptColumn)
    }
    fresh = {
        names[o.replaces]: o
        for o in outputs
        if isinstance(o, WrittenColumn) and o.replaces is not None
    }
    columns: list[dict[str, Any]] = []
    for note in notes.get("columns", []):
        field = note.get("field_name")
        if field in fresh:
            output = fresh[field]
            same = output.kind == schema.field(field).type and not _holds_labels(
                output.kind
            )
            name = {"name": output.name, "field_name": output.name}
            columns.append(note | (name if same else _note(output)))
        elif field in kept or field not in names:
            columns.append(note)
    added = [o for o in outputs if isinstance(o, WrittenColumn) and o.replaces is None]
    columns += [_note(output) for output in added if _holds_labels(output.kind)]
    notes["columns"] = columns
    notes["index_columns"] = [
        fresh[index].name if isinstance(index, str) and index in fresh else index
        for index in notes.get("index_columns", [])
        if not (
            isinstance(index, str)
            and index in names
            and index not in kept
            and index not in fresh
        )
    ]
    return json.dumps(notes).encode()


def _holds_labels(kind: Any) -> bool:
    """Whether what is written in this type are labels, and no values of a column of numbers or times."""
    import pyarrow as pa

    return kind is None or str(kind) in _TEXTS or pa.types.is_dictionary(kind)


def _note(output: WrittenColumn) -> dict[str, Any]:
    import pyarrow as pa

    note: dict[str, Any] = {
        "name": output.name,
        "field_name": output.name,
        "metadata": None,
    }
    if output.kind is None or str(output.kind) in _TEXTS:
        return note | {"pandas_type": "unicode", "numpy_type": "object"}
    if pa.types.is_dictionary(output.kind):
        index = str(output.kind.index_type)
        return note | {
            "pandas_type": "categorical",
            "numpy_type": index,
            "metadata": {"ordered": False},
        }
    kind = np.dtype(output.kind.to_pandas_dtype()).name
    return note | {"pandas_type": kind, "numpy_type": kind}
