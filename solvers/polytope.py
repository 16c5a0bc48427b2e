"""Sets of probability vectors cut by linear inequalities, in half-space form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from solvers.errors import InvalidPolytope
from solvers.points import Array

MEMBERSHIP_TOLERANCE = 1e-9
"""Default largest violation at which a float point still counts as a member: a thousand times the
error of a simplex solve on rows of order one, far below any bound that matters to a user."""

NATURAL_MARGIN = 1e-9
"""Slack, relative to the row's size, of the bounds that v >= 0, sum v = 1 imply for a row."""


@dataclass(frozen=True, eq=False)
class LeastAuxiliary:
    """Lower bounds ``r[owner] >= floors v - floor_bounds`` and rows ``rows v + weights r <= bounds``.

    If every row bounds a single auxiliary variable from below, or bounds variables from above only, then there is a
    least choice of them for each v, and v is a member if and only if this choice satisfies the other rows. Elimination
    would multiply the rows instead: k variables with one lower bound each make 2^k of them.
    """

    floors: Array
    floor_bounds: Array
    owner: NDArray[np.intp]
    rows: Array
    weights: Array
    bounds: Array

    def excess(self, images: Callable[[Array], Array]) -> Array:
        """By how much each row is violated at the least choice, (points, m); `images` maps rows to their values."""
        floors = images(self.floors) - self.floor_bounds
        least = np.zeros((self.weights.shape[1], len(floors)))
        np.maximum.at(least, self.owner, floors.T)
        return images(self.rows) + (self.weights @ least).T - self.bounds

    def separation(self, v: Array) -> tuple[Array, float]:
        """The inequality ``normal v <= offset`` of the set that `v` (n,) violates most."""
        floors = self.floors @ v - self.floor_bounds
        row = int(np.argmax(self.excess(lambda matrix: (matrix @ v)[None, :])[0]))
        normal, offset = self.rows[row].copy(), float(self.bounds[row])
        for k in np.flatnonzero(self.weights[row]):
            own = np.flatnonzero(self.owner == k)
            if own.size and floors[own].max() > 0.0:
                highest = int(own[np.argmax(floors[own])])
                normal += self.weights[row, k] * self.floors[highest]
                offset += float(self.weights[row, k] * self.floor_bounds[highest])
        return normal, offset


def _frozen(values: ArrayLike, ndim: int, name: str) -> Array:
    array = np.array(values, dtype=np.float64, order="C")
    if array.ndim != ndim:
        raise InvalidPolytope(f"{name} must have {ndim} dimension(s), not {array.ndim}")
    if np.isnan(array).any():
        raise InvalidPolytope(f"{name} contains NaN; every entry must be a number")
    array.setflags(write=False)
    return array


@dataclass(frozen=True, eq=False)
class Polytope:
    """{v in R^n : v >= 0, sum v = 1, lower <= rows v + auxiliary r <= upper for some r >= 0}.

    Parameters
    ----------
    rows : (m, n) array
        One general row per line.
    lower, upper : (m,) arrays
        Bounds of the rows; ``-inf`` and ``inf`` where a side is free.
    auxiliary : (m, k) array, optional
        Columns of k non-negative variables without cost that only help to describe the set
        (k = 0 by default). The set itself is always a set of v.

    Raises
    ------
    InvalidPolytope
        On NaN, wrong shapes, or a row whose lower bound exceeds its upper bound.
    """

    rows: Array
    lower: Array
    upper: Array
    auxiliary: Array | None = None

    def __post_init__(self) -> None:
        rows = _frozen(self.rows, 2, "rows")
        lower = _frozen(self.lower, 1, "lower")
        upper = _frozen(self.upper, 1, "upper")
        m, n = rows.shape
        if n == 0:
            raise InvalidPolytope(
                "rows must have at least one column (a coordinate of v)"
            )
        if np.isinf(rows).any():
            raise InvalidPolytope(
                "rows contains an infinity; only the bounds may be infinite"
            )
        if lower.shape != (m,) or upper.shape != (m,):
            raise InvalidPolytope(
                f"lower and upper must have one entry per row ({m}), not {lower.shape[0]} and {upper.shape[0]}"
            )
        bad = np.flatnonzero((lower > upper) | (lower == np.inf) | (upper == -np.inf))
        if bad.size:
            i = int(bad[0])
            raise InvalidPolytope(
                f"row {i} has an empty interval [{lower[i]}, {upper[i]}]"
            )
        auxiliary = None
        if self.auxiliary is not None:
            auxiliary = _frozen(self.auxiliary, 2, "auxiliary")
            if auxiliary.shape[0] != m or np.isinf(auxiliary).any():
                raise InvalidPolytope(f"auxiliary must have {m} rows of finite numbers")
            if auxiliary.shape[1] == 0:
                auxiliary = None
        for name, value in (
            ("rows", rows),
            ("lower", lower),
            ("upper", upper),
            ("auxiliary", auxiliary),
        ):
            object.__setattr__(self, name, value)

    @property
    def n(self) -> int:
        """Number of coordinates of v."""
        return self.rows.shape[1]

    @property
    def m(self) -> int:
        """Number of general rows."""
        return self.rows.shape[0]

    @property
    def auxiliary_columns(self) -> Array:
        """`auxiliary`, (m, k); k = 0 without."""
        return np.zeros((self.m, 0)) if self.auxiliary is None else self.auxiliary

    @cached_property
    def auxiliary_bounds(self) -> Array:
        """Upper bound of every auxiliary variable from single rows, rounded up.

        A row bounds its variables from above where all of them have coefficients of one sign, for they are not
        negative. Raises InvalidPolytope if a variable is not bounded.
        """
        matrix = self.auxiliary_columns
        top = np.full(matrix.shape[1], np.inf)
        for sign, bound in ((1.0, self.upper), (-1.0, -self.lower)):
            signed = sign * matrix
            for i in np.flatnonzero((signed >= 0.0).all(axis=1) & np.isfinite(bound)):
                k = np.flatnonzero(signed[i])
                room = max(float(bound[i] - (sign * self.rows[i]).min()), 0.0)
                top[k] = np.minimum(top[k], room / signed[i, k])
        finite = np.isfinite(top)
        if not finite.all():
            raise InvalidPolytope(
                f"auxiliary variable {int(finite.argmin())} is not bounded by any row"
            )
        return top * (1.0 + NATURAL_MARGIN) + NATURAL_MARGIN

    def check_relaxation(self, outer: Polytope) -> None:
        """Raise InvalidPolytope unless the other one has the same rows and contains this one."""
        # Searches bound and design with one matrix: other rows would make their bounds those of another set.
        wider, narrower = (
            np.hstack([each.rows, each.auxiliary_columns]) for each in (outer, self)
        )
        if outer.n != self.n or not np.array_equal(wider, narrower):
            raise InvalidPolytope(
                "relaxation must have the same rows and auxiliary columns as the polytope"
            )
        if (outer.lower > self.lower).any() or (outer.upper < self.upper).any():
            raise InvalidPolytope(
                "relaxation must contain the polytope: none of its bounds may be narrower"
            )

    @cached_property
    def explicit(self) -> Polytope:
        """The same set without auxiliary variables, by Fourier-Motzkin elimination.

        One auxiliary variable at a time: rows where it has a positive coefficient bound it from
        one side, rows with a negative one from the other, r >= 0 is a bound like any other; each
        pair of opposite bounds gives one row in v.
        """
        if self.auxiliary is None:
            return self
        matrix, bound, _ = self._eliminated
        return Polytope(matrix, np.full(len(bound), -np.inf), bound)

    @cached_property
    def magnitude(self) -> Array:
        """Size of the terms of which each entry of ``explicit.rows`` is the sum; (m, n).

        Their rounding, not that of the entry, is what an entry may be wrong by after cancellation.
        """
        return np.abs(self.rows) if self.auxiliary is None else self._eliminated[2]

    @cached_property
    def _eliminated(self) -> tuple[Array, Array, Array]:
        rows, weights, bounds = self.one_sided
        k = weights.shape[1]
        # The auxiliary variables last, and their signs as rows; beside them the sizes of the entries of v.
        matrix = np.vstack(
            [np.hstack([rows, weights]), np.hstack([np.zeros((k, self.n)), -np.eye(k)])]
        )
        left = matrix, np.append(bounds, np.zeros(k)), np.abs(matrix[:, : self.n])
        for _ in range(k):
            left = _eliminate_last(*left)
        return left

    @cached_property
    def one_sided(self) -> tuple[Array, Array, Array]:
        """Rows, auxiliary columns (k = 0 without) and bounds of ``rows v + auxiliary r <= bounds``, for every end."""
        high, low = np.isfinite(self.upper), np.isfinite(self.lower)
        both = self.rows, self.auxiliary_columns
        rows, weights = (np.vstack([matrix[high], -matrix[low]]) for matrix in both)
        return rows, weights, np.concatenate([self.upper[high], -self.lower[low]])

    @cached_property
    def least(self) -> LeastAuxiliary | None:
        """The least auxiliary variables for each v, where there is such a rule; it makes membership cheap."""
        rows, weights, bounds = self.one_sided
        below = (weights < 0.0).any(axis=1)
        if self.auxiliary is None or ((weights[below] != 0.0).sum(axis=1) > 1).any():
            return None
        owner = np.argmin(weights[below], axis=1)
        scale = -weights[below, owner]
        floors, ends = rows[below] / scale[:, None], bounds[below] / scale
        return LeastAuxiliary(
            floors, ends, owner, rows[~below], weights[~below], bounds[~below]
        )

    def excess(self, points: ArrayLike) -> Array:
        """By how much each point violates the worst of the rows, (k,); as `residual`, for probability vectors."""
        v = np.atleast_2d(np.asarray(points, dtype=np.float64))
        if self.least is not None:
            return self.least.excess(lambda matrix: v @ matrix.T).max(
                axis=1, initial=-np.inf
            )
        explicit = self.explicit
        w = v @ explicit.rows.T
        return np.maximum(explicit.lower - w, w - explicit.upper).max(
            axis=1, initial=-np.inf
        )

    def residual(self, points: ArrayLike) -> Array:
        """Largest violation of any constraint at each point; zero or less means a member.

        Parameters
        ----------
        points : (n,) or (k, n) array
        """
        v = np.atleast_2d(np.asarray(points, dtype=np.float64))
        return np.maximum.reduce(
            [-v.min(axis=1), np.abs(v.sum(axis=1) - 1.0), self.excess(v)]
        )

    def contains(
        self, points: ArrayLike, tolerance: float = MEMBERSHIP_TOLERANCE
    ) -> NDArray[np.bool_]:
        """Whether each point is a member up to `tolerance` (absolute, on every constraint)."""
        return self.residual(points) <= tolerance

    def restrict(self, keep: ArrayLike) -> Polytope:
        """The face on which every coordinate outside `keep` is zero, in the kept coordinates."""
        return Polytope(
            self.rows[:, np.asarray(keep)], self.lower, self.upper, self.auxiliary
        )


def _eliminate_last(
    matrix: Array, bound: Array, size: Array
) -> tuple[Array, Array, Array]:
    c = matrix[:, -1]
    up, down, free = (
        np.flatnonzero(c > 0),
        np.flatnonzero(c < 0),
        np.flatnonzero(c == 0),
    )
    i, j = (g.ravel() for g in np.meshgrid(up, down, indexing="ij"))
    # Dividing by the coefficient of the smaller modulus would blow rows up; -c_j and c_i keep scale.
    a, b = -c[j], c[i]
    combined = matrix[i, :-1] * a[:, None] + matrix[j, :-1] * b[:, None]
    matrix = np.vstack([matrix[free, :-1], combined])
    size = np.vstack([size[free], size[i] * a[:, None] + size[j] * b[:, None]])
    bound = np.concatenate([bound[free], bound[i] * a + bound[j] * b])
    informative = (np.abs(matrix).max(axis=1, initial=0.0) > 0) | (bound < 0)
    return matrix[informative], bound[informative], size[informative]
