"""Linear queries of the frequencies of the useful symbols: named ones, one's own, those of a file.

With the frequencies p (|X|,), the answers of the queries Q (m, |X|) are Q p. For three symbols 1 <
2 < 3 the named queries are

    frequencies   (1, 0, 0), (0, 1, 0), (0, 0, 1)      the share of each symbol
    prefix        (1, 0, 0), (1, 1, 0), (1, 1, 1)      the share up to each symbol
    ranges        those of prefix, and (0, 1, 0), (0, 1, 1), (0, 0, 1)

and a file with the query (1, 1, 0), where a symbol without a column counts as zero, is

    query,1,2
    up to two,1,1

`queries_of` makes the `Queries` of an objective, `read_queries` those of a file. `query_design`
designs a channel for them, and `estimate` answers those of a file (`coefficients_in`).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from mechdesign.core.arguments import fraction_of, repeated
from mechdesign.core.errors import InputError, errors_naming
from mechdesign.core.files import PathLike
from mechdesign.core.wording import listed, quoted
from mechdesign.formats.csv_text import TextOptions
from mechdesign.formats.opening import all_rows, open_beside
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import numbers_of
from solvers import Array

FREQUENCIES = "frequencies"
PREFIX = "prefix"
RANGES = "ranges"
QUERIES = "queries"

NAMED_QUERIES = (FREQUENCIES, PREFIX, RANGES)

TASK = "task"

PURPOSES = (*NAMED_QUERIES, TASK)
"""Purposes with names; queries of one's own come from a file or as `Queries`."""

QUERY_COLUMN = "query"
"""Header of the first column of a file of queries, which tells it from a matrix of costs."""


@dataclass(frozen=True, eq=False)
class Queries:
    """Linear queries ``Q p`` of the frequencies p of the useful symbols.

    Parameters
    ----------
    matrix : (m, |X|) array
        A row for each query, a column for each symbol in the order of the table.
    name : str
        How results call them.
    """

    matrix: Array
    name: str = QUERIES

    def __post_init__(self) -> None:
        try:
            matrix = np.array(self.matrix, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(
                "queries must be numbers: a row for each query, a column for each symbol"
            ) from None
        if matrix.ndim != 2 or not matrix.size:
            raise InputError(
                "queries must be a table of numbers: a row for each query, a column for each symbol"
            )
        if not np.isfinite(matrix).all():
            raise InputError("the coefficients of queries must be finite numbers")
        if not matrix.any():
            raise InputError("all coefficients of the queries are zero")
        object.__setattr__(self, "matrix", matrix)

    @property
    def gram(self) -> Array:
        """Q^T Q, (|X|, |X|): the total variance depends on the queries through it alone."""
        if self.name == FREQUENCIES:
            return self.matrix
        return self.matrix.T @ self.matrix


def queries_of(objective: str | Queries, joint: Joint) -> tuple[Queries, str | None]:
    """The queries of an objective on the symbols of a table, and a remark on their order.

    Raises
    ------
    InputError
        If queries have another number of columns than the table has symbols.
    """
    n = len(joint.useful)
    if isinstance(objective, Queries):
        if objective.matrix.shape[1] != n:
            raise InputError(
                f"queries must have a column for each of the {n} useful symbols, not "
                f"{objective.matrix.shape[1]}"
            )
        return objective, None
    if objective == FREQUENCIES:
        return Queries(np.eye(n), FREQUENCIES), None
    order, remark = _order(joint)
    prefixes = np.tril(np.ones((n, n)))
    parts = [prefixes]
    if objective == RANGES:
        for first in range(1, n):
            # Ranges that begin at a later symbol: differences of two prefixes.
            parts.append(prefixes[first:] - prefixes[first - 1])
    # From the order of the numbers to that of the table.
    ordered = np.vstack(parts)
    matrix = np.zeros_like(ordered)
    matrix[:, order] = ordered
    return Queries(matrix, objective), remark


def _order(joint: Joint) -> tuple[list[int], str | None]:
    """Positions of the symbols from the least to the largest: by number, else as in the table."""
    n = len(joint.useful)
    values: list[Any] = [None]
    if len(joint.useful.columns) == 1:
        try:
            values = list(numbers_of(joint.useful))
        except InputError:
            values = [None]
    if any(value is None for value in values):
        remark = (
            f"{joint.useful.columns[0]} holds no numbers: prefixes and ranges follow the order of "
            "its symbols as text"
        )
        return list(range(n)), remark
    return sorted(range(n), key=lambda x: values[x]), None


def read_queries(
    path: PathLike, symbols: tuple[str, ...], text: TextOptions | None = None
) -> Queries:
    """Queries from a CSV or Parquet file: a row for each, a column for each symbol.

    The first column holds the names of the queries under the header `query`; symbols that have no
    column count as zero.

    Raises
    ------
    InputError
        If the file cannot be read, names a symbol that the table does not have, or has a cell that
        is no number.
    """
    _, matrix = _names_and_matrix(path, symbols, text)
    with errors_naming(os.fspath(path)):
        return Queries(matrix)


def coefficients_in(
    path: PathLike, symbols: tuple[str, ...], text: TextOptions | None = None
) -> dict[str, dict[str, float]]:
    """The coefficient of each symbol in each query of a file, by the name of the query.

    Raises
    ------
    InputError
        As `read_queries`, and if two queries have one name, or the file holds no queries.
    """
    # A file that is not there is named as such when it is opened.
    if os.path.exists(path) and not is_queries_file(path, text):
        raise InputError(
            f"{path} is no file of queries: its first column must be called 'query', and hold "
            "their names"
        )
    names, matrix = _names_and_matrix(path, symbols, text)
    twice = repeated(names)
    if twice is not None:
        raise InputError(f"{path}: two queries are called {quoted(twice)}; rename one")
    answers: dict[str, dict[str, float]] = {}
    for name, row in zip(names, matrix.tolist(), strict=True):
        answers[name] = dict(zip(symbols, row, strict=True))
    return answers


def _names_and_matrix(
    path: PathLike, symbols: tuple[str, ...], text: TextOptions | None
) -> tuple[list[str], Array]:
    """The names of the queries in a file, and a row of coefficients of all symbols for each."""
    # Names may repeat here, so that the message below speaks of symbols and not of columns.
    with open_beside(path, text) as source:
        header = list(source.header)
        rows = all_rows(source)
    with errors_naming(source.name):
        doubled = sorted({name for name in header if header.count(name) > 1})
        if doubled:
            raise InputError(f"the symbol {listed(doubled)} has two columns")
        unknown = [name for name in header[1:] if name not in symbols]
        if unknown:
            raise InputError(
                f"the queries name {listed(unknown)}, which is no symbol of the table"
            )
        if not rows:
            raise InputError("the file has no query: give a row for each")
        matrix = np.zeros((len(rows), len(symbols)))
        columns = [symbols.index(name) for name in header[1:]]
        for number, row in enumerate(rows):
            for column, cell in zip(columns, row[1:], strict=True):
                matrix[number, column] = _coefficient(cell, row[0], symbols[column])
        return [row[0] for row in rows], matrix


def _coefficient(cell: str, query: str, symbol: str) -> float:
    """The number in a cell; InputError with the names of its query and symbol if it is none."""
    try:
        return float(fraction_of(cell))
    except (InputError, OverflowError):
        raise InputError(
            f"the coefficient of {quoted(symbol)} in the query {quoted(query)} must be a number"
        ) from None


def is_queries_file(path: PathLike, text: TextOptions | None = None) -> bool:
    """Whether a file holds queries and no matrix of costs: its first column is called `query`."""
    if not os.path.exists(path):
        return False
    with open_beside(path, text) as source:
        return bool(source.header) and source.header[0] == QUERY_COLUMN
