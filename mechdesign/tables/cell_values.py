"""What the cells of a table mean: empty ones, unknown ones, what looks alike, and numbers.

A table is counted by these rules, and a file must be released by the same ones. So the joint table
carries them to the channel, and the channel to `apply`, whose manifest states them for `check` and
`estimate`.

*Numbers*, dates and times are exact rationals. `kind_of` finds the common kind of a column's cells,
`number_of` reads a cell of this kind, and `text_of_number` writes a number back. Times are seconds
since `ORIGIN`: ``1970-01-06 00:00`` is 86400. ``01``, ``1`` and ``1.0`` are spellings of one
number, and only ``1`` is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Literal, TypeAlias

from mechdesign.core.arguments import fraction_of_text
from mechdesign.core.documents import Matching, Record
from mechdesign.core.errors import InputError
from mechdesign.core.wording import quoted
from mechdesign.formats.cells import CellForm, Normalisation

# -------------------------------------------------------------------------------- rules

REFUSE: Literal["refuse"] = "refuse"
SYMBOL: Literal["symbol"] = "symbol"
DROP: Literal["drop"] = "drop"
MARGINAL = "marginal"
NEAREST = "nearest"
OUTPUT = "output:"

MISSING_WORDS = "refuse, symbol, drop, marginal or output:LABEL"
"""The values of ``--missing``, for messages."""

DrawnRule = Annotated[
    str, Matching(r"refuse|marginal|output:[\s\S]+", "refuse, marginal or output:LABEL")
]
"""What is released for a record with an empty cell."""

UnknownRule = Annotated[
    str,
    Matching(
        r"refuse|marginal|nearest|output:[\s\S]+",
        "refuse, marginal, nearest or output:LABEL",
    ),
]
"""What is released for a record whose symbol is unknown."""


Counted: TypeAlias = Literal["refuse", "symbol", "drop"]
"""What becomes of a record with an empty cell when a table is counted."""


class CellRules(Record):
    """How cells are read and released.

    `counted` says what became of records with an empty cell when the table was counted, and
    `left_out` how many of them were dropped. `missing`
    and `unknown` say what is released for a record whose cell is empty, or has a symbol
    that the channel does not know (``nearest``: a draw of the nearest known row). `normalise`,
    `trim` and `missing_codes` are those of `CellForm`.
    """

    counted: Counted = "refuse"
    left_out: int = 0
    missing: DrawnRule = REFUSE
    unknown: UnknownRule = REFUSE
    normalise: Normalisation = "none"
    trim: bool = False
    missing_codes: tuple[str, ...] = ()

    @property
    def cell_form(self) -> CellForm:
        """The form in which cells are compared."""
        return CellForm(
            normalise=self.normalise,
            trim=self.trim,
            missing_codes=self.missing_codes,
        )

    def left_out_of_table(self, *, is_public: bool) -> str:
        """That the table of the design lacks records with an empty cell; empty if it has all.

        A public channel does not know their number.
        """
        if self.left_out:
            noun = "1 record" if self.left_out == 1 else f"{self.left_out:,} records"
            return f"the design left out {noun} with an empty cell"
        if is_public and self.counted == DROP:
            return "the design may have left out records with an empty cell"
        return ""

    @property
    def reading(self) -> dict[str, Any]:
        """Arguments of `Joint.from_table` that read a table as that of the design was read."""
        return {
            "missing": self.counted,
            "normalise": self.normalise,
            "trim": self.trim,
            "missing_codes": self.missing_codes,
        }


NO_RULES = CellRules()


def check_missing(missing: str) -> None:
    """Refuse an unknown way to treat missing cells."""
    if missing in (REFUSE, SYMBOL, DROP, MARGINAL) or _is_output(missing):
        return
    raise InputError(f"--missing ({quoted(missing)}) must be {MISSING_WORDS}")


def counted_as(missing: str) -> Counted:
    """What becomes of a record with a missing cell in a table: refuse, symbol or drop.

    One that `apply` draws from the marginal, or gives a fixed output, tells nothing of the
    useful column, and is not counted.
    """
    if missing in (REFUSE, SYMBOL):
        return missing
    return DROP


def released_as(missing: str) -> str:
    """What `apply` releases for a missing cell, where the table was read in this way."""
    # A symbol of its own is one that the channel knows, and dropped records are not expected again.
    return REFUSE if missing in (SYMBOL, DROP) else missing


def _is_output(missing: str) -> bool:
    """Whether a fixed output takes the place of missing cells."""
    return missing.startswith(OUTPUT) and missing != OUTPUT


# ------------------------------------------------------------------------------ numbers

Kind: TypeAlias = Literal["number", "date", "time", "instant", "clock"]
"""The kind of a cell.

'number' is a plain number, 'date' a date, 'time' a date with a time of day, 'instant' a date and
time with its zone, and 'clock' a time of day.
"""

WHAT: Mapping[Kind, str] = {
    "number": "number",
    "date": "date (2024-01-31)",
    "time": "date and time without a zone (2024-01-31 08:00)",
    "instant": "date and time with its zone (2024-01-31 08:00+01:00)",
    "clock": "time of day (08:00)",
}
"""The kinds in words."""

ORIGIN = datetime(1970, 1, 5, tzinfo=UTC)
"""Seconds count from a Monday, so that bins of 7 days are weeks."""

DAY = 86400
"""Seconds of a day."""

MIDNIGHT = "24:00:00"
"""The end of the last bin of times of day, which is not a time of a cell."""

_MOMENT = re.compile(
    r"(\d{4}-\d\d-\d\d)?"  # date
    r"(?:(?:^|(?<=\d)[ T])(\d\d:\d\d(?::\d\d)?)"  # time of day, after a blank or T
    r"(\.\d{1,18})?"  # fraction of a second
    r"(?: ?(Z|[+-]\d\d:?\d\d))?)?",  # zone
    re.ASCII,
)


def kind_of(texts: Iterable[str], *, most: bool = False) -> Kind | None:
    """The common kind of all texts, None if there is none.

    With `most`, texts of no kind are skipped, and the kind of the first other one decides.
    """
    kinds: list[Kind | None] = []
    for text in texts:
        kind = _kind_of(text)
        if kind is not None or not most:
            kinds.append(kind)
    different = set(kinds)
    # A date is the time of its midnight.
    if different == {"date", "time"}:
        return "time"
    if not kinds or (len(different) > 1 and not most):
        return None
    return kinds[0]


def number_of(text: str, kind: Kind) -> Fraction | None:
    """The exact number of a cell, in seconds for times; None if it has none of this kind."""
    if kind == "number":
        try:
            return fraction_of_text(text)
        except InputError:
            return None
    try:
        text_kind, seconds = _moment(text)
    except ValueError:
        return None
    # A date is also the time of its midnight, and a time may stand in a column of dates.
    if text_kind == kind or {text_kind, kind} == {"date", "time"}:
        return seconds
    return None


def text_of_number(value: Fraction | float, kind: Kind) -> str:
    """The one text of a number: its shortest decimal, ISO form with a blank, or ``inf``.

    Only the infinities are floats.
    """
    if isinstance(value, float):
        return str(value)
    if kind == "number":
        return _decimal(value)
    if kind == "clock" and value == DAY:
        return MIDNIGHT
    seconds, fraction = divmod(value, 1)
    moment = ORIGIN + timedelta(seconds=seconds)
    day = moment.date().isoformat()
    clock = moment.time().isoformat()
    if fraction:
        clock += _decimal(fraction).removeprefix("0")
    if kind == "clock":
        return clock
    if kind == "date" and not value % DAY:
        return day
    if kind == "instant":
        return f"{day} {clock}+00:00"
    return f"{day} {clock}"


def _kind_of(text: str) -> Kind | None:
    """The kind of one text, None if it has none."""
    if number_of(text, "number") is not None:
        return "number"
    try:
        kind, _ = _moment(text)
    except ValueError:
        return None
    return kind


def _moment(text: str) -> tuple[Kind, Fraction]:
    """The kind of a moment, and its seconds.

    Raises
    ------
    ValueError
        If the text is not a moment.
    """
    match = _MOMENT.fullmatch(text.strip(" \t"))
    if match is None:
        raise ValueError(text)
    day, clock, fraction, zone = match.groups()
    # All parts of the pattern are optional.
    if day is None and clock is None:
        raise ValueError(text)
    # A zone may change with the date, so a time of day alone has none.
    if zone is not None and day is None:
        raise ValueError(text)
    if text == MIDNIGHT:
        return "clock", Fraction(DAY)
    # A time of day is read on the day of `ORIGIN`, so that its seconds count from midnight.
    iso = f"{day or ORIGIN.date()}T{clock or '00:00'}{zone or 'Z'}"
    try:
        moment = datetime.fromisoformat(iso).astimezone(UTC)
    except OverflowError:
        # The year is 0 or 10000 in UTC.
        raise ValueError(text) from None
    # `datetime` ends at microseconds, so the fraction is added exactly.
    seconds = Fraction((moment - ORIGIN) // timedelta(seconds=1))
    if fraction is not None:
        seconds += Fraction(f"0{fraction}")
    return _kind_of_parts(day, clock, zone), seconds


def _kind_of_parts(day: str | None, clock: str | None, zone: str | None) -> Kind:
    """The kind of a moment by the parts that it has."""
    if day is None:
        return "clock"
    if clock is None:
        return "date"
    return "time" if zone is None else "instant"


def _decimal(value: Fraction | int) -> str:
    """A rational number with a power of ten as a denominator, written out."""
    # The denominator is a product of twos and fives, so some power of ten is a multiple of it.
    places = 0
    while (10**places) % value.denominator:
        places += 1
    # From its digits, because `Decimal` rounds the result of a division.
    digits = abs(value.numerator) * 10**places // value.denominator
    sign = int(value < 0)
    return f"{Decimal((sign, tuple(map(int, str(digits))), -places)):f}"
