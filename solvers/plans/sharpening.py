"""Prices that prove more: the best multipliers of outputs for given prices of inputs, and back.

For given u_x the best bound takes, for every output y,

    max over lam of   e(lam) + min_x (d(x, y) - u_x - lam t(x))

with one range a concave function of one number, whose slope is the end of the range less the t of
the x that is cheapest: bisection finds the maximum. Only the cheapest x of each value t matters, so
one pass over the pairs is enough for all outputs. Then u_x = min_y (d - lam_y t - v_y) takes up
what the inputs have left. Prices that come from many small programs gain most of their bound by
this.

A penalty whose forms are a_j + b_j t(x), as all are that speak of one of two secrets, is a convex
function of the mean m of t over what goes to y, with straight pieces. With it

    e(lam) = min over m in the range of   lam m + penalty(m),

whose slope is the m that is least: an end of the range, or a kink between two pieces. The forms of
the pieces beside it, and the end, share lam: at a kink the two slopes make up -lam, and at an end
the range has what the piece there leaves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from solvers.plans.pricing import Pricer, Pricing
from solvers.plans.problem import PlanPenalty
from solvers.plans.program import Group, Prices
from solvers.points import Array

BISECTIONS = 40
"""Halvings of the interval of a multiplier: its last digits change a bound by 1e-12."""

MOST_VALUES = 4000
"""Different values of inputs up to which the cheapest of each is kept."""

AFFINE = 1e-9
"""Forms count as affine functions of the values within this: what is proven does not rest on it."""


@dataclass(frozen=True, eq=False)
class _Pieces:
    """What lam is worth: the mean m that is least, and the multipliers that belong to it.

    Attributes
    ----------
    points : (k + 1,) array
        Ends of the range, and the kinks of the penalty between them.
    slopes : (k,) array
        Of the penalty between two points, rising.
    offsets : (k,) array
        Of the pieces at m = 0.
    active : (k, forms) array
        Multipliers of the forms that are a piece.
    least, most : float
        No other lam belongs to multipliers that prove something.
    """

    points: Array
    slopes: Array
    offsets: Array
    active: Array
    least: float
    most: float

    def means(self, lam: Array) -> Array:
        """The m that is least."""
        return self.points[np.searchsorted(self.slopes, -lam)]

    def split(self, lam: Array) -> tuple[Array, Array, Array]:
        """Multipliers of the range (y) and of the forms (form, y) that make up lam, and what the
        forms are worth at t = 0 (y).
        """
        last = len(self.slopes) - 1
        place = np.searchsorted(self.slopes, -lam)
        before, after = np.maximum(place - 1, 0), np.minimum(place, last)
        low, high = self.slopes[before], self.slopes[after]
        width = np.where(high > low, high - low, 1.0)
        share = np.clip((-lam - low) / width, 0.0, 1.0)
        of_forms = (1.0 - share)[:, None] * self.active[before]
        of_forms += share[:, None] * self.active[after]
        worth = (1.0 - share) * self.offsets[before] + share * self.offsets[after]
        is_end = (place == 0) | (place > last)
        return np.where(is_end, lam + low, 0.0), of_forms.T, worth


def sharpened(pricer: Pricer, group: Group, prices: Prices) -> tuple[Prices, Pricing]:
    """Prices that mostly prove more, and the pass with the bound that they prove."""
    ranges = group.ranges
    if not group.is_free and not len(ranges.compared) and len(ranges.values) <= 1:
        functions = list(ranges.values) or list(ranges.penalty.forms)
        if functions:
            # Some form may be constant.
            values = max(functions, key=np.ptp)
            prices = _best_of_outputs(pricer, group, prices, values)
    priced = pricer.price(prices, most=1, tolerance=np.inf)
    inputs = prices.inputs + priced.best_inputs
    better = replace(prices, inputs=inputs)
    return better, priced


def _best_of_outputs(
    pricer: Pricer, group: Group, prices: Prices, values: Array
) -> Prices:
    """The best multipliers where all limits are about one function t of the inputs, and prices of
    outputs that go with them.
    """
    ranges = group.ranges
    t, kind = np.unique(values, return_inverse=True)
    if len(t) > MOST_VALUES or len(t) < 2:
        return prices
    ends = (float(t[0]), float(t[-1]))
    if len(ranges.values):
        ends = (float(ranges.true_lower[0]), float(ranges.true_upper[0]))
    pieces = _pieces(ranges.penalty, values, ends, has_range=bool(len(ranges.values)))
    if pieces is None:
        return prices
    order = np.argsort(kind, kind="stable")
    starts = np.searchsorted(kind[order], np.arange(len(t)))
    without = replace(
        prices,
        outputs=np.zeros_like(prices.outputs),
        ranges=np.zeros_like(prices.ranges),
        forms=np.zeros_like(prices.forms),
    )
    best = np.zeros(len(group.outputs))
    value = np.zeros(len(group.outputs))
    for part in pricer.chunks():
        block = pricer.reduced(without, part)
        cheapest = np.minimum.reduceat(block[order], starts, axis=0)
        best[part] = _maximise(cheapest, t, pieces)
        value[part] = (cheapest - best[part] * t[:, None]).min(axis=0)
    of_range, of_forms, worth = pieces.split(best)
    return replace(
        prices,
        outputs=value + worth,
        ranges=of_range[None, :] if len(ranges.values) else prices.ranges,
        forms=of_forms,
    )


def _pieces(
    penalty: PlanPenalty, t: Array, ends: tuple[float, float], *, has_range: bool
) -> _Pieces | None:
    """The pieces of a penalty whose forms are affine functions of t; None where they are not."""
    low, high = int(t.argmin()), int(t.argmax())
    slopes = (penalty.forms[:, high] - penalty.forms[:, low]) / (t[high] - t[low])
    offsets = penalty.forms[:, low] - slopes * t[low]
    missed = np.abs(offsets[:, None] + slopes[:, None] * t - penalty.forms)
    if missed.max(initial=0.0) > AFFINE:
        return None
    # Means are between the least and the largest t, whatever the ends are.
    first, last = max(ends[0], float(t[low])), min(ends[1], float(t[high]))
    kinks = [first, last]
    for number in np.unique(penalty.groups):
        of_group = np.flatnonzero(penalty.groups == number)
        steps = slopes[of_group] - slopes[of_group][:, None]
        rises = offsets[of_group][:, None] - offsets[of_group]
        crossing = rises[steps > 0.0] / steps[steps > 0.0]
        kinks.extend(crossing[(crossing > first) & (crossing < last)].tolist())
    points = np.unique(kinks)
    middles = (points[:-1] + points[1:]) / 2.0
    active = np.zeros((len(middles), len(slopes)))
    for number in np.unique(penalty.groups):
        of_group = np.flatnonzero(penalty.groups == number)
        heights = offsets[of_group] + np.outer(middles, slopes[of_group])
        largest = of_group[heights.argmax(axis=1)]
        active[np.arange(len(middles)), largest] = penalty.price
    # Crossings below the largest forms are no kinks.
    kept = np.append(True, (active[1:] != active[:-1]).any(axis=1))
    active = active[kept]
    of_pieces = active @ slopes
    return _Pieces(
        points=np.append(points[:-1][kept], points[-1]),
        slopes=of_pieces,
        offsets=active @ offsets,
        active=active,
        # Without an upper end, or without a range, the forms alone make up lam.
        least=-np.inf if has_range and np.isfinite(ends[1]) else -float(of_pieces[-1]),
        most=np.inf if has_range else -float(of_pieces[0]),
    )


def _maximise(cheapest: Array, t: Array, pieces: _Pieces) -> Array:
    """The multiplier of every output that is best with these reduced costs by value."""
    finite = np.where(np.isfinite(cheapest), cheapest, 0.0)
    # Beyond it the cheapest value no longer changes.
    steps = np.diff(t).min(initial=1.0)
    reach = min(float(np.ptp(finite)) / max(float(steps), 1e-6) + 1.0, 1e4)
    reach += float(np.abs(pieces.slopes).max())
    low = np.full(cheapest.shape[1], max(-reach, pieces.least))
    high = np.full(cheapest.shape[1], min(reach, pieces.most))
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        chosen = t[(cheapest - middle * t[:, None]).argmin(axis=0)]
        rising = pieces.means(middle) > chosen
        low = np.where(rising, middle, low)
        high = np.where(rising, high, middle)
    return 0.5 * (low + high)
