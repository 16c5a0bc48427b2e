"""The watchdog under l1-, chi2- and alpha-lift with their inverses: always private, by an independent check."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign.mechanisms.merged_sets import merged_sets
from mechdesign.notions import ALIP, AlphaLift, Chi2Lift, L1Lift
from mechdesign.tables.joint import Joint
from tests.cases.designs import complete_merging, merged_by_risk, subset_merging
from tests.mechdesign.mechanisms.test_heuristics import joints
from tests.oracles import means as mean_oracle
from tests.profiles import scaled

NOTIONS = {
    "l1": L1Lift.from_epsilon,
    "chi2": Chi2Lift.from_epsilon,
    "alpha 2": AlphaLift.from_epsilon,
    "alpha 1.5": lambda e, lam: AlphaLift.from_epsilon(e, lam, 1.5),
    "l1 forward": lambda e, _: L1Lift(math.inf, e),
    "chi2 inverse": lambda e, _: Chi2Lift(e, math.inf),
    "alpha 30 forward": lambda e, _: AlphaLift(math.inf, e, 30.0),
}


@settings(max_examples=scaled(120))
@given(
    joints(),
    st.sampled_from(sorted(NOTIONS)),
    st.floats(0.1, 8.0),
    st.sampled_from([0.35, 0.5, 0.65]),
    st.booleans(),
)
def test_never_a_violation(joint, name, epsilon, lam, subset):
    """Any table and budget, the non-convex inverses included: the integers satisfy the notion, decided elsewhere."""
    notion = NOTIONS[name](epsilon, lam)
    design = (subset_merging if subset else complete_merging)(joint, notion)
    assert design.verified
    assert mean_oracle.satisfies(joint.counts, design.channel.rows, notion.limits)
    assert design.repaired or not design.borrowed


@pytest.mark.parametrize("risk", ["auto", "log-max", "log-ratio", "sum"])
@pytest.mark.parametrize("name", ["l1", "chi2", "alpha 2"])
def test_every_risk_splits_the_merged_set(adult, name, risk):
    """With inverse measures in the place of Psi even the printed sum works: it grows with the risk."""
    notion = NOTIONS[name](0.3, 0.5)
    fine, coarse = (
        merged_by_risk(adult, notion, "subset-merging", risk),
        complete_merging(adult, notion),
    )
    assert fine.nmi > coarse.nmi + 0.05


def _inverse_l1(p, lifts):
    return float(p @ np.abs(1.0 / lifts - 1.0))


def test_merging_two_outputs_can_break_the_l1_inverse():
    """P uniform on 3, lifts (1.5, 1, 0.5) and (1, 1.5, 0.5): .444 each, merged .467; the result keeps the budget."""
    joint = Joint.from_counts(
        [[6, 4, 10, 4, 6, 0], [4, 6, 10, 10, 0, 0], [2, 2, 0, 2, 2, 22]]
    )
    p = joint.p_s
    assert p == pytest.approx(np.full(3, 1 / 3))
    lift = joint.lift
    assert lift[:, 0] == pytest.approx([1.5, 1.0, 0.5])
    assert lift[:, 1] == pytest.approx([1.0, 1.5, 0.5])
    assert _inverse_l1(p, lift[:, 0]) == pytest.approx(4 / 9)
    merged = lift[:, :2].mean(axis=1)
    assert _inverse_l1(p, merged) == pytest.approx(0.4667, abs=1e-4)
    limits = L1Lift(math.log1p(0.45), math.inf).limits
    lifts = merged_sets(joint.p, limits)
    assert lifts.within(lifts.given_s, lifts.p_x)[:2].all()
    assert not lifts.complies(lifts.block([0, 1]))
    for mechanism in (subset_merging, complete_merging):
        design = mechanism(joint, L1Lift(math.log1p(0.45), math.inf))
        assert mean_oracle.satisfies(joint.counts, design.channel.rows, limits)


def test_merging_can_break_the_chi2_inverse():
    """P = (.1, .1, .8), lifts (1.5, 3.5, .625) and its swap: .3501 each, the mixture .3600."""
    p = np.array([0.1, 0.1, 0.8])
    one, other = np.array([1.5, 3.5, 0.625]), np.array([3.5, 1.5, 0.625])

    def inverse(lifts):
        return float(p @ (1.0 / lifts - 1.0) ** 2)

    assert (
        inverse(one) == pytest.approx(inverse(other)) == pytest.approx(0.3501, abs=1e-4)
    )
    assert inverse((one + other) / 2.0) == pytest.approx(0.3600, abs=1e-4)


@given(st.integers(0, 10**6), st.sampled_from(sorted(NOTIONS)), st.floats(0.05, 4.0))
def test_sets_called_safe_are_safe_and_sets_called_unsafe_are_not(seed, name, epsilon):
    """Floating point errs on the side of privacy: `within` implies the notion, not even perhaps its violation."""
    rng = np.random.default_rng(seed)
    joint = Joint.from_counts(rng.integers(1, 50, (3, 5)))
    limits = NOTIONS[name](epsilon, 0.5).limits
    lifts = merged_sets(joint.p, limits)
    surely, perhaps = (
        lifts.within(lifts.given_s, lifts.p_x),
        lifts.within(lifts.given_s, lifts.p_x, -1.0),
    )
    for x in range(5):
        column = [[1, 0] if z == x else [0, 1] for z in range(5)]
        one = mean_oracle.lifts(joint.counts, column)[0]
        p_s = [mean_oracle.Fraction(sum(row), joint.total) for row in joint.counts]
        kind, order = limits.mean.name, getattr(limits.mean, "order", math.nan)
        below = mean_oracle.budget_of(p_s, [1 / v for v in one], kind, order)
        above = mean_oracle.budget_of(p_s, one, kind, order)
        true = mean_oracle.keeps(below, limits.lower) and mean_oracle.keeps(
            above, limits.upper
        )
        assert true or not surely[x]
        assert perhaps[x] or not true


def test_independent_columns_are_published_at_any_budget():
    joint = Joint.from_counts(np.outer([1, 2, 7], [3, 5, 11, 13]))
    for notion in (
        L1Lift(1e-300, 1e-300),
        Chi2Lift(1e-300, 1e-300),
        AlphaLift(1e-300, 1e-300, 2.5),
    ):
        assert subset_merging(joint, notion).nmi == 1.0


def test_a_huge_alpha_merges_like_alip(adult):
    """alpha-lift approaches ALIP (Figure 13): from order 1e6 on the partitions are the same."""
    for epsilon in (0.5, 1.0, 2.0):
        near = subset_merging(adult, AlphaLift.from_epsilon(epsilon, 0.5, 1e6))
        exact = subset_merging(adult, ALIP.from_epsilon(epsilon))
        infinite = subset_merging(adult, AlphaLift.from_epsilon(epsilon, 0.5, math.inf))
        assert near.channel.outputs == exact.channel.outputs == infinite.channel.outputs


@pytest.mark.parametrize("name", ["l1", "chi2", "alpha 2"])
def test_averages_are_weaker_than_alip_at_equal_budgets(adult, name):
    """'They result in higher utility than ALIP' (Figures 11 to 13), lam 0.5."""
    for epsilon in (0.5, 1.0, 2.0):
        assert (
            subset_merging(adult, NOTIONS[name](epsilon, 0.5)).nmi
            > subset_merging(adult, ALIP.from_epsilon(epsilon)).nmi
        )


def test_a_design_says_which_of_its_own_budgets_it_uses(adult):
    design = subset_merging(adult, L1Lift(0.5, 0.5))
    assert 0.0 < design.used.eps_l <= 0.5
    assert 0.0 < design.used.eps_u <= 0.5
    assert design.achieved.eps_l > 0.5  # single lifts may go further than the average
    assert design.channel.record.notion == {"name": "l1", "eps_l": 0.5, "eps_u": 0.5}
    assert subset_merging(adult, ALIP(0.5, 0.5)).used is None
