"""Programs of all pairs of a plan: the method that is chosen, against both, in one run."""

from __future__ import annotations

import numpy as np
import pytest

from solvers.plans import program as programs
from solvers.plans.generation import Generation, all_pairs
from solvers.plans.problem import PlanProblem
from tests.benchmarks.measuring import timed
from tests.benchmarks.plans import lift_problem
from tests.solvers.plans.test_ceiling import whole

pytestmark = pytest.mark.benchmark

ROWS = 100


def _problem(secrets: int, concentration: float) -> PlanProblem:
    """A hundred rows; with a smaller concentration more values are outside their limits."""
    random = np.random.default_rng(1)
    places = random.permutation(240)[:ROWS]
    codes = np.column_stack(np.unravel_index(places, (4, 6, 10)))
    shares = random.dirichlet(np.full(secrets, concentration), ROWS).T
    counts = np.round(shares * random.integers(200, 600, ROWS)).astype(int)
    counts[0] += 1
    counts = counts[counts.sum(axis=1) > 0]
    return lift_problem(codes, counts)


def _program(problem: PlanProblem) -> Generation:
    group = whole(problem)
    made = Generation(problem, group, elastic=False)
    made.add(*all_pairs(problem, group))
    return made


@pytest.mark.parametrize("secrets", [2, 10, 20, 60])
def test_the_faster_method_is_chosen(
    secrets: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = better = 0.0
    for concentration in (0.2, 0.5, 1.0, 2.0, 10.0):
        problem = _problem(secrets, concentration)
        ours = timed(_program(problem).solve_at_once).cpu
        with monkeypatch.context() as patch:
            patch.setattr(programs, "MANY_LIMITS", float("inf"))
            simplex = timed(_program(problem).solve_at_once).cpu
        interior = timed(_program(problem).solve).cpu
        chosen += ours
        better += min(simplex, interior)
        share = whole(problem).ranges.share_outside
        with capsys.disabled():
            print(
                f"\n{secrets} secrets, {share:.2f} outside: chosen {ours:.2f} s, "
                f"simplex {simplex:.2f} s, interior point {interior:.2f} s"
            )
    assert chosen <= 1.5 * better
