"""Outputs with shares of the budgets of their own: nodes, search and verdict."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog

import mechdesign as md
from mechdesign.mechanisms.row_budgets import Stratum, strata_of
from mechdesign.mechanisms.row_growth import RowGrowth
from mechdesign.mechanisms.row_lifts import NodeTable
from mechdesign.mechanisms.row_node import NodePrograms
from mechdesign.mechanisms.row_splits import LEAST_SHARE, Trial, own_shares
from mechdesign.tables.records import Records

CASES = 40


def random_node(rng):
    """A node of a table whose own lifts are 1, and its stratum."""
    secrets, n = int(rng.integers(2, 4)), int(rng.integers(2, 6))
    joint = rng.random((secrets, n)) ** 2 + 0.01
    joint /= joint.sum()
    masses = joint.sum(axis=0)
    prior = joint.sum(axis=1)
    table = NodeTable(joint / masses / prior[:, None], masses)
    ratio = float(rng.choice([math.inf, 0.5]))
    stratum = Stratum(
        rows=np.arange(n),
        mass=1.0,
        prior=prior,
        start=np.ones(secrets),
        protected=np.ones(secrets, dtype=bool),
        eps_l=np.full(secrets, rng.choice([0.3, math.inf])),
        eps_u=np.full(secrets, rng.choice([0.2, 0.6])),
        ratio=ratio,
    )
    return table, stratum


def least_change(table, bounds):
    """The least mass that must change, by another solver and a program that names every pair of secrets."""
    p, lifts = table.masses, table.lifts
    n = len(p)
    rows = []
    for y in range(n):
        for s in range(len(lifts)):
            sides = [bounds.lower[s, y] - lifts[s]]
            if math.isfinite(bounds.upper[s, y]):
                sides.append(lifts[s] - bounds.upper[s, y])
            if math.isfinite(bounds.ratio[y]):
                sides += [lifts[s] - bounds.ratio[y] * other for other in lifts]
            for side in sides:
                row = np.zeros((n, n))
                row[:, y] = side * p
                rows.append(row.ravel())
    cost = np.repeat(p, n)
    cost[:: n + 1] = 0.0
    sums = np.kron(np.eye(n), np.ones(n))
    found = linprog(
        cost, A_ub=np.array(rows), b_ub=np.zeros(len(rows)), A_eq=sums, b_eq=np.ones(n)
    )
    return found.fun


def test_every_output_of_a_node_keeps_its_own_bounds_at_least_cost():
    rng = np.random.default_rng(31)
    for _ in range(CASES):
        table, stratum = random_node(rng)
        n = len(table.masses)
        bounds = stratum.bounds(*rng.uniform(0.2, 1.0, n))
        rows = NodePrograms("truth").channel(table, bounds) / 2**53
        masses, scaled = table.of_outputs(rows)
        used = masses > 0.0
        lifts = scaled[:, used] / masses[used]
        assert (lifts <= bounds.upper[:, used]).all()
        assert (lifts >= bounds.lower[:, used]).all()
        assert (lifts.max(axis=0) <= bounds.ratio[used] * lifts.min(axis=0)).all()
        changed = float((table.masses[:, None] * rows).sum()) - float(
            table.masses @ np.diag(rows)
        )
        assert changed == pytest.approx(least_change(table, bounds), abs=1e-6)


def test_equal_shares_are_one_share():
    rng = np.random.default_rng(32)
    table, stratum = random_node(rng)
    n = len(table.masses)
    one = NodePrograms("truth").channel(table, stratum.bounds(0.5))
    same = NodePrograms("truth").channel(table, stratum.bounds(*[0.5] * n))
    assert np.abs(one - same).max() <= 2**53 * 1e-6


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(8)
    a = rng.integers(0, 5, 4000)
    b = (a + rng.integers(0, 4, 4000)) % 6
    chance = 0.1 + 0.12 * a + 0.1 * (b == 2) * (a < 2)
    return pd.DataFrame(
        {
            "s": np.where(rng.random(4000) < chance, "s", "t"),
            "a": a.astype(str),
            "b": b.astype(str),
            "k": rng.choice(["u", "v"], 4000),
        }
    )


@pytest.mark.parametrize("notion", [md.LIP(0.3), md.LDP(0.4), md.MaxLift(0.2)])
@pytest.mark.parametrize("given", [(), ("k",)])
def test_designs_of_two_levels_are_worth_more_and_keep_the_promise(
    frame, monkeypatch, notion, given
):
    options = {
        "sensitive": "s",
        "release": ["a", "b"],
        "notion": notion,
        "given": given,
        "promise": "relative" if given else "total",
    }
    made = md.design_rows(frame, **options)
    monkeypatch.setattr("mechdesign.mechanisms.row_splits.OWN_STEPS", ())
    plain = md.design_rows(frame, **options)
    assert md.audit(made.channel, frame).satisfied
    worth, plainly = (
        design.nmi
        + 2 / 3 * np.mean(list(design.truth.values()))
        + 1 / 3 * min(design.truth.values())
        for design in (made, plain)
    )
    assert worth >= plainly - 1e-9
    if not given:
        assert worth > plainly + 1e-4


def test_shares_of_outputs_bound_the_first_level(frame):
    """With a share of 0.3 the outputs of the first level leave the rest to the second one."""
    records = Records.from_table(frame, sensitive="s", groups=["a", "b"])
    strata = strata_of(records, 0, md.LIP(0.3), "total")
    growth = RowGrowth(records, 0, strata, "truth")
    own = (0.3, 0.6, 0.9, 1.0, 0.3)
    grown = growth.grow([own, (1.0,)], least_mass=0.0)
    first = grown.tree.levels[0]
    joint = np.bincount(
        records.secrets * 5 + records.codes[:, 0], records.masses, 10
    ).reshape(2, 5)
    rows = np.zeros((5, 5))
    rows[
        first.pair_inputs[first.rows.row_of], first.slot_outputs[first.rows.indices]
    ] = first.rows.values / 2**53
    out = joint @ rows
    logs = np.log(out / out.sum(axis=0) / joint.sum(axis=1, keepdims=True))
    limits = 0.3 * np.array(own)
    assert (np.abs(logs).max(axis=0) <= limits + 1e-12).all()
    # Some output uses what it may.
    assert (np.abs(logs).max(axis=0) >= limits - 1e-6).any()


def test_shares_add_up_along_every_path(frame):
    """A prefix (y_1, .., y_j) has lifts within c_j, where c_j = c_{j-1} + f_j(y_j) (1 - c_{j-1})."""
    records = Records.from_table(frame, sensitive="s", groups=["a", "b", "k"])
    strata = strata_of(records, 0, md.LIP(0.4), "total")
    growth = RowGrowth(records, 0, strata, "truth")
    first, second = (0.3, 0.5, 0.7, 0.4, 0.35), (0.2, 0.6, 0.3, 0.1, 0.5, 0.4)
    grown = growth.grow([first, second, (1.0,)], least_mass=0.0)
    levels = grown.tree.levels
    tables = []
    for level in levels:
        table = np.zeros((level.nodes, level.size, level.size))
        slots = level.rows.indices
        pairs = level.rows.row_of
        table[
            level.pair_nodes[pairs],
            level.pair_inputs[pairs],
            level.slot_outputs[slots],
        ] = level.rows.values / 2**53
        tables.append(table)
    prior = np.bincount(records.secrets, records.masses)
    used = 0
    for place in range(levels[1].nodes):
        if levels[1].constant[place]:
            continue
        (above,) = np.flatnonzero(levels[0].slot_children == place)
        y = int(levels[0].slot_outputs[above])
        weights = records.masses * tables[0][0][records.codes[:, 0], y]
        for z in np.unique(levels[1].slot_outputs[levels[1].slot_nodes == place]):
            reached = weights * tables[1][place][records.codes[:, 1], z]
            lifts = np.bincount(records.secrets, reached) / reached.sum() / prior
            allowed = 0.4 * (first[y] + second[z] * (1.0 - first[y]))
            worst = np.abs(np.log(lifts)).max()
            assert worst <= allowed + 1e-9
            used += worst >= allowed - 1e-6
    assert used > 3


def test_the_search_finds_the_best_share_of_each_output():
    target = [np.array([0.55, 0.85, 0.7]), np.array([0.2, 0.9])]

    def value_of(spending):
        return -sum(
            float(np.abs(np.array(own) - wanted).sum())
            for own, wanted in zip(spending, target, strict=False)
        )

    start = Trial((0, 1, 2), (0.7, 0.15, 0.15), -9.0, ((0.7,), (0.5,), (1.0,)))
    found = own_shares(value_of, start, [[2, 0, 1], [0, 1]], end=math.inf)
    for own, wanted in zip(found.spending, target, strict=False):
        assert np.abs(np.array(own) - wanted).max() <= 0.05 + 1e-9
    assert found.spending[-1] == (1.0,)
    assert min(found.spending[0]) >= LEAST_SHARE
    late = own_shares(lambda spending: 1.0, found, [[0], [1]], end=-math.inf)
    assert late == found
