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
`order_bits` turns them into bits. For example, the records a, b, b, a, b have the steps
a to b twice, b to b once and b to a once.

*Chance.* Records without their identifiers may agree because they are the same
records, or because they look alike. Each of three tests bounds the probability that records that
have nothing to do with each other agree so well, under a hypothesis that is kind to the user; its
bits are the negative logarithm of the bound to base 2, and at least 0.

Rows that two data sets have once each (`pairs_bits`)
    Hypothesis: which of the M pooled records belong to which data set is chance, given the
    pooled records. Take the t values that two of the pooled records have. Pair after pair, the
    two come apart, one in each data set, with a probability of at most R/(2(R - 1)), where R
    records are left. So P(at least s pairs apart) is at most the product of R/(R - 1), which is
    below sqrt(2M), times P(Bin(t, 1/2) >= s) <= 2^(-t (1 - H(s/t))), where H is the binary
    entropy. Which values are looked at is decided by their hashes, and so by nothing else.
Equal numbers of every row (`numbers_bits`)
    Same hypothesis. With c_i equal records of kind i in each of the two, n in all, the
    probability is the product of C(2 c_i, c_i) divided by C(2n, n). Kinds may be merged, which
    makes it larger: that is done with all that the sample lacks. Where each row of a data set is
    there twice, or k times, k of them count as one record.
The same order (`order_bits`)
    Hypothesis: every order is equally likely in which each kind of row follows each other kind as
    often as it does here. Sorted tables have one such order, which proves nothing. By the theorem
    of de Bruijn, van Aardenne-Ehrenfest, Smith and Tutte there are at least
    prod_a (n_a - 1)! / prod_ab n_ab! of them, where n_ab counts the steps from a to b, and n_a all
    steps from a.

For example, 100 pairs of equal records among 1,000 pooled ones, all of them apart, are worth
100 - log2(2,000)/2 = 94.5 bits. If only 50 of the pairs are apart, chance does that: 0 bits.

*Likeness.* `likeness` compares two contents (`BareContent`) up to the smaller limit of
their samples, where both are complete. It pools the values of both. A value that two of the pooled
records have is a pair; it is apart if each data set has one of the two. Whatever the three tests of
chance make of that, the largest number of bits counts: `CERTAIN` and `NOTABLE` are the
thresholds. `share_of` then adds up over several earlier data sets.

For example, with the hashes 1, 2, 3 in the new data set and 2, 3, 4 in the old one, there are two
pairs, 2 and 3, and both are apart: the new one shares two thirds of its records.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.integers import Integers
from mechdesign.formats.census import ALL, Census, Content, Hashes
from mechdesign.release.drawing import Release

# ------------------------------------------------------------------------------- chance


def pairs_bits(apart: int, pairs: int, pooled: int) -> float:
    """The bits of so many pairs `apart` (s), of all `pairs` of equal records (t) among the `pooled`
    ones (M).
    """
    # The bound needs a share above one half; up to there, chance alone explains it.
    if 2 * apart <= pairs:
        return 0.0
    share = apart / pairs
    entropy = 0.0
    for part in (share, 1 - share):
        if part:
            entropy -= part * math.log2(part)
    return max(0.0, pairs * (1 - entropy) - math.log2(2 * pooled) / 2)


def numbers_bits(counts: Integers, records: int) -> float:
    """The bits of equal numbers of every kind of row: `counts` (c_i) of those in the sample, of all
    `records` (n) of one data set.
    """
    # All that the sample lacks is one kind more.
    rest = records - int(counts.sum())
    nats = _log_halves(records) - _log_halves(rest)
    for count in counts.tolist():
        nats -= _log_halves(count)
    return max(0.0, nats / math.log(2))


def _log_halves(count: int) -> float:
    """The natural logarithm of C(2 count, count)."""
    # By logarithms of factorials, which are themselves beyond all doubles from 171! on.
    return math.lgamma(2 * count + 1) - 2 * math.lgamma(count + 1)


def order_bits(steps: NDArray[np.int64]) -> float:
    """The logarithm to base 2 of the fewest orders with ``steps[a, b]`` steps (n_ab) from the kind
    a to the kind b.
    """
    nats = 0.0
    for row in steps.tolist():
        total = sum(row)
        if total:
            # log (n_a - 1)! less the sum of log n_ab!, as gamma functions.
            nats += math.lgamma(total) - sum(math.lgamma(count + 1) for count in row)
    return max(0.0, nats / math.log(2))


# ------------------------------------------------------------------------------ records

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
        releases: Sequence[Release],
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


# ----------------------------------------------------------------------------- likeness

CERTAIN = 50.0
"""From so many bits on, an agreement is no chance: it happens once in 10^15 times at most."""

NOTABLE = 10.0
"""From so many bits on, an agreement is worth a note: it happens once in 1,000 times at most."""


@dataclass(frozen=True)
class Likeness:
    """How alike two data sets are.

    `bits` is what their agreement is worth as evidence. `whole` says whether they have the same
    rows equally often, or one has each row the same number of times as often as the other. `shared`
    has the hashes that both have once, as far as they are in the sample.
    """

    bits: float
    whole: bool
    limit: int
    shared: Hashes = field(repr=False)

    @property
    def certain(self) -> bool:
        """Whether chance is out of the question."""
        return self.bits >= CERTAIN


def likeness(new: BareContent, old: BareContent) -> Likeness:
    """Compare two data sets by their bare records."""
    # Rows that come several times as often in one data set count as one each (`in_units`).
    limit = min(new.limit, old.limit)
    new_values, new_counts = new.in_units(limit)
    old_values, old_counts = old.in_units(limit)
    values, places = np.unique(
        np.concatenate([new_values, old_values]), return_inverse=True
    )
    counts = np.concatenate([new_counts, old_counts])
    # Weights make the counts doubles, which are exact: there are fewer than 2**53 records.
    pooled_counts = np.bincount(places, counts, len(values)).astype(np.int64)
    from_new = np.zeros(len(values), np.int64)
    from_new[places[: len(new_values)]] = new_counts

    pairs = pooled_counts == 2
    apart = pairs & (from_new == 1)
    new_units = new.records // new.copies
    old_units = old.records // old.copies
    bits = pairs_bits(int(apart.sum()), int(pairs.sum()), new_units + old_units)
    # Each test bounds the chance by itself, so the strongest of them counts.
    whole = _have_equal_numbers(new, old)
    if whole:
        bits = max(bits, numbers_bits(new.counts // new.copies, new_units))
    if new.ordered == old.ordered:
        bits = max(bits, new.order)
    return Likeness(bits, whole, limit, values[apart])


def _have_equal_numbers(new: BareContent, old: BareContent) -> bool:
    """Whether two data sets have equal numbers of every row, or one has all rows so many times."""
    if new.unordered == old.unordered:
        return True
    # A sample of some records cannot show that all of them agree.
    if min(new.limit, old.limit) < ALL:
        return False
    new_values, new_counts = new.in_units(ALL)
    old_values, old_counts = old.in_units(ALL)
    return np.array_equal(new_values, old_values) and np.array_equal(
        new_counts, old_counts
    )


def share_of(new: BareContent, alike: Sequence[Likeness]) -> float:
    """The share of the new records, between 0 and 1, that some data sets have together, all of
    which are alike for certain.
    """
    if any(other.whole for other in alike):
        return 1.0
    # Up to the smallest limit all samples are complete.
    limit = min([ALL, *(other.limit for other in alike)])
    values, counts = new.in_units(limit)
    shared = np.concatenate(
        [np.zeros(0, np.uint64), *(other.shared for other in alike)]
    )
    total = int(counts.sum())
    if not total:
        return 0.0
    return float(np.isin(values, shared).sum() / total)
