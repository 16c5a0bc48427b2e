"""The posteriors that a notion on averages of lifts allows, as a convex set with cuts.

The lift of an output with posterior v is w = A v, and sum_s P(s) w_s = 1. A notion limits one of
these averages, of the lifts or of their inverses:

    D_k(w) = sum_s P(s) |w_s - 1|^k            `DistanceFunction`
    N_a(w) = (sum_s P(s) w_s^a)^(1/a)          `PowerFunction`, of 1/w `InversePowerFunction`
    K(w)   = sum_s P(s) w_s log w_s            `DivergenceFunction`
    -sum_s P(s) log w_s, K of the inverses     `ReverseDivergenceFunction`

All of them are convex. D_k(1/w) is not, and `InverseDistanceFunction` is a function for it.
`allowed_set` puts the functions of a notion into a `solvers.ConvexSet`, which asks each of them for

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

*The average of |1/w - 1|^k*, which is not convex, and convex functions below it. The lifts of an
output are w_s = P(s | y) / P(s), and k is 1 or 2, for the l1 and the chi2 distance.

`InverseDistanceFunction` is the average itself, sum_s P(s) phi(w_s) with phi(w) = |1/w - 1|^k.
`BelowInverseDistance` is a convex function below it on a box of lifts, and has the cuts that a
search needs; `AboveInverseDistance` is one above it, for convex parts of the set.
`solvers.envelope.other_sets` divides boxes where they are too wide: on smaller ones the function
and that below are closer.

phi falls to zero at w = 1 and grows from there on. It is convex below 1; above, it is concave for
k = 1, and for k = 2 convex up to 3/2 and concave beyond (phi'' = (6 - 4 w) / w^4). On an interval
[a, b] the function below it follows phi up to a bend and then a line to (b, phi(b)), see `_line`:

    k = 1, a < 1 < b    the line from (1, 0)
    k = 2, b > 3/2      the line that touches phi, between 1 and 3/2
    else                phi itself where it is convex on [a, b], and the chord where the line would
                        touch before a

Proof: the line meets phi at b and is nowhere above it at the bend; where phi is concave it lies
above its chords, where it is convex above its tangents.

For example, for k = 1 on [1/2, 2] the convex function is 1/w - 1 up to 1, and from there the line
(w - 1) / 2, which meets phi(2) = 1/2. At w = 3/2 it is 1/4, and phi is 1/3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.core.limits import DistanceMean, DivergenceMean, MeanLimits, PowerMean
from mechdesign.tables.joint import Joint
from solvers import Array, ConvexFunction, ConvexSet, CoveredSet, Cut

# --------------------------------------------------------- averages that are not convex

OUTWARDS = 2.0**-48
"""Relative widening of the bound of an average: its exponential and powers are wrong by a few units
in the last place."""

TURN = 1.5
"""Where (1/w - 1)^2 turns from convex to concave."""

HALVINGS = 60
"""Bisections for the place where the line touches."""

LEAST_LIFT = 1e-12
"""Tangents touch here at the least; lifts of members are larger at all but absurd budgets."""

LARGEST_USE = 0.5
"""Share of the bound that a convex function above may use where no lift differs from 1."""

LARGEST_BOUND = 1e100
"""Averages of members are at most this: with larger ones, at budgets of hundreds of nats, doubles
overflow."""


@dataclass(frozen=True, eq=False)
class InverseDistanceFunction:
    """sum_s P(s) |1/w_s - 1|^k for a budget in nats."""

    p_s: Array
    mean: DistanceMean
    budget: float

    @property
    def allowed(self) -> float:
        """The largest average allowed, rounded up; possibly inf."""
        with np.errstate(over="ignore"):
            return float(np.float64(self.mean.bound(self.budget)) * (1.0 + OUTWARDS))

    @property
    def bound(self) -> float:
        """The largest average of members here; cuts have that of `allowed`."""
        return min(self.allowed, LARGEST_BOUND)

    def values(self, images: Array) -> Array:
        """The average of every column, inf where a lift is zero."""
        return self.mean.inverse_average(self.p_s, np.maximum(images, 0.0))

    def gradients(self, images: Array) -> Array:
        """The gradient at every column."""
        return self.p_s[:, None] * _slope(images, self.mean.power)

    def terms(self, images: Array) -> Array:
        """P(s) |1/w_s - 1|^k."""
        lifts = np.maximum(images, LEAST_LIFT)
        return self.p_s[:, None] * _phi(lifts, self.mean.power)

    def cut(self, image: Array) -> Cut | None:
        """None: only the functions below it have cuts."""
        return None

    def below(self, low: Array, high: Array) -> BelowInverseDistance:
        """The convex function below it on a box of lifts."""
        return BelowInverseDistance(self, low, high)

    @cached_property
    def least(self) -> Array:
        """No lift of a member is below, (|S|,), rounded down: P(s) phi(w_s) is at most the bound c.

        So 1/w_s - 1 <= (c / P(s))^(1/k).
        """
        root = (self.allowed / self.p_s) ** (1.0 / self.mean.power)
        return (1.0 - OUTWARDS) / (1.0 + root)


def largest_lifts(joint: Joint, mean: DistanceMean, upper: float) -> Array:
    """No lift of an output is above: (|S|,), rounded up, for a budget `upper` in nats.

    It is at most that of a single symbol. With d = w_s - 1 and sum_t P(t) (w_t - 1) = 0, the others
    have P(s) d to make up for: 2 P(s) d <= sum P |w - 1|, and by Cauchy and Schwarz
    d^2 P(s) / (1 - P(s)) <= sum P (w - 1)^2.
    """
    largest = joint.lift.max(axis=1)
    if math.isfinite(upper):
        bound = mean.bound(upper)
        if mean.power == 1:
            with np.errstate(over="ignore"):
                distance = bound / (2.0 * joint.p_s)
        else:
            # Odds first: bounds of hundreds of nats would overflow.
            distance = np.sqrt(bound) * np.sqrt((1.0 - joint.p_s) / joint.p_s)
        largest = np.minimum(largest, 1.0 + distance)
    return largest * (1.0 + OUTWARDS)


def _phi(lifts: Array, power: int) -> Array:
    """phi(w) = |1/w - 1|^k."""
    return np.abs(1.0 / lifts - 1.0) ** power


def _slope(lifts: Array, power: int) -> Array:
    """phi'(w) = -k |1/w - 1|^(k - 1) sign(1/w - 1) / w^2."""
    distance = 1.0 / lifts - 1.0
    return -power * np.abs(distance) ** (power - 1) * np.sign(distance) / lifts**2


@dataclass(frozen=True, eq=False)
class BelowInverseDistance:
    """sum_s P(s) g_s(w_s) for lifts from `low` to `high`, (m,): phi up to a bend, then a line.

    Below `LEAST_LIFT`, where nothing is asked of it, g is the tangent there.
    """

    whole: InverseDistanceFunction
    low: Array
    high: Array

    @property
    def bound(self) -> float:
        """The largest average allowed; where it is inf there are no cuts."""
        return self.whole.allowed

    def values(self, images: Array) -> Array:
        """The sum of every column."""
        return self.terms(images).sum(axis=0)

    def terms(self, images: Array) -> Array:
        """P(s) g_s(w_s)."""
        heights, _ = self._heights(images)
        return self.whole.p_s[:, None] * heights

    def gradients(self, images: Array) -> Array:
        """A subgradient at every column."""
        _, slopes = self._heights(images)
        return self.whole.p_s[:, None] * slopes

    def cut(self, image: Array) -> Cut | None:
        """sum P (g(r) + g'(r) (w - r)) <= c, with a tangent of every term."""
        heights, slopes = self._heights(image[:, None])
        normal = self.whole.p_s * slopes[:, 0]
        terms = self.whole.p_s * heights[:, 0]
        offset = self.bound - float(terms.sum()) + float(normal @ image)
        size = self.bound + float(np.abs(terms).sum() + np.abs(normal) @ np.abs(image))
        return Cut(normal, offset, size)

    def _heights(self, images: Array) -> tuple[Array, Array]:
        """g and its slope, (m, k)."""
        lines = self._lines
        power = self.whole.mean.power
        # Beyond the bend and below `LEAST_LIFT` the curve goes on as its tangent there.
        touch = np.maximum(np.minimum(images, lines.bend), LEAST_LIFT)
        curve_slope = _slope(touch, power)
        curve = _phi(touch, power) + curve_slope * (images - touch)
        line = lines.height + lines.rise * (images - lines.start)
        beyond = images > lines.bend
        return np.where(beyond, line, curve), np.where(beyond, lines.rise, curve_slope)

    @cached_property
    def _lines(self) -> _Lines:
        """The lines of all lifts."""
        power = self.whole.mean.power
        table = [_line(a, b, power) for a, b in zip(self.low, self.high, strict=True)]
        bend, start, rise = np.array(table).T[:, :, None]
        return _Lines(bend, start, _phi(start, power), rise)


@dataclass(frozen=True, eq=False)
class _Lines:
    """Bends and the lines beyond them, each (m, 1): a row for each lift.

    A line has the given height at its start, and the slope `rise`.
    """

    bend: Array
    start: Array
    height: Array
    rise: Array


def _line(a: float, b: float, power: int) -> tuple[float, float, float]:
    """Bend, start and rise of the function below phi on lifts from a to b (module docstring)."""
    convex_until = TURN
    if power == 1:
        convex_until = 1.0
    if b <= convex_until:
        # phi is convex on the whole interval; beyond it the tangent at b goes on.
        return b, b, float(_slope(np.array(b), power))
    if power == 1:
        # From (1, 0) to (b, 1 - 1/b).
        touch = 1.0
        rise = 1.0 / b
    else:
        touch = _touching(b)
        rise = float(_slope(np.array(touch), power))
    if touch > a:
        return touch, touch, rise
    # The chord between the ends. With the bend at 0, below all lifts, it is the whole function.
    fall = float(_phi(np.array(b), power) - _phi(np.array(a), power))
    return 0.0, a, fall / (b - a)


def _touching(b: float) -> float:
    """The place t whose tangent of (1/w - 1)^2 passes through (b, phi(b)), or a little below it.

    The tangent at t has the height phi(t) + phi'(t) (b - t) at b, which grows with t up to `TURN`.
    """
    low = 1.0
    high = TURN
    # `low` stays where the tangent is too low at b: a line a little too low is still below phi.
    goal = (1.0 / b - 1.0) ** 2
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        place = np.array(middle)
        height = float(_phi(place, 2) + _slope(place, 2) * (b - middle))
        if height > goal:
            high = middle
        else:
            low = middle
    return low


@dataclass(frozen=True, eq=False)
class AboveInverseDistance:
    """A convex function above: sum_s P(s) h_s(w_s)^k with a tangent of the concave part.

    With t >= 1 the place where it touches, 1/w >= 2/t - w/t^2, so that

        h(w) = max(1/w - 1, 1 - 2/t + w/t^2) >= |1/w - 1|,

    with equality at t. It is not negative, because the second part is (1 - 1/t)^2 at w = 1 and
    grows from there. `touched` has the places, (m,).
    """

    whole: InverseDistanceFunction
    touched: Array

    @property
    def bound(self) -> float:
        """The largest average allowed."""
        return self.whole.bound

    def values(self, images: Array) -> Array:
        """The sum of every column."""
        heights, _ = self._heights(images)
        return self.whole.p_s @ heights**self.whole.mean.power

    def gradients(self, images: Array) -> Array:
        """A subgradient at every column."""
        heights, slopes = self._heights(images)
        power = self.whole.mean.power
        return self.whole.p_s[:, None] * power * heights ** (power - 1) * slopes

    def cut(self, image: Array) -> Cut | None:
        """The tangent of the sum at an image; None where a lift is zero."""
        if image.min() <= 0.0:
            return None
        column = image[:, None]
        normal = self.gradients(column)[:, 0]
        value = float(self.values(column)[0])
        offset = self.bound - value + float(normal @ image)
        size = self.bound + value + float(np.abs(normal) @ np.abs(image))
        return Cut(normal, offset, size)

    def _heights(self, images: Array) -> tuple[Array, Array]:
        """h and its slope, (m, k)."""
        lifts = np.maximum(images, LEAST_LIFT)
        touch = self.touched[:, None]
        below = 1.0 / lifts - 1.0
        above = 1.0 - 2.0 / touch + lifts / touch**2
        is_below = below >= above
        heights = np.where(is_below, below, above)
        return heights, np.where(is_below, -1.0 / lifts**2, 1.0 / touch**2)


def inside_covered(allowed: CoveredSet, touched: Array) -> ConvexSet:
    """A convex part of a set that limits distances of inverses, with the place 1 + (t - 1) r of
    every lift for the largest r of 1, 1/2, 1/4, .. that leaves room around the lifts of 1.
    """
    functions: list[ConvexFunction] = []
    for function in allowed.functions:
        if not isinstance(function, InverseDistanceFunction):
            functions.append(function)
            continue
        places = np.maximum(touched, 1.0)
        above = AboveInverseDistance(function, places)
        nothing = np.ones((len(places), 1))
        while float(above.values(nothing)[0]) > LARGEST_USE * above.bound:
            places = 1.0 + 0.5 * (places - 1.0)
            above = AboveInverseDistance(function, places)
        functions.append(above)
    return ConvexSet(allowed.matrix, functions)


# ---------------------------------------------------------------------- convex averages

TINY = 1e-300
"""Floor of lifts whose logarithm a cut needs; a cut holds for every positive lift in its place."""


def allowed_set(joint: Joint, limits: MeanLimits) -> ConvexSet | CoveredSet:
    """The allowed posteriors: a convex set, or one that is not, where distances of inverses are
    limited (`InverseDistanceFunction`).
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


MeanOf = TypeVar("MeanOf", DistanceMean, PowerMean, DivergenceMean)


@dataclass(frozen=True, eq=False)
class _Average(Generic[MeanOf]):
    """An average of lifts or of their inverses, for a budget in nats."""

    p_s: Array
    mean: MeanOf
    budget: float

    @property
    def bound(self) -> float:
        """The largest average allowed, rounded up."""
        return self.mean.bound(self.budget) * (1.0 + OUTWARDS)


class DistanceFunction(_Average[DistanceMean]):
    """D_k(w) for a budget in nats."""

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


class PowerFunction(_Average[PowerMean]):
    """N_a(w) for a budget in nats."""

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


class InversePowerFunction(_Average[PowerMean]):
    """N_a(1/w) for a budget in nats."""

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


class _Divergence(_Average[DivergenceMean]):
    """A divergence between P(S|y) and P(S) for a budget in nats."""

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
