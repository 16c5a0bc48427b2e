"""What is kept of the hashes of all records of a data set, so that it is recognised.

A `Census` visits the hashes once and keeps three things:

- the hash of their sequence, which is equal for the same records in the same order;
- sums of the hashes, which are equal for the same records in any order;
- the smallest hashes up to some limit, a sample that depends on the records alone, from which
  `Content.share_in` estimates the share of records in another data set.

The hashes are those of `digests.RowHasher`. They are uniform, so the records with hashes up to any
limit are a random sample, and both data sets sample the same records. For example, the sample has
the limit 1000 and 100 records, 80 of which are unique. That of the other data set has the limit
500:

    unique hashes up to 500 here                            40
    repeated records up to 500      (100 - 80) * 500 / 1000 = 10
    of the 40, in the other sample                          30
    estimated share                 30 / (40 + 10)          = 0.6

A repeated record counts as not shared, because its equal may be another individual's.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from mechdesign.formats import _rowhash

Hashes = NDArray[np.uint64]

SAMPLE = 4096
"""Most hashes in a sample (32 kB). A share of one half then has a standard error of 1 in 100."""

FEWEST = 8
"""Fewest records in a sample of some records from which a share is estimated."""

ALL = 2**64 - 1
"""The limit of a sample of all records."""

LOW_WORD = np.uint64(2**32 - 1)
"""The lower half of a hash."""


@dataclass(frozen=True)
class Content:
    """What a `Census` keeps of a data set.

    Attributes
    ----------
    records : int
        The number of records.
    ordered, unordered : str
        Hashes of the records in their order and in any order, in hexadecimal digits.
    limit : int
        The largest hash in the sample, or `ALL` where the sample is of all records.
    below : int
        The number of records with hashes up to the limit.
    unique : array of hashes
        The hashes among them that exactly one record has.
    copies : int
        The number of times that every record occurs, 1 as a rule. In samples so many equal records
        count as one.
    single : array of hashes
        Where `copies` is not 1, the hashes that exactly so many records have.
    as_text : Content or None
        The same records in the reading of earlier versions, where it is another one.
    """

    records: int
    ordered: str
    unordered: str
    limit: int
    below: int
    unique: Hashes = field(repr=False)
    copies: int = 1
    single: Hashes | None = field(default=None, repr=False)
    as_text: Content | None = None

    @property
    def readings(self) -> tuple[Content, ...]:
        """The content in every reading."""
        if self.as_text is None:
            return (self,)
        return self, self.as_text

    @classmethod
    def of_sample(cls, sample: bytes, *, records: int, unordered: str) -> Content:
        """The content as far as a sample has it; its order is not known."""
        limit, below = np.frombuffer(sample, np.uint64)[:2].tolist()
        return cls(
            records=records,
            ordered="",
            unordered=unordered,
            limit=limit,
            below=below,
            unique=np.frombuffer(sample, np.uint64)[2:],
        )

    def sample(self) -> bytes:
        """The sample as bytes: the limit, the number below it, then the unique hashes."""
        below, unique = self._counted_once
        head = np.array([self.limit, below], np.uint64)
        return np.append(head, unique).tobytes()

    @property
    def _counted_once(self) -> tuple[int, Hashes]:
        """The number of records in the sample, and the unique ones, without the further copies."""
        if self.single is None:
            return self.below, self.unique
        return self.below // self.copies, self.single

    def share_in(self, samples: Sequence[bytes]) -> float:
        """The estimated share of these records that other data sets have, from their samples.

        Only records that are unique here count. Two equal records may be of the same individual
        or of two who look the same, which nobody can tell.
        """
        if self.as_text is not None:
            as_value = replace(self, as_text=None)
            return max(as_value.share_in(samples), self.as_text.share_in(samples))
        if not samples or not self.records:
            return 0.0
        others = [np.frombuffer(sample, np.uint64) for sample in samples]
        # Up to the smallest limit all samples are complete.
        limit = min(self.limit, *(int(other[0]) for other in others))
        records, singles = self._counted_once
        unique = singles[singles <= np.uint64(limit)]
        # Hashes are uniform, so a lower limit leaves a proportional part of the repeated records.
        repeated = round((records - len(singles)) * (limit / self.limit))
        below = len(unique) + repeated
        # A share of few sampled records would be chance; of all records it is exact.
        complete = limit == ALL and below > 0
        if below < FEWEST and not complete:
            return 0.0
        # The first two numbers of a sample are its limit and its size.
        other_hashes = np.concatenate([other[2:] for other in others])
        shared = np.isin(unique, other_hashes).sum()
        return min(1.0, float(shared / below))


class Census:
    """Visits the hashes of all records of a data set, batch by batch."""

    def __init__(self) -> None:
        self._records = 0
        self._sequence = (1, 2)
        """State of the hash of the sequence."""
        self._sum = 0
        self._sum_of_products = 0
        """Sums modulo 2^64 of the hashes, and of the products of their two halves."""
        self._values = np.zeros(0, np.uint64)
        self._counts = np.zeros(0, np.int64)
        """The smallest hashes so far, ascending, and how many records have each."""
        self._limit = ALL
        self._waiting: list[Hashes] = []
        """Hashes up to the limit that are not yet merged into the sample."""
        self._waiting_count = 0

    def add(self, hashes: Hashes) -> None:
        """Visit the next records."""
        hashes = np.ascontiguousarray(hashes)
        self._records += len(hashes)
        self._sequence = _rowhash.chain(hashes, *self._sequence)
        # Two sums of 64 bits: by chance alone two data sets agree in both with probability 2^-128.
        products = (hashes >> np.uint64(32)) * (hashes & LOW_WORD)
        self._sum = (self._sum + _sum_of(hashes)) % 2**64
        self._sum_of_products = (self._sum_of_products + _sum_of(products)) % 2**64
        low = hashes[hashes <= np.uint64(self._limit)]
        # Merging sorts, so it is done once for many batches.
        self._waiting.append(low)
        self._waiting_count += len(low)
        if self._waiting_count > SAMPLE:
            self._merge()

    def copied(self) -> Census:
        """A census of the same records, which can go on in another way."""
        other = copy(self)
        # Arrays are replaced when they change, but waiting hashes are added to a list.
        other._waiting = list(self._waiting)
        return other

    def _merge(self) -> None:
        """Merge the waiting hashes into the sample, and lower the limit if it is full."""
        waiting = np.concatenate([np.zeros(0, np.uint64), *self._waiting])
        new, new_counts = np.unique(waiting, return_counts=True)
        values, place = np.unique(
            np.concatenate([self._values, new]), return_inverse=True
        )
        all_counts = np.concatenate([self._counts, new_counts])
        counts = np.bincount(place, all_counts, len(values)).astype(np.int64)
        if len(values) > SAMPLE:
            values = values[:SAMPLE]
            counts = counts[:SAMPLE]
            self._limit = int(values[-1])
        self._values = values
        self._counts = counts
        self._waiting = []
        self._waiting_count = 0

    def content(self) -> Content:
        """The content of all records visited."""
        self._merge()
        # In a table in which all rows were doubled no record is unique: two count as one.
        copies = math.gcd(*self._counts.tolist()) or 1
        single: Hashes | None = None
        if copies != 1:
            single = self._values[self._counts == copies]
        ordered = struct.pack("<2Q", *self._sequence)
        unordered = struct.pack("<3Q", self._records, self._sum, self._sum_of_products)
        return Content(
            records=self._records,
            ordered=ordered.hex(),
            unordered=unordered.hex(),
            limit=self._limit,
            below=int(self._counts.sum()),
            unique=self._values[self._counts == 1],
            copies=copies,
            single=single,
        )


def _sum_of(words: Hashes) -> int:
    """The sum of words modulo 2^64."""
    return int(words.sum(dtype=np.uint64))
