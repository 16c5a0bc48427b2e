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
a polytope, or else convex sets. The rows of several tables are `StackedRows`.

*Averages with two secrets.* With two sensitive symbols, P(1) w_1 + P(2) w_2 = 1 makes w_2 a
function of w_1. Every average, also one of inverses that is not convex otherwise, grows away from w
= 1 on either side. So the allowed w_1 are an interval around 1, whose ends are found by bisection
over doubles with the exact auditor. The secret is the rarer one: its lift spans the longer
interval, and loses the fewest digits.

For example, with P = (1/4, 3/4) and the l1-lift at most 1/2, sum_s P(s) |w_s - 1| = 2 P(1) |w_1 -
1|, so w_1 lies between 0 and 2.

*Rows of several tables.* There are several tables in two cases (`auditing.lifts`). Where several
secrets are protected, there is one for each of them. Where the same record was released before, by
channels W1, .., Wk with the outputs y1, .., yk, there is one for each vector u(x) = W1(y1|x) ..
Wk(yk|x), up to a factor. Its counts are what u leaves of those of P(s, x), and P(. | u) is their
law. Without earlier releases u is 1.

Given u, an output with posterior v has the lift (L_s v) / (C v), with

    L_s(x) = P(s, x | u) / (P(s) P(x)),   C(x) = P(x | u) / P(x).

Where a_s and b_s are the least and the largest lift, the bounds on it are the rows

    (L_s - b_s C) v <= 0   and   (a_s C - L_s) v <= 0,

and a bound on the quotients of lifts is (L_s - e^eps L_t) v <= 0 for all s and t. Where C is 1, as
for a table without earlier releases, they are bounds on L v, and L is the A above. All
together they are a polytope with P_X in it wherever the earlier releases alone keep the promise.

For example, let P(x) = (1/2, 1/2), P(s) = 1/2, and let u leave the counts (3, 1) of s and (1, 1) of
the other secret. Then C = (4/3, 2/3) and L_s = (2, 2/3), and with b_s = 1.4 the row of s is
2/15 v_1 <= 4/15 v_2, so v_1 is 2/3 at most.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, permutations

import numpy as np
from numpy.typing import NDArray

from mechdesign.auditing.columns import OutputMasses
from mechdesign.auditing.lifts import Demand
from mechdesign.auditing.verdict import budget_used
from mechdesign.core.errors import InputError
from mechdesign.core.limits import MeanLimits
from mechdesign.notions import Notion
from mechdesign.tables.joint import Joint
from solvers import Array, Polytope

# ---------------------------------------------------------------------------- one table

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


# ----------------------------------------------------------------------- several tables

UPPER, LOWER, QUOTIENT = "upper", "lower", "quotient"


class StackedRows:
    """The rows of several tables in floating point, with their budgets.

    `Rules` makes them of the demands of a promise. `polytope` is for the search, the arrays are for
    merged sets (`merged_sets`), and `needed` is for the repair of a rounded channel.

    Attributes
    ----------
    lift, mass : arrays
        L, a row for each symbol of each table, and C, one for each table (module docstring).
    table_of : (rows of L,) array
        The table of each row of L.
    starts : (tables + 1,) array
        The first row of each table.
    differing : (tables,) array of bool
        Where C is not 1.
    lower, upper, ratio
        Budgets of the rows of L, and of their quotients.
    """

    def __init__(self, demands: Sequence[Demand], joint: Joint) -> None:
        total = joint.total
        sizes = [len(demand.sums) for demand in demands]
        self.lift = np.zeros((sum(sizes), len(joint.useful)))
        row = 0
        mass: list[list[float]] = []
        differing: list[bool] = []
        for demand in demands:
            # Products of integers, each quotient rounded once: a quotient of equal numbers is
            # exactly 1. With N records and n(s, x) the counts of the demand, P(x | u) =
            # sums[x] / whole and P(x) = count / N, where sums[x] is the sum of n(s, x) over s.
            # An output of an earlier release has few symbols: most cells are zero.
            sums = [0] * len(joint.useful)
            for places, cells in demand.filled.rows:
                for x, cell in zip(places, cells, strict=True):
                    sums[x] += cell
            whole = sum(sums)
            base = [whole * count for count in joint.useful_counts]
            scaled = [part * total for part in sums]
            mass.append(_quotients(scaled, base))
            differing.append(scaled != base)
            prior = sum(demand.sums)
            # L_s(x) = (n(s, x) / whole) / ((share / prior) (count / N)).
            for (places, cells), share in zip(
                demand.filled.rows, demand.sums, strict=True
            ):
                tops = [cell * total * prior for cell in cells]
                bottoms = [base[x] * share for x in places]
                self.lift[row, places] = _quotients(tops, bottoms)
                row += 1
        self.mass = np.array(mass)
        self.p_x = joint.p_x
        self.table_of = np.repeat(np.arange(len(demands)), sizes)
        self.starts = np.concatenate(([0], np.cumsum(sizes)))
        self.differing = np.array(differing)
        self.lower = np.concatenate([np.array(demand.lower) for demand in demands])
        self.upper = np.concatenate([np.array(demand.upper) for demand in demands])
        self.ratio = demands[0].ratio

    @property
    def is_homogeneous(self) -> bool:
        """Whether some rows are inequalities between two linear functions of v."""
        return bool(self.differing.any()) or math.isfinite(self.ratio)

    def number_of_homogeneous(self) -> int:
        """Rows of `polytope` for the tables where C is not 1, without those of quotients."""
        count = 0
        for table in np.flatnonzero(self.differing).tolist():
            span = slice(int(self.starts[table]), int(self.starts[table + 1]))
            lift, mass = self.lift[span], self.mass[table]
            upper, lower = self.upper[span], self.lower[span]
            up, low = np.isfinite(upper), np.isfinite(lower)
            is_above = lift[up] > np.exp(upper[up])[:, None] * mass
            is_below = np.exp(-lower[low])[:, None] * mass > lift[low]
            # Rows that hold for every v >= 0 restrict nothing.
            count += int(is_above.any(axis=1).sum() + is_below.any(axis=1).sum())
        return count

    def polytope(self, margin: float, reach: float = math.inf) -> Polytope:
        """{v : all rows}, smaller by `margin`; budgets beyond `reach` as in `posteriors.low_bound`.

        Under rows with C other than 1 an output may have no mass: their margin is a factor.
        """
        # Rows with C = 1 are bounds on L v.
        bounded = np.isfinite(self.lower) | np.isfinite(self.upper)
        plain = ~self.differing[self.table_of] & bounded
        most = self.lift.max()
        plain_lower = [low_bound(side, margin, reach) for side in self.lower[plain]]
        plain_upper = [
            high_bound(side, margin, reach, most) for side in self.upper[plain]
        ]

        # Homogeneous rows have no scale, which tolerances need. As sum v = 1, the same constant
        # may be added to both sides of positive v <= negative v: it is the size of the row.
        positive, negative, far = self.opposed(~plain, reach)
        size = (positive + negative).max(axis=1, initial=0.0)
        # Rows that hold for every v >= 0 restrict nothing.
        binding = (positive > negative).any(axis=1)
        # Powers of two, so that adding the constant and its end rounds alike.
        size = np.exp2(np.ceil(np.log2(size[binding])))
        rows = (1.0 + margin) * positive[binding] - negative[binding] + size[:, None]
        ends = size
        if margin <= 0.0:
            # For bounds: rows beyond the reach must hold for every v, that is for its unit vectors.
            ends = size * (1.0 + OUTWARDS)
            widest = np.maximum(ends, rows.max(axis=1, initial=0.0))
            ends = np.where(far[binding], widest, ends)
        return Polytope(
            np.vstack([self.lift[plain], rows]),
            np.concatenate([plain_lower, np.full(len(size), -np.inf)]),
            np.concatenate([plain_upper, ends]),
        )

    def opposed(
        self, chosen: NDArray[np.bool_], reach: float = math.inf
    ) -> tuple[Array, Array, NDArray[np.bool_]]:
        """The sides of ``positive v <= negative v``, of chosen rows and all quotients.

        Upper bounds are L v <= b C v, lower ones a C v <= L v, quotients L_s v <= e^ratio L_t v.
        The last result is which of them are beyond `reach`.
        """
        up = np.flatnonzero(chosen & np.isfinite(self.upper))
        low = np.flatnonzero(chosen & np.isfinite(self.lower))
        mass = self.mass[self.table_of]
        positive = [
            self.lift[up],
            np.exp(-np.minimum(self.lower[low], reach))[:, None] * mass[low],
        ]
        negative = [
            np.exp(np.minimum(self.upper[up], reach))[:, None] * mass[up],
            self.lift[low],
        ]
        far = [self.upper[up] > reach, self.lower[low] > reach]
        if math.isfinite(self.ratio):
            # Every ordered pair of symbols of each table.
            for first, end in pairwise(self.starts.tolist()):
                s, t = np.nonzero(~np.eye(end - first, dtype=np.bool_))
                positive.append(self.lift[first + s])
                factor = math.exp(min(self.ratio, reach))
                negative.append(factor * self.lift[first + t])
                far.append(np.full(len(s), self.ratio > reach))
        return np.vstack(positive), np.vstack(negative), np.concatenate(far)

    def names(self, chosen: NDArray[np.bool_]) -> list[tuple[str, int, int]]:
        """What the rows of `opposed` bound: the upper or the lower end of a row s of L, or its
        quotient by a row t.
        """
        found = [
            (UPPER, int(s), -1)
            for s in np.flatnonzero(chosen & np.isfinite(self.upper))
        ]
        for s in np.flatnonzero(chosen & np.isfinite(self.lower)):
            found.append((LOWER, int(s), -1))
        if math.isfinite(self.ratio):
            for first, end in pairwise(self.starts.tolist()):
                for s, t in permutations(range(first, end), 2):
                    found.append((QUOTIENT, s, t))
        return found

    def needed(self, w: Array, unit: float) -> Array:
        """The weight on all entries that brings each column of `w` (n, k) inside, (k,).

        Entries are wrong by up to `unit`. A row that fails by e, and has the slack c at a constant
        column, needs the weight e / c. A row without slack needs an infinite one.
        """
        all_rows = np.ones(len(self.table_of), dtype=np.bool_)
        positive, negative, _ = self.opposed(all_rows)
        masses = w * self.p_x[:, None]
        spare = ((negative - positive) @ self.p_x)[:, None]
        size = ((positive + negative) @ self.p_x)[:, None]
        excess = np.maximum((positive - negative) @ masses, 0.0)
        excess += unit * (2.0 * size + 8.0 * ((positive + negative) @ masses))
        with np.errstate(divide="ignore"):
            needed = np.where(spare > 0.0, excess / spare, np.inf)
        return np.maximum(2.0 * unit, needed.max(axis=0))


def _quotients(tops: Sequence[int], bottoms: Sequence[int]) -> list[float]:
    """Quotients of integers of any size, each rounded once."""
    return [top / bottom for top, bottom in zip(tops, bottoms, strict=True)]
