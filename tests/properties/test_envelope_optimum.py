"""The certificate of the optimum: no bound above the true envelope, no gap above the one asked for.

    H(X|Y) of every channel whose posteriors obey the notion >= bound   (theory: LP duality, weights sum to one)

so the bound on the utility, H(X) - bound, is never below the true optimum.
"""

from __future__ import annotations

import numpy as np
import pytest
from flint import arb, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign.mechanisms.posteriors import posteriors
from mechdesign.notions import ALIP, LDP, LIP, MaxLift, MinLift, Notion
from mechdesign.tables.joint import Joint
from solvers import Envelope, EnvelopeStatus, Polytope, lower_envelope
from solvers.enumeration import vertices
from tests.profiles import scaled
from tests.solvers.reference import exact, exact_value

TABLES = ("random", "sparse", "near-tied", "proportional", "few records", "rare")
NOTIONS = ("alip", "lip", "ldp", "max-lift", "min-lift", "tight", "loose")

MARGIN = 1e-12
"""Columns keep this distance, relative, from the budget; the bound is for the budget itself."""


def random_joint(rng: np.random.Generator, kind: str, s: int, n: int) -> Joint:
    """Counts with full support of every symbol."""
    if kind == "sparse":
        counts = rng.integers(1, 1000, (s, n)) * (rng.random((s, n)) < 0.5)
    elif kind == "near-tied":  # columns proportional up to 1e-9
        counts = rng.integers(1, 50, (s, 3))[
            :, rng.integers(0, 3, n)
        ] * 10**9 + rng.integers(0, 5, (s, n))
    elif kind == "proportional":
        counts = rng.integers(1, 9, (s, 3))[:, rng.integers(0, 3, n)] * rng.integers(
            1, 4, n
        )
    elif kind == "few records":
        counts = rng.integers(0, 4, (s, n))
    elif kind == "rare":  # one sensitive symbol in a hundred thousand records
        counts = rng.integers(1, 10**5, (s, n))
        counts[0] = rng.integers(0, 3, n)
    else:
        counts = rng.integers(1, 1000, (s, n))
    counts[np.arange(max(s, n)) % s, np.arange(max(s, n)) % n] += 1
    return Joint.from_counts(counts)


def random_notion(rng: np.random.Generator, kind: str) -> Notion:
    epsilon = float(np.exp(rng.uniform(np.log(0.05), np.log(4.0))))
    if kind == "tight":
        return LIP(10.0 ** rng.uniform(-6.0, -2.0))
    if kind == "loose":
        return ALIP(6.0, 5.0)
    if kind == "alip":
        return ALIP.from_epsilon(epsilon, float(rng.uniform(0.2, 0.8)))
    return {"lip": LIP, "ldp": LDP, "max-lift": MaxLift, "min-lift": MinLift}[kind](
        epsilon
    )


def exact_marginal(joint: Joint) -> list[fmpq]:
    return [
        fmpq(sum(column), joint.total) for column in zip(*joint.counts, strict=True)
    ]


def assert_decomposition(
    found: Envelope, polytope: Polytope, target: np.ndarray
) -> None:
    """Weights that sum to one, the right mean, members of the set, and their true cost."""
    dense = found.points.toarray()
    assert found.weights.min() > 0.0
    assert found.weights.sum() == pytest.approx(1.0, abs=1e-7)
    np.testing.assert_allclose(found.weights @ dense, target, atol=1e-7)
    np.testing.assert_allclose(dense.sum(axis=1), 1.0, atol=1e-12)
    assert polytope.residual(dense).max() <= 1e-12 * max(
        1.0, float(polytope.rows.max())
    )
    assert found.value == pytest.approx(exact_value(found.weights, dense), abs=1e-12)


@pytest.mark.parametrize("method", ["auto", "columns"])
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(TABLES),
    notion=st.sampled_from(NOTIONS),
    gap=st.sampled_from([1e-8, 1e-5, 1e-2]),
)
@settings(max_examples=scaled(75))
def test_bound_is_never_above_the_true_envelope(method, seed, kind, notion, gap):
    """Every vertex of the stated set in rationals, its cost to 160 bits, and the marginal as exact
    counts.
    """
    rng = np.random.default_rng(seed)
    joint = random_joint(rng, kind, int(rng.integers(2, 4)), int(rng.integers(2, 7)))
    given_notion = random_notion(rng, notion)
    wide = posteriors(joint, given_notion)
    narrow = posteriors(joint, given_notion, margin=MARGIN)
    found = lower_envelope(narrow, joint.p_x, relaxation=wide, method=method, gap=gap)
    assert_decomposition(found, narrow, joint.p_x)

    truth = exact(wide)
    assert bool(arb(found.bound) <= truth.dual_bound(found.dual, exact_marginal(joint)))
    optimum = truth.envelope(joint.p_x)
    assert found.bound <= optimum + 1e-9
    assert found.value >= optimum - 1e-7
    if found.status is EnvelopeStatus.OPTIMAL:
        assert found.gap <= gap
    else:  # budgets of 1e-6, or lifts of 1e5: the last digits are lost
        assert kind == "rare" or notion == "tight"
        assert gap == 1e-8
        assert found.gap <= 1e-5


@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(TABLES),
    notion=st.sampled_from(NOTIONS),
    s=st.integers(2, 6),
    n=st.integers(2, 12),
)
@settings(max_examples=scaled(60))
def test_columns_reach_what_all_vertices_give(seed, kind, notion, s, n):
    """Larger tables: column generation, without any vertex, against the linear program over all of
    them.
    """
    rng = np.random.default_rng(seed)
    joint = random_joint(rng, kind, s, n)
    wide = posteriors(joint, random_notion(rng, notion))
    if notion == "ldp" and s * n > 40:  # elimination squares the rows
        return
    found = lower_envelope(wide, joint.p_x, method="columns", gap=1e-6)
    assert_decomposition(found, wide, joint.p_x)
    points = vertices(wide).points
    costs = -(points * np.log(np.where(points > 0.0, points, 1.0))).sum(axis=1)
    least = float((costs - points @ found.dual).min())
    assert found.bound <= float(found.dual @ joint.p_x) + least + 1e-10
    by_vertices = lower_envelope(wide, joint.p_x, method="vertices", gap=1e-6)
    assert found.value == pytest.approx(by_vertices.value, abs=2.1e-6)
    assert found.bound <= by_vertices.value + 1e-9
    assert by_vertices.bound <= found.value + 1e-9
    for result in (found, by_vertices):
        assert result.gap <= 1e-6 or (kind == "rare" or notion == "tight")


@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(TABLES),
    notion=st.sampled_from(NOTIONS),
)
@settings(max_examples=scaled(60))
def test_stopped_early_the_bound_is_still_one(seed, kind, notion):
    """No memory, hardly any time: an any-time answer between the true envelope and the trivial
    channel.
    """
    rng = np.random.default_rng(seed)
    joint = random_joint(rng, kind, 3, 6)
    polytope = posteriors(joint, random_notion(rng, notion))
    truth = exact(polytope)
    for limits in ({"time_limit": 0.0}, {"time_limit": 1e-3}, {"memory_limit": 1}):
        found = lower_envelope(
            polytope, joint.p_x, method="columns", gap=1e-7, **limits
        )
        assert_decomposition(found, polytope, joint.p_x)
        assert bool(
            arb(found.bound) <= truth.dual_bound(found.dual, exact_marginal(joint))
        )
        assert found.value >= truth.envelope(joint.p_x) - 1e-7
        assert found.value <= float(-(joint.p_x * np.log(joint.p_x)).sum()) + 1e-12
