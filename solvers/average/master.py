"""The best channel made of given posteriors: a linear program with a row for every average budget.

    minimise    cost.w
    subject to  sum_k w_k v_k = point,  load_j.w <= limit_j for every j,  w >= 0

Column k is an output with the probability w_k and the posterior v_k. Within budgets its cost is its
entropy, and its loads are what it leaks by every measure; for the least leakage it is the reverse
(`goals`). The duals are the prices y of the equations and the multipliers beta >= 0 of the
budgets. A new column gains exactly if cost + beta.load < y.v, which is what the search looks for.

The program is solved again whenever the search has added columns, from the basis of the last
solution. The tolerances of HiGHS are absolute. So rows and columns are scaled to a size of about
one, by powers of two, which change no digit. For example, a symbol with P(x) = 0.001 has its row
multiplied by 2^10, and its right side becomes 1.024.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvers.pace import passing
from solvers.points import Array, Points
from solvers.programs.highs import SHARP, highs_with

LEAST_SCALED = 1e-3
"""Rows of smaller budgets are not scaled any further: their loads would be large numbers."""


@dataclass(frozen=True, eq=False)
class Solution:
    """An optimum of the unscaled program.

    Attributes
    ----------
    weights : (columns,) array
        The probability of each output.
    prices : (n,) array
        y, the duals of the equations.
    multipliers : (j,) array
        beta, the duals of the budgets.
    """

    weights: Array
    prices: Array
    multipliers: Array


class Master:
    """The program above for a point and limits, without columns at first.

    Parameters
    ----------
    point : (n,) array
        Positive: the mean of the posteriors.
    limits : (j,) array
        The right sides of the rows of loads.
    """

    def __init__(self, point: Array, limits: Array) -> None:
        import highspy

        self._optimal = highspy.HighsModelStatus.kOptimal
        self._inf = highspy.kHighsInf
        n = len(point)
        self._n = n
        self._row_scale = _towards_one(point)
        self._load_scale = _towards_one(np.maximum(limits, LEAST_SCALED))
        self._column_scale = np.zeros(0)
        # Presolve would throw the basis away, and the program is scaled already.
        self._highs = highs_with(
            SHARP | {"presolve": "off", "simplex_scale_strategy": 0}
        )
        count = n + len(limits)
        scaled = point * self._row_scale
        # The first n rows are equations: both ends are the same.
        lower = np.append(scaled, np.full(len(limits), -self._inf))
        upper = np.append(scaled, limits * self._load_scale)
        # No entries yet: the columns bring them.
        self._highs.addRows(count, lower, upper, 0, np.zeros(count, np.int32), [], [])

    def add(self, points: Points, costs: Array, loads: Array) -> None:
        """Append k columns with their costs (k,) and loads (j, k)."""
        # One line for each column: its posterior, then its loads.
        posteriors = points.toarray() * self._row_scale
        scaled_loads = loads * self._load_scale[:, None]
        entries = np.hstack([posteriors, scaled_loads.T])
        scale = _towards_one(np.abs(entries).max(axis=1))
        entries *= scale[:, None]
        # HiGHS takes the entries that are not zero, column by column, and where each column starts.
        column_of, rows = np.nonzero(entries)
        starts = np.searchsorted(column_of, np.arange(len(entries)))
        least = np.zeros(len(entries))
        most = np.full(len(entries), self._inf)
        self._highs.addCols(
            len(entries),
            costs * scale,
            least,
            most,
            len(rows),
            starts.astype(np.int32),
            rows.astype(np.int32),
            entries[column_of, rows],
        )
        self._column_scale = np.concatenate([self._column_scale, scale])

    def change_costs(self, costs: Array) -> None:
        """Give all columns other costs (k,); the basis stays."""
        count = len(costs)
        columns = np.arange(count, dtype=np.int32)
        self._highs.changeColsCost(count, columns, costs * self._column_scale)

    def solve(self, seconds: float) -> Solution | None:
        """Go on from the last basis, once more from nothing where that fails; None if both fail."""
        highs = self._highs
        for _ in range(2):
            limit = highs.getRunTime() + passing(max(seconds, 0.1))
            highs.setOptionValue("time_limit", limit)
            highs.run()
            if highs.getModelStatus() == self._optimal:
                answer = highs.getSolution()
                values = np.maximum(np.array(answer.col_value), 0.0)
                dual = np.array(answer.row_dual)
                prices = dual[: self._n] * self._row_scale
                # A larger limit lowers the cost, so duals of budgets are negative; above zero they
                # are rounding.
                multipliers = -dual[self._n :] * self._load_scale
                return Solution(
                    values * self._column_scale, prices, np.maximum(0.0, multipliers)
                )
            # Forget the basis: the second run starts from nothing.
            highs.clearSolver()
        return None


def _towards_one(sizes: Array) -> Array:
    """Powers of two by which positive numbers come nearest to one."""
    return np.exp2(-np.round(np.log2(sizes)))
