"""Sanitised polars LazyFrames and DuckDB relations: batch by batch, with the draws of frames and files."""

# duckdb, polars and pyarrow tell too little of their types for the strict mode.
# pyright: basic, reportMissingImports=false
from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from mechdesign.core.errors import InputError
from mechdesign.sanitise.frames import all_different, look_at, sanitised
from mechdesign.sanitise.job import Job
from mechdesign.sanitise.ledger import Ledger
from mechdesign.sanitise.recipe import Drawer, Recipe, without_table
from mechdesign.sanitise.writing import uses_of

LAZY = "a lazy table"
"""In the place of a path."""

_OURS = re.compile(
    r"^(?:Invalid Input Error: .*)?mechdesign\.(?:core\.errors\.InputError|sanitise\.recipe\.BadRecord): (.*)$",
    re.MULTILINE,
)
"""The last line of the traceback that an engine sends of an error of this package."""


@contextmanager
def engine_errors() -> Iterator[None]:
    """What is found wrong with a record when Spark or DuckDB computes a release, as an `InputError` of one line.

    >>> with engine_errors():
    ...     released.write_parquet("released.parquet")

    Raises
    ------
    InputError
        In place of the engine's exception with the tracebacks of Python and Java; other exceptions pass.
    """
    try:
        yield
    except Exception as error:
        found = _OURS.findall(str(error))
        if not found or isinstance(error, InputError):
            raise
        raise InputError(found[-1]) from None


def lazy_recipe(recipe: Recipe, header: Sequence[Any]) -> Recipe:
    """The recipe with a key for all times that a table is computed; of a ledger, which is told but sees no record."""
    options = recipe.options
    if options.shuffle:
        raise InputError(
            "the order of a lazy table is that of its engine, or of the partitions of a cluster: shuffle it there, "
            "before or after"
        )
    if recipe.keyless:
        raise InputError(
            "a lazy table is computed again whenever it is asked for, or a task repeated, and must draw the same: give "
            "a key (Key.fresh(), or the path of a key file), or a ledger"
        )
    lean = replace(recipe, channels=tuple(without_table(each, options) for each in recipe.channels))
    if options.ledger is None:
        return lean
    if not options.identifiers:
        raise InputError(
            "a ledger knows the records of a lazy table by identifiers alone: name them with identity"
        )
    uses = uses_of(recipe, recipe.plan(header), header)
    identity, fresh = options.identifiers, options.fresh_draw
    job = Job(Ledger(options.ledger), uses, identity=identity, fresh_draw=fresh, source=LAZY)
    entry = job.entry(LAZY, None, 0)
    job.finish(entry)
    job.done(entry)
    return replace(lean, keys=job.keys)


def sanitise_lazy(frame: Any, recipe: Recipe, first_row: int) -> Any:
    """The released LazyFrame or relation."""
    lazy = hasattr(frame, "collect_schema")
    empty = frame.collect_schema().to_frame() if lazy else frame.limit(0).to_arrow_table()
    header = all_different(list(empty.columns if lazy else empty.column_names))
    recipe = lazy_recipe(recipe, header)
    drawer = Drawer(recipe, header)
    if not drawer.plan.identity and recipe.options.row_numbers is None:
        _refuse_unordered(frame)
    schema = sanitised(empty, drawer).schema
    if not lazy:
        import duckdb

        # Of its own, for a connection answers one query at a time.
        return duckdb.connect().from_arrow(_Released(frame, recipe, header, schema, first_row))
    from polars.io.plugins import register_io_source

    def batches(columns: Any, predicate: Any, rows: int | None, size: int | None) -> Iterator[Any]:
        wanted = frame if rows is None else frame.head(rows)
        for part in _released(wanted.collect_batches(chunk_size=size), Drawer(recipe, header), first_row):
            some = part if predicate is None else part.filter(predicate)
            yield some if columns is None else some.select(columns)

    return register_io_source(batches, schema=schema, is_pure=True, explain_name="SANITISED")


def _released(parts: Iterable[Any], drawer: Drawer, first_row: int) -> Iterator[Any]:
    """The released parts of a table in their order; at the end, what they tell together is an error."""
    for part in parts:
        yield sanitised(part, drawer, first_row=first_row)
        look_at(part, drawer)
        first_row += len(part)
    drawer.refuse_twins()
    drawer.refuse_order()


class _Released:
    """What DuckDB reads as often as it wants to: every reading runs the relation, and draws the same again."""

    def __init__(
        self, relation: Any, recipe: Recipe, header: Sequence[Any], schema: Any, first_row: int
    ) -> None:
        self._relation, self._recipe, self._header = relation, recipe, header
        self._schema, self._first_row = schema, first_row

    def __arrow_c_schema__(self) -> Any:
        return self._schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        import pyarrow as pa

        parts = _released(
            self._relation.to_arrow_reader(), Drawer(self._recipe, self._header), self._first_row
        )
        return pa.RecordBatchReader.from_batches(self._schema, parts).__arrow_c_stream__(requested_schema)


_IN_ORDER = re.compile(r"PROJECTION|FILTER|UNION|RANGE|READ_\w+|\w*SCAN|STREAMING_\w+|LIMIT")
"""Steps of DuckDB that keep the order of insertion."""

_MIXED = re.compile(r"^\s*(?:[A-Z]+ JOIN\b|(?:AGGREGATE|UNIQUE)\[maintain_order: false)", re.MULTILINE)
"""Steps of polars after which the order may be another one every time."""


def _refuse_unordered(frame: Any) -> None:
    """Refuse to know records by their place where they may have another one the next time."""
    if hasattr(frame, "collect_schema"):
        ordered = not _MIXED.search(frame.explain(optimized=False))
    else:
        ordered = all(map(_in_order, json.loads(frame.explain(format="json"))))
        setting = frame.query("mechdesign", "select current_setting('preserve_insertion_order')")
        ordered = ordered and bool(setting.fetchall()[0][0])
    if not ordered:
        raise InputError(
            "the rows of this table have no order that stays: name what identifies a record with identity, or a column "
            "of row numbers that is stored with the data with row_numbers"
        )


def _in_order(step: dict[str, Any]) -> bool:
    if step["name"] in ("ORDER_BY", "TOP_N"):
        return True
    known = _IN_ORDER.fullmatch(step["name"]) and "Sample Method" not in step["extra_info"]
    return bool(known) and all(map(_in_order, step["children"]))
