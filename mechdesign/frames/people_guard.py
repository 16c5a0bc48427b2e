"""People with several records in frames: what designs, releases and draws of frames say of them.

The rule is that of files (`jobs.people_guard`): columns that stay, what identifies records, and the
order tell which records are of one person. The index of a frame of pandas is one more column.
`design` with a frame says what it finds (`people_message`); releases, transformers and
`Channel.apply` refuse it.

*Tables as scikit-learn hands them on* are data frames, or arrays whose columns have no names. A
`LearningTable` gives both the same names and methods, so that `transformer` need not ask which it
has. Its names are those of the frame, or x0, x1, .. for an array. In an array of numbers, released
symbols become numbers again unless labels are released (`form`): the symbols '17' and '40' are 17
and 40 in an array of integers. Labels such as '{17, 40}' make it an array of objects where other
columns are numbers, because numpy would turn these into texts.
"""

# The frames are those of seven libraries, which have no type in common.
# pyright: basic

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.formats.cells import Encoded, encode, encode_anything
from mechdesign.formats.column_names import require_column, require_text_names
from mechdesign.frames.adapter import keeps_index, level_titles
from mechdesign.frames.eager import (
    FrameChecks,
    adapter_of,
    find_adapter,
    header_of,
    sanitised,
)
from mechdesign.frames.lazy_tables import LazyTable
from mechdesign.frames.spark_frames import SparkFrame
from mechdesign.jobs.channel_recipe import recipe_of
from mechdesign.jobs.options import ReleaseOptions
from mechdesign.jobs.people_run import Read, refuse_people
from mechdesign.jobs.recipe import Drawer, DrawnColumn, Recipe
from mechdesign.leaks.people_notice import (
    PeopleFound,
    people_in,
    people_notice,
    reach_in,
)
from mechdesign.leaks.person_columns import may_name_people, may_name_people_by
from mechdesign.release.released_values import LABEL
from mechdesign.tables.people import MOST_RECORDS, RECORD

VALUE = "mechdesign: value"
RECORDS_OF_VALUE = "mechdesign: records"
"""Columns of values and counts in the plan of an engine."""

FIRST_RECORDS = 10_000
"""So many records show whether people stand in an order: dozens of them, with all their records."""

NOT_LOOKED_AT = (
    "nobody looked whether people have several records in this stream, whose records cannot be "
    "counted: where they have, all of them together tell more than the promise about one record "
    "(unit='record' says that such a promise is meant)"
)
"""What is said of a stream of Spark."""


def refuse_people_of_frame(
    frame: Any, recipe: Recipe, *, can_shuffle: bool = True
) -> None:
    """Raise InputError where a frame in memory tells which records are of one person
    (`refuse_people`), by a column, its index, or the order of its records.
    """
    adapter = find_adapter(frame)
    if adapter is None:
        return
    header = header_of(frame)
    cells = dict(zip(header, adapter.arrow_columns(), strict=True))
    levels = dict(zip(level_titles(adapter), adapter.index_columns(), strict=True))
    stays = tuple(levels) if keeps_index(adapter, recipe.options) else ()
    cells |= levels

    def read(names: Sequence[str], records: int | None = None) -> dict[str, Encoded]:
        return {name: encode_anything(cells[name][:records], name) for name in names}

    first = partial(read, records=FIRST_RECORDS)
    refuse_people(
        recipe, list(cells), read, first, stays=stays, can_shuffle=can_shuffle
    )


def refuse_people_of_draw(channel: Channel, records: Any, unit: str | None) -> None:
    """The same for `apply` of a channel: released columns alone come out, in the old order; a
    column of pandas has its index.
    """
    is_column = not hasattr(records, "columns")
    if is_column:
        if not hasattr(records, "index") or not hasattr(records, "to_frame"):
            return
        released = (*channel.given_columns, *channel.randomised_columns)
        # Of several columns a column has tuples.
        if len(released) != 1:
            return
        records = records.to_frame(released[0])
    options = ReleaseOptions(unit=unit, keep_index=is_column)
    recipe = recipe_of(channel, options)
    refuse_people_of_frame(records, recipe, can_shuffle=False)


def refuse_people_of_lazy_table(frame: Any, lazy: LazyTable, recipe: Recipe) -> None:
    """The same for the table of an engine, which counts the values of each column; only those that
    can name people are read. A stream cannot be counted, and a warning says so.
    """
    has_order = not isinstance(lazy, SparkFrame)
    if not has_order and frame.isStreaming:
        if recipe.draws and recipe.options.unit != RECORD:
            warnings.warn(NOT_LOOKED_AT, stacklevel=3)
        return
    table = _lazy(frame)

    def read(names: Sequence[str], records: int | None = None) -> dict[str, Encoded]:
        part = table.select(*names)
        if records is not None:
            part = part.head(records)
        columns = part.collect("pyarrow").to_native()
        return {name: encode_anything(columns.column(name), name) for name in names}

    first: Read | None = partial(read, records=FIRST_RECORDS) if has_order else None
    counted = _counted_by(table)
    refuse_people(recipe, lazy.names, read, first, counted, can_shuffle=False)


def people_message(
    frame: Any,
    sensitive: Sequence[str],
    released: Sequence[str],
    channel: Channel,
) -> str | None:
    """What `design` says of a frame in which people have several records; None where none have.

    Parameters
    ----------
    frame : table of any library or engine, or path of a file
    sensitive, released : sequence of str
    channel : Channel
        For its records.
    """
    # One column released alone has a promise for each of its values, whatever it names.
    left_out = {*sensitive, *(released if len(released) == 1 else ())}
    if isinstance(frame, (str, Path)):
        found = people_in(frame, sensitive, but=tuple(left_out))
    else:
        found = _people_of(frame, sensitive, released, left_out)
    if found is None:
        return None
    reach = None
    # The symbols of boxes are no cells of the table, so that nothing is known of them.
    if len(channel.channels) == 1:
        reach = reach_in(found, channel.channels[0])
    # As an error of this package it speaks of keywords, not of options.
    return str(InputError(people_notice(found, sensitive, reach)))


def _people_of(
    frame: Any,
    sensitive: Sequence[str],
    released: Sequence[str],
    left_out: Collection[str],
) -> PeopleFound | None:
    """The people of a table of any library or engine, by other columns than those left out."""
    adapter = find_adapter(frame)
    if adapter is not None and any(name is not None for name in adapter.index_names()):
        with suppress(ValueError):
            # A level of the name of a column is that column once more.
            frame = frame.reset_index()
    table = _lazy(frame)
    comes_again = _counted_by(table)
    names: list[str] = []
    schema: Any = table.collect_schema()
    # narwhals would take a tuple for several names.
    require_text_names(name for name in schema.names() if isinstance(name, tuple))
    for name, kind in schema.items():
        # Lists and bytes name nobody.
        if name in left_out or kind.is_nested() or kind == nw.Binary:
            continue
        # Nor do objects of Python that cannot be counted.
        with suppress(TypeError):
            try:
                may_name_them = comes_again(name)
            except NotImplementedError:
                may_name_them = _comes_again_in_memory(table, name)
            if may_name_them:
                names.append(name)
    if not names:
        return None
    needed = list(dict.fromkeys([*names, *sensitive, *released]))
    read = table.select(*needed).collect("pyarrow").to_native()
    return people_in(read, sensitive, among=names)


def _lazy(frame: Any) -> Any:
    """A table of any library or engine as a lazy one of narwhals."""
    with warnings.catch_warnings():
        # narwhals announces that its part for Dask moves to another package.
        warnings.simplefilter("ignore", FutureWarning)
        return nw.from_native(frame).lazy()


def _counted_by(table: Any) -> Callable[[str], bool]:
    """Whether the values of a column of a lazy table of narwhals can be those of people."""

    def comes_again(name: str) -> bool:
        # narwhals takes no empty name for a group, and a column of a frame may have it.
        column = table.select(nw.col(name).alias(VALUE))
        sizes = column.group_by(VALUE).agg(nw.len().alias(RECORDS_OF_VALUE))
        size = nw.col(RECORDS_OF_VALUE)
        figures = (size.sum().alias("all"), nw.len().alias("values"))
        repeated = sizes.filter(size > 1).select(*figures)
        large = sizes.filter(size > MOST_RECORDS).select(*figures)
        all_records = table.select(nw.len().alias("all"))
        (of_repeated,) = repeated.collect("pyarrow").to_native().to_pylist()
        (of_large,) = large.collect("pyarrow").to_native().to_pylist()
        (of_all,) = all_records.collect("pyarrow").to_native().to_pylist()
        return may_name_people_by(
            values=int(of_repeated["values"]),
            repeated=int(of_repeated["all"] or 0),
            large=int(of_large["values"]),
            of_large=int(of_large["all"] or 0),
            records=int(of_all["all"]),
        )

    return comes_again


def _comes_again_in_memory(table: Any, name: str) -> bool:
    """The same of a column of a type that its library does not group.

    pandas groups no 16-bit floats, and pyarrow no views of text.
    """
    column = table.select(nw.col(name).alias(VALUE)).collect().to_native()[VALUE]
    codes = encode_anything(column, name).codes
    # The code -1 of an empty cell is no index.
    sizes = np.bincount(codes + 1)
    return may_name_people(sizes[sizes > 1], len(codes))


# ----------------------------------------------------------------------- learning table


@dataclass(frozen=True)
class LearningTable:
    """Named columns: a data frame, or an array with a name for each column."""

    names: tuple[Any, ...]
    data: Any

    @property
    def is_array(self) -> bool:
        """Whether it is an array, and no data frame."""
        return isinstance(self.data, np.ndarray)

    def column(self, name: Any) -> Any:
        """The cells of a column."""
        require_column(name, self.names)
        if self.is_array:
            return self.data[:, self.names.index(name)]
        return self.data[name]

    def columns(self) -> Any:
        """All columns, for hashing."""
        if self.is_array:
            return self.data.T
        return adapter_of(self.data).arrow_columns()

    def without(self, names: Sequence[str]) -> LearningTable:
        """The table without these columns, as far as it has them."""
        kept = [name for name in self.names if name not in names]
        if not self.is_array:
            return LearningTable(tuple(kept), adapter_of(self.data).selected(kept))
        places = list(map(self.names.index, kept))
        return LearningTable(tuple(kept), self.data[:, places])

    def refuse_people(self, recipe: Recipe) -> None:
        """Raise InputError where the table tells which records are of one person."""
        if not self.is_array:
            refuse_people_of_frame(self.data, recipe, can_shuffle=False)
            return

        def read(
            names: Sequence[str], records: int | None = None
        ) -> dict[str, Encoded]:
            return {name: encode(self.column(name)[:records], name) for name in names}

        first = partial(read, records=FIRST_RECORDS)
        refuse_people(recipe, self.names, read, first, can_shuffle=False)

    def released(self, drawer: Drawer) -> tuple[Any, FrameChecks]:
        """The released frame or array, and the checks of its columns."""
        checks = FrameChecks(drawer)
        if not self.is_array:
            released = sanitised(self.data, drawer)
            checks.add(self.data)
            return released, checks
        released = _released_array(self.data, drawer)
        drawer.checks.add(
            len(self.data), lambda step: lambda name: self.column(name)[::step]
        )
        return released, checks


def _released_array(array: Any, drawer: Drawer) -> Any:
    """The released array: of the type of the input where all its values are of that type, else of
    objects.
    """
    drawn = drawer.draw(lambda at: array[:, at], len(array))
    is_numeric = array.dtype.kind in "iufb"
    as_numbers = drawer.recipe.options.form != LABEL and is_numeric
    columns: list[Any] = []
    for part in drawer.plan.columns:
        if part.release is None:
            columns.append(array[:, part.source])
            continue
        column = drawn[part.release]
        if as_numbers:
            columns.append(_numbers(column, array.dtype))
        else:
            source = array[:, drawer.plan.origin(part)]
            columns.append(drawer.rebuild(source, column, part.name))
    kinds = {column.dtype.kind for column in columns}
    if len(kinds) > 1:
        # numpy would turn numbers beside texts into texts.
        columns = [column.astype(object) for column in columns]
    return np.column_stack(columns)


def _numbers(drawn: DrawnColumn, dtype: Any) -> Any:
    """Symbols that were written from numbers of this type, as numbers again; the empty symbol is
    NaN.
    """
    # The distinct symbols are read once, then repeated by their codes.
    values = [_number_of(label, dtype.kind) for label in drawn.labels]
    return np.array(values, dtype=dtype)[drawn.codes]


def _number_of(label: str, kind: str) -> bool | float | int:
    """The value of a symbol; `kind` is numpy's letter for the type of the array."""
    if kind == "b":
        return label == "True"
    if kind == "f":
        return float(label or "nan")
    return int(label)
