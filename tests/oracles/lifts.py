"""A slow, obvious judge of channels: fractions and Taylor series, sharing no code with the package."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

Table = Sequence[Sequence[int]]


def exp_bounds(x: Fraction, terms: int) -> tuple[Fraction, Fraction]:
    """Rationals around e^x for x >= 0.

    y = x / 2^k is at most 1/2, where the series to `terms` terms misses less than twice the next
    term; then k squarings, each rounded outwards to a grid so that the fractions stay short.
    """
    k = max(0, math.ceil(x * 2) - 1).bit_length()
    y = x / 2**k
    low = Fraction(0)
    term = Fraction(1)
    for i in range(1, terms + 1):
        low += term
        term = term * y / i
    high = low + 2 * term
    grid = 2 ** (terms * 8)
    for _ in range(k):
        low = Fraction(math.floor(low * low * grid), grid)
        high = Fraction(math.ceil(high * high * grid), grid)
    return low, high


def exceeds_exp(ratio: Fraction, exponent: float) -> bool:
    """Whether ratio > e^exponent; e^exponent is irrational unless the exponent is 0."""
    if exponent == 0.0:
        return ratio > 1
    terms = 16
    while True:
        low, high = exp_bounds(Fraction(exponent), terms)
        if ratio <= low:
            return False
        if ratio >= high:
            return True
        terms *= 2


def lifts(
    counts: Table, rows: Sequence[Sequence[int | Fraction]]
) -> list[list[Fraction]]:
    """l(s, y) = P(y|s) / P(y) for every output y of positive mass (outer list) and every s.

    `rows` are proportional to W(y|x), each with its own factor.
    """
    total = sum(map(sum, counts))
    p_s = [Fraction(sum(row), total) for row in counts]
    columns: list[list[Fraction]] = []
    for y in range(len(rows[0])):
        w = [Fraction(row[y]) / sum(row) for row in rows]
        p_sy = [
            sum(Fraction(c, total) * w[x] for x, c in enumerate(row)) for row in counts
        ]
        if sum(p_sy) > 0:
            columns.append([p / q / sum(p_sy) for p, q in zip(p_sy, p_s, strict=True)])
    return columns


def satisfies(counts: Table, rows: Sequence[Sequence[int | Fraction]], limits) -> bool:
    """Whether every lift keeps to the limits (`lower`, `upper`, `ratio`, in nats; inf is no limit)."""
    for column in lifts(counts, rows):
        high = max(column)
        low = min(column)
        if not math.isinf(limits.upper) and exceeds_exp(high, limits.upper):
            return False
        if not math.isinf(limits.lower) and (
            low == 0 or exceeds_exp(1 / low, limits.lower)
        ):
            return False
        if not math.isinf(limits.ratio) and (
            low == 0 or exceeds_exp(high / low, limits.ratio)
        ):
            return False
    return True


def is_smallest_budget(ratio: Fraction | None, budget: float) -> bool:
    """Whether `budget` is the smallest double b >= 0 with ratio <= e^b; None stands for infinity."""
    if ratio is None:
        return budget == math.inf
    if ratio <= 1:
        return budget == 0.0
    return not exceeds_exp(ratio, budget) and exceeds_exp(
        ratio, math.nextafter(budget, 0.0)
    )


def smallest_budget(ratio: Fraction) -> float:
    """The smallest double b >= 0 with ratio <= e^b, by bisection over the doubles."""
    low, high = (
        -1,
        0x4085E00000000000,
    )  # bit patterns of doubles grow with them; the upper end is 700.0
    while high - low > 1:
        middle = (low + high) // 2
        if exceeds_exp(ratio, _double(middle)):
            low = middle
        else:
            high = middle
    return _double(high)


def _double(bits: int) -> float:
    import struct

    return struct.unpack("<d", struct.pack("<Q", bits))[0]
