"""Means over a box of shares with one value replaced: many symbols against a square matrix."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from solvers.sets import uncertain


def case(size, seed, ties):
    """Values, special values, and a box around a distribution, points among its intervals."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.ones(size))
    low = np.maximum(shares - rng.random(size) / size, 0.0)
    high = np.minimum(shares + rng.random(size) / size, 1.0)
    fixed = rng.random(size) < 0.2
    low[fixed] = high[fixed] = shares[fixed]
    values = rng.random((3, size))
    special = rng.random((3, size))
    if ties:
        values, special = np.round(values, 1), np.round(special, 1)
    return values, special, low, high


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 40])
def test_many_symbols_have_the_means_of_few(monkeypatch, size, ties, sign):
    for seed in range(20):
        values, special, low, high = case(size, seed, ties)
        dense = uncertain.extreme_means(values, special, sign, low, high)
        with monkeypatch.context() as patch:
            patch.setattr(uncertain, "MOST_DENSE", 0)
            sparse = uncertain.extreme_means(values, special, sign, low, high)
        assert sparse == pytest.approx(dense, abs=1e-12)


def test_memory_grows_with_the_symbols():
    peaks = []
    for size in (1_000, 2_000, 4_000):
        arguments = case(size, 0, False)
        tracemalloc.start()
        uncertain.extreme_means(arguments[0], arguments[1], 1, *arguments[2:])
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[-1] <= 3 * peaks[-2] <= 9 * peaks[-3]
