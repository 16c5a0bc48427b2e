"""How a Parquet file is stored: the compression of its columns and its row groups, to store a copy alike."""

# pyarrow tells too little of its types for the strict mode.
# pyright: basic
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, repeat
from typing import Any

from mechdesign.formats.notes import ARROW_SCHEMA

DEFAULT_CODEC = "SNAPPY"
"""What Parquet files mostly have, where a file does not tell."""

REPEATING = 4
"""Bytes a value, encoded, up to which a column of text is taken to repeat few values."""


@dataclass(frozen=True)
class ParquetLayout:
    """How a file is stored, as far as a copy is stored alike."""

    codecs: tuple[tuple[str, ...], ...]
    repeated: tuple[bool, ...]
    groups: tuple[int, ...]
    arrow_schema: bool

    @classmethod
    def of(cls, metadata: Any, schema: Any) -> ParquetLayout:
        """The layout that a file says it has."""
        groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
        sizes = [leaves(field.type) for field in schema]
        if sum(sizes) == metadata.num_columns:
            stored = iter([_stored(groups, i) for i in range(metadata.num_columns)])
        else:  # types that Arrow reads in another shape than it writes
            stored = repeat((DEFAULT_CODEC, False))
        columns = [list(islice(stored, size)) for size in sizes]
        return cls(
            tuple(tuple(codec for codec, _ in column) for column in columns),
            tuple(bool(column) and column[0][1] for column in columns),
            tuple(group.num_rows for group in groups),
            ARROW_SCHEMA in (metadata.metadata or {}),
        )

    def is_text(self, schema: Any, name: str) -> bool:
        """Whether a column holds text or bytes, stored as such."""
        import pyarrow as pa

        kind = schema.field(name).type
        tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
        return any(test(kind) for test in tests)

    def repeating(self, schema: Any) -> list[str]:
        """Columns of text that are stored as codes and repeat few values: read as codes, they are copied fast."""
        return [
            name
            for name, repeated in zip(schema.names, self.repeated, strict=True)
            if repeated and self.is_text(schema, name) and "." not in name
        ]


def leaves(kind: Any) -> int:
    """How many columns of a file a column of that type takes."""
    import pyarrow as pa

    if isinstance(kind, pa.BaseExtensionType):
        return leaves(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return leaves(kind.value_type)
    if pa.types.is_nested(kind):
        return sum(leaves(kind.field(i).type) for i in range(kind.num_fields))
    return 1


def _stored(groups: Sequence[Any], i: int) -> tuple[str, bool]:
    """The compression of column number `i` of a file, and whether its values repeat."""
    chunks = [group.column(i) for group in groups if group.num_rows]
    if not chunks:
        return DEFAULT_CODEC, False
    values = sum(chunk.num_values for chunk in chunks)
    size = sum(chunk.total_uncompressed_size for chunk in chunks)
    coded = any("DICTIONARY" in encoding for encoding in chunks[0].encodings)
    codec: str = chunks[0].compression
    named = {"UNCOMPRESSED": "NONE", "LZ4_RAW": "LZ4"}.get(codec, codec)
    return named, coded and bool(values) and size / values < REPEATING
