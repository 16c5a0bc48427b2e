"""How far averages of every output are certified: 164 cases, and 36 whose posteriors are not convex.

``python -m pytest -m benchmark -n 0 tests/benchmarks/test_convex_means.py -s`` prints a line a case, how
many reach the gap, and the median of the processor seconds, of all and of those with at most 50 symbols
and 6 secrets. The real tables need ``MECHDESIGN_DATA``. The limit of a case is one of the clock, so that
fewer of the largest close on a busy machine.
"""

from __future__ import annotations

import math
import statistics
import time

import numpy as np
import pytest

import mechdesign as md
from tests.cases.people import ADULT

pytestmark = pytest.mark.benchmark

LIMIT = 20.0
"""Seconds of a case."""

GAP = 1e-4

PAIRS = (
    ("relationship", "occupation"),
    ("relationship", "education"),
    ("relationship", "hours"),
    ("race", "occupation"),
    ("race", "education"),
    ("race", "country"),
    ("marital", "occupation"),
    ("workclass", "occupation"),
    ("income", "occupation"),
    ("sex", "education"),
)
"""Sensitive and useful columns of Adult."""

SIZES = ((3, 10), (5, 15), (5, 30), (5, 50), (15, 10), (5, 100), (5, 200), (15, 50))
"""Random tables."""


def notions(epsilon):
    """The convex averages at a budget."""
    return (
        md.Chi2Lift(math.inf, epsilon),
        md.AlphaLift(math.inf, epsilon, 2.0),
        md.AlphaLift(math.inf, epsilon, 10.0),
        md.AlphaLift(epsilon, epsilon, 2.0),
        md.AlphaLift(epsilon, math.inf, 2.0),
    )


def random_table(secrets, symbols, seed=0):
    random = np.random.default_rng(seed)
    weights = random.dirichlet(np.full(secrets, 3.0))
    shares = weights[:, None] * random.dirichlet(np.ones(symbols), size=secrets)
    counts = random.multinomial(20_000, shares.ravel()).reshape(shares.shape)
    return md.Joint.from_counts(counts)


def certified(name, joint, notion, gap):
    """Processor seconds, gap and size of a case."""
    started = time.process_time()
    found = md.design(joint, notion, gap=gap, time_limit=LIMIT)
    seconds = time.process_time() - started
    reached = found.certificate.gap_nmi
    print(
        f"{name}, {notion.text}: kept {found.nmi:.4f}, gap {reached:.1e}, {seconds:.2f} s",
        flush=True,
    )
    is_small = len(joint.useful) <= 50 and len(joint.sensitive) <= 6
    return seconds, reached, is_small


def summed_up(results, gap):
    """Print the figures of all cases and of the small ones; how many of all are closed."""
    small = [result for result in results if result[2]]
    for name, cases in (("up to 50 symbols and 6 secrets", small), ("all", results)):
        closed = sum(reached <= gap for _, reached, _ in cases)
        seconds = [spent for spent, _, _ in cases]
        worst = max(reached for _, reached, _ in cases)
        print(
            f"{name}: {closed} of {len(cases)} within {gap:g}; median "
            f"{statistics.median(seconds):.3f} s, worst {max(seconds):.1f} s; largest gap {worst:.1e}"
        )
    return closed


@pytest.fixture(scope="module")
def tables(data):
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(
        data / "adult" / "adult.data", names=ADULT, dtype=str, skipinitialspace=True
    )
    real = {}
    for sensitive, useful in PAIRS:
        joint = md.Joint.from_table(frame, sensitive=sensitive, useful=useful)
        real[f"{sensitive} by {useful}"] = joint
    return real


def test_convex_averages(tables):
    results = []
    for epsilon in (0.25, 0.5):
        for name, joint in tables.items():
            for notion in notions(epsilon):
                results.append(certified(name, joint, notion, GAP))
        for secrets, symbols in SIZES:
            joint = random_table(secrets, symbols)
            for notion in notions(epsilon)[:4]:
                name = f"random {secrets} x {symbols}"
                results.append(certified(name, joint, notion, GAP))
    assert len(results) == 164
    # How many depends on the machine: the limit is one of time.
    assert summed_up(results, GAP) >= 100


def test_inverses_that_are_not_convex():
    results = []
    for symbols in (10, 20, 30):
        for seed in range(2):
            joint = random_table(3, symbols, seed)
            for epsilon in (0.25, 0.5, 1.0):
                for kind in (md.L1Lift, md.Chi2Lift):
                    notion = kind(epsilon, epsilon)
                    results.append(certified(f"3 x {symbols}", joint, notion, 1e-3))
    assert summed_up(results, 1e-3) == len(results)
