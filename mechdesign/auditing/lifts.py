"""Lifts as ratios of integers, what is demanded of them, and the extreme ones of a channel; no floating point.

Quotients are decided against exp of a budget exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import mul
from typing import TypeAlias

from flint import arb, fmpq

from mechdesign.core.balls import double_above, lies_below

Entries: TypeAlias = tuple[Sequence[int], Sequence[int]]
"""Rows of the positive entries of one output, and those entries."""


@dataclass(frozen=True)
class Demand:
    """One table with its limits.

    `counts` has a row for each sensitive symbol and a column for each useful one, `sums` are total * P(s), `lower`
    and `upper` the budgets of each symbol in nats, `ratio` that of their quotients, `before` the earlier outputs.
    """

    counts: Sequence[Sequence[int]]
    sums: Sequence[int]
    names: Sequence[str]
    lower: Sequence[float]
    upper: Sequence[float]
    ratio: float
    before: tuple[str, ...] = ()

    @cached_property
    def total(self) -> int:
        """The common denominator of P(s)."""
        return sum(self.sums)

    @cached_property
    def groups(self) -> list[tuple[str, float, list[int]]]:
        """Symbols with the same budget, by side."""
        found: dict[tuple[str, float], list[int]] = {}
        for side, budgets in (("eps_l", self.lower), ("eps_u", self.upper)):
            for s, budget in enumerate(budgets):
                found.setdefault((side, budget), []).append(s)
        return [(*key, rows) for key, rows in found.items()]


@dataclass(frozen=True)
class Extreme:
    """The largest quotient `over` of one side, with the budget whose exp must bound it; a zero below is infinity.

    `side` is what of `verdict.Achieved` it tells; `lift` is that of `sensitive` on output `y`.
    """

    side: str
    budget: float
    over: tuple[int, int]
    lift: tuple[int, int]
    sensitive: str
    y: int
    against: str | None = None
    before: tuple[str, ...] = ()

    @property
    def kept(self) -> bool:
        """Whether it keeps to its budget, decided exactly; an infinite one is no limit."""
        return math.isinf(self.budget) or at_most_exp(*self.over, self.budget)


def extreme_lifts(columns: Iterable[Entries], demands: Sequence[Demand]) -> list[Extreme]:
    """For every side and every different budget the largest quotient, of all outputs and tables.

    Found by exact comparison of every cell; of equal ones the first. Outputs that never occur demand nothing.
    """
    most: dict[tuple[str, float], Extreme] = {}
    for y, (at, values) in enumerate(columns):
        for demand in demands:
            sums, names = demand.sums, demand.names
            masses = [sum(map(mul, [row[x] for x in at], values)) for row in demand.counts]
            output, every = sum(masses), range(len(masses))
            if not output:
                continue
            above, below = (_extreme(every, masses, sums, largest=k) for k in (True, False))
            found: list[tuple[str, float, int, int | None]] = [
                (side, budget, _extreme(rows, masses, sums, largest=side == "eps_u"), None)
                for side, budget, rows in demand.groups
            ]
            for side, budget, s, t in (*found, ("eps_ldp", demand.ratio, above, below)):
                lift = masses[s] * demand.total, sums[s] * output
                over = lift if side == "eps_u" else (lift[1], lift[0])
                if t is not None:
                    over = masses[s] * sums[t], masses[t] * sums[s]
                best = most.get((side, budget))
                if best is None or over[0] * best.over[1] > best.over[0] * over[1]:
                    against = None if t is None else names[t]
                    most[side, budget] = Extreme(
                        side, budget, over, lift, names[s], y, against, demand.before
                    )
    return list(most.values())


def _extreme(rows: Sequence[int], masses: Sequence[int], sums: Sequence[int], *, largest: bool) -> int:
    """The symbol with the largest or the smallest lift among some."""
    best = rows[0]
    for s in rows[1:]:
        difference = masses[s] * sums[best] - masses[best] * sums[s]
        if difference > 0 if largest else difference < 0:
            best = s
    return best


def at_most_exp(numerator: int, denominator: int, exponent: float) -> bool:
    """Whether numerator / denominator <= e^exponent, decided exactly.

    It always is: the exponent is the rational number that the double is, and e^x is irrational for rational x != 0
    (Lindemann), so the logarithm of a quotient other than 1 is no double.
    """
    if numerator == 0 or denominator == 0:
        return numerator == 0
    if numerator == denominator:
        return exponent >= 0.0
    return lies_below(lambda: arb(fmpq(numerator, denominator)).log(), exponent)


def log_upper(numerator: int, denominator: int) -> float:
    """The smallest double b >= 0 with numerator / denominator <= e^b; ``inf`` for a zero denominator."""
    if numerator <= denominator:
        return 0.0
    return double_above(lambda: arb(fmpq(numerator, denominator)).log()) if denominator else math.inf
