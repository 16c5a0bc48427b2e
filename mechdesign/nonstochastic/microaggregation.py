"""The epsilon-identifiable map of least squared error, by a dynamic program over sorted values.

Farokhi and Ding 2020 measure such maps; finding the best one is optimal univariate microaggregation
(docs/explanation/ranges-theory.md, 'Microaggregation'). A cell is a slice [a, b) of the sorted
values, and its mean is released. The budget demands at least k = ceil(n 2^-epsilon) of the n values
in every cell. A cell of 2k or more can be split without loss, so a cell has k to 2k - 1 values, and
the best partition of the first j values ends with a cell that starts at i in (j - 2k, j - k]:

    best(j) = min over i of best(i) + cost(i, j),

with cost(i, j) the squared error of the cell [i, j) around its mean (`squared_errors`).
`identifiable_partition` sorts the values, and `best_edges` solves the recurrence.

For example, of the values 0, 1, 5, 6 a budget of one bit demands two in every cell: the best cells
are {0, 1} and {5, 6}, with the means 0.5 and 5.5 and a mean squared error of 0.25.

The cell costs satisfy the quadrangle inequality, so the best i never falls as j grows, and all j of
a block are found together by row minima of a monotone matrix.

`best_cells` solves the related problem of weighted values and a largest number of cells.
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
from mechdesign.nonstochastic.output_budgets import smallest_cell
from mechdesign.nonstochastic.queries import doubles
from mechdesign.tables.bin_edges import least_cells, row_minima

LARGEST_VALUE = 1e120
"""Largest absolute value. Summed squares of differences of larger ones could leave the doubles."""

NEAR = 256
"""Number of values beyond a block whose sums are computed with those of the block, so that small
blocks share one computation of sums."""

FINE = 64
"""Costs of weighted cells are cut off this many bits below the least positive one. So totals are
off by less than 2^-40 of themselves, however far apart the values are."""

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Partition:
    """An epsilon-identifiable partition of n symbols, of least mean squared error `distortion`.

    Parameters
    ----------
    cell_of : (n,) integers
        The cell of each symbol.
    sizes, representatives : (cells,) arrays
        Symbols of each cell, and their mean.
    smallest
        The fewest symbols that a cell may have.
    """

    cell_of: Indices
    sizes: Indices
    smallest: int
    representatives: Floats
    distortion: float

    @property
    def maximal_leakage(self) -> float:
        """L*(X -> Y) = log2(n - smallest cell + 1) in bits
        (docs/explanation/ranges-theory.md, 'Guessing').
        """
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

    # The best cells of the sorted values.
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    edges = best_edges(ordered, smallest)
    sizes = np.diff(edges).astype(np.int64)

    # Back from the sorted order to that of the caller.
    cell_of = np.empty(values.size, dtype=np.int64)
    cell_of[order] = np.repeat(np.arange(sizes.size), sizes)
    centres = np.empty(sizes.size)
    for cell, (a, b) in enumerate(itertools.pairwise(edges)):
        # Differences to the first value lose fewer digits than the values themselves.
        centres[cell] = ordered[a] + (ordered[a:b] - ordered[a]).mean()
    squared = (values - centres[cell_of]) ** 2
    return Partition(
        cell_of=cell_of,
        sizes=sizes,
        smallest=smallest,
        representatives=centres,
        distortion=math.fsum(squared.tolist()) / values.size,
    )


def squared_errors(values: Floats) -> Callable[[Indices, Indices], Any]:
    """The squared error of the cell values[start:end], as a function of end and start.

    It is the sum of squares less the squared sum over the size. Both come from cumulative sums, so
    a cell of any size takes constant time.
    """
    # Differences to a value in the middle are small, and a longdouble has some more digits: the
    # subtraction below cancels most of them.
    away = (values - values[values.size // 2]).astype(np.longdouble)
    moments = np.append(np.longdouble(0), np.cumsum(away))
    squares = np.append(np.longdouble(0), np.cumsum(away**2))

    def cost(end: Indices, start: Indices) -> Any:
        moment = moments[end] - moments[start]
        square = squares[end] - squares[start]
        # Rounding can make the error of equal values negative.
        return np.maximum(square - moment**2 / np.maximum(end - start, 1), 0)

    return cost


def best_edges(values: Floats, smallest: int) -> list[int]:
    """Edges 0 = e_0 < .. = n of the cells [e_i, e_i+1) with least squared error.

    `values` are sorted, and every cell has at least `smallest` of them.
    """
    size = values.size
    if smallest == 1:
        return list(range(size + 1))
    if size < 2 * smallest:
        # Two cells would need more values.
        return [0, size]
    best = np.full(size + 1, np.inf)
    best[0] = 0.0
    # before[j]: the start of the last cell in the best partition of the first j values.
    before = np.zeros(size + 1, dtype=np.int64)
    # `cost` has the sums of values[window:beyond], and counts places from `window`.
    window = 0
    beyond = NEAR
    cost = squared_errors(values[:beyond])

    def total(end: Indices, start: Indices) -> Any:
        return best[start] + cost(end - window, start - window)

    # Cells that end within the next `smallest` values all start before them, where the best is
    # known.
    for block in range(smallest, size + 1, smallest):
        ends = np.arange(block, min(block + smallest, size + 1))
        first = np.maximum(ends - 2 * smallest + 1, 0)
        last = ends - smallest
        if ends[-1] > beyond:
            # Sums over near values alone: far ones would cost digits.
            window = int(first[0])
            beyond = int(ends[-1]) + NEAR
            cost = squared_errors(values[window:beyond])
        before[ends] = row_minima(total, ends, first, last)
        best[ends] = total(ends, before[ends])

    # Back from the end, cell by cell.
    edges = [size]
    while edges[-1] > 0:
        edges.append(int(before[edges[-1]]))
    return edges[::-1]


def best_cells(
    values: Sequence[Fraction], weights: Sequence[Fraction], cells: int
) -> list[int]:
    """As `best_edges`, for weighted values and at most `cells` cells of any size, in integers.

    Parameters
    ----------
    values : sequence of Fraction
        Sorted.
    weights : sequence of Fraction
        One for each value, not negative.
    cells : int
        The largest number of cells.
    """
    # Another unit of values or weights multiplies all costs by one factor, and moves no edge.
    x = _as_integers(values)
    weight = _as_integers(weights)
    masses = np.append(0, np.cumsum(weight))
    moments = np.append(0, np.cumsum(weight * x))
    squares = np.append(0, np.cumsum(weight * x**2))
    # The least cost that is not zero is at least 1 / the total mass.
    shift = FINE + int(masses[-1]).bit_length()

    def cost(end: Indices, start: Indices) -> Any:
        mass = masses[end] - masses[start]
        moment = moments[end] - moments[start]
        square = squares[end] - squares[start]
        # The squared error times 2^shift, rounded down; without mass it is 0.
        return ((square * mass - moment**2) << shift) // np.where(mass > 0, mass, 1)

    # The last entry is the one with the most cells.
    edges, _ = least_cells(cost, len(values), cells)[-1]
    return edges


def _as_integers(numbers: Sequence[Fraction]) -> Any:
    """Fractions times their common denominator, as an array of Python integers.

    Sums of squares of such integers may need more than 64 bits.
    """
    unit = math.lcm(*(value.denominator for value in numbers))
    return np.array([int(value * unit) for value in numbers], dtype=object)
