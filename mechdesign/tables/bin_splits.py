"""Splits of ordered numbers into bins: equal shares of the records, or least distance to medians.

A split k separates the numbers before position k from those at k and after it: of the numbers 17,
25, 40, the split 2 makes the bins {17, 25} and {40}.

`quantile_splits` takes the splits nearest to equal shares. `least_distance` minimises the sum of |v
- median of the bin of v| by dynamic programming over the number of bins (`least_cells`); each of
its steps is a search for the least entry of every row of a matrix, whose places never move down
(`row_minima`).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

MOST_PLACES = 4096
"""Most splits that the dynamic program tries. Of more values, those at equal shares are tried."""

FEW_ROWS = 16
"""Number of rows below which all columns of all rows are compared at once, which saves calls."""

Numbers: TypeAlias = list[tuple[Fraction, int]]
"""Different numbers, ascending, with their masses."""

Floats: TypeAlias = NDArray[np.float64]
Places: TypeAlias = NDArray[np.int64]

Cost: TypeAlias = Callable[[Places, Places], Floats]
"""Elementwise values of two arrays of positions, which broadcast."""


def quantile_splits(numbers: Numbers, bins: int) -> list[int]:
    """The splits nearest to equal shares of the mass.

    There are fewer than `bins` - 1 where many records have one value.
    """
    sums: Floats = np.cumsum(np.array([float(mass) for _, mass in numbers]))
    targets: Floats = sums[-1] * np.arange(1, bins) / bins
    # The first number with which the share is reached: the split is before it or after it.
    after: Places = np.clip(np.searchsorted(sums, targets), 1, len(sums) - 1)
    missing = targets - sums[after - 1]
    excess = sums[after] - targets
    nearest: list[int] = np.where(missing <= excess, after, after + 1).tolist()
    return sorted({k for k in nearest if k < len(sums)})


class _DistanceToMedian:
    """The total distance of the numbers of an interval to its lower median, by prefix sums."""

    def __init__(self, numbers: Numbers, places: Places) -> None:
        self._places = places
        # Differences are exact before they are rounded, so a large offset loses no digits.
        self._values = np.array([float(value - numbers[0][0]) for value, _ in numbers])
        weights = np.array([float(mass) for _, mass in numbers])
        # Shares, so that the distance is one per record.
        weights /= weights.sum()
        self._mass = np.concatenate([[0.0], np.cumsum(weights)])
        self._moment = np.concatenate([[0.0], np.cumsum(weights * self._values)])

    def __call__(self, end: Places, start: Places) -> Floats:
        """The distance of the intervals from ``places[start]`` to ``places[end]``."""
        values = self._values
        mass = self._mass
        moment = self._moment
        first = self._places[start]
        last = self._places[end]
        # The lower median of the interval: the first value at which half of its mass is reached.
        half = (mass[first] + mass[last]) / 2.0
        middle = np.searchsorted(mass, half) - 1
        middle = np.clip(middle, first, np.maximum(last - 1, first))
        # An empty interval at the end has no median.
        middle = np.minimum(middle, len(values) - 1)
        mass_above = mass[last] - mass[middle]
        mass_below = mass[middle] - mass[first]
        # sum |v - m| is the moment of the values above m less m times their mass, and the
        # reverse below.
        above = moment[last] - moment[middle] - values[middle] * mass_above
        below = values[middle] * mass_below - moment[middle] + moment[first]
        # Rounding can make the distance of equal values negative.
        return np.where(last > first, np.maximum(above + below, 0.0), 0.0)


def least_distance(numbers: Numbers, most: int) -> list[tuple[list[int], float]]:
    """For 1 to `most` bins the splits of least total distance to the bins' medians.

    Each comes with this distance per record.

    Dynamic programming over contiguous bins. The cost of an interval satisfies the quadrangle
    inequality, so the best last split never moves down when values are added. A divide and conquer
    of log2(n) rounds therefore tries about 2 n splits in each round, all at once.
    """
    size = len(numbers)
    if size <= MOST_PLACES:
        inner = list(range(1, size))
    else:
        inner = quantile_splits(numbers, MOST_PLACES)
    places = np.array([0, *inner, size])
    cost = _DistanceToMedian(numbers, places)
    splits: list[tuple[list[int], float]] = []
    for edges, distance in least_cells(cost, len(places) - 1, most):
        splits.append((places[edges[1:-1]].tolist(), distance))
    return splits


def least_cells(cost: Cost, size: int, most: int) -> list[tuple[list[int], float]]:
    """For 1 to `most` cells of the things 0 to `size` the edges of least total cost.

    Parameters
    ----------
    cost : callable
        cost(end, start) of a cell, which must satisfy the quadrangle inequality.
    size : int
        The number of things.
    most : int
        The largest number of cells.

    Returns
    -------
    list of (edges, cost)
        By the number of cells; the edges include 0 and `size`.
    """
    ends = np.arange(1, size + 1)
    starts_of_all = 0 * ends
    # best[e] is the least cost of things 0 to e in the current number of cells.
    best = np.append(0, cost(ends, starts_of_all))
    # last_starts[c][e] is where the last of c + 2 cells starts that end at e.
    last_starts: list[Places] = []
    solutions: list[tuple[list[int], float]] = []
    for cells in range(1, min(most, size) + 1):
        if cells > 1:

            def total(end: Places, start: Places, best: Floats = best) -> Floats:
                return best[start] + cost(end, start)

            # best_c(e) = min over start < e of best_{c-1}(start) + cost(start, e). By the
            # quadrangle inequality the minimising start grows with e, which `row_minima`
            # needs.
            starts = row_minima(total, ends, starts_of_all, ends - 1)
            last_starts.append(np.append(0, starts))
            best = np.append(0, total(ends, starts))
        solutions.append((_edges(last_starts, size), float(best[-1])))
    return solutions


def _edges(last_starts: list[Places], size: int) -> list[int]:
    """The edges of the best cells, from the last cell to the first."""
    edges = [size]
    for starts in reversed(last_starts):
        edges.append(int(starts[edges[-1]]))
    return sorted({0, *edges})


def row_minima(value: Cost, rows: Places, first: Places, last: Places) -> Places:
    """For each row the first column of least value(row, column) from `first` to `last`.

    These columns must never fall from one row to the next. So the minimum of a row limits the
    columns of all rows above and below it, and rows are searched by halving, all of one depth
    together: of seven rows first the row 3; then 1 and 5, on their sides of its minimum; then 0, 2,
    4 and 6, between the minima of their neighbours. The ranges of one depth overlap at their ends
    alone, so each of the log2(rows) depths takes no more than about rows + columns values.
    """
    if rows.size < FEW_ROWS:
        return _row_minima_at_once(value, rows, first, last)
    # The column of the minimum of each row, once it is searched. Counted from 1, the rows of a
    # depth are the odd multiples of `step`, and the even ones have been searched before.
    minima = last.copy()
    step = 1 << (rows.size.bit_length() - 1)
    while step:
        middles = np.arange(step - 1, rows.size, 2 * step)
        low = first[middles]
        high = last[middles]
        # The first of the middle rows has no searched row before it, and the last one may have none
        # after it.
        low[1:] = np.maximum(low[1:], minima[middles[1:] - step])
        is_bounded = middles + step < rows.size
        above = minima[middles[is_bounded] + step]
        high[is_bounded] = np.minimum(high[is_bounded], above)
        minima[middles] = _segment_minima(value, rows[middles], low, high)
        step >>= 1
    return minima


def _row_minima_at_once(
    value: Cost, rows: Places, first: Places, last: Places
) -> Places:
    """`row_minima` by comparing every column of every row."""
    columns: Places = np.arange(int(first[0]), int(last[-1]) + 1)
    inside = (columns >= first[:, None]) & (columns <= last[:, None])
    values = np.where(inside, value(rows[:, None], columns), np.inf)
    return first[0] + values.argmin(axis=1)


def _segment_minima(value: Cost, rows: Places, low: Places, high: Places) -> Places:
    """For each row the first column of least value from `low` to `high`.

    The columns of all rows stand one after the other in one flat array.
    """
    lengths = high - low + 1
    starts = np.cumsum(lengths) - lengths
    # Position k of the flat array belongs to the column k - start + low of its row.
    flat: Places = np.arange(int(lengths.sum()), dtype=np.int64)
    columns = flat - np.repeat(starts - low, lengths)
    values = value(np.repeat(rows, lengths), columns)
    minima = np.minimum.reduceat(values, starts)
    # Of equal minima the first one, so that the result does not depend on the grouping of rows.
    at_minimum = np.flatnonzero(values == np.repeat(minima, lengths))
    first_of_row = at_minimum[np.searchsorted(at_minimum, starts)]
    return columns[first_of_row]
