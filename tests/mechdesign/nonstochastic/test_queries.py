"""Domains, queries and fibres."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechdesign.core.errors import InputError
from mechdesign.nonstochastic import fibres
from mechdesign.nonstochastic.fibres import sumset
from mechdesign.nonstochastic.queries import (
    LinearQuery,
    OrderStatistic,
    count_query,
    finite,
    identity_query,
    integers,
    interval,
    linear_query,
    mean_query,
    median_query,
    sum_query,
)

small_sets = st.lists(st.integers(-30, 40), min_size=1, max_size=4)


@given(
    st.lists(st.tuples(small_sets, st.integers(0, 3)), min_size=1, max_size=3),
    st.sampled_from([0, 1000]),
)
def test_sumset_by_enumeration(parts, most_pairs):
    """By runs and by convolution."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fibres, "MOST_PAIRS", most_pairs)
        sums = sumset(parts)
    members = []
    for values, count in parts:
        members += [values] * count
    expected = {sum(choice) for choice in itertools.product(*members)}
    assert sums is not None
    assert sums.tolist() == sorted(expected)


def test_sumset_of_wide_sets():
    big = [0, 1, 10**12]
    assert sumset([(big, 2)]).tolist() == sorted({a + b for a in big for b in big})
    assert sumset([([0, 2**61], 2)]) is None


def test_too_many_sums(monkeypatch):
    """Too wide for a convolution, and too many runs."""
    monkeypatch.setattr(fibres, "LARGEST_SUMSET", 1000)
    assert sumset([([0, 3**k, 10**9 + 7 * k], 3) for k in range(10, 15)]) is None


def test_many_sums_of_a_sparse_set_are_added_one_by_one(monkeypatch):
    """Half of them at once would be too many pairs."""
    monkeypatch.setattr(fibres, "LARGEST_SUMSET", 700)
    small = [0, 1, 10**9]
    sums = sumset([(small, 20)])
    assert sums.tolist() == sorted(
        {a + b * 10**9 for a in range(21) for b in range(21 - a)}
    )


def test_sumset_of_many_is_a_run():
    assert np.array_equal(sumset([(range(101), 10_000)]), np.arange(1_000_001))


@given(
    st.lists(st.integers(-5, 5), min_size=1, max_size=3),
    st.lists(st.integers(0, 9), min_size=1, max_size=3),
)
def test_range_and_sensitivity_by_enumeration(weights, values):
    domain = finite(values)
    query = linear_query(weights, domain)
    data = list(itertools.product(domain.values, repeat=len(weights)))
    answers = [sum(w * x for w, x in zip(weights, row, strict=True)) for row in data]
    assert query.range == (min(answers), max(answers))
    assert query.sensitivity == max(abs(w) for w in weights) * (
        max(values) - min(values)
    )


def test_shapes_of_queries():
    unit = interval(0, 1)
    assert mean_query(4, unit).sensitivity == Fraction(1, 4)
    assert sum_query(4, unit).range == (0, 4)
    assert count_query(5).range == (0, 5)
    assert identity_query(unit).sensitivity == 1
    assert median_query(5, unit) == OrderStatistic(3, 5, unit)
    assert median_query(6, unit) == OrderStatistic(3, 6, unit, middle=2)
    assert median_query(6, unit).sensitivity == Fraction(1, 2)
    assert (
        linear_query([1, 1, 2], unit).blocks
        == LinearQuery(linear_query([2, 1, 1], unit).blocks[::-1]).blocks
    )


def test_floats_are_what_their_bits_say():
    assert interval(0, 0.1).hi == Fraction(0.1) != Fraction(1, 10)
    assert interval(0, "0.1").hi == Fraction(1, 10)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: interval(1, 0), "reversed"),
        (lambda: interval(math.nan, 0), "lower end of the range.*not a finite number"),
        (lambda: interval(0, math.inf), "upper end of the range"),
        (lambda: interval(0, "x"), "is not a number"),
        (lambda: integers(3, 2), "reversed"),
        (lambda: finite([]), "empty"),
        (lambda: finite([0, math.nan]), "not a finite number"),
        (lambda: mean_query(0, interval(0, 1)), "individuals"),
        (lambda: mean_query(True, interval(0, 1)), "individuals"),
        (lambda: linear_query([], interval(0, 1)), "at least one individual"),
        (lambda: linear_query([1, 2], [interval(0, 1)]), "need 2 domains"),
        (lambda: linear_query([math.nan], interval(0, 1)), "weight 1"),
        (lambda: OrderStatistic(4, 3, interval(0, 1)), "rank"),
        (lambda: OrderStatistic(2, 3, interval(0, 1), middle=2), "of an even number"),
        (lambda: OrderStatistic(1, 4, interval(0, 1), middle=2), "of an even number"),
        (lambda: OrderStatistic(1, 2, interval(0, 1), middle=3), "of an even number"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(InputError, match=message):
        make()
