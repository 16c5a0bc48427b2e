"""The master program in HiGHS, kept warm and extended by columns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from solvers.points import Points
from solvers.programs import MasterSolution, MasterStatus, PriceBox

Array = NDArray[np.float64]

DUAL_SIMPLEX, PRIMAL_SIMPLEX = 1, 4
"""New columns and new box costs keep the old basis primal feasible, so the primal simplex goes on where it
stood; closing the box keeps it dual feasible, which is the dual simplex's case."""

OPTIONS: dict[str, str | int | float] = {
    # Presolve would throw the warm basis away, and costs more than it saves on wide programs.
    "presolve": "off",
    "threads": 1,
    # Columns are probability vectors, so nothing needs scaling; a basis that is feasible after scaling need
    # not be so before, and weights of -1e-7 are a decomposition of another point.
    "simplex_scale_strategy": 0,
    # The sharpest that HiGHS takes: with the default 1e-7 a column that gains less never enters.
    "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10,
    # The default 1e-9 would drop the rare coordinates of a column.
    "small_matrix_value": 1e-12,
}

ACCURACY = 1e-9
"""Residual, ten times the tolerance above, from which an answer is worth a second run from nothing."""


class HighsMaster:
    """See `solvers.programs.Master`. The first 2n columns are the two sides of the price box."""

    def __init__(self, target: Array) -> None:
        import highspy

        self._target = np.array(target, dtype=np.float64)
        self._statuses = highspy.HighsModelStatus
        self._inf = highspy.kHighsInf
        self._highs = highs = highspy.Highs()
        highs.silent()
        for option, value in OPTIONS.items():
            highs.setOptionValue(option, value)
        n = len(target)
        none = np.zeros(0, np.int32)
        highs.addRows(n, self._target, self._target, 0, np.zeros(n, np.int32), none, np.zeros(0))
        side = np.arange(n, dtype=np.int32)
        self._sides = np.arange(2 * n, dtype=np.int32)
        for sign in (1.0, -1.0):
            highs.addCols(n, np.zeros(n), np.zeros(n), np.zeros(n), n, side, side, np.full(n, sign))
        self._box: PriceBox | None = None

    def add(self, points: Points, costs: Array) -> None:
        """Append columns."""
        k = len(points)
        if k:
            lower, upper = np.zeros(k), np.full(k, self._inf)
            starts = points.indptr[:-1]
            self._highs.addCols(
                k,
                np.ascontiguousarray(costs),
                lower,
                upper,
                len(points.data),
                starts,
                points.indices,
                points.data,
            )

    def solve(self, time_limit: float, box: PriceBox | None = None) -> MasterSolution:
        """Optimise from the last basis."""
        highs = self._highs
        self._set_box(box)
        # HiGHS counts the time of all runs of one object together.
        highs.setOptionValue("time_limit", min(highs.getRunTime() + max(time_limit, 0.0), self._inf))
        found = self._run()
        if found.status is MasterStatus.FAILED or (box is None and found.residual > ACCURACY):
            # The old basis can lead into numerical trouble that a new start avoids.
            highs.clearSolver()
            again = self._run()
            found = again if again.is_optimal and again.residual < found.residual else found
        return found

    def _run(self) -> MasterSolution:
        highs, n = self._highs, len(self._target)
        highs.run()
        status = {
            self._statuses.kOptimal: MasterStatus.OPTIMAL,
            self._statuses.kTimeLimit: MasterStatus.TIME_LIMIT,
        }.get(highs.getModelStatus(), MasterStatus.FAILED)
        solution = highs.getSolution()
        primal = np.array(solution.col_value, dtype=np.float64)
        dual = np.array(solution.row_dual, dtype=np.float64)
        activity = np.array(solution.row_value, dtype=np.float64)
        if len(dual) != n or len(primal) != highs.getNumCol():
            return MasterSolution(MasterStatus.FAILED, primal[:0], np.zeros(n), np.inf, np.inf, np.inf)
        slack, weights = primal[: 2 * n], np.maximum(primal[2 * n :], 0.0)
        # A closed box takes nothing: what it holds beyond rounding is missing from the weights.
        left = np.abs(slack).max() if self._box is None else 0.0
        worst = float(max(np.abs(activity - self._target).max(), -primal.min(), left, 0.0))
        return MasterSolution(status, weights, dual, float(dual @ self._target), float(slack.sum()), worst)

    def _set_box(self, box: PriceBox | None) -> None:
        sides, n = self._sides, len(self._target)
        if box is self._box:
            return
        closing = box is None
        self._highs.setOptionValue("simplex_strategy", DUAL_SIMPLEX if closing else PRIMAL_SIMPLEX)
        if closing != (self._box is None):
            top = np.full(2 * n, self._inf if box is not None else 0.0)
            self._highs.changeColsBounds(2 * n, sides, np.zeros(2 * n), top)
        if not closing:
            costs = np.concatenate([box.center + box.radius, box.radius - box.center])
            self._highs.changeColsCost(2 * n, sides, costs)
        self._box = box
