"""Programs of blocks: the rows that bind are found first, and the answer is that of all rows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from solvers.errors import NoPlan, OutOfTime
from solvers.pace import NEVER, Clock
from solvers.plans import program as programs
from solvers.plans.generation import Generation, all_pairs
from solvers.plans.problem import PlanProblem
from solvers.plans.search import SMALLEST_BLOCK, Stratum
from tests.benchmarks.plans import lift_problem
from tests.solvers.plans.problems import Kind, random_problem
from tests.solvers.plans.test_ceiling import whole


def many_limits(n: int, secrets: int, budget: float = 1.0) -> PlanProblem:
    """A column of n symbols, and so many secrets that depend on it."""
    rng = np.random.default_rng(5)
    counts = rng.multinomial(40 * n * secrets, rng.dirichlet(np.ones(n * secrets)))
    return lift_problem(np.arange(n)[:, None], counts.reshape(secrets, n), budget)


def generation(problem: PlanProblem) -> Generation:
    """The program of all pairs of a problem."""
    group = whole(problem)
    made = Generation(problem, group, elastic=False)
    made.add(*all_pairs(problem, group))
    return made


@pytest.mark.parametrize(
    "kind", [Kind(), Kind(law="other"), Kind(notion="ldp"), Kind(penalty="distance")]
)
@pytest.mark.parametrize("most", [0, 10**9])
def test_a_program_at_once_has_the_optimum_of_any_other_way(kind, most, monkeypatch):
    """With the rows that bind first (most = 0), and without."""
    monkeypatch.setattr(programs, "FEW_PAIRS_AND_LIMITS", most)
    for seed in range(4):
        problem = random_problem(seed, 14, kind)
        try:
            other = generation(problem).solve()
        except NoPlan:
            with pytest.raises(NoPlan):
                generation(problem).solve_at_once()
            continue
        solved = generation(problem).solve_at_once()
        assert solved.is_vertex
        assert solved.cost == pytest.approx(other.cost, abs=1e-8)


def test_the_whole_program_begins_at_its_optimum(monkeypatch):
    """The rows that do not bind take no step of the simplex method."""
    monkeypatch.setattr(programs, "FEW_PAIRS_AND_LIMITS", 0)
    made = generation(many_limits(20, 40))
    made.solve_at_once()
    highs = made._program._highs
    assert highs.getInfo().simplex_iteration_count <= 2
    # From nothing there are many.
    highs.clearSolver()
    highs.run()
    assert highs.getInfo().simplex_iteration_count > 50


def test_a_block_ends_with_its_deadline(monkeypatch):
    """No round of rows begins after it."""
    monkeypatch.setattr(programs, "FEW_PAIRS_AND_LIMITS", 0)
    made = generation(many_limits(20, 15))
    with pytest.raises(OutOfTime):
        made.solve_at_once(Clock(-1.0))


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The solvers that programs of plans use from now on."""
    used: list[object] = []
    set_options = programs.set_options

    def noted(highs, options):
        used.append(options.get("solver"))
        set_options(highs, options)

    monkeypatch.setattr(programs, "set_options", noted)
    return used


def test_the_share_of_values_outside_their_limits_is_that_of_symbols_and_secrets():
    problem = many_limits(20, 15)
    values = problem.limits.values
    outside = (values > math.exp(1.0)) | (values < math.exp(-1.0))
    found = whole(problem).ranges.share_outside
    assert found == pytest.approx(outside.mean(), abs=1e-12)
    assert 0.3 < found < 0.7


@pytest.mark.parametrize(
    ("secrets", "budget", "way"),
    [(15, 1.0, "simplex"), (15, 0.1, "ipm"), (5, 0.1, "simplex")],
)
def test_a_program_that_mostly_binds_takes_the_interior_point_method(
    secrets, budget, way, ways, monkeypatch
):
    """The dual simplex method takes several times as long there, with many secrets."""
    problem = many_limits(46, secrets, budget)
    solved = generation(problem).solve_at_once()
    assert set(ways) == {way}
    assert solved.is_vertex
    monkeypatch.setattr(programs, "MANY_LIMITS", math.inf)
    for other in (generation(problem).solve(), generation(problem).solve_at_once()):
        assert solved.cost == pytest.approx(other.cost, abs=1e-8)


def test_blocks_do_not_use_the_interior_point_method(monkeypatch, ways):
    """The one for programs that grow takes several times as long for a block with many limits."""
    problem = many_limits(SMALLEST_BLOCK, 15)
    made = generation(problem)
    assert made._program.is_large
    stratum = Stratum.__new__(Stratum)
    stratum.problem = problem
    stratum.deadline = NEVER
    found = stratum._solve_block(whole(problem), NEVER)
    assert set(ways) == {"simplex"}
    monkeypatch.undo()
    assert found.cost == pytest.approx(made.solve().cost, abs=1e-8)
