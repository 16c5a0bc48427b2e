"""Pricing of averages: the columns v of H(v) + sum_j beta_j L_j(v) < y.v.

There are two ways to find the cheapest columns:

- With two secrets and no polytope some cheapest column mixes at most two symbols, so all pairs are
  priced at once (`PairSearch`).
- Else tangents lie below the leakages (`tangents`), and `ConcaveSearch` runs over them:
  local searches (`descend`) or branch and bound (`search_tree`). Where a column was found the
  tangents may lie too low, so that it costs more than it seemed to. `touch` adds tangents there, or
  else the next search would find the same column again.

`search_tree` proves a bound either way: what it returns is below the cost of every posterior.

How exact this must be follows from the tolerance of the search (`Charge.aim`). At 1e-4 nats, a
column must gain 2e-6, tangents may lie 1.5e-5 too low, and a tree ends once it proves that nothing
gains 4e-5.

*Two secrets.* Some minimiser of H(v) + sum_j beta_j L_j(v) - y.v has at most two symbols
(docs/explanation/averages-theory.md, 'Supports'). With the share c of the second symbol its cost is

    g(c) = h(c) + sum_j beta_j L_j(w + c d) - (1 - c) y_1 - c y_2,

where h(c) = -c log c - (1 - c) log(1 - c), w are the lifts of the first symbol and w + d those of
the second. All pairs are searched at once, by intervals of c:

1. Each pair begins with the interval [0, 1]; the single symbols are priced by themselves.
2. On an interval a chord lies below the concave h, and the tangent in the middle below the convex
   leakages. What is left is linear in c, so it is least at an end: the bound of the interval
   (`_bounds`). The cost in the middle is that of a possible column (`_cheapest`).
3. Intervals whose bound is below the target are halved; the others are done.

For example, with y = (0.2, 0.4) and no leakage, the chord over [0, 1] is 0, and -0.2 - 0.2 c is
least at c = 1: the bound is -0.4. In the middle the cost is 0.693 - 0.3 = 0.393.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solvers.average.goals import LEAST_MULTIPLIER, Charge
from solvers.average.problem import AverageProblem
from solvers.average.tangents import LeakageSearch, Tangents
from solvers.points import Array, Points, entropy_terms
from solvers.pricing.concave import SearchCounts, SearchResult, SearchStatus

# -------------------------------------------------------------------------- two secrets

MOST_SORTED = 50_000
"""Cheap intervals among which columns are chosen."""

ZOOMS = 14
"""Times that the interval around the cheapest share is halved."""

ZOOM_STEPS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Shares of an interval that are compared."""

NARROWEST = 1e-9
"""Intervals of shares that are not halved any more; their bounds hold as they are."""

PAIR_ROUNDING = 1e-13
"""Relative error of the bound of an interval, of the sizes of its terms."""


@dataclass(frozen=True, eq=False)
class _Intervals:
    """Pairs of symbols, each with an interval of the second one's share; all arrays are (k,)."""

    first: NDArray[np.intp]
    second: NDArray[np.intp]
    low: Array
    high: Array

    def __len__(self) -> int:
        return len(self.first)

    @property
    def middle(self) -> Array:
        """The share in the middle of every interval."""
        return 0.5 * (self.low + self.high)

    def take(self, selection: NDArray[np.intp]) -> _Intervals:
        """The intervals with these numbers."""
        return _Intervals(
            self.first[selection],
            self.second[selection],
            self.low[selection],
            self.high[selection],
        )

    def halves(self, is_open: NDArray[np.bool_]) -> _Intervals:
        """Both halves of the open intervals; the others are left out."""
        middle = self.middle[is_open]
        return _Intervals(
            first=np.tile(self.first[is_open], 2),
            second=np.tile(self.second[is_open], 2),
            low=np.concatenate([self.low[is_open], middle]),
            high=np.concatenate([middle, self.high[is_open]]),
        )


class PairSearch:
    """`ConcaveSearch` for H(v) + sum_j beta_j L_j(v) - y.v, for two secrets and no polytope."""

    def __init__(self, problem: AverageProblem) -> None:
        self._problem = problem
        self._lifts = problem.matrix
        self._first, self._second = np.triu_indices(len(problem.point), 1)
        self._multipliers = np.zeros(len(problem.leakages))

    def charge(self, multipliers: Array) -> None:
        """Set what a unit of each leakage costs."""
        self._multipliers = multipliers

    def run(
        self,
        prices: Array,
        *,
        cutoff: float,
        tolerance: float,
        slack: float,
        column_cutoff: float,
        time_limit: float,
        columns: int,
    ) -> SearchResult:
        """As `ConcaveSearch.run`."""
        end = time.process_time() + time_limit
        # Single symbols first: their entropy is zero.
        leakage, _ = self._problem.charged(self._lifts, self._multipliers)
        alone = leakage - prices
        best = float(alone.min())
        size = float(np.abs(prices).max()) + float(leakage.max())
        bound = best - PAIR_ROUNDING * size
        gaining = np.flatnonzero(alone < column_cutoff)
        parts = [Points.units(gaining, len(prices))]
        count = len(self._first)
        intervals = _Intervals(
            self._first, self._second, np.zeros(count), np.ones(count)
        )
        status = SearchStatus.DONE
        nodes = 0
        while len(intervals):
            if time.process_time() > end:
                status = SearchStatus.TIME_LIMIT
                # What is left is bounded by the intervals as they stand.
                least, _ = self._bounds(prices, intervals)
                bound = min(bound, float(least.min()))
                break
            nodes += len(intervals)
            least, cost = self._bounds(prices, intervals)
            cheapest = self._cheapest(prices, intervals, cost, column_cutoff, columns)
            parts.append(cheapest)
            best = min(best, float(cost.min()))
            target = min(cutoff, best - tolerance - slack * abs(best))
            is_wide = intervals.high - intervals.low > NARROWEST
            is_open = (least < target) & is_wide
            # In the end every share lies in an interval that is done: the least bound counts.
            bound = min(bound, float(least[~is_open].min(initial=math.inf)))
            intervals = intervals.halves(is_open)
        points = Points.concatenate(parts)
        return SearchResult(status, bound, points, SearchCounts(nodes))

    def _bounds(self, prices: Array, intervals: _Intervals) -> tuple[Array, Array]:
        """A lower bound of g on every interval, and g in its middle."""
        first, second = intervals.first, intervals.second
        middle = intervals.middle
        width = intervals.high - intervals.low
        at_low = _binary_entropy(intervals.low)
        at_high = _binary_entropy(intervals.high)
        lifts = self._lifts[:, first]
        differences = self._lifts[:, second] - lifts
        leakage, slope = self._problem.charged(
            lifts + middle * differences, self._multipliers
        )
        paid = prices[first] + middle * (prices[second] - prices[first])
        rest = leakage - paid
        # The linear function below g: its value in the middle, and half of its change from end to
        # end, by which one of the ends is lower.
        linear = 0.5 * (at_low + at_high) + rest
        rise = (slope * differences).sum(axis=0)
        rise += prices[first] - prices[second]
        fall = 0.5 * np.abs(at_high - at_low + rise * width)
        steepest = float(np.abs(slope * differences).max(initial=0.0))
        size = 1.0 + float(np.abs(prices).max()) + steepest
        return linear - fall - PAIR_ROUNDING * size, _binary_entropy(middle) + rest

    def _cheapest(
        self,
        prices: Array,
        intervals: _Intervals,
        cost: Array,
        cutoff: float,
        columns: int,
    ) -> Points:
        """The cheapest shares of the cheapest intervals, one for each first symbol.

        `cost` is g in the middles; intervals in which it is not below the cutoff give no column.
        """
        gaining = np.flatnonzero(cost < cutoff)
        if len(gaining) > MOST_SORTED:
            part = np.argpartition(cost[gaining], MOST_SORTED)[:MOST_SORTED]
            gaining = gaining[part]
        order = gaining[np.argsort(cost[gaining], kind="stable")]
        # The first of each symbol in this order is its cheapest.
        _, place = np.unique(intervals.first[order], return_index=True)
        chosen = intervals.take(order[np.sort(place)[:columns]])
        share = self._zoomed(prices, chosen)
        # Unit vectors are priced by themselves.
        proper = (share > 0.0) & (share < 1.0)
        share = share[proper]
        pairs = [chosen.first[proper], chosen.second[proper]]
        indices = np.column_stack(pairs).ravel()
        data = np.column_stack([1.0 - share, share]).ravel()
        sizes = np.full(len(share), 2)
        return Points.of_sizes(
            sizes, indices.astype(np.int32), data, len(self._problem.point)
        )

    def _zoomed(self, prices: Array, intervals: _Intervals) -> Array:
        """A share of small cost in every interval: the cheapest of five, in ever smaller ones."""
        first, second = intervals.first, intervals.second
        low = intervals.low
        high = intervals.high
        middle = intervals.middle
        for _ in range(ZOOMS):
            costs: list[Array] = []
            for step in ZOOM_STEPS:
                share = low + step * (high - low)
                # Of an interval without width the middle is the share itself.
                single = _Intervals(first, second, share, share)
                costs.append(self._bounds(prices, single)[1])
            at = np.array(ZOOM_STEPS)[np.argmin(costs, axis=0)]
            width = high - low
            middle = low + at * width
            low = np.maximum(low, middle - 0.25 * width)
            high = np.minimum(high, middle + 0.25 * width)
        return middle


def _binary_entropy(share: Array) -> Array:
    return entropy_terms(share) + entropy_terms(1.0 - share)


# ------------------------------------------------------------------------------ pricing

TANGENT_SHARE = 0.15
"""Share of the tolerance by which tangents may lie below a column's true leakage."""

MIXES = (0.5, 0.9, 0.2)
"""Weights of unit vectors in the mixtures with P(x) from which local searches begin."""

COLUMN_SHARE = 0.02
"""Share of the tolerance that a column must gain."""

CUTOFF_SHARE = 0.4
"""Share of the tolerance by which pricing may miss the minimum; the rest is for the master."""

TREE_SHARE = 0.25
"""Share of the tolerance between the cheapest column of a tree and its bound."""

TREE_SLACK = 0.05
"""Share of the (negative) minimum that the bound of a tree may lie below it."""

TREE_COLUMNS = 300
"""Columns that a tree returns at most; as many as there are symbols, if these are more."""


class AveragePricing:
    """The searches of one run.

    `has_descents` says whether there are local searches; with pairs there is nothing for them to
    find. `touched` counts the tangents that were added to the first ones.
    """

    def __init__(self, problem: AverageProblem) -> None:
        self._problem = problem
        self._tangents = [
            Tangents(problem.matrix, leakage) for leakage in problem.leakages
        ]
        self.touched = 0
        # The search over the tangents so far; None after new ones until it is needed again.
        self._kernel: LeakageSearch | None = None
        self._pairs: PairSearch | None = None
        if problem.has_pairs:
            self._pairs = PairSearch(problem)
        self.has_descents = self._pairs is None
        # Decides which mixtures local searches begin with.
        self._turn = 0

    def next_turn(self) -> None:
        """Let the next local search begin with other mixtures."""
        self._turn += 1

    def descend(self, charge: Charge, seconds: float) -> Points:
        """Columns of descents from unit vectors mixed with P(x)."""
        # With `enough=0` the tree is never touched: any number of columns is enough.
        result = self._charged_kernel(charge.multipliers).run(
            charge.prices,
            cutoff=-math.inf,
            tolerance=charge.aim,
            slack=0.0,
            column_cutoff=-COLUMN_SHARE * charge.aim,
            center=self._problem.point,
            mix=MIXES[self._turn % len(MIXES)],
            turn=self._turn,
            enough=0,
            time_limit=seconds,
        )
        return result.points

    def search_tree(self, charge: Charge, seconds: float) -> SearchResult:
        """Branch and bound, which proves a bound of the cost of all posteriors."""
        if self._pairs is not None:
            self._pairs.charge(charge.multipliers)
            search = self._pairs
        else:
            search = self._charged_kernel(charge.multipliers)
        return search.run(
            charge.prices,
            cutoff=-CUTOFF_SHARE * charge.aim,
            tolerance=TREE_SHARE * charge.aim,
            slack=TREE_SLACK,
            column_cutoff=-COLUMN_SHARE * charge.aim,
            columns=max(TREE_COLUMNS, len(charge.prices)),
            time_limit=seconds,
        )

    def _charged_kernel(self, multipliers: Array) -> LeakageSearch:
        """The search over all tangents, in which the leakages cost the multipliers."""
        if self._kernel is None:
            self._kernel = LeakageSearch(self._problem, self._tangents)
        self._kernel.charge(multipliers)
        return self._kernel

    def touch(self, points: Points, charge: Charge) -> None:
        """Add tangents of every leakage where they lie too low at these points."""
        touched = 0
        # Each leakage may miss its share of the aim, in nats; its multiplier converts nats.
        aim = TANGENT_SHARE * charge.aim / len(self._tangents)
        pairs = zip(self._tangents, charge.multipliers, strict=True)
        for tangents, multiplier in pairs:
            room = aim / max(multiplier, LEAST_MULTIPLIER)
            touched += tangents.touch(points, room)
        if touched:
            self.touched += touched
            self._kernel = None
