"""No method, rounding or budget leaves less than another one is known to keep."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign.auditing.verdict import audit_on_table
from mechdesign.core.errors import NotPrivate
from mechdesign.mechanisms import design, least_cost, rules
from mechdesign.mechanisms.rules import envelope_by_any_method
from mechdesign.notions import ALIP, LDP, LIP, L1Lift, MinLift
from mechdesign.tables.joint import Joint
from solvers import BackendFailure, EnvelopeStatus, Polytope, lower_envelope
from tests.profiles import scaled

INF = math.inf


@pytest.mark.parametrize("notion", [LIP(20.0), MinLift(20.0)])
def test_an_entry_of_one_unit_that_keeps_the_promise_stays(notion):
    joint = Joint.from_counts([[0, 10**9], [1, 7]])
    result = design(joint, notion)
    assert result.nmi > 0.999
    assert result.certificate.gap_nmi <= 1e-4
    assert audit_on_table(result.channel, joint, notion).satisfied
    smallest = min(value for row in result.channel.rows for value in row if value)
    assert smallest == 1


def test_columns_follow_where_vertices_are_lost_in_rounding():
    joint = Joint.from_counts([[3, 3, 1, 3], [0, 1, 1, 0], [10**9, 3, 1, 3]])
    for method in ("auto", "vertices", "columns"):
        result = design(joint, LIP(1e-4), method=method)
        assert result.nmi == pytest.approx(0.0262, abs=2e-4)
        assert audit_on_table(result.channel, joint, LIP(1e-4)).satisfied


def test_vertices_follow_where_columns_stall():
    joint = Joint.from_counts([[0, 0, 2, 5, 5], [0, 5, 5, 1, 0], [2, 2, 5, 5, 1]])
    for method in ("auto", "vertices", "columns"):
        result = design(joint, L1Lift(INF, 1e-6), method=method)
        assert result.nmi == pytest.approx(0.47387, abs=1e-4)
        assert result.certificate.gap_nmi <= 1e-4


POLYTOPE = Polytope(np.array([[0.2, 1.0, 1.9, 0.7]]), np.array([0.8]), np.array([1.2]))
POINT = np.array([0.3, 0.2, 0.25, 0.25])


def options(method):
    return {
        "method": method,
        "enumeration": "auto",
        "gap": 1e-7,
        "time_limit": None,
        "workers": 1,
    }


@pytest.mark.parametrize("method", ["vertices", "columns"])
def test_a_back_end_that_gives_up_is_followed_by_the_other_method(method, monkeypatch):
    def fails(polytope, point, **changed):
        if changed["method"] == method:
            raise BackendFailure("gave up")
        return lower_envelope(polytope, point, **changed)

    monkeypatch.setattr(rules, "lower_envelope", fails)
    found = envelope_by_any_method(POLYTOPE, POINT, POLYTOPE, options(method))
    assert found.gap <= 1e-7


def test_the_first_failure_is_told_where_both_give_up(monkeypatch):
    def fails(*_, **changed):
        raise BackendFailure(f"{changed['method']} gave up")

    monkeypatch.setattr(rules, "lower_envelope", fails)
    with pytest.raises(BackendFailure, match="vertices gave up"):
        envelope_by_any_method(POLYTOPE, POINT, POLYTOPE, options("vertices"))


def test_the_better_value_and_the_better_bound_are_kept(monkeypatch):
    exact = lower_envelope(POLYTOPE, POINT, gap=1e-7)
    poor = replace(
        exact,
        status=EnvelopeStatus.STALLED,
        method="vertices",
        value=exact.value + 1.0,
        bound=exact.bound + 1e-9,
    )
    weak = replace(exact, status=EnvelopeStatus.STALLED, bound=0.0)

    def either(*_, **changed):
        return poor if changed["method"] == "vertices" else weak

    monkeypatch.setattr(rules, "lower_envelope", either)
    found = envelope_by_any_method(POLYTOPE, POINT, POLYTOPE, options("vertices"))
    assert (found.value, found.bound) == (exact.value, exact.bound + 1e-9)


@settings(max_examples=scaled(15), deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 12))
def test_subset_response_keeps_what_halved_budgets_keep(seed, power):
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(2, 4)), int(rng.integers(4, 7))
    joint = Joint.from_counts(rng.integers(1, 200, (m, n)))
    epsilon = 1e-4 * 2.0**power
    for make in (lambda e: L1Lift(INF, e), lambda e: ALIP(e, e)):
        kept = design(joint, make(2.0 * epsilon), mechanism="subset-response")
        halved = design(joint, make(epsilon), mechanism="subset-response")
        assert kept.nmi >= halved.nmi - 1e-4
        assert audit_on_table(kept.channel, joint, make(2.0 * epsilon)).satisfied


def test_sets_of_a_smaller_budget_are_said():
    joint = Joint.from_counts([[103, 193, 116, 167, 126], [101, 148, 36, 106, 108]])
    result = design(joint, L1Lift(INF, 0.01), mechanism="subset-response")
    assert result.nmi > 0.694
    assert any("smaller budget, l1" in message for message in result.messages)
    assert result.notion == L1Lift(INF, 0.01)


CONSTANT_TABLE = [
    [1, 1, 1000000001, 1],
    [1, 1, 1000000, 1000000000],
    [1, 1000000, 1000000002, 1],
]
FORBIDDEN = [("x2", "x0"), ("x2", "x1"), ("x3", "x3"), ("x1", "x0"), ("x0", "x0")]


def test_a_constant_is_emitted_where_the_program_of_least_cost_gives_up():
    joint = Joint.from_counts(CONSTANT_TABLE)
    result = design(
        joint,
        LIP(1e-6),
        objective="truth",
        forbid=FORBIDDEN,
        keep_frequencies=False,
    )
    assert audit_on_table(result.channel, joint, LIP(1e-6)).satisfied
    assert result.channel.outputs == ("x2",)
    assert result.least.cost_lower_bound <= result.least.cost
    assert any("tells nothing" in message for message in result.messages)


def test_the_cheapest_of_the_constants_is_taken(monkeypatch):
    from mechdesign.core.errors import SolverFailure

    def fails(program):
        raise SolverFailure("gave up")

    monkeypatch.setattr(least_cost, "_designed", fails)
    joint = Joint.from_counts([[5, 1, 3], [2, 4, 1]])
    free = {"objective": "truth", "keep_frequencies": False}
    result = design(joint, LDP(0.1), **free)
    assert result.channel.outputs == ("x0",)
    result = design(joint, LDP(0.1), forbid=[("x1", "x0")], **free)
    assert result.channel.outputs == ("x1",)
    with pytest.raises(SolverFailure, match="gave up"):
        design(joint, LDP(0.1), objective="truth", stay=0.1)


def test_records_are_drawn_anew_where_frequencies_are_kept(monkeypatch):
    """Every row is the law of the table, which is exact, and private for every budget."""
    from mechdesign.core.errors import SolverFailure

    def fails(program):
        raise SolverFailure("gave up")

    monkeypatch.setattr(least_cost, "_designed", fails)
    joint = Joint.from_counts([[5, 1, 3], [2, 4, 1]])
    result = design(joint, LDP(0.1), objective="truth")
    assert result.channel.matrix == pytest.approx(np.tile(joint.p_x, (3, 1)))
    assert result.least.frequency_deviation == 0.0
    assert result.least.cost == pytest.approx(1.0 - float(joint.p_x @ joint.p_x))
    assert result.least.cost_lower_bound == 0.0
    assert audit_on_table(result.channel, joint, LDP(1e-9)).satisfied
    assert any("drawn anew" in message for message in result.messages)
    with pytest.raises(SolverFailure, match="gave up"):
        design(joint, LDP(0.1), objective="truth", forbid=[("x1", "x0")])


def test_no_is_the_answer_where_no_budget_helps():
    joint = Joint.from_counts([[5, 0], [0, 4]])
    pairs = [("x0", "x1"), ("x1", "x0")]
    with pytest.raises(NotPrivate, match="forbidden pairs"):
        design(joint, LDP(5.0), objective="truth", forbid=pairs)
