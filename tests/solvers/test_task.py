"""The channel that tells most about another column, against grids of posteriors and its two ways."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import solvers.purposes.task as task_module
from solvers import EmptyPolytope, Polytope
from solvers.points import entropy_terms
from solvers.purposes.task import task_envelope
from tests.profiles import scaled


def lift_polytope(joint, budget):
    """Posteriors whose lifts lie between exp(-budget) and exp(budget)."""
    lift = joint / np.outer(joint.sum(axis=1), joint.sum(axis=0))
    size = len(lift)
    return Polytope(
        lift, np.full(size, math.exp(-budget)), np.full(size, math.exp(budget))
    )


def random_tables(seed, s=2, n=3, t=2):
    generator = np.random.default_rng(seed)
    joint = generator.dirichlet(np.full(s * n, 0.7)).reshape(s, n) + 1e-3
    joint /= joint.sum()
    given_x = generator.dirichlet(np.full(t, 0.5), size=n).T
    return joint, given_x


def grid_value(polytope, point, given_x, parts=60):
    """The same program over a grid of posteriors of three symbols: an upper bound of the optimum."""
    grid = [
        (i / parts, j / parts, 1.0 - (i + j) / parts)
        for i in range(parts + 1)
        for j in range(parts + 1 - i)
    ]
    points = np.vstack([np.array(grid), point])
    points = points[polytope.contains(points, 0.0) | (points == point).all(axis=1)]
    costs = entropy_terms(np.clip(points @ given_x.T, 0, 1)).sum(axis=1)
    solved = linprog(costs, A_eq=points.T, b_eq=point, bounds=(0, None))
    assert solved.status == 0
    return solved.fun


@settings(max_examples=scaled(25), deadline=None)
@given(
    seed=st.integers(0, 10_000),
    budget=st.sampled_from([0.1, 0.3, 1.0]),
    t=st.integers(2, 3),
)
def test_the_bound_is_below_every_grid_and_the_value_near_it(seed, budget, t):
    joint, given_x = random_tables(seed, t=t)
    point = joint.sum(axis=0)
    polytope = lift_polytope(joint, budget)
    result = task_envelope(polytope, polytope, point, given_x, gap=1e-6)
    best_of_grid = grid_value(polytope, point, given_x)
    assert result.bound <= best_of_grid + 1e-9
    assert result.value <= best_of_grid + 1e-6
    assert result.bound <= result.value <= result.bound + 1e-6
    np.testing.assert_allclose(result.points.combine(result.weights), point, atol=1e-9)
    assert polytope.contains(result.points.toarray()).all()


@pytest.mark.parametrize("seed", range(6))
def test_branching_and_listed_vertices_agree(seed, monkeypatch):
    joint, given_x = random_tables(seed, s=3, n=7, t=2)
    point = joint.sum(axis=0)
    polytope = lift_polytope(joint, 0.4)
    listed = task_envelope(polytope, polytope, point, given_x, gap=1e-6)
    assert listed.nodes == 0
    monkeypatch.setattr(task_module, "MOST_VERTICES", 1)
    branched = task_envelope(polytope, polytope, point, given_x, gap=1e-6)
    assert branched.nodes > 0
    assert branched.value == pytest.approx(listed.value, abs=3e-6)
    # Each bound is one on the other's value, too.
    assert max(branched.bound, listed.bound) <= min(branched.value, listed.value) + 1e-9


def test_the_bound_holds_for_the_relaxation_where_columns_lie_in_a_smaller_set():
    joint, given_x = random_tables(3, s=3, n=6)
    point = joint.sum(axis=0)
    outer = lift_polytope(joint, 0.5)
    inner = lift_polytope(joint, 0.3)
    wide = task_envelope(outer, outer, point, given_x, gap=1e-6)
    narrow = task_envelope(inner, outer, point, given_x, gap=1e-6)
    assert narrow.bound <= wide.value + 1e-9
    assert narrow.value >= wide.value - 1e-9


def test_a_time_that_is_over_leaves_a_decomposition_and_a_bound(monkeypatch):
    monkeypatch.setattr(task_module, "MOST_VERTICES", 1)
    joint, given_x = random_tables(5, s=3, n=12, t=4)
    point = joint.sum(axis=0)
    polytope = lift_polytope(joint, 0.3)
    late = task_envelope(polytope, polytope, point, given_x, gap=1e-9, end=0.0)
    assert 0.0 <= late.bound < late.value
    assert late.prices is not None
    np.testing.assert_allclose(late.points.combine(late.weights), point, atol=1e-9)


def test_a_point_outside_is_refused():
    polytope = Polytope(np.eye(2), np.zeros(2), np.array([0.4, 1.0]))
    with pytest.raises(EmptyPolytope, match="not a member"):
        task_envelope(polytope, polytope, np.array([0.5, 0.5]), np.eye(2), gap=1e-6)


def test_without_time_members_towards_each_symbol_are_the_answer(monkeypatch):
    """2,000 symbols solved a master for 21 s of a limit of 2 s."""
    joint, given_x = random_tables(3, s=3, n=6, t=2)
    point = joint.sum(axis=0)
    polytope = lift_polytope(joint, 0.5)
    best = task_envelope(polytope, polytope, point, given_x, gap=1e-6)

    def refused(*_):
        raise AssertionError("a master after the end")

    monkeypatch.setattr(task_module.HighsMaster, "solve", refused)
    found = task_envelope(polytope, polytope, point, given_x, gap=1e-6, end=-math.inf)
    assert found.points.combine(found.weights) == pytest.approx(point, abs=1e-9)
    assert polytope.excess(found.points.toarray()).max() <= 1e-9
    nothing = entropy_terms(given_x @ point).sum()
    assert best.value - 1e-9 <= found.value < nothing
    assert found.bound <= best.value
