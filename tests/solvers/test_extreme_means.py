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


def uncertain_set(size, seed):
    rng = np.random.default_rng(seed)
    given = rng.dirichlet(np.ones(5), size=size)
    _, _, low, high = case(size, seed, False)
    return uncertain.UncertainSet(
        np.full(5, 0.2),
        np.maximum(given - 0.05, 0.0),
        np.minimum(given + 0.05, 1.0),
        share_lower=low,
        share_upper=high,
        most=1.5,
        least=0.5,
    )


@pytest.mark.parametrize("size", [1, 2, 7, 40])
def test_many_symbols_have_the_cuts_of_few(monkeypatch, size):
    for seed in range(10):
        whole = uncertain_set(size, seed)
        w = np.random.default_rng(seed).random(5)
        dense = whole.cuts(w)
        with monkeypatch.context() as patch:
            patch.setattr(uncertain, "MOST_DENSE", 0)
            sparse = whole.cuts(w)
        assert sparse == pytest.approx(dense, abs=1e-12)


def test_memory_grows_with_the_symbols():
    peaks = []
    for size in (1_000, 2_000, 4_000):
        arguments = case(size, 0, False)
        tracemalloc.start()
        uncertain.extreme_means(arguments[0], arguments[1], 1, *arguments[2:])
        uncertain_set(size, 0).cuts(np.arange(5) / 2.0)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[-1] <= 3 * peaks[-2] <= 9 * peaks[-3]


@pytest.mark.parametrize("ties", [False, True])
def test_the_least_of_the_others(ties):
    for size in (2, 3, 40):
        values = case(size, size, ties)[0]
        found = np.take_along_axis(values, uncertain.least_others(values), axis=1)
        for s in range(size):
            others = np.delete(values, s, axis=1)
            np.testing.assert_array_equal(found[:, s], others.min(axis=1))


def test_many_points_share_the_steps_of_one(monkeypatch):
    """The extreme means of 800 sets of symbols for 60 secrets took 40 ms as 800 sorts."""
    steps = []
    whole = uncertain._least_taken

    def counted(values, *others):
        steps.append(len(values))
        return whole(values, *others)

    monkeypatch.setattr(uncertain, "_least_taken", counted)
    size = uncertain.MOST_DENSE + 1
    _, _, low, high = case(size, 0, False)
    values = np.random.default_rng(1).random((800, size))
    uncertain.extreme_means(values, values, 1, low, high)
    assert sum(steps) == 800
    assert len(steps) <= 800 * size / uncertain.AT_ONCE + 1
