"""Least variance of queries over a staircase, whose vertices are sets of coordinates.

`least_variance` needs all posteriors that may be used. A staircase (`solvers.pricing.separate`) has
one for every set at the upper step, 2^n in all, so some of them are generated:

1. The first ones are single coordinates, neighbours in a circle and sets drawn at random, all of
   the size that is best for equal weights.
2. The best weights of the sets so far give prices y and a matrix S = M^-1 G M^-1
   (`solvers.purposes.queries`). A set with u^T S u > y.v lowers the variance.
3. Up to `MOST_LISTED` coordinates all sets are looked at, which also proves a bound. Beyond that
   single coordinates are exchanged, in many sets at once, as long as the gain grows.
4. The sets that gain most join those in use, and the next round begins.

For example, of two coordinates there are the sets {0} and {1} alone: the first round has both.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from solvers.points import Array
from solvers.pricing.separate import StaircaseSearch
from solvers.purposes.queries import LeastVariance, least_variance
from solvers.purposes.query_newton import BOUND_ERROR

MOST_LISTED = 16
"""Coordinates up to which all sets are looked at: 65,534, in a tenth of a second."""

MOST_ROUNDS = 40
"""Rounds; 15 values take 6 to 12."""

NEW_SETS = 300
"""Sets that one round adds at most."""

KEPT_SETS = 700
"""Sets that are kept from round to round."""

STARTS = 200
"""Sets from which exchanges begin."""

Sets = NDArray[np.bool_]


def least_variance_of_sets(
    inner: StaircaseSearch,
    outer: StaircaseSearch,
    point: Array,
    gram: Array,
    *,
    gap: float,
    end: float = math.inf,
) -> LeastVariance:
    """The weights of least total variance over sets; the bound is for `outer`, or -inf.

    Parameters and errors are those of `least_variance`.
    """
    n = len(point)
    generator = np.random.default_rng(0)
    sets = np.unique(_first_sets(inner, n, generator), axis=0)
    everything: Sets | None = None
    if n <= MOST_LISTED:
        numbers = np.arange(1, (1 << n) - 1)[:, None]
        everything = (numbers >> np.arange(n)) & 1 == 1
    offset = float(point @ gram @ point)
    best: LeastVariance | None = None
    bound = -math.inf
    proven_by: tuple[Array, Array] | None = None
    for _ in range(MOST_ROUNDS):
        members = inner.members(sets)
        found = least_variance(
            members, point, gram, gap=gap, end=end, start=_response(sets, inner, point)
        )
        if best is None or found.value < best.value:
            best = found
        if found.prices is None or found.inverse is None:
            break
        y = found.prices
        sandwich = found.inverse @ gram @ found.inverse
        candidates = everything
        if candidates is None:
            candidates = _exchanged(outer, point, sandwich, y, sets, generator)
        gains = _gains(outer.members(candidates), point, sandwich, y)
        if everything is not None:
            # tr(G M^-1) of the weights, which the Newton steps ended at.
            value = float(np.sum(gram * found.inverse))
            raised = max(float(gains.max()), 0.0)
            proven = value**2 / (float(y @ point) + raised) * (1.0 - BOUND_ERROR)
            if proven > bound:
                bound, proven_by = proven, (y, found.inverse)
        is_closed = best.value - bound <= 0.5 * gap * (best.value - offset)
        if is_closed or time.process_time() >= end:
            break
        gaining = np.argsort(-gains, kind="stable")[:NEW_SETS]
        gaining = gaining[gains[gaining] > 0.25 * gap * found.value]
        # Sets far below their prices are of no use; single ones always decompose the point.
        slack = _gains(members, point, sandwich, y)
        near = sets[np.argsort(-slack, kind="stable")[:KEPT_SETS]]
        grown = np.vstack([near, candidates[gaining], np.eye(n) > 0.0])
        grown = np.unique(grown, axis=0)
        if not len(gaining) or np.array_equal(grown, sets):
            break
        sets = grown
    assert best is not None  # of the first round
    if proven_by is None:
        return replace(best, bound=-math.inf, prices=None)
    return replace(best, bound=bound, prices=proven_by[0], inverse=proven_by[1])


def _first_sets(inner: StaircaseSearch, n: int, generator: np.random.Generator) -> Sets:
    """Single coordinates, neighbours in a circle, and sets at random."""
    size = min(max(round(n / (inner.factor + 1.0)), 1), n - 1)
    places = np.arange(n)
    circle = ((places[None, :] - places[:, None]) % n) < size
    drawn = generator.random((8 * n, n)).argsort(axis=1) < size
    return np.vstack([np.eye(n) > 0.0, circle, drawn])


def _response(sets: Sets, stairs: StaircaseSearch, point: Array) -> Array:
    """Weights of the single coordinates that decompose the point: randomised response."""
    single = sets.sum(axis=1) == 1
    place = sets.argmax(axis=1)
    # The mass of a vertex is in proportion to 1 / t: w(all) + (factor - 1) w(T).
    mass = 1.0 + (stairs.factor - 1.0) * point[place]
    weights = np.where(single, mass, 0.0)
    return weights / weights.sum()


def _gains(members: Array, point: Array, sandwich: Array, prices: Array) -> Array:
    """u^T S u - y.v of every member, (k,)."""
    u = members / point
    return ((u @ sandwich) * u).sum(axis=1) - members @ prices


def _exchanged(
    stairs: StaircaseSearch,
    point: Array,
    sandwich: Array,
    prices: Array,
    sets: Sets,
    generator: np.random.Generator,
) -> Sets:
    """Sets after exchanges of single coordinates that gain, from many sets at once."""
    n = len(point)
    first = sets[generator.permutation(len(sets))[:STARTS]]
    now = first ^ (generator.random(first.shape) < 1.0 / n)
    inside = now.any(axis=1) & ~now.all(axis=1)
    now = np.unique(now[inside], axis=0)
    gains = _gains(stairs.members(now), point, sandwich, prices)
    for _ in range(2 * n):
        others = now[:, None, :] ^ (np.eye(n) > 0.0)
        flat = others.reshape(-1, n)
        trial = _gains(stairs.members(flat), point, sandwich, prices)
        empty = ~flat.any(axis=1) | flat.all(axis=1)
        trial = np.where(empty, -np.inf, trial).reshape(len(now), n)
        place = trial.argmax(axis=1)
        rises = trial.max(axis=1) > gains
        if not rises.any():
            break
        now = now.copy()
        now[rises, place[rises]] ^= True
        gains = np.where(rises, trial.max(axis=1), gains)
    return np.unique(now, axis=0)
