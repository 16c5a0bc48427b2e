"""Exact pricing where the rows see v through two numbers.

If every row is an affine function of two of them on the simplex (three sensitive values, for instance), each
symbol is a point of the plane and the polytope is {v : the mixture of the points lies in a polygon}. Its
vertices are the symbols inside the polygon, the pairs that meet an edge, and the triples that hold a corner.
All of them are priced in compiled loops (`_plane.h`): at a corner, prices are first compared with the plane
that touches them from above (the linear relaxation), so that most triples are out of reach at a glance.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers import concave
from solvers.concave import (
    MAX_COLUMNS,
    SLICE,
    ConcaveSearch,
    SearchCounts,
    SearchResult,
    SearchStatus,
)
from solvers.line import DEPENDENCE, ULP, affine_fit
from solvers.points import Array, Points
from solvers.polytope import Polytope

MOST_LINES = 40
"""Edges up to which corners are looked for pair by pair."""

NEAREST = 1e-7
"""Distance of two symbols, as a share of the cloud's size, below which triples that hold both have no sharp
weights; branch and bound does not mind."""

OUTSIDE = 1e-9
"""Distance, in units of the cloud, by which a pair or corner may miss the polygon and still count: more than
any rounding, and it can only lower the bound."""

INSIDE = 2e-13
"""Violation of a line by a column that is rounding: what the simplex of the branch and bound leaves, too."""

SHARPEST = 1e-9
"""Difference of bound and best column that no tree is worth asking for."""

KEEP = 0.5
"""Share of the best value found beyond which a vertex is no candidate for a column any more."""


def plane_search(
    polytope: Polytope, relaxation: Polytope, tree: ConcaveSearch
) -> PlaneSearch | None:
    """A pricer for this polytope, or None where the rows see more than a plane or symbols nearly coincide.

    `tree`, the branch and bound for the same, does local searches, and answers where mixtures are too blurred to be
    priced sharply: symbols on an edge or corner, or a polygon hardly wider than rounding.
    """
    if polytope.auxiliary is not None or polytope.m < 2 or polytope.n < 3:
        return None
    from scipy.spatial import KDTree

    leads = _leading_rows(polytope.rows)
    if leads is None:
        return None
    members, first = concave.identical_columns(polytope.rows)
    rows = polytope.rows[:, first]
    points = rows[leads]
    # The same power of two for both keeps the coordinates exact.
    points = points * 2.0 ** -np.ceil(np.log2(np.abs(points).max()))
    offset, slope, error = affine_fit(rows, points)
    if (error > DEPENDENCE * np.maximum(np.abs(rows).max(axis=1), 1.0)).any():
        return None
    inner = _lines(polytope, points, offset, slope, -error)
    outer = _lines(relaxation, points, offset, slope, error)
    if inner is None or outer is None or not 3 <= len(outer[0]) <= MOST_LINES:
        return None
    if KDTree(points.T).query(points.T, k=2)[0][:, 1].min() < NEAREST:
        return None
    corners = _corners(outer[0], points)
    return (
        None
        if corners is None
        else PlaneSearch(polytope.n, members, inner[0], *outer, corners, tree)
    )


def _leading_rows(rows: Array) -> NDArray[np.intp] | None:
    """Two rows that span the others and the ones: the widest, and the one farthest from it."""
    from scipy.linalg import qr

    scaled = rows / np.maximum(np.abs(rows).max(axis=1), np.finfo(float).tiny)[:, None]
    found: Any = qr(
        (scaled - scaled.mean(axis=1, keepdims=True)).T, mode="r", pivoting=True
    )
    lengths, leads = found
    return (
        None
        if abs(lengths[1, 1]) <= 1e-6 * np.sqrt(rows.shape[1])
        else leads[:2].astype(np.intp)
    )


def _lines(
    polytope: Polytope, points: Array, offset: Array, slope: Array, error: Array
) -> tuple[Array, float] | None:
    """Functions of the symbols that are at most zero inside, (k, n), one for each finite end, and their error.

    None if a row of no slope is violated.
    """
    values: list[Array] = []
    blur = 0.0
    for sign, ends in ((1.0, polytope.upper), (-1.0, polytope.lower)):
        for i in np.flatnonzero(np.isfinite(ends)):
            normal, end = sign * slope[i], sign * (ends[i] - offset[i]) + error[i]
            size = float(np.abs(normal).max())
            if size <= DEPENDENCE * max(1.0, abs(offset[i])):
                if end < -4.0 * DEPENDENCE:
                    return None
                continue
            scale = 2.0 ** -np.round(np.log2(size))
            normal, end = normal * scale, end * scale
            line = normal @ points - end
            blur = max(
                blur,
                8.0 * ULP * float((np.abs(normal) @ np.abs(points)).max() + abs(end)),
            )
            values.append(line)
    return (np.ascontiguousarray(values), blur) if values else None


def _corners(lines: Array, points: Array) -> list[tuple[int, int]] | None:
    """Pairs of lines that meet within the polygon, or not surely outside; None where two nearly coincide."""
    basis = np.column_stack([np.ones(points.shape[1]), points.T])
    plane = np.linalg.lstsq(basis, lines.T, rcond=None)[0]
    found: list[tuple[int, int]] = []
    for k in range(len(lines)):
        for m in range(k + 1, len(lines)):
            matrix = plane[1:, [k, m]].T
            det = float(np.linalg.det(matrix))
            if abs(det) < 1e-6:
                # Two ends of one row never meet; different rows so nearly parallel are for the tree.
                same = np.abs(matrix[0] + matrix[1]).max() < 1e-12
                if same and plane[0, k] + plane[0, m] < -1e-9:
                    continue
                return None
            corner = np.linalg.solve(matrix, -plane[0, [k, m]])
            others = plane[0] + corner @ plane[1:]
            if np.delete(others, [k, m]).max(initial=-np.inf) <= OUTSIDE * (
                1.0 + np.abs(corner).max()
            ):
                found.append((k, m))
    return found


@dataclass(frozen=True, eq=False)
class PlaneSearch:
    """Prices like `solvers.concave.ConcaveSearch`, by looking at every vertex; see `plane_search`.

    `inner` and `outer` are the lines, (k, n) each, and `blur` the absolute error of an entry of the latter.
    """

    n: int
    members: NDArray[np.intp]
    inner: Array
    outer: Array
    blur: float
    corners: list[tuple[int, int]]
    tree: ConcaveSearch

    def run(
        self,
        prices: Array,
        *,
        tolerance: float,
        column_cutoff: float,
        columns: int = MAX_COLUMNS,
        enough: int | None = None,
        time_limit: float | None = None,
        **options: Any,
    ) -> SearchResult:
        """Every vertex is priced; the tree's other parameters apply where it is asked, and for `enough` of zero."""
        options |= {
            "tolerance": tolerance,
            "column_cutoff": column_cutoff,
            "columns": columns,
        }
        if enough == 0:
            return self.tree.run(
                prices, enough=enough, time_limit=time_limit, **options
            )
        grouped, chosen = concave.best_of_groups(prices, self.members)
        look = _Look(
            np.ascontiguousarray(grouped), column_cutoff, time_limit, self.blur
        )
        unit = -grouped[(self.outer <= OUTSIDE).all(axis=0)]
        look.note(float(unit.min(initial=np.inf)))
        alone = (self.inner <= 0.0).all(axis=0) & (-grouped < column_cutoff)
        found = [Points.units(chosen[alone], self.n)]
        complete = True
        for k in range(len(self.outer)):
            complete = complete and look.pairs(self.outer, k)
            found.append(self._columns(look, (k,), chosen))
        for corner in self.corners:
            complete = complete and look.triples(self.outer, corner)
            found.append(self._columns(look, corner, chosen))
        points = Points.concatenate(found)
        reduced = points.entropies() - points.dot(prices)
        order = np.argsort(reduced, kind="stable")[: max(columns, self.n)]
        kept = points.take(order[reduced[order] < column_cutoff])
        best = float(reduced[order[0]]) if len(order) else np.inf
        if complete and look.bound < min(best, column_cutoff) - max(
            tolerance, SHARPEST
        ):
            return self.tree.run(prices, time_limit=look.left, **options)
        status = SearchStatus.DONE if complete else SearchStatus.TIME_LIMIT
        return SearchResult(
            status, look.bound if complete else -np.inf, kept, SearchCounts(look.looked)
        )

    def _columns(
        self, look: _Look, lines: tuple[int, ...], chosen: NDArray[np.intp]
    ) -> Points:
        """The best mixtures of the last look, on the lines of the inner set."""
        support = look.supports(len(lines) + 1)
        f = self.inner[list(lines)]
        with np.errstate(divide="ignore", invalid="ignore"):
            if len(lines) == 1:
                i, j = support.T
                share = f[0, j] / (f[0, j] - f[0, i])
                weights = np.column_stack([share, 1.0 - share])
            else:
                a, b, c = (f[:, column] for column in support.T)
                area = np.column_stack([_cross(b, c), _cross(c, a), _cross(a, b)])
                weights = area / area.sum(axis=1, keepdims=True)
            image = np.einsum("ks,lks->kl", weights, self.inner[:, support])
            ok = (weights >= 0.0).all(axis=1) & (image <= INSIDE).all(axis=1)
        weights, support = weights[ok], support[ok]
        return Points.of_sizes(
            np.full(*support.shape), chosen[support].ravel(), weights.ravel(), self.n
        )


def _cross(a: Array, b: Array) -> Array:
    return a[0] * b[1] - a[1] * b[0]


class _Look:
    """One round: the level below which vertices count, the least proven value, and the best mixtures."""

    def __init__(
        self, prices: Array, level: float, time_limit: float | None, blur: float
    ) -> None:
        self._prices, self._level, self._blur = prices, level, blur
        self._deadline = np.inf if time_limit is None else time.monotonic() + time_limit
        self._floor = -float(prices.max())
        self._lowest = np.inf
        self.looked = 0

    @property
    def bound(self) -> float:
        """Whatever was not looked at closely costs more than the level."""
        return float(min(self._lowest, self._level))

    @property
    def left(self) -> float | None:
        """Seconds left, None for any number."""
        return (
            None
            if np.isinf(self._deadline)
            else max(0.0, self._deadline - time.monotonic())
        )

    def note(self, value: float) -> None:
        """A unit vector of this value is there."""
        self._lowest = min(self._lowest, value)
        self._level = min(self._level, KEEP * value if value < 0.0 else value)

    def supports(self, size: int) -> NDArray[np.int32]:
        """The supports found by the last call, each once."""
        support = self._support[np.isfinite(self._best)][:, :size]
        return np.unique(np.sort(support, axis=1), axis=0) if len(support) else support

    def pairs(self, lines: Array, line: int) -> bool:
        """All pairs across a line; whether the time was enough."""
        from solvers._plane import pairs

        self._begin()
        size = float(np.abs(self._prices).max())
        found = self._best, self._support
        return self._slices(
            pairs, lines, self._prices, *found, line, self._blur, OUTSIDE, size
        )

    def triples(self, lines: Array, corner: tuple[int, int]) -> bool:
        """All triples that hold the corner of two lines; whether the time was enough."""
        from solvers._plane import triples

        self._begin()
        f, g = (np.ascontiguousarray(lines[k]) for k in corner)
        offset, slopes = _touching_plane(f, g, self._prices)
        gap = offset + slopes[0] * f + slopes[1] * g - self._prices
        offset, gap = offset - float(gap.min()), np.ascontiguousarray(gap - gap.min())
        reach = float(max(np.hypot(f, g).max(), 1.0))
        size = (
            abs(offset)
            + 2.0 * float(np.abs(slopes).sum()) * reach
            + float(np.abs(self._prices).max())
        )
        order = np.argsort(gap, kind="stable").astype(np.int32)
        data = (f, g, gap, order, self._best, self._support)
        return self._slices(
            triples, *data, offset, size + float(gap.max()), reach, 2.0 * self._blur
        )

    def _begin(self) -> None:
        self._best = np.full(len(self._prices), np.inf)
        self._support = np.full((len(self._prices), 3), -1, dtype=np.int32)

    def _slices(
        self, work: Callable[..., tuple[int, float, float, int]], *data: Any
    ) -> bool:
        """All of the compiled work, with looks at the clock and at Ctrl-C; whether the time was enough."""
        first = 0
        while first < len(self._prices):
            left = min(SLICE, self._deadline - time.monotonic())
            if left <= 0.0:
                return False
            state = (self._level, KEEP, self._lowest, self._floor)
            first, self._level, self._lowest, looked = work(*data, *state, first, left)
            self.looked += looked
        return True


def _touching_plane(f: Array, g: Array, prices: Array) -> tuple[float, Array]:
    """The plane above all prices that is lowest at the origin: the best multipliers of the corner.

    Any plane gives a valid bound, so the answer is not trusted, and far-away ones are as good as none.
    """
    from scipy.optimize import linprog

    top = float(np.abs(prices).max())
    matrix = -np.column_stack([np.ones(len(f)), f, g])
    limit = 1e4 * (1.0 + top)
    ends = [(-10.0 - 3.0 * top, None), (-limit, limit), (-limit, limit)]
    found = linprog(
        [1.0, 0.0, 0.0], A_ub=matrix, b_ub=-prices, bounds=ends, method="highs"
    )
    return (
        (top, np.zeros(2))
        if found.x is None
        else (float(found.x[0]), np.asarray(found.x[1:]))
    )
