"""Numbers from outside, of any type, as exact rationals.

A text counts as the decimal that it is: ``fraction_of("0.1")`` is 1/10. A float counts as its bits:
``fraction_of(0.1)`` is 3602879701896397/36028797018963968. What is no finite number is refused, and
so is a text with an exponent that would fill the memory.
"""

from __future__ import annotations

import math
import numbers
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any, cast

from mechdesign.core.errors import InputError
from mechdesign.core.wording import quoted

LARGEST_EXPONENT = 400
"""Largest power of ten, either way, of a number read from text.

It covers every double, and it keeps '1e999999999' from becoming an integer of a billion digits.
"""

LONGEST_NUMBER = 1000
"""Longest text of a number, in characters. No measurement has more digits."""

# `Decimal` raises errors of its own on exponents of more than 18 digits; nine are enough.
_DECIMAL = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,9})?", re.ASCII)
_NOT_FINITE = {"nan", "inf", "infinity"}


def fraction_of_text(text: str) -> Fraction:
    """The exact value of a decimal such as ``12``, ``-0.25`` or ``1e-3``, blanks aside.

    Raises
    ------
    InputError
        If the text is not a finite decimal; ``1/3`` is not one.
    """
    body = text.strip(" \t")
    if body.lower().lstrip("+-") in _NOT_FINITE:
        raise InputError(f"{quoted(body)} is not a finite number")
    if not body:
        raise InputError("the cell is empty")
    if len(body) > LONGEST_NUMBER or not _DECIMAL.fullmatch(body):
        raise InputError(f"{quoted(text)} is not a number")
    return _fraction_of_decimal(Decimal(body))


def _fraction_of_decimal(value: Decimal) -> Fraction:
    """The exact value of a decimal; InputError if it is not finite or beyond the limits."""
    if not value.is_finite():
        raise InputError(f"{quoted(value)} is not a finite number")
    if not value:
        return Fraction(0)
    # The limits come first: a huge exponent must not be written out. The limit of the last digit
    # is lower than that of the first, so that the smallest numbers may have many digits.
    exponent = int(value.as_tuple().exponent)
    if value.adjusted() > LARGEST_EXPONENT or exponent < -2 * LARGEST_EXPONENT:
        raise InputError(
            f"{quoted(value)} is too large or too small to be kept exactly"
        )
    return Fraction(value)


def fraction_of(value: Any) -> Fraction:
    """The exact rational value of a number; of a float, the exact value of its bits.

    Raises
    ------
    InputError
        If the value is not a finite number.
    """
    # NumPy's truth value is recognised by name, so that NumPy need not be imported.
    if type(value).__name__ in ("bool", "bool_"):
        raise InputError(f"{quoted(value)} is a truth value, not a number")
    # NumPy's integers are Rational too, but their numerator is a NumPy integer.
    if isinstance(value, numbers.Rational):
        rational = cast("Any", value)
        return Fraction(int(rational.numerator), int(rational.denominator))
    if isinstance(value, numbers.Real):
        if not math.isfinite(value):
            raise InputError(f"{quoted(value)} is not a finite number")
        # Exact for floats of every width: `float` would round a longdouble.
        return Fraction(*cast("Any", value).as_integer_ratio())
    if isinstance(value, Decimal):
        return _fraction_of_decimal(value)
    if isinstance(value, str):
        return fraction_of_text(value)
    raise InputError(f"{quoted(value)} is not a number")


def non_negative(cell: Any, where: str, *names: str) -> Fraction:
    """The exact value of a cell; InputError if it is negative or no number.

    `where`, with the names in its braces, is the beginning of the message.
    """
    try:
        value = fraction_of(cell)
    except InputError as error:
        place = where.format(*map(quoted, names))
        raise InputError(f"{place}: {error}") from None
    if value < 0:
        place = where.format(*map(quoted, names))
        raise InputError(f"{place} is negative ({quoted(cell)})")
    return value
