"""Numbers of the outside world as exact rationals; numbers and texts as people read them, never too favourable."""

from __future__ import annotations

import math
import numbers
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from reprlib import repr as brief
from typing import Any, SupportsFloat, TypeVar, cast

from mechdesign.core.balls import log_at_most
from mechdesign.core.errors import InputError

Named = TypeVar("Named", bound=Hashable)

MOST_QUOTED = 60
"""Longest text, in characters, that an error message repeats in full."""

LARGEST_EXPONENT = 400
"""Largest power of ten, either way, of a number read from text: it covers every double, and keeps
'1e999999999' from being written out as an integer of a billion digits."""

LONGEST_NUMBER = 1000
"""Longest text of a number, in characters; more digits than this are not a measurement."""

_DECIMAL = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,9})?", re.ASCII)
_NOT_FINITE = {"nan", "inf", "infinity"}


def quoted(value: object) -> str:
    """`value` as an error message shows it: quoted, control characters escaped, cut when long."""
    text = value if isinstance(value, str) else str(value)
    return repr(text if len(text) <= MOST_QUOTED else text[: MOST_QUOTED - 3] + "...")


def listed(values: Sequence[str], most: int = 8) -> str:
    """Quoted values with commas between them, the rest of a long list as a number."""
    shown = ", ".join(quoted(v) for v in values[:most])
    return shown + (f" and {len(values) - most} more" if len(values) > most else "")


def several(name: str, values: object, example: str) -> tuple[Any, ...]:
    """An argument that is a list, as a tuple; else InputError, for a text, too."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InputError(f"{name} ({brief(values)}) must be a list of {example}")
    return tuple(cast("Iterable[Any]", values))


def number(name: str, value: Any, allowed: str) -> float:
    """An argument as a float, else InputError; texts and truth values are none."""
    if not isinstance(value, bool | str | bytes):
        with suppress(TypeError, ValueError, OverflowError):
            return float(value)
    raise InputError(f"{name} ({value!r}) must be a number {allowed}")


def valid_text(text: object, what: str) -> str:
    """Return `text` if it is a string that UTF-8 can carry, else raise InputError."""
    if not isinstance(text, str):
        raise InputError(
            f"{what} must be text, not {type(text).__name__} ({quoted(text)})"
        )
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(
            f"{what} {quoted(text)} is not valid Unicode text (lone surrogate)"
        ) from None
    return text


def repeated(values: Iterable[Named]) -> Named | None:
    """The first value that occurs more than once; None if all are different."""
    return next((value for value, times in Counter(values).items() if times > 1), None)


def fraction_of_text(text: str) -> Fraction:
    """The exact value of a decimal such as ``12``, ``-0.25`` or ``1e-3``, blanks aside; ``1/3`` is no number here."""
    body = text.strip(" \t")
    if body.lower().lstrip("+-") in _NOT_FINITE:
        raise InputError(f"{quoted(body)} is not a finite number")
    if len(body) > LONGEST_NUMBER or not _DECIMAL.fullmatch(body):
        raise InputError(
            f"{quoted(text)} is not a number" if body else "the cell is empty"
        )
    return _fraction_of_decimal(Decimal(body))


def _fraction_of_decimal(value: Decimal) -> Fraction:
    if not value.is_finite():
        raise InputError(f"{quoted(value)} is not a finite number")
    exponent = value.as_tuple().exponent
    if value and (
        value.adjusted() > LARGEST_EXPONENT or int(exponent) < -2 * LARGEST_EXPONENT
    ):
        raise InputError(
            f"{quoted(value)} is too large or too small to be kept exactly"
        )
    return Fraction(value) if value else Fraction(0)


def fraction_of(value: Any) -> Fraction:
    """The exact rational value of a number; a float is what its bits say (`float.as_integer_ratio`)."""
    if type(value).__name__ in ("bool", "bool_"):  # numpy's too, without importing it
        raise InputError(f"{quoted(value)} is a truth value, not a number")
    if isinstance(value, numbers.Rational):  # integers and fractions, numpy's too
        return Fraction(
            int(cast("Any", value).numerator), int(cast("Any", value).denominator)
        )
    if isinstance(value, numbers.Real):
        if not math.isfinite(value):
            raise InputError(f"{quoted(value)} is not a finite number")
        return Fraction(*cast("Any", value).as_integer_ratio())
    if isinstance(value, Decimal):
        return _fraction_of_decimal(value)
    if isinstance(value, str):
        return fraction_of_text(value)
    raise InputError(f"{quoted(value)} is not a number")


def share_of(name: str, value: object) -> Fraction:
    """A number strictly between 0 and 1, as written (90% is 0.9); a float is the shortest decimal that names it."""
    return _within(
        name,
        value,
        "strictly between 0 and 1, as in 0.9 or 90%",
        Fraction(0),
        Fraction(1),
    )


def at_most_times(value: object) -> float:
    """The largest budget (nats) with exp of it at most a factor above 1."""
    return log_at_most(
        _within("--at-most-times", value, "above 1, as in 2", Fraction(1))
    )


def at_least_times(value: object) -> float:
    """The largest budget (nats) with exp of minus it at least a factor below 1."""
    return log_at_most(1 / share_of("--at-least-times", value))


def _within(
    name: str, value: object, allowed: str, low: Fraction, high: Fraction | None = None
) -> Fraction:
    text = str(value).strip()
    try:
        number = fraction_of_text(text.removesuffix("%")) / (
            100 if text.endswith("%") else 1
        )
    except InputError:
        raise InputError(
            f"{name} ({quoted(value)}) must be a number {allowed}"
        ) from None
    if low < number and (high is None or number < high):
        return number
    raise InputError(f"{name} ({value}) must be {allowed}")


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


def percent_of(level: float) -> str:
    """A level of confidence, ``95 %``, never more than it is."""
    return f"{at_least(Decimal(repr(level)) * 100)} %"


def order_of(order: float) -> str:
    """An order as it is, for names: ``2``, ``2.5``, ``inf``."""
    return repr(float(order)).removesuffix(".0")


def about(value: SupportsFloat) -> str:
    """A plain quantity: rounded to nearest."""
    return _rounded(float(value), ROUND_HALF_EVEN)


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
    """exp of minus a budget, rounded down; 0 for an infinite one."""
    return at_least(
        max(EXACT.next_minus(EXACT.exp(Decimal(nats).copy_negate())), Decimal(0))
    )
