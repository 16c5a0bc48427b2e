"""How often promises hold for the population: ``MECHDESIGN_DRAWS=1000 python -m pytest -m benchmark -s`` this file.

Every cell (truth, notion, records) draws samples of a known truth, designs with and without confidence, and looks at
the truth. Cells are separate tests, so that a study of 1,000 draws runs in parts (``-k "adult and ldp"``). Printed are
the share of draws in which the promise held with its exact binomial limits (95 %), the median realised budget as a
share of the promised one, and what is kept of H(X).
"""

from __future__ import annotations

import math
import os
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from mechdesign import Joint, design
from mechdesign.core.binomial import SCALE, lower_end
from mechdesign.notions import ALIP, LDP, LIP, LiftLimits, MaxLift, MinLift, Notion
from mechdesign.tables.confidence import confidence_set

pytestmark = pytest.mark.benchmark

Array = NDArray[np.float64]

DRAWS = int(os.environ.get("MECHDESIGN_DRAWS", "20"))
LEVEL = 0.95
RECORDS = (300, 1_000, 3_000, 10_000, 30_000, 100_000, 1_000_000)
NOTIONS: dict[str, Notion] = {
    "ldp": LDP(1.0),
    "lip": LIP(0.5),
    "alip": ALIP(0.6, 0.4),
    "max-lift": MaxLift(0.5),
    "min-lift": MinLift(0.5),
}
TRUTHS = ("adult", "even", "rare")


def _truth(name: str, adult: Joint) -> Array:
    """Adult; a dense random table of 3 x 6; and a 2 x 8 table whose symbols are rarer and rarer."""
    if name == "adult":
        return adult.p
    rng = np.random.default_rng(1)
    if name == "even":
        table = rng.dirichlet(np.full(6, 3.0), 3) * np.array([[0.5], [0.3], [0.2]])
    else:
        table = 0.5 ** np.arange(8) * rng.uniform(0.2, 1.8, (2, 8))
    return table / table.sum()


def _realised(rows: Array, truth: Array, limits: LiftLimits) -> float:
    """The largest used share of a budget on the truth."""
    given_s = truth / truth.sum(axis=1, keepdims=True) @ rows
    given_s = given_s[:, given_s.max(axis=0) > 0.0]
    mass = truth.sum(axis=1) @ given_s
    with np.errstate(divide="ignore"):
        high, low = np.log(given_s.max(axis=0) / mass).max(), np.log(mass / given_s.min(axis=0)).max()
        ratio = np.log(given_s.max(axis=0) / given_s.min(axis=0)).max()
    sides = ((high, limits.upper), (low, limits.lower), (ratio, limits.ratio))
    return max(float(value) / limit for value, limit in sides if math.isfinite(limit))


def _limits(held: int, draws: int) -> tuple[float, float]:
    alpha = Fraction(1, 40)
    return lower_end(held, draws, alpha) / SCALE, 1.0 - lower_end(draws - held, draws, alpha) / SCALE


def _line(name: str, budgets: list[float], kept: list[float]) -> int:
    held = sum(1 for budget in budgets if budget <= 1.0 + 1e-12)
    low, high = _limits(held, len(budgets))
    print(
        f"  {name:>10}: held in {held / len(budgets):6.1%} [{low:.3f}, {high:.3f}] of {len(budgets)}, "
        f"realised {np.median(budgets):5.2f} of 1, kept {np.median(kept):.3f}"
    )
    return held


@pytest.mark.parametrize("records", RECORDS)
@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize("name", TRUTHS)
def test_promises_hold_for_the_population(name: str, notion: str, records: int, adult: Joint) -> None:
    """At least `LEVEL` of the draws, up to the exact binomial limit of so many draws."""
    truth, wanted = _truth(name, adult), NOTIONS[notion]
    limits = wanted.limits
    assert isinstance(limits, LiftLimits)
    rng = np.random.default_rng(records)
    budgets: dict[bool, list[float]] = {True: [], False: []}
    kept: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(DRAWS):
        counts = rng.multinomial(records, truth.ravel()).reshape(truth.shape)
        seen = np.flatnonzero(counts.sum(axis=0))
        joint = Joint.from_counts(counts[:, seen].tolist())
        for confident in (True, False):
            level, unseen = (LEVEL, truth.shape[1] - len(seen)) if confident else (None, 0)
            result = design(joint, wanted, gap=2e-2, time_limit=1.0, confidence=level, unseen=unseen)
            rows = np.tile(joint.p_x @ result.channel.matrix, (truth.shape[1], 1))
            rows[seen] = result.channel.matrix
            budgets[confident].append(_realised(rows, truth, limits))
            kept[confident].append(result.nmi)
    print(f"\n{name}, {notion}, {records:,} records")
    held = _line("95 %", budgets[True], kept[True])
    _line("plain", budgets[False], kept[False])
    assert _limits(held, DRAWS)[1] >= LEVEL


@pytest.mark.parametrize("records", RECORDS)
@pytest.mark.parametrize("name", TRUTHS)
def test_sets_hold_the_truth(name: str, records: int, adult: Joint) -> None:
    """The event behind every promise, shares included."""
    truth = _truth(name, adult)
    given_s, shares = truth / truth.sum(axis=1, keepdims=True), truth.sum(axis=1)
    rng = np.random.default_rng(records + 1)
    held = 0
    for _ in range(DRAWS):
        counts = rng.multinomial(records, truth.ravel()).reshape(truth.shape)
        seen = np.flatnonzero(counts.sum(axis=0))
        chosen = confidence_set(
            Joint.from_counts(counts[:, seen].tolist()), LEVEL, unseen=truth.shape[1] - len(seen)
        )
        lower, upper = (np.array(side, dtype=np.float64) / SCALE for side in (chosen.lower, chosen.upper))
        inside = bool((lower <= given_s[:, seen]).all() and (given_s[:, seen] <= upper).all())
        low, high = (np.array(ends, dtype=np.float64) for ends in (chosen.share_lower, chosen.share_upper))
        inside = inside and bool((low <= shares).all() and (shares <= high).all())
        if chosen.unseen:
            missing = 1.0 - given_s[:, seen].sum(axis=1)
            inside = inside and bool(
                (missing <= np.array(chosen.rest, dtype=np.float64) / SCALE + 1e-15).all()
            )
        held += int(inside)
    low_end, high_end = _limits(held, DRAWS)
    print(
        f"\n{name}, {records:,} records: the set held the truth in {held} of {DRAWS} [{low_end:.3f}, {high_end:.3f}]"
    )
    assert high_end >= LEVEL
