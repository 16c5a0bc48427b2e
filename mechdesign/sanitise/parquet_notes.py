"""What programs write into a Parquet file about its columns: kept true, or told to the user."""

# pyarrow tells too little of its types for the strict mode.
# pyright: basic
from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mechdesign.sanitise.parquet_layout import ARROW_SCHEMA
from mechdesign.sanitise.streams import Kept, Output

SPARK = b"org.apache.spark.sql.parquet.row.metadata"
"""Where Spark keeps its own schema, which it believes more than the file."""

_HARMLESS = (ARROW_SCHEMA, b"pandas", SPARK, b"org.apache.spark.version")
"""Notes on the columns as such, which are kept true."""

_ATTRIBUTES = "attributes"
"""Where pandas' own notes hold what the user wrote into ``DataFrame.attrs``."""


def spark_notes(text: bytes, names: Sequence[str], outputs: Sequence[Output]) -> bytes | None:
    """Spark's schema for the columns of the output; None if it is not understood, and better left out.

    Parameters
    ----------
    text : bytes
        The schema of the source.
    names : sequence of str
        Columns of the source.
    outputs : sequence of Kept or Written
    """
    try:
        notes = json.loads(text)
        fields = {field["name"]: field for field in notes["fields"]}
        known = [_spark_field(output, fields, names) for output in outputs]
    except (ValueError, KeyError, TypeError):
        return None
    return json.dumps(notes | {"fields": known}, separators=(",", ":"), ensure_ascii=False).encode()


def _spark_field(output: Output, fields: Mapping[str, Any], names: Sequence[str]) -> Any:
    if isinstance(output, Kept):
        return fields[names[output.position]]
    if output.kind is None:
        return {"name": output.name, "type": "string", "nullable": True, "metadata": {}}
    if output.replaces is None:
        raise KeyError(output.name)  # how Spark calls its type is not known here
    return fields[names[output.replaces]] | {"name": output.name}


def free_notes(metadata: Mapping[bytes, bytes] | None) -> list[str]:
    """Names of the notes in a file that may say anything, and stay in it."""
    found = [key.decode(errors="replace") for key in metadata or {} if key not in _HARMLESS]
    try:
        pandas = json.loads((metadata or {}).get(b"pandas", b"{}"))
    except ValueError:
        return found
    if isinstance(pandas, dict) and pandas.get(_ATTRIBUTES):
        found.append(f"pandas: {_ATTRIBUTES}")
    return found
