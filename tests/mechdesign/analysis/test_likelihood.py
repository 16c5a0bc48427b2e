"""The maximum-likelihood fit against a general optimiser, and its certificate."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize

from mechdesign.analysis.likelihood import (
    DEFICIT,
    ROUNDING,
    _gap,
    _Likelihood,
    information_covariance,
    maximum_likelihood,
)
from mechdesign.core.errors import InputError


def general_optimum(matrix, counts):
    """The maximum by sequential quadratic programming from several starts."""
    size = len(matrix)
    seen = counts > 0

    def loss(p):
        return -(counts[seen] / counts.sum()) @ np.log(
            np.maximum(p @ matrix[:, seen], 1e-300)
        )

    def slope(p):
        q = np.maximum(p @ matrix[:, seen], 1e-300)
        return -(matrix[:, seen] @ (counts[seen] / counts.sum() / q))

    rng = np.random.default_rng(0)
    best = np.inf
    for start in [np.full(size, 1 / size), *rng.dirichlet(np.ones(size), 3)]:
        found = minimize(
            loss,
            start,
            jac=slope,
            method="SLSQP",
            bounds=[(0, 1)] * size,
            constraints={
                "type": "eq",
                "fun": lambda p: p.sum() - 1,
                "jac": lambda p: np.ones(size),
            },
            options={"maxiter": 500, "ftol": 1e-14},
        )
        p = np.maximum(found.x, 0)
        best = min(best, loss(p / p.sum()))
    return -best * counts.sum()


@pytest.mark.parametrize("seed", range(12))
def test_it_reaches_the_optimum_of_a_general_optimiser(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 9))
    outputs = int(rng.integers(2, 9))
    matrix = rng.dirichlet(np.full(outputs, 0.7), size)
    counts = rng.multinomial(
        int(rng.integers(5, 3000)), rng.dirichlet(np.full(outputs, 0.5))
    )
    fit = maximum_likelihood(matrix, counts)
    assert fit.converged
    assert fit.deficit <= DEFICIT + 2 * ROUNDING * counts.sum()
    assert fit.log_likelihood >= general_optimum(matrix, counts) - fit.deficit - 1e-9
    assert fit.frequencies.min() >= 0
    assert fit.frequencies.sum() == pytest.approx(1.0, abs=1e-12)


def test_the_certificate_bounds_the_deficit_of_an_unfinished_fit():
    rng = np.random.default_rng(5)
    matrix = rng.dirichlet(np.full(20, 0.3), 20)
    counts = rng.multinomial(100_000, rng.dirichlet(np.full(20, 0.5)))
    best = maximum_likelihood(matrix, counts)
    rough = maximum_likelihood(matrix, counts, iterations=1)
    assert not rough.converged
    assert best.log_likelihood - rough.log_likelihood <= rough.deficit
    assert rough.deficit > best.deficit


def test_more_cycles_never_lower_the_likelihood():
    rng = np.random.default_rng(6)
    matrix = rng.dirichlet(np.full(30, 0.2), 30)
    counts = rng.multinomial(1_000_000, rng.dirichlet(np.full(30, 0.5)))
    values = [
        maximum_likelihood(matrix, counts, iterations=k).log_likelihood
        for k in range(1, 6)
    ]
    assert all(later >= earlier - 1e-6 for earlier, later in pairwise(values))


def test_an_invertible_channel_gives_the_unbiased_solution_where_it_is_inside():
    matrix = np.array([[0.8, 0.2], [0.3, 0.7]])
    fit = maximum_likelihood(matrix, np.array([500, 500]))
    np.testing.assert_allclose(fit.frequencies, [0.4, 0.6], atol=1e-9)


def test_it_stays_at_the_boundary_where_the_unbiased_solution_is_outside():
    matrix = np.array([[0.8, 0.2], [0.3, 0.7]])
    fit = maximum_likelihood(matrix, np.array([900, 100]))
    np.testing.assert_allclose(fit.frequencies, [1.0, 0.0], atol=1e-12)


def test_a_billion_records_and_a_hundred_symbols_take_few_cycles():
    rng = np.random.default_rng(7)
    matrix = rng.dirichlet(np.full(100, 0.1), 100)
    counts = rng.multinomial(10**9, rng.dirichlet(np.ones(100)) @ matrix)
    fit = maximum_likelihood(matrix, counts)
    assert fit.converged
    assert fit.iterations <= 20
    assert fit.deficit <= 2 * ROUNDING * 1e9


def test_a_nearly_singular_channel_is_still_certified():
    base = np.full((12, 12), 1 / 12)
    matrix = base + 1e-3 * (np.eye(12) - base)
    counts = np.random.default_rng(8).multinomial(50_000, np.arange(1, 13) / 78)
    fit = maximum_likelihood(matrix, counts)
    assert fit.converged
    assert fit.log_likelihood >= general_optimum(matrix, counts) - 1e-6


def test_no_records_are_refused():
    with pytest.raises(InputError, match="no released records"):
        maximum_likelihood(np.eye(2), np.array([0, 0]))


def test_a_label_that_no_symbol_gives_is_refused():
    with pytest.raises(InputError, match="no symbol can give"):
        maximum_likelihood(np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([3, 1]))


def test_the_information_covariance_is_that_of_the_binomial_for_a_plain_column():
    fit = np.array([0.2, 0.8])
    covariance = information_covariance(np.eye(2), np.eye(2), fit, 100, 2)
    np.testing.assert_allclose(covariance, [[0.0016, -0.0016], [-0.0016, 0.0016]])


def test_the_certificate_is_attained():
    """A column published as it is, with one symbol only: the deficit of p is log 1/p(x) for each
    record, no less.
    """
    problem = _Likelihood(np.eye(2), np.array([10.0, 0.0]))
    p = np.array([0.7, 0.3])
    assert _gap(problem, p) == pytest.approx(-np.log(0.7))
    assert problem.value(np.array([1.0, 0.0])) - problem.value(p) == pytest.approx(
        _gap(problem, p)
    )
