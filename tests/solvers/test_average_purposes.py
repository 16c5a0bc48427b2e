"""Purposes within an average: against linear programs over dense grids of posteriors."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from solvers import Polytope
from solvers.average.assignment_convex import Total
from solvers.average.goals import Master
from solvers.average.problem import Leakage, Measure
from solvers.average.purposes import QueryPurpose, TaskPurpose, best_within
from solvers.points import Points
from solvers.proving import proven_task_within, proven_variance_within
from tests.profiles import scaled

STEPS = 24
GRID = np.array(
    [
        (i / STEPS, j / STEPS, (STEPS - i - j) / STEPS)
        for i, j in itertools.product(range(STEPS + 1), repeat=2)
        if i + j <= STEPS
    ]
)


def entropy(columns):
    positive = np.where(columns > 0, columns, 1.0)
    return -(positive * np.log(positive)).sum(axis=0)


def total_of(table, measure, budget):
    secrets = table.sum(axis=1)
    matrix = table / table.sum(axis=0) / secrets[:, None]
    return Total(Leakage(measure, secrets), matrix, budget)


def tables(rows):
    cells = st.lists(st.integers(1, 20), min_size=3, max_size=3)
    return st.lists(cells, min_size=rows, max_size=rows).map(
        lambda counts: np.array(counts) / np.sum(counts)
    )


@settings(max_examples=scaled(20), deadline=None)
@given(
    tables(3),
    tables(2),
    st.floats(0.003, 0.2),
    st.sampled_from(list(Measure)),
    st.booleans(),
)
def test_tasks_against_a_grid(table, task, share, measure, limited):
    """bound <= any channel on the grid, and value <= the best of them but for what grids miss."""
    point = table.sum(axis=0)
    given_x = task / task.sum(axis=0)
    total = total_of(table, measure, share)
    polytope = None
    grid = np.vstack([GRID, point])
    if limited:
        lifts = total.matrix
        ends = np.full(3, 1.3)
        polytope = Polytope(lifts, 1.0 / ends, ends)
        grid = grid[polytope.excess(grid) <= 0.0]
    found = best_within(
        TaskPurpose(given_x),
        total,
        point,
        polytope,
        polytope,
        is_proven=lambda value, bound: value - bound <= 1e-6,
    )
    costs = entropy(given_x @ grid.T)
    leaks = total.leakage.of_lifts(grid @ total.matrix.T)
    best = linprog(costs, A_ub=leaks[None, :], b_ub=[share], A_eq=grid.T, b_eq=point)
    assert found.bound <= best.fun + 1e-9
    assert found.value <= best.fun + 1e-3
    assert found.value - found.bound <= 2e-4
    assert found.weights @ found.points == pytest.approx(point, abs=1e-9)
    leaked = found.weights @ total.leakage.of_lifts(found.points @ total.matrix.T)
    assert leaked <= share * (1 + 1e-7)
    if polytope is not None:
        assert polytope.excess(found.points).max() <= 1e-9


@settings(max_examples=scaled(30), deadline=None)
@given(
    tables(3),
    tables(2),
    st.floats(0.003, 0.2),
    st.sampled_from(list(Measure)),
    st.lists(st.floats(-1.0, 1.0), min_size=3, max_size=3),
    st.sampled_from([0.0, 1e-3, 0.3]),
)
def test_no_prices_prove_more_than_channels_reach(
    table, task, share, measure, noise, size
):
    """Of the task no more than the best channel on a grid; of queries than a mixture of X."""
    point = table.sum(axis=0)
    given_x = task / task.sum(axis=0)
    total = total_of(table, measure, share)
    grid = np.vstack([GRID, point])
    leaks = total.leakage.of_lifts(grid @ total.matrix.T)
    best = linprog(
        entropy(given_x @ grid.T),
        A_ub=leaks[None, :],
        b_ub=[share],
        A_eq=grid.T,
        b_eq=point,
    )
    found = best_within(
        TaskPurpose(given_x),
        total,
        point,
        None,
        None,
        is_proven=lambda value, bound: value - bound <= 1e-4,
    )
    # The prices of the optimum prove its bound; others prove less.
    prices = found.prices + size * np.array(noise)
    charge = found.charge
    touched = np.zeros((0, 3)) if found.touched is None else found.touched
    proven = proven_task_within(total, None, point, given_x, prices, charge, touched)
    assert proven <= best.fun + 1e-9
    if size == 0.0:
        assert proven >= found.bound - 1e-8
    leaks = total.leakage.of_lifts(np.eye(3) @ total.matrix.T)
    kept = min(1.0, share / max(float(point @ leaks), 1e-12))
    points = np.vstack([np.eye(3), point])
    weights = np.append(kept * point, 1.0 - kept)
    u = points / point
    inverse = np.linalg.inv((u.T * weights) @ u)
    least = proven_variance_within(
        total, None, point, np.eye(3), prices, inverse, charge, touched
    )
    assert least <= variance(weights, points, point, np.eye(3)) * (1 + 1e-9)


def variance(weights, points, point, gram):
    u = points / point
    return float(np.trace(gram @ np.linalg.inv((u.T * weights) @ u)))


@settings(max_examples=scaled(4), deadline=None)
@given(tables(3), st.floats(0.01, 0.2), st.sampled_from(["mi", "tv", "chi2"]))
def test_queries_are_near_their_bound(table, share, measure):
    """The value is that of the weights; mixtures of known channels do no better than the bound."""
    point = table.sum(axis=0)
    total = total_of(table, Measure(measure), share)
    gram = np.eye(3)
    found = best_within(
        QueryPurpose(gram, 1e-3),
        total,
        point,
        None,
        None,
        is_proven=lambda value, bound: value - bound <= 1e-3 * value,
    )
    assert found.value == pytest.approx(
        variance(found.weights, found.points, point, gram), rel=1e-6
    )
    assert 0.95 * found.value <= found.bound <= found.value * (1 + 1e-9)
    assert found.weights @ found.points == pytest.approx(point, abs=1e-8)
    leaks = total.leakage.of_lifts(np.eye(3) @ total.matrix.T)
    # X itself as often as the budget allows, and some randomised response else.
    most = min(1.0, share / max(float(point @ leaks), 1e-12))
    for kept in (0.3 * most, 0.9 * most):
        points = np.vstack([np.eye(3), point])
        weights = np.append(kept * point, 1.0 - kept)
        if kept > 0.0:
            assert found.bound <= variance(weights, points, point, gram) * (1 + 1e-9)


def test_a_budget_that_does_not_bind_changes_nothing():
    table = np.array([[8, 1, 3], [2, 9, 3], [2, 2, 6]]) / 36
    point = table.sum(axis=0)
    total = total_of(table, Measure.MUTUAL_INFORMATION, 2.0)
    found = best_within(
        QueryPurpose(np.eye(3), 1e-4),
        total,
        point,
        None,
        None,
        is_proven=lambda value, bound: value - bound <= 1e-4 * value,
    )
    # X itself: M is the inverse of the frequencies.
    assert found.value == pytest.approx(1.0, rel=2e-2)
    assert found.bound <= 1.0 + 1e-9
    task = TaskPurpose(np.array([[0.9, 0.2, 0.5], [0.1, 0.8, 0.5]]))
    of_task = best_within(
        task, total, point, None, None, is_proven=lambda value, bound: math.inf < value
    )
    assert of_task.value == pytest.approx(float(point @ entropy(task.task)), abs=1e-9)


def test_what_the_search_proved_of_many_symbols_is_proven_again():
    """15 symbols: with other tangents than those of the search the cells are too many."""
    generator = np.random.default_rng(4)
    table = generator.dirichlet(np.full(15, 3.0), size=6) / 6.0
    point = table.sum(axis=0)
    given_x = generator.dirichlet((1.0, 1.0), size=15).T
    whole = total_of(table, Measure.MUTUAL_INFORMATION, 1.0)
    most = float(point @ whole.leakage.of_lifts(whole.matrix.T))
    total = total_of(table, Measure.MUTUAL_INFORMATION, 0.5 * most)
    found = best_within(
        TaskPurpose(given_x),
        total,
        point,
        None,
        None,
        is_proven=lambda value, bound: value - bound <= 1e-6,
    )
    assert found.bound < found.value - 1e-6
    proven = proven_task_within(
        total, None, point, given_x, found.prices, found.charge, found.touched
    )
    assert proven == pytest.approx(found.bound, abs=1e-7)


def test_costs_that_are_scaled_down_have_the_same_channel_and_their_own_prices():
    """Of channels that tell next to nothing apart they were 8e8, and HiGHS gave up on some."""
    rng = np.random.default_rng(3)
    point = np.array([0.5, 0.3, 0.2])
    points = np.vstack([point, np.eye(3), rng.dirichlet(np.ones(3), 6)])
    loads = np.concatenate([[0.0], rng.uniform(0.5, 2.0, 9)])
    costs = -loads - 0.1 * rng.random(10)
    answers = []
    for factor in (1.0, 1e10):
        program = Master(point, np.array([0.4]))
        program.add(Points.from_dense(points), np.zeros(10), loads[None, :])
        program.change_costs(factor * costs)
        answer = program.solve(10.0)
        assert answer is not None
        answers.append(answer)
    usual, large = answers
    assert large.weights == pytest.approx(usual.weights, abs=1e-9)
    assert large.prices == pytest.approx(1e10 * usual.prices, rel=1e-6)
    assert large.multipliers == pytest.approx(1e10 * usual.multipliers, rel=1e-6)
    assert float(usual.multipliers[0]) > 0.0
