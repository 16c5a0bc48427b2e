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


def power_mean(output: OutputMasses, order: float, *, inverse: bool = False) -> Any:
    """sum_s P(s) l^order, or of 1/l, as a ball of the present precision; None where it is infinite.

    The order is the exact rational that the double is (Zarrabian et al. 2023, eq. (33), Definition 6).
    """
    from flint import arb, fmpq

    if inverse and 0 in output.masses:
        return None
    exponent = arb(-order if inverse else order)
    mean = arb(0)
    for row, (top, bottom) in zip(output.sums, output.numerators(), strict=True):
        if top:
            mean += row * (arb(fmpq(top, bottom)).log() * exponent).exp()
    return mean / output.total


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
        mean = power_mean(output, order, inverse=inverse)
        return None if mean is None else mean.log() / arb(order)
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
