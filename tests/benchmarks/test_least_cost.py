"""Channels of least cost against plain HiGHS on the whole linear program, in one run: ratios of processor time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mechdesign as md
from mechdesign.mechanisms.posteriors import posteriors
from solvers.assignment.assigning import assign
from solvers.assignment.assignment import Assignment
from tests.oracles.least_cost import least_cost

pytestmark = pytest.mark.benchmark


def _table(n: int, size: int) -> md.Joint:
    random = np.random.default_rng(0)
    weights = random.gamma(1.0, size=(size, n)) * random.gamma(1.0, size=n)
    counts = random.multinomial(
        30 * n * size, (weights / weights.sum()).ravel()
    ).reshape(size, n)
    return md.Joint.from_counts(
        counts + (np.arange(size)[:, None] == np.arange(n) % size)
    )


def _seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    found = work()
    return time.process_time() - began, found


@pytest.mark.parametrize(("n", "size"), [(15, 5), (60, 5), (100, 5)])
def test_against_plain_highs(
    n: int, size: int, capsys: pytest.CaptureFixture[str]
) -> None:
    joint = _table(n, size)
    truth = 1.0 - np.eye(n)
    _seconds(lambda: md.design(_table(4, 2), md.LIP(1.0), objective="truth"))  # imports
    ours, made = _seconds(
        lambda: md.design(joint, md.LIP(0.7), objective="truth", keep_frequencies=True)
    )
    plain, wanted = _seconds(
        lambda: least_cost(joint.counts, truth, lower=0.7, upper=0.7, keep=True)
    )
    assert made.least is not None
    assert made.least.cost == pytest.approx(wanted, abs=1e-6)
    assert made.least.cost_lower_bound <= wanted + 1e-9
    with capsys.disabled():
        print(
            f"\n{n} x {size}: ours {ours:.3f} s, plain HiGHS {plain:.3f} s: {plain / ours:.1f} times as fast"
        )


@pytest.mark.slow
@pytest.mark.parametrize("notion", [md.LDP(1.0), md.ALIP(0.7, 0.7)])
def test_200_by_15(notion: md.Notion, capsys: pytest.CaptureFixture[str]) -> None:
    """The ratio to 100 x 5 in plain HiGHS stands for the one to itself, which takes a minute."""
    joint = _table(200, 15)
    ours, made = _seconds(
        lambda: md.design(joint, notion, objective="truth", keep_frequencies=True)
    )
    small = _table(100, 5)
    plain, _ = _seconds(
        lambda: least_cost(
            small.counts, 1.0 - np.eye(100), lower=0.7, upper=0.7, keep=True
        )
    )
    assert made.least is not None
    assert made.least.cost - made.least.cost_lower_bound <= 1e-4 * made.least.cost
    with capsys.disabled():
        print(
            f"\n200 x 15 {notion.text}: {ours:.2f} s, plain HiGHS on 100 x 5: {plain:.2f} s"
        )


def test_the_bound_is_that_of_the_program() -> None:
    """The methods agree on one problem, each with its own bound."""
    joint = _table(40, 5)
    polytope = posteriors(joint, md.LDP(1.0))
    problem = Assignment(1.0 - np.eye(40), joint.p_x, polytope, keep=True)
    found = [assign(problem, method=method) for method in ("simplex", "interior")]
    for one in found:
        for other in found:
            assert one.bound <= other.cost + 1e-9


@pytest.mark.slow
def test_2000_by_15(capsys: pytest.CaptureFixture[str]) -> None:
    """A running bound: there is one from the first plan on, and it never falls."""
    random, seen = np.random.default_rng(0), list[str]()
    joint = md.Joint.from_counts(random.integers(1, 100, size=(15, 2000)))
    bounds = list[float]()
    began = time.process_time()

    def progress(step: Any) -> None:
        figures = step.figures
        bounds.append(figures["cost_lower_bound"])
        spent = time.process_time() - began
        seen.append(f"{spent:.0f} s: {figures['cost']:.4f}, at least {bounds[-1]:.4f}")

    made = md.design(
        joint, md.LDP(1.0), objective="truth", time_limit=40.0, progress=progress
    ).least
    assert made is not None
    assert bounds == sorted(bounds)
    assert 0.0 < bounds[0] <= made.cost_lower_bound < made.cost
    with capsys.disabled():
        print(
            "\n2,000 x 15:",
            "; ".join(seen),
            f"; {made.cost:.4f}, at least {made.cost_lower_bound:.4f}",
        )
