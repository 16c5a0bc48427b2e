"""Integers on the support of a plan, with exactly the sums that are asked for.

Row x of a table with counts c_x has the sum c_x unit, column y the sum c_y unit. The flows are
rounded, and what rounding left over is settled along a spanning forest of the support, whose
vertices are rows and columns and whose edges are pairs: every leaf passes what it lacks to its only
edge, and so on towards a root, where nothing is left because both sums of a component agree. The
forest takes the largest flows first, so that a correction meets an edge that is much larger.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from solvers.errors import PlanError
from solvers.plans.costs import Indices
from solvers.points import Array

UNIT = 2**40
"""Integers a unit of count: a rounding is 1e-12 of a record."""

INT64 = 2**62
"""Totals below this are computed in int64, larger ones in Python integers."""

ATTEMPTS = 20
"""How often pairs whose integer would be negative are dropped before giving up. Such flows are
noise of the solver; more than two rounds have never been needed."""


def integer_plan(
    rows: ArrayLike,
    columns: ArrayLike,
    flows: ArrayLike,
    row_units: Sequence[int] | NDArray[Any],
    column_units: Sequence[int] | NDArray[Any] | None,
    unit: int = UNIT,
) -> tuple[Indices, Indices, NDArray[Any]]:
    """Positive integers near flows of total 1, with exact sums of rows and columns.

    Parameters
    ----------
    rows, columns : (m,) int arrays
        Pairs of the plan.
    flows : (m,) array
        Mass of each pair, with sum 1.
    row_units : (n,) integers
        Row x gets the sum ``row_units[x] * unit``.
    column_units : (k,) integers or None
        Column y gets the sum ``column_units[y] * unit``; None leaves the sums of columns free.
    unit : int

    Returns
    -------
    rows, columns : (m',) int arrays
    values : (m',) array
        int64 where the total is below 2**62, else Python integers (dtype object).

    Raises
    ------
    PlanError
        If the support carries no such integers.
    """
    x = np.asarray(rows, dtype=np.int64)
    y = np.asarray(columns, dtype=np.int64)
    mass = np.asarray(flows, dtype=np.float64)
    wanted_rows = [int(count) * unit for count in row_units]
    total = sum(wanted_rows)
    kind: Any = np.int64 if total < INT64 else object
    if column_units is None:
        values = _rounded(mass, total, kind)
        values = _settle_rows(x, values, wanted_rows, kind)
        return _positive(x, y, values)
    wanted_columns = [int(count) * unit for count in column_units]
    if sum(wanted_columns) != total:
        raise PlanError("sums of rows and columns need the same total")
    for _ in range(ATTEMPTS):
        values = _rounded(mass, total, kind)
        lacking = _lacking(x, y, values, wanted_rows, wanted_columns)
        _settle(x, y, mass, values, lacking, len(wanted_rows))
        kept = values >= 0
        if kept.all():
            return _positive(x, y, values)
        x, y, mass = x[kept], y[kept], mass[kept]
    raise PlanError("the pairs of the plan carry no integers with these sums")


def _positive(
    x: Indices, y: Indices, values: NDArray[Any]
) -> tuple[Indices, Indices, NDArray[Any]]:
    """Without zeros."""
    used = np.asarray(values > 0, dtype=np.bool_)
    return x[used], y[used], values[used]


def _rounded(mass: Array, total: int, kind: Any) -> NDArray[Any]:
    """Shares of a total, rounded."""
    if kind is np.int64:
        return np.rint(mass * float(total)).astype(np.int64)
    # A double holds 53 bits; the rest of the total comes in as an integer.
    shares = np.rint(mass * 2.0**53).astype(np.int64)
    out = np.empty(len(mass), dtype=object)
    out[:] = [(int(share) * total) >> 53 for share in shares]
    return out


def _sums(places: Indices, values: NDArray[Any], size: int) -> list[int]:
    """Exact sums of values by place."""
    sums = np.zeros(size, dtype=values.dtype)
    np.add.at(sums, places, values)
    return [int(one) for one in sums]


def _settle_rows(
    x: Indices, values: NDArray[Any], wanted: list[int], kind: Any
) -> NDArray[Any]:
    """Give what each row lacks to its largest entry."""
    order = np.lexsort((np.asarray(values, dtype=np.float64), x))
    last = np.flatnonzero(np.diff(np.append(x[order], -1)))
    largest = order[last]
    if len(largest) != len(wanted):
        raise PlanError("every row of the plan needs a pair")
    sums = _sums(x, values, len(wanted))
    lacking = [need - one for need, one in zip(wanted, sums, strict=True)]
    out = values.copy()
    out[largest] += np.array(lacking, dtype=kind)
    if (out[largest] <= 0).any():
        raise PlanError("the flows of a row are far from its sum")
    return out


def _lacking(
    x: Indices,
    y: Indices,
    values: NDArray[Any],
    wanted_rows: list[int],
    wanted_columns: list[int],
) -> list[int]:
    """What rows, and after them columns, lack."""
    sums = _sums(x, values, len(wanted_rows)) + _sums(y, values, len(wanted_columns))
    wanted = wanted_rows + wanted_columns
    return [need - one for need, one in zip(wanted, sums, strict=True)]


def _settle(
    x: Indices,
    y: Indices,
    mass: Array,
    values: NDArray[Any],
    lacking: list[int],
    size: int,
) -> None:
    """Change `values` along a spanning forest so that nothing is lacking any more."""
    # Edges of each vertex within the forest: (edge, the other end).
    edges: list[list[tuple[int, int]]] = [[] for _ in lacking]
    for edge in _forest(x, y + size, mass, len(lacking)):
        first, second = int(x[edge]), int(y[edge]) + size
        edges[first].append((edge, second))
        edges[second].append((edge, first))
    seen = [False] * len(lacking)
    changes: dict[int, int] = {}
    for root in range(len(lacking)):
        if seen[root]:
            continue
        seen[root] = True
        # From the root outwards, each vertex after its parent: (vertex, edge, parent).
        order = [(root, -1, -1)]
        for vertex, _, _ in order:
            for edge, other in edges[vertex]:
                if not seen[other]:
                    seen[other] = True
                    order.append((other, edge, vertex))
        for vertex, edge, parent in reversed(order[1:]):
            change = lacking[vertex]
            changes[edge] = change
            lacking[parent] -= change
        if lacking[root]:
            raise PlanError(
                "the sums of the rows and of the columns of a part of the plan differ"
            )
    for edge, change in changes.items():
        values[edge] += change


def _forest(x: Indices, y: Indices, mass: Array, size: int) -> list[int]:
    """Edges of a spanning forest, largest masses first (Kruskal)."""
    parent = list(range(size))

    def root(vertex: int) -> int:
        while parent[vertex] != vertex:
            # Halve the path, so that later walks are short.
            parent[vertex] = parent[parent[vertex]]
            vertex = parent[vertex]
        return vertex

    found: list[int] = []
    order = np.argsort(-mass, kind="stable")
    ends = zip(order.tolist(), x[order].tolist(), y[order].tolist(), strict=True)
    for edge, first, second in ends:
        one, other = root(first), root(second)
        if one != other:
            parent[one] = other
            found.append(edge)
    return found
