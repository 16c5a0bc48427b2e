"""Relations of DuckDB, released batch by batch.

The relation is read twice and compared (`readings`), and then handed to DuckDB as a stream that
draws whenever it is read. The draw of a record depends on its place or identifier alone, so every
reading gives the same release.

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
from typing import Any, ClassVar

import narwhals as nw

from mechdesign.frames.adapter import NativeTable
from mechdesign.frames.eager import sanitised
from mechdesign.frames.readings import BatchRelease
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
        relation = _without_enumerations(self.native, drawer.plan.others)
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


def _without_enumerations(relation: Any, kept: Sequence[Any]) -> Any:
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
