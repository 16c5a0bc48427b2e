"""The master program through cvxpy: slower, independent, a second opinion."""

from __future__ import annotations

import time
import warnings

import numpy as np
from numpy.typing import NDArray

from solvers.points import Points
from solvers.programs import MasterSolution, MasterStatus, PriceBox

Array = NDArray[np.float64]


class CvxpyMaster:
    """The calls of `solvers.programs.HighsMaster`; every solve starts anew.

    Clarabel, an interior point method, so that the second opinion shares no code with the simplex
    of HiGHS; first-order solvers (SCS, OSQP) break budgets by 0.01 and more.
    """

    def __init__(self, target: Array) -> None:
        self._target = np.array(target, dtype=np.float64)
        self._points = Points.units([], len(target))
        self._costs = np.zeros(0)

    def add(self, points: Points, costs: Array) -> None:
        """Append columns."""
        self._points = Points.concatenate([self._points, points])
        self._costs = np.concatenate([self._costs, costs])

    def keep(self, selection: NDArray[np.intp]) -> None:
        """Delete all columns but those of the selection."""
        self._points = self._points.take(selection)
        self._costs = self._costs[selection]

    def solve(self, time_limit: float, box: PriceBox | None = None) -> MasterSolution:
        """Optimise from nothing."""
        import cvxpy
        from scipy.sparse import csr_array

        n = len(self._target)
        k = len(self._points)
        end = time.monotonic() + time_limit

        def failed() -> MasterSolution:
            # Clarabel calls an answer inaccurate, too, when its time is over.
            status = (
                MasterStatus.TIME_LIMIT
                if time.monotonic() >= end
                else MasterStatus.FAILED
            )
            return MasterSolution(
                status, np.zeros(k), np.zeros(n), np.inf, np.inf, np.inf
            )

        if k == 0:
            return failed()
        matrix = csr_array(
            (self._points.data, self._points.indices, self._points.indptr), shape=(k, n)
        )
        weights = cvxpy.Variable(k, nonneg=True)
        missing = cvxpy.Variable(n, nonneg=True)
        excess = cvxpy.Variable(n, nonneg=True)
        rest = missing - excess
        objective = self._costs @ weights
        constraints = [matrix.T @ weights + rest == self._target]
        if box is None:
            constraints += [missing == 0.0, excess == 0.0]
        else:
            objective = objective + box.upper @ missing - box.lower @ excess
        problem = cvxpy.Problem(cvxpy.Minimize(objective), constraints)
        options = (
            {"time_limit": float(max(time_limit, 0.0))}
            if np.isfinite(time_limit)
            else {}
        )
        with warnings.catch_warnings():
            # "Solution may be inaccurate" is a status, too, and counts as a failure below.
            warnings.simplefilter("ignore", UserWarning)
            try:
                problem.solve(solver=cvxpy.CLARABEL, **options)
            except cvxpy.SolverError:
                return failed()
        price = constraints[0].dual_value
        if (
            problem.status != cvxpy.OPTIMAL
            or weights.value is None
            or rest.value is None
            or price is None
        ):
            return failed()
        found = np.maximum(np.asarray(weights.value, dtype=np.float64), 0.0)
        left = (
            np.asarray(rest.value, dtype=np.float64) if box is not None else np.zeros(n)
        )
        # cvxpy's Lagrangian adds dual @ (lhs - rhs); prices of this package have the other sign.
        dual = -np.asarray(price, dtype=np.float64)
        worst = float(np.abs(self._points.combine(found) + left - self._target).max())
        slack = float(np.abs(left).sum())
        return MasterSolution(
            MasterStatus.OPTIMAL, found, dual, float(dual @ self._target), slack, worst
        )
