"""Members of a convex set that mix two coordinates: where the way from one unit vector to another
enters the set, and where it leaves it.

Optimal decompositions consist mostly of points with two or three positive coordinates
(docs/explanation/averages-theory.md, 'Supports'). All pairs together are therefore a good
beginning, and cost less than one search for the cheapest column.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from solvers.convex_set import ConvexSet
from solvers.points import Array, Points

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


def pair_members(convex: ConvexSet, margin: float) -> Points:
    """The members at both ends of the set on the ways between unit vectors; (k, n) with two entries
    each.

    Ends that are unit vectors themselves are left out.
    """
    n = convex.matrix.shape[1]
    first, second = _pairs(n)
    start = convex.matrix[:, first]
    way = convex.matrix[:, second] - start
    inside = _inmost(convex, start, way, margin)
    crosses = convex.excess_of(start + inside * way, margin) <= 0.0
    first = first[crosses]
    second = second[crosses]
    start = start[:, crosses]
    way = way[:, crosses]
    inside = inside[crosses]
    parts: list[Points] = []
    for end in (0.0, 1.0):
        share = _last_inside(convex, start, way, inside, end, margin)
        share += PULLED_BACK * (inside - share)
        mixes = (share > 0.0) & (share < 1.0) & (share != end)
        indices = np.column_stack([first[mixes], second[mixes]]).ravel()
        data = np.column_stack([1.0 - share[mixes], share[mixes]]).ravel()
        sizes = np.full(int(mixes.sum()), 2)
        parts.append(Points.of_sizes(sizes, indices, data, n))
    points = Points.concatenate(parts)
    return points.take(convex.excess(points, margin) <= 0.0)


def _pairs(n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The coordinates of all pairs, or of a sample."""
    first, second = np.triu_indices(n, 1)
    if len(first) <= MOST_PAIRS:
        return first, second
    chosen = np.random.default_rng(0).choice(len(first), MOST_PAIRS, replace=False)
    return first[chosen], second[chosen]


def _inmost(convex: ConvexSet, start: Array, way: Array, margin: float) -> Array:
    """The share of each way where the excess is least, by golden sections; it is convex there."""
    low = np.zeros(start.shape[1])
    high = np.ones(start.shape[1])
    for _ in range(NARROWINGS):
        left = high - GOLDEN * (high - low)
        right = low + GOLDEN * (high - low)
        excess_left = convex.excess_of(start + left * way, margin)
        excess_right = convex.excess_of(start + right * way, margin)
        to_left = excess_left < excess_right
        low = np.where(to_left, low, left)
        high = np.where(to_left, right, high)
    return 0.5 * (low + high)


def _last_inside(
    convex: ConvexSet,
    start: Array,
    way: Array,
    inside: Array,
    end: float,
    margin: float,
) -> Array:
    """The last share inside the set on the way from `inside` to `end`; `end` itself where it is
    inside.
    """
    within = inside
    beyond = np.full(len(inside), end)
    whole = convex.excess_of(start + beyond * way, margin) <= 0.0
    for _ in range(BISECTIONS):
        middle = 0.5 * (within + beyond)
        is_inside = convex.excess_of(start + middle * way, margin) <= 0.0
        within = np.where(is_inside, middle, within)
        beyond = np.where(is_inside, beyond, middle)
    return np.where(whole, end, within)
