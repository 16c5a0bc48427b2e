"""Averages priced by branch and bound: chords lie below the entropy, tangents below the leakage.

Each term of a leakage is an auxiliary variable above its tangents, so a box is a linear program of
the kernel. Tangents touch where columns were found, and stay for all later rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from solvers.average_problem import (
    FEW_ULP,
    LEAST_TANGENT,
    AverageProblem,
    Leakage,
    Measure,
)
from solvers.concave import (
    FEWEST_BOXES,
    MEMORY_LIMIT,
    ConcaveSearch,
    identical_columns,
    kernel_rows,
)
from solvers.points import Array, Points

FIRST_TANGENTS = (
    1e-4,
    0.02,
    0.1,
    0.25,
    0.5,
    0.75,
    1.25,
    1.5,
    2.0,
    3.0,
    5.0,
    10.0,
    20.0,
)
"""Lifts at which the first tangents touch."""


class Tangents:
    """Rows ``slope w_s - offset <= r_i`` below the terms of one leakage, with r_i the i-th term."""

    def __init__(self, matrix: Array, leakage: Leakage) -> None:
        self._matrix = matrix
        self._leakage = leakage
        secrets = leakage.secrets
        count = len(secrets)
        self._secret: list[int] = []
        self._slope: list[float] = []
        self._offset: list[float] = []
        largest = matrix.max(axis=1)
        if leakage.measure is Measure.MAXIMAL_LEAKAGE:
            self._add_kinks(np.ones(count))
            top = np.array([float(largest.max()) - 1.0])
        elif leakage.measure is Measure.TOTAL_VARIATION:
            self._add_kinks(secrets)
            top = secrets * (largest - 1.0)
        else:
            ends = np.stack([np.zeros(count), largest])
            top = secrets * leakage.term(ends).max(axis=0)
            for s in range(count):
                for touch in FIRST_TANGENTS:
                    if touch < largest[s]:
                        self._add_touching(s, touch)
        # No term of a member is larger; some room for rounding.
        self.top = np.maximum(top, 0.0) * (1.0 + 1e-6) + 1e-9

    def _add_kinks(self, sizes: Array) -> None:
        """The single rows ``size (w_s - 1) <= r`` of a measure with a kink at 1."""
        for s, size in enumerate(sizes.tolist()):
            self._append(s, size, size, size)

    def _add_touching(self, s: int, touch: float) -> None:
        """The tangent of P(s) f at one lift."""
        weight = float(self._leakage.secrets[s])
        at = np.array([touch])
        value = weight * float(self._leakage.term(at)[0])
        slope = weight * float(self._leakage.slope(at)[0])
        self._append(s, slope, slope * touch - value, weight * (1.0 + touch))

    def _append(self, s: int, slope: float, offset: float, size: float) -> None:
        """One row, moved down by what rounding can have added anywhere on the simplex."""
        largest = float(self._matrix[s].max())
        room = FEW_ULP * (size + abs(offset) + abs(slope) * (largest + 1.0))
        self._secret.append(s)
        self._slope.append(slope)
        self._offset.append(offset + room)

    def touch(self, points: Points, room: float) -> int:
        """Add tangents where these lie more than `room` below a term of a point; how many."""
        if not self._leakage.is_smooth or not len(points):
            return 0
        before = len(self._secret)
        lifts = points.images(self._matrix)
        secrets = self._leakage.secrets
        true = self._leakage.term(lifts) * secrets
        room /= len(secrets)
        for k in range(len(points)):
            for s in range(len(secrets)):
                lift = float(lifts[k, s])
                if true[k, s] > self._height(s, lift) + room:
                    self._add_touching(s, max(lift, LEAST_TANGENT))
        return len(self._secret) - before

    def _height(self, s: int, lift: float) -> float:
        """The highest tangent of a term at a lift."""
        height = 0.0
        for owner, slope, offset in zip(
            self._secret, self._slope, self._offset, strict=True
        ):
            if owner == s:
                height = max(height, slope * lift - offset)
        return height

    @property
    def rows(self) -> tuple[Array, Array, Array]:
        """Columns of v (m, n), columns of r (m, i), and upper ends (m,)."""
        owner = np.array(self._secret)
        slope = np.array(self._slope)
        of_points = slope[:, None] * self._matrix[owner]
        of_terms = np.zeros((len(owner), len(self.top)))
        if len(self.top) == 1:
            of_terms[:, 0] = -1.0
        else:
            of_terms[np.arange(len(owner)), owner] = -1.0
        return of_points, of_terms, np.array(self._offset)


class LeakageSearch(ConcaveSearch):
    """`ConcaveSearch` for H(v) + sum_j beta_j L_j(v) - y.v, each L_j above its tangents alone."""

    def __init__(self, problem: AverageProblem, leakages: Sequence[Tangents]) -> None:
        from solvers._kernel import Search

        self.n = len(problem.point)
        general, ends, free = _polytope_rows(problem)
        between = len(free) - self.n
        self._between = between
        self._terms = [len(tangents.top) for tangents in leakages]
        matrix_rows: list[Array] = []
        lower_ends: list[Array] = []
        upper_ends: list[Array] = []
        before = between
        for tangents in leakages:
            of_points, of_terms, upper = tangents.rows
            size = np.abs(of_points).max(axis=1)
            scale = np.exp2(-np.ceil(np.log2(np.maximum(size, 1.0))))
            lower = of_points.min(axis=1) - tangents.top.max() - 1.0
            terms = np.zeros((len(upper), between + sum(self._terms)))
            terms[:, before : before + of_terms.shape[1]] = of_terms
            before += of_terms.shape[1]
            matrix_rows.append(np.hstack([of_points, terms]) * scale[:, None])
            lower_ends.append(lower * scale)
            upper_ends.append(upper * scale)
        wide = np.hstack([general, np.zeros((len(general), sum(self._terms)))])
        # The row of ones stays the last.
        matrix = np.vstack([wide[:-1], *matrix_rows, wide[-1:]])

        def joined(at: int, of_tangents: list[Array]) -> Array:
            return np.concatenate([ends[at][:-1], *of_tangents, ends[at][-1:]])

        self._members, self._first = identical_columns(matrix[:, : self.n])
        distinct = len(self._first)
        columns = np.concatenate(
            [self._first, np.arange(self.n, matrix.shape[1])]
        ).astype(np.intp)
        top = np.concatenate([free, *[tangents.top for tangents in leakages]])
        self._kernels: list[Any] = [
            Search(
                np.ascontiguousarray(matrix[:, columns]),
                joined(2, lower_ends),
                joined(3, upper_ends),
                joined(0, lower_ends),
                joined(1, upper_ends),
                np.ascontiguousarray(top[columns]),
                distinct,
            )
        ]
        box_bytes = 10 * distinct + 2 * matrix.shape[0] + 64
        self._box_limit = max(FEWEST_BOXES, MEMORY_LIMIT // box_bytes)
        self._pool = None

    def charge(self, multipliers: Array) -> None:
        """Set what a unit of each leakage costs."""
        of_terms = np.repeat(multipliers, self._terms)
        self._auxiliary_costs = np.concatenate([np.zeros(self._between), of_terms])


def _polytope_rows(problem: AverageProblem) -> tuple[Array, tuple[Array, ...], Array]:
    """Rows with the row of ones last, their ends (inner and outer), and tops of the variables."""
    n = len(problem.point)
    if problem.inner is None or problem.outer is None:
        one = np.ones(1)
        return np.ones((1, n)), (one, one, one, one), np.ones(n)
    rows = kernel_rows(problem.inner, problem.outer)
    ends = (rows.inner_lower, rows.inner_upper, rows.outer_lower, rows.outer_upper)
    return rows.matrix, ends, rows.top
