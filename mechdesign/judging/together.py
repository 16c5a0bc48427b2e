"""A released file and its original, read together.

Every released column that the original has becomes a `SharedColumn`: codes of both files, over the
values of each. `Files` has them all, the secret of every record, and which record a released row
belongs to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.core.wording import listed, quoted
from mechdesign.formats.csv_text import TextOptions
from mechdesign.judging.values import covered, numbers_of
from mechdesign.leaks.assessment import crossed_secret, identifies_records
from mechdesign.leaks.coded_table import CodedColumn, CodedTable, coded_table
from mechdesign.leaks.disclosure import Secret
from mechdesign.tables.reading import columns_named

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
) -> Files:
    """Read both files, and find which released row is whose.

    Raises
    ------
    InputError
        If the files share no column, the secret is missing, or identifiers do not match.
    """
    before = coded_table(original, text)
    after = coded_table(released, text)
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
