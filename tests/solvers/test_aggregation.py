"""Merging symbols with similar columns: a smaller problem whose prices fit the large one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers import lower_envelope
from solvers.aggregation import GROUP, aggregate
from tests.solvers.reference import NOTIONS, TABLES, table_polytope


@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(TABLES),
    notion=st.sampled_from(NOTIONS),
    n=st.integers(1, 60),
)
@settings(max_examples=80)
def test_the_merged_point_stays_inside(seed, kind, notion, n):
    """Groups are few and small; masses add up; rows see the merged point as they saw the point."""
    polytope, point = table_polytope(np.random.default_rng(seed), kind, notion, 3, n)
    merged = aggregate(polytope, point)
    sizes = np.bincount(merged.group)
    assert sizes.min() >= 1
    assert sizes.max() <= GROUP
    assert len(merged.point) == merged.polytope.n == len(sizes)
    assert sizes.min() * 4 > GROUP or n <= GROUP  # halves of halves: no group is tiny without need
    np.testing.assert_allclose(merged.point, np.bincount(merged.group, weights=point), atol=1e-15)
    w, v = polytope.rows @ point, merged.polytope.rows @ merged.point
    np.testing.assert_allclose(v, w, rtol=1e-13)
    assert merged.polytope.residual(merged.point)[0] <= polytope.residual(point)[0] + 1e-12


def test_groups_without_mass_have_a_column_too():
    polytope, point = table_polytope(np.random.default_rng(0), "random", "both", 3, 40)
    point = np.where(np.arange(40) < 4, point, 0.0)
    merged = aggregate(polytope, point / point.sum())
    assert np.isfinite(merged.polytope.rows).all()
    for g in np.flatnonzero(merged.point == 0.0):
        members = merged.group == g
        np.testing.assert_allclose(merged.polytope.rows[:, g], polytope.rows[:, members].mean(axis=1))


def test_equal_columns_lose_nothing():
    """Groups of copies: any output of the merged problem splits into outputs of the large one."""
    polytope, point = table_polytope(np.random.default_rng(3), "random", "both", 3, 16)
    order = np.repeat(np.arange(16), GROUP)
    copies = type(polytope)(polytope.rows[:, order], polytope.lower, polytope.upper)
    merged = aggregate(copies, point[order] / GROUP)
    small = lower_envelope(merged.polytope, merged.point, gap=1e-8)
    large = lower_envelope(copies, point[order] / GROUP, gap=1e-8)
    assert large.value == pytest.approx(small.value, abs=2e-8)


def test_prices_of_the_merged_problem_are_a_good_guess():
    """At a hundred symbols they alone prove nine tenths of the envelope."""
    polytope, point = table_polytope(np.random.default_rng(5), "random", "both", 4, 100)
    polytope = type(polytope)(polytope.rows, np.full(4, np.exp(-0.5)), np.full(4, np.exp(0.5)))
    merged = aggregate(polytope, point)
    coarse = lower_envelope(merged.polytope, merged.point, method="columns", gap=1e-4)
    guess = coarse.dual[merged.group]
    found = lower_envelope(polytope, point, method="columns", gap=1e-4)
    guided = lower_envelope(polytope, point, method="columns", gap=1e-4, dual=guess)
    assert guided.value == pytest.approx(found.value, abs=2e-4)
    assert float(guess @ point) == pytest.approx(found.value, rel=0.1)
