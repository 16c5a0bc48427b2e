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
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from fractions import Fraction
from reprlib import repr as brief
from typing import Any, TypeVar, cast

from mechdesign.core.balls import log_at_most
from mechdesign.core.errors import InputError
from mechdesign.core.rationals import fraction_of_text
from mechdesign.core.wording import quoted

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
