"""Optimal univariate microaggregation: contiguous cells of at least k sorted values, and their costs.

A cell is a slice [a, b) of the sorted values, and one number is released for it. Cells of 2k or more
can be split without loss, so a cell has k to 2k - 1 values, and the best partition of the first j
values ends with a cell that starts at i in (j - 2k, j - k]. The cell costs satisfy the quadrangle
inequality, so the best i never falls as j grows; for large k the program runs through blocks of k
values, each by divide and conquer over NumPy arrays.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.nonstochastic.domains import exact_number

Loss = Literal["squared", "absolute", "worst"]
LOSSES: tuple[Loss, ...] = ("squared", "absolute", "worst")

Floats = NDArray[np.float64]


def check_loss(loss: str) -> None:
    """Raise InputError unless `loss` is one of `LOSSES`."""
    if loss not in LOSSES:
        raise InputError(f"loss ({loss!r}) must be one of {', '.join(LOSSES)}")


def exact_weights(weights: Sequence[object] | None, size: int) -> list[Fraction]:
    """`size` non-negative weights, not all zero; all ones by default."""
    if weights is None:
        return [Fraction(1)] * size
    exact = [exact_number(f"weight {k + 1}", w) for k, w in enumerate(weights)]
    if len(exact) != size:
        raise InputError(f"{size} values need {size} weights, not {len(exact)}")
    for k, weight in enumerate(exact):
        if weight < 0:
            raise InputError(f"weight {k + 1} ({float(weight):g}) must not be negative")
    if not any(exact):
        raise InputError("all weights are zero; give at least one positive weight")
    return exact


@dataclass(frozen=True)
class CellLoss:
    """Exact loss and representative of one cell."""

    values: Sequence[Fraction]
    weights: Sequence[Fraction]
    loss: Loss

    def representative(self, a: int, b: int) -> Fraction:
        """What is released for the cell [a, b)."""
        if self.loss == "worst":
            return (self.values[a] + self.values[b - 1]) / 2
        mass = sum(self.weights[a:b], Fraction(0))
        if not mass:
            return sum(self.values[a:b], Fraction(0)) / (b - a)
        if self.loss == "squared":
            return (
                sum((w * v for w, v in zip(self.weights[a:b], self.values[a:b], strict=True)), Fraction(0))
                / mass
            )
        below = Fraction(0)
        for k in range(a, b):
            below += self.weights[k]
            if 2 * below >= mass:
                return self.values[k]
        return self.values[b - 1]

    def cost(self, a: int, b: int) -> Fraction:
        """The loss of the cell [a, b), not divided by the total weight."""
        middle = self.representative(a, b)
        if self.loss == "worst":
            return self.values[b - 1] - middle
        power = 2 if self.loss == "squared" else 1
        pairs = zip(self.weights[a:b], self.values[a:b], strict=True)
        return sum((w * abs(v - middle) ** power for w, v in pairs), Fraction(0))

    def total(self, edges: Sequence[int]) -> Fraction:
        """The distortion of the cells between consecutive edges: a mean, or the largest for "worst"."""
        costs = [self.cost(a, b) for a, b in itertools.pairwise(edges)]
        if self.loss == "worst":
            return max(costs)
        return sum(costs, Fraction(0)) / sum(self.weights, Fraction(0))


def cost_matrix(values: Floats, weights: Floats, loss: Loss) -> Floats:
    """Cost of every cell [a, b): (m + 1, m + 1), infinite unless a < b.

    Squared losses are updated one value at a time (Welford), which keeps their relative accuracy.
    """
    size = values.size
    costs = np.full((size + 1, size + 1), np.inf)
    if loss == "worst":
        for a in range(size):
            costs[a, a + 1 :] = (values[a:] - values[a]) / 2
        return costs
    if loss == "absolute":
        mass, moment = (np.concatenate(([0.0], np.cumsum(w))) for w in (weights, weights * values))
        for a in range(size):
            ends = np.arange(a + 1, size + 1)
            last = np.asarray(np.searchsorted(mass, (mass[a] + mass[ends]) / 2), dtype=np.int64) - 1
            middle: NDArray[np.int64] = np.minimum(np.maximum(last, a), ends - 1)
            centre = values[middle]
            above = (moment[ends] - moment[middle]) - centre * (mass[ends] - mass[middle])
            below = centre * (mass[middle] - mass[a]) - (moment[middle] - moment[a])
            costs[a, ends] = np.maximum(above + below, 0.0)
        return costs
    mass, mean, cost = np.zeros(size), np.zeros(size), np.zeros(size)
    for length in range(1, size + 1):
        starts = np.arange(size - length + 1)
        new, weight = values[starts + length - 1], weights[starts + length - 1]
        grown = mass[starts] + weight
        share = np.divide(weight, grown, out=np.zeros_like(grown), where=grown > 0)
        shift = new - mean[starts]
        cost[starts] += mass[starts] * share * shift**2
        mean[starts] += share * shift
        mass[starts] = grown
        costs[starts, starts + length] = cost[starts]
    return costs


LARGEST_DIRECT = 48
"""Smallest cells up to this are tried one by one: n * k costs are 38 MB for 100,000 values."""

BISECTIONS = 200
"""More halvings than a double has values between two of them; the search ends long before."""

Indices = NDArray[np.int64]


def best_edges(values: Floats, mass: Floats, smallest: int, loss: Loss) -> list[int]:
    """Edges 0 = e_0 < e_1 < ... = n of the cells [e_i, e_i+1) with least total (or worst) loss."""
    size = values.size
    if size < 2 * smallest:
        return [0, size]
    if smallest <= LARGEST_DIRECT:
        return _direct(values, mass, smallest, loss)
    if loss == "worst":
        return _bottleneck(values, smallest)
    return _by_blocks(values, mass, smallest, loss)


def _walk_back(before: Indices, size: int) -> list[int]:
    edges = [size]
    while edges[-1] > 0:
        edges.append(int(before[edges[-1]]))
    return edges[::-1]


def _band(values: Floats, mass: Floats, smallest: int, loss: Loss) -> Floats:
    """Cost of the cell of length k + s that ends at j: (k, n + 1), infinite where it does not fit.

    Each step adds one value in front of all cells at once, which is accurate even for tiny cells.
    """
    size = values.size
    band = np.full((smallest, size + 1), np.inf)
    ends = np.arange(1, size + 1)
    total, mean, cost = np.zeros(size), np.zeros(size), np.zeros(size)
    prefix = np.concatenate(([0.0], np.cumsum(mass))) if loss == "absolute" else np.empty(0)
    for length in range(1, 2 * smallest):
        new = np.maximum(ends - length, 0)
        if loss == "squared":
            grown = total + mass[new]
            share = np.divide(mass[new], grown, out=np.zeros(size), where=grown > 0)
            shift = values[new] - mean
            cost = cost + total * share * shift**2
            mean, total = mean + share * shift, grown
        elif loss == "worst":
            cost = (values - values[new]) / 2
        elif length >= smallest:
            cost = _absolute(values, mass, prefix, ends, length)
        if length >= smallest:
            band[length - smallest, length:] = cost[length - 1 :]
    return band


def _absolute(values: Floats, mass: Floats, prefix: Floats, ends: Indices, length: int) -> Floats:
    """Weighted distances to the weighted median, summed value by value."""
    starts = np.maximum(ends - length, 0)
    middle = np.searchsorted(prefix, (prefix[starts] + prefix[ends]) / 2) - 1
    centre = values[np.clip(middle, starts, ends - 1)]
    cost = np.zeros(ends.size)
    for step in range(length):
        place = np.minimum(starts + step, values.size - 1)
        cost += mass[place] * np.abs(values[place] - centre)
    return cost


def _direct(values: Floats, mass: Floats, smallest: int, loss: Loss) -> list[int]:
    """Every length of the last cell, for every end, k ends at a time (they do not depend on each other)."""
    size = values.size
    band = _band(values, mass, smallest, loss)
    combine = np.maximum if loss == "worst" else np.add
    best = np.full(size + 1, np.inf)
    best[0] = 0.0
    before = np.zeros(size + 1, dtype=np.int64)
    lengths = np.arange(smallest, 2 * smallest)
    for first in range(smallest, size + 1, smallest):
        ends = np.arange(first, min(first + smallest, size + 1))
        starts = ends[None, :] - lengths[:, None]
        totals = combine(np.where(starts >= 0, best[starts], np.inf), band[:, ends[0] : ends[-1] + 1])
        choice = totals.argmin(axis=0)
        columns = np.arange(ends.size)
        best[ends] = totals[choice, columns]
        before[ends] = starts[choice, columns]
    return _walk_back(before, size)


def _window_cost(values: Floats, mass: Floats, loss: Loss) -> Callable[[Indices, Indices], Floats]:
    """Costs of cells [i, j) of a window by prefix sums about the window's mean (for accuracy)."""
    shifted = values - values.mean()
    weight, moment, square = (
        np.concatenate(([0.0], np.cumsum(w))) for w in (mass, mass * shifted, mass * shifted**2)
    )

    def squared(i: Indices, j: Indices) -> Floats:
        total, first = weight[j] - weight[i], moment[j] - moment[i]
        mean_part = np.divide(first**2, total, out=np.zeros_like(first), where=total > 0)
        return np.maximum(square[j] - square[i] - mean_part, 0.0)

    def absolute(i: Indices, j: Indices) -> Floats:
        middle = np.clip(np.searchsorted(weight, (weight[i] + weight[j]) / 2) - 1, i, j - 1)
        centre = shifted[middle]
        above = (moment[j] - moment[middle]) - centre * (weight[j] - weight[middle])
        below = centre * (weight[middle] - weight[i]) - (moment[middle] - moment[i])
        return np.maximum(above + below, 0.0)

    return squared if loss == "squared" else absolute


def _by_blocks(values: Floats, mass: Floats, smallest: int, loss: Loss) -> list[int]:
    size = values.size
    best = np.full(size + 1, np.inf)
    best[0] = 0.0
    before = np.zeros(size + 1, dtype=np.int64)
    for first in range(smallest, size + 1, smallest):
        ends = np.arange(first, min(first + smallest, size + 1))
        origin = max(0, first - 2 * smallest + 1)
        cost = _window_cost(values[origin : ends[-1]], mass[origin : ends[-1]], loss)
        before[ends], best[ends] = _conquer(best, ends, smallest, origin, cost)
    return _walk_back(before, size)


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


def _bottleneck(values: Floats, smallest: int) -> list[int]:
    """The least possible width of the widest cell, by bisection on the width.

    Every step keeps a partition that exists; its own widest cell is the next upper end, so the
    search ends on a width that is attained.
    """
    spans = values[smallest - 1 :] - values[: values.size - smallest + 1]
    # Every value lies in a cell at least as wide as the narrowest k values around it.
    edges = [*range(0, values.size - smallest + 1, smallest), values.size]
    if edges[-1] - edges[-2] < smallest:
        del edges[-2]
    high, low = _widest(values, edges), float(spans.min())
    found = _reachable(values, smallest, low)
    if found is not None:
        return found
    for _ in range(BISECTIONS):
        middle = low + (high - low) / 2
        if not low < middle < high:
            break
        found = _reachable(values, smallest, middle)
        if found is None:
            low = middle
        else:
            edges, high = found, _widest(values, found)
    return edges


def _widest(values: Floats, edges: list[int]) -> float:
    cuts = np.asarray(edges)
    return float((values[cuts[1:] - 1] - values[cuts[:-1]]).max())


def _reachable(values: Floats, smallest: int, width: float) -> list[int] | None:
    """Edges of cells no wider than `width`, or None: the ends that can be reached, k at a time."""
    size = values.size
    ends = np.arange(size + 1)
    lowest = np.zeros(size + 1, dtype=np.int64)
    lowest[1:] = np.searchsorted(values, values - width)
    # Rounding of values - width: move to the exact comparison of the difference of doubles.
    lowest[1:] += values - values[lowest[1:]] > width
    lowest[1:] -= (lowest[1:] > 0) & (values - values[np.maximum(lowest[1:] - 1, 0)] <= width)
    lowest = np.maximum(lowest, ends - 2 * smallest + 1)
    latest = np.full(size + 1, -1, dtype=np.int64)
    # Ends 1 .. k - 1 cannot be reached; the largest reachable one up to there is 0.
    latest[:smallest] = 0
    before = np.full(size + 1, -1, dtype=np.int64)
    for first in range(smallest, size + 1, smallest):
        block = ends[first : first + smallest]
        # latest[p] is the largest reachable end up to p; it is settled up to first - 1.
        start = latest[block - smallest]
        open_ = start >= lowest[block]
        before[block] = np.where(open_, start, -1)
        reached = np.where(open_, block, -1)
        latest[block] = np.maximum.accumulate(np.concatenate(([latest[first - 1]], reached)))[1:]
    return _walk_back(before, size) if before[size] >= 0 else None
