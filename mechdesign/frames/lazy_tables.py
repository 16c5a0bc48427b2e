"""The adapter of a lazy table, chosen by its engine, and the adapters of polars and DuckDB.

A lazy table is a plan that its engine computes whenever somebody reads it. Its release is one, too,
and draws at every reading, so the draws must be repeatable. `find_lazy_table` finds the adapter,
and `release_lazy_table` refuses what cannot be repeated before the adapter makes the release:

- without a key that lasts every reading would have other draws;
- the place of a row identifies it only where the engine keeps rows in an order.

*LazyFrames of polars* are released batch by batch. A LazyFrame is a query that runs when it is
collected. `PolarsLazyFrame.released` returns another one, which draws while it runs:

1. A frame without records is released. It gives the columns and types of the result, and what is
   wrong with them is an error at once.
2. The query is collected twice, in batches, and the readings compared (`readings`).
3. polars gets a source of its own (``register_io_source``). Whenever somebody collects it, polars
   calls `batches` with the columns, the condition and the number of first records that it wants.
   The query is then collected in batches. Each is checked against the first reading and drawn
   (`BatchRelease.parts`), and after that the condition and the columns are selected.

All collections have the same draws, for these depend on the place or the identifier of a record
alone. For example, ``released.filter(age > 60)`` draws all records and hands on some of them, so
the record in row 17 has the output there that it has in the whole. ``released.head(5)`` reads and
draws five records of the query, which are the first five of the whole.

*Relations of DuckDB* are released batch by batch. The relation is read twice and compared
(`readings`), and then handed to DuckDB as a stream that draws whenever it is read. The draw of a
record depends on its place or identifier alone, so every reading gives the same release.

`DuckDBRelation.released` draws a table without records for the schema, compares the two readings
(`BatchRelease`), and gives DuckDB a stream that it can open again and again (`_RepeatedStream`). At
last kept columns are cast to their old types, some of which arrow does not have. Kept enumerations
become text before all this, because their type names values that no record need have.
"""

# duckdb and pyarrow have no complete types.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import narwhals as nw

from mechdesign.core.errors import InputError
from mechdesign.frames.adapter import NativeTable
from mechdesign.frames.dask_frames import DaskFrame
from mechdesign.frames.eager import require_different_names, sanitised
from mechdesign.frames.readings import BatchRelease, has_places
from mechdesign.frames.spark_frames import SparkFrame
from mechdesign.jobs.recipe import Drawer, Recipe
from mechdesign.tables.rebuilding import own_type_of, type_note


@dataclass(frozen=True)
class DuckDBRelation(NativeTable):
    """A relation as a `LazyTable`."""

    rows_have_places: ClassVar[bool] = True

    @staticmethod
    def is_native(frame: Any) -> bool:
        """True for a table of this library."""
        return nw.dependencies.is_duckdb_relation(frame)

    def released(self, recipe: Recipe, first_row: int) -> tuple[Any, list[str]]:
        """The released relation, which draws whenever it is read, and notes on it.

        It is on a connection of its own, because a connection answers one query at a time.
        """
        import duckdb

        header = self.names
        drawer = recipe.drawer(header)
        relation = _relation_without_enumerations(self.native, drawer.plan.others)
        # A table without records gives the schema, and finds what is wrong with the types.
        empty = relation.limit(0).to_arrow_table()
        schema = sanitised(empty, drawer).schema
        release = BatchRelease(recipe, header, first_row)
        release.compare_readings(relation.to_arrow_reader)

        def read() -> Iterator[Any]:
            return release.parts(relation.to_arrow_reader(), whole=True)

        # `read` opens a reader of the relation each time, so no reading continues another one.
        result = duckdb.connect().from_arrow(_RepeatedStream(schema, read))
        kept_types = _kept_types(relation, drawer)
        own_types = _own_types(relation, drawer, empty.schema, schema)
        notes = dict(drawer.type_notes)
        places = {column.name: column.release for column in drawer.plan.columns}
        types: list[Any] = []
        for name, kind in zip(result.columns, result.types, strict=True):
            own = own_types.get(name, kind)
            # A missing cell is an empty text, which is no UUID.
            place = places[name]
            has_gaps = place is not None and "" in drawer.labels[place]
            no_uuid = own.id == "uuid" and has_gaps
            if str(own) != str(kind) and (no_uuid or own.id not in NOT_IN_ARROW):
                notes[str(type_note(name, own, kind))] = None
                own = kind
            types.append(kept_types.get(name, own))
        return _cast(result, types), [*notes]


@dataclass(frozen=True)
class _RepeatedStream:
    """A stream that DuckDB reads as often as it wants to; every time it has the same draws."""

    schema: Any
    read: Callable[[], Iterator[Any]]

    def __arrow_c_schema__(self) -> Any:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        import pyarrow as pa

        reader = pa.RecordBatchReader.from_batches(self.schema, self.read())
        return reader.__arrow_c_stream__(requested_schema)


def _kept_types(relation: Any, drawer: Drawer) -> dict[Any, Any]:
    """The types of the columns that stay: arrow has not all of them, and would return others."""
    types: dict[Any, Any] = {}
    for column in drawer.plan.columns:
        if column.release is None:
            types[column.name] = relation.types[column.source]
    return types


NOT_IN_ARROW = ("hugeint", "uhugeint", "uuid")
"""Types that arrow lacks, and to which DuckDB casts what arrow has in their place, exactly."""


def _own_types(
    relation: Any, drawer: Drawer, before: Any, after: Any
) -> dict[Any, Any]:
    """The types of the released columns that have the arrow type of their source.

    An enumeration has none, for it names values that no record need have.
    """
    types: dict[Any, Any] = {}
    for column in drawer.plan.columns:
        at = drawer.plan.origin(column)
        kind = relation.types[at]
        if column.release is None or kind.id == "enum":
            continue
        keeps_type = own_type_of(before.field(at).type) == after.field(column.name).type
        if keeps_type and drawer.writes_symbols(column):
            types[column.name] = kind
    return types


def _relation_without_enumerations(relation: Any, kept: Sequence[Any]) -> Any:
    """The relation with kept enumerations as text.

    The type of an enumeration names values that no record need have.
    """
    types: list[Any] = []
    for name, kind in zip(relation.columns, relation.types, strict=True):
        if name in kept and kind.id == "enum":
            types.append("VARCHAR")
        else:
            types.append(kind)
    if types == list(relation.types):
        return relation
    return _cast(relation, types)


def _cast(relation: Any, types: Sequence[Any]) -> Any:
    """The relation with its columns as these types."""
    cells: list[str] = []
    for name, kind in zip(relation.columns, types, strict=True):
        # In SQL a quote inside of a quoted name is doubled.
        identifier = '"' + name.replace('"', '""') + '"'
        cells.append(f"{identifier}::{kind} as {identifier}")
    return relation.project(", ".join(cells))


# -------------------------------------------------------------------------- lazy tables


@dataclass(frozen=True)
class PolarsLazyFrame(NativeTable):
    """A LazyFrame as a `LazyTable`."""

    rows_have_places: ClassVar[bool] = True

    @staticmethod
    def is_native(frame: Any) -> bool:
        """True for a table of this library."""
        return nw.dependencies.is_polars_lazyframe(frame)

    @property
    def names(self) -> list[Any]:
        """The names of the columns."""
        return list(self.native.collect_schema())

    def released(self, recipe: Recipe, first_row: int) -> tuple[Any, list[str]]:
        """The released LazyFrame, which draws whenever it is collected, and notes on it."""
        from polars.io.plugins import register_io_source

        header = self.names
        drawer = recipe.drawer(header)
        frame = _without_enumerations(self.native, drawer.plan.others)
        release = BatchRelease(recipe, header, first_row)
        empty = sanitised(frame.collect_schema().to_frame(), drawer)
        # Now, and not when the result is collected: a table that changes is refused at the call.
        release.compare_readings(frame.collect_batches)

        def batches(
            columns: Any, predicate: Any, rows: int | None, size: int | None
        ) -> Iterator[Any]:
            """What polars asks for: some columns of records, of the first `rows` alone."""
            source = frame
            if rows is not None:
                # Of the query itself: the places of the first records are the same in the whole.
                source = frame.head(rows)
            parts = source.collect_batches(chunk_size=size)
            # Filtered after the draw, for the place of a record in the whole table fixes its draw.
            # Columns last, for the condition may need others.
            for part in release.parts(parts, whole=rows is None):
                if predicate is not None:
                    part = part.filter(predicate)
                if columns is not None:
                    part = part.select(columns)
                yield part

        # Pure: polars may share one reading where a query has this source twice.
        lazy = register_io_source(batches, schema=empty.schema, is_pure=True)
        return lazy, [*drawer.type_notes]


def _without_enumerations(frame: Any, kept: tuple[Any, ...]) -> Any:
    """The frame with kept enumerations as text.

    The type of an enumeration names values that no record need have, and the type of a lazy column
    is fixed before its records are read.
    """
    import polars as pl

    schema = frame.collect_schema()
    names = [name for name in kept if isinstance(schema[name], pl.Enum)]
    if not names:
        return frame
    return frame.with_columns([pl.col(name).cast(pl.String) for name in names])


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

    def released(self, recipe: Recipe, first_row: int) -> tuple[Any, list[str]]:
        """The released table, still lazy, and notes on lost types and missing cells."""
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


def release_lazy_table(
    table: LazyTable, recipe: Recipe, first_row: int
) -> tuple[Any, list[str]]:
    """The released table, still lazy, and notes on lost types and missing cells.

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
