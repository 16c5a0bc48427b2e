"""Vertices of `Assignment` problems by the simplex method of HiGHS, over the pairs that may matter.

Pairs with a negative reduced cost are added until the bound of the duals, which is one for all pairs, closes the gap.
Variables are shares q(x, y) / p_x and rows are divided by p_y, so that tolerances are relative to the masses.

Columns w_y(x) = q(x, y) / p_x may also have to keep the inequalities of an `UncertainSet`, of which each choice of
coefficients gives a row a.w >= 0: the program over the rows so far is a relaxation, and sorting finds the rows that its
columns break most. Any multipliers of these rows, as they are without a margin, prove a bound as in `assignment`.
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
from solvers.errors import BackendFailure, EmptyPolytope
from solvers.points import Array
from solvers.programs.highs import SHARP, highs_with, set_options
from solvers.uncertain import UncertainSet

OTHER_WAYS: tuple[dict[str, str | int | float], ...] = (
    {"presolve": "on"},
    {
        "solver": "ipm",
        "primal_feasibility_tolerance": 1e-8,
        "dual_feasibility_tolerance": 1e-8,
    },
)
"""Tried in turn, from nothing, where a solve fails; what then still has no answer is hardly feasible, if at all."""

LARGE = 3000
"""Pairs from which presolve gains more than it takes, and the simplex method can lose itself: an interior point method
with crossover finds the vertex."""

MOST_ROUNDS, MOST_NEW = 30, 10
"""Rounds of adding pairs, and pairs added for each column in a round: those of the least reduced costs."""

VIOLATED = 1e-10
"""Share of its mass by which a column must break a row for the row to be added: what the simplex method leaves."""

LARGEST_ENTRY = 1e6
"""Coefficients that rows have at most, before masses; HiGHS takes none above 1e15."""

MOST_CUTTING_ROUNDS = 500
"""Rounds of adding rows; 5 to 60 are usual."""


def vertex(
    problem: Assignment,
    proof: Assignment,
    mask: NDArray[np.bool_],
    *,
    aim: float,
    end: float,
    bound: float = -math.inf,
) -> Assigned:
    """An optimal vertex among those on the pairs of `mask`, extended until the bound for `proof` is within `aim`."""
    program = Program(problem)
    xs, ys = np.nonzero(mask)
    used = mask.copy()
    program.add(xs, ys)
    for rounds in range(MOST_ROUNDS):
        shares, found = program.solve(end)
        bound = max(bound, assignment.lower_bound(proof, found))
        cost = problem.cost_of(shares)
        prices = assignment.reduced_costs(problem, found) - program.rows[:, None]
        gains = np.where(used | ~problem.open, np.inf, prices)
        order = np.argsort(gains, axis=0)[:MOST_NEW]
        xs, ys = order.ravel(), np.tile(np.arange(problem.n), len(order))
        new = gains[xs, ys] < 0.0
        late = rounds == MOST_ROUNDS - 1 or time.monotonic() >= end
        if cost - bound <= aim or late or not new.any():
            return Assigned(shares, cost, bound, found, "simplex")
        xs, ys = xs[new], ys[new]
        used[xs, ys] = True
        program.add(xs, ys)
    raise AssertionError("the last round returns")


def _lengths(*parts: Array) -> Array:
    """By what rows are divided, (m, 1): powers of two, 1 up to `LARGEST_ENTRY`."""
    largest = np.max([np.abs(part).max(axis=1, initial=0.0) for part in parts], axis=0)
    return np.exp2(np.ceil(np.log2(np.maximum(largest / LARGEST_ENTRY, 1.0))))[:, None]


class Program:
    """The linear program, rows first, columns as they come."""

    def __init__(self, problem: Assignment) -> None:
        import highspy

        large = problem.open.sum() > LARGE
        how = {"solver": "ipm", "presolve": "on"} if large else {"presolve": "off"}
        self._highs = highs = highs_with(SHARP | how)
        self.problem = problem
        n, keep = problem.n, int(problem.keep)
        rows, offset, auxiliary = problem.sides
        self._lengths = _lengths(rows - offset[:, None], auxiliary)
        self._sides = [
            (rows - offset[:, None]) / self._lengths,
            auxiliary / self._lengths,
        ]
        m, a = auxiliary.shape
        self._statuses, self._refused = (
            highspy.HighsModelStatus,
            highspy.HighsStatus.kError,
        )
        self._first = n * (1 + keep)
        lower, upper = (
            np.repeat([1.0, end], [self._first, m * n])
            for end in (0.0, highspy.kHighsInf)
        )
        highs.addRows(
            len(lower), lower, upper, 0, np.zeros(len(lower), np.int32), [], []
        )
        self._at: list[NDArray[np.intp]] = []
        self.rows = np.zeros(n)
        self._scales = [np.zeros(0)]
        self._last = self._first + m * n
        if a:  # auxiliary variable k of column y, in units of p_y
            k, y = (
                g.ravel()
                for g in np.meshgrid(np.arange(a), np.arange(n), indexing="ij")
            )
            index = self._first + y[:, None] + n * np.arange(m)[None, :]
            self._append(np.zeros(a * n), np.zeros(a * n), index, self._sides[1].T[k])
        self._auxiliary = a * n

    def _append(
        self, costs: Array, lower: Array, index: NDArray[np.intp], values: Array
    ) -> None:
        count, width = index.shape
        entries = count * width, np.arange(count) * width, index.ravel(), values.ravel()
        self._taken(
            self._highs.addCols(count, costs, lower, np.full(count, np.inf), *entries)
        )

    def _taken(self, status: object) -> None:
        if status == self._refused:
            raise BackendFailure("HiGHS takes no coefficients of this size")

    def add(self, xs: NDArray[np.intp], ys: NDArray[np.intp]) -> None:
        """The pairs (x, y)."""
        problem, n = self.problem, self.problem.n
        rows = self._sides[0]
        weight = problem.masses[xs] / problem.masses[ys]
        index = [xs[:, None], *([n + ys[:, None]] if problem.keep else [])]
        values = [np.ones((len(xs), 1)), *([weight[:, None]] if problem.keep else [])]
        index.append(self._first + ys[:, None] + n * np.arange(len(rows))[None, :])
        values.append(weight[:, None] * rows.T[xs])
        floor = np.where(xs == ys, problem.floors[xs], 0.0)
        costs = problem.masses[xs] * problem.cost[xs, ys]
        self._append(costs, floor, np.hstack(index), np.hstack(values))
        self._at.append(xs * n + ys)

    def cut(self, y: int, rows: Array) -> None:
        """Rows (k, n) that the shares of column y must not bring below zero; all pairs must be there."""
        opened, mass = self.problem.open[:, y], self.problem.masses[y]
        places = np.cumsum(self.problem.open).reshape(self.problem.open.shape) - 1
        index = np.tile(places[opened, y] + self._auxiliary, len(rows))
        values = rows[:, opened] / mass
        lengths = _lengths(values)
        k, width = values.shape
        entries = k * width, np.arange(k) * width, index, (values / lengths).ravel()
        self._taken(self._highs.addRows(k, np.zeros(k), np.full(k, np.inf), *entries))
        self._scales.append(mass * lengths[:, 0])

    def solve(self, end: float) -> tuple[Array, Multipliers]:
        """Optimal shares over the pairs so far, and multipliers."""
        highs, problem, n = self._highs, self.problem, self.problem.n
        if end < math.inf:
            highs.setOptionValue(
                "time_limit", highs.getRunTime() + max(end - time.monotonic(), 0.0)
            )
        highs.run()
        for way in OTHER_WAYS:
            if highs.getModelStatus() in (
                self._statuses.kOptimal,
                self._statuses.kTimeLimit,
            ):
                break
            highs.clearSolver()
            set_options(highs, way)
            highs.run()
        status = highs.getModelStatus()
        whole = sum(map(len, self._at)) == problem.open.sum()
        if whole and status in (self._statuses.kInfeasible, self._statuses.kUnknown):
            raise EmptyPolytope(assignment.NONE)
        if status != self._statuses.kOptimal:
            raise BackendFailure(
                f"HiGHS ended with {highs.modelStatusToString(status)}"
            )
        solution = highs.getSolution()
        values = np.maximum(np.array(solution.col_value)[self._auxiliary :], 0.0)
        dual = np.array(solution.row_dual)
        shares = np.zeros(n * n)
        shares[np.concatenate(self._at)] = values
        shares = shares.reshape(n, n)
        p = problem.masses
        self.rows = dual[:n] / p
        masses = dual[n : 2 * n] / p if problem.keep else np.zeros(n)
        own = np.maximum(dual[self._last :], 0.0) / np.concatenate(self._scales)
        of_rows = (
            np.maximum(dual[self._first : self._last].reshape(-1, n), 0.0)
            / self._lengths
        )
        found = Multipliers(of_rows / p, masses, own)
        return shares / shares.sum(axis=1)[:, None], found


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
    """Solve the problem (whose polytope has no rows) for columns in the set with a margin; the bound is for the set.

    Parameters and errors are those of `solvers.assignment.assign`. Where nothing else restricts the columns, each
    relaxed solution is pulled into the set, towards columns that tell nothing: it may end the search at any time.
    """
    problem.check()
    end = math.inf if time_limit is None else time.monotonic() + time_limit
    p, n, proof = problem.masses, problem.n, proof or problem
    aim = max(gap, assignment.LEAST_GAP) * problem.spread()
    is_free = bool(problem.open.all()) and not problem.floors.any()
    program = Program(problem)
    program.add(*np.nonzero(problem.open))
    rows, of = np.zeros((0, n)), np.zeros(0, dtype=np.intp)
    bound, best = -math.inf, None
    for rounds in range(1, MOST_CUTTING_ROUNDS + 1):
        try:
            shares, found = program.solve(end)
        except BackendFailure:
            if best is None:
                raise
            return replace(best, bound=bound)
        bound = max(
            bound,
            assignment.lower_bound(priced(proof, uncertain, rows, of, found), found),
        )
        worst, pulled, broken = separated(problem, uncertain, shares, margin)
        if worst <= VIOLATED or is_free:
            inside = shares if worst <= VIOLATED else pulled
            cost = problem.cost_of(inside)
            if best is None or cost < best.cost:
                best = Assigned(
                    inside, cost, bound, found, "simplex with rows found by sorting"
                )
        if progress is not None and best is not None:
            progress(best.cost, bound, rounds)
        late = time.monotonic() >= end or rounds == MOST_CUTTING_ROUNDS
        if best is not None and (worst <= VIOLATED or best.cost - bound <= aim or late):
            return replace(best, bound=bound)
        if late:
            break
        for y, cuts in broken:
            program.cut(y, cuts - margin * p)
            rows, of = np.vstack([rows, cuts]), np.append(of, np.full(len(cuts), y))
    raise BackendFailure("no assignment was found in time")


def separated(
    problem: Assignment, uncertain: UncertainSet, shares: Array, margin: float
) -> tuple[float, Array, list[tuple[int, Array]]]:
    """How far columns must be pulled towards telling nothing, the shares so pulled, the rows that columns break."""
    masses = problem.masses @ shares
    used = np.flatnonzero(masses > VIOLATED * problem.masses)
    columns = (shares[:, used] / masses[used]).T
    excess = np.maximum(uncertain.excess(columns * problem.masses) + margin, 0.0)
    worst = float((excess / (excess + uncertain.room)).max())
    limit = margin - 0.5 * VIOLATED * uncertain.room
    found = [
        (y, uncertain.cuts(w), w) for y, w in zip(used.tolist(), columns, strict=True)
    ]
    broken = [
        (y, cuts[cuts @ w < limit]) for y, cuts, w in found if (cuts @ w < limit).any()
    ]
    return worst, (1.0 - worst) * shares + worst * masses, broken


def priced(
    problem: Assignment,
    uncertain: UncertainSet,
    rows: Array,
    of: NDArray[np.intp],
    found: Multipliers,
) -> Assignment:
    """The problem with rows, each of one column, in its costs (rounded downwards): a bound on it is one for them."""
    nu = np.nan_to_num(found.own, nan=0.0, posinf=0.0)
    prices, sizes = np.zeros_like(problem.cost), np.zeros_like(problem.cost)
    np.add.at(prices.T, of, nu[:, None] * rows)
    np.add.at(sizes.T, of, nu[:, None] * (np.abs(rows) + uncertain.row_error))
    np.add.at(prices.T, of, np.outer(nu * uncertain.row_error, np.ones(problem.n)))
    p = problem.masses[:, None]
    # Sums of len(nu) + 8 terms, each of them a product of rounded numbers.
    error = 4.0 * assignment.UNIT * (len(nu) + 8) * (np.abs(problem.cost) + sizes / p)
    return replace(problem, cost=problem.cost - prices / p - error)
