"""The robust counterpart against the program over all vertices of small boxes."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog

from solvers import Polytope, UncertainSet
from solvers.assignment import robust
from solvers.assignment.assignment import Assigned, Assignment
from solvers.assignment.counterpart import filled
from solvers.assignment.robust import assign_uncertain, robust_plan
from solvers.errors import BackendFailure, EmptyPolytope
from tests.profiles import scaled
from tests.solvers.test_robust import _random, _vertices

Array = NDArray[np.float64]

CLOSE = 1e-7
"""Optima of two programs by HiGHS agree to this."""


def uncertain_of(
    seed: int, size: int, n: int, kind: str, *, unseen: bool = False
) -> UncertainSet:
    """A random set; with unseen symbols its boxes have one more coordinate."""
    point, lower, upper, share_lower, share_upper = _random(seed, size, n, 0.15)
    if unseen:
        lower = np.column_stack([lower, np.zeros(size)])
        upper = np.column_stack([upper, np.full(size, 0.1)])
    factors = {
        "ratio": {"ratio": 1.5},
        "most": {"most": 1.3},
        "least": {"least": 0.7},
        "lift": {"most": 1.5, "least": 0.6},
    }
    return UncertainSet(point, lower, upper, share_lower, share_upper, **factors[kind])


def all_rows(uncertain: UncertainSet) -> Array:
    """Every row a.w >= 0 of every choice of vertices of all boxes, with the unseen folded in."""
    size = len(uncertain.lower)
    boxes = [
        _vertices(low, high)
        for low, high in zip(uncertain.lower, uncertain.upper, strict=True)
    ]
    shares = _vertices(uncertain.share_lower, uncertain.share_upper)
    rows = []
    for s, t in itertools.permutations(range(size), 2):
        if math.isfinite(uncertain.ratio):
            rows += [
                uncertain.ratio * q - p
                for p, q in itertools.product(boxes[s], boxes[t])
            ]
    for chosen, pi in itertools.product(itertools.product(*boxes), shares):
        mean = pi @ np.array(chosen)
        for s in range(size):
            if math.isfinite(uncertain.most):
                rows.append(uncertain.most * mean - chosen[s])
            if uncertain.least > 0.0:
                rows.append(chosen[s] - uncertain.least * mean)
    table = np.unique(np.array(rows), axis=0)
    n = uncertain.n
    if table.shape[1] == n:
        return table
    return table[:, :n] + np.outer(table[:, n], uncertain.rest * uncertain.point)


def optimum(problem: Assignment, rows: Array) -> float | None:
    """The least cost over W(y|x) by one program with all rows; None where there is none."""
    n = problem.n
    p = problem.masses
    costs = (p[:, None] * problem.cost).ravel()
    equations = [np.kron(np.eye(n), np.ones(n))]
    sides = [np.ones(n)]
    if problem.keep:
        equations.append(np.kron(p, np.eye(n)))
        sides.append(p)
    inequalities = [np.kron(rows, np.eye(n)[y]) for y in range(n)]
    bounds = [
        (float(problem.floors[x]) if x == y else 0.0, None)
        for x, y in itertools.product(range(n), range(n))
    ]
    found = linprog(
        costs,
        A_ub=-np.vstack(inequalities),
        b_ub=np.zeros(n * len(rows)),
        A_eq=np.vstack(equations),
        b_eq=np.concatenate(sides),
        bounds=bounds,
    )
    if found.status == 2:
        return None
    assert found.status == 0
    return float(found.fun)


def problem_of(
    uncertain: UncertainSet, seed: int, *, keep: bool, floor: float = 0.0
) -> Assignment:
    n = uncertain.n
    cost = np.random.default_rng(seed).random((n, n)) * (1.0 - np.eye(n))
    no_rows = Polytope(np.zeros((0, n)), np.zeros(0), np.zeros(0))
    return Assignment(cost, uncertain.point, no_rows, keep, np.full(n, floor))


def check(found: Assigned, problem: Assignment, uncertain: UncertainSet) -> None:
    """The shares are an assignment whose columns are members, and the bound is below its cost."""
    masses = problem.masses @ found.shares
    assert found.shares.min() >= 0.0
    assert found.shares.sum(axis=1) == pytest.approx(np.ones(problem.n), abs=1e-12)
    if problem.keep:
        assert masses == pytest.approx(problem.masses, abs=1e-9)
    used = masses > 1e-7
    columns = (found.shares[:, used] * problem.masses[:, None] / masses[used]).T
    assert uncertain.excess(columns).max() <= 1e-7
    assert found.bound <= found.cost


@settings(deadline=None, max_examples=scaled(10))
@given(
    st.integers(0, 10_000),
    st.sampled_from([2, 3]),
    st.sampled_from(["ratio", "most", "least", "lift"]),
    st.booleans(),
    st.booleans(),
)
def test_the_counterpart_has_the_optimum_over_all_vertices(
    seed: int, size: int, kind: str, keep: bool, unseen: bool
) -> None:
    """bound <= optimum over all vertices <= cost, and they meet."""
    uncertain = uncertain_of(seed, size, 3, kind, unseen=unseen)
    problem = problem_of(uncertain, seed, keep=keep)
    best = optimum(problem, all_rows(uncertain))
    assert best is not None
    found = robust_plan(problem, uncertain)
    check(found, problem, uncertain)
    assert found.method == "robust counterpart"
    assert found.bound <= best + 1e-12
    assert found.cost == pytest.approx(best, abs=CLOSE)
    assert found.bound == pytest.approx(best, abs=CLOSE)
    # The way that begins with cuts has the same optimum.
    both = assign_uncertain(problem, uncertain)
    assert both.cost == pytest.approx(best, abs=CLOSE)
    assert both.bound <= best + 1e-12


@settings(deadline=None, max_examples=scaled(15))
@given(st.integers(0, 10_000), st.booleans())
def test_floors_and_known_shares(seed: int, keep: bool) -> None:
    """Least shares of own columns are kept, or there is no assignment for the vertices either."""
    uncertain = uncertain_of(seed, 3, 3, "lift")
    pi = (uncertain.share_lower + uncertain.share_upper) / 2.0
    pi = pi / pi.sum()
    uncertain = UncertainSet(
        uncertain.point, uncertain.lower, uncertain.upper, pi, pi, most=1.5, least=0.6
    )
    problem = problem_of(uncertain, seed, keep=keep, floor=0.45)
    best = optimum(problem, all_rows(uncertain))
    if best is None:
        with pytest.raises(EmptyPolytope):
            robust_plan(problem, uncertain)
        return
    found = robust_plan(problem, uncertain)
    check(found, problem, uncertain)
    assert np.diagonal(found.shares).min() >= 0.45 - 1e-9
    assert found.cost == pytest.approx(best, abs=CLOSE)
    assert found.bound <= best + 1e-12


def test_a_margin_is_kept_and_the_bound_is_that_without_it() -> None:
    uncertain = uncertain_of(1, 2, 4, "lift")
    problem = problem_of(uncertain, 1, keep=True)
    margin = 0.01 * uncertain.room
    whole = robust_plan(problem, uncertain)
    found = robust_plan(problem, uncertain, margin=margin)
    masses = problem.masses @ found.shares
    columns = (found.shares * problem.masses[:, None] / masses).T
    assert uncertain.excess(columns).max() <= -margin + 1e-9
    assert found.bound <= whole.cost + 1e-9 < found.cost
    # For columns of mass 1 the rows with the margin are a - margin masses.
    best = optimum(problem, all_rows(uncertain) - margin * problem.masses)
    assert found.cost == pytest.approx(best, abs=CLOSE)


def test_rough_duals_prove_a_bound_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the duals are, the bound is below the optimum."""
    from solvers.assignment.counterpart import RobustCounterpart

    uncertain = uncertain_of(4, 3, 4, "lift")
    problem = problem_of(uncertain, 4, keep=True)
    best = robust_plan(problem, uncertain)
    exact = RobustCounterpart.inequalities_of
    generator = np.random.default_rng(0)
    for noise in (1e-6, 1e-3, 1.0, np.nan):

        def rough(
            program: RobustCounterpart, dual: Array, noise: float = noise
        ) -> tuple[Array, NDArray[np.intp], Array, Array]:
            return exact(program, dual + noise * generator.normal(size=len(dual)))

        monkeypatch.setattr(RobustCounterpart, "inequalities_of", rough)
        found = robust_plan(problem, uncertain)
        assert found.bound <= best.cost
        assert found.cost == pytest.approx(best.cost, abs=CLOSE)


def test_without_time_there_is_an_assignment_where_nothing_else_restricts() -> None:
    uncertain = uncertain_of(5, 2, 6, "lift")
    problem = problem_of(uncertain, 5, keep=True)
    found = robust_plan(problem, uncertain, end=-math.inf)
    check(found, problem, uncertain)
    assert found.method == "own symbols mixed with all"
    with pytest.raises(BackendFailure, match="no assignment was found in time"):
        robust_plan(
            problem_of(uncertain, 5, keep=True, floor=0.1), uncertain, end=-math.inf
        )


def test_rounds_that_close_nothing_are_followed_by_the_counterpart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that is too large is left out, and rounds that close the gap go on."""
    uncertain = uncertain_of(6, 2, 12, "lift")
    problem = problem_of(uncertain, 6, keep=True)
    at_once = assign_uncertain(problem, uncertain)
    assert at_once.method == "robust counterpart"
    assert at_once.cost - at_once.bound <= CLOSE

    monkeypatch.setattr(robust, "SMALL_COUNTERPART", 0)
    steps: list[int] = []

    def count(_cost: float, _bound: float, rounds: int) -> None:
        steps.append(rounds)

    monkeypatch.setattr(robust, "CLOSING", 0.0)
    found = assign_uncertain(problem, uncertain, progress=count)
    assert found.method == "robust counterpart"
    assert found.cost == pytest.approx(at_once.cost, abs=1e-7)
    # Two rounds, six more, and the counterpart.
    assert max(steps) == 9

    monkeypatch.setattr(robust, "CLOSING", 2.0)
    cut = assign_uncertain(problem, uncertain)
    assert cut.method == "simplex with rows found by sorting"
    assert cut.cost == pytest.approx(found.cost, abs=1e-6)

    monkeypatch.setattr(robust, "LARGEST_COUNTERPART", 0)
    alone = assign_uncertain(problem, uncertain)
    assert alone.method == "simplex with rows found by sorting"
    assert alone.cost == pytest.approx(found.cost, abs=1e-6)


@given(
    st.lists(st.floats(-1.0, 2.0), min_size=1, max_size=6),
    st.data(),
)
def test_amounts_are_moved_into_their_box(amounts: list[float], data) -> None:
    """0 <= filled <= width and sum filled = free, whatever the amounts were."""
    widths = data.draw(
        st.lists(st.floats(0.0, 1.0), min_size=len(amounts), max_size=len(amounts))
    )
    free = data.draw(st.floats(0.0, 1.0)) * sum(widths)
    moved = filled(np.array([amounts]), np.array([widths]), np.array([free]))[0]
    assert (moved >= 0.0).all()
    assert (moved <= np.array(widths) + 1e-15).all()
    assert moved.sum() == pytest.approx(free, abs=1e-12)
