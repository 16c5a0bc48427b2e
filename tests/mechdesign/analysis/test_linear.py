"""Identifiability and unbiased weights against exact rational arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from mechdesign.analysis.linear import (
    coefficients,
    covariance_of,
    errors_of_level,
    identify,
)

NAMES = ("a", "b", "c", "d")


def test_an_invertible_channel_identifies_every_symbol():
    known = identify(NAMES[:2], np.array([[0.75, 0.25], [0.25, 0.75]]))
    assert known.identified
    assert known.rank == 2
    assert known.groups == ((0,), (1,))
    assert known.condition == pytest.approx(2.0)
    assert known.identifies([1.0, 0.0])
    assert (
        known.statement()
        == "the frequencies of all 2 symbols can be estimated (the channel has rank 2)"
    )


def test_merged_symbols_are_known_by_their_sum_only():
    known = identify(NAMES, np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [1.0, 0.0]]))
    assert not known.identified
    assert known.rank == 2
    assert set(known.groups) == {(0, 3), (1, 2)}
    assert known.identifies([1, 0, 0, 1])
    assert known.identifies([2, -1, -1, 2])
    assert not known.identifies([1, 0, 0, 0])
    assert "rank 2 for 4 symbols" in known.statement()
    assert "{a, d}; {b, c}, only their sum" in known.statement()


def test_a_mixture_ties_all_symbols_of_the_dependence_together():
    half = np.array(
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]
    )
    known = identify(NAMES, half)
    assert known.rank == 3
    assert set(known.groups) == {(0, 1, 2), (3,)}
    # a + c/2 is what the first label shows, though neither a nor c is identified alone.
    assert known.identifies([1.0, 0.0, 0.5, 0.0])
    assert not known.identifies([1.0, 0.0, 0.0, 0.0])


def test_two_separate_dependences_stay_two_groups():
    matrix = np.zeros((6, 4))
    matrix[[0, 1]] = [0.5, 0.5, 0, 0]
    matrix[2] = [1, 0, 0, 0]
    matrix[[3, 4]] = [0, 0, 0.25, 0.75]
    matrix[5] = [0, 0, 1, 0]
    known = identify(tuple("abcdef"), matrix)
    assert set(known.groups) == {(0, 1), (2,), (3, 4), (5,)}


def test_rows_that_differ_by_exact_rounding_only_count_as_equal():
    tiny = 2.0**-53
    known = identify(NAMES[:2], np.array([[0.5, 0.5], [0.5 + tiny, 0.5 - tiny]]))
    assert known.groups == ((0, 1),)


def test_one_uninformative_output_identifies_the_total_alone():
    known = identify(NAMES, np.ones((4, 1)))
    assert known.groups == ((0, 1, 2, 3),)
    assert known.identifies([1, 1, 1, 1])


def test_weights_have_the_functionals_as_their_expectation_and_least_variance():
    rng = np.random.default_rng(0)
    matrix = rng.dirichlet(np.ones(5), 3)
    reference = np.full(3, 1 / 3) @ matrix
    b = coefficients(matrix, np.eye(3), reference, 3)
    np.testing.assert_allclose(matrix @ b, np.eye(3), atol=1e-12)
    # Any other solution adds a null vector of the channel, which is orthogonal in the metric of the variance.
    null = np.linalg.svd(matrix)[2][3:]
    np.testing.assert_allclose(null @ (reference[:, None] * b), 0.0, atol=1e-12)


def exact_moments(weights, masses, records):
    """Mean and covariance of the estimate over all samples of `records` labels, by enumeration."""
    from itertools import product

    k, m = weights.shape
    mean = np.zeros(m)
    second = np.zeros((m, m))
    spread = np.zeros((m, m))
    for sample in product(range(k), repeat=records):
        chance = float(np.prod([masses[y] for y in sample]))
        shares = np.bincount(sample, minlength=k) / records
        estimate = weights.T @ shares
        mean += chance * estimate
        second += chance * np.outer(estimate, estimate)
        spread += chance * covariance_of(weights, shares, records)
    return mean, second - np.outer(mean, mean), spread


def test_the_covariance_for_a_population_is_unbiased_by_enumeration():
    matrix = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])
    weights = coefficients(matrix, np.eye(2), np.full(3, 1 / 3), 2)
    masses = np.array([0.3, 0.7]) @ matrix
    mean, covariance, expected = exact_moments(weights, masses, 4)
    np.testing.assert_allclose(mean, [0.3, 0.7], atol=1e-12)
    np.testing.assert_allclose(expected, covariance, atol=1e-12)


def test_the_covariance_for_the_records_is_unbiased_by_enumeration():
    from itertools import product

    matrix = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])
    weights = coefficients(matrix, np.eye(2), np.full(3, 1 / 3), 2)
    symbols = (0, 1, 1, 0, 1)
    mean = np.zeros(2)
    second = np.zeros((2, 2))
    expected = np.zeros((2, 2))
    for sample in product(range(3), repeat=5):
        chance = float(
            np.prod([matrix[x, y] for x, y in zip(symbols, sample, strict=True)])
        )
        shares = np.bincount(sample, minlength=3) / 5
        estimate = weights.T @ shares
        mean += chance * estimate
        second += chance * np.outer(estimate, estimate)
        expected += chance * covariance_of(weights, shares, 5, np.diag(estimate))
    np.testing.assert_allclose(mean, [0.4, 0.6], atol=1e-12)
    np.testing.assert_allclose(expected, second - np.outer(mean, mean), atol=1e-12)


def test_expectation_in_rationals_for_randomised_response():
    """The textbook formula: (share - (1 - t)/2) / t for truth t."""
    truth = Fraction(3, 5)
    stay = float((1 + truth) / 2)
    matrix = np.array([[stay, 1 - stay], [1 - stay, stay]])
    weights = coefficients(matrix, np.eye(2), np.array([0.5, 0.5]), 2)
    expected = [[float(1 - (1 - truth) / 2) / 0.6, -float((1 - truth) / 2) / 0.6]]
    np.testing.assert_allclose(weights[:1], expected)


def test_long_groups_and_many_of_them_are_cut():
    from mechdesign.analysis.linear import group_name

    assert group_name(["a"]) == "a"
    assert group_name([f"x{i}" for i in range(23)]).endswith("x19, +3 more}")
    names = [f"x{i}" for i in range(60)]
    known = identify(names, np.repeat(np.eye(30), 2, axis=0))
    assert "{x0, x1}; {x2, x3}; " in known.statement()
    assert "{x38, x39} and 10 more such groups, only their sum" in known.statement()


@pytest.mark.parametrize(
    ("level", "errors"),
    [(0.95, 1.959964), (1e-12, 0.0), (1 - 2**-53, 8.292361)],
)
def test_every_level_has_a_width(level, errors):
    """The last one is the largest double below 1, whose upper tail is 0 in floating point."""
    assert errors_of_level(level) == pytest.approx(errors, abs=1e-6)
