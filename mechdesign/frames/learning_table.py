"""Tables as scikit-learn hands them on: data frames, or arrays whose columns have no names.

A `LearningTable` gives both the same names and methods, so that `transformer` need not ask which it
has. Its names are those of the frame, or x0, x1, .. for an array. In an array of numbers, released
symbols become numbers again unless labels are released (`form`): the symbols '17' and '40' are 17
and 40 in an array of integers. Labels such as '{17, 40}' make it an array of objects where other
columns are numbers, because numpy would turn these into texts.
"""

# pandas, polars and numpy have no complete types.
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mechdesign.formats.cells import Encoded, encode
from mechdesign.formats.column_names import require_column
from mechdesign.frames.eager import FrameChecks, adapter_of, sanitised
from mechdesign.frames.people_guard import FIRST_RECORDS, refuse_people_of_frame
from mechdesign.jobs.people_run import refuse_people
from mechdesign.jobs.recipe import Drawer, DrawnColumn, Recipe
from mechdesign.release.released_values import LABEL


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
