"""DataFrames of polars, in memory.

A release takes three steps (`eager.sanitised`): it reads the `cells` of X, makes a frame of the
kept and the drawn columns (`assembled`), and takes out what polars holds beside the cells
(`finished`). That is little, because polars has no index and no notes. But an enumeration has all
its values in its type, also those that no record has any more. For example, the output has the
values a and c of an enumeration of a, b, c. It gets the enumeration of a and c, for b would tell
something about the whole table.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Self

import narwhals as nw

from mechdesign.core.integers import Integers
from mechdesign.formats.cells import not_a_symbol
from mechdesign.frames.adapter import NativeTable
from mechdesign.jobs.recipe import Drawer


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
