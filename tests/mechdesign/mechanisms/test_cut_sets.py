"""Purposes under promises without listed rows: averages of lifts, and whole confidence sets."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign import audit
from mechdesign.mechanisms import cut_sets, design
from mechdesign.mechanisms.convex_means import allowed_set
from mechdesign.mechanisms.cut_sets import MeanCuts, polytope_at
from mechdesign.mechanisms.population import PopulationRules
from mechdesign.mechanisms.rules import Rules
from mechdesign.notions import ALIP, KL, LDP, LIP, AlphaLift, Chi2Lift, L1Lift
from mechdesign.tables.confidence import confidence_set
from mechdesign.tables.joint import Joint
from tests.oracles import means as mean_oracle
from tests.profiles import scaled, slow

INF = math.inf
COUNTS = [[30, 5, 1, 8], [3, 20, 9, 2], [1, 2, 17, 6]]
TASK = [[25, 4, 2, 3], [9, 23, 25, 13]]
NOTIONS = {
    "l1": lambda e: L1Lift(e, e),
    "chi2": lambda e: Chi2Lift(e, e),
    "kl": lambda e: KL(e, e),
    "alpha": lambda e: AlphaLift(e, e, 2.0),
}
ENDS = {"gap": 1e-3, "time_limit": 20.0}


def joint():
    return Joint.from_counts(COUNTS)


def options(purpose):
    if purpose == "task":
        return {"objective": "task", "task": Joint.from_counts(TASK, sensitive="task")}
    return {"objective": purpose}


def cases():
    """The frequencies of l1 take as long as all others."""
    for kind in sorted(NOTIONS):
        for purpose in ("frequencies", "task"):
            is_long = (kind, purpose) == ("l1", "frequencies")
            yield slow(kind, purpose, 0.3) if is_long else (kind, purpose, 0.3)
            yield slow(kind, purpose, 0.2)


@pytest.mark.parametrize(("kind", "purpose", "epsilon"), [*cases()])
def test_purposes_under_averages(kind, purpose, epsilon):
    """Private by 80 digits, and near the bound; that of sets that are not convex is looser."""
    loosest = 0.1 if kind in ("l1", "chi2") else 2e-3
    ends = ENDS | {"gap": 0.8 * loosest}
    result = design(joint(), NOTIONS[kind](epsilon), **options(purpose), **ends)
    assert result.verified
    rows = result.channel.matrix * result.channel.denominator
    integers = [[int(value) for value in row] for row in rows]
    used = mean_oracle.used(COUNTS, integers, kind, 2.0)
    assert max(used) <= Decimal(epsilon)
    if purpose == "task":
        kept = result.purpose.task_kept
        assert kept <= result.purpose.task_upper_bound <= kept + loosest
    else:
        variance = result.purpose.variance
        bound = result.purpose.variance_lower_bound
        assert (1.0 - loosest) * variance <= bound <= variance


@settings(max_examples=scaled(6), deadline=None)
@given(
    st.lists(
        st.lists(st.integers(1, 30), min_size=4, max_size=4), min_size=3, max_size=3
    ),
    st.floats(0.05, 0.5),
)
def test_cuts_come_to_the_optimum_of_the_listed_rows(counts, epsilon):
    """The l1 lift without its inverse is a polytope: both ways have the same least variance."""
    table = Joint.from_counts(counts)
    notion = L1Lift(INF, epsilon)
    listed = design(table, notion, objective="frequencies", **ENDS).purpose
    with pytest.MonkeyPatch.context() as patch:
        cuts = MeanCuts(allowed_set(table, notion.limits), table.p_x)
        patch.setattr(Rules, "cuts", cuts)
        cut = design(table, notion, objective="frequencies", **ENDS).purpose
    assert cut.variance == pytest.approx(listed.variance, rel=3e-3)
    assert cut.variance_lower_bound <= listed.variance
    assert listed.variance_lower_bound <= cut.variance


@pytest.mark.parametrize(
    ("notion", "purpose"),
    [
        (ALIP(0.5, 0.5), "frequencies"),
        (LIP(0.4), "frequencies"),
        (LDP(1.0), "frequencies"),
        (LIP(0.4), "prefix"),
        (LDP(1.0), "task"),
        # A notion gives the set of posteriors, a purpose the costs over it.
        pytest.param(ALIP(0.5, 0.5), "prefix", marks=pytest.mark.slow),
        pytest.param(LDP(1.0), "prefix", marks=pytest.mark.slow),
        pytest.param(ALIP(0.5, 0.5), "task", marks=pytest.mark.slow),
        pytest.param(LIP(0.4), "task", marks=pytest.mark.slow),
    ],
)
def test_purposes_for_the_population(notion, purpose):
    """What holds for every population holds for the table, so it can do no better than there."""
    table = Joint.from_counts(np.array(COUNTS) * 20)
    chosen = options(purpose)
    if purpose == "task":
        chosen["task"] = Joint.from_counts(np.array(TASK) * 20, sensitive="task")
    result = design(table, notion, confidence=0.9, **chosen, **ENDS)
    of_table = design(table, notion, **chosen, **ENDS)
    assert result.verified
    assert audit(result.channel, table, notion).satisfied
    if purpose == "task":
        assert result.purpose.task_kept <= of_table.purpose.task_upper_bound
        kept = result.purpose.task_kept
        assert kept <= result.purpose.task_upper_bound <= kept + 2e-3
    else:
        lower = of_table.purpose.variance_lower_bound
        assert result.purpose.variance >= lower
        bound = result.purpose.variance_lower_bound
        assert 0.995 * result.purpose.variance <= bound <= result.purpose.variance


def test_members_of_all_rounds_count(monkeypatch):
    """After one round the answer is the best of the members that it found, with its bound."""
    monkeypatch.setattr(cut_sets, "MOST_ROUNDS", 1)
    near = ENDS | {"gap": 0.05}
    one = design(joint(), Chi2Lift(INF, 0.2), objective="frequencies", **near)
    monkeypatch.undo()
    all_of_them = design(joint(), Chi2Lift(INF, 0.2), objective="frequencies", **near)
    assert one.verified
    assert one.purpose.variance_lower_bound <= all_of_them.purpose.variance
    assert all_of_them.purpose.variance < one.purpose.variance


posteriors = st.lists(st.floats(0.0, 1.0), min_size=4, max_size=4).filter(any)


@settings(max_examples=scaled(60), deadline=None)
@given(
    st.sampled_from([*sorted(NOTIONS), "population"]),
    st.lists(posteriors, min_size=1, max_size=4),
    posteriors,
)
def test_rows_at_any_posterior_contain_the_set(kind, touched, towards):
    """Also at forged posteriors, far from the boundary: what a file proves of them holds."""
    rules = Rules(joint(), NOTIONS["l1"](0.3))
    if kind == "population":
        rules = PopulationRules(
            joint(), LIP(0.8), populations=confidence_set(joint(), 0.9)
        )
    elif kind != "l1":
        rules = Rules(joint(), NOTIONS[kind](0.3))
    cuts = rules.cuts
    point = joint().p_x
    way = np.array(towards) / sum(towards) - point
    # The farthest member on the way.
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = 0.5 * (low + high)
        if cuts.excess((point + middle * way)[None, :])[0] <= 0.0:
            low = middle
        else:
            high = middle
    member = point + low * way
    polytope = polytope_at(cuts, np.array([np.array(v) / sum(v) for v in touched]))
    assert polytope.excess(member)[0] <= 1e-9


@pytest.mark.parametrize("purpose", ["frequencies", "task"])
@pytest.mark.parametrize("is_population", [False, True])
def test_without_time_for_rows_there_is_a_verified_channel(
    monkeypatch, purpose, is_population
):
    """Of merged sets, and of ways within them: no posterior is pulled to the boundary."""
    pulled = []
    monkeypatch.setattr(cut_sets, "_pulled", lambda *given: pulled.append(given))
    monkeypatch.setattr(cut_sets, "HALVING_TIME", 1e6)
    table = Joint.from_counts(np.array(COUNTS) * 20)
    chosen = options(purpose)
    if purpose == "task":
        chosen["task"] = Joint.from_counts(np.array(TASK) * 20, sensitive="task")
    notion = Chi2Lift(0.5, 0.5)
    if is_population:
        notion = LIP(1.0)
        chosen["confidence"] = 0.9
    result = design(table, notion, time_limit=20.0, **chosen)
    assert not pulled
    assert result.verified
    assert audit(result.channel, table, notion).satisfied
    if purpose == "task":
        assert 0.0 < result.purpose.task_kept <= result.purpose.task_upper_bound
        assert any("ended early" in message for message in result.messages)
    else:
        # All symbols are told apart.
        assert math.isfinite(result.purpose.variance)
        assert result.purpose.variance_lower_bound <= result.purpose.variance


@pytest.mark.parametrize("is_population", [False, True])
def test_ways_within_a_set_lead_to_members(is_population):
    table = Joint.from_counts(np.array(COUNTS) * 20)
    cuts = Rules(table, Chi2Lift(0.2, 0.2)).cuts
    if is_population:
        populations = confidence_set(table, 0.9)
        cuts = PopulationRules(table, LIP(1.0), populations=populations).cuts
    symbols = np.arange(4)
    shares = cuts.ways_within(table.p_x, symbols)
    assert (shares > 0.0).all()
    ways = np.eye(4) - table.p_x
    assert (cuts.excess(table.p_x + shares[:, None] * ways) <= 1e-9).all()
    # And no share is everything, or nothing would be outside.
    assert (cuts.excess(np.eye(4)) > 0.0).any()
    assert (shares < 1.0).any()
