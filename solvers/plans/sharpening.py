"""Prices that prove more: the best multipliers of outputs for given prices of inputs, and back.

For given u_x the best bound takes, for every output y,

    max over lam of   e(lam) + min_x (d(x, y) - u_x - lam t(x))

with one range a concave function of one number, whose slope is the end of the range less the t of
the x that is cheapest: bisection finds the maximum. Only the cheapest x of each value t matters, so
one pass over the pairs is enough for all outputs. Then u_x = min_y (d - lam_y t - v_y) takes up
what the inputs have left. Prices that come from many small programs gain most of their bound by
this.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from solvers.plans.pricing import Pricer, Pricing
from solvers.plans.program import Group, Prices
from solvers.points import Array

BISECTIONS = 40
"""Halvings of the interval of a multiplier: its last digits change a bound by 1e-12."""

MOST_VALUES = 4000
"""Different values of inputs up to which the cheapest of each is kept."""


def sharpened(pricer: Pricer, group: Group, prices: Prices) -> tuple[Prices, Pricing]:
    """Prices that mostly prove more, and the pass with the bound that they prove."""
    one_range = len(group.ranges.values) == 1 and not group.is_free
    others = len(group.ranges.compared) + len(group.ranges.penalty.forms)
    if one_range and not others:
        prices = _best_of_outputs(pricer, group, prices)
    priced = pricer.price(prices, most=1, tolerance=np.inf)
    inputs = prices.inputs + priced.best_inputs
    better = replace(prices, inputs=inputs)
    return better, priced


def _best_of_outputs(pricer: Pricer, group: Group, prices: Prices) -> Prices:
    """The best multipliers of the only range, and prices of outputs that go with them."""
    ranges = group.ranges
    t, kind = np.unique(ranges.values[0], return_inverse=True)
    if len(t) > MOST_VALUES:
        return prices
    order = np.argsort(kind, kind="stable")
    starts = np.searchsorted(kind[order], np.arange(len(t)))
    ends = (float(ranges.true_lower[0]), float(ranges.true_upper[0]))
    nothing = np.zeros_like(prices.ranges)
    without = Prices(prices.inputs, prices.outputs, nothing, prices.compared)
    best = np.zeros(len(group.outputs))
    value = np.zeros(len(group.outputs))
    for part in pricer.chunks():
        block = pricer.reduced(without, part)
        cheapest = np.minimum.reduceat(block[order], starts, axis=0)
        best[part] = _maximise(cheapest, t, ends)
        value[part] = (cheapest - best[part] * t[:, None]).min(axis=0)
    return Prices(prices.inputs, value, best[None, :], prices.compared)


def _maximise(cheapest: Array, t: Array, ends: tuple[float, float]) -> Array:
    """The multiplier of every output that is best with these reduced costs by value."""
    finite = np.where(np.isfinite(cheapest), cheapest, 0.0)
    # Beyond it the cheapest value no longer changes.
    steps = np.diff(t).min(initial=1.0)
    reach = min(float(np.ptp(finite)) / max(float(steps), 1e-6) + 1.0, 1e4)
    low = np.full(cheapest.shape[1], -reach if np.isfinite(ends[1]) else 0.0)
    high = np.full(cheapest.shape[1], reach)
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        chosen = t[(cheapest - middle * t[:, None]).argmin(axis=0)]
        rising = np.where(middle > 0.0, ends[0], ends[1]) > chosen
        low = np.where(rising, middle, low)
        high = np.where(rising, high, middle)
    return 0.5 * (low + high)
