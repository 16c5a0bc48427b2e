"""The l1-, chi2- and alpha-lift of outputs and their inverses, from integers: exact rationals or balls.

With masses m_s proportional to P(s, y), o their sum, r_s proportional to P(s) and N the sum of the r_s, the
lift is m_s N / (r_s o). The l1 and chi2 means are rational; powers of a real order are enclosed by Arb.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import mul
from typing import Any

from mechdesign.exact_lifts import Column
from mechdesign.joint import Joint


@dataclass(frozen=True)
class OutputMasses:
    """P(s, y) of one output and P(s), as integers.

    Parameters
    ----------
    masses : |S| integers m_s
    output : int
        Their sum o, positive.
    sums : |S| positive integers r_s
    total : int
        Their sum N.
    """

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
    counts: Sequence[Sequence[int]], columns: Sequence[Column], joint: Joint
) -> Iterator[OutputMasses]:
    """The masses of each output in turn; arguments as those of `exact_lifts.extremes_by_output`."""
    sums = [sum(row) for row in joint.counts]
    total = sum(sums)
    for at, values in columns:
        masses = [sum(map(mul, [row[x] for x in at], values)) for row in counts]
        yield OutputMasses(masses, sum(masses), sums, total)


def distances(output: OutputMasses, power: int, *, inverse: bool = False) -> Any:
    """sum_s P(s) |l - 1|^power, or of 1/l, as a flint rational; None where a lift of 0 makes it infinite.

    `power` is 1 for l1 and 2 for chi2 (Zarrabian et al. 2023, eqs. (31), (32), Definition 6).
    """
    from flint import fmpq

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
    from flint import arb, fmpq

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


def budget(output: OutputMasses, kind: str, order: float, *, inverse: bool) -> Any:
    """The budget (nats) that the mean uses, as a ball of the present precision; None where it is infinite.

    log(1 + l1), log(1 + sqrt(chi2)) or log of the alpha-lift: at most eps exactly where the notion holds. It
    is 0 where every lift is 1; else it is no rational number, because e to a rational power other than 0
    is transcendental (Lindemann) and the means are algebraic, so comparisons with a double are always decided.
    """
    from flint import arb

    if output.is_constant:
        return arb(0)
    if kind == "alpha":
        return log_power_mean(output, order, inverse=inverse)
    mean = distances(output, 1 if kind == "l1" else 2, inverse=inverse)
    if mean is None:
        return None
    return (arb(mean) if kind == "l1" else arb(mean).sqrt()).log1p()


def largest_term(output: OutputMasses, kind: str, order: float, *, inverse: bool) -> int:
    """The sensitive symbol that contributes most to the mean; a guess in floating point, for messages."""
    best, most = 0, -math.inf
    for s, (row, (top, bottom)) in enumerate(zip(output.sums, output.numerators(), strict=True)):
        up, down = (bottom, top) if inverse else (top, bottom)
        if down == 0:
            return s
        if kind == "alpha":
            term = math.log(row) + order * (math.log(up) - math.log(down)) if up else -math.inf
        else:
            gap = abs(up - down)
            term = (
                math.log(row) + (1 if kind == "l1" else 2) * (math.log(gap) - math.log(down))
                if gap
                else -math.inf
            )
        if term > most:
            best, most = s, term
    return best
