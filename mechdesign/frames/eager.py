"""Sanitised data frames: the same kind of frame back, with everything else in it as it was.

In arrow tables and batches all other columns are the same buffers, with their types and nulls. What a frame holds
beside its columns, in its index or inside of structures, is searched for sensitive values, too.
"""

# pyarrow tells too little of its types for the strict mode.
# pyright: basic
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.core.wording import quoted
from mechdesign.formats.arrow_arrays import arrow_integers
from mechdesign.formats.outputs import (
    KeptColumn,
    Output,
    WrittenColumn,
    field_of,
    metadata_of,
)
from mechdesign.jobs.column_plan import Plan
from mechdesign.jobs.lookalikes import lookalikes, refuse_inner
from mechdesign.jobs.recipe import Drawer, Recipe
from mechdesign.tables.rebuilding import arrow_type


def released_schema(schema: Any, drawer: Drawer) -> Any:
    """The schema of the output: labels in the place of X, all else as it was, notes on the columns kept true."""
    import pyarrow as pa

    outputs: list[Output] = []
    for column in drawer.plan.columns:
        if column.release is None:
            outputs.append(KeptColumn(column.source or 0))
        else:
            kind = drawer.own_type(column, lambda at: schema.field(at).type)
            like = schema.field(drawer.plan.origin(column)).type
            outputs.append(
                WrittenColumn(column.name, column.source, kind or arrow_type(like))
            )
    return pa.schema(
        [field_of(output, schema) for output in outputs], metadata_of(schema, outputs)
    )


def refuse_hidden(frame: Any, recipe: Recipe, plan: Plan) -> None:
    """Refuse an index, or a field inside of a column, that is called like a sensitive column."""
    import pyarrow as pa

    if recipe.options.keep_sensitive:
        return
    secret, index = recipe.private_columns, getattr(frame, "index", None)  # of pandas
    names = [name for name in getattr(index, "names", ()) if name is not None]
    for name, like in lookalikes(names, secret, ()):
        raise InputError(
            f"the index {quoted(name)} looks like the sensitive column {quoted(like)} and would stay in the output; "
            "take it off (reset_index), or keep it knowingly (keep_sensitive)"
        )
    arrow = isinstance(frame, (pa.Table, pa.RecordBatch))
    if arrow or hasattr(
        frame, "to_arrow"
    ):  # columns of pandas hold no structures but Python's own
        schema = frame.schema if arrow else frame.head(0).to_arrow().schema
        refuse_inner(
            schema, {*plan.others} - {*recipe.options.kept}, secret, recipe.replaced
        )


def rows_of(frame: Any, at: Integers) -> Any:
    """The records of a frame at these places."""
    if hasattr(frame, "iloc"):
        return frame.iloc[at]
    return frame[at] if hasattr(frame, "to_series") else frame.take(arrow_integers(at))


def look_at(frame: Any, drawer: Drawer) -> None:
    """See what the columns of the next part of a table tell of each other (`DisclosureChecks.add`)."""

    def some(step: int) -> Callable[[Any], Any]:
        columns = arrow_columns(rows_of(frame, np.arange(0, len(frame), step)))
        return lambda name: columns[drawer.header.index(name)]

    drawer.checks.add(len(frame), some)


def arrow_columns(frame: Any) -> list[Any]:
    """The columns of a frame, for hashing; those that arrow does not hold count as empty."""
    import pyarrow as pa

    if hasattr(frame, "to_arrow") or isinstance(frame, (pa.Table, pa.RecordBatch)):
        return list((frame.to_arrow() if hasattr(frame, "to_arrow") else frame).columns)
    columns: list[Any] = []
    for at in range(frame.shape[1]):
        try:
            columns.append(pa.Array.from_pandas(frame.iloc[:, at]))
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            columns.append(pa.nulls(len(frame)))
    return columns


def header_of(frame: Any) -> list[Any]:
    """The column names of a frame."""
    import narwhals as nw
    import pyarrow as pa

    if isinstance(frame, (pa.Table, pa.RecordBatch)):
        names = list(frame.schema.names)
    else:
        try:
            nw.from_native(frame, eager_only=True)
        except nw.exceptions.DuplicateError:
            pass
        except TypeError:
            kind = type(frame).__name__
            raise InputError(
                f"the table must be a pandas, polars or pyarrow table; not {kind}"
            ) from None
        names = list(frame.columns)
    return all_different(names)


def all_different(names: list[Any]) -> list[Any]:
    """The names, which no two columns may share."""
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"two columns have the same name {quoted(twice)}; rename one")
    return names


def sanitised(frame: Any, drawer: Drawer, *, first_row: int = 0) -> Any:
    """The released frame, by a drawer that was made for its header; parameters as those of `Drawer.draw`."""
    import narwhals as nw
    import pyarrow as pa

    refuse_hidden(frame, drawer.recipe, drawer.plan)
    is_arrow = isinstance(frame, (pa.Table, pa.RecordBatch))
    is_polars = not is_arrow and nw.get_native_namespace(frame).__name__ == "polars"

    def column(at: int) -> Any:
        return (
            frame.column(at)
            if is_arrow
            else frame.to_series(at)
            if is_polars
            else frame.iloc[:, at]
        )

    def cells(at: int) -> Any:
        """The column, text and integers as arrow has them, which are read soonest."""
        series: Any = nw.from_native(
            column(at), series_only=True, pass_through=is_arrow
        )
        plain = not is_arrow and (
            series.dtype == nw.String or series.dtype.is_integer()
        )
        return series.to_arrow() if plain else column(at)

    drawn = drawer.draw(cells, len(frame), first_row=first_row)
    if drawer.dropped is not None:
        frame = rows_of(frame, np.flatnonzero(~drawer.dropped))
    plan, header = drawer.plan, drawer.header
    columns: list[Any] = []
    for part in plan.columns:
        like = column(plan.origin(part))
        if part.release is not None:
            released = drawn[part.release]
            like = drawer.rebuild(like, released, part.name)
        columns.append(like.alias(part.name) if is_polars else like)
    if is_arrow:
        return type(frame).from_arrays(
            columns, schema=released_schema(frame.schema, drawer)
        )
    if is_polars:
        return frame.select(columns)
    result = frame.copy(deep=False)
    for part, series in zip(plan.columns, columns, strict=True):
        if part.release is not None:
            result[part.name if part.source is None else header[part.source]] = series
    new = {
        header[part.source]: part.name
        for part in plan.columns
        if part.source is not None
    }
    gone = [name for name in header if name not in new]
    result = result.drop(columns=gone) if gone else result
    new = {old: name for old, name in new.items() if old != name}
    return result.rename(columns=new) if new else result
