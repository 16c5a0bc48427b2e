"""Values as messages and results print them.

A printed bound is never more favourable than the bound itself: upper bounds are rounded up and
lower bounds down. Exponentials of budgets are correctly rounded decimals before that. For example,
0.123452 is 0.12346 as an upper bound (`at_most`), 0.12345 as a lower one (`at_least`), and 0.12345
as a plain quantity (`about`).
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Collection, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import Any, SupportsFloat

MOST_QUOTED = 60
"""Longest text, in characters, that an error message repeats in full."""

DIGITS = 5
"""Significant digits of a number in a text. The JSON output has all digits."""

DOUBLE_DIGITS = 17
"""Digits that tell every double from its neighbours."""

BLANK = "\\x20"
"""A blank that could not be seen."""

TENTH = Decimal("0.1")
"""The last decimal of a percentage."""

LARGE_SHARE = 1e6
"""The least share that has no decimals: a percentage of so many digits would tell no more."""

BUDGET_DIGITS = 10
"""Most digits of a budget that is printed as it is. Longer ones are results of arithmetic and
are rounded up."""

ROUNDED_BUDGET_DIGITS = DIGITS + 1
"""Significant digits of a budget that is too long to be printed as it is."""

EXACT = Context(prec=60)
"""Precision of the exponential of a budget, before its rounding to `DIGITS` digits."""

STATED = "stated"
"""The scope of a bound that a file states, and that nothing has proven again."""


TYPED = str.maketrans(
    dict.fromkeys("\u2018\u2019\u201b\u02bc\u2032\u00b4", "'")
    | dict.fromkeys("\u201c\u201d\u201e", '"')
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-")
)
"""Apostrophes, quotes and dashes that word processors and telephones write for those of a keyboard:
they make two people of one O'Neil."""

MINUS_ZERO = re.compile(r"-(0+(\.0*)?)")
"""A zero with a minus, which rounding writes: one number and two symbols."""


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


def look(text: str) -> str:
    """What a reader sees of a text."""
    if zero := MINUS_ZERO.fullmatch(text):
        return zero[1]
    # Nearly every text is its own look.
    if text.isascii() and "  " not in text and text == text.strip():
        return text
    kept: list[str] = []
    # Before the normal form, which makes a blank and an accent of an acute.
    for character in unicodedata.normalize("NFKC", text.translate(TYPED)):
        # Signs without width, such as the zero-width space and the soft hyphen.
        if unicodedata.category(character) != "Cf":
            kept.append(character)
    return " ".join("".join(kept).split())


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


def free_name(name: str, taken: Collection[str]) -> str:
    """A name with as many "_" behind it as it takes to be none of `taken`: a column of the user's
    beside headings or keys of ours.
    """
    while name in taken:
        name += "_"
    return name


_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)

_BIN = re.compile(r"[\[(](\S+), \S+[\])]")
"""A bin of numbers, with its lower edge."""


def reading_order(rows: Sequence[Sequence[str]]) -> list[int]:
    """The places of rows of texts in the order in which people read them.

    A column whose texts are all numbers, or bins of numbers, is ordered by them, with missing cells
    (the empty text) at its end; any other by the first appearance of its texts. Without such a
    column, rows stay as they stand, and so do rows of different lengths. For example, the one
    column ("10", "9") has the order [1, 0].
    """
    if len(set(map(len, rows))) != 1:
        return list(range(len(rows)))
    columns = [_reading_keys(column) for column in zip(*rows, strict=True)]
    if not any(are_numbers for _, are_numbers in columns):
        return list(range(len(rows)))
    keys = list(zip(*(keys for keys, _ in columns), strict=True))
    return sorted(range(len(rows)), key=keys.__getitem__)


def _reading_keys(texts: Sequence[str]) -> tuple[list[Any], bool]:
    """A key for every text of a column to order it by, and whether these are numbers."""
    numbers = [_number_in(text) for text in texts]
    if any(texts) and None not in numbers:
        return numbers, True
    places: dict[str, int] = {}
    for text in texts:
        places.setdefault(text, len(places))
    return [places[text] for text in texts], False


def _number_in(text: str) -> Decimal | None:
    """The number of a text, of a bin its lower edge, of a missing cell infinity; else None."""
    if not text:
        return Decimal("inf")
    of_bin = _BIN.fullmatch(text)
    number = text if of_bin is None else of_bin[1]
    if of_bin is not None and number == "-inf":
        return Decimal("-inf")
    return Decimal(number) if _NUMBER.fullmatch(number) else None


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


def about_to(value: float, error: float) -> str:
    """An estimate, rounded to nearest, with digits enough to show two of its standard error."""
    digits = DIGITS
    if value and error:
        orders = math.floor(math.log10(abs(value))) - math.floor(math.log10(error))
        digits = min(max(digits, orders + 2), DOUBLE_DIGITS)
    return _rounded(value, ROUND_HALF_EVEN, digits)


def percent_of(level: float) -> str:
    """A confidence level such as ``95 %``, rounded down."""
    return f"{at_least(Decimal(repr(level)) * 100)} %"


def in_population(level: float | None, start: str = " ") -> str:
    """Where a promise at this level holds, in words after `start`; without a level, on the table,
    nothing.
    """
    if level is None:
        return ""
    return f"{start}in the population ({percent_of(level)} confidence)"


def percent(
    share: float, rounding: str = ROUND_HALF_EVEN, *, step: Decimal = TENTH
) -> str:
    """A share of one as a percentage with one decimal, or with those of another `step`:
    ``8.8 %``, ``<0.1 %``.

    Only a share of exactly 0 or 1 is written as 0 or 100 %. A relative error may be any number of
    times 100 %; a large one has the usual digits: ``2.75e+08 %``.
    """
    if share in (0, 1):
        # Not of a negative zero.
        return f"{int(share) * 100} %"
    if share >= LARGE_SHARE:
        return f"{_rounded(Decimal(share) * 100, rounding)} %"
    # `Decimal` of a double is exact, so only `quantize` rounds, in the direction asked for.
    rounded = (Decimal(share) * 100).quantize(step, rounding=rounding)
    # "0.0 %" of a share above 0, or "100.0 %" of one below 1, would claim a certainty.
    if rounded <= 0 < share:
        if rounding == ROUND_FLOOR:
            return ">0 %"
        return f"<{step} %"
    if rounded >= 100 and share < 1:
        if rounding == ROUND_CEILING:
            return "<100 %"
        return f">{100 - step} %"
    return f"{rounded} %"


def about_percent(share: float) -> str:
    """An estimated share in words: ``about 80 %``, ``less than 1 %``, ``more than 99 %``."""
    text = percent(share, step=Decimal(1))
    if text.startswith("<"):
        return f"less than {text[1:]}"
    if text.startswith(">"):
        return f"more than {text[1:]}"
    return f"about {text}"


def percent_at_most(share: float, *, step: Decimal = TENTH) -> str:
    """An upper bound on a share: rounded up."""
    return percent(share, ROUND_CEILING, step=step)


def percent_at_least(share: float) -> str:
    """A lower bound on a share: rounded down."""
    return percent(share, ROUND_FLOOR)


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
