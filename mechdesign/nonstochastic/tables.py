"""Queries and mechanisms given by a table over a small finite domain.

The table has one axis for each individual. Everything about a table is counted, nothing assumed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.nonstochastic.domains import FiniteDomain, exact_number

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
