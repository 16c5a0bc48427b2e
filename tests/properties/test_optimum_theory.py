"""The facts of docs/explanation/optimum-theory.md on small random tables."""

from __future__ import annotations

import math
from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from solvers import Polytope
from solvers.enumeration import vertices
from tests.profiles import scaled

CLOSE = 1e-9

LARGEST = (0.0, 1 / 4, 1 / 3, 2 / 5, 1 / 2, 3 / 4, 1.0)
"""Ends of the intervals for the largest coordinate, as in solvers/_tree_branch.c."""

seeds = st.integers(0, 10**6)


def entropy(points):
    positive = np.where(points > 0.0, points, 1.0)
    return -(positive * np.log(positive)).sum(axis=-1)


def random_table(seed):
    """P(s, x), |S| in 2 to 4 and n in 2 to 7, and its lift matrix."""
    rng = np.random.default_rng(seed)
    p = rng.random((int(rng.integers(2, 5)), int(rng.integers(2, 8)))) + 0.01
    p /= p.sum()
    return rng, p, p / p.sum(axis=0) / p.sum(axis=1, keepdims=True)


def box_polytope(rng, lifts):
    size = len(lifts)
    a = math.exp(-rng.uniform(0.05, 2.0))
    b = math.exp(rng.uniform(0.05, 2.0))
    return Polytope(lifts, np.full(size, a), np.full(size, b))


def subsets(size):
    return chain.from_iterable(combinations(range(size), k) for k in range(size + 1))


@given(seeds)
def test_lifts_are_linear_with_mean_one(seed):
    """l = A v, sum P(s) (A v)_s = 1, A p = 1."""
    rng, p, lifts = random_table(seed)
    assert lifts @ p.sum(axis=0) == pytest.approx(np.ones(len(p)))
    channel = rng.dirichlet(np.ones(3), p.shape[1])
    outputs = p @ channel
    posteriors = (p.sum(axis=0)[:, None] * channel) / outputs.sum(axis=0)
    expected = outputs / outputs.sum(axis=0) / p.sum(axis=1, keepdims=True)
    assert lifts @ posteriors == pytest.approx(expected)
    assert p.sum(axis=1) @ (lifts @ posteriors) == pytest.approx(np.ones(3))


@given(seeds)
def test_l1_is_twice_the_largest_sum_over_a_set(seed):
    """sum P |w - 1| = 2 max over T of sum over T of P (w - 1)."""
    rng, p, lifts = random_table(seed)
    apart = p.sum(axis=1) * (lifts @ rng.dirichlet(np.ones(p.shape[1])) - 1.0)
    largest = max(apart[list(chosen)].sum() for chosen in subsets(len(p)))
    assert np.abs(apart).sum() == pytest.approx(2.0 * largest)


@settings(max_examples=scaled(60))
@given(seeds)
def test_vertices_have_few_positive_entries_and_are_few(seed):
    """At most rank A of them, and at most sum over k of C(n, k) C(R, k - 1) vertices."""
    rng, p, lifts = random_table(seed)
    points = vertices(box_polytope(rng, lifts), "pivot").points
    rank = np.linalg.matrix_rank(lifts)
    assert (points > CLOSE).sum(axis=1).max() <= rank <= len(p)
    n = p.shape[1]
    rows = 2 * len(p)
    most = sum(math.comb(n, k) * math.comb(rows, k - 1) for k in range(1, rank + 1))
    assert len(points) <= most


@settings(max_examples=scaled(60))
@given(seeds)
def test_any_prices_give_a_bound_and_the_best_ones_the_optimum(seed):
    """min H(X|Y) >= y.p + min (H(v) - y.v), with equality for the prices of the optimal program."""
    rng, p, lifts = random_table(seed)
    p_x = p.sum(axis=0)
    points = vertices(box_polytope(rng, lifts), "pivot").points
    costs = entropy(points)
    optimum = linprog(costs, A_eq=points.T, b_eq=p_x)
    assert optimum.status == 0
    assert (optimum.x > CLOSE).sum() <= len(p_x)
    any_prices = rng.normal(size=len(p_x))
    best_prices = optimum.eqlin.marginals
    bounds = [y @ p_x + (costs - points @ y).min() for y in (any_prices, best_prices)]
    assert bounds[0] <= optimum.fun + CLOSE
    assert bounds[1] == pytest.approx(optimum.fun, abs=1e-7)


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_a_chord_errs_by_the_width_over_e_at_most(one, other, share):
    """0 <= phi - chord <= (u - l) / e on [l, u], phi(t) = -t log t."""
    low, high = sorted((one, other))
    phi = [-t * math.log(t) if t > 0.0 else 0.0 for t in (low, high)]
    x = (1.0 - share) * low + share * high
    value = -x * math.log(x) if x > 0.0 else 0.0
    error = value - (1.0 - share) * phi[0] - share * phi[1]
    assert -1e-12 <= error <= (high - low) / math.e + 1e-12


def test_the_width_over_e_is_attained_from_zero():
    """On [0, u] the error is u / e at u / e."""
    u = 0.3
    x = u / math.e
    assert -x * math.log(x) + x * math.log(u) == pytest.approx(u / math.e)


@given(seeds, st.integers(1, 9))
def test_the_boxes_of_the_largest_coordinate_hold_every_distribution(seed, n):
    """Some interval holds it, and every other coordinate is at most its upper end and 1 - its lower
    end.
    """
    v = np.random.default_rng(seed).dirichlet(np.full(n, 0.4))
    first = int(v.argmax())
    place = max(
        i for i in range(len(LARGEST) - 1) if LARGEST[i] <= min(v[first], 1.0) + CLOSE
    )
    low = LARGEST[place]
    high = LARGEST[place + 1]
    assert v[first] <= high + CLOSE
    assert high >= 1.0 / n - CLOSE
    others = np.delete(v, first)
    assert others.max(initial=0.0) <= min(high, 1.0 - low) + CLOSE
