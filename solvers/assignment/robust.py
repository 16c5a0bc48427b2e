"""Least-cost assignments whose columns keep the inequalities of an uncertain set.

Each choice of coefficients of the set gives a row a.w >= 0 for the columns w_y(x) = q(x, y) / p_x.
There are too many to list. Two ways deal with them, and `assign_uncertain` takes both in turn:

1. *Cuts.* Rounds find the rows that matter (`_Cutting`). Where few do, this is the quickest way.
2. *The robust counterpart* (`robust_plan`): one larger linear program without any missing row.
   Where many rows matter, rounds go on for hours and this program takes seconds.

Measured with two secrets and kept masses, in processor seconds: at 32 columns both end in .1; at 64
the cuts have .398 after 18, at least .195, and the counterpart has the optimum, .204, after 2. Five
secrets and 50 columns whose masses are free take .5 by cuts and 3 by the counterpart. So the rounds
come first, and go on as long as they close the gap.

A round of cuts has three steps:

1. The program over the rows so far (`_CutProgram`) is a relaxation; it gives shares and multipliers
   nu.
2. Any nu >= 0 prove a bound as in `solvers.assignment.assignment`, with the costs c(x, y) - sum_i
   nu_i a_i(x) / p_x over the rows i of column y (`priced`). The rows count as they are without a
   margin.
3. Sorting finds the rows that each column breaks most (`separated`;
   docs/explanation/optimum-theory.md, 'Uncertain sets, with rows found by sorting'); they join the
   program. Where all columns are members, the solution is optimal.

For example, let h_s <= 2 g_t be asked of the rows P(X | s) between (0.6, 0.3) and (0.7, 0.4), and
P(X | t) between (0.3, 0.6) and (0.4, 0.7). At w = (1, 0) the worst rows are (0.7, 0.3) and (0.3,
0.7): h_s = 0.7 is more than 2 g_t = 0.6. The new row is a = 2 (0.3, 0.7) - (0.7, 0.3) = (-0.1,
1.1), so that w_2 must be at least w_1 / 11.

*The robust counterpart.* `robust_plan` solves the one linear program of `robust_counterpart` by
HiGHS, and returns

- the shares, pulled into the set by what the solver missed, where nothing else restricts columns;
- a lower bound of the cost of every assignment with columns in the set *without* the margin.

*Bound.* The duals choose coefficients p and pi for every inequality. These are moved into their
boxes, so each inequality a.w >= 0 holds for all members, however rough the duals are. Charging for
them as `priced` does leaves an assignment problem without rows, which `assignment.lower_bound`
bounds.

For example, of two columns one may have its worst population at an end of the box of p, the other
in between, where two entries of w are equal. The duals mix the rows of the ends on its two sides.

*Rows of the set*: which ones columns break, and what they prove. The columns w_y(x) = q(x, y) / p_x
of an assignment shall keep the rows a.w >= 0 of an `UncertainSet`, one for each choice of
coefficients. `separated` finds the rows that given columns break most, and pulls the columns into
the set; `priced` charges for rows with multipliers, so that `assignment.lower_bound` bounds every
assignment that keeps them.

For example, a column w = (1, 0) breaks the row a = (-0.1, 1.1). With the multiplier 2 the cost of
the first mass in that column grows by 0.2 / p_1, that of the second falls by 2.2 / p_2: whoever
keeps the row pays no more than before.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.assignment import assignment
from solvers.assignment.assignment import Assigned, Assignment, Multipliers
from solvers.assignment.counterpart import RobustCounterpart, counterpart_rows
from solvers.assignment.simplex import Program, check_time
from solvers.errors import BackendFailure, EmptyPolytope
from solvers.pace import passing
from solvers.points import Array
from solvers.programs import SHARP, highs_with, is_over, run_highs, stop_at
from solvers.sets.uncertain import UncertainSet

# ---------------------------------------------------------------------- rows of the set

VIOLATED = 1e-10
"""Share of its mass by which a column must break a row for the row to be added: what the simplex
method leaves."""


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


# -------------------------------------------------------------------------- assignments

MOST_CUTTING_ROUNDS = 500
"""Rounds of adding rows, where the counterpart is too large; 5 to 60 are usual."""

FIRST_ROUNDS = 2
"""Rounds after which the gap means something."""

REVIEW = 6
"""Rounds between two looks at whether the gap closes."""

CLOSING = 0.7
"""Largest part of the gap that may be left after so many rounds. Of programs that rounds end soon
.4 to .65 is left, of others .7 to .95."""

SMALL_COUNTERPART = 5_000
"""Rows of the counterpart up to which it comes at once: .2 s."""

FIRST_SHARE = 0.3
"""Share of the time limit after which these rounds end, too."""

LARGEST_COUNTERPART = 60_000
"""Rows of the counterpart up to which it is solved. HiGHS took 13 s for 38,000 rows, and did not
end in a minute for 100,000."""


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
    `solvers.assignment.assigning.assign`. Where nothing else restricts the columns, each relaxed
    solution is pulled into the set, towards columns that tell nothing: so the search may end at any
    time, once there is time for its program: else it raises OutOfTime.
    """
    problem.check()
    started = time.process_time()
    end = math.inf
    if time_limit is not None:
        end = started + time_limit
    if proof is None:
        proof = problem
    check_time(problem, end)
    aim = max(gap, assignment.LEAST_GAP) * problem.spread()
    cutting = _Cutting(problem, uncertain, proof, margin, aim, progress)
    if counterpart_rows(uncertain) > LARGEST_COUNTERPART:
        cutting.run(end, MOST_CUTTING_ROUNDS)
        return cutting.answer()
    if counterpart_rows(uncertain) > SMALL_COUNTERPART:
        first_end = end
        if time_limit is not None:
            first_end = started + FIRST_SHARE * time_limit
        cutting.run_while_closing(first_end)
        if cutting.is_done:
            return cutting.answer()
    try:
        planned = robust_plan(problem, uncertain, proof=proof, margin=margin, end=end)
    except BackendFailure:
        # The rounds may have an answer, with what they have proven.
        return cutting.answer()
    cutting.take(planned)
    return cutting.answer()


class _Cutting:
    """Rounds of adding rows, with the best assignment and the best bound so far.

    Attributes
    ----------
    is_done : bool
        Whether the best assignment is optimal, or its gap closed.
    """

    def __init__(
        self,
        problem: Assignment,
        uncertain: UncertainSet,
        proof: Assignment,
        margin: float,
        aim: float,
        progress: Callable[[float, float, int], None] | None,
    ) -> None:
        self.is_done = False
        self._problem = problem
        self._uncertain = uncertain
        self._proof = proof
        self._margin = margin
        self._aim = aim
        self._progress = progress
        self._bound = -math.inf
        self._best: Assigned | None = None
        none = Multipliers(np.zeros((0, problem.n)), np.zeros(problem.n))
        self._proven_by: tuple[Multipliers, Array | None] = (none, None)
        self._rounds = 0
        self._program = _CutProgram(problem, margin)

    def run_while_closing(self, end: float) -> None:
        """Rounds until `end`, or until they close too little of the gap."""
        self.run(end, FIRST_ROUNDS)
        while not self.is_done and time.process_time() < end:
            before = self._gap()
            self.run(end, REVIEW)
            # Without an assignment there is no gap yet, and nothing to hope for.
            if not self._gap() <= CLOSING * before < math.inf:
                return

    def run(self, end: float, most: int) -> None:
        """Rounds until the gap is closed, `end` (of `time.process_time`) or the most rounds."""
        program = self._program
        for _ in range(most):
            try:
                shares, multipliers = program.solve(end)
            except BackendFailure:
                # What was found and proven before counts.
                return
            # The rows so far are only some of those of the set, so a bound for them is one for it.
            relaxed = priced(
                self._proof, self._uncertain, program.rows, program.columns, multipliers
            )
            bound = assignment.lower_bound(relaxed, multipliers)
            worst, pulled, broken = separated(
                self._problem, self._uncertain, shares, self._margin
            )
            is_inside = worst <= VIOLATED
            found: Array | None = None
            if is_inside:
                found = shares
            elif self._problem.is_free:
                found = pulled
            method = "simplex with rows found by sorting"
            self._keep(
                found, bound, multipliers, method, self._proof.cost - relaxed.cost
            )
            if is_inside or self._is_closed():
                self.is_done = True
                return
            if time.process_time() >= end:
                return
            program.add_cuts(broken)

    def take(self, planned: Assigned) -> None:
        """Another assignment with its bound."""
        self._keep(
            planned.shares,
            planned.bound,
            planned.multipliers,
            planned.method,
            planned.sides,
        )

    def answer(self) -> Assigned:
        """The best assignment, with the best bound of all.

        Raises
        ------
        BackendFailure
            If none was found.
        """
        if self._best is None:
            raise BackendFailure("no assignment was found in time")
        multipliers, sides = self._proven_by
        return replace(
            self._best, bound=self._bound, multipliers=multipliers, sides=sides
        )

    def _gap(self) -> float:
        """Between cost and bound; infinite without an assignment."""
        if self._best is None:
            return math.inf
        return self._best.cost - self._bound

    def _is_closed(self) -> bool:
        """Whether cost and bound are near enough."""
        return self._gap() <= self._aim

    def _keep(
        self,
        shares: Array | None,
        bound: float,
        multipliers: Multipliers,
        method: str,
        sides: Array | None,
    ) -> None:
        """Keep the larger bound, and the shares if they cost less than the best so far."""
        self._rounds += 1
        if bound > self._bound:
            self._bound = bound
            self._proven_by = (multipliers, sides)
        if shares is not None:
            cost = self._problem.cost_of(shares)
            if self._best is None or cost < self._best.cost:
                self._best = Assigned(shares, cost, -math.inf, multipliers, method)
        if self._progress is not None and self._best is not None:
            self._progress(self._best.cost, self._bound, self._rounds)


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

    def add_cuts(self, broken: Sequence[tuple[int, Array]]) -> None:
        """Add the rows that each column breaks."""
        self._program.cut([(y, cuts - self._margins) for y, cuts in broken])
        self.rows = np.vstack([self.rows, *(cuts for _, cuts in broken)])
        places = [np.full(len(cuts), y) for y, cuts in broken]
        self.columns = np.concatenate([self.columns, *places])


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
            stop_at(highs, end)
        run_highs(highs)
        status = highs.getModelStatus()
        if status == statuses.kOptimal:
            return highs, True
        if is_over(highs):
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
