"""Arb ball arithmetic: one precision at a time, and the doubles next to a ball."""

# Python-flint has no complete types.
# pyright: basic
from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from threading import Lock
from typing import Any

FIRST_BITS = 128
"""Precision of the first enclosure, in bits; it doubles until a comparison is decided. The lifts of
ordinary tables and the exponentials of budgets differ long before."""

_one_precision_at_a_time = Lock()
"""Arb's precision belongs to the process; another thread's would make an enclosure wider, never wrong."""


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Work with balls of so many bits; do not nest."""
    from flint import ctx

    with _one_precision_at_a_time, ctx.workprec(bits):
        yield


def double_above(ball: Callable[[], Any]) -> float:
    """The smallest double at or above a number that is no double, given as a maker of enclosing balls.

    `ball` is called at growing precision until both ends of its value round up to the same double.
    """
    bits = FIRST_BITS
    while True:
        with precision(bits):
            value = ball()
            ends = _rounded_up(value.lower()), _rounded_up(value.upper())
        if value.is_finite() and ends[0] == ends[1]:
            return ends[1]
        bits *= 2


def log_at_most(factor: Fraction) -> float:
    """The largest double at or below the logarithm of a rational number above 1."""
    from flint import arb, fmpq

    return -double_above(lambda: -arb(fmpq(factor.numerator, factor.denominator)).log())


def log2_above(ratio: Fraction) -> float:
    """The smallest double at or above log2 of a positive number, exact for a power of two."""
    from flint import arb

    top, bottom = ratio.as_integer_ratio()
    power = top.bit_length() - bottom.bit_length()
    if ratio == Fraction(2) ** power:
        return float(power)
    return double_above(lambda: (arb(top) / bottom).log() / arb.const_log2())


LARGEST_PRODUCT = 10_000
"""Bits up to which a product is computed exactly; larger ones have thousands of digits."""


def log2_of_powers_above(powers: Iterable[tuple[int, int]]) -> float:
    """A double at or above log2 of the product of positive integers, each to the power beside it.

    It is the smallest such double up to `LARGEST_PRODUCT` bits, and beyond the sum of the logarithms rounded upwards.
    """
    pairs = list(powers)
    bits = Fraction(0)
    for base, exponent in pairs:
        bits += Fraction(log2_above(Fraction(base))) * exponent
    if bits > LARGEST_PRODUCT:
        return quotient_above(*bits.as_integer_ratio())
    return log2_above(Fraction(math.prod(base**exponent for base, exponent in pairs)))


def upper(ball: Any) -> float:
    """The smallest double at or above the whole ball; ``inf`` for one that bounds nothing."""
    return _rounded_up(ball.upper()) if ball.is_finite() else math.inf


def lower(ball: Any) -> float:
    """The largest double at or below the whole ball; ``-inf`` for one that bounds nothing."""
    return -_rounded_up(ball.lower(), -1) if ball.is_finite() else -math.inf


def _rounded_up(end: Any, sign: int = 1) -> float:
    """The smallest double at or above `sign` times an exact ball."""
    if not end.is_finite():
        return math.inf if sign * end > 0 else -math.inf
    mantissa, power = (int(part) for part in end.man_exp())
    mantissa *= sign
    numerator, denominator = (
        (mantissa << power, 1) if power >= 0 else (mantissa, 1 << -power)
    )
    return quotient_above(numerator, denominator)


def quotient_above(numerator: int, denominator: int) -> float:
    """The smallest double at or above a quotient of integers; ``inf`` for a zero denominator."""
    if denominator == 0:
        return math.inf
    try:
        value = numerator / denominator  # correctly rounded
    except OverflowError:
        return math.inf if numerator > 0 else -math.nextafter(math.inf, 0.0)
    top, bottom = value.as_integer_ratio()
    return (
        value
        if top * denominator >= numerator * bottom
        else math.nextafter(value, math.inf)
    )
