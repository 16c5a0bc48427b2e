"""Theorems on channels of least cost, on random tables."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import mechdesign as md
from mechdesign.core.limits import LiftLimits
from mechdesign.notions import Notion
from tests.oracles.least_cost import least_cost
from tests.profiles import scaled

NOTIONS = (
    md.LDP(0.6),
    md.LIP(0.3),
    md.ALIP(0.2, 0.9),
    md.MaxLift(0.4),
    md.MinLift(0.5),
)


@st.composite
def tables(draw: st.DrawFn) -> md.Joint:
    size = draw(st.integers(2, 4))
    n = draw(st.integers(2, 6))
    cells = st.lists(st.integers(0, 60), min_size=n, max_size=n)
    rows = draw(st.lists(cells, min_size=size, max_size=size))
    return md.Joint.from_counts(
        [[c + (s + x) % 2 for x, c in enumerate(row)] for s, row in enumerate(rows)]
    )


@st.composite
def costs(draw: st.DrawFn, n: int) -> np.ndarray:
    values = draw(st.lists(st.integers(0, 12), min_size=n * n, max_size=n * n))
    return np.array(values, dtype=float).reshape(n, n) / 4.0


def _limits(notion: Notion) -> dict[str, float]:
    limits = notion.limits
    assert isinstance(limits, LiftLimits)
    return {"lower": limits.lower, "upper": limits.upper, "ratio": limits.ratio}


def _cost(channel: md.Channel, joint: md.Joint, cost: np.ndarray) -> float:
    place = [joint.useful.names.index(label) for label in channel.outputs]
    return float((joint.p_x[:, None] * channel.matrix * cost[:, place]).sum())


@settings(max_examples=scaled(60))
@given(tables(), st.sampled_from(NOTIONS), st.booleans(), st.data())
def test_an_independent_program_agrees(
    joint: md.Joint, notion: Notion, keep: bool, data: st.DataObject
) -> None:
    """cost = the optimum of scipy's program, to 1e-7; lower_bound <= it <= cost."""
    n = len(joint.useful)
    cost = data.draw(costs(n)) if data.draw(st.booleans()) else 1.0 - np.eye(n)
    objective = "truth" if np.array_equal(cost, 1.0 - np.eye(n)) else cost
    stay = [0.0] * n
    stay[0] = data.draw(st.sampled_from([0.0, 0.25, 0.5]))
    forbid = [(1, 0)] if data.draw(st.booleans()) else []
    names = joint.useful.names
    wanted = least_cost(
        joint.counts, cost, keep=keep, stay=stay, forbid=forbid, **_limits(notion)
    )
    asked = {
        "stay": {names[0]: stay[0]},
        "forbid": [(names[x], names[y]) for x, y in forbid],
    }
    try:
        made = md.design(
            joint, notion, objective=objective, keep_frequencies=keep, **asked
        )
    except md.NotPrivate:
        assert wanted is None
        return
    assert wanted is not None
    assert made.least is not None
    assert abs(made.least.cost - wanted) <= 1e-7 * max(1.0, cost.max())
    assert made.least.cost_lower_bound <= made.least.cost
    assert made.least.cost_lower_bound <= wanted + 1e-9 * max(1.0, cost.max())
    assert made.least.cost - made.least.cost_lower_bound <= 1e-7 * max(1.0, cost.max())
    assert md.audit(made.channel, joint, notion).satisfied
    if keep:
        assert made.least.frequency_deviation <= 1e-12


@given(tables(), st.sampled_from(NOTIONS))
def test_never_above_a_mixture_a_merging_or_the_information_optimum(
    joint: md.Joint, notion: Notion
) -> None:
    """lower_bound <= the cost of every private channel whose outputs are named after symbols.

    Outputs of a merging are released as their most frequent symbol, those of the information
    optimum as the most probable one; post-processing keeps every notion.
    """
    n = len(joint.useful)
    cost = 1.0 - np.eye(n)
    made = md.design(joint, notion, objective="truth", keep_frequencies=False)
    assert made.least is not None
    for mechanism in ("subset-merging", "complete-merging", "optimal"):
        other = md.design(joint, notion, mechanism=mechanism).channel
        best = other.posteriors.argmax(axis=1)
        named = np.zeros((n, n))
        np.add.at(named.T, best, other.matrix.T)
        assert (
            made.least.cost <= float((joint.p_x[:, None] * named * cost).sum()) + 1e-9
        )
    for t in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
        mixture = t * np.eye(n) + (1.0 - t) * joint.p_x
        lifts = joint.p @ mixture / np.outer(joint.p_s, joint.p_x)
        limits = notion.limits
        assert isinstance(limits, LiftLimits)
        if (
            lifts.max() <= math.exp(limits.upper)
            and lifts.min() >= math.exp(-limits.lower)
            and (lifts.max(axis=0) <= math.exp(limits.ratio) * lifts.min(axis=0)).all()
        ):
            assert (
                made.least.cost
                <= float((joint.p_x[:, None] * mixture * cost).sum()) + 1e-9
            )
