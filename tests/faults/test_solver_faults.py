"""Solvers that lie, fail, hang or break: nothing leaves that was not verified, and the user is told what to do.

The lies are told at two places: by the master program's back-end, and by the whole envelope computation.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from mechdesign.auditing.verdict import audit_on_table
from mechdesign.channel.channel import Channel
from mechdesign.cli import main
from mechdesign.cli.console import Work
from mechdesign.core.errors import InputError, SolverFailure
from mechdesign.mechanisms import rules
from mechdesign.mechanisms.design_call import design
from mechdesign.mechanisms.result import Design
from mechdesign.notions import (
    ALIP,
    LDP,
    LEAST_BUDGET,
    LIP,
    AlphaLift,
    Chi2Lift,
    MaxLift,
    MinLift,
)
from mechdesign.tables.joint import Joint
from solvers import (
    BackendFailure,
    EmptyPolytope,
    Envelope,
    EnvelopeStatus,
    Points,
    TooManyVertices,
)
from solvers.programs import HighsMaster, MasterStatus
from tests.cases.designs import is_private

OPTIMUM = 0.8508
"""NMI of the optimum of Adult at epsilon 1, rounded down."""

NOTION = ALIP.from_epsilon(1.0)


def lying_envelope(monkeypatch, lie: Callable[[Envelope], Envelope]) -> None:
    """Every envelope is computed honestly and then distorted."""
    honest = rules.lower_envelope
    monkeypatch.setattr(rules, "lower_envelope", lambda *a, **k: lie(honest(*a, **k)))


def failing_envelope(monkeypatch, error: BaseException) -> None:
    def fails(*_, **__):
        raise error

    monkeypatch.setattr(rules, "lower_envelope", fails)


def points_as_they_are(envelope: Envelope) -> Envelope:
    """X itself, as if the budget allowed it."""
    n = envelope.points.shape[1]
    weights = envelope.weights @ envelope.points.toarray()
    return replace(
        envelope, points=Points.units(np.arange(n), n), weights=weights, value=0.0
    )


def half_the_weights(envelope: Envelope) -> Envelope:
    return replace(envelope, weights=envelope.weights * 0.5)


def weights_shuffled(envelope: Envelope) -> Envelope:
    return replace(
        envelope, weights=np.random.default_rng(0).permutation(envelope.weights)
    )


def weights_negative(envelope: Envelope) -> Envelope:
    return replace(envelope, weights=-envelope.weights)


def weights_nan(envelope: Envelope) -> Envelope:
    return replace(
        envelope,
        weights=np.where(
            np.arange(len(envelope.weights)) == 0, np.nan, envelope.weights
        ),
    )


def points_slightly_outside(envelope: Envelope) -> Envelope:
    """As first-order solvers leave them: the budget is broken by about 1e-3."""
    dense = envelope.points.toarray() ** 1.01
    return replace(
        envelope, points=Points.from_dense(dense / dense.sum(axis=1, keepdims=True))
    )


def points_not_summing_to_one(envelope: Envelope) -> Envelope:
    return replace(envelope, points=Points.from_dense(envelope.points.toarray() * 1.1))


def nothing_at_all(envelope: Envelope) -> Envelope:
    return replace(
        envelope, weights=np.zeros(0), points=Points.units([], envelope.points.shape[1])
    )


LIES = [
    points_as_they_are, weights_negative, weights_nan, points_slightly_outside, points_not_summing_to_one,
    nothing_at_all,
]  # fmt: skip

REPAIRABLE_LIES = [half_the_weights, weights_shuffled]
"""The points are right, and they determine the weights."""

FAILURES = [
    BackendFailure("HiGHS failed on the first master program"),
    TooManyVertices(
        'about 1e+12 vertices, too many for max_vertices=2000000; use method="columns"'
    ),
    EmptyPolytope("no point satisfies the constraints"),
]


def fell_back(found: Design, joint: Joint) -> None:
    assert (found.mechanism, found.fallback_from) == ("subset-merging", "optimal")
    assert found.nmi == design(joint, found.notion, mechanism="subset-merging").nmi
    assert is_private(found, joint)
    assert "subset-merging, verified" in found.messages[-1]


@pytest.mark.parametrize(
    ("lie", "notion"),
    [
        pytest.param(lie, notion, id=f"{notion}-{lie.__name__}", marks=marks)
        for notion, marks in ((NOTION, []), (LDP(1.0), [pytest.mark.slow]))
        for lie in LIES
        if (lie, notion) != (points_slightly_outside, LDP(1.0))
    ],
)
def test_success_claimed_with_an_infeasible_answer(adult, monkeypatch, lie, notion):
    """No channel of the lie is emitted: the heuristic answers, or an error where it may not."""
    lying_envelope(monkeypatch, lie)
    fell_back(design(adult, notion), adult)
    with pytest.raises(
        SolverFailure,
        match=r"no verified channel came out of the optimum \(.+\); use mechanism",
    ):
        design(adult, notion, fallback=False)


@pytest.mark.parametrize("lie", REPAIRABLE_LIES, ids=lambda f: f.__name__)
def test_a_lie_that_can_be_repaired_is_repaired_and_verified(adult, monkeypatch, lie):
    lying_envelope(monkeypatch, lie)
    found = design(adult, NOTION)
    assert found.nmi == pytest.approx(OPTIMUM, abs=1e-4)
    assert found.certificate.upper_bound_nmi >= OPTIMUM
    assert is_private(found, adult)


def test_a_break_of_the_budget_that_a_smaller_budget_mends_is_mended(
    adult, monkeypatch
):
    """Ratios of lifts leave room for it; the bound still belongs to the budget that was asked."""
    notion = LDP(1.0)
    honest = design(adult, notion)
    heuristic = design(adult, notion, mechanism="subset-merging")
    lying_envelope(monkeypatch, points_slightly_outside)
    found = design(adult, notion)
    assert (found.mechanism, found.fallback_from) == ("optimal", None)
    assert heuristic.nmi < found.nmi <= honest.certificate.upper_bound_nmi
    assert is_private(found, adult)


@pytest.mark.parametrize("error", FAILURES, ids=lambda e: type(e).__name__)
def test_failure_on_a_feasible_problem(adult, monkeypatch, error):
    failing_envelope(monkeypatch, error)
    fell_back(design(adult, NOTION), adult)
    with pytest.raises(SolverFailure, match=re.escape(str(error))) as caught:
        design(adult, NOTION, fallback=False)
    assert isinstance(caught.value.__cause__, type(error))


@pytest.mark.parametrize("error", [ZeroDivisionError("a bug"), MemoryError()], ids=repr)
def test_a_bug_of_ours_is_not_dressed_up_as_an_answer(adult, monkeypatch, error):
    failing_envelope(monkeypatch, error)
    with pytest.raises(type(error)):
        design(adult, NOTION)


def test_a_lie_in_one_margin_only_costs_another_round(adult, monkeypatch):
    told = []

    def once(envelope):
        told.append(envelope)
        return points_slightly_outside(envelope) if len(told) == 1 else envelope

    lying_envelope(monkeypatch, once)
    found = design(adult, NOTION)
    assert len(told) == 2
    assert (found.mechanism, found.fallback_from) == ("optimal", None)
    assert found.nmi == pytest.approx(OPTIMUM, abs=1e-4)


def test_a_time_out_with_a_poor_incumbent_emits_subset_merging_with_the_bound(
    adult, monkeypatch
):
    """The incumbent is P_X itself (nothing is released); the proven bound still holds for whatever is emitted."""

    def timed_out(envelope):
        return replace(
            envelope,
            status=EnvelopeStatus.TIME_LIMIT,
            weights=np.ones(1),
            points=Points.from_dense(adult.p_x),
            value=float(-(adult.p_x @ np.log(adult.p_x))),
        )

    lying_envelope(monkeypatch, timed_out)
    found = design(adult, NOTION)
    assert (found.mechanism, found.fallback_from) == ("subset-merging", "optimal")
    assert "search ended below subset-merging" in found.messages[-1]
    assert found.certificate.upper_bound_nmi >= OPTIMUM
    assert found.certificate.gap_nmi >= found.certificate.upper_bound_nmi - found.nmi
    assert is_private(found, adult)
    poor = design(adult, NOTION, fallback=False)
    assert (poor.mechanism, poor.nmi, poor.fallback_from) == ("optimal", 0.0, None)
    assert "time limit reached" in poor.messages[0]


def test_a_time_out_with_a_good_incumbent_keeps_it(adult, monkeypatch):
    lying_envelope(
        monkeypatch,
        lambda e: replace(e, status=EnvelopeStatus.TIME_LIMIT, bound=0.9 * e.bound),
    )
    found = design(adult, NOTION)
    assert (found.mechanism, found.fallback_from) == ("optimal", None)
    assert found.nmi == pytest.approx(OPTIMUM, abs=1e-4)
    assert "time limit reached" in found.messages[0]


class Distorted:
    """A back-end of the master that answers honestly the first `honest` times and then distorts its answers."""

    def __init__(self, target, distort, honest=0):
        self._master, self._distort, self._left = HighsMaster(target), distort, honest

    def add(self, points, costs):
        self._master.add(points, costs)

    def keep(self, selection):
        self._master.keep(selection)

    def solve(self, time_limit, box=None):
        solution = self._master.solve(time_limit, box)
        self._left -= 1
        return solution if self._left >= 0 else self._distort(solution)


def random_dual(solution):
    prices = np.random.default_rng(1).uniform(0.0, 5.0, len(solution.dual))
    return replace(solution, dual=prices, value=solution.value)


def too_good_a_value(solution):
    """Claims to have proven twice what is true."""
    return replace(solution, dual=2.0 * solution.dual, value=2.0 * solution.value)


def wrong_weights(solution):
    return replace(solution, weights=np.roll(solution.weights, 1))


def all_on_one(solution):
    weights = np.zeros_like(solution.weights)
    weights[-1:] = 1.0
    return replace(solution, weights=weights)


def nan_dual(solution):
    return replace(solution, dual=np.full_like(solution.dual, np.nan))


def failed(solution):
    return replace(solution, status=MasterStatus.FAILED)


def timed_out(solution):
    return replace(solution, status=MasterStatus.TIME_LIMIT)


def admits_a_residual(solution):
    return replace(solution, residual=1e-3)


@pytest.mark.parametrize(
    "method", [pytest.param("vertices", marks=pytest.mark.slow), "columns"]
)
@pytest.mark.parametrize("honest", [0, 3])
@pytest.mark.parametrize(
    "distort",
    [
        random_dual,
        too_good_a_value,
        wrong_weights,
        all_on_one,
        nan_dual,
        failed,
        timed_out,
        admits_a_residual,
    ],
    ids=lambda f: f.__name__,
)
def test_a_back_end_of_the_master_that_lies(
    adult, monkeypatch, method, honest, distort
):
    """Whatever it says: the search ends, what is emitted is private, the bound never below the true optimum."""
    monkeypatch.setattr(
        "solvers.envelope.generation.HighsMaster",
        lambda target: Distorted(target, distort, honest),
    )
    found = design(adult, NOTION, method=method)
    assert is_private(found, adult)
    merged = design(adult, NOTION, mechanism="subset-merging")
    assert found.nmi >= merged.nmi - 1e-12
    if found.certificate.upper_bound_nmi is not None:
        assert found.certificate.upper_bound_nmi >= OPTIMUM
        assert (
            found.certificate.gap_nmi >= found.certificate.upper_bound_nmi - found.nmi
        )


def test_a_master_on_which_highs_fails_without_presolve():
    """Rare cells make a 40 x 60 master whose exact basis is infeasible by 1e-5 when HiGHS stops, however it starts.

    Those with prices in a box are not, and one whose slack is nothing serves as well.
    """
    rng = np.random.default_rng([8, 154])
    rng.integers(2, 8), rng.integers(10, 60), rng.integers(4)
    counts = rng.integers(1, 1000, (4, 40)) * (rng.random((4, 40)) < 0.5)
    counts[rng.integers(0, 4, 40), np.arange(40)] += 1
    counts[np.arange(4), 0] += 1
    found = design(
        Joint.from_counts(counts),
        MinLift(5.7335238415733984),
        method="columns",
        gap=0.01,
        fallback=False,
    )
    assert found.certificate.gap_nmi <= 0.01


@pytest.fixture
def table(tmp_path, adult_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return str(adult_path)


def command(table: str, *more: str) -> list[str]:
    options = (
        "--contingency",
        "--useful",
        "occupation",
        "--epsilon",
        "1",
        "--output",
        "channel.json",
    )
    return ["design", table, *options, *more]


@pytest.mark.parametrize(
    "lie", [points_as_they_are, weights_nan, nothing_at_all], ids=lambda f: f.__name__
)
def test_no_fallback_on_the_command_line_writes_nothing_and_exits_3(
    table, monkeypatch, capfd, lie
):
    lying_envelope(monkeypatch, lie)
    assert main(command(table, "--no-fallback")) == 3
    out, err = capfd.readouterr()
    assert (out, os.listdir()) == ("", [])
    assert err.count("\n") == 1
    assert "no verified channel" in err
    assert "use --mechanism subset-merging" in err


@pytest.mark.parametrize("error", FAILURES, ids=lambda e: type(e).__name__)
def test_no_fallback_after_a_failure_writes_nothing_and_exits_3(
    table, monkeypatch, capfd, error
):
    failing_envelope(monkeypatch, error)
    assert main(command(table, "--no-fallback")) == 3
    out, err = capfd.readouterr()
    assert (out, os.listdir()) == ("", [])
    assert err.count("\n") == 1
    assert str(error) in err


def test_the_fallback_on_the_command_line_exits_0_and_says_so(
    table, monkeypatch, capfd
):
    lying_envelope(monkeypatch, points_as_they_are)
    assert main(command(table, "--json")) == 0
    out, err = capfd.readouterr()
    record = json.loads(out)
    assert (record["mechanism"], record["fallback_from"], record["verified"]) == (
        "subset-merging",
        "optimal",
        True,
    )
    # The bound does not depend on the columns that could not be rounded.
    assert record["upper_bound_nmi"] - record["nmi"] <= record["gap_nmi"] < 1.0
    assert "subset-merging, verified" in err
    assert (
        Channel.load("channel.json").record.provenance["mechanism"] == "subset-merging"
    )


def test_ctrl_c_during_the_search_writes_the_best_verified_channel(
    table, monkeypatch, capfd
):
    def interrupted(self, step):
        raise KeyboardInterrupt

    monkeypatch.setattr(Work, "step", interrupted)
    assert main(command(table, "--method", "columns", "--json")) == 0
    out, err = capfd.readouterr()
    record = json.loads(out)
    assert record["verified"]
    assert record["upper_bound_nmi"] >= OPTIMUM
    assert record["gap_nmi"] >= record["upper_bound_nmi"] - record["nmi"]
    assert Channel.load("channel.json").record.utility["nmi"] == record["nmi"]
    assert record["gap_nmi"] <= 1e-4 or "the search ended early (interrupted)" in err


def test_ctrl_c_before_there_is_a_channel_writes_nothing(table, monkeypatch, capfd):
    failing_envelope(monkeypatch, KeyboardInterrupt())
    assert main(command(table)) == 130
    assert os.listdir() == []
    assert "Traceback" not in capfd.readouterr().err


def test_a_bug_of_ours_on_the_command_line_writes_nothing(table, monkeypatch, capfd):
    failing_envelope(monkeypatch, ZeroDivisionError("a bug"))
    assert main([*command(table), "--debug"]) == main(command(table)) == 3
    assert "ZeroDivisionError: a bug" in capfd.readouterr().err
    assert os.listdir() == []


@pytest.mark.parametrize(
    "epsilon", [pytest.param(1e-16, marks=pytest.mark.slow), 1e-300]
)
@pytest.mark.parametrize("kind", [ALIP, LIP, LDP, MaxLift, Chi2Lift, AlphaLift])
def test_a_tiny_budget_is_served_never_broken(adult, kind, epsilon):
    notion = kind.at(epsilon)
    found = design(adult, notion)
    assert audit_on_table(found.channel, adult, notion).satisfied


@pytest.mark.parametrize("kind", [ALIP, LIP, LDP, MaxLift, Chi2Lift, AlphaLift])
def test_a_budget_that_doubles_cannot_divide_is_refused(adult, kind):
    with pytest.raises(
        InputError, match=r"^epsilon \(1e-320\) is too small to be divided"
    ):
        ALIP.from_epsilon(1e-320)
    budgets = dict.fromkeys(kind.budgets(), 1e-320)
    with pytest.raises(
        InputError, match=r"^eps\w+ \(1e-320\) is too small to design for"
    ):
        design(adult, kind(**budgets))


def test_budgets_of_symbols_and_averages_are_as_large(adult):
    with pytest.raises(InputError, match=r"^a budget of .* too small to design for"):
        design(adult, LIP(1.0), budgets={adult.sensitive.symbols[0]: (1.0, 1e-309)})
    with pytest.raises(InputError, match=r"^the average mi \(1e-309\) is too small"):
        design(adult, average={"mi": 1e-309})
    assert is_private(design(adult, LIP(LEAST_BUDGET)), adult)
