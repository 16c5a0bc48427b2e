"""Budgets in words promise no less than the words say, and the smallest budget that keeps a share is one."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from flint import arb, ctx, fmpq
from hypothesis import given
from hypothesis import strategies as st

import mechdesign as md
from mechdesign.auditing.leakages import belief_ranges
from mechdesign.core.arguments import at_least_times, at_most_times, share_of
from mechdesign.mechanisms import budget
from mechdesign.mechanisms.budget import (
    LARGEST_STEP,
    epsilon_of,
    keeping,
    step_of,
)
from mechdesign.mechanisms.designing import design_requested
from mechdesign.mechanisms.request import DesignRequest
from tests.cases.designs import uniform_table
from tests.oracles import released_rows as oracle

JOINT = uniform_table(6, m=3)
SKEWED = md.Joint.from_counts([[60, 30, 10], [5, 20, 25], [10, 3, 2]])
KINDS = {"alip": md.ALIP, "lip": md.LIP, "ldp": md.LDP, "max-lift": md.MaxLift}


def exp_at_most(nats: float, factor: Fraction) -> bool:
    with ctx.workprec(400):
        return bool(arb(nats).exp() <= arb(fmpq(factor.numerator, factor.denominator)))


@given(
    st.fractions(min_value=1, max_value=10**9, max_denominator=10**6).filter(
        lambda k: k > 1
    )
)
def test_at_most_times_is_the_largest_budget_that_says_so(factor):
    """exp(eps) <= K < exp(next double after eps); the factor is a decimal as people type it."""
    typed = f"{math.floor(factor * 10**6) + 1}e-6"
    exact = Fraction(math.floor(factor * 10**6) + 1, 10**6)
    nats = at_most_times(typed)
    assert exp_at_most(nats, exact)
    assert not exp_at_most(math.nextafter(nats, math.inf), exact)


@given(st.integers(min_value=1, max_value=10**6 - 1))
def test_at_least_times_is_the_largest_budget_that_says_so(millionths):
    """exp(-eps) >= K, and not so for the next double."""
    nats = at_least_times(f"{millionths}e-6")
    assert exp_at_most(nats, Fraction(10**6, millionths))
    assert not exp_at_most(math.nextafter(nats, math.inf), Fraction(10**6, millionths))


def test_percent_and_floats_are_read_as_written():
    assert (
        share_of("--keep", "90%")
        == share_of("--keep", "90 %")
        == share_of("--keep", 0.9)
        == Fraction(9, 10)
    )


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ({"at_most_times": 2}, md.ALIP(math.inf, math.log(2))),
        (
            {"at_most_times": 2, "at_least_times": 0.5},
            md.ALIP(math.log(2), math.log(2)),
        ),
        ({"at_least_times": 0.5, "notion": "min-lift"}, md.MinLift(math.log(2))),
        ({"at_most_times": 2, "notion": "max-lift"}, md.MaxLift(math.log(2))),
        (
            {"at_most_times": 4, "at_least_times": 0.5, "notion": "lip"},
            md.LIP(math.log(2)),
        ),
        ({"at_most_times": 2, "notion": "ldp"}, md.LDP(math.log(2))),
    ],
)
def test_notions_in_words(words, expected):
    assert md.budget_for(JOINT, **words) == expected


@pytest.mark.parametrize("notion", KINDS)
@given(
    counts=st.lists(
        st.lists(st.integers(1, 30), min_size=4, max_size=4), min_size=2, max_size=3
    ),
    room=st.floats(min_value=0.05, max_value=0.95),
)
def test_no_belief_is_above_max_posterior(notion, counts, room):
    """max over s and y of P(s|y) <= SHARE, for channels of every notion that has a budget in these words."""
    joint = md.Joint.from_counts(counts)
    prior = max(joint.p_s)
    share = round(prior + room * (1 - prior), 6)
    wanted = md.budget_for(joint, max_posterior=share, notion=notion)
    made = md.design(joint, wanted, mechanism="subset-merging")
    assert max(high for _, high in belief_ranges(made.channel, joint)) <= share
    assert (
        math.exp(wanted.limits.ratio if notion == "ldp" else wanted.limits.upper) > 1.0
    )


def test_max_posterior_takes_the_smaller_of_two_sides():
    alone = md.budget_for(SKEWED, max_posterior=0.9)
    assert md.budget_for(
        SKEWED, max_posterior=0.9, at_most_times=1.1
    ).eps_u == at_most_times(1.1)
    assert md.budget_for(SKEWED, max_posterior=0.9, at_most_times=2) == alone


def test_max_posterior_in_the_population_takes_the_largest_share_that_the_counts_allow():
    """exp(eps_u) times the upper end of P(s) is at most SHARE, so the budget is smaller than that of the table."""
    table = md.budget_for(SKEWED, max_posterior=0.9)
    population = md.budget_for(SKEWED, max_posterior=0.9, confidence=0.95)
    assert 0.0 < population.eps_u < table.eps_u
    known = {
        name: str(share)
        for name, share in zip(SKEWED.sensitive.names, (0.6, 0.3, 0.1), strict=True)
    }
    given_shares = md.budget_for(
        SKEWED, max_posterior=0.9, confidence=0.95, known_shares=known
    )
    assert given_shares.eps_u == pytest.approx(math.log(1.5))


@pytest.mark.parametrize("share", [0.6, 0.75, 0.95])
@pytest.mark.parametrize("notion", ["alip", "ldp", "min-lift"])
def test_keep_finds_the_smallest_budget_of_four_digits(notion, share):
    """The budget keeps the share, and one step less has a proven bound below it."""
    found = md.budget_for(JOINT, keep=share, notion=notion)
    kind = type(found)
    epsilon = sum(found.values().values())
    assert md.design(JOINT, found, gap=1e-7).nmi >= share
    less = kind.at(epsilon_of(step_of(epsilon) - 1))
    assert md.design(JOINT, less, gap=1e-7).certificate.upper_bound_nmi < share


def test_keeping_says_what_is_proven():
    kept = keeping(
        md.DesignRequest(JOINT, md.ALIP.from_epsilon(1.0)), md.ALIP.from_epsilon, 0.75
    )
    details = kept.certificate.details
    below = epsilon_of(step_of(details["kept_at"]) - 1)
    assert details["kept_less_at"] == below
    text = f"epsilon {details['kept_at']:g} keeps 75 % of the information; with {below:g} no channel does (proven)"
    assert text in kept.messages


def test_all_budgets_together_have_one_time_limit(monkeypatch):
    """Each had the whole limit: 5 s became a minute."""

    class Clock:
        now = 0.0

        def process_time(self):
            return self.now

    clock = Clock()
    limits = []

    def slow(request):
        """Takes a little longer than it may."""
        limits.append(request.time_limit)
        clock.now += request.time_limit + 0.2
        return design_requested(replace(request, time_limit=30.0))

    monkeypatch.setattr(budget, "design_requested", slow)
    monkeypatch.setattr(budget, "time", clock)
    request = md.DesignRequest(JOINT, md.ALIP.from_epsilon(1.0), time_limit=5.0)
    kept = keeping(request, md.ALIP.from_epsilon, 0.6)
    assert kept.nmi >= 0.6
    assert limits[0] == pytest.approx(5.0 / 3.0)
    assert sum(limits) <= 5.0
    assert clock.now <= 5.5
    assert "did not decide" in kept.messages[-1] or "proven" in kept.messages[-1]


def test_few_larger_budgets_are_tried_when_the_time_is_over(monkeypatch):
    """Doubling tried eleven of them, and each design has steps that no limit shortens: 22 s of 2."""

    class Clock:
        now = 0.0

        def process_time(self):
            return self.now

    clock = Clock()
    monkeypatch.setattr(budget, "time", clock)
    made = md.design(JOINT, md.LIP(0.1))
    unproven = replace(made.certificate, upper_bound_nmi=1.0)
    tried = []

    def slow(request):
        tried.append(request.notion.epsilon)
        clock.now += 3.0
        return replace(made, nmi=0.1, certificate=unproven)

    monkeypatch.setattr(budget, "design_requested", slow)
    request = md.DesignRequest(JOINT, md.LIP(1.0), time_limit=5.0)
    # The designs do not say that their own time was over, as those of least cost do not.
    with pytest.raises(md.SolverFailure, match="the time limit was over before"):
        keeping(request, md.LIP, 0.9)
    assert tried == [1.0, 2.0, 4.0, 8.0, 32.0, 512.0, 700.0]


def test_a_column_that_tells_nothing_is_kept_at_the_smallest_budget():
    joint = md.Joint.from_counts([[1, 2], [2, 4]])
    kept = keeping(
        md.DesignRequest(joint, md.ALIP.from_epsilon(1.0)), md.ALIP.from_epsilon, 0.9
    )
    assert kept.certificate.details["kept_at"] == epsilon_of(0)
    assert "kept_less_at" not in kept.certificate.details
    assert "none is tried below" in kept.messages[-1]


def test_what_no_budget_keeps_is_refused_with_the_proven_bound():
    joint = md.Joint.from_counts([[10, 0, 5], [0, 10, 5]])
    with pytest.raises(
        md.NotPrivate,
        match=r"no budget keeps 0.99 .* 700 nats no channel keeps above [\d.]+ % \(proven\)",
    ):
        md.budget_for(joint, keep=0.99, lam=0.9995)


def test_a_search_that_ran_out_of_time_says_nothing_of_budgets(monkeypatch):
    """Searches that end early keep 0.1 and prove nothing, whatever the budget is."""
    made = md.design(JOINT, md.LIP(0.1))
    certificate = replace(
        made.certificate, upper_bound_nmi=1.0, details={"status": "time_limit"}
    )
    early = replace(made, nmi=0.1, certificate=certificate)
    monkeypatch.setattr(budget, "design_requested", lambda request: early)
    request = md.DesignRequest(JOINT, md.LIP(1.0), time_limit=1.0)
    with pytest.raises(
        md.SolverFailure,
        match=r"the time limit was over before a budget was found that keeps 0.9 of the "
        r"information: with 700 nats the search had 0.1; allow more time",
    ):
        keeping(request, md.LIP, 0.9)


def test_the_scale_is_that_of_four_digits():
    assert [
        epsilon_of(step_of(e)) for e in (1e-4, 0.065, 0.9999, 1.0, 1.001, 12.34, 700.0)
    ] == [*(1e-4, 0.065, 0.9999, 1.0, 1.001, 12.34, 700.0)]
    assert epsilon_of(LARGEST_STEP) == 700.0
    assert all(step_of(epsilon_of(k)) == k for k in range(0, LARGEST_STEP + 1, 7))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "say the budget: at_most_times"),
        ({"notion": "dp", "keep": 0.9}, "notion 'dp' is not known; use one of"),
        ({"at_most_times": 1}, r"at_most_times \(1\) must be above 1, as in 2"),
        ({"at_most_times": "two"}, r"at_most_times \('two'\) must be a number above 1"),
        (
            {"at_most_times": math.inf},
            r"at_most_times \('inf'\) must be a number above 1",
        ),
        ({"at_most_times": 1e305}, r"eps_u \(702.288\) must be at most 700"),
        (
            {"at_least_times": 2},
            r"at_least_times \(2\) must be strictly between 0 and 1",
        ),
        (
            {"at_least_times": 0},
            r"at_least_times \(0\) must be strictly between 0 and 1",
        ),
        (
            {"max_posterior": 1},
            r"max_posterior \(1\) must be strictly between 0 and 1, as in 0.9 or 90%",
        ),
        ({"keep": 90}, r"keep \(90\) must be strictly between 0 and 1"),
        ({"keep": 0.9, "at_most_times": 2}, "leave out every other budget"),
        (
            {"keep": 0.9, "mechanism": "subset-merging"},
            "keep needs the optimum and its proven bound",
        ),
        ({"at_most_times": 2, "lam": 0.5}, "lam splits the budget that keep finds"),
        ({"at_most_times": 2, "notion": "l1"}, "l1 bounds averages"),
        ({"max_posterior": 0.9, "notion": "chi2"}, "chi2 bounds averages"),
        (
            {"at_most_times": 2, "notion": "min-lift"},
            "min-lift does not bound beliefs from above",
        ),
        (
            {"at_least_times": 0.5, "notion": "max-lift"},
            "max-lift does not bound beliefs from below",
        ),
    ],
)
def test_refusals(options, message):
    with pytest.raises(md.InputError, match=message):
        md.budget_for(JOINT, **options)


def test_a_belief_that_is_larger_already_is_no_budget():
    with pytest.raises(
        md.NotPrivate,
        match=r"no release keeps every belief at most 0.5: 's0' has the share 0.606",
    ):
        md.budget_for(SKEWED, max_posterior=0.5)
    with pytest.raises(md.NotPrivate, match=r"'s0' may have the share 0.7"):
        md.budget_for(SKEWED, max_posterior=0.61, confidence=0.95)


def test_one_share_does_not_speak_of_several_secrets_or_of_single_budgets():
    with pytest.raises(
        md.InputError,
        match="max_posterior is for one sensitive column and every symbol alike",
    ):
        md.budget_for(SKEWED, max_posterior=0.9, budgets={"s0": (0.5, 0.5)})
    with pytest.raises(
        md.InputError, match="max_posterior is for one sensitive column"
    ):
        md.budget_for(SKEWED, max_posterior=0.9, protect_each=True)


def people():
    """Counts of a secret, a given column, and two columns that tell of it."""
    rng = np.random.default_rng(4)
    count = 400
    s = rng.random(count) < 0.4
    k = np.where(rng.random(count) < np.where(s, 0.7, 0.4), "m", "f")
    a = np.where(rng.random(count) < 0.6, np.where(s, "u", "v"), "w")
    b = rng.choice(["x", "y", "z"], count)
    return pd.DataFrame({"s": np.where(s, "yes", "no"), "k": k, "a": a, "b": b})


def rows_request(**options):
    frame = people()
    given = options.get("given")
    names = ["a", "b"] if given is None else [given, "a", "b"]
    joint = md.Joint.from_table(frame, sensitive="s", useful=names)
    options = {"smallest_group": 1, **options}
    return DesignRequest(joint, md.LIP(1.0), release=["a", "b"], **options)


@pytest.mark.parametrize(
    "options",
    [{}, {"keep_frequencies": False, "smallest_group": None}, {"given": "k"}],
    ids=["law", "free", "given"],
)
def test_the_smallest_budget_that_keeps_cells_of_rows(options):
    """One step less keeps less, by another design; and the answer says so."""
    request = rows_request(**options)
    found = keeping(request, md.LIP, 0.9)
    details = found.certificate.details
    epsilon = details["kept_at"]
    assert 1.0 - found.least.cost >= 0.9
    assert found.channel.record.notion["epsilon"] == pytest.approx(epsilon)
    below = details["kept_less_at"]
    assert below == pytest.approx(epsilon_of(step_of(epsilon) - 10), rel=1e-9), (
        "one step of three digits"
    )
    less = design_requested(replace(request, notion=md.LIP(below), gap=1e-6))
    assert 1.0 - less.least.cost_lower_bound < 0.9
    sentence = f"keeps 90 % of the cells; with {below:g} no plan does (proven)"
    assert any(sentence in message for message in found.messages)


def test_budgets_that_given_columns_break_keep_nothing():
    """Below the smallest budget of the given column no plan exists, and above it all cells stay."""
    frame = people().assign(b="x", a=lambda frame: frame["k"])
    joint = md.Joint.from_table(frame, sensitive="s", useful=["k", "a", "b"])
    request = DesignRequest(joint, md.LIP(1.0), release=["a", "b"], given="k")
    found = keeping(request, md.LIP, 0.5)
    assert found.least.truth == 1.0
    epsilon = found.certificate.details["kept_at"]
    with pytest.raises(md.NotPrivate, match="the given columns alone break"):
        design_requested(replace(request, notion=md.LIP(epsilon * 0.98)))


@pytest.mark.parametrize(
    "options",
    [
        {"objective": [[0.0, 1.0], [1.0, 0.0]]},
        {"objective": "distance", "distance": "absolute"},
    ],
)
def test_costs_that_are_no_shares_of_cells_are_not_kept(options):
    with pytest.raises(
        md.InputError, match="keep counts unchanged cells of released rows, and these"
    ):
        keeping(rows_request(**options), md.LIP, 0.9)


def test_what_no_budget_keeps_of_rows_is_refused():
    request = rows_request(forbid=[("a=u", "a=u")])
    with pytest.raises(
        md.NotPrivate,
        match=r"no budget up to 700 nats was found that keeps 0.9 of the cells, only 0.\d+; no plan "
        r"keeps more than 0.\d+ there \(proven\)",
    ):
        keeping(request, md.LIP, 0.9)


@pytest.mark.parametrize("notion", ["alip", "lip", "ldp", "max-lift"])
def test_no_belief_is_above_max_posterior_among_records_with_the_same_given_cells(
    notion,
):
    frame = people()
    joint = md.Joint.from_table(frame, sensitive="s", useful=["k", "a", "b"])
    options = {"release": ["a", "b"], "given": "k", "promise": "relative"}
    wanted = md.budget_for(joint, max_posterior=0.8, notion=notion, **options)
    channel = md.design(joint, wanted, smallest_group=1, **options).channel
    law = oracle.joint_law(channel)
    by_row = oracle.summed(law, lambda entry: entry[2])
    both = oracle.summed(law, lambda entry: (entry[0], entry[2]))
    beliefs = [mass / by_row[released] for (_, released), mass in both.items()]
    assert Fraction(7, 10) < max(beliefs) <= Fraction(8, 10)


def test_a_belief_among_records_with_given_cells_that_is_larger_already():
    frame = people()
    joint = md.Joint.from_table(frame, sensitive="s", useful=["k", "a", "b"])
    with pytest.raises(
        md.NotPrivate,
        match=r"'no' has, among records with some cells of 'k', the share 0.[0-9]+ before",
    ):
        md.budget_for(
            joint, max_posterior=0.7, release=["a"], given="k", promise="relative"
        )
