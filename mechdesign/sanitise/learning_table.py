"""What scikit-learn hands to a transformer, a data frame or an array, as named columns."""

# pandas, polars and numpy tell too little of their types for the strict mode.
# pyright: basic
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mechdesign.cells import encode, require_column
from mechdesign.frames import rebuild
from mechdesign.joint import Joint
from mechdesign.release import LABEL
from mechdesign.sanitise.frame import header_of
from mechdesign.sanitise.recipe import Drawer, Drawn
from mechdesign.tally import Missing, Roles, Tally


@dataclass(frozen=True)
class LearningTable:
    """Named columns.

    Parameters
    ----------
    names : tuple of str
        Those of the frame; x0, x1, .. for an array.
    frame : pandas or polars DataFrame or pyarrow Table, or None
    array : (count, columns) array, or None
    """

    names: tuple[Any, ...]
    frame: Any = None
    array: Any = None

    @staticmethod
    def is_frame(table: Any) -> bool:
        """Whether it has named columns (else it is for scikit-learn to make an array of it)."""
        return hasattr(table, "columns") and (hasattr(table, "iloc") or hasattr(table, "schema"))

    @classmethod
    def of_frame(cls, frame: Any) -> LearningTable:
        """Raises InputError as `frame.header_of`."""
        return cls(tuple(header_of(frame)), frame=frame)

    @classmethod
    def of_array(cls, array: Any) -> LearningTable:
        """Of an array with two dimensions."""
        return cls(tuple(f"x{i}" for i in range(array.shape[1])), array=array)

    @property
    def count(self) -> int:
        """Number of records."""
        return len(self.array if self.frame is None else self.frame)

    def column(self, name: Any) -> Any:
        """The cells of a column.

        Raises
        ------
        InputError
            If there is none of this name.
        """
        require_column(name, self.names)
        return self.array[:, self.names.index(name)] if self.frame is None else self.frame[name]

    def counted(
        self, sensitive: Sequence[str], useful: Sequence[str], target: Any, missing: Missing
    ) -> Joint:
        """The joint table of the columns, or of `target` (called y) and the useful ones.

        Raises
        ------
        InputError
            If a column is not there, or the records make no table.
        """
        columns = [encode(self.column(name), name) for name in (*sensitive, *useful)]
        if target is not None:
            sensitive = (_free_name("y", self.names),)
            columns.insert(0, encode(target, sensitive[0]))
        tally = Tally(Roles(tuple(sensitive), tuple(useful)), missing)
        tally.add_columns(columns)
        return Joint.from_tally(tally)

    def without(self, names: Sequence[str]) -> LearningTable:
        """The table without these columns, as far as it has them."""
        gone = [name for name in names if name in self.names]
        if not gone:
            return self
        kept = [name for name in self.names if name not in gone]
        if self.frame is None:
            return LearningTable(tuple(kept), array=self.array[:, [self.names.index(name) for name in kept]])
        frame = self.frame.select(kept) if hasattr(self.frame, "select") else self.frame[kept]
        return LearningTable(tuple(kept), frame=frame)


def _free_name(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name += "_"
    return name


def released_array(table: LearningTable, drawer: Drawer) -> Any:
    """The released array: of the type of the input where all its values are of that type, else of objects."""
    array = table.array
    drawn = drawer.draw(lambda at: array[:, at], table.count)
    as_numbers = drawer.recipe.wishes.form != LABEL and array.dtype.kind in "iufb"
    columns = [
        array[:, column.source]
        if column.release is None
        else _numbers(drawn[column.release], array.dtype)
        if as_numbers
        else rebuild(array[:, 0], drawn[column.release].codes, drawn[column.release].labels, column.name)
        for column in drawer.plan.columns
    ]
    if len({column.dtype.kind for column in columns}) == 1:
        return np.column_stack(columns)
    result = np.empty((table.count, len(columns)), dtype=object)
    for i, column in enumerate(columns):
        result[:, i] = column
    return result


def _numbers(drawn: Drawn, dtype: Any) -> Any:
    """Symbols that were written from numbers of this type, as numbers again; the empty symbol is NaN."""
    if dtype.kind == "b":
        values = [label == "True" for label in drawn.labels]
    elif dtype.kind == "f":
        values = [float(label) if label else np.nan for label in drawn.labels]
    else:
        values = [int(label) for label in drawn.labels]
    return np.array(values, dtype=dtype)[drawn.codes]
