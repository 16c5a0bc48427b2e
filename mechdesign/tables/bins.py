"""Bins of a column of numbers, dates or times: contiguous, and decided by exact arithmetic on the text of a cell.

A bin has its lower edge and not its upper one; a last edge that is finite belongs to the last bin. The first edge may
be ``-inf`` and the last one ``inf``; a cell outside the edges has no bin. ``01``, ``1`` and ``1.0`` are one number.
"""

# pyarrow tells too little of its types for the strict mode.
# pyright: basic
from __future__ import annotations

import itertools
import math
import re
import sys
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from mechdesign.core.documents import Record
from mechdesign.core.errors import InputError
from mechdesign.core.numbers import fraction_of_text, quoted
from mechdesign.formats.cells import (
    Encoded,
    arrow_integers,
    arrow_texts,
    encode,
    integers_of,
)

if TYPE_CHECKING:
    from mechdesign.tables.variable import Variable

Kind: TypeAlias = Literal["number", "date", "time", "instant", "clock"]
"""What the cells are: plain numbers; or seconds, of dates, of dates with times of day, of such with their zones (said
in UTC), and of times of day."""

WHAT: Mapping[Kind, str] = {
    "number": "number",
    "date": "date (2024-01-31)",
    "time": "date and time (2024-01-31 08:00)",
    "instant": "date and time with its zone (2024-01-31 08:00+01:00)",
    "clock": "time of day (08:00)",
}

NO_NUMBER, OUTSIDE = "no number", "outside the edges"
"""Stand for the cells that no bin has; no label reads so."""

ORIGIN = datetime(1970, 1, 5, tzinfo=UTC)
"""Seconds are counted from a Monday, so that bins of 7 days are weeks."""

SINCE = int(ORIGIN.timestamp()) * 1_000_000
"""Microseconds of `ORIGIN` as arrow counts them."""

MIDNIGHT = "24:00:00"
"""Where the last bin of times of day ends; no cell reads so."""

DAY, FAR = 86400, 2**62
"""Seconds of a day; microseconds that no date reaches."""

MOST_VALUES = 1000
"""Values of a bin that are kept: of more, those at equally many equal shares of its records."""

_MOMENT = re.compile(
    r"(\d{4}-\d\d-\d\d)?(?:(?:^|(?<=\d)[ T])(\d\d:\d\d(?::\d\d)?)(\.\d{1,18})?(?: ?(Z|[+-]\d\d:?\d\d))?)?",
    re.ASCII,
)


def _moment(text: str) -> tuple[Kind, Fraction]:
    """What kind of moment a text is, in seconds; ValueError if none."""
    found = _MOMENT.fullmatch(text.strip(" \t"))
    if found is None or not any(found.groups()) or (found[4] and not found[1]):
        raise ValueError(text)
    if text == MIDNIGHT:
        return "clock", Fraction(DAY)
    day, clock, part, zone = found.groups()
    whole = f"{day or ORIGIN.date()}T{clock or '00:00'}{zone or 'Z'}"
    try:
        moment = datetime.fromisoformat(whole).astimezone(UTC)
    except OverflowError:  # the year 0 or 10000 in UTC
        raise ValueError(text) from None
    value = Fraction((moment - ORIGIN) // timedelta(seconds=1)) + Fraction(
        f"0{part or '.0'}"
    )
    return (
        "clock" if not day else "date" if not clock else "instant" if zone else "time"
    ), value


def number_of(text: str, kind: Kind) -> Fraction | None:
    """The number that a text says, exactly: seconds where the kind is one of time; None if it says none."""
    try:
        if kind == "number":
            return fraction_of_text(text)
        found, value = _moment(text)
    except (InputError, ValueError):
        return None
    return value if found == kind or {found, kind} == {"date", "time"} else None


def kind_of(texts: Iterable[str], *, most: bool = False) -> Kind | None:
    """The kind of all texts, None if they are not of one; with `most` that of the first that is of any."""
    kinds: list[Kind | None] = [_kind_of(text) for text in texts]
    found = {kind for kind in kinds if kind or not most}
    if found == {"date", "time"}:
        return "time"
    return next(filter(None, kinds), None) if most or len(found) == 1 else None


def _kind_of(text: str) -> Kind | None:
    with suppress(ValueError):
        return "number" if number_of(text, "number") is not None else _moment(text)[0]
    return None


def text_of_number(value: Fraction | float, kind: Kind) -> str:
    """The one text of a number: its shortest decimal, or ISO form with a blank; infinities by name."""
    if isinstance(value, float):
        return str(value)
    if kind == "number":
        return _decimal(value)
    if kind == "clock" and value == DAY:
        return MIDNIGHT
    seconds, rest = divmod(value, 1)
    moment = ORIGIN + timedelta(seconds=seconds)
    clock = moment.time().isoformat() + (_decimal(rest)[1:] if rest else "")
    if kind == "clock":
        return clock
    if kind == "date" and not value % DAY:
        return moment.date().isoformat()
    return f"{moment.date().isoformat()} {clock}{'+00:00' if kind == 'instant' else ''}"


def _decimal(value: Fraction | int) -> str:
    places = 0
    while (10**places) % value.denominator:
        places += 1
    digits = abs(value.numerator) * 10**places // value.denominator
    return f"{Decimal((int(value < 0), tuple(map(int, str(digits))), -places)):f}"


class Bins(Record):
    """Edges of the bins of one column and, except in a public file, what the table has inside of each.

    `values` has the values of every bin, ascending, `counts` their records (or parts of the mass); where a bin has
    more than a thousand values, they are those at as many equal shares of its records.
    """

    kind: Kind = "number"
    edges: Annotated[tuple[str, ...], Field(min_length=2)]
    values: tuple[tuple[str, ...], ...] | None = None
    counts: tuple[tuple[Annotated[int, Field(ge=1)], ...], ...] | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Bins:
        for (low, a), (high, b) in itertools.pairwise(
            zip(self.edges, self.cuts, strict=True)
        ):
            if not a < b:
                raise InputError(
                    f"the edges must ascend, but '{low}' stands before '{high}'"
                )
        sizes = [
            None if parts is None else list(map(len, parts))
            for parts in (self.values, self.counts)
        ]
        if sizes[0] != sizes[1] or len(sizes[0] or self.labels) != len(self):
            raise InputError(
                "values and counts must both have every bin, equally many of each, or be left out"
            )
        for k, texts in enumerate(self.values or ()):
            numbers = [
                number for text in texts if (number := self.number(text)) is not None
            ]
            if numbers != sorted(set(numbers)) or (self.bins_of(texts) != k).any():
                raise InputError(
                    f"the values of the bin {k + 1} must ascend and lie in it"
                )
        return self

    def _edge(self, text: str) -> Fraction | float:
        found = float(text) if text in ("-inf", "inf") else self.number(text)
        if found is None:
            raise InputError(f"the edge '{text}' is no {WHAT[self.kind]}")
        return found

    def __len__(self) -> int:
        return len(self.edges) - 1

    def number(self, text: str) -> Fraction | None:
        """The number of a cell, as `number_of` says."""
        return number_of(text, self.kind)

    @cached_property
    def cuts(self) -> tuple[Fraction | float, ...]:
        """The edges as numbers."""
        return tuple(map(self._edge, self.edges))

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """``[20, 30)``, .. : the symbols of the bins."""
        last = len(self) - 1
        return tuple(
            f"{'(' if low == '-inf' else '['}{low}, {high}{']' if k == last and high != 'inf' else ')'}"
            for k, (low, high) in enumerate(itertools.pairwise(self.edges))
        )

    def bin_of(self, text: str) -> int:
        """The bin of a cell: -1 for no number (or date, ..), -2 outside the edges."""
        value = self.number(text)
        return -1 if value is None else self.bin_at(value)

    def bin_at(self, value: Fraction) -> int:
        """The bin of a number: -2 outside the edges."""
        k = bisect_right(self.cuts, value) - 1
        if k == len(self) and value == self.cuts[-1]:
            return k - 1
        return k if 0 <= k < len(self) else -2

    def bins_of(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """`bin_of` of every text: rounded numbers decide where they can, exact ones where they fall on an edge."""
        rounded = _rounded(texts, self.kind)
        if rounded is None:
            return np.array([self.bin_of(text) for text in texts], dtype=np.int64)
        found, unsure = self._searched(rounded)
        found[unsure] = [
            self.bin_of(texts[at]) for at in np.flatnonzero(unsure).tolist()
        ]
        return found

    def _searched(
        self, rounded: NDArray[Any]
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The bins of doubles, or of microseconds, and which of them only exact numbers can tell.

        Rounding is monotone: numbers that are rounded to different doubles stand in the order of these.
        """
        cut_at = _double if self.kind == "number" else _microseconds
        cuts = np.array([cut_at(cut) for cut in self.cuts])
        found = np.searchsorted(cuts, rounded, side="right") - 1
        unsure = (cuts[np.clip(found, 0, None)] == rounded) | ~np.isfinite(rounded)
        found[(found < 0) | (found == len(self))] = -2
        return found, unsure

    @cached_property
    def marked(self) -> tuple[str, ...]:
        """The texts of sorted cells: the labels, and what stands for those that no bin has."""
        return (*self.labels, OUTSIDE, NO_NUMBER)

    def sorted_in(self, column: Encoded) -> Encoded:
        """The labels of the bins in place of the numbers of a column (unless this was done already)."""
        if column.texts == self.marked:
            return column
        found = self.bins_of(column.texts)
        place = np.where(
            [not text for text in column.texts], -1, found % len(self.marked)
        )
        return Encoded(np.append(place, -1)[column.codes], self.marked)

    def sorted_values(self, column: Any, name: str) -> Encoded | None:
        """`sorted_in` for an arrow column of numbers, dates or moments, without writing them out; None for others."""
        import pyarrow as pa

        types, kind = pa.types, column.type
        number, zone = self.kind == "number", getattr(kind, "tz", None)
        fits = types.is_float64(kind) or types.is_integer(kind)
        if not number:
            fits = types.is_date32(kind) or (
                types.is_timestamp(kind) and kind.unit != "ns"
            )
            fits = (
                fits
                and self.kind != "clock"
                and (self.kind == "instant") == (zone is not None)
            )
        if not fits:
            return None
        at = pa.float64() if number else pa.timestamp("us", zone)
        plain = (
            column.cast(at, safe=False) if number else column.cast(at).cast(pa.int64())
        )
        missing = np.asarray(column.is_null())
        found, unsure = self._searched(
            integers_of(plain.fill_null(0)) - (0 if number else SINCE)
        )
        unsure &= ~missing
        if unsure.any():
            exact = encode(column.take(arrow_integers(np.flatnonzero(unsure))), name)
            found[unsure] = np.array([*map(self.bin_of, exact.texts), -3])[exact.codes]
        return Encoded(
            np.where(missing | (found == -3), -1, found % len(self.marked)), self.marked
        )

    @cached_property
    def representatives(self) -> tuple[str | None, ...] | None:
        """The median of every bin under the table, a value of the column; None for empty bins, and without values."""
        if self.values is None or self.counts is None:
            return None
        pairs = zip(self.values, self.counts, strict=True)
        return tuple(
            texts[middle_of(counts)] if texts else None for texts, counts in pairs
        )

    @property
    def shown(self) -> dict[str, str | None]:
        """`representatives` by the label of their bin."""
        return dict(zip(self.labels, self.representatives or (), strict=False))

    def public(self) -> Bins:
        """Without what is computed from the table but the edges; made anew, for a copy would keep more."""
        return Bins(kind=self.kind, edges=self.edges)


def numbers_of(variable: Variable, part: int = 0) -> tuple[Fraction | None, ...]:
    """The number that every symbol of a variable stands for in one of its columns: of a bin its median in the table.

    Of dates and times these are seconds. None for the empty text, and for a bin whose table is not known.

    Raises
    ------
    InputError
        If the column is not one of numbers, dates or times.
    """
    bins, texts = variable.bins_of(part), [symbol[part] for symbol in variable.symbols]
    if bins is not None:
        kind, texts = bins.kind, [bins.shown.get(text) or "" for text in texts]
    else:
        kind = kind_of([text for text in texts if text])
    if kind is None or not any(texts):
        raise InputError(
            f"the column {quoted(variable.columns[part])} holds symbols that are no numbers"
        )
    return tuple(number_of(text, kind) if text else None for text in texts)


def middle_of(weights: Sequence[int]) -> int:
    """Position of the lower median of things in order that have these weights."""
    sums = list(itertools.accumulate(weights))
    return next(k for k, total in enumerate(sums) if 2 * total >= sums[-1])


def _double(cut: Fraction | float) -> float:
    return float(max(min(cut, sys.float_info.max), -sys.float_info.max))


def _microseconds(cut: Fraction | float) -> int:
    """Since `ORIGIN`, rounded up: a whole number of them is at least `cut` where it is at least this."""
    if isinstance(cut, float):
        return -FAR if cut < 0 else FAR
    return math.ceil(cut * 1_000_000)


def _rounded(texts: Sequence[str], kind: Kind) -> NDArray[Any] | None:
    """All texts as their nearest doubles, or as whole microseconds; None where arrow cannot read one so."""
    import pyarrow as pa

    if kind in ("instant", "clock") or not texts:
        return None
    try:
        if kind == "number":
            return integers_of(arrow_texts(texts).cast(pa.float64()))
        moments = integers_of(
            arrow_texts(texts).cast(pa.timestamp("us")).cast(pa.int64())
        )
    except (pa.ArrowException, UnicodeEncodeError):
        return None
    return moments - SINCE
