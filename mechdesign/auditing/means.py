"""The exact verdict on notions about averages over S: l1-, chi2- and alpha-lift and their inverses.

With masses m_s proportional to P(s, y), o their sum, r_s proportional to P(s) and N the sum of the r_s, the
lift is m_s N / (r_s o). Mean distances are rational; powers of a real order are enclosed by Arb balls, refined
until every comparison is decided. As independent of the designers as the rest of the auditor.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import mul
from typing import Any

from flint import arb, fmpq

from mechdesign.auditing.demands import Entries
from mechdesign.core.balls import FIRST_BITS, double_above, lies_below, lower, precision, upper
from mechdesign.core.errors import InputError
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


def mean_budget(output: OutputMasses, mean: Mean, *, inverse: bool) -> Any:
    """The budget (nats) that the mean uses, as a ball of the present precision; None where it is infinite.

    log(1 + d^(1/power)) of a mean distance d (l1, chi2) or log of the alpha-lift: at most eps exactly where the notion
    holds. It is 0 where every lift is 1; else it is no rational number, because e to a rational power other than 0
    is transcendental (Lindemann) and the means are algebraic, so comparisons with a double are always decided.
    """
    if output.is_constant:
        return arb(0)
    if isinstance(mean, PowerMean):
        return log_power_mean(output, mean.order, inverse=inverse)
    value = distances(output, mean.power, inverse=inverse)
    if value is None:
        return None
    return (arb(value) if mean.power == 1 else arb(value).root(mean.power)).log1p()


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


class _Side:
    """One of the two bounds, with a ball around what each output uses, at the first precision."""

    def __init__(self, outputs: Sequence[OutputMasses], mean: Mean, limit: float, *, inverse: bool) -> None:
        self.outputs, self.limit, self.inverse = outputs, limit, inverse
        self._exactly = [partial(mean_budget, output, mean, inverse=inverse) for output in outputs]
        with precision(FIRST_BITS):
            self._balls = [ball() for ball in self._exactly]

    def fails(self, y: int) -> bool:
        if math.isinf(self.limit):
            return False
        return self._balls[y] is None or not lies_below(self._exactly[y], self.limit, self._balls[y])

    def used(self) -> tuple[float, int]:
        """The smallest double that bounds every ball, and the first output that needs it."""
        balls = self._balls
        if None in balls:
            return math.inf, balls.index(None)
        best, at = -1.0, 0
        # The likeliest first: most of the others are then settled by their first ball.
        for y in sorted(range(len(balls)), key=lambda y: -lower(balls[y])):
            if best >= upper(balls[y]):
                continue
            value = 0.0 if self.outputs[y].is_constant else double_above(self._exactly[y])
            if value > best:
                best, at = value, y
        return best, at


def failing_means(columns: Sequence[Entries], joint: Joint, limits: MeanLimits) -> tuple[int, ...]:
    """Positions of the outputs that violate the limits; arguments as those of `auditing.verdict.audit_columns`."""
    sides = _sides(columns, joint, limits)
    return tuple(y for y in range(len(columns)) if any(side.fails(y) for side in sides))


def mean_verdict(
    columns: Sequence[Entries], outputs: Sequence[str], joint: Joint, limits: MeanLimits
) -> tuple[bool, Used, Worst]:
    """The exact verdict, what is used, and the symbol that weighs most in the worst output."""
    if not columns:
        raise InputError("a channel needs at least one output")
    sides = _sides(columns, joint, limits)
    used = [side.used() for side in sides]
    # Used budgets are the smallest doubles, so a violated side comes before a satisfied one.
    side, (_, y) = max(
        (pair for pair in zip(sides, used, strict=True) if math.isfinite(pair[0].limit)),
        key=lambda pair: pair[1][0] / pair[0].limit,
    )
    s = largest_term(side.outputs[y], limits.mean, inverse=side.inverse)
    top, bottom = side.outputs[y].numerators()[s]
    kept = not any(side.fails(y) for side in sides for y in range(len(columns)))
    worst = Worst(joint.sensitive.names[s], outputs[y], top / bottom)
    return kept, Used(eps_l=used[1][0], eps_u=used[0][0]), worst


def _sides(columns: Sequence[Entries], joint: Joint, limits: MeanLimits) -> tuple[_Side, _Side]:
    outputs = list(masses_by_output(columns, joint))
    upper_side = _Side(outputs, limits.mean, limits.upper, inverse=False)
    return upper_side, _Side(outputs, limits.mean, limits.lower, inverse=True)
