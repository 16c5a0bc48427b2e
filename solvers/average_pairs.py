"""Pricing of averages for two secrets: all pairs of symbols, and the share of the second one.

Some minimiser has at most two symbols (docs/explanation/averages-theory.md, 'Supports').
"""

from __future__ import annotations

import math
import time

import numpy as np
from numpy.typing import NDArray

from solvers.average_problem import AverageProblem
from solvers.concave import SearchCounts, SearchResult, SearchStatus
from solvers.points import Array, Points, entropy_terms

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


class PairSearch:
    """`ConcaveSearch` for H(v) + sum_j beta_j L_j(v) - y.v, for two secrets and no polytope.

    On an interval of shares a chord lies below H and a tangent at the middle below the leakages:
    what is left is linear, and least at an end. Intervals that may hold less than the target are
    halved.
    """

    def __init__(self, problem: AverageProblem) -> None:
        self._problem = problem
        self._lifts = problem.matrix
        first, second = np.triu_indices(len(problem.point), 1)
        self._first = first
        self._second = second
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
        end = time.monotonic() + time_limit
        first, second = self._first, self._second
        low = np.zeros(len(first))
        high = np.ones(len(first))
        charge, _ = self._problem.charged(self._lifts, self._multipliers)
        alone = charge - prices
        best = float(alone.min())
        size = float(np.abs(prices).max()) + float(charge.max())
        bound = best - PAIR_ROUNDING * size
        good = np.flatnonzero(alone < column_cutoff)
        parts = [Points.units(good, len(prices))]
        status = SearchStatus.DONE
        counted = 0
        while len(first):
            if time.monotonic() > end:
                status = SearchStatus.TIME_LIMIT
                # What is left is bounded by the intervals as they stand.
                least, _ = self._bounds(prices, first, second, low, high)
                bound = min(bound, float(least.min()))
                break
            counted += len(first)
            least, cost = self._bounds(prices, first, second, low, high)
            parts.append(
                self._cheapest(
                    prices, first, second, low, high, cost, column_cutoff, columns
                )
            )
            best = min(best, float(cost.min()))
            target = min(cutoff, best - tolerance - slack * abs(best))
            is_open = (least < target) & (high - low > NARROWEST)
            bound = min(bound, float(least[~is_open].min(initial=math.inf)))
            middle = 0.5 * (low + high)[is_open]
            first = np.tile(first[is_open], 2)
            second = np.tile(second[is_open], 2)
            low = np.concatenate([low[is_open], middle])
            high = np.concatenate([middle, high[is_open]])
        points = Points.concatenate(parts)
        return SearchResult(status, bound, points, SearchCounts(counted))

    def _bounds(
        self,
        prices: Array,
        first: NDArray[np.intp],
        second: NDArray[np.intp],
        low: Array,
        high: Array,
    ) -> tuple[Array, Array]:
        """A lower bound on every interval, and the cost in its middle."""
        middle = 0.5 * (low + high)
        width = high - low
        at_low = _binary_entropy(low)
        at_high = _binary_entropy(high)
        at_middle = _binary_entropy(middle)
        start = self._lifts[:, first]
        way = self._lifts[:, second] - start
        charge, slope = self._problem.charged(start + middle * way, self._multipliers)
        rise = (slope * way).sum(axis=0)
        rise += prices[first] - prices[second]
        paid = prices[first] + middle * (prices[second] - prices[first])
        rest = charge - paid
        linear = 0.5 * (at_low + at_high) + rest
        fall = 0.5 * np.abs(at_high - at_low + rise * width)
        steepest = float(np.abs(slope * way).max(initial=0.0))
        size = 1.0 + float(np.abs(prices).max()) + steepest
        return linear - fall - PAIR_ROUNDING * size, at_middle + rest

    def _cheapest(
        self,
        prices: Array,
        first: NDArray[np.intp],
        second: NDArray[np.intp],
        low: Array,
        high: Array,
        cost: Array,
        cutoff: float,
        columns: int,
    ) -> Points:
        """The cheapest shares of the cheapest intervals, one for each first symbol."""
        gaining = np.flatnonzero(cost < cutoff)
        if len(gaining) > MOST_SORTED:
            part = np.argpartition(cost[gaining], MOST_SORTED)[:MOST_SORTED]
            gaining = gaining[part]
        order = gaining[np.argsort(cost[gaining], kind="stable")]
        _, place = np.unique(first[order], return_index=True)
        chosen = order[np.sort(place)[:columns]]
        first = first[chosen]
        second = second[chosen]
        low = low[chosen]
        high = high[chosen]
        middle = 0.5 * (low + high)
        for _ in range(ZOOMS):
            # The cheapest of five shares, then its neighbourhood.
            costs: list[Array] = []
            for step in ZOOM_STEPS:
                share = low + step * (high - low)
                costs.append(self._bounds(prices, first, second, share, share)[1])
            at = np.array(ZOOM_STEPS)[np.argmin(costs, axis=0)]
            width = high - low
            middle = low + at * width
            low = np.maximum(low, middle - 0.25 * width)
            high = np.minimum(high, middle + 0.25 * width)
        # Unit vectors are priced by themselves.
        proper = (middle > 0.0) & (middle < 1.0)
        share = middle[proper]
        indices = np.column_stack([first[proper], second[proper]]).ravel()
        data = np.column_stack([1.0 - share, share]).ravel()
        sizes = np.full(len(share), 2)
        return Points.of_sizes(
            sizes, indices.astype(np.int32), data, len(self._problem.point)
        )


def _binary_entropy(share: Array) -> Array:
    return entropy_terms(share) + entropy_terms(1.0 - share)
