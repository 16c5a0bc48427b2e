"""Optimal identifiable partitions against brute force."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from mechdesign.core.errors import InputError
from mechdesign.nonstochastic.thresholds_by_error import (
    CellLoss,
    best_edges,
    identifiable_partition,
)


def best_contiguous(values, smallest):
    """The plain quadratic program in exact arithmetic."""
    priced = CellLoss([Fraction(int(v)) for v in values], [Fraction(1)] * len(values))
    best = [Fraction(0), *[None] * len(values)]
    for end in range(1, len(values) + 1):
        for start in range(end - smallest + 1):
            if best[start] is None:
                continue
            total = best[start] + priced.cost(start, end)
            if best[end] is None or total < best[end]:
                best[end] = total
    return priced, best[-1]


def test_microaggregation_against_the_quadratic_program():
    rng = np.random.default_rng(1)
    for _ in range(60):
        size = int(rng.integers(1, 22))
        values = np.sort(rng.integers(0, 30, size=size)).astype(float)
        smallest = int(rng.integers(1, size + 1))
        edges = best_edges(values, smallest)
        priced, best = best_contiguous(values, smallest)
        assert edges[0] == 0
        assert edges[-1] == size
        assert min(np.diff(edges)) >= smallest
        assert sum(priced.cost(a, b) for a, b in itertools.pairwise(edges)) == best


@pytest.mark.parametrize("smallest", [5, 40])
def test_heavy_tails_lose_no_digits(smallest):
    """600 values over ten powers of ten: the cells cost what every admissible start, priced by
    itself, allows.
    """
    values = np.sort(np.random.default_rng(4).standard_cauchy(600) ** 3)

    def price(a, b):
        return float(((values[a:b] - values[a:b].mean()) ** 2).sum())

    best = [0.0, *[math.inf] * len(values)]
    for end in range(smallest, len(values) + 1):
        starts = range(max(0, end - 2 * smallest + 1), end - smallest + 1)
        best[end] = min(best[start] + price(start, end) for start in starts)
    edges = best_edges(values, smallest)
    total = math.fsum(price(a, b) for a, b in itertools.pairwise(edges))
    assert total == pytest.approx(best[-1], rel=1e-12)


def test_thirty_thousand_values():
    """Exact sizes and contiguity at full size (the time is in the benchmarks' output)."""
    points = np.random.default_rng(0).standard_normal(30_000)
    for smallest in (3, 500):
        partition = identifiable_partition(points, math.log2(30_000 / smallest) - 1e-12)
        assert int(partition.sizes.min()) >= partition.smallest >= smallest
        ordered = partition.cell_of[np.argsort(points, kind="stable")]
        assert np.count_nonzero(np.diff(ordered)) == partition.sizes.size - 1


def partitions(items, smallest):
    """All partitions into sets of at least `smallest`."""
    if not items:
        yield []
        return
    first, *rest = items
    for size in range(smallest - 1, len(rest) + 1):
        for others in itertools.combinations(rest, size):
            left = [i for i in rest if i not in others]
            if not left or len(left) >= smallest:
                for further in partitions(left, smallest):
                    yield [(first, *others), *further]


def squared_error(points):
    return ((points - points.mean()) ** 2).sum()


def test_contiguous_cells_are_the_best_of_all_partitions():
    """With equal weights no partition into sets of the same least size has a smaller error
    (docs/explanation/ranges-theory.md, 'Microaggregation').
    """
    rng = np.random.default_rng(7)
    for _ in range(12):
        count = int(rng.integers(3, 9))
        points = rng.integers(0, 9, size=count).astype(float)
        epsilon = Fraction(math.log2(count / int(rng.integers(1, 4))))
        partition = identifiable_partition(points, epsilon)
        errors = []
        for cells in partitions(list(range(count)), partition.smallest):
            errors.append(math.fsum(squared_error(points[list(c)]) for c in cells))
        assert partition.distortion * count == pytest.approx(min(errors), abs=1e-9)
        assert partition.representatives[partition.cell_of].mean() == pytest.approx(
            points.mean()
        )


def test_leakage_of_a_partition():
    partition = identifiable_partition(range(8), 2)
    assert partition.sizes.min() == partition.smallest == 2
    assert partition.maximal_leakage == math.log2(8 - 2 + 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: identifiable_partition([], 1), "non-empty"),
        (lambda: identifiable_partition([1, math.nan], 1), "NaN"),
        (lambda: identifiable_partition([1, 1e130], 1), "overflow when squared"),
        (lambda: identifiable_partition([1, 2], -1), "fewer than one output"),
        (lambda: identifiable_partition([[1, 2], [3, 4]], 1), r"shape \(n,\)"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(InputError, match=message):
        call()
