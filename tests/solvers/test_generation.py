"""Column generation when its parts lie: a wrong bound never comes out, nor a decomposition that is
none.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from solvers import (
    BackendFailure,
    ConcaveSearch,
    Envelope,
    EnvelopeStatus,
    Points,
    Polytope,
    lower_envelope,
    results,
)
from solvers.envelope import column_pool, generation
from solvers.envelope.column_pool import ColumnPool
from solvers.envelope.generation import IDLE_ROUNDS, Generation
from solvers.pricing.concave import SearchCounts, SearchResult, SearchStatus
from solvers.programs import HighsMaster, MasterSolution, MasterStatus, PriceBox
from solvers.results import envelope_bound
from tests.solvers.reference import Exact, exact, lift_matrix, not_above, random_table


def problem(seed: int = 0) -> tuple[Polytope, np.ndarray, Exact]:
    p = random_table(np.random.default_rng(seed), "random", 3, 7)
    polytope = Polytope(
        lift_matrix(p), np.full(3, np.exp(-0.4)), np.full(3, np.exp(0.4))
    )
    return polytope, p.sum(axis=0), exact(polytope)


def assert_envelope(
    found: Envelope, polytope: Polytope, target: np.ndarray, truth: Exact
) -> None:
    """A true decomposition of members, and a bound that is one."""
    dense = found.points.toarray()
    np.testing.assert_allclose(found.weights @ dense, target, atol=1e-7)
    assert found.weights.sum() == pytest.approx(1.0, abs=1e-7)
    assert found.weights.min() > 0.0
    assert polytope.residual(dense).max() < 1e-11
    assert bool(arb(found.bound) <= truth.dual_bound(found.dual, target))
    assert found.value >= truth.envelope(target) - 1e-7


def lying(monkeypatch, lie, *, after: int = 0):
    """HiGHS, but each answer from the `after`-th on is distorted: lie(solution, box, rng) ->
    solution.
    """

    class Liar(HighsMaster):
        calls = 0

        def solve(
            self, time_limit: float, box: PriceBox | None = None
        ) -> MasterSolution:
            Liar.calls += 1
            honest = super().solve(time_limit, box)
            return (
                lie(honest, box, np.random.default_rng(Liar.calls))
                if Liar.calls > after
                else honest
            )

    monkeypatch.setattr(generation, "HighsMaster", Liar)
    return Liar


LIES = {
    "half the weights": lambda s, box, rng: replace(s, weights=0.5 * s.weights),
    "no weights": lambda s, box, rng: replace(
        s, weights=np.zeros_like(s.weights), residual=0.0
    ),
    "all on the first column": lambda s, box, rng: replace(
        s, weights=np.eye(1, len(s.weights), 1)[0]
    ),
    "negative weights": lambda s, box, rng: replace(s, weights=s.weights - 0.1),
    "too few weights": lambda s, box, rng: replace(s, weights=s.weights[:-1]),
    "too many weights": lambda s, box, rng: replace(
        s, weights=np.append(s.weights, 0.0)
    ),
    "weights of other columns": lambda s, box, rng: replace(
        s, weights=rng.permutation(s.weights)
    ),
    "not a number in weights": lambda s, box, rng: replace(
        s, weights=s.weights * np.nan
    ),
    "not a number in prices": lambda s, box, rng: replace(s, dual=s.dual * np.nan),
    "infinite prices": lambda s, box, rng: replace(s, dual=s.dual + np.inf),
    "too few prices": lambda s, box, rng: replace(s, dual=s.dual[:-1]),
    "zero prices": lambda s, box, rng: replace(s, dual=np.zeros_like(s.dual)),
    "opposite prices": lambda s, box, rng: replace(s, dual=-s.dual),
    "huge prices": lambda s, box, rng: replace(s, dual=1e8 * (1.0 + s.dual)),
    "random prices": lambda s, box, rng: replace(s, dual=rng.random(len(s.dual)) * 3.0),
    "prices of a better world": lambda s, box, rng: replace(s, dual=s.dual + 0.05),
    "prices too low": lambda s, box, rng: replace(s, dual=s.dual - 0.05),
    "noise on prices": lambda s, box, rng: replace(
        s, dual=s.dual + 1e-4 * rng.standard_normal(len(s.dual))
    ),
    "a value of nothing": lambda s, box, rng: replace(s, value=0.0),
    "a value of minus infinity": lambda s, box, rng: replace(s, value=-np.inf),
    "no slack": lambda s, box, rng: replace(s, slack=0.0),
    "huge residual": lambda s, box, rng: replace(s, residual=1.0),
    "failure": lambda s, box, rng: replace(s, status=MasterStatus.FAILED),
    "no time": lambda s, box, rng: replace(s, status=MasterStatus.TIME_LIMIT),
}


UNUSABLE = {
    "too few weights",
    "too many weights",
    "not a number in weights",
    "not a number in prices",
    "infinite prices",
    "too few prices",
    "huge residual",
    "failure",
}
"""Answers that say of themselves that they are none, or do not have the form of one."""


@pytest.mark.parametrize(
    "method", ["columns", pytest.param("vertices", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("after", [0, 3])
@pytest.mark.parametrize("lie", LIES)
def test_a_back_end_that_lies(monkeypatch, lie, after, method):
    """A clear error, or an any-time answer that is right in everything it claims; never for ever."""
    polytope, target, truth = problem()
    liar = lying(monkeypatch, LIES[lie], after=after)
    options = {"method": method, "gap": 1e-6, "time_limit": 60.0}
    if after == 0 and lie in UNUSABLE:
        with pytest.raises(
            BackendFailure,
            match="HiGHS failed on the first master program; try method=",
        ):
            lower_envelope(polytope, target, **options)
        return
    found = lower_envelope(polytope, target, **options)
    assert liar.calls < 10 * IDLE_ROUNDS
    assert_envelope(found, polytope, target, truth)
    if found.status is EnvelopeStatus.OPTIMAL:
        assert found.gap <= 1e-6
        assert found.value == pytest.approx(truth.envelope(target), abs=1.1e-6)


def test_a_back_end_that_fails_now_and_then(monkeypatch):
    """Every third answer is a failure: what was found before stays."""
    polytope, target, truth = problem()
    lying(
        monkeypatch,
        lambda s, box, rng: (
            s if rng.random() < 0.7 else replace(s, status=MasterStatus.FAILED)
        ),
        after=2,
    )
    found = lower_envelope(polytope, target, method="columns", gap=1e-6)
    assert_envelope(found, polytope, target, truth)
    assert found.status in (EnvelopeStatus.BACKEND_FAILED, EnvelopeStatus.OPTIMAL)


def test_a_back_end_that_raises(monkeypatch):
    class Broken(HighsMaster):
        def solve(
            self, time_limit: float, box: PriceBox | None = None
        ) -> MasterSolution:
            raise RuntimeError("licence expired")

    monkeypatch.setattr(generation, "HighsMaster", Broken)
    polytope, target, _ = problem()
    with pytest.raises(RuntimeError, match="licence expired"):
        lower_envelope(polytope, target)


def test_a_failing_exact_master_is_replaced_by_a_boxed_one(monkeypatch):
    """Some numerical trouble goes away when prices are kept in bounds."""
    polytope, target, truth = problem()
    lying(
        monkeypatch,
        lambda s, box, rng: (
            s if box is not None else replace(s, status=MasterStatus.FAILED)
        ),
    )
    for method in ("vertices", "columns"):
        found = lower_envelope(
            polytope, target, method=method, gap=1e-6, time_limit=60.0
        )
        assert_envelope(found, polytope, target, truth)
        assert found.status is EnvelopeStatus.OPTIMAL
        assert found.gap <= 1e-6


def test_columns_that_the_master_never_takes(monkeypatch):
    """A master that forgets all columns but the first: rounds without gain come to an end."""

    class Forgetful(HighsMaster):
        calls = adds = 0

        def add(self, points: Points, costs: np.ndarray) -> None:
            Forgetful.adds += 1
            super().add(points, costs + (0.0 if Forgetful.adds == 1 else 100.0))

        def solve(
            self, time_limit: float, box: PriceBox | None = None
        ) -> MasterSolution:
            Forgetful.calls += 1
            return super().solve(time_limit, box)

    monkeypatch.setattr(generation, "HighsMaster", Forgetful)
    polytope, target, truth = problem()
    found = lower_envelope(
        polytope, target, method="columns", gap=1e-6, time_limit=60.0
    )
    assert_envelope(found, polytope, target, truth)
    assert found.status is EnvelopeStatus.STALLED
    assert Forgetful.calls < 5 * IDLE_ROUNDS


# ------------------------------------------------------------------ the bound's own arithmetic


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 40),
    size=st.sampled_from([1e-3, 1.0, 1e8]),
    minimum=st.floats(-10.0, 0.0),
)
def test_envelope_bound_is_rounded_down(seed, n, size, minimum):
    """Below the exact sum even where every entry of the target is off by 4 units in the last place."""
    rng = np.random.default_rng(seed)
    prices = size * rng.standard_normal(n)
    target = rng.dirichlet(np.ones(n))
    bound = envelope_bound(prices, target, minimum)
    eps = Fraction(float(np.finfo(float).eps))
    least = Fraction(minimum) + sum(
        Fraction(y) * Fraction(p) - 4 * eps * abs(Fraction(y) * Fraction(p))
        for y, p in zip(prices.tolist(), target.tolist(), strict=True)
    )
    assert Fraction(bound) <= least
    assert float(least) - bound <= 1e-14 * (
        abs(prices @ target) + np.abs(prices * target).sum() + abs(minimum)
    )


@pytest.mark.parametrize("minimum", [-np.inf, np.inf, np.nan])
def test_no_minimum_no_bound(minimum):
    assert envelope_bound(np.ones(2), np.full(2, 0.5), minimum) == -np.inf


def test_the_first_bound_is_that_costs_are_not_negative():
    polytope, target, _ = problem()
    found = lower_envelope(polytope, target, time_limit=0.0)
    assert (found.bound, found.dual.tolist(), found.rounds) == (0.0, [0.0] * 7, 0)


@pytest.mark.parametrize("share", [results.LOWERING_SHARE, 1e9])
@pytest.mark.parametrize("seed", range(8))
def test_lowered_prices_prove_what_they_are_said_to(seed, share, monkeypatch):
    """bound <= y.p + min over v of cost(v) - y.v, in rationals over all vertices, for the prices y
    that are returned.

    Masses over nine orders of magnitude make the prices of rare symbols so blunt that they are
    lowered.
    """
    rng = np.random.default_rng(seed)
    table = rng.random((3, 7)) * 10.0 ** rng.uniform(-9.0, 0.0, 7)
    table /= table.sum()
    polytope = Polytope(lift_matrix(table), np.full(3, 0.8), np.full(3, 1.25))
    truth = exact(polytope)
    target = table.sum(axis=0)
    monkeypatch.setattr(results, "LOWERING_SHARE", share)
    tree = ConcaveSearch(polytope)
    first = Points.from_dense(target)
    run = Generation(
        target=target, pricer=tree.run, initial=first, gap=1e-6, time_limit=60.0
    )
    prices = lower_envelope(polytope, target, method="columns", gap=1e-6).dual
    # What the master does not know: a price of a rare symbol that is far too high.
    blunt = prices + 1e-10 / target
    run.prices = blunt
    assert run._price_exactly()
    assert (run.dual <= blunt).all()
    assert (run.dual < blunt).any()
    bound = truth.dual_bound(run.dual, target)
    assert not_above(run.bound, bound)
    assert run.bound >= float(bound.mid()) - 1e-5


@pytest.mark.parametrize("seed", range(3))
def test_a_search_that_ends_without_a_column_goes_on_with_less_slack(seed):
    """A bound below the cutoff and no column is no stall as long as the search was allowed to end
    early.
    """
    polytope, target, truth = problem(seed)
    tree = ConcaveSearch(polytope)
    slacks: list[float] = []

    def early(prices, *, slack, enough=None, **options):
        result = tree.run(prices, slack=slack, enough=enough, **options)
        # Local searches (`enough`) are not asked for a bound.
        if enough is None:
            slacks.append(slack)
            if slack == generation.EARLY_SLACK:
                return replace(result, points=Points.units([], polytope.n))
        return result

    run = Generation(
        target=target,
        pricer=early,
        initial=Points.from_dense(target),
        gap=1e-6,
        time_limit=60.0,
        stabilise=False,
    )
    assert run.run() is EnvelopeStatus.OPTIMAL
    assert slacks[:2] == [generation.EARLY_SLACK, generation.LATE_SLACK]
    assert run.value - run.bound <= 1e-6
    assert run.value >= truth.envelope(target) - 1e-7


def test_the_bound_of_an_interrupted_pricing_is_kept():
    """What a search has reported before Ctrl-C is proven, so the result has it."""
    polytope, target, truth = problem(1)
    tree = ConcaveSearch(polytope)
    shown: list[float] = []

    def interrupted(prices, *, enough=None, progress=None, **options):
        result = tree.run(prices, enough=enough, **options)
        if enough is None:
            progress(result.bound)
            if shown[-1] > 0.0:
                raise KeyboardInterrupt
        return result

    run = Generation(
        target=target,
        pricer=interrupted,
        initial=Points.from_dense(target),
        gap=1e-6,
        time_limit=60.0,
        stabilise=False,
        progress=lambda state: shown.append(state.bound),
    )
    assert run.run() is EnvelopeStatus.INTERRUPTED
    assert run.bound == shown[-1] > 0.0
    assert not_above(run.bound, truth.dual_bound(run.dual, target))


def test_local_searches_leave_exact_pricing_its_turns(monkeypatch):
    """A run that is stopped among local searches has a bound: pricing came in between."""
    monkeypatch.setattr(generation, "FIRST_PROOF", 0.0)
    p = random_table(np.random.default_rng(2), "random", 5, 60)
    ends = np.exp(0.7)
    polytope = Polytope(lift_matrix(p), np.full(5, 1.0 / ends), np.full(5, ends))
    target = p.sum(axis=0)
    best = lower_envelope(polytope, target, gap=1e-4)
    tree = ConcaveSearch(polytope)
    seconds: list[float] = []

    def pricer(prices, *, enough=None, time_limit, **options):
        if enough is None:
            seconds.append(time_limit)
            # The share of a test's few milliseconds would be too short for a bound.
            time_limit = 60.0
        return tree.run(prices, enough=enough, time_limit=time_limit, **options)

    run = Generation(
        target=target,
        pricer=pricer,
        initial=Points.from_dense(target),
        gap=1e-6,
        time_limit=60.0,
        # Prices of a neighbour, for those of the first rounds prove nothing here.
        guess=best.dual,
    )
    run.prepare()
    while run._searches_locally:
        run.solve()
        run.price()
    assert seconds
    assert max(seconds) < 60.0 * generation.PROOF_SHARE
    assert run.bound > 0.0
    assert run.bound <= best.value


def test_a_long_search_for_columns_that_cover_is_no_stall():
    """More rounds than may be idle find columns without one coordinate, so there is no value yet."""
    n = 6
    first, second = np.nonzero(~np.eye(n - 1, dtype=bool))
    calls: list[float] = []

    def pricer(prices, **options):
        if len(calls) == IDLE_ROUNDS + 10:
            raise KeyboardInterrupt
        # Ever sharper mixtures of two: each is cheaper than all before, so all of them gain.
        calls.append(0.4 - 0.005 * len(calls))
        mixed = np.zeros((len(first), n))
        mixed[np.arange(len(first)), first + 1] = 1.0 - calls[-1]
        mixed[np.arange(len(first)), second + 1] = calls[-1]
        points = Points.from_dense(mixed)
        return SearchResult(SearchStatus.DONE, -np.inf, points, SearchCounts())

    target = np.full(n, 1.0 / n)
    run = Generation(
        target=target,
        pricer=pricer,
        initial=Points.from_dense(target),
        gap=1e-6,
        time_limit=60.0,
    )
    assert run.run() is EnvelopeStatus.INTERRUPTED
    assert run.rounds > IDLE_ROUNDS
    assert run.value == pytest.approx(np.log(n))


def test_local_searches_that_gain_nothing_leave_rounds_to_exact_pricing():
    """The same columns again and again are many, and help as little as none."""
    polytope, target, truth = problem()
    tree = ConcaveSearch(polytope)
    exact_rounds: list[int] = []

    def pricer(prices, *, enough=None, **options):
        result = tree.run(prices, enough=enough, **options)
        if enough is None:
            exact_rounds.append(run.rounds)
            return result
        again = [Points.units([0], polytope.n)] * 25
        return replace(result, points=Points.concatenate(again))

    run = Generation(
        target=target,
        pricer=pricer,
        initial=Points.from_dense(target),
        gap=1e-6,
        time_limit=60.0,
    )
    # They seem to gain at any prices.
    run.pool.reduced_costs = lambda points, prices: np.full(len(points), -1.0)
    # The point itself is a decomposition, so the searches may be at the master's own prices.
    run._box.in_use = False
    run.run()
    assert IDLE_ROUNDS // 2 < exact_rounds[0] < IDLE_ROUNDS
    assert run.bound > 0.0
    assert not_above(run.bound, truth.dual_bound(run.dual, target))


def test_a_box_that_suffices_at_once_is_left_all_the_same(monkeypatch):
    """All columns and prices are known: the next master has no box, although no column is new."""
    polytope, target, _ = problem()
    best = lower_envelope(polytope, target, method="columns", gap=1e-9)
    boxes: list[PriceBox | None] = []

    class Recording(HighsMaster):
        def solve(
            self, time_limit: float, box: PriceBox | None = None
        ) -> MasterSolution:
            boxes.append(box)
            return super().solve(time_limit, box)

    monkeypatch.setattr(generation, "HighsMaster", Recording)
    run = Generation(
        target=target,
        pricer=ConcaveSearch(polytope).run,
        initial=Points.concatenate([Points.from_dense(target), best.pool]),
        gap=1e-6,
        time_limit=60.0,
        guess=best.dual,
    )
    assert run.run() is EnvelopeStatus.OPTIMAL
    assert boxes[0] is not None
    assert None in boxes


def test_a_thinned_pool_keeps_what_is_in_use(monkeypatch):
    """The optimum of the master stays, and columns of the least reduced cost do."""
    monkeypatch.setattr(column_pool, "FEWEST_THINNED", 20)
    random = np.random.default_rng(3)
    n = 6
    target = np.full(n, 1.0 / n)
    points = Points.from_dense(
        np.vstack([target, np.eye(n), random.dirichlet(np.ones(n), 200)])
    )
    # Costs of the unit vectors are zero; without them the optimum is among the others.
    points = points.take(np.delete(np.arange(len(points)), np.arange(1, n + 1)))
    master = HighsMaster(target)
    pool = ColumnPool(target, points, None, master)
    first = master.solve(60.0)
    assert pool.accept(first)
    used = pool.in_use(first).toarray()
    pool.thin(first)
    assert len(pool) == 3 * n + 10 < pool.added == 201
    assert len(pool.points) == len(pool.costs) == len(pool)
    # The weights are those of the same columns as before.
    np.testing.assert_allclose(pool.points.combine(pool.weights), target, atol=1e-9)
    again = master.solve(60.0)
    assert again.value == pytest.approx(first.value, abs=1e-12)
    assert pool.is_usable(again)
    np.testing.assert_allclose(pool.in_use(again).toarray(), used)
    np.testing.assert_allclose(pool.points.toarray()[0], target)
    # Columns are added to both under one numbering, as before.
    assert pool.add(Points.units(range(n), n), again.dual, np.inf) == n
    cheaper = master.solve(60.0)
    assert cheaper.value == pytest.approx(0.0, abs=1e-12)
    assert pool.accept(cheaper)
    assert pool.value == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_thinning_changes_no_result(seed, monkeypatch):
    p = random_table(np.random.default_rng(seed), "random", 5, 30)
    ends = np.exp(0.6)
    polytope = Polytope(lift_matrix(p), np.full(5, 1.0 / ends), np.full(5, ends))
    target = p.sum(axis=0)
    whole = lower_envelope(polytope, target, gap=1e-6, method="columns")
    monkeypatch.setattr(column_pool, "FEWEST_THINNED", 0)
    monkeypatch.setattr(column_pool, "THIN_FROM", 2)
    monkeypatch.setattr(column_pool, "THIN_TO", 1)
    thinned = lower_envelope(polytope, target, gap=1e-6, method="columns")
    assert thinned.status is EnvelopeStatus.OPTIMAL
    assert thinned.value == pytest.approx(whole.value, abs=2e-6)
    assert len(thinned.pool) < len(whole.pool)


@pytest.mark.parametrize("seed", range(6))
def test_levels_prove_what_single_trees_prove(seed, monkeypatch):
    """With a first tree of one node every bound comes from levels: still valid and closed."""
    monkeypatch.setattr(generation, "EASY_NODES", 1)
    monkeypatch.setattr(column_pool, "FIRST_NODES", 3)
    polytope, target, truth = problem(seed)
    bounds: list[float] = []
    run = Generation(
        target=target,
        pricer=ConcaveSearch(polytope).run,
        initial=Points.from_dense(target),
        gap=1e-4,
        time_limit=60.0,
        by_levels=True,
        progress=lambda step: bounds.append(step.bound),
    )
    assert run.run() is EnvelopeStatus.OPTIMAL
    assert run.value - run.bound <= 1e-4
    best = truth.envelope(target)
    assert run.value >= best - 1e-7
    assert run.bound <= best + 1e-9
    assert bounds == sorted(bounds)
    # At the prices that are returned the bound holds for every vertex.
    assert not_above(run.bound, truth.dual_bound(run.dual, target))


def test_levels_end_where_trees_never_do(monkeypatch):
    """A pricer that is always out of nodes is given up after some levels."""
    polytope, target, _ = problem(0)
    tree = ConcaveSearch(polytope)
    calls: list[dict] = []

    def exhausted(prices, *, enough=None, **options):
        result = tree.run(prices, enough=enough, **options)
        if enough is None:
            calls.append(options)
            return replace(result, status=SearchStatus.NODE_LIMIT, bound=-10.0)
        return result

    run = Generation(
        target=target,
        pricer=exhausted,
        initial=Points.from_dense(target),
        gap=1e-6,
        time_limit=60.0,
        by_levels=True,
    )
    assert run.run() is EnvelopeStatus.MEMORY_LIMIT
    climbing = [options for options in calls if options.get("halves")]
    assert len(climbing) == column_pool.MOST_UNFINISHED + 1
    nodes = [options["node_limit"] for options in climbing]
    assert nodes == sorted(nodes)
    assert nodes[-1] > nodes[0]
    # What no tree has proven is not claimed: no level, above all.
    assert run.bound == 0.0


def test_levels_that_prove_nothing_more_are_given_up(monkeypatch):
    """Trees that end at a point which local searches do not find: the same level again and again."""
    monkeypatch.setattr(generation, "EASY_NODES", 1)
    polytope, target, _ = problem(0)
    tree = ConcaveSearch(polytope)
    rounds: list[float] = []

    def lost(prices, *, enough=None, node_limit=None, **options):
        if enough is not None:
            return tree.run(prices, enough=enough, **options)
        result = tree.run(prices, node_limit=1, **options)
        if not options.get("halves"):
            return replace(result, status=SearchStatus.NODE_LIMIT, bound=-0.5)
        rounds.append(options["cutoff"])
        found = Points.units([], polytope.n)
        return replace(result, status=SearchStatus.DONE, bound=-0.5, points=found)

    run = Generation(
        target=target,
        pricer=lost,
        initial=Points.from_dense(target),
        gap=1e-6,
        time_limit=60.0,
        by_levels=True,
    )
    assert run.run() is EnvelopeStatus.STALLED
    assert len(rounds) == IDLE_ROUNDS + 1
