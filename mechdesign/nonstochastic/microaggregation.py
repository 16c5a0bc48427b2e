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
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.nonstochastic.domains import doubles
from mechdesign.nonstochastic.levels import smallest_cell

LARGEST_VALUE = 1e120
"""Squares of differences of larger values, summed, could leave the doubles."""

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
        raise InputError(f"points beyond {LARGEST_VALUE:g} overflow when squared; use a larger unit")
    smallest = smallest_cell(values.size, epsilon)
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    edges = best_edges(ordered, smallest)
    sizes = np.diff(edges).astype(np.int64)
    cell_of = np.empty(values.size, dtype=np.int64)
    cell_of[order] = np.repeat(np.arange(sizes.size), sizes)
    # From the first value on, which loses fewer digits.
    centres = np.array(
        [ordered[a] + (ordered[a:b] - ordered[a]).mean() for a, b in itertools.pairwise(edges)]
    )
    return Partition(
        cell_of=cell_of,
        sizes=sizes,
        smallest=smallest,
        representatives=centres,
        distortion=math.fsum(((values - centres[cell_of]) ** 2).tolist()) / values.size,
    )


def best_edges(values: Floats, smallest: int) -> list[int]:
    """Edges 0 = e_0 < e_1 < ... = n of the cells [e_i, e_i+1) of sorted values with least total squared error."""
    size = values.size
    best, before = np.full(size + 1, np.inf), np.zeros(size + 1, dtype=np.int64)
    best[0] = 0.0
    # A cell of n values or more is the only one.
    for end in range(min(smallest, size), size + 1):
        first, last = max(0, end - 2 * smallest + 1, int(before[end - 1])), max(0, end - smallest)
        # Below its own last value a cell is at most as wide as its values differ, so that no digits are lost.
        below = values[end - 1] - values[first:end][::-1]
        sums, squares = (np.cumsum(part)[end - last - 1 :] for part in (below, below**2))
        costs = squares - sums**2 / np.arange(end - last, end - first + 1)
        totals = best[first : last + 1][::-1] + np.maximum(costs, 0.0)
        place = int(totals.argmin())
        best[end], before[end] = totals[place], last - place
    edges = [size]
    while edges[-1] > 0:
        edges.append(int(before[edges[-1]]))
    return edges[::-1]
