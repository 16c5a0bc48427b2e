"""Queries on a private dataset: what one individual's data can be, and what the query makes of
them.

*Domains.* For example, the kilowatt-hours of a household's day are `interval` (0, 100), and its
number of people is one of `integers` (1, 12). `finite` takes any list: (0, 0.5, 1).

Every individual ranges over its own domain independently of the others (a product range), as the
guarantees of noiseless privacy ask (docs/explanation/ranges-theory.md, 'What a number of outputs
promises').

Ends and values become exact rationals when a domain is made: a float has the value of its bits, and
a text such as "0.1" is the decimal. A domain is public. It must hold all values that anybody could
have, not only those in the data.

The types come first, then the functions that make them, and last those that read numbers from
outside (`exact_number`, `check_whole`, `doubles`), which the rest of noiseless privacy uses too.

*Queries.* A fibre is the set of answers {f(x_i, x_-i) : x_i in its domain} that one individual can
bring about while all the others stay as they are; noiseless privacy limits the outputs on it
(Farokhi 2019, Definition 1). Its structure makes an exact certificate possible without enumerating
all datasets. There are two kinds of query:

- `LinearQuery`, f(x) = sum of w_i x_i. Individuals of one weight and domain are a block
  (`Stratum`). A fibre of a block is {s + w x : x in its domain}, where s is what the others
  contribute. The sensitivity, sup |f - f'| over two datasets that differ in one individual (Theorem
  8), is the largest |w| (hi - lo) of a block.
- `OrderStatistic`, the k-th smallest value, or the mean of the two in the middle. Its largest fibre
  is one of a linear query (`largest_fibre`), so that `fibres` counts linear queries alone.

For example, the mean of 4 values in [0, 10] is one block of weight 1/4, with the sensitivity 2.5.
If the other three contribute 5, the fibre is [5, 7.5].

*By their names*, as `mechdesign quantize` and mechanism files have them:

- `build_query` describes a query on groups of one size, as certificates need it: ``mean`` of 12
  records is the linear query of 12 weights 1/12, ``count`` the sum of 12 values 0 or 1.
- `ranks_of` says which sorted values of a group are its exact answer: for ``quantile:0.9`` of 12
  records those of rank ceil(10.8) = 11, and for the median the mean of ranks 6 and 7.
  Queries that are no order statistic, such as ``mean``, have the ranks (0, 0).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.arguments import fraction_of
from mechdesign.core.documents import Matching
from mechdesign.core.errors import InputError
from mechdesign.core.wording import quoted

# ------------------------------------------------------------------------------ domains

MOST_INTEGERS = 1_000_000
"""Most values of a domain of integers. They are kept one by one, which takes some 200 MB."""


@dataclass(frozen=True)
class IntervalDomain:
    """All real numbers from `lo` to `hi`, both included.

    The ends may be given as numbers of any kind, or as texts; they become exact.
    """

    lo: Fraction
    hi: Fraction

    def __post_init__(self) -> None:
        lo = exact_number("lower end of the range", self.lo)
        hi = exact_number("upper end of the range", self.hi)
        if lo > hi:
            raise InputError(
                f"the range ({quoted(self.lo)}, {quoted(self.hi)}) is reversed; give lower,upper"
            )
        object.__setattr__(self, "lo", lo)
        object.__setattr__(self, "hi", hi)


@dataclass(frozen=True)
class FiniteDomain:
    """A finite set of numbers; `values` becomes exact and sorted, without repetitions."""

    values: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        # By their exact values: 1 and "1.0" are the same number.
        distinct = sorted({exact_number("domain", value) for value in self.values})
        if not distinct:
            raise InputError("the domain is empty; a range needs at least one value")
        object.__setattr__(self, "values", tuple(distinct))

    @property
    def lo(self) -> Fraction:
        """The smallest value."""
        return self.values[0]

    @property
    def hi(self) -> Fraction:
        """The largest value."""
        return self.values[-1]


Domain: TypeAlias = IntervalDomain | FiniteDomain


def interval(lo: object, hi: object) -> IntervalDomain:
    """The closed interval [lo, hi].

    Raises
    ------
    InputError
        If an end is not a finite number, or lo > hi.
    """
    # The class makes numbers of any kind exact, or refuses them.
    return IntervalDomain(cast("Fraction", lo), cast("Fraction", hi))


def finite(values: Iterable[object]) -> FiniteDomain:
    """The finite domain of these numbers; repetitions count once.

    Raises
    ------
    InputError
        If there are none, or one is not a finite number.
    """
    # As in `interval`.
    return FiniteDomain(tuple(cast("Iterable[Fraction]", values)))


def integers(lo: int, hi: int) -> FiniteDomain:
    """The integers from `lo` to `hi`, both included.

    Raises
    ------
    InputError
        If an end is not an integer, lo > hi, or there are more than `MOST_INTEGERS`.
    """
    for end in (lo, hi):
        # True and False are integers for Python, and no ends of a range.
        if type(end) is not int:
            raise InputError(f"an end of the range ({quoted(end)}) must be an integer")
    if lo > hi:
        raise InputError(f"the range ({lo}, {hi}) is reversed; give lower,upper")
    if hi - lo >= MOST_INTEGERS:
        raise InputError(
            f"the domain has {hi - lo + 1:,} values, more than {MOST_INTEGERS:,}: too many to "
            f"enumerate; interval({lo}, {hi}) needs no list and covers them"
        )
    return FiniteDomain(tuple(Fraction(value) for value in range(lo, hi + 1)))


def exact_number(name: str, value: object) -> Fraction:
    """`value` as an exact rational; a float has the exact value of its bits."""
    try:
        return fraction_of(value)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def check_whole(name: str, value: object) -> int:
    """`value` as an integer of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"{name} ({quoted(value)}) must be an integer of at least 1")
    return value


def doubles(name: str, values: Any) -> NDArray[np.float64]:
    """An array of numbers as doubles; text, which NumPy reads by rules of its own, is refused."""
    try:
        array = np.asarray(values)
        # Fractions, decimals and integers of any size come as objects.
        if array.dtype.kind == "O" and not _has_text_or_truth(array):
            array = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} must be numbers, all of one shape") from None
    # An empty array of no declared type has the dtype of doubles or of objects.
    if array.size and array.dtype.kind not in "iuf":
        raise InputError(
            f"{name} must be numbers, not text or anything else; convert them first"
        )
    return array.astype(np.float64)


def _has_text_or_truth(array: NDArray[np.object_]) -> bool:
    """Whether a value is text or a truth value, which NumPy would make a number of."""
    return any(isinstance(value, str | bytes | bool) for value in array.reshape(-1))


# ------------------------------------------------------------------------------ queries


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
        # A negative weight exchanges the ends of the domain.
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
        """The largest width of a block.

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
        """That of the linear query with the same largest fibre."""
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
    # `LinearQuery` merges individuals who are alike, so each is a block of its own at first.
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


# --------------------------------------------------------------- queries by their names

QUERY = Matching(
    r"identity|mean|sum|count|median|min|max|quantile:0?\.0{0,15}[1-9][0-9]{0,15}",
    "identity, mean, sum, count, median, min, max or quantile:P with 0 < P < 1 (such as "
    "quantile:0.9)",
)
"""The name of a query."""


def build_query(query: str, individuals: int, domain: Domain) -> Query:
    """The query with a name, for a group of `individuals` records."""
    match query:
        case "identity":
            return identity_query(domain)
        case "count":
            return count_query(individuals)
        case "mean":
            return mean_query(individuals, domain)
        case "sum":
            return sum_query(individuals, domain)
        case "median":
            return median_query(individuals, domain)
        case _:
            rank, _ = ranks_of(query, individuals)
            return OrderStatistic(rank, individuals, domain)


def ranks_of(query: str, individuals: int) -> tuple[int, int]:
    """The places, from 1, in a sorted group, of the two values whose mean is the answer.

    They are (0, 0) for a query that is no order statistic. The P-quantile of n values is the
    smallest value that at least a share P of them does not exceed: of rank ceil(P n).
    """
    if query == "median":
        return (individuals + 1) // 2, individuals // 2 + 1
    if query == "min":
        share = Fraction(0)
    elif query == "max":
        share = Fraction(1)
    elif query.startswith("quantile:"):
        # The decimal as written: the double nearest to 0.1 is above it, and would give rank 2 of
        # 10 values.
        share = Fraction(query.partition(":")[2])
    else:
        return 0, 0
    rank = max(1, math.ceil(share * individuals))
    return rank, rank
