"""Values as messages and results print them.

A printed bound is never more favourable than the bound itself: upper bounds are rounded up and
lower bounds down. Exponentials of budgets are correctly rounded decimals before that. For example,
0.123452 is 0.12346 as an upper bound (`at_most`), 0.12345 as a lower one (`at_least`), and 0.12345
as a plain quantity (`about`).
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import SupportsFloat

MOST_QUOTED = 60
"""Longest text, in characters, that an error message repeats in full."""

DIGITS = 5
"""Significant digits of a number in a text. The JSON output has all digits."""

BLANK = "\\x20"
"""A blank that could not be seen."""

BUDGET_DIGITS = 10
"""Most digits of a budget that is printed as it is. Longer ones are results of arithmetic and
are rounded up."""

ROUNDED_BUDGET_DIGITS = DIGITS + 1
"""Significant digits of a budget that is too long to be printed as it is."""

EXACT = Context(prec=60)
"""Precision of the exponential of a budget, before its rounding to `DIGITS` digits."""

STATED = "stated"
"""The scope of a bound that a file states, and that nothing has proven again."""


def quoted(value: object) -> str:
    """`value` in quotes, with control characters escaped and long texts cut."""
    text = value if isinstance(value, str) else str(value)
    if len(text) > MOST_QUOTED:
        text = text[: MOST_QUOTED - 3] + "..."
    # `repr` escapes what could forge a line of output or move the cursor of a terminal.
    return _with_visible_marks(repr(text))


def seen(text: str) -> str:
    """`text` in quotes as `quoted` writes it, and with the blanks escaped that cannot be seen."""
    if len(text) > MOST_QUOTED:
        return quoted(text)
    return f"'{escaped(text)}'"


def escaped(text: str) -> str:
    """`text` such that no two texts look alike.

    Escaped are characters that would move a terminal's cursor or have no width, blanks at both
    ends and behind other blanks, and accents that are characters of their own.
    """
    # Nearly every text has none of this.
    plain = text.isascii() and text.isprintable()
    if plain and "  " not in text and text == text.strip():
        return text
    end = len(text.rstrip(" "))
    characters: list[str] = []
    for place, character in enumerate(text):
        is_hidden = place == 0 or place >= end or text[place - 1] == " "
        if character == " " and is_hidden:
            characters.append(BLANK)
        elif character.isprintable():
            characters.append(character)
        else:
            characters.append(character.encode("unicode_escape").decode())
    return _with_visible_marks("".join(characters))


def _with_visible_marks(text: str) -> str:
    """`text` with its accents as escapes where they are characters of their own.

    ``e`` and a combining accent look like the one character that both make together.
    """
    # The usual case, and the only one of most languages.
    if unicodedata.is_normalized("NFC", text):
        return text
    characters: list[str] = []
    for character in text:
        if unicodedata.combining(character):
            character = character.encode("unicode_escape").decode()
        characters.append(character)
    return "".join(characters)


def listed(
    values: Sequence[str], most: int = 8, *, quote: Callable[[str], str] = quoted
) -> str:
    """The first `most` values in quotes (`quoted` or `seen`), and the number of the others."""
    shown = ", ".join(quote(value) for value in values[:most])
    if len(values) > most:
        shown += f" and {len(values) - most} more"
    return shown


def joined_name(values: Sequence[str]) -> str:
    """The name of values that count as one."""
    return " or ".join(value or '""' for value in values)


def at_most(value: float | Decimal, digits: int = DIGITS) -> str:
    """An upper bound, rounded up."""
    return _rounded(value, ROUND_CEILING, digits)


def at_least(value: float | Decimal, digits: int = DIGITS) -> str:
    """A lower bound, rounded down."""
    return _rounded(value, ROUND_FLOOR, digits)


def about(value: SupportsFloat) -> str:
    """A plain quantity, rounded to nearest."""
    return _rounded(float(value), ROUND_HALF_EVEN)


def percent_of(level: float) -> str:
    """A confidence level such as ``95 %``, rounded down."""
    return f"{at_least(Decimal(repr(level)) * 100)} %"


def order_of(order: float) -> str:
    """An order as it stands in names: ``2``, ``2.5``, ``inf``."""
    return repr(float(order)).removesuffix(".0")


def budget(nats: float) -> str:
    """A promised budget: as it is if that is short, otherwise rounded up.

    A larger budget promises less, so the printed promise still holds.
    """
    if not math.isfinite(nats):
        return at_most(nats)
    # `repr` gives the shortest decimal that names the double, which is what the user typed.
    shortest = Decimal(repr(nats)).normalize()
    if len(shortest.as_tuple().digits) > BUDGET_DIGITS:
        return at_most(nats, ROUNDED_BUDGET_DIGITS)
    return repr(nats).removesuffix(".0")


def distance_at_most(nats: float, power: int) -> str:
    """(exp(budget) - 1)^power, rounded up."""
    # `Decimal` errs by less than one unit of the last digit, so the next number is above the
    # true value. The same holds in the next two functions.
    distance = EXACT.subtract(EXACT.next_plus(EXACT.exp(Decimal(nats))), 1)
    return at_most(EXACT.next_plus(EXACT.power(distance, power)))


def factor_at_most(nats: float, digits: int = DIGITS) -> str:
    """exp(budget), rounded up."""
    return at_most(EXACT.next_plus(EXACT.exp(Decimal(nats))), digits)


def factor_at_least(nats: float, digits: int = DIGITS) -> str:
    """exp(-budget), rounded down; 0 for an infinite budget."""
    # Unlike a minus sign, `copy_negate` does not round the exact digits of a double.
    factor = EXACT.next_minus(EXACT.exp(Decimal(nats).copy_negate()))
    # The number below exp(-inf) = 0 is negative.
    return at_least(max(factor, Decimal(0)), digits)


def _rounded(value: float | Decimal, rounding: str, digits: int = DIGITS) -> str:
    """`value` with so many significant digits, rounded in the direction of `decimal`'s name."""
    if not math.isfinite(value):
        return "inf" if value > 0 else "-inf"
    # A double is a decimal exactly, so the rounding has the wanted direction.
    short = Context(prec=digits, rounding=rounding).create_decimal(Decimal(value))
    return f"{float(short):.{digits}g}"
