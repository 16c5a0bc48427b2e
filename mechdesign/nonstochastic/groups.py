"""Exact sums, order statistics and sizes of groups of records, and their members, collected batch
by batch.

A double is an integer of 53 bits times a power of two. A group's sum is kept as digits of 26 bits
at fixed binary places: one addition spreads a double over three neighbouring digits, and the digits
of a batch are added up in doubles, which hold these sums without rounding. So the totals are exact,
in any order of the records.

Memory grows with the groups and the individuals, not with the records; the values that order
statistics need, and the members of groups, spill into a file.
"""

# pyright: basic
from __future__ import annotations

import secrets
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.formats.arrow_arrays import arrow_texts
from mechdesign.formats.cells import Encoded
from mechdesign.formats.digests import RowHasher
from mechdesign.formats.distinct import Numbering
from mechdesign.release.draws import KEY_BYTES
from mechdesign.release.first_symbols import FirstSymbols

MOST_INDIVIDUALS = 1 << 31
"""Individuals, and groups, have numbers of 32 bits."""

SPILLED = 1 << 24
"""Bytes of values, or of memberships, that are kept in memory."""

RANKED = 1 << 20
"""Values that are put in order at once: 8 MB."""

PASSES = 10
"""Most passes over the values; more would take longer than the memory they save is worth."""

COUNTED = 1 << 20
"""Counts of answers, by individual and size of group, that are held at once: 8 MB."""

DIGIT = 26
"""Bits of a digit of a sum. A batch of 2^25 digits, each with a carry below 2^27, still adds up
below 2^53.
"""

Floats = NDArray[np.float64]
Codes = NDArray[np.integer[Any]]
Indices = NDArray[np.int64]

Multiples: TypeAlias = tuple[Iterable[int], Fraction]
"""Exact numbers, as whole multiples of a unit."""


class _SpilledArrays:
    """Arrays of one length, batch by batch, in memory or, if many, in a file without a name."""

    def __init__(self, *types: str) -> None:
        self.types = [np.dtype(name) for name in types]
        self.sizes = list[int]()
        with ExitStack() as open_files:
            self.file = open_files.enter_context(tempfile.SpooledTemporaryFile(SPILLED))
            weakref.finalize(self, open_files.pop_all().close)

    def add(self, *arrays: NDArray[Any]) -> None:
        self.sizes.append(len(arrays[0]))
        for dtype, array in zip(self.types, arrays, strict=True):
            self.file.write(array.astype(dtype, copy=False).tobytes())

    def __iter__(self) -> Iterator[list[Any]]:
        self.file.seek(0)
        for size in self.sizes:
            batch: list[Any] = []
            for dtype in self.types:
                bytes_read = self.file.read(size * dtype.itemsize)
                batch.append(np.frombuffer(bytes_read, dtype))
            yield batch


class _Individuals:
    """Numbers individuals in the order of their first appearance.

    They are known by keyed hashes of 64 bits: among n individuals two are taken for one with a
    probability of n^2 / 2^65, which adds to the answers that one seems to take part in.
    """

    def __init__(self) -> None:
        self._hasher = RowHasher(secrets.token_bytes(KEY_BYTES))
        self._numbers = FirstSymbols(MOST_INDIVIDUALS)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def number(self, person: Encoded) -> Codes:
        """The number of the individual of each record; a missing cell is the empty text."""
        # The code -1 of a missing cell leads to the empty text at the end.
        texts = arrow_texts((*person.texts, ""))
        hashes = self._hasher.identifiers([texts])
        places = np.zeros(len(hashes), np.int64)
        is_new, places = self._numbers.find(hashes, places)
        distinct, at, inverse = np.unique(
            hashes[is_new], return_index=True, return_inverse=True
        )
        # Texts that no record has may be numbered, too: gaps do no harm.
        numbers = np.empty(len(distinct), np.int64)
        numbers[np.argsort(at)] = np.arange(self._size, self._size + len(distinct))
        self._size += len(distinct)
        self._numbers.look(distinct, numbers)
        places = places.copy()
        places[is_new] = numbers[inverse]
        return places[person.codes]


class Groups:
    """Exact sums and sizes of groups, or all their values, and the individuals in them.

    Parameters
    ----------
    ordered
        Keep all values for order statistics (`ranked`), and no sums (`totals`).
    """

    def __init__(self, *, ordered: bool = False) -> None:
        self._values: _SpilledArrays | None = None
        if ordered:
            self._values = _SpilledArrays("i4", "f8")
        self._groups = Numbering()
        self._individuals = _Individuals()
        self._sizes: Codes = np.zeros(0, dtype=np.int64)
        self._digits: dict[int, Codes] = {}
        self._memberships = _SpilledArrays("i4", "i4")

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
        """Add a batch, and return the group of each record; without keys, all records are one
        group.

        Parameters
        ----------
        keys
            The columns that name the group.
        values : (n,) array
            The number of each record.
        person
            The column that names the individual.
        left_out : (n,) truth values
            Records without a value inside the range. Their individuals are members of the group all
            the same: with another value they would have been in the answer.
        """
        if not keys:
            keys = [Encoded(np.zeros(values.size, np.int64), ("",))]
        all_groups = self._groups.number(keys)
        if person is not None:
            self._memberships.add(self._individuals.number(person), all_groups)
        group = all_groups
        if left_out is not None:
            group = group[~left_out]
            values = values[~left_out]
        # Few groups are summed over all their numbers; many, over those that occur in the batch.
        present = np.arange(len(self))
        inverse = group
        if present.size > values.size:
            present, inverse = np.unique(group, return_inverse=True)
        self._sizes = _grown(self._sizes, len(self))
        self._sizes[present] += np.bincount(inverse, minlength=present.size)
        if self._values is not None:
            self._values.add(group, values)
        else:
            self._add_digits(present, inverse, values)
        return all_groups

    def _add_digits(self, present: Codes, inverse: Codes, values: Floats) -> None:
        """Add the digits of values to the sums of their groups, ``present[inverse]``."""
        whole, exponent = _as_integers(values)
        places, shift = np.divmod(exponent, DIGIT)
        mask = (1 << DIGIT) - 1
        # A shift of up to 25 bits must not overflow, so the 53 bits are shifted in two halves: the
        # lower 27, whose digits begin at this place, and the upper 26, which are 2^27 = 2^26 * 2
        # units: one place and one bit higher.
        low = (whole & (2 * mask + 1)) << shift
        high = (whole >> (DIGIT + 1)) << (shift + 1)
        digits = (low & mask, (low >> DIGIT) + (high & mask), high >> DIGIT)
        lowest = int(places.min(initial=0))
        occurring = np.flatnonzero(np.bincount(places - lowest)) + lowest
        for place in occurring.tolist():
            here = places == place
            signs = np.sign(values[here])
            for k, digit in enumerate(digits, start=place):
                sums = _grown(self._digits.get(k, np.zeros(0, np.int64)), len(self))
                self._digits[k] = sums
                signed = (digit[here] * signs).astype(np.float64)
                # Exact: see DIGIT.
                added = np.bincount(inverse[here], signed, present.size)
                sums[present] += added.astype(np.int64)

    def totals(self) -> Multiples:
        """The exact sum of each group."""
        sums_by_place = self._digits or {0: np.zeros(0, np.int64)}
        lowest = min(sums_by_place)
        shifts = [(place - lowest) * DIGIT for place in sums_by_place]
        digits = [
            _grown(sums, len(self))[: len(self)] for sums in sums_by_place.values()
        ]

        def totals() -> Iterator[int]:
            # One by one: a list of so many integers would take more room than the digits.
            for row in zip(*digits, strict=True):
                total = 0
                for digit, shift in zip(row, shifts, strict=True):
                    total += int(digit) << shift
                yield total

        return totals(), Fraction(2) ** (lowest * DIGIT)

    def ranked(self, ranks: Callable[[int], tuple[int, int]]) -> Multiples:
        """The mean of two order statistics of each group; 0 for an empty group.

        Parameters
        ----------
        ranks
            From the size of a group to the places, from 1, of the two values in its order.
        """
        sizes = self._sizes[: len(self)]
        ends = np.cumsum(sizes)
        middle = np.zeros((2, len(self)))
        first = 0
        while first < len(self):
            # Groups in slices that fit into memory, with a pass over the file for each.
            start = int(ends[first] - sizes[first])
            room = max(RANKED, int(ends[-1]) // PASSES)
            last = max(first + 1, int(np.searchsorted(ends, start + room, "right")))
            self._rank_slice(first, last, ranks, middle)
            first = last
        whole, exponent = _as_integers(middle)
        lowest = int(exponent.min(initial=0))
        signed = np.copysign(whole, middle).astype(np.int64)
        shifts = exponent - lowest

        def doubled_means() -> Iterator[int]:
            for a, b, j, k in zip(*signed, *shifts, strict=True):
                yield (int(a) << int(j)) + (int(b) << int(k))

        return doubled_means(), Fraction(2) ** (lowest - 1)

    def _rank_slice(
        self,
        first: int,
        last: int,
        ranks: Callable[[int], tuple[int, int]],
        middle: Floats,
    ) -> None:
        """Fill `middle` for the groups from `first` to `last`; their values fit into one array."""
        sizes = self._sizes[: len(self)]
        ends = np.cumsum(sizes)
        start = int(ends[first] - sizes[first])
        placed = np.empty(int(ends[last - 1]) - start)
        # The next free place of each group; after the pass, the end of its values.
        free = ends[first:last] - sizes[first:last] - start
        for group, values in self._values or ():
            in_slice = (group >= first) & (group < last)
            group = group[in_slice] - first
            values = values[in_slice]
            order = np.argsort(group, kind="stable")
            present, place, count = np.unique(
                group[order], return_index=True, return_counts=True
            )
            offsets = np.repeat(free[present] - place, count)
            placed[np.arange(order.size) + offsets] = values[order]
            free[present] += count
        for g, end in enumerate(free.tolist(), start=first):
            size = int(sizes[g])
            if size:
                places = np.array(ranks(size)) - 1
                members = placed[end - size : end]
                members.partition(places)
                middle[:, g] = members[places]

    def most_answers(self, *, single: bool = False) -> int | None:
        """The most answers that one individual takes part in; None if individuals are not named.

        Parameters
        ----------
        single
            Each record is an answer of its own; else each group is one.

        Raises
        ------
        InputError
            If an individual has several records in one group.
        """
        if not self._memberships.sizes:
            return None
        pairs = self._sorted_memberships()
        if not single and bool((pairs[1:] == pairs[:-1]).any()):
            raise InputError(
                "an individual has several records in one group; add them up to one value each "
                "first, and give the range of that"
            )
        people = pairs // len(self)
        last_of_each = np.flatnonzero(people[1:] != people[:-1])
        answers = np.diff(last_of_each, prepend=-1, append=people.size - 1)
        return int(answers.max())

    def _sorted_memberships(self) -> NDArray[Any]:
        """Each membership as one number, individual * groups + group, sorted: so by individual."""
        groups = len(self)
        dtype = "u4" if groups * len(self._individuals) < 2**32 else "u8"
        pairs = np.empty(sum(self._memberships.sizes), dtype)
        start = 0
        for people, group in self._memberships:
            end = start + group.size
            scaled = people.astype(pairs.dtype) * pairs.dtype.type(groups)
            pairs[start:end] = scaled + group
            start = end
        pairs.sort()
        return pairs

    def patterns(self) -> tuple[list[int], Indices]:
        """The distinct sizes of groups, and the kinds of individuals.

        Returns
        -------
        sizes
            The s distinct sizes, increasing.
        patterns : (k, s) integers
            For each kind of individual, the number of groups of each size that it is in; rows are
            distinct.
        """
        sizes, size_of = np.unique(self._sizes[: len(self)], return_inverse=True)
        groups = len(self)
        pairs = self._sorted_memberships()
        step = max(1, COUNTED // sizes.size)
        distinct = [np.zeros((0, sizes.size), np.int64)]
        for first in range(0, len(self._individuals), step):
            # The memberships of a slice of individuals are a run of the sorted numbers.
            beyond = min(first + step, len(self._individuals))
            ends = np.array([first * groups, beyond * groups - 1], pairs.dtype)
            start = np.searchsorted(pairs, ends[:1])[0]
            stop = np.searchsorted(pairs, ends[1:], "right")[0]
            person, group = np.divmod(pairs[start:stop], pairs.dtype.type(groups))
            place = (person.astype(np.int64) - first) * sizes.size + size_of[group]
            counts = np.bincount(place, minlength=step * sizes.size)
            times = counts[: step * sizes.size].reshape(step, -1)
            distinct.append(np.unique(times[times.any(axis=1)], axis=0))
        return sizes.tolist(), np.unique(np.concatenate(distinct), axis=0)


def _grown(array: Codes, size: int) -> Codes:
    """The array, extended by zeros to `size` or to twice its length, so that growing is cheap."""
    if array.size >= size:
        return array
    return np.pad(array, (0, max(size, 2 * array.size) - array.size))


def _as_integers(values: Floats) -> tuple[Indices, Indices]:
    """The magnitudes of doubles as integers below 2^53, and their exponents of two (0 for 0)."""
    mantissa, exponent = np.frexp(np.abs(values))
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    exponents = np.where(values == 0, 0, exponent - 53).astype(np.int64)
    return whole, exponents
