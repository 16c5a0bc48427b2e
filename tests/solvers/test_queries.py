"""Least variance of queries, against closed forms, perturbed weights, and another solver."""

import itertools
import math

import cvxpy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.errors import BackendFailure
from solvers.purposes import query_newton
from solvers.purposes.queries import least_variance
from tests.profiles import scaled


def ratio_vertices(n, budget):
    """Posteriors of LDP channels of X for uniform P_X: entries of 1 or exp(budget), normalised."""
    high = math.exp(budget)
    rows = []
    for k in range(1, n):
        for chosen in itertools.combinations(range(n), k):
            row = np.ones(n)
            row[list(chosen)] = high
            rows.append(row / row.sum())
    rows.append(np.full(n, 1.0 / n))
    return np.array(rows)


def value_at(weights, points, point, gram):
    u = points / point
    return float(np.sum(gram * np.linalg.inv((u.T * weights) @ u)))


@pytest.mark.parametrize(("n", "budget"), [(4, 1.0), (6, 1.0), (8, 1.0), (6, 0.5)])
def test_the_histogram_under_ldp_is_subset_selection(n, budget):
    """Ye and Barg (2018): subset selection has the least total variance of the uniform histogram."""
    points = ratio_vertices(n, budget)
    point = np.full(n, 1.0 / n)
    result = least_variance(points, point, np.eye(n), gap=1e-6)
    high = math.exp(budget)
    variances = []
    for k in range(1, n):
        # Subset selection with sets of size k: chance of a symbol in the set if it is the true one.
        own = k * high / (k * high + n - k)
        other = (own * (k - 1) + (1 - own) * k) / (n - 1)
        spread = (
            sum(q * (1 - q) for q in [own / n + other * (n - 1) / n] * n)
            / (own - other) ** 2
        )
        variances.append(spread)
    offset = float(point @ point)
    assert result.value - offset == pytest.approx(min(variances), rel=1e-5)
    assert result.bound <= result.value


def test_eight_symbols_at_one_nat_have_the_published_variance():
    """Subset selection at n = 8, eps 1: 21.7365 / N beyond the variance of sampling."""
    point = np.full(8, 1.0 / 8)
    result = least_variance(ratio_vertices(8, 1.0), point, np.eye(8), gap=1e-6)
    sampling = 1.0 - 1.0 / 8
    noise = result.value - float(point @ point) - sampling
    assert noise == pytest.approx(21.7365, abs=1e-3)


@settings(max_examples=scaled(15), deadline=None)
@given(seed=st.integers(0, 10_000))
def test_no_other_weights_come_below_the_bound(seed):
    generator = np.random.default_rng(seed)
    n = 4
    point = generator.dirichlet(np.full(n, 2.0)) * 0.9 + 0.025
    # Random posteriors and the point's own simplex corners pulled in keep it in the hull.
    corners = 0.4 * np.eye(n) + 0.6 * point
    points = np.vstack(
        [corners, generator.dirichlet(np.ones(n), size=20) * 0.4 + 0.6 * point]
    )
    query = generator.normal(size=(3, n))
    gram = query.T @ query
    result = least_variance(points, point, gram, gap=1e-6)
    weights = cvxpy.Variable(len(points), nonneg=True)
    u = points / point
    information = sum(weights[k] * np.outer(u[k], u[k]) for k in range(len(points)))
    objective = sum(cvxpy.matrix_frac(row, information) for row in query)
    program = cvxpy.Problem(cvxpy.Minimize(objective), [points.T @ weights == point])
    program.solve(solver=cvxpy.CLARABEL)
    assert result.value == pytest.approx(program.value, rel=1e-4)
    assert result.bound <= program.value * (1 + 1e-6)
    found = result.points.toarray()
    assert value_at(result.weights, found, point, gram) == pytest.approx(
        result.value, rel=1e-4
    )
    np.testing.assert_allclose(found.T @ result.weights, point, rtol=1e-10)


def test_few_outputs_have_the_same_information():
    points = ratio_vertices(6, 1.0)
    point = np.full(6, 1.0 / 6)
    gram = np.tril(np.ones((6, 6)))
    gram = gram.T @ gram
    result = least_variance(points, point, gram, gap=1e-6)
    assert len(result.weights) <= 6 * 9 // 2
    found = result.points.toarray()
    assert value_at(result.weights, found, point, gram) == pytest.approx(
        result.value, rel=1e-6
    )


def test_a_wider_relaxation_lowers_the_bound():
    point = np.full(4, 0.25)
    narrow = ratio_vertices(4, 0.5)
    wide = ratio_vertices(4, 1.0)
    own = least_variance(narrow, point, np.eye(4), gap=1e-6)
    relaxed = least_variance(narrow, point, np.eye(4), gap=1e-6, relaxation=wide)
    best = least_variance(wide, point, np.eye(4), gap=1e-6)
    assert relaxed.bound <= best.value < own.bound


def test_posteriors_that_tell_nothing_are_refused():
    point = np.full(3, 1.0 / 3)
    with pytest.raises(BackendFailure, match="singular"):
        least_variance(point[None, :], point, np.eye(3), gap=1e-4)


def test_the_start_is_the_answer_where_no_step_is_left():
    """Weights that decompose the point are kept, with f at them."""
    point = np.array([0.2, 0.3, 0.5])
    points = np.vstack([np.eye(3), point])
    start = np.array([0.1, 0.15, 0.25, 0.5])
    found = least_variance(
        points, point, np.eye(3), gap=1e-9, end=-math.inf, start=start
    )
    u = points / point
    value = np.trace(np.linalg.inv((u.T * start) @ u))
    assert found.value <= value * (1 + 1e-12)
    assert np.allclose(found.points.combine(found.weights), point)


def test_both_sizes_of_the_hessian_give_one_step():
    """(H + D)^-1 by the columns, and by pairs of symbols (Woodbury)."""
    random = np.random.default_rng(5)
    point = random.dirichlet(np.ones(4))
    points = random.dirichlet(np.ones(4), size=9)
    method = query_newton.InteriorPoint(points, point, np.eye(4), None)
    factors = method._hessian_factors()
    assert np.allclose(factors @ factors.T, method._hessian())
