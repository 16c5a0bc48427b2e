"""Merge rows of a table into given rows so that its two-way tables move little.

Items are rows of c columns with whole amounts, and each unit of them goes to one of the targets,
rows of the same columns that hold some units already. A unit that goes from x to y costs the weight
of the columns in which x and y differ. What then lies on the targets has other two-way tables than
items and targets had before. The program is

    minimise  sum_xy d(x, y) F(x, y) + worst max_p V_p + mean (average of V_p)
    over F >= 0 with sum_y F(x, y) = amount_x,

where V_p is half the sum of the moduli of all changes in the table of the pair p of columns.
One-way tables are sums of two-way tables, so that they move no more than these.

For example, take the items (a, u) and (b, v) with one unit each, and the targets (a, v) and (b, u).
Either target costs an item one column. If the items go to different targets, every column keeps its
table.

`merge_rows` takes the nearest targets of every item, solves the linear program on them
(`merging_program`), lets targets join that the prices of the solution make cheaper, and solves
again. The prices also bound what any F could reach. Then `whole_flow` makes integers of
the solution, and moves single units as long as that helps.

*Whole units.* `whole_flow` keeps the whole part of every flow. The units that are left of an item
go one by one to the target that is cheapest now, while the tables count what other items have not
yet rounded with its fractions: so rounding an item does not forget the others. Then every flow is
visited, and one of its units moves where that lowers the cost, until no move does.

The largest change of a table is no sum over units, so moves are judged by the weights that the
linear program gives to the tables, and that it shares out among the tables that are largest
together.

For example, an item with 3 units and the flow (1.5, 1.5) keeps (1, 1), and the third unit goes to
the target whose cells have too little.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from solvers.errors import BackendFailure, EmptyPolytope
from solvers.plans.merging_program import (
    Integers,
    Merging,
    MergingProgram,
    MergingSolution,
    sums,
)
from solvers.points import Array

NEAREST = 8
"""Targets that every item may go to at first. On a census table of 8,717 rows two rounds of pricing
then find the optimum; with more the first solve takes longer, and the rounds are as many."""

PRICED = 3
"""Most targets that join for an item in a round."""

GAIN = 1e-7
"""A target joins if its reduced cost is lower by this: interior points leave an error of about
1e-8 in the prices."""

GAP = 1e-3
"""The search ends when cost and bound differ by less than this share of all units: a tenth of a
percent of the cells is less than the rounds that would find it are worth."""

MOST_ROUNDS = 12
"""Most rounds of pricing. Three or four were enough in every case that was measured."""

TIE = 1e-9
"""Lead of a target with many units among equally near ones: far below a column's weight."""


@dataclass(frozen=True, eq=False)
class Merged:
    """Where the units go, and how near this is to the best.

    Attributes
    ----------
    item, target, amount : int arrays of one length
        So many units of the item go to the target.
    cost : float
        The objective of the integers.
    bound : float
        No flow, of integers or not, costs less; 0 where no program was solved in time.
    """

    item: Integers
    target: Integers
    amount: Integers
    cost: float
    bound: float


@dataclass(frozen=True)
class MergingProgress:
    """The state after a round: its number, cost and bound."""

    round: int
    cost: float
    bound: float


def merge_rows(
    problem: Merging,
    *,
    time_limit: float = math.inf,
    progress: Callable[[MergingProgress], None] | None = None,
) -> Merged:
    """Send every unit to a target at little cost.

    Parameters
    ----------
    problem : Merging
        Items, targets and weights.
    time_limit : float
        Seconds of processor time after which no further round begins, and no unit moves again.
    progress : callable, optional
        Called after every round.

    Raises
    ------
    EmptyPolytope
        If an item may go to no target.
    """
    start = time.process_time()
    pairs = _nearest(problem)
    program = MergingProgram(problem, *pairs)
    solution: MergingSolution | None = None
    bound = 0.0
    for number in range(MOST_ROUNDS):
        begin = time.process_time()
        left = time_limit - (begin - start)
        if left <= 0:
            break
        try:
            solution = program.solve(time_limit=left)
        except BackendFailure:
            # The last solution, or else the nearest targets, are an answer with a weaker bound.
            break
        bound_now, new_items, new_targets = _priced(problem, solution)
        bound = max(bound, bound_now)
        if progress is not None:
            progress(MergingProgress(number + 1, solution.cost, bound))
        now = time.process_time()
        closed = solution.cost - bound <= GAP * problem.amounts.sum()
        if closed or not program.add(new_items, new_targets):
            break
        # The next round takes about as long as this one.
        if now - start + (now - begin) > time_limit:
            break
    flow = whole_flow(
        problem,
        program.item,
        program.target,
        program.costs,
        solution,
        end=start + time_limit,
    )
    return _merged(problem, flow, program, bound)


def _nearest(problem: Merging) -> tuple[Integers, Integers]:
    """Pairs of each item with its nearest targets, by item; among equals the fullest targets."""
    few = min(NEAREST, len(problem.targets))
    lead = TIE * problem.held / max(1, problem.held.max())
    items: list[Integers] = []
    targets: list[Integers] = []
    for part in problem.chunks():
        costs = problem.costs(part) - lead[None, :]
        nearest = np.argpartition(costs, few - 1, axis=1)[:, :few]
        near_costs = np.take_along_axis(costs, nearest, axis=1)
        there = np.isfinite(near_costs)
        if not there.any(axis=1).all():
            raise EmptyPolytope("an item may go to no target")
        rows, places = np.nonzero(there)
        items.append(part[rows])
        targets.append(nearest[rows, places])
    return np.concatenate(items), np.concatenate(targets)


def _priced(
    problem: Merging, solution: MergingSolution
) -> tuple[float, Integers, Integers]:
    """A bound on every flow, and the pairs whose reduced cost is negative.

    The prices u of items and v of targets are a feasible dual solution, but for pairs whose reduced
    cost d - u - v is negative. Lowering u_x by as much as the most negative one makes it feasible,
    and lowers its value by this times the amount of x.
    """
    loss = 0.0
    items: list[Integers] = []
    targets: list[Integers] = []
    few = min(PRICED, len(problem.targets))
    for part in problem.chunks():
        reduced = problem.costs(part)
        reduced -= solution.item_prices[part][:, None]
        reduced -= solution.target_prices[None, :]
        least = np.argpartition(reduced, few - 1, axis=1)[:, :few]
        values = np.take_along_axis(reduced, least, axis=1)
        loss += float(problem.amounts[part] @ np.minimum(values.min(axis=1), 0))
        rows, places = np.nonzero(values < -GAIN)
        items.append(part[rows])
        targets.append(least[rows, places])
    bound = solution.dual_value + loss
    return bound, np.concatenate(items), np.concatenate(targets)


def _merged(
    problem: Merging, flow: Integers, program: MergingProgram, bound: float
) -> Merged:
    """The moves of whole units, with their figures."""
    used = np.flatnonzero(flow)
    arrived = sums(program.target[used], flow[used], len(problem.targets))
    variations = problem.tables.variations(arrived)
    cost = float(program.costs[used] @ flow[used])
    cost += problem.worst * float(variations.max())
    cost += problem.mean * float(variations.mean())
    return Merged(
        item=program.item[used],
        target=program.target[used],
        amount=flow[used],
        cost=cost,
        bound=bound,
    )


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
    *,
    end: float = math.inf,
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
    end : float
        Moment of `time.process_time` after which no unit moves again to lower the cost.
    """
    units = _Units(problem, item, target, costs, solution)
    units.round()
    units.improve(end)
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

    def improve(self, end: float) -> None:
        """Move single units while that lowers the cost, until `end`."""
        for _ in range(MOST_PASSES):
            moved = 0
            for pairs in self._pairs_of:
                if time.process_time() >= end:
                    return
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
