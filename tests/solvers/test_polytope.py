"""The half-space description: what it refuses, membership, elimination of auxiliary variables,
faces.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from solvers.errors import InvalidPolytope
from solvers.sets.polytope import MEMBERSHIP_TOLERANCE, Polytope
from tests.solvers.reference import ratio_polytope

INF = np.inf


def test_dimensions_and_frozen_arrays():
    rows = np.array([[1.0, 2.0, 3.0], [0.0, 1.0, 0.0]])
    polytope = Polytope(rows, np.array([1.0, -INF]), np.array([2.0, 0.5]))
    assert (polytope.n, polytope.m) == (3, 2)
    rows[0, 0] = 9.0
    assert polytope.rows[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        polytope.rows[0, 0] = 9.0
    assert polytope.explicit is polytope


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, 2.0], [0.0], [1.0]), r"rows must have 2 dimension\(s\), not 1"),
        (([[1.0]], [[0.0]], [1.0]), r"lower must have 1 dimension\(s\), not 2"),
        (([[np.nan]], [0.0], [1.0]), "rows contains NaN; every entry must be a number"),
        (([[1.0]], [0.0], [np.nan]), "upper contains NaN"),
        (
            ([[INF]], [0.0], [1.0]),
            "rows contains an infinity; only the bounds may be infinite",
        ),
        ((np.zeros((1, 0)), [0.0], [1.0]), "at least one column"),
        (([[1.0]], [0.0, 0.0], [1.0]), r"one entry per row \(1\), not 2 and 1"),
        (
            ([[1.0], [1.0]], [0.0, 2.0], [1.0, 1.0]),
            r"row 1 has an empty interval \[2.0, 1.0\]",
        ),
        (([[1.0]], [INF], [INF]), "row 0 has an empty interval"),
        (([[1.0]], [-INF], [-INF]), "row 0 has an empty interval"),
        (
            ([[1.0]], [0.0], [1.0], [[1.0], [2.0]]),
            "auxiliary must have 1 rows of finite numbers",
        ),
        (
            ([[1.0]], [0.0], [1.0], [[INF]]),
            "auxiliary must have 1 rows of finite numbers",
        ),
    ],
)
def test_refuses(arguments, message):
    with pytest.raises(InvalidPolytope, match=message):
        Polytope(*arguments)


def test_no_auxiliary_columns_is_none():
    assert Polytope([[1.0, 2.0]], [0.0], [3.0], np.zeros((1, 0))).auxiliary is None


def test_residual_names_the_largest_violation():
    polytope = Polytope([[1.0, 0.0, 0.0], [0.0, 1.0, 2.0]], [0.2, -INF], [0.6, 1.0])
    points = np.array(
        [
            [0.3, 0.5, 0.2],
            [0.7, 0.3, 0.0],
            [0.1, 0.8, 0.1],
            [0.3, 0.3, 0.3],
            [0.5, -0.1, 0.6],
        ]
    )
    # inside by 0.1; 0.1 above the first row; 0.1 below it; sum short by 0.1; negative, and 0.1 above the second
    np.testing.assert_allclose(
        polytope.residual(points), [0.0, 0.1, 0.1, 0.1, 0.1], atol=1e-15
    )
    assert polytope.contains(points).tolist() == [True, False, False, False, False]
    assert polytope.contains(points[1], tolerance=0.1 + 1e-12).all()
    assert polytope.residual(points[0]).shape == (1,)


def test_membership_tolerance_is_absolute_on_every_constraint():
    polytope = Polytope([[1.0, 0.0]], [-INF], [0.5])
    step = np.array([1.0, -1.0])
    assert polytope.contains([0.5, 0.5] + 0.9 * MEMBERSHIP_TOLERANCE * step).all()
    assert not polytope.contains([0.5, 0.5] + 1.1 * MEMBERSHIP_TOLERANCE * step).any()


def test_restrict_is_the_face():
    rng = np.random.default_rng(0)
    polytope = Polytope(rng.random((2, 5)), [0.2, 0.1], [0.8, 0.9])
    face = polytope.restrict([4, 1])
    v = np.array([0.3, 0.7])
    full = np.zeros(5)
    full[[4, 1]] = v
    np.testing.assert_allclose(face.residual(v), polytope.residual(full), atol=1e-15)


def with_deviation(rows: np.ndarray, weights: np.ndarray, limit: float) -> Polytope:
    """sum_s weights_s |w_s - 1| <= limit, w = rows v, described by one auxiliary variable a row."""
    s, n = rows.shape
    scaled = weights[:, None] * (rows - 1.0)
    return Polytope(
        np.vstack([scaled, -scaled, np.zeros((1, n))]),
        np.full(2 * s + 1, -INF),
        np.concatenate([np.zeros(2 * s), [limit]]),
        np.vstack([-np.eye(s), -np.eye(s), np.ones((1, s))]),
    )


@given(seed=st.integers(0, 10_000), ratio=st.floats(1.0, 20.0))
def test_ratio_rows_after_elimination(seed, ratio):
    rng = np.random.default_rng(seed)
    rows = rng.random((3, 5)) + 0.01
    polytope = ratio_polytope(rows, ratio)
    v = rng.dirichlet(np.full(5, 0.4), size=200)
    w = v @ rows.T
    spread = w.max(axis=1) / w.min(axis=1)
    clear = np.abs(spread - ratio) > 1e-6
    assert (polytope.contains(v)[clear] == (spread <= ratio)[clear]).all()
    assert polytope.explicit.auxiliary is None


@given(seed=st.integers(0, 10_000), limit=st.floats(0.01, 1.5))
def test_deviation_rows_after_elimination(seed, limit):
    rng = np.random.default_rng(seed)
    rows = rng.random((3, 4)) * 2
    weights = rng.dirichlet(np.ones(3))
    polytope = with_deviation(rows, weights, limit)
    v = rng.dirichlet(np.ones(4), size=200)
    deviation = np.abs(v @ rows.T - 1.0) @ weights
    clear = np.abs(deviation - limit) > 1e-6
    assert (polytope.contains(v)[clear] == (deviation <= limit)[clear]).all()


@given(seed=st.integers(0, 10_000))
def test_elimination_is_the_projection(seed):
    """A point is in the explicit set exactly if an LP finds auxiliary values for it."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(4, 3))
    auxiliary = rng.normal(size=(4, 2))
    polytope = Polytope(rows, [-0.5, -INF, -0.2, 0.0], [0.5, 0.3, INF, 0.0], auxiliary)
    for v in rng.dirichlet(np.ones(3), size=8):
        # least total violation of the rows, over the auxiliary values and one slack for each side
        cost = np.concatenate([np.zeros(2), np.ones(8)])
        up = np.isfinite(polytope.upper)
        down = np.isfinite(polytope.lower)
        slack = (
            np.hstack([-np.eye(4), np.zeros((4, 4))]),
            np.hstack([np.zeros((4, 4)), -np.eye(4)]),
        )
        found = linprog(
            cost,
            A_ub=np.vstack(
                [
                    np.hstack([auxiliary, slack[0]])[up],
                    np.hstack([-auxiliary, slack[1]])[down],
                ]
            ),
            b_ub=np.concatenate(
                [(polytope.upper - rows @ v)[up], (rows @ v - polytope.lower)[down]]
            ),
        )
        if not 1e-9 < found.fun < 1e-6:
            assert polytope.contains(v)[0] == (found.fun <= 1e-9)


def test_elimination_of_a_contradiction_keeps_it():
    # r >= 1 and r <= 0.5 for the same auxiliary variable: no v at all
    polytope = Polytope(np.zeros((2, 2)), [1.0, -INF], [INF, 0.5], np.ones((2, 1)))
    assert not polytope.contains([[0.5, 0.5], [1.0, 0.0]]).any()
