"""The linear program of one box of `task_pricing`, whose multipliers prove its bound.

    minimise  c.v + s.z   over   v in Pi,  sum v = 1,  B v - z = 0,  low <= z <= high,

where c are minus the prices and s the slopes of the chords. With multipliers u of the rows and the
reduced costs r = (c, s) - u M of their matrix M, every feasible point costs at least

    u.(sides of the rows) + min over the simplex of r.v + min over the boxes of r.z,

*for any u*: the minimum over simplex and boxes is taken here, so nothing rests on HiGHS's claim
that its u is optimal, and a positive value for the program without costs proves that it is empty.
"""

from __future__ import annotations

import math

import numpy as np

from solvers.points import Array
from solvers.programs.highs import SHARP, highs_with
from solvers.sets.polytope import Polytope

MULTIPLIER_ERROR = 64.0 * np.finfo(np.float64).eps
"""Relative error of a bound that is summed from multipliers, of the sum of its terms' sizes."""

SMALLEST_ENTRY = 1e-11
"""Entries of a minimiser below this are HiGHS's tolerance and become zeros."""


class NodeProgram:
    """min costs.v + slope.z with v in the polytope, z = B v in a box; HiGHS, warm from box to box.

    Variables are v, the k auxiliary variables of the polytope, and z; rows are those of the
    polytope, sum v = 1, and B v - z = 0. HiGHS minimises over the inner polytope, so that its
    answers are columns; its multipliers are then charged with the sides of the outer one.
    """

    def __init__(self, inner: Polytope, outer: Polytope, task: Array) -> None:
        import highspy

        self._statuses = highspy.HighsModelStatus
        auxiliary = outer.auxiliary_columns
        size, n = task.shape
        k = auxiliary.shape[1]
        self._n = n
        self._k = k
        top = outer.auxiliary_bounds if k else np.zeros(0)
        matrix = np.block(
            [
                [outer.rows, auxiliary, np.zeros((outer.m, size))],
                [np.ones((1, n)), np.zeros((1, k + size))],
                [task, np.zeros((size, k)), -np.eye(size)],
            ]
        )
        self._matrix = matrix
        # Sides of the rows for the bound, of the outer polytope.
        self._lower = np.concatenate([outer.lower, [1.0], np.zeros(size)])
        self._upper = np.concatenate([outer.upper, [1.0], np.zeros(size)])
        self._top = top
        self._highs = highs_with({**SHARP, "presolve": "off"})
        columns = n + k + size
        inf = highspy.kHighsInf
        self._highs.addVars(
            columns,
            np.zeros(columns),
            np.concatenate([np.ones(n), top, np.ones(size)]),
        )
        # Sides of the rows for HiGHS, of the inner polytope; the matrix by rows, without zeros.
        row, column = np.nonzero(matrix)
        starts = np.searchsorted(row, np.arange(len(matrix))).astype(np.int32)
        below = np.concatenate([inner.lower, [1.0], np.zeros(size)])
        above = np.concatenate([inner.upper, [1.0], np.zeros(size)])
        self._highs.addRows(
            len(matrix),
            np.where(np.isfinite(below), below, -inf),
            np.where(np.isfinite(above), above, inf),
            len(row),
            starts,
            column.astype(np.int32),
            matrix[row, column],
        )
        self._every = np.arange(columns, dtype=np.int32)
        self._boxes = np.arange(n + k, columns, dtype=np.int32)

    def solve(
        self, costs: Array, slope: Array, low: Array, high: Array
    ) -> tuple[float, Array, Array] | None:
        """A lower bound, the minimiser v (n,) and its z; None where HiGHS finds no member."""
        highs = self._highs
        objective = np.concatenate([costs, np.zeros(self._k), slope])
        highs.changeColsCost(len(self._every), self._every, objective)
        highs.changeColsBounds(len(self._boxes), self._boxes, low, high)
        highs.run()
        status = highs.getModelStatus()
        if status == self._statuses.kInfeasible and self._is_proven_empty(low, high):
            return None
        solution = highs.getSolution()
        primal = np.array(solution.col_value, dtype=np.float64)
        dual = np.array(solution.row_dual, dtype=np.float64)
        if len(dual) != len(self._matrix) or len(primal) != len(self._every):
            # HiGHS has no answer. Multipliers of zero prove a poor bound, and the box is cut again.
            highs.clearSolver()
            dual = np.zeros(len(self._matrix))
            primal = np.concatenate(
                [np.full(self._n, 1.0 / self._n), np.zeros(self._k), 0.5 * (low + high)]
            )
        bound = self._safe_bound(objective, dual, low, high)
        # HiGHS's tolerance leaves traces of zeros and sums that are nearly 1.
        v = np.where(primal[: self._n] > SMALLEST_ENTRY, primal[: self._n], 0.0)
        v /= v.sum()
        z = np.clip(primal[self._n + self._k :], low, high)
        return bound, v, z

    def _is_proven_empty(self, low: Array, high: Array) -> bool:
        """Whether the ray that HiGHS gives proves that the box has no member."""
        _, has_ray, ray = self._highs.getDualRay()
        if not has_ray:
            return False
        ray = np.array(ray, dtype=np.float64)
        # The program without costs has the value 0 or is empty; a positive bound means empty.
        nothing = np.zeros(len(self._every))
        # Conventions differ on the sign of a ray; each sign that proves it is a proof.
        bounds = [self._safe_bound(nothing, sign * ray, low, high) for sign in (1, -1)]
        return max(bounds) > 0.0

    def _safe_bound(
        self, objective: Array, dual: Array, low: Array, high: Array
    ) -> float:
        """The value that these multipliers prove: valid for any, sharp for optimal ones."""
        dual = np.where(np.isfinite(dual), dual, 0.0)
        # A multiplier of the side that is free proves nothing and is left out.
        dual = np.where((dual > 0.0) & ~np.isfinite(self._lower), 0.0, dual)
        dual = np.where((dual < 0.0) & ~np.isfinite(self._upper), 0.0, dual)
        side = np.where(dual > 0.0, self._lower, self._upper)
        # Zero times an infinite side would be NaN.
        constant = np.where(dual != 0.0, dual * np.where(dual != 0.0, side, 0.0), 0.0)
        reduced = objective - dual @ self._matrix
        n = self._n
        k = self._k
        # Each variable at its cheapest: z in its interval, auxiliary ones in [0, top], and v at the
        # cheapest corner of the simplex.
        rest = reduced[n + k :]
        boxes = np.minimum(rest * low, rest * high)
        parts = np.concatenate(
            [constant, np.minimum(reduced[n : n + k], 0.0) * self._top, boxes]
        )
        least = float(reduced[:n].min())
        size = float(
            np.abs(objective).max()
            + (np.abs(dual) @ np.abs(self._matrix)).max()
            + np.abs(parts).sum()
        )
        return math.fsum(parts.tolist()) + least - MULTIPLIER_ERROR * size
