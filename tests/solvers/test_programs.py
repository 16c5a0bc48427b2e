"""The master program: HiGHS and cvxpy solve the same one, warm or not, boxed or not, and admit
failure.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from solvers import BackendFailure, Points, programs
from solvers.programs import (
    FEASIBILITY,
    OTHER_WAYS,
    HighsMaster,
    MasterSolution,
    MasterStatus,
    PriceBox,
    Program,
    SparseRows,
    solve_program,
)
from tests.oracles.cvxpy_master import CvxpyMaster
from tests.profiles import scaled

MASTERS = (HighsMaster, CvxpyMaster)


def columns(seed: int, n: int, k: int) -> tuple[Points, np.ndarray, np.ndarray]:
    """k random points with the target among them, their entropies, and the target."""
    rng = np.random.default_rng(seed)
    target = rng.dirichlet(np.ones(n))
    dense = np.vstack([target, rng.dirichlet(np.full(n, 0.3), size=k)])
    points = Points.from_dense(dense)
    return points, points.entropies(), target


def plain(points: Points, costs: np.ndarray, target: np.ndarray) -> float:
    return linprog(costs, A_eq=points.toarray().T, b_eq=target).fun


def boxed(
    points: Points, costs: np.ndarray, target: np.ndarray, box: PriceBox
) -> float:
    """max y.target with y.v <= cost for every column and y in the box."""
    ends = np.column_stack([box.lower, box.upper])
    return -linprog(-target, A_ub=points.toarray(), b_ub=costs, bounds=ends).fun


@pytest.mark.parametrize("Master", MASTERS)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 8), k=st.integers(0, 30))
@settings(max_examples=scaled(15))
def test_weights_and_prices_are_optimal(Master, seed, n, k):
    points, costs, target = columns(seed, n, k)
    master = Master(target)
    master.add(points, costs)
    found = master.solve(60.0)
    assert found.is_optimal
    assert found.value == pytest.approx(plain(points, costs, target), abs=1e-7)
    assert float(found.weights @ costs) == pytest.approx(found.value, abs=1e-7)
    assert found.value == pytest.approx(float(found.dual @ target), abs=1e-12)
    np.testing.assert_allclose(points.combine(found.weights), target, atol=1e-7)
    assert found.weights.min() >= 0.0
    assert (costs - points.dot(found.dual)).min() > -1e-7


@pytest.mark.parametrize("Master", MASTERS)
@pytest.mark.parametrize("boxed_first", [False, True])
def test_columns_can_be_deleted(Master, boxed_first):
    """The others are numbered anew, in their order, and the optimum is over them alone."""
    points, costs, target = columns(2, 6, 40)
    master = Master(target)
    master.add(points, costs)
    box = None
    if boxed_first:
        box = PriceBox(np.full(6, -5.0), np.full(6, 5.0))
    first = master.solve(60.0, box)
    # Columns in use, and every third of the others.
    kept = np.flatnonzero((first.weights > 0.0) | (np.arange(len(costs)) % 3 == 0))
    master.keep(kept)
    rest = points.take(kept)
    found = master.solve(60.0)
    assert found.is_optimal
    assert found.value == pytest.approx(plain(rest, costs[kept], target), abs=1e-7)
    np.testing.assert_allclose(rest.combine(found.weights), target, atol=1e-7)
    more = Points.units(range(6), 6)
    master.add(more, np.zeros(6))
    assert master.solve(60.0).value == pytest.approx(0.0, abs=1e-7)


def test_back_ends_agree():
    for seed in range(5):
        points, costs, target = columns(seed, 6, 40)
        values = []
        for Master in MASTERS:
            master = Master(target)
            master.add(points, costs)
            values.append(master.solve(60.0).value)
        assert values[0] == pytest.approx(values[1], abs=1e-7)


@pytest.mark.parametrize("Master", MASTERS)
def test_grows_by_columns_with_and_without_a_box(Master):
    """Whatever came before, a solve answers for the columns and the box of now."""
    points, costs, target = columns(0, 6, 60)
    rng = np.random.default_rng(0)
    master = Master(target)
    known = 0
    for more in (1, 20, 0, 20, 19):
        part = np.arange(known, known + more)
        master.add(points.take(part), costs[part])
        known += more
        seen = points.take(np.arange(known))
        for radius in (2.0, None, 0.3):
            box = None
            if radius is not None:  # hold some prices that no column contradicts
                center = rng.random(6)
                below = radius * (1.0 + rng.random(6))
                center += min(float((costs[:known] - seen.dot(center)).min()), 0.0)
                box = PriceBox(center - below, center + radius)
            found = master.solve(60.0, box)
            assert found.is_optimal
            if box is None:
                assert found.value == pytest.approx(
                    plain(seen, costs[:known], target), abs=1e-7
                )
                assert found.slack == pytest.approx(0.0, abs=1e-7)
                np.testing.assert_allclose(
                    seen.combine(found.weights), target, atol=1e-7
                )
            else:
                assert found.value == pytest.approx(
                    boxed(seen, costs[:known], target, box), abs=1e-6
                )
                assert (found.dual >= box.lower - 1e-6).all()
                assert (found.dual <= box.upper + 1e-6).all()
                missing = np.abs(target - seen.combine(found.weights)).sum()
                assert missing <= found.slack + 1e-6


@pytest.mark.parametrize("Master", MASTERS)
def test_infeasible_program_fails(Master):
    """The target lies outside the hull of the columns."""
    master = Master(np.array([0.5, 0.5]))
    master.add(Points.units([0], 2), np.zeros(1))
    found = master.solve(60.0)
    assert found.status is MasterStatus.FAILED
    assert not found.is_optimal


@pytest.mark.parametrize("Master", MASTERS)
def test_no_columns_at_all(Master):
    assert not Master(np.array([0.5, 0.5])).solve(60.0).is_optimal


@pytest.mark.parametrize("Master", MASTERS)
def test_no_time(Master):
    points, costs, target = columns(1, 40, 3000)
    master = Master(target)
    master.add(points, costs)
    assert master.solve(0.0).status is MasterStatus.TIME_LIMIT
    assert master.solve(60.0).is_optimal  # the limit is one of each solve


def test_rare_coordinates_are_not_dropped():
    """HiGHS would ignore entries below 1e-9 by default, and with them the rarest symbols."""
    target = np.array([1e-9, 0.5, 0.5 - 1e-9])
    dense = np.array(
        [
            [2e-10, 0.4, 0.6 - 2e-10],
            [5e-10, 0.9, 0.1 - 5e-10],
            [1.0, 0.0, 0.0],
            [0.0, 0.0, 1.0],
        ]
    )
    points = Points.from_dense(dense)
    master = HighsMaster(target)
    master.add(points, np.array([0.1, 0.2, 0.0, 0.0]))
    found = master.solve(60.0)
    assert found.is_optimal
    np.testing.assert_allclose(found.weights @ dense, target, rtol=1e-6, atol=1e-16)


def test_a_nearly_singular_basis_still_gives_a_decomposition():
    """Points within 1e-9 of a plane that holds the target: weights of -1e-7 would pass for
    feasible.
    """
    rng = np.random.default_rng(0)
    for _ in range(10):
        target = rng.dirichlet(np.ones(5))
        direction = rng.standard_normal(5)
        dense = rng.dirichlet(np.ones(5), size=40)
        shift = (dense - target) @ direction
        dense = np.abs(
            dense - np.outer(shift * (1.0 - 1e-9), direction) / (direction @ direction)
        )
        points = Points.from_dense(np.vstack([target, dense]))
        costs = np.concatenate([[2.0], rng.random(40)])
        master = HighsMaster(target)
        master.add(points, costs)
        found = master.solve(60.0)
        assert found.is_optimal
        assert np.abs(points.combine(found.weights) - target).max() < 1e-9


def test_what_counts_as_optimal():
    good = {
        "status": MasterStatus.OPTIMAL,
        "weights": np.ones(2),
        "dual": np.zeros(2),
        "value": 0.0,
        "slack": 0.0,
        "residual": 0.0,
    }
    assert MasterSolution(**good).is_optimal
    lies = [
        {"status": MasterStatus.FAILED},
        {"status": MasterStatus.TIME_LIMIT},
        {"weights": np.array([np.nan, 1.0])},
        {"dual": np.array([np.inf, 0.0])},
        {"residual": 2.0 * FEASIBILITY},
        {"residual": np.nan},
    ]
    for lie in lies:
        assert not MasterSolution(**{**good, **lie}).is_optimal


SPOILED = {
    "failed": {"status": MasterStatus.FAILED},
    "failed on a feasible point": {"status": MasterStatus.FAILED, "residual": 0.0},
    "prices of nothing": {"dual": np.full(6, np.nan)},
    "not the point": {"residual": 1e-3},
}


@pytest.mark.parametrize("spoiled", SPOILED.values(), ids=SPOILED)
@pytest.mark.parametrize("boxed", [False, True])
@pytest.mark.parametrize("failures", range(len(OTHER_WAYS) + 2))
def test_every_other_way_is_taken_where_those_before_it_fail(
    monkeypatch, failures, boxed, spoiled
):
    """A way is tried from nothing, with its options; the next solve has the usual ones; at the end
    it is admitted.
    """
    points, costs, target = columns(3, 6, 40)
    master = HighsMaster(target)
    master.add(points, costs)
    box = PriceBox(np.full(6, -9.0), np.full(6, 9.0)) if boxed else None
    expected = master.solve(60.0, box).value
    honest = HighsMaster._run
    ways = []

    def run(self):
        names = {name for way in OTHER_WAYS for name in way}
        ways.append({name: self._highs.getOptionValue(name)[1] for name in names})
        found = honest(self)
        return replace(found, **spoiled) if len(ways) <= failures else found

    monkeypatch.setattr(HighsMaster, "_run", run)
    found = master.solve(60.0, box)
    assert len(ways) == min(failures, len(OTHER_WAYS)) + 1
    for used, way in zip(ways[1:], OTHER_WAYS, strict=False):
        assert used.items() >= way.items()
    assert found.is_optimal == (failures <= len(OTHER_WAYS))
    if found.is_optimal:
        assert found.value == pytest.approx(expected, abs=1e-7)
    ways.clear()
    failures = 0
    assert master.solve(60.0, box).value == pytest.approx(expected, abs=1e-7)
    assert ways[0]["solver"] == "simplex"


def test_the_interior_point_answers_where_no_simplex_can():
    """HiGHS itself fails: no simplex may take a single step, with whatever scaling."""
    points, costs, target = columns(3, 20, 200)
    master = HighsMaster(target)
    master.add(points, costs)
    master._highs.setOptionValue("simplex_iteration_limit", 0)
    assert master._run().status is MasterStatus.FAILED
    found = master.solve(60.0)
    assert found.is_optimal
    assert found.value == pytest.approx(plain(points, costs, target), abs=1e-7)
    np.testing.assert_allclose(points.combine(found.weights), target, atol=1e-9)


def packing(seed, variables, limits, share, *, integer):
    """The largest total of variables under limits on random sums of them, as shares of these."""
    rng = np.random.default_rng(seed)
    rows = SparseRows()
    for weights in rng.integers(1, 100, (limits, variables)).astype(float):
        rows.add(range(variables), weights.tolist(), 0.0, share * weights.sum())
    return Program(
        -rng.integers(1, 100, variables).astype(float),
        np.zeros(variables),
        np.ones(variables),
        rows,
        np.ones(variables, np.bool_) if integer else None,
    )


@pytest.mark.parametrize(
    "program",
    [
        packing(0, 800, 600, 0.02, integer=False),
        packing(0, 120, 40, 0.5, integer=True),
    ],
    ids=["linear", "integer"],
)
def test_a_limit_is_one_of_processor_time(monkeypatch, program):
    # As on a machine that is believed to be busy: HiGHS may take so long by the clock.
    monkeypatch.setattr(programs, "passing", lambda _: 60.0)
    before = time.process_time()
    # A point that is feasible is an answer, too; a linear program may have none by then.
    with suppress(BackendFailure):
        assert not solve_program(program, time_limit=0.05).optimal
    assert time.process_time() - before < 1.0
