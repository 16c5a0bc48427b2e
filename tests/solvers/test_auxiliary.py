"""Membership with auxiliary variables, against elimination and against linear programs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from solvers import (
    InvalidPolytope,
    OutsidePolytope,
    Polytope,
    TooManyVertices,
    lower_envelope,
)
from solvers.enumeration import explicit_rows
from tests.oracles.concave_minimum import concave_minimum


def l1_ball(d: np.ndarray, radius: float) -> Polytope:
    """{v : sum of the positive parts of d v <= radius}, one auxiliary variable for each row of d."""
    m, n = d.shape
    return Polytope(
        np.vstack([d, np.zeros(n)]),
        np.full(m + 1, -np.inf),
        np.append(np.zeros(m), radius),
        np.vstack([-np.eye(m), np.ones(m)]),
    )


def ratio_set(a: np.ndarray, ratio: float) -> Polytope:
    """{v : t <= a v <= ratio t for some t}."""
    m = len(a)
    free = np.full(m, np.inf)
    return Polytope(
        np.vstack([a, a]),
        np.concatenate([np.zeros(m), -free]),
        np.concatenate([free, np.zeros(m)]),
        np.concatenate([np.full(m, -1.0), np.full(m, -ratio)])[:, None],
    )


def random_set(rng: np.random.Generator) -> Polytope:
    m = int(rng.integers(1, 5))
    n = int(rng.integers(2, 7))
    if rng.random() < 0.5:
        return l1_ball(rng.normal(size=(m, n)), rng.uniform(0.05, 1.0))
    return ratio_set(rng.uniform(0.1, 2.0, (m, n)), rng.uniform(1.1, 4.0))


def feasible_by_program(polytope: Polytope, v: np.ndarray) -> float:
    """The smallest uniform relaxation of the rows that admits some auxiliary values, by scipy."""
    k = polytope.auxiliary.shape[1]
    has_upper = np.isfinite(polytope.upper)
    has_lower = np.isfinite(polytope.lower)
    weights = np.vstack([polytope.auxiliary[has_upper], -polytope.auxiliary[has_lower]])
    w = polytope.rows @ v
    room = np.concatenate(
        [
            polytope.upper[has_upper] - w[has_upper],
            w[has_lower] - polytope.lower[has_lower],
        ]
    )
    found = linprog(
        np.append(np.zeros(k), 1.0),
        A_ub=np.hstack([weights, -np.ones((len(room), 1))]),
        b_ub=room,
        bounds=[(0, None)] * k + [(None, None)],
    )
    return float(found.fun)


@given(st.integers(0, 10**6))
def test_a_point_is_a_member_where_a_program_finds_auxiliary_values(seed):
    rng = np.random.default_rng(seed)
    polytope = random_set(rng)
    assert polytope.least is not None
    for v in rng.dirichlet(np.full(polytope.n, 0.5), 5):
        relaxation = feasible_by_program(polytope, v)
        if abs(relaxation) > 1e-7:
            assert (polytope.residual(v)[0] <= 1e-9) == (relaxation < 0.0)


@given(st.integers(0, 10**6))
def test_the_separating_inequality_holds_on_the_set_and_fails_at_the_point(seed):
    rng = np.random.default_rng(seed)
    polytope = random_set(rng)
    points = rng.dirichlet(np.full(polytope.n, 0.5), 200)
    excess = polytope.least.excess(lambda matrix: points @ matrix.T).max(axis=1)
    inside = excess <= 0.0
    for v in points[excess > 1e-9][:5]:
        normal, offset = polytope.least.separation(v)
        assert normal @ v > offset
        assert (points[inside] @ normal <= offset + 1e-12).all()


@given(st.integers(0, 10**6))
def test_elimination_describes_the_same_set(seed):
    rng = np.random.default_rng(seed)
    polytope = random_set(rng)
    explicit = polytope.explicit
    assert explicit.auxiliary is None
    points = rng.dirichlet(np.full(polytope.n, 0.5), 50)
    excess = (points @ explicit.rows.T - explicit.upper).max(axis=1)
    clear = np.abs(excess) > 1e-9
    least = polytope.least.excess(lambda matrix: points @ matrix.T).max(axis=1)
    assert ((least <= 0.0)[clear] == (excess <= 0.0)[clear]).all()


def test_there_is_no_least_choice_where_a_row_trades_variables():
    """r1 - r2 <= v: raising r2 allows more r1."""
    trading = Polytope(
        np.array([[1.0, 0.0]]),
        np.array([-np.inf]),
        np.array([0.5]),
        np.array([[-1.0, -1.0]]),
    )
    assert trading.least is None
    assert trading.contains([1.0, 0.0]).all()  # enough r is always there


def test_an_unbounded_auxiliary_variable_is_refused():
    open_set = Polytope(
        np.array([[1.0, 0.0]]), np.array([-np.inf]), np.array([0.5]), np.array([[-1.0]])
    )
    with pytest.raises(
        InvalidPolytope, match="auxiliary variable 0 is not bounded by any row"
    ):
        concave_minimum(open_set, np.zeros(2))


def test_a_shared_row_bounds_every_variable_of_it():
    """The minimum of the entropy over an l1 ball around the centre, against a scan of the simplex."""
    d = np.eye(3) - 1.0 / 3.0
    ball = l1_ball(d, 0.3)
    grid = (
        np.array([[i, j, 60 - i - j] for i in range(61) for j in range(61 - i)]) / 60.0
    )
    inside = grid[np.maximum(grid @ d.T, 0.0).sum(axis=1) <= 0.3 + 1e-12]
    entropy = -np.where(
        inside > 0, inside * np.log(np.where(inside > 0, inside, 1.0)), 0.0
    ).sum(axis=1)
    found = concave_minimum(ball, np.zeros(3), tolerance=1e-9)
    assert found.value <= entropy.min() + 1e-9
    assert found.bound == pytest.approx(found.value, abs=1e-8)
    assert ball.contains(found.point).all()


def test_points_outside_and_too_many_rows_are_said_so():
    rng = np.random.default_rng(0)
    wide = l1_ball(rng.normal(size=(12, 6)), 0.2)
    corner = np.eye(6)[0]
    with pytest.raises(OutsidePolytope, match="a combination of rows gives"):
        lower_envelope(l1_ball(np.eye(6) - 1.0 / 6.0, 0.2), corner)
    centred = rng.normal(size=(12, 6))
    centred -= centred.mean(axis=1, keepdims=True)
    with pytest.raises(
        TooManyVertices, match='too many to enumerate vertices; use method="columns"'
    ):
        lower_envelope(l1_ball(centred, 0.2), np.full(6, 1 / 6), method="vertices")
    assert lower_envelope(l1_ball(centred, 0.2), np.full(6, 1 / 6)).method == "columns"
    assert explicit_rows(wide) >= 2**12
