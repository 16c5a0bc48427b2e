"""Plans where the time is over: blind draws keep what every plan keeps, and cost no program."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.errors import NoPlan, OutOfTime
from solvers.pace import NEVER, Clock
from solvers.plans import (
    dividing,
    generation,
    integer_plan,
    program,
    search,
    solve_plan,
)
from solvers.plans.dividing import Divider
from solvers.plans.generation import Generation, all_pairs
from tests.benchmarks.plans import lift_problem
from tests.profiles import scaled
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
@settings(max_examples=scaled(80), deadline=None)
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


def of_one_kind_each(n=400, secrets=12, seed=2):
    """Distinct rows of five records each, of which hardly two have the same secrets."""
    rng = np.random.default_rng(seed)
    codes = np.unique(rng.integers(0, (20, 9, 7), (2 * n, 3)), axis=0)
    codes = rng.permutation(codes)[:n]
    counts = np.zeros((secrets, n), np.int64)
    np.add.at(counts, (rng.integers(0, secrets, (5, n)), np.arange(n)), 1)
    return lift_problem(codes, counts, budget=1.0)


def test_blind_draws_of_many_classes_have_few_pairs(runs, monkeypatch):
    """Every input is a class of its own, so a draw of a whole group uses all its pairs."""
    problem = of_one_kind_each()
    group = whole(problem)
    drawn = generation.blind_draw(problem, group, np.random.default_rng(0))
    monkeypatch.setattr(Divider, "halves", lambda *_: None)
    undivided = generation.blind_draw(problem, group, np.random.default_rng(0))
    assert runs == []
    assert len(undivided.rows) > 0.9 * 400 * 400
    assert len(drawn.rows) < 0.2 * len(undivided.rows)
    # Inputs that are near to the outputs of their half cost less.
    assert drawn.cost < undivided.cost
    for flows in (drawn, undivided):
        assert search._keeps_limits(flows)
        sums = np.bincount(flows.rows, flows.flows, 400)
        assert sums == pytest.approx(problem.masses, rel=1e-9)
        sums = np.bincount(flows.columns, flows.flows, 400)
        assert sums == pytest.approx(problem.targets, rel=1e-9)


def test_parts_of_a_blind_draw_keep_tight_limits(runs):
    """With limits of a thousandth hardly any set of whole records keeps them: records are divided."""
    problem = many_secrets(n=60, secrets=20)
    tight = replace(
        problem,
        limits=replace(
            problem.limits,
            lower=np.full_like(problem.limits.lower, 0.999),
            upper=np.full_like(problem.limits.upper, 1.001),
        ),
    )
    plan = solve_plan(tight, time_limit=1e-9, deadline=1e-9)
    check(tight, plan)
    assert runs == []


def test_what_must_stay_is_not_drawn(runs):
    problem = replace(many_secrets(), stay=np.full(150, 0.01))
    plan = solve_plan(problem, time_limit=1e-9, deadline=1e-9)
    check(problem, plan)
    assert runs == []


def test_what_must_stay_may_break_a_limit_by_itself(runs):
    """Of 30 secrets a record's own becomes three times as likely where a tenth stays."""
    problem = replace(many_secrets(), stay=np.full(150, 0.1))
    with pytest.raises(NoPlan, match="what must stay at a symbol breaks a limit by"):
        solve_plan(problem, time_limit=1e-9, deadline=1e-9)
    assert runs == []


def test_too_much_that_must_stay_leaves_no_blind_draw():
    """Less than a limit allows, but nothing else of the same secret may come then."""
    problem = replace(many_secrets(), stay=np.full(150, 0.06))
    with pytest.raises(OutOfTime, match="before there was a plan"):
        solve_plan(problem, deadline=1e-9)


def test_forbidden_flows_change_places(runs):
    problem = many_secrets()
    drawn = solve_plan(problem, time_limit=1e-9, deadline=1e-9)
    some = np.arange(0, len(drawn.rows), 7)
    problem = replace(problem, forbidden=(drawn.rows[some], drawn.columns[some]))
    plan = solve_plan(problem, time_limit=1e-9, deadline=1e-9)
    check(problem, plan)
    assert runs == []


@pytest.mark.parametrize("other", [False, True])
def test_forbidden_flows_without_another_place_leave_no_blind_draw(other):
    """An input that may go nowhere, and an output that gets from one input only."""
    everything = np.arange(150)
    pair = everything, np.zeros(150, np.int64)
    forbidden = pair[::-1]
    if other:
        forbidden = pair[0][1:], pair[1][1:]
    problem = replace(many_secrets(), forbidden=forbidden)
    with pytest.raises(OutOfTime, match="before there was a plan"):
        solve_plan(problem, deadline=1e-9)


@pytest.mark.parametrize("make", [many_secrets, of_one_kind_each])
def test_no_flow_of_a_blind_draw_is_what_subtraction_leaves(make):
    """Parts that only such flows join would have to be settled across them, in integers."""
    problem = make()
    group = whole(problem)
    drawn = generation.blind_draw(problem, group, np.random.default_rng(0))
    assert drawn is not None
    least = np.minimum(group.masses[drawn.rows], group.targets[drawn.columns])
    # Limits that are drawn in by 1e-7 leave flows of that size.
    assert (drawn.flows > 1e-8 * least).all()
    records = np.rint(problem.masses / problem.masses.min()).astype(int)
    values = integer_plan(drawn.rows, drawn.columns, drawn.flows, records, records)[2]
    assert values.sum() == records.sum() * 2**40


def test_a_group_of_any_size_is_drawn_by_its_parts(runs, monkeypatch):
    """However many pairs it has, as long as no part that cannot be divided has too many."""
    monkeypatch.setattr(generation, "MOST_PAIRS", 6_000)
    group = whole(many_secrets())
    assert len(group.inputs) * len(group.outputs) > generation.MOST_PAIRS
    drawn = generation.blind_draw(many_secrets(), group, np.random.default_rng(0))
    assert drawn is not None
    assert runs == []
    sums = np.bincount(drawn.columns, drawn.flows, 150)
    assert sums == pytest.approx(group.targets, rel=1e-9)
    monkeypatch.setattr(Divider, "halves", lambda *_: None)
    assert (
        generation.blind_draw(many_secrets(), group, np.random.default_rng(0)) is None
    )


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


def test_a_group_that_misses_a_limit_leaves_the_plan_before(monkeypatch):
    """600 rows with 60 secrets: the audit refused the plan of 8 s, and that of 6 s was better than
    what came next.
    """
    problem = many_secrets()
    with monkeypatch.context() as early:
        # In small parts, as blocks that miss their time are drawn.
        early.setattr(search, "DRAWN_WHOLE", 0)
        drawn = solve_plan(problem, time_limit=1e-9, deadline=1e-9)

    def from_one(_stratum, group, *_):
        rows = np.full(len(group.outputs), group.inputs[0])
        nothing = generation._no_prices(group)
        return generation.Flows(
            group, rows, group.outputs, group.targets, 0.0, -np.inf, nothing
        )

    swept = []
    improved = search.Stratum._improved

    def counted(stratum, *group):
        swept.append(improved(stratum, *group))
        return swept[-1]

    def without_time(_stratum, group, *_):
        raise OutOfTime

    monkeypatch.setattr(search.Stratum, "_solve_group", from_one)
    monkeypatch.setattr(search.Stratum, "_improved", counted)
    monkeypatch.setattr(search.Stratum, "_optimise", lambda *_: False)
    monkeypatch.setattr(search.Stratum, "_solve_block", without_time)
    plan = solve_plan(problem, time_limit=1e3, deadline=2e3)
    assert swept == [None] * len(swept) != []
    check(problem, plan)
    assert plan.cost == pytest.approx(drawn.cost, abs=0.05)


@pytest.mark.parametrize("stay", [None, 0.01])
def test_long_after_the_deadline_parts_are_larger(monkeypatch, runs, stay):
    """To divide 52,645 rows with 30 secrets into small parts took 24 s, after a limit of 3 s."""
    divided = []
    halves = Divider.halves

    def counted(self, group, **options):
        divided.append(len(group.outputs))
        return halves(self, group, **options)

    monkeypatch.setattr(Divider, "halves", counted)
    problem = many_secrets(700, 20)
    if stay is not None:
        problem = replace(problem, stay=np.full(problem.size, stay))
    plans, divisions = [], []
    for most in (search.DRAWN_WHOLE, 0):
        monkeypatch.setattr(search, "DRAWN_WHOLE", most)
        divided.clear()
        plan = solve_plan(problem, time_limit=1e-9, deadline=1e-9)
        check(problem, plan)
        plans.append(plan)
        divisions.append(len(divided))
    assert runs == []
    if stay is not None:
        # What must stay is drawn in small parts, whenever.
        assert divisions[0] == divisions[1]
        return
    assert 0 < divisions[0] < 0.3 * divisions[1]
    assert plans[0].cost < 1.05 * plans[1].cost


def test_parts_are_small_until_long_after_the_deadline():
    stratum = search.Stratum.__new__(search.Stratum)
    stratum.problem = many_secrets(20, 2)
    stratum._grace = 3.0
    for seconds, is_whole in ((1.0, False), (-2.9, False), (-3.1, True)):
        stratum.deadline = lambda seconds=seconds: seconds
        assert stratum._is_drawn_whole is is_whole
    # Where the masses of outputs are free all of a part goes to one of them.
    stratum.problem = replace(stratum.problem, targets=None)
    assert not stratum._is_drawn_whole


def test_inputs_that_are_bins_of_their_own_are_not_filled_one_by_one(monkeypatch):
    """2,340 divisions of 52,645 rows filled 65,000 bins, nearly all of one input."""
    problem = many_secrets(300, 20)
    group = whole(problem)
    assert len(group.inputs) <= dividing.BINS
    filled, divided = [], []
    shares_of, without_noise = Divider._shares, dividing._without_noise

    def noted(shares):
        filled.append(len(shares))
        return without_noise(shares)

    def counted(self, group, side):
        divided.append(len(group.inputs))
        return shares_of(self, group, side)

    monkeypatch.setattr(dividing, "_without_noise", noted)
    monkeypatch.setattr(Divider, "_shares", counted)
    parts = Divider(problem, group, np.random.default_rng(0)).parts(group, 40)
    assert len(divided) >= len(parts) - 1 > 4
    # What outputs lack, the shares of all bins, and those of all inputs.
    assert len(divided) < len(filled) <= 3 * len(divided)


@pytest.mark.parametrize("make", [many_secrets, of_one_kind_each])
def test_classes_of_inputs_are_found_without_a_comparison_of_numbers(monkeypatch, make):
    """Of 250 secrets a comparison of all numbers took an eighth of the whole command."""
    group = whole(make())
    values = group.ranges.limited
    values[:, 0] = -values[:, 0] * 0.0
    values[:, 1] = 0.0
    _, expected = np.unique(values.T, axis=0, return_inverse=True)
    unique = np.unique

    def of_one_number(array, **options):
        assert array.ndim == 1
        assert "axis" not in options
        return unique(array, **options)

    monkeypatch.setattr(np, "unique", of_one_number)
    found = generation._classes(group)
    pairs = set(zip(found.tolist(), expected.ravel().tolist(), strict=True))
    assert len(pairs) == len(set(found.tolist())) == expected.max() + 1
    assert found[0] == found[1]
