"""Least cost with several secrets, budgets of single symbols, and after other releases: one program, other rows."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

import mechdesign as md
from tests.cases.designs import notions_of
from tests.oracles.least_cost import least_cost
from tests.oracles.stacked import rows_of
from tests.profiles import slow

FREE = {"keep_frequencies": False}
WAYS = (
    {},
    FREE,
    {"stay": 0.05},
    {"forbid": [("x0", "x1")]},
    {"stay": 0.05, **FREE},
    {"forbid": [("x0", "x1")], **FREE},
)


def expected_cost(joint, rows, way):
    """By scipy, from the definitions."""
    stay = [way["stay"]] * len(joint.useful) if "stay" in way else None
    forbid = [(0, 1)] if "forbid" in way else ()
    keep = way.get("keep_frequencies", True)
    truth = 1.0 - np.eye(len(joint.useful))
    return least_cost(
        joint.counts, truth, keep=keep, stay=stay, forbid=forbid, columns=rows
    )


def assert_optimum(made, wanted):
    assert made.least.cost == pytest.approx(wanted, abs=1e-7)
    assert 0.0 <= made.least.cost - made.least.cost_lower_bound <= 1e-6
    assert made.verified


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", [0, 1, slow(2), slow(3)])
def test_after_another_release(seed, way):
    """The optimum under the rows of every earlier output, and the joint leakage of both is within the budget."""
    joint = md.Joint.from_counts(np.random.default_rng(seed).integers(1, 30, (3, 6)))
    notion, half = notions_of(1.0)[2 * seed], notions_of(0.4)[2 * seed]
    first = md.design(joint, half, objective="truth").channel
    limits, rows = notion.limits, []
    for y in range(len(first.outputs)):
        table = joint.p * first.matrix[:, y]
        sides = [limits.lower] * len(table), [limits.upper] * len(table)
        rows += rows_of(table / table.sum(), joint.p_s, *sides, limits.ratio)
    made = md.design(joint, notion, objective="truth", after=[first], **way)
    assert_optimum(made, expected_cost(joint, rows, way))
    assert md.audit(made.channel, joint, notion, after=[first]).satisfied
    together = md.compose([first, made.channel]).at_least
    assert together.eps_l <= limits.lower
    assert together.eps_u <= limits.upper
    assert together.eps_ldp <= limits.ratio


@pytest.mark.parametrize(("seed", "way"), list(itertools.product(range(2), WAYS)))
def test_each_secret_for_itself(seed, way):
    random = np.random.default_rng(seed)
    pairs = [("a", "c"), ("a", "d"), ("b", "c"), ("b", "d")]
    joint = md.Joint.from_counts(
        random.integers(1, 30, (4, 5)), sensitive_labels=pairs, sensitive=("one", "two")
    )
    notion, rows = (md.LDP(0.5), md.ALIP(0.3, 0.4))[seed], []
    for place in range(2):
        of = np.array([pair[place] in "ac" for pair in pairs])
        table = np.array([joint.p[of].sum(axis=0), joint.p[~of].sum(axis=0)])
        limits = notion.limits
        rows += rows_of(
            table,
            table.sum(axis=1),
            [limits.lower] * 2,
            [limits.upper] * 2,
            limits.ratio,
        )
    made = md.design(joint, notion, objective="truth", protect_each=True, **way)
    assert_optimum(made, expected_cost(joint, rows, way))
    both = md.design(joint, notion, objective="truth", **way)
    assert both.least.cost >= made.least.cost_lower_bound


@pytest.mark.parametrize("way", WAYS)
def test_budgets_of_single_symbols(way):
    joint = md.Joint.from_counts(np.random.default_rng(5).integers(1, 30, (3, 6)))
    rows = rows_of(joint.p, joint.p_s, [0.1, 0.5, 0.5], [0.2, 0.5, 0.5])
    made = md.design(
        joint, md.LIP(0.5), objective="truth", budgets={"s0": (0.1, 0.2)}, **way
    )
    assert_optimum(made, expected_cost(joint, rows, way))
    assert [each.symbol for each in made.channel.record.budgets] == [("s0",)]
    assert md.audit(
        made.channel, joint, md.LIP(0.5).with_budgets({"s0": (0.1, 0.2)})
    ).satisfied


def test_nothing_is_left_after_a_release_that_breaks_the_promise():
    joint = md.Joint.from_counts([[8, 1], [1, 8]])
    first = md.design(joint, md.LIP(1.0), objective="truth").channel
    with pytest.raises(md.NotPrivate, match="breaks the promise already"):
        md.design(joint, md.LIP(0.2), objective="truth", after=[first])


def test_bins_of_one_of_several_columns_stay_bins():
    """A channel for one binned column after a release of another: distances need the numbers of its bins."""
    rows = [
        ("f", "1", "a"),
        ("f", "12", "b"),
        ("m", "5", "b"),
        ("m", "23", "a"),
        ("f", "25", "b"),
    ] * 7
    frame = pd.DataFrame(rows, columns=["sex", "hours", "job"])
    joint = md.Joint.from_table(frame, sensitive="sex", useful=["hours", "job"]).binned(
        {"hours": 10}
    )
    first = md.design(joint, md.LIP(0.2), release="job", objective="truth").channel
    made = md.design(
        joint, md.LIP(0.5), release="hours", objective="distance", after=[first]
    )
    assert made.channel.useful.bins[0].labels == joint.useful.bins[0].labels
    assert made.least.cost_lower_bound <= made.least.cost
