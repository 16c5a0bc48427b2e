"""Vertex enumeration alone, method against method, and the estimate against the count."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from solvers.enumeration import estimate, vertices
from solvers.errors import TooManyVertices
from solvers.sets.polytope import Polytope
from tests.benchmarks.measuring import alternately, seconds, table, timed

pytestmark = pytest.mark.benchmark

BUDGETS = np.arange(0.25, 8.01, 0.25)
LAMS = (0.35, 0.5, 0.65)


def lift_polytope(rows: np.ndarray, epsilon: float, lam: float) -> Polytope:
    """Lifts between exp(-lam epsilon) and exp((1 - lam) epsilon)."""
    m = len(rows)
    return Polytope(
        rows,
        np.full(m, np.exp(-lam * epsilon)),
        np.full(m, np.exp((1.0 - lam) * epsilon)),
    )


def random_lift(s: int, n: int, seed: int = 0) -> np.ndarray:
    """Lift matrix of a uniform random table."""
    p = np.random.default_rng(seed).random((s, n))
    p /= p.sum()
    return p / p.sum(axis=0) / p.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("name", ["Adult, 5 x 15", "random, 5 x 17"])
def test_grids_of_the_figures(name, adult):
    """96 budgets each; enumeration only, nothing is certified here."""
    rows = np.asarray(adult.lift) if name.startswith("Adult") else random_lift(5, 17)
    sets = [lift_polytope(rows, epsilon, lam) for lam in LAMS for epsilon in BUDGETS]

    def run(method: str) -> list[int]:
        return [len(vertices(polytope, method)) for polytope in sets]

    run("cdd")  # imports
    ours, peer = alternately([lambda: run("pivot"), lambda: run("cdd")], repeats=2)
    assert sum(ours.result) >= sum(peer.result)
    shown = [
        [method, str(sum(t.result)), seconds(t.cpu)]
        for method, t in (("pivot", ours), ("cdd", peer))
    ]
    table(f"96 enumerations, {name}", ["method", "vertices", "processor s"], shown)
    print(f"\ntimes faster: {peer.cpu / ours.cpu:.0f}")
    assert 5.0 * ours.cpu < peer.cpu


def test_methods_at_one_budget():
    """cddlib against pivoting."""
    shown = []
    for n in (8, 11, 14, 17):
        polytope = lift_polytope(random_lift(5, n), 2.0, 0.5)
        methods = ("pivot", "cdd")
        runs = {
            method: timed(partial(vertices, polytope, method)) for method in methods
        }
        assert len({len(t.result) for t in runs.values()}) == 1
        shown.append(
            [
                str(n),
                str(len(runs["pivot"].result)),
                *(seconds(t.cpu) for t in runs.values()),
            ]
        )
    table("|S| = 5, epsilon 2", ["|X|", "vertices", "pivot s", "cdd s"], shown)


ESTIMATED = 4.0
"""Factor by which the estimate, which is the mean of a few walks, may be off either way; 2.9 was seen."""


def test_growth_and_estimate():
    """Vertices, time and estimate against |X| at |S| = 5, epsilon 2: the estimate tells what can be enumerated."""
    shown, most = [], 0
    for n in (10, 20, 30, 50, 75, 100, 150, 200, 1000, 5000):
        polytope = lift_polytope(random_lift(5, n), 2.0, 0.5)
        guess = timed(partial(estimate, polytope), repeats=3)
        try:
            took = timed(partial(vertices, polytope))
            count, time, most = (
                str(len(took.result)),
                seconds(took.cpu),
                max(most, len(took.result)),
            )
            assert (
                len(took.result) / ESTIMATED
                < guess.result.vertices
                < ESTIMATED * len(took.result)
            )
        except TooManyVertices:
            count, time = "refused", "-"
            assert guess.result.vertices > ESTIMATED * most
        shown.append(
            [
                str(n),
                count,
                time,
                f"{guess.result.vertices:.3g}",
                f"{1e3 * guess.cpu:.1f}",
            ]
        )
    table(
        "|S| = 5, epsilon 2",
        ["|X|", "vertices", "s", "estimate", "ms of the estimate"],
        shown,
    )
