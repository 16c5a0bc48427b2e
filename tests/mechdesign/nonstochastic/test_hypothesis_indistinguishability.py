"""Indistinguishability: the tight number of levels, and where formulas for boxes stop."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from mechdesign.core.errors import InputError
from mechdesign.nonstochastic.indistinguishability import (
    averaging_leakage,
    box_difference,
    individual_leakage,
    linear_levels,
)
from tests.oracles.nonstochastic import (
    finite_difference,
    is_indistinguishable,
    largest_difference,
    shift_bound,
)
from tests.oracles.spaces import from_channel, from_function


@pytest.mark.parametrize("n", [2, 3, 5, 10, 40])
@pytest.mark.parametrize("epsilon", [1, 2, 3])
def test_example_4_averaging_attains_the_tight_count(n, epsilon):
    """docs/explanation/ranges-theory.md, 'Hypothesis testing': q <= n (2^(eps-1) + 1) - 1 for
    averaging, and one more level breaks the budget.
    """
    choice = linear_levels(epsilon, [Fraction(1, n)] * n, (0, 1))
    assert choice.levels == n * (2 ** (epsilon - 1) + 1) - 1
    assert choice.levels > max(1, n * (2 ** (epsilon - 1) - 1)), (
        "more than Theorem 5 grants"
    )
    assert box_difference([1] * n, (0, 1), choice.levels) == 2**epsilon
    assert box_difference([1] * n, (0, 1), choice.levels + 1) == 2**epsilon + 1


def test_finite_domains_can_break_what_holds_for_boxes():
    """docs/explanation/corrections.md, 'Hypothesis testing': c = (11, 10, 7), x in {0, 1, 2}, eps
    3, q = 10 <= (w/d) 2^(eps-1): 10 > 8 outputs.
    """
    coefficients, levels = (11, 10, 7), 10
    ratio = linear_levels(3, coefficients, (0, 2)).ratio
    assert levels <= ratio * 2 ** (3 - 1)
    assert box_difference(coefficients, (0, 2), levels) <= 8
    individual, found = finite_difference(coefficients, [range(3)] * 3, levels)
    assert found.size == 10
    assert (individual, set(found.pair)) == (2, {0, 2})


def test_the_budget_may_be_any_number_of_bits():
    choice = linear_levels(1.6, [1, 1], (0, 1))
    assert choice.levels == 4
    assert box_difference([1, 1], (0, 1), 4) <= 3
    assert linear_levels(0, [1, 1, 1], (0, 1)).levels == 3
    assert box_difference([1, 1, 1], (0, 1), 3) == 1


def test_unequal_coefficients_and_bounds():
    choice = linear_levels(2, [1, -2, 0], [(0, 1), (0, 3), (5, 6)])
    assert choice.ratio == Fraction(7, 6)
    assert box_difference([1, -2, 0], [(0, 1), (0, 3), (5, 6)], choice.levels) <= 4


def test_a_single_individual_shows_two_cells_at_most():
    """With nobody else, each value gives one output: two differ, whatever the number of levels."""
    assert box_difference([1], (0, 1), 1000) == 2
    assert shift_bound(1000, Fraction(1)) == 1999
    assert shift_bound(1, Fraction(5)) == 0


def test_the_largest_difference_names_the_pair():
    joint = from_channel({"a": [1, 2], "b": [2, 3], "c": [4, 5, 6]}.__getitem__, "abc")
    found = largest_difference(joint)
    assert found.size == 5
    assert "c" in found.pair
    assert is_indistinguishable(joint, math.log2(5) + 1e-9)
    assert not is_indistinguishable(joint, 2)
    assert largest_difference(from_function(lambda _: 0, "ab")).size == 0


def test_blocks_of_the_table_of_differences_do_not_matter(monkeypatch):
    joint = from_channel(
        lambda x: {k for k in range(12) if (x >> (k % 5)) & 1 or k == x % 12}, range(30)
    )
    whole = largest_difference(joint)
    monkeypatch.setattr("tests.oracles.nonstochastic.CELLS_AT_A_TIME", 100)
    by_blocks = largest_difference(joint)
    assert by_blocks.size == whole.size
    a, b = (joint.y_given(x) for x in by_blocks.pair)
    assert len(a ^ b) == whole.size


def test_leakage_of_quantised_means():
    """For q >= n the end cell {sum < n/q} is a simplex of volume (n/q)^n / n!."""
    assert averaging_leakage(3, 6) == pytest.approx(-math.log(0.5**3 / 6))
    assert averaging_leakage(2, 2) == pytest.approx(math.log(2))
    assert averaging_leakage(7, 1) == 0
    assert individual_leakage(4, 12) == pytest.approx(math.log(3))
    assert individual_leakage(4, 3) == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: linear_levels(1, [], (0, 1)), "at least one coefficient"),
        (
            lambda: linear_levels(1, [0, 0], (0, 1)),
            "the query is constant on these bounds",
        ),
        (lambda: linear_levels(1, [1], (1, 0)), "is reversed"),
        (lambda: linear_levels(1, [1], (0, math.nan)), "not a pair of finite numbers"),
        (
            lambda: linear_levels(1, [1, 1, 1], [(0, 1), (0, 1)]),
            r"one \(low, high\) pair or 3 of them, not 2",
        ),
        (lambda: linear_levels(-1, [1], (0, 1)), "allows fewer than one output"),
        (
            lambda: box_difference([1], (0, 1), 0),
            r"levels \('0'\) must be an integer of at least 1",
        ),
        (lambda: finite_difference([1], [[]], 2), "domain 1 is empty"),
        (
            lambda: finite_difference([1, 2], [[1]], 2),
            "one domain for each coefficient, not 1 for 2",
        ),
        (
            lambda: finite_difference([1], [[1]], 2),
            "the query is constant on these domains",
        ),
        (
            lambda: finite_difference([1], [[1, 2]], 0),
            r"levels \(0\) must be at least 1",
        ),
        (lambda: finite_difference([2**60], [[0, 1]], 9), "do not fit 64-bit integers"),
        (
            lambda: averaging_leakage(0, 2),
            r"n \('0'\) must be an integer of at least 1",
        ),
        (
            lambda: individual_leakage(2, 1.5),
            r"levels \('1.5'\) must be an integer of at least 1",
        ),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_sums_too_many_to_list_are_refused(monkeypatch):
    monkeypatch.setattr("tests.oracles.nonstochastic.sumset", lambda parts: None)
    with pytest.raises(
        InputError, match="too many values without individual 1; use rounder numbers"
    ):
        finite_difference([1, 1], [range(3), range(3)], 2)
