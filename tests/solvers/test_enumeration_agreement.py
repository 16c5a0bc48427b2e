"""Every algorithm finds the vertices that exact arithmetic finds, and linear programs see no
others.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from solvers.enumeration import exact_available, vertices
from solvers.errors import BackendFailure, EmptyPolytope
from solvers.sets.polytope import Polytope
from tests.oracles.vertices import exact_vertices, same_points
from tests.oracles.vertices_by_support import MOST_SYSTEMS, by_support, count_systems
from tests.profiles import scaled, slow
from tests.solvers.reference import ratio_polytope
from tests.solvers.test_polytope import with_deviation

INF = np.inf

TABLES = ("random", "sparse", "near-tied", "proportional", "small counts", "equal rows")
SIDES = ("both", "upper", "lower", "lower zero")


def random_table(rng: np.random.Generator, kind: str, s: int, n: int) -> np.ndarray:
    """A joint table with positive margins."""
    p = rng.random((s, n)) + 0.01
    if kind == "sparse":
        p *= rng.random((s, n)) < 0.6
    elif kind == "near-tied":  # columns proportional up to 1e-12
        p = (
            p[:, rng.integers(0, n, n)]
            * rng.uniform(0.5, 2.0, n)
            * (1.0 + 1e-12 * rng.standard_normal((s, n)))
        )
    elif kind == "proportional":
        p = p[:, rng.integers(0, n, n)] * rng.integers(1, 9, n)
    elif kind == "small counts":
        p = rng.integers(0, 5, (s, n)).astype(float)
    elif kind == "equal rows":
        p[-1] = p[0]
    p[:, p.sum(axis=0) == 0.0] = 1.0
    p = p[p.sum(axis=1) > 0.0]
    return p / p.sum()


def lift_matrix(p: np.ndarray) -> np.ndarray:
    return p / p.sum(axis=0) / p.sum(axis=1, keepdims=True)


def lift_polytope(
    rng: np.random.Generator, kind: str, sides: str, s: int, n: int
) -> Polytope:
    """Bounds around 1 on a lift matrix, so that the marginal is a member; tight to loose."""
    rows = lift_matrix(random_table(rng, kind, s, n))
    m = len(rows)
    low = np.exp(-(10 ** rng.uniform(-2.0, 0.8)))
    high = np.exp(10 ** rng.uniform(-2.0, 0.8))
    lower = {"upper": -INF, "lower zero": 0.0}.get(sides, low)
    return Polytope(
        rows, np.full(m, lower), np.full(m, INF if sides == "lower" else high)
    )


def truth(polytope: Polytope) -> np.ndarray:
    p = polytope.explicit
    return exact_vertices(p.rows, p.lower, p.upper)


def found(polytope: Polytope, method: str) -> np.ndarray:
    if method == "support":
        return by_support(polytope)
    try:
        return vertices(polytope, method).points
    except EmptyPolytope:
        return np.zeros((0, polytope.n))


@pytest.mark.parametrize("sides", SIDES)
@given(seed=st.integers(0, 10**6), s=st.integers(2, 4), n=st.integers(1, 6))
@settings(max_examples=scaled(40))
def test_lift_tables_against_exact_arithmetic(sides, seed, s, n):
    rng = np.random.default_rng(seed)
    kind = str(rng.choice([k for k in TABLES if k != "equal rows"]))
    polytope = lift_polytope(rng, kind, sides, s, n)
    assert same_points(found(polytope, "pivot"), truth(polytope))


@given(seed=st.integers(0, 10**6), m=st.integers(1, 3), n=st.integers(1, 6))
@settings(max_examples=scaled(60))
def test_degenerate_rows_against_exact_arithmetic(seed, m, n):
    """Quarters everywhere: bounds on entries, equal bounds, redundant and dependent rows, empty
    sets.
    """
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 9, (m, n)) / 4.0
    lower = rng.integers(0, 6, m) / 4.0
    polytope = Polytope(rows, lower, lower + rng.integers(0, 5, m) / 4.0)
    assert same_points(found(polytope, "pivot"), truth(polytope))


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 6),
    ratio=st.sampled_from([1.25, 1.5, 2.0, 4.0]),
)
@settings(max_examples=scaled(40))
def test_exactly_representable_ratio_rows_against_exact_arithmetic(seed, n, ratio):
    """Homogeneous pairwise rows meet in degenerate rays; eighths keep their products exact."""
    rows = np.random.default_rng(seed).integers(0, 17, (3, n)) / 8.0
    polytope = ratio_polytope(rows, ratio)
    assert same_points(found(polytope, "pivot"), truth(polytope))


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 6),
    limit=st.sampled_from([0.125, 0.25, 0.5, 1.0]),
)
@settings(max_examples=scaled(30))
def test_deviation_rows_against_exact_arithmetic(seed, n, limit):
    """27 rows after the elimination, most of them redundant, many meeting where some w_s = 1."""
    rows = np.random.default_rng(seed).integers(0, 17, (2, n)) / 8.0
    polytope = with_deviation(rows, np.array([0.25, 0.75]), limit)
    assert same_points(found(polytope, "pivot"), truth(polytope))


@given(
    seed=st.integers(0, 10**6),
    s=st.integers(2, 5),
    n=st.integers(2, 9),
    kind=st.sampled_from(TABLES),
)
@settings(max_examples=scaled(40))
def test_pivot_and_support_agree(seed, s, n, kind):
    rng = np.random.default_rng(seed)
    polytope = lift_polytope(rng, kind, str(rng.choice(SIDES)), s, n)
    assert same_points(found(polytope, "pivot"), found(polytope, "support"))


@given(
    seed=st.integers(0, 10**6),
    s=st.integers(2, 4),
    n=st.integers(2, 8),
    epsilon=st.floats(0.1, 4.0),
)
@settings(max_examples=scaled(25))
def test_pivot_and_support_agree_on_ratio_rows(seed, s, n, epsilon):
    rng = np.random.default_rng(seed)
    polytope = ratio_polytope(
        lift_matrix(random_table(rng, str(rng.choice(TABLES[:4])), s, n)),
        np.exp(epsilon),
    )
    if count_systems(polytope) < MOST_SYSTEMS / 100:
        assert same_points(found(polytope, "pivot"), found(polytope, "support"))


@given(seed=st.integers(0, 10**6), s=st.integers(2, 5), n=st.integers(2, 12))
@settings(max_examples=scaled(40))
def test_float_cddlib_agrees_on_random_tables(seed, s, n):
    """Random tables without ties only: on near-tied ones cddlib's doubles lose vertices without a
    word.
    """
    polytope = lift_polytope(np.random.default_rng(seed), "random", "both", s, n)
    assert same_points(found(polytope, "cdd"), found(polytope, "pivot"))


@pytest.mark.skipif(
    not exact_available(), reason="the full pycddlib with GMP is not installed"
)
@given(
    seed=st.integers(0, 10**6),
    s=st.integers(2, 4),
    n=st.integers(2, 10),
    kind=st.sampled_from(TABLES[:4]),
)
@settings(max_examples=scaled(40))
def test_exact_cddlib_agrees(seed, s, n, kind):
    rng = np.random.default_rng(seed)
    polytope = lift_polytope(rng, kind, str(rng.choice(SIDES)), s, n)
    assert same_points(found(polytope, "cdd-exact"), found(polytope, "pivot"))


def test_near_tied_tables_lose_nothing():
    """Columns equal up to 1e-14 .. 1e-8, where cddlib's doubles give up or lose vertices."""
    troubles = 0
    for seed in range(16):
        rng = np.random.default_rng(seed)
        base = rng.random((4, 3))
        p = base[:, rng.integers(0, 3, 7)] * (
            1.0 + 10 ** rng.uniform(-14.0, -8.0) * rng.standard_normal((4, 7))
        )
        polytope = Polytope(
            lift_matrix(p / p.sum()), np.full(4, np.exp(-0.3)), np.full(4, np.exp(0.3))
        )
        expected = truth(polytope)
        assert same_points(found(polytope, "pivot"), expected)
        assert same_points(found(polytope, "support"), expected)
        try:
            troubles += not same_points(found(polytope, "cdd"), expected)
        except BackendFailure:
            troubles += 1
    assert troubles > 0  # or this test shows nothing


def test_rare_columns_at_large_budgets():
    """Zero cells and a ratio of 3e7: vertices hang on weights of 1e-8, and steps of the walk agree
    to 1e-15.
    """
    for seed in range(12):
        rng = np.random.default_rng(seed)
        p = rng.integers(0, 3, (3, 5)).astype(float)
        p = p[:, p.sum(axis=0) > 0.0]
        rows = lift_matrix(p[p.sum(axis=1) > 0.0])
        polytope = ratio_polytope(rows, float(np.exp(rng.uniform(14.0, 19.0))))
        assert same_points(found(polytope, "pivot"), truth(polytope), tolerance=1e-12)


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("sides", SIDES)
def test_supports_are_small_and_points_are_members(kind, sides):
    """A vertex has at most |S| positive entries: the rows and the row of ones have rank |S|
    together.
    """
    for seed in range(4):
        polytope = lift_polytope(np.random.default_rng(seed), kind, sides, 4, 20)
        points = vertices(polytope).points
        assert len(points) > 0
        assert np.count_nonzero(points, axis=1).max() <= 4
        assert polytope.residual(points).max() < 1e-12
        assert points.min() >= 0.0


@pytest.mark.parametrize("kind", [*TABLES[:2], *map(slow, TABLES[2:4])])
@pytest.mark.parametrize("ratio", [False, True])
def test_sixty_linear_programs_see_the_same_minimum(kind, ratio):
    rng = np.random.default_rng(7)
    polytope = lift_polytope(rng, kind, "both", 4, 12)
    if ratio:
        polytope = ratio_polytope(polytope.rows, 2.5)
    points = vertices(polytope).points
    p = polytope.explicit
    up = np.isfinite(p.upper)
    down = np.isfinite(p.lower)
    a = np.vstack([p.rows[up], -p.rows[down]])
    b = np.concatenate([p.upper[up], -p.lower[down]])
    for cost in rng.normal(size=(60, 12)):
        best = linprog(cost, A_ub=a, b_ub=b, A_eq=np.ones((1, 12)), b_eq=[1.0]).fun
        assert (points @ cost).min() == pytest.approx(best, abs=1e-8)


def test_published_counts():
    """Seen by cddlib, too: |S| = 5 and 50 symbols, uniform draws, both budgets 1 (half a minute
    there).
    """
    p = np.random.default_rng(0).random((5, 50))
    polytope = Polytope(
        lift_matrix(p / p.sum()), np.full(5, np.exp(-1.0)), np.full(5, np.exp(1.0))
    )
    result = vertices(polytope, "pivot")
    assert (len(result), result.bases, result.degenerate) == (9160, 9160, 0)


def test_three_algorithms_agree_on_adult(adult):
    rows = np.asarray(adult.lift)
    for epsilon in (1.0, 4.0):
        polytope = Polytope(
            rows, np.full(5, np.exp(-epsilon / 2)), np.full(5, np.exp(epsilon / 2))
        )
        pivot = found(polytope, "pivot")
        assert same_points(pivot, found(polytope, "support"))
        assert same_points(pivot, found(polytope, "cdd"))
