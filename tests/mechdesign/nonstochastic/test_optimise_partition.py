"""Optimal identifiable partitions and reporting policies against brute force."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from mechdesign.core.errors import InputError
from mechdesign.nonstochastic import microaggregation
from mechdesign.nonstochastic.microaggregation import LOSSES, CellLoss, best_edges
from mechdesign.nonstochastic.optimise_partition import cell_loss, identifiable_partition


def best_contiguous(values, mass, smallest, loss):
    """The plain quadratic program in exact arithmetic."""
    priced = CellLoss([Fraction(int(v)) for v in values], [Fraction(int(w)) for w in mass], loss)
    best = [Fraction(0), *[None] * len(values)]
    for end in range(1, len(values) + 1):
        for start in range(end - smallest + 1):
            if best[start] is not None:
                cost = priced.cost(start, end)
                total = max(best[start], cost) if loss == "worst" else best[start] + cost
                best[end] = total if best[end] is None else min(best[end], total)
    return priced, best[-1]


@pytest.mark.parametrize("largest_direct", [48, 0])
def test_microaggregation_against_the_quadratic_program(largest_direct, monkeypatch):
    """Small cells one by one, and (limit 0) blocks by divide and conquer or bisection."""
    monkeypatch.setattr(microaggregation, "LARGEST_DIRECT", largest_direct)
    rng = np.random.default_rng(1)
    for trial in range(60):
        size = int(rng.integers(1, 22))
        values = np.sort(rng.integers(0, 30, size=size)).astype(float)
        mass = rng.integers(0, 4, size=size).astype(float) if trial % 2 else np.ones(size)
        mass[0] += trial % 2
        smallest = int(rng.integers(1, size + 1))
        for loss in LOSSES:
            edges = best_edges(values, mass, smallest, loss)
            priced, best = best_contiguous(values, mass, smallest, loss)
            costs = [priced.cost(a, b) for a, b in itertools.pairwise(edges)]
            assert (edges[0], edges[-1]) == (0, size)
            assert min(np.diff(edges)) >= smallest
            assert (max(costs) if loss == "worst" else sum(costs)) == best


@pytest.mark.parametrize("loss", LOSSES)
def test_large_cells_agree_with_small_ones(loss, monkeypatch):
    """Heavy tails, 3,000 values: both algorithms have the same optimum."""
    values = np.sort(np.random.default_rng(4).standard_cauchy(3000))
    mass = np.ones(values.size)

    def price(edges):
        costs = [cell_loss(values[a:b, None], mass[a:b], loss)[1] for a, b in itertools.pairwise(edges)]
        return max(costs) if loss == "worst" else math.fsum(costs)

    for smallest in (5, 40):
        direct = price(best_edges(values, mass, smallest, loss))
        with monkeypatch.context() as patch:
            patch.setattr(microaggregation, "LARGEST_DIRECT", 0)
            assert price(best_edges(values, mass, smallest, loss)) == pytest.approx(direct, rel=1e-12)


def test_a_hundred_thousand_values():
    """Exact sizes and contiguity at full size (the time is in the benchmarks' output)."""
    points = np.random.default_rng(0).standard_normal(100_000)
    for smallest in (3, 500):
        found = identifiable_partition(points, math.log2(100_000 / smallest) - 1e-12)
        assert found.method == "dp"
        assert found.optimal
        assert int(found.sizes.min()) >= found.smallest >= smallest
        ordered = found.cell_of[np.argsort(points, kind="stable")]
        assert np.count_nonzero(np.diff(ordered)) == found.sizes.size - 1
        assert found.leakage <= math.log2(100_000 / smallest)


def partitions(items, smallest):
    """All partitions into sets of at least `smallest`."""
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    for size in range(smallest - 1, len(rest) + 1):
        for others in itertools.combinations(rest, size):
            left = [i for i in rest if i not in others]
            if not left or len(left) >= smallest:
                yield from ([(first, *others), *more] for more in partitions(left, smallest))


def test_set_partitions_against_all_partitions():
    rng = np.random.default_rng(7)
    for trial in range(12):
        count, dimension = int(rng.integers(3, 9)), 1 + trial % 2
        points = rng.integers(0, 9, size=(count, dimension)).astype(float)
        weights = rng.integers(0, 3, size=count).astype(float)
        weights[0] += 1
        smallest = int(rng.integers(1, 4))
        epsilon = Fraction(math.log2(count / smallest))
        loss = "absolute" if dimension == 1 and trial % 4 == 0 else "squared"
        found = identifiable_partition(points, epsilon, weights=weights, loss=loss, method="milp")
        best = min(
            math.fsum(cell_loss(points[list(c)], weights[list(c)], loss)[1] for c in cells)
            for cells in partitions(list(range(count)), found.smallest)
        ) / math.fsum(weights)
        assert found.optimal
        assert found.distortion == pytest.approx(best, abs=1e-9)
        assert found.bound <= best + 1e-9


def test_contiguity_is_a_restriction_with_unequal_weights():
    """0, 1, 100, 101 with weights 1/2, 1/2, 0, 0 and cells of two: 0.25 against 0 (theory.md, section 7)."""
    points, weights = [0, 1, 100, 101], [0.5, 0.5, 0, 0]
    contiguous = identifiable_partition(points, 1, weights=weights, method="dp")
    assert contiguous.distortion == 0.25
    assert "contiguous cells only" in contiguous.restriction
    best = identifiable_partition(points, 1, weights=weights)
    assert (best.method, best.distortion, best.restriction) == ("milp", 0.0, "")


def test_more_dimensions():
    """The exact program is never above the named heuristic, and both keep the sizes."""
    points = np.random.default_rng(2).random((16, 2))
    best = identifiable_partition(points, Fraction(2))
    heuristic = identifiable_partition(points, Fraction(2), method="mdav")
    assert best.method == "milp"
    assert best.optimal
    assert best.bound == pytest.approx(best.distortion)
    assert best.distortion <= heuristic.distortion
    assert not heuristic.optimal
    assert min(best.sizes.min(), heuristic.sizes.min()) >= 4
    many = identifiable_partition(np.random.default_rng(2).random((500, 3)), 5)
    assert (many.method, many.bound) == ("mdav", 0.0)
    assert many.sizes.min() >= many.smallest == 16


def test_leakage_of_a_partition():
    found = identifiable_partition(range(8), 2)
    assert (found.leakage, found.smallest) == (2.0, 2)
    assert found.maximal_leakage == math.log2(8 - 2 + 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: identifiable_partition([], 1), "non-empty"),
        (lambda: identifiable_partition([1, math.nan], 1), "NaN"),
        (lambda: identifiable_partition([1, 2], 1, weights=[1]), "2 points need 2 weights"),
        (lambda: identifiable_partition([1, 2], 1, weights=[0, 0]), "not all zero"),
        (lambda: identifiable_partition([1, 2], 1, weights=[1, -1]), "not negative"),
        (lambda: identifiable_partition([1, 2], -1), "fewer than one output"),
        (lambda: identifiable_partition([1, 2], 1, method="best"), "method"),
        (lambda: identifiable_partition([1, 2], 1, loss="best"), "loss"),
        (lambda: identifiable_partition([1, 2], 1, loss="worst", method="milp"), "solved by 'dp'"),
        (lambda: identifiable_partition([[1, 2], [3, 4]], 1, loss="worst"), "one dimension"),
        (lambda: identifiable_partition([[1, 2], [3, 4]], 1, method="dp"), "one dimension"),
        (lambda: identifiable_partition(range(100), 2, method="milp"), "candidate cells"),
        (lambda: identifiable_partition(np.zeros((30_000, 2)), 14, method="mdav"), "too many for 'mdav'"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(InputError, match=message):
        call()
