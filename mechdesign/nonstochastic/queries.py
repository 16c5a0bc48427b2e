"""Queries on a private dataset, described so that their fibres are known exactly.

A fibre is the set of answers {f(x_i, x_-i) : x_i in its domain} that one individual can bring about
while all the others stay as they are (Farokhi 2020, Definition 1). Its structure is what makes an
exact certificate possible without enumerating all datasets. Sums of independent members of finite
sets are kept as the bits of one long integer: adding a set to a set is then a few shifts, because
sumsets are made of few runs of consecutive values. Tables over small finite domains have one axis for
each individual, and everything about them is counted.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.nonstochastic.domains import Domain, FiniteDomain, exact_number, finite, width

LARGEST_TABLE = 5_000_000
"""Datasets that are enumerated: some 10 s of Python calls, 40 MB of indices."""

Indices = NDArray[np.int64]


def fibre_counts(outputs: Indices, axis: int) -> Indices:
    """Number of distinct outputs on each fibre along `axis`."""
    lines = np.moveaxis(outputs, axis, -1).reshape(-1, outputs.shape[axis])
    ordered = np.sort(lines, axis=1)
    return 1 + np.count_nonzero(ordered[:, 1:] != ordered[:, :-1], axis=1)


def factorised(table: Any, what: str) -> tuple[list[Any], Indices]:
    r"""The distinct entries of a table, and for each entry which of them it is (the shape of the table).

    Arrays of numbers are compared by NumPy; everything else by Python, because NumPy would turn
    1 and "1" into one text, cut "a\0" to "a", and round integers that stand beside floats.
    """
    array = table if isinstance(table, np.ndarray) else np.asarray(table, dtype=object)
    if array.ndim == 0 or array.size == 0:
        raise InputError(f"the table of {what} is empty; give one axis for each individual")
    check_size(array.shape)
    if array.dtype.kind in "biuf":
        distinct, inverse = np.unique(array.reshape(-1), return_inverse=True)
        return distinct.tolist(), np.asarray(inverse, dtype=np.int64).reshape(array.shape)
    place: dict[Any, int] = {}
    try:
        codes = [place.setdefault(entry, len(place)) for entry in array.reshape(-1).tolist()]
    except TypeError:
        raise InputError(
            f"the table of {what} must have one entry for each dataset, and equal rows"
        ) from None
    return list(place), np.array(codes, dtype=np.int64).reshape(array.shape)


def check_size(shape: Sequence[int]) -> None:
    """Refuse a domain with more than `LARGEST_TABLE` datasets."""
    if math.prod(shape) > LARGEST_TABLE:
        raise InputError(
            f"the domain has {math.prod(shape):,} datasets, more than {LARGEST_TABLE:,}: too many to enumerate; "
            "a sum, mean, count, linear or monotone query, a median or an order statistic needs no enumeration: "
            "use linear_query, mean_query, median_query, OrderStatistic or MonotoneQuery"
        )


@dataclass(frozen=True, eq=False)
class TabulatedQuery:
    """A query with exact answers on every dataset of a finite domain.

    Parameters
    ----------
    values : (m,) tuple of Fractions
        The distinct answers, sorted.
    ranks : (d_1, ..., d_n) integers
        ``values[ranks[x]]`` is the answer on dataset x (indices into the domains).
    """

    values: tuple[Fraction, ...]
    ranks: Indices = field(repr=False)

    @property
    def individuals(self) -> int:
        """Number of individuals."""
        return self.ranks.ndim

    @property
    def range(self) -> tuple[Fraction, Fraction]:
        """Smallest and largest answer."""
        return self.values[0], self.values[-1]

    @property
    def sensitivity(self) -> Fraction:
        """sup |f - f'| over two datasets that differ in one individual."""
        widest = Fraction(0)
        for axis in range(self.ranks.ndim):
            pairs = np.stack([self.ranks.min(axis=axis).ravel(), self.ranks.max(axis=axis).ravel()], axis=1)
            distinct: list[list[int]] = np.unique(pairs, axis=0).tolist()
            widest = max([widest, *(self.values[high] - self.values[low] for low, high in distinct)])
        return widest

    @classmethod
    def from_array(cls, answers: Any) -> TabulatedQuery:
        """From an array of numbers, one axis for each individual; floats are what their bits say.

        Raises
        ------
        InputError
            If it is empty, too large, or holds something that is no finite number.
        """
        distinct, codes = factorised(answers, "the query")
        exact = [exact_number("query", v) for v in distinct]
        values = sorted(set(exact))
        place = {value: rank for rank, value in enumerate(values)}
        return cls(tuple(values), np.array([place[v] for v in exact], dtype=np.int64)[codes])

    @classmethod
    def from_function(
        cls, function: Callable[[tuple[Fraction, ...]], object], domains: Sequence[FiniteDomain]
    ) -> TabulatedQuery:
        """By enumeration of every dataset of the product of `domains`.

        Raises
        ------
        InputError
            If there are more than `LARGEST_TABLE` datasets, or an answer is no finite number.
        """
        shape = [len(domain.values) for domain in domains]
        if not shape:
            raise InputError("a query needs at least one individual")
        check_size(shape)
        answers = [
            exact_number("query", function(data)) for data in itertools.product(*(d.values for d in domains))
        ]
        values = sorted(set(answers))
        place = {value: rank for rank, value in enumerate(values)}
        ranks = np.fromiter((place[a] for a in answers), dtype=np.int64, count=len(answers))
        return cls(tuple(values), ranks.reshape(shape))


def check_individuals(count: object) -> int:
    """`count` as a number of individuals, at least 1."""
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise InputError(f"individuals ({count!r}) must be an integer of at least 1")
    return count


@dataclass(frozen=True)
class Stratum:
    """`count` individuals who share a weight and a domain."""

    weight: Fraction
    domain: Domain
    count: int

    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        """Smallest and largest contribution of one individual of the block."""
        a, b = self.weight * self.domain.lo, self.weight * self.domain.hi
        return (a, b) if a <= b else (b, a)

    @property
    def width(self) -> Fraction:
        """How far one individual of the block can move the answer."""
        return abs(self.weight) * width(self.domain)


@dataclass(frozen=True)
class LinearQuery:
    """The weighted sum of everyone's data: sums, means, counts, the identity.

    Blocks with the same weight and domain are merged, and blocks of nobody are dropped.
    """

    name: str
    blocks: tuple[Stratum, ...]

    def __post_init__(self) -> None:
        merged: dict[tuple[Fraction, Domain], int] = {}
        for block in self.blocks:
            key = (block.weight, block.domain)
            merged[key] = merged.get(key, 0) + block.count
        blocks = tuple(Stratum(w, d, count) for (w, d), count in merged.items() if count)
        if not blocks:
            raise InputError("a query needs at least one individual")
        object.__setattr__(self, "blocks", blocks)

    @property
    def individuals(self) -> int:
        """Number of individuals."""
        return sum(block.count for block in self.blocks)

    @property
    def range(self) -> tuple[Fraction, Fraction]:
        """Smallest and largest answer."""
        lo = sum((block.ends[0] * block.count for block in self.blocks), Fraction(0))
        hi = sum((block.ends[1] * block.count for block in self.blocks), Fraction(0))
        return lo, hi

    @property
    def sensitivity(self) -> Fraction:
        """sup |f - f'| over two datasets that differ in one individual (theory.md, section 9)."""
        return max(block.width for block in self.blocks)


@dataclass(frozen=True)
class OrderStatistic:
    """The `rank`-th smallest of the data of `individuals` people with one common domain."""

    rank: int
    individuals: int
    domain: Domain

    def __post_init__(self) -> None:
        check_individuals(self.individuals)
        whole = isinstance(self.rank, int) and not isinstance(self.rank, bool)  # pyright: ignore[reportUnnecessaryIsInstance]
        if not whole or not 1 <= self.rank <= self.individuals:
            raise InputError(
                f"rank ({self.rank!r}) must be an integer from 1 to {self.individuals}, the individuals"
            )

    @property
    def range(self) -> tuple[Fraction, Fraction]:
        """Smallest and largest answer."""
        return self.domain.lo, self.domain.hi

    @property
    def sensitivity(self) -> Fraction:
        """The whole width: the others can lie so that the answer is x_i itself."""
        return width(self.domain)


@dataclass(frozen=True)
class EvenMedian:
    """The mean of the two middle values of an even number of people with one common domain."""

    individuals: int
    domain: Domain

    def __post_init__(self) -> None:
        if check_individuals(self.individuals) % 2:
            raise InputError(
                f"individuals ({self.individuals}) must be even here; an odd median is an OrderStatistic"
            )

    @property
    def range(self) -> tuple[Fraction, Fraction]:
        """Smallest and largest answer."""
        return self.domain.lo, self.domain.hi

    @property
    def sensitivity(self) -> Fraction:
        """Half the width: x_i is averaged with the other middle value."""
        return width(self.domain) / 2


@dataclass(frozen=True)
class MonotoneQuery:
    """A query that never falls when one individual's data grows.

    Parameters
    ----------
    function
        Takes a tuple of Fractions, one for each individual, and returns an int or a Fraction
        (floats would make the certificate inexact). On interval domains it must be continuous.
    domains
        One for each individual: all intervals or all finite.
    """

    function: Callable[[tuple[Fraction, ...]], Fraction | int]
    domains: tuple[Domain, ...]

    def __post_init__(self) -> None:
        if not self.domains:
            raise InputError("a query needs at least one individual")
        if len({isinstance(d, FiniteDomain) for d in self.domains}) > 1:
            raise InputError("a monotone query needs domains of one kind: all intervals or all finite")

    @property
    def individuals(self) -> int:
        """Number of individuals."""
        return len(self.domains)

    def __call__(self, data: tuple[Fraction, ...]) -> Fraction:
        """The exact answer on one dataset."""
        answer = self.function(data)
        if isinstance(answer, bool) or not isinstance(answer, int | Fraction):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(
                f"the query returned {answer!r}; a monotone query must return an int or a Fraction, "
                "so that comparing it with a threshold is exact"
            )
        return Fraction(answer)

    @property
    def range(self) -> tuple[Fraction, Fraction]:
        """Smallest and largest answer."""
        return self(tuple(d.lo for d in self.domains)), self(tuple(d.hi for d in self.domains))


Query: TypeAlias = LinearQuery | OrderStatistic | EvenMedian | MonotoneQuery | TabulatedQuery


def linear_query(weights: Sequence[object], domains: Sequence[Domain] | Domain) -> LinearQuery:
    """The query sum_i weights[i] * x_i.

    Raises
    ------
    InputError
        If there are no weights, one is no number, or the number of domains differs.
    """
    exact = [exact_number(f"weight {i + 1}", w) for i, w in enumerate(weights)]
    each = [domains] * len(exact) if isinstance(domains, Domain) else list(domains)
    if len(each) != len(exact):
        raise InputError(f"{len(exact)} weights need {len(exact)} domains, not {len(each)}")
    return LinearQuery("linear", tuple(Stratum(w, d, 1) for w, d in zip(exact, each, strict=True)))


def mean_query(individuals: int, domain: Domain) -> LinearQuery:
    """The mean of the data of `individuals` people."""
    n = check_individuals(individuals)
    return LinearQuery("mean", (Stratum(Fraction(1, n), domain, n),))


def sum_query(individuals: int, domain: Domain) -> LinearQuery:
    """The sum of the data of `individuals` people."""
    return LinearQuery("sum", (Stratum(Fraction(1), domain, check_individuals(individuals)),))


def count_query(individuals: int) -> LinearQuery:
    """How many of `individuals` people have a property: a sum of zeros and ones."""
    return LinearQuery("count", (Stratum(Fraction(1), finite((0, 1)), check_individuals(individuals)),))


def identity_query(domain: Domain) -> LinearQuery:
    """f_i(x) = x_i: what the local version of noiseless privacy releases (Farokhi 2020, Definition 2)."""
    return LinearQuery("identity", (Stratum(Fraction(1), domain, 1),))


def median_query(individuals: int, domain: Domain) -> OrderStatistic | EvenMedian:
    """The median of the data of `individuals` people."""
    n = check_individuals(individuals)
    return OrderStatistic((n + 1) // 2, n, domain) if n % 2 else EvenMedian(n, domain)


LARGEST_SPAN = 1 << 24
"""Widest sumset kept as bits: 2 MB a set; one convolution of two such sets takes about a second."""

LARGEST_SUMSET = 4_000_000
"""Most sums kept as a sorted list where the span is too wide for bits."""

MOST_ADDITIONS = 50_000_000
"""Sums formed in all, repeated ones included, where the span is too wide for bits: about a second."""

MOST_RUNS = 1000
"""More runs than this are added faster by one convolution than by shifts."""

LARGEST_INTEGER = 1 << 61
"""Sums stay below this, so that adding two of them cannot overflow 64 bits."""

Integers = NDArray[np.int64]


def _dilate(bits: int, length: int) -> int:
    """OR of `bits` shifted by 0, 1, .., length."""
    done = 0
    while done < length:
        step = min(done + 1, length - done)
        bits |= bits << step
        done += step
    return bits


def _runs(bits: int) -> list[tuple[int, int]]:
    """The runs of consecutive ones, as (first, last)."""
    array = _positions(bits)
    breaks = np.flatnonzero(np.diff(array) > 1)
    first = array[np.concatenate(([0], breaks + 1))]
    last = array[np.concatenate((breaks, [array.size - 1]))]
    return list(zip(first.tolist(), last.tolist(), strict=True))


def _unpack(bits: int) -> NDArray[np.uint8]:
    raw = np.frombuffer(bits.to_bytes((bits.bit_length() + 7) // 8, "little"), dtype=np.uint8)
    return np.unpackbits(raw, bitorder="little")


def _positions(bits: int) -> Integers:
    return np.flatnonzero(_unpack(bits)).astype(np.int64)


def _add_bits(a: int, b: int) -> int:
    """Bits of the sums of a member of `a` and a member of `b`."""
    if (a & ~(a << 1)).bit_count() < (b & ~(b << 1)).bit_count():
        a, b = b, a
    if (b & ~(b << 1)).bit_count() > MOST_RUNS:
        return _convolve(a, b)
    total = 0
    for first, last in _runs(b):
        total |= _dilate(a, last - first) << first
    return total


def _convolve(a: int, b: int) -> int:
    """As `_add_bits`, by a convolution of zeros and ones.

    A result counts pairs, at most 2^24 of them, and the error of the transform is below
    6 * log2(length) * 2^-53 * 2^24 < 1e-6, so that 1/2 separates none from some beyond doubt.
    """
    size = a.bit_length() + b.bit_length() - 1
    length = 1 << (size - 1).bit_length()
    spectra = [np.fft.rfft(_unpack(bits).astype(np.float64), length) for bits in (a, b)]
    pairs = np.fft.irfft(spectra[0] * spectra[1], length)[:size] > 0.5
    return int.from_bytes(np.packbits(pairs, bitorder="little").tobytes(), "little")


def _multiple_bits(bits: int, count: int) -> int:
    """Bits of the sums of `count` independent members, by repeated doubling."""
    total = 1
    while count:
        if count & 1:
            total = _add_bits(total, bits)
        count >>= 1
        if count:
            bits = _add_bits(bits, bits)
    return total


def _add_lists(a: Integers, b: Integers) -> Integers | None:
    """The sorted distinct sums; `b` is the shorter one, and each of its members makes a sorted run."""
    if a.size * b.size > LARGEST_SUMSET:
        return None
    sums = np.add.outer(b, a).reshape(-1)
    sums.sort(kind="stable")
    return sums[np.concatenate(([True], sums[1:] != sums[:-1]))]


def _by_lists(parts: Sequence[tuple[list[int], int]]) -> Integers | None:
    total: Integers | None = np.zeros(1, dtype=np.int64)
    additions = 0
    for values, count in parts:
        member = np.asarray(values, dtype=np.int64)
        for _ in range(count):
            additions += total.size * member.size
            total = _add_lists(total, member)
            # Without the second limit a million people, each adding little, would take for ever.
            if total is None or additions > MOST_ADDITIONS:
                return None
    return total


def sumset(parts: Sequence[tuple[Sequence[int], int]]) -> Integers | None:
    """The sorted distinct sums of `count` independent members of each set `values`."""
    base = sum(min(values) * count for values, count in parts)
    offsets = [([v - min(values) for v in sorted(set(values))], count) for values, count in parts]
    offsets = [(values, count) for values, count in offsets if count and len(values) > 1]
    unit = math.gcd(*(v for values, _ in offsets for v in values))
    span = sum(values[-1] * count for values, count in offsets)
    if abs(base) + span > LARGEST_INTEGER:
        return None
    if not unit:
        return np.array([base], dtype=np.int64)
    scaled = [([v // unit for v in values], count) for values, count in offsets]
    if span // unit <= LARGEST_SPAN:
        total = 1
        for values, count in scaled:
            total = _add_bits(total, _multiple_bits(sum(1 << v for v in values), count))
        steps: Integers | None = _positions(total)
    else:
        steps = _by_lists(scaled)
    return None if steps is None else base + steps * unit
