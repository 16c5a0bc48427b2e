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
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from solvers.errors import BackendFailure
from solvers.points import Array, Points
from solvers.programs.master import HighsMaster
from solvers.purposes.query_newton import (
    InteriorPoint,
    balanced_factor,
    positive_factor,
    solved,
)
from solvers.results import EnvelopeStatus, Progress

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


def least_variance(
    points: Array,
    point: Array,
    gram: Array,
    *,
    gap: float,
    end: float = math.inf,
    relaxation: Array | None = None,
    start: Array | None = None,
    progress: Callable[[Progress], None] | None = None,
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
    progress : callable, optional
        Called after every step that meets the equations.

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
            if progress is not None:
                progress(Progress(best.value, best.bound, best.steps, len(points), 0))
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
