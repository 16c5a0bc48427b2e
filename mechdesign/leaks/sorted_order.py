"""What the records tell when somebody sorts them by a column that stays beside the release.

A file that was shuffled by hand tells nothing by its order. But a serial number that was given
while the records stood in the order of their jobs brings that order back: sorted by it, the first
hundred are the clerks, and the next hundred the nurses.

`SortedOrders` takes an evenly spread sample of the records (`add`), with the texts of the columns
that stay and of those that are protected. For each pair `found` sorts the sample by the one and
looks at the symbols of the other:

- `nearby` is the share of records whose symbol is that of the record before, which is how a
  stranger guesses it; without the order it is `alone`, the sum of P(s)^2;
- a serial number (whole numbers that leave few gaps) gives a protected column away if its order is
  beyond chance, as the order of a file does (`evidence.Order`); such numbers are there for nothing
  else;
- any other column does if nearly all symbols are right that way. An age in days may well tell
  something of a job, as every column that is kept on purpose does.

`PlaceOrders` looks at the records as they stand in the file: sorted by a sensitive column that is
left out, they tell it by their places.

A column of which many records share each value leaves their order open, and is not looked at: what
it tells by its values is for `evidence.Crossing`.

*Columns that rise or fall with the place of a record.* A release in random order hides what the
order of the file disclosed, unless a column beside it is a row number, a serial number or a time of
entry.

`RisingColumns.rising` names a column of such a sample if its values, as numbers where they all are,
have nearly the order of the records: their rank correlation with it is at least `SAME_ORDER`, in
either direction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.integers import Integers
from mechdesign.formats.cells import Encoded
from mechdesign.leaks.evidence import Order, decisive

# -------------------------------------------------------------------- columns that rise

SAME_ORDER = 0.95
"""The correlation of ranks (Spearman) from which on a column rises or falls with the place."""

SHARED = 8
"""Records of a value, on average, from which on sorting by the column leaves their order open."""

REPEATED = 0.9
"""Different values a record of the sample up to which values count as coming again."""

FEWEST = 20
"""Records of which fewer may rise by chance."""

SAMPLED = 1 << 13
"""Records of the sample, at most twice as many."""

BATCH = 1 << 10
"""Records that a batch gives, about."""

DIGITS = "0123456789"


class SampledColumns:
    """Collects an evenly spread sample of the records of some columns, in their order.

    Parameters
    ----------
    names : sequence
        The columns.
    """

    def __init__(self, names: Sequence[Any]) -> None:
        self._texts: dict[Any, list[str | None]] = {name: [] for name in names}
        self._records = 0
        # After many records only every so many-th stays in the sample.
        self._spread = 1

    def add(
        self, count: int, every: Callable[[int], Callable[[Any], Encoded | None]]
    ) -> None:
        """Take some of the next `count` records; ``every(step)`` gives the cells of every step-th
        of them.
        """
        if not self._texts or not count:
            return
        step = max(1, count // BATCH, self._spread)
        column = every(step)
        self._records += count
        add_texts(self._texts, column)
        while any(len(texts) > 2 * SAMPLED for texts in self._texts.values()):
            self._spread *= 2
            for name, texts in self._texts.items():
                self._texts[name] = texts[::2]


class RisingColumns(SampledColumns):
    """Collects the columns that stay, and finds those that have the order of the records."""

    def rising(self) -> list[Any]:
        """The columns that rise or fall with the place of the record."""
        return [
            name for name, texts in self._texts.items() if _rises(texts, self._records)
        ]


def add_texts(
    texts_of: dict[Any, list[str | None]], column: Callable[[Any], Encoded | None]
) -> None:
    """Add the cells of further records to the texts of each column, as far as it has texts."""
    for name, texts in list(texts_of.items()):
        cells = column(name)
        if cells is None:
            # Lists, bytes and the like are not sorted by.
            del texts_of[name]
            continue
        # The code -1 of a missing cell leads to the None at the end.
        values = (*cells.texts, None)
        texts += [values[code] for code in cells.codes.tolist()]


def _rises(texts: Sequence[str | None], records: int) -> bool:
    """Whether the texts of a sample, in the order of the records, rise or fall."""
    sortable = _sortable(texts, records)
    if sortable is None:
        return False
    distinct, ranks = np.unique(sortable.values, return_inverse=True)
    if len(distinct) < 2:
        return False
    correlation = np.corrcoef(ranks, np.arange(len(ranks)))[0, 1]
    return bool(abs(correlation) >= SAME_ORDER)


class _Sortable(NamedTuple):
    """A sample of a column that gives the records an order.

    Attributes
    ----------
    places : array
        The places in the sample that have a text.
    values : array
        The texts there, so that they compare in their order.
    repeated : bool
        Whether values come again.
    """

    places: Integers
    values: NDArray[Any]
    repeated: bool


def _sortable(texts: Sequence[str | None], records: int) -> _Sortable | None:
    """What a sample of so many records has to sort by; None where that leaves their order open."""
    places = np.flatnonzero([bool(text) for text in texts])
    if len(places) < FEWEST:
        return None
    values = comparable([texts[place] or "" for place in places.tolist()])
    different = len(np.unique(values))
    # In an evenly spread sample values come again only if they have several records each.
    repeated = different <= REPEATED * len(places)
    if repeated and SHARED * different <= records:
        return None
    return _Sortable(places.astype(np.int64), values, repeated)


def comparable(texts: Sequence[str]) -> NDArray[Any]:
    """Numbers where all texts are numbers, after a common beginning (``id9`` before ``id10``);
    else the texts, which sort dates.
    """
    # Digits in common belong to the numbers: of 101 and 102 nothing is taken off.
    beginning = len(_common_beginning(min(texts), max(texts)).rstrip(DIGITS))
    try:
        return np.array([float(text[beginning:]) for text in texts])
    except ValueError:
        return np.array(texts)


def _common_beginning(first: str, last: str) -> str:
    """What the first and the last of sorted texts, and so all of them, begin with."""
    length = 0
    for letter, other in zip(first, last, strict=False):
        if letter != other:
            break
        length += 1
    return first[:length]


# ----------------------------------------------------------------- orders that disclose

NEARLY = 0.9
"""Share of the errors of guessing without the order that guessing with it removes, from which on a
column that is no serial number gives another one away.
"""

GAPS = 4
"""Whole numbers are serial ones if their range is at most so many times the number of records."""


@dataclass(frozen=True)
class SortedBy:
    """What sorting by `column` tells of the column `about`; `tells` says whether that gives it
    away.
    """

    column: Any
    about: Any
    nearby: float
    alone: float
    tells: bool


class PlaceOrders(SampledColumns):
    """Collects columns that are left out, and says what the places of the records tell of them."""

    def evidence(self) -> dict[Any, float]:
        """For each column the logarithm of an e-value against a random order of its symbols."""
        evidence: dict[Any, float] = {}
        for name, texts in self._texts.items():
            codes = _codes_of(texts, np.arange(len(texts)))
            order = Order(int(codes.max(initial=0)) + 1)
            order.add(codes)
            evidence[name] = order.evidence()
        return evidence


class SortedOrders(SampledColumns):
    """Collects columns that stay and columns that are protected.

    Parameters
    ----------
    columns : sequence
        Those that stay.
    protected : sequence
        Those that they must not give away.
    """

    def __init__(self, columns: Sequence[Any], protected: Sequence[Any]) -> None:
        self._columns = [*columns] if protected else []
        self._protected = [*protected] if columns else []
        super().__init__([*self._columns, *self._protected])

    def found(self) -> list[SortedBy]:
        """What each column tells of each protected one; nothing of those that leave the order
        open.
        """
        found: list[SortedBy] = []
        looks = len(self._columns) * len(self._protected)
        for name in self._columns:
            texts = self._texts.get(name)
            if texts is None:
                continue
            ranked = _ranked(texts, self._records)
            if ranked is None:
                continue
            places, is_serial = ranked
            for other in self._protected:
                symbols = self._texts.get(other)
                if symbols is None:
                    continue
                codes = _codes_of(symbols, places)
                found.append(_sorted_by(name, other, codes, is_serial, looks))
        return found

    def telling(self) -> SortedBy | None:
        """The first pair of columns of which one gives the other away."""
        return next((pair for pair in self.found() if pair.tells), None)


def _ranked(texts: Sequence[str | None], records: int) -> tuple[Integers, bool] | None:
    """The places of the sample sorted by a column, and whether it is a serial number; None where it
    leaves the order open.
    """
    sortable = _sortable(texts, records)
    if sortable is None:
        return None
    values = sortable.values
    # By their places last, as a program sorts that keeps equal ones in their order.
    order = np.argsort(values, kind="stable")
    is_serial = False
    if values.dtype.kind == "f" and not sortable.repeated:
        is_whole = bool((values == np.floor(values)).all())
        is_serial = is_whole and values.max() - values.min() < GAPS * records
    return sortable.places[order], is_serial


def _codes_of(symbols: Sequence[str | None], places: Integers) -> Integers:
    """Numbers for the symbols at some places, in this order.

    The numbers rise with the symbols. By their first appearance they would rise with the records,
    which looks like an order where nearly every record has a symbol of its own.
    """
    order: list[int] = places.tolist()
    wanted = [symbols[place] for place in order]
    known = sorted({symbol for symbol in wanted if symbol})
    numbers: dict[str | None, int] = {}
    if known:
        ranked = np.argsort(comparable(known), kind="stable").tolist()
        numbers = {known[place]: rank for rank, place in enumerate(ranked)}
    codes = [numbers.get(symbol, len(numbers)) for symbol in wanted]
    return np.array(codes, np.int64)


def _sorted_by(
    name: Any, other: Any, codes: Integers, is_serial: bool, looks: int
) -> SortedBy:
    """What the symbols tell in this order."""
    counts: Integers = np.bincount(codes)
    shares = counts.astype(np.float64) / len(codes)
    alone = float((shares**2).sum())
    nearby = float(np.count_nonzero(codes[1:] == codes[:-1])) / (len(codes) - 1)
    tells = False
    if len(counts) > 1:
        tells = nearby - alone >= NEARLY * (1 - alone)
        if is_serial and not tells:
            order = Order(len(counts))
            order.add(codes)
            tells = decisive(order.evidence(), looks)
    return SortedBy(name, other, nearby, alone, tells)
