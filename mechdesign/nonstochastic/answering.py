"""What a mechanism needs of a table, batch by batch: numbers, the cells they lie in, and exact sums of groups.

Numbers are the doubles nearest to their text. Sums are exact: each double is an integer of 53 bits times a
power of two, which is added by group as three digits of fixed places, which doubles count without error.
Memory grows with the groups and the individuals, not with the records' other columns; medians and other order
statistics keep every value in a file.
"""

# pyarrow tells too little of its types for the strict mode.
# pyright: basic
from __future__ import annotations

import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import FileError, InputError
from mechdesign.core.wording import quoted
from mechdesign.formats.cells import Encoded
from mechdesign.formats.distinct import Numbering
from mechdesign.formats.opening import Batch, Source
from mechdesign.tables.reading import coded_columns
from mechdesign.tables.tally import Missing

NUMBER = r"^[ \t]*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,9})?[ \t]*$"
"""What is a number: digits in the plain or the scientific notation, nothing of NaN or infinity."""

TRUTHS = {"0": 0.0, "1": 1.0, "false": 0.0, "true": 1.0, "False": 0.0, "True": 1.0}
"""Cells of a column that is counted without naming a value."""

SPILLED = 1 << 24
"""Bytes of values, or of who is in which group, that are kept in memory."""

RANKED, PASSES = 1 << 20, 10
"""Values that are put in order at once, 8 MB; or a share of them all, for more passes would take longer."""

COUNTED = 1 << 20
"""Counts of answers, by individual and size of group, that are looked at at once: 8 MB."""

DIGIT = 26
"""Bits of a digit of a sum: 2^25 of them, some with a carry, still add up below 2^53."""

Floats = NDArray[np.float64]
Codes = NDArray[np.integer[Any]]
Indices = NDArray[np.int64]

Multiples: TypeAlias = tuple[Iterable[int], Fraction]
"""Exact numbers, as whole multiples of a unit."""


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


def usable_records(
    table: Source,
    names: Sequence[str],
    missing: str,
    *,
    stored: str | None = None,
    whole: bool = False,
    advise: bool = True,
) -> Iterator[tuple[Batch, Indices, list[Any]]]:
    """Batches, which records of the table they are (from 0), and their columns `names`, coded; those of an empty cell
    are left out or refused as `missing` says. A column `stored` as numbers in a Parquet file stays an array.
    """
    from pyarrow import types

    first, read = 0, [name for name in names if name == stored]
    for batch in table.batches(
        encode=[name for name in names if name != stored], read=read, whole=whole
    ):
        arrays = {name: batch.column(name) for name in read}
        arrays = {
            n: a
            for n, a in arrays.items()
            if types.is_integer(a.type) or types.is_floating(a.type)
        }
        coded = iter(
            coded_columns(table, batch, [name for name in names if name not in arrays])
        )
        columns = [arrays[name] if name in arrays else next(coded) for name in names]
        rows = np.arange(first, first + batch.num_rows)
        first += len(rows)
        try:
            kept = usable(columns, names, missing, advise=advise)
        except BadCell as error:
            place = table.where(int(rows[error.position]))
            raise FileError(table.name, f"{place}: {error.what}") from None
        if kept is not None:
            batch, rows = batch.select(kept), rows[kept]
            columns = [some_of(column, kept) for column in columns]
        if len(rows):
            yield batch, rows, columns


def usable(
    columns: Sequence[Any], names: Sequence[str], missing: str, *, advise: bool = True
) -> NDArray[np.bool_] | None:
    """Which records have no empty cell, where others are left out; None for all. Raises BadCell if none may be."""
    if missing not in get_args(Missing):
        raise InputError(
            f"missing ({quoted(missing)}) must be one of {', '.join(get_args(Missing))}"
        )
    empty = [
        c.codes < 0 if isinstance(c, Encoded) else np.asarray(c.is_null())
        for c in columns
    ]
    some = np.logical_or.reduce(empty)
    if missing == "symbol" or not some.any():
        return None
    if missing == "drop":
        return ~some
    at = int(some.argmax())
    name = next(name for name, gaps in zip(names, empty, strict=True) if gaps[at])
    advice = (
        "; say --missing symbol (a value of its own) or --missing drop"
        if advise
        else ""
    )
    raise BadCell(at, f"the column {quoted(name)} is empty there{advice}")


def some_of(column: Any, kept: NDArray[np.bool_]) -> Any:
    """Some records of a column, coded or an array."""
    if isinstance(column, Encoded):
        return Encoded(column.codes[kept], column.texts, column.is_float)
    return column.filter(kept)


def numbers_of(column: Any, name: str) -> Numbers:
    """The numbers of a column of a batch: its coded texts, or an arrow array of numbers."""
    if isinstance(column, Encoded):
        values, codes = _parsed(column.texts), column.codes
    else:
        values = column.to_numpy(zero_copy_only=False).astype(np.float64)
        codes = np.arange(values.size)
    bad = np.flatnonzero(~np.isfinite(values)[codes])
    if bad.size:
        first = int(bad[0])
        if isinstance(column, Encoded):
            empty = not (*column.texts, "")[codes[first]].strip()
        else:
            empty = not column[first].is_valid
        what = "is empty there" if empty else "holds no finite number there"
        raise BadCell(first, f"the column {quoted(name)} {what}")
    return Numbers(values, codes)


def _parsed(texts: Sequence[str]) -> Floats:
    """The doubles nearest to the texts, NaN for what is no number, and NaN for a missing one at the end."""
    import pyarrow as pa
    import pyarrow.compute

    pc: Any = pyarrow.compute
    array = pa.array(texts, pa.string())
    good = pc.match_substring_regex(array, NUMBER)
    plain = pc.replace_substring_regex(
        pc.utf8_trim(array.filter(good), " \t"), r"^\+", ""
    )
    try:
        numbers = np.asarray(plain.cast(pa.float64()))
    except pa.ArrowInvalid:  # a notation that arrow does not know, such as "5."
        numbers = np.array([float(text) for text in plain.to_pylist()])
    values = np.full(len(texts) + 1, np.nan)
    values[:-1][np.asarray(good)] = numbers
    return values


def truths_of(column: Encoded, name: str, equals: str | None) -> Numbers:
    """Ones where a cell is `equals` (or is 1 or true, without it), and zeros."""
    if equals is not None:
        # A missing cell is not the value that is counted.
        return Numbers(
            np.array([*(float(text == equals) for text in column.texts), 0.0]),
            column.codes,
        )
    values = np.array([*(TRUTHS.get(text, np.nan) for text in column.texts), np.nan])
    bad = np.flatnonzero(np.isnan(values[column.codes]))
    if bad.size:
        raise BadCell(
            int(bad[0]),
            f"the column {quoted(name)} is neither 0 nor 1 there; to count records with some value, name it",
        )
    return Numbers(values, column.codes)


class _Spilled:
    """Arrays of one length, batch by batch: in memory while they are few, else in a file without a name."""

    def __init__(self, *kinds: str) -> None:
        self.kinds, self.sizes = [np.dtype(kind) for kind in kinds], list[int]()
        with ExitStack() as open_files:
            self.file = open_files.enter_context(tempfile.SpooledTemporaryFile(SPILLED))
            weakref.finalize(self, open_files.pop_all().close)

    def add(self, *arrays: NDArray[Any]) -> None:
        self.sizes.append(len(arrays[0]))
        for kind, array in zip(self.kinds, arrays, strict=True):
            self.file.write(array.astype(kind, copy=False).tobytes())

    def __iter__(self) -> Iterator[list[Any]]:
        self.file.seek(0)
        for size in self.sizes:
            yield [
                np.frombuffer(self.file.read(size * kind.itemsize), kind)
                for kind in self.kinds
            ]


class Groups:
    """Exact sums and sizes of groups, or all their values, and who is in them, added up batch by batch."""

    def __init__(self, *, ordered: bool = False) -> None:
        self._values = _Spilled("i4", "f8") if ordered else None
        self._groups = Numbering()
        self._people = Numbering()
        self._sizes = np.zeros(0, dtype=np.int64)
        self._digits: dict[int, Codes] = {}
        self._seen = _Spilled("i4", "i4")

    def __len__(self) -> int:
        return len(self._groups)

    @property
    def keys(self) -> list[tuple[str, ...]]:
        """The groups in order of appearance."""
        return list(self._groups.texts)

    @property
    def sizes(self) -> list[int]:
        """Records of each group."""
        return self._sizes[: len(self)].tolist()

    def add(
        self,
        keys: Sequence[Encoded],
        values: Floats,
        person: Encoded | None = None,
        left_out: NDArray[np.bool_] | None = None,
    ) -> Codes:
        """Add a batch, and return the group of each record; without keys, all records are one group.

        Individuals take part with the records that are left out, too: these might have been others.
        """
        group = self._groups.number(
            keys or [Encoded(np.zeros(values.size, np.int64), ("",))]
        )
        if person is not None:
            self._seen.add(self._people.number([person]), group)
        every = group
        if left_out is not None:
            group, values = group[~left_out], values[~left_out]
        local, inverse = np.arange(len(self)), group
        if local.size > values.size:
            local, inverse = np.unique(group, return_inverse=True)
        self._sizes = _grown(self._sizes, len(self))
        self._sizes[local] += np.bincount(inverse, minlength=local.size)
        if self._values is not None:
            self._values.add(group, values)
            return every
        whole, exponent = _wholes(values)
        places, shift = np.divmod(exponent, DIGIT)
        lowest, mask = int(places.min(initial=0)), (1 << DIGIT) - 1
        # Both halves start at a place of their own; the upper one is a place and a bit above the lower one.
        low = (whole & (2 * mask + 1)) << shift
        high = (whole >> (DIGIT + 1)) << (shift + 1)
        digits = (low & mask, (low >> DIGIT) + (high & mask), high >> DIGIT)
        for place in (np.flatnonzero(np.bincount(places - lowest)) + lowest).tolist():
            kept = places == place
            for k, digit in enumerate(digits, start=place):
                sums = self._digits[k] = _grown(
                    self._digits.get(k, np.zeros(0, np.int64)), len(self)
                )
                weights = (digit[kept] * np.sign(values[kept])).astype(np.float64)
                sums[local] += np.bincount(inverse[kept], weights, local.size).astype(
                    np.int64
                )
        return every

    def totals(self) -> Multiples:
        """The exact sum of each group."""
        given = self._digits or {0: np.zeros(0, np.int64)}
        first, digits = (
            min(given),
            [_grown(own, len(self))[: len(self)] for own in given.values()],
        )
        shifts = [(place - first) * DIGIT for place in given]
        # One by one: lists of so many integers would take more room than the digits.
        sums = (
            sum(int(d) << shift for d, shift in zip(row, shifts, strict=True))
            for row in zip(*digits, strict=True)
        )
        return sums, Fraction(2) ** (first * DIGIT)

    def ranked(self, ranks: Callable[[int], tuple[int, int]]) -> Multiples:
        """For each group the mean of the two values of these places in its order, from 1; 0 for an empty group."""
        sizes = self._sizes[: len(self)]
        ends, middle, first = np.cumsum(sizes), np.zeros((2, len(self))), 0
        while first < len(self):
            # Groups in slices: a pass over the file for each.
            start = int(ends[first] - sizes[first])
            room = max(RANKED, int(ends[-1]) // PASSES)
            last = max(first + 1, int(np.searchsorted(ends, start + room, "right")))
            free = ends[first:last] - sizes[first:last] - start
            placed = np.empty(int(ends[last - 1]) - start)
            for group, values in self._values or ():
                mine = (group >= first) & (group < last)
                group, values = group[mine] - first, values[mine]
                order = np.argsort(group, kind="stable")
                local, place, many = np.unique(
                    group[order], return_index=True, return_counts=True
                )
                placed[np.arange(order.size) + np.repeat(free[local] - place, many)] = (
                    values[order]
                )
                free[local] += many
            for g, end in enumerate(free.tolist(), start=first):
                if size := int(sizes[g]):
                    places, own = np.array(ranks(size)) - 1, placed[end - size : end]
                    own.partition(places)
                    middle[:, g] = own[places]
            first = last
        whole, exponent = _wholes(middle)
        least = int(exponent.min(initial=0))
        whole, exponent = np.copysign(whole, middle).astype(np.int64), exponent - least
        pairs = zip(*whole, *exponent, strict=True)
        return (
            (int(a) << int(j)) + (int(b) << int(k)) for a, b, j, k in pairs
        ), Fraction(2) ** (least - 1)

    def most_answers(self, *, single: bool = False) -> int | None:
        """The most groups (or, each record an answer of its own, records) of one individual; None if none is named."""
        if not self._seen.sizes:
            return None
        pairs = self._pairs()
        if not single and bool((pairs[1:] == pairs[:-1]).any()):
            raise InputError(
                "an individual has several records in one group; add them up to one value each first, and give "
                "the range of that"
            )
        pairs //= len(self)
        return int(
            np.diff(
                np.flatnonzero(pairs[1:] != pairs[:-1]),
                prepend=-1,
                append=pairs.size - 1,
            ).max()
        )

    def _pairs(self) -> NDArray[Any]:
        """Who is in which group, as one number each, in order of the individuals."""
        many = len(self)
        pairs, end = (
            np.empty(
                sum(self._seen.sizes),
                "u4" if many * len(self._people) < 2**32 else "u8",
            ),
            0,
        )
        for people, group in self._seen:
            pairs[end : (end := end + group.size)] = (
                people.astype(pairs.dtype) * pairs.dtype.type(many) + group
            )
        pairs.sort()
        return pairs

    def patterns(self) -> tuple[list[int], Indices]:
        """The distinct sizes of groups; and for each kind of individual in how many groups of each size it is."""
        sizes, kind = np.unique(self._sizes[: len(self)], return_inverse=True)
        pairs, many, at = self._pairs(), len(self), max(1, COUNTED // sizes.size)
        found = [np.zeros((0, sizes.size), np.int64)]
        for first in range(0, len(self._people), at):
            ends = np.array(
                [first * many, min(first + at, len(self._people)) * many - 1],
                pairs.dtype,
            )
            start, last = (
                np.searchsorted(pairs, ends[:1])[0],
                np.searchsorted(pairs, ends[1:], "right")[0],
            )
            person, group = np.divmod(pairs[start:last], pairs.dtype.type(many))
            place = (person.astype(np.int64) - first) * sizes.size + kind[group]
            times = np.bincount(place, minlength=at * sizes.size)[
                : at * sizes.size
            ].reshape(at, -1)
            found.append(np.unique(times[times.any(axis=1)], axis=0))
        return sizes.tolist(), np.unique(np.concatenate(found), axis=0)


def _grown(array: Codes, size: int) -> Codes:
    """The array with zeros up to this size, and further ones to grow into."""
    return (
        array
        if array.size >= size
        else np.pad(array, (0, max(size, 2 * array.size) - array.size))
    )


def _wholes(values: Floats) -> tuple[Indices, Indices]:
    """The magnitudes of doubles as whole numbers, each times a power of two."""
    mantissa, exponent = np.frexp(np.abs(values))
    return np.ldexp(mantissa, 53).astype(np.int64), np.where(
        values == 0, 0, exponent - 53
    ).astype(np.int64)
