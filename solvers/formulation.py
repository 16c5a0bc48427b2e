"""How the kernel sees a polytope (one matrix, finite bounds, rows of order one, each column once), and checks."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from solvers.errors import EmptyPolytope, InvalidOption, InvalidPolytope
from solvers.points import Array
from solvers.polytope import Polytope

LEAST_SHARE = 2.0**-30
"""Least value of a row, as a share of its largest entry, that rows are scaled to: smaller ones are lost in
the rounding of the point itself."""

NATURAL_MARGIN = 1e-9
"""Slack, relative to the row's size, of the bounds that v >= 0, sum v = 1 imply for a row."""


def check_limits(workers: int, memory_limit: int) -> None:
    """Raise InvalidOption unless both are positive."""
    if workers < 1:
        raise InvalidOption(f"workers ({workers}) must be at least 1")
    if memory_limit <= 0:
        raise InvalidOption(f"memory_limit ({memory_limit}) must be a positive number of bytes")


def check_prices(name: str, prices: ArrayLike, n: int) -> Array:
    """Return them as a float array; InvalidPolytope unless they are n finite numbers."""
    y = np.ascontiguousarray(prices, dtype=np.float64)
    if y.shape != (n,):
        raise InvalidPolytope(f"{name} must have one entry per coordinate ({n}), not shape {y.shape}")
    finite = np.isfinite(y)
    if not finite.all():
        raise InvalidPolytope(f"{name} has a NaN or infinite entry at {int(finite.argmin())}")
    return y


def check_relaxation(polytope: Polytope, outer: Polytope) -> None:
    """Raise InvalidPolytope unless both have the same rows and the second contains the first."""
    # The kernel bounds and designs with one matrix: other rows would make its bounds those of another set.
    wider, narrower = (np.hstack([each.rows, _auxiliary_of(each)]) for each in (outer, polytope))
    if outer.n != polytope.n or not np.array_equal(wider, narrower):
        raise InvalidPolytope("relaxation must have the same rows and auxiliary columns as the polytope")
    if (outer.lower > polytope.lower).any() or (outer.upper < polytope.upper).any():
        raise InvalidPolytope("relaxation must contain the polytope: none of its bounds may be narrower")


def _auxiliary_of(polytope: Polytope) -> Array:
    return np.zeros((polytope.m, 0)) if polytope.auxiliary is None else polytope.auxiliary


def identical_columns(rows: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Group of every column, and the first column of every group, groups in order of appearance."""
    _, first, group = np.unique(rows, axis=1, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank[group.ravel()], first[order]


def best_of_groups(prices: Array, group: NDArray[np.intp]) -> tuple[Array, NDArray[np.intp]]:
    """Best price of each group of coordinates, and the coordinate that has it."""
    order = np.lexsort((prices, group))
    chosen = order[np.append(np.flatnonzero(np.diff(group[order])), len(prices) - 1)]
    return np.ascontiguousarray(prices[chosen]), chosen


def kernel_rows(polytope: Polytope, outer: Polytope) -> tuple[Array, Array, Array, Array, Array, Array]:
    """Rows with the sum row last, scaled by powers of two (exact), all bounds finite."""
    auxiliary = _auxiliary_of(polytope)
    rows = np.hstack([polytope.rows, auxiliary])
    size = np.abs(rows).max(axis=1, initial=0.0)
    # What matters of a row is its value at points that satisfy it: tolerances of the simplex are absolute.
    ends = np.stack([polytope.lower, polytope.upper])
    ends = np.abs(np.where(np.isfinite(ends), ends, 0.0)).max(axis=0)
    natural = np.maximum(ends, np.abs(auxiliary).max(axis=1, initial=0.0))
    natural = np.clip(np.where(natural > 0.0, natural, size), LEAST_SHARE * size, size)
    natural = np.where(size > 0.0, natural, 1.0)
    scale = np.exp2(-np.round(np.log2(natural)))
    top = np.concatenate([np.ones(polytope.n), auxiliary_bounds(outer)])
    reach_up = polytope.rows.max(axis=1) + np.maximum(auxiliary, 0.0) @ top[polytope.n :]
    reach_down = polytope.rows.min(axis=1) + np.minimum(auxiliary, 0.0) @ top[polytope.n :]
    margin = NATURAL_MARGIN * (1.0 + size)

    def finite(lower: Array, upper: Array) -> tuple[Array, Array]:
        low = np.append(np.maximum(lower, reach_down - margin) * scale, 1.0)
        high = np.append(np.minimum(upper, reach_up + margin) * scale, 1.0)
        # A row that no point can satisfy keeps an empty-looking interval; order it for the kernel,
        # which then proves emptiness from the far bound.
        empty = low > high
        if empty.any():
            i = int(np.flatnonzero(empty)[0])
            raise EmptyPolytope(
                f"row {i} cannot reach its interval [{lower[i]}, {upper[i]}] for any v in the simplex"
            )
        return low, high

    inner_lo, inner_hi = finite(polytope.lower, polytope.upper)
    outer_lo, outer_hi = finite(outer.lower, outer.upper)
    full = np.vstack([rows * scale[:, None], np.append(np.ones(polytope.n), np.zeros(auxiliary.shape[1]))])
    return np.ascontiguousarray(full), inner_lo, inner_hi, outer_lo, outer_hi, top


def auxiliary_bounds(polytope: Polytope) -> Array:
    """Upper bound of every auxiliary variable from single rows, rounded up.

    A row bounds its variables from above where all of them have coefficients of one sign, for they are not
    negative.
    """
    if polytope.auxiliary is None:
        return np.zeros(0)
    matrix = polytope.auxiliary
    top = np.full(matrix.shape[1], np.inf)
    for sign, bound in ((1.0, polytope.upper), (-1.0, -polytope.lower)):
        signed = sign * matrix
        for i in np.flatnonzero((signed >= 0.0).all(axis=1) & np.isfinite(bound)):
            k = np.flatnonzero(signed[i])
            room = max(float(bound[i] - (sign * polytope.rows[i]).min()), 0.0)
            top[k] = np.minimum(top[k], room / signed[i, k])
    finite = np.isfinite(top)
    if not finite.all():
        raise InvalidPolytope(f"auxiliary variable {int(finite.argmin())} is not bounded by any row")
    return top * (1.0 + NATURAL_MARGIN) + NATURAL_MARGIN
