"""Column generation for large nodes against the whole program, which names every pair of symbols."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

from mechdesign.mechanisms.row_budgets import MARGIN, Stratum
from mechdesign.mechanisms.row_lifts import NodeTable, reachable
from mechdesign.mechanisms.row_node import NodePrograms
from mechdesign.mechanisms.row_pricing import PricedProgram


def random_case(rng, n, secrets, ratio, own):
    """A node of a sparse table, and bounds for its outputs."""
    joint = rng.random((secrets, n)) ** 4 * (rng.random(n) ** 3 + 1e-3)
    joint[0] += 1e-6
    joint /= joint.sum()
    masses = joint.sum(axis=0)
    prior = joint.sum(axis=1)
    stratum = Stratum(
        rows=np.arange(n),
        mass=1.0,
        prior=prior,
        start=np.ones(secrets),
        protected=np.ones(secrets, dtype=bool),
        eps_l=np.full(secrets, math.inf if ratio < math.inf else 0.4),
        eps_u=np.full(secrets, math.inf if ratio < math.inf else 0.5),
        ratio=ratio,
    )
    shares = (0.8,)
    if own:
        shares = tuple(rng.uniform(0.3, 1.0, n))
    table = NodeTable(joint / masses / prior[:, None], masses)
    return table, reachable(stratum.bounds(*shares), table.own_lifts(), MARGIN)


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("ratio", [math.inf, 0.7])
def test_the_same_mass_changes_as_in_the_whole_program(monkeypatch, ratio, own):
    """Where no column has a negative reduced cost, the answer is that of all columns."""
    rng = np.random.default_rng(44)
    for n, secrets in ((1, 2), (2, 2), (5, 3), (30, 2), (40, 4)):
        table, bounds = random_case(rng, n, secrets, ratio, own)
        whole = NodePrograms("truth")._least_change(table, bounds)
        monkeypatch.setattr("mechdesign.mechanisms.row_node.LARGEST_PROGRAM", 0)
        priced = NodePrograms("truth")._least_change(table, bounds)
        monkeypatch.undo()
        assert priced.sum(axis=1) == pytest.approx(np.ones(n), abs=1e-7)
        stays = table.masses @ np.diag(priced)
        assert stays == pytest.approx(table.masses @ np.diag(whole), abs=1e-7)
        masses, scaled = table.of_outputs(priced)
        used = masses > 1e-9
        lifts = scaled[:, used] / masses[used]
        of_used = bounds.of_outputs(np.flatnonzero(used))
        assert (lifts <= of_used.upper * (1 + 1e-6)).all()
        assert (lifts >= of_used.lower * (1 - 1e-6)).all()
        assert (
            lifts.max(axis=0) <= of_used.ratio * lifts.min(axis=0) * (1 + 1e-6)
        ).all()


def test_time_that_is_over_leaves_a_channel_that_keeps_the_bounds(monkeypatch):
    """Each round answers with the columns so far, a constant among them."""
    rng = np.random.default_rng(45)
    table, bounds = random_case(rng, 60, 3, math.inf, False)
    monkeypatch.setattr("mechdesign.mechanisms.row_node.LARGEST_PROGRAM", 0)
    rounds = iter([True, False])
    run = PricedProgram._run
    monkeypatch.setattr(
        PricedProgram, "_run", lambda self, end: next(rounds) and run(self, end)
    )
    early = NodePrograms("truth")._least_change(table, bounds)
    monkeypatch.undo()
    masses, scaled = table.of_outputs(early)
    used = masses > 1e-9
    lifts = scaled[:, used] / masses[used]
    assert (lifts <= bounds.upper * (1 + 1e-6)).all()
    assert (lifts >= bounds.lower * (1 - 1e-6)).all()
    whole = NodePrograms("truth")._least_change(table, bounds)
    stays = table.masses @ np.diag(early)
    assert 0.0 < stays < table.masses @ np.diag(whole)
    late = NodePrograms("truth").channel(table, bounds, end=time.perf_counter() - 1.0)
    assert (late.sum(axis=1) == 2**53).all()
