"""The polygon of a polytope whose rows see a point v of the simplex through two numbers only.

It is made for pricing (`solvers.pricing.plane`): among the v of the polytope one is wanted that
costs least at given prices. The best points found become columns of a master program, and a lower
bound of the cost of all points is proven. On a polygon only few kinds of mixtures can be best.

Symbol x is a point of the plane, and v stands for the mixture of these points with weights v. Every
row of the polytope is an affine function of the mixture, so it is a half-plane, and all rows
together are a polygon. A *line* here is an affine function of the plane, given by its values at the
symbols, that is at most zero inside; its value at a mixture is the mixture of its values. An edge
of the polygon lies where one line is zero, a *corner* where two of them are.

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

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.points import Array
from solvers.pricing.line import DEPENDENCE, ULP, affine_fit
from solvers.sets.polytope import Polytope

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
