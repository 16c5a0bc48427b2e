"""Plans of many symbols: they keep what they must, their bounds hold, and their work grows as it
should.
"""

from __future__ import annotations

import math
import os
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from solvers.errors import NoPlan, OutOfTime
from solvers.pace import NEVER
from solvers.plans import (
    CellCosts,
    MatrixCosts,
    PlanLimits,
    PlanPenalty,
    affine_rows,
    dividing,
    generation,
    integer_plan,
    search,
    solve_plan,
)
from solvers.plans.bounds import sharpened
from solvers.plans.dividing import Cutter, Divider, Mixture
from solvers.plans.generation import Generation, all_pairs
from solvers.plans.pricing import Pricer
from solvers.plans.program import Group, PlanProgram, Prices
from solvers.plans.ranges import Ranges
from tests.benchmarks.plans import lift_problem, read_adult, run
from tests.profiles import slow
from tests.solvers.plans.problems import Kind, check, optimum, random_problem
from tests.solvers.plans.test_ceiling import whole


def table(n, seed=0):
    """Codes (n, 6) of different rows, and counts of two secrets that depend on them."""
    rng = np.random.default_rng(seed)
    skill = rng.random(4 * n)
    sizes = (16, 15, 7, 9, 7, 2)
    places = [
        np.clip(skill + rng.normal(0, 0.25, 4 * n), 0, 0.999) * size for size in sizes
    ]
    codes = np.unique(np.column_stack(places).astype(np.int64), axis=0)
    codes = rng.permutation(codes)[:n]
    counts = rng.geometric(0.3, size=n)
    high = rng.binomial(counts, 0.05 + 0.4 * codes[:, 0] / 16)
    return codes, np.array([counts - high, high])


@pytest.mark.parametrize(
    "kind",
    [
        Kind(),
        slow(Kind(cells=False, groups=2)),
        Kind(notion="ldp", law="free"),
        Kind(law="other", strata=True),
        Kind(notion="upper", forbid=True),
        slow(Kind(notion="none", penalty="distance")),
        Kind(penalty="largest", law="free"),
    ],
)
def test_middle_sized_plans_are_optimal(kind):
    """Sizes at which nothing is tuned down: blocks and pricing of 12,500 pairs."""
    problem = random_problem(5, 112, kind)
    plan = solve_plan(problem)
    best = optimum(problem)
    check(problem, plan)
    assert best is not None
    assert plan.lower_bound <= best + 1e-7
    assert plan.cost == pytest.approx(best, rel=1e-5)
    assert plan.lower_bound == pytest.approx(best, rel=1e-5)


def test_stopping_early_is_sound():
    """Out of time, a plan keeps everything, and its bound holds for the optimum."""
    problem = lift_problem(*table(400))
    best = solve_plan(problem)
    early = solve_plan(problem, time_limit=0.01)
    check(problem, early)
    assert early.ended_early
    assert 0.0 < early.lower_bound <= best.cost
    assert best.lower_bound <= best.cost <= early.cost


def test_a_search_whose_next_program_does_not_fit_ended_early(monkeypatch):
    """Time is left then, but not enough: the gap is open, and whoever reads the plan must know."""
    monkeypatch.setattr(search, "ALL_PAIRS", 100)
    monkeypatch.setattr(generation, "ENTERING", 1)
    problem = lift_problem(*table(120))
    real = Generation.solve

    def solve(self, *arguments, **options):
        if self.rounds == 1 and len(self._group.outputs) == problem.size:
            raise OutOfTime("the next program does not fit")
        return real(self, *arguments, **options)

    monkeypatch.setattr(Generation, "solve", solve)
    early = solve_plan(problem, time_limit=1000.0)
    check(problem, early)
    assert early.cost - early.lower_bound > 1e-4 * early.cost
    assert early.ended_early


def test_many_limits_are_joined_without_comparing_all_pairs(monkeypatch):
    """After an earlier release there are thousands of limits: one for each secret and output."""
    tried = []
    real = affine_rows.affine

    def affine(of, values):
        tried.append(1)
        return real(of, values)

    monkeypatch.setattr(affine_rows, "affine", affine)
    rng = np.random.default_rng(3)
    n, rows = 40, 300
    shares = np.full(n, 1.0 / n)
    # All are from 1/2 to 3/2, before and after.
    values = 0.75 + 0.5 * rng.random((rows, n))
    values /= (values @ shares)[:, None]
    # The lift of the one secret is 2 minus that of the other.
    both = np.concatenate([values, 2.0 - values])
    limits = PlanLimits(
        values=both,
        lower=np.full(2 * rows, 0.9),
        upper=np.full(2 * rows, 1.2),
        groups=np.zeros(2 * rows, np.int64),
    )
    made = Ranges.of(limits, np.arange(n), shares, 0.0)
    assert len(made.values) == rows
    assert made.lower == pytest.approx(0.9)
    assert made.upper == pytest.approx(1.1)
    assert len(tried) <= 2 * rows


def with_penalty(problem, price=0.4):
    """Two groups of forms that are affine in the values: twice a distance from 1, and a kink."""
    t = problem.limits.values[1]
    forms = np.array([t - 1.0, 1.0 - t, 0.0 * t, 0.5 * t - 0.6])
    penalty = PlanPenalty(forms=forms, groups=np.array([0, 0, 1, 1]), price=price)
    return replace(problem, penalty=penalty)


@pytest.mark.parametrize("kind", [Kind(), Kind(law="other", strata=True)])
def test_a_search_may_begin_with_a_plan(kind, monkeypatch):
    """Of another penalty: it gets no worse, and better where there is time."""
    monkeypatch.setattr(search, "ALL_PAIRS", 100)
    problem = random_problem(5, 112, kind)
    first = solve_plan(problem)
    dearer = with_penalty(problem) if kind == Kind() else problem
    begun = first.cost
    if dearer.penalty is not None:
        begun += 0.4 * dearer.penalty.of(first.rows, first.columns, first.flows)
    late = solve_plan(dearer, start=first, time_limit=1e-9)
    check(dearer, late)
    assert late.cost <= begun + 1e-9
    assert late.blocks == 0
    done = solve_plan(dearer, start=first)
    check(dearer, done)
    assert done.cost == pytest.approx(optimum(dearer), rel=1e-5)


def walk(seconds, symbols, of_symbol):
    """Sizes of the blocks of a start with so much time, if blocks take so long a symbol."""
    left = [seconds]
    pace = search.BlockPace(lambda: left[0], symbols)
    sizes = []
    while symbols > 0:
        size = pace.size()
        spent = size * of_symbol(size)
        left[0] -= spent
        symbols -= size
        pace.note(size, size, spent)
        sizes.append(size)
    return sizes, left[0]


def test_first_blocks_are_smaller_where_outputs_have_many_limits():
    """With 300 secrets a block of 38 symbols takes 1.2 s, and the rest was drawn blindly."""
    usual = search.SMALLEST_BLOCK
    assert search.smallest_block(300, 300, math.inf) == usual
    assert search.smallest_block(300, 300, 20.0) == usual
    assert search.smallest_block(300, 300, 5.0) == usual // 2
    assert search.smallest_block(300, 300, 2.0) == search.LEAST_BLOCK
    assert search.smallest_block(300, 300, 0.0) == search.LEAST_BLOCK
    assert search.smallest_block(813, 60, 2.0) == usual // 2
    # Few limits: what takes time is to make the programs, of any size.
    assert search.smallest_block(50_000, 15, 0.0) == usual


def test_the_pace_begins_with_the_smallest_blocks():
    pace = search.BlockPace(lambda: 1.0, 300, search.LEAST_BLOCK)
    assert pace.size() == search.LEAST_BLOCK
    assert not pace.is_short
    pace.note(9.4, 9, 0.01)
    # At this speed there is time for larger ones.
    assert pace.size() == 2 * search.LEAST_BLOCK
    pace.note(9.4, 9, 0.5)
    assert pace.size() == search.LEAST_BLOCK
    assert pace.is_short


def test_blocks_are_as_large_as_time_allows():
    """Without a limit the largest from the sixth on, without time the smallest; else in time."""
    least, most = search.SMALLEST_BLOCK, search.LARGEST_BLOCK

    def of_symbol(size):
        return 1e-4 * (size / least) ** 0.7

    sizes, _ = walk(math.inf, 40_000, of_symbol)
    assert sizes[:6] == [least * 2**k for k in range(6)]
    assert set(sizes[6:]) == {most}
    sizes, _ = walk(0.0, 40_000, of_symbol)
    assert set(sizes) == {least}
    for seconds in (6.0, 10.0, 20.0, 40.0):
        sizes, left = walk(seconds, 40_000, of_symbol)
        assert least < max(sizes)
        assert -0.05 * seconds <= left <= 0.5 * seconds


@pytest.mark.parametrize("most", [40, 150, 299])
def test_parts_without_a_plan_leave_it_to_larger_ones(monkeypatch, most):
    """Here every part of at most so many outputs has none."""
    problem = random_problem(5, 300, Kind())
    solved = []
    block = search.Stratum._block

    def of_large(self, group, clock):
        if len(group.outputs) <= most:
            raise NoPlan("too small")
        solved.append(len(group.outputs))
        return block(self, group, clock)

    monkeypatch.setattr(search.Stratum, "_block", of_large)
    plan = solve_plan(problem, time_limit=0.5)
    check(problem, plan)
    # A block whose other half has none is solved again, as a part of a larger one.
    assert sum(solved) >= problem.size
    assert 1 <= plan.blocks <= problem.size // most


def test_hurried_divisions_compare_no_cuts(monkeypatch):
    """Once the first block has shown that the time does not do."""
    compared = []
    within = Cutter._within

    def counted(self, symbols, masses, cut):
        compared.append(len(symbols))
        return within(self, symbols, masses, cut)

    monkeypatch.setattr(Cutter, "_within", counted)
    problem = lift_problem(*table(800))
    check(problem, solve_plan(problem, time_limit=1e-9))
    # Large sets on the way to the first block: the whole, a half and a quarter.
    assert 0 < len(compared) <= 3 * dividing.TRIED
    assert len(set(compared)) == len(compared) // dividing.TRIED


def test_work_of_cuts_grows_with_the_symbols(monkeypatch):
    """Also where a column has nearly as many codes as there are symbols."""
    counted = []
    halved = dividing._halved

    def counting(ranks, sums):
        # What is counted, and the bins that it is counted in.
        counted[-1] += ranks.size + len(ranks) * (int(ranks.max()) + 1)
        return halved(ranks, sums)

    monkeypatch.setattr(dividing, "_halved", counting)
    for n in (1000, 2000, 4000):
        rng = np.random.default_rng(4)
        codes = np.column_stack([rng.integers(0, 5, (n, 4)), rng.permutation(n)])
        costs = CellCosts(codes, np.full(5, 0.2), [None] * 4 + [np.arange(n)])
        counted.append(0)
        assert len(Cutter(costs, rng).parts(np.arange(n), 40)) >= n / 40
    assert counted[1] < 2.6 * counted[0]
    assert counted[2] < 2.6 * counted[1]


def test_work_of_a_division_grows_with_the_symbols(monkeypatch):
    """Each level of halves looks at about all inputs once, and programs have few variables."""
    looked_at, sizes = [], []
    halves, solved = Divider.halves, dividing.solve_program

    def counted(self, group):
        looked_at.append(len(group.inputs))
        return halves(self, group)

    def measured(program):
        sizes.append(program.costs.size)
        return solved(program)

    monkeypatch.setattr(Divider, "halves", counted)
    monkeypatch.setattr(dividing, "solve_program", measured)
    each = []
    for n in (500, 1000, 2000):
        looked_at.clear()
        problem = lift_problem(*table(n))
        group = whole(problem)
        leaves = Divider(problem, group, np.random.default_rng(0)).parts(group, 40)
        # Few inputs belong to several parts.
        assert sum(len(leaf.inputs) for leaf in leaves) < 1.1 * n
        each.append(sum(looked_at) / (n * math.log2(n / 40)))
    assert max(each) < 1.5 * min(each)
    assert 0 < max(sizes) <= dividing.BINS


def test_the_mean_cost_within_a_set():
    rng = np.random.default_rng(7)
    codes = rng.integers(0, 6, (40, 3))
    places = [None, np.array([0.0, 4.0, 1.0, 9.0, 2.0, 2.0]), None]
    costs = CellCosts(codes, [0.5, 0.3, 0.2], places)
    rows, masses = rng.permutation(40)[:5], rng.random(5)
    block = costs.block(rows, rows)
    mean = masses @ block @ masses / masses.sum() ** 2
    assert costs.spread(rows, masses) == pytest.approx(mean, rel=1e-12)
    others = rng.permutation(40)[:7]
    means = costs.block(others, rows) @ masses / masses.sum()
    np.testing.assert_allclose(costs.means(others, rows, masses), means, atol=1e-14)
    matrix = MatrixCosts(costs.block(np.arange(40), np.arange(40)))
    assert matrix.spread(rows, masses) == pytest.approx(mean, rel=1e-12)
    np.testing.assert_allclose(matrix.means(others, rows, masses), means, atol=1e-14)


def test_cuts_follow_columns_that_depend_on_each_other():
    """One column of its own, and three that are nearly the same: a cut along these is better."""
    rng = np.random.default_rng(8)
    common = rng.integers(0, 2, 2000)
    noisy = [common ^ (rng.random(2000) < 0.02) for _ in range(3)]
    codes = np.column_stack([rng.integers(0, 2, 2000), *noisy])
    costs = CellCosts(codes, np.full(4, 0.25))
    values = 1.0 + 0.2 * rng.choice([-1.0, 1.0], (1, 2000))
    limits = PlanLimits(
        values=values,
        lower=np.array([0.9]),
        upper=np.array([1.1]),
        groups=np.zeros(1, np.int64),
    )
    symbols, masses = np.arange(2000), np.full(2000, 1 / 2000)
    mixture = Mixture.of(Ranges.of(limits, symbols, masses, 0.0))
    for seed in range(5):
        cutter = Cutter(costs, np.random.default_rng(seed), dividing.TRIED)
        side = cutter.side(symbols, masses, mixture)
        assert abs(common[side].mean() - common[~side].mean()) > 0.9


@pytest.fixture
def small_groups(monkeypatch):
    """Only blocks and sweeps, of small groups."""
    monkeypatch.setattr(search, "LARGEST_PROGRAM", 0)
    monkeypatch.setattr(search, "SMALLEST_BLOCK", 20)
    monkeypatch.setattr(search, "LARGEST_BLOCK", 20)
    monkeypatch.setattr(search, "SWEPT", 40)


@pytest.mark.usefixtures("small_groups")
def test_a_sweep_is_never_worse():
    costs = []
    solve_plan(lift_problem(*table(160)), progress=lambda cost, _: costs.append(cost))
    assert len(costs) > 3
    assert all(np.diff(costs) <= 1e-9)


def test_plans_of_long_tables_keep_their_limits(monkeypatch):
    """Blocks of more than `LARGEST_PROGRAM` rows have rules of their own."""
    problem = lift_problem(*table(800))
    monkeypatch.setattr(search, "LARGEST_PROGRAM", 0)
    check(problem, solve_plan(problem, time_limit=0.5))


def test_sharpened_prices_prove_more():
    problem = lift_problem(*table(300))
    group = whole(problem)
    pricer = Pricer(problem, group)
    rng = np.random.default_rng(2)
    n = problem.size
    prices = Prices(
        rng.uniform(0, 0.2, n),
        rng.uniform(-0.2, 0, n),
        rng.normal(size=(1, n)),
        np.zeros((0, n)),
    )
    before = pricer.price(prices, most=1, tolerance=1e-9).bound
    better, priced = sharpened(pricer, group, prices)
    after = pricer.price(better, most=1, tolerance=1e-9).bound
    assert priced.bound == pytest.approx(after, abs=1e-9)
    assert before < after <= solve_plan(problem).cost


@pytest.mark.parametrize(
    ("limited", "has_penalty"), [(True, False), (False, True), (True, True)]
)
def test_the_best_prices_of_outputs_prove_the_optimum(limited, has_penalty):
    """From the prices of inputs of an optimal plan alone, whatever the others are."""
    problem = lift_problem(*table(100))
    if has_penalty:
        problem = with_penalty(problem)
    if not limited:
        problem = replace(problem, limits=PlanLimits.none(problem.size))
    plan = solve_plan(problem, gap=1e-9, margin=0.0)
    group = whole(problem)
    n, kinds = problem.size, len(group.ranges.values)
    prices = Prices(
        plan.prices,
        np.zeros(n),
        np.zeros((kinds, n)),
        np.zeros((0, n)),
        np.zeros((4 if has_penalty else 0, n)),
    )
    _, priced = sharpened(Pricer(problem, group), group, prices)
    assert priced.bound == pytest.approx(plan.cost, abs=1e-6)
    assert priced.bound <= plan.cost + 1e-9


@pytest.mark.parametrize("kind", ["distance", "largest"])
@pytest.mark.parametrize("law", ["kept", "free"])
@pytest.mark.parametrize("size", [0.1, 1.0, 30.0])
def test_any_prices_of_a_penalty_prove_no_more_than_the_optimum(kind, law, size):
    """Those beyond the price of the penalty, or negative ones, count as far as they prove it."""
    rng = np.random.default_rng(6)
    for seed in range(20):
        problem = random_problem(seed, 6, Kind(penalty=kind, law=law, notion="none"))
        members = np.arange(6)
        ranges = Ranges.of(
            problem.limits, members, problem.masses, 0.0, problem.penalty
        )
        is_free = problem.targets is None
        group = Group(members, members, problem.masses, problem.masses, is_free, ranges)
        nothing = np.zeros(6)
        forms = rng.normal(size / 2, size, (len(problem.penalty.forms), 6))
        no_limits = np.zeros((len(ranges.values), 6)), np.zeros((0, 6))
        prices = Prices(nothing, nothing, *no_limits, forms)
        priced = Pricer(problem, group).price(prices, most=1, tolerance=1e-9)
        assert priced.bound <= optimum(problem) + 1e-7


@pytest.mark.usefixtures("small_groups")
def test_work_of_blocks_and_sweeps_is_linear(monkeypatch):
    """Pairs in all programs, for each symbol, do not grow with the number of symbols."""
    pairs = []

    def counted(self, rows, *rest):
        pairs.append(len(rows))
        return add(self, rows, *rest)

    add = PlanProgram.add
    monkeypatch.setattr(PlanProgram, "add", counted)
    # One sweep.
    monkeypatch.setattr(search, "LITTLE_GAIN", 1.0)
    each = []
    for n in (200, 400, 800):
        pairs.clear()
        solve_plan(lift_problem(*table(n)))
        each.append(sum(pairs) / n)
    assert max(each) < 1.5 * min(each)


def real_rows(columns, secret, records):
    """The plan of rows of these columns of the Adult table, within lifts of exp(1/2)."""
    folder = os.environ.get("MECHDESIGN_DATA")
    if folder is None:
        pytest.skip("MECHDESIGN_DATA names no folder with adult/adult.data")
    adult = read_adult(Path(folder))

    def coded(names):
        cells = [np.unique(adult[name], return_inverse=True)[1] for name in names]
        return np.column_stack(cells)[:records]

    secrets = np.unique(coded(secret), axis=0, return_inverse=True)[1].ravel()
    codes, rows = np.unique(coded(columns), axis=0, return_inverse=True)
    counts = np.zeros((secrets.max() + 1, len(codes)), np.int64)
    np.add.at(counts, (secrets, rows.ravel()), 1)
    return lift_problem(codes, counts)


def cost_of_blocks(problem):
    """Parts of 40 rows at most, each with the best plan of its own."""
    group = whole(problem)
    rng = np.random.default_rng(0)
    leaves = Divider(problem, group, rng).parts(group, 40)
    assert max(len(leaf.inputs) * len(leaf.outputs) for leaf in leaves) <= 40**2
    cost = 0.0
    for leaf in leaves:
        generation = Generation(problem, leaf, elastic=False)
        generation.add(*all_pairs(problem, leaf))
        found = generation.flows(generation.solve_at_once(NEVER), -math.inf)
        assert search._keeps_limits(found)
        cost += found.cost
    return cost


def test_rare_secrets_go_to_many_parts():
    """Of ten secrets some belong to few of the 2,000 records, and every part needs all of them.

    Whole records leave no part of less than some hundred rows within the limits.
    """
    problem = real_rows(
        ["education", "occupation", "hours"], ["race", "sex"], records=2_000
    )
    assert len(problem.limits.values) == 10
    # Measured: 0.300, and 0.335 where inputs do not tend to the half of their own outputs (`OWN` 1).
    assert cost_of_blocks(problem) < 0.31


def test_parts_of_real_rows_are_mixed(monkeypatch):
    """Near rows have near incomes. Cuts that do not mind what they displace cost more."""
    problem = real_rows(
        ["age", "workclass", "education", "occupation", "sex", "hours"],
        ["income"],
        records=2_000,
    )
    cost = cost_of_blocks(problem)
    monkeypatch.setattr(dividing, "DISPLACED", 0.0)
    monkeypatch.setattr(dividing, "DISPLACED_WITHIN", 0.0)
    assert cost_of_blocks(problem) > 1.1 * cost


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "cells"),
    [
        ("income:2:30", 0.909),
        ("income:3:60", 0.88),
        ("income:6:10", 0.88),
        ("race:2:30", 0.901),
        ("relationship:2:30", 0.868),
    ],
)
def test_adult(case, cells):
    """Unchanged cells of the Adult table, law kept, all lifts within exp(1/2): exactly.

    Two columns are solved to the end; of more the share is one that blocks reach before any limit.
    """
    folder = os.environ.get("MECHDESIGN_DATA")
    if folder is None:
        pytest.skip("MECHDESIGN_DATA names no folder with adult/adult.data")
    counts, plan = run(read_adult(Path(folder)), case)
    assert 1 - plan.cost >= cells
    assert plan.lower_bound <= plan.cost
    units = counts.sum(axis=0)
    rows, columns, values = integer_plan(
        plan.rows, plan.columns, plan.flows, units, units
    )
    n = len(units)
    assert (np.bincount(rows, minlength=n) > 0).all()
    sums = np.zeros(n, np.int64)
    np.add.at(sums, columns, values)
    assert (sums == units * 2**40).all()
    # exp(1/2) lies between these, and exp(-1/2) between their inverses.
    above = 1.6487212707001
    released = np.zeros((len(counts), n))
    for k, row in enumerate(counts):
        np.add.at(released[k], columns, values * (row / units)[rows])
    shares = released / sums
    lifts = shares / (counts.sum(axis=1) / counts.sum())[:, None]
    assert lifts.max() <= above
    assert lifts.min() >= 1 / above


@pytest.mark.slow
def test_memory_grows_with_the_symbols_and_not_with_their_blocks():
    """Masses of every symbol for each of the 500 blocks would take 160 MB."""
    n = 40_000
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 6, size=(n, 12))
    secret = rng.random(n) < 0.2 + 0.1 * (codes[:, 0] > 2)
    counts = np.stack([~secret, secret]).astype(np.int64)
    problem = lift_problem(codes, counts)
    tracemalloc.start()
    plan = solve_plan(problem, time_limit=1e-3)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert plan.blocks > 300
    assert peak < 100e6


@pytest.mark.slow
def test_a_sweep_of_a_group_leaves_the_flows_of_others():
    """After every sweep all sums are kept, and no pair occurs twice."""
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 5, size=(3000, 6))
    secret = rng.random(3000) < 0.2 + 0.1 * (codes[:, 0] > 2)
    problem = lift_problem(codes, np.stack([~secret, secret]).astype(np.int64))
    check(problem, solve_plan(problem, time_limit=4.0), tolerance=1e-6)
