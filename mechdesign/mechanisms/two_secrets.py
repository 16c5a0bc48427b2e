"""The lifts that a notion on averages allows where there are two secrets: an interval of one lift.

With two sensitive symbols, P(1) w_1 + P(2) w_2 = 1 makes w_2 a function of w_1. Every average, also
one of inverses that is not convex otherwise, grows away from w = 1 on either side. So the allowed
w_1 are an interval around 1, whose ends are found by bisection over doubles with the exact auditor.
The secret is the rarer one: its lift spans the longer interval, and loses the fewest digits.

For example, with P = (1/4, 3/4) and the l1-lift at most 1/2, sum_s P(s) |w_s - 1| = 2 P(1) |w_1 -
1|, so w_1 lies between 0 and 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from mechdesign.auditing.mean_verdict import budget_used
from mechdesign.auditing.output_masses import OutputMasses
from mechdesign.core.limits import MeanLimits
from mechdesign.tables.joint import Joint


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
