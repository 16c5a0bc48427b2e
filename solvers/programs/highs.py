"""HiGHS: the master program, which grows by columns, and programs that are solved once.

Row j of the master is divided by about the target's entry p_j and column k multiplied by about the
largest weight that it can have, both by powers of two (exact). So every entry is at most about one,
absolute tolerances of the simplex are relative to each p_j, and a coordinate of probability 1e-15
is met as exactly as one of 0.1.

Callers of `solve_program` round the solution and verify it exactly. Only its optimality rests on
HiGHS alone, and their results say so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.errors import BackendFailure
from solvers.points import Array, Points

FEASIBILITY = 1e-7
"""Largest residual of the equations of a usable solution, relative to about each entry of the
point: the default tolerance of HiGHS. Channels are verified exactly before a release; this only
catches output of HiGHS that is no solution."""


@dataclass(frozen=True, eq=False)
class PriceBox:
    """lower <= prices <= upper, per coordinate: keeps prices from jumping while columns are few.

    In the primal program missing mass of a coordinate costs `upper`, and surplus mass brings
    `lower`.
    """

    lower: Array
    upper: Array


class MasterStatus(StrEnum):
    """How a solve of the master ended."""

    OPTIMAL = "optimal"
    TIME_LIMIT = "time limit reached: allow more seconds"
    FAILED = "HiGHS failed"


@dataclass(frozen=True, eq=False)
class MasterSolution:
    """Weights (k,), prices (n,) and value ``prices.point`` of one solve.

    `slack` is the mass that the box paid for; `residual` is the worst error of an equation, with
    the slack included.
    """

    status: MasterStatus
    weights: Array
    dual: Array
    value: float
    slack: float
    residual: float

    @property
    def is_optimal(self) -> bool:
        """Claimed optimal by HiGHS, finite, and its equations hold to `FEASIBILITY`."""
        finite = bool(np.isfinite(self.dual).all() and np.isfinite(self.weights).all())
        return (
            self.status is MasterStatus.OPTIMAL
            and finite
            and self.residual <= FEASIBILITY
        )


DUAL_SIMPLEX = 1
"""HiGHS's number of its dual simplex method."""

PRIMAL_SIMPLEX = 4
"""HiGHS's number of its primal simplex method.

New columns and new box costs keep the old basis primal feasible, so the primal simplex continues
from it. Closing the box keeps it dual feasible, so there the dual simplex continues.
"""

SHARP: dict[str, str | int | float] = {
    "solver": "simplex",
    "threads": 1,
    # The sharpest that HiGHS takes: with the default 1e-7 a column that gains less never enters.
    "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10,
    # The default 1e-9 would drop the rare coordinates of a column.
    "small_matrix_value": 1e-12,
}

OPTIONS: dict[str, str | int | float] = SHARP | {
    # Presolve would throw the warm basis away, and costs more than it saves on wide programs.
    "presolve": "off",
    # The program is scaled already. A basis that is feasible after further scaling need not be so
    # before, and with weights of -1e-7 it would decompose another point.
    "simplex_scale_strategy": 0,
}

OTHER_WAYS: tuple[dict[str, str | int | float], ...] = (
    # The old basis can lead into numerical trouble that a new start avoids.
    {},
    {"simplex_strategy": DUAL_SIMPLEX, "simplex_scale_strategy": 2},
    {"presolve": "on", "simplex_scale_strategy": 2},
    {"solver": "ipm"},
    {"primal_feasibility_tolerance": 1e-8, "dual_feasibility_tolerance": 1e-8},
)
"""Options tried in turn, from nothing, where a solve fails."""

ACCURACY = 1e-9
"""Residual, ten times the tolerance above, from which a solve is repeated from nothing."""

LARGEST_SCALE = 2.0**60
"""Rows of rarer coordinates (of probability below 1e-18) are not scaled any further."""


def highs_with(options: Mapping[str, str | int | float]) -> Any:
    """A silent HiGHS."""
    import highspy

    highs = highspy.Highs()
    highs.silent()
    set_options(highs, options)
    return highs


def set_options(highs: Any, options: Mapping[str, str | int | float]) -> None:
    """Set these options."""
    for option, value in options.items():
        highs.setOptionValue(option, value)


class HighsMaster:
    """The master program of an envelope: min cost.w over sum_k w_k v_k = point, w >= 0.

    It grows by columns and keeps the basis of the last solve. The first 2n columns of HiGHS are the
    two sides of the price box.
    """

    def __init__(self, target: Array) -> None:
        import highspy

        self._target = np.array(target, dtype=np.float64)
        positive = np.where(self._target > 0.0, self._target, 1.0)
        self._rows = np.minimum(np.exp2(-np.round(np.log2(positive))), LARGEST_SCALE)
        self._columns = np.zeros(0)
        self._statuses = highspy.HighsModelStatus
        self._inf = highspy.kHighsInf
        self._highs = highs_with(OPTIONS)
        n = len(target)
        scaled = self._target * self._rows
        self._highs.addRows(n, scaled, scaled, 0, np.zeros(n, np.int32), [], [])
        # Both sides of the price box, closed at first: missing mass, then mass too much.
        side = np.arange(n, dtype=np.int32)
        self._sides = np.arange(2 * n, dtype=np.int32)
        for sign in (1.0, -1.0):
            self._highs.addCols(
                n,
                np.zeros(n),
                np.zeros(n),
                np.zeros(n),
                n,
                side,
                side,
                np.full(n, sign),
            )
        self._box: PriceBox | None = None

    def add(self, points: Points, costs: Array) -> None:
        """Append columns, scaled by powers of two so that their largest entries are about one."""
        k = len(points)
        if not k:
            return
        starts = points.indptr[:-1]
        entries = points.data * self._rows[points.indices]
        largest = np.maximum.reduceat(entries, starts)
        positive = np.maximum(largest, np.finfo(np.float64).tiny)
        scale = np.exp2(-np.round(np.log2(positive)))
        self._columns = np.concatenate([self._columns, scale])
        scaled = entries * scale[points.owner]
        self._highs.addCols(
            k,
            costs * scale,
            np.zeros(k),
            np.full(k, self._inf),
            len(scaled),
            starts,
            points.indices,
            scaled,
        )

    def solve(self, time_limit: float, box: PriceBox | None = None) -> MasterSolution:
        """Optimise from the last basis; where that fails, with `OTHER_WAYS`."""
        highs = self._highs
        self._set_box(box)
        # HiGHS counts the time of all runs of one object together.
        end = highs.getRunTime() + max(time_limit, 0.0)
        highs.setOptionValue("time_limit", min(end, self._inf))
        solution = self._run()
        highs.setOptionValue("simplex_strategy", PRIMAL_SIMPLEX)
        # Prices in a box only guide local searches, so only weights without one must be accurate.
        accurate = box is not None or solution.residual <= ACCURACY
        if solution.is_optimal and accurate:
            return solution
        for way in OTHER_WAYS:
            if solution.status is MasterStatus.TIME_LIMIT:
                break
            highs.clearSolver()
            set_options(highs, way)
            again = self._run()
            set_options(highs, {**OPTIONS, "simplex_strategy": PRIMAL_SIMPLEX})
            # A solution that is merely inaccurate is replaced only by a more accurate one.
            worse = solution.is_optimal and solution.residual <= again.residual
            better = again.is_optimal and not worse
            if better or again.status is MasterStatus.TIME_LIMIT:
                solution = again
            if solution.is_optimal:
                break
        return solution

    def _run(self) -> MasterSolution:
        """Run HiGHS once; the solution in unscaled units, its residual computed anew."""
        highs = self._highs
        n = len(self._target)
        highs.run()
        status = MasterStatus.FAILED
        if highs.getModelStatus() == self._statuses.kOptimal:
            status = MasterStatus.OPTIMAL
        elif highs.getModelStatus() == self._statuses.kTimeLimit:
            status = MasterStatus.TIME_LIMIT
        solution = highs.getSolution()
        primal = np.array(solution.col_value, dtype=np.float64)
        dual = np.array(solution.row_dual, dtype=np.float64)
        activity = np.array(solution.row_value, dtype=np.float64)
        if len(dual) != n or len(primal) != highs.getNumCol():
            return MasterSolution(
                MasterStatus.FAILED, primal[:0], np.zeros(n), np.inf, np.inf, np.inf
            )
        slack = primal[: 2 * n]
        # Weights below zero within the tolerance count as zero; the residual includes the error.
        weights = np.maximum(primal[2 * n :], 0.0) * self._columns
        missed = np.abs(activity - self._target * self._rows).max()
        worst = float(max(missed, -primal.min(), 0.0))
        if self._box is None:
            # A closed box may hold no mass: what it holds is missing from the weights.
            worst = max(worst, float(np.abs(slack).max()))
        dual *= self._rows
        missing = float((slack.reshape(2, n) / self._rows).sum())
        return MasterSolution(
            status, weights, dual, float(dual @ self._target), missing, worst
        )

    def _set_box(self, box: PriceBox | None) -> None:
        """Open, move or close the price box, and choose a simplex method that keeps the basis."""
        if box is self._box:
            return
        highs = self._highs
        if box is None:
            highs.setOptionValue("simplex_strategy", DUAL_SIMPLEX)
            self._set_largest_slack(0.0)
        else:
            highs.setOptionValue("simplex_strategy", PRIMAL_SIMPLEX)
            if self._box is None:
                self._set_largest_slack(self._inf)
            costs = np.stack([box.upper, -box.lower]) / self._rows
            highs.changeColsCost(len(self._sides), self._sides, costs.ravel())
        self._box = box

    def _set_largest_slack(self, largest: float) -> None:
        """Bound both sides of the box: 0 closes it."""
        count = len(self._sides)
        top = np.full(count, largest)
        self._highs.changeColsBounds(count, self._sides, np.zeros(count), top)


INTEGRALITY = 1e-6
"""HiGHS's own tolerance: an integer variable may miss an integer by this much."""


@dataclass
class SparseRows:
    """Sparse rows ``lower <= sum value * variable <= upper``, collected one by one."""

    lower: list[float] = field(default_factory=list[float])
    upper: list[float] = field(default_factory=list[float])
    starts: list[int] = field(default_factory=lambda: [0])
    columns: list[int] = field(default_factory=list[int])
    values: list[float] = field(default_factory=list[float])

    def add(
        self,
        columns: Sequence[int],
        values: Sequence[float],
        lower: float,
        upper: float,
    ) -> None:
        """Append one row."""
        self.columns.extend(columns)
        self.values.extend(values)
        self.starts.append(len(self.columns))
        self.lower.append(lower)
        self.upper.append(upper)


@dataclass(frozen=True)
class Program:
    """Minimise ``costs @ x`` subject to rows and ``lower <= x <= upper``; `integer` marks
    integers.
    """

    costs: Array
    lower: Array
    upper: Array
    rows: SparseRows
    integer: NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class Solution:
    """The best point found, and HiGHS's bound on the minimum.

    `optimal` is False where the time was over. `prices` are the duals of the rows, without meaning
    where variables are integer.
    """

    x: Array
    objective: float
    bound: float
    optimal: bool
    prices: Array


def solve_program(
    program: Program, *, time_limit: float = math.inf, start: Array | None = None
) -> Solution:
    """Solve a program, from the point `start` if there is one.

    Raises
    ------
    BackendFailure
        If HiGHS ends without a feasible point.
    """
    import highspy

    n = program.costs.size
    highs = highs_with(
        {
            # One thread makes results repeatable.
            "threads": 1,
            "mip_rel_gap": 0.0,
            "mip_feasibility_tolerance": INTEGRALITY,
            "time_limit": min(float(time_limit), highspy.kHighsInf),
        }
    )
    _load(highs, program)
    if start is not None:
        guess: Any = highspy.HighsSolution()
        guess.col_value = list(start)
        highs.setSolution(guess)
    highs.run()
    status = highs.getModelStatus()
    info = highs.getInfo()
    solution = highs.getSolution()
    optimal = status == highspy.HighsModelStatus.kOptimal
    in_time = status != highspy.HighsModelStatus.kTimeLimit
    # HiGHS's number 2 of a primal solution means feasible.
    stopped = not in_time and info.primal_solution_status == 2
    x = np.asarray(solution.col_value, dtype=np.float64)
    has_point = (optimal or stopped) and x.size == n
    if not has_point:
        raise BackendFailure(
            f"HiGHS ended with '{highs.modelStatusToString(status)}' and no feasible point; "
            "give it more time, or a smaller problem"
        )
    objective = float(program.costs @ x)
    bound = objective
    if program.integer is not None:
        bound = float(info.mip_dual_bound)
    prices = np.asarray(solution.row_dual, dtype=np.float64)
    return Solution(x, objective, bound, optimal, prices)


def _load(highs: Any, program: Program) -> None:
    """Load a program into HiGHS: columns, rows, and integers."""
    import highspy

    n = program.costs.size
    rows = program.rows
    no_entries = np.zeros(n, np.int32)
    highs.addCols(n, program.costs, program.lower, program.upper, 0, no_entries, [], [])
    highs.addRows(
        len(rows.lower),
        rows.lower,
        rows.upper,
        len(rows.values),
        rows.starts[:-1],
        rows.columns,
        rows.values,
    )
    if program.integer is not None:
        integers = np.flatnonzero(program.integer).astype(np.int32)
        kinds = [highspy.HighsVarType.kInteger] * len(integers)
        highs.changeColsIntegrality(len(integers), integers, kinds)
