"""The epsilon-identifiable map of least squared error: contiguous cells of at least n 2^-epsilon sorted values.

Farokhi and Ding 2020 (brute-force guessing) measure such maps; finding the best one is optimal univariate
microaggregation (theory.md, section 7). A cell is a slice [a, b) of the sorted values, and its mean is released. Cells
of 2k or more can be split without loss, so a cell has k to 2k - 1 values, and the best partition of the first j
values ends with a cell that starts at i in (j - 2k, j - k]. The cell costs satisfy the quadrangle inequality, so the
best i never falls as j grows; for large k the program runs through blocks of k values, each by divide and conquer over
NumPy arrays.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.nonstochastic.domains import doubles
from mechdesign.nonstochastic.levels import smallest_cell

LARGEST_DIRECT = 48
"""Smallest cells up to this are tried one by one: n * k costs are 38 MB for 100,000 values."""

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
    def leakage(self) -> float:
        """L0(X;Y) = log2(n / smallest cell) in bits: the budget kept."""
        return math.log2(int(self.sizes.sum()) / int(self.sizes.min()))

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
    if values.size < 2 * smallest:
        return [0, values.size]
    return (_direct if smallest <= LARGEST_DIRECT else _by_blocks)(values, smallest)


def _walk_back(before: Indices) -> list[int]:
    edges = [len(before) - 1]
    while edges[-1] > 0:
        edges.append(int(before[edges[-1]]))
    return edges[::-1]


def _band(values: Floats, smallest: int) -> Floats:
    """Cost of the cell of length k + s that ends at j: (k, n + 1), infinite where it does not fit.

    Each step adds one value in front of all cells at once (Welford), which is accurate even for tiny cells.
    """
    size = values.size
    band = np.full((smallest, size + 1), np.inf)
    ends = np.arange(1, size + 1)
    mean, cost = np.zeros(size), np.zeros(size)
    for length in range(1, 2 * smallest):
        shift = values[np.maximum(ends - length, 0)] - mean
        cost = cost + shift**2 * ((length - 1) / length)
        mean = mean + shift / length
        if length >= smallest:
            band[length - smallest, length:] = cost[length - 1 :]
    return band


def _direct(values: Floats, smallest: int) -> list[int]:
    """Every length of the last cell, for every end, k ends at a time (they do not depend on each other)."""
    size = values.size
    band = _band(values, smallest)
    best = np.full(size + 1, np.inf)
    best[0] = 0.0
    before = np.zeros(size + 1, dtype=np.int64)
    lengths = np.arange(smallest, 2 * smallest)
    for first in range(smallest, size + 1, smallest):
        ends = np.arange(first, min(first + smallest, size + 1))
        starts = ends[None, :] - lengths[:, None]
        totals = np.where(starts >= 0, best[starts], np.inf) + band[:, ends[0] : ends[-1] + 1]
        choice, columns = totals.argmin(axis=0), np.arange(ends.size)
        best[ends], before[ends] = totals[choice, columns], starts[choice, columns]
    return _walk_back(before)


def _window_cost(values: Floats) -> Callable[[Indices, Indices], Floats]:
    """Costs of cells [i, j) of a window by prefix sums about the window's mean (for accuracy)."""
    shifted = values - values.mean()
    moment, square = (np.concatenate(([0.0], np.cumsum(w))) for w in (shifted, shifted**2))

    def cost(i: Indices, j: Indices) -> Floats:
        return np.maximum(square[j] - square[i] - (moment[j] - moment[i]) ** 2 / (j - i), 0.0)

    return cost


def _by_blocks(values: Floats, smallest: int) -> list[int]:
    size = values.size
    best = np.full(size + 1, np.inf)
    best[0] = 0.0
    before = np.zeros(size + 1, dtype=np.int64)
    for first in range(smallest, size + 1, smallest):
        ends = np.arange(first, min(first + smallest, size + 1))
        origin = max(0, first - 2 * smallest + 1)
        cost = _window_cost(values[origin : ends[-1]])
        before[ends], best[ends] = _conquer(best, ends, smallest, origin, cost)
    return _walk_back(before)


def _conquer(
    best: Floats, ends: Indices, smallest: int, origin: int, cost: Callable[[Indices, Indices], Floats]
) -> tuple[Indices, Floats]:
    """Best start of the last cell for each end, level by level; all middles of a level at once."""
    count = ends.size
    choice, value = np.zeros(count, dtype=np.int64), np.zeros(count)
    # Rows low .. high - 1 are open, and their choices lie between left and right.
    low, high = np.array([0]), np.array([count])
    left, right = np.array([max(0, int(ends[0]) - 2 * smallest + 1)]), np.array([int(ends[-1]) - smallest])
    while low.size:
        middle = (low + high) // 2
        end = ends[middle]
        from_, to = np.maximum(left, end - 2 * smallest + 1), np.minimum(right, end - smallest)
        lengths = to - from_ + 1
        offsets = np.concatenate(([0], np.cumsum(lengths)[:-1]))
        starts = np.arange(int(lengths.sum())) - np.repeat(offsets - from_, lengths)
        totals = best[starts] + cost(starts - origin, np.repeat(end, lengths) - origin)
        least = np.minimum.reduceat(totals, offsets)
        hits = np.flatnonzero(totals == np.repeat(least, lengths))
        # The first hit of each segment: positions are sorted, so searchsorted finds it.
        found = starts[hits[np.searchsorted(hits, offsets)]]
        choice[middle], value[middle] = found, least
        lower, upper = low < middle, middle + 1 < high
        low, high, left, right = (
            np.concatenate((low[lower], middle[upper] + 1)),
            np.concatenate((middle[lower], high[upper])),
            np.concatenate((left[lower], found[upper])),
            np.concatenate((found[lower], right[upper])),
        )
    return choice, value
