"""The propositions of Zarrabian et al. 2023 on random channels, each in the form that holds, and
the counterexamples.

Propositions 1.2, 3.1, 3.2, 5.1 and 5.2 as printed need symmetric budgets; Propositions 4 and 6 need
their square roots and the smallest P(s).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign.auditing.leakages import (
    guarantees,
    largest_lift,
    posterior_at_least,
    posterior_at_most,
    smallest_lift,
)
from mechdesign.auditing.verdict import audit_on_table
from mechdesign.mechanisms.rounding import partition_channel
from mechdesign.mechanisms.rules import Rules
from mechdesign.notions import ALIP, LDP, LIP
from mechdesign.tables.joint import Joint
from tests.cases.designs import as_published, complete_merging
from tests.oracles import measures as m
from tests.profiles import scaled

ROUNDING = 1.0 + 1e-9
"""Of the sums of this file."""


@st.composite
def joint_distributions(draw):
    """P(s, y), 2 x 1 to 6 x 6, from nearly independent to sparse; every row and column has mass."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    shape = (int(rng.integers(2, 7)), int(rng.integers(1, 7)))
    p = (
        rng.dirichlet(
            np.full(shape[0] * shape[1], draw(st.sampled_from([0.2, 1.0, 30.0])))
        ).reshape(shape)
        + 1e-6
    )
    if draw(st.booleans()):
        p *= rng.random(shape) < 0.8
        p[rng.integers(0, shape[0], shape[1]), np.arange(shape[1])] += 0.01
        p[np.arange(shape[0]), rng.integers(0, shape[1], shape[0])] += 0.01
    return p / p.sum()


def budgets(p):
    high = m.max_lift(p).max()
    low = m.min_lift(p).min()
    return (-math.log(low) if low > 0 else math.inf), math.log(high)


@given(joint_distributions(), st.floats(0.05, 20.0))
def test_proposition_1(p, order):
    """I, Sibson and Arimoto of every order <= eps_u; LDP <= eps_l + eps_u; T and chi2 in the
    corrected form.
    """
    eps_l, eps_u = budgets(p)
    g = guarantees(eps_l, eps_u)
    slack = 1e-9
    assert m.mutual_information(p) <= g["information"] + slack
    for one in (order, 1.0, math.inf):
        assert m.sibson_information(p, one) <= g["information"] + slack
        assert m.arimoto_information(p, one) <= g["information"] + slack
    assert m.maximal_leakage(p) <= g["information"] + slack
    assert math.log(m.lift_ratio(p).max()) <= g["ldp"] + slack
    assert m.total_variation(p) <= g["total_variation"] * ROUNDING + slack
    assert m.chi2_information(p) <= g["chi2_lift"] * ROUNDING + slack


@given(joint_distributions(), st.sampled_from([1.1, 2.0, 10.0, math.inf]))
def test_propositions_3_and_5(p, alpha):
    """Every average is bounded by the budgets of the single lifts, in the corrected form."""
    g = guarantees(*budgets(p))
    slack = 1e-9
    assert m.l1_lift(p).max() <= g["l1_lift"] * ROUNDING + slack
    assert m.chi2_lift(p).max() <= g["chi2_lift"] * ROUNDING + slack
    assert m.alpha_lift(p, alpha).max() <= g["alpha_lift"] * ROUNDING
    assert m.l1_lift_inverse(p).max() <= g["l1_lift_inverse"] * ROUNDING + slack
    assert m.chi2_lift_inverse(p).max() <= g["chi2_lift_inverse"] * ROUNDING + slack
    assert m.alpha_lift_inverse(p, alpha).max() <= g["alpha_lift_inverse"] * ROUNDING


@given(joint_distributions())
def test_the_printed_forms_hold_where_the_budgets_are_symmetric_enough(p):
    """b - 1 and (b - 1)^2 where 1 - a <= b - 1; 1/a - 1 and its square where 1 - 1/b <= 1/a - 1."""
    eps_l, eps_u = budgets(p)
    a = math.exp(-eps_l)
    b = math.exp(eps_u)
    if 1.0 - a <= b - 1.0:
        assert m.l1_lift(p).max() <= (b - 1.0) * ROUNDING + 1e-9
        assert m.chi2_lift(p).max() <= (b - 1.0) ** 2 * ROUNDING + 1e-9
    if a > 0.0 and 1.0 - 1.0 / b <= 1.0 / a - 1.0:
        assert m.l1_lift_inverse(p).max() <= (1.0 / a - 1.0) * ROUNDING + 1e-9
        assert m.chi2_lift_inverse(p).max() <= (1.0 / a - 1.0) ** 2 * ROUNDING + 1e-9


@given(joint_distributions(), st.sampled_from([1.1, 2.0, 10.0]))
def test_propositions_4_and_6(p, alpha):
    """What an average says of a single lift, with P(s) of the worst s and with the smallest P(s)."""
    p_s = p.sum(axis=1)
    lifts = m.lift(p)
    for rare in (p_s.min(), p_s[np.unravel_index(np.argmax(lifts), lifts.shape)[0]]):
        high = lifts.max()
        assert high <= largest_lift("l1", m.l1_lift(p).max(), rare) * ROUNDING
        assert high <= largest_lift("chi2", m.chi2_lift(p).max(), rare) * ROUNDING
        assert (
            high
            <= largest_lift("alpha", m.alpha_lift(p, alpha).max(), rare, alpha)
            * ROUNDING
        )
    for rare in (p_s.min(), p_s[np.unravel_index(np.argmin(lifts), lifts.shape)[0]]):
        low = lifts.min()
        assert low * ROUNDING + 1e-12 >= smallest_lift(
            "l1", m.l1_lift_inverse(p).max(), rare
        )
        assert low * ROUNDING + 1e-12 >= smallest_lift(
            "chi2", m.chi2_lift_inverse(p).max(), rare
        )
        assert low * ROUNDING + 1e-12 >= smallest_lift(
            "alpha", m.alpha_lift_inverse(p, alpha).max(), rare, alpha
        )


def test_proposition_4_needs_its_square_root():
    """Without it, e / P(s) + 1 as extracted: P = (.5, .5), lifts (1.1, .9), chi2 = .01 would give
    at most 1.02.
    """
    p = np.array([[0.275, 0.225], [0.225, 0.275]])
    chi2 = m.chi2_lift(p).max()
    assert chi2 == pytest.approx(0.01)
    assert m.max_lift(p).max() > chi2 / 0.5 + 1.0
    assert m.max_lift(p).max() <= largest_lift("chi2", chi2, 0.5)


def test_proposition_4_and_6_are_reached():
    """Two values of S: l1 is shared equally by the two lifts, so e / (2P) + 1 is exact."""
    p = np.array([[0.3, 0.1], [0.2, 0.4]])
    lifts = m.lift(p)[:, 1]
    assert 0.6 * abs(lifts[1] - 1.0) * 2.0 == pytest.approx(m.l1_lift(p)[1])
    assert lifts[1] == pytest.approx(largest_lift("l1", m.l1_lift(p)[1], 0.6))
    assert (
        smallest_lift("l1", math.inf, 0.1)
        == smallest_lift("alpha", math.inf, 0.1, 2.0)
        == 0.0
    )


@given(joint_distributions(), st.floats(0.01, 0.99))
def test_proposition_a1(p, rho):
    """P(Q|y) <= min(rho L, 1 - (1 - rho) l) if P(Q) <= rho; >= max(rho l, 1 - (1 - rho) L) if >=."""
    low, high = float(m.min_lift(p).min()), float(m.max_lift(p).max())
    most = posterior_at_most(low, high, rho)
    least = posterior_at_least(low, high, rho)
    count = p.shape[0]
    sets = ((np.arange(2**count)[:, None] >> np.arange(count)) & 1).astype(float)
    prior = sets @ p.sum(axis=1)
    posterior = sets @ (p / p.sum(axis=0))
    assert (posterior[prior <= rho] <= most + 1e-9).all()
    assert (posterior[prior >= rho] >= least - 1e-9).all()
    assert 0.0 <= least <= rho <= most <= 1.0 or high == low == 1.0


def test_proposition_a1_is_the_least_of_both():
    """Each side alone bounds a posterior; at lifts in [e^-.5, e^.5] the upper one decides for .01."""
    low, high = math.exp(-0.5), math.exp(0.5)
    found = [posterior_at_most(low, high, rho) for rho in (0.01, 0.1, 0.5)]
    assert found == pytest.approx([0.0164872, 0.164872, 0.6967347], rel=1e-6)
    assert posterior_at_most(0.0, 1.1, 0.5) == pytest.approx(0.55)
    assert posterior_at_most(0.9, math.inf, 0.5) == pytest.approx(0.55)
    assert posterior_at_most(0.0, math.inf, 0.5) == 1.0
    assert posterior_at_least(0.9, math.inf, 0.5) == pytest.approx(0.45)
    assert posterior_at_least(0.0, 1.1, 0.5) == pytest.approx(0.45)
    assert posterior_at_least(0.0, math.inf, 0.5) == 0.0


def test_alip_implies_ldp_and_averages_do_not():
    """P = (.05, .95), lifts (5, .789): l1 within e^.5 - 1 on both sides, yet Gamma = 6.33 > e^1."""
    p_s = np.array([0.05, 0.95])
    lifts = np.array([5.0, (1.0 - 0.25) / 0.95])
    bound = math.expm1(0.5)
    assert p_s @ np.abs(lifts - 1.0) <= bound
    assert p_s @ np.abs(1.0 / lifts - 1.0) <= bound
    assert lifts[0] / lifts[1] == pytest.approx(6.33, abs=0.01)


def test_alip_does_not_imply_l1_or_chi2_privacy_at_the_same_budgets():
    """lam 0.65, eps 1, S uniform on 15, lifts 1.418 (8 values) and 0.52229 (7) in cyclic order.

    T = 0.2229 > 0.2095 and chi2 = 0.1997 > 0.1756.
    """
    lifts = np.array([1.418] * 8 + [0.52229] * 7)
    columns = np.array([np.roll(lifts, k) for k in range(15)]).T / 225.0
    p = columns / columns.sum()
    eps_l = 0.65
    eps_u = 0.35
    assert math.exp(-eps_l) <= m.min_lift(p).min()
    assert m.max_lift(p).max() <= math.exp(eps_u)
    assert m.total_variation(p) == pytest.approx(0.2229, abs=1e-4)
    assert m.total_variation(p) > math.expm1(eps_u) / 2.0
    assert m.chi2_information(p) == pytest.approx(0.1997, abs=1e-4)
    assert m.chi2_information(p) > math.expm1(eps_u) ** 2
    g = guarantees(eps_l, eps_u)
    assert m.total_variation(p) <= g["total_variation"]
    assert m.chi2_information(p) <= g["chi2_lift"]


def test_alip_does_not_imply_the_inverses_at_the_same_budgets():
    """P = (1/11, 10/11), lifts (2, .9) of an output of mass 1/20: .1465 > 1/.9 - 1 = .1111, and
    .0340 > .0123.
    """
    p_s = np.array([1.0, 10.0]) / 11.0
    output = p_s * np.array([2.0, 0.9]) / 20.0
    p = np.array([output, p_s - output]).T
    a = 0.9
    b = 2.0
    assert a - 1e-12 <= m.min_lift(p).min()
    assert m.max_lift(p).max() <= b + 1e-12
    l1 = m.l1_lift_inverse(p).max()
    chi2 = m.chi2_lift_inverse(p).max()
    assert l1 == pytest.approx(0.1465, abs=1e-4)
    assert chi2 == pytest.approx(0.0340, abs=1e-4)
    assert l1 > 1.0 / a - 1.0
    assert chi2 > (1.0 / a - 1.0) ** 2
    g = guarantees(-math.log(a), math.log(b))
    assert l1 <= g["l1_lift_inverse"] * ROUNDING
    assert chi2 <= g["chi2_lift_inverse"] * ROUNDING


def test_merging_all_risky_symbols_need_not_protect():
    """One risky symbol with lifts (1.8, .2): at LIP 0.5 nothing risky is left to merge it with."""
    joint = Joint.from_counts([[90, 410], [10, 490]])
    assert joint.lift[:, 0] == pytest.approx([1.8, 0.2])
    assert joint.lift[:, 1] == pytest.approx([0.911, 1.089], abs=1e-3)
    design = complete_merging(joint, LIP(0.5))
    assert design.repaired
    assert design.nmi == 0.0


@settings(max_examples=scaled(60))
@given(st.integers(0, 10**6), st.floats(0.3, 4.0), st.floats(0.1, 0.9))
def test_proposition_2_before_repair_ldp_keeps_at_least_what_alip_keeps(
    seed, epsilon, lam
):
    """X_H of eps-LDP is within that of every ALIP(lam eps, (1 - lam) eps); equality happens; repair
    can reverse it.
    """
    joint = Joint.from_counts(np.random.default_rng(seed).integers(1, 60, (4, 8)))
    ldp = as_published(joint, LDP(epsilon), "complete-merging")
    alip = as_published(joint, ALIP.from_epsilon(epsilon, lam), "complete-merging")
    assert ldp.nmi >= alip.nmi - 1e-12


@settings(max_examples=scaled(60))
@given(st.integers(0, 10**6))
def test_theorem_1_no_response_within_the_risky_set_leaks_less_than_merging_it(seed):
    """Any channel from X_H: some output has a Gamma of at least that of the merged set."""
    rng = np.random.default_rng(seed)
    joint = rng.dirichlet(np.full(12, 0.5)).reshape(3, 4) + 1e-4
    given_s = joint / joint.sum(axis=1, keepdims=True)
    response = rng.dirichlet(np.full(3, 0.4), 4)
    merged = given_s.sum(axis=1)
    outputs = given_s @ response
    assert (
        outputs.max(axis=0) / outputs.min(axis=0)
    ).max() >= merged.max() / merged.min() / ROUNDING


def test_a_finer_partition_keeps_at_least_as_much(adult):
    """Definition 4 and the remark after it: refining a partition never loses information."""
    coarse = [[0, 1, 2, 3], [4, 5], *([x] for x in range(6, 15))]
    fine = [[0, 1], [2, 3], [4, 5], *([x] for x in range(6, 15))]
    free = ALIP(700.0, math.inf)
    kept = [
        audit_on_table(
            partition_channel(groups, Rules(adult, ALIP(math.inf, 700.0))).channel,
            adult,
            free,
        )
        for groups in (coarse, fine)
    ]
    assert kept[0].achieved.eps_u <= kept[1].achieved.eps_u
    p = adult.p_x
    lost = [
        sum(float(-p[g].sum() * math.log(p[g].sum())) for g in groups)
        for groups in (coarse, fine)
    ]
    assert lost[0] < lost[1]


def test_the_utility_formula_of_equation_11(adult):
    """I(X;Y) = H(X) - sum over X_H of P(x) log(P(X_H) / P(x))."""
    found = complete_merging(adult, ALIP.from_epsilon(1.0))
    group = np.flatnonzero(
        (found.channel.matrix.sum(axis=0) > 1.5) @ found.channel.matrix.T > 0.5
    )
    p = np.array([float(Fraction(c, adult.total)) for c in adult.useful_counts])
    mass = p[group].sum()
    expected = found.entropy - sum(
        float(p[x]) * math.log(mass / float(p[x])) for x in group
    )
    assert found.mutual_information == pytest.approx(expected, abs=1e-12)
