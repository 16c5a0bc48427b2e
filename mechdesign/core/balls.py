"""Exact comparison of real numbers with doubles, by Arb ball arithmetic.

A ball is a midpoint with a radius and encloses a real number. Every function here returns a
double that is provably on one side of the number, and mostly the nearest such double.

A number is enclosed at `FIRST_BITS` bits. If both ends of the ball round to the same double, that
is the result; else the precision is doubled. For example, log2(3) is irrational and so never a
double: from some precision on no double lies in its ball, and the loop ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from fractions import Fraction
from threading import Lock
from typing import Any

FIRST_BITS = 128
"""Precision of the first enclosure, in bits. It doubles until a comparison is decided.

The lifts of ordinary tables and the exponentials of budgets differ long before.
"""

_precision_lock = Lock()
"""Arb's precision belongs to the process. Another thread's would widen an enclosure; it could
never make one wrong."""


@contextmanager
def precision(bits: int) -> Generator[None]:
    """Compute with balls of `bits` bits; do not nest."""
    from flint import ctx

    # The lock is not reentrant: a nested call would wait for itself.
    with _precision_lock, ctx.workprec(bits):
        yield


def double_above(ball: Callable[[], Any]) -> float:
    """The smallest double at or above a real number that is not itself a double.

    Parameters
    ----------
    ball : callable
        Encloses the number at the current precision. It is called at growing precision until
        both ends of the enclosure round up to the same double.
    """
    # The number is no double, so from some precision on its enclosure contains none either. Then
    # both ends round to the same double and the loop ends.
    bits = FIRST_BITS
    while True:
        with precision(bits):
            enclosure = ball()
            low = _rounded_up(enclosure.lower())
            high = _rounded_up(enclosure.upper())
        if enclosure.is_finite() and low == high:
            return high
        bits *= 2


def log_at_most(factor: Fraction) -> float:
    """The largest double at or below the logarithm of a rational number above 1."""
    from flint import arb, fmpq

    # The logarithm of a rational number other than 1 is transcendental (Lindemann), so it is never
    # a double.
    return -double_above(lambda: -arb(fmpq(factor.numerator, factor.denominator)).log())


def log2_above(ratio: Fraction) -> float:
    """The smallest double at or above log2 of a positive number, exact for a power of two."""
    from flint import arb

    top, bottom = ratio.as_integer_ratio()
    power = top.bit_length() - bottom.bit_length()
    # log2 of a rational number is irrational unless the number is a power of two, and only the
    # difference of the bit lengths can be its exponent.
    if ratio == Fraction(2) ** power:
        return float(power)
    return double_above(lambda: (arb(top) / bottom).log() / arb.const_log2())


LARGEST_PRODUCT = 10_000
"""Bits up to which a product is computed exactly; larger ones have thousands of digits."""


def log2_of_powers_above(powers: Iterable[tuple[int, int]]) -> float:
    """A double at or above log2 of the product of positive integers, each to the power beside it.

    It is the smallest such double up to `LARGEST_PRODUCT` bits, and beyond the sum of the
    logarithms rounded upwards.
    """
    pairs = list(powers)
    bits = Fraction(0)
    for base, exponent in pairs:
        # Doubles are added as fractions, so the sum is rounded only once, at the end.
        bits += Fraction(log2_above(Fraction(base))) * exponent
    if bits > LARGEST_PRODUCT:
        return quotient_above(*bits.as_integer_ratio())
    return log2_above(Fraction(math.prod(base**exponent for base, exponent in pairs)))


def upper(ball: Any) -> float:
    """The smallest double at or above a whole ball; ``inf`` for an unbounded ball."""
    if not ball.is_finite():
        return math.inf
    return _rounded_up(ball.upper())


def lower(ball: Any) -> float:
    """The largest double at or below a whole ball; ``-inf`` for an unbounded ball."""
    if not ball.is_finite():
        return -math.inf
    return -_rounded_up(ball.lower(), -1)


def _rounded_up(end: Any, sign: int = 1) -> float:
    """The smallest double at or above `sign` times an exact ball."""
    if not end.is_finite():
        return math.inf if sign * end > 0 else -math.inf
    mantissa, power = (int(part) for part in end.man_exp())
    mantissa *= sign
    # The end is mantissa * 2**power exactly.
    if power >= 0:
        return quotient_above(mantissa << power, 1)
    return quotient_above(mantissa, 1 << -power)


def quotient_above(numerator: int, denominator: int) -> float:
    """The smallest double at or above a quotient of integers; ``inf`` for a zero denominator."""
    if denominator == 0:
        return math.inf
    try:
        nearest = numerator / denominator  # Python rounds this correctly
    except OverflowError:
        # Nothing finite lies above a quotient beyond the largest double. Above one below all
        # doubles lies the most negative double.
        if numerator > 0:
            return math.inf
        return -math.nextafter(math.inf, 0.0)
    # The rounded quotient lies below the true one by less than one step, or not at all.
    top, bottom = nearest.as_integer_ratio()
    if top * denominator >= numerator * bottom:
        return nearest
    return math.nextafter(nearest, math.inf)
