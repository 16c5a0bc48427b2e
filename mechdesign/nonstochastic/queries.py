"""Queries on a private dataset, described so that their fibres are known exactly.

A fibre is the set of answers {f(x_i, x_-i) : x_i in its domain} that one individual can bring about
while all the others stay as they are; noiseless privacy limits the outputs on it (Farokhi 2019,
Definition 1). Its structure makes an exact certificate possible without enumerating all datasets.
There are two kinds of query:

- `LinearQuery`, f(x) = sum of w_i x_i. Individuals of one weight and domain are a block
  (`Stratum`). A fibre of a block is {s + w x : x in its domain}, where s is what the others
  contribute. The sensitivity, sup |f - f'| over two datasets that differ in one individual (Theorem
  8), is the largest |w| (hi - lo) of a block.
- `OrderStatistic`, the k-th smallest value, or the mean of the two in the middle. Its largest fibre
  is one of a linear query (`largest_fibre`), so that `fibres` counts linear queries alone.

For example, the mean of 4 values in [0, 10] is one block of weight 1/4, with the sensitivity 2.5.
If the other three contribute 5, the fibre is [5, 7.5].
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

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
