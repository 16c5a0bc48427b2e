"""The extreme lifts of all prefixes of a row channel, found prefix by prefix.

With the masses N(s) of a prefix, their sum N, and the prior's counts n(s) with the sum T, its lift
is l(s) = N(s) T / (n(s) N). What a budget bounds is a quotient of integers on each of three sides:
l(s) for eps_u, 1 / l(s) for eps_l, and l(s) / l(t) for eps_ldp. Quotients are compared by
multiplication. So an enclosure of a logarithm (`demands.Extreme.used`), which is slow, is needed
for the largest quotient of each side only, not for every prefix.
"""

from __future__ import annotations

from collections.abc import Sequence

from mechdesign.auditing.demands import Demand, Extreme
from mechdesign.auditing.verdict import Achieved


class Extremes:
    """The largest quotient of every side and budget (`most`) among the prefixes added."""

    def __init__(self) -> None:
        self.most: dict[tuple[str, float], Extreme] = {}

    def add(self, masses: list[int], demand: Demand, place: int) -> None:
        """Count in a prefix with the masses N(s); `place` is remembered as its output."""
        output = sum(masses)
        sums = demand.sums
        total = demand.total
        for side, budget, members in demand.groups:
            # Against its own prior a stratum has no lift of a secret without records (0/0).
            symbols = [s for s in members if sums[s]]
            if not symbols:
                continue
            # One budget for all of these symbols: only their extreme lifts can be the worst.
            high, low = _extreme_symbols(masses, sums, symbols)
            s = high
            against = None
            # The quotient, as numerator and denominator.
            if side == "eps_u":
                over = masses[s] * total, sums[s] * output
            elif side == "eps_l":
                s = low
                over = sums[s] * output, masses[s] * total
            else:
                against = demand.names[low]
                over = masses[s] * sums[low], masses[low] * sums[s]
            # a / b > c / d as a d > c b; a zero denominator is infinity.
            best = self.most.get((side, budget))
            if best is None or over[0] * best.over[1] > best.over[0] * over[1]:
                lift = masses[s] * total, sums[s] * output
                name = demand.names[s]
                self.most[side, budget] = Extreme(
                    side, budget, over, lift, name, place, against
                )

    @property
    def achieved(self) -> Achieved:
        """The smallest budgets (doubles, nats) that the prefixes keep; 0 for a side without any."""
        used = {"eps_l": 0.0, "eps_u": 0.0, "eps_ldp": 0.0}
        for extreme in self.most.values():
            used[extreme.side] = max(used[extreme.side], extreme.used)
        return Achieved(**used)


def _extreme_symbols(
    masses: Sequence[int], sums: Sequence[int], symbols: Sequence[int]
) -> tuple[int, int]:
    """The symbols with the largest and the smallest lift.

    l(s) = masses[s] total / (sums[s] output): total and output are common to all symbols, so that
    masses[s] / sums[s] orders them, compared by cross products.
    """
    high = symbols[0]
    low = symbols[0]
    for s in symbols[1:]:
        if masses[s] * sums[high] > masses[high] * sums[s]:
            high = s
        if masses[s] * sums[low] < masses[low] * sums[s]:
            low = s
    return high, low
