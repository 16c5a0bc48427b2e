"""Plans are optimal, their bounds are proven, and they keep what they must: against a dense program
that shares no code.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.plans import (
    MatrixCosts,
    NoPlan,
    PlanLimits,
    PlanProblem,
    generation,
    search,
    solve_plan,
)
from solvers.plans.plan import RESERVE
from tests.profiles import scaled
from tests.solvers.plans.problems import Kind, check, optimum, random_problem

KINDS = st.builds(
    Kind,
    notion=st.sampled_from(["lip", "upper", "lower", "ldp", "both", "none"]),
    law=st.sampled_from(["kept", "free", "other"]),
    strata=st.booleans(),
    forbid=st.booleans(),
    stay=st.booleans(),
    groups=st.integers(1, 2),
    cells=st.booleans(),
    penalty=st.sampled_from(["none", "distance", "largest"]),
)


def agrees(problem, **options):
    """The plan, after comparing it with the optimum of the dense program."""
    best = optimum(problem)
    if best is None:
        with pytest.raises(NoPlan, match="no plan"):
            solve_plan(problem, **options)
        return None
    plan = solve_plan(problem, **options)
    check(problem, plan)
    # The dense program keeps its own rows to 1e-7 only, so its optimum may be too low.
    assert plan.lower_bound <= best + 1e-7
    assert plan.cost >= best - 1e-6
    return plan, best


@given(seed=st.integers(0, 10**6), n=st.integers(1, 7), kind=KINDS)
@settings(max_examples=scaled(60), deadline=None)
def test_small_plans_are_optimal(seed, n, kind):
    """bound <= optimum <= cost, and both meet."""
    found = agrees(random_problem(seed, n, kind))
    if found is not None:
        plan, best = found
        assert plan.cost <= best + 1e-5
        assert plan.lower_bound >= best - 1e-5
        assert not plan.ended_early


@pytest.fixture
def small_programs(monkeypatch):
    """Every path of large problems, for small ones: blocks, sweeps, pricing, interior points."""
    monkeypatch.setattr(search, "ALL_PAIRS", 8)
    monkeypatch.setattr(search, "FEW_PAIRS", 8)
    monkeypatch.setattr(search, "SMALLEST_BLOCK", 3)
    monkeypatch.setattr(search, "LARGEST_BLOCK", 6)
    monkeypatch.setattr(search, "SWEPT", 5)
    monkeypatch.setattr(search, "NEAR", 1)
    monkeypatch.setattr(generation, "ENTERING", 1)


@given(seed=st.integers(0, 10**6), n=st.integers(4, 10), kind=KINDS)
@settings(max_examples=scaled(30), deadline=None)
@pytest.mark.usefixtures("small_programs")
def test_large_plans_are_optimal(seed, n, kind):
    """Blocks, sweeps and pricing end at the optimum, too."""
    found = agrees(random_problem(seed, n, kind))
    if found is not None:
        plan, best = found
        assert plan.cost <= best + 1e-5
        assert plan.lower_bound >= best - 1e-5


@pytest.mark.parametrize("margin", [1e-7, 1e-5])
def test_more_stays_than_must_so_that_rounding_takes_nothing(margin):
    """Here every move saves something, so the plan keeps as little as it may."""
    problem = PlanProblem(
        masses=np.array([0.5, 0.5]),
        targets=np.array([0.5, 0.5]),
        costs=MatrixCosts(np.eye(2)),
        limits=PlanLimits.none(2),
        stay=np.array([0.3, 0.3]),
    )
    plan = solve_plan(problem, margin=margin)
    own = plan.flows[plan.rows == plan.columns] / 0.5
    np.testing.assert_allclose(own - 0.3, RESERVE * margin, rtol=0.1)
    assert plan.lower_bound <= 0.3


def test_seeds_repeat():
    problem = random_problem(3, 40, Kind())
    first, second = (solve_plan(problem, seed=5) for _ in range(2))
    np.testing.assert_array_equal(first.flows, second.flows)
    assert first.cost == second.cost
