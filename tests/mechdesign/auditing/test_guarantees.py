"""What ALIP implies: the corrected forms hold, are reached, and the printed ones fail."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechdesign.auditing.leakages import (
    guarantees,
    posterior_at_least,
    posterior_at_most,
)
from mechdesign.auditing.measures import measure
from mechdesign.channel.channel import Channel
from mechdesign.tables.joint import Joint

BUDGETS = st.floats(1e-3, 8.0)
ROUNDING = 1.0 + 1e-9  # of the sums in this file


def random_lifts(rng, n, a, b):
    """Lifts in [a, b] of mean one under a random P(s): any point, pulled to mean 1 within the
    interval.
    """
    p = rng.dirichlet(np.full(n, 0.5))
    low = rng.uniform(a, 1.0, n)
    high = rng.uniform(1.0, b, n)
    if rng.random() < 0.5:
        low = np.full(n, a)
        high = np.full(n, b)
    take_high = rng.random(n) < 0.5
    raw = np.where(take_high, high, low)
    mean = p @ raw
    if mean > 1.0:
        return p, raw + (a - raw) * ((mean - 1.0) / (mean - a))
    return p, raw + (b - raw) * ((1.0 - mean) / (b - mean))


@given(BUDGETS, BUDGETS, st.integers(2, 6), st.integers(0, 10**6))
def test_every_output_within_the_budgets_obeys_every_bound(eps_l, eps_u, n, seed):
    """For all l in [a, b] with sum P l = 1: each measure is at most its guarantee."""
    a = math.exp(-eps_l)
    b = math.exp(eps_u)
    p, lift = random_lifts(np.random.default_rng(seed), n, a, b)
    g = guarantees(eps_l, eps_u)
    assert p @ np.abs(lift - 1.0) <= g["l1_lift"] * ROUNDING
    assert p @ np.abs(lift - 1.0) / 2.0 <= g["total_variation"] * ROUNDING
    assert p @ (lift - 1.0) ** 2 <= g["chi2_lift"] * ROUNDING
    assert p @ np.abs(1.0 / lift - 1.0) <= g["l1_lift_inverse"] * ROUNDING
    assert p @ (1.0 / lift - 1.0) ** 2 <= g["chi2_lift_inverse"] * ROUNDING
    assert p @ (lift * np.log(lift)) <= g["information"] * ROUNDING
    assert math.log(lift.max() / lift.min()) <= g["ldp"] * ROUNDING
    for alpha in (1.5, 2.0, 10.0):
        assert (p @ lift**alpha) ** (1.0 / alpha) <= g["alpha_lift"] * ROUNDING
        assert (p @ lift**-alpha) ** (1.0 / alpha) <= g["alpha_lift_inverse"] * ROUNDING


@given(BUDGETS, BUDGETS)
def test_the_l1_and_chi2_bounds_are_reached_by_two_lifts(eps_l, eps_u):
    """P(l = b) = (1-a)/(b-a), l = a otherwise, attains both."""
    a = math.exp(-eps_l)
    b = math.exp(eps_u)
    q = (1.0 - a) / (b - a)
    g = guarantees(eps_l, eps_u)
    assert q * (b - 1.0) + (1.0 - q) * (1.0 - a) == pytest.approx(g["l1_lift"])
    assert q * (b - 1.0) ** 2 + (1.0 - q) * (1.0 - a) ** 2 == pytest.approx(
        g["chi2_lift"]
    )


def test_the_printed_bounds_are_false_for_asymmetric_budgets():
    """Lifts 1.418 (8 values) and 0.52229 (7), S uniform on 15, lam 0.65, eps 1: T and chi2 exceed
    the paper's forms.
    """
    eps_l = 0.65
    eps_u = 0.35
    lift = np.array([1.418] * 8 + [0.52229] * 7)
    lift[:8] += (
        15.0 - lift.sum()
    ) / 8.0  # the printed digits, made to average 1 exactly
    assert math.exp(-eps_l) <= lift.min()
    assert lift.max() <= math.exp(eps_u)
    variation = np.abs(lift - 1.0).mean() / 2.0
    chi2 = ((lift - 1.0) ** 2).mean()
    assert variation > (math.exp(eps_u) - 1.0) / 2.0
    assert chi2 > (math.exp(eps_u) - 1.0) ** 2
    g = guarantees(eps_l, eps_u)
    assert variation <= g["total_variation"]
    assert chi2 <= g["chi2_lift"]


def test_one_sided_budgets():
    upper_only = guarantees(math.inf, 0.5)
    assert upper_only["information"] == 0.5
    assert (
        upper_only["ldp"]
        == upper_only["l1_lift_inverse"]
        == upper_only["alpha_lift_inverse"]
        == math.inf
    )
    assert upper_only["l1_lift"] == pytest.approx(2.0 * (1.0 - math.exp(-0.5)))
    assert upper_only["chi2_lift"] == pytest.approx(math.expm1(0.5))
    lower_only = guarantees(0.5, math.inf)
    assert (
        lower_only["information"]
        == lower_only["chi2_lift"]
        == lower_only["alpha_lift"]
        == math.inf
    )
    assert lower_only["l1_lift"] == pytest.approx(2.0 * (1.0 - math.exp(-0.5)))
    assert lower_only["l1_lift_inverse"] == pytest.approx(max(math.expm1(0.5), 1.0))


def test_a_constant_channel_leaks_nothing():
    nothing = guarantees(0.0, 0.0)
    assert (
        nothing["information"]
        == nothing["l1_lift"]
        == nothing["chi2_lift"]
        == nothing["l1_lift_inverse"]
        == 0.0
    )
    assert nothing["alpha_lift"] == pytest.approx(1.0)


def test_a_huge_lower_budget_does_not_overflow():
    assert guarantees(700.0, 700.0)["alpha_lift_inverse"] == pytest.approx(
        math.exp(700.0)
    )
    assert guarantees(700.0, 700.0)["chi2_lift_inverse"] == math.inf


@given(st.integers(2, 6), st.integers(1, 5), st.integers(0, 10**6))
def test_another_prior_changes_beliefs_by_at_most_the_ldp_budget(n, outputs, seed):
    """With P(y|s) as it is and any prior q on S: exp(-eps_ldp) <= P_q(s|y) / q(s) <= exp(eps_ldp)."""
    rng = np.random.default_rng(seed)
    given_s = rng.dirichlet(np.ones(outputs), n) + 1e-3
    eps_ldp = float(np.log(given_s.max(axis=0) / given_s.min(axis=0)).max())
    q = rng.dirichlet(np.full(n, 0.3))
    lift = given_s / (q @ given_s)
    assert lift.max() <= math.exp(eps_ldp) * ROUNDING
    assert lift.min() >= math.exp(-eps_ldp) / ROUNDING


@given(st.floats(1e-12, 0.5), st.floats(1e-15, 1.0), st.floats(1.0, 1.1))
def test_no_bound_on_posteriors_is_rounded_inwards(prior, gap, high):
    """Both directions, decided in fractions, for priors however small."""
    low = 1.0 - gap
    rho, least, most = Fraction(prior), Fraction(low), Fraction(high)
    above = min(rho * most, 1 - (1 - rho) * least)
    assert Fraction(posterior_at_most(low, high, prior)) >= min(above, 1)
    below = max(rho * least, 1 - (1 - rho) * most)
    assert Fraction(posterior_at_least(low, high, prior)) <= max(below, 0)


def test_a_property_of_exactly_the_prior_counts():
    """0.1 + 0.2 > 0.3 in doubles, yet three tenths of the records are no more than 0.3."""
    joint = Joint.from_counts([[1, 0], [2, 0], [0, 7]])
    channel = Channel(
        joint.useful, joint.useful.names, [[1, 0], [0, 1]], denominator=1, joint=joint
    )
    (line,) = (
        g
        for g in measure(channel, joint, breaches=(0.3,)).guarantees
        if g.source == "Proposition A1"
    )
    assert line.attained == 1.0


def test_bounds_beyond_the_largest_double_are_infinite():
    """e^710 is no double; the sum of the budgets still is one."""
    bounds = guarantees(710.0, 720.0)
    assert bounds["information"] == 720.0
    assert bounds["ldp"] == pytest.approx(1430.0)
    assert bounds["l1_lift"] == pytest.approx(2.0)
    for name in ("chi2_lift", "alpha_lift", "alpha_lift_inverse", "l1_lift_inverse"):
        assert bounds[name] == math.inf
