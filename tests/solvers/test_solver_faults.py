"""Limits and Ctrl-C: whenever a computation is stopped, what it returns is true."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from itertools import count
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from flint import arb

from solvers import (
    Envelope,
    EnvelopeStatus,
    Points,
    Polytope,
    Progress,
    lower_envelope,
    programs,
)
from solvers.pricing.concave import ConcaveSearch
from solvers.programs import HighsMaster
from tests.ending import ends_by_itself
from tests.profiles import slow
from tests.solvers.reference import exact, hard_search, lift_matrix, random_table


def lifts(s: int, n: int, epsilon: float) -> tuple[Polytope, np.ndarray]:
    p = random_table(np.random.default_rng(0), "random", s, n)
    return Polytope(
        lift_matrix(p), np.full(s, np.exp(-epsilon)), np.full(s, np.exp(epsilon))
    ), p.sum(axis=0)


def assert_envelope(found: Envelope, polytope: Polytope, target: np.ndarray) -> None:
    dense = found.points.toarray()
    np.testing.assert_allclose(found.weights @ dense, target, atol=1e-8)
    assert found.weights.sum() == pytest.approx(1.0, abs=1e-8)
    assert polytope.residual(dense).max() < 1e-10
    assert 0.0 <= found.bound <= found.value + 1e-9


class Interrupt:
    """Ctrl-C at the k-th report of progress."""

    def __init__(self, k: int) -> None:
        self.left = k

    def __call__(self, _: Progress) -> None:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("k", [1, slow(2), slow(3), slow(5), 8])
def test_ctrl_c_at_a_report(k, workers):
    """The search stops there, with the bound of that moment and the best of the columns so far."""
    polytope, target = lifts(8, 60, 0.4)
    best = lower_envelope(polytope, target, method="columns", gap=1e-3)
    seen: list[Progress] = []
    interrupt = Interrupt(k)

    def report(at: Progress) -> None:
        seen.append(at)
        interrupt(at)

    found = lower_envelope(
        polytope, target, method="columns", gap=1e-9, workers=workers, progress=report
    )
    assert found.status is EnvelopeStatus.INTERRUPTED
    assert_envelope(found, polytope, target)
    assert len(seen) == k
    assert found.bound <= best.value
    assert found.value >= best.bound
    assert found.value <= seen[-1].value


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("change", ["addCols", "deleteCols"])
def test_ctrl_c_between_two_updates_of_the_columns(monkeypatch, change, k, when):
    """Before or after the k-th change of the program in HiGHS, which the pool has not made yet.

    The last program then had other columns than the pool: a ValueError, or weights of others.
    """
    polytope, target = lifts(5, 40, 0.4)
    # Columns are deleted at nearly every round.
    monkeypatch.setattr("solvers.envelope.column_pool.THIN_FROM", 1)
    monkeypatch.setattr("solvers.envelope.column_pool.THIN_TO", 0)
    monkeypatch.setattr("solvers.envelope.column_pool.FEWEST_THINNED", 20)
    left = k
    made = programs.highs_with

    def interrupted(highs: Any) -> Any:
        original = getattr(highs, change)

        def changed(*given: Any) -> None:
            nonlocal left
            # The two sides of the price box are no columns of the pool.
            left -= highs.getNumCol() > 2 * len(target)
            if left == 0 and when == "before":
                raise KeyboardInterrupt
            original(*given)
            if left == 0:
                raise KeyboardInterrupt

        setattr(highs, change, changed)
        return highs

    monkeypatch.setattr(programs, "highs_with", lambda way: interrupted(made(way)))
    found = lower_envelope(polytope, target, method="columns", gap=1e-9)
    assert left == 0
    assert found.status is EnvelopeStatus.INTERRUPTED
    assert_envelope(found, polytope, target)


@pytest.fixture
def listening():
    """A job that a shell runs in the background ignores Ctrl-C, and so would the tests in it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("listening")
def test_ctrl_c_by_the_keyboard():
    """A true signal, in the middle of a long search, ends it within a slice of its clock."""
    polytope, target = lifts(15, 150, 0.2)
    main = threading.main_thread().ident
    assert main is not None
    for delay in (0.02, 0.3):
        timer = threading.Timer(delay, signal.pthread_kill, (main, signal.SIGINT))

        # What comes before the first round is not the search, and Ctrl-C simply ends it.
        def begin(_: Progress, timer: threading.Timer = timer) -> None:
            if timer.ident is None:
                timer.start()

        found = lower_envelope(
            polytope,
            target,
            method="columns",
            gap=1e-9,
            time_limit=60.0,
            progress=begin,
        )
        timer.join()
        assert found.status is EnvelopeStatus.INTERRUPTED
        assert found.seconds < 30.0
        assert_envelope(found, polytope, target)


@pytest.mark.usefixtures("listening")
def test_ctrl_c_while_highs_runs(monkeypatch):
    """It is raised when HiGHS has returned: an exception in the middle left a program whose next run
    ended the process.
    """
    rng = np.random.default_rng(3)
    target = rng.dirichlet(np.ones(40))
    master = HighsMaster(target)
    master.add(Points.units(np.arange(40), 40), np.ones(40))
    master.add(Points.from_dense(rng.dirichlet(np.ones(40), 300)), rng.random(300))
    clock = time.process_time
    # The first look is for the limit, before HiGHS runs.
    looks = count()

    def interrupted() -> float:
        if next(looks) == 5:
            # Twice, as an impatient hand does it: it is raised once.
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
        return clock()

    monkeypatch.setattr(
        "solvers.programs.time", SimpleNamespace(process_time=interrupted)
    )
    with pytest.raises(KeyboardInterrupt):
        master.solve(60.0)
    assert next(looks) == 6
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    again = master.solve(60.0)
    assert again.is_optimal
    assert again.value < 1.0


@pytest.mark.parametrize("part", ["ConcaveSearch", "_listed_vertices"])
def test_ctrl_c_before_the_first_round(monkeypatch, part):
    """Whatever is given at the start is used; there is no bound yet but that costs are not
    negative.
    """

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    polytope, target = lifts(4, 70, 0.4)
    good = lower_envelope(polytope, target, gap=0.05)
    monkeypatch.setattr("solvers.envelope.preparation." + part, interrupted)
    found = lower_envelope(polytope, target, start=good.points)
    assert found.status is EnvelopeStatus.INTERRUPTED
    assert_envelope(found, polytope, target)
    assert (found.bound, found.rounds) == (0.0, 0)
    assert found.value == pytest.approx(good.value, abs=1e-6)


@pytest.mark.parametrize("limit", [0.0, 1e-6, 1e-3, 0.02, 0.1])
@pytest.mark.parametrize("method", ["auto", "columns"])
def test_time_limits(method, limit):
    polytope, target = lifts(3, 8, 0.4)
    truth = exact(polytope)
    found = lower_envelope(polytope, target, method=method, gap=1e-12, time_limit=limit)
    assert_envelope(found, polytope, target)
    assert found.status in (EnvelopeStatus.TIME_LIMIT, EnvelopeStatus.STALLED)
    assert bool(arb(found.bound) <= truth.dual_bound(found.dual, target))
    if limit == 0.0:
        assert found.status is EnvelopeStatus.TIME_LIMIT
        assert found.value <= float(-(target * np.log(target)).sum()) + 1e-12


@pytest.mark.parametrize(
    ("s", "n"),
    [slow(2, 20_000), slow(2, 5000), (8, 3000), (30, 3000)],
)
def test_a_small_limit_on_a_large_instance(s, n):
    """Nothing that takes long runs before the clock is looked at; an unlimited one would take
    minutes.
    """
    polytope, target = lifts(s, n, 0.3)
    for limit in (0.0, 0.3):
        with ends_by_itself():
            found = lower_envelope(polytope, target, gap=1e-6, time_limit=limit)
        assert found.status is EnvelopeStatus.TIME_LIMIT
        assert_envelope(found, polytope, target)


def test_memory_limit():
    """The smallest memory that can be given: the bound proven within it is a bound."""
    polytope, _ = hard_search()
    p = random_table(np.random.default_rng(0), "random", 12, 60)
    target = p.sum(axis=0)
    small = lower_envelope(
        polytope, target, method="columns", gap=1e-4, memory_limit=1, time_limit=3.0
    )
    assert small.status in (EnvelopeStatus.MEMORY_LIMIT, EnvelopeStatus.TIME_LIMIT)
    assert small.counts.boxes <= 1002
    assert_envelope(small, polytope, target)
    better = lower_envelope(polytope, target, method="columns", gap=0.25)
    assert small.bound <= better.value
    assert better.bound <= small.value


def test_a_search_goes_on_after_ctrl_c():
    """A search that was interrupted can be used again."""
    polytope, prices = hard_search()
    search = ConcaveSearch(polytope, workers=2)

    def stop(_: float) -> None:
        raise KeyboardInterrupt

    options = {
        "cutoff": np.inf,
        "tolerance": 1e-6,
        "slack": 0.0,
        "column_cutoff": np.inf,
    }
    # The search of the first slice may already be the whole one; then there was no report.
    with contextlib.suppress(KeyboardInterrupt):
        search.run(prices * 0.9, **options, progress=stop)
    again = search.run(np.zeros(60), **options)
    fresh = ConcaveSearch(polytope, workers=2).run(np.zeros(60), **options)
    assert again.bound == fresh.bound
