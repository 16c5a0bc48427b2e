"""Whole units from a flow of `row_merging`, and single moves that lower its cost.

`whole_flow` keeps the whole part of every flow. The units that are left of an item go one by one to
the target that is cheapest now, while the tables count what other items have not yet rounded with
its fractions: so rounding an item does not forget the others. Then every flow is visited, and one
of its units moves where that lowers the cost, until no move does.

The largest change of a table is no sum over units, so moves are judged by the weights that the
linear program gives to the tables, and that it shares out among the tables that are largest
together.

For example, an item with 3 units and the flow (1.5, 1.5) keeps (1, 1), and the third unit goes to
the target whose cells have too little.
"""

from __future__ import annotations

import numpy as np

from solvers.points import Array
from solvers.row_merging.problem import Integers, Merging, sums
from solvers.row_merging.program import MergingSolution

WHOLE = 1e-6
"""A flow short of an integer by this counts as the integer: interior points are no closer."""

LEAST_GAIN = 1e-9
"""Smallest gain of a move. Sums of some dozens of weights err by less."""

MOST_PASSES = 20
"""Most visits of every flow. Gains fade after three or four."""


def whole_flow(
    problem: Merging,
    item: Integers,
    target: Integers,
    costs: Array,
    solution: MergingSolution | None,
) -> Integers:
    """Units of every pair of item and target, from a flow or, without one, the nearest targets.

    Parameters
    ----------
    problem : Merging
        Items, targets and weights.
    item, target, costs : arrays (pairs,)
        The pairs that may be used, and the cost of a unit.
    solution : MergingSolution or None
        A flow on these pairs, or on the first of them.
    """
    units = _Units(problem, item, target, costs, solution)
    units.round()
    units.improve()
    return units.flow


class _Units:
    """Units on pairs, and the deviation of every cell of a table that they make."""

    def __init__(
        self,
        problem: Merging,
        item: Integers,
        target: Integers,
        costs: Array,
        solution: MergingSolution | None,
    ) -> None:
        tables = problem.tables
        count = len(problem.pairs)
        weights = np.full(count, (problem.worst + problem.mean) / count)
        fractions = np.zeros(len(item))
        if solution is not None:
            weights = solution.pair_weights
            # Pairs that joined after the last solve have no flow yet.
            fractions[: len(solution.flow)] = solution.flow
        self._amounts = problem.amounts.tolist()
        # A unit too much in a cell of the pair p adds w_p / 2 to the cost.
        self._price = weights[tables.pair] / 2
        self._costs = costs
        self._cells = tables.of_targets[target]
        self._fractions = fractions
        self._pairs_of = _groups(item, len(problem.items))
        self.flow = np.floor(fractions + WHOLE).astype(np.int64)
        arrived = sums(target, fractions, len(problem.targets))
        self._deviations = tables.deviations(arrived)

    def round(self) -> None:
        """Send the units that the whole parts leave over."""
        for pairs, amount in zip(self._pairs_of, self._amounts, strict=True):
            self._trim(pairs, amount)
            change = self.flow[pairs] - self._fractions[pairs]
            for place in np.flatnonzero(change).tolist():
                self._deviations[self._cells[pairs[place]]] += change[place]
            for _ in range(amount - int(self.flow[pairs].sum())):
                chosen = int(np.argmin(self._marginals(pairs)))
                self._send(pairs[chosen], 1)

    def _trim(self, pairs: Integers, amount: int) -> None:
        """Take back units that the tolerance of whole parts has added to an item."""
        while self.flow[pairs].sum() > amount:
            excess = self.flow[pairs] - self._fractions[pairs]
            excess[self.flow[pairs] == 0] = -np.inf
            self.flow[pairs[int(np.argmax(excess))]] -= 1

    def improve(self) -> None:
        """Move single units while that lowers the cost."""
        for _ in range(MOST_PASSES):
            moved = 0
            for pairs in self._pairs_of:
                for place in np.flatnonzero(self.flow[pairs]).tolist():
                    moved += self._move(pairs, place)
            if not moved:
                return

    def _move(self, pairs: Integers, place: int) -> int:
        """Move a unit of one of an item's pairs to its cheapest one; whether it moved."""
        self._send(pairs[place], -1)
        marginals = self._marginals(pairs)
        best = int(np.argmin(marginals))
        if marginals[best] >= marginals[place] - LEAST_GAIN:
            best = place
        self._send(pairs[best], 1)
        return int(best != place)

    def _send(self, pair: int, units: int) -> None:
        """Add units to a pair."""
        self.flow[pair] += units
        # A target has one cell in every table, so no cell occurs twice.
        self._deviations[self._cells[pair]] += units

    def _marginals(self, pairs: Integers) -> Array:
        """The cost of one more unit on each of some pairs."""
        cells = self._cells[pairs]
        before = self._deviations[cells]
        change = np.abs(before + 1) - np.abs(before)
        return self._costs[pairs] + (change * self._price[cells]).sum(axis=1)


def _groups(item: Integers, items: int) -> list[Integers]:
    """The pairs of every item."""
    order = np.argsort(item, kind="stable")
    ends = np.cumsum(np.bincount(item, minlength=items))
    return np.split(order, ends[:-1])
