"""The bound from how much must move at all never exceeds the optimum, and is sharp where a symbol has
one secret and every move costs the same.
"""

from __future__ import annotations

import math
import tracemalloc
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from solvers.plans import CellCosts, MatrixCosts, PlanLimits, PlanProblem
from solvers.plans import bounds as ceilings
from solvers.plans.bounds import ceiling, least_move
from solvers.plans.program import Group
from solvers.plans.ranges import Ranges
from tests.profiles import scaled
from tests.solvers.plans.problems import Kind, optimum, random_problem


def whole(problem):
    members = np.arange(problem.size)
    ranges = Ranges.of(problem.limits, members, problem.masses, 1e-7, problem.penalty)
    outputs = np.flatnonzero(problem.targets > 0)
    return Group(
        members, outputs, problem.masses, problem.targets[outputs], False, ranges
    )


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 8),
    notion=st.sampled_from(["lip", "upper", "lower"]),
    law=st.sampled_from(["kept", "other"]),
    same=st.booleans(),
)
@settings(max_examples=scaled(50), deadline=None)
def test_ceiling_is_a_bound(seed, n, notion, law, same):
    """ceiling <= optimum, also where every move costs the same and little is left between them."""
    problem = random_problem(seed, n, Kind(notion=notion, law=law, cells=False))
    if same:
        problem = replace(problem, costs=MatrixCosts(1.0 - np.eye(n)))
    best = optimum(problem)
    assume(best is not None)
    assert 0.0 <= ceiling(problem, whole(problem)).bound <= best + 1e-7


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 6),
    notion=st.sampled_from(["lip", "upper", "lower"]),
)
@settings(max_examples=scaled(60), deadline=None)
def test_ceiling_is_a_bound_whatever_the_multipliers_are(seed, n, notion):
    """Those of a program that was ended early, or of rounding, prove less and nothing wrong."""
    problem = random_problem(seed, n, Kind(notion=notion, law="kept", cells=False))
    problem = replace(problem, costs=MatrixCosts(1.0 - np.eye(n)))
    best = optimum(problem)
    rng = np.random.default_rng(seed)
    optimal = ceilings._multipliers

    def larger(*arguments):
        mu, lam = optimal(*arguments)
        return mu * rng.uniform(0, 4), lam * rng.uniform(0, 4, lam.shape)

    with mock.patch.object(ceilings, "_multipliers", larger):
        assert ceiling(problem, whole(problem)).bound <= best + 1e-7


@pytest.mark.parametrize("share", [0.1, 0.24, 0.4])
def test_ceiling_is_sharp_where_every_move_costs_the_same(share):
    """It is the optimum, if every symbol has one secret; and at least what follows from each output
    alone: unchanged at most sum_s pi_s min(1, b pi_s, 1 - a (1 - pi_s)).
    """
    n, budget = 40, 0.5
    secret = (np.arange(n) < share * n).astype(int)
    shares = np.bincount(secret) / n
    values = np.eye(2)[secret].T / shares[:, None]
    masses = np.full(n, 1 / n)
    a, b = math.exp(-budget), math.exp(budget)
    problem = PlanProblem(
        masses=masses,
        targets=masses,
        costs=MatrixCosts(1.0 - np.eye(n)),
        limits=PlanLimits(
            values=values,
            lower=np.full(2, a),
            upper=np.full(2, b),
            groups=np.zeros(2, np.int64),
        ),
    )
    kept = sum(pi * min(1, b * pi, 1 - a * (1 - pi)) for pi in shares)
    bound = ceiling(problem, whole(problem)).bound
    assert bound == pytest.approx(optimum(problem), abs=1e-7)
    assert bound >= 1 - kept - 1e-9


def test_the_memory_grows_with_the_classes_and_not_with_their_pairs():
    """A table of all pairs of 4,000 different values would take 128 MB."""
    n = 4000
    rng = np.random.default_rng(0)
    shares = rng.uniform(0.1, 0.9, n)
    mean = shares.mean()
    masses = np.full(n, 1 / n)
    problem = PlanProblem(
        masses=masses,
        targets=masses,
        costs=CellCosts(np.arange(n)[:, None], [1.0]),
        limits=PlanLimits(
            values=shares[None] / mean,
            lower=np.array([0.8]),
            upper=np.array([1.2]),
            groups=np.zeros(1, np.int64),
        ),
    )
    tracemalloc.start()
    bound = ceiling(problem, whole(problem)).bound
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert bound > 0.01
    assert peak < 150e6


def test_least_move():
    codes = np.array([[0, 0], [0, 1], [1, 0]])
    assert least_move(CellCosts(codes, [0.7, 0.3])) == pytest.approx(0.3)
    near = CellCosts(codes, [0.7, 0.3], [[0.0, 1.0, 10.0], None])
    assert least_move(near) == pytest.approx(0.07)
    both = CellCosts(codes[:, [0, 0, 1]], [0.2, 0.5, 0.3], [None, [0.0, 1.0], None])
    assert least_move(both) == pytest.approx(0.3)
    assert least_move(
        CellCosts(codes[:, [0, 0, 1]], [0.2, 0.5, 0.9], [None, [0.0, 1.0], None])
    ) == pytest.approx(0.7)
    assert least_move(MatrixCosts([[0.0, 2.0], [3.0, 0.0]])) == 2.0
    # Two symbols with the same cells: a move costs nothing.
    assert least_move(CellCosts(np.zeros((2, 1), int), [1.0])) == 0.0


def test_a_ceiling_without_time_is_no_bound():
    problem = random_problem(0, 8, Kind(notion="lip", law="kept", cells=False))
    problem = replace(problem, costs=MatrixCosts(1.0 - np.eye(8)))
    group = whole(problem)
    assert ceiling(problem, group).bound > 0.0
    assert ceiling(problem, group, 0.0) == (0.0, None)
