"""Assignments of least cost: the bound for whatever multipliers, the two methods, what cannot be
done.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvers import EmptyPolytope, InvalidPolytope, Polytope
from solvers.assignment.assigning import assign
from solvers.assignment.assignment import (
    Assignment,
    Multipliers,
    lower_bound,
    reduced_costs,
)
from solvers.errors import BackendFailure

MASSES = np.array([0.4, 0.3, 0.2, 0.1])
ROWS = np.array([[1.5, 0.5, 1.2, 0.1], [0.5, 1.5, 0.8, 1.9]])
TRUTH = 1.0 - np.eye(4)


def _polytope(spread: float) -> Polytope:
    middle = ROWS @ MASSES
    return Polytope(ROWS, middle * (1.0 - spread), middle * (1.0 + spread))


def _problem(spread: float = 0.3, **options: object) -> Assignment:
    return Assignment(TRUTH, MASSES, _polytope(spread), **options)  # type: ignore[arg-type]


@given(
    st.lists(st.floats(0.0, 5.0), min_size=16, max_size=16),
    st.lists(st.floats(-5.0, 5.0), min_size=4, max_size=4),
    st.booleans(),
)
def test_any_multipliers_give_a_bound(
    rows: list[float], masses: list[float], keep: bool
) -> None:
    """lower_bound(nu, f) <= the optimum for all nu >= 0 and all f; and it never exceeds the same in
    fractions.
    """
    problem = _problem(keep=keep)
    found = Multipliers(np.array(rows).reshape(4, 4), np.array(masses))
    bound = lower_bound(problem, found)
    assert bound <= assign(problem, method="simplex").cost + 1e-12
    sides, offset, _ = problem.sides
    exact = Fraction(0)
    for x in range(4):
        reduced = [
            Fraction(TRUTH[x, y])
            - (Fraction(masses[y]) if keep else 0)
            - sum(
                Fraction(found.rows[i, y])
                * (Fraction(sides[i, x]) - Fraction(offset[i]))
                for i in range(4)
            )
            for y in range(4)
        ]
        exact += Fraction(MASSES[x]) * min(reduced)
        exact += Fraction(MASSES[x]) * Fraction(masses[x]) if keep else 0
    assert Fraction(bound) <= exact
    assert float(exact) - bound <= 1e-12


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("floor", [None, np.array([0.2, 0.0, 0.5, 0.1])])
def test_two_methods(keep: bool, floor: np.ndarray | None) -> None:
    allowed = np.ones((4, 4), dtype=bool)
    allowed[0, 3] = False
    problem = _problem(keep=keep, floor=floor, allowed=allowed)
    simplex, interior = (
        assign(problem, method=method) for method in ("simplex", "interior")
    )
    for found in (simplex, interior):
        assert found.cost - found.bound <= 1e-6
        np.testing.assert_allclose(found.shares.sum(axis=1), 1.0, atol=1e-12)
        assert found.shares[0, 3] == 0.0
        columns = (MASSES[:, None] * found.shares).T
        used = columns[columns.sum(axis=1) > 1e-6]
        assert (
            problem.columns.residual(used / used.sum(axis=1)[:, None]) <= 1e-9
        ).all()
        if keep:
            np.testing.assert_allclose(columns.sum(axis=1), MASSES, atol=1e-8)
        if floor is not None:
            assert (np.diagonal(found.shares) >= floor - 1e-9).all()
    assert simplex.cost == pytest.approx(interior.cost, abs=1e-6)


def test_a_limit_leaves_an_assignment_and_a_bound() -> None:
    seen: list[tuple[float, float, int]] = []
    found = assign(
        _problem(),
        method="interior",
        time_limit=0.0,
        progress=lambda *at: seen.append(at),
    )
    best = assign(_problem(), method="simplex")
    assert found.bound <= best.cost <= found.cost
    assert len(seen) == 1


@pytest.mark.parametrize("method", ["simplex", "interior"])
def test_no_assignment(method: str) -> None:
    with pytest.raises((EmptyPolytope, BackendFailure)):
        assign(_problem(0.1, floor=np.full(4, 0.99)), method=method)


def test_wrong_problems() -> None:
    with pytest.raises(InvalidPolytope, match="cost must be 4 x 4"):
        Assignment(np.zeros((3, 3)), MASSES, _polytope(0.1))
    with pytest.raises(InvalidPolytope, match="forbid pairs with `allowed`"):
        Assignment(np.full((4, 4), math.inf), MASSES, _polytope(0.1))


def test_reduced_costs_without_multipliers_are_the_costs() -> None:
    problem = _problem()
    nothing = Multipliers(np.zeros((4, 4)), np.zeros(4))
    np.testing.assert_allclose(reduced_costs(problem, nothing), TRUTH, atol=1e-13)
    assert -1e-13 <= lower_bound(problem, nothing) <= 0.0


def _many(seed: int, cost: str, **options: object) -> Assignment:
    """60 masses and rows that bound 4 images from both sides."""
    random = np.random.default_rng(seed)
    table = random.gamma(1.0, size=(4, 60)) * random.gamma(1.0, size=60)
    table /= table.sum()
    images = table / table.sum(axis=0) / table.sum(axis=1)[:, None]
    values = np.arange(60.0)
    costs = 1.0 - np.eye(60) if cost == "truth" else np.abs(values[:, None] - values)
    polytope = Polytope(images, np.full(4, math.exp(-0.5)), np.full(4, math.exp(0.5)))
    return Assignment(costs, table.sum(axis=0), polytope, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("way", "cost"),
    [
        ("keep", "distance"),
        ("floor", "truth"),
        pytest.param("free", "truth", marks=pytest.mark.slow),
        pytest.param("allowed", "truth", marks=pytest.mark.slow),
        # Costs and what a problem asks for have nothing to do with each other.
        pytest.param("free", "distance", marks=pytest.mark.slow),
        pytest.param("keep", "truth", marks=pytest.mark.slow),
        pytest.param("floor", "distance", marks=pytest.mark.slow),
        pytest.param("allowed", "distance", marks=pytest.mark.slow),
    ],
)
def test_few_pairs_of_each_column_find_the_optimum(
    monkeypatch: pytest.MonkeyPatch, cost: str, way: str
) -> None:
    """Columns that begin with a few pairs end with the cost of all pairs, and every bound on the
    way holds.
    """
    options: dict[str, dict[str, object]] = {
        "free": {},
        "keep": {"keep": True},
        "floor": {"floor": np.full(60, 0.2)},
        "allowed": {
            "allowed": np.eye(60, dtype=np.bool_)
            | (np.random.default_rng(2).random((60, 60)) < 0.8)
        },
    }
    problem = _many(1, cost, **options[way])
    optimum = assign(problem, method="simplex").cost
    monkeypatch.setattr("solvers.assignment.assigning.DENSE", 20)
    monkeypatch.setattr("solvers.assignment.assigning.FIRST", 4)
    monkeypatch.setattr("solvers.assignment.assigning.NEW", 4)
    bounds: list[tuple[float, float]] = []
    found = assign(
        problem, method="interior", gap=1e-4, progress=lambda *at: bounds.append(at[:2])
    )
    assert found.cost - found.bound <= 1e-4 * problem.spread()
    assert found.cost == pytest.approx(optimum, rel=2e-4)
    assert all(bound <= optimum + 1e-9 <= cost + 1e-6 for cost, bound in bounds)
    first = assign(problem, time_limit=0.0) if way in ("free", "keep") else found
    assert first.bound <= optimum + 1e-9
    assert first.cost >= optimum - 1e-6
    columns = first.shares * problem.masses[:, None]
    used = columns.sum(axis=0) > 1e-6 * problem.masses
    assert (
        problem.columns.excess((columns / columns.sum(axis=0))[:, used].T).max() <= 1e-6
    )


def test_few_pairs_prove_that_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("solvers.assignment.assigning.DENSE", 20)
    with pytest.raises(EmptyPolytope):
        assign(_many(1, "truth", floor=np.full(60, 0.99)), method="interior")
