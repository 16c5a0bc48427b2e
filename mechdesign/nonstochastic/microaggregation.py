"""The epsilon-identifiable map of least squared error: contiguous cells of at least n 2^-epsilon sorted values.

Farokhi and Ding 2020 (brute-force guessing) measure such maps; finding the best one is optimal univariate
microaggregation (theory.md, section 7). A cell is a slice [a, b) of the sorted values, and its mean is released. Cells
of 2k or more can be split without loss, so a cell has k to 2k - 1 values, and the best partition of the first j
values ends with a cell that starts at i in (j - 2k, j - k]. The cell costs satisfy the quadrangle inequality, so the
best i never falls as j grows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.nonstochastic.domains import doubles
from mechdesign.nonstochastic.levels import smallest_cell
from mechdesign.tables.bin_splits import least_cells, row_minima

LARGEST_VALUE = 1e120
"""Squares of differences of larger values, summed, could leave the doubles."""

NEAR = 256
"""Further values whose sums are taken at once."""

FINE = 64
"""Costs of weighted cells are cut off this many bits below the least that is not zero: totals are off by less than
2^-40 of themselves, however far apart the values are."""

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Partition:
    """An epsilon-identifiable partition of n symbols, of least mean squared error `distortion`."""

    cell_of: Indices
    sizes: Indices
    smallest: int
    representatives: Floats
    distortion: float

    @property
    def maximal_leakage(self) -> float:
        """L*(X -> Y) = log2(n - smallest cell + 1) in bits (theory.md, section 6)."""
        return math.log2(int(self.sizes.sum()) - int(self.sizes.min()) + 1)


def identifiable_partition(points: Any, epsilon: object) -> Partition:
    """Partition symbols into cells of at least n 2^-epsilon with least mean squared error.

    Parameters
    ----------
    points : (n,) array
        A number for each symbol; equal numbers are different symbols (records).
    epsilon
        In bits.

    Raises
    ------
    InputError
        On NaN, no points, points of more than one dimension or an unusable epsilon.
    """
    values = doubles("points", points)
    if values.ndim != 1 or values.size == 0:
        raise InputError("points must be a non-empty array of shape (n,)")
    if not bool(np.isfinite(values).all()):
        raise InputError("the points contain NaN or an infinite value; drop it first")
    if float(np.abs(values).max()) > LARGEST_VALUE:
        raise InputError(
            f"points beyond {LARGEST_VALUE:g} overflow when squared; use a larger unit"
        )
    smallest = smallest_cell(values.size, epsilon)
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    edges = best_edges(ordered, smallest)
    sizes = np.diff(edges).astype(np.int64)
    cell_of = np.empty(values.size, dtype=np.int64)
    cell_of[order] = np.repeat(np.arange(sizes.size), sizes)
    # From the first value on, which loses fewer digits.
    centres = np.array(
        [
            ordered[a] + (ordered[a:b] - ordered[a]).mean()
            for a, b in itertools.pairwise(edges)
        ]
    )
    distortion = math.fsum(((values - centres[cell_of]) ** 2).tolist()) / values.size
    made = {"cell_of": cell_of, "sizes": sizes, "representatives": centres}
    return Partition(smallest=smallest, distortion=distortion, **made)


def squared_errors(values: Floats) -> Callable[[Indices, Indices], Any]:
    """The squared error of the cell values[start:end], by end and start, from sums of some more digits than doubles."""
    away = (values - values[values.size // 2]).astype(np.longdouble)
    moments, squares = (
        np.append(np.longdouble(0), np.cumsum(part)) for part in (away, away**2)
    )

    def cost(end: Indices, start: Indices) -> Any:
        moment, square = (part[end] - part[start] for part in (moments, squares))
        return np.maximum(square - moment**2 / np.maximum(end - start, 1), 0)

    return cost


def best_edges(values: Floats, smallest: int) -> list[int]:
    """Edges 0 = e_0 < e_1 < ... = n of the cells [e_i, e_i+1) of sorted values with least total squared error."""
    size = values.size
    if smallest == 1 or size < 2 * smallest:
        return list(range(size + 1)) if smallest == 1 else [0, size]
    best, before = np.full(size + 1, np.inf), np.zeros(size + 1, dtype=np.int64)
    best[0] = 0.0
    window, beyond = 0, NEAR
    cost = squared_errors(values[:beyond])

    def total(end: Indices, start: Indices) -> Any:
        return best[start] + cost(end - window, start - window)

    # Cells that end within the next `smallest` values all start before them, where the best is known.
    for known in range(smallest, size + 1, smallest):
        ends = np.arange(known, min(known + smallest, size + 1))
        first, last = np.maximum(ends - 2 * smallest + 1, 0), ends - smallest
        if ends[-1] > beyond:
            # Sums over near values alone: far ones would cost digits.
            window, beyond = int(first[0]), int(ends[-1]) + NEAR
            cost = squared_errors(values[window:beyond])
        before[ends] = row_minima(total, ends, first, last)
        best[ends] = total(ends, before[ends])
    edges = [size]
    while edges[-1] > 0:
        edges.append(int(before[edges[-1]]))
    return edges[::-1]


def best_cells(
    values: Sequence[Fraction], weights: Sequence[Fraction], cells: int
) -> list[int]:
    """As `best_edges`, of at most so many cells of any size, for weighted values; in integers, see `FINE`."""
    given = (np.array(part, dtype=object) for part in (values, weights))
    x, mass = (
        part * math.lcm(*(value.denominator for value in part)) // 1 for part in given
    )
    sums = [np.append(0, np.cumsum(part)) for part in (mass, mass * x, mass * x**2)]
    shift = FINE + int(sums[0][-1]).bit_length()

    def cost(end: Indices, start: Indices) -> Any:
        total, moment, square = (part[end] - part[start] for part in sums)
        return ((square * total - moment**2) << shift) // np.where(total > 0, total, 1)

    return least_cells(cost, len(values), cells)[-1][0]
