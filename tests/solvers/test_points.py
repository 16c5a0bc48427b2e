"""Sparse points do what the same points as dense arrays do."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvers.errors import InvalidPolytope
from solvers.points import Points, entropy_terms
from tests.oracles.vertices import rational
from tests.solvers.reference import exact_cost


def random_dense(seed: int, k: int, n: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((k, n)) * (rng.random((k, n)) < 0.5)


@given(seed=st.integers(0, 10**6), k=st.integers(1, 6), n=st.integers(1, 6))
def test_products_and_sums_are_those_of_the_dense_array(seed, k, n):
    dense = random_dense(seed, k, n)
    rng = np.random.default_rng(seed)
    points = Points.from_dense(dense)
    vector = rng.random(n)
    rows = rng.random((3, n))
    weights = rng.random(k)
    assert len(points) == k
    assert points.shape == (k, n)
    np.testing.assert_array_equal(points.toarray(), dense)
    np.testing.assert_allclose(points.dot(vector), dense @ vector, atol=1e-14)
    np.testing.assert_allclose(points.images(rows), dense @ rows.T, atol=1e-14)
    with mock.patch("solvers.points.MOST_TERMS", 0):
        np.testing.assert_allclose(points.images(rows), dense @ rows.T, atol=1e-14)
    np.testing.assert_allclose(points.combine(weights), weights @ dense, atol=1e-14)
    np.testing.assert_allclose(
        points.sums(points.data**2), (dense**2).sum(axis=1), atol=1e-14
    )


@given(seed=st.integers(0, 10**6), k=st.integers(1, 6), n=st.integers(1, 6))
def test_selection_is_that_of_the_dense_array(seed, k, n):
    dense = random_dense(seed, k, n)
    rng = np.random.default_rng(seed)
    points = Points.from_dense(dense)
    mask = rng.random(k) < 0.5
    order = rng.integers(0, k, 4)
    np.testing.assert_array_equal(points.take(mask).toarray(), dense[mask])
    np.testing.assert_array_equal(points.take(order).toarray(), dense[order])
    joined = Points.concatenate(
        [points.take(mask), Points.units([], n), points.take(order)]
    )
    np.testing.assert_array_equal(
        joined.toarray(), np.vstack([dense[mask], dense[order]])
    )


def test_units_and_blocks():
    np.testing.assert_array_equal(
        Points.units([2, 0], 3).toarray(), [[0, 0, 1], [1, 0, 0]]
    )
    blocks = Points.blocks([[2, 0], [1]], [0.3, 0.6, 0.1])
    np.testing.assert_allclose(blocks.toarray(), [[0.75, 0, 0.25], [0, 1, 0]])


def test_one_point_may_be_a_vector():
    np.testing.assert_array_equal(
        Points.from_dense([0.0, 0.5, 0.5]).toarray(), [[0.0, 0.5, 0.5]]
    )


def test_no_points():
    none = Points.units([], 4)
    assert len(none) == 0
    assert none.toarray().shape == (0, 4)
    assert none.dot(np.ones(4)).shape == (0,)
    assert none.images(np.ones((2, 4))).shape == (0, 2)
    np.testing.assert_array_equal(none.combine([]), np.zeros(4))


def test_different_lengths_do_not_mix():
    with pytest.raises(
        InvalidPolytope,
        match=r"points of different lengths cannot stand in one list: \[2, 3\]",
    ):
        Points.concatenate([Points.units([], 3), Points.units([], 2)])


@given(seed=st.integers(0, 10**6), n=st.integers(1, 9))
def test_entropies_against_exact_arithmetic(seed, n):
    rng = np.random.default_rng(seed)
    dense = rng.dirichlet(np.full(n, 0.3), size=4)
    dense[dense < 0.05] = 0.0
    for value, row in zip(Points.from_dense(dense).entropies(), dense, strict=True):
        exact = exact_cost([rational(x) for x in row])
        assert value == pytest.approx(float(exact.mid()), rel=1e-14, abs=1e-15)


def test_nothing_for_zero_and_for_one():
    assert entropy_terms(np.array([0.0, 1.0])).tolist() == [0.0, 0.0]
