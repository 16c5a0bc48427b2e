"""l1-lift without its inverse as a polytope: the right set, both descriptions, and the optimum over it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign.mechanisms import posteriors as module
from mechdesign.mechanisms.design_call import design
from mechdesign.mechanisms.posteriors import posteriors
from mechdesign.notions import L1Lift
from mechdesign.tables.joint import Joint
from tests.oracles import means as mean_oracle
from tests.profiles import scaled


def table(seed: int, m: int, n: int) -> Joint:
    return Joint.from_counts(np.random.default_rng(seed).integers(1, 60, (m, n)))


@given(
    st.integers(0, 10**6), st.integers(2, 6), st.integers(2, 8), st.floats(0.05, 2.0)
)
def test_a_posterior_is_a_member_where_its_l1_lift_keeps_the_budget(seed, m, n, budget):
    joint = table(seed, m, n)
    polytope = posteriors(joint, L1Lift(math.inf, budget))
    for v in np.random.default_rng(seed).dirichlet(np.full(n, 0.4), 6):
        distance = float(joint.p_s @ np.abs(joint.lift @ v - 1.0))
        if abs(distance - math.expm1(budget)) > 1e-9:
            assert polytope.contains(v).item() == (distance < math.expm1(budget))


@given(
    st.integers(0, 10**6),
    st.integers(2, 5),
    st.floats(0.05, 2.0),
    st.sampled_from([1e-12, 1e-7, 1.0]),
)
def test_a_margin_shrinks_the_set_and_keeps_the_prior(seed, m, budget, margin):
    joint = table(seed, m, 6)
    outer, inner = (
        posteriors(joint, L1Lift(math.inf, budget), margin=x) for x in (0.0, margin)
    )
    assert inner.contains(joint.p_x, 1e-15).all()
    points = np.random.default_rng(seed).dirichlet(np.full(6, 0.4), 50)
    assert (outer.residual(points) <= inner.residual(points) + 1e-15).all()


@settings(max_examples=scaled(15))
@given(st.integers(0, 10**6), st.integers(3, 5), st.floats(0.05, 0.6))
def test_both_descriptions_have_the_same_optimum(seed, m, budget):
    joint, notion = table(seed, m, 9), L1Lift(math.inf, budget)
    found = []
    with pytest.MonkeyPatch.context() as patch:
        for few in (2, 6):
            patch.setattr(module, "FEW_SENSITIVE", few)
            best = design(joint, notion)
            assert mean_oracle.satisfies(joint.counts, best.channel.rows, notion.limits)
            found.append((best.nmi, best.certificate.upper_bound_nmi))
    assert max(nmi for nmi, _ in found) <= min(bound for _, bound in found)
    assert found[0][0] == pytest.approx(found[1][0], abs=2e-4)


def test_two_sensitive_symbols_make_one_row():
    polytope = posteriors(table(0, 2, 7), L1Lift(math.inf, 0.3))
    assert (polytope.m, polytope.auxiliary) == (1, None)


def test_many_sensitive_symbols_do_not_multiply_rows():
    joint, notion = table(1, 15, 20), L1Lift(math.inf, 0.25)
    polytope = posteriors(joint, notion)
    assert polytope.m == 16
    found = design(joint, notion)
    assert found.method == "columns"
    assert found.certificate.gap_nmi <= 1e-4
    assert mean_oracle.satisfies(joint.counts, found.channel.rows, notion.limits)
    assert found.nmi > design(joint, notion, mechanism="subset-merging").nmi


def test_no_sampled_channel_beats_the_proven_bound():
    """Random partitions that keep the budget never keep more than the bound says."""
    joint, notion = table(5, 4, 7), L1Lift(math.inf, 0.2)
    bound = design(joint, notion).certificate.upper_bound_nmi
    rng = np.random.default_rng(0)
    entropy = -float(joint.p_x @ np.log(joint.p_x))
    kept = []
    for _ in range(2000):
        group = rng.integers(0, rng.integers(1, 8), 7)
        w = np.eye(8)[group]
        joint_y = joint.p @ w
        mass = joint_y.sum(axis=0)
        used = mass > 0
        distance = np.abs(joint_y[:, used] / mass[used] - joint.p_s[:, None]).sum(
            axis=0
        )
        if distance.max() <= math.expm1(0.2):
            kept.append(-float(mass[used] @ np.log(mass[used])) / entropy)
    assert kept
    assert max(kept) <= bound
