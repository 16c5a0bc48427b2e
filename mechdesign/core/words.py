"""Budgets in words: factors and shares as people say them, and the nats that promise no less."""

# python-flint has no complete types.
# pyright: basic
from __future__ import annotations

from fractions import Fraction

from mechdesign.core.balls import double_above
from mechdesign.core.errors import InputError
from mechdesign.core.numbers import fraction_of_text, quoted


def share_of(name: str, value: object) -> Fraction:
    """A number strictly between 0 and 1, as written (90% is 0.9); a float is the shortest decimal that names it."""
    return _number(name, value, "strictly between 0 and 1, as in 0.9 or 90%", Fraction(0), Fraction(1))


def at_most_times(value: object) -> float:
    """The largest budget (nats) with exp of it at most a factor above 1."""
    return log_at_most(_number("--at-most-times", value, "above 1, as in 2", Fraction(1)))


def at_least_times(value: object) -> float:
    """The largest budget (nats) with exp of minus it at least a factor below 1."""
    return log_at_most(1 / share_of("--at-least-times", value))


def log_at_most(factor: Fraction) -> float:
    """The largest double at or below the logarithm of a rational number above 1."""
    from flint import arb, fmpq

    return -double_above(lambda: -arb(fmpq(factor.numerator, factor.denominator)).log())


def _number(name: str, value: object, allowed: str, low: Fraction, high: Fraction | None = None) -> Fraction:
    text = str(value).strip()
    try:
        number = fraction_of_text(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except InputError:
        raise InputError(f"{name} ({quoted(value)}) must be a number {allowed}") from None
    if low < number and (high is None or number < high):
        return number
    raise InputError(f"{name} ({value}) must be {allowed}")
