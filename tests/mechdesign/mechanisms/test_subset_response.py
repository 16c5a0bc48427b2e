"""Subset random response (Algorithm 2): between subset merging and the optimum's proven bound, always private."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign.auditing.verdict import audit_on_table
from mechdesign.core.errors import InputError, SolverFailure
from mechdesign.core.progress import Step
from mechdesign.mechanisms import rules
from mechdesign.mechanisms.design_call import design
from mechdesign.mechanisms.rounding import RoundingFailure
from mechdesign.mechanisms.search_options import RESPONSE as NAME
from mechdesign.notions import (
    ALIP,
    LDP,
    LIP,
    AlphaLift,
    Chi2Lift,
    L1Lift,
    MaxLift,
    MinLift,
)
from mechdesign.tables.joint import Joint
from solvers import BackendFailure, OutsidePolytope, TooManyVertices
from tests.cases.designs import is_private, merged_by_risk, uniform_table
from tests.mechdesign.mechanisms.test_heuristics import joints
from tests.oracles import means as mean_oracle
from tests.profiles import scaled

NOTIONS = {
    "alip": ALIP.from_epsilon,
    "alip 0.65": lambda e: ALIP.from_epsilon(e, 0.65),
    "lip": LIP,
    "ldp": LDP,
    "max-lift": MaxLift,
    "min-lift": MinLift,
}


@settings(max_examples=scaled(30))
@given(joints(), st.sampled_from(sorted(NOTIONS)), st.floats(0.1, 8.0))
def test_never_below_subset_merging_never_above_the_bound_and_always_private(
    joint, name, epsilon
):
    """subset merging <= subset response <= proven upper bound, and the integers keep the notion (exact oracle)."""
    notion = NOTIONS[name](epsilon)
    found = design(joint, notion, mechanism=NAME)
    merged = design(joint, notion, mechanism="subset-merging")
    bound = design(joint, notion).certificate.upper_bound_nmi
    assert is_private(found, joint)
    assert merged.nmi <= found.nmi <= bound
    if not any("smaller budget" in message for message in found.messages):
        assert (found.repaired, found.borrowed) == (merged.repaired, merged.borrowed)


@settings(max_examples=scaled(25))
@given(joints(), st.floats(0.02, 3.0))
def test_the_same_for_l1_lift_without_its_inverse(joint, epsilon):
    notion = L1Lift(math.inf, epsilon)
    found = design(joint, notion, mechanism=NAME)
    best = design(joint, notion)
    for each in (found, best):
        assert mean_oracle.satisfies(joint.counts, each.channel.rows, notion.limits)
    assert (
        design(joint, notion, mechanism="subset-merging").nmi
        <= found.nmi
        <= best.certificate.upper_bound_nmi
    )


def test_symbols_stay_within_their_subset(adult):
    """Two useful symbols share an output only if subset merging puts them into one set."""
    notion = ALIP.from_epsilon(1.0)
    sets = design(adult, notion, mechanism="subset-merging").channel.matrix > 0.0
    responses = design(adult, notion, mechanism=NAME).channel.matrix > 1e-12
    together = sets.astype(int) @ sets.T.astype(int) > 0
    sharing = responses.astype(int) @ responses.T.astype(int) > 0
    assert not (sharing & ~together).any()
    assert (sharing & ~np.eye(15, dtype=bool)).any()


@pytest.mark.parametrize(("epsilon", "lam"), [(1.0, 0.5), (1.0, 0.65), (2.0, 0.65)])
def test_vertices_and_columns_find_the_same(adult, epsilon, lam):
    found = [
        design(
            adult,
            ALIP.from_epsilon(epsilon, lam),
            mechanism=NAME,
            method=method,
            gap=1e-6,
        ).nmi
        for method in ("vertices", "columns", "auto")
    ]
    assert found == pytest.approx([found[0]] * 3, abs=2e-6)


def test_one_set_of_everything_is_the_optimum():
    """At a small budget Algorithm 1 merges everything, so the subset's problem is the whole one."""
    joint = uniform_table(8, 4, seed=3)
    notion = ALIP.from_epsilon(0.1)
    assert design(joint, notion, mechanism="subset-merging").outputs == 1
    assert design(joint, notion, mechanism=NAME).nmi == pytest.approx(
        design(joint, notion).nmi, abs=2e-4
    )


def test_it_says_what_it_is(adult):
    found = design(adult, LDP(1.0), mechanism=NAME)
    assert (found.mechanism, found.method, found.verified, found.fallback_from) == (
        NAME,
        "subsets",
        True,
        None,
    )
    assert (found.certificate.upper_bound_nmi, found.certificate.gap_nmi) == (
        None,
        None,
    )
    assert found.channel.record.provenance["mechanism"] == NAME
    assert found.achieved.eps_ldp <= 1.0


def test_without_risky_symbols_everything_is_published(adult):
    found = design(adult, LIP(20.0), mechanism=NAME)
    assert found.nmi < 1.0 or found.outputs == 15
    loose = design(uniform_table(6, 3), LIP(20.0), mechanism=NAME)
    assert (loose.nmi, loose.outputs, loose.mechanism) == (1.0, 6, NAME)


def test_a_large_table_is_solved_set_by_set():
    """Figure 10's size, |X| = 200 and |S| = 15: the optimum is 0.932 at eps 2, merging 0.87."""
    joint = uniform_table(200, 15)
    notion = ALIP.from_epsilon(2.0)
    seen: list[Step] = []
    found = design(joint, notion, mechanism=NAME, progress=seen.append)
    assert found.nmi == pytest.approx(0.910, abs=0.01)
    assert found.nmi > design(joint, notion, mechanism="subset-merging").nmi + 0.02
    assert seen
    assert all(str(step) == f"{step.done} of {step.total} sets" for step in seen)
    assert (seen[0].done, seen[-1].done) < (1, seen[-1].total)


@pytest.mark.parametrize("notion", [Chi2Lift(0.5, 0.5), L1Lift(0.5, 0.5)])
def test_a_notion_whose_posteriors_are_not_convex(notion):
    random = np.random.default_rng(4)
    table = Joint.from_counts(random.integers(1, 40, (3, 7)))
    found = design(table, notion, mechanism=NAME, gap=1e-3)
    assert audit_on_table(found.channel, table, notion).satisfied
    assert found.nmi >= design(table, notion, mechanism="subset-merging").nmi
    assert found.nmi <= design(table, notion, gap=1e-3).certificate.upper_bound_nmi


def test_an_alpha_of_infinity_has_a_polytope(adult):
    for mechanism in ("optimal", NAME):
        one = design(adult, AlphaLift(0.5, 0.5, math.inf), mechanism=mechanism)
        assert one.nmi == design(adult, ALIP(0.5, 0.5), mechanism=mechanism).nmi


def test_no_time_left_gives_subset_merging(adult):
    found = design(adult, LDP(1.0), mechanism=NAME, time_limit=0.0)
    merged = design(adult, LDP(1.0), mechanism="subset-merging")
    assert found.nmi == pytest.approx(merged.nmi, abs=1e-12)
    assert is_private(found, adult)


def raiser(error):
    def fail(*args, **kwargs):
        raise error

    return fail


def test_a_set_whose_merging_lies_in_the_margin_stays_merged(adult, monkeypatch):
    outside = OutsidePolytope("outside", np.zeros(1), 0.0)
    monkeypatch.setattr(rules, "lower_envelope", raiser(outside))
    found = design(adult, LDP(1.0), mechanism=NAME)
    assert found.nmi == pytest.approx(
        design(adult, LDP(1.0), mechanism="subset-merging").nmi, abs=1e-12
    )


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            TooManyVertices("too many vertices; use columns"),
            "too many vertices; use columns",
        ),
        (
            BackendFailure("no pivots"),
            r"a set of \d+ symbols could not be solved \(no pivots\); use mechanism subset-merging",
        ),
    ],
)
def test_a_solver_that_gives_up_is_a_failure_with_a_way_out(
    adult, monkeypatch, error, message
):
    monkeypatch.setattr(rules, "lower_envelope", raiser(error))
    with pytest.raises(SolverFailure, match=message):
        design(adult, LDP(1.0), mechanism=NAME)


def test_a_response_that_cannot_be_rounded_gives_way_to_subset_merging(
    adult, monkeypatch
):
    monkeypatch.setattr(rules, "round_channel", raiser(RoundingFailure("outside")))
    found = design(adult, LDP(1.0), mechanism=NAME)
    merged = design(adult, LDP(1.0), mechanism="subset-merging")
    assert (found.mechanism, found.method, found.nmi) == (NAME, "partition", merged.nmi)
    assert is_private(found, adult)


def test_the_printed_risk_can_be_asked_for(adult):
    printed = merged_by_risk(adult, ALIP.from_epsilon(1.0), NAME, "sum")
    merged = merged_by_risk(adult, ALIP.from_epsilon(1.0), "subset-merging", "sum")
    assert merged.nmi == pytest.approx(0.2868, abs=1e-4)
    assert printed.nmi > merged.nmi
    with pytest.raises(
        InputError, match="risk belongs to subset-merging and subset-response"
    ):
        merged_by_risk(adult, LDP(1.0), "complete-merging", "sum")


@settings(max_examples=scaled(80))
@given(st.integers(0, 10**6), st.floats(0.2, 2.0))
def test_a_subset_has_a_solution_exactly_where_merging_it_complies(seed, epsilon):
    """The corrected feasibility rule: P(X|T) is in the polytope of T iff the merged T satisfies the notion."""
    from mechdesign.mechanisms.posteriors import posteriors
    from solvers import SolverError, lower_envelope

    rng = np.random.default_rng(seed)
    joint = Joint.from_counts(rng.integers(1, 40, (3, 6)))
    notion = ALIP.from_epsilon(epsilon)
    members = np.flatnonzero(rng.random(6) < 0.5)
    if members.size == 0:
        return
    merged = joint.p[:, members].sum(axis=1) / joint.p_s / joint.p_x[members].sum()
    room = min(
        merged.min() * math.exp(notion.eps_l) - 1.0,
        1.0 - merged.max() * math.exp(-notion.eps_u),
    )
    if abs(room) < 1e-6:
        return
    inside = posteriors(joint, notion).restrict(members)
    point = joint.p_x[members] / joint.p_x[members].sum()
    try:
        lower_envelope(inside, point, method="columns")
        solved = True
    except SolverError:
        solved = False
    assert solved == (room > 0.0)
