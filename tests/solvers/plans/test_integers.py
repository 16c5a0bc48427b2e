"""Integers of a plan have the sums that were asked for, exactly, and are near its flows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.plans import PlanError, integer_plan, solve_plan
from solvers.plans.plan import UNIT
from tests.profiles import scaled
from tests.solvers.plans.problems import Kind, random_problem


def sums(places, values, size):
    out = [0] * size
    for place, value in zip(places, values, strict=True):
        out[place] += int(value)
    return out


def random_plan(seed, n):
    """A plan on random pairs, and the counts of its rows and columns."""
    rng = np.random.default_rng(seed)
    moved = rng.integers(1, 50, size=(n, n)) * (rng.random((n, n)) < 0.3)
    moved[np.arange(n), np.arange(n)] += 1
    rows, columns = np.nonzero(moved)
    noise = 1 + rng.uniform(-1e-9, 1e-9, size=len(rows))
    flows = moved[rows, columns] / moved.sum() * noise
    return rows, columns, flows, moved.sum(axis=1), moved.sum(axis=0)


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 12),
    unit=st.sampled_from([1, 2**20, UNIT, 2**70]),
)
@settings(max_examples=scaled(80), deadline=None)
def test_sums_are_exact(seed, n, unit):
    rows, columns, flows, c, d = random_plan(seed, n)
    x, y, values = integer_plan(rows, columns, flows, c, d, unit)
    assert sums(x, values, n) == [int(one) * unit for one in c]
    assert sums(y, values, n) == [int(one) * unit for one in d]
    assert all(value > 0 for value in values)
    assert set(zip(x, y, strict=True)) <= set(zip(rows, columns, strict=True))
    if unit > 2**30:
        shares = np.array([int(v) / (int(c.sum()) * unit) for v in values])
        np.testing.assert_allclose(shares, flows, rtol=1e-6)


@given(seed=st.integers(0, 10**6), n=st.integers(1, 12))
@settings(max_examples=scaled(30), deadline=None)
def test_rows_alone_are_exact(seed, n):
    rows, columns, flows, c, _ = random_plan(seed, n)
    x, _, values = integer_plan(rows, columns, flows, c, None)
    assert sums(x, values, n) == [int(one) * UNIT for one in c]


def test_large_counts_use_python_integers():
    rows, columns, flows, c, d = random_plan(3, 5)
    many = [int(one) * 10**15 for one in c]
    other = [int(one) * 10**15 for one in d]
    x, _, values = integer_plan(rows, columns, flows, many, other)
    assert values.dtype == object
    assert sums(x, values, 5) == [one * UNIT for one in many]


def test_counts_of_a_solved_plan():
    """The integers of a plan of counts keep its law exactly, and move its flows by 1e-6 at most."""
    problem = random_problem(11, 60, Kind())
    counts = np.maximum(np.rint(problem.masses * 5000), 1).astype(int)
    masses = counts / counts.sum()
    values = problem.limits.values / (problem.limits.values @ masses)[:, None]
    limits = replace(problem.limits, values=values)
    problem = replace(problem, masses=masses, targets=masses, limits=limits)
    plan = solve_plan(problem)
    x, y, integers = integer_plan(plan.rows, plan.columns, plan.flows, counts, counts)
    assert sums(x, integers, 60) == [int(one) * UNIT for one in counts]
    assert sums(y, integers, 60) == [int(one) * UNIT for one in counts]


def test_sums_that_differ_are_refused():
    with pytest.raises(PlanError, match="need the same total"):
        integer_plan([0], [0], [1.0], [2], [3])
    with pytest.raises(PlanError, match="of a part of the plan differ"):
        integer_plan([0, 1], [0, 1], [0.5, 0.5], [1, 2], [2, 1])
    with pytest.raises(PlanError, match="every row of the plan needs a pair"):
        integer_plan([0], [0], [1.0], [1, 1], None)


def test_pairs_that_are_named_twice_have_one_place_in_the_forest():
    rows, columns = [0, 0, 0, 1, 1], [0, 0, 1, 0, 1]
    flows = [0.2, 0.2, 0.1, 0.1, 0.4]
    x, y, values = integer_plan(rows, columns, flows, [1, 1], [1, 1], unit=101)
    assert np.bincount(x, values).tolist() == [101, 101]
    assert np.bincount(y, values).tolist() == [101, 101]
