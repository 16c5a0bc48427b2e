"""Pricing over a set around the members: columns that gain at given prices, and the best bound.

At prices y a column v gains if H(v) - y.v < 0. There are two searches for such columns:

- `descend`: local searches from mixtures of the point with unit vectors. They are cheap and prove
  nothing.
- `raise_bound`: branch and bound. With H(v) - y.v >= m on all of the set it proves the bound
  y.p + m of the envelope (docs/explanation/optimum-theory.md, 'A bound from prices'). The best of
  all is `bound`, and `dual` are its prices.

For example, at prices 0 every H(v) >= 0, so m = 0 and the bound is 0; the prices of a master
program, at which no column gains, give m = 0 and its own value y.p.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from solvers.envelope.outer_polytope import OuterSet
from solvers.points import Array, Points
from solvers.pricing.concave import SearchCounts, SearchResult
from solvers.results import envelope_bound, lowered_prices

CUTOFF_SHARE = 0.9
"""Share of the gap that pricing may leave; the rest is for the tolerance of the master."""

COLUMN_SHARE = 0.02
"""Columns that gain less than this share of the gap are not worth their place."""

EARLY_SLACK = 0.1
"""Share of the (negative) minimum that the bound of a round may lie below it: a sharper one does
not last."""

MIXES = (0.5, 0.7, 0.9)
"""Weights of a unit vector against the point itself, from which local searches start in turn."""

MOST_LOWERINGS = 3
"""Times in a row that prices of rare coordinates are lowered and priced again."""


@dataclass(frozen=True)
class Limits:
    """The gap in nats, the end (of `time.process_time`), and the threads of one search."""

    gap: float
    end: float
    workers: int

    @property
    def seconds(self) -> float:
        """The time that is left."""
        return max(0.0, self.end - time.process_time())


class ConvexPricing:
    """The searches of one run over a set around the members.

    Attributes
    ----------
    bound : float
        The best proven bound of the envelope at the point, in nats.
    dual : (n,) array
        The prices that prove it.
    counts, seconds
        The effort so far, and its time.
    """

    def __init__(
        self,
        outer: OuterSet,
        point: Array,
        limits: Limits,
        report: Callable[[], None] | None,
    ) -> None:
        self._outer = outer
        self._point = point
        self._limits = limits
        self._report = report
        self.bound = -math.inf
        self.dual = np.zeros(len(point))
        self.counts = SearchCounts()
        self.seconds = 0.0
        # Number of local searches so far: each starts from other places.
        self._turn = 0

    def descend(self, prices: Array) -> SearchResult:
        """Descents from between the point and the unit vectors, which prove nothing."""
        mix = MIXES[self._turn % len(MIXES)]
        turn = self._turn // len(MIXES)
        self._turn += 1
        # With `enough=0` the tree is never touched.
        return self._search(
            prices,
            center=self._point,
            mix=mix,
            turn=turn,
            enough=0,
            cutoff=-math.inf,
            tolerance=self._limits.gap,
        )

    def raise_bound(self, prices: Array) -> SearchResult:
        """Branch and bound at these prices, and at lower ones where a few of them are blunt."""
        gap = self._limits.gap
        result = self._search_tree(prices)
        for _ in range(MOST_LOWERINGS):
            if not len(result.points) or result.bound >= -CUTOFF_SHARE * gap:
                break
            # Blunt prices of rare coordinates may be all that keeps the bound down.
            lowered = lowered_prices(prices, result.points, self._point, gap)
            if lowered is None or self._limits.seconds <= 0.0:
                break
            prices = lowered
            further = self._search_tree(prices)
            points = Points.concatenate([result.points, further.points])
            result = SearchResult(further.status, further.bound, points, further.counts)
        return result

    def _search_tree(self, prices: Array) -> SearchResult:
        """One branch and bound at these prices, whose bound is kept if it is the best."""

        # The bound of the open boxes is valid at any moment, so the caller sees it grow.
        def progress(minimum: float) -> None:
            if self._report is not None:
                self._take_bound(prices, minimum)
                self._report()

        result = self._search(
            prices,
            # If nothing gains more than this, the bound is within the gap of the master's value.
            cutoff=-CUTOFF_SHARE * self._limits.gap,
            tolerance=0.0,
            progress=progress,
        )
        self._take_bound(prices, result.bound)
        return result

    def _take_bound(self, prices: Array, minimum: float) -> None:
        """Keep the bound that these prices and the minimum of H(v) - prices.v prove, if better."""
        bound = envelope_bound(prices, self._point, minimum)
        if bound > self.bound:
            self.bound = bound
            self.dual = prices

    def _search(self, prices: Array, **options: object) -> SearchResult:
        """Search in the time that is left, and count the effort."""
        started = time.process_time()
        # Cuts since the last search have changed the set, so its pricer is asked for anew.
        result = self._outer.pricer(self._limits.workers)(
            prices,
            slack=EARLY_SLACK,
            column_cutoff=-COLUMN_SHARE * self._limits.gap,
            time_limit=self._limits.seconds,
            **options,
        )
        self.seconds += time.process_time() - started
        self.counts += result.counts
        return result
