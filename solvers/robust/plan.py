"""Least-cost assignments with columns in an uncertain set, by their robust counterpart.

`robust_plan` solves the one linear program of `robust_counterpart` by HiGHS, and returns

- the shares, pulled into the set by what the solver missed, where nothing else restricts columns;
- a lower bound of the cost of every assignment with columns in the set *without* the margin.

*Bound.* The duals choose coefficients p and pi for every inequality. These are moved into their
boxes, so each inequality a.w >= 0 holds for all members, however rough the duals are. Charging for
them as `priced` does leaves an assignment problem without rows, which `assignment.lower_bound`
bounds.

For example, of two columns one may have its worst population at an end of the box of p, the other
in between, where two entries of w are equal. The duals mix the rows of the ends on its two sides.
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.assignment import assignment
from solvers.assignment.assignment import Assigned, Assignment, Multipliers
from solvers.errors import BackendFailure, EmptyPolytope
from solvers.pace import passing
from solvers.points import Array
from solvers.programs.highs import SHARP, highs_with
from solvers.robust.counterpart import RobustCounterpart
from solvers.robust.rows import VIOLATED, priced, separated
from solvers.sets.uncertain import UncertainSet

LARGE = 20_000
"""Rows from which an interior point method is faster than the simplex method (measured with two
secrets: 2 s each at 64 boxes, which have 17,152 rows)."""

SIMPLEX: dict[str, str | int | float] = SHARP | {"presolve": "on"}

INTERIOR: dict[str, str | int | float] = {
    "solver": "ipx",
    "threads": 1,
    # Crossover to a vertex would take longer than all the rest. What the solution misses is less
    # than the pull into the set, and the bound takes rough duals.
    "run_crossover": "off",
    "primal_feasibility_tolerance": 1e-8,
    "dual_feasibility_tolerance": 1e-8,
    "small_matrix_value": 1e-12,
}


def robust_plan(
    problem: Assignment,
    uncertain: UncertainSet,
    *,
    proof: Assignment | None = None,
    margin: float = 0.0,
    end: float = math.inf,
) -> Assigned:
    """Solve the problem (whose polytope has no rows) for columns in the set with a margin.

    Parameters
    ----------
    problem : Assignment
    uncertain : UncertainSet
    proof : Assignment, optional
        The problem that the bound is about, if it is another one.
    margin : float
        Slack of the inequalities, for columns of mass 1; below `UncertainSet.room`.
    end : float
        When to stop (of `time.process_time`). Where nothing but the set restricts columns,
        there is an answer at any time.

    Raises
    ------
    EmptyPolytope
        If no assignment keeps to the set, the floors and the pairs.
    BackendFailure
        If HiGHS has no answer, or none in time.
    """
    problem.check()
    if proof is None:
        proof = problem
    program = RobustCounterpart(problem, uncertain, margin)
    highs, is_solved = _run(program, end)
    solution = highs.getSolution()
    bound = -math.inf
    multipliers = Multipliers(np.zeros((0, problem.n)), np.zeros(problem.n))
    sides: Array | None = None
    dual = np.array(solution.row_dual)
    # HiGHS calls duals valid that it does not have, where it stops before its first step.
    if solution.dual_valid and len(dual):
        rows, columns, multipliers = _multipliers(program, dual)
        relaxed = priced(proof, uncertain, rows, columns, multipliers)
        bound = assignment.lower_bound(relaxed, multipliers)
        sides = proof.cost - relaxed.cost
    shares = _shares(program, np.array(solution.col_value)) if is_solved else None
    if shares is not None:
        method = "robust counterpart"
    elif problem.is_free:
        # What the solver has reached is no assignment; one that is always there is mixed.
        shares = np.eye(problem.n)
        method = "own symbols mixed with all"
    else:
        raise BackendFailure("no assignment was found in time")
    worst, pulled, _ = separated(problem, uncertain, shares, margin)
    if problem.is_free and worst > VIOLATED:
        shares = pulled
    cost = problem.cost_of(shares)
    return Assigned(shares, cost, bound, multipliers, method, sides)


def _run(program: RobustCounterpart, end: float) -> tuple[Any, bool]:
    """A HiGHS that has run, and whether it has solved the program; else the time was over."""
    import highspy

    statuses = highspy.HighsModelStatus
    ways = [SIMPLEX, INTERIOR]
    if program.blocks.rows > LARGE:
        ways = [INTERIOR, SIMPLEX]
    message = ""
    for way in ways:
        highs = highs_with(way)
        program.blocks.load(highs)
        if end < math.inf:
            highs.setOptionValue("time_limit", passing(end - time.process_time()))
        highs.run()
        status = highs.getModelStatus()
        if status == statuses.kOptimal:
            return highs, True
        if status == statuses.kTimeLimit:
            return highs, False
        # Columns that tell nothing are an assignment of a free problem, so it is never empty.
        if status == statuses.kInfeasible and not program.problem.is_free:
            raise EmptyPolytope(assignment.NONE)
        message = f"HiGHS ended with {highs.modelStatusToString(status)}"
    raise BackendFailure(message)


def _shares(program: RobustCounterpart, values: Array) -> Array | None:
    """q(x, y) / p_x, with rows that sum to 1 whatever HiGHS rounds.

    None where a row has no mass: with budgets of hundreds of nats HiGHS has called that optimal.
    """
    problem = program.problem
    shares = np.maximum(values[program.w], 0.0) * problem.masses
    masses = shares.sum(axis=1)
    if not (masses > 0.0).all():
        return None
    return shares / masses[:, None]


def _multipliers(
    program: RobustCounterpart, dual: Array
) -> tuple[Array, NDArray[np.intp], Multipliers]:
    """The inequalities that the duals choose, their columns, and all multipliers."""
    problem = program.problem
    rows, columns, of_rows, prices = program.inequalities_of(dual)
    # The program is in w, so a dual of column y is one of its mass over p_y.
    p = problem.masses
    none = np.zeros((0, problem.n))
    return rows, columns, Multipliers(none, prices / p, of_rows / p[columns])
