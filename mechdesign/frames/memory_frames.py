"""Frames of pandas (and of libraries that are like it), polars and pyarrow, in memory.

A release takes three steps (`eager.sanitised`): it reads the `cells` of X, puts the drawn columns
into a copy that shares those that stay (`assembled`), and takes out what a library holds beside the
cells (`finished`).

*pandas* holds more than the columns show: ``attrs`` may hold any note, and categories and levels of
an index keep values whose records are gone. For example, of a column with the categories a, b, c,
in which no record of the output has b, the categories a and c stay.

*polars* has no index and no notes. But an enumeration has all its values in its type, also those
that no record has any more. For example, the output has the values a and c of an enumeration of a,
b, c. It gets the enumeration of a and c, for b would tell something about the whole table.

*pyarrow*: of tables and record batches two things hold more than the cells, and are cut down to
what was released. The schema has notes, of which those stay that make the table a frame of pandas
again (`released_schema`). A column of codes has a dictionary, of which the values stay that a
record has (`_trimmed_array`): of the dictionary a, b, c and records with c, a, c the values a and c
stay.
"""

# pandas and pyarrow have no complete types.
# pyright: basic

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Self

import narwhals as nw
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
from mechdesign.formats.cells import not_a_symbol
from mechdesign.formats.parquet_sink import PANDAS, metadata_of
from mechdesign.frames.adapter import NativeTable
from mechdesign.jobs.recipe import Drawer
from mechdesign.tables.rebuilding import arrow_type


@dataclass(frozen=True)
class PandasFrame(NativeTable):
    """A DataFrame of pandas as a `FrameAdapter`."""

    @staticmethod
    def is_native(frame: Any) -> bool:
        """True for a table of this library."""
        return nw.dependencies.is_pandas_like_dataframe(frame)

    def __len__(self) -> int:
        """The number of records."""
        return len(self.native)

    def column(self, at: int) -> Any:
        """A column as a Series."""
        return self.native.iloc[:, at]

    def cells(self, at: int) -> Any:
        """A column; text and integers as arrow has them, which are encoded soonest."""
        column = self.column(at)
        series: Any = nw.from_native(column, series_only=True)
        if series.dtype == nw.String or series.dtype.is_integer():
            return series.to_arrow()
        return column

    def arrow_columns(self) -> list[Any]:
        """The columns for hashing; a column that arrow cannot hold counts as empty."""
        import pyarrow as pa

        columns: list[Any] = []
        for at in range(self.native.shape[1]):
            try:
                columns.append(pa.Array.from_pandas(self.column(at)))
            except OverflowError:
                # The texts of integers beyond 64 bits tell them apart as well.
                texts = self.column(at).map(str, na_action="ignore")
                columns.append(pa.Array.from_pandas(texts))
            except (
                pa.ArrowInvalid,
                pa.ArrowTypeError,
                pa.ArrowNotImplementedError,
            ):
                columns.append(pa.nulls(len(self)))
        return columns

    @property
    def _numbers_rows(self) -> bool:
        """Whether the index is the one that pandas gives by itself, which holds no data."""
        index = self.native.index
        return type(index).__name__ == "RangeIndex" and index.name is None

    def index_names(self) -> list[Any]:
        """The names of the levels of the index."""
        if self._numbers_rows:
            return []
        return list(self.native.index.names)

    def index_columns(self) -> list[Any]:
        """The cells of the levels of the index."""
        index = self.native.index
        columns: list[Any] = []
        for level in range(len(self.index_names())):
            columns.append(index.get_level_values(level).to_series())
        return columns

    def nested_schema(self) -> Any:
        """Empty: columns of pandas hold no structures but Python's own."""
        return ()

    def taken(self, places: Integers) -> PandasFrame:
        """The records at these places, with their index."""
        return PandasFrame(self.native.iloc[places])

    def selected(self, names: Sequence[Any]) -> Any:
        """The native frame with these columns alone."""
        return self.native[list(names)]

    def assembled(self, columns: Sequence[Any], drawer: Drawer) -> PandasFrame:
        """The output, with the released columns in a shallow copy of the frame."""
        # Shallow: a kept column shares its memory with the user's frame.
        result = self.native.copy(deep=False)
        # Labels that take the place of a column are put in under its old name at first.
        new_names: dict[Any, Any] = {}
        for part, series in zip(drawer.plan.columns, columns, strict=True):
            if part.source is None:
                result[part.name] = series
                continue
            old_name = drawer.header[part.source]
            new_names[old_name] = part.name
            if part.release is not None:
                result[old_name] = series
        # Names change only after columns are dropped: a new one may be that of a dropped column.
        # By place, for pandas finds no column that is called None. New columns are the last.
        places = range(len(drawer.header), len(result.columns))
        stay = [at for at, name in enumerate(drawer.header) if name in new_names]
        result = result.iloc[:, [*stay, *places]]
        changed = {old: new for old, new in new_names.items() if old != new}
        if changed:
            result = result.rename(columns=changed)
        return PandasFrame(result)

    def finished(
        self, kept: Collection[Any], *, keep_index: bool, reordered: bool
    ) -> Any:
        """The frame without notes of its user, a foreign index, or categories without records."""
        # A shallow copy, for the frame may be the user's own.
        result = self.native.copy(deep=False)
        result.attrs = {}
        if keep_index:
            result.index = _trimmed_index(result.index)
        # Numbers that pandas gives by itself tell no more than the order that is there anyway, and
        # in a partition they go on from the one before.
        elif reordered or not self._numbers_rows:
            result = result.reset_index(drop=True)
        for name in kept:
            column = result[name]
            trimmed = _trimmed_categories(column, reordered)
            if trimmed is not column:
                result[name] = trimmed
        return result


def _trimmed_categories(column: Any, reordered: bool) -> Any:
    """A column of categories with those of its records alone; any other column as it is."""
    import pandas as pd

    if not isinstance(column.dtype, pd.CategoricalDtype):
        return column
    trimmed = column.cat.remove_unused_categories()
    if reordered and not trimmed.cat.ordered:
        # Without an order of their own, categories stand in that of their first records.
        in_new_order = trimmed.dropna().unique()
        trimmed = trimmed.cat.reorder_categories(list(in_new_order))
    return trimmed


def _trimmed_index(index: Any) -> Any:
    """An index whose levels and categories have the values of the records alone."""
    import pandas as pd

    if isinstance(index, pd.MultiIndex):
        levels: list[Any] = []
        for level in range(index.nlevels):
            levels.append(_trimmed_index(index.get_level_values(level)))
        return pd.MultiIndex.from_arrays(levels, names=index.names)
    if isinstance(index, pd.CategoricalIndex):
        return index.remove_unused_categories()
    return index


# ------------------------------------------------------------------------ polars frames


# The frame and its columns are `Any`, because polars has no complete types.
@dataclass(frozen=True)
class PolarsFrame(NativeTable):
    """A DataFrame of polars as a `FrameAdapter`, whose methods have their documentation there."""

    @staticmethod
    def is_native(frame: Any) -> bool:
        """True for a table of this library."""
        return nw.dependencies.is_polars_dataframe(frame)

    @classmethod
    def adapt(cls, frame: Any) -> Self | None:
        """The adapter of a frame, whose columns are all ones that arrow can hold."""
        adapter = super().adapt(frame)
        if adapter is not None:
            for name, kind in nw.from_native(frame).schema.items():
                if kind in (nw.Int128, nw.UInt128):
                    raise not_a_symbol(name, "integers of 128 bits")
        return adapter

    def __len__(self) -> int:
        """The number of records."""
        return len(self.native)

    def column(self, at: int) -> Any:
        """A column as a Series."""
        return self.native.to_series(at)

    def cells(self, at: int) -> Any:
        """A column; text and integers as arrow has them, which are encoded soonest."""
        import polars as pl

        column = self.column(at)
        if column.dtype == pl.String or column.dtype.is_integer():
            return column.to_arrow()
        return column

    def arrow_columns(self) -> list[Any]:
        """The columns for hashing."""
        return list(self.native.to_arrow().columns)

    def index_names(self) -> list[Any]:
        """None: polars has no index."""
        return []

    def index_columns(self) -> list[Any]:
        """None: polars has no index."""
        return []

    def nested_schema(self) -> Any:
        """The arrow schema of the columns."""
        return self.native.head(0).to_arrow().schema

    def taken(self, places: Integers) -> PolarsFrame:
        """The records at these places."""
        return PolarsFrame(self.native[places])

    def selected(self, names: Sequence[Any]) -> Any:
        """The native frame with these columns alone."""
        return self.native.select(list(names))

    def assembled(self, columns: Sequence[Any], drawer: Drawer) -> PolarsFrame:
        """The output, of the columns under their new names."""
        # `alias` makes a column of another name from the same memory.
        named: list[Any] = []
        for part, column in zip(drawer.plan.columns, columns, strict=True):
            named.append(column.alias(part.name))
        return PolarsFrame(self.native.select(named))

    def finished(
        self, kept: Collection[Any], *, keep_index: bool, reordered: bool
    ) -> Any:
        """The frame, whose enumerations have the values of its records alone.

        A Categorical needs nothing: its values are in the process, and polars hands on those of
        the records. The values of an Enum are in the type of the column. There is no index to
        keep, and the values of an Enum have an order of their own, so `keep_index` and `reordered`
        change nothing.
        """
        import polars as pl

        trimmed: list[Any] = []
        for name in kept:
            column = self.native[name]
            if not isinstance(column.dtype, pl.Enum):
                continue
            present = set(column.unique().drop_nulls().to_list())
            declared = column.dtype.categories.to_list()
            if len(present) < len(declared):
                # In their old order, by which an Enum is compared and sorted.
                left = [value for value in declared if value in present]
                trimmed.append(column.cast(pl.Enum(left)))
        if not trimmed:
            return self.native
        return self.native.with_columns(trimmed)


# ------------------------------------------------------------------------- arrow frames

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
