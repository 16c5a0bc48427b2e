"""Times of the deterministic designs; run with ``-m benchmark -s``. Targets are those of the issue."""

from __future__ import annotations

import time

import numpy as np
import pytest

from mechdesign.nonstochastic.noiseless import certify
from mechdesign.nonstochastic.quantizers import uniform_quantizer
from mechdesign.nonstochastic.queries import (
    integers,
    interval,
    linear_query,
    mean_query,
    sum_query,
)
from mechdesign.nonstochastic.thresholds_by_error import best_edges, least_distortion
from mechdesign.nonstochastic.thresholds_by_levels import most_levels

pytestmark = pytest.mark.benchmark


def timed(call):
    start = time.perf_counter()
    result = call()
    return result, time.perf_counter() - start


def test_partition_of_100_000_values():
    """At most 15 times the time of the smallest cells."""
    values = np.sort(np.random.default_rng(0).standard_normal(100_000))
    print("\n smallest   seconds")
    for smallest in (2, 3, 10, 48, 49, 100, 1_000, 10_000):
        edges, took = timed(lambda k=smallest: best_edges(values, k))
        assert min(np.diff(edges)) >= smallest
        print(f"{smallest:>9}{took:>10.2f}")


@pytest.mark.parametrize(
    ("name", "call"),
    [
        (
            "certify: mean of 10,000 integers 0..1000, 10,000 levels",
            lambda: certify(
                mean_query(10_000, integers(0, 1000)),
                uniform_quantizer(0, 1000, 10_000),
            ),
        ),
        (
            "certify: mean of 1,000,000 on an interval, 100,000 levels",
            lambda: certify(
                mean_query(10**6, interval(0, 1)), uniform_quantizer(0, 1, 100_000)
            ),
        ),
        (
            "most levels: mean of 50 integers 0..300 (15,001 answers)",
            lambda: most_levels(mean_query(50, integers(0, 300)), 2),
        ),
        (
            "most levels: 10 a + b + 3 c on 0..4, by MILP",
            lambda: most_levels(linear_query([10, 1, 3], integers(0, 4)), 2),
        ),
        (
            "least distortion: sum of 5 integers 0..10, K = 3",
            lambda: least_distortion(sum_query(5, integers(0, 10)), 1.6),
        ),
    ],
)
def test_designs(name, call):
    result, took = timed(call)
    assert result is not None
    print(f"\n{name}: {took:.2f} s")
