"""Least-cost assignments whose columns keep the inequalities of an uncertain set.

Each choice of coefficients of the set gives a row a.w >= 0 for the columns w_y(x) = q(x, y) / p_x.
There are too many to list, so rounds find those that matter:

1. The program over the rows so far (`_CutProgram`) is a relaxation; it gives shares and multipliers
   nu.
2. Any nu >= 0 prove a bound as in `solvers.assignment`, with the costs c(x, y) - sum_i nu_i a_i(x)
   / p_x over the rows i of column y (`priced`). The rows count as they are without a margin.
3. Sorting finds the rows that each column breaks most (`separated`;
   docs/explanation/optimum-theory.md, 'Uncertain sets, with rows found by sorting'); they join the
   program. Where all columns are members, the solution is optimal.

For example, let h_s <= 2 g_t be asked of the rows P(X | s) between (0.6, 0.3) and (0.7, 0.4), and
P(X | t) between (0.3, 0.6) and (0.4, 0.7). At w = (1, 0) the worst rows are (0.7, 0.3) and (0.3,
0.7): h_s = 0.7 is more than 2 g_t = 0.6. The new row is a = 2 (0.3, 0.7) - (0.7, 0.3) = (-0.1,
1.1), so that w_2 must be at least w_1 / 11.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from solvers import assignment
from solvers.assignment import Assigned, Assignment, Multipliers
from solvers.assignment_simplex import Program
from solvers.errors import BackendFailure
from solvers.points import Array
from solvers.uncertain import UncertainSet

VIOLATED = 1e-10
"""Share of its mass by which a column must break a row for the row to be added: what the simplex
method leaves."""

MOST_CUTTING_ROUNDS = 500
"""Rounds of adding rows; 5 to 60 are usual."""


def assign_uncertain(
    problem: Assignment,
    uncertain: UncertainSet,
    *,
    proof: Assignment | None = None,
    margin: float = 0.0,
    gap: float = 1e-9,
    time_limit: float | None = None,
    progress: Callable[[float, float, int], None] | None = None,
) -> Assigned:
    """Solve the problem (whose polytope has no rows) for columns in the set with a margin.

    The bound is for the set without the margin. Parameters and errors are those of
    `solvers.assigning.assign`. Where nothing else restricts the columns, each relaxed solution is
    pulled into the set, towards columns that tell nothing: so the search may end at any time.
    """
    problem.check()
    end = math.inf
    if time_limit is not None:
        end = time.monotonic() + time_limit
    if proof is None:
        proof = problem
    aim = max(gap, assignment.LEAST_GAP) * problem.spread()
    program = _CutProgram(problem, margin)
    bound = -math.inf
    best: Assigned | None = None
    for rounds in range(1, MOST_CUTTING_ROUNDS + 1):
        try:
            shares, multipliers = program.solve(end)
        except BackendFailure:
            if best is None:
                raise
            return replace(best, bound=bound)
        # The rows so far are only some of those of the set, so a bound for them is one for it.
        relaxed = priced(proof, uncertain, program.rows, program.columns, multipliers)
        bound = max(bound, assignment.lower_bound(relaxed, multipliers))
        worst, pulled, broken = separated(problem, uncertain, shares, margin)
        is_inside = worst <= VIOLATED
        if is_inside:
            best = _cheaper(best, problem, shares, multipliers)
        elif problem.is_free:
            best = _cheaper(best, problem, pulled, multipliers)
        if progress is not None and best is not None:
            progress(best.cost, bound, rounds)
        late = time.monotonic() >= end or rounds == MOST_CUTTING_ROUNDS
        if best is not None and (is_inside or best.cost - bound <= aim or late):
            return replace(best, bound=bound)
        if late:
            break
        for y, cuts in broken:
            program.add_cuts(y, cuts)
    raise BackendFailure("no assignment was found in time")


class _CutProgram:
    """The program with all allowed pairs, which grows by rows of the set.

    Attributes
    ----------
    rows : (k, n) array
        The rows so far, as they are without a margin.
    columns : (k,) array
        The column to which each row applies.
    """

    def __init__(self, problem: Assignment, margin: float) -> None:
        self.rows = np.zeros((0, problem.n))
        self.columns = np.zeros(0, dtype=np.intp)
        self._program = Program(problem)
        # A column of mass 1 has masses.w = 1, so a.w >= margin is (a - margin masses).w >= 0.
        self._margins = margin * problem.masses
        xs, ys = np.nonzero(problem.open)
        self._program.add(xs, ys)

    def solve(self, end: float) -> tuple[Array, Multipliers]:
        """As `Program.solve`."""
        return self._program.solve(end)

    def add_cuts(self, y: int, cuts: Array) -> None:
        """Add rows that column y breaks."""
        self._program.cut(y, cuts - self._margins)
        self.rows = np.vstack([self.rows, cuts])
        self.columns = np.append(self.columns, np.full(len(cuts), y))


def _cheaper(
    best: Assigned | None, problem: Assignment, shares: Array, multipliers: Multipliers
) -> Assigned:
    """The best assignment so far, or these shares if they cost less; its bound is set later."""
    cost = problem.cost_of(shares)
    if best is not None and cost >= best.cost:
        return best
    method = "simplex with rows found by sorting"
    return Assigned(shares, cost, -math.inf, multipliers, method)


def separated(
    problem: Assignment, uncertain: UncertainSet, shares: Array, margin: float
) -> tuple[float, Array, list[tuple[int, Array]]]:
    """Find the rows that columns of the shares (n, n) break, and pull the columns into the set.

    Returns
    -------
    worst : float
        Share of columns that tell nothing to mix in, so that all columns are members; 0 if they
        are already.
    pulled : (n, n) array
        The shares with so much mixed in.
    broken : list of (column, rows)
        The rows that each column breaks.
    """
    masses = problem.masses @ shares
    # Columns with next to no mass are left out: their direction is rounding.
    used = np.flatnonzero(masses > VIOLATED * problem.masses)
    columns = (shares[:, used] / masses[used]).T
    excess = uncertain.excess(columns * problem.masses) + margin
    outside = excess[excess > 0.0]
    # The excess is convex, and margin - room at columns that tell nothing.
    shares_of_nothing = outside / (outside + uncertain.room - margin)
    worst = float(shares_of_nothing.max(initial=0.0))
    # Half of what counts as violated, so that no violated column is left without a row.
    limit = margin - 0.5 * VIOLATED * uncertain.room
    broken: list[tuple[int, Array]] = []
    for y, w in zip(used.tolist(), columns, strict=True):
        cuts = uncertain.cuts(w)
        below = cuts @ w < limit
        if below.any():
            broken.append((y, cuts[below]))
    return worst, (1.0 - worst) * shares + worst * masses, broken


def priced(
    problem: Assignment,
    uncertain: UncertainSet,
    rows: Array,
    columns: NDArray[np.intp],
    multipliers: Multipliers,
) -> Assignment:
    """The problem whose costs charge for rows (k, n), row i for column ``columns[i]`` alone.

    With multipliers nu >= 0 these rows contribute nothing positive to the cost of any assignment
    that keeps them. So a lower bound of the charged problem is one for the problem with the rows.
    Costs are rounded downwards.
    """
    nu = np.nan_to_num(multipliers.cuts, nan=0.0, posinf=0.0)
    prices = np.zeros_like(problem.cost)
    sizes = np.zeros_like(problem.cost)
    np.add.at(prices.T, columns, nu[:, None] * rows)
    np.add.at(sizes.T, columns, nu[:, None] * (np.abs(rows) + uncertain.row_error))
    # Rows of the set itself may lie this far from those that sorting found.
    shift = np.outer(nu * uncertain.row_error, np.ones(problem.n))
    np.add.at(prices.T, columns, shift)
    p = problem.masses[:, None]
    # Sums of len(nu) + 8 terms, each of them a product of rounded numbers.
    error = 4.0 * assignment.UNIT * (len(nu) + 8) * (np.abs(problem.cost) + sizes / p)
    return replace(problem, cost=problem.cost - prices / p - error)
