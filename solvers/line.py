"""Exact pricing where the rows see v through a single number.

If every row is an affine function of one of them on the simplex (two sensitive values, for instance),
the polytope is {v : sum v = 1, lo <= a.v <= hi}: its vertices are the symbols with a_x inside, and pairs
that meet an end exactly. All pairs are priced in blocks of a matrix; nothing has to be searched.

Columns to begin with: neighbours are merged into groups, again and again, until all pairs of groups can be listed. On
the way back the decomposition of the merged point, followed member by member, nearly decomposes the finer one; what it
leaves over is paired off at its own mean. So a master begins with columns that decompose the point at about the least
cost, and its prices do not jump (5000 symbols: two to six rounds). Nothing of this is believed: the search over all
pairs prices what it leads to.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Iterator
from copy import copy
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from solvers.concave import MAX_COLUMNS, SearchCounts, SearchResult, SearchStatus
from solvers.generation import Generation
from solvers.points import Array, Points, entropy_terms
from solvers.polytope import Polytope
from solvers.results import EnvelopeStatus

Index = NDArray[np.intp]

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
    return (
        np.ascontiguousarray(fit[0]),
        np.ascontiguousarray(fit[1:].T, dtype=np.float64),
        error,
    )


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

    def __init__(self, polytope: Polytope, relaxation: Polytope, lead: int) -> None:
        self.n = polytope.n
        self.a = polytope.rows[lead]
        self.inner = _interval(polytope, lead, -1.0)
        self._outer = _interval(relaxation, lead, 1.0)
        inside = (polytope.rows >= polytope.lower[:, None]) & (
            polytope.rows <= polytope.upper[:, None]
        )
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
        found = [
            Points.units(np.flatnonzero(self.units & (-prices < column_cutoff)), self.n)
        ]
        counts = 0
        # Every vertex has been looked at anyway, so all good ones may go to the master at once.
        columns = max(columns, self.n)
        for end, proving in self._passes():
            level = (self._outer if proving else self.inner)[end]
            for below, above in self._blocks(level):
                if time.monotonic() > deadline:
                    points = Points.concatenate(found)
                    return SearchResult(
                        SearchStatus.TIME_LIMIT, -np.inf, points, SearchCounts(counts)
                    )
                value, lowest = self._price(below, above, level, prices)
                bound = min(bound, lowest) if proving else bound
                counts += value.size
                i = np.concatenate([below, below[value.argmin(axis=0)]])
                j = np.concatenate([above[value.argmin(axis=1)], above])
                cheap = (
                    np.concatenate([value.min(axis=1), value.min(axis=0)])
                    < column_cutoff
                )
                found.append(self.pairs(i[cheap], j[cheap], self.inner[end]))
        points = Points.concatenate(found)
        reduced = points.entropies() - points.dot(prices)
        order = np.argsort(reduced, kind="stable")[:columns]
        keep = order[reduced[order] < column_cutoff]
        return SearchResult(
            SearchStatus.DONE, bound, points.take(keep), SearchCounts(counts)
        )

    def _passes(self) -> list[tuple[int, bool]]:
        """The ends to price pairs at, and whether for the bound: columns come along, unless a symbol lies
        between the outer and the inner end, so that the latter has pairs of its own.
        """
        passes = [(0, True), (1, True)]
        for end in range(2):
            outer, inner = self._outer[end], self.inner[end]
            if ((self.a < outer) != (self.a < inner)).any() or (
                (self.a > outer) != (self.a > inner)
            ).any():
                passes.append((end, False))
        return passes

    def _blocks(self, end: float) -> Iterator[tuple[Index, Index]]:
        below, above = np.flatnonzero(self.a < end), np.flatnonzero(self.a > end)
        if below.size and above.size and np.isfinite(end):
            step = max(1, BLOCK // above.size)
            for start in range(0, below.size, step):
                yield below[start : start + step], above

    def _price(
        self, below: Index, above: Index, end: float, prices: Array
    ) -> tuple[Array, float]:
        """Reduced cost of every pair that meets `end`, and a valid lower bound of their minimum."""
        gap = self.a[above][None, :] - self.a[below][:, None]
        theta = (end - self.a[below])[:, None] / gap
        y_below, y_above = prices[below][:, None], prices[above][None, :]
        value = (
            entropy_terms(theta)
            + entropy_terms(1.0 - theta)
            - (1.0 - theta) * y_below
            - theta * y_above
        )
        # An error delta in theta changes each of the two terms by at most delta (1 + log 1/delta) and the
        # rest by delta |y_i - y_j|; the sum of the four has its own rounding.
        sizes = (
            2.0
            - 2.0 * np.log(ROUNDING)
            + np.ptp(prices)
            + 2.0 * (1.0 + np.abs(prices).max())
        )
        slack = ROUNDING * sizes
        return value, float(value.min() - slack)

    def pairs(self, i: Index, j: Index, end: float | Array) -> Points:
        """The outputs of two symbols whose number is the end (one, or one for each)."""
        theta = (end - self.a[i]) / (self.a[j] - self.a[i])
        ok = (theta > 0.0) & (theta < 1.0)
        i, j, theta = i[ok], j[ok], theta[ok]
        indices = np.column_stack([i, j]).ravel()
        data = np.column_stack([1.0 - theta, theta]).ravel()
        return Points.of_sizes(np.full(len(i), 2), indices, data, self.n)


def _interval(polytope: Polytope, lead: int, widen: float) -> tuple[float, float]:
    """The values of the leading row that satisfy every row, moved outwards (1) or inwards (-1) by the error.

    Row i is ``offset + slope a + e`` with a known ``max |e|``, and e.v is at most that on the simplex. The
    error covers the rounding of the ends, too, wherever they lie among the values of a.
    """
    a = polytope.rows[lead]
    low, high = float(polytope.lower[lead]), float(polytope.upper[lead])
    offset, slope, error = _affine(polytope, lead)
    for i in range(polytope.m):
        if i == lead or abs(slope[i]) * np.ptp(a) <= DEPENDENCE * max(
            1.0, abs(offset[i])
        ):
            continue
        shift = widen * error[i]
        near = float(polytope.lower[i] - shift - offset[i]) / float(slope[i])
        far = float(polytope.upper[i] + shift - offset[i]) / float(slope[i])
        low, high = max(low, min(near, far)), min(high, max(near, far))
    return low, high


Masses: TypeAlias = deque[tuple[int, float]]
"""Symbols and what there is of each, in order."""

Pair: TypeAlias = tuple[int, int, float, float]
"""Two symbols, the level at which they meet, and the weight of that output."""

FEWEST, MEMBERS = 150, 5
"""Symbols for which all pairs are listed, instead of columns from levels of merged symbols; symbols of a
group, on average."""

SPARE = 0.02
"""Share of the point that does not follow the merged decomposition, so that the mean of what is left over is about
that of the point: only then it can be paired off inside the polytope."""

NOTHING = 1e-18
"""Mass below which a symbol counts as used up."""


def first_columns(search: LineSearch, point: Array, gap: float, end: float) -> Points:
    """Members of the polytope that decompose `point` (n,); `gap` as for the envelope, `end` on the clock."""
    order = np.argsort(search.a, kind="stable")
    _, mean = at_mean(search, point)
    if search.n <= FEWEST:
        return Points.concatenate([mean, *(_listed(search, e) for e in search.inner)])
    if time.monotonic() > end:
        return mean
    group = _groups(search, point, order)
    mass = np.asarray(np.bincount(group, weights=point), dtype=np.float64)
    # A group without mass still has a number: the plain mean of its members.
    weight = point + np.finfo(np.float64).tiny
    values = np.bincount(group, weights=weight * search.a) / np.bincount(
        group, weights=weight
    )
    merged = search.over(values)
    units = Points.units(np.flatnonzero(merged.units), merged.n)
    first = Points.concatenate(
        [Points.from_dense(mass), units, first_columns(merged, mass, gap, end)]
    )
    run = Generation(
        mass, merged.run, first, gap, end - time.monotonic(), stabilise=False
    )
    if run.run() is EnvelopeStatus.INTERRUPTED:
        raise KeyboardInterrupt
    members = np.split(order, np.flatnonzero(np.diff(group[order])) + 1)
    return Points.concatenate([mean, *_followed(search, point, members, values, run)])


def _groups(search: LineSearch, point: Array, order: Index) -> Index:
    """The group of every symbol, (n,), numbered by value; none holds symbols on both sides of an end."""
    a, n = search.a[order], search.n
    place = np.cumsum(point[order] / point.sum() + 1.0 / n) / 2.0
    part = np.floor(place * (n // MEMBERS) * (1.0 - 1e-12)).astype(np.intp)
    side = (a >= search.inner[0]).astype(np.intp) + (a > search.inner[1])
    new = (np.diff(part, prepend=part[0]) != 0) | (np.diff(side, prepend=side[0]) != 0)
    group = np.empty(n, dtype=np.intp)
    group[order] = np.cumsum(new)
    return group


def _listed(search: LineSearch, level: float) -> Points:
    x, z = np.nonzero((search.a[:, None] < level) & (search.a[None, :] >= level))
    return search.pairs(x, z, level)


def _followed(
    search: LineSearch, point: Array, members: list[Index], a: Array, run: Generation
) -> list[Points]:
    """The outputs of the merged decomposition with members in the place of groups, and what these leave over."""
    keep = np.flatnonzero(run.weights > 0.0)
    keep = keep[run.pool.sizes[keep] == 2]
    used, weights = run.pool.take(keep), (1.0 - SPARE) * run.weights[keep]
    halves = used.indices.reshape(-1, 2)
    masses = used.data.reshape(-1, 2) * weights[:, None]
    # The groups stand in order of their values, so members and partners meet in order, too.
    wanted: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for k, (i, j) in enumerate(halves.tolist()):
        wanted[i].append((j, k, 0))
        wanted[j].append((i, k, 1))
    taken: dict[tuple[int, int], Masses] = {}
    for i, symbols in enumerate(members):
        line: Masses = deque(
            (x, (1.0 - SPARE) * float(point[x])) for x in symbols.tolist()
        )
        for _, k, half in sorted(wanted[i]):
            taken[k, half] = _taken(line, float(masses[k, half]))
    left = point.copy()
    low, high = search.inner
    pairs: list[Pair] = []
    for k, value in enumerate(used.dot(a).tolist()):
        level = min(max(value, low), high)
        pairs += _paired_off(search.a, level, taken[k, 0], taken[k, 1], left)
    return [_points(search, pairs), at_mean(search, np.maximum(left, 0.0))[1]]


def _taken(line: Masses, mass: float) -> Masses:
    out: Masses = deque()
    while line and mass > 0.0:
        symbol, has = line.popleft()
        if has > mass:
            line.appendleft((symbol, has - mass))
        out.append((symbol, min(has, mass)))
        mass -= has
    return out


def at_mean(search: LineSearch, mass: Array) -> tuple[Array, Points]:
    """Weights and outputs of the mean value of `mass` (n,), which they decompose; none where the mean is outside."""
    mean = float(search.a @ mass) / float(mass.sum())
    if not search.inner[0] <= mean <= search.inner[1]:
        return np.zeros(0), Points.units([], search.n)
    order = np.argsort(search.a, kind="stable")
    some = order[mass[order] > 0.0]
    lines: list[Masses] = []
    for side in (some[search.a[some] < mean], some[search.a[some] > mean][::-1]):
        # Rounding adds up in what is left at the end, which must be heavy.
        line = np.roll(side, -1 - int(np.argmax(mass[side]))) if len(side) else side
        lines.append(deque(zip(line.tolist(), mass[line].tolist(), strict=True)))
    pairs = _paired_off(search.a, mean, lines[0], lines[1], mass.copy())
    alone = some[search.a[some] == mean]
    weights = np.concatenate([[whole for *_, whole in pairs], mass[alone]])
    return weights, Points.concatenate(
        [_points(search, pairs), Points.units(alone, search.n)]
    )


def _paired_off(
    a: Array, level: float, one: Masses, other: Masses, left: Array
) -> list[Pair]:
    """Outputs at the level, of the heads of both lines until one of these has ended; `left` pays for them."""
    pairs: list[Pair] = []
    while one and other:
        (x, of_x), (z, of_z) = one[0], other[0]
        share = (level - a[x]) / (a[z] - a[x]) if a[z] != a[x] else 0.0
        if not 0.0 < share < 1.0:
            (one if (a[x] < level) == (a[z] < a[x]) else other).popleft()
            continue
        whole = min(of_x / (1.0 - share), of_z / share)
        left[x] -= (1.0 - share) * whole
        left[z] -= share * whole
        pairs.append((x, z, level, whole))
        for line, symbol, rest in (
            (one, x, of_x - (1.0 - share) * whole),
            (other, z, of_z - share * whole),
        ):
            line.popleft()
            if rest > NOTHING:
                line.appendleft((symbol, rest))
    return pairs


def _points(search: LineSearch, pairs: list[Pair]) -> Points:
    i, j, level, _ = np.array(pairs).T if pairs else np.zeros((4, 0))
    return search.pairs(i.astype(np.intp), j.astype(np.intp), level)
