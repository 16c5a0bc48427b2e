"""Least cost under limits on averages, against programs in cvxpy written from the definitions."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign import audit
from mechdesign.auditing.averages import average_leakage
from mechdesign.core.errors import InputError, NotPrivate
from mechdesign.core.limits import DistanceMean
from mechdesign.mechanisms import design
from mechdesign.mechanisms.convex_means import (
    AboveInverseDistance,
    InverseDistanceFunction,
)
from mechdesign.notions import ALIP, KL, LIP, AlphaLift, Chi2Lift, L1Lift
from mechdesign.tables.joint import Joint
from solvers.assignment import simplex
from tests.oracles import means as mean_oracle
from tests.profiles import scaled, slow

cp = pytest.importorskip("cvxpy")

INF = math.inf
COUNTS = [[30, 5, 1, 8], [3, 20, 9, 2], [1, 2, 17, 6]]
CONVEX = {
    "l1": (lambda e: L1Lift(INF, e), lambda e: math.expm1(e)),
    "chi2": (lambda e: Chi2Lift(INF, e), lambda e: math.expm1(e) ** 2),
    "kl": (lambda e: KL(INF, e), lambda e: e),
    "alpha": (lambda e: AlphaLift(INF, e, 2.0), lambda e: math.exp(e)),
}
BOTH = {
    "l1": lambda e: L1Lift(e, e),
    "chi2": lambda e: Chi2Lift(e, e),
    "kl": lambda e: KL(e, e),
    "alpha": lambda e: AlphaLift(e, e, 2.0),
}
SOLVED = 2e-4
"""The gap of a search, and what Clarabel leaves of a cost."""


def mean_of(kind, p_s, given_s, mass):
    """The mean of an output times its mass, as a convex expression of P(y|s) and P(y)."""
    if kind == "l1":
        return p_s @ cp.abs(given_s - mass)
    if kind == "chi2":
        return cp.quad_over_lin(cp.multiply(np.sqrt(p_s), given_s - mass), mass)
    if kind == "kl":
        return p_s @ cp.kl_div(given_s, mass * np.ones(len(p_s)))
    return cp.norm(cp.multiply(np.sqrt(p_s), given_s), 2)


def optimum(
    counts, cost, *, kind=None, most=INF, mi=INF, tv=INF, lip=INF, keep=True, stay=0.0
):
    """The least cost, from the definitions; None where there is no channel."""
    table = np.asarray(counts) / np.sum(counts)
    p_s = table.sum(axis=1)
    p_x = table.sum(axis=0)
    n = len(p_x)
    w = cp.Variable((n, n), nonneg=True)
    limits = [cp.sum(w, axis=1) == 1, cp.diag(w) >= stay]
    if keep:
        limits.append(p_x @ w == p_x)
    leaks = {"mi": 0, "tv": 0}
    for y in range(n):
        given_s = (table / p_s[:, None]) @ w[:, y]
        mass = p_x @ w[:, y]
        if kind is not None:
            limits.append(mean_of(kind, p_s, given_s, mass) <= most * mass)
        if math.isfinite(lip):
            limits += [given_s <= math.exp(lip) * mass]
            limits += [given_s >= math.exp(-lip) * mass]
        leaks["mi"] += p_s @ cp.kl_div(given_s, mass * np.ones(len(p_s)))
        leaks["tv"] += p_s @ cp.abs(given_s - mass) / 2
    if math.isfinite(mi):
        limits.append(leaks["mi"] <= mi)
    if math.isfinite(tv):
        limits.append(leaks["tv"] <= tv)
    program = cp.Problem(
        cp.Minimize(cp.sum(cp.multiply(cost * p_x[:, None], w))), limits
    )
    program.solve(solver=cp.CLARABEL)
    return None if program.value is None or math.isinf(program.value) else program.value


def rows_of(channel):
    return [
        [int(value) for value in row] for row in channel.matrix * channel.denominator
    ]


def is_private(result, counts, kind, lower, upper):
    """Judged with 80 digits from the integers of the channel."""
    below, above = mean_oracle.used(counts, rows_of(result.channel), kind, 2.0)
    within_upper = math.isinf(upper) or above <= Decimal(upper)
    return within_upper and (math.isinf(lower) or below <= Decimal(lower))


def tables():
    size = st.tuples(st.integers(2, 4), st.integers(2, 5))
    return size.flatmap(
        lambda shape: st.lists(
            st.lists(st.integers(1, 40), min_size=shape[1], max_size=shape[1]),
            min_size=shape[0],
            max_size=shape[0],
        )
    )


@settings(max_examples=scaled(12), deadline=None)
@given(tables(), st.sampled_from(sorted(CONVEX)), st.floats(0.02, 0.6), st.booleans())
def test_the_cost_is_least_and_proven(counts, kind, epsilon, keep):
    """bound <= optimum <= cost, where cost - bound is at most the gap."""
    notion, most = CONVEX[kind]
    joint = Joint.from_counts(counts)
    result = design(
        joint, notion(epsilon), objective="truth", keep_frequencies=keep, gap=1e-4
    )
    n = len(joint.useful)
    best = optimum(counts, 1 - np.eye(n), kind=kind, most=most(epsilon), keep=keep)
    least = result.least
    assert result.verified
    assert is_private(result, counts, kind, INF, epsilon)
    assert least.cost_lower_bound <= best + 1e-6
    assert best <= least.cost + 1e-6
    assert least.cost <= best + SOLVED


@settings(max_examples=scaled(10), deadline=None)
@given(tables(), st.floats(0.002, 0.2), st.sampled_from(["mi", "tv"]), st.booleans())
def test_a_total_over_all_outputs(counts, budget, measure, beside):
    joint = Joint.from_counts(counts)
    promise = (ALIP(0.4, 0.4),) if beside else ()
    average = {measure: budget}
    result = design(joint, *promise, objective="truth", average=average, gap=1e-4)
    n = len(joint.useful)
    lip = 0.4 if beside else INF
    best = optimum(counts, 1 - np.eye(n), lip=lip, **average)
    least = result.least
    assert result.verified
    assert average_leakage(result.channel, joint, measure) <= budget
    assert result.channel.record.averages[0].achieved <= budget
    assert least.cost_lower_bound <= best + 1e-6
    assert best <= least.cost + 1e-6
    assert least.cost <= best + SOLVED


@pytest.mark.parametrize("kind", sorted(BOTH))
@pytest.mark.parametrize("epsilon", [slow(0.1), 0.3])
def test_inverses_too(kind, epsilon):
    """A bound that holds without the inverse holds with it; the gap is that of the covering."""
    joint = Joint.from_counts(COUNTS)
    result = design(joint, BOTH[kind](epsilon), objective="truth")
    assert result.verified
    assert is_private(result, COUNTS, kind, epsilon, epsilon)
    most = CONVEX[kind][1](epsilon)
    relaxed = optimum(COUNTS, 1 - np.eye(4), kind=kind, most=most)
    least = result.least
    assert relaxed <= least.cost + 1e-6
    assert least.cost - least.cost_lower_bound <= 0.02 * least.cost


def test_steps_to_other_convex_parts_lower_the_cost(monkeypatch):
    from mechdesign.mechanisms import least_cost_program

    joint = Joint.from_counts(COUNTS)
    several = design(joint, L1Lift(0.2, 0.2), objective="truth").least
    monkeypatch.setattr(least_cost_program, "MOST_STEPS", 1)
    one = design(joint, L1Lift(0.2, 0.2), objective="truth").least
    assert several.cost < one.cost - 1e-3
    assert several.cost_lower_bound == pytest.approx(one.cost_lower_bound, abs=1e-9)


@given(
    st.lists(st.floats(0.05, 4.0), min_size=3, max_size=3),
    st.lists(st.floats(1.0, 3.0), min_size=3, max_size=3),
    st.sampled_from([1, 2]),
)
def test_the_function_above(lifts, touched, power):
    """h^k >= |1/w - 1|^k, with equality where it touches; its cuts hold where it is within."""
    p_s = np.array([0.2, 0.3, 0.5])
    below = InverseDistanceFunction(p_s, DistanceMean("any", power), 0.5)
    above = AboveInverseDistance(below, np.array(touched))
    column = np.array(lifts)[:, None]
    assert above.values(column)[0] >= below.values(column)[0] - 1e-12
    at = np.array(touched)[:, None]
    assert above.values(at)[0] == pytest.approx(below.values(at)[0], abs=1e-12)
    cut = above.cut(np.array([1.3, 0.8, 1.1]))
    if above.values(column)[0] <= above.bound:
        assert cut.normal @ column[:, 0] <= cut.offset + 1e-12


def test_shares_that_stay_and_pairs_that_are_forbidden():
    joint = Joint.from_counts(COUNTS)
    names = joint.useful.names
    options = {"stay": 0.3, "forbid": [(names[0], names[3])], "objective": "truth"}
    result = design(joint, KL(INF, 0.2), **options)
    assert result.verified
    rows = np.array(rows_of(result.channel))
    assert (np.diagonal(rows) >= 0.3 * result.channel.denominator).all()
    assert rows[0, 3] == 0
    with pytest.raises(NotPrivate, match="stay: no private channel"):
        design(joint, KL(INF, 0.01), objective="truth", stay=0.9)
    with pytest.raises(NotPrivate, match="stay: no private channel"):
        design(joint, objective="truth", stay=0.9, average={"mi": 0.01})


def test_what_averages_are_not_combined_with():
    joint = Joint.from_counts(COUNTS)
    with pytest.raises(InputError, match="not built with constraints or a convex cost"):
        design(
            joint,
            average={"mi": 0.1},
            objective="truth",
            constraints=lambda w, _: [w[0, 0] >= 0.5],
        )
    with pytest.raises(InputError, match="not built with keep and an objective"):
        design(joint, average={"mi": None}, keep=0.8, objective="truth")


def test_a_channel_with_averages_and_an_objective_is_saved_and_audited(tmp_path):
    from mechdesign import audit, load

    joint = Joint.from_counts(COUNTS)
    result = design(joint, objective="truth", average={"mi": 0.02})
    result.channel.save(tmp_path / "c.json")
    loaded = load(tmp_path / "c.json")
    assert audit(loaded, joint, result.notion).satisfied
    assert loaded.record.objective.name == "truth"
    assert loaded.record.averages == result.channel.record.averages


@pytest.mark.parametrize("is_population", [False, True])
@pytest.mark.parametrize("forbid", [(), (("0", "1"),)])
def test_no_program_is_begun_that_does_not_fit(monkeypatch, is_population, forbid):
    """A draw that needs none remains, which is verified and says why."""
    begun = []
    monkeypatch.setattr(simplex.Program, "add", lambda *given: begun.append(given))
    monkeypatch.setattr(simplex, "PAIR_TIME", 1e6)
    table = Joint.from_counts([[90, 80, 70], [60, 90, 75], [70, 70, 90]])
    names = table.useful.names
    pairs = [(names[int(a)], names[int(b)]) for a, b in forbid]
    chosen = {"objective": "truth", "forbid": pairs, "time_limit": 20.0}
    notion = Chi2Lift(1.0, 1.0)
    if is_population:
        notion = LIP(2.0)
        chosen["confidence"] = 0.9
    made = design(table, notion, **chosen)
    assert not begun
    assert made.verified
    assert audit(made.channel, table, notion).satisfied
    assert any("the time limit was over" in message for message in made.messages)
