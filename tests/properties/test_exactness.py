"""The promise: a verdict is exact, and no channel leaves rounding that fails an independent exact
check.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mechdesign.auditing.matrix import audit_matrix
from mechdesign.auditing.measures import utility
from mechdesign.auditing.verdict import audit_on_table, failing_outputs
from mechdesign.channel.channel import DENOMINATOR, Channel
from mechdesign.mechanisms.rounding import (
    RoundingFailure,
    partition_channel,
    round_channel,
)
from mechdesign.mechanisms.rules import Rules
from mechdesign.notions import ALIP, LDP, LIP, MaxLift, MinLift
from mechdesign.tables.joint import Joint
from tests.oracles import lifts as exact_oracle
from tests.oracles.float_designs import boundary, optimal, random_table
from tests.oracles.measures import entropy, mutual_information
from tests.profiles import scaled, slow

LARGEST_LOSS = 1e-7
"""Promised: utility lost to exactness, in units of H(X)."""

entries = st.one_of(
    st.just(0), st.integers(1, 40), st.integers(1, 2**40), st.integers(1, 2**255)
)
budgets = st.one_of(
    st.floats(1e-3, 3.0),
    st.floats(1e-9, 40.0),
    st.sampled_from([5e-324, math.log(2), 1.0, 2.0, 700.0]),
)
notions = st.one_of(
    st.builds(ALIP, budgets, budgets),
    st.builds(LIP, budgets),
    st.builds(LDP, budgets),
    st.builds(MaxLift, budgets),
    st.builds(MinLift, budgets),
)


@st.composite
def joints(draw, most_s=4, most_x=4) -> Joint:
    shape = draw(st.tuples(st.integers(1, most_s), st.integers(2, most_x)))
    row = st.lists(entries, min_size=shape[1], max_size=shape[1])
    table = draw(st.lists(row, min_size=shape[0], max_size=shape[0]))
    for x in range(shape[1]):  # full support: an empty column or row gets a one
        if not any(row[x] for row in table):
            table[x % shape[0]][x] = 1
    for s, row in enumerate(table):
        if not any(row):
            row[s % shape[1]] = 1
    return Joint.from_counts(table)


@st.composite
def channels(draw, joint: Joint) -> Channel:
    denominator = draw(st.sampled_from([1, 2, 3, 1000, DENOMINATOR, 2**62]))
    k = draw(st.integers(1, 4))
    rows = []
    for _ in range(len(joint.useful)):
        cuts = sorted(
            draw(st.lists(st.integers(0, denominator), min_size=k - 1, max_size=k - 1))
        )
        rows.append(
            [b - a for a, b in zip([0, *cuts], [*cuts, denominator], strict=True)]
        )
    used = [y for y in range(k) if any(row[y] for row in rows)]
    rows = [[row[y] for y in used] for row in rows]
    return Channel(joint.useful, tuple(f"y{y}" for y in used), rows, denominator, joint)


@settings(max_examples=scaled(300))
@given(st.data(), notions)
def test_the_verdict_is_that_of_the_oracle(data, notion):
    joint = data.draw(joints())
    channel = data.draw(channels(joint))
    expected = exact_oracle.satisfies(joint.counts, channel.rows, notion.limits)
    verdict = audit_on_table(channel, joint, notion)
    assert verdict.satisfied is expected
    assert bool(failing_outputs(channel, joint, notion)) is not expected


@settings(max_examples=scaled(100))
@given(st.data())
def test_achieved_budgets_are_the_smallest_doubles_that_hold(data):
    joint = data.draw(joints())
    channel = data.draw(channels(joint))
    columns = exact_oracle.lifts(joint.counts, channel.rows)
    achieved = audit_on_table(channel, joint, LIP(1.0)).achieved
    least = min(map(min, columns))
    widest = max(max(column) / min(column) for column in columns) if least else None
    assert exact_oracle.is_smallest_budget(max(map(max, columns)), achieved.eps_u)
    assert exact_oracle.is_smallest_budget(1 / least if least else None, achieved.eps_l)
    assert exact_oracle.is_smallest_budget(widest, achieved.eps_ldp)


@settings(max_examples=scaled(100))
@given(st.data(), st.sampled_from([LIP, LDP, MaxLift, MinLift]))
def test_at_the_achieved_double_the_verdict_is_yes_and_at_the_next_smaller_one_no(
    data, kind
):
    joint = data.draw(joints())
    channel = data.draw(channels(joint))
    achieved = audit_on_table(channel, joint, LIP(1.0)).achieved
    needed = {
        LIP: max(achieved.eps_l, achieved.eps_u),
        LDP: achieved.eps_ldp,
        MaxLift: achieved.eps_u,
        MinLift: achieved.eps_l,
    }[kind]
    if 0.0 < needed < 700.0:
        assert audit_on_table(channel, joint, kind(needed)).satisfied
        assert exact_oracle.satisfies(joint.counts, channel.rows, kind(needed).limits)
    below = math.nextafter(min(needed, 701.0), 0.0)
    if 0.0 < below < 700.0:
        verdict = audit_on_table(channel, joint, kind(below))
        assert not verdict.satisfied
        assert not exact_oracle.satisfies(
            joint.counts, channel.rows, kind(below).limits
        )


@settings(max_examples=scaled(60))
@given(st.data(), notions)
def test_outside_matrices_are_judged_as_the_rationals_that_they_are(data, notion):
    joint = data.draw(joints(most_s=3, most_x=3))
    n = len(joint.useful)
    k = data.draw(st.integers(1, 3))
    w = np.array(
        data.draw(
            st.lists(
                st.lists(st.floats(0.0, 1.0), min_size=k, max_size=k),
                min_size=n,
                max_size=n,
            )
        )
    )
    w[:, 0] += w.sum(axis=1) == 0.0
    w = w / w.sum(axis=1, keepdims=True)
    exact = [[*map(Fraction, row)] for row in w.tolist()]
    assert audit_matrix(w, joint, notion).satisfied is exact_oracle.satisfies(
        joint.counts, exact, notion.limits
    )
    texts = [[repr(v) for v in row] for row in w.tolist()]
    exact = [[*map(Fraction, row)] for row in texts]
    assert audit_matrix(texts, joint, notion).satisfied is exact_oracle.satisfies(
        joint.counts, exact, notion.limits
    )


def assert_promise_kept(rounded, joint, notion) -> None:
    """What may leave rounding: rows that sum, verified by the oracle."""
    rows = [list(row) for row in rounded.channel.rows]
    assert all(sum(row) == DENOMINATOR and min(row) >= 0 for row in rows)
    assert all(any(row[y] for row in rows) for y in range(len(rows[0])))
    assert rounded.audit.satisfied
    assert exact_oracle.satisfies(joint.counts, rows, notion.limits)


def random_notion(rng):
    epsilon = float(np.exp(rng.uniform(math.log(0.01), math.log(20.0))))
    return [
        ALIP.from_epsilon(epsilon, 0.5),
        ALIP.from_epsilon(epsilon, 0.35),
        LIP(epsilon),
        LDP(epsilon),
        MaxLift(epsilon),
        MinLift(min(epsilon, 10.0)),  # beyond, cddlib takes the lower bound for zero
    ][rng.integers(6)]


@pytest.mark.parametrize("seed", range(60))
def test_optimal_designs_survive_rounding_and_lose_next_to_nothing(seed):
    rng = np.random.default_rng(seed)
    joint = random_table(rng, most_x=8)
    notion = random_notion(rng)
    # cddlib gives up on a few near-tied tables.
    weights, points = optimal(
        joint, notion.limits, rng.choice([0.0, 1e-12])
    ) or boundary(joint, notion.limits, rng)
    rounded = round_channel(weights, points, Rules(joint, notion))
    assert_promise_kept(rounded, joint, notion)
    q = weights[:, None] * points
    before = mutual_information(q / q.sum())
    lost = (before - utility(rounded.channel, joint).mutual_information) / entropy(
        joint.p_x
    )
    assert lost <= LARGEST_LOSS


@pytest.mark.parametrize("seed", [*range(30), *map(slow, range(30, 100))])
def test_channels_on_the_boundary_survive_rounding(seed):
    """Random channels mixed with their output marginal until their worst lift is at the budget, up
    to rounding.
    """
    rng = np.random.default_rng(1000 + seed)
    joint = random_table(rng, most_s=8, most_x=30)
    notion = random_notion(rng)
    weights, points = boundary(joint, notion.limits, rng)
    rounded = round_channel(weights, points, Rules(joint, notion))
    assert_promise_kept(rounded, joint, notion)
    q = weights[:, None] * points
    lost = (
        mutual_information(q / q.sum())
        - utility(rounded.channel, joint).mutual_information
    )
    assert lost <= LARGEST_LOSS * entropy(joint.p_x)


def sabotage(kind, rng, weights, points):
    w = weights.copy()
    v = points.copy()
    i = rng.integers(v.shape[0])
    j = rng.integers(v.shape[1])
    if kind == "weights off":
        w *= 1.0 + 1e-6 * rng.standard_normal(len(w))
    elif kind == "posteriors outside":
        v = v**1.01
        v /= v.sum(axis=1, keepdims=True)
    elif kind == "posteriors slightly outside":
        v *= 1.0 + 1e-9 * rng.standard_normal(v.shape)
    elif kind == "NaN weight":
        w[i] = np.nan
    elif kind == "NaN posterior":
        v[i, j] = np.nan
    elif kind == "infinite":
        v[i, j] = np.inf
    elif kind == "negative weight":
        w[i] = -0.1
    elif kind == "negative posterior":
        v[i, j] = -0.01
    elif kind == "noise":
        v = v + 1e-12 * rng.standard_normal(v.shape)
    elif kind == "lost output":
        w[i] = 0.0
    elif kind == "swapped symbols":
        v = v[:, rng.permutation(v.shape[1])]
    elif kind == "tiny outputs":
        w = np.concatenate((w * (1 - 1e-11), np.full(3, 1e-11 / 3)))
        v = np.vstack((v, rng.dirichlet(np.ones(v.shape[1]), 3)))
    return w, v


KINDS = (
    "weights off", "posteriors outside", "posteriors slightly outside", "NaN weight", "NaN posterior", "infinite",
    "negative weight", "negative posterior", "noise", "lost output", "swapped symbols", "tiny outputs",
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(8))
def test_a_sabotaged_design_is_repaired_within_limits_or_refused(kind, seed):
    rng = np.random.default_rng(2000 + seed)
    joint = random_table(rng, most_s=5, most_x=9)
    notion = random_notion(rng)
    weights, points = sabotage(kind, rng, *boundary(joint, notion.limits, rng))
    try:
        rounded = round_channel(weights, points, Rules(joint, notion))
    except RoundingFailure:
        return
    assert not kind.startswith(("NaN", "infinite", "negative"))
    assert_promise_kept(rounded, joint, notion)


@given(st.data(), notions)
@example(None, LIP(0.1))
def test_a_partition_is_emitted_exactly_when_the_oracle_agrees(data, notion):
    if data is None:
        joint = Joint.from_counts([[1, 2], [2, 1]])
        groups = [[0, 1]]
    else:
        joint = data.draw(joints(most_x=5))
        colours = [data.draw(st.integers(0, 2)) for _ in joint.useful.symbols]
        groups = [
            [x for x, c in enumerate(colours) if c == colour]
            for colour in sorted(set(colours))
        ]
    rows = [[int(x in group) for group in groups] for x in range(len(joint.useful))]
    if exact_oracle.satisfies(joint.counts, rows, notion.limits):
        rounded = partition_channel(groups, Rules(joint, notion))
        assert_promise_kept(rounded, joint, notion)
        assert set(np.unique(np.asarray(rounded.channel.rows))) <= {0, DENOMINATOR}
    else:
        with pytest.raises(RoundingFailure, match="outside the budget"):
            partition_channel(groups, Rules(joint, notion))
