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

from mechdesign.auditing.lifts import Entries
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


def masses_by_output(
    counts: Sequence[Sequence[int]], columns: Sequence[Entries], joint: Joint
) -> Iterator[OutputMasses]:
    """The masses of each output in turn; `columns` as those of a channel."""
    sums = [sum(row) for row in joint.counts]
    total = sum(sums)
    for at, values in columns:
        masses = [sum(map(mul, [row[x] for x in at], values)) for row in counts]
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

    The order is positive, the exact rational that the double is (Zarrabian et al. 2023, eq. (33), Definition
    6).
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
        if isinstance(mean, PowerMean):
            part, power = up, mean.order
        else:
            part, power = abs(up - down), mean.power
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
class MeanVerdict:
    """Which outputs fail, what the channel uses, and its worst output with the symbol that weighs most there.

    `lift` is the numerator and the denominator of l(s, y) of the worst pair.
    """

    failing: tuple[int, ...]
    used: Used
    s: int
    y: int
    lift: tuple[int, int]


@dataclass(frozen=True)
class _Side:
    """One of the two bounds; its balls are made anew at every precision asked for."""

    limits: MeanLimits
    inverse: bool

    @property
    def limit(self) -> float:
        return self.limits.lower if self.inverse else self.limits.upper

    def ball(self, output: OutputMasses) -> Any:
        return mean_budget(output, self.limits.mean, inverse=self.inverse)

    def fails(self, output: OutputMasses, first: Any) -> bool:
        if math.isinf(self.limit):
            return False
        return first is None or not lies_below(lambda: self.ball(output), self.limit, first)

    def used(self, outputs: Sequence[OutputMasses], balls: Sequence[Any]) -> tuple[float, int]:
        """The smallest double that bounds every ball, and the first output that needs it."""
        if None in balls:
            return math.inf, balls.index(None)
        best, at = -1.0, 0
        # The likeliest first: most of the others are then settled by their first ball.
        for y in sorted(range(len(balls)), key=lambda y: -lower(balls[y])):
            if best >= upper(balls[y]):
                continue
            exact = outputs[y].is_constant
            value = 0.0 if exact else double_above(lambda y=y: self.ball(outputs[y]))
            if value > best:
                best, at = value, y
        return best, at


def failing_means(
    counts: Sequence[Sequence[int]], columns: Sequence[Entries], joint: Joint, limits: MeanLimits
) -> tuple[int, ...]:
    """Positions of the outputs that violate the limits; arguments as those of `auditing.audit_columns`."""
    return _failing(*_measured(counts, columns, joint, limits))


def mean_verdict(
    counts: Sequence[Sequence[int]], columns: Sequence[Entries], joint: Joint, limits: MeanLimits
) -> MeanVerdict:
    """The exact verdict; arguments as those of `auditing.audit_columns`."""
    sides, outputs, balls = _measured(counts, columns, joint, limits)
    if not outputs:
        raise InputError("a channel needs at least one output")
    used = [side.used(outputs, each) for side, each in zip(sides, balls, strict=True)]
    # Used budgets are the smallest doubles, so a violated side comes before a satisfied one.
    side, (_, y) = max(
        (pair for pair in zip(sides, used, strict=True) if math.isfinite(pair[0].limit)),
        key=lambda pair: pair[1][0] / pair[0].limit,
    )
    s = largest_term(outputs[y], limits.mean, inverse=side.inverse)
    return MeanVerdict(
        failing=_failing(sides, outputs, balls),
        used=Used(eps_l=used[1][0], eps_u=used[0][0]),
        s=s,
        y=y,
        lift=outputs[y].numerators()[s],
    )


def _measured(
    counts: Sequence[Sequence[int]], columns: Sequence[Entries], joint: Joint, limits: MeanLimits
) -> tuple[list[_Side], list[OutputMasses], list[list[Any]]]:
    sides = [_Side(limits, inverse=False), _Side(limits, inverse=True)]
    outputs = list(masses_by_output(counts, columns, joint))
    with precision(FIRST_BITS):
        balls = [[side.ball(output) for output in outputs] for side in sides]
    return sides, outputs, balls


def _failing(sides: list[_Side], outputs: list[OutputMasses], balls: list[list[Any]]) -> tuple[int, ...]:
    return tuple(
        y
        for y, output in enumerate(outputs)
        if any(side.fails(output, each[y]) for side, each in zip(sides, balls, strict=True))
    )
