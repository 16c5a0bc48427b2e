"""The columns of an envelope program, and the best decomposition of the target among them.

A column is a point v_k with its entropy as cost, and a decomposition is weights w >= 0 with sum_k
w_k v_k = target. The search (`solvers.envelope.generation`) adds columns that gain at the master's
prices (`add`). The master program (HiGHS) proposes weights, and `accept` checks them against the
columns.

For example, with the target (1/2, 1/2) and the weights of two solves,

    points      (1/2, 1/2)   (3/4, 1/4)   (1/4, 3/4)
    costs       0.693        0.562        0.562
    weights     1                                      value 0.693, from the start
    weights     0            1/2          1/2          value 0.562, kept because it is lower

Columns of the largest reduced costs are deleted where there are far more than the master needs
(`thin`): most of them were found at prices that are long gone, and each makes every pivot slower.

Invariant: `weights` are not negative and decompose the target to `FEASIBILITY`, so `value` is an
upper bound of the envelope at any moment, from the first column (the target itself) on.
"""

from __future__ import annotations

import numpy as np

from solvers.points import Array, Points
from solvers.programs.master import FEASIBILITY, HighsMaster, MasterSolution

THIN_FROM = 6
"""Columns for each coordinate, and `FEWEST_THINNED` more, from which the pool is thinned."""

THIN_TO = 3
"""Columns for each coordinate that are left then, and half of `FEWEST_THINNED`."""

FEWEST_THINNED = 2000
"""A pool of less costs HiGHS next to nothing, and its columns serve neighbouring budgets."""


class ColumnPool:
    """Columns with their costs, the master program over them, and the best weights so far.

    Attributes
    ----------
    points : Points, (k, n)
    costs : (k,) array
        Their entropies, in nats.
    weights : (at most k,) array
        Of the best decomposition; columns added since have none.
    value : float
        Cost of that decomposition.
    added : int
        Number of all columns that ever were in the pool.
    """

    def __init__(
        self,
        target: Array,
        initial: Points,
        weights: Array | None,
        master: HighsMaster,
    ) -> None:
        self.points = initial
        self.costs = initial.entropies()
        if weights is None:
            # The first column is the target itself.
            weights = np.zeros(len(initial))
            weights[0] = 1.0
        self.weights = weights
        self.value = float(weights @ self.costs)
        self.added = len(initial)
        self.master = master
        self._target = target
        # Columns of the master and of the pool are added together, so they have one numbering.
        master.add(self.points, self.costs)

    def __len__(self) -> int:
        return len(self.points)

    def add(self, points: Points, prices: Array, cutoff: float) -> int:
        """Add the points whose reduced cost H(v) - y.v is below the cutoff; their number."""
        costs = points.entropies()
        gaining = np.flatnonzero(costs - points.dot(prices) < cutoff)
        if len(gaining):
            points = points.take(gaining)
            costs = costs[gaining]
            self.master.add(points, costs)
            self.points = Points.concatenate([self.points, points])
            self.costs = np.concatenate([self.costs, costs])
            self.added += len(gaining)
        return len(gaining)

    def thin(self, solution: MasterSolution) -> None:
        """Delete columns of large reduced cost at a solution, where there are far too many.

        Those in use stay, here and in the solution, and the target itself, which is the first.
        """
        n = len(self._target)
        if len(self) <= THIN_FROM * n + FEWEST_THINNED:
            return
        reduced = self.costs - self.points.dot(solution.dual)
        in_use = np.zeros(len(self), np.bool_)
        in_use[0] = True
        in_use[: len(self.weights)] |= self.weights > 0.0
        in_use[: len(solution.weights)] |= solution.weights > 0.0
        # Columns in use first, then the others by rising reduced cost.
        reduced[in_use] = -np.inf
        most = max(THIN_TO * n + FEWEST_THINNED // 2, int(np.count_nonzero(in_use)))
        kept = np.sort(np.argsort(reduced, kind="stable")[:most])
        self.master.keep(kept)
        self.points = self.points.take(kept)
        self.costs = self.costs[kept]
        # Columns added since have no weight.
        weights = np.zeros(int(kept[-1]) + 1)
        weights[: len(self.weights)] = self.weights[: len(weights)]
        self.weights = weights[kept]

    def is_usable(self, solution: MasterSolution) -> bool:
        """Whether a solution claims to be optimal and has the right shape."""
        fits = (
            solution.dual.shape == self._target.shape
            and solution.weights.shape == self.costs.shape
        )
        return solution.is_optimal and fits

    def accept(self, solution: MasterSolution) -> bool:
        """Keep the weights if they are better; False if they do not decompose the target at all."""
        # Columns added since the solve have no weight yet.
        missing = len(self.costs) - len(solution.weights)
        weights = np.pad(solution.weights, (0, missing))
        error = float(np.abs(self.points.combine(weights) - self._target).max())
        # Written so that NaN is refused, too.
        if not (weights.min() >= 0.0 and error <= FEASIBILITY):
            return False
        value = float(weights @ self.costs)
        if value < self.value:
            self.weights = weights
            self.value = value
        return True

    def in_use(self, solution: MasterSolution) -> Points:
        """The columns to which a solution gives weight."""
        return self.points.take(np.flatnonzero(solution.weights > 0.0))
