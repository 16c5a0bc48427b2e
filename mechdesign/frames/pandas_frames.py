"""Frames of pandas, and of libraries that are like it.

A release takes three steps (`eager.sanitised`): it reads the `cells` of X, puts the drawn labels
into a shallow copy (`assembled`), and takes out what pandas holds beside the cells (`finished`).
That is more than the columns show: ``attrs`` may hold any note, and categories and levels of an
index keep values whose records are gone. For example, of a column with the categories a, b, c, in
which no record of the output has b, the categories a and c stay.
"""

# pandas has no complete types.
# pyright: basic
from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw

from mechdesign.core.integers import Integers
from mechdesign.frames.adapter import NativeTable
from mechdesign.jobs.recipe import Drawer


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
