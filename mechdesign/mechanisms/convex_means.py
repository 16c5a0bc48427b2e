"""The posteriors that a notion on averages of lifts allows, as a convex set with cuts.

The lift of an output with posterior v is w = A v, and sum_s P(s) w_s = 1. A notion limits one of
these averages, of the lifts or of their inverses:

    D_k(w) = sum_s P(s) |w_s - 1|^k            `DistanceFunction`
    N_a(w) = (sum_s P(s) w_s^a)^(1/a)          `PowerFunction`, of 1/w `InversePowerFunction`
    K(w)   = sum_s P(s) w_s log w_s            `DivergenceFunction`
    -sum_s P(s) log w_s, K of the inverses     `ReverseDivergenceFunction`

All of them are convex. D_k(1/w) is not, and `inverse_means` has a function for it. `allowed_set`
puts the functions of a notion into a `solvers.ConvexSet`, which asks each of them for

- `values` and `gradients`: whether a posterior is a member, and how it becomes one;
- `cut`: a linear inequality that every member keeps, and that posteriors beyond the limit break.
  The bound on all channels is computed for a polytope of such cuts.

A cut replaces the average by its largest allowed value on the right of one of the following. They
hold for every g, r or q, so that an error of the normal makes a cut looser, never wrong:

    D_k   g (w - 1) <= |g/P|_q D_k^(1/k),  1/k + 1/q = 1                        (Hoelder)
    N_a   g w       <= |g/P|_q N_a,        1/a + 1/q = 1                        (Hoelder)
    K     sum P log(r) w <= K + log sum P r,  for every r > 0    (Donsker and Varadhan)
    -log  -log w_s >= 1 - log r_s - w_s / r_s,  for every r > 0                 (tangent)
    N_a(1/w)  log N_a(1/w) >= -KL(q, P) / a - sum q log w,  for every law q     (Gibbs)

with |x|_q = (sum_s P(s) |x_s|^q)^(1/q). For example, let D_2 be at most 1/4 and a point have w - 1
= (1, -1) at P = (1/2, 1/2). With g = P (w - 1) = (1/2, -1/2) the cut is (w_1 - w_2) / 2 <= 1 * 1/2,
which the point breaks, as its left side is 1.

`posteriors` has a simpler description for two secrets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.core.limits import DistanceMean, DivergenceMean, MeanLimits, PowerMean
from mechdesign.mechanisms.inverse_means import (
    OUTWARDS,
    InverseDistanceFunction,
    largest_lifts,
)
from mechdesign.tables.joint import Joint
from solvers import Array, ConvexFunction, ConvexSet, CoveredSet, Cut

TINY = 1e-300
"""Floor of lifts whose logarithm a cut needs; a cut holds for every positive lift in its place."""


def allowed_set(joint: Joint, limits: MeanLimits) -> ConvexSet | CoveredSet:
    """The allowed posteriors: a convex set, or one that is not, where distances of inverses are
    limited (`inverse_means`).
    """
    convex: list[ConvexFunction] = []
    mean = limits.mean
    # The upper budget limits the average of the lifts, the lower one that of their inverses.
    if math.isfinite(limits.upper):
        convex.append(_upper_function(joint.p_s, limits))
    if not math.isfinite(limits.lower):
        return ConvexSet(joint.lift, convex)
    if not isinstance(mean, DistanceMean):
        return ConvexSet(joint.lift, [*convex, _lower_function(joint.p_s, limits)])
    # Convex sets are only known on boxes of lifts, so the set needs a box of all members.
    inverse = InverseDistanceFunction(joint.p_s, mean, limits.lower)
    high = largest_lifts(joint, mean, limits.upper)
    return CoveredSet(joint.lift, [*convex, inverse], inverse.least, high)


def _upper_function(p_s: Array, limits: MeanLimits) -> ConvexFunction:
    """The function of the lifts that the upper budget limits."""
    mean = limits.mean
    if isinstance(mean, DistanceMean):
        return DistanceFunction(p_s, mean, limits.upper)
    if isinstance(mean, PowerMean):
        return PowerFunction(p_s, mean, limits.upper)
    return DivergenceFunction(p_s, mean, limits.upper)


def _lower_function(p_s: Array, limits: MeanLimits) -> ConvexFunction:
    """The function of the inverse lifts that the lower budget limits, if it is convex."""
    mean = limits.mean
    if isinstance(mean, PowerMean):
        return InversePowerFunction(p_s, mean, limits.lower)
    if isinstance(mean, DivergenceMean):
        return ReverseDivergenceFunction(p_s, mean, limits.lower)
    raise InputError(f"the inverse of {mean.name} is not convex")


def weighted_norm(p_s: Array, values: Array, order: float) -> float:
    """(sum_s P(s) x_s^order)^(1/order) of non-negative numbers; the largest for order inf."""
    largest = float(values.max())
    if math.isinf(order) or largest == 0.0:
        return largest
    # Division by the largest keeps every power at most 1, so nothing overflows.
    total = float(p_s @ (values / largest) ** order)
    return largest * total ** (1.0 / order)


def conjugate(order: float) -> float:
    """The order q with 1/order + 1/q = 1."""
    if order == 1.0:
        return math.inf
    return order / (order - 1.0)


@dataclass(frozen=True, eq=False)
class DistanceFunction:
    """D_k(w) for a budget in nats."""

    p_s: Array
    mean: DistanceMean
    budget: float

    @property
    def bound(self) -> float:
        """The largest D_k allowed, rounded up."""
        return self.mean.bound(self.budget) * (1.0 + OUTWARDS)

    def values(self, images: Array) -> Array:
        """D_k of every column."""
        return self.mean.average(self.p_s, images)

    def gradients(self, images: Array) -> Array:
        """The gradient of D_k at every column."""
        power = self.mean.power
        # d/dw_s of P(s) |w_s - 1|^k.
        distance = images - 1.0
        slopes = power * np.abs(distance) ** (power - 1) * np.sign(distance)
        return self.p_s[:, None] * slopes

    def cut(self, image: Array) -> Cut | None:
        """Hoelder's inequality with the gradient of D_k as g; None at w = 1, where it is zero."""
        power = self.mean.power
        distance = image - 1.0
        largest = float(np.abs(distance).max())
        if largest == 0.0:
            return None
        # g / P of the gradient, up to a factor that keeps its largest entry 1.
        slope = np.sign(distance) * (np.abs(distance) / largest) ** (power - 1)
        normal = self.p_s * slope
        norm = weighted_norm(self.p_s, np.abs(slope), conjugate(power))
        radius = self.bound ** (1.0 / power)
        # g w <= g 1 + |g/P|_q c^(1/k).
        size = float(np.abs(normal).sum()) + radius * norm
        return Cut(normal, float(normal.sum()) + radius * norm, size)


@dataclass(frozen=True, eq=False)
class PowerFunction:
    """N_a(w) for a budget in nats."""

    p_s: Array
    mean: PowerMean
    budget: float

    @property
    def bound(self) -> float:
        """The largest N_a allowed, rounded up."""
        return self.mean.bound(self.budget) * (1.0 + OUTWARDS)

    def values(self, images: Array) -> Array:
        """N_a of every column."""
        return self.mean.average(self.p_s, np.maximum(images, 0.0))

    def gradients(self, images: Array) -> Array:
        """The gradient of N_a at every column, P(s) (w_s / N_a)^(a - 1)."""
        lifts = np.maximum(images, 0.0)
        return self.p_s[:, None] * (lifts / self.values(images)) ** (
            self.mean.order - 1.0
        )

    def cut(self, image: Array) -> Cut | None:
        """Hoelder's inequality with the gradient of N_a as g, up to a factor."""
        order = self.mean.order
        lifts = np.maximum(image, 0.0)
        # g / P, up to a factor that keeps its largest entry 1.
        slope = (lifts / lifts.max()) ** (order - 1.0)
        norm = weighted_norm(self.p_s, slope, conjugate(order))
        offset = self.bound * norm
        return Cut(self.p_s * slope, offset, offset)


@dataclass(frozen=True, eq=False)
class InversePowerFunction:
    """N_a(1/w) for a budget in nats."""

    p_s: Array
    mean: PowerMean
    budget: float

    @property
    def bound(self) -> float:
        """The largest N_a(1/w) allowed, rounded up."""
        return self.mean.bound(self.budget) * (1.0 + OUTWARDS)

    def values(self, images: Array) -> Array:
        """N_a(1/w) of every column, inf where a lift is zero."""
        with np.errstate(divide="ignore"):
            inverse = 1.0 / np.maximum(images, 0.0)
        return self.mean.average(self.p_s, inverse)

    def gradients(self, images: Array) -> Array:
        """The gradient of N_a(1/w) at every column, -P(s) / w_s^2 (1 / (w_s N_a))^(a - 1)."""
        norms = self.values(images)
        slopes = (1.0 / (images * norms)) ** (self.mean.order - 1.0) / images**2
        return -self.p_s[:, None] * slopes

    def cut(self, image: Array) -> Cut | None:
        """-KL(q, P)/a - sum q log r - sum q (w/r - 1) <= budget, with q as in the gradient at r.

        It is Gibbs' inequality with the tangent log w <= log r + w/r - 1 in the place of log w, and
        the budget in that of log N_a(1/w). None where a lift is zero.
        """
        if image.min() <= 0.0:
            return None
        order = self.mean.order
        logs = np.log(image)
        # q_s in proportion to P(s) r_s^-a, without overflow.
        exponents = -order * logs
        shares = self.p_s * np.exp(exponents - exponents.max())
        shares /= shares.sum()
        # q log q is 0 at q = 0.
        positive = shares > 0.0
        quotients = shares[positive] / self.p_s[positive]
        divergence_terms = shares[positive] * np.log(quotients) / order
        log_terms = shares * logs
        normal = -shares / image
        total = float(shares.sum())
        offset = self.budget + float(divergence_terms.sum() + log_terms.sum()) - total
        size = self.budget + total
        size += float(np.abs(divergence_terms).sum() + np.abs(log_terms).sum())
        return Cut(normal, offset, size)


@dataclass(frozen=True, eq=False)
class _Divergence:
    """A divergence between P(S|y) and P(S) for a budget in nats."""

    p_s: Array
    mean: DivergenceMean
    budget: float

    @property
    def bound(self) -> float:
        """The largest divergence allowed."""
        return self.budget


class DivergenceFunction(_Divergence):
    """K(w) = KL(P(S|y), P(S))."""

    def values(self, images: Array) -> Array:
        """K of every column."""
        return self.mean.average(self.p_s, np.maximum(images, 0.0))

    def gradients(self, images: Array) -> Array:
        """The gradient of K at every column, up to a multiple of P(S).

        Steps keep sum_s P(s) w_s = 1, so that such a multiple changes none of them.
        """
        return self.p_s[:, None] * np.log(np.maximum(images, TINY))

    def cut(self, image: Array) -> Cut | None:
        """sum P log(r) w <= budget + log sum P r, of Donsker and Varadhan, with r at the image."""
        lifts = np.maximum(image, TINY)
        normal = self.p_s * np.log(lifts)
        total = math.log(float(self.p_s @ lifts))
        # The logarithm of a sum next to 1 has the absolute error of that sum.
        return Cut(normal, self.budget + total, self.budget + 1.0 + abs(total))


class ReverseDivergenceFunction(_Divergence):
    """-sum_s P(s) log w_s = KL(P(S), P(S|y))."""

    def values(self, images: Array) -> Array:
        """The divergence of every column, inf where a lift is zero."""
        return self.mean.inverse_average(self.p_s, np.maximum(images, 0.0))

    def gradients(self, images: Array) -> Array:
        """The gradient of the divergence at every column."""
        return -self.p_s[:, None] / images

    def cut(self, image: Array) -> Cut | None:
        """sum P (1 - log r - w/r) <= budget, tangents at the image r; None where a lift is zero."""
        if image.min() <= 0.0:
            return None
        logs = self.p_s * np.log(image)
        normal = -self.p_s / image
        total = float(self.p_s.sum())
        offset = self.budget - total + float(logs.sum())
        return Cut(normal, offset, self.budget + total + float(np.abs(logs).sum()))
