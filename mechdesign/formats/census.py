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
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mechdesign.formats import _rowhash

Hashes = NDArray[np.uint64]

SAMPLE = 4096
"""Most hashes in a sample (32 kB). A share of one half then has a standard error of 1 in 100."""

RELATED = 0.5
"""Two data sets are versions of one if they share so much of what the smaller one has of the
records at hand.
"""

ERRORS = 3.0
"""Standard errors by which chance may exceed what it gives on average: once in 700 times."""

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
        return max(reading._compared(samples).share for reading in self.readings)

    def share_beyond_chance(self, samples: Sequence[bytes]) -> float:
        """The same, without what many data sets have together by chance alone (`Comparison`)."""
        return max(
            reading._compared(samples).share_beyond_chance for reading in self.readings
        )

    def _compared(self, samples: Sequence[bytes]) -> Comparison:
        """Which of these records, in this reading alone, the data sets have."""
        others = [np.frombuffer(sample, np.uint64) for sample in samples]
        # Up to the smallest limit all samples are complete.
        limit = min([self.limit, *(int(other[0]) for other in others)])
        records, singles = self._counted_once
        unique = singles[singles <= np.uint64(limit)]
        # Hashes are uniform, so a lower limit leaves a proportional part of the repeated records.
        repeated = round((records - len(singles)) * (limit / self.limit))
        below = len(unique) + repeated
        has = np.zeros((len(others), len(unique)), np.bool_)
        others_below = 0.0
        # The first two numbers of a sample are its limit and its size.
        for row, other in zip(has, others, strict=True):
            row[:] = np.isin(unique, other[2:])
            others_below += int(other[1]) * (limit / int(other[0]))
        # A share of few sampled records would be chance; of all records it is exact.
        is_enough = below >= FEWEST or (limit == ALL and below > 0)
        return Comparison(has, below if is_enough else 0, others_below)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Which of the records at hand some data sets have, up to a limit.

    Whoever looks the same in one of a hundred data sets is soon found for every record, though in a
    single one chance reaches a share of 1/e at most. Two bounds of what chance can do say how much
    of a share is none:

    1. Records that look the same by chance do so within the data set at hand as well. If a share d
       of its n records has an equal there, then of N records elsewhere chance finds an equal for
       c = 1 - (1 - d)^(N/n) of them at most, by Jensen's inequality. A share u is then one of
       (u - c) / (1 - c) of known records, at least.
    2. Data sets that share most of what they have of these records are one group, as versions of
       one file are. By chance one group has a record with a probability p of at most 1/e, so
       exactly one of K groups has it with K p (1 - p)^(K - 1), which is below 0.47.

    Attributes
    ----------
    has : (data sets, unique records at hand) array of bool
    below : int
        The records at hand; 0 where they are too few to estimate a share.
    others_below : float
        The records of all data sets.
    """

    has: NDArray[np.bool_]
    below: int
    others_below: float

    @property
    def share(self) -> float:
        """The share of the records at hand that some data set has."""
        return self._share_of(np.logical_or.reduce(self.has, axis=0))

    @property
    def share_beyond_chance(self) -> float:
        """The share without what several data sets have by chance, less the error of the estimate;
        at least the share of any single one.
        """
        if len(self.has) <= 1 or not self.below:
            return self.share
        single = max(self._share_of(row) for row in self.has)
        error = ERRORS * 0.5 / math.sqrt(self.below)
        # Those with an equal are few, so their number may be that much larger on average.
        repeated = self.below - self.has.shape[1]
        repeated += ERRORS * math.sqrt(repeated) + ERRORS**2 / 2
        unique = max(0.0, 1.0 - repeated / self.below)
        chance = 1.0 - unique ** (self.others_below / self.below)
        known = 0.0
        if chance < 1.0:
            # The nearer chance comes to finding all, the more an error in the share counts.
            known = (self.share - error - chance) / (1.0 - chance)
        in_one = self._share_of(self._in_one_group()) - error
        return max(single, known, in_one)

    def _share_of(self, chosen: NDArray[np.bool_]) -> float:
        """The share of the chosen ones among all records at hand."""
        if not self.below:
            return 0.0
        return min(1.0, float(chosen.sum() / self.below))

    def _in_one_group(self) -> NDArray[np.bool_]:
        """Which records exactly one group of data sets has."""
        sizes = self.has.sum(axis=1)
        as_numbers = self.has.astype(np.float64)
        common = as_numbers @ as_numbers.T
        smaller = np.minimum.outer(sizes, sizes)
        # Chance relates two of few records now and then, and one pair is enough to join groups.
        related = common >= RELATED * smaller + ERRORS * 0.5 * np.sqrt(smaller)
        groups = np.zeros(self.has.shape[1], np.int64)
        waiting = set(range(len(self.has)))
        while waiting:
            # All that are related to a member belong to its group.
            group = [waiting.pop()]
            for member in group:
                new = waiting & set(np.flatnonzero(related[member]).tolist())
                waiting -= new
                group += new
            groups += self.has[group].any(axis=0)
        return groups == 1


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
        self._follow(hashes)
        self._sum = (self._sum + _sum_of(hashes)) % 2**64
        self._sum_of_products = (
            self._sum_of_products + _sum_of(_products(hashes))
        ) % 2**64
        low = hashes[hashes <= np.uint64(self._limit)]
        # Merging sorts, so it is done once for many batches.
        self._waiting.append(low)
        self._waiting_count += len(low)
        if self._waiting_count > SAMPLE:
            self._merge()

    def _follow(self, hashes: Hashes) -> None:
        """Count the next records, and go on with the hash of their sequence."""
        self._records += len(hashes)
        self._sequence = _rowhash.chain(hashes, *self._sequence)

    def _add_counted(self, hashes: Hashes, counts: NDArray[np.int64]) -> None:
        """Visit records whose sequence was followed before, by their different hashes and how many
        have each.
        """
        times = counts.astype(np.uint64)
        self._sum = (self._sum + _sum_of(hashes * times)) % 2**64
        products = _products(hashes) * times
        self._sum_of_products = (self._sum_of_products + _sum_of(products)) % 2**64
        self._join(hashes, counts)

    def copied(self) -> Census:
        """A census of the same records, which can go on in another way."""
        other = copy(self)
        # Arrays are replaced when they change, but waiting hashes are added to a list.
        other._waiting = list(self._waiting)
        return other

    def _merge(self) -> None:
        """Merge the waiting hashes into the sample, and lower the limit if it is full."""
        waiting = np.concatenate([np.zeros(0, np.uint64), *self._waiting])
        self._join(*np.unique(waiting, return_counts=True))
        self._waiting = []
        self._waiting_count = 0

    def _join(self, new: Hashes, new_counts: NDArray[np.int64]) -> None:
        """Take different hashes into the sample, each of so many records."""
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


def _products(hashes: Hashes) -> Hashes:
    """The product of the two halves of each hash."""
    # Two sums of 64 bits, of hashes and of products: by chance alone two data sets agree in both
    # with probability 2^-128.
    return (hashes >> np.uint64(32)) * (hashes & LOW_WORD)


def _sum_of(words: Hashes) -> int:
    """The sum of words modulo 2^64."""
    return int(words.sum(dtype=np.uint64))
