"""Numbers as people read them, with few digits and never more favourable than they are."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal

DIGITS = 5
"""Significant digits of a number in a text; the JSON output has all of them."""


def at_most(value: float) -> str:
    """An upper bound: rounded up."""
    return _rounded(value, ROUND_CEILING)


def at_least(value: float) -> str:
    """A lower bound: rounded down."""
    return _rounded(value, ROUND_FLOOR)


def about(value: float) -> str:
    """A plain quantity: rounded to nearest."""
    return _rounded(value, ROUND_HALF_EVEN)


def _rounded(value: float, rounding: str) -> str:
    if not math.isfinite(value):
        return "inf" if value > 0 else "-inf"
    short = Context(prec=DIGITS, rounding=rounding).create_decimal(Decimal(value))
    return f"{float(short):.{DIGITS}g}"
