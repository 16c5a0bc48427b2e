"""Sets of probability vectors cut by linear inequalities, in half-space form.

The posteriors that a promise allows are such a set (docs/explanation/optimum-theory.md, 'The
posteriors that a promise allows'): each row of the matrix is one row of the table, divided by its
mass, and its interval is the budget. For example, with P(s, x) = [[0.3, 0.2], [0.2, 0.3]] and lifts
from 0.9 to 1.1,

    Polytope(rows=[[1.2, 0.8], [0.8, 1.2]], lower=[0.9, 0.9], upper=[1.1, 1.1])

holds the (v, 1 - v) with 0.25 <= v <= 0.75.

*Auxiliary variables.* Some promises need variables r >= 0 besides, one for each sensitive value or
pair (LDP: r <= lift_s <= e^eps r for all s). There are two ways to decide whether a v has some r:

- `least`: where rows bound each variable from below by itself, the least choice decides. This is
  cheap, and used for membership (`LeastAuxiliary`).
- `explicit`: the same set without them, by elimination (Fourier and Motzkin), which may make many
  rows. Vertices are listed from these.

*What the compiled kernel sees of a polytope*: rows of one size with finite ends, columns merged.
`kernel_rows` brings lower <= a.v <= upper into a form in which the absolute tolerances of a simplex
method suit every row:

1. Each row is multiplied by a power of two, which is exact, so that its ends become about one.
2. Infinite ends become the least and the largest value that the row has on the simplex at all.
3. The row sum v = 1 is appended.

Each row keeps two pairs of ends: the inner ones, of the polytope in which columns are searched, and
the outer ones, of a relaxation for which bounds are proven.

`identical_columns` finds coordinates that no row tells apart. They are one coordinate for the
kernel, at the best of their prices (`best_of_groups`): by concavity all of their mass sits there.

For example, the row 0.001 v_0 + 0.001 v_1 + 0.004 v_2 <= 0.002 is multiplied by 512, so its end is
1.024; its lower end becomes 0.001 * 512 = 0.512, less some rounding. The first two columns are
identical: at the prices (0.1, 0.3, 0.2) the kernel has the columns 0 and 2 at (0.3, 0.2), and what
it finds for the first one is mass of coordinate 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from solvers.errors import EmptyPolytope, InvalidPolytope
from solvers.points import Array

# ----------------------------------------------------------------------------- polytope

MEMBERSHIP_TOLERANCE = 1e-9
"""Default largest violation at which a float point still counts as a member: a thousand times the
error of a simplex solve on rows of order one, far below any bound that matters to a user."""

NATURAL_MARGIN = 1e-9
"""Slack, relative to the row's size, of the bounds that v >= 0, sum v = 1 imply for a row."""


@dataclass(frozen=True, eq=False)
class LeastAuxiliary:
    """Lower bounds ``r[owner] >= floors v - floor_bounds`` and rows ``rows v + weights r <=
    bounds``.

    If every row bounds a single auxiliary variable from below, or bounds variables from above only,
    then there is a least choice of them for each v, and v is a member if and only if this choice
    satisfies the other rows. Elimination would multiply the rows instead: a row in which k
    variables occur, each with one lower bound beside zero, would become 2^k rows.
    """

    floors: Array
    floor_bounds: Array
    owner: NDArray[np.intp]
    rows: Array
    weights: Array
    bounds: Array

    def excess(self, images: Callable[[Array], Array]) -> Array:
        """Violation of each row at the least choice, (points, m); `images` maps rows to values."""
        floors = images(self.floors) - self.floor_bounds
        # Auxiliary variables are not negative, so zero is a lower bound of each, too.
        # Their weights in the other rows are not negative, so less is never worse.
        least = np.zeros((self.weights.shape[1], len(floors)))
        np.maximum.at(least, self.owner, floors.T)
        return images(self.rows) + (self.weights @ least).T - self.bounds

    def separation(self, v: Array) -> tuple[Array, float]:
        """The inequality ``normal v <= offset`` of the set that `v` (n,) violates most.

        In the worst row each auxiliary variable is replaced by its highest floor at `v`. Every
        member satisfies that floor, so the result is a row of the eliminated system.
        """
        floors = self.floors @ v - self.floor_bounds
        violations = self.excess(lambda matrix: (matrix @ v)[None, :])[0]
        row = int(np.argmax(violations))
        normal = self.rows[row].copy()
        offset = float(self.bounds[row])
        # A variable whose floors are all below zero is zero, and adds nothing.
        for k in np.flatnonzero(self.weights[row]):
            lower_bounds = np.flatnonzero(self.owner == k)
            if lower_bounds.size and floors[lower_bounds].max() > 0.0:
                highest = int(lower_bounds[np.argmax(floors[lower_bounds])])
                normal += self.weights[row, k] * self.floors[highest]
                offset += float(self.weights[row, k] * self.floor_bounds[highest])
        return normal, offset


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
                f"lower and upper must have one entry per row ({m}), not "
                f"{lower.shape[0]} and {upper.shape[0]}"
            )
        bad = np.flatnonzero((lower > upper) | (lower == np.inf) | (upper == -np.inf))
        if bad.size:
            i = int(bad[0])
            raise InvalidPolytope(
                f"row {i} has an empty interval [{lower[i]}, {upper[i]}]"
            )
        auxiliary = self._checked_auxiliary(m)
        # The class is frozen; its checked, read-only copies replace the arguments here once.
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)
        object.__setattr__(self, "auxiliary", auxiliary)

    def _checked_auxiliary(self, m: int) -> Array | None:
        """The columns of auxiliary variables, a read-only copy; None where there are none."""
        if self.auxiliary is None:
            return None
        auxiliary = _frozen(self.auxiliary, 2, "auxiliary")
        if auxiliary.shape[0] != m or np.isinf(auxiliary).any():
            raise InvalidPolytope(f"auxiliary must have {m} rows of finite numbers")
        # Other code asks for None, never for a matrix without columns.
        if auxiliary.shape[1] == 0:
            return None
        return auxiliary

    @property
    def n(self) -> int:
        """Number of coordinates of v."""
        return self.rows.shape[1]

    @property
    def m(self) -> int:
        """Number of general rows."""
        return self.rows.shape[0]

    @property
    def may_be_separate(self) -> bool:
        """Whether all rows may bound one coordinate each; False for nearly all polytopes, whose
        first row tells.
        """
        return self.m > 0 and np.count_nonzero(self.rows[0]) == 1

    @property
    def auxiliary_columns(self) -> Array:
        """`auxiliary`, (m, k); k = 0 without."""
        if self.auxiliary is None:
            return np.zeros((self.m, 0))
        return self.auxiliary

    @cached_property
    def auxiliary_bounds(self) -> Array:
        """Upper bound of every auxiliary variable from single rows, rounded up.

        Auxiliary variables are not negative, so a row bounds each of its variables from above where
        all of them have coefficients of one sign. Raises InvalidPolytope if a variable is not
        bounded.
        """
        matrix = self.auxiliary_columns
        top = np.full(matrix.shape[1], np.inf)
        # Both ends of a row as ``sign row v + signed r <= bound``.
        for sign, bound in ((1.0, self.upper), (-1.0, -self.lower)):
            signed = sign * matrix
            for i in np.flatnonzero((signed >= 0.0).all(axis=1) & np.isfinite(bound)):
                variables = np.flatnonzero(signed[i])
                # Over the simplex the row of v is at least its least entry.
                room = max(float(bound[i] - (sign * self.rows[i]).min()), 0.0)
                limit = room / signed[i, variables]
                top[variables] = np.minimum(top[variables], limit)
        finite = np.isfinite(top)
        if not finite.all():
            raise InvalidPolytope(
                f"auxiliary variable {int(finite.argmin())} is not bounded by any row"
            )
        return top * (1.0 + NATURAL_MARGIN) + NATURAL_MARGIN

    def check_relaxation(self, outer: Polytope) -> None:
        """Raise InvalidPolytope unless the other one has the same rows and contains this one."""
        # Searches bound and design with one matrix: other rows would make their bounds those of
        # another set (docs/explanation/optimum-theory.md, 'A bound from prices').
        same_rows = np.array_equal(outer.rows, self.rows)
        same_auxiliary = np.array_equal(outer.auxiliary_columns, self.auxiliary_columns)
        if not (same_rows and same_auxiliary):
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
        if self.auxiliary is None:
            return np.abs(self.rows)
        return self._eliminated[2]

    @cached_property
    def _eliminated(self) -> tuple[Array, Array, Array]:
        """Rows, bounds and magnitudes of ``matrix v <= bound``, all auxiliary variables
        eliminated.
        """
        rows, weights, bounds = self.one_sided
        k = weights.shape[1]
        # The auxiliary variables stand last, and r >= 0 is written as rows of its own.
        signs = np.hstack([np.zeros((k, self.n)), -np.eye(k)])
        matrix = np.vstack([np.hstack([rows, weights]), signs])
        bound = np.append(bounds, np.zeros(k))
        size = np.abs(matrix[:, : self.n])
        for _ in range(k):
            matrix, bound, size = _eliminate_last(matrix, bound, size)
        return matrix, bound, size

    @cached_property
    def one_sided(self) -> tuple[Array, Array, Array]:
        """Rows, auxiliary columns (k = 0 without) and bounds of ``rows v + auxiliary r <= bounds``,
        for every end.
        """
        high = np.isfinite(self.upper)
        low = np.isfinite(self.lower)
        auxiliary = self.auxiliary_columns
        rows = np.vstack([self.rows[high], -self.rows[low]])
        weights = np.vstack([auxiliary[high], -auxiliary[low]])
        bounds = np.concatenate([self.upper[high], -self.lower[low]])
        return rows, weights, bounds

    @cached_property
    def least(self) -> LeastAuxiliary | None:
        """The rule for the least auxiliary variables of each v; None where there is no such rule.

        Membership is cheap with it: no variable has to be eliminated.
        """
        if self.auxiliary is None:
            return None
        rows, weights, bounds = self.one_sided
        # In ``rows v + weights r <= bounds`` a negative weight bounds its variable from below.
        below = (weights < 0.0).any(axis=1)
        variables = (weights[below] != 0.0).sum(axis=1)
        if (variables > 1).any():
            return None
        owner = np.argmin(weights[below], axis=1)
        # The only weight of these rows is negative: its smallest entry. The rows are divided by it.
        scale = -weights[below, owner]
        return LeastAuxiliary(
            floors=rows[below] / scale[:, None],
            floor_bounds=bounds[below] / scale,
            owner=owner,
            rows=rows[~below],
            weights=weights[~below],
            bounds=bounds[~below],
        )

    def excess(self, points: ArrayLike) -> Array:
        """Largest violation of the rows at each point, (k,); the points are probability vectors."""
        v = np.atleast_2d(np.asarray(points, dtype=np.float64))
        # The rule for auxiliary variables is cheaper than elimination, where there is one.
        if self.least is not None:
            violations = self.least.excess(lambda matrix: v @ matrix.T)
        else:
            explicit = self.explicit
            w = v @ explicit.rows.T
            violations = np.maximum(explicit.lower - w, w - explicit.upper)
        return violations.max(axis=1, initial=-np.inf)

    def residual(self, points: ArrayLike) -> Array:
        """Largest violation of any constraint at each point; zero or less means a member.

        Parameters
        ----------
        points : (n,) or (k, n) array
        """
        v = np.atleast_2d(np.asarray(points, dtype=np.float64))
        negative = -v.min(axis=1)
        off_simplex = np.abs(v.sum(axis=1) - 1.0)
        return np.maximum.reduce([negative, off_simplex, self.excess(v)])

    def contains(
        self, points: ArrayLike, tolerance: float = MEMBERSHIP_TOLERANCE
    ) -> NDArray[np.bool_]:
        """Whether each point is a member up to `tolerance` (absolute, on every constraint)."""
        return self.residual(points) <= tolerance

    def reaches(self, point: Array, halvings: int) -> Array:
        """Shares of the ways from a member (n,) to the unit vectors that are inside, (n,), found by
        bisection of all ways at once; of a way that is inside as a whole it is 1.
        """
        return last_inside(
            lambda shares: self.excess(towards_units(point, shares)) <= 0.0,
            (self.excess(np.eye(self.n)) <= 0.0).astype(np.float64),
            np.ones(self.n),
            halvings,
        )

    def restrict(self, keep: ArrayLike) -> Polytope:
        """The face on which every coordinate outside `keep` is zero, in the kept coordinates."""
        return Polytope(
            self.rows[:, np.asarray(keep)], self.lower, self.upper, self.auxiliary
        )


def towards_units(point: Array, shares: Array) -> Array:
    """The points at these shares of the ways from the point to the unit vectors; (n, n)."""
    return (1.0 - shares)[:, None] * point + np.diag(shares)


def last_inside(
    is_inside: Callable[[Array], NDArray[np.bool_]],
    inside: Array,
    beyond: Array,
    halvings: int,
) -> Array:
    """The last places of ways that are inside of a set, by so many halvings of all ways at once.

    Every way goes from a place inside to one beyond, and leaves the set once: where it is convex,
    the places inside are one interval.
    """
    for _ in range(halvings):
        middle = 0.5 * (inside + beyond)
        holds = is_inside(middle)
        inside = np.where(holds, middle, inside)
        beyond = np.where(holds, beyond, middle)
    return inside


def _frozen(values: ArrayLike, ndim: int, name: str) -> Array:
    """A read-only copy of these values; InvalidPolytope on NaN or another number of dimensions."""
    array = np.array(values, dtype=np.float64, order="C")
    if array.ndim != ndim:
        raise InvalidPolytope(f"{name} must have {ndim} dimension(s), not {array.ndim}")
    if np.isnan(array).any():
        raise InvalidPolytope(f"{name} contains NaN; every entry must be a number")
    array.setflags(write=False)
    return array


def _eliminate_last(
    matrix: Array, bound: Array, size: Array
) -> tuple[Array, Array, Array]:
    """Eliminate the last variable of ``matrix x <= bound``; `size` are the magnitudes of the
    entries of v.

    Each pair of rows whose coefficients c_i > 0 > c_j have opposite signs gives the row
    ``-c_j row_i + c_i row_j``, in which the variable cancels.
    """
    coefficient = matrix[:, -1]
    positive = np.flatnonzero(coefficient > 0)
    negative = np.flatnonzero(coefficient < 0)
    free = np.flatnonzero(coefficient == 0)
    grid_i, grid_j = np.meshgrid(positive, negative, indexing="ij")
    i = grid_i.ravel()
    j = grid_j.ravel()
    # The multipliers -c_j and c_i keep the scale of the rows. Dividing by the smaller coefficient
    # would blow them up.
    a = -coefficient[j]
    b = coefficient[i]
    combined = matrix[i, :-1] * a[:, None] + matrix[j, :-1] * b[:, None]
    combined_size = size[i] * a[:, None] + size[j] * b[:, None]
    matrix = np.vstack([matrix[free, :-1], combined])
    size = np.vstack([size[free], combined_size])
    bound = np.concatenate([bound[free], bound[i] * a + bound[j] * b])
    # A row 0 <= bound restricts nothing, unless the bound is negative and so the set empty.
    informative = (np.abs(matrix).max(axis=1, initial=0.0) > 0) | (bound < 0)
    return matrix[informative], bound[informative], size[informative]


# ------------------------------------------------------------------- rows of the kernel

LEAST_SHARE = 2.0**-30
"""Least natural size of a row, as a share of its largest entry: smaller values are lost in the
rounding of the point itself."""


@dataclass(frozen=True, eq=False)
class KernelRows:
    """The rows of a polytope for the kernel: scaled, the row of ones last, all ends finite.

    Rows apply to v and to the auxiliary variables of the polytope, if it has any.

    Attributes
    ----------
    matrix : (m + 1, n + k) array
        General rows and the row ``sum v = 1``; columns of v first, then those of auxiliary
        variables.
    inner_lower, inner_upper, outer_lower, outer_upper : (m + 1,) arrays
        Ends of the polytope, and of the relaxation for which bounds hold.
    top : (n + k,) array
        Upper bound of every variable.
    """

    matrix: Array
    inner_lower: Array
    inner_upper: Array
    outer_lower: Array
    outer_upper: Array
    top: Array


def kernel_rows(polytope: Polytope, outer: Polytope) -> KernelRows:
    """The rows of a polytope, with the ends of it and of `outer`, a relaxation with the same rows.

    Raises
    ------
    EmptyPolytope
        If a row cannot reach its interval anywhere in the simplex.
    """
    n = polytope.n
    auxiliary = polytope.auxiliary_columns
    rows = np.hstack([polytope.rows, auxiliary])
    scale = _row_scales(polytope, rows)
    top = np.concatenate([np.ones(n), outer.auxiliary_bounds])
    # The values that each row can take at all: on the simplex, with auxiliary variables up to
    # their bounds.
    most = polytope.rows.max(axis=1) + np.maximum(auxiliary, 0.0) @ top[n:]
    least = polytope.rows.min(axis=1) + np.minimum(auxiliary, 0.0) @ top[n:]
    margin = NATURAL_MARGIN * (1.0 + np.abs(rows).max(axis=1, initial=0.0))

    def finite_ends(lower: Array, upper: Array) -> tuple[Array, Array]:
        # The kernel's Lagrangian needs finite ends. Those that the simplex implies anyway, moved
        # outwards by their rounding, restrict nothing.
        low = np.append(np.maximum(lower, least - margin) * scale, 1.0)
        high = np.append(np.minimum(upper, most + margin) * scale, 1.0)
        empty = low > high
        if empty.any():
            i = int(np.flatnonzero(empty)[0])
            raise EmptyPolytope(
                f"row {i} cannot reach its interval [{lower[i]}, {upper[i]}] for any v "
                "in the simplex"
            )
        return low, high

    inner_lower, inner_upper = finite_ends(polytope.lower, polytope.upper)
    outer_lower, outer_upper = finite_ends(outer.lower, outer.upper)
    sum_row = np.append(np.ones(n), np.zeros(auxiliary.shape[1]))
    matrix = np.vstack([rows * scale[:, None], sum_row])
    return KernelRows(
        matrix=np.ascontiguousarray(matrix),
        inner_lower=inner_lower,
        inner_upper=inner_upper,
        outer_lower=outer_lower,
        outer_upper=outer_upper,
        top=top,
    )


def _row_scales(polytope: Polytope, rows: Array) -> Array:
    """Powers of two by which rows are multiplied, (m,).

    Tolerances of the simplex method are absolute, and compared with the value of a row at points
    that satisfy it. So the ends of its interval, and its auxiliary entries, become about one.
    """
    size = np.abs(rows).max(axis=1, initial=0.0)
    ends = np.stack([polytope.lower, polytope.upper])
    finite = np.where(np.isfinite(ends), ends, 0.0)
    largest_end = np.abs(finite).max(axis=0)
    largest_auxiliary = np.abs(polytope.auxiliary_columns).max(axis=1, initial=0.0)
    natural = np.maximum(largest_end, largest_auxiliary)
    # A row a.v <= 0 has no end to go by, only entries; a row of zeros is left as it is.
    natural = np.where(natural > 0.0, natural, size)
    natural = np.clip(natural, LEAST_SHARE * size, size)
    natural = np.where(size > 0.0, natural, 1.0)
    return np.exp2(-np.round(np.log2(natural)))


def identical_columns(rows: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Group of every column, and the first column of every group, groups in order of appearance."""
    _, first, group = np.unique(rows, axis=1, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank[group.ravel()], first[order]


def best_of_groups(
    prices: Array, group: NDArray[np.intp]
) -> tuple[Array, NDArray[np.intp]]:
    """Best price of each group of coordinates, and the coordinate that has it."""
    order = np.lexsort((prices, group))
    # Prices rise within each group, so the last coordinate of a group has the best one.
    last = np.append(np.flatnonzero(np.diff(group[order])), len(prices) - 1)
    best = order[last]
    return np.ascontiguousarray(prices[best]), best
