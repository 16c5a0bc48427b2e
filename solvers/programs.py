"""Programs that are handed to a solver: linear, integer (HiGHS) and semidefinite ones (Clarabel).

*Programs that HiGHS solves once*, and a HiGHS with options for others to load. A `Program` is:
minimise costs.x over lower <= x <= upper and rows lower <= sum value * x <= upper, some x integer.
`solve_program` loads it and returns the best x, a bound on the minimum, and the duals of the rows.
For example, minimise 2 x_0 + x_1 over x_0 + x_1 >= 1, 0 <= x <= 1:

    rows = SparseRows()
    rows.add([0, 1], [1.0, 1.0], 1.0, math.inf)
    solve_program(Program(np.array([2.0, 1.0]), np.zeros(2), np.ones(2), rows)).x   # (0, 1)

Callers round and verify what they get. Only its optimality rests on the solver alone, and their
results say so. Programs that change from solve to solve, and so keep their basis, use
`highs_with` and the object that it gives.

*The master program* of an envelope grows by columns and keeps its basis in HiGHS:

    minimise cost.w   over   sum_k w_k v_k = point,  w >= 0

`HighsMaster.add` appends columns v_k, `keep` deletes others, and `solve` gives the weights w and
the prices y, the duals of the equations. For example, at the point (0.5, 0.5) the columns (0.2,
0.8) and (0.8, 0.2) of cost 0.5 have the weights (0.5, 0.5) and the prices (0.5, 0.5); a column
helps if it costs less than y.v = 0.5.

*Price box.* While the columns do not decompose the point, slacks make up for it: a missing unit of
coordinate j costs upper_j, a unit too much brings lower_j. By duality the prices then stay within
lower <= y <= upper. Closing the box bounds all slacks by 0.

*Scale.* Row j is divided by about the point's entry p_j and column k multiplied by about the
largest weight that it can have, both by powers of two (exact). So every entry is at most about one,
absolute tolerances of the simplex are relative to each p_j, and a coordinate of probability 1e-15
is met as exactly as one of 0.1. `_run` undoes the scale.

*Failures.* A solve that fails, or misses its equations, is repeated from nothing with the options
of `OTHER_WAYS`. The residual is computed here, not taken from HiGHS.

*The theta number* of a graph (Lovász 1979) by semidefinite programming. Take the symmetric matrices
that are one on the diagonal and wherever two vertices are not adjacent, with free entries where
they are: theta(G) is the least of their largest eigenvalues. So every such matrix proves an upper
bound of theta(G), whatever its origin. `theta_matrix` lets Clarabel minimise t over t I - M >= 0
(no negative eigenvalue), with one variable for each edge, and callers bound the largest eigenvalue
of the M that it proposes anew.

For example, the pentagon has theta = sqrt(5), from a matrix with (sqrt(5) - 3) / 2 at its edges.
"""

from __future__ import annotations

import math
import signal
import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.errors import BackendFailure
from solvers.pace import passing
from solvers.points import Array, Points

# ----------------------------------------------------------------------------- programs

SHARP: dict[str, str | int | float] = {
    "solver": "simplex",
    "threads": 1,
    # The sharpest that HiGHS takes: with the default 1e-7 a column that gains less never enters.
    "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10,
    # The default 1e-9 would drop the rare coordinates of a column.
    "small_matrix_value": 1e-12,
}

INTEGRALITY = 1e-6
"""HiGHS's own tolerance: an integer variable may miss an integer by this much."""


SIGNALS = [
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP")
    # Windows lacks SIGHUP.
    if hasattr(signal, name)
]
"""Signals that end a search."""

_WAITING: list[int] = []
"""Signals that came while HiGHS ran in the main thread."""


def highs_with(options: Mapping[str, str | int | float]) -> Any:
    """A silent HiGHS with these options, without a program."""
    # Imported where it is needed: most commands solve nothing, and should not wait for it.
    import highspy

    highs = highspy.Highs()
    highs.silent()
    set_options(highs, options)
    return highs


def set_options(highs: Any, options: Mapping[str, str | int | float]) -> None:
    """Set these options of a HiGHS, and leave its others."""
    for option, value in options.items():
        highs.setOptionValue(option, value)


def stop_at(highs: Any, end: float) -> None:
    """Let the runs of a HiGHS end at a moment of `time.process_time`, which may be infinite.

    Its own limit is one of the time that goes by, which is longer on a busy machine. It stays
    necessary for what cannot be stopped in this way, such as presolve.
    """
    import highspy

    def stop(kind: Any, message: Any, facts: Any, answer: Any, data: Any) -> None:
        if _WAITING or time.process_time() >= end:
            answer.user_interrupt = True

    highs.setCallback(stop, None)
    # HiGHS asks after every step of these.
    kinds: Any = highspy.cb.HighsCallbackType
    for kind in (
        kinds.kCallbackSimplexInterrupt,
        kinds.kCallbackIpmInterrupt,
        kinds.kCallbackMipInterrupt,
    ):
        highs.startCallback(kind)


def run_highs(highs: Any) -> None:
    """Run a HiGHS to its end; signals, such as that of Ctrl-C, are handled when it has returned.

    `stop_at` asks in the middle of a run. What a handler raises there would leave the model half
    moved, and the next run of it ended the process. So handlers wait, and the run ends soon.
    """
    if threading.current_thread() is not threading.main_thread():
        # Signals are handled in the main thread alone.
        highs.run()
        return
    try:
        with ExitStack() as before:
            for number in SIGNALS:
                handler = signal.getsignal(number)
                if callable(handler):
                    before.callback(signal.signal, number, handler)
                    signal.signal(number, _wait)
            highs.run()
    finally:
        while _WAITING:
            number = _WAITING.pop()
            handler = signal.getsignal(number)
            if callable(handler):
                handler(number, None)


def _wait(number: int, _frame: Any) -> None:
    """Remember a signal; one that comes again, from an impatient hand, is the same."""
    if number not in _WAITING:
        _WAITING.append(number)


def is_over(highs: Any) -> bool:
    """Whether the last run of a HiGHS ended because its time was over."""
    import highspy

    statuses = highspy.HighsModelStatus
    return highs.getModelStatus() in (statuses.kTimeLimit, statuses.kInterrupt)


@dataclass
class SparseRows:
    """Sparse rows ``lower <= sum value * variable <= upper``, collected one by one."""

    lower: list[float] = field(default_factory=list[float])
    upper: list[float] = field(default_factory=list[float])
    # Row i has the entries starts[i] to starts[i + 1] - 1 of the two lists below.
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
        """Append ``lower <= sum_k values[k] * x[columns[k]] <= upper``."""
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
            # By default an integer solution counts as optimal at a gap of 0.01 %.
            "mip_rel_gap": 0.0,
            "mip_feasibility_tolerance": INTEGRALITY,
            "time_limit": min(passing(time_limit), highspy.kHighsInf),
        }
    )
    _load(highs, program)
    # Without a limit HiGHS has nothing to ask.
    if time_limit < math.inf:
        stop_at(highs, time.process_time() + time_limit)
    if start is not None:
        guess: Any = highspy.HighsSolution()
        guess.col_value = list(start)
        highs.setSolution(guess)
    run_highs(highs)
    status = highs.getModelStatus()
    info = highs.getInfo()
    solution = highs.getSolution()
    optimal = status == highspy.HighsModelStatus.kOptimal
    # HiGHS's number 2 of a primal solution means feasible.
    # Where the time is over a feasible point is an answer, too, with the bound beside it.
    stopped = is_over(highs) and info.primal_solution_status == 2
    x = np.asarray(solution.col_value, dtype=np.float64)
    has_point = (optimal or stopped) and x.size == n
    if not has_point:
        raise BackendFailure(
            f"HiGHS ended with '{highs.modelStatusToString(status)}' and no feasible point; "
            "give it more time, or a smaller problem"
        )
    objective = float(program.costs @ x)
    # A linear program that ends has no gap.
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


# ------------------------------------------------------------------------------- master

FEASIBILITY = 1e-7
"""Largest residual of the equations of a usable solution, relative to about each entry of the
point: the default tolerance of HiGHS. Channels are verified exactly before a release; this only
catches output of HiGHS that is no solution."""

DUAL_SIMPLEX = 1
"""HiGHS's number of its dual simplex method."""

PRIMAL_SIMPLEX = 4
"""HiGHS's number of its primal simplex method.

New columns and new box costs keep the old basis primal feasible, so the primal simplex continues
from it. Closing the box keeps it dual feasible, so there the dual simplex continues.
"""

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
    # What defeats one method, without scaling, need not defeat another one with it.
    {"simplex_strategy": DUAL_SIMPLEX, "simplex_scale_strategy": 2},
    {"presolve": "on", "simplex_scale_strategy": 2},
    {"solver": "ipm"},
    # Blunt rather than none: the residual says how far such a solution can be used.
    {"primal_feasibility_tolerance": 1e-8, "dual_feasibility_tolerance": 1e-8},
)
"""Options tried in turn, from nothing, where a solve fails."""

ACCURACY = 1e-9
"""Residual, ten times the tolerance of `SHARP`, from which a solve is repeated from nothing."""

LARGEST_SCALE = 2.0**60
"""Rows of rarer coordinates (of probability below 1e-18) are not scaled any further."""


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


class HighsMaster:
    """The master program over the columns so far; see the module's text.

    The first 2n columns of HiGHS are the two sides of the price box, the others those of `add`.
    """

    def __init__(self, target: Array) -> None:
        import highspy

        self._target = np.array(target, dtype=np.float64)
        # Factor of each row, and below of each column.
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
        # Entry v_j / p_j: the largest of a column is one over the largest weight it can have.
        entries = points.data * self._rows[points.indices]
        largest = np.maximum.reduceat(entries, starts)
        positive = np.maximum(largest, np.finfo(np.float64).tiny)
        scale = np.exp2(-np.round(np.log2(positive)))
        columns = np.concatenate([self._columns, scale])
        scaled = entries * scale[points.owner]
        self._highs.addCols(
            k,
            # A unit of the scaled column is `scale` units of the column, and costs as much.
            costs * scale,
            np.zeros(k),
            np.full(k, self._inf),
            len(scaled),
            starts,
            points.indices,
            scaled,
        )
        self._columns = columns

    def keep(self, selection: NDArray[np.intp]) -> None:
        """Delete all columns but those of the selection, a growing list; the basis stays.

        So columns of the basis must be among them.
        """
        # The two sides of the price box come first.
        first = len(self._sides)
        gone = np.ones(len(self._columns), np.bool_)
        gone[selection] = False
        places = (first + np.flatnonzero(gone)).astype(np.int32)
        self._highs.deleteCols(len(places), places)
        self._columns = self._columns[selection]

    def solve(self, time_limit: float, box: PriceBox | None = None) -> MasterSolution:
        """Optimise from the last basis; where that fails, with `OTHER_WAYS`.

        It fails at once where Ctrl-C came while columns were added or deleted: then it is not known
        which columns HiGHS has.
        """
        highs = self._highs
        if highs.getNumCol() != len(self._sides) + len(self._columns):
            return self._none()
        self._set_box(box)
        # HiGHS counts the time of all runs of one object together.
        end = highs.getRunTime() + passing(time_limit)
        highs.setOptionValue("time_limit", min(end, self._inf))
        stop_at(highs, time.process_time() + time_limit)
        solution = self._run()
        # The dual simplex was for a box just closed; columns and costs to come are for the primal.
        highs.setOptionValue("simplex_strategy", PRIMAL_SIMPLEX)
        # Prices in a box only guide local searches, so only weights without one must be accurate.
        accurate = box is not None or solution.residual <= ACCURACY
        if solution.is_optimal and accurate:
            return solution
        return self._otherwise(solution)

    def _otherwise(self, solution: MasterSolution) -> MasterSolution:
        """The solution by the first of `OTHER_WAYS` that finds a better one; else the given one."""
        highs = self._highs
        for way in OTHER_WAYS:
            if solution.status is MasterStatus.TIME_LIMIT:
                break
            highs.clearSolver()
            set_options(highs, way)
            retried = self._run()
            # The next solve begins with the usual options again, whatever this way has set.
            set_options(highs, {**OPTIONS, "simplex_strategy": PRIMAL_SIMPLEX})
            # A solution that is merely inaccurate is replaced only by a more accurate one.
            worse = solution.is_optimal and solution.residual <= retried.residual
            better = retried.is_optimal and not worse
            if better or retried.status is MasterStatus.TIME_LIMIT:
                solution = retried
            if solution.is_optimal:
                break
        return solution

    def _run(self) -> MasterSolution:
        """Run HiGHS once; the solution in unscaled units, its residual computed anew."""
        highs = self._highs
        n = len(self._target)
        run_highs(highs)
        status = MasterStatus.FAILED
        if highs.getModelStatus() == self._statuses.kOptimal:
            status = MasterStatus.OPTIMAL
        elif is_over(highs):
            status = MasterStatus.TIME_LIMIT
        solution = highs.getSolution()
        primal = np.array(solution.col_value, dtype=np.float64)
        dual = np.array(solution.row_dual, dtype=np.float64)
        activity = np.array(solution.row_value, dtype=np.float64)
        # After some failures HiGHS has no solution at all, and returns empty lists.
        if len(dual) != n or len(primal) != highs.getNumCol():
            return self._none()
        # The two sides of the box are the first columns.
        slack = primal[: 2 * n]
        # Weights below zero within the tolerance count as zero; the residual includes the error.
        weights = np.maximum(primal[2 * n :], 0.0) * self._columns
        missed = np.abs(activity - self._target * self._rows).max()
        worst = float(max(missed, -primal.min(), 0.0))
        if self._box is None:
            # A closed box may hold no mass: what it holds is missing from the weights.
            worst = max(worst, float(np.abs(slack).max()))
        # Row j was multiplied by r_j, so its price is that of 1 / r_j units of the coordinate.
        dual *= self._rows
        missing = float((slack.reshape(2, n) / self._rows).sum())
        return MasterSolution(
            status, weights, dual, float(dual @ self._target), missing, worst
        )

    def _none(self) -> MasterSolution:
        """No solution at all."""
        return MasterSolution(
            MasterStatus.FAILED,
            np.zeros(0),
            np.zeros(len(self._target)),
            np.inf,
            np.inf,
            np.inf,
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
            # Surplus enters with the sign -1, so what it brings is a negative cost; a unit of a
            # scaled row is 1 / r_j units of mass.
            costs = np.stack([box.upper, -box.lower]) / self._rows
            highs.changeColsCost(len(self._sides), self._sides, costs.ravel())
        self._box = box

    def _set_largest_slack(self, largest: float) -> None:
        """Bound both sides of the box: 0 closes it."""
        count = len(self._sides)
        top = np.full(count, largest)
        self._highs.changeColsBounds(count, self._sides, np.zeros(count), top)


# ------------------------------------------------------------------------- theta number


def theta_matrix(vertices: int, edges: NDArray[np.int64]) -> Array:
    """A matrix whose largest eigenvalue is about theta(G), never less.

    Parameters
    ----------
    vertices : int
        They are numbered from 0.
    edges : (m, 2) array
        The two vertices of every edge.

    Raises
    ------
    BackendFailure
        If Clarabel gives no matrix.
    """
    matrix = np.ones((vertices, vertices))
    # Without edges nothing is free, and the matrix of ones has the largest eigenvalue n.
    if not len(edges):
        return matrix
    # Slow to import, and only used here.
    import cvxpy
    from scipy.sparse import csr_array

    # Variable e is the entry of edge e, on both sides of the diagonal.
    columns = np.tile(np.arange(len(edges)), 2)
    above = edges[:, 0] * vertices + edges[:, 1]
    below = edges[:, 1] * vertices + edges[:, 0]
    rows = np.concatenate((above, below))
    places = csr_array(
        (np.ones(rows.size), (rows, columns)), shape=(vertices**2, len(edges))
    )

    # The least t for which t I - M has no negative eigenvalue is the largest eigenvalue of M.
    free = cvxpy.Variable(len(edges))
    largest = cvxpy.Variable()
    entries = cvxpy.reshape(places @ free, (vertices, vertices), order="C")
    identity = np.eye(vertices)
    problem = cvxpy.Problem(
        cvxpy.Minimize(largest), [largest * identity - matrix - entries >> 0]
    )
    try:
        with warnings.catch_warnings():
            # An inaccurate solution is no worse: callers bound the eigenvalue of any matrix.
            warnings.simplefilter("ignore")
            problem.solve(solver="CLARABEL")
    except cvxpy.SolverError as error:
        raise BackendFailure(f"Clarabel failed on the theta number: {error}") from None
    if free.value is None or not np.isfinite(free.value).all():
        raise BackendFailure(
            f"Clarabel ended with '{problem.status}' and no matrix for the theta number"
        )
    # Symmetric to the last digit, whatever Clarabel's own matrix is.
    matrix[edges[:, 0], edges[:, 1]] += free.value
    matrix[edges[:, 1], edges[:, 0]] += free.value
    return matrix
