"""Exact pricing where the rows see v through two numbers.

If every row is an affine function of two of them on the simplex (three sensitive values, for
instance), each symbol is a point of the plane and the polytope is {v : the mixture of the points
lies in a polygon}. Its vertices are

1. the symbols inside the polygon;
2. the pairs of symbols whose mixture lies on an edge;
3. the triples whose mixture is a corner.

For example, let symbols be at (-1, -1), (2, -1), (-1, 2) and (0, 0), and the polygon the square
from -1/2 to 1/2. The last symbol is a vertex; 3/4 of it and 1/4 of the second meet the right edge
at (1/2, -1/4); and (1/3, 1/2, 1/6) of the first three are the corner (1/2, -1/2).

`PlaneSearch.run` prices all of them in compiled loops (`PlaneSweep`), over the
polygon of the relaxation. The best mixtures are then moved to the edges and corners of the inner
polygon, and those that are members become columns.

Invariant: whatever the loops pass over costs more than their level, an allowance for rounding
included. So the bound, the least of the level and of the values that were computed, is valid; it is
sharp where a column of about that value is found, and the tree is asked where it is not.

On real tables with three sensitive values (Adult: races, ages, educations in three classes, 480 to
560 classes of symbols) this takes 1.2 to 2.5 times less processor time than the tree.

*The compiled rounds.* A mixture theta costs H(theta) - theta.y at the prices y, and the cheapest
one is wanted with a proven lower bound. One `PlaneSweep` prices them all: `include` takes the
single symbols, then each call of `pairs` or `triples` is a *round* for one edge or corner, after
which `supports` has its best mixtures.

The loops (`_plane.h`) pass over whatever costs more than a *level*, which falls as cheaper mixtures
are found, and keep the best mixture with each symbol. What they pass over is bounded by the level,
and what they evaluate by its value less an allowance for rounding; so the least of both, `bound`,
bounds every vertex. For example, after a mixture of cost -1 the level is -0.5 (`KEEP`): of a
mixture with a bound of -0.4 no logarithm is taken, and the bound stays at -1 (less rounding).

*The polygon.* Symbol x is a point of the plane, and v stands for the mixture of these points with
weights v. Every row of the polytope is an affine function of the mixture, so it is a half-plane,
and all rows together are a polygon. A *line* here is an affine function of the plane, given by its
values at the symbols, that is at most zero inside; its value at a mixture is the mixture of its
values. An edge of the polygon lies where one line is zero, a *corner* where two of them are.

For example, with symbols at (-1, -1), (2, -1), (-1, 2) and (0, 0), the half-plane x <= 1/2 is the
line (-3/2, 3/2, -3/2, -1/2). Half of the second symbol and half of the third are on it.

`polygon_of` makes it in four steps:

1. Two rows that span the others are the coordinates of the symbols (`_leading_rows`).
2. Every row is written as offset + slope.z at the points z, up to an error (`line.affine_fit`).
3. Every finite end of a row becomes a line (`_lines`), for two polytopes. The inner lines are those
   of the polytope, moved inwards by that error, so mixtures within them are surely members and may
   become columns. The outer lines are those of its relaxation, moved outwards, so no member lies
   beyond them. The bound is for all mixtures within the outer lines.
4. Pairs of outer lines that meet within the polygon are its corners (`_corners`).

Wherever doubles could not tell a corner or a weight sharply, `polygon_of` returns None, and branch
and bound does the pricing instead.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.pace import end_of
from solvers.points import Array, Points
from solvers.pricing.concave import (
    MAX_COLUMNS,
    SLICE,
    ConcaveSearch,
    SearchCounts,
    SearchResult,
    SearchStatus,
)
from solvers.pricing.line import DEPENDENCE, ULP, affine_fit
from solvers.sets.polytope import Polytope, best_of_groups, identical_columns

# ---------------------------------------------------------------------- compiled rounds

# ------------------------------------------------------------------------------ polygon

MOST_LINES = 40
"""Edges up to which corners are looked for pair by pair."""

NEAREST = 1e-7
"""Distance of two symbols, as a share of the cloud's size, below which triples that hold both have
no sharp weights; branch and bound does not mind."""

OUTSIDE = 1e-9
"""Distance, in units of the cloud, by which a pair or corner may miss the polygon and still count:
more than any rounding, and it can only lower the bound."""

COLLINEAR = 1e-6
"""Root mean square distance of the second row from the first one and the ones, in units of its
largest entry, up to which the symbols lie on a line as far as rounding can tell."""

PARALLEL = 1e-6
"""Determinant of the slopes of two lines, each of about one, below which their corner has no sharp
place."""

OPPOSITE = 1e-12
"""Difference of the slopes of two lines, up to their sign, below which they are the two ends of one
row."""

APART = 1e-9
"""Distance of two such ends from which they surely do not meet."""


@dataclass(frozen=True, eq=False)
class Polygon:
    """The lines of a polytope and of the relaxation around it, (k, n) arrays of their values.

    `blur` is the absolute error of an entry of `outer`; `corners` are the pairs of outer lines that
    meet within the outer polygon.
    """

    inner: Array
    outer: Array
    blur: float
    corners: list[tuple[int, int]]


def polygon_of(
    polytope: Polytope, relaxation: Polytope, distinct: NDArray[np.intp]
) -> Polygon | None:
    """The polygon in the distinct symbols; None where the rows see more than a plane, symbols
    nearly coincide, or corners are not sharp.
    """
    leads = _leading_rows(polytope.rows)
    if leads is None:
        return None
    rows = polytope.rows[:, distinct]
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
    if _least_distance(points) < NEAREST:
        return None
    corners = _corners(outer[0], points)
    if corners is None:
        return None
    lines, blur = outer
    return Polygon(inner[0], lines, blur, corners)


def _leading_rows(rows: Array) -> NDArray[np.intp] | None:
    """Two rows that span the others and the ones: the widest, and the one farthest from it."""
    from scipy.linalg import qr

    size = np.maximum(np.abs(rows).max(axis=1), np.finfo(float).tiny)
    scaled = rows / size[:, None]
    # Without its mean a row is compared up to multiples of the ones, as on the simplex.
    centred = scaled - scaled.mean(axis=1, keepdims=True)
    factors: Any = qr(centred.T, mode="r", pivoting=True)
    triangle, order = factors
    # Pivoting puts the widest row first, and then the one farthest from its span, at distance
    # |triangle[1, 1]|.
    if abs(triangle[1, 1]) <= COLLINEAR * np.sqrt(rows.shape[1]):
        return None
    return order[:2].astype(np.intp)


def _least_distance(points: Array) -> float:
    """The least distance of two different symbols."""
    from scipy.spatial import KDTree

    distances, _ = KDTree(points.T).query(points.T, k=2)
    # The nearest neighbour of each symbol is itself, the second one another.
    return float(distances[:, 1].min())


def _lines(
    polytope: Polytope, points: Array, offset: Array, slope: Array, error: Array
) -> tuple[Array, float] | None:
    """The lines of every finite end, (k, n), and their error; None if a row of no slope is
    violated.

    Row i is ``offset_i + slope_i . z`` at the point z of the plane, up to `error_i`.
    """
    values: list[Array] = []
    blur = 0.0
    for sign, ends in ((1.0, polytope.upper), (-1.0, polytope.lower)):
        for i in np.flatnonzero(np.isfinite(ends)):
            normal = sign * slope[i]
            # A positive error makes the half-plane larger on either side.
            end = sign * (ends[i] - offset[i]) + error[i]
            size = float(np.abs(normal).max())
            if size <= DEPENDENCE * max(1.0, abs(offset[i])):
                # The row is constant: it holds everywhere or nowhere.
                if end < -4.0 * DEPENDENCE:
                    return None
                continue
            # A power of two makes every slope about one, without rounding.
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
    # Every line as constant + slopes . z again, from its values at the symbols.
    basis = np.column_stack([np.ones(points.shape[1]), points.T])
    coefficients = np.linalg.lstsq(basis, lines.T, rcond=None)[0]
    constants = coefficients[0]
    slopes = coefficients[1:]
    corners: list[tuple[int, int]] = []
    for first in range(len(lines)):
        for second in range(first + 1, len(lines)):
            pair = [first, second]
            matrix = slopes[:, pair].T
            if abs(float(np.linalg.det(matrix))) < PARALLEL:
                # Two ends of one row never meet; different rows so nearly parallel are for the
                # tree.
                are_ends = np.abs(matrix[0] + matrix[1]).max() < OPPOSITE
                if are_ends and constants[first] + constants[second] < -APART:
                    continue
                return None
            corner = np.linalg.solve(matrix, -constants[pair])
            # A corner too many only costs work; one too few would make the bound wrong.
            others = np.delete(constants + corner @ slopes, pair)
            allowance = OUTSIDE * (1.0 + np.abs(corner).max())
            if others.max(initial=-np.inf) <= allowance:
                corners.append((first, second))
    return corners


# -------------------------------------------------------------------------------- sweep

KEEP = 0.5
"""Share of the best value found beyond which a vertex is no candidate for a column any more."""

FARTHEST = 1e4
"""Slopes of the touching plane, in units of the largest price, beyond which it is as good as
none."""


class PlaneSweep:
    """The rounds over all vertices at fixed prices.

    Parameters
    ----------
    prices : (n,) array
        Of the groups of symbols.
    level : float
        The cost from which a mixture is of no interest, to begin with.
    time_limit : float or None
        Seconds for all rounds together.
    blur : float
        The absolute error of an entry of the lines.

    Attributes
    ----------
    priced : int
        Mixtures evaluated so far.
    """

    def __init__(
        self, prices: Array, level: float, time_limit: float | None, blur: float
    ) -> None:
        self.prices = prices
        self.priced = 0
        self._level = level
        self._blur = blur
        self._deadline = end_of(time_limit)
        # No vertex costs less: entropies are not negative.
        self._floor = -float(prices.max())
        self._lowest = np.inf
        # The best value with each symbol in the present round, and the symbols that it mixes.
        self._best = np.full(len(prices), np.inf)
        self._support = np.full((len(prices), 3), -1, dtype=np.int32)

    @property
    def bound(self) -> float:
        """A lower bound of all values: whatever was passed over costs more than the level."""
        return float(min(self._lowest, self._level))

    @property
    def left(self) -> float | None:
        """Seconds left, None for any number."""
        if np.isinf(self._deadline):
            return None
        return max(0.0, self._deadline - time.process_time())

    def include(self, value: float) -> None:
        """Take the least value of the unit vectors into account."""
        self._lowest = min(self._lowest, value)
        # Up to `KEEP` of a negative value mixtures are wanted as columns; positive ones never are.
        if value < 0.0:
            value = KEEP * value
        self._level = min(self._level, value)

    def supports(self, size: int) -> NDArray[np.int32]:
        """The distinct supports of the best mixtures of the last round, (k, size)."""
        support = self._support[np.isfinite(self._best)][:, :size]
        if not len(support):
            return support
        return np.unique(np.sort(support, axis=1), axis=0)

    def pairs(self, lines: Array, edge: int) -> bool:
        """Price all pairs across an edge; whether the time was enough.

        With a line of values f < 0 at one symbol and g > 0 at the other, the weights g / (g - f)
        and -f / (g - f) mix the pair to zero: 3/4 and 1/4 for the values -1 and 3.
        """
        from solvers._plane import pairs

        self._begin()
        # Rounding of a value is relative to the prices in it.
        largest_price = float(np.abs(self.prices).max())
        return self._in_slices(
            pairs,
            lines,
            self.prices,
            self._best,
            self._support,
            edge,
            self._blur,
            OUTSIDE,
            largest_price,
        )

    def triples(self, lines: Array, corner: tuple[int, int]) -> bool:
        """Price all triples that hold the corner of two lines; whether the time was enough.

        With f and g the two lines, the corner is the origin of the plane (f, g). A plane ``a + b f
        + c g`` above all prices gives theta.y <= a there, so a triple costs at least H(theta) - a,
        and exactly that plus the mixture of its gaps to the plane: with small gaps come first, most
        triples are out of reach at a glance.
        """
        from solvers._plane import triples

        self._begin()
        f = np.ascontiguousarray(lines[corner[0]])
        g = np.ascontiguousarray(lines[corner[1]])
        offset, slopes = _touching_plane(f, g, self.prices)
        gaps = offset + slopes[0] * f + slopes[1] * g - self.prices
        # Lowered until it touches: no price lies above the plane, whatever the solver returned.
        offset = offset - float(gaps.min())
        gaps = np.ascontiguousarray(gaps - gaps.min())
        nearest_first = np.argsort(gaps, kind="stable").astype(np.int32)
        reach = float(max(np.hypot(f, g).max(), 1.0))
        # The size of all terms of a value, of which its rounding is a few units.
        plane_size = abs(offset) + 2.0 * float(np.abs(slopes).sum()) * reach
        size = plane_size + float(np.abs(self.prices).max()) + float(gaps.max())
        return self._in_slices(
            triples,
            f,
            g,
            gaps,
            nearest_first,
            self._best,
            self._support,
            offset,
            size,
            reach,
            2.0 * self._blur,
        )

    def _begin(self) -> None:
        """Forget the mixtures of the last round; level and bound stay."""
        self._best = np.full(len(self.prices), np.inf)
        self._support = np.full((len(self.prices), 3), -1, dtype=np.int32)

    def _in_slices(
        self, loop: Callable[..., tuple[int, float, float, int]], *arguments: Any
    ) -> bool:
        """All of a compiled loop; whether the time was enough.

        It runs in slices of `SLICE` seconds, between which the clock and Ctrl-C have their turn. A
        slice ends with the symbol where the next one begins, and hands level and least value on.
        """
        # Symbol from which the next slice goes on.
        first = 0
        while first < len(self.prices):
            left = min(SLICE, self._deadline - time.process_time())
            if left <= 0.0:
                return False
            state = (self._level, KEEP, self._lowest, self._floor)
            first, self._level, self._lowest, priced = loop(
                *arguments, *state, first, left
            )
            self.priced += priced
        return True


def _touching_plane(f: Array, g: Array, prices: Array) -> tuple[float, Array]:
    """The plane above all prices that is lowest at the origin: its height there, and its slopes.

    The slopes are the best multipliers of the corner. Any plane gives a valid bound, so the caller
    need not trust the answer.
    """
    from scipy.optimize import linprog

    # Minimise the height a subject to a + b f + c g >= y at every symbol.
    top = float(np.abs(prices).max())
    matrix = -np.column_stack([np.ones(len(f)), f, g])
    # The allowance for rounding grows with the slopes, so a steep plane is as good as none.
    limit = FARTHEST * (1.0 + top)
    ranges = [(-10.0 - 3.0 * top, None), (-limit, limit), (-limit, limit)]
    solution = linprog(
        [1.0, 0.0, 0.0], A_ub=matrix, b_ub=-prices, bounds=ranges, method="highs"
    )
    if solution.x is None:
        # The level plane at the largest price lies above all of them.
        return top, np.zeros(2)
    return float(solution.x[0]), np.asarray(solution.x[1:])


# ------------------------------------------------------------------------------ pricing

INSIDE = 2e-13
"""Violation of a line by a column that is rounding: what the simplex of the branch and bound
leaves, too."""

SHARPEST = 1e-9
"""Difference of bound and best column that no tree is worth asking for."""


def plane_search(
    polytope: Polytope, relaxation: Polytope, tree: ConcaveSearch
) -> PlaneSearch | None:
    """A pricer for this polytope, or None where the rows see more than a plane or symbols nearly
    coincide.

    `tree`, the branch and bound for the same, does local searches, and answers where mixtures are
    too blurred to be priced sharply: symbols on an edge or corner, or a polygon hardly wider than
    rounding.
    """
    # Auxiliary variables would be further coordinates.
    if polytope.auxiliary is not None or polytope.m < 2 or polytope.n < 3:
        return None
    members, distinct = identical_columns(polytope.rows)
    polygon = polygon_of(polytope, relaxation, distinct)
    if polygon is None:
        return None
    return PlaneSearch(polytope.n, members, polygon, tree)


@dataclass(frozen=True, eq=False)
class PlaneSearch:
    """Prices like `solvers.pricing.concave.ConcaveSearch`, by the reduced cost of every vertex; see
    `plane_search`.

    Attributes
    ----------
    n : int
    members : (n,) array
        The group of identical columns to which each symbol belongs; the polygon is one of groups.
    polygon : Polygon
    tree : ConcaveSearch
        Branch and bound for the same problem.
    """

    n: int
    members: NDArray[np.intp]
    polygon: Polygon
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
        # Of symbols at one point only that of the best price can be in the cheapest mixture.
        grouped, best = best_of_groups(prices, self.members)
        sweep = PlaneSweep(
            np.ascontiguousarray(grouped), column_cutoff, time_limit, self.polygon.blur
        )
        points, complete = self._priced(sweep, best, column_cutoff)
        # The loops price mixtures of the outer polygon; these are members, and priced anew.
        reduced = points.entropies() - points.dot(prices)
        order = np.argsort(reduced, kind="stable")[: max(columns, self.n)]
        kept = points.take(order[reduced[order] < column_cutoff])
        counts = SearchCounts(sweep.priced)
        if not complete:
            # What was not looked at may cost anything: there is no bound.
            return SearchResult(SearchStatus.TIME_LIMIT, -np.inf, kept, counts)
        least = np.inf
        if len(order):
            least = float(reduced[order[0]])
        if sweep.bound < min(least, column_cutoff) - max(tolerance, SHARPEST):
            # No column explains the bound: it is blurred, and the tree sharpens it.
            return self.tree.run(prices, time_limit=sweep.left, **options)
        return SearchResult(SearchStatus.DONE, sweep.bound, kept, counts)

    def _priced(
        self, sweep: PlaneSweep, best: NDArray[np.intp], cutoff: float
    ) -> tuple[Points, bool]:
        """The cheapest vertices of each kind, and whether the time was enough for all.

        `best` is the symbol of each group that has its best price.
        """
        polygon = self.polygon
        # Symbols first: the cheapest of them lowers the level of all loops.
        parts = [self._units(sweep, best, cutoff)]
        complete = True
        for edge in range(len(polygon.outer)):
            complete = complete and sweep.pairs(polygon.outer, edge)
            parts.append(self._on_edge(sweep, edge, best))
        for corner in polygon.corners:
            complete = complete and sweep.triples(polygon.outer, corner)
            parts.append(self._at_corner(sweep, corner, best))
        return Points.concatenate(parts), complete

    def _units(
        self, sweep: PlaneSweep, best: NDArray[np.intp], cutoff: float
    ) -> Points:
        """The unit vectors that are cheap columns; the sweep knows the value of all that may be
        members.
        """
        values = -sweep.prices
        possible = (self.polygon.outer <= OUTSIDE).all(axis=0)
        sweep.include(float(values[possible].min(initial=np.inf)))
        members = (self.polygon.inner <= 0.0).all(axis=0)
        return Points.units(best[members & (values < cutoff)], self.n)

    def _on_edge(self, sweep: PlaneSweep, edge: int, best: NDArray[np.intp]) -> Points:
        """The best pairs of the last round, mixed to zero on the inner line of this edge."""
        support = sweep.supports(2)
        line = self.polygon.inner[edge]
        first, second = line[support].T
        # Degenerate supports divide by zero; their weights are NaN, and no members.
        with np.errstate(divide="ignore", invalid="ignore"):
            share = second / (second - first)
        weights = np.column_stack([share, 1.0 - share])
        return self._members_of(weights, support, best)

    def _at_corner(
        self, sweep: PlaneSweep, corner: tuple[int, int], best: NDArray[np.intp]
    ) -> Points:
        """The best triples of the last round, mixed to the inner corner of these two lines."""
        support = sweep.supports(3)
        # Each symbol of a triple as a point of the plane of the two lines, where the corner is the
        # origin: its barycentric coordinates are the areas that it makes with the two others.
        a, b, c = self.polygon.inner[list(corner)][:, support.T].transpose(1, 0, 2)
        areas = np.column_stack([_cross(b, c), _cross(c, a), _cross(a, b)])
        with np.errstate(divide="ignore", invalid="ignore"):
            weights = areas / areas.sum(axis=1, keepdims=True)
        return self._members_of(weights, support, best)

    def _members_of(
        self, weights: Array, support: NDArray[np.int32], best: NDArray[np.intp]
    ) -> Points:
        """Those of the mixtures, (k, s) weights of (k, s) groups, that lie in the inner polygon."""
        with np.errstate(invalid="ignore"):
            images = np.einsum("ks,lks->kl", weights, self.polygon.inner[:, support])
            member = (weights >= 0.0).all(axis=1) & (images <= INSIDE).all(axis=1)
        weights = weights[member]
        support = support[member]
        sizes = np.full(*support.shape)
        return Points.of_sizes(sizes, best[support].ravel(), weights.ravel(), self.n)


def _cross(a: Array, b: Array) -> Array:
    """Twice the signed area of the triangles with the origin, of points (2, k)."""
    return a[0] * b[1] - a[1] * b[0]
