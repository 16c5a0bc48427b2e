"""The channel from whose outputs linear queries are estimated with least variance.

Let p be the frequencies of the symbols. An output y_k of the channel has the probability t_k and
the posterior v_k = P(x | y_k), one of a list of points. With u_k = v_k / p (entry by entry), the
matrix M(t) = sum_k t_k u_k u_k^T is the information that one released record carries about p. For N
records, N times the covariance of the best linear unbiased estimate is M^-1 - p p^T, so for queries
Q and G = Q^T Q the program is

    minimise f(t) = tr(G M(t)^-1)   subject to   sum_k t_k v_k = p,  t >= 0,

which is convex in t. Splitting a posterior into vertices of the polytope of allowed posteriors can
only raise M, so its vertices suffice as points.

*Bound.* With s_k = u_k^T M^-1 G M^-1 u_k and any y with y.v_k >= s_k for all vertices, no t has
f(t) < f^2 / (y.p). Proof: 1/f is concave and homogeneous of degree one in t, and its gradient is
s / f^2, hence 1/f(t') <= sum_k t'_k s_k / f^2 <= y.p / f^2. QED

For example, over the unit vectors, with p = (1/2, 1/2) and G the identity, only t = (1/2, 1/2) is
feasible. M has the diagonal (2, 2), f = 1, s = (1, 1), and y = (1, 1) proves f >= 1^2 / 1.

`least_variance` works in three steps:

1. `query_newton` takes steps of an interior-point method; each has weights t, prices y and the
   bound that these prove (`InteriorPoint.bound`).
2. Once value and bound meet, the weights are changed to others of the same M, of which few are
   positive: a basic solution of a linear program (`_with_few_outputs`).
3. They are corrected until they meet p to the last digits (`_meeting`).

*Over a staircase*, whose vertices are sets of coordinates. `least_variance` needs all posteriors
that may be used. A staircase (`solvers.pricing.separate`) has one for every set at the upper step,
2^n in all, so some of them are generated:

1. The first ones are single coordinates, neighbours in a circle and sets drawn at random, all of
   the size that is best for equal weights.
2. The best weights of the sets so far give prices y and a matrix S = M^-1 G M^-1.
   A set with u^T S u > y.v lowers the variance.
3. Up to `MOST_LISTED` coordinates all sets are looked at, which also proves a bound. Beyond that
   single coordinates are exchanged, in many sets at once, as long as the gain grows.
4. The sets that gain most join those in use, and the next round begins.

For example, of two coordinates there are the sets {0} and {1} alone: the first round has both.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from solvers.errors import BackendFailure
from solvers.pace import one_thread
from solvers.points import Array, Points
from solvers.pricing.separate import StaircaseSearch
from solvers.programs import HighsMaster
from solvers.purposes.query_newton import (
    BOUND_ERROR,
    InteriorPoint,
    balanced_factor,
    positive_factor,
    solved,
)
from solvers.results import EnvelopeStatus

MOST_STEPS = 200
"""Newton steps; real tables take 15 to 40."""

NEGLIGIBLE = 1e-10
"""Share of the largest possible weight of a vertex below which it is left out in the end."""

CORRECTIONS = 3
"""Corrections of the final weights; the first leaves about the square of what was missing."""

FEASIBLE = 1e-9
"""Relative miss of the point below which the weights count as a decomposition."""

CROSSOVER_SECONDS = 10.0
"""What the search for few outputs may take; it needs far less."""


@dataclass(frozen=True, eq=False)
class LeastVariance:
    """Weights of the points, f at them, and what no weights can go below.

    Attributes
    ----------
    weights : (k,) array
    points : Points, (k, n)
    value, bound : float
        tr(G M^-1): N times the total variance plus p^T G p.
    prices, inverse : (n,) and (n, n) arrays, or None
        y and M^-1 that prove the bound; None without a bound.
    """

    status: EnvelopeStatus
    weights: Array
    points: Points
    value: float
    bound: float
    steps: int
    prices: Array | None = None
    inverse: Array | None = None


TIMED = 64
"""Points of which a product is timed to estimate a step."""

PRODUCTS = 8.0
"""A step takes about as long as so many products of the matrix of all points with itself: factors
and solutions of n and k equations, and the information matrix once more."""


def seconds_of_step(n: int, k: int) -> float:
    """An estimate of the processor time that k points of R^n take until the first step is done.

    A small part of the work is timed on this machine.
    """
    points = np.ones((TIMED, n))
    before = time.process_time()
    np.matmul(points.T, points)
    return PRODUCTS * (time.process_time() - before) * k / TIMED


@one_thread(for_scipy=True)
def least_variance(
    points: Array,
    point: Array,
    gram: Array,
    *,
    gap: float,
    end: float = math.inf,
    relaxation: Array | None = None,
    start: Array | None = None,
) -> LeastVariance:
    """The weights of least total variance over listed points.

    Parameters
    ----------
    points : (k, n) array
        Posteriors that may be used; the vertices of the polytope.
    point : (n,) array
        P_X, positive, in the convex hull of the points.
    gram : (n, n) array
        G = Q^T Q of the queries Q, (m, n).
    gap : float
        Stop when value minus bound is at most this share of ``value - p^T G p``, the variance.
    end : float
        When to stop, on the clock of `time.process_time`.
    relaxation : (l, n) array, optional
        Points of the set that the bound is for, by default the points themselves.
    start : (k,) array, optional
        Weights that decompose the point: they are the answer where no step comes to better ones.

    Raises
    ------
    BackendFailure
        If no weights were found that decompose the point.
    """
    best = _Best()
    if start is not None:
        best.weights = start
        best.value = _value(points / point, start, gram)
    method = InteriorPoint(points, point, gram, relaxation)
    # p^T G p, by which f exceeds the variance.
    offset = float(point @ gram @ point)
    # Each step that meets the equations leaves weights and a bound, so the loop may stop anywhere.
    while best.steps < MOST_STEPS:
        best.steps += 1
        try:
            method.step()
        except BackendFailure:
            # Close to the optimum the equations lose their last digits; what was found stays.
            break
        if method.miss <= FEASIBLE:
            best.learn(method)
            # The other half of the gap is for rounding: of these weights, and later of the channel.
            if best.value - best.bound <= 0.5 * gap * (best.value - offset):
                best.status = EnvelopeStatus.OPTIMAL
                break
        if method.is_stuck:
            break
        if time.process_time() >= end:
            best.status = EnvelopeStatus.TIME_LIMIT
            break
    if best.weights is None:
        raise BackendFailure(
            "no weights of the posteriors meet the frequencies: their program failed in doubles"
        )
    points, weights = _with_few_points(points, point, best.weights)
    return LeastVariance(
        status=best.status,
        weights=weights,
        points=Points.from_dense(points),
        value=best.value,
        bound=best.bound,
        steps=best.steps,
        prices=best.prices,
        inverse=best.inverse,
    )


def _with_few_points(
    points: Array, point: Array, weights: Array
) -> tuple[Array, Array]:
    """The points in use by weights of the same variance, of which few are positive."""
    # A vertex cannot have more weight than its scarcest symbol allows.
    largest = 1.0 / np.max(points / point, axis=1)
    used = weights > NEGLIGIBLE * largest
    points = points[used]
    weights = _with_few_outputs(points, point, weights[used])
    # The basic solution has zeros of its own.
    used = weights > NEGLIGIBLE * largest[used]
    points = points[used]
    return points, _meeting(points, point, weights[used])


def _with_few_outputs(points: Array, point: Array, weights: Array) -> Array:
    """Weights of the same information M and the same mean, of which few are positive; (k,).

    Both are linear in the weights, so a basic solution has at most n (n + 3) / 2 positive ones. The
    given weights stay where HiGHS finds none.
    """
    n = len(point)
    # Before they are computed: of 800 symbols there are 300,000 for every point.
    if len(points) <= n * (n + 3) // 2:
        return weights
    u = points / point
    i, j = np.triu_indices(n)
    # Column k: what a unit of weight adds to the mean and to every entry of the symmetric M.
    columns = np.hstack([points, u[:, i] * u[:, j]])
    target = weights @ columns
    # Where the sum of such terms, none negative, is zero, all terms in use are zero.
    possible = target > 0.0
    master = HighsMaster(target[possible])
    # Any basic solution will do; large weights first, so that the basis is a good one.
    master.add(Points.from_dense(columns[:, possible]), -weights)
    solution = master.solve(CROSSOVER_SECONDS)
    if not solution.is_optimal:
        return weights
    return solution.weights


def _meeting(points: Array, point: Array, weights: Array) -> Array:
    """The weights, changed relatively least, such that they meet the point to the last digits.

    Rare symbols need that: a channel's rows are divided by what the weights give each symbol.
    """
    for _ in range(CORRECTIONS):
        # Newton's step for the equations, by least squares of the relative changes.
        missing = (point - points.T @ weights) / point
        scaled = points / point
        normal = (scaled.T * weights) @ scaled
        change = weights * (scaled @ solved(positive_factor(normal), missing))
        # Weights stay positive: a correction that would undo one is left out.
        if (weights + change <= 0.0).any():
            return weights
        weights = weights + change
    return weights


def _value(u: Array, weights: Array, gram: Array) -> float:
    """tr(G M^-1) with M = sum_k t_k u_k u_k^T."""
    factor, scaling = balanced_factor(u, weights)
    return float(np.trace(solved(factor, gram * scaling)))


@dataclass
class _Best:
    """The best weights so far, f at them, and the bound."""

    value: float = math.inf
    weights: Array | None = None
    bound: float = -math.inf
    prices: Array | None = None
    inverse: Array | None = None
    steps: int = 0
    status: EnvelopeStatus = EnvelopeStatus.STALLED

    def learn(self, method: InteriorPoint) -> None:
        """Take in the weights of a step that meets the equations."""
        # Bounds of all steps are valid; far from the path they may be worse than before.
        bound = method.bound()
        if bound > self.bound:
            self.bound = bound
            self.prices = method.y
            self.inverse = method.inverse
        if self.weights is None or method.value <= self.value:
            self.value = method.value
            self.weights = method.t.copy()


# ------------------------------------------------------------------ sets of coordinates

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


@one_thread(for_scipy=True)
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
