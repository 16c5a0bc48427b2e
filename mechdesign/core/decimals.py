"""Numbers as people read them, with few digits and never more favourable than they are."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal

DIGITS = 5
"""Significant digits of a number in a text; the JSON output has all of them."""

BUDGET_DIGITS = 10
"""Digits up to which a budget is written as it is; longer ones come from arithmetic and are rounded up."""

EXACT = Context(prec=60)
"""Digits of exp of a budget, correctly rounded, before it is rounded to `DIGITS` in its own direction."""


def at_most(value: float | Decimal) -> str:
    """An upper bound: rounded up."""
    return _rounded(value, ROUND_CEILING)


def at_least(value: float | Decimal) -> str:
    """A lower bound: rounded down."""
    return _rounded(value, ROUND_FLOOR)


def about(value: float) -> str:
    """A plain quantity: rounded to nearest."""
    return _rounded(value, ROUND_HALF_EVEN)


def _rounded(value: float | Decimal, rounding: str, digits: int = DIGITS) -> str:
    if not math.isfinite(value):
        return "inf" if value > 0 else "-inf"
    short = Context(prec=digits, rounding=rounding).create_decimal(Decimal(value))
    return f"{float(short):.{digits}g}"


def budget(nats: float) -> str:
    """A promised budget: as it was given if that is short, otherwise rounded up, for less is promised then."""
    shortest = Decimal(repr(nats)) if math.isfinite(nats) else None
    if shortest is None or len(shortest.normalize().as_tuple().digits) > BUDGET_DIGITS:
        return _rounded(nats, ROUND_CEILING, DIGITS + 1)
    return repr(nats).removesuffix(".0")


def distance_at_most(nats: float, power: int) -> str:
    """(exp of a budget - 1)^power, rounded up."""
    distance = EXACT.subtract(EXACT.next_plus(EXACT.exp(Decimal(nats))), 1)
    return at_most(EXACT.next_plus(EXACT.power(distance, power)))


def factor_at_most(nats: float) -> str:
    """exp of a budget, rounded up."""
    return at_most(EXACT.next_plus(EXACT.exp(Decimal(nats))))


def factor_at_least(nats: float) -> str:
    """exp of minus a budget, rounded down."""
    return at_least(EXACT.next_minus(EXACT.exp(-Decimal(nats))))
