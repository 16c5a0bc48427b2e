"""Least-cost assignment with columns in an uncertain set: rows are generated where a column breaks them.

Columns w_y(x) = q(x, y) / p_x of `Assignment` must keep the inequalities of an `UncertainSet`, of which each choice
of coefficients gives a row a.w >= 0. The linear program over the rows so far is a relaxation; sorting finds the rows
that its columns break most. Any multipliers of the rows, as they are without a margin, prove a bound, as in
`solvers.assignment`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from solvers.assignment import LEAST_GAP, UNIT, Assigned, Assignment, Multipliers, lower_bound
from solvers.assignment_simplex import Program
from solvers.errors import BackendFailure
from solvers.uncertain import UncertainSet

Array = NDArray[np.float64]

VIOLATED = 1e-10
"""Share of its mass by which a column must break a row for the row to be added: what the simplex method leaves."""

MOST_ROUNDS = 500
"""Rounds of adding rows; 5 to 60 are usual."""


def assign_uncertain(
    problem: Assignment,
    uncertain: UncertainSet,
    *,
    margin: float = 0.0,
    gap: float = 1e-9,
    time_limit: float | None = None,
    progress: Callable[[float, float, int], None] | None = None,
) -> Assigned:
    """Solve the problem (whose polytope has no rows) for columns in the set with a margin; the bound is for the set.

    Parameters and errors are those of `solvers.assignment.assign`. Where nothing else restricts the columns, each
    relaxed solution is pulled into the set, towards columns that tell nothing: it may end the search at any time.
    """
    end = math.inf if time_limit is None else time.monotonic() + time_limit
    p, n = problem.masses, problem.n
    aim = max(gap, LEAST_GAP) * problem.spread()
    is_free = bool(problem.open.all()) and not problem.floors.any()
    program = Program(problem)
    program.add(*np.nonzero(problem.open))
    rows, of = np.zeros((0, n)), np.zeros(0, dtype=np.intp)
    bound, best = -math.inf, None
    for rounds in range(1, MOST_ROUNDS + 1):
        try:
            shares, found = program.solve(end)
        except BackendFailure:
            if best is None:
                raise
            return best
        bound = max(bound, _bound(problem, uncertain, rows, of, found))
        masses = p @ shares
        used = np.flatnonzero(masses > VIOLATED * p)
        columns = (shares[:, used] / masses[used]).T
        excess = np.maximum(uncertain.excess(columns * p) + margin, 0.0)
        details: dict[str, int | float | str] = {"rounds": rounds, "rows": len(rows)}
        worst = float((excess / (excess + uncertain.room)).max())
        if worst <= VIOLATED or is_free:
            inside = shares if worst <= VIOLATED else (1.0 - worst) * shares + worst * masses
            cost = problem.cost_of(inside)
            if best is None or cost < best.cost:
                best = Assigned(inside, cost, bound, found, "simplex with rows found by sorting", details)
        if progress is not None and best is not None:
            progress(best.cost, bound, rounds)
        late = time.monotonic() >= end or rounds == MOST_ROUNDS
        if best is not None and (worst <= VIOLATED or best.cost - bound <= aim or late):
            return replace(best, bound=bound, details=details)
        if late:
            break
        for y, column in zip(used.tolist(), columns, strict=True):
            cuts = uncertain.cuts(column)
            cuts = cuts[cuts @ column < margin - 0.5 * VIOLATED * uncertain.room]
            program.cut(y, cuts - margin * p)
            rows, of = np.vstack([rows, cuts]), np.append(of, np.full(len(cuts), y))
    raise BackendFailure("no assignment was found in time")


def _bound(
    problem: Assignment, uncertain: UncertainSet, rows: Array, of: NDArray[np.intp], found: Multipliers
) -> float:
    """The bound of `solvers.assignment`, rounded downwards, for rows each of one column."""
    nu = np.nan_to_num(found.own, nan=0.0, posinf=0.0)
    prices, sizes = np.zeros_like(problem.cost), np.zeros_like(problem.cost)
    np.add.at(prices.T, of, nu[:, None] * rows)
    np.add.at(sizes.T, of, nu[:, None] * (np.abs(rows) + uncertain.row_error))
    np.add.at(prices.T, of, np.outer(nu * uncertain.row_error, np.ones(problem.n)))
    p = problem.masses[:, None]
    # Sums of len(nu) + 8 terms, each of them a product of rounded numbers.
    reduced = problem.cost - prices / p - 4.0 * UNIT * (len(nu) + 8) * (np.abs(problem.cost) + sizes / p)
    return lower_bound(replace(problem, cost=reduced), found)
