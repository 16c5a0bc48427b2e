"""Linear functions that are to be nowhere negative on a set, which proofs of least costs rest on.

A column of a least-cost channel may have a multiple of any member of a set. A proof takes linear
functions off the costs, one for each column, that are not negative on the members (its *sides*).
`least_sides` finds from below how negative they are all the same, by a linear program for each. The
set is given by rows that all of its members keep: the program has those that its minimum broke.

For example, let v_0 <= 3/4 for all members (v_0, 1 - v_0). The side (-1, 3) is 3 - 4 v_0, which is
-1 at v_0 = 1. That breaks the row (-1, 3), and with it the least value is 0.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np

from solvers.errors import OutOfTime
from solvers.points import Array
from solvers.pricing.concave import ConcaveSearch
from solvers.sets.polytope import Polytope
from solvers.sets.uncertain import UncertainSet

ROOM = 1e-11
"""What is less negative counts as nothing: a search would go on for roundings."""

MOST_ROWS = 1000
"""Rounds of rows for one side of a proof; with 60 symbols up to 160 were seen."""


def rows_for_all_tables(uncertain: UncertainSet, v: Array) -> Array:
    """Rows a (k, n) with a.v >= 0 for all members, least at this vector (n,)."""
    point = uncertain.point
    return (uncertain.cuts(v / point) + uncertain.row_error) / point


def least_sides(
    rows_at: Callable[[Array], Array],
    sides: Array,
    first: Array | None = None,
    end: float = math.inf,
) -> Array:
    """For every column of `sides`, (n, k), a lower bound of its product with every member, (k,).

    `rows_at` gives rows a (m, n) with a.v >= 0 for all members v, for a vector (n,) that may be
    outside: if it is, it breaks some of them. `first` are rows that are known before.

    Raises
    ------
    OutOfTime
        If `end`, a moment of `time.process_time`, comes before all of them are found.
    """
    if first is None:
        first = np.zeros((0, len(sides)))
    found: list[float] = []
    for side in sides.T:
        # Anew for each: rows of other sides make more rounds of slower programs.
        rows = first
        bound = -math.inf
        for _ in range(MOST_ROWS):
            _check_time(end)
            ends = np.zeros(len(rows))
            search = ConcaveSearch(Polytope(rows, ends, np.full(len(rows), np.inf)))
            bound = search.least(side)
            if bound >= -ROOM:
                break
            v = search.linear(side)
            cuts = rows_at(v)
            broken = cuts[cuts @ v < -ROOM]
            if not len(broken):
                break
            rows = np.vstack([rows, broken])
        found.append(bound)
    return np.array(found)


def least_on_polytope(polytope: Polytope, sides: Array, end: float = math.inf) -> Array:
    """The same over a polytope with listed rows."""
    search = ConcaveSearch(polytope)
    found: list[float] = []
    for side in sides.T:
        _check_time(end)
        found.append(search.least(side))
    return np.array(found)


def _check_time(end: float) -> None:
    """Raise OutOfTime after this moment of `time.process_time`."""
    if time.process_time() >= end:
        raise OutOfTime("the sides of the proof were not bounded in time")
