"""Checks of arguments, which callers and the command line give in many forms.

A function here takes what a caller has given and returns it in the one form that the rest of the
code uses, or raises `InputError` with the name of the argument. Budgets in words become nats,
rounded towards less leakage: a factor of at most 2 is the largest double at or below log(2).

For example::

    list_argument("edges", [0, 10], "numbers")    (0, 10); the text "0, 10" is refused
    number("gap", 1, "of at least 0")             1.0; the text "1" and True are refused
    share_of("level", "90%")                      9/10, as of 0.9 and "0.9"
    at_most_times(2), at_least_times(0.5)         0.6931.. nats, log(2) rounded down
    at_most_times(1)                              InputError: at_most_times (1) must be above 1

*Exact numbers.* A text counts as the decimal that it is: ``fraction_of("0.1")`` is 1/10. A float
counts as its bits: ``fraction_of(0.1)`` is 3602879701896397/36028797018963968. What is no finite
number is refused, and so is a text with an exponent that would fill the memory.
"""

from __future__ import annotations

import math
import numbers
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from reprlib import repr as brief
from typing import Any, TypeVar, cast

from mechdesign.core.balls import log_at_most
from mechdesign.core.errors import InputError
from mechdesign.core.wording import quoted

# ------------------------------------------------------------------------ exact numbers

LARGEST_EXPONENT = 400
"""Largest power of ten, either way, of a number read from text.

It covers every double, and it keeps '1e999999999' from becoming an integer of a billion digits.
"""

LONGEST_NUMBER = 1000
"""Longest text of a number, in characters. No measurement has more digits."""

HOW_WRITTEN = "write numbers as 1800.5, without a decimal comma, separators, units or value labels"
"""The remedy for a cell that is no number."""

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


def finite_number(text: str) -> float | None:
    """The finite number that a text is, as Python reads it; None if it is none."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


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


# ---------------------------------------------------------------------------- arguments

Named = TypeVar("Named", bound=Hashable)


def list_argument(name: str, values: object, example: str) -> tuple[Any, ...]:
    """Return the elements of a list argument; refuse texts and what cannot be iterated.

    `example` says in the message what the elements are.
    """
    # A text can be iterated, but its characters are never the elements that were meant.
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InputError(f"{name} ({brief(values)}) must be a list of {example}")
    return tuple(cast("Iterable[Any]", values))


def number(name: str, value: Any, allowed: str) -> float:
    """Return an argument as a float; refuse texts and truth values.

    `allowed` ends the message, as in "must be a number of at least 0". The range is not checked.
    """
    # `float` itself would accept "12" and True.
    if not isinstance(value, bool | str | bytes):
        # An integer beyond the largest double raises OverflowError.
        with suppress(TypeError, ValueError, OverflowError):
            return float(value)
    raise InputError(f"{name} ({value!r}) must be a number {allowed}")


def valid_text(text: object, what: str) -> str:
    """Return `text` if it is a string that UTF-8 can encode; `what` names it in messages."""
    if not isinstance(text, str):
        raise InputError(
            f"{what} must be text, not {type(text).__name__} ({quoted(text)})"
        )
    # Lone surrogates come from file names and from JSON escapes such as "\ud800".
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(
            f"{what} {quoted(text)} is not valid Unicode text (lone surrogate)"
        ) from None
    return text


def check_texts(rows: Iterable[Sequence[object]], what: str) -> None:
    """Refuse rows of texts of which one is none (`valid_text`); each text is looked at once."""
    known: set[str] = set()
    for row in rows:
        for text in row:
            if not isinstance(text, str) or text not in known:
                known.add(valid_text(text, what))


def repeated(values: Iterable[Named]) -> Named | None:
    """The first value that occurs more than once; None if all values differ."""
    for value, times in Counter(values).items():
        if times > 1:
            return value
    return None


def share_of(name: str, value: object) -> Fraction:
    """A number strictly between 0 and 1, exactly as written (90% is 0.9).

    A float counts as the shortest decimal that names it.
    """
    return _number_between(
        name,
        value,
        low=Fraction(0),
        high=Fraction(1),
        allowed="strictly between 0 and 1, as in 0.9 or 90%",
    )


def at_most_times(value: object) -> float:
    """The largest budget, in nats, whose exponential is at most a factor above 1."""
    factor = _number_between(
        "--at-most-times",
        value,
        low=Fraction(1),
        high=None,
        allowed="above 1, as in 2",
    )
    # Rounded down: the exponential of the budget must not exceed the factor.
    return log_at_most(factor)


def at_least_times(value: object) -> float:
    """The largest budget e, in nats, such that exp(-e) is at least a factor below 1."""
    # exp(-e) >= share exactly if e <= log(1 / share).
    return log_at_most(1 / share_of("--at-least-times", value))


def _number_between(
    name: str, value: object, *, low: Fraction, high: Fraction | None, allowed: str
) -> Fraction:
    """A decimal or a percentage strictly between two limits, `high` being none where it is None.

    `allowed` says in messages what the limits are.
    """
    # `str` of a float is the shortest decimal that names it, so 0.9 is 9/10 and not its bits.
    text = str(value).strip()
    unit = 100 if text.endswith("%") else 1
    try:
        number = fraction_of_text(text.removesuffix("%")) / unit
    except InputError:
        raise InputError(
            f"{name} ({quoted(value)}) must be a number {allowed}"
        ) from None
    if number <= low or (high is not None and number >= high):
        raise InputError(f"{name} ({value}) must be {allowed}")
    return number
