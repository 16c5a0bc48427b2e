"""Pricing by sorting, where every row bounds one coordinate: against lists of all vertices."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvers import ConcaveSearch, EnvelopeStatus, Polytope, lower_envelope
from solvers.pricing.concave import SearchStatus
from solvers.pricing.separate import BoxSearch, StaircaseSearch, separate_search
from tests.oracles.own_column import (
    box_posteriors,
    least_uncertainty,
    staircase_posteriors,
)

EXACT = {
    "cutoff": math.inf,
    "tolerance": 1e-9,
    "slack": 0.0,
    "column_cutoff": math.inf,
}
"""Options that ask for the minimum itself."""


def masses(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.full(n, 0.7)) * 0.99 + 0.01 / n


def staircase(p: np.ndarray, epsilon: float, shift: float = 0.0) -> Polytope:
    n = len(p)
    rows = np.diag(1.0 / p)
    free = np.full(n, np.inf)
    auxiliary = np.concatenate([np.full(n, -1.0), np.full(n, -np.exp(epsilon))])
    return Polytope(
        np.vstack([rows, rows]),
        np.concatenate([np.full(n, shift), -free]),
        np.concatenate([free, np.zeros(n)]),
        auxiliary[:, None],
    )


def box(p: np.ndarray, low: float, high: float) -> Polytope:
    return Polytope(np.diag(1.0 / p), np.full(len(p), low), np.full(len(p), high))


def cost(points: np.ndarray, prices: np.ndarray) -> np.ndarray:
    logs = np.log(np.where(points > 1e-15, points, 1.0))
    return -(points * logs).sum(axis=1) - points @ prices


SIZES = st.integers(2, 7)
SEEDS = st.integers(0, 10**6)
BUDGETS = st.floats(0.05, 4.0)


@given(SIZES, SEEDS, BUDGETS, st.floats(0.0, 5.0))
def test_the_staircase_is_priced_exactly(n, seed, epsilon, size):
    """The bound is at most the least reduced cost of all 2^n vertices, and within the tolerance."""
    p = masses(n, seed)
    prices = size * np.random.default_rng(seed + 1).normal(size=n)
    polytope = staircase(p, epsilon)
    search = separate_search(polytope, polytope)
    assert isinstance(search, StaircaseSearch)
    found = search.run(prices, **EXACT)
    truth = cost(staircase_posteriors(p, epsilon), prices).min()
    assert found.status is SearchStatus.DONE
    assert found.bound <= truth
    assert found.bound >= truth - 1e-8
    dense = found.points.toarray()
    assert cost(dense, prices).min() == pytest.approx(truth, abs=1e-8)
    assert polytope.residual(dense).max() < 1e-12


@given(SIZES, SEEDS, BUDGETS, BUDGETS, st.floats(0.0, 5.0))
def test_the_box_is_priced_exactly(n, seed, eps_l, eps_u, size):
    """As above for the vertices of a box."""
    p = masses(n, seed)
    prices = size * np.random.default_rng(seed + 1).normal(size=n)
    low, high = np.exp(-eps_l), np.exp(eps_u)
    polytope = box(p, low, high)
    search = separate_search(polytope, polytope)
    assert isinstance(search, BoxSearch)
    found = search.run(prices, **EXACT)
    truth = cost(box_posteriors(p, low, high), prices).min()
    assert found.bound <= truth + 1e-14
    assert found.bound >= truth - 1e-7
    assert polytope.residual(found.points.toarray()).max() < 1e-12


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_the_envelope_over_a_staircase(seed, epsilon):
    p = masses(3 + seed, seed)
    found = lower_envelope(staircase(p, epsilon), p, gap=1e-9)
    truth = least_uncertainty(p, staircase_posteriors(p, epsilon))
    assert found.status is EnvelopeStatus.OPTIMAL
    assert found.value == pytest.approx(truth, abs=1e-8)
    assert found.bound <= truth + 1e-12


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("ends", [(0.9, 1.3), (0.5, 2.0), (0.0, 1.2)])
def test_the_envelope_over_a_box(seed, ends):
    p = masses(3 + seed, seed)
    found = lower_envelope(box(p, *ends), p, gap=1e-7)
    truth = least_uncertainty(p, box_posteriors(p, *ends))
    assert found.value == pytest.approx(truth, abs=1e-6)
    assert found.bound <= truth + 1e-9


def test_a_shrunk_staircase_has_members_inside_and_bounds_for_the_whole():
    """Columns are members of the inner set; the bound holds for the relaxation."""
    p = masses(6, 3)
    inner = staircase(p, 1.0, shift=1e-3)
    outer = staircase(p, 1.0)
    search = separate_search(inner, outer)
    assert search is not None
    prices = np.random.default_rng(5).normal(size=6)
    found = search.run(prices, **EXACT)
    assert inner.residual(found.points.toarray()).max() < 1e-12
    truth = cost(staircase_posteriors(p, 1.0), prices).min()
    assert found.bound <= truth


def test_limits_leave_a_valid_bound():
    """However few nodes there are, the bound is one, and agrees with that of the tree."""
    p = masses(40, 1)
    prices = np.random.default_rng(2).normal(size=40)
    polytope = box(p, 0.5, 2.0)
    search = separate_search(polytope, polytope)
    assert search is not None
    options = EXACT | {"column_cutoff": -math.inf}
    few = search.run(prices, node_limit=3, **options)
    assert few.status is SearchStatus.NODE_LIMIT
    many = search.run(prices, node_limit=20_000, **EXACT)
    assert few.counts.nodes == 3 < many.counts.nodes
    assert few.bound < many.bound <= cost(many.points.toarray(), prices).min()
    tree = ConcaveSearch(polytope).run(prices, node_limit=2_000, **options)
    assert tree.bound <= many.bound + 1e-8
    late = search.run(prices, time_limit=0.0, **options)
    assert late.status is SearchStatus.TIME_LIMIT
    assert late.bound <= many.bound


def test_local_searches_alone_prove_nothing():
    p = masses(9, 4)
    polytope = staircase(p, 1.0)
    search = separate_search(polytope, polytope)
    assert search is not None
    options = EXACT | {"enough": 0, "center": p, "mix": 0.5}
    found = search.run(np.zeros(9), **options)
    assert found.status is SearchStatus.COLUMNS
    assert found.bound == -math.inf
    assert len(found.points) > 9


def test_other_polytopes_are_left_to_the_tree():
    p = masses(4, 0)
    whole = np.eye(4)
    whole[0, 1] = 0.5
    cases = [
        Polytope(whole, np.zeros(4), np.ones(4)),
        Polytope(-np.eye(4), -np.ones(4), np.zeros(4)),
        Polytope(np.eye(4), np.zeros(4), np.full(4, 2.0), -np.ones((4, 1))),
    ]
    for polytope in cases:
        assert separate_search(polytope, polytope) is None
    # The bound is for a cone: steps with room beside them are no cone.
    shifted = staircase(p, 1.0, shift=1e-3)
    assert separate_search(shifted, shifted) is None


@pytest.mark.parametrize("n", [2, 3, 9])
def test_selections_are_decompositions(n):
    """Randomised response and subset selection, for any weights."""
    p = masses(n, n)
    polytope = staircase(p, 1.0)
    search = separate_search(polytope, polytope)
    assert isinstance(search, StaircaseSearch)
    for weights, points in search.selections():
        dense = points.toarray()
        np.testing.assert_allclose(weights @ dense, p, rtol=1e-12)
        assert polytope.residual(dense).max() < 1e-12
    first = lower_envelope(polytope, p, time_limit=0.0)
    entropies = [
        weights @ points.entropies() for weights, points in search.selections()
    ]
    assert first.value <= min(entropies) + 1e-12


def test_the_vertices_of_many_slopes_are_those_of_each():
    p = masses(7, 2)
    polytope = box(p, 0.6, 1.9)
    search = separate_search(polytope, polytope)
    assert isinstance(search, BoxSearch)
    slopes = np.random.default_rng(1).normal(size=(20, 7))
    points = search._vertices(slopes)
    assert polytope.residual(points).max() < 1e-12
    listed = box_posteriors(p, 0.6, 1.9)
    for line, point in zip(slopes, points, strict=True):
        assert line @ point == pytest.approx((listed @ line).min(), abs=1e-12)
