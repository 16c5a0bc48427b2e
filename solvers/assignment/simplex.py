"""Vertices of `Assignment` problems by the simplex method of HiGHS, over the pairs that may matter.

`Program` is the linear program in the shares r(x, y) = q(x, y) / p_x of some pairs:

    minimise    sum_xy p_x c(x, y) r(x, y)
    subject to  sum_y r(x, y) = 1                                for every mass x
                sum_x (p_x / p_y) r(x, y) = 1                    for every column y of kept mass
                sum_x (p_x / p_y) t_i(x) r(x, y) + a_i.s_y >= 0  for every row i and column y

with r(x, x) at least the floor, and s_y >= 0 the auxiliary variables of column y over p_y. Shares
and rows divided by p_y make the tolerances of HiGHS, which are absolute, relative to the masses.

`vertex` solves it, prices all pairs with the duals, and adds those of negative reduced cost, until
the bound of the duals, which holds for all pairs (`solvers.assignment.assignment`), closes the gap.

For example, with p = (1/2, 1/2) and the row v_0 <= 3/4, that is -v_0 / 4 + 3 v_1 / 4 >= 0, column 0
has -r(0, 0) / 4 + 3 r(1, 0) / 4 >= 0.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.assignment import assignment
from solvers.assignment.assignment import Assigned, Assignment, Multipliers
from solvers.errors import BackendFailure, EmptyPolytope, OutOfTime
from solvers.pace import passing
from solvers.points import Array
from solvers.programs import SHARP, highs_with, is_over, run_highs, set_options, stop_at

OTHER_WAYS: tuple[dict[str, str | int | float], ...] = (
    {"presolve": "on"},
    {
        "solver": "ipm",
        "primal_feasibility_tolerance": 1e-8,
        "dual_feasibility_tolerance": 1e-8,
    },
)
"""Options tried in turn, from nothing, where a solve fails. A program that then still has no answer
is hardly feasible, if at all."""

LARGE = 3000
"""Pairs from which presolve gains more than it takes, and the simplex method can lose itself: an
interior point method with crossover finds the vertex."""

MOST_ROUNDS = 30
"""Rounds of adding pairs."""

MOST_NEW = 10
"""Pairs added for each column in a round: those of the least reduced costs."""

LARGEST_ENTRY = 1e6
"""Coefficients that rows have at most, before masses; HiGHS takes none above 1e15."""


def vertex(
    problem: Assignment,
    proof: Assignment,
    mask: NDArray[np.bool_],
    *,
    aim: float,
    end: float,
    bound: float = -math.inf,
) -> Assigned:
    """An optimal vertex on the pairs of `mask`, extended until the bound for `proof` is within
    `aim`.
    """
    program = Program(problem)
    xs, ys = np.nonzero(mask)
    used = mask.copy()
    program.add(xs, ys)
    for rounds in range(MOST_ROUNDS):
        shares, multipliers = program.solve(end)
        bound = max(bound, assignment.lower_bound(proof, multipliers))
        cost = problem.cost_of(shares)
        # Reduced costs of all pairs, also of those that are no variables yet.
        charged = assignment.reduced_costs(problem, multipliers)
        reduced = charged - program.rows[:, None]
        waiting = np.where(used | ~problem.open, np.inf, reduced)
        order = np.argsort(waiting, axis=0)[:MOST_NEW]
        xs = order.ravel()
        ys = np.tile(np.arange(problem.n), len(order))
        new = waiting[xs, ys] < 0.0
        late = rounds == MOST_ROUNDS - 1 or time.process_time() >= end
        if cost - bound <= aim or late or not new.any():
            return Assigned(shares, cost, bound, multipliers, "simplex")
        xs = xs[new]
        ys = ys[new]
        used[xs, ys] = True
        program.add(xs, ys)
    raise AssertionError("the last round returns")


def _lengths(*parts: Array) -> Array:
    """Divisors of the rows, (m, 1): powers of two, 1 up to `LARGEST_ENTRY`."""
    largest = np.max([np.abs(part).max(axis=1, initial=0.0) for part in parts], axis=0)
    return np.exp2(np.ceil(np.log2(np.maximum(largest / LARGEST_ENTRY, 1.0))))[:, None]


PAIR_TIME = 1e-6
"""Seconds that a pair takes in a program before HiGHS looks at the time (4.4 s for 4 million)."""

SHORT = 0.5
"""Seconds that a program may take in any case."""


def check_time(problem: Assignment, end: float) -> None:
    """Raise OutOfTime where a program of all pairs does not fit into the time until `end`, a moment
    of `time.process_time`.
    """
    seconds = PAIR_TIME * int(problem.open.sum())
    if seconds > max(end - time.process_time(), SHORT):
        raise OutOfTime("a program of all pairs does not fit into the time limit")


class Program:
    """The linear program of an assignment over some pairs, to which pairs and rows can be added.

    Rows of HiGHS: the sums of the n masses; where masses are kept, those of the n columns; the
    one-sided rows of all columns, row i of column y at ``first + n i + y``; then the rows added by
    `cut`. Columns: the auxiliary variables of all columns, then the pairs in the order in which
    they came, then the variables of totals.

    Attributes
    ----------
    rows : (n,) array
        Duals of the sums of the masses at the last solution.
    """

    def __init__(self, problem: Assignment) -> None:
        import highspy

        self.problem = problem
        n = problem.n
        if problem.open.sum() > LARGE:
            method = {"solver": "ipm", "presolve": "on"}
        else:
            method = {"presolve": "off"}
        self._highs = highs_with(SHARP | method)
        self._statuses = highspy.HighsModelStatus
        self._refused = highspy.HighsStatus.kError
        rows, offset, auxiliary = problem.sides
        general = rows - offset[:, None]
        self._lengths = _lengths(general, auxiliary)
        self._general = general / self._lengths
        m = len(general)
        # Equations come first: n sums of the masses, and n masses of columns where these are kept.
        self._first = n
        if problem.keep:
            self._first = 2 * n
        self._last = self._first + m * n
        lower = np.zeros(self._last)
        lower[: self._first] = 1.0
        upper = np.full(self._last, highspy.kHighsInf)
        upper[: self._first] = 1.0
        no_entries = np.zeros(self._last, np.int32)
        self._highs.addRows(self._last, lower, upper, 0, no_entries, [], [])
        self.rows = np.zeros(n)
        # The cell x n + y of every pair, in the order in which they were added.
        self._cells: list[NDArray[np.intp]] = []
        self._scales = [np.zeros(0)]
        # The variables of each total, which come behind the pairs.
        self._totals: list[NDArray[np.intp]] = []
        self._auxiliary = auxiliary.shape[1] * n
        if self._auxiliary:
            self._add_auxiliary(auxiliary / self._lengths)

    def _add_auxiliary(self, auxiliary: Array) -> None:
        """Auxiliary variable k of column y, in units of p_y, for all k and y."""
        m, count = auxiliary.shape
        n = self.problem.n
        k = np.repeat(np.arange(count), n)
        y = np.tile(np.arange(n), count)
        index = self._first + y[:, None] + n * np.arange(m)[None, :]
        zeros = np.zeros(count * n)
        self._append(zeros, zeros, index, auxiliary.T[k])

    def _append(
        self, costs: Array, lower: Array, index: NDArray[np.intp], values: Array
    ) -> None:
        """Append columns; row i of index and values are the entries of column i."""
        count, width = index.shape
        starts = np.arange(count) * width
        upper = np.full(count, np.inf)
        status = self._highs.addCols(
            count,
            costs,
            lower,
            upper,
            count * width,
            starts,
            index.ravel(),
            values.ravel(),
        )
        self._check_taken(status)

    def _check_taken(self, status: object) -> None:
        """Raise BackendFailure where HiGHS refuses what was added."""
        if status == self._refused:
            raise BackendFailure("HiGHS takes no coefficients of this size")

    def add(self, xs: NDArray[np.intp], ys: NDArray[np.intp]) -> None:
        """Add the pairs (x, y): variables q(x, y) / p_x, at least the floor where x is y."""
        problem = self.problem
        n = problem.n
        weight = (problem.masses[xs] / problem.masses[ys])[:, None]
        # Each pair stands in the sum of its row, in the mass of its column, and in the rows of
        # its column.
        index = [xs[:, None]]
        values = [np.ones((len(xs), 1))]
        if problem.keep:
            index.append(n + ys[:, None])
            values.append(weight)
        general = np.arange(len(self._general))[None, :]
        index.append(self._first + ys[:, None] + n * general)
        values.append(weight * self._general.T[xs])
        floor = np.where(xs == ys, problem.floors[xs], 0.0)
        costs = problem.masses[xs] * problem.cost[xs, ys]
        self._append(costs, floor, np.hstack(index), np.hstack(values))
        self._cells.append(xs * n + ys)

    def cut(self, broken: Sequence[tuple[int, Array]]) -> None:
        """Add rows (k, n) that are at least zero to some columns (y, rows); all pairs must have
        been added.
        """
        places = self._places()
        blocks: list[tuple[NDArray[np.intp], Array]] = []
        for y, rows in broken:
            opened = self.problem.open[:, y]
            mass = self.problem.masses[y]
            values = rows[:, opened] / mass
            lengths = _lengths(values)
            index = np.tile(places[opened, y], (len(rows), 1))
            blocks.append((index, values / lengths))
            self._scales.append(mass * lengths[:, 0])
        self._add_rows(blocks)

    def _places(self) -> NDArray[np.intp]:
        """The variable of each pair, (n, n), in the order of `np.nonzero`, in which all pairs were
        added.
        """
        allowed = self.problem.open
        return np.cumsum(allowed).reshape(allowed.shape) - 1 + self._auxiliary

    def _add_rows(self, blocks: Sequence[tuple[NDArray[np.intp], Array]]) -> None:
        """Append rows that are at least zero; row i of the index and values of a block are its
        entries.
        """
        # At once, because HiGHS brings its whole matrix into another order whenever rows come.
        widths = [np.full(len(values), values.shape[1]) for _, values in blocks]
        ends = np.cumsum(np.concatenate([[0], *widths]))
        k = len(ends) - 1
        status = self._highs.addRows(
            k,
            np.zeros(k),
            np.full(k, np.inf),
            int(ends[-1]),
            ends[:-1],
            np.concatenate([index.ravel() for index, _ in blocks]),
            np.concatenate([values.ravel() for _, values in blocks]),
        )
        self._check_taken(status)

    def add_total(self, most: float) -> None:
        """Add a variable t_y >= 0 for every column, with sum_y p_y t_y <= most; all pairs must have
        been added, and no cuts.
        """
        n = self.problem.n
        first = self._auxiliary + sum(len(cells) for cells in self._cells)
        first += n * len(self._totals)
        none = np.zeros((n, 0), dtype=np.intp)
        self._append(np.zeros(n), np.zeros(n), none, np.zeros((n, 0)))
        variables = np.arange(first, first + n)
        status = self._highs.addRows(
            1, [-np.inf], [most], n, [0], variables, self.problem.masses
        )
        self._check_taken(status)
        self._totals.append(variables)
        self._last += 1

    def cut_total(self, k: int, y: int, row: Array) -> None:
        """Add the row ``p_y t_y >= row r(., y)`` of total k and column y."""
        opened = self.problem.open[:, y]
        mass = self.problem.masses[y]
        values = np.append(-row[opened] / mass, 1.0)[None, :]
        lengths = _lengths(values)
        index = np.append(self._places()[opened, y], self._totals[k][y])
        self._add_rows([(index[None, :], values / lengths)])
        self._scales.append(mass * lengths[:, 0])

    def solve(self, end: float) -> tuple[Array, Multipliers]:
        """Optimal shares over the pairs so far, and multipliers.

        Raises
        ------
        EmptyPolytope
            If all pairs are there and HiGHS finds no assignment.
        BackendFailure
            If it has no answer, or none in time.
        """
        self._run(end)
        solution = self._highs.getSolution()
        return self._shares(solution), self._multipliers(solution)

    def _run(self, end: float) -> None:
        """Run HiGHS, in `OTHER_WAYS` where it fails."""
        highs = self._highs
        if end < math.inf:
            left = passing(end - time.process_time())
            # HiGHS counts the time of all runs of one object together.
            highs.setOptionValue("time_limit", highs.getRunTime() + left)
        stop_at(highs, end)
        run_highs(highs)
        for way in OTHER_WAYS:
            if highs.getModelStatus() == self._statuses.kOptimal or is_over(highs):
                break
            highs.clearSolver()
            set_options(highs, way)
            run_highs(highs)
        status = highs.getModelStatus()
        pairs = sum(len(cells) for cells in self._cells)
        infeasible = (self._statuses.kInfeasible, self._statuses.kUnknown)
        # Over some of the pairs an infeasible program proves nothing.
        if pairs == self.problem.open.sum() and status in infeasible:
            raise EmptyPolytope(assignment.NONE)
        if status != self._statuses.kOptimal:
            raise BackendFailure(
                f"HiGHS ended with {highs.modelStatusToString(status)}"
            )

    def _shares(self, solution: Any) -> Array:
        """q(x, y) / p_x, with rows that sum to 1 whatever HiGHS rounds."""
        n = self.problem.n
        cells = np.concatenate(self._cells)
        values = np.array(solution.col_value)[self._auxiliary :][: len(cells)]
        shares = np.zeros(n * n)
        shares[cells] = np.maximum(values, 0.0)
        shares = shares.reshape(n, n)
        return shares / shares.sum(axis=1)[:, None]

    def _multipliers(self, solution: Any) -> Multipliers:
        """The duals, in the units of the unscaled rows; those of inequalities not negative."""
        n = self.problem.n
        p = self.problem.masses
        dual = np.array(solution.row_dual)
        # Row x sums shares: a dual of the masses q is that of the shares over p_x.
        self.rows = dual[:n] / p
        masses = np.zeros(n)
        if self.problem.keep:
            masses = dual[n : 2 * n] / p
        general = dual[self._first : self._last - len(self._totals)].reshape(-1, n)
        of_rows = np.maximum(general, 0.0) / self._lengths
        of_cuts = np.maximum(dual[self._last :], 0.0) / np.concatenate(self._scales)
        return Multipliers(of_rows / p, masses, of_cuts)
