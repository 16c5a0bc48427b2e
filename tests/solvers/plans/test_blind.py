"""Plans where the time is over: blind draws keep what every plan keeps, and cost no program."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.errors import NoPlan, OutOfTime
from solvers.pace import NEVER, Clock
from solvers.plans import generation, program, search, solve_plan
from solvers.plans.generation import Generation, all_pairs
from tests.benchmarks.plans import lift_problem
from tests.solvers.plans.problems import check, optimum, random_problem
from tests.solvers.plans.test_ceiling import whole
from tests.solvers.plans.test_optimum import KINDS


def many_secrets(n=150, secrets=30, seed=1):
    """Distinct rows of one record each, with one of many secrets."""
    rng = np.random.default_rng(seed)
    codes = np.unique(rng.integers(0, (12, 9, 7), (2 * n, 3)), axis=0)
    codes = rng.permutation(codes)[:n]
    counts = np.zeros((secrets, len(codes)), np.int64)
    counts[rng.permutation(np.arange(len(codes)) % secrets), np.arange(len(codes))] = 1
    return lift_problem(codes, counts, budget=np.log(2.0))


@pytest.fixture
def runs(monkeypatch):
    """Pairs of every program that is begun."""
    begun: list[int] = []
    real = program.PlanProgram._solved

    def counted(self, is_vertex):
        begun.append(self._pairs)
        return real(self, is_vertex)

    monkeypatch.setattr(program.PlanProgram, "_solved", counted)
    return begun


@given(seed=st.integers(0, 10**6), n=st.integers(1, 12), kind=KINDS)
@settings(max_examples=80, deadline=None)
def test_a_plan_without_any_time_keeps_everything(seed, n, kind):
    """Or there is none, and no bound is above the optimum."""
    problem = random_problem(seed, n, kind)
    best = optimum(problem)
    try:
        plan = solve_plan(problem, time_limit=1e-9, deadline=1e-9)
    except (NoPlan, OutOfTime):
        # Only restrictions forbid a blind draw, unless there is no plan at all.
        assert best is None or kind.stay or kind.forbid
        return
    check(problem, plan)
    assert plan.ended_early
    assert best is not None
    assert plan.lower_bound <= best + 1e-7
    assert plan.cost >= best - 1e-6


def test_blind_draws_need_no_program(runs):
    problem = many_secrets()
    plan = solve_plan(problem, time_limit=1e-9, deadline=1e-9)
    check(problem, plan)
    assert runs == []
    # One flow for every input, and one for every class of inputs and output.
    assert len(plan.rows) <= 150 + 30 * 150
    # Near outputs come first: a draw from the whole table costs more.
    costs = problem.costs.block(np.arange(150), np.arange(150))
    assert plan.cost < problem.masses @ costs @ problem.masses - 0.05


def test_what_must_stay_leaves_no_blind_draw():
    problem = replace(many_secrets(), stay=np.full(150, 0.01))
    with pytest.raises(OutOfTime, match="before there was a plan"):
        solve_plan(problem, deadline=1e-9)


def test_a_group_that_is_too_large_has_no_blind_draw(monkeypatch):
    monkeypatch.setattr(generation, "MOST_PAIRS", 10)
    problem = many_secrets()
    with pytest.raises(OutOfTime, match="before there was a plan"):
        solve_plan(problem, deadline=1e-9)


def test_no_program_is_begun_that_does_not_fit(runs, monkeypatch):
    """By pairs and rows beforehand, and by its own speed afterwards."""
    problem = many_secrets(60)
    group = whole(problem)
    grown = Generation(problem, group, elastic=False)
    grown.add(*all_pairs(problem, group))
    monkeypatch.setattr(program, "ENTRY_TIME", 1e9)
    slow = Generation(problem, group, elastic=False)
    slow.add(*all_pairs(problem, group))
    with pytest.raises(OutOfTime, match="does not fit into the time"):
        slow.solve(Clock(1e6))
    assert runs == []
    solved = grown.solve(Clock(1e6))
    assert runs == [3600]
    assert grown._program.foreseen > 0.0
    grown._program._entry_time = 1e9
    with pytest.raises(OutOfTime, match="does not fit into the time"):
        grown.solve(Clock(1e6))
    # Without a limit everything fits.
    again = grown.solve(NEVER)
    assert again.cost == pytest.approx(solved.cost, abs=1e-9)


def test_sweeps_mend_blind_draws_in_small_groups(runs, monkeypatch):
    """Where the whole program does not fit: the cost falls, and groups are small."""
    problem = many_secrets()
    drawn = solve_plan(problem, time_limit=1e-9, deadline=1e-9)
    # Programs of all pairs of 40 outputs or more seem to take hours.
    monkeypatch.setattr(program, "ENTRY_TIME", 1e-5)
    monkeypatch.setattr(generation, "ALL_PAIRS", 1000)
    monkeypatch.setattr(search, "ALL_PAIRS", 1000)
    plan = solve_plan(problem, time_limit=1e3, deadline=2e3)
    check(problem, plan)
    assert runs
    assert max(runs) < 150 * 150 / 2
    assert plan.cost < drawn.cost
