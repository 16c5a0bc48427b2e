"""A matrix of costs, from an array, a frame, a mapping or a file, as exact integers.

`read_costs` reads a file to a mapping, {x: {y: cost}}, and `exact_costs` makes integers over a
common unit of any of these. The file

    ,low,high
    low,0,0.5
    high,2,0

says that it costs 0.5 to release `high` for a record of `low`. Over the unit 2 its costs are the
integers ((0, 1), (4, 0)).
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.arguments import non_negative
from mechdesign.core.errors import InputError, errors_naming
from mechdesign.core.files import PathLike
from mechdesign.core.wording import listed, quoted
from mechdesign.formats.opening import all_rows, open_source
from mechdesign.formats.text_options import TextOptions
from mechdesign.tables.joint import Joint

COST = "the cost of releasing {} for {}"
"""Name of a cell in messages about a matrix of costs."""


def exact_costs(costs: Any, joint: Joint) -> tuple[NDArray[Any], int]:
    """Exact costs over a common unit.

    An array has the order of the symbols, a frame or a mapping has the symbols as labels.
    """
    names = joint.useful.names
    if hasattr(costs, "columns") and hasattr(costs, "index"):
        # A pandas frame, recognised by its shape: pandas need not be installed.
        costs = _mapping_of_frame(costs)
    if isinstance(costs, Mapping):
        rows = _rows_of_mapping(costs, names)
    elif isinstance(costs, list):
        rows = costs
    else:
        rows = np.asarray(costs).tolist()
    if not _is_square(rows, len(names)):
        raise InputError(
            f"the cost matrix must have a row and a column for each of the {len(names)} useful "
            "symbols, in their order"
        )
    exact: list[Fraction] = []
    for x, row in zip(names, rows, strict=True):
        for y, cell in zip(names, row, strict=True):
            exact.append(non_negative(cell, COST, y, x))
    # Python's integers, as a common denominator of many decimals may exceed 64 bits.
    unit = math.lcm(*(value.denominator for value in exact))
    units = np.array([int(value * unit) for value in exact], dtype=object)
    return units.reshape(len(names), -1), unit


def _mapping_of_frame(frame: Any) -> dict[str, dict[str, Any]]:
    """Costs by the labels of rows and columns of a pandas frame."""
    header = [str(name) for name in frame.columns]
    costs: dict[str, dict[str, Any]] = {}
    for label, row in zip(frame.index, frame.to_numpy().tolist(), strict=True):
        costs[str(label)] = dict(zip(header, row, strict=True))
    return costs


def _rows_of_mapping(
    costs: Mapping[str, Mapping[str, Any]], names: tuple[str, ...]
) -> list[list[Any]]:
    """Rows in the order of the symbols; InputError if the mapping lacks a symbol."""
    first_row = next(iter(costs.values()), {})
    for place, labels in (("row", costs), ("column", first_row)):
        missing = [name for name in names if name not in labels]
        if missing:
            raise InputError(
                f"the cost matrix has no {place} for the symbol {listed(missing)} of the table"
            )
    rows: list[list[Any]] = []
    for x in names:
        row = costs[x]
        # A cell that is missing in a later row becomes NaN, and the error about it names the cell.
        rows.append([row.get(y, math.nan) for y in names])
    return rows


def _is_square(rows: Any, n: int) -> bool:
    """Whether these are n lists of n cells."""
    if not isinstance(rows, list) or len(rows) != n:
        return False
    return all(isinstance(row, list) and len(row) == n for row in rows)


def read_costs(
    path: PathLike, text: TextOptions | None = None
) -> dict[str, dict[str, Fraction]]:
    """A matrix of costs from a CSV or Parquet file.

    The header has the released symbols, the first column the symbols of the table.

    Raises
    ------
    InputError
        If the file cannot be read, names a symbol twice, or has a cost that is negative or no
        number.
    """
    # The path comes from --objective, where a mistyped name of an objective is no file, either.
    if not os.path.exists(path) and path != "-":
        raise InputError(
            f"objective {quoted(path)} must be information, truth, distance, or a CSV file of costs"
        )
    with open_source(path, text, repeated_names=True) as source:
        header = list(source.header[1:])
        rows = all_rows(source)
    first_column = [row[0] for row in rows]
    for labels in (header, first_column):
        repeated = [name for name, times in Counter(labels).items() if times > 1]
        if repeated:
            raise InputError(
                f"{source.name}: the symbol {listed(repeated)} has two rows or two columns of costs"
            )
    costs: dict[str, dict[str, Fraction]] = {}
    with errors_naming(source.name):
        for x, *cells in rows:
            row: dict[str, Fraction] = {}
            for y, cell in zip(header, cells, strict=True):
                row[y] = non_negative(cell, COST, y, x)
            costs[x] = row
        return costs
