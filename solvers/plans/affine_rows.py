"""Rows of values that are affine functions of each other, found without comparing all pairs.

Limits come in such rows: the lifts of two secrets are affine functions of each other, and those of
an earlier release repeat each other by the thousand.

*Marks.* The places u = (t - min t) / (max t - min t) of the values of a row between its ends are
those of every row a + b t with b > 0, and 1 - u with b < 0. Thus |u - 1/2| is the same for all of
them, and so is its mean with fixed weights, the mark of a row. Only rows with the same mark, up to
rounding, are compared.

*Rounding.* Let t = a + b r + e be positive rows of mean 1 with |e| <= A m for A = `AFFINE` and m
the larger of max t and |a|. Each place of t is that of a + b r within 4 A m / span(t): once for the
value, once for the least value, twice for the span. As |a| <= max t + |b| max r, and |b| span(r) is
span(t), m / span(t) <= max t / span(t) + max r / span(r). Marks of both differ by no more than the
sum of their reaches, 8 A max t / span(t) and 8 A max r / span(r), of which one half is room for the
rounding of this module.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from typing import NamedTuple

import numpy as np

from solvers.points import Array

AFFINE = 1e-12
"""Values count as an affine function of others within this, relative to the largest: two lifts of
one probability, each rounded a few times, agree to 1e-15."""

FLATTEST = 1e-2
"""Rows are joined where the slope of one in the other is at least this, and at most its inverse."""

ERRORS = 8.0
"""Errors of `AFFINE` in a mark, twice those that are counted above."""

GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
"""Weights of marks are the fractions of its multiples: no two are equal, none is close to 0 for
long."""

CHUNK = 1 << 20
"""Values whose marks are computed at once, so that nothing as large as all rows is copied."""


class Mark(NamedTuple):
    """What rows that are affine functions of each other have in common.

    Attributes
    ----------
    at : float
        The mean of |u - 1/2|, from 0 to 1/2.
    reach : float
        What rounding may have changed of it; infinity for a row of equal values.
    """

    at: float
    reach: float


class Affine(NamedTuple):
    """values = offset + slope * row `of`."""

    of: int
    slope: float
    offset: float

    def ends(self, of_values: tuple[float, float]) -> tuple[float, float]:
        """The least and the largest mean of the row `of` for those of the values."""
        least, most = sorted((end - self.offset) / self.slope for end in of_values)
        return least, most


class AffineRows:
    """Rows of mean 1, in the order in which they came."""

    def __init__(self) -> None:
        self.values: list[Array] = []
        # For each order of magnitude of the reach the marks, ascending, with their rows.
        self._marks: dict[int, list[tuple[float, int]]] = {}

    def find(self, values: Array, mark: Mark) -> Affine | None:
        """The first row that these values are an affine function of."""
        if math.isinf(mark.reach):
            return None
        near: list[int] = []
        for magnitude, marks in self._marks.items():
            reach = mark.reach + 10.0**magnitude
            first = bisect_left(marks, (mark.at - reach, -1))
            last = bisect_left(marks, (mark.at + reach, len(self.values)))
            near.extend(j for _, j in marks[first:last])
        for j in sorted(near):
            slope, offset = affine(self.values[j], values)
            if FLATTEST <= abs(slope) <= 1.0 / FLATTEST:
                return Affine(j, slope, offset)
        return None

    def append(self, values: Array, mark: Mark) -> None:
        """Keep a row."""
        if not math.isinf(mark.reach):
            magnitude = math.ceil(math.log10(mark.reach))
            marks = self._marks.setdefault(magnitude, [])
            insort(marks, (mark.at, len(self.values)))
        self.values.append(values)


def marks_of(values: Array) -> list[Mark]:
    """The marks of rows (k, n) of values that are not negative, in any units."""
    rows, n = values.shape
    weights = np.modf(GOLDEN * np.arange(1, n + 1))[0]
    weights /= weights.sum()
    marks: list[Mark] = []
    step = max(CHUNK // max(n, 1), 1)
    for first in range(0, rows, step):
        some = values[first : first + step]
        least = some.min(axis=1)
        most = some.max(axis=1)
        span = most - least
        reach = np.full(len(some), math.inf)
        np.divide(ERRORS * AFFINE * most, span, out=reach, where=span > 0.0)
        places = (some - least[:, None]) / np.where(span > 0.0, span, 1.0)[:, None]
        at = np.abs(places - 0.5) @ weights
        marks.extend(map(Mark, at.tolist(), reach.tolist()))
    return marks


def affine(of: Array, values: Array) -> tuple[float, float]:
    """(slope, offset) of `values` as an affine function of `of`; slope 0 where they are none."""
    low, high = int(of.argmin()), int(of.argmax())
    span = float(of[high] - of[low])
    if span <= 0.0:
        return 0.0, 0.0
    slope = float(values[high] - values[low]) / span
    offset = float(values[low] - slope * of[low])
    error = np.abs(values - offset - slope * of).max()
    if error > AFFINE * max(float(values.max()), abs(offset), 1.0):
        return 0.0, 0.0
    return slope, offset
