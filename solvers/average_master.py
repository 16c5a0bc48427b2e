"""The master program over posteriors, with a row for every average budget.

It is solved again and again while `average_search` adds columns. The basis of the last solution
starts the next one. Columns are scaled by powers of two, which changes no digit, so that the
tolerances of the solver mean the same for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvers.points import Array, Points
from solvers.programs.highs import SHARP, highs_with

LEAST_SCALED = 1e-3
"""Rows of smaller budgets are not scaled any further: their loads would be large numbers."""


@dataclass(frozen=True, eq=False)
class Solution:
    """Weights of the columns, and prices y with the multiplier of every budget, (j,)."""

    weights: Array
    prices: Array
    multipliers: Array


class Master:
    """min cost.w with sum_k w_k v_k = point, load_j.w <= limit_j, w >= 0, grown by columns."""

    def __init__(self, point: Array, limits: Array) -> None:
        import highspy

        self._optimal = highspy.HighsModelStatus.kOptimal
        self._inf = highspy.kHighsInf
        n = len(point)
        self._n = n
        self._rows = np.exp2(-np.round(np.log2(point)))
        self._load = np.exp2(-np.round(np.log2(np.maximum(limits, LEAST_SCALED))))
        self._highs = highs_with(
            SHARP | {"presolve": "off", "simplex_scale_strategy": 0}
        )
        count = n + len(limits)
        scaled = point * self._rows
        lower = np.append(scaled, np.full(len(limits), -self._inf))
        upper = np.append(scaled, limits * self._load)
        self._highs.addRows(count, lower, upper, 0, np.zeros(count, np.int32), [], [])
        self._scale = np.zeros(0)

    def add(self, points: Points, costs: Array, loads: Array) -> None:
        """Append columns with their loads (j, k), each scaled by a power of two so that its largest
        entry is about one.
        """
        dense = points.toarray() * self._rows
        entries = np.hstack([dense, (loads * self._load[:, None]).T])
        scale = np.exp2(-np.round(np.log2(np.abs(entries).max(axis=1))))
        entries *= scale[:, None]
        owner, index = np.nonzero(entries)
        starts = np.searchsorted(owner, np.arange(len(entries))).astype(np.int32)
        self._highs.addCols(
            len(entries),
            costs * scale,
            np.zeros(len(entries)),
            np.full(len(entries), self._inf),
            len(index),
            starts,
            index.astype(np.int32),
            entries[owner, index],
        )
        self._scale = np.concatenate([self._scale, scale])

    def solve(self, seconds: float) -> Solution | None:
        """Go on from the last basis, once more from nothing where that fails; None if both fail."""
        highs = self._highs
        for _ in range(2):
            limit = highs.getRunTime() + max(seconds, 0.1)
            highs.setOptionValue("time_limit", limit)
            highs.run()
            if highs.getModelStatus() == self._optimal:
                answer = highs.getSolution()
                weights = np.maximum(np.array(answer.col_value), 0.0) * self._scale
                dual = np.array(answer.row_dual)
                prices = dual[: self._n] * self._rows
                multipliers = np.maximum(0.0, -dual[self._n :] * self._load)
                return Solution(weights, prices, multipliers)
            highs.clearSolver()
        return None
