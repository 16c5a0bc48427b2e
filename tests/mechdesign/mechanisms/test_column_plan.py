"""Many own symbols of one column: the plan is as good as the dense program, and as exact."""

from __future__ import annotations

import time
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mechdesign as md
from mechdesign.core.errors import SolverFailure
from mechdesign.core.limits import LiftLimits
from mechdesign.core.progress import Step
from mechdesign.mechanisms import least_cost_instead
from mechdesign.mechanisms.least_cost_program import LeastCostProgram
from mechdesign.mechanisms.least_cost_rounding import deviation_of, truth_of
from tests.oracles.least_cost import least_cost
from tests.profiles import scaled

CLOSE = 1e-5
"""Relative difference of costs: limits are drawn in by some 1e-7."""

NOTIONS = (
    md.LDP(0.6),
    md.LIP(0.3),
    md.ALIP(0.2, 0.9),
    md.MaxLift(0.4),
    md.MinLift(0.5),
)


@pytest.fixture
def plans_from_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans for every table, however few symbols and many secrets it has."""
    monkeypatch.setattr(least_cost_instead, "MANY_SYMBOLS", 2)
    monkeypatch.setattr(least_cost_instead, "MOST_SECRETS", 100)


def table(seed: int, size: int, n: int, largest: int = 40) -> md.Joint:
    """A table of positive counts."""
    random = np.random.default_rng(seed)
    return md.Joint.from_counts(random.integers(1, largest, (size, n)))


def bounds_of(notion: md.Notion) -> dict[str, float]:
    limits = notion.limits
    assert isinstance(limits, LiftLimits)
    return {"lower": limits.lower, "upper": limits.upper, "ratio": limits.ratio}


def entry(channel: md.Channel, joint: md.Joint, x: str, y: str) -> Fraction:
    """W(y|x), exactly."""
    if y not in channel.outputs:
        return Fraction(0)
    row = joint.useful.names.index(x)
    integer = channel.rows[row][channel.outputs.index(y)]
    return Fraction(int(integer), channel.row_totals[row])


@st.composite
def tables(draw: st.DrawFn) -> md.Joint:
    """Tables with zeros, but with records of every symbol."""
    size = draw(st.integers(2, 4))
    n = draw(st.integers(2, 7))
    cells = st.lists(st.integers(0, 60), min_size=n, max_size=n)
    rows = draw(st.lists(cells, min_size=size, max_size=size))
    return md.Joint.from_counts(
        [[c + (s + x) % 2 for x, c in enumerate(row)] for s, row in enumerate(rows)]
    )


@settings(max_examples=scaled(60), deadline=None)
@given(tables(), st.sampled_from(NOTIONS), st.booleans(), st.booleans(), st.data())
def test_a_plan_costs_what_an_independent_program_finds(
    joint: md.Joint,
    notion: md.Notion,
    keep: bool,
    is_truth: bool,
    data: st.DataObject,
) -> None:
    """The optimum of scipy's program, with frequencies, stay and forbid as they were asked."""
    n = len(joint.useful)
    cost = 1.0 - np.eye(n)
    if not is_truth:
        drawn = st.lists(st.integers(0, 12), min_size=n * n, max_size=n * n)
        cost = np.array(data.draw(drawn), dtype=float).reshape(n, n) / 4.0
    stay = [0.0] * n
    stay[0] = data.draw(st.sampled_from([0.0, 0.25, 0.5, 1.0]))
    forbid = [(1, 0)] if data.draw(st.booleans()) else []
    names = joint.useful.names
    wanted = least_cost(
        joint.counts, cost, keep=keep, stay=stay, forbid=forbid, **bounds_of(notion)
    )
    with mock.patch.object(least_cost_instead, "MANY_SYMBOLS", 2):
        try:
            made = md.design(
                joint,
                notion,
                objective="truth" if is_truth else cost,
                keep_frequencies=keep,
                stay={names[0]: stay[0]},
                forbid=[(names[x], names[y]) for x, y in forbid],
                gap=1e-7,
            )
        except md.NotPrivate:
            assert wanted is None
            return
    assert wanted is not None
    assert made.least is not None
    scale = max(1.0, float(cost.max()))
    assert made.least.cost == pytest.approx(wanted, rel=CLOSE, abs=CLOSE * scale)
    assert made.least.cost_lower_bound <= wanted + 1e-9 * scale
    assert made.least.cost_lower_bound <= made.least.cost
    channel = made.channel
    assert md.audit(channel, joint, notion).satisfied
    assert entry(channel, joint, names[0], names[0]) >= Fraction(stay[0])
    for x, y in forbid:
        assert entry(channel, joint, names[x], names[y]) == 0
    if keep and made.method == least_cost_instead.METHOD:
        assert deviation_of(channel, joint) == 0
        assert made.least.frequency_deviation == 0.0
    if is_truth:
        assert 1 - truth_of(channel, joint) == pytest.approx(made.least.cost, abs=1e-12)


@pytest.mark.usefixtures("plans_from_two")
@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize("keep", [True, False])
def test_small_tables_without_limits_are_plans(notion: md.Notion, keep: bool) -> None:
    """The way that is tested here is that of plans, not the dense one that follows a failure."""
    made = md.design(table(3, 3, 9), notion, objective="truth", keep_frequencies=keep)
    assert made.method == least_cost_instead.METHOD


@pytest.mark.usefixtures("plans_from_two")
@pytest.mark.parametrize(
    ("stay", "message"),
    [
        (0.999, r"releases 'x\d' as it is with probability 0\.999; the largest value"),
        (
            {"x0": 1, "x1": 1},
            r"releases 'x\d' as it is with probability 1; the largest value",
        ),
    ],
)
def test_shares_that_cannot_be_are_refused_as_with_few_symbols(
    stay: object, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    joint = md.Joint.from_counts([[90, 70, 30, 10], [50, 80, 20, 15], [40, 30, 35, 16]])
    asked = {"objective": "truth", "stay": stay}
    with pytest.raises(md.NotPrivate, match=message) as planned:
        md.design(joint, md.LDP(0.2), **asked)
    monkeypatch.setattr(least_cost_instead, "MANY_SYMBOLS", 100)
    with pytest.raises(md.NotPrivate) as dense:
        md.design(joint, md.LDP(0.2), **asked)
    assert str(planned.value) == str(dense.value)


@pytest.mark.usefixtures("plans_from_two")
def test_forbidden_pairs_that_leave_nothing_are_refused() -> None:
    joint = md.Joint.from_counts([[8, 1], [1, 8]])
    pairs = [("x0", "x1"), ("x1", "x0")]
    with pytest.raises(
        md.NotPrivate,
        match="that keeps the frequencies does without the forbidden pairs",
    ):
        md.design(joint, md.LIP(0.1), objective="truth", forbid=pairs)


@pytest.mark.usefixtures("plans_from_two")
def test_the_largest_share_that_a_refusal_names_works() -> None:
    joint = table(8, 3, 12)
    asked = {"objective": "truth", "keep_frequencies": True}
    with pytest.raises(md.NotPrivate, match="the largest value that works") as refused:
        md.design(joint, md.LDP(0.3), stay={"x1": 0.999}, **asked)
    most = float(str(refused.value).rsplit(" ", 1)[1])
    made = md.design(joint, md.LDP(0.3), stay={"x1": most}, **asked)
    assert entry(made.channel, joint, "x1", "x1") >= Fraction(str(most))


@pytest.mark.usefixtures("plans_from_two")
def test_the_bound_is_for_the_share_that_was_asked() -> None:
    """Where staying is all that costs, the least cost is the share, which integers exceed."""
    joint = md.Joint.from_counts([[400, 300], [300, 400]])
    made = md.design(joint, md.LDP(1), objective=np.eye(2), stay="0.5")
    assert made.method == least_cost_instead.METHOD
    assert made.least is not None
    assert 0.5 - 1e-6 <= made.least.cost_lower_bound <= 0.5 <= made.least.cost


@pytest.mark.usefixtures("plans_from_two")
def test_no_time_leaves_a_verified_channel_with_its_gap() -> None:
    joint = table(1, 4, 60)
    made = md.design(joint, md.LDP(0.4), objective="truth", time_limit=0.0)
    assert made.method == least_cost_instead.METHOD
    assert made.least is not None
    assert made.least.frequency_deviation == 0.0
    assert made.least.cost_lower_bound <= made.least.cost
    assert md.audit(made.channel, joint, md.LDP(0.4)).satisfied


@pytest.mark.usefixtures("plans_from_two")
@pytest.mark.parametrize("notion", [md.LIP(1.0), md.LDP(1.0)])
def test_after_an_earlier_release(notion: md.Notion) -> None:
    """Ratios after a release are for the dense program; other budgets are for plans, too."""
    joint = table(4, 3, 6)
    first = md.design(joint, md.LIP(0.2), objective="truth").channel
    made = md.design(joint, notion, objective="truth", after=[first])
    assert (made.method == least_cost_instead.METHOD) == isinstance(notion, md.LIP)
    assert md.audit(made.channel, joint, notion, after=[first]).satisfied


@pytest.mark.usefixtures("plans_from_two")
@pytest.mark.parametrize("epsilon", [20.0, 40.0, 700.0])
@pytest.mark.parametrize("kind", [md.LDP, md.LIP, md.MaxLift, md.MinLift])
def test_huge_budgets_cost_as_good_as_nothing(kind: type, epsilon: float) -> None:
    joint = md.Joint.from_counts([[0, 7, 0, 3], [9, 1, 100, 0], [4, 4, 0, 9]])
    made = md.design(joint, kind(epsilon), objective="truth")
    assert made.verified
    assert made.least is not None
    assert made.least.cost <= 1e-6
    assert made.least.cost_lower_bound <= made.least.cost


@pytest.mark.usefixtures("plans_from_two")
def test_probabilities_with_many_digits_are_kept_to_a_trillionth() -> None:
    """Masses beyond 62 bits leave no room for units of their own."""
    random = np.random.default_rng(5)
    p = random.random((3, 8))
    joint = md.Joint.from_probabilities(p / p.sum())
    made = md.design(joint, md.LDP(0.5), objective="truth")
    assert made.least is not None
    assert made.least.frequency_deviation <= 1e-12
    assert md.audit(made.channel, joint, md.LDP(0.5)).satisfied


@pytest.fixture(scope="module")
def many() -> tuple[md.Joint, md.Design]:
    """A column of so many symbols that plans take it by themselves."""
    joint = table(0, 3, least_cost_instead.MANY_SYMBOLS, largest=30)
    return joint, md.design(joint, md.LDP(0.7), objective="truth")


def test_many_symbols_are_a_plan(many: tuple[md.Joint, md.Design]) -> None:
    _, made = many
    assert made.method == least_cost_instead.METHOD
    assert made.channel.totals is not None
    assert made.channel.published is None
    assert made.least is not None
    assert made.least.frequency_deviation == 0.0
    assert 0.0 <= made.least.cost - made.least.cost_lower_bound <= 1e-4


def test_many_secrets_are_for_the_dense_program(monkeypatch) -> None:
    monkeypatch.setattr(least_cost_instead, "MANY_SYMBOLS", 40)
    joint = table(0, least_cost_instead.MOST_SECRETS + 1, 40)
    made = md.design(joint, md.LIP(1.0), objective="truth")
    assert made.method != least_cost_instead.METHOD
    assert made.channel.totals is None


def test_many_secrets_of_very_many_symbols_are_not(monkeypatch) -> None:
    """The dense program of 500 symbols and 60 secrets ignored a time limit for minutes."""
    monkeypatch.setattr(least_cost_instead, "MANY_SYMBOLS", 40)
    joint = table(0, least_cost_instead.MOST_SECRETS + 1, 40)
    pairs = len(joint.useful) ** 2 * len(joint.sensitive)
    monkeypatch.setattr(least_cost_instead, "MOST_DENSE", pairs - 1)
    made = md.design(joint, md.LIP(1.0), objective="truth", time_limit=5.0)
    assert made.method == least_cost_instead.METHOD


def test_the_file_of_many_symbols_has_the_same_channel(
    many: tuple[md.Joint, md.Design], tmp_path
) -> None:
    joint, made = many
    made.channel.save(tmp_path / "many.json")
    loaded = md.Channel.load(tmp_path / "many.json")
    assert loaded.totals == made.channel.totals
    assert loaded.integers.columns == made.channel.integers.columns
    assert loaded.record.objective == made.channel.record.objective
    assert md.audit(loaded, joint, md.LDP(0.7)).satisfied
    assert not md.audit(loaded, joint, md.LDP(0.5)).satisfied


@pytest.mark.usefixtures("plans_from_two")
def test_plans_of_columns_report_their_progress() -> None:
    steps: list[Step] = []
    joint = table(2, 2, 12)
    made = md.design(joint, md.LIP(0.3), objective="truth", progress=steps.append)
    assert made.method == least_cost_instead.METHOD
    assert made.least is not None
    last = steps[-1].figures
    assert last["cost"] == pytest.approx(made.least.cost, abs=1e-6)
    assert last["cost_lower_bound"] <= made.least.cost
    assert str(steps[-1]).startswith("cost 0.")


@pytest.mark.usefixtures("plans_from_two")
def test_after_a_failed_plan_only_the_rest_of_the_time_is_left() -> None:
    """A plan that fails after .2 of a second leaves .3 of a second to the dense program."""
    given_times: list[float] = []
    solve = LeastCostProgram.solve

    def failing(*_: object) -> None:
        # Limits are of processor time, which sleep does not take.
        end = time.process_time() + 0.2
        while time.process_time() < end:
            pass
        raise SolverFailure("no plan passed the exact audit")

    def solved(self: LeastCostProgram, *args: Any, time_limit: Any, **options: Any):
        given_times.append(time_limit)
        return solve(self, *args, time_limit=time_limit, **options)

    with (
        mock.patch.object(least_cost_instead, "planned", failing),
        mock.patch.object(LeastCostProgram, "solve", solved),
    ):
        made = md.design(
            table(2, 2, 12), md.LIP(0.3), objective="truth", time_limit=0.5
        )
    assert made.method != least_cost_instead.METHOD
    assert given_times
    assert max(given_times) <= 0.3
