"""Exact pricing where the rows see v through a single number.

If every row is an affine function of one of them on the simplex (two sensitive values, for instance),
the polytope is {v : sum v = 1, lo <= a.v <= hi}: its vertices are the symbols with a_x inside, and pairs
that meet an end exactly. All pairs are priced in blocks of a matrix; nothing has to be searched.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from copy import copy

import numpy as np
from numpy.typing import NDArray

from solvers.concave import MAX_COLUMNS, SearchCounts, SearchResult, SearchStatus
from solvers.costs import cost_named
from solvers.points import Points
from solvers.polytope import Polytope

Array = NDArray[np.float64]

DEPENDENCE = 1e-12
"""Rows whose distance from the span of the first row and the ones, relative to their size, is below
this count as affine in it. The bound only uses the first row, a relaxation, so it stays valid."""

ULP = float(np.finfo(np.float64).eps)

ROUNDING = 4.0 * ULP
"""Absolute error of a mixing weight: the differences of the row's values are rounded once each, whatever
their size, and so is their quotient."""

BLOCK = 1 << 20
"""Pairs priced at once: three matrices of this size stay inside the caches of small machines."""


def leading_row(polytope: Polytope) -> int | None:
    """The row that determines all others on the simplex, or None if there is no such row."""
    if polytope.m == 0 or polytope.auxiliary is not None:
        return None
    spread = np.ptp(polytope.rows, axis=1)
    lead = int(np.argmax(spread))
    if spread[lead] == 0.0:
        return None
    error = _affine(polytope, lead)[2]
    size = np.abs(polytope.rows).max(axis=1)
    return lead if bool((error <= DEPENDENCE * size).all()) else None


def affine_fit(rows: Array, points: Array) -> tuple[Array, Array, Array]:
    """(m,), (m, d), (m,): |row_i - offset_i - slope_i points| <= error_i, rounding included, for points (d, n)."""
    basis = np.column_stack([np.ones(points.shape[1]), points.T])
    fit = np.linalg.lstsq(basis, rows.T, rcond=None)[0]
    terms = np.abs(rows).max(axis=1) + np.abs(fit).sum(axis=0)
    error: Array = np.abs(rows.T - basis @ fit).max(axis=0) + 8.0 * ULP * terms
    return np.ascontiguousarray(fit[0]), np.ascontiguousarray(fit[1:].T, dtype=np.float64), error


def _affine(polytope: Polytope, lead: int) -> tuple[Array, Array, Array]:
    """Offsets, slopes and errors of all rows as functions of the leading one; (m,) each."""
    a = polytope.rows[lead]
    size = float(np.abs(a).max())
    offset, slope, error = affine_fit(polytope.rows, (a / size)[None, :])
    return offset, slope[:, 0] / size, error


class LineSearch:
    """Prices like `solvers.concave.ConcaveSearch`, by looking at every vertex.

    `a` (n,) holds the numbers of the symbols, `inner` the ends that outputs keep to, `units` (n,) the symbols that
    are outputs by themselves.
    """

    def __init__(self, polytope: Polytope, relaxation: Polytope, lead: int, cost: str = "entropy") -> None:
        self.cost = cost_named(cost)
        self.n = polytope.n
        self.a = polytope.rows[lead]
        self.inner = _interval(polytope, lead, -1.0)
        self._outer = _interval(relaxation, lead, 1.0)
        inside = (polytope.rows >= polytope.lower[:, None]) & (polytope.rows <= polytope.upper[:, None])
        self.units = np.logical_and.reduce(inside, axis=0)

    def over(self, a: Array) -> LineSearch:
        """The same for other symbols, whose numbers are given."""
        other = copy(self)
        other.n, other.a, other._outer = len(a), a, self.inner
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
        """Every vertex is priced, so the tree's parameters do not apply."""
        deadline = np.inf if time_limit is None else time.monotonic() + time_limit
        between = (self.a >= self._outer[0]) & (self.a <= self._outer[1])
        bound = -float(np.max(prices[between], initial=-np.inf))
        found = [Points.units(np.flatnonzero(self.units & (-prices < column_cutoff)), self.n)]
        counts = 0
        # Every vertex has been looked at anyway, so all good ones may go to the master at once.
        columns = max(columns, self.n)
        for end, proving in self._passes():
            level = (self._outer if proving else self.inner)[end]
            for below, above in self._blocks(level):
                if time.monotonic() > deadline:
                    points = Points.concatenate(found)
                    return SearchResult(SearchStatus.TIME_LIMIT, -np.inf, points, SearchCounts(counts))
                value, lowest = self._price(below, above, level, prices)
                bound = min(bound, lowest) if proving else bound
                counts += value.size
                i = np.concatenate([below, below[value.argmin(axis=0)]])
                j = np.concatenate([above[value.argmin(axis=1)], above])
                cheap = np.concatenate([value.min(axis=1), value.min(axis=0)]) < column_cutoff
                found.append(self.pairs(i[cheap], j[cheap], self.inner[end]))
        points = Points.concatenate(found)
        reduced = self.cost.of(points) - points.dot(prices)
        order = np.argsort(reduced, kind="stable")[:columns]
        keep = order[reduced[order] < column_cutoff]
        return SearchResult(SearchStatus.DONE, bound, points.take(keep), SearchCounts(counts))

    def _passes(self) -> list[tuple[int, bool]]:
        """The ends to price pairs at, and whether for the bound: columns come along, unless a symbol lies
        between the outer and the inner end, so that the latter has pairs of its own.
        """
        passes = [(0, True), (1, True)]
        for end in range(2):
            outer, inner = self._outer[end], self.inner[end]
            if ((self.a < outer) != (self.a < inner)).any() or ((self.a > outer) != (self.a > inner)).any():
                passes.append((end, False))
        return passes

    def _blocks(self, end: float) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Some symbols below the end, and all above it."""
        below, above = np.flatnonzero(self.a < end), np.flatnonzero(self.a > end)
        if below.size and above.size and np.isfinite(end):
            step = max(1, BLOCK // above.size)
            for start in range(0, below.size, step):
                yield below[start : start + step], above

    def _price(
        self, below: NDArray[np.intp], above: NDArray[np.intp], end: float, prices: Array
    ) -> tuple[Array, float]:
        """Reduced cost of every pair that meets `end`, and a valid lower bound of their minimum."""
        gap = self.a[above][None, :] - self.a[below][:, None]
        theta = (end - self.a[below])[:, None] / gap
        term = self.cost.term
        y_below, y_above = prices[below][:, None], prices[above][None, :]
        value = term(theta) + term(1.0 - theta) - (1.0 - theta) * y_below - theta * y_above
        # An error delta in theta changes each of the two terms by at most delta (1 + log 1/delta) and the
        # rest by delta |y_i - y_j|; the sum of the four has its own rounding.
        slack = ROUNDING * (
            2.0 - 2.0 * np.log(ROUNDING) + np.ptp(prices) + 2.0 * (1.0 + np.abs(prices).max())
        )
        return value, float(value.min() - slack)

    def pairs(self, i: NDArray[np.intp], j: NDArray[np.intp], end: float | Array) -> Points:
        """The outputs of two symbols whose number is the end (one, or one for each)."""
        theta = (end - self.a[i]) / (self.a[j] - self.a[i])
        ok = (theta > 0.0) & (theta < 1.0)
        i, j, theta = i[ok], j[ok], theta[ok]
        indices = np.column_stack([i, j]).astype(np.int32).ravel()
        data = np.column_stack([1.0 - theta, theta]).ravel()
        return Points(np.arange(0, 2 * len(i) + 1, 2, dtype=np.int32), indices, data, (len(i), self.n))


def _interval(polytope: Polytope, lead: int, widen: float) -> tuple[float, float]:
    """The values of the leading row that satisfy every row, moved outwards (1) or inwards (-1) by the error.

    Row i is ``offset + slope a + e`` with a known ``max |e|``, and e.v is at most that on the simplex. The
    error covers the rounding of the ends, too, wherever they lie among the values of a.
    """
    a = polytope.rows[lead]
    low, high = float(polytope.lower[lead]), float(polytope.upper[lead])
    offset, slope, error = _affine(polytope, lead)
    for i in range(polytope.m):
        if i == lead or abs(slope[i]) * np.ptp(a) <= DEPENDENCE * max(1.0, abs(offset[i])):
            continue
        shift = widen * error[i]
        ends = [
            (polytope.lower[i] - shift - offset[i]) / slope[i],
            (polytope.upper[i] + shift - offset[i]) / slope[i],
        ]
        low, high = max(low, float(min(ends))), min(high, float(max(ends)))
    return low, high
