"""Tables as scikit-learn hands them on: data frames, or arrays whose columns have no names.

A `LearningTable` gives both the same names and methods, so that `transformer` need not ask which it
has. The columns of an array get names here, and released symbols become numbers again where the
input had numbers.
"""

# pandas, polars and numpy have no complete types.
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mechdesign.formats.column_names import require_column
from mechdesign.frames.eager import FrameChecks, sanitised
from mechdesign.frames.libraries import adapter_of
from mechdesign.jobs.recipe import Drawer, DrawnColumn
from mechdesign.release.released_values import LABEL
from mechdesign.tables.rebuilding import rebuild


@dataclass(frozen=True)
class LearningTable:
    """Named columns: a data frame, or an array whose columns get names here."""

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
        data: Any
        if self.is_array:
            data = self.data[:, [self.names.index(name) for name in kept]]
        else:
            data = adapter_of(self.data).selected(kept)
        return LearningTable(tuple(kept), data)

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
            columns.append(rebuild(array[:, 0], column.codes, column.labels, part.name))
    kinds = {column.dtype.kind for column in columns}
    if len(kinds) > 1:
        columns = [column.astype(object) for column in columns]
    return np.column_stack(columns)


def _numbers(drawn: DrawnColumn, dtype: Any) -> Any:
    """Symbols that were written from numbers of this type, as numbers again; the empty symbol is
    NaN.
    """
    values: list[Any]
    if dtype.kind == "b":
        values = [label == "True" for label in drawn.labels]
    elif dtype.kind == "f":
        values = [float(label or "nan") for label in drawn.labels]
    else:
        values = [int(label) for label in drawn.labels]
    return np.array(values, dtype=dtype)[drawn.codes]
