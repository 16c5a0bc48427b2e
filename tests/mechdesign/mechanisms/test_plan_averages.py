"""Released rows within a budget on an average: of least cost, and exactly within it."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.special import rel_entr

import mechdesign as md
from mechdesign.core.errors import InputError
from mechdesign.mechanisms.average_budgets import NO_PROMISE
from tests.mechdesign.mechanisms.test_plan_design import (
    assert_law_kept,
    changed_share,
    cost_of,
    designed,
    frames,
)
from tests.oracles import plan_averages as oracle
from tests.oracles import plans, released_rows
from tests.profiles import scaled, slow

CLOSE = 5e-5
"""Gaps of every price's search are 1e-6 of its cost, and budgets 1e-7 smaller."""

TANGENTS = 2e-2
"""Tangents miss some of an average, and it ends after some rounds: within this, relative."""

LINEAR = ("tv", "guess", "maximal-leakage", "gain")

GAINS = ([1.0, 0.0], [0.0, 1.5], [0.75, 0.5])
"""What three guesses gain for each of two secrets."""

MEASURES = st.lists(
    st.sampled_from([*LINEAR, "mi", "chi2"]), min_size=1, max_size=2, unique=True
)


def budget_between(joint, measure, share):
    """A budget so far from what a constant tells to what the rows themselves tell."""
    p = joint.p
    shares = p.sum(axis=1, keepdims=True)
    if measure == "tv":
        return share * float(np.abs(p - shares * p.sum(axis=0)).sum()) / 2
    if measure in ("guess", "gain"):
        gains = np.eye(len(p)) if measure == "guess" else np.array(GAINS)
        least = float((gains @ shares).max())
        most = float((gains @ p).max(axis=0).sum())
        return least + share * (most - least)
    blind = shares * p.sum(axis=0)
    if measure == "chi2":
        return share * float(((p - blind) ** 2 / blind).sum())
    if measure == "mi":
        return share * float(rel_entr(p, blind).sum())
    return math.log1p(share * (float((p / shares).max(axis=0).sum()) - 1.0))


def without(joint, measure):
    """What a constant has of an average, in its own unit."""
    shares = joint.p.sum(axis=1)
    return {
        "guess": float(shares.max()),
        "gain": float((np.array(GAINS) @ shares[:2]).max()),
    }.get(measure, 0.0)


@settings(max_examples=scaled(12))
@given(frames(), MEASURES, st.sampled_from([0.2, 0.5, 0.9]), st.booleans())
def test_the_least_cost_within_budgets_on_averages(frame, measures, share, alone):
    """The optimum of one convex program, and the budgets are kept in fractions."""
    joint = md.Joint.from_table(frame, sensitive="s", useful=["a", "b"], weight="count")
    assume(len(joint.useful) > 1)
    assume("gain" not in measures or len(joint.sensitive) == 2)
    budgets = {name: budget_between(joint, name, share) for name in measures}
    assume(all(most - without(joint, name) > 1e-3 for name, most in budgets.items()))
    asked = dict(budgets)
    if "gain" in asked:
        asked["gain"] = (GAINS, asked["gain"])
    epsilon = math.inf if alone else 0.7
    notion = {} if alone else {"notion": md.LIP(epsilon)}
    made = md.design(
        joint,
        average=asked,
        allow_identifier=True,
        time_limit=60.0,
        release=["a", "b"],
        smallest_group=1,
        gap=1e-6,
        **notion,
    )
    channel = made.channel
    assert_law_kept(channel)
    law = released_rows.joint_law(channel)
    for measure, budget in budgets.items():
        leaked = oracle.average(law, measure, GAINS)
        if measure == "maximal-leakage":
            leaked = math.log(leaked)
        assert leaked <= budget + 1e-15
    best = oracle.least_cost(
        joint.counts,
        plans.changed_cells(joint.useful.symbols),
        budgets,
        gains=GAINS if "gain" in budgets else None,
        epsilon=epsilon,
    )
    cost = cost_of(channel, changed_share)
    close = CLOSE if set(measures) <= set(LINEAR) else CLOSE + TANGENTS * best
    assert best - CLOSE <= cost <= best + close
    assert best - close <= made.least.cost_lower_bound <= best + 1e-6
    for record in channel.record.averages:
        assert record.achieved <= record.budget == budgets[record.measure]
    audited = md.audit(channel)
    assert audited.satisfied
    assert all(one.kept for one in audited.averages)
    if not alone:
        lifts = released_rows.lifts(law)
        released_rows.assert_within(lifts, epsilon, epsilon)


PEOPLE = pd.DataFrame(
    [
        ("p", "f", "u", 6),
        ("q", "f", "u", 2),
        ("p", "f", "v", 2),
        ("q", "f", "v", 4),
        ("p", "m", "u", 5),
        ("q", "m", "u", 4),
        ("p", "m", "v", 1),
        ("q", "m", "v", 6),
    ],
    columns=["s", "k", "a", "count"],
)


def test_given_columns_count_in_the_average():
    made = designed(
        PEOPLE, release=["a"], given="k", notion=md.LIP(5.0), average={"tv": 0.1}
    )
    law = released_rows.joint_law(made.channel)
    assert all(x[0] == y[0] for _, x, y in law)
    assert oracle.average(law, "tv") <= 0.1
    joint = made.channel.joint
    strata = [symbol[0] for symbol in joint.useful.symbols]
    best = oracle.least_cost(
        joint.counts,
        plans.changed_cells(joint.useful.symbols),
        {"tv": 0.1},
        strata=strata,
    )
    # Only one of two columns is released, and a changed cell of it costs 1.
    assert made.least.cost == pytest.approx(2 * best, abs=CLOSE)


@settings(max_examples=scaled(10))
@given(
    frames(columns=("k", "a")),
    st.sampled_from(["tv", "guess", "mi", "chi2"]),
    st.sampled_from([0.4, 0.8]),
)
def test_an_average_of_all_beside_a_promise_relative_to_given_columns(
    frame, measure, share
):
    """One budget for all strata together; single lifts are those within each stratum."""
    joint = md.Joint.from_table(frame, sensitive="s", useful=["k", "a"], weight="count")
    strata = [symbol[0] for symbol in joint.useful.symbols]
    given_alone = md.Joint.from_table(
        frame, sensitive="s", useful=["k"], weight="count"
    )
    most = budget_between(joint, measure, 1.0)
    least = budget_between(given_alone, measure, 1.0)
    assume(most - least > 1e-2)
    budget = least + share * (most - least)
    made = designed(
        frame,
        md.LIP(0.7),
        release=["a"],
        given="k",
        promise="relative",
        average={measure: budget},
    )
    law = released_rows.joint_law(made.channel)
    assert all(x[0] == y[0] for _, x, y in law)
    assert_law_kept(made.channel)
    assert oracle.average(law, measure) <= budget + 1e-15
    lifts = released_rows.lifts(law, lambda row: row[0])
    released_rows.assert_within(lifts, 0.7, 0.7)
    best = 2 * oracle.least_cost(
        joint.counts,
        plans.changed_cells(joint.useful.symbols),
        {measure: budget},
        epsilon=0.7,
        strata=strata,
        relative=True,
    )
    close = CLOSE if measure in LINEAR else CLOSE + TANGENTS * best
    assert best - CLOSE <= made.least.cost <= best + close
    assert best - close <= made.least.cost_lower_bound <= best + 1e-6
    audited = md.audit(made.channel)
    assert audited.satisfied
    assert all(one.kept for one in audited.averages)


@pytest.mark.parametrize(
    ("measure", "promise"),
    [
        ("tv", "total"),
        ("mi", "relative"),
        slow("chi2", "total"),
        ("guess", "relative"),
        ("maximal-leakage", "total"),
        slow("tv", "relative"),
        slow("mi", "total"),
        slow("chi2", "relative"),
        slow("guess", "total"),
        slow("maximal-leakage", "relative"),
    ],
)
def test_a_budget_that_the_given_columns_alone_exceed(measure, promise):
    alone = md.Joint.from_table(PEOPLE, sensitive="s", useful=["k"], weight="count")
    least = budget_between(alone, measure, 1.0)
    options = {"release": ["a"], "given": "k", "promise": promise}
    message = (
        f"the given columns alone exceed the budget of the average {measure}: give"
    )
    with pytest.raises(md.NotPrivate, match=message):
        designed(
            PEOPLE, notion=md.LIP(5.0), average={measure: 0.999 * least}, **options
        )
    made = designed(
        PEOPLE, notion=md.LIP(5.0), average={measure: 1.02 * least}, **options
    )
    assert made.channel.record.averages[0].achieved <= 1.02 * least


def test_a_budget_that_what_stays_exceeds():
    with pytest.raises(md.NotPrivate, match="no plan has so small an average: give"):
        designed(
            PEOPLE,
            release=["k", "a"],
            notion=md.LIP(5.0),
            average={"tv": 1e-2},
            stay=0.9,
        )


def test_a_budget_that_the_rows_themselves_keep_changes_nothing():
    made = designed(PEOPLE, release=["k", "a"], notion=md.LIP(5.0), average={"tv": 0.9})
    assert made.least.cost == 0.0
    assert made.channel.record.averages[0].achieved < 0.3


REFUSED = [
    (
        {"average": {"tv": None}, "keep": 0.5},
        "an average budget is not built with keep and an objective",
    ),
    (
        {
            "average": {"tv": 0.1},
            "notion": NO_PROMISE,
            "given": "k",
            "release": ["a"],
            "promise": "relative",
        },
        "an average is one over whole rows, given columns included",
    ),
    ({"average": {"tv": 0.0}}, r"the average tv \(0.0\) must be above 0"),
    ({"average": {"tv": 0.1}, "confidence": 0.9}, "is not built with confidence"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_averages_that_rows_do_not_have(options, message):
    with pytest.raises(InputError, match=message):
        designed(PEOPLE, **{"release": ["k", "a"], "notion": md.LIP(1.0), **options})


def test_the_time_limit_holds_before_there_is_a_plan():
    rng = np.random.default_rng(1)
    rows = [
        (s, f"a{a}", f"b{b}", int(rng.integers(1, 9)))
        for s in "pq"
        for a in range(12)
        for b in range(12)
    ]
    frame = pd.DataFrame(rows, columns=["s", "a", "b", "count"])
    message = "the time limit was over before a plan was within the budgets on averages"
    options = {"average": {"chi2": 1e-4}, "time_limit": 1e-3}
    with pytest.raises(md.SolverFailure, match=message) as failure:
        # A blind draw with what must stay has a larger average.
        designed(frame, md.LIP(2.0), stay=0.3, **options)
    assert failure.value.exit_code == 3
    drawn = designed(frame, md.LIP(2.0), **options).channel
    assert md.audit(drawn, drawn.joint, md.LIP(2.0)).satisfied
    assert drawn.record.averages[0].achieved <= 1e-4
