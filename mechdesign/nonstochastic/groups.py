"""Groups of records, collected batch by batch: sizes, exact sums or order statistics, and members.

1. `Groups.add` numbers the groups of a batch in the order of their appearance, counts their
   records, and passes the values on: to `ExactSums`, or to `OrderedValues` for order statistics.
2. After the last batch `totals` or `ranked` gives the exact answers, as integers of one unit.
3. `most_answers` and `patterns` say how much a single individual takes part (`Memberships`).

For example, the records (Ulm, 1.5), (Kiel, 2) and (Ulm, 3) are in the groups 0, 1 and 0. The `keys`
are (Ulm,) and (Kiel,), the sizes 2 and 1, and the sums 4.5 and 2.

Memory grows with the groups and the individuals, not with the records; the values that order
statistics need, and the members of groups, spill into a file.

*Order statistics*, such as medians, of groups whose values may be too many for memory:

1. `OrderedValues.add` keeps all values with their groups, in a file if they are many
   (`SpilledArrays`).
2. `OrderedValues.ranked` takes as many groups at a time as fit into memory. A pass over all values
   gathers theirs, group by group (`_sorted_by_group`).
3. Of each group the values at the two ranks asked for are selected, without sorting the others
   (`_ranked_slice`).
4. Their means are exact: integers of one unit, a power of two.

For example, group 0 has the values 3, 1, 4 and 2.5, and group 1 has 7 and 8. Medians are the means
of ranks 2 and 3, and of ranks 1 and 2: 2.75 and 7.5.

*Individuals in groups of records.* A membership is one integer, individual * groups + group.
Sorted, these integers are ordered by individual, so the answers of one individual are a run:

- `most_answers` is the length of the longest run, for a guarantee of all answers together.
- `patterns` counts in each run the groups of each size. Individuals with equal counts are one kind,
  and a budget that is divided by size of group needs the kinds alone (`dividing`).

For example, Ann is in the groups 0 and 2 of three groups, and Bob in group 1; they have 10, 10 and
40 records. Ann's memberships are 0 and 2, and Bob's is 4. One individual has at most 2 answers. The
sizes are 10 and 40, and the kinds are (1, 1) for Ann and (1, 0) for Bob.

Memory grows with the individuals. Their memberships may spill into a file (`SpilledArrays`).

*Arrays of many batches* (`SpilledArrays`) are written one after the other as their bytes, and read
again in that order. Only the length of each batch is remembered, which with the dtypes says how
many bytes to read:

>>> pairs = SpilledArrays("i4", "f8")
>>> pairs.add(np.array([3, 1]), np.array([0.5, 2.0]))
>>> [[array.tolist() for array in batch] for batch in pairs]
[[[3, 1], [0.5, 2.0]]]
"""

from __future__ import annotations

import secrets
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.formats.arrow_arrays import arrow_texts
from mechdesign.formats.cells import Encoded
from mechdesign.formats.digests import RowHasher
from mechdesign.formats.distinct import Numbering
from mechdesign.nonstochastic.number_columns import (
    Codes,
    ExactSums,
    Floats,
    Indices,
    Multiples,
    as_integers,
    grown,
)
from mechdesign.release.draws import KEY_BYTES
from mechdesign.release.identified_draws import FirstSymbols

# ---------------------------------------------------------------------- arrays in files

SPILLED = 1 << 24
"""Most bytes that are kept in memory."""


class SpilledArrays:
    """Batches of some arrays of equal length, in the order in which they were added.

    Parameters
    ----------
    *types : str
        The dtype of each array of a batch, such as ``"i4"``.

    Attributes
    ----------
    sizes : list of int
        The length of each batch.
    """

    def __init__(self, *types: str) -> None:
        self._types = [np.dtype(name) for name in types]
        self.sizes = list[int]()
        with ExitStack() as open_files:
            self._file = open_files.enter_context(
                tempfile.SpooledTemporaryFile(SPILLED)
            )
            # Closed, and so removed, with this object, however the program leaves it. A method of
            # this object would keep it alive; the stack of files does not know it.
            weakref.finalize(self, open_files.pop_all().close)

    def add(self, *arrays: NDArray[Any]) -> None:
        """Add a batch: an array of each type, all of one length."""
        self.sizes.append(len(arrays[0]))
        for dtype, array in zip(self._types, arrays, strict=True):
            self._file.write(array.astype(dtype, copy=False).tobytes())

    def __iter__(self) -> Iterator[list[Any]]:
        self._file.seek(0)
        for size in self.sizes:
            batch: list[Any] = []
            for dtype in self._types:
                content = self._file.read(size * dtype.itemsize)
                batch.append(np.frombuffer(content, dtype))
            yield batch


# ------------------------------------------------------------------------------- groups


class Groups:
    """Exact sums and sizes of groups, or all their values, and the individuals in them.

    Parameters
    ----------
    ordered
        Keep all values for order statistics (`ranked`), and no sums (`totals`).
    """

    def __init__(self, *, ordered: bool = False) -> None:
        self._numbering = Numbering()
        self._sizes: Codes = np.zeros(0, dtype=np.int64)
        self._ordered = ordered
        self._sums = ExactSums()
        self._values = OrderedValues()
        self._memberships = Memberships()

    def __len__(self) -> int:
        return len(self._numbering)

    @property
    def keys(self) -> list[tuple[str, ...]]:
        """The groups in order of appearance."""
        return list(self._numbering.texts)

    @property
    def sizes(self) -> list[int]:
        """Records of each group."""
        # The array has room for further groups.
        return self._sizes[: len(self)].tolist()

    def add(
        self,
        keys: Sequence[Encoded],
        values: Floats,
        person: Encoded | None = None,
        left_out: NDArray[np.bool_] | None = None,
    ) -> Codes:
        """Add a batch, and return the group of each record.

        Parameters
        ----------
        keys
            The columns that name the group; without any, all records are one group.
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
        all_groups = self._numbering.number(keys)
        if person is not None:
            self._memberships.add(person, all_groups)
        group = all_groups
        if left_out is not None:
            group = group[~left_out]
            values = values[~left_out]
        # Few groups are summed over all their numbers; many, over those that occur in the batch.
        present = np.arange(len(self))
        member = group
        if present.size > values.size:
            present, member = np.unique(group, return_inverse=True)
        self._sizes = grown(self._sizes, len(self))
        self._sizes[present] += np.bincount(member, minlength=present.size)
        if self._ordered:
            self._values.add(group, values)
        else:
            self._sums.add(len(self), present, member, values)
        return all_groups

    def totals(self) -> Multiples:
        """The exact sum of each group."""
        return self._sums.totals(len(self))

    def ranked(self, ranks: Callable[[int], tuple[int, int]]) -> Multiples:
        """The mean of two order statistics of each group (see `OrderedValues.ranked`)."""
        return self._values.ranked(self._sizes[: len(self)], ranks)

    def most_answers(self, *, single: bool = False) -> int | None:
        """The most answers that one individual takes part in (see `Memberships.most_answers`)."""
        return self._memberships.most_answers(len(self), single=single)

    def patterns(self) -> tuple[list[int], Indices]:
        """The distinct sizes of groups, and the kinds of individuals in them.

        See `Memberships.patterns`.
        """
        return self._memberships.patterns(self._sizes[: len(self)])


RANKED = 1 << 20
"""Values that are gathered at once: 8 MB."""

PASSES = 10
"""Most passes over the values; more would take longer than the memory they save is worth."""


class OrderedValues:
    """All values of groups, for order statistics. Groups are numbered from 0."""

    def __init__(self) -> None:
        self._values = SpilledArrays("i4", "f8")

    def add(self, group: Codes, values: Floats) -> None:
        """Add a batch of values and the group of each."""
        self._values.add(group, values)

    def ranked(
        self, sizes: Codes, ranks: Callable[[int], tuple[int, int]]
    ) -> Multiples:
        """The mean of two order statistics of each group, as integers and their unit.

        It is 0 for an empty group.

        Parameters
        ----------
        sizes : (groups,) integers
            The number of values of each group.
        ranks
            From the size of a group to the places, from 1, of the two values in its order.
        """
        ends = np.cumsum(sizes)
        middle = np.zeros((2, sizes.size))
        first = 0
        while first < sizes.size:
            # Groups in slices that fit into memory, with a pass over all values for each.
            start = int(ends[first] - sizes[first])
            room = max(RANKED, int(ends[-1]) // PASSES)
            # A group that is larger than the memory has a slice of its own.
            last = max(first + 1, int(np.searchsorted(ends, start + room, "right")))
            middle[:, first:last] = self._ranked_slice(first, sizes[first:last], ranks)
            first = last
        # A double is an integer times a power of two. Over the least of these powers all sums are
        # exact.
        whole, exponent = as_integers(middle)
        lowest = int(exponent.min(initial=0))
        signed = np.copysign(whole, middle).astype(np.int64)
        shifts = exponent - lowest

        def doubled_means() -> Iterator[int]:
            for low, high, low_shift, high_shift in zip(*signed, *shifts, strict=True):
                yield (int(low) << int(low_shift)) + (int(high) << int(high_shift))

        # Half of the unit of the values, because the means are doubled.
        return doubled_means(), Fraction(2) ** (lowest - 1)

    def _ranked_slice(
        self, first: int, sizes: Codes, ranks: Callable[[int], tuple[int, int]]
    ) -> Floats:
        """(2, groups) the two order statistics of the groups from `first` on, of these sizes."""
        by_group, ends = self._sorted_by_group(first, sizes)
        statistics = np.zeros((2, sizes.size))
        for k, (size, end) in enumerate(zip(sizes.tolist(), ends, strict=True)):
            if size:
                places = np.array(ranks(size)) - 1
                members = by_group[end - size : end]
                members.partition(places)
                statistics[:, k] = members[places]
        return statistics

    def _sorted_by_group(self, first: int, sizes: Codes) -> tuple[Floats, list[int]]:
        """The values of the groups from `first` on, group by group, and where each group ends."""
        ends = np.cumsum(sizes)
        by_group = np.empty(int(ends[-1]))
        # The next free place of each group; after the pass, the end of its values.
        free = ends - sizes
        for group, values in self._values:
            in_slice = (group >= first) & (group < first + sizes.size)
            group = group[in_slice] - first
            values = values[in_slice]
            # A run of equal numbers in this order is copied to the free places of its group.
            order = np.argsort(group, kind="stable")
            present, run_start, count = np.unique(
                group[order], return_index=True, return_counts=True
            )
            offsets = np.repeat(free[present] - run_start, count)
            by_group[np.arange(order.size) + offsets] = values[order]
            free[present] += count
        return by_group, free.tolist()


MOST_INDIVIDUALS = 1 << 31
"""Individuals, and groups, have numbers of 32 bits."""

COUNTED = 1 << 20
"""Counts of answers, by individual and size of group, that are held at once: 8 MB."""


class Memberships:
    """The pairs of an individual and a group that occur. Groups are numbered from 0."""

    def __init__(self) -> None:
        self._individuals = _Individuals()
        self._pairs = SpilledArrays("i4", "i4")

    def add(self, person: Encoded, group: Codes) -> None:
        """Add a batch of records: the column that names the individual, and the group of each."""
        self._pairs.add(self._individuals.number(person), group)

    def most_answers(self, groups: int, *, single: bool) -> int | None:
        """The most answers that one individual takes part in; None if individuals are not named.

        Parameters
        ----------
        groups
            The number of groups.
        single
            Each record is an answer of its own; else each group is one.

        Raises
        ------
        InputError
            If an individual has several records in one group.
        """
        if not self._pairs.sizes:
            return None
        pairs = self._sorted_pairs(groups)
        if not single and bool((pairs[1:] == pairs[:-1]).any()):
            raise InputError(
                "an individual has several records in one group; add them up to one value each "
                "first, and give the range of that"
            )
        # The pairs of an individual are a run; its length is the number of answers.
        people = pairs // groups
        last_of_each = np.flatnonzero(people[1:] != people[:-1])
        answers = np.diff(last_of_each, prepend=-1, append=people.size - 1)
        return int(answers.max())

    def patterns(self, group_sizes: Codes) -> tuple[list[int], Indices]:
        """The distinct sizes of groups, and the kinds of individuals.

        Parameters
        ----------
        group_sizes : (groups,) integers
            The size of each group.

        Returns
        -------
        sizes
            The s distinct sizes, increasing.
        patterns : (k, s) integers
            For each kind of individual, the number of groups of each size that it is in; rows are
            distinct.
        """
        sizes, size_of = np.unique(group_sizes, return_inverse=True)
        groups = group_sizes.size
        pairs = self._sorted_pairs(groups)
        # The counts of all individuals together could exceed the memory.
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
            # Numbers without memberships have no answers.
            distinct.append(np.unique(times[times.any(axis=1)], axis=0))
        return sizes.tolist(), np.unique(np.concatenate(distinct), axis=0)

    def _sorted_pairs(self, groups: int) -> NDArray[Any]:
        """Each membership as one number, individual * groups + group, sorted: so by individual."""
        # Sorting numbers of 32 bits takes half the time and memory.
        dtype = "u4" if groups * len(self._individuals) < 2**32 else "u8"
        pairs = np.empty(sum(self._pairs.sizes), dtype)
        start = 0
        for people, group in self._pairs:
            end = start + group.size
            scaled = people.astype(pairs.dtype) * pairs.dtype.type(groups)
            pairs[start:end] = scaled + group
            start = end
        pairs.sort()
        return pairs


class _Individuals:
    """Numbers individuals in the order of their first appearance.

    They are told apart by keyed hashes of 64 bits: among n individuals two are taken for one with a
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
        # Each distinct text of the batch is hashed once, however many records have it.
        hashes = self._hasher.identifiers([texts])
        places = np.zeros(len(hashes), np.int64)
        is_new, places = self._numbers.find(hashes, places)
        distinct, at, inverse = np.unique(
            hashes[is_new], return_index=True, return_inverse=True
        )
        # `distinct` is sorted by hash, and numbers follow the places `at`, where each came first.
        # Texts that no record has may be numbered, too: gaps do no harm.
        numbers = np.empty(len(distinct), np.int64)
        numbers[np.argsort(at)] = np.arange(self._size, self._size + len(distinct))
        self._size += len(distinct)
        self._numbers.look(distinct, numbers)
        # A copy, because `find` may return the array that it was given.
        places = places.copy()
        places[is_new] = numbers[inverse]
        return places[person.codes]
