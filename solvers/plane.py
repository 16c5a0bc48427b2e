"""Exact pricing where the rows see v through two numbers.

If every row is an affine function of two of them on the simplex (three sensitive values, for
instance), each symbol is a point of the plane and the polytope is {v : the mixture of the points
lies in a polygon}. Its vertices are the symbols inside the polygon, the pairs that meet an edge,
and the triples that hold a corner. All of them are priced in compiled loops (`_plane.h`): at a
corner, prices are first compared with the plane that touches them from above (the linear
relaxation), so that most triples are out of reach at a glance.

Invariant: whatever the compiled loops pass over costs more than their level, an allowance for
rounding included. So the bound, the least of the level and of the values that were computed, is
valid; it is sharp where a column of about that value is found, and the tree is asked where it is
not.

On real tables with three sensitive values (Adult: races, ages, educations in three classes, 480 to
560 classes of symbols) this takes 1.2 to 2.5 times less processor time than the tree.
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
"""Distance of two symbols, as a share of the cloud's size, below which triples that hold both have
no sharp weights; branch and bound does not mind."""

OUTSIDE = 1e-9
"""Distance, in units of the cloud, by which a pair or corner may miss the polygon and still count:
more than any rounding, and it can only lower the bound."""

INSIDE = 2e-13
"""Violation of a line by a column that is rounding: what the simplex of the branch and bound
leaves, too."""

SHARPEST = 1e-9
"""Difference of bound and best column that no tree is worth asking for."""

COLLINEAR = 1e-6
"""Root mean square distance of the second row from the first one and the ones, in units of its
largest entry, up to which the symbols lie on a line as far as rounding can tell."""

PARALLEL = 1e-6
"""Determinant of the slopes of two lines, each of about one, below which their corner has no sharp
place."""

KEEP = 0.5
"""Share of the best value found beyond which a vertex is no candidate for a column any more."""


def plane_search(
    polytope: Polytope, relaxation: Polytope, tree: ConcaveSearch
) -> PlaneSearch | None:
    """A pricer for this polytope, or None where the rows see more than a plane or symbols nearly
    coincide.

    `tree`, the branch and bound for the same, does local searches, and answers where mixtures are
    too blurred to be priced sharply: symbols on an edge or corner, or a polygon hardly wider than
    rounding.
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
    size = np.maximum(np.abs(rows).max(axis=1), 1.0)
    if (error > DEPENDENCE * size).any():
        return None
    # Inner lines are moved inwards by the error of the fit, outer ones outwards.
    inner = _lines(polytope, points, offset, slope, -error)
    outer = _lines(relaxation, points, offset, slope, error)
    if inner is None or outer is None or not 3 <= len(outer[0]) <= MOST_LINES:
        return None
    distances, _ = KDTree(points.T).query(points.T, k=2)
    # The nearest neighbour of each symbol is itself, the second one another.
    if distances[:, 1].min() < NEAREST:
        return None
    corners = _corners(outer[0], points)
    if corners is None:
        return None
    lines, blur = outer
    return PlaneSearch(polytope.n, members, inner[0], lines, blur, corners, tree)


def _leading_rows(rows: Array) -> NDArray[np.intp] | None:
    """Two rows that span the others and the ones: the widest, and the one farthest from it."""
    from scipy.linalg import qr

    size = np.maximum(np.abs(rows).max(axis=1), np.finfo(float).tiny)
    scaled = rows / size[:, None]
    centred = scaled - scaled.mean(axis=1, keepdims=True)
    factors: Any = qr(centred.T, mode="r", pivoting=True)
    triangle, order = factors
    if abs(triangle[1, 1]) <= COLLINEAR * np.sqrt(rows.shape[1]):
        return None
    return order[:2].astype(np.intp)


def _lines(
    polytope: Polytope, points: Array, offset: Array, slope: Array, error: Array
) -> tuple[Array, float] | None:
    """Functions of the symbols that are at most zero inside, (k, n), one for each finite end, and
    their error.

    None if a row of no slope is violated.
    """
    values: list[Array] = []
    blur = 0.0
    for sign, ends in ((1.0, polytope.upper), (-1.0, polytope.lower)):
        for i in np.flatnonzero(np.isfinite(ends)):
            normal = sign * slope[i]
            end = sign * (ends[i] - offset[i]) + error[i]
            size = float(np.abs(normal).max())
            if size <= DEPENDENCE * max(1.0, abs(offset[i])):
                if end < -4.0 * DEPENDENCE:
                    return None
                continue
            scale = 2.0 ** -np.round(np.log2(size))
            normal = normal * scale
            end = end * scale
            values.append(normal @ points - end)
            terms = float((np.abs(normal) @ np.abs(points)).max() + abs(end))
            blur = max(blur, 8.0 * ULP * terms)
    if not values:
        return None
    return np.ascontiguousarray(values), blur


def _corners(lines: Array, points: Array) -> list[tuple[int, int]] | None:
    """Pairs of lines that meet within the polygon, or not surely outside; None where two nearly
    coincide.
    """
    basis = np.column_stack([np.ones(points.shape[1]), points.T])
    plane = np.linalg.lstsq(basis, lines.T, rcond=None)[0]
    corners: list[tuple[int, int]] = []
    for k in range(len(lines)):
        for m in range(k + 1, len(lines)):
            matrix = plane[1:, [k, m]].T
            det = float(np.linalg.det(matrix))
            if abs(det) < PARALLEL:
                # Two ends of one row never meet; different rows so nearly parallel are for the
                # tree.
                same = np.abs(matrix[0] + matrix[1]).max() < 1e-12
                if same and plane[0, k] + plane[0, m] < -1e-9:
                    continue
                return None
            corner = np.linalg.solve(matrix, -plane[0, [k, m]])
            others = np.delete(plane[0] + corner @ plane[1:], [k, m])
            allowance = OUTSIDE * (1.0 + np.abs(corner).max())
            if others.max(initial=-np.inf) <= allowance:
                corners.append((k, m))
    return corners


@dataclass(frozen=True, eq=False)
class PlaneSearch:
    """Prices like `solvers.concave.ConcaveSearch`, by the reduced cost of every vertex; see
    `plane_search`.

    Attributes
    ----------
    n : int
    members : (n,) array
        The group of identical columns to which each symbol belongs.
    inner, outer : (k, groups) arrays
        Lines of the polytope and of the relaxation: functions of the groups that are at most zero
        inside.
    blur : float
        Absolute error of an entry of `outer`.
    corners : list of (k, m)
        Pairs of lines that meet within the polygon.
    tree : ConcaveSearch
        Branch and bound for the same problem.
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
        """Every vertex is priced; the tree's other parameters apply where it is asked, and for
        `enough` of zero.
        """
        options["tolerance"] = tolerance
        options["column_cutoff"] = column_cutoff
        options["columns"] = columns
        if enough == 0:
            # Local searches alone are wanted.
            return self.tree.run(
                prices, enough=enough, time_limit=time_limit, **options
            )
        grouped, best = concave.best_of_groups(prices, self.members)
        sweep = _Sweep(
            np.ascontiguousarray(grouped), column_cutoff, time_limit, self.blur
        )
        parts = [self._units(sweep, best, column_cutoff)]
        complete = True
        for line in range(len(self.outer)):
            complete = complete and sweep.pairs(self.outer, line)
            parts.append(self._columns(sweep, (line,), best))
        for corner in self.corners:
            complete = complete and sweep.triples(self.outer, corner)
            parts.append(self._columns(sweep, corner, best))
        points = Points.concatenate(parts)
        reduced = points.entropies() - points.dot(prices)
        order = np.argsort(reduced, kind="stable")[: max(columns, self.n)]
        kept = points.take(order[reduced[order] < column_cutoff])
        counts = SearchCounts(sweep.priced)
        if not complete:
            return SearchResult(SearchStatus.TIME_LIMIT, -np.inf, kept, counts)
        least = np.inf
        if len(order):
            least = float(reduced[order[0]])
        if sweep.bound < min(least, column_cutoff) - max(tolerance, SHARPEST):
            # No column explains the bound: it is blurred, and the tree sharpens it.
            return self.tree.run(prices, time_limit=sweep.left, **options)
        return SearchResult(SearchStatus.DONE, sweep.bound, kept, counts)

    def _units(self, sweep: _Sweep, best: NDArray[np.intp], cutoff: float) -> Points:
        """The unit vectors that are cheap columns; the sweep knows the value of all that may be
        members.
        """
        values = -sweep.prices
        possible = (self.outer <= OUTSIDE).all(axis=0)
        sweep.include(float(values[possible].min(initial=np.inf)))
        members = (self.inner <= 0.0).all(axis=0)
        return Points.units(best[members & (values < cutoff)], self.n)

    def _columns(
        self, sweep: _Sweep, lines: tuple[int, ...], best: NDArray[np.intp]
    ) -> Points:
        """The best mixtures of the last sweep, on one line of the inner set or in the corner of
        two.
        """
        support = sweep.supports(len(lines) + 1)
        f = self.inner[list(lines)]
        # Degenerate supports divide by zero; their weights are NaN, and no members.
        with np.errstate(divide="ignore", invalid="ignore"):
            if len(lines) == 1:
                i, j = support.T
                share = f[0, j] / (f[0, j] - f[0, i])
                weights = np.column_stack([share, 1.0 - share])
            else:
                # Barycentric coordinates of the origin of the plane (f, g), where both lines
                # are zero.
                a, b, c = (f[:, column] for column in support.T)
                area = np.column_stack([_cross(b, c), _cross(c, a), _cross(a, b)])
                weights = area / area.sum(axis=1, keepdims=True)
            image = np.einsum("ks,lks->kl", weights, self.inner[:, support])
            member = (weights >= 0.0).all(axis=1) & (image <= INSIDE).all(axis=1)
        weights = weights[member]
        support = support[member]
        sizes = np.full(*support.shape)
        return Points.of_sizes(sizes, best[support].ravel(), weights.ravel(), self.n)


def _cross(a: Array, b: Array) -> Array:
    return a[0] * b[1] - a[1] * b[0]


class _Sweep:
    """One round over all vertices: the level below which they count, the least proven value, the
    best mixtures.
    """

    def __init__(
        self, prices: Array, level: float, time_limit: float | None, blur: float
    ) -> None:
        self.prices = prices
        self.priced = 0
        self._level = level
        self._blur = blur
        self._deadline = np.inf
        if time_limit is not None:
            self._deadline = time.monotonic() + time_limit
        # No vertex costs less: entropies are not negative.
        self._floor = -float(prices.max())
        self._lowest = np.inf

    @property
    def bound(self) -> float:
        """A lower bound of all values: whatever was passed over costs more than the level."""
        return float(min(self._lowest, self._level))

    @property
    def left(self) -> float | None:
        """Seconds left, None for any number."""
        if np.isinf(self._deadline):
            return None
        return max(0.0, self._deadline - time.monotonic())

    def include(self, value: float) -> None:
        """Take the least value of the unit vectors into account."""
        self._lowest = min(self._lowest, value)
        if value < 0.0:
            value = KEEP * value
        self._level = min(self._level, value)

    def supports(self, size: int) -> NDArray[np.int32]:
        """The distinct supports of the best mixtures of the last call."""
        support = self._support[np.isfinite(self._best)][:, :size]
        if not len(support):
            return support
        return np.unique(np.sort(support, axis=1), axis=0)

    def pairs(self, lines: Array, line: int) -> bool:
        """Price all pairs across a line; whether the time was enough."""
        from solvers._plane import pairs

        self._begin()
        size = float(np.abs(self.prices).max())
        return self._slices(
            pairs,
            lines,
            self.prices,
            self._best,
            self._support,
            line,
            self._blur,
            OUTSIDE,
            size,
        )

    def triples(self, lines: Array, corner: tuple[int, int]) -> bool:
        """Price all triples that hold the corner of two lines; whether the time was enough."""
        from solvers._plane import triples

        self._begin()
        f = np.ascontiguousarray(lines[corner[0]])
        g = np.ascontiguousarray(lines[corner[1]])
        offset, slopes = _touching_plane(f, g, self.prices)
        gap = offset + slopes[0] * f + slopes[1] * g - self.prices
        # Lowered until it touches: no price lies above the plane, whatever the solver returned.
        offset = offset - float(gap.min())
        gap = np.ascontiguousarray(gap - gap.min())
        reach = float(max(np.hypot(f, g).max(), 1.0))
        of_plane = abs(offset) + 2.0 * float(np.abs(slopes).sum()) * reach
        size = of_plane + float(np.abs(self.prices).max())
        order = np.argsort(gap, kind="stable").astype(np.int32)
        return self._slices(
            triples,
            f,
            g,
            gap,
            order,
            self._best,
            self._support,
            offset,
            size + float(gap.max()),
            reach,
            2.0 * self._blur,
        )

    def _begin(self) -> None:
        self._best = np.full(len(self.prices), np.inf)
        self._support = np.full((len(self.prices), 3), -1, dtype=np.int32)

    def _slices(
        self, work: Callable[..., tuple[int, float, float, int]], *data: Any
    ) -> bool:
        """All of the compiled work, in slices between which the clock and Ctrl-C have their
        turn.
        """
        first = 0
        while first < len(self.prices):
            left = min(SLICE, self._deadline - time.monotonic())
            if left <= 0.0:
                return False
            state = (self._level, KEEP, self._lowest, self._floor)
            first, self._level, self._lowest, priced = work(*data, *state, first, left)
            self.priced += priced
        return True


def _touching_plane(f: Array, g: Array, prices: Array) -> tuple[float, Array]:
    """The plane above all prices that is lowest at the origin: the best multipliers of the corner.

    Any plane gives a valid bound, so the answer is not trusted, and far-away ones are as good as
    none.
    """
    from scipy.optimize import linprog

    top = float(np.abs(prices).max())
    matrix = -np.column_stack([np.ones(len(f)), f, g])
    limit = 1e4 * (1.0 + top)
    ranges = [(-10.0 - 3.0 * top, None), (-limit, limit), (-limit, limit)]
    solution = linprog(
        [1.0, 0.0, 0.0], A_ub=matrix, b_ub=-prices, bounds=ranges, method="highs"
    )
    if solution.x is None:
        return top, np.zeros(2)
    return float(solution.x[0]), np.asarray(solution.x[1:])
