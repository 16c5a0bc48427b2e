"""The exact verdict on notions about averages over S: l1-, chi2- and alpha-lift and their inverses.

With masses m_s proportional to P(s, y), o their sum, r_s proportional to P(s) and N the sum of the r_s, the
lift is m_s N / (r_s o). Mean distances are rational; powers of a real order are enclosed by Arb balls, refined
until every comparison is decided. As independent of the designers as the rest of the auditor.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import mul
from typing import Any

from flint import arb, fmpq

from mechdesign.auditing.demands import Entries
from mechdesign.core.balls import double_above
from mechdesign.notions import Mean, MeanLimits, PowerMean
from mechdesign.tables.joint import Joint


@dataclass(frozen=True)
class OutputMasses:
    """P(s, y) of one output and P(s), as integers."""

    masses: Sequence[int]
    output: int
    sums: Sequence[int]
    total: int

    def numerators(self) -> list[tuple[int, int]]:
        """Numerators m_s N and denominators r_s o of the lifts."""
        return [(m * self.total, r * self.output) for m, r in zip(self.masses, self.sums, strict=True)]

    @property
    def is_constant(self) -> bool:
        """Whether every lift is exactly 1."""
        return all(top == bottom for top, bottom in self.numerators())


def masses_by_output(columns: Sequence[Entries], joint: Joint) -> Iterator[OutputMasses]:
    """The masses of each output in turn; columns are over the useful symbols of the table."""
    sums, total = joint.sensitive_counts, joint.total
    for at, values in columns:
        masses = [sum(map(mul, [row[x] for x in at], values)) for row in joint.counts]
        yield OutputMasses(masses, sum(masses), sums, total)


def distances(output: OutputMasses, power: int, *, inverse: bool = False) -> Any:
    """sum_s P(s) |l - 1|^power, or of 1/l, as a flint rational; None where a lift of 0 makes it infinite.

    `power` is 1 for l1 and 2 for chi2 (Zarrabian et al. 2023, eqs. (31), (32), Definition 6).
    """
    if inverse and 0 in output.masses:
        return None
    mean = fmpq(0)
    for row, (top, bottom) in zip(output.sums, output.numerators(), strict=True):
        base = top if inverse else bottom
        mean += fmpq(row * abs(top - bottom) ** power, base**power)
    return mean / output.total


def log_power_mean(output: OutputMasses, order: float, *, inverse: bool = False) -> Any:
    """log of (sum_s P(s) l^order)^(1/order), or of 1/l, as a ball; None where it is infinite.

    The order is positive, the exact rational that the double is, or inf (Zarrabian et al. 2023, eq. (33),
    Definition 6).
    """
    if inverse and 0 in output.masses:
        return None
    lifts = output.numerators()
    values = [(bottom, top) if inverse else (top, bottom) for top, bottom in lifts]
    return log_norm(values, order, output.sums, output.total)


def log_norm(values: Sequence[tuple[int, int]], order: float, weights: Sequence[int], total: int) -> Any:
    """log of (sum_i w_i v_i^order / total)^(1/order) for quotients v_i >= 0 of integers, not all 0, as a ball.

    The largest value is taken out, so that every power lies in [0, 1]: at a large order the powers
    themselves would overflow, or be known too badly for a logarithm.
    """
    exact = [fmpq(top, bottom) for top, bottom in values]
    largest = max(exact)
    if math.isinf(order):
        return arb(largest).log()
    mean, exponent = arb(0), arb(order)
    for weight, value in zip(weights, exact, strict=True):
        if value == largest:
            mean += weight
        elif value:
            # log1p keeps the digits of values that are nearly as large
            mean += weight * (arb(value / largest - 1).log1p() * exponent).exp()
    return arb(largest).log() + (mean / total).log() / exponent


def largest_term(output: OutputMasses, mean: Mean, *, inverse: bool) -> int:
    """The sensitive symbol that contributes most to the mean; a guess in floating point, for messages."""
    best, most = 0, -math.inf
    for s, (row, (top, bottom)) in enumerate(zip(output.sums, output.numerators(), strict=True)):
        up, down = (bottom, top) if inverse else (top, bottom)
        if down == 0:
            return s
        part, power = (up, mean.order) if isinstance(mean, PowerMean) else (abs(up - down), mean.power)
        term = math.log(row) + power * (math.log(part) - math.log(down)) if part else -math.inf
        if term > most:
            best, most = s, term
    return best


@dataclass(frozen=True)
class Used:
    """The smallest budgets (doubles, nats) of the notion itself that the channel keeps to; ``inf`` if none."""

    eps_l: float
    eps_u: float


@dataclass(frozen=True)
class Worst:
    """The cell that uses most of its budget, in proportion; it violates it if any cell does.

    `lift` is l(s, y), correctly rounded; `against` is the other sensitive symbol of an LDP comparison, and
    `before` has the outputs of earlier releases.
    """

    sensitive: str
    output: str
    lift: float
    against: str | None = None
    before: tuple[str, ...] = ()


def budget_used(output: OutputMasses, mean: Mean, *, inverse: bool) -> float:
    """The smallest double at or above the budget (nats) that the mean uses: a budget holds exactly from there on.

    log(1 + d^(1/power)) of a mean distance d (l1, chi2) or log of the alpha-lift. It is 0 where every lift is 1; else
    it is no rational number, because e to a rational power other than 0 is transcendental (Lindemann) and the means
    are algebraic, so it lies between two doubles. Infinite with a lift of 0 for the inverse.
    """
    if output.is_constant:
        return 0.0
    if inverse and 0 in output.masses:
        return math.inf

    def ball() -> Any:
        if isinstance(mean, PowerMean):
            return log_power_mean(output, mean.order, inverse=inverse)
        return arb(distances(output, mean.power, inverse=inverse)).root(mean.power).log1p()

    return double_above(ball)


def failing_means(columns: Sequence[Entries], joint: Joint, limits: MeanLimits) -> tuple[int, ...]:
    """Positions of the outputs that violate the limits; arguments as those of `auditing.verdict.audit_columns`."""
    sides = ((False, limits.upper), (True, limits.lower))
    return tuple(
        y
        for y, output in enumerate(masses_by_output(columns, joint))
        if any(budget_used(output, limits.mean, inverse=inverse) > limit for inverse, limit in sides)
    )


def mean_verdict(
    columns: Sequence[Entries], outputs: Sequence[str], joint: Joint, limits: MeanLimits
) -> tuple[bool, Used, Worst]:
    """The exact verdict, what is used, and the symbol that weighs most in the worst output."""
    masses = list(masses_by_output(columns, joint))
    up, down = ([budget_used(each, limits.mean, inverse=k) for each in masses] for k in (False, True))
    both = (up, limits.upper), (down, limits.lower)
    sides = [(used, limit) for used, limit in both if math.isfinite(limit)]
    used, _ = max(sides, key=lambda side: max(side[0]) / side[1])
    y = used.index(max(used))
    s = largest_term(masses[y], limits.mean, inverse=used is down)
    top, bottom = masses[y].numerators()[s]
    worst = Worst(joint.sensitive.names[s], outputs[y], top / bottom)
    return all(max(used) <= limit for used, limit in sides), Used(eps_l=max(down), eps_u=max(up)), worst
