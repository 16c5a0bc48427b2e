"""Exact pricing where all rows depend on a single number.

Pricing looks for the outputs that a channel still lacks: posteriors v of the symbols with the least
reduced cost H(v) - y.v, where y are the prices of a master program. They lie in a polytope, each
row of which bounds a linear function of v. In general that takes a search
(`solvers.pricing.concave`).

If every row is an affine function of one of them on the simplex (with two sensitive values, for
instance), the polytope is {v : sum v = 1, lo <= a.v <= hi}. Its vertices are the symbols with a_x
inside, and the pairs that meet an end exactly: for a_i < lo < a_j the mixture with the weight
theta = (lo - a_i) / (a_j - a_i) of j. Its reduced cost is h(theta) - (1 - theta) y_i - theta y_j,
where h is the entropy of two shares. All pairs are priced in blocks of a matrix; nothing has to be
searched.

For example, with a = (0, 0.5, 2) and [lo, hi] = [0.4, 1.5] the vertices are the symbol 2, at lo the
pairs (1, 2) with theta = 0.8 and (1, 3) with 0.2, and at hi the pairs (1, 3) with 0.75 and (2, 3)
with 2/3.

1. `leading_row` finds the row that is the number a of every symbol.
2. `_interval` turns the bounds of all rows into [lo, hi]: once for the polytope, rounded inwards
   (outputs must lie in it), and once for a relaxation of it, rounded outwards (the bound holds for
   all of it).
3. `LineSearch.run` prices all vertices, and returns cheap ones and the bound.

Invariant: the bound is the least reduced cost over all vertices of the larger interval, less the
error of a mixing weight. Rows that are only nearly affine widen that interval by their error.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from copy import copy

import numpy as np
from numpy.typing import NDArray

from solvers.pace import end_of
from solvers.points import Array, Points, entropy_terms
from solvers.pricing.concave import (
    MAX_COLUMNS,
    SearchCounts,
    SearchResult,
    SearchStatus,
)
from solvers.sets.polytope import Polytope

Index = NDArray[np.intp]

DEPENDENCE = 1e-12
"""Rows whose distance from the span of the first row and the ones, relative to their size, is below
this count as affine in it. The bound only uses the first row, a relaxation, so it stays valid."""

ULP = float(np.finfo(np.float64).eps)
"""Twice the largest relative error of one floating-point operation."""

ROUNDING = 4.0 * ULP
"""Absolute error of a mixing weight: the differences of the row's values are rounded once each,
whatever their size, and so is their quotient."""

BLOCK = 1 << 20
"""Pairs priced at once: three matrices of this size stay inside the caches of small machines."""


def leading_row(polytope: Polytope) -> int | None:
    """The row that determines all others on the simplex, or None if there is no such row."""
    if polytope.m == 0 or polytope.auxiliary is not None:
        return None
    # The row with the largest spread: dividing by its differences costs the least precision.
    spread = np.ptp(polytope.rows, axis=1)
    lead = int(np.argmax(spread))
    if spread[lead] == 0.0:
        return None
    _, _, error = _affine(polytope, lead)
    # Relative to each row: rows of rare secrets may be a thousand times larger than others.
    size = np.abs(polytope.rows).max(axis=1)
    if (error > DEPENDENCE * size).any():
        return None
    return lead


def affine_fit(rows: Array, points: Array) -> tuple[Array, Array, Array]:
    """Least squares of the rows by affine functions of points (d, n), and the error, rounding
    included.

    Returns
    -------
    offset, slope, error : (m,), (m, d), (m,) arrays
        ``|row_i - offset_i - slope_i points| <= error_i`` at every symbol.
    """
    basis = np.column_stack([np.ones(points.shape[1]), points.T])
    # One program for all rows: column i of the fit has the offset and the slope of row i.
    fit = np.linalg.lstsq(basis, rows.T, rcond=None)[0]
    offset = np.ascontiguousarray(fit[0])
    slope = np.ascontiguousarray(fit[1:].T, dtype=np.float64)
    terms = np.abs(rows).max(axis=1) + np.abs(fit).sum(axis=0)
    residual = np.abs(rows.T - basis @ fit).max(axis=0)
    # What the residual itself may hide: it is a sum of rounded products.
    error: Array = residual + 8.0 * ULP * terms
    return offset, slope, error


def _affine(polytope: Polytope, lead: int) -> tuple[Array, Array, Array]:
    """Offsets, slopes and errors of all rows as functions of the leading one; (m,) each."""
    a = polytope.rows[lead]
    # Scaled to order one, as the column of ones beside it in the least squares.
    size = float(np.abs(a).max())
    offset, slope, error = affine_fit(polytope.rows, (a / size)[None, :])
    return offset, slope[:, 0] / size, error


class LineSearch:
    """Prices like `solvers.pricing.concave.ConcaveSearch`, by the reduced cost of every vertex.

    `preparation` makes it where `leading_row` finds a row, and `solvers.envelope.generation` calls
    `run`.

    Attributes
    ----------
    n : int
    a : (n,) array
        The number of each symbol: its entry in the leading row.
    inner : (low, high)
        The interval to which the numbers of outputs keep; that of the relaxation is `_outer`.
    units : (n,) array of bool
        Symbols that are outputs by themselves.
    """

    def __init__(self, polytope: Polytope, relaxation: Polytope, lead: int) -> None:
        self.n = polytope.n
        self.a = polytope.rows[lead]
        self.inner = _interval(polytope, lead, -1.0)
        self._outer = _interval(relaxation, lead, 1.0)
        above = polytope.rows >= polytope.lower[:, None]
        below = polytope.rows <= polytope.upper[:, None]
        self.units = np.logical_and.reduce(above & below, axis=0)

    def over(self, a: Array) -> LineSearch:
        """A search with the same interval for other symbols, whose numbers are `a`."""
        other = copy(self)
        other.n = len(a)
        other.a = a
        # Merged problems only supply columns, so their bounds need no relaxation.
        other._outer = self.inner
        other.units = (a >= self.inner[0]) & (a <= self.inner[1])
        return other

    def run(
        self,
        prices: Array,
        *,
        column_cutoff: float,
        columns: int = MAX_COLUMNS,
        time_limit: float | None = None,
        **_: object,
    ) -> SearchResult:
        """Price every vertex; the other parameters of a tree do not apply."""
        deadline = end_of(time_limit)
        # Symbols by themselves: a unit vector has no entropy, so it costs minus its price.
        between = (self.a >= self._outer[0]) & (self.a <= self._outer[1])
        bound = -float(np.max(prices[between], initial=-np.inf))
        cheap_units = np.flatnonzero(self.units & (-prices < column_cutoff))
        parts = [Points.units(cheap_units, self.n)]

        # Pairs at both ends.
        priced = 0
        for end, proving in self._passes():
            # The bound holds for the relaxation; columns are members of the polytope itself.
            level = self.inner[end]
            if proving:
                level = self._outer[end]
            for below, above in self._blocks(level):
                # A part of the vertices proves nothing: without the rest there is no bound.
                if time.process_time() > deadline:
                    return SearchResult(
                        SearchStatus.TIME_LIMIT,
                        -np.inf,
                        Points.concatenate(parts),
                        SearchCounts(priced),
                    )
                value, lowest = self._price(below, above, level, prices)
                if proving:
                    bound = min(bound, lowest)
                priced += value.size
                # Chosen at the level priced, and mixed to the inner end, which is next to it.
                i, j = _best_partners(value, below, above, column_cutoff)
                parts.append(self.pairs(i, j, self.inner[end]))

        points = Points.concatenate(parts)
        reduced = points.entropies() - points.dot(prices)
        # Every vertex was priced anyway, so all good ones may go to the master at once.
        order = np.argsort(reduced, kind="stable")[: max(columns, self.n)]
        keep = order[reduced[order] < column_cutoff]
        return SearchResult(
            SearchStatus.DONE, bound, points.take(keep), SearchCounts(priced)
        )

    def _passes(self) -> list[tuple[int, bool]]:
        """The ends at which pairs are priced (0 is low, 1 is high), and whether for the bound.

        Columns come along with the pass for the bound, unless a symbol lies between the outer and
        the inner end, so that the latter has pairs of its own.
        """
        passes = [(0, True), (1, True)]
        for end in range(2):
            outer = self._outer[end]
            inner = self.inner[end]
            below_differs = (self.a < outer) != (self.a < inner)
            above_differs = (self.a > outer) != (self.a > inner)
            if below_differs.any() or above_differs.any():
                passes.append((end, False))
        return passes

    def _blocks(self, end: float) -> Iterator[tuple[Index, Index]]:
        """All pairs of symbols on either side of an end, in blocks that fit the caches.

        A block has some of the symbols below, and all of those above.
        """
        below = np.flatnonzero(self.a < end)
        above = np.flatnonzero(self.a > end)
        if below.size and above.size and np.isfinite(end):
            step = max(1, BLOCK // above.size)
            for start in range(0, below.size, step):
                yield below[start : start + step], above

    def _price(
        self, below: Index, above: Index, end: float, prices: Array
    ) -> tuple[Array, float]:
        """Reduced cost of every pair that meets `end`, (below, above), and a proven lower bound."""
        gap = self.a[above][None, :] - self.a[below][:, None]
        theta = (end - self.a[below])[:, None] / gap
        entropy = entropy_terms(theta) + entropy_terms(1.0 - theta)
        price_below = prices[below][:, None]
        price_above = prices[above][None, :]
        value = entropy - (1.0 - theta) * price_below - theta * price_above
        # An error delta in theta changes each of the two entropy terms by at most
        # delta (1 + log 1/delta), and the prices by delta |y_i - y_j|. The sum of the four terms
        # has its own rounding.
        of_entropy = 2.0 - 2.0 * np.log(ROUNDING)
        of_sum = 2.0 * (1.0 + np.abs(prices).max())
        slack = ROUNDING * (of_entropy + np.ptp(prices) + of_sum)
        return value, float(value.min() - slack)

    def pairs(self, i: Index, j: Index, end: float | Array) -> Points:
        """The outputs of two symbols whose number is the end (the same for all, or one for
        each).
        """
        theta = (end - self.a[i]) / (self.a[j] - self.a[i])
        # Rounding may put a share at 0 or 1: that output is a unit vector, not a pair.
        proper = (theta > 0.0) & (theta < 1.0)
        return Points.between(i[proper], j[proper], theta[proper], self.n)


def _best_partners(
    value: Array, below: Index, above: Index, cutoff: float
) -> tuple[Index, Index]:
    """The cheapest partner of every symbol of a block, where the pair costs less than the cutoff.

    One pair for each symbol: all pairs below the cutoff would flood the master.
    """
    i = np.concatenate([below, below[value.argmin(axis=0)]])
    j = np.concatenate([above[value.argmin(axis=1)], above])
    cheap = np.concatenate([value.min(axis=1), value.min(axis=0)]) < cutoff
    return i[cheap], j[cheap]


def _interval(polytope: Polytope, lead: int, widen: float) -> tuple[float, float]:
    """The interval of the leading row that all rows allow; `widen` is 1 (outwards) or -1 (inwards).

    Row i is ``offset + slope a + e`` with a bound of |e|, and e.v is at most that on the simplex.
    The ends move by this error, which covers their own rounding, too, wherever they lie among the
    values of a.
    """
    a = polytope.rows[lead]
    low = float(polytope.lower[lead])
    high = float(polytope.upper[lead])
    offset, slope, error = _affine(polytope, lead)
    for i in range(polytope.m):
        reach = abs(slope[i]) * np.ptp(a)
        # A constant row restricts nothing: the point to decompose satisfies it.
        flat = reach <= DEPENDENCE * max(1.0, abs(offset[i]))
        if i == lead or flat:
            continue
        shift = widen * error[i]
        near = float(polytope.lower[i] - shift - offset[i]) / float(slope[i])
        far = float(polytope.upper[i] + shift - offset[i]) / float(slope[i])
        # A negative slope turns the interval round.
        low = max(low, min(near, far))
        high = min(high, max(near, far))
    return low, high
