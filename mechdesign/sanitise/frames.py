"""Sanitised data frames: the same kind of frame back, with everything else in it as it was.

In arrow tables and batches all other columns are the same buffers, with their types and nulls. What a frame holds
beside its columns, in its index or inside of structures, is searched for sensitive values, too.
"""

# pyarrow tells too little of its types for the strict mode.
# pyright: basic
from __future__ import annotations

import secrets
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike
from mechdesign.core.integers import Integers
from mechdesign.core.numbers import at_most, quoted
from mechdesign.formats.cells import arrow_integers
from mechdesign.formats.digests import Content, Hashes, RowHasher
from mechdesign.formats.outputs import KeptColumn, Output, WrittenColumn, field_of, metadata_of
from mechdesign.formats.urls import FRAME
from mechdesign.sanitise.history import charged
from mechdesign.sanitise.job import KNOWN, Job, changes_told
from mechdesign.sanitise.keys import check_of
from mechdesign.sanitise.ledger import Ledger
from mechdesign.sanitise.numbers import NumbersDrawer
from mechdesign.sanitise.plan import Plan, lookalikes, refuse_inner
from mechdesign.sanitise.recipe import Drawer, Looks, Recipe, stands_for
from mechdesign.sanitise.shuffling import random_words
from mechdesign.sanitise.writing import uses_of
from mechdesign.tables.columns import arrow_type


def released_schema(schema: Any, drawer: Drawer) -> Any:
    """The schema of the output: labels in the place of X, all else as it was, notes on the columns kept true."""
    import pyarrow as pa

    outputs: list[Output] = []
    for column in drawer.plan.columns:
        if column.release is None:
            outputs.append(KeptColumn(column.source or 0))
        else:
            kind = drawer.own_type(column, lambda at: schema.field(at).type)
            like = schema.field(stands_for(drawer.plan, column)).type
            outputs.append(WrittenColumn(column.name, column.source, kind or arrow_type(like)))
    return pa.schema([field_of(output, schema) for output in outputs], metadata_of(schema, outputs))


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
    if arrow or hasattr(frame, "to_arrow"):  # columns of pandas hold no structures but Python's own
        schema = frame.schema if arrow else frame.head(0).to_arrow().schema
        refuse_inner(schema, {*plan.others} - {*recipe.options.kept}, secret, recipe.replaced)


def weighed(frame: Any, columns: Sequence[Any], drawer: Any, first_row: int) -> Any:
    """The released frame; refuses columns that give the released one away, and warns of an order that does."""
    released = sanitised(frame, drawer, first_row=first_row)
    look_at(frame, drawer)
    heed(drawer, 5)
    if not drawer.recipe.options.shuffle:
        return released
    key = drawer.recipe.keys[0].derived("order")
    content = RowHasher(key.secret).content(columns, len(frame))
    order = np.argsort(random_words(key.derived(content.ordered), 0, len(released)), kind="stable")
    # Row numbers that pandas gave the rows as an index are given anew.
    plain = type(getattr(frame, "index", None)).__name__ == "RangeIndex" and frame.index.name is None
    mixed = _rows(released, order)
    return mixed.reset_index(drop=True) if plain else mixed


def heed(drawer: Looks, level: int) -> None:
    """Refuse columns that give the released one away, and warn of an order that does."""
    drawer.refuse_twins()
    if (told := drawer.ordered()) is not None:
        warnings.warn(str(InputError(told)), stacklevel=level)


def _rows(frame: Any, at: Integers) -> Any:
    if hasattr(frame, "iloc"):
        return frame.iloc[at]
    return frame[at] if hasattr(frame, "to_series") else frame.take(arrow_integers(at))


def look_at(frame: Any, drawer: Looks) -> None:
    """See what the columns of the next part of a table tell of each other (`Drawer.look`)."""

    def some(step: int) -> Callable[[Any], Any]:
        columns = arrow_columns(_rows(frame, np.arange(0, len(frame), step)))
        return lambda name: columns[drawer.header.index(name)]

    drawer.look(len(frame), some)


REMEMBERED = 64
"""Releases of this process that are remembered (2 MB)."""

_HASHER = RowHasher(secrets.token_bytes(32))
_DRAWN = deque[tuple[str, tuple[str, ...], Content, Hashes]](maxlen=REMEMBERED)
"""Of each release its channel, its key and what identified the records, the records, and their first symbols."""

FIRST = 16
"""Records that tell the beginning of a table, which may be a part of it, from another part."""


def warn_of_draws(columns: Sequence[Any], records: int, drawer: Drawer) -> None:
    """Warn where this process has drawn for the same records before, or with the same row numbers for others."""
    content, recipe = _HASHER.content(columns, records), drawer.recipe
    how = (check_of(recipe.keys[0]), *recipe.options.identifiers)
    told: dict[str, None] = {}
    for release, places in zip(drawer.releases, drawer.plan.inputs, strict=True):
        name, size = release.digest, min(FIRST, records)
        start = _HASHER.columns([columns[at][:size] for at in places], size)
        for _, other, found, begin in [each for each in _DRAWN if each[0] == name]:
            size = min(len(begin), len(start))
            if other != how and (
                found.unordered == content.unordered or content.share_in([found.sample()]) >= KNOWN
            ):
                told[_TWICE] = None
            elif other == how and len(how) == 1 and recipe.options.row_numbers is None:
                told |= {} if np.array_equal(begin[:size], start[:size]) else {_ROWS: None}
        _DRAWN.append((name, how, content, start))
    for text in told:
        warnings.warn(text, stacklevel=4)


_TWICE = (
    "these records were released through this channel before in this process, and have now been drawn a second time, "
    "which can tell far more than the budget: give one key (key=..) and, if their order changes, what identifies them "
    "(identity=..), or a ledger (ledger=..)"
)

_ROWS = (
    "this key was used on other rows, or on rows in another order, which are known by their place alone: records get "
    "the random numbers of others, and those that come again a second draw; name what identifies them (identity=.. or "
    "row_numbers=..), or say where a part of a table begins (first_row=..)"
)


def by_ledger(
    columns: Sequence[Any],
    records: int,
    recipe: Recipe,
    header: Sequence[Any],
    release: Callable[[Drawer], Any],
    ledger: PathLike,
) -> Any:
    """What `release` gives with a drawer for the keys of a ledger, in which it is entered.

    Raises InputError if the records would be drawn a second time, and warns of what else is to be known.
    """
    book = Ledger(ledger)
    content = book.hasher.content(columns, records)
    uses = uses_of(recipe, recipe.plan(header), header)
    identity, fresh, channels = recipe.options.identifiers, recipe.options.fresh_draw, recipe.channels
    job = Job(
        book, uses, content=content, identity=identity, fresh_draw=fresh, source=FRAME, channels=channels
    )
    while (earlier := job.met(content)) is None:
        pass
    drawer = replace(recipe, keys=job.keys).drawer(header)
    job.prepare(drawer.releases)
    released = release(drawer)
    entry = job.entry(FRAME, None, content.records, content, earlier.joint)
    job.finish(entry, content, drawer.releases)
    job.done(entry)
    for notice in (*earlier.notices, *changes_told(drawer.releases)):
        warnings.warn(notice, stacklevel=3)
    return released


def quantised(frame: Any, columns: Sequence[Any], drawer: NumbersDrawer) -> Any:
    """The frame with numbers in cells; entered in a ledger, where one is named."""
    released, path = weighed(frame, columns, drawer, 0), drawer.recipe.options.ledger
    done = drawer.result(None)
    if path is not None:
        book = Ledger(path)
        done = charged(book, book.hasher.content(columns, len(frame)), done, source=FRAME, target=FRAME)
        if done.releases > 1:
            text = f"all {done.releases} releases of {quoted(done.column)} of these records together tell at most "
            warnings.warn(f"{text}{at_most(done.releases_epsilon or 0)} bits of one individual", stacklevel=3)
    return released


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
            raise InputError(f"the table must be a pandas, polars or pyarrow table; not {kind}") from None
        names = list(frame.columns)
    return all_different(names)


def all_different(names: list[Any]) -> list[Any]:
    """The names, which no two columns may share."""
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"two columns have the same name {quoted(twice)}; rename one")
    return names


def sanitised(frame: Any, drawer: Drawer, *, first_row: int = 0, numbers: Any = None) -> Any:
    """The released frame, by a drawer that was made for its header; parameters as those of `Drawer.draw`."""
    import narwhals as nw
    import pyarrow as pa

    refuse_hidden(frame, drawer.recipe, drawer.plan)
    is_arrow = isinstance(frame, (pa.Table, pa.RecordBatch))
    is_polars = not is_arrow and nw.get_native_namespace(frame).__name__ == "polars"

    def column(at: int) -> Any:
        return frame.column(at) if is_arrow else frame.to_series(at) if is_polars else frame.iloc[:, at]

    def cells(at: int) -> Any:
        """The column, text and integers as arrow has them, which are read soonest."""
        series: Any = nw.from_native(column(at), series_only=True, pass_through=is_arrow)
        plain = not is_arrow and (series.dtype == nw.String or series.dtype.is_integer())
        return series.to_arrow() if plain else column(at)

    drawn = drawer.draw(cells, len(frame), first_row=first_row, numbers=numbers)
    if drawer.dropped is not None:
        frame = _rows(frame, np.flatnonzero(~drawer.dropped))
    plan, header = drawer.plan, drawer.header
    columns: list[Any] = []
    for part in plan.columns:
        like = column(stands_for(plan, part))
        if part.release is not None:
            released = drawn[part.release]
            like = drawer.rebuild(like, released, part.name)
        columns.append(like.alias(part.name) if is_polars else like)
    if is_arrow:
        return type(frame).from_arrays(columns, schema=released_schema(frame.schema, drawer))
    if is_polars:
        return frame.select(columns)
    result = frame.copy(deep=False)
    for part, series in zip(plan.columns, columns, strict=True):
        if part.release is not None:
            result[part.name if part.source is None else header[part.source]] = series
    new = {header[part.source]: part.name for part in plan.columns if part.source is not None}
    gone = [name for name in header if name not in new]
    result = result.drop(columns=gone) if gone else result
    new = {old: name for old, name in new.items() if old != name}
    return result.rename(columns=new) if new else result
