"""The individuals in groups of records: the answers of one individual, and kinds of individuals.

A membership is one integer, individual * groups + group. Sorted, these integers are ordered by
individual, so the answers of one individual are a run:

- `most_answers` is the length of the longest run, for a guarantee of all answers together.
- `patterns` counts in each run the groups of each size. Individuals with equal counts are one kind,
  and a budget that is divided by size of group needs the kinds alone (`dividing`).

For example, Ann is in the groups 0 and 2 of three groups, and Bob in group 1; they have 10, 10 and
40 records. Ann's memberships are 0 and 2, and Bob's is 4. One individual has at most 2 answers. The
sizes are 10 and 40, and the kinds are (1, 1) for Ann and (1, 0) for Bob.

Memory grows with the individuals. Their memberships may spill into a file (`SpilledArrays`).
"""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.formats.arrow_arrays import arrow_texts
from mechdesign.formats.cells import Encoded
from mechdesign.formats.digests import RowHasher
from mechdesign.nonstochastic.exact_sums import Codes, Indices
from mechdesign.nonstochastic.spilled_arrays import SpilledArrays
from mechdesign.release.draws import KEY_BYTES
from mechdesign.release.first_symbols import FirstSymbols

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
