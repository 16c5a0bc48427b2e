"""The posteriors that are private for a whole confidence set, as the solvers take them.

The confidence set of the counts (`tables.confidence`) has an interval for every P(x|s), and for the
shares pi_s = P(s) where they count. An output with posterior v has the column w(x) = W(y|x) in
proportion to v(x) / P(x). Let h_s and g_s be the largest and the smallest P(y|s) over the set.
Every limit is an inequality between these (docs/explanation/population.md, Propositions 1 to 3):

    LDP          h_s <= e^eps g_t                                              for all s and t
    upper side   h_s <= e^eps_u  min over pi (pi_s h_s + sum of other pi_t g_t)     for all s
    lower side   g_s >= e^-eps_l max over pi (pi_s g_s + sum of other pi_t h_t)     for all s

The posteriors that keep them form a convex set with P_X in it, described by the ends of all
intervals and the factors: an `UncertainSet`. `uncertain_set` makes it of a confidence set and a
notion. Every number is rounded so that the set has all private posteriors, because bounds must hold
for it. `within_reach` makes a smaller one that the simplex method can handle.

For example, there are two symbols, with P(1|s) in [0.4, 0.6] and P(1|t) in [0.3, 0.5]. The output w
= (1.5, 1) has h_s = 0.6 * 1.5 + 0.4 = 1.3 and g_t = 0.3 * 1.5 + 0.7 = 1.15. So it needs the budget
log(1.3 / 1.15) = 0.12. For the middle of both intervals, 0.04 would do.

*Merged sets* of symbols are judged by their extreme lifts over the set. The set has an interval for
every P(x|s). An output that publishes a merged set T has the column w(x) = 1 on T and 0 elsewhere,
so its likelihoods P(y|s) are the P(T|s). Their largest and smallest values over the set, h_s and
g_s, give the extreme quotients and lifts (docs/explanation/population.md, Propositions 1 and 2).
For example, let P(a|s) lie in [0.2, 0.3], P(b|s) in [0.1, 0.3] and P(c|s) in [0.5, 0.6]. Then P({a,
b}|s) lies between max(0.2 + 0.1, 1 - 0.6) = 0.4 and min(0.3 + 0.3, 1 - 0.5) = 0.5.

`omega` is the largest excess over a budget, log(h_s / g_t) - eps for LDP and the like for the two
sides of the lift. T is private for the whole set where it is not positive (`within`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mechdesign.auditing.lifts import allowed_sides
from mechdesign.auditing.population import lift_limits
from mechdesign.core.balls import SCALE, quotient_above
from mechdesign.core.limits import LiftLimits
from mechdesign.mechanisms.merged_sets import MergedSets, rounding_slack
from mechdesign.mechanisms.posteriors import OUTWARDS, high_bound
from mechdesign.notions import Notion
from mechdesign.tables.confidence import ConfidenceSet
from mechdesign.tables.joint import Joint
from solvers import Array, Cut, UncertainSet
from solvers.sets.uncertain import extreme_means, least_others

TINY = 1e-300
"""In place of a share of zero, of which no reciprocal is taken."""


def uncertain_set(
    joint: Joint, notion: Notion, populations: ConfidenceSet
) -> UncertainSet:
    """The posteriors of the table that are private for the whole set, all bounds moved outwards by
    rounding.
    """
    limits = lift_limits(notion)
    most: float | Array = high_bound(limits.upper, 0.0)
    least: float | Array = _least_factor(limits.lower)
    if limits.symbol_budgets:
        sides = allowed_sides(joint.sensitive, notion)
        most = np.array([high_bound(upper, 0.0) for _, upper in sides])
        least = np.array([_least_factor(lower) for lower, _ in sides])
    lower = _ends_below(populations.lower)
    upper = _ends_above(populations.upper)
    if populations.rest:
        # Unseen symbols are released with P(y), which is w = 1 for the posterior: the last column.
        rest = _ends_above([populations.rest]).T
        lower = np.hstack([lower, np.zeros_like(rest)])
        upper = np.hstack([upper, rest])
    share_lower = [
        _below(*share.as_integer_ratio()) for share in populations.share_lower
    ]
    share_upper = [
        quotient_above(*share.as_integer_ratio()) for share in populations.share_upper
    ]
    return UncertainSet(
        joint.p_x,
        lower,
        upper,
        np.array(share_lower),
        np.array(share_upper),
        ratio=high_bound(limits.ratio, 0.0),
        most=most,
        least=least,
    )


def _least_factor(budget: float) -> float:
    """exp(-budget), rounded down."""
    return math.exp(-budget) * (1.0 - OUTWARDS)


@dataclass(frozen=True, eq=False)
class PopulationFunction:
    """How much of its room the worst inequality uses, as a function of w = v / P_X: 0 at w = 1, and
    at most 1 for members. A `solvers.ConvexFunction` of the images w.
    """

    uncertain: UncertainSet

    @property
    def bound(self) -> float:
        """Members use at most all of it."""
        return 1.0

    def values(self, images: Array) -> Array:
        """The share that every column of `images` (n, k) uses, (k,)."""
        posteriors = images.T * self.uncertain.point
        return 1.0 + self.uncertain.excess(posteriors) / self.uncertain.room

    def gradients(self, images: Array) -> Array:
        """A subgradient at every column, (n, k)."""
        columns = [self._worst(image) for image in images.T]
        return -np.array(columns).T / self.uncertain.room

    def cut(self, image: Array) -> Cut | None:
        """The row that this image breaks most, widened by its own error; its offset is zero."""
        normal = -(self._worst(image) + self.uncertain.row_error)
        return Cut(normal, 0.0, float(np.abs(normal) @ np.abs(image)))

    def _worst(self, image: Array) -> Array:
        """The row a with a.w >= 0 for members that is least at this image."""
        rows = self.uncertain.cuts(image)
        return rows[int(np.argmin(rows @ image))]


def _below(numerator: int, denominator: int) -> float:
    """The quotient as a double, rounded down."""
    return -quotient_above(-numerator, denominator)


def _ends_below(ends: Sequence[Sequence[int]]) -> Array:
    """Ends in units of 1 / `SCALE` as doubles, rounded down."""
    exact = np.array(ends, dtype=np.int64)
    nearest = exact.astype(np.float64)
    # The nearest double is an integer of at most 2^60, so that the way back is exact.
    is_above = nearest.astype(np.int64) > exact
    return np.where(is_above, np.nextafter(nearest, -np.inf), nearest) / SCALE


def _ends_above(ends: Sequence[Sequence[int]]) -> Array:
    """Ends in units of 1 / `SCALE` as doubles, rounded up."""
    exact = np.array(ends, dtype=np.int64)
    nearest = exact.astype(np.float64)
    is_below = nearest.astype(np.int64) < exact
    return np.where(is_below, np.nextafter(nearest, np.inf), nearest) / SCALE


def within_reach(uncertain: UncertainSet, reach: float) -> UncertainSet:
    """The set with budgets of at most `reach` nats below and for quotients, for solutions alone.

    The simplex method takes numbers such as e^-50 for zeros. Bounds must hold for the budgets as
    they are, so `slack` makes the reduced rows true for every w >= 0: they then prove nothing.
    """
    factor = math.exp(reach)
    ratio = uncertain.ratio
    if math.isfinite(ratio):
        ratio = min(ratio, factor)
    leasts = uncertain.leasts
    least = np.where(leasts > 0.0, np.maximum(leasts, 1.0 / factor), leasts)
    mosts = uncertain.mosts
    # No lift is above 1 / P(s), so beside a lower side an upper one beyond that changes nothing.
    scarcest = uncertain.share_lower.min()
    is_beyond = (least > 0.0) & (scarcest > 0.0) & (mosts > 1.0 / max(scarcest, TINY))
    most = np.where(is_beyond, math.inf, mosts)
    # The slack is added to the entries of a row. Those of ratio g_t - h_s are at least -1, and
    # those of g_s - least mean at least -least, since shares are at most 1: with it they are
    # not negative. Half of 2 / factor is to spare.
    slack = 0.0
    if ratio < uncertain.ratio:
        slack = 1.0
    elif (least > leasts).any():
        slack = 2.0 / factor
    if uncertain.is_uniform:
        return replace(
            uncertain,
            ratio=ratio,
            least=float(least[0]),
            most=float(most[0]),
            slack=slack,
        )
    return replace(uncertain, ratio=ratio, least=least, most=most, slack=slack)


# -------------------------------------------------------------------------- merged sets


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
