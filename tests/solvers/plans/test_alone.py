"""Every output on its own proves a bound, before there is a plan and whatever inputs are paid."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.plans import PlanProblem, search, solve_plan
from solvers.plans.bounds import alone as multipliers
from solvers.plans.pricing import Pricer
from solvers.plans.program import Group
from solvers.plans.ranges import Ranges
from tests.profiles import scaled
from tests.solvers.plans.problems import Kind, optimum, random_problem

KINDS = st.builds(
    Kind,
    notion=st.sampled_from(["lip", "upper", "lower", "ldp", "both"]),
    law=st.sampled_from(["kept", "free", "other"]),
    forbid=st.booleans(),
    stay=st.booleans(),
    groups=st.integers(1, 2),
    cells=st.booleans(),
    penalty=st.sampled_from(["none", "distance", "largest"]),
)


def whole(problem: PlanProblem) -> Group:
    members = np.arange(problem.size)
    ranges = Ranges.of(problem.limits, members, problem.masses, 1e-7, problem.penalty)
    free = problem.targets is None
    wanted = problem.masses if problem.targets is None else problem.targets
    outputs = np.flatnonzero(wanted > 0)
    return Group(members, outputs, problem.masses, wanted[outputs], free, ranges)


def proven(problem: PlanProblem, inputs, seconds: float = 60.0) -> float:
    group = whole(problem)
    pricer = Pricer(problem, group)
    prices = multipliers(pricer, group, inputs, seconds)
    return pricer.price(prices, most=1, tolerance=np.inf).bound


@given(seed=st.integers(0, 10**6), n=st.integers(2, 7), kind=KINDS)
@settings(max_examples=scaled(60), deadline=None)
def test_no_plan_costs_less(seed, n, kind):
    """For prices 0 and for any others; those of 0 prove at least 0."""
    problem = random_problem(seed, n, kind)
    best = optimum(problem)
    if best is None:
        return
    paid = np.random.default_rng(seed).normal(size=n)
    assert -1e-9 <= proven(problem, np.zeros(n)) <= best + 1e-7
    assert proven(problem, paid) <= best + 1e-7
    # Multipliers that no program found are 0.
    assert -1e-9 <= proven(problem, np.zeros(n), seconds=-1.0) <= best + 1e-7


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 7),
    law=st.sampled_from(["kept", "free"]),
)
@settings(max_examples=scaled(30), deadline=None)
def test_optimal_prices_of_inputs_prove_the_optimum(seed, n, law):
    """The multipliers of every output are the best ones for them."""
    problem = random_problem(seed, n, Kind(notion="ldp", law=law))
    best = optimum(problem)
    if best is None:
        return
    plan = solve_plan(problem, margin=0.0)
    assert proven(problem, plan.prices) == pytest.approx(best, abs=1e-5)


def test_a_search_that_ends_early_has_a_bound(monkeypatch):
    """Here nothing but the blocks is done: what is counted is work, and no time."""
    monkeypatch.setattr(search, "SWEPT", 10)
    monkeypatch.setattr(search, "ALL_PAIRS", 100)
    monkeypatch.setattr(search.Stratum, "_sweeps", lambda *_: None)
    problem = random_problem(1, 30, Kind(notion="ldp", law="kept"))
    seen: list[float] = []
    early = solve_plan(problem, progress=lambda _, bound: seen.append(bound))
    monkeypatch.undo()
    best = solve_plan(problem)
    assert 0.0 < seen[0] <= seen[-1] <= early.lower_bound <= best.cost + 1e-9
    assert early.proof is not None
