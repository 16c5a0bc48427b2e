"""Members of a convex set that mix two coordinates: where the way from one unit vector to another
enters the set, and where it leaves it.

The excess over the worst bound is convex along a way, so

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

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solvers.points import Array, Points
from solvers.sets.convex_set import ConvexSet

MOST_PAIRS = 20_000
"""Pairs that are looked at: all of 200 coordinates. Of more, a sample that is always the same."""

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


def pair_members(convex: ConvexSet, margin: float) -> Points:
    """The members at both ends of the set on the ways between unit vectors; (k, n) with two entries
    each.

    Ends that are unit vectors themselves are left out.
    """
    n = convex.matrix.shape[1]
    first, second = _pairs(n)
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
        indices = np.column_stack([first[mixes], second[mixes]]).ravel()
        data = np.column_stack([1.0 - share[mixes], share[mixes]]).ravel()
        sizes = np.full(int(mixes.sum()), 2)
        parts.append(Points.of_sizes(sizes, indices, data, n))
    points = Points.concatenate(parts)
    # The only check that counts: of the points themselves, not of shares of a way.
    return points.take(convex.excess(points, margin) <= 0.0)


def _pairs(n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The coordinates of all pairs, or of a sample."""
    first, second = np.triu_indices(n, 1)
    if len(first) <= MOST_PAIRS:
        return first, second
    chosen = np.random.default_rng(0).choice(len(first), MOST_PAIRS, replace=False)
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
    within = inside
    beyond = np.full(len(inside), end)
    whole = ways.excess(beyond) <= 0.0
    # The set is convex, so the shares inside are one interval: halving finds its end.
    for _ in range(BISECTIONS):
        middle = 0.5 * (within + beyond)
        is_inside = ways.excess(middle) <= 0.0
        within = np.where(is_inside, middle, within)
        beyond = np.where(is_inside, beyond, middle)
    return np.where(whole, end, within)
