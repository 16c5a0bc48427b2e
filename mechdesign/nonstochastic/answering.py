"""What a mechanism needs of a table, batch by batch: numbers, the cells they lie in, and exact sums of groups.

Numbers are the doubles nearest to their text. Sums are exact: each double is an integer of 53 bits times a
power of two, and integers of equal power are added by group as two halves, which doubles count without error.
Memory grows with the groups and the individuals, not with the records' other columns.
"""

# pyarrow tells too little of its types for the strict mode.
# pyright: basic
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.numbers import quoted
from mechdesign.formats.cells import encode

NUMBER = r"^[ \t]*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,9})?[ \t]*$"
"""What is a number: digits in the plain or the scientific notation, nothing of NaN or infinity."""

TRUTHS = {"0": 0.0, "1": 1.0, "false": 0.0, "true": 1.0, "False": 0.0, "True": 1.0}
"""Cells of a column that is counted without naming a value."""

HALF = 26
"""Bits of the lower half of a mantissa: 2^27 halves of a batch still add up below 2^53."""

FINEST = 1130
"""Sums are kept in units of 2^-1130, below the last bit of every double."""

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


class BadCell(InputError):
    """A cell that is no usable number, at `position` of its batch."""

    def __init__(self, position: int, what: str) -> None:
        super().__init__(what)
        self.position = position
        self.what = what


@dataclass(frozen=True, eq=False)
class Numbers:
    """A column as codes into few or many `values`; the number of record i is ``values[codes[i]]``."""

    values: Floats
    codes: Codes

    @property
    def each(self) -> Floats:
        """The number of each record."""
        return self.values[self.codes]


def numbers_of(column: Any, name: str) -> Numbers:
    """The numbers of a column of a batch."""
    import pyarrow as pa

    kind = column.type
    if column.null_count:
        first = int(np.flatnonzero(np.asarray(column.is_null()))[0])
        raise BadCell(first, f"the column {quoted(name)} is empty there")
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        values = column.to_numpy(zero_copy_only=False).astype(np.float64)
        bad = np.flatnonzero(~np.isfinite(values))
        if bad.size:
            raise BadCell(int(bad[0]), f"the column {quoted(name)} holds NaN or an infinite number there")
        return Numbers(values, np.arange(values.size))
    encoded = encode(column, name)
    codes = encoded.codes.astype(np.int64)
    return Numbers(_parsed(encoded.texts, codes, name), codes)


def _parsed(texts: Sequence[str], codes: Codes, name: str) -> Floats:
    """The doubles nearest to the texts."""
    import pyarrow as pa
    import pyarrow.compute

    pc: Any = pyarrow.compute
    array = pa.array(texts, pa.string())
    good = np.asarray(pc.match_substring_regex(array, NUMBER))
    if not good.all():
        _refuse(np.flatnonzero(~good), texts, codes, name)
    plain = pc.replace_substring_regex(pc.utf8_trim(array, " \t"), r"^\+", "")
    try:
        values = np.asarray(plain.cast(pa.float64()))
    except pa.ArrowInvalid:  # a notation that arrow does not know, such as "5."
        values = np.array([float(text) for text in plain.to_pylist()])
    if not np.isfinite(values).all():
        _refuse(np.flatnonzero(~np.isfinite(values)), texts, codes, name)
    return values


def _refuse(bad: Codes, texts: Sequence[str], codes: Codes, name: str) -> None:
    places = np.flatnonzero(np.isin(codes, bad))
    if places.size:
        first = int(places[0])
        text: str = texts[int(codes[first])]
        what = "holds no finite number there" if text.strip() else "is empty there"
        raise BadCell(first, f"the column {quoted(name)} {what}")


def truths_of(column: Any, name: str, equals: str | None) -> Numbers:
    """Ones where a cell is `equals` (or is 1 or true, without it), and zeros."""
    encoded = encode(column, name)
    codes = encoded.codes.astype(np.int64)
    if equals is not None:
        # A missing cell is not the value that is counted.
        return Numbers(np.array([*(float(text == equals) for text in encoded.texts), 0.0]), codes)
    values = np.array([*(TRUTHS.get(text, np.nan) for text in encoded.texts), np.nan])
    bad = np.flatnonzero(np.isnan(values[codes]))
    if bad.size:
        raise BadCell(
            int(bad[0]),
            f"the column {quoted(name)} is neither 0 nor 1 there; to count records with some value, name it",
        )
    return Numbers(values, codes)


class Groups:
    """Exact sums and sizes of groups, and who is in them, added up batch by batch."""

    def __init__(self) -> None:
        self._place: dict[tuple[str, ...], int] = {}
        self._sizes = np.zeros(0, dtype=np.int64)
        self._halves: dict[int, list[Codes]] = {}
        self._people: dict[str, int] = {}
        self._seen: list[tuple[NDArray[np.int32], NDArray[np.int32]]] = []

    @property
    def keys(self) -> list[tuple[str, ...]]:
        """The groups in order of appearance."""
        return list(self._place)

    @property
    def sizes(self) -> list[int]:
        """Records of each group."""
        return self._sizes.tolist()

    def add(self, keys: Sequence[Any], values: Floats, people: Any = None) -> None:
        """Add a batch."""
        group = self._groups(keys, values.size)
        local, inverse = np.arange(len(self._place)), group
        if local.size > values.size:
            local, inverse = np.unique(group, return_inverse=True)
        self._sizes = _grown(self._sizes, len(self._place))
        self._sizes[local] += np.bincount(inverse, minlength=local.size)
        mantissa, exponent = np.frexp(values)
        whole = np.ldexp(mantissa, 53).astype(np.int64)
        lowest = int(exponent.min(initial=0))
        for power in (np.flatnonzero(np.bincount(exponent - lowest)) + lowest).tolist():
            kept = np.flatnonzero(exponent == power)
            parts = whole[kept]
            high, low = parts >> HALF, parts & ((1 << HALF) - 1)
            sums = self._halves.setdefault(power, [np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)])
            for k, half in enumerate((high, low)):
                sums[k] = _grown(sums[k], len(self._place))
                added = np.bincount(inverse[kept], weights=half.astype(np.float64), minlength=local.size)
                sums[k][local] += added.astype(np.int64)
        if people is not None:
            encoded = encode(people, "individual")
            if (encoded.codes < 0).any():
                raise BadCell(int(np.flatnonzero(encoded.codes < 0)[0]), "the individual is missing there")
            known = np.array([self._people.setdefault(t, len(self._people)) for t in encoded.texts])
            self._seen.append((known[encoded.codes].astype(np.int32), group.astype(np.int32)))

    def _groups(self, keys: Sequence[Any], count: int) -> Codes:
        if not keys:
            self._place.setdefault((), 0)
            return np.zeros(count, dtype=np.int64)
        encoded = [encode(column, "group") for column in keys]
        joined, width = np.zeros(count, dtype=np.int64), 1
        for one in encoded:
            if (one.codes < 0).any():
                raise BadCell(int(np.flatnonzero(one.codes < 0)[0]), "the group is missing there")
            joined, width = joined * len(one.texts) + one.codes, width * len(one.texts)
            if width > 4 * count:
                # Dense again, so that many columns cannot overflow.
                distinct, joined = np.unique(joined, return_inverse=True)
                width = distinct.size
        # The last to write is the first record of its group.
        firsts = np.full(width, count)
        firsts[joined[::-1]] = np.arange(count - 1, -1, -1)
        place = np.zeros(width, dtype=np.int64)
        for first in np.sort(firsts[firsts < count]).tolist():
            key = tuple(one.texts[one.codes[first]] for one in encoded)
            place[joined[first]] = self._place.setdefault(key, len(self._place))
        return place[joined]

    def totals(self) -> list[Fraction]:
        """The exact sum of each group."""
        sums = [0] * len(self._place)
        for power, (high, low) in self._halves.items():
            shift = FINEST + power - 53
            for g, (a, b) in enumerate(zip(high.tolist(), low.tolist(), strict=True)):
                sums[g] += ((a << HALF) + b) << shift
        return [Fraction(total, 1 << FINEST) for total in sums]

    def most_answers(self) -> int | None:
        """The most groups that one individual is in; None if individuals were not named."""
        if not self._seen:
            return None
        people = np.concatenate([who for who, _ in self._seen]).astype(np.int64)
        pairs = np.concatenate([group for _, group in self._seen]) + people * len(self._place)
        pairs.sort()
        if bool((pairs[1:] == pairs[:-1]).any()):
            raise InputError(
                "an individual has several records in one group; add them up to one value each first, and give "
                "the range of that"
            )
        return int(np.bincount(pairs // len(self._place)).max())


def _grown(array: Codes, size: int) -> Codes:
    """The array with zeros up to this size."""
    return (
        array if array.size >= size else np.concatenate((array, np.zeros(size - array.size, dtype=np.int64)))
    )
