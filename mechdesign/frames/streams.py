"""Sanitised tables of every kind; lazy ones, polars LazyFrames and DuckDB relations, batch by batch.

Those get the draws of frames and files.
"""

# duckdb, polars and pyarrow tell too little of their types for the strict mode.
# pyright: basic, reportMissingImports=false
from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Unpack

from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.frames.clusters import on_dask, on_spark
from mechdesign.frames.eager import (
    all_different,
    arrow_columns,
    header_of,
    look_at,
    sanitised,
)
from mechdesign.frames.frame_jobs import released_table, warnings_of_draws, weighed
from mechdesign.jobs.channel_recipe import OffersRecipe, recipe_of
from mechdesign.jobs.options import ReleaseKeywords, options_of
from mechdesign.jobs.recipe import Drawer, Recipe


def sanitise(
    frame: Any,
    channel: Channel | Sequence[Channel] | OffersRecipe,
    *,
    first_row: int = 0,
    **options: Unpack[ReleaseKeywords],
) -> Any:
    """The frame with each channel's X replaced by draws of Y; a new frame, and the old one stays as it is.

    Rows, their order, the index, and the other columns stay; a released column of categories is one of
    categories, with all labels. The draw of a record depends on nothing but the key, the channel, and the record's
    identity: its place in the frame, a number in a column, or the text of identifiers. So the same record gets the
    same draw here, in a file, on Spark and on Dask, if key and identity are the same.

    A key belongs to one data set: records of two data sets with the same row numbers under the same key would have
    draws that depend on each other. The guarantee covers the released column alone: other columns that stay in the
    frame and tell of S or X void it.

    Parameters
    ----------
    frame : pandas or polars DataFrame, pyarrow Table or RecordBatch; or, lazy, of polars, DuckDB, Spark or Dask
        Lazy tables come back lazy, need a key, and are released batch by batch whenever they are read; what is wrong
        with a record, and columns or an order that tell of X, are errors then (see `engine_errors`). Without `identity`
        and `row_numbers` their rows must have an order that stays: that of a file or table, filtered and projected, or
        in DuckDB one by ORDER BY without ties; those of Spark have none. A DuckDB relation comes back on a connection
        of its own; one made by ``connection.cursor()`` can be written to the database that it is read from.
    channel : Channel or sequence of Channel, or MechanismFile
        Channels each with columns of its own; or a mechanism for single records, which needs no key (for those that
        answer for groups see `answer_groups`).
    first_row : int
        Row number of the first record where the frame is a part of a table, and neither `identity` nor `row_numbers`
        is given.
    **options : fields of `ReleaseOptions`
        columns, key, ledger, identity, row_numbers, form, into, policy, keep_sensitive, correlated, drop, keep,
        shuffle, keep_order, changed, fresh_draw, insecure_seed; explained in
        ``help(mechdesign.jobs.options.ReleaseOptions)``.

    Raises
    ------
    InputError
        If this is no such frame, a column is not there or would stay and must not, a record has a symbol that the
        policy refuses, or no identity. The message names the column or the record.
    """
    import narwhals as nw

    asked = options_of("sanitise", ReleaseKeywords, options)
    if first_row and (asked.identifiers or asked.row_numbers is not None):
        raise InputError(
            "first_row numbers records by their place, but identity or row_numbers identify them"
        )
    recipe = recipe_of(channel, asked)
    if first_row and not recipe.draws:
        raise InputError("a mechanism draws nothing: leave out first_row")
    on_cluster = hasattr(frame, "mapInArrow") or hasattr(frame, "map_partitions")
    if (
        on_cluster
        or nw.dependencies.is_polars_lazyframe(frame)
        or nw.dependencies.is_duckdb_relation(frame)
    ):
        return _lazily(frame, recipe, first_row)
    header = header_of(frame)
    columns = arrow_columns(frame)
    if recipe.draws and first_row and asked.ledger is not None:
        raise InputError(
            "a ledger knows whole tables; give identity in place of first_row"
        )

    def release(drawer: Drawer) -> tuple[Any, list[str]]:
        released, notices = weighed(frame, columns, drawer, first_row)
        unrecorded = asked.ledger is None and asked.insecure_seed is None
        if recipe.draws and unrecorded and not first_row and len(frame):
            notices += warnings_of_draws(columns, len(frame), drawer)
        return released, notices

    released, notices = released_table(recipe, header, columns, len(frame), release)
    for notice in notices:
        warnings.warn(notice, stacklevel=2)
    return released


sanitise_spark = sanitise
sanitise_dask = sanitise
"""Older names of `sanitise`."""


_OURS = re.compile(
    r"^mechdesign\.(?:core\.errors\.InputError|jobs\.recipe\.BadRecord): (.*)$",
    re.MULTILINE,
)
"""The last line of the traceback that an engine sends of an error of this package."""


@contextmanager
def engine_errors() -> Iterator[None]:
    """What is wrong with a record when Spark or DuckDB computes a release, as an `InputError` of one line.

    >>> with engine_errors():
    ...     released.write_parquet("released.parquet")
    """
    try:
        yield
    except Exception as error:
        # Each engine has a class of its own for it, and none of them need be installed.
        found = _OURS.findall(str(error))
        if not found or isinstance(error, InputError):
            raise
        raise InputError(found[-1]) from None


spark_errors = engine_errors


def lazy_recipe(recipe: Recipe, header: Sequence[Any]) -> Recipe:
    """The recipe with a key for all times that a table is computed."""
    if recipe.options.shuffle:
        raise InputError(
            "the order of a lazy table is that of its engine, or of the partitions of a cluster: shuffle it there, "
            "before or after"
        )
    return recipe.for_lazy_table(header)


def _lazily(frame: Any, recipe: Recipe, first_row: int) -> Any:
    lazy, spark, dask = (
        hasattr(frame, a) for a in ("collect_schema", "mapInArrow", "map_partitions")
    )
    header = all_different(list(frame.collect_schema() if lazy else frame.columns))
    recipe = lazy_recipe(recipe, header)
    drawer = recipe.drawer(header)
    placed = (
        recipe.draws and not drawer.plan.identity and recipe.options.row_numbers is None
    )
    if placed and not dask and (spark or not _ordered(frame)):
        raise InputError(
            "the rows of this table have no order that stays: name what identifies a record with identity, or a column "
            "of row numbers that is stored with the data with row_numbers"
        )
    if spark:
        with engine_errors():
            return on_spark(frame, recipe, header)
    if dask:
        return on_dask(frame, recipe, header, first_row)
    empty = (
        frame.collect_schema().to_frame() if lazy else frame.limit(0).to_arrow_table()
    )
    schema = sanitised(empty, drawer).schema

    def released(parts: Iterable[Any]) -> Iterator[Any]:
        drawer, row = recipe.drawer(header), first_row
        for part in parts:
            yield sanitised(part, drawer, first_row=row)
            look_at(part, drawer)
            row += len(part)
        drawer.checks.refuse()

    if not lazy:
        import duckdb

        # On a connection of its own, for one answers one query at a time; types that arrow has not are restored.
        kept = {
            each.name: frame.types[each.source]
            for each in drawer.plan.columns
            if each.release is None
        }
        made = duckdb.connect().from_arrow(
            _Readable(schema, lambda: released(frame.to_arrow_reader()))
        )
        names = [name.replace('"', '""') for name in made.columns]
        kinds = [
            kept.get(name, kind)
            for name, kind in zip(made.columns, made.types, strict=True)
        ]
        cells = (
            f'"{name}"::{kind} as "{name}"'
            for name, kind in zip(names, kinds, strict=True)
        )
        return made.project(", ".join(cells))
    from polars.io.plugins import register_io_source

    def batches(
        columns: Any, predicate: Any, rows: int | None, size: int | None
    ) -> Iterator[Any]:
        wanted = frame if rows is None else frame.head(rows)
        for part in released(wanted.collect_batches(chunk_size=size)):
            some = part if predicate is None else part.filter(predicate)
            yield some if columns is None else some.select(columns)

    return register_io_source(batches, schema=schema, is_pure=True)


@dataclass(frozen=True)
class _Readable:
    """What DuckDB reads as often as it wants to; every time the same draws are made again."""

    schema: Any
    read: Callable[[], Iterator[Any]]

    def __arrow_c_schema__(self) -> Any:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        import pyarrow as pa

        reader = pa.RecordBatchReader.from_batches(self.schema, self.read())
        return reader.__arrow_c_stream__(requested_schema)


_IN_ORDER = re.compile(
    r"PROJECTION|FILTER|UNION|RANGE|READ_\w+|\w*SCAN|STREAMING_\w+|LIMIT"
)
"""Steps of DuckDB that keep the order of insertion."""

_KEEPING = re.compile(
    r"\s*(?:DF \[|(?!PYTHON)\w+ SCAN \[|PROJECT |ESTIMATED ROWS|SORT BY|FILTER |FROM$|SELECT \[|WITH_COLUMNS:$|\[|"
    r"SLICE|(?:END )?(?:UNION(?!\[maintain_order: false)|HCONCAT)|PLAN \d+:$|EXPLODE |UNPIVOT |UNNEST |ROW INDEX|"
    r"(?:AGGREGATE|UNIQUE)\[maintain_order: true|CACHE\[|hint\.|$)"
)
"""Lines of a plan of polars, all of them of steps that keep the order; what is not known may change it."""

_LOSING = re.compile(
    r"\.(?:shuffle|sample\w*|\w*unique|mode|value_counts|(?:top|bottom)_k\w*|map\w*|python\w*)\("
)
"""Expressions of polars whose rows may stand in another order, or be other ones, every time."""


def _ordered(frame: Any) -> bool:
    if hasattr(frame, "collect_schema"):
        plan: str = frame.explain(optimized=False)
        return all(map(_KEEPING.match, plan.splitlines())) and not _LOSING.search(plan)
    setting = frame.query(
        "mechdesign", "select current_setting('preserve_insertion_order')"
    )
    return setting.fetchall()[0][0] and all(
        map(_in_order, json.loads(frame.explain(format="json")))
    )


def _in_order(step: dict[str, Any]) -> bool:
    if step["name"] in ("ORDER_BY", "TOP_N"):
        return True
    known = (
        _IN_ORDER.fullmatch(step["name"]) and "Sample Method" not in step["extra_info"]
    )
    return bool(known) and all(map(_in_order, step["children"]))
