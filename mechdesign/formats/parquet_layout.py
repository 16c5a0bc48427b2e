"""How the columns of a Parquet file are stored: compression, encoding, order; to store others alike."""

# pyarrow tells too little of its types for the strict mode.
# pyright: basic
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

ARROW_SCHEMA = b"ARROW:schema"
"""Where Arrow keeps its own types, in the metadata of the file."""

REPEATING = 4
"""Bytes a value, encoded, up to which a column of text is taken to repeat few values."""

_ENCODINGS = ("DELTA_BINARY_PACKED", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY", "BYTE_STREAM_SPLIT")
"""Encodings that are chosen by hand, apart from dictionaries."""


@dataclass(frozen=True)
class Leaf:
    """How a column of the file is stored; a nested column of the table has several.

    Parameters
    ----------
    compression : str
        As a writer of pyarrow wants it.
    dictionary : bool
        Whether values are stored as codes into a dictionary.
    encoding : str or None
        One of the encodings that somebody must have chosen.
    statistics : bool
    bytes_a_value : float
        Encoded, before compression.
    """

    compression: str = "SNAPPY"
    dictionary: bool = True
    encoding: str | None = None
    statistics: bool = True
    bytes_a_value: float = float("inf")


@dataclass(frozen=True)
class Layout:
    """How a file is stored.

    Parameters
    ----------
    columns : tuple of tuples of Leaf
        For every column of the table those of the file.
    groups : tuple of int
        Rows of every row group.
    sorting : tuple of SortingColumn
        What the row groups are sorted by, if all say the same.
    int96 : bool
        Whether moments are stored in the old form of 96 bits.
    arrow_schema : bool
        Whether Arrow's own types are stored with them.
    """

    columns: tuple[tuple[Leaf, ...], ...]
    groups: tuple[int, ...]
    sorting: tuple[Any, ...]
    int96: bool
    arrow_schema: bool

    @classmethod
    def of(cls, metadata: Any, schema: Any) -> Layout:
        """The layout that a file says it has."""
        groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
        counts = [leaves(field.type) for field in schema]
        if sum(counts) != metadata.num_columns:  # types that Arrow reads in another shape than it writes
            return cls(
                tuple((Leaf(),) * count for count in counts), _rows(groups), (), False, _has_arrow(metadata)
            )
        stored = [_leaf(groups, i) for i in range(metadata.num_columns)]
        columns: list[tuple[Leaf, ...]] = []
        for count in counts:
            columns.append(tuple(stored[:count]))
            del stored[:count]
        physical = [metadata.schema.column(i).physical_type for i in range(metadata.num_columns)]
        orders = {tuple(group.sorting_columns) for group in groups}
        return cls(
            tuple(columns),
            _rows(groups),
            orders.pop() if len(orders) == 1 else (),
            "INT96" in physical,
            _has_arrow(metadata),
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
            for name, stored in zip(schema.names, self.columns, strict=True)
            if self.is_text(schema, name)
            and "." not in name
            and stored[0].dictionary
            and stored[0].bytes_a_value < REPEATING
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


def _rows(groups: Sequence[Any]) -> tuple[int, ...]:
    return tuple(group.num_rows for group in groups)


def _has_arrow(metadata: Any) -> bool:
    return ARROW_SCHEMA in (metadata.metadata or {})


def _leaf(groups: Sequence[Any], i: int) -> Leaf:
    chunks = [group.column(i) for group in groups if group.num_rows]
    if not chunks:
        return Leaf()
    first = chunks[0]
    values = sum(chunk.num_values for chunk in chunks)
    size = sum(chunk.total_uncompressed_size for chunk in chunks)
    dictionary = any("DICTIONARY" in encoding for encoding in first.encodings)
    chosen = [encoding for encoding in first.encodings if encoding in _ENCODINGS]
    codec: str = first.compression
    return Leaf(
        {"UNCOMPRESSED": "NONE", "LZ4_RAW": "LZ4"}.get(codec, codec),
        dictionary,
        chosen[0] if chosen and not dictionary else None,
        first.is_stats_set,
        size / values if values else float("inf"),
    )
