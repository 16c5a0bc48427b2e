"""Pricing over a set around the members: columns that gain at given prices, and bounds.

At prices y a column v gains if H(v) - y.v < 0. There are two searches for such columns:

- `descend`: local searches from mixtures of the point with unit vectors. They are cheap and prove
  nothing.
- `raise_bound`: branch and bound. With H(v) - y.v >= m on all of the set it proves the bound
  y.p + m of the envelope (docs/explanation/optimum-theory.md, 'A bound from prices').

For example, at prices 0 every H(v) >= 0, so m = 0 and the bound is 0; the prices of a master
program, at which no column gains, give m = 0 and its own value y.p.

*The outer polytope.* A search cannot branch over the convex set itself. So it branches over a set
around it, and every column that it finds outside the convex set tells where the set around is too
large: a cut there removes the column (outer approximation, Kelley 1960).

    normal.u <= offset,   the tangent at an image u_0 of the boundary of {f(u) <= c},  u = A v

Every cut holds for all members, so what is proven over the set around holds for the set itself. For
example, around a disc the first four cuts make a square, whose corners are the cheapest columns;
cuts that touch the circle next to the corners make an octagon of it.

`OuterSet` says what a search needs of the set around: `pricer` searches it, `cut` and `refine` take
the columns outside, `touch` places cuts in advance. `OuterPolytope` is that for a convex set, and
`solvers.envelope.other_sets` has another for sets that are not convex.

*Members of two symbols.* The excess over the worst bound is convex along a way, so

1. golden sections find the share of the way where it is least (`_inmost`); the way meets the set
   only if it is at most zero there;
2. bisections from there towards either end find the last share inside (`_last_inside`), whose
   mixture is a member.

For example, on the way from symbol 1 to symbol 2, with members from share 0.2 to share 0.7, the
columns are (0.8, 0.2, 0, ..) and (0.3, 0.7, 0, ..).

Optimal decompositions consist mostly of points with two or three positive coordinates
(docs/explanation/averages-theory.md, 'Supports'). All pairs together are therefore a good
beginning, and cost less than one search for the cheapest column.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from solvers.envelope.column_pool import COLUMN_SHARE, CUTOFF_SHARE, EARLY_SLACK
from solvers.points import Array, Points
from solvers.pricing.concave import SearchCounts, SearchResult
from solvers.pricing.set_searches import CutSearch
from solvers.results import Pricer, lowered_prices
from solvers.sets.convex_set import ConvexSet, Cut, Cuts
from solvers.sets.polytope import last_inside

# ----------------------------------------------------------------------- outer polytope


class OuterSet(Protocol):
    """A set around all members that can be searched, and comes nearer to them."""

    def pricer(self, workers: int) -> Pricer:
        """The search for the cheapest columns over the set as it is now."""
        ...

    def touch(self, images: Array) -> None:
        """Add cuts that touch the set of members at these images (k, m) on its boundary."""
        ...

    def cut(self, outside: Points) -> list[Cut]:
        """Add cuts that remove points outside, and return all of them."""
        ...

    def refine(self, outside: Points) -> bool:
        """Come nearer to the members where these columns are outside; whether anything changed."""
        ...


class OuterPolytope:
    """The cuts around a convex set, and the search over their polytope."""

    def __init__(self, convex: ConvexSet, point: Array) -> None:
        self._convex = convex
        self._center = (convex.matrix @ point)[:, None]
        self._cuts = Cuts(convex)
        # The search over all cuts; None after new ones until it is needed again.
        self._search: CutSearch | None = None

    def pricer(self, workers: int) -> Pricer:
        """As of `OuterSet`."""
        if self._search is None:
            self._search = CutSearch(self._cuts.polytope, workers=workers)
        return self._search.run

    def touch(self, images: Array) -> None:
        """As of `OuterSet`."""
        cuts: list[Cut] = []
        for image in images:
            cuts += self._convex.cuts_at(image)
        self._add(cuts)

    def refine(self, outside: Points) -> bool:
        """As of `OuterSet`."""
        return len(self.cut(outside)) > 0

    def cut(self, outside: Points) -> list[Cut]:
        """Add a cut next to each point outside, and return all of them.

        It touches the set at the member next to the point on its own support, where there is one:
        such a cut goes deepest. Else, or where that cut leaves the point, it touches the set where
        the way from P_X to the point crosses the boundary; that one always removes it.
        """
        if not len(outside):
            return []
        images = outside.images(self._convex.matrix).T
        near = self._convex.repaired(outside.toarray(), 0.0)
        near_images = self._convex.matrix @ near.T
        shares = self._convex.shares_inside(self._center, images, 0.0)
        crossings = self._center + shares * (images - self._center)
        cuts: list[Cut] = []
        # Where a support has no member `touch` is any point, or not finite. Cuts there hold all the
        # same, but need not remove the column.
        triples = zip(images.T, near_images.T, crossings.T, strict=True)
        for image, touch, crossing in triples:
            # A cut that leaves the column where it is would bring it back in the next round.
            deep: list[Cut] = []
            if np.isfinite(touch).all():
                deep = removing(self._convex.cuts_at(touch), image)
            cuts += deep or self._convex.cuts_at(crossing)
        self._add(cuts)
        return cuts

    def _add(self, cuts: list[Cut]) -> None:
        """Add the cuts; a search over the old ones alone is of no use any more."""
        self._cuts.add(cuts)
        self._search = None


def removing(cuts: list[Cut], image: Array) -> list[Cut]:
    """Those of the cuts that the image violates."""
    return [cut for cut in cuts if float(cut.normal @ image) > cut.offset]


# --------------------------------------------------------------------- pairs of members

MOST_PAIRS = 20_000
"""Pairs that are looked at: all of 200 coordinates. Of more, a sample that is always the same."""

PAIRS_SHARE = 0.5
"""Share of the time that is left which the pairs may take."""

SECONDS_OF_ENTRY = 1e-8
"""Processor time of one entry of an image, once: divergences of 20,000 pairs of 300 entries take 12
seconds."""

NARROWINGS = 15
"""Golden sections: the last interval is below 1e-6 of the way, so that a set that covers less of it
may be missed, which only leaves a column to be found later."""

BISECTIONS = 26
"""Halvings of the way from inside the set to its boundary."""

PULLED_BACK = 2.0**-40
"""Share of the way back inside by which an end lies away from the boundary."""

GOLDEN = 0.5 * (np.sqrt(5.0) - 1.0)


@dataclass(frozen=True, eq=False)
class _Ways:
    """The ways between the unit vectors of k pairs, as images (m, k): their starts and directions.

    The point at share t of a way mixes its first coordinate with 1 - t and its second with t.
    """

    convex: ConvexSet
    margin: float
    starts: Array
    directions: Array

    def __len__(self) -> int:
        return self.starts.shape[1]

    def excess(self, shares: Array) -> Array:
        """By how much the point at its share of each way is outside the set, (k,)."""
        images = self.starts + shares * self.directions
        return self.convex.excess_of(images, self.margin)

    def take(self, chosen: NDArray[np.bool_]) -> _Ways:
        """Some of the ways."""
        return _Ways(
            self.convex,
            self.margin,
            self.starts[:, chosen],
            self.directions[:, chosen],
        )


def pair_members(convex: ConvexSet, margin: float, seconds: float = math.inf) -> Points:
    """The members at both ends of the set on the ways between unit vectors; (k, n) with two entries
    each.

    Ends that are unit vectors themselves are left out. So are pairs for which a search with so many
    `seconds` left has no time.
    """
    entries, n = convex.matrix.shape
    first, second = _pairs(n, _affordable(entries, seconds))
    # Image of the unit vector of symbol x is column x of the matrix.
    starts = convex.matrix[:, first]
    ways = _Ways(convex, margin, starts, convex.matrix[:, second] - starts)
    inside = _inmost(ways)
    crosses = ways.excess(inside) <= 0.0
    first = first[crosses]
    second = second[crosses]
    inside = inside[crosses]
    ways = ways.take(crosses)
    parts: list[Points] = []
    for end in (0.0, 1.0):
        share = _last_inside(ways, inside, end)
        # Away from the boundary the mixture is a member even after the rounding of its entries.
        share += PULLED_BACK * (inside - share)
        mixes = (share > 0.0) & (share < 1.0) & (share != end)
        parts.append(Points.between(first[mixes], second[mixes], share[mixes], n))
    points = Points.concatenate(parts)
    # The only check that counts: of the points themselves, not of shares of a way.
    return points.take(convex.excess(points, margin) <= 0.0)


def _affordable(entries: int, seconds: float) -> int:
    """Pairs for which there is time, by the number of entries of an image.

    They are halved until they fit, so that a little more or less time gives the same pairs.
    """
    evaluations = 2 * NARROWINGS + 2 * BISECTIONS
    of_pair = evaluations * entries * SECONDS_OF_ENTRY
    pairs = MOST_PAIRS
    while pairs > 1 and pairs * of_pair > PAIRS_SHARE * seconds:
        pairs //= 2
    return pairs


def _pairs(n: int, most: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The coordinates of all pairs, or of a sample of at most so many."""
    first, second = np.triu_indices(n, 1)
    if len(first) <= most:
        return first, second
    chosen = np.random.default_rng(0).choice(len(first), most, replace=False)
    return first[chosen], second[chosen]


def _inmost(ways: _Ways) -> Array:
    """The share of each way where the excess is least, by golden sections; it is convex there."""
    low = np.zeros(len(ways))
    high = np.ones(len(ways))
    for _ in range(NARROWINGS):
        left = high - GOLDEN * (high - low)
        right = low + GOLDEN * (high - low)
        # A convex function that is less at the left has its least value left of the right one.
        to_left = ways.excess(left) < ways.excess(right)
        low = np.where(to_left, low, left)
        high = np.where(to_left, right, high)
    return 0.5 * (low + high)


def _last_inside(ways: _Ways, inside: Array, end: float) -> Array:
    """The last share inside the set on the way from `inside` to `end`; `end` itself where it is
    inside.
    """
    ends = np.full(len(inside), end)
    whole = ways.excess(ends) <= 0.0
    within = last_inside(
        lambda shares: ways.excess(shares) <= 0.0, inside, ends, BISECTIONS
    )
    return np.where(whole, end, within)


# ------------------------------------------------------------------------------ pricing

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

    Parameters
    ----------
    prove : callable
        Takes prices and a lower bound of H(v) - prices.v over the set, whenever one is proven.

    Attributes
    ----------
    counts, seconds
        The effort so far, and its time.
    """

    def __init__(
        self,
        outer: OuterSet,
        point: Array,
        limits: Limits,
        prove: Callable[[Array, float], None],
    ) -> None:
        self._outer = outer
        self._point = point
        self._limits = limits
        self._prove = prove
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
        """One branch and bound at these prices."""
        result = self._search(
            prices,
            # If nothing gains more than this, the bound is within the gap of the master's value.
            cutoff=-CUTOFF_SHARE * self._limits.gap,
            tolerance=0.0,
            # The bound of the open boxes is valid at any moment, so the caller sees it grow.
            progress=partial(self._prove, prices),
        )
        self._prove(prices, result.bound)
        return result

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
