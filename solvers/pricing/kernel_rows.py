"""What the compiled kernel sees of a polytope: rows of one size with finite ends, columns merged.

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

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solvers.errors import EmptyPolytope
from solvers.points import Array
from solvers.sets.polytope import NATURAL_MARGIN, Polytope

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
