"""The cells of a wide table in any container, and the labels and titles that a data frame has.

`table_layout` looks at the type of the container once, and returns the cells as lists of rows with
the labels that it found. Cells stay Python values, of any type; `exact_table` makes exact integers
of them. Only frames of pandas have labels that are used, and pandas is looked up among the imported
modules, so it is not imported for the question.

For example, the cross table ``pd.crosstab(records.job, records.pain)`` becomes::

    cells          [[1, 0], [0, 2]]
    row_labels     ['clerk', 'nurse']      row_title     ('job',)
    column_labels  ['no', 'yes']           column_title  ('pain',)

The list [[1, 0], [0, 2]] has the same cells, None as labels, and the titles that the caller gave.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from mechdesign.core.errors import InputError


@dataclass(frozen=True)
class TableLayout:
    """A table of cells, all rows of one length.

    Labels are None, and titles are as the caller named them, where the container has none.
    """

    cells: list[list[Any]]
    row_labels: list[Any] | None
    column_labels: list[Any] | None
    row_title: str | Sequence[str]
    column_title: str | Sequence[str]


@runtime_checkable
class _HasNumpyArray(Protocol):
    """A container such as a frame of pandas or polars."""

    def to_numpy(self) -> Any: ...


def table_layout(
    table: Any, titles: tuple[str | Sequence[str], str | Sequence[str]]
) -> TableLayout:
    """The layout of nested sequences, a NumPy array, or a frame of pandas, polars or pyarrow.

    The default titles give way to the names of a pandas frame's axes, as of a cross table.
    """
    row_title, column_title = titles
    row_labels: list[Any] | None = None
    column_labels: list[Any] | None = None
    if _is_pandas_frame(table):
        row_labels = _labels_of(table.index)
        column_labels = _labels_of(table.columns)
        if row_title == "sensitive":
            row_title = _title_of(table.index) or row_title
        if column_title == "useful":
            column_title = _title_of(table.columns) or column_title
    return TableLayout(
        _cells_of(table), row_labels, column_labels, row_title, column_title
    )


def _is_pandas_frame(table: Any) -> bool:
    """Whether a table is a frame of pandas, which need not be installed."""
    # A frame exists only if pandas was imported.
    pandas: Any = sys.modules.get("pandas")
    return pandas is not None and isinstance(table, pandas.DataFrame)


def _labels_of(index: Any) -> list[Any] | None:
    """The labels of a pandas axis, None for the default 0, 1, 2, .."""
    pandas: Any = sys.modules["pandas"]
    return None if isinstance(index, pandas.RangeIndex) else list(index)


def _title_of(index: Any) -> tuple[str, ...] | None:
    """The names of all levels of a pandas axis, None unless all have one.

    An axis has several levels where a cross table crosses several columns.
    """
    if any(name is None for name in index.names):
        return None
    return tuple(map(str, index.names))


def _cells_of(table: Any) -> list[list[Any]]:
    """The cells of a table of any container as Python values; at least one."""
    # Frames of all libraries have this method, so the cells need no library by name.
    if isinstance(table, _HasNumpyArray):
        table = table.to_numpy()
    if not isinstance(table, np.ndarray):
        cells = _cells_of_rows(table)
    elif table.ndim != 2:
        raise InputError(
            f"the table must have two dimensions (sensitive, useful), not {table.ndim}"
        )
    else:
        cells = table.tolist()
    if not cells or not cells[0]:
        raise InputError(
            "the table is empty: it needs at least one sensitive row and one useful column"
        )
    return cells


def _cells_of_rows(table: Any) -> list[list[Any]]:
    """The cells of nested sequences, all of one length."""
    # NumPy would make texts, or doubles, of mixed and of large numbers.
    try:
        cells = list(map(list, table))
    except TypeError:
        raise InputError(
            f"the table must be rows of numbers, not {type(table).__name__}"
        ) from None
    for s, row in enumerate(cells):
        if len(row) != len(cells[0]):
            raise InputError(
                f"row {s} of the table has {len(row)} entries, row 0 has {len(cells[0])}"
            )
    return cells
