"""Records without what identifies them, by which they are known under other identifiers.

The hash of a bare record is that of its cells but for the identifying columns. With the identifier
``id``, the records ``17, clerk, Aby`` and ``18, clerk, Aby`` are the bare record ``clerk, Aby``
twice: one hash with the count 2.

`BareRecords` visits these hashes while a table is drawn, batch by batch, and gives their
`BareContent`: what the ledger keeps of them with the release, and what `likeness` compares with
earlier ones. It has two contents of a table: that of all records, to be kept, and for each channel
that of the records whose identifiers are new, to be compared.

A content is a sample, as for whole records (`formats.census`): the smallest hashes, each with the
number of records that have it.

A *kind* is a different bare record. Two tables of few kinds may well have the same number of each
by chance, so their order is compared, too. What an equal order is worth depends on the table: a
sorted one proves nothing. So `BareCensus` counts the steps from each kind to the next, and
`chance_bits.order_bits` turns them into bits. For example, the records a, b, b, a, b have the steps
a to b twice, b to b once and b to a once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.integers import Integers
from mechdesign.formats.census import Census, Content, Hashes
from mechdesign.jobs.chance_bits import order_bits
from mechdesign.jobs.recipe import RecordedDraws

KINDS = 64
"""Kinds of rows whose order is looked at. A table with more of them shows by their numbers."""

HEAD = 8
"""Words of 8 bytes before the values in the bytes of `BareContent`."""


class BareRecords:
    """Visits the records of a table without their identifiers: all of them, and for each
    releasable those that no earlier release through it had.
    """

    def __init__(
        self,
        releases: Sequence[RecordedDraws],
        census: Callable[[], BareCensus] | None = None,
    ) -> None:
        census = census or BareCensus
        self._releases = releases
        self._all = census()
        self._new: dict[int, BareCensus] = {}
        for k, release in enumerate(releases):
            if not release.earlier.empty:
                self._new[k] = census()

    def add(self, hashes: NDArray[Any]) -> None:
        """Visit records that were just drawn by their hashes, or by the codes of these."""
        self._all.add(hashes)
        for k, census in self._new.items():
            census.add(hashes[self._releases[k].are_new])

    @property
    def content(self) -> BareContent:
        """The content of all records visited."""
        return self._all.bare_content()

    def new(self, k: int) -> BareContent:
        """The content of those that are new to a releasable: all, where it has no earlier ones."""
        return self._new.get(k, self._all).bare_content()


@dataclass(frozen=True)
class BareContent:
    """What is kept of the bare records of a data set.

    Attributes
    ----------
    records : int
        Their number.
    ordered, unordered : str
        Hashes of the records in their order and in any order.
    limit : int
        The largest hash in the sample, or `ALL` where the sample is of all records.
    values, counts : arrays
        The hashes up to the limit, ascending, and how many records have each.
    order : float
        The bits that the order of the records is worth; not among the bytes.
    """

    records: int
    ordered: str
    unordered: str
    limit: int
    values: Hashes = field(repr=False)
    counts: Integers = field(repr=False)
    order: float = 0.0

    def to_bytes(self) -> bytes:
        """The content as a ledger keeps it.

        Three words (limit, records, number of values), the two hashes (16 and 24 bytes), the values
        as words of 64 bits, and their counts as words of 32 bits.
        """
        head = [self.limit, self.records, len(self.values)]
        words = np.array(head, "<u8").tobytes()
        words += bytes.fromhex(self.ordered) + bytes.fromhex(self.unordered)
        return words + self.values.astype("<u8").tobytes() + _packed(self.counts)

    @classmethod
    def from_bytes(cls, stored: bytes) -> BareContent:
        """The content from `to_bytes`."""
        limit, records, size = np.frombuffer(stored, "<u8", 3).tolist()
        values_end = 8 * (HEAD + size)
        return cls(
            records=records,
            ordered=stored[24:40].hex(),
            unordered=stored[40:64].hex(),
            limit=limit,
            values=np.frombuffer(stored[64:values_end], "<u8"),
            counts=np.frombuffer(stored[values_end:], "<u4").astype(np.int64),
        )

    def in_units(self, limit: int) -> tuple[Hashes, Integers]:
        """The values up to a limit and their counts; a row that always comes so many times counts
        as one.
        """
        chosen = self.values <= np.uint64(limit)
        return self.values[chosen], self.counts[chosen] // self.copies

    @property
    def copies(self) -> int:
        """How often every record is there, to judge by the sample: 2 if the table was doubled.

        It is the greatest common divisor of all counts.
        """
        return math.gcd(*self.counts.tolist()) or 1


def _packed(counts: Integers) -> bytes:
    """Counts as words of 32 bits; what is larger counts as the largest."""
    return np.minimum(counts, 2**32 - 1).astype("<u4").tobytes()


class BareCensus(Census):
    """Visits the hashes of all bare records of a data set, batch by batch."""

    def __init__(self) -> None:
        super().__init__()
        self._kinds: Hashes | None = np.zeros(0, np.uint64)
        """The different hashes in the order of their numbers; None where there are too many."""
        # How often kind j follows kind i, at the place i * KINDS + j.
        self._steps = np.zeros(KINDS * KINDS, np.int64)
        # The number of the last record's kind; empty before the first record.
        self._last = np.zeros(0, np.int64)

    def add(self, hashes: Hashes) -> None:
        """Visit the next records."""
        super().add(hashes)
        if self._kinds is not None and len(hashes):
            self._kinds = self._followed(hashes, self._kinds)

    def _followed(self, hashes: Hashes, kinds: Hashes) -> Hashes | None:
        """Count the steps from kind to kind; the kinds so far, None if there are too many."""
        # The first records alone tell of most tables that they have too many kinds.
        for part in (hashes[: 16 * KINDS], hashes):
            kinds = np.append(kinds, np.setdiff1d(part, kinds))
            if len(kinds) > KINDS:
                return None
        # The kinds are numbered as they come, so a new one changes no number of an old one.
        order = np.argsort(kinds)
        numbers = order[np.searchsorted(kinds[order], hashes)]
        self._count_steps(numbers)
        return kinds

    def _count_steps(self, numbers: Integers) -> None:
        """Count the steps from kind to kind, by the numbers of the next records' kinds."""
        # The last record of the batch before makes the first step of this one.
        path = np.concatenate([self._last, numbers])
        steps = path[:-1] * KINDS + path[1:]
        self._steps += np.bincount(steps, minlength=KINDS * KINDS)
        self._last = path[-1:]

    def bare_content(self) -> BareContent:
        """The content of all records visited."""
        content = self.content()
        order = 0.0
        if self._kinds is not None:
            order = order_bits(self._steps.reshape(KINDS, KINDS))
        return BareContent(
            records=content.records,
            ordered=content.ordered,
            unordered=content.unordered,
            limit=self._limit,
            values=self._values,
            counts=self._counts,
            order=order,
        )


class CodedCensus(BareCensus):
    """The same of records that have few different hashes, which are known from the start.

    Parameters
    ----------
    values : array of hashes
        The hash that each code of `add` means.
    """

    def __init__(self, values: Hashes) -> None:
        super().__init__()
        self._hashes = values
        self._times = np.zeros(len(values), np.int64)
        """How many records had each code since the sample was made."""

    def add(self, hashes: NDArray[Any]) -> None:
        """Visit the next records by the codes of their hashes."""
        codes = hashes.astype(np.int64, copy=False)
        hashes = self._hashes[codes]
        # Counting is far cheaper than the sorting that unknown hashes need.
        self._follow(hashes)
        self._times += np.bincount(codes, minlength=len(self._times))
        if not len(codes):
            return
        if len(self._hashes) <= KINDS:
            self._count_steps(codes)
        elif self._kinds is not None:
            self._kinds = self._followed(hashes, self._kinds)

    def content(self) -> Content:
        """The content of all records visited."""
        seen = np.flatnonzero(self._times)
        self._add_counted(self._hashes[seen], self._times[seen])
        self._times[:] = 0
        return super().content()
