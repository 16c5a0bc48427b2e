"""Merged sets of symbols, judged by their extreme lifts over a confidence set.

The set has an interval for every P(x|s). An output that publishes a merged set T has the column
w(x) = 1 on T and 0 elsewhere, so its likelihoods P(y|s) are the P(T|s). Their largest and smallest
values over the set, h_s and g_s, give the extreme quotients and lifts
(docs/explanation/population.md, Propositions 1 and 2). For example, let P(a|s) lie in [0.2, 0.3],
P(b|s) in [0.1, 0.3] and P(c|s) in [0.5, 0.6]. Then P({a, b}|s) lies between max(0.2 + 0.1, 1 - 0.6)
= 0.4 and min(0.3 + 0.3, 1 - 0.5) = 0.5.

`omega` is the largest excess over a budget, log(h_s / g_t) - eps for LDP and the like for the two
sides of the lift. T is private for the whole set where it is not positive (`within`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.binomial import SCALE
from mechdesign.core.limits import LiftLimits
from mechdesign.mechanisms.merged_sets import MergedSets, rounding_slack
from mechdesign.tables.confidence import ConfidenceSet
from mechdesign.tables.joint import Joint
from solvers import Array
from solvers.sets.uncertain import extreme_means, least_others


class PopulationLifts(MergedSets):
    """Merged sets of symbols judged by their extreme lifts over a confidence set.

    Without unseen symbols P(T|s) lies between max(lower(T), 1 - upper(others)) and min(upper(T), 1
    - lower(others)) with the sums of the ends, so `given_s` holds both sums, (2 |S|, n), and
    merging adds them as it adds probabilities.
    """

    def __init__(
        self,
        joint: Joint,
        limits: LiftLimits,
        populations: ConfidenceSet,
        sides: Sequence[tuple[float, float]],
    ) -> None:
        lower = _floats(populations.lower)
        upper = _floats(populations.upper)
        self.p_x = joint.p_x
        self.given_s = np.vstack([lower, upper])
        self._totals = lower.sum(axis=1)[:, None], upper.sum(axis=1)[:, None]
        # Upper ends of the mass of all unseen symbols given s.
        rest = np.zeros(len(lower))
        if populations.rest:
            rest = np.array([end / SCALE for end in populations.rest])
        self._rest = rest[:, None]
        self._ratio = limits.ratio
        # eps_l and eps_u of every sensitive symbol.
        self._lower, self._upper = np.array(sides).T
        self.slack = 4.0 * rounding_slack((2 * len(lower), len(self.p_x)))
        share_lower = np.array(populations.share_lower, np.float64)
        share_upper = np.array(populations.share_upper, np.float64)
        self._shares = share_lower, share_upper

    def within(
        self, given_s: Array, mass: Array, safety: float = 1.0
    ) -> NDArray[np.bool_]:
        """Private for the whole set."""
        return self.omega(given_s, mass) <= -safety * self.slack

    def omega(self, given_s: Array, mass: Array) -> Array:
        """The largest log lift (or quotient) minus its budget, (k,)."""
        least, most = self._likelihoods(given_s, mass)
        size = most.shape[1]
        # Proposition 2: quotients h_s / g_t, and lifts at the worst shares.
        worst = np.full(len(most), -np.inf)
        with np.errstate(divide="ignore"):
            if math.isfinite(self._ratio) and size > 1:
                others = np.take_along_axis(least, least_others(least), axis=1)
                worst = np.log(most / others).max(axis=1) - self._ratio
            if np.isfinite(self._upper).any():
                # The smallest P(T) that the shares allow where T is most likely after s.
                lifts = most / extreme_means(least, most, 1, *self._shares)
                above = (np.log(lifts) - self._upper).max(axis=1)
                worst = np.maximum(worst, above)
            if np.isfinite(self._lower).any():
                inverse = extreme_means(most, least, -1, *self._shares) / least
                below = (np.log(inverse) - self._lower).max(axis=1)
                worst = np.maximum(worst, below)
        return worst

    def _likelihoods(self, given_s: Array, mass: Array) -> tuple[Array, Array]:
        """g_s and h_s of the indicator of each set T, (k, |S|): the smallest and the largest
        P(T | s), released unseen symbols included (Proposition 1).

        The lower ends leave *free* mass of 1. For the most it lies on T as far as T's upper end
        allows, then on unseen symbols, whose w is P(T), then elsewhere; for the least the other
        way.
        """
        size = len(given_s) // 2
        lower = given_s[:size]
        width = given_s[size:] - lower
        low, high = self._totals
        free = 1.0 - low
        on_set = np.minimum(width, free)
        on_rest = np.minimum(self._rest, free - on_set)
        most = lower + on_set + mass * on_rest
        # For the least, T gets only what the other symbols cannot take.
        left = np.maximum(free - (high - low - width), 0.0)
        least_rest = np.minimum(self._rest, left)
        least = lower + left - least_rest + mass * least_rest
        return least.T, most.T


def _floats(ends: Sequence[Sequence[int]]) -> Array:
    """Ends over `SCALE` as doubles."""
    rows: list[list[float]] = []
    for row in ends:
        rows.append([end / SCALE for end in row])
    return np.array(rows)
