"""A released file and its original, read together.

Every released column that the original has becomes a `SharedColumn`: codes of both files, over the
values of each. `Files` has them all, the secret of every record, and which record a released row
belongs to.

*Values.* Releases of other tools have values that the original lacks: ``20-29``, ``[20, 30[``,
``>=65``, ``{a, b}``, ``*``. `covered` finds the original values that such a value stands for. A
name such as ``Higher education`` cannot be read; where released rows are linked to records, it
stands for the values of the records that have it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.arguments import fraction_of_text
from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.core.wording import listed, quoted
from mechdesign.formats.cells import CellForm
from mechdesign.formats.csv_text import TextOptions
from mechdesign.formats.spellings import alike_notice, as_text
from mechdesign.leaks.assessment import crossed_secret, identifies_records
from mechdesign.leaks.coded_table import CodedColumn, CodedTable, coded_table, in_form
from mechdesign.leaks.disclosure import Secret
from mechdesign.leaks.doctor import MOST_COMPARED
from mechdesign.leaks.learners import numbers_in
from mechdesign.tables.columns import other_spelling
from mechdesign.tables.reading import columns_named

SUPPRESSED = ("*", "**", "***", "?*", "NA*", "NA")
"""Texts that stand for any value, unless the original has them as values."""

WHOLE_DOUBLES = 2.0**53
"""From here on doubles stand for more than one whole number each."""

NUMBER = r"\s*([-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)\s*"

INTERVALS = (
    # [20, 30[  (20; 30]  [20,30)
    re.compile(rf"^([\[\]\(]){NUMBER}[,;:]{NUMBER}([\[\]\)])$"),
    # 20-29, 20 - 29, 20..29: both ends belong to it
    re.compile(rf"^(){NUMBER}(?:-|–|\.\.){NUMBER}()$"),
)

OPEN_LOW = ("(", "]")
"""Brackets on the left that exclude the end."""

OPEN_HIGH = (")", "[")
"""Brackets on the right that exclude the end."""

ONE_SIDED = re.compile(rf"^(<=|>=|<|>|≤|≥){NUMBER}$")
PLUS = re.compile(rf"^{NUMBER}\+$")


def numbers_of(values: Sequence[str]) -> NDArray[np.float64] | None:
    """The values as numbers, NaN for an empty one; None where another is no finite number, or all
    are empty.
    """
    numbers = numbers_in(values)
    if numbers is None or np.isnan(numbers).all():
        return None
    return numbers


def covered(
    released: Sequence[str],
    original: Sequence[str],
    numbers: NDArray[np.float64] | None,
    pairs: tuple[Integers, Integers] | None,
) -> list[Integers]:
    """For each released value the places of the original values that it may stand for.

    Parameters
    ----------
    released, original : sequences of str
        The distinct values of the column in both files.
    numbers : array, optional
        The original values as numbers, if they are.
    pairs : two arrays of codes, optional
        Released and original value of linked records.
    """
    place_of = {value: place for place, value in enumerate(original)}
    covers: list[Integers] = []
    unread: list[int] = []
    nothing = np.zeros(0, np.int64)
    for place, value in enumerate(released):
        found = _read(value, place_of, numbers)
        if found is None and numbers is not None:
            # 40.0 for 40 is the same number. Another number, such as 40.3, is no code of the
            # values beside it: it is compared as a number.
            found = _same_number(value, original, numbers)
        if found is None:
            unread.append(place)
        covers.append(nothing if found is None else found)
    if unread and pairs is not None:
        after, before = pairs
        for place in unread:
            covers[place] = np.unique(before[after == place]).astype(np.int64)
    return covers


def _same_number(
    value: str, original: Sequence[str], numbers: NDArray[np.float64]
) -> Integers | None:
    """The places of the original values that are this number, if any; None for a text.

    Below 2^53 they are the same if they are the same double: tools write it with other digits.
    Above, a double stands for several whole numbers, such as identifiers, which are told apart.
    """
    try:
        number = float(value)
    except ValueError:
        return None
    near = np.flatnonzero(numbers == number)
    if abs(number) < WHOLE_DOUBLES:
        return near
    same = [place for place in near.tolist() if not _difference(original[place], value)]
    return np.array(same, np.int64)


def _difference(text: str, other: str) -> Fraction:
    """By how much the first of two texts that are read as the same double is the larger number."""
    if abs(float(other)) < WHOLE_DOUBLES:
        return Fraction(0)
    try:
        return fraction_of_text(text) - fraction_of_text(other)
    except InputError:
        # Such as 1_000, which Python reads and no other tool does: the double is all that is known.
        return Fraction(0)


def _read(
    value: str, place_of: dict[str, int], numbers: NDArray[np.float64] | None
) -> Integers | None:
    """The places that a value names; None where it cannot be read."""
    if value in place_of:
        return np.array([place_of[value]], np.int64)
    if value[:1] == "'" and value[1:] in place_of and as_text(value[1:]) == value:
        # A formula that was escaped for spreadsheets.
        return np.array([place_of[value[1:]]], np.int64)
    if value.strip() in SUPPRESSED or not value.strip():
        return np.arange(len(place_of))
    if value[0] == "{" and value[-1] == "}":
        parts = [part.strip() for part in value[1:-1].split(",")]
        if parts and all(part in place_of for part in parts):
            return np.unique([place_of[part] for part in parts]).astype(np.int64)
    if numbers is None:
        return None
    limits = _limits(value)
    if limits is None:
        return None
    low, high, has_low, has_high = limits
    texts = [*place_of]
    above = numbers > float(low)
    below = numbers < float(high)
    for place in _at_end(low, numbers):
        difference = _difference(texts[place], low)
        above[place] = difference > 0 or (has_low and difference == 0)
    for place in _at_end(high, numbers):
        difference = _difference(texts[place], high)
        below[place] = difference < 0 or (has_high and difference == 0)
    return np.flatnonzero(above & below)


def _limits(value: str) -> tuple[str, str, bool, bool] | None:
    """The ends of an interval as texts, and whether they belong to it."""
    text = value.strip()
    for form in INTERVALS:
        match = form.match(text)
        if match is not None:
            left, low, high, right = match.groups()
            return low, high, left not in OPEN_LOW, right not in OPEN_HIGH
    match = ONE_SIDED.match(text)
    if match is not None:
        sign, end = match.groups()
        closed = sign in ("<=", ">=", "≤", "≥")
        if sign[0] in "<≤":
            return "-inf", end, False, closed
        return end, "inf", closed, False
    match = PLUS.match(text)
    if match is not None:
        return match.group(1), "inf", True, False
    return None


def _at_end(end: str, numbers: NDArray[np.float64]) -> list[int]:
    """The places of the values that are the same double as an end of an interval."""
    return np.flatnonzero(numbers == float(end)).tolist()


# ----------------------------------------------------------------------------- together

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

POSITION = "position"
IDENTITY = "identity"
UNLINKED = "no"
"""How released rows are known to be those of records."""

SURE = 6.0
"""Standard deviations by which rows at the same place must agree more often than rows at other
places do, for the files to be in the same order. By chance that happens once in a thousand million.
"""

SHIFTS = (-3, -2, 2, 3)
"""Places by which rows are apart that are compared with rows at the same place."""

FEWEST_VALUES = 20
"""Numbers with more values are put into classes where pairs of columns are compared."""


@dataclass(frozen=True, eq=False)
class SharedColumn:
    """A column of both files.

    Attributes
    ----------
    name : str
    original : CodedColumn
        Of all records.
    released : CodedColumn
        Of all released rows.
    numbers : (values,) array or None
        The values of `original` as numbers, if all are.
    covers : list of arrays
        For each value of `released` the places of the values of `original` that it may stand for.
    """

    name: str
    original: CodedColumn
    released: CodedColumn
    numbers: Floats | None
    covers: list[Integers]

    @cached_property
    def spread(self) -> Any:
        """(released values, original values) sparse array: each row spreads a released value
        evenly over what it may stand for. A value that stands for nothing has an empty row.
        """
        from scipy.sparse import csr_array  # pyright: ignore[reportMissingTypeStubs]

        sizes = np.array([len(places) for places in self.covers])
        rows = np.repeat(np.arange(len(sizes)), sizes)
        places = np.concatenate([*self.covers, np.zeros(0, np.int64)])
        values = np.repeat(1 / np.maximum(sizes, 1), sizes)
        shape = (len(sizes), len(self.original.values))
        return csr_array((values, (rows, places)), shape=shape)

    @cached_property
    def own_numbers(self) -> Floats | None:
        """The released values as numbers; None if one of them is none."""
        return numbers_of(self.released.values)

    @cached_property
    def released_numbers(self) -> Floats | None:
        """The released values as numbers, in the middle of what each may stand for; None for a
        column of names.
        """
        if self.numbers is None:
            return None
        own = self.own_numbers
        middles = np.full(len(self.covers), np.nan)
        for place, places in enumerate(self.covers):
            if len(places):
                known = self.numbers[places]
                known = known[~np.isnan(known)]
                if len(known):
                    middles[place] = (known.min() + known.max()) / 2
        if own is not None:
            return np.where(np.isnan(own), middles, own)
        return middles

    @cached_property
    def union(self) -> tuple[tuple[str, ...], Integers, Integers]:
        """Values of both files, and the place of each original and of each released one."""
        place_of = {value: place for place, value in enumerate(self.original.values)}
        for value in self.released.values:
            place_of.setdefault(value, len(place_of))
        before = np.arange(len(self.original.values))
        after = np.array([place_of[value] for value in self.released.values], np.int64)
        return tuple(place_of), before, after

    @property
    def is_strange(self) -> bool:
        """Whether names were released of which the original has none; numbers may be noisy."""
        is_number = self.numbers is not None and self.own_numbers is not None
        return not is_number and not any(map(len, self.covers))

    @property
    def alike(self) -> str | None:
        """A notice about names of either file that look alike and are compared as different ones.

        None if there are none, for numbers, and where the values are too many to compare.
        """
        values, _, _ = self.union
        if self.numbers is not None or len(values) > MOST_COMPARED:
            return None
        return alike_notice(self.name, values)

    @cached_property
    def general(self) -> bool:
        """Whether released values stand for several original ones, or for none."""
        return any(len(places) != 1 for places in self.covers)


@dataclass(frozen=True, eq=False)
class Files:
    """Both files.

    Attributes
    ----------
    columns : tuple of SharedColumn
    unjudged : tuple of str
        Released columns that the original lacks.
    secret : Secret
        Of the original's records.
    released_secret : (released,) codes or None
        The secret as the released file has it: the codes of `secret`.
    linked : {"position", "identity", "no"}
    owner : (released,) integers
        The record to which each released row belongs; empty where that is not known.
    """

    columns: tuple[SharedColumn, ...]
    unjudged: tuple[str, ...]
    secret: Secret
    released_secret: Integers | None
    released_records: int
    linked: str
    owner: Integers

    @property
    def records(self) -> int:
        """Records of the original."""
        return len(self.secret.codes)

    @property
    def is_linked(self) -> bool:
        """Whether it is known whose row is whose."""
        return self.linked != UNLINKED

    @property
    def secret_beside(self) -> Integers | None:
        """The secret beside each released row: what the file has, or that of the row's person;
        None where neither is known.
        """
        if self.released_secret is not None:
            return self.released_secret
        if self.is_linked:
            return self.secret.codes[self.owner]
        return None

    def places(self, names: Sequence[str]) -> list[int]:
        """The places of these columns."""
        of_name = {column.name: place for place, column in enumerate(self.columns)}
        for name in names:
            if name not in of_name:
                raise InputError(
                    f"the released file has no column {quoted(name)} that the original has, too; "
                    f"they share {listed(list(of_name))}"
                )
        return [of_name[name] for name in names]


def read_files(
    released: Any,
    original: Any,
    *,
    sensitive: str | Sequence[str],
    identity: str | Sequence[str] | None,
    shuffled: bool,
    text: TextOptions | None,
    form: CellForm,
) -> Files:
    """Read both files with their cells in a form, and find which released row is whose.

    Raises
    ------
    InputError
        If the files share no column, the secret is missing, or identifiers do not match.
    """
    before = in_form(coded_table(original, text), form)
    after = in_form(coded_table(released, text), form)
    _check_records(before, after)
    names = columns_named(sensitive, [*before.columns, *before.unreadable])
    for name in names:
        if name not in before.columns:
            raise InputError(
                f"the column {quoted(name)} holds lists, structures or bytes, which are no symbols"
            )
    secret = crossed_secret(before, tuple(names))
    if len(secret.symbols) < 2:
        raise InputError(
            f"the sensitive column {quoted(','.join(names))} has a single value: there is nothing "
            "to find out"
        )
    keys: tuple[str, ...] = ()
    if identity is not None:
        keys = tuple(columns_named(identity, list(before.columns)))
    shared: list[str] = []
    unjudged: list[str] = []
    for name in after.columns:
        if name in names or name in keys:
            continue
        if name not in before.columns:
            unjudged.append(name)
        elif keys == () and _names_records(before, after, name):
            # Two copies of one identifier: it links the rows, and nothing else needs to be asked.
            unjudged.append(name)
        else:
            shared.append(name)
    if not shared:
        raise InputError(
            "the files share no column to judge: the released one has "
            f"{listed(list(after.columns))}, the original {listed(list(before.columns))}"
        )
    linked, owner = _links(before, after, shared, keys, shuffled)
    columns: list[SharedColumn] = []
    for name in shared:
        columns.append(
            _shared(before.columns[name], after.columns[name], owner, linked)
        )
    return Files(
        columns=tuple(columns),
        unjudged=tuple(unjudged),
        secret=secret,
        released_secret=_released_secret(after, secret),
        released_records=after.records,
        linked=linked,
        owner=owner,
    )


def _check_records(before: CodedTable, after: CodedTable) -> None:
    """Raise InputError unless both files have records."""
    if not before.records:
        raise InputError("the original has no records")
    if not after.records:
        raise InputError("the released file has no records; there is nothing to judge")


def _names_records(before: CodedTable, after: CodedTable, name: str) -> bool:
    """Whether a column names records in both files."""
    return identifies_records(before.columns[name]) and identifies_records(
        after.columns[name]
    )


def _released_secret(after: CodedTable, secret: Secret) -> Integers | None:
    """The codes of the secret in the released file, if it has these columns. Values that the
    original lacks have the code -1.
    """
    if any(name not in after.columns for name in secret.names):
        return None
    place_of = {symbol: place for place, symbol in enumerate(secret.symbols)}
    released = crossed_secret(after, secret.names)
    places = np.array([place_of.get(symbol, -1) for symbol in released.symbols])
    return places[released.codes]


def _links(
    before: CodedTable,
    after: CodedTable,
    shared: Sequence[str],
    keys: tuple[str, ...],
    shuffled: bool,
) -> tuple[str, Integers]:
    """How released rows are linked, and the record of each."""
    nobody = np.zeros(0, np.int64)
    if keys:
        return IDENTITY, _owners(before, after, keys)
    if shuffled or before.records != after.records:
        return UNLINKED, nobody
    if in_one_order(before, after, shared):
        return POSITION, np.arange(before.records)
    return UNLINKED, nobody


def in_one_order(before: CodedTable, after: CodedTable, shared: Sequence[str]) -> bool:
    """Whether rows at the same place agree far more often than rows at other places.

    The number of equal cells at the same places is compared with its mean over all pairings of the
    rows, sum_v n(v) n'(v) / N for each column, in standard deviations of a sum of independent
    cells, the largest that the mean allows. It must exceed that of rows a few places apart as
    clearly: two files that are sorted by one column agree in it everywhere. Rows that agree in all
    cells are linked however few they are: whoever has the row of a person reads these cells.
    """
    equal = 0.0
    beside = 0.0
    expected = 0.0
    variance = 0.0
    for name in shared:
        left = before.columns[name]
        right = after.columns[name]
        place_of = {value: place for place, value in enumerate(left.values)}
        places = np.array([place_of.get(value, -1) for value in right.values])
        moved = places[right.codes]
        equal += int(np.count_nonzero(moved == left.codes))
        for shift in SHIFTS:
            apart = np.count_nonzero(np.roll(moved, shift) == left.codes)
            beside += int(apart) / len(SHIFTS)
        known = moved[moved >= 0]
        had = np.bincount(left.codes, minlength=len(left.values))
        got = np.bincount(known, minlength=len(left.values))
        share = float((had / before.records * got / before.records).sum())
        expected += share * before.records
        variance += share * (1 - share) * before.records
    if equal == before.records * len(shared):
        return True
    # Cells of a row depend on each other: at worst their deviations add up.
    deviation = np.sqrt(variance * len(shared))
    if deviation == 0:
        return False
    return bool((equal - max(expected, beside)) / deviation > SURE)


def _owners(before: CodedTable, after: CodedTable, keys: tuple[str, ...]) -> Integers:
    """The record with the identifier of each released row."""
    for name in keys:
        for table, which in ((before, "original"), (after, "released file")):
            if name not in table.columns:
                raise InputError(
                    f"--identity: the {which} has no column {quoted(name)}"
                )
    places: dict[tuple[str, ...], int] = {}
    for place, key in enumerate(_keys(before, keys)):
        if key in places:
            raise InputError(
                f"--identity: {listed(keys)} repeats in the original; name columns that tell its "
                "records apart"
            )
        places[key] = place
    owners: list[int] = []
    for key in _keys(after, keys):
        if key not in places:
            raise InputError(
                "--identity: the released file has an identifier that the original lacks"
                f"{other_spelling(key, places)}"
            )
        owners.append(places[key])
    if len(set(owners)) < len(owners):
        raise InputError(
            f"--identity: {listed(keys)} repeats in the released file; each person may have one "
            "row"
        )
    return np.array(owners, np.int64)


def _keys(table: CodedTable, names: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The identifier of every record."""
    texts: list[list[str]] = []
    for name in names:
        column = table.columns[name]
        values = list(column.values)
        texts.append([values[code] for code in column.codes.tolist()])
    return list(zip(*texts, strict=True))


def _shared(
    before: CodedColumn, after: CodedColumn, owner: Integers, linked: str
) -> SharedColumn:
    """One column of both files."""
    numbers = numbers_of(before.values)
    pairs = None
    if linked != UNLINKED:
        pairs = after.codes.astype(np.int64), before.codes[owner].astype(np.int64)
    return SharedColumn(
        name=before.name,
        original=before,
        released=after,
        numbers=numbers,
        covers=covered(after.values, before.values, numbers, pairs),
    )
