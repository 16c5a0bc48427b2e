"""The one call: methods, results, special sets, errors."""

from __future__ import annotations

import numpy as np
import pytest

from solvers.enumeration import METHODS, Vertices, vertices
from solvers.enumeration.pivot import MERGE_TOLERANCE, finished_vertices, ordered
from solvers.errors import BackendFailure, EmptyPolytope, InvalidOption, SolverError
from solvers.sets.polytope import Polytope
from tests.oracles.vertices import exact_vertices, same_points
from tests.solvers.reference import ratio_polytope

INF = np.inf
FLOAT_METHODS = ("auto", "pivot", "cdd")


def box(rows, low: float, high: float) -> Polytope:
    rows = np.asarray(rows, dtype=float)
    return Polytope(rows, np.full(len(rows), low), np.full(len(rows), high))


def lift_box(s: int, n: int, epsilon: float, seed: int = 0) -> Polytope:
    p = np.random.default_rng(seed).random((s, n))
    p /= p.sum()
    return box(
        p / p.sum(axis=0) / p.sum(axis=1, keepdims=True),
        np.exp(-epsilon),
        np.exp(epsilon),
    )


# ---------------------------------------------------------------- sets whose vertices are obvious


@pytest.mark.parametrize("method", FLOAT_METHODS)
@pytest.mark.parametrize("n", [1, 2, 7])
def test_simplex(method, n):
    points = vertices(Polytope(np.zeros((0, n)), [], []), method).points
    np.testing.assert_array_equal(points, np.eye(n)[::-1])


@pytest.mark.parametrize("method", FLOAT_METHODS)
def test_loose_bounds_leave_the_unit_vectors(method):
    rows = np.random.default_rng(0).random((3, 6))
    np.testing.assert_array_equal(
        vertices(box(rows, -5.0, 5.0), method).points, np.eye(6)[::-1]
    )
    touching = vertices(box(rows, rows.min(), rows.max()), method).points
    np.testing.assert_allclose(touching, np.eye(6)[::-1], atol=1e-14)


@pytest.mark.parametrize("method", FLOAT_METHODS)
def test_one_coordinate(method):
    assert vertices(box([[2.0], [3.0]], 1.0, 4.0), method).points.tolist() == [[1.0]]


@pytest.mark.parametrize("method", FLOAT_METHODS)
def test_a_cut_triangle(method):
    """v_1 <= 1/2 cuts one corner off, into two."""
    points = vertices(Polytope([[1.0, 0.0, 0.0]], [-INF], [0.5]), method).points
    np.testing.assert_allclose(
        points, [[0, 0, 1], [0, 1, 0], [0.5, 0, 0.5], [0.5, 0.5, 0]], atol=1e-15
    )


@pytest.mark.parametrize("method", FLOAT_METHODS)
def test_a_single_point(method):
    points = vertices(
        Polytope(np.eye(3), [0.25, 0.25, 0.5], [0.25, 0.25, 0.5]), method
    ).points
    np.testing.assert_allclose(points, [[0.25, 0.25, 0.5]], atol=1e-12)


def test_equalities():
    """Rows that are equalities, one of them implied by the others and the sum."""
    rows = np.array(
        [[1, 0, 2, 1, 0.5], [1, 2, 0, 1, 1.5]]
    )  # they sum to 2 on the simplex
    polytope = Polytope(rows, [1.0, 1.0], [1.0, 1.0])
    points = vertices(polytope, "pivot").points
    assert same_points(points, exact_vertices(rows, [1.0, 1.0], [1.0, 1.0]))
    np.testing.assert_allclose(points @ rows.T, 1.0, atol=1e-12)


@pytest.mark.parametrize("epsilon", [1e-3, 1e-6])
def test_nearly_an_affine_slice(epsilon):
    """Tight budgets: every vertex is within about epsilon of the slice on which all lifts are one."""
    polytope = lift_box(3, 6, epsilon)
    points = vertices(polytope, "pivot").points
    assert len(points) >= 4
    np.testing.assert_allclose(points @ polytope.rows.T, 1.0, atol=1.1 * epsilon)
    p = polytope.explicit
    assert same_points(points, exact_vertices(p.rows, p.lower, p.upper), tolerance=1e-9)


@pytest.mark.parametrize("method", FLOAT_METHODS)
@pytest.mark.parametrize("bounds", [(4.0, 5.0), (-5.0, -1.0), (1.0, 1.0)])
def test_empty(method, bounds):
    with pytest.raises(
        EmptyPolytope, match="no point satisfies the constraints: the polytope is empty"
    ):
        vertices(box([[1.5, 2.0, 3.0], [1.0, 2.5, 2.0]], *bounds), method)


def test_empty_although_each_row_can_be_met():
    polytope = Polytope([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [0.7, 0.6], [1.0, 1.0])
    with pytest.raises(EmptyPolytope):
        vertices(polytope, "pivot")


def test_rows_of_any_scale():
    """Scaling a row and its bounds changes nothing."""
    polytope = lift_box(3, 7, 0.4)
    scale = np.array([1e-200, 1.0, 1e200])
    other = Polytope(
        polytope.rows * scale[:, None], polytope.lower * scale, polytope.upper * scale
    )
    assert same_points(
        vertices(polytope).points, vertices(other, "pivot").points, tolerance=1e-12
    )


# ---------------------------------------------------------------- the result


@pytest.mark.parametrize("method", FLOAT_METHODS)
def test_result(method):
    result = vertices(lift_box(4, 9, 0.6), method)
    assert isinstance(result, Vertices)
    assert result.method == ("pivot" if method == "auto" else method)
    assert result.exact is False
    assert len(result) == result.points.shape[0] > 9
    assert result.points.dtype == np.float64
    assert result.points.shape[1] == 9
    order = np.lexsort(result.points.T[::-1])
    np.testing.assert_array_equal(order, np.arange(len(result)))
    with pytest.raises(ValueError, match="read-only"):
        result.points[0, 0] = 1.0


def test_degeneracy_is_reported():
    plain = vertices(lift_box(4, 9, 0.6), "pivot")
    assert plain.degenerate == 0
    assert plain.bases == len(plain)
    ratio = vertices(ratio_polytope(lift_box(5, 9, 0.6).rows, 1.5), "pivot")
    assert ratio.degenerate > 0
    assert ratio.bases > len(ratio)


def test_same_call_same_bytes():
    polytope = lift_box(5, 20, 0.5)
    assert vertices(polytope).points.tobytes() == vertices(polytope).points.tobytes()


def test_ordered_merges_repeats_and_keeps_the_smaller_support():
    a = np.array([0.5, 0.5, 0.0])
    b = np.array([0.0, 0.25, 0.75])
    blurred = a + np.array([0.0, -0.4, 0.4]) * MERGE_TOLERANCE
    distinct = a + np.array([0.0, -2.0, 2.0]) * MERGE_TOLERANCE
    np.testing.assert_array_equal(ordered(np.array([blurred, b, a, b])), [b, a])
    assert len(ordered(np.array([a, distinct]))) == 2
    assert ordered(np.zeros((0, 3))).shape == (0, 3)


@pytest.mark.parametrize("point", [[0.7, 0.3], [0.5, 0.6], [1.1, -0.1]])
def test_a_point_outside_is_never_returned(point):
    polytope = Polytope([[1.0, 0.0]], [-INF], [0.6])
    with pytest.raises(
        BackendFailure, match='"test" returned a point outside the polytope'
    ):
        finished_vertices(np.array([[0.5, 0.5], point]), polytope, "test")


# ---------------------------------------------------------------- options


def test_unknown_method_before_any_work():
    with pytest.raises(
        InvalidOption, match="method 'qhull' is not known; use one of auto, pivot, cdd"
    ):
        vertices(None, "qhull")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["max_vertices", "memory_limit"])
@pytest.mark.parametrize("value", [0, -1, 2.5, True, "9"])
def test_limits_must_be_positive_whole_numbers(name, value):
    with pytest.raises(
        InvalidOption,
        match=rf"{name} \(.*\) must be a whole number of (vertices|bytes), at least 1",
    ):
        vertices(lift_box(2, 3, 1.0), **{name: value})


def test_registry_is_complete_and_read_only():
    assert METHODS == ("auto", "pivot", "cdd", "cdd-exact")
    with pytest.raises(TypeError):
        METHODS["other"] = None  # type: ignore[index]


def test_every_error_is_a_solver_error():
    for kind in (EmptyPolytope, InvalidOption, BackendFailure):
        assert issubclass(kind, SolverError)
