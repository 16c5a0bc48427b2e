"""The curve of a report: on the axis of the notion, through the chosen channel, in a bounded time."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import pyarrow as pa
import pytest

import mechdesign as md
from mechdesign.comparison import curve
from mechdesign.core.errors import SolverFailure
from mechdesign.tables.joint import Joint
from tests.cases.designs import uniform_table

JOINT = uniform_table(5, m=3)


def through(notion, mechanism="optimal", seconds=0.0, joint=JOINT):
    """The curve of a new design and what is said where there is none."""
    design = md.design(joint, notion, mechanism=mechanism)
    return curve.curve_through(replace(design, seconds=seconds), joint)


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """A clock that stands still until a test moves it, so that no load ends a curve early. It knows
    processor time alone: another clock is no part of the module.
    """
    made = SimpleNamespace(now=0.0)
    monkeypatch.setattr(curve, "time", SimpleNamespace(process_time=lambda: made.now))
    return made


@pytest.mark.parametrize(
    ("notion", "axis"),
    [
        (md.ALIP(0.3, 0.9), ("alip", 1.2, 0.25)),
        (md.ALIP(math.inf, 0.9), ("max-lift", 0.9, None)),
        (md.ALIP(0.9, math.inf), ("min-lift", 0.9, None)),
        (md.LIP(0.4), ("lip", 0.4, None)),
        (md.LDP(0.4), ("ldp", 0.4, None)),
        (md.MaxLift(0.4), ("max-lift", 0.4, None)),
        (md.MinLift(0.4), ("min-lift", 0.4, None)),
        (md.L1Lift(0.5, 0.5), ("l1", 1.0, 0.5)),
        (md.Chi2Lift(0.5, 0.5), ("chi2", 1.0, 0.5)),
        (md.AlphaLift(0.5, 0.5, 3.0), ("alpha:3", 1.0, 0.5)),
        (md.AlphaLift(0.5, 0.5, math.inf), ("alpha:inf", 1.0, 0.5)),
    ],
)
def test_the_axis_leads_through_the_notion(notion, axis):
    found = curve.case_of(notion, "optimal")
    assert (found.notion, found.epsilon, found.lam) == pytest.approx(axis)
    promised = found.promise().limits
    assert (promised.lower, promised.upper) == pytest.approx(
        (notion.limits.lower, notion.limits.upper)
    )


@pytest.mark.parametrize(
    "notion",
    [
        md.L1Lift(math.inf, 0.5),
        md.Chi2Lift(0.5, math.inf),
        md.ALIP(700.0, 700.0),
        md.ALIP(5e-324, 699.0),
    ],
)
def test_no_axis_where_compare_has_none(notion):
    assert curve.case_of(notion, "optimal") is None


def test_the_chosen_channel_is_on_it_and_every_row_keeps_its_budget():
    found, why = through(md.ALIP(0.2, 0.6))
    assert why == ""
    assert found.axis == "alip, epsilon = eps_l + eps_u in nats, lam 0.25"
    assert [row.epsilon for row in found.rows] == pytest.approx(
        [0.2 * k for k in range(1, 11)]
    )
    assert found.chosen in found.rows
    assert found.remarks == ()
    for row in found.rows:
        assert row.satisfied
        assert row.max_log_lift <= row.eps_u * (1 + 1e-12)
        assert -row.min_log_lift <= row.eps_l * (1 + 1e-12)
        assert row.nmi <= row.upper_bound_nmi
    assert [row.nmi for row in found.rows] == sorted(row.nmi for row in found.rows)


def test_beside_a_heuristic_stands_the_optimum_with_its_bound_at_the_chosen_budget_too():
    found, _ = through(md.ALIP(0.4, 0.4), "complete-merging")
    assert [row.mechanism for row in found.rows] == ["complete-merging"] * 10 + [
        "optimal"
    ] * 10
    assert found.chosen.upper_bound_nmi == min(
        row.upper_bound_nmi for row in found.rows if row.epsilon == found.chosen.epsilon
    )
    assert found.chosen.nmi <= found.chosen.upper_bound_nmi


def test_a_notion_without_an_optimum_has_the_heuristic_alone(monkeypatch):
    def refuse(*_):
        raise md.InputError("no optimum is known")

    monkeypatch.setattr(curve, "check_optimum", refuse)
    alone, _ = through(md.Chi2Lift(0.4, 0.4), "complete-merging")
    assert {row.mechanism for row in alone.rows} == {"complete-merging"}
    assert all(row.upper_bound_nmi is None for row in alone.rows)


def test_budgets_beyond_the_largest_are_left_out():
    found, _ = through(md.LIP(400.0))
    assert max(row.epsilon for row in found.rows) <= 700.0
    assert len(found.rows) == 7


def test_no_curve_where_one_channel_took_long():
    found, why = through(md.LIP(0.4), seconds=94.2)
    assert found is None
    assert why == (
        "No curve: the 6 s that a report takes for it were too short for this table. "
        "`mechdesign compare` computes the curve without a limit."
    )


def test_no_curve_where_its_time_is_too_short(clock, monkeypatch):
    slow_after(1, clock, monkeypatch)
    found, why = through(md.LIP(0.4))
    assert found is None
    assert "the 6 s that a report takes for it were too short for this table" in why


def slow_after(points, clock, monkeypatch):
    """The clock jumps an hour after so many budgets."""
    made = []
    real = curve.compare

    def point(*arguments, **options):
        made.append(arguments)
        if len(made) == points:
            clock.now = 3600.0
        return real(*arguments, **options)

    monkeypatch.setattr(curve, "compare", point)


def test_bounds_of_larger_budgets_hold_for_smaller_ones(monkeypatch):
    """A channel of a smaller budget keeps the promise of a larger one, so nothing keeps more than
    its bound.
    """
    real = curve.compare

    def without_bounds(*arguments, **options):
        made = real(*arguments, **options)
        return replace(
            made, rows=tuple(replace(row, upper_bound_nmi=1.0) for row in made.rows)
        )

    monkeypatch.setattr(curve, "compare", without_bounds)
    found, _ = through(md.LIP(0.4))
    known = found.chosen.upper_bound_nmi
    bounds = {
        row.upper_bound_nmi for row in found.rows if row.epsilon <= found.chosen.epsilon
    }
    assert bounds == {known}
    assert {
        row.upper_bound_nmi for row in found.rows if row.epsilon > found.chosen.epsilon
    } == {1.0}


def test_no_curve_that_nobody_asked_for():
    design = md.design(JOINT, md.LIP(0.4))
    found, why = curve.curve_through(design, JOINT, seconds=0.0)
    assert (found, why) == (
        None,
        "No curve: it was not asked for. `mechdesign compare` computes the curve without a limit.",
    )


def test_a_shorter_curve_says_so(clock, monkeypatch):
    slow_after(4, clock, monkeypatch)
    found, _ = through(md.LIP(0.4))
    assert len(found.rows) == 5
    assert found.remarks[0].startswith(
        "The curve has 5 of 10 budgets: the 6 s that a report takes"
    )


def test_the_slowest_budget_is_the_forecast_for_the_next(clock, monkeypatch):
    """Three budgets of 2 s fit into 6 s, and a fourth does not."""
    real = curve.compare

    def point(*arguments, **options):
        clock.now += 2.0
        return real(*arguments, **options)

    monkeypatch.setattr(curve, "compare", point)
    found, _ = through(md.LIP(0.4))
    assert len(found.rows) == 4


def test_searches_cut_short_keep_their_bounds(monkeypatch):
    monkeypatch.setattr(curve, "SHARE_OF_ONE", 0.01 / 6.0)
    joint = uniform_table(60, m=8)
    found, _ = through(md.ALIP(1.0, 1.0), "subset-merging", joint=joint)
    assert any(row.nmi < row.upper_bound_nmi - curve.GAP for row in found.rows)
    assert all(row.nmi <= row.upper_bound_nmi for row in found.rows)


def test_ctrl_c_ends_the_curve_and_not_the_report(monkeypatch):
    real = curve.compare
    made = []

    def point(*arguments, **options):
        made.append(arguments)
        if len(made) == 4:
            raise KeyboardInterrupt
        return real(*arguments, **options)

    monkeypatch.setattr(curve, "compare", point)
    found, _ = through(md.LIP(0.4))
    assert len(found.rows) == 4
    assert "its computation was stopped" in found.remarks[0]


def test_budgets_without_a_verified_channel_are_left_out(monkeypatch):
    def failing(*_, **__):
        raise SolverFailure("nothing was verified")

    monkeypatch.setattr(curve, "compare", failing)
    found, why = through(md.LIP(0.4))
    assert found is None
    assert "other budgets gave no verified channel" in why


def test_infinite_losses_are_rows_as_others():
    found, _ = through(md.MaxLift(5.0), joint=Joint.from_counts([[5, 0, 3], [0, 5, 3]]))
    assert any(math.isinf(row.min_log_lift) for row in found.rows)


def test_no_curve_of_channels_without_the_rules_of_the_design(monkeypatch):
    """Without an optimum nothing is left to compare with."""
    design = md.design(JOINT, md.LIP(0.4), objective="truth", forbid=[("x1", "x2")])
    monkeypatch.setattr(curve, "_has_optimum", lambda *_: False)
    found, why = curve.curve_through(design, JOINT)
    assert (found, why) == (None, curve.NO_RULES)


def rows_of(count=90):
    """Records of two released columns, of which the number tells more of the secret."""
    rows = []
    for k in range(count):
        a, b = k % 3, (k // 3) % 4
        rows.append({"a": "xyz"[a], "b": str(b), "s": "st"[(k + a + b * k) % 5 > 2]})
    return pa.Table.from_pylist(rows)


@pytest.mark.parametrize(
    ("options", "way"),
    [
        ({}, "truth"),
        ({"keep_frequencies": False}, "truth-free"),
        ({"objective": "distance"}, "distance"),
    ],
)
def test_the_curve_of_rows_is_of_rows(options, way):
    """Its points are what a design of these rows with another budget gives: cells are changed, not
    rows as symbols of one column.
    """
    table = rows_of()
    sensitive, release = "s", ["a", "b"]

    def made(epsilon):
        return md.design(
            table,
            md.LIP(epsilon),
            sensitive=sensitive,
            release=release,
            smallest_group=1,
            **options,
        )

    design = made(0.2)
    found, why = curve.curve_through(replace(design, seconds=0.0), design.channel.joint)
    assert not why
    rows = {row.epsilon: row for row in found.rows if row.mechanism == way}
    assert rows[0.2] == found.chosen
    assert len(rows) > 3
    other = made(0.1)
    assert rows[0.1].cost == pytest.approx(other.least.cost, abs=1e-6)
    assert rows[0.1].truth == pytest.approx(other.least.truth, abs=1e-4)
