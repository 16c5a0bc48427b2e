"""Queries on a private dataset, described so that their fibres are known exactly.

A fibre is the set of answers {f(x_i, x_-i) : x_i in its domain} that one individual can bring about
while all the others stay as they are (Farokhi 2019, Definition 1). Its structure makes an
exact certificate possible without enumerating all datasets.

The sums of independent members of finite sets (`sumset`) are kept as runs of consecutive integers:
even many sums consist of few runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.nonstochastic.domains import Domain, check_whole, exact_number, finite


@dataclass(frozen=True)
class Stratum:
    """`count` individuals who share a weight and a domain."""

    weight: Fraction
    domain: Domain
    count: int

    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        """Smallest and largest contribution of one individual of the block."""
        at_lower = self.weight * self.domain.lo
        at_upper = self.weight * self.domain.hi
        # A negative weight exchanges them.
        return min(at_lower, at_upper), max(at_lower, at_upper)

    @property
    def width(self) -> Fraction:
        """How far one individual of the block can move the answer."""
        return abs(self.weight) * (self.domain.hi - self.domain.lo)


def reach(blocks: Iterable[Stratum]) -> tuple[Fraction, Fraction]:
    """Smallest and largest sum of all contributions."""
    lowest = Fraction(0)
    highest = Fraction(0)
    for block in blocks:
        low, high = block.ends
        lowest += low * block.count
        highest += high * block.count
    return lowest, highest


@dataclass(frozen=True)
class LinearQuery:
    """The weighted sum of all data: sums, means, counts, the identity.

    Blocks with the same weight and domain are merged, and empty blocks are dropped.
    """

    blocks: tuple[Stratum, ...]

    def __post_init__(self) -> None:
        # Individuals of one kind have the same fibres, so one of them stands for all.
        merged: dict[tuple[Fraction, Domain], int] = {}
        for block in self.blocks:
            key = (block.weight, block.domain)
            merged[key] = merged.get(key, 0) + block.count
        blocks: list[Stratum] = []
        for (weight, domain), count in merged.items():
            if count:
                blocks.append(Stratum(weight, domain, count))
        if not blocks:
            raise InputError("a query needs at least one individual")
        object.__setattr__(self, "blocks", tuple(blocks))

    @property
    def range(self) -> tuple[Fraction, Fraction]:
        """Smallest and largest answer."""
        return reach(self.blocks)

    @property
    def sensitivity(self) -> Fraction:
        """sup |f - f'| over two datasets that differ in one individual.

        It bounds the length of every fibre (docs/explanation/ranges-theory.md, 'How many outputs
        one individual can bring about').
        """
        return max(block.width for block in self.blocks)


@dataclass(frozen=True)
class OrderStatistic:
    """The `rank`-th smallest of the data of `individuals` people with one common domain.

    With `middle` 2 the mean of it and of the next one: the median of an even number of people.
    """

    rank: int
    individuals: int
    domain: Domain
    middle: int = 1

    def __post_init__(self) -> None:
        rank = check_whole("rank", self.rank)
        individuals = check_whole("individuals", self.individuals)
        if rank > individuals:
            raise InputError(
                f"rank ({self.rank}) must be at most {self.individuals}, the individuals"
            )
        if self.middle != 1 and (self.middle, 2 * self.rank) != (2, self.individuals):
            raise InputError(
                "the mean of two values is that of the middle ones of an even number (middle=2)"
            )

    @property
    def largest_fibre(self) -> tuple[LinearQuery, str]:
        """A linear query with the same largest fibre, and where the others lie on it.

        With all others at the ends of the domain the answer is x_i itself; for the mean of two
        middle values, with one of the others at z between, it is (x_i + z) / 2. All other fibres
        have fewer answers.
        """
        if self.middle == 1:
            position = "the others at the ends of the domain"
        else:
            position = "two in the middle, the others at the ends"
        return mean_query(self.middle, self.domain), position

    @property
    def range(self) -> tuple[Fraction, Fraction]:
        """Smallest and largest answer."""
        return self.domain.lo, self.domain.hi

    @property
    def sensitivity(self) -> Fraction:
        """sup |f - f'| over two datasets that differ in one individual."""
        return self.largest_fibre[0].sensitivity


Query: TypeAlias = LinearQuery | OrderStatistic


def linear_query(
    weights: Sequence[object], domains: Sequence[Domain] | Domain
) -> LinearQuery:
    """The query sum_i weights[i] * x_i.

    Raises
    ------
    InputError
        If there are no weights, one is no number, or the number of domains differs.
    """
    exact = [exact_number(f"weight {i + 1}", w) for i, w in enumerate(weights)]
    if isinstance(domains, Domain):
        domain_of = [domains] * len(exact)
    else:
        domain_of = list(domains)
    if len(domain_of) != len(exact):
        raise InputError(
            f"{len(exact)} weights need {len(exact)} domains, not {len(domain_of)}"
        )
    blocks = [Stratum(w, d, 1) for w, d in zip(exact, domain_of, strict=True)]
    return LinearQuery(tuple(blocks))


def mean_query(individuals: int, domain: Domain) -> LinearQuery:
    """The mean of the data of `individuals` people."""
    n = check_whole("individuals", individuals)
    return LinearQuery((Stratum(Fraction(1, n), domain, n),))


def sum_query(individuals: int, domain: Domain) -> LinearQuery:
    """The sum of the data of `individuals` people."""
    n = check_whole("individuals", individuals)
    return LinearQuery((Stratum(Fraction(1), domain, n),))


def count_query(individuals: int) -> LinearQuery:
    """How many of `individuals` people have a property: a sum of zeros and ones."""
    return sum_query(individuals, finite((0, 1)))


def identity_query(domain: Domain) -> LinearQuery:
    """f_i(x) = x_i, the query of local noiseless privacy (Farokhi 2019, Definition 2)."""
    return sum_query(1, domain)


def median_query(individuals: int, domain: Domain) -> OrderStatistic:
    """The median of the data of `individuals` people."""
    n = check_whole("individuals", individuals)
    # An odd number has one value in the middle, an even number two.
    return OrderStatistic((n + 1) // 2, n, domain, middle=2 - n % 2)


LARGEST_SPAN = 1 << 24
"""Largest span of a sumset that is listed whole (128 MB) and convolved in about a second."""

LARGEST_SUMSET = 4_000_000
"""Most members of a sumset of a larger span, and most pairs of runs in one addition, which then
takes less than a second."""

MOST_ADDITIONS = 50_000_000
"""Most pairs of runs in all additions together, where the span is too large for convolutions. They
take some seconds."""

MOST_PAIRS = 300_000
"""Pairs of runs above which one convolution is faster than adding them."""

LARGEST_INTEGER = 1 << 61
"""Largest sum, so that adding two of them cannot overflow 64 bits."""

Integers = NDArray[np.int64]

Runs: TypeAlias = tuple[Integers, Integers]
"""A set as the first and last members of its runs of consecutive integers, in order."""


def _merged(first: Integers, last: Integers) -> Runs:
    """The runs of the union of runs that may overlap or touch."""
    order = np.argsort(first, kind="stable")
    first = first[order]
    # A run may lie inside of an earlier one, so the end so far is the largest of all before.
    last = np.maximum.accumulate(last[order])
    # A new run starts where a gap of at least one integer is left.
    starts = np.flatnonzero(first[1:] > last[:-1] + 1) + 1
    return first[np.append(0, starts)], last[np.append(starts, len(last)) - 1]


def _convolved(a: Runs, b: Runs) -> Runs:
    """The sums of a member of each, by a convolution of zeros and ones.

    A result counts pairs, at most 2^24 of them, and the error of the transform is below
    6 * log2(length) * 2^-53 * 2^24 < 1e-6, so that 1/2 separates none from some beyond doubt.
    """
    size = int(a[1][-1] + b[1][-1]) + 1
    # Longer than the result, so that the cyclic convolution does not wrap around.
    length = 1 << size.bit_length()
    ones = np.zeros((2, length))
    for k, runs in enumerate((a, b)):
        ones[k, _members(runs)] = 1.0
    spectra = np.fft.rfft(ones)
    sums = np.flatnonzero(np.fft.irfft(spectra[0] * spectra[1], length)[:size] > 0.5)
    return _merged(sums, sums)


def _members(runs: Runs) -> Integers:
    """All members of a set, in order."""
    first, last = runs
    lengths = last - first + 1
    # A member is its place in the whole, moved from the start of its run there to the run's first
    # member.
    starts = np.cumsum(lengths) - lengths
    return np.arange(lengths.sum()) + np.repeat(first - starts, lengths)


class _Sums:
    """Sums of sets of integers that start at 0, within limits of memory and time.

    Parameters
    ----------
    narrow
        Whether all sums together fit into an array (`LARGEST_SPAN`), so that convolutions can be
        used.
    """

    def __init__(self, *, narrow: bool) -> None:
        self._narrow = narrow
        self._room = MOST_ADDITIONS

    def added(self, a: Runs, b: Runs) -> Runs | None:
        """The sums of a member of each, or None if they are too many to compute."""
        pairs = a[0].size * b[0].size
        if self._narrow and pairs > MOST_PAIRS:
            return _convolved(a, b)
        # Without the second limit a million people, each adding little, would take for ever.
        if pairs > min(LARGEST_SUMSET, self._room):
            return None
        if not self._narrow:
            self._room -= pairs
        # Runs add like intervals of integers: [p, q] + [r, s] = [p + r, q + s].
        first = np.add.outer(a[0], b[0]).ravel()
        last = np.add.outer(a[1], b[1]).ravel()
        return _merged(first, last)

    def doublings(self, values: Integers, count: int) -> list[Runs]:
        """The sums of 1, 2, 4, .. members of a set, up to `count` and as far as possible."""
        doubled = [_merged(values, values)]
        while 1 << len(doubled) <= count:
            twice = self.added(doubled[-1], doubled[-1])
            if twice is None:
                break
            doubled.append(twice)
        return doubled

    def with_members(self, total: Runs, values: Integers, count: int) -> Runs | None:
        """The sums of a member of `total` and `count` members of a set; None if too many."""
        doubled = self.doublings(values, count)
        left = count
        while left:
            # The largest power of two of members that is not too much at once. Adding members in
            # doubles takes some 2 log2(count) additions in the place of `count`.
            sums: Runs | None = None
            for k in range(min(len(doubled), left.bit_length()) - 1, -1, -1):
                sums = self.added(total, doubled[k])
                if sums is not None:
                    left -= 1 << k
                    break
            if sums is None:
                return None
            total = sums
        return total


def sumset(parts: Sequence[tuple[Sequence[int], int]]) -> Integers | None:
    """The sorted distinct sums of `count` members of each set `values`; None if too many."""
    # Every set is moved to start at 0, and divided by the common unit of all: both keep the numbers
    # small.
    base = 0
    offsets: list[tuple[list[int], int]] = []
    for values, count in parts:
        lowest = min(values)
        base += lowest * count
        moved = [v - lowest for v in sorted(set(values))]
        if count and len(moved) > 1:
            offsets.append((moved, count))
    unit = math.gcd(*(v for values, _ in offsets for v in values))
    span = sum(values[-1] * count for values, count in offsets)
    if abs(base) + span > LARGEST_INTEGER:
        return None
    narrow = span <= LARGEST_SPAN * unit
    sums = _Sums(narrow=narrow)
    # The sums of no members: 0 alone.
    total: Runs = (np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64))
    for values, count in offsets:
        units = np.array(values, dtype=np.int64) // unit
        grown = sums.with_members(total, units, count)
        if grown is None:
            return None
        total = grown
    members = int((total[1] - total[0] + 1).sum())
    if not narrow and members > LARGEST_SUMSET:
        return None
    return base + _members(total) * unit
