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
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from mechdesign.auditing.population import lift_limits
from mechdesign.core.balls import quotient_above
from mechdesign.core.binomial import SCALE
from mechdesign.mechanisms.posteriors import OUTWARDS, high_bound
from mechdesign.notions import Notion
from mechdesign.tables.confidence import ConfidenceSet
from mechdesign.tables.joint import Joint
from solvers import UncertainSet


def uncertain_set(
    joint: Joint, notion: Notion, populations: ConfidenceSet
) -> UncertainSet:
    """The posteriors of the table that are private for the whole set, all bounds moved outwards by
    rounding.
    """
    limits = lift_limits(notion)
    lower = [[_below(end, SCALE) for end in row] for row in populations.lower]
    upper = [[quotient_above(end, SCALE) for end in row] for row in populations.upper]
    if populations.rest:
        # Unseen symbols are released with P(y), which is w = 1 for the posterior: the last column.
        for low, high, rest in zip(lower, upper, populations.rest, strict=True):
            low.append(_below(0, SCALE))
            high.append(quotient_above(rest, SCALE))
    share_lower = [
        _below(*share.as_integer_ratio()) for share in populations.share_lower
    ]
    share_upper = [
        quotient_above(*share.as_integer_ratio()) for share in populations.share_upper
    ]
    return UncertainSet(
        joint.p_x,
        np.array(lower),
        np.array(upper),
        np.array(share_lower),
        np.array(share_upper),
        ratio=high_bound(limits.ratio, 0.0),
        most=high_bound(limits.upper, 0.0),
        least=math.exp(-limits.lower) * (1.0 - OUTWARDS),
    )


def _below(numerator: int, denominator: int) -> float:
    """The quotient as a double, rounded down."""
    return -quotient_above(-numerator, denominator)


def within_reach(uncertain: UncertainSet, reach: float) -> UncertainSet:
    """The set with budgets of at most `reach` nats below and for quotients, for solutions alone.

    The simplex method takes numbers such as e^-50 for zeros. Bounds must hold for the budgets as
    they are, so `slack` makes the reduced rows true for every w >= 0: they then prove nothing.
    """
    factor = math.exp(reach)
    ratio = uncertain.ratio
    if math.isfinite(ratio):
        ratio = min(ratio, factor)
    least = uncertain.least
    if least:
        least = max(least, 1.0 / factor)
    most = uncertain.most
    if least and most > 1.0 / uncertain.share_lower.min():
        # No lift is above 1 / P(s), so beside a lower side an upper one beyond that changes
        # nothing.
        most = math.inf
    # The slack is added to the entries of a row. Those of ratio g_t - h_s are at least -1, and
    # those of g_s - least mean at least -least, since shares are at most 1: with it they are
    # not negative. Half of 2 / factor is to spare.
    slack = 0.0
    if ratio < uncertain.ratio:
        slack = 1.0
    elif least > uncertain.least:
        slack = 2.0 / factor
    return replace(uncertain, ratio=ratio, least=least, most=most, slack=slack)
