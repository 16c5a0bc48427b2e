"""What 'twice as likely' costs and where keeping most begins, whatever the grid; and curves that
fall.
"""

from __future__ import annotations

import math

import pytest

import mechdesign as md
from mechdesign.comparison.recommending import MOST, SHOWN, TWICE, falls, recommend
from mechdesign.comparison.rows import ComparisonRow
from mechdesign.comparison.run import compare
from tests.cases.designs import uniform_table

JOINT = uniform_table(6, m=3)


def row(mechanism, epsilon, nmi, *, notion="alip", lam=0.5):
    half = epsilon / 2
    return ComparisonRow(
        mechanism,
        notion,
        epsilon,
        lam,
        half,
        half,
        nmi,
        None,
        0.1,
        -0.1,
        True,
        False,
        1.0,
    )


def curve(mechanism, values, **options):
    return [
        row(mechanism, float(k + 1), nmi, **options) for k, nmi in enumerate(values)
    ]


def advised(joint=JOINT, epsilons=(0.5, 1.0), **options):
    return recommend(joint, compare(joint, epsilons=epsilons, **options).rows)


@pytest.mark.parametrize("lam", [0.35, 0.5, 0.65])
def test_twice_is_twice(lam):
    """eps_u of the budget is at most ln 2, and larger than ln 2 by the next representable budgets."""
    (found,) = advised(lams=[lam])
    assert [r.mechanism for r in found.twice] == list(
        dict.fromkeys(r.mechanism for r in found.twice)
    )
    for made in found.twice:
        assert made.eps_u <= TWICE
        assert made.eps_u == pytest.approx(TWICE)
        assert made.max_log_lift <= TWICE
        assert made.satisfied


@pytest.mark.parametrize("notion", ["lip", "ldp", "max-lift", "min-lift"])
def test_notions_that_take_their_budget_whole(notion):
    (found,) = advised(notions=[notion], mechanisms=["optimal"])
    assert (found.lam, found.twice[0].epsilon) == (None, TWICE)


def test_averages_bound_no_single_belief():
    (found,) = advised(notions=["chi2"], mechanisms=["subset-merging"])
    assert (found.twice, found.most, found.with_optimum) == ((), None, False)


def test_keeping_most_begins_where_one_step_less_is_proven_too_little():
    """The optimum keeps 90 % at the budget found; at the budget below no channel does."""
    (found,) = advised(mechanisms=["optimal"])
    assert found.most.nmi >= MOST
    assert found.most.epsilon * 0.998 < found.too_little < found.most.epsilon
    assert (
        md.design(
            JOINT, md.ALIP.from_epsilon(found.too_little), gap=1e-6
        ).certificate.upper_bound_nmi
        < MOST
    )


def test_beliefs_are_those_of_the_channels_and_the_budgets_are_fixed():
    """exp(-eps_l) P(s) <= lowest <= P(s) <= highest <= exp(eps_u) P(s), at `SHOWN` and at the
    answers.
    """
    (found,) = advised(mechanisms=["optimal"])
    assert {at.epsilon for at in found.beliefs} == {
        *SHOWN,
        found.twice[0].epsilon,
        found.most.epsilon,
    }
    assert found.before == tuple(JOINT.p_s)
    for at in found.beliefs:
        for prior, (low, high) in zip(found.before, at.ranges, strict=True):
            assert (
                math.exp(-at.epsilon / 2) * prior * (1 - 1e-12)
                <= low
                <= prior * (1 + 1e-12)
            )
            assert (
                prior * (1 - 1e-12)
                <= high
                <= math.exp(at.epsilon / 2) * prior * (1 + 1e-12)
            )


def test_the_answers_depend_neither_on_the_grid_nor_on_the_clock():
    first = advised(epsilons=(0.25, 0.5))
    second = advised(epsilons=(1.0, 3.0, 5.0))
    for one, other in zip(first, second, strict=True):
        assert one.most.epsilon == other.most.epsilon
        assert [(r.mechanism, r.epsilon, r.nmi) for r in one.twice] == [
            (r.mechanism, r.epsilon, r.nmi) for r in other.twice
        ]


def test_one_recommendation_for_each_notion_and_lam():
    found = advised(notions=["alip", "ldp"], lams=[0.35, 0.5], mechanisms=["optimal"])
    assert [(r.notion, r.lam) for r in found] == [
        ("alip", 0.35),
        ("alip", 0.5),
        ("ldp", None),
    ]


def test_a_budget_beyond_the_largest_is_no_answer():
    (found,) = recommend(JOINT, [row("optimal", 1.0, 0.5, lam=1.0 - 2.0**-12)])
    assert found.twice == ()


def test_the_steepest_fall_of_a_curve_is_found_and_rounding_is_none():
    rows = [
        *curve("optimal", (0.2, 0.9, 0.8999, 1.0)),
        *curve("subset-merging", (0.2, 0.6, 0.55, 0.3, 0.7)),
        *curve("subset-merging", (0.2, 0.3), lam=0.65),
        *curve("complete-merging", (0.5,)),
    ]
    ((before, after),) = falls(reversed(rows))
    assert (before.mechanism, before.lam, before.epsilon, after.epsilon) == (
        "subset-merging",
        0.5,
        3.0,
        4.0,
    )
