"""Quotients of integers against exp of a budget, decided exactly, and the smallest budget that bounds one."""

from __future__ import annotations

import math
from functools import lru_cache

from flint import arb

from mechdesign.core.balls import FIRST_BITS, precision


def at_most_exp(numerator: int, denominator: int, exponent: float) -> bool:
    """Whether numerator / denominator <= e^exponent, decided exactly."""
    bits = FIRST_BITS
    while True:
        low, high, shift = exp_enclosure(exponent, bits)
        scaled = numerator << shift
        if scaled <= low * denominator:
            return True
        if scaled > high * denominator:
            return False
        bits *= 2


@lru_cache(maxsize=1024)
def exp_enclosure(exponent: float, bits: int) -> tuple[int, int, int]:
    """Integers (low, high, shift) with ``low <= e^exponent * 2^shift <= high``, about `bits` bits apart.

    The exponent is the exact rational that the double is; rounding is outwards (Arb ball arithmetic).
    """
    with precision(bits):
        ball = arb(exponent).exp()
        ends = [end.man_exp() for end in (ball.lower(), ball.upper())]
    shift = max(0, *(-int(power) for _, power in ends))
    low, high = (int(mantissa) << (int(power) + shift) for mantissa, power in ends)
    return low, high, shift


def log_upper(numerator: int, denominator: int) -> float:
    """The smallest double b >= 0 with numerator / denominator <= e^b; ``inf`` for a zero denominator.

    The logarithm in floating point is only a first guess; `at_most_exp` decides.
    """
    if numerator <= denominator:
        return 0.0
    if denominator == 0:
        return math.inf
    guess = _log(numerator, denominator)
    while not at_most_exp(numerator, denominator, guess):
        guess = math.nextafter(guess, math.inf)
    while at_most_exp(numerator, denominator, below := math.nextafter(guess, 0.0)):
        guess = below
    return guess


def _log(numerator: int, denominator: int) -> float:
    if numerator < 2 * denominator:
        return math.log1p((numerator - denominator) / denominator)
    try:
        return math.log(numerator / denominator)
    except OverflowError:  # the quotient is no double, its logarithm is
        return math.log(numerator) - math.log(denominator)
