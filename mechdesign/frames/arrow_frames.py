"""Tables and record batches of pyarrow: the columns that stay are the same buffers.

Two things hold more than the cells, and are cut down to what was released. The schema has notes, of
which those stay that make the table a frame of pandas again (`released_schema`). A column of codes
has a dictionary, of which the values stay that a record has (`_trimmed_array`): of the dictionary
a, b, c and records with c, a, c the values a and c stay.
"""

# pyarrow has no complete types.
# pyright: basic
from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mechdesign.core.integers import Integers
from mechdesign.formats.arrow_arrays import (
    KeptColumn,
    Output,
    WrittenColumn,
    arrow_integers,
    field_of,
    integers_of,
    taken_records,
)
from mechdesign.formats.parquet_sink import PANDAS, metadata_of
from mechdesign.frames.adapter import NativeTable
from mechdesign.jobs.recipe import Drawer
from mechdesign.tables.rebuilding import arrow_type

_ATTRIBUTES = "attributes"
"""The member of pandas' notes that holds ``DataFrame.attrs``, in which a user writes anything."""


@dataclass(frozen=True)
class ArrowFrame(NativeTable):
    """A Table or a RecordBatch as a `FrameAdapter`."""

    @staticmethod
    def is_native(frame: Any) -> bool:
        """True for a Table or a RecordBatch."""
        import pyarrow as pa

        return isinstance(frame, (pa.Table, pa.RecordBatch))

    @property
    def names(self) -> list[Any]:
        """The names of the columns."""
        return list(self.native.schema.names)

    def __len__(self) -> int:
        """The number of records."""
        return len(self.native)

    def column(self, at: int) -> Any:
        """A column as an array, of a table in chunks."""
        return self.native.column(at)

    def cells(self, at: int) -> Any:
        """A column as an array, of a table in chunks."""
        return self.native.column(at)

    def arrow_columns(self) -> list[Any]:
        """The columns for hashing."""
        return list(self.native.columns)

    def index_names(self) -> list[Any]:
        """None: arrow has no index."""
        return []

    def index_columns(self) -> list[Any]:
        """None: arrow has no index."""
        return []

    def nested_schema(self) -> Any:
        """The schema of the table."""
        return self.native.schema

    def taken(self, places: Integers) -> ArrowFrame:
        """The records at these places."""
        return ArrowFrame(taken_records(self.native, arrow_integers(places)))

    def selected(self, names: Sequence[Any]) -> Any:
        """The native frame with these columns alone."""
        return self.native.select(list(names))

    def assembled(self, columns: Sequence[Any], drawer: Drawer) -> ArrowFrame:
        """The output, with the schema that follows from the plan."""
        schema = released_schema(self.native.schema, drawer)
        return ArrowFrame(type(self.native).from_arrays(columns, schema=schema))

    def finished(
        self, kept: Collection[Any], *, keep_index: bool, reordered: bool
    ) -> Any:
        """The table, whose dictionaries have the values of its records alone."""
        schema = self.native.schema
        columns: list[Any] = []
        for name, column in zip(schema.names, self.native.columns, strict=True):
            # The dictionary of a released column has the labels of a channel, which are public.
            if name in kept:
                column = _trimmed_dictionary(column, reordered)
            columns.append(column)
        return type(self.native).from_arrays(columns, schema=schema)


def released_schema(schema: Any, drawer: Drawer) -> Any:
    """The schema of the output: labels in the place of X, the other columns as they were.

    Notes on the table and its columns are left out, for they may say anything. pandas' own notes
    are kept true of the output, so that a table of pandas goes back to pandas.
    """
    import pyarrow as pa

    outputs: list[Output] = []
    for column in drawer.plan.columns:
        if column.release is None:
            outputs.append(KeptColumn(column.source or 0))
            continue
        kind = drawer.own_type(column, lambda at: schema.field(at).type)
        if kind is None:
            kind = arrow_type(schema.field(drawer.plan.origin(column)).type)
        outputs.append(WrittenColumn(column.name, column.source, kind))
    fields = [field_of(output, schema).remove_metadata() for output in outputs]
    return pa.schema(fields, _pandas_metadata(schema, outputs))


def _pandas_metadata(
    schema: Any, outputs: Sequence[Output]
) -> dict[bytes, bytes] | None:
    """pandas' notes on the columns of the output, without those that a user wrote."""
    metadata = metadata_of(schema, outputs)
    if PANDAS not in metadata:
        return None
    notes = json.loads(metadata[PANDAS])
    notes.pop(_ATTRIBUTES, None)
    return {PANDAS: json.dumps(notes).encode()}


def _trimmed_dictionary(column: Any, reordered: bool) -> Any:
    """A column of codes with a dictionary of its own values; any other column as it is."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        return column
    if isinstance(column, pa.ChunkedArray):
        chunks = [_trimmed_array(chunk, reordered) for chunk in column.chunks]
        return pa.chunked_array(chunks, type=column.type)
    return _trimmed_array(column, reordered)


def _trimmed_array(array: Any, reordered: bool) -> Any:
    """The same values, coded by those entries of the dictionary that a record has.

    For example, the codes 2, 0, 2 of the dictionary a, b, c become the codes 1, 0, 1 of a, c.

    Where records changed their places, the entries stand in the order of their first records (0, 1,
    0 of c, a), unless the type says that their order has a meaning.
    """
    import pyarrow as pa

    size = len(array.dictionary)
    codes = integers_of(array.indices.drop_null().cast(pa.int64()))
    used, first_places = np.unique(codes, return_index=True)
    # The entries of many libraries stand in the order in which the values first came, which would
    # disclose some of the old order of the records.
    if reordered and not array.type.ordered:
        used = used[np.argsort(first_places)]
    elif len(used) == size:
        return array
    # The new code of every old one, and one that nothing uses where the dictionary is empty.
    new_codes = np.zeros(max(size, 1), np.int64)
    new_codes[used] = np.arange(len(used))
    # A null index takes a null, so that missing cells stay missing.
    indices = arrow_integers(new_codes).take(array.indices)
    return pa.DictionaryArray.from_arrays(
        indices.cast(array.type.index_type),
        array.dictionary.take(arrow_integers(used)),
        ordered=array.type.ordered,
    )
