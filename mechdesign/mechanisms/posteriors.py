"""The posteriors P(X|y) that a notion allows on a table, as a polytope.

The lift of an output with posterior v is linear in v: l(., y) = A v with A[s, x] = P(s|x)/P(s)
(Zarrabian et al. 2023, eq. (25) for ALIP). So bounds on lifts are rows of a polytope
(docs/explanation/optimum-theory.md, 'The posteriors that a promise allows'). `posteriors` writes

    ALIP, LIP, max-lift, min-lift    exp(-eps_l) <= (A v)_s <= exp(eps_u)
    LDP                              t <= (A v)_s <= exp(eps) t, with one more variable t
    l1-lift                          sums of P(s) ((A v)_s - 1) over sets of s (`_l1`)
    any average, two secrets         an interval of one lift (`_interval`)

For example, the counts ((3, 1), (1, 3)) have A = ((1.5, 0.5), (0.5, 1.5)), and with both budgets
log(1.25) the allowed v_1 are those from 0.3 to 0.7.

With a *margin* the polytope is smaller: columns lie in it, and stay private when they are rounded.
Without one it is wider by `OUTWARDS`, so it has all private posteriors, and bounds are for it. Ends
are moved by `low_bound` and `high_bound`.

`has_polytope`, `check_polytope` and `check_optimum` say for which notions and tables there is such
a polytope, or else convex sets. The rows of several tables are in `stacked_rows`.

*Averages with two secrets.* With two sensitive symbols, P(1) w_1 + P(2) w_2 = 1 makes w_2 a
function of w_1. Every average, also one of inverses that is not convex otherwise, grows away from w
= 1 on either side. So the allowed w_1 are an interval around 1, whose ends are found by bisection
over doubles with the exact auditor. The secret is the rarer one: its lift spans the longer
interval, and loses the fewest digits.

For example, with P = (1/4, 3/4) and the l1-lift at most 1/2, sum_s P(s) |w_s - 1| = 2 P(1) |w_1 -
1|, so w_1 lies between 0 and 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mechdesign.auditing.columns import OutputMasses
from mechdesign.auditing.verdict import budget_used
from mechdesign.core.errors import InputError
from mechdesign.core.limits import MeanLimits
from mechdesign.notions import Notion
from mechdesign.tables.joint import Joint
from solvers import Polytope

OUTWARDS = 2.0**-49
"""Relative widening of the bounds of a relaxation, 16 units in the last place: the entries of A,
the exponentials and the products of a row are each wrong by at most a few."""

FEW_SENSITIVE = 3
"""Sensitive symbols up to which l1-lift is written without auxiliary variables, in 2^(|S|-1) - 1
rows; from 5 on the auxiliary variables were faster on every table tried."""

TWO_SECRETS = 2
"""Sensitive symbols for which every notion bounds the lift of one of them."""


def posteriors(
    joint: Joint, notion: Notion, *, margin: float = 0.0, reach: float = math.inf
) -> Polytope:
    """The posteriors v that the notion allows: {v >= 0, sum v = 1, bounds on A v}.

    With a margin, sides beyond `reach` nats count as `reach`. Without a margin the polytope is for
    bounds, so such sides have rows that hold for every v.
    """
    limits = notion.limits
    if limits.mean is not None:
        check_polytope(notion, joint)
        if len(joint.sensitive) == TWO_SECRETS:
            return _interval(joint, limits, margin)
        # The l1-lift is 2 at most, so a reach takes nothing away.
        return _l1(joint, min(limits.upper, reach), margin)
    # Lower and upper bound of all lifts, and the coefficient of the auxiliary variable t of LDP.
    blocks: list[tuple[float, float, float]] = []
    if math.isfinite(limits.lower) or math.isfinite(limits.upper):
        high = high_bound(limits.upper, margin, reach, joint.lift.max())
        blocks.append((low_bound(limits.lower, margin, reach), high, 0.0))
    if math.isfinite(limits.ratio):
        # (A v)_s <= e^ratio (A v)_t for all pairs, by a t between all of them. The polytopes with
        # and without a margin must share their rows, so the margin of the quotient is a distance
        # between t and the lifts: with t <= 1 (the lifts average 1), t + m <= (A v)_s makes
        # every quotient smaller by 1 - m.
        least = min(margin, 0.5 * -math.expm1(-limits.ratio))
        most = 0.0
        if limits.ratio > reach and not margin:
            most = joint.lift.max()
        factor = high_bound(min(limits.ratio, reach), 0.0)
        # t + least <= (A v)_s, and (A v)_s <= factor t + most.
        blocks.append((least, math.inf, -1.0))
        blocks.append((-math.inf, most, -factor))
    # A block is a row for every sensitive symbol.
    lower, upper, auxiliary = np.repeat(np.array(blocks).T, len(joint.lift), axis=1)
    column = None
    if math.isfinite(limits.ratio):
        column = auxiliary[:, None]
    return Polytope(np.vstack([joint.lift] * len(blocks)), lower, upper, column)


def low_bound(budget: float, margin: float, reach: float = math.inf) -> float:
    """exp(-budget), moved up by `margin` (of itself; of 1 with a `reach`) or down by `OUTWARDS`.

    Without a margin, a budget beyond `reach` nats gives 0, which restricts nothing.
    """
    if math.isinf(budget):
        return -math.inf
    if budget > reach and not margin:
        return 0.0
    budget = min(budget, reach)
    bound = math.exp(-budget)
    if margin <= 0.0:
        return bound * (1.0 - OUTWARDS)
    moved = margin
    if math.isinf(reach):
        moved = margin * bound
    # At most half way to 1, the lift of a constant output, which must stay inside.
    return bound + min(moved, 0.5 * -math.expm1(-budget))


def high_bound(
    budget: float, margin: float, reach: float = math.inf, most: float = math.inf
) -> float:
    """exp(budget), moved down by `margin` or up by `OUTWARDS`.

    Without a margin, a budget beyond `reach` nats gives `most`, which restricts nothing.
    """
    if math.isinf(budget):
        return math.inf
    if budget > reach and not margin:
        return most
    budget = min(budget, reach)
    bound = math.exp(budget)
    if margin <= 0.0:
        return bound * (1.0 + OUTWARDS)
    return bound - min(margin * bound, 0.5 * math.expm1(budget))


def has_polytope(notion: Notion, joint: Joint) -> bool:
    """Whether the posteriors that the notion allows form a polytope.

    With two sensitive symbols they do whatever the notion: every limit is one on the lift of the
    first.
    """
    return notion.limits.no_polytope is None or len(joint.sensitive) == TWO_SECRETS


def check_polytope(notion: Notion, joint: Joint) -> None:
    """Raise InputError unless the posteriors that the notion allows form a polytope.

    Convex costs and constraints of the user need one.
    """
    if has_polytope(notion, joint):
        return
    raise InputError(
        f"{notion.limits.no_polytope}, which convex costs and constraints need: leave them out, or "
        "use alip, lip, ldp, max-lift, min-lift, or l1 with eps_l inf"
    )


def check_optimum(notion: Notion, joint: Joint) -> None:
    """Raise InputError unless the allowed posteriors are convex, or can be covered by convex sets.

    `optimal` and `subset-response` need that.
    """
    reason = notion.limits.no_optimum
    if reason is None or len(joint.sensitive) == TWO_SECRETS:
        return
    raise InputError(
        f"{reason}, which optimal and subset-response need: use subset-merging or "
        "complete-merging"
    )


def _interval(joint: Joint, limits: MeanLimits, margin: float) -> Polytope:
    """{v : the lift of the rarer of two secrets lies in its interval}.

    The lift of the other secret is a function of it, which loses the fewest digits this way.
    """
    interval = lift_interval(joint, limits)
    if margin > 0.0:
        low, high = interval.inside
        # At most half way to 1, the lift of a constant output, which must stay inside.
        low += min(margin * low, 0.5 * (1.0 - low))
        high -= min(margin * high, 0.5 * (high - 1.0))
    else:
        low, high = interval.outside
        low *= 1.0 - OUTWARDS
        high *= 1.0 + OUTWARDS
    rows = joint.lift[[interval.secret]]
    return Polytope(rows, np.array([low]), np.array([high]))


def _l1(joint: Joint, budget: float, margin: float) -> Polytope:
    """{v : sum_s P(s) |(A v)_s - 1| <= e^budget - 1}, which is twice the sum of the positive parts.

    Let d_s = P(s) ((A v)_s - 1) = sum_x (P(s|x) - P(s)) v_x, whose sum over s is zero, and c =
    e^budget - 1. For few s there is a row for each set of them, -c/2 <= sum of its d_s <= c/2 (its
    complement gives the same row). Else there are |S| auxiliary variables t_s >= d_s with sum t_s
    <= c/2.
    """
    given_x = joint.p / joint.p_x
    rows = given_x - joint.p_s[:, None]
    count = len(rows)
    bound = math.expm1(budget)
    if margin > 0.0:
        half = 0.5 * (bound - min(margin * (1.0 + bound), 0.5 * bound))
        error = 0.0
    else:
        half = 0.5 * (bound * (1.0 + OUTWARDS))
        # Entries of the rows are wrong by a few units in the last place of P(s|x) and P(s).
        error = OUTWARDS
    if count <= FEW_SENSITIVE:
        # The bits of 1, 2, .. are the sets without the last symbol.
        sets = (np.arange(1, 2 ** (count - 1))[:, None] >> np.arange(count - 1)) & 1
        rows = sets.astype(np.float64) @ rows[: count - 1]
        ends = np.full(len(rows), half + error)
        return Polytope(rows, -ends, ends)
    return Polytope(
        np.vstack([rows, np.zeros(joint.p.shape[1])]),
        np.full(count + 1, -np.inf),
        np.append(error * given_x.max(axis=1), half),
        np.vstack([-np.eye(count), np.ones(count)]),
    )


@dataclass(frozen=True)
class LiftInterval:
    """The allowed lifts of one of two secrets, by its position in the table.

    `inside` are the least and the largest allowed lift. `outside` are the next doubles, which are
    not, or the same ones where every lift on that side is allowed.
    """

    secret: int
    inside: tuple[float, float]
    outside: tuple[float, float]


def lift_interval(joint: Joint, limits: MeanLimits) -> LiftInterval:
    """The allowed lifts of the rarer of two secrets, decided exactly."""
    counts = joint.sensitive_counts
    secret = counts.index(min(counts))
    rarer = counts[secret]
    # The lift at which the other secret is impossible, rounded down.
    largest = Fraction(sum(counts), rarer)
    most = float(largest)
    if Fraction(most) > largest:
        most = math.nextafter(most, 0.0)
    judge = _TwoSecrets(rarer, sum(counts), limits)
    lowest, below = judge.last_allowed(0.0)
    highest, above = judge.last_allowed(most)
    return LiftInterval(secret, (lowest, highest), (below, above))


@dataclass(frozen=True)
class _TwoSecrets:
    """The exact verdict on outputs of a table with two secrets.

    `rarer` of `total` records have the secret whose lift is asked about.
    """

    rarer: int
    total: int
    limits: MeanLimits

    def last_allowed(self, end: float) -> tuple[float, float]:
        """The last allowed lift on the way from 1 to `end`, and the next double; `end` twice where
        it is allowed.
        """
        if self.allows(end):
            return end, end
        # A lift of 1 is always allowed: the output tells nothing.
        inside = 1.0
        outside = end
        while True:
            middle = 0.5 * (inside + outside)
            # No double lies between the two.
            if middle in (inside, outside):
                return inside, outside
            if self.allows(middle):
                inside = middle
            else:
                outside = middle

    def allows(self, lift: float) -> bool:
        """Whether an output may have this lift of the rarer secret."""
        top, bottom = lift.as_integer_ratio()
        # P(s, y) in proportion to lift * P(s), in integers; the other secret has the rest of P(y).
        first = self.rarer * top
        whole = self.total * bottom
        masses = [first, whole - first]
        sums = [self.rarer, self.total - self.rarer]
        output = OutputMasses(masses, whole, sums, self.total)
        mean = self.limits.mean
        # A budget of inf allows everything, an infinite average included.
        if budget_used(output, mean, inverse=False) > self.limits.upper:
            return False
        return budget_used(output, mean, inverse=True) <= self.limits.lower
