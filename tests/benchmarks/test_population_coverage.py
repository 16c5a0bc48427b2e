"""How often promises hold for the population: ``MECHDESIGN_DRAWS=1000 python -m pytest -m benchmark -s`` this file.

Every cell (truth, notion, records) of `examples/population.py` draws samples of a known truth, designs with and without
confidence, and looks at the truth. Cells are separate tests, so that a study runs in parts (``-k "adult and ldp"``; the
example itself goes on where it stopped). Printed are the draws in which the promise held with their exact binomial
limits (95 %), the median realised budget as a share of the promised one, and what is kept of H(X). The event that all
promises rest on, that the set holds the truth, is looked at for itself.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mechdesign import Joint, design
from mechdesign.auditing.population import audit_population
from mechdesign.auditing.verdict import audit_on_table
from mechdesign.core.balls import SCALE
from mechdesign.notions import LDP, LIP, Notion
from mechdesign.tables.confidence import confidence_set

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
study = importlib.import_module("population")

pytestmark = pytest.mark.benchmark

DRAWS = int(os.environ.get("MECHDESIGN_DRAWS", "20"))
RECORDS = (300, 1_000, 3_000, 10_000, 30_000, 100_000, 1_000_000)


@pytest.mark.parametrize("records", RECORDS)
@pytest.mark.parametrize("notion", study.NOTIONS)
@pytest.mark.parametrize("name", study.TRUTHS)
def test_promises_hold_for_the_population(name: str, notion: str, records: int) -> None:
    """At least `LEVEL` of the draws, up to the exact binomial limit of so many draws."""
    plain, confident = study.together(study.study(name, notion, records, DRAWS))
    print(f"\n{study.line(plain)}\n{study.line(confident)}")
    assert study.limits_of(confident["held"], DRAWS)[1] >= study.LEVEL


@pytest.mark.parametrize("records", RECORDS)
@pytest.mark.parametrize("name", study.TRUTHS)
def test_sets_hold_the_truth(name: str, records: int) -> None:
    """The event behind every promise, shares included."""
    truth = study.truth_of(name)
    given_s, shares = truth / truth.sum(axis=1, keepdims=True), truth.sum(axis=1)
    rng = np.random.default_rng(records + 1)
    held = 0
    for _ in range(DRAWS):
        counts = rng.multinomial(records, truth.ravel()).reshape(truth.shape)
        seen = np.flatnonzero(counts.sum(axis=0))
        chosen = confidence_set(
            Joint.from_counts(counts[:, seen].tolist()),
            study.LEVEL,
            unseen=truth.shape[1] - len(seen),
        )
        lower, upper = (
            np.array(side, dtype=np.float64) / SCALE
            for side in (chosen.lower, chosen.upper)
        )
        inside = bool(
            (lower <= given_s[:, seen]).all() and (given_s[:, seen] <= upper).all()
        )
        low, high = (
            np.array(ends, dtype=np.float64)
            for ends in (chosen.share_lower, chosen.share_upper)
        )
        inside = inside and bool((low <= shares).all() and (shares <= high).all())
        if chosen.unseen:
            missing = 1.0 - given_s[:, seen].sum(axis=1)
            inside = inside and bool(
                (
                    missing <= np.array(chosen.rest, dtype=np.float64) / SCALE + 1e-15
                ).all()
            )
        held += int(inside)
    low_end, high_end = study.limits_of(held, DRAWS)
    print(
        f"\n{name}, {records:,} records: the set held the truth in {held} of {DRAWS} [{low_end:.3f}, {high_end:.3f}]"
    )
    assert high_end >= study.LEVEL


@pytest.mark.parametrize("notion", [LDP(1.0), LIP(0.5)], ids=str)
def test_a_verdict_on_a_set_costs_at_most_ten_of_one_on_the_table(
    notion: Notion, adult: Joint
) -> None:
    """Of one channel, the intervals at hand; least CPU time of many runs each."""
    made = design(adult, notion, confidence=0.95, gap=1e-3)
    chosen = confidence_set(adult)

    def least(run: Callable[[], object]) -> float:
        found: list[float] = []
        for _ in range(50):
            started = time.process_time()
            run()
            found.append(time.process_time() - started)
        return min(found)

    ratio = least(lambda: audit_population(made.channel, adult, notion, chosen))
    ratio /= least(lambda: audit_on_table(made.channel, adult, notion))
    print(
        f"\n{notion.text}: a verdict on the set takes {ratio:.1f} times that on the table"
    )
    assert ratio <= 10.0
