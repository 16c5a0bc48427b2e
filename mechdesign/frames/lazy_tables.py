"""The adapter of a lazy table, chosen once by the engine that the table is of.

A lazy table is a plan that its engine computes whenever somebody reads it. Its release is one, too,
and draws at every reading, so the draws must be repeatable. `find_lazy_table` finds the adapter,
and `release_lazy_table` refuses what cannot be repeated before the adapter makes the release:

- without a key that lasts every reading would have other draws;
- the place of a row identifies it only where the engine keeps rows in an order.
"""

# A table (`Any`) is of one of four engines, which have no type in common.
from __future__ import annotations

from typing import Any, ClassVar, Protocol

from mechdesign.core.errors import InputError
from mechdesign.frames.dask_frames import DaskFrame
from mechdesign.frames.duckdb_relations import DuckDBRelation
from mechdesign.frames.eager import require_different_names
from mechdesign.frames.polars_lazy import PolarsLazyFrame
from mechdesign.frames.readings import has_places
from mechdesign.frames.spark_frames import SparkFrame
from mechdesign.jobs.recipe import Recipe


class LazyTable(Protocol):
    """A lazy table of one engine."""

    rows_have_places: ClassVar[bool]
    """Whether rows can stand in an order, so that their places can identify them."""

    @classmethod
    def adapt(cls, frame: Any) -> LazyTable | None:
        """The adapter of a table; None if the table is of another engine."""
        ...

    @property
    def names(self) -> list[Any]:
        """The names of the columns."""
        ...

    def released(self, recipe: Recipe, first_row: int) -> Any:
        """The released table, still lazy."""
        ...


ADAPTERS: tuple[type[LazyTable], ...] = (
    PolarsLazyFrame,
    DuckDBRelation,
    DaskFrame,
    SparkFrame,
)
"""An engine more is an adapter more here."""


def find_lazy_table(frame: Any) -> LazyTable | None:
    """The adapter of a lazy table; None for anything else."""
    for kind in ADAPTERS:
        adapter = kind.adapt(frame)
        if adapter is not None:
            return adapter
    return None


def release_lazy_table(table: LazyTable, recipe: Recipe, first_row: int) -> Any:
    """The released table, still lazy.

    Raises
    ------
    InputError
        If nothing makes the draws repeatable, or the table itself is not.
    """
    header = require_different_names(table.names)
    if recipe.options.shuffle:
        raise InputError(
            "the order of a lazy table is that of its engine, or of the partitions of a cluster: "
            "shuffle it there, before or after"
        )
    # With a key that lasts: a fresh one would give other draws at every reading.
    lasting = recipe.for_lazy_table(header)
    if has_places(lasting.drawer(header)) and not table.rows_have_places:
        raise InputError(
            "the rows of this table have no order that stays: name what identifies a record with "
            "identity, or a column of row numbers that is stored with the data with row_numbers"
        )
    return table.released(lasting, first_row)
