"""The compiled kernel by itself: every number it calls a bound, against rational arithmetic; and
how it refuses.
"""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from flint import arb, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from solvers._kernel import Search
from solvers.sets.polytope import Polytope
from tests.oracles.vertices import rational
from tests.profiles import scaled
from tests.solvers.reference import NOTIONS, TABLES, exact, hard_search, table_polytope

OPTIMAL = 0
INFEASIBLE = 1
DONE, PAUSED, COLUMNS, MEMORY = range(4)


def kernel(polytope: Polytope) -> Search:
    """A search over rows without auxiliary variables, the sum row last, every bound finite."""
    full = np.vstack([polytope.rows, np.ones(polytope.n)])
    reach = np.abs(polytope.rows).max(axis=1, initial=0.0) + 1.0
    low = np.append(np.maximum(polytope.lower, -reach), 1.0)
    high = np.append(np.minimum(polytope.upper, reach), 1.0)
    return Search(full, low, high, low, high, np.ones(polytope.n), polytope.n)


def start(search: Search, prices: np.ndarray, **options) -> None:
    given = {
        "cutoff": np.inf,
        "tolerance": 1e-9,
        "slack": 0.0,
        "column_cutoff": np.inf,
        "max_columns": 1000,
        "box_limit": 10**6,
        **options,
    }
    search.start(prices, **given)


def points_of(search: Search, n: int) -> tuple[np.ndarray, np.ndarray]:
    count, indptr, indices, values, costs = search.columns()
    ends = np.frombuffer(indptr, np.int32)
    dense = np.zeros((count, n))
    for i in range(count):
        span = slice(ends[i], ends[i + 1])
        dense[i, np.frombuffer(indices, np.int32)[span]] = np.frombuffer(values)[span]
    return dense, np.frombuffer(costs)[:count]


def least_dot(points: list[tuple[fmpq, ...]], cost: np.ndarray) -> fmpq:
    c = [rational(x) for x in cost]
    return min(
        sum((a * b for a, b in zip(point, c, strict=True)), fmpq(0)) for point in points
    )


@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(TABLES),
    notion=st.sampled_from([n for n in NOTIONS if n != "ratio"]),
    size=st.sampled_from([1e-9, 1.0, 1e6]),
)
@settings(max_examples=scaled(150))
def test_bound_of_a_linear_program_is_not_above_its_rational_minimum(
    seed, kind, notion, size
):
    rng = np.random.default_rng(seed)
    polytope, _ = table_polytope(
        rng, kind, notion, int(rng.integers(2, 4)), int(rng.integers(2, 6))
    )
    points = exact(polytope).points
    cost = size * rng.standard_normal(polytope.n)
    status, bound, _ = kernel(polytope).linear(cost)
    least = least_dot(points, cost)
    assert bound == -np.inf or rational(bound) <= least
    if status == OPTIMAL and kind not in ("rare", "near-tied"):
        assert float(arb(least)) - bound <= 1e-11 * size


def test_upper_bounds_of_coordinates_hold_and_are_sharp():
    for seed in range(60):
        rng = np.random.default_rng(seed)
        kind = str(
            rng.choice(
                ["random", "sparse", "near-tied", "proportional", "small counts"]
            )
        )
        polytope, _ = table_polytope(rng, kind, "both", 3, 6)
        points = exact(polytope).points
        following, raw = kernel(polytope).tighten(0, 10.0)
        assert following == 6
        for j, top in enumerate(np.frombuffer(raw)):
            most = max(point[j] for point in points)
            assert rational(top) >= most
            assert kind == "near-tied" or top - float(arb(most)) < 1e-12


def test_upper_bounds_are_sharp_where_every_symbol_meets_many_rows():
    """All symbols but one cost nothing, so dual steps are tied; that must not go in circles."""
    rng = np.random.default_rng(0)
    table = rng.random((80, 60))
    lifts = table / table.sum(axis=0) / table.sum(axis=1, keepdims=True) * table.sum()
    low, high = np.exp([-0.5, 0.5])
    polytope = Polytope(lifts, np.full(80, low), np.full(80, high))
    _, raw = kernel(polytope).tighten(0, np.inf)
    for j, top in enumerate(np.frombuffer(raw)):
        most = linprog(
            -np.eye(60)[j],
            A_ub=np.vstack([lifts, -lifts]),
            b_ub=np.repeat([high, -low], 80),
            A_eq=np.ones((1, 60)),
            b_eq=[1.0],
        )
        assert top == pytest.approx(-most.fun, abs=1e-8)


def test_tightening_can_be_cut_into_slices():
    polytope, _ = table_polytope(np.random.default_rng(0), "random", "both", 4, 30)
    whole = kernel(polytope)
    sliced = kernel(polytope)
    _, expected = whole.tighten(0, 10.0)
    following = 0
    calls = 0
    while following < 30:
        following, raw = sliced.tighten(following, -1.0)
        calls += 1
    assert calls == 30  # one at least, whatever the clock says
    assert raw == expected


def test_a_search_in_slices_is_the_same_search():
    """Pausing after every node changes neither the tree nor what it finds."""
    polytope, _ = table_polytope(np.random.default_rng(1), "random", "both", 4, 20)
    prices = np.full(20, 1.5)
    whole = kernel(polytope)
    sliced = kernel(polytope)
    start(whole, prices)
    assert whole.run(10**9, 100.0, 10**6) == DONE
    start(sliced, prices)
    steps = 0
    while sliced.run(1, 100.0, 10**6) != DONE:
        steps += 1
    assert steps > 5
    assert sliced.state() == whole.state()
    assert sliced.columns() == whole.columns()


@pytest.mark.parametrize("parts", [2, 3])
def test_the_parts_of_a_tree_make_the_whole(parts):
    """The least of the parts' bounds is a bound, and the best of their points is the minimum."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        polytope, _ = table_polytope(rng, "random", "both", 3, 6)
        prices = rng.random(6) * 2.0
        truth = exact(polytope).minimum(prices)
        bounds = []
        values = []
        for part in range(parts):
            search = kernel(polytope)
            start(search, prices, part=part, parts=parts)
            assert search.run(10**9, 100.0, 10**6) == DONE
            bounds.append(search.state()[0])
            values += points_of(search, 6)[1].tolist()
        assert bool(arb(min(bounds)) <= truth)
        assert min(values) - min(bounds) <= 1.1e-9


def test_columns_are_members_below_the_cutoff_each_once():
    polytope, target = table_polytope(np.random.default_rng(2), "random", "both", 4, 25)
    prices = np.full(25, 2.5)
    search = kernel(polytope)
    start(search, prices, slack=0.5, tolerance=1e-3, column_cutoff=-0.5)
    assert search.descend(target, 0.5, 0, 1, 10.0) == 25
    search.run(200, 10.0, 10**6)
    dense, costs = points_of(search, 25)
    assert len(dense) > 5
    assert polytope.residual(dense).max() < 1e-11
    np.testing.assert_allclose(
        costs,
        -(
            np.where(dense > 0, dense * np.log(np.where(dense > 0, dense, 1.0)), 0.0)
        ).sum(axis=1)
        - dense @ prices,
    )
    assert costs.max() < -0.5
    distance = np.abs(dense[:, None, :] - dense[None, :, :]).max(axis=2)
    assert distance[~np.eye(len(dense), dtype=bool)].min() > 1e-9


def test_local_searches_take_turns_and_heed_the_clock():
    polytope, target = table_polytope(np.random.default_rng(2), "random", "both", 4, 25)
    search = kernel(polytope)
    start(search, np.full(25, 2.5), column_cutoff=-0.5, slack=0.5)
    assert search.descend(target, 0.5, 3, 10, 10.0) == 33
    assert search.descend(target, 0.5, 3, 10, -1.0) == 13
    assert len(points_of(search, 25)[0]) <= 4


def test_enough_columns_and_too_many_boxes_stop_a_search():
    polytope, prices = hard_search()
    search = kernel(polytope)
    start(search, prices, slack=0.1, column_cutoff=np.inf)
    assert search.run(10**9, 100.0, 3) == COLUMNS
    assert search.state()[2] == 3
    start(search, prices, box_limit=20)
    assert search.run(10**9, 100.0, 10**6) == MEMORY
    assert 1 < search.state()[6] <= 21
    assert search.run(0, 100.0, 10**6) == MEMORY
    start(search, prices)
    assert search.run(0, 100.0, 10**6) == PAUSED
    assert search.run(10**9, 0.0, 10**6) == PAUSED


def test_a_new_start_forgets_the_old_tree():
    polytope, _ = table_polytope(np.random.default_rng(2), "random", "both", 4, 20)
    fresh = kernel(polytope)
    used = kernel(polytope)
    start(used, np.full(20, 1.0))
    used.run(7, 100.0, 10**6)
    for search in (fresh, used):
        start(search, np.full(20, 1.5))
        assert search.run(10**9, 100.0, 10**6) == DONE
    assert used.state() == fresh.state()
    assert used.columns() == fresh.columns()


def test_an_empty_box_is_infeasible_with_a_proof():
    polytope = Polytope([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [0.75, 0.75], [1.0, 1.0])
    status, bound, _ = kernel(polytope).linear(np.zeros(3))
    assert (status, bound) == (INFEASIBLE, np.inf)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"matrix": np.zeros((2, 2))},
            "matrix must be a contiguous array of 6 float64",
        ),
        (
            {"matrix": np.zeros((2, 3), dtype=np.float32)},
            "matrix must be a contiguous array of 6 float64",
        ),
        (
            {"outer_upper": np.zeros(3)},
            "outer_upper must be a contiguous array of 2 float64",
        ),
        (
            {"inner_lower": np.zeros(2, dtype=np.int64)},
            "inner_lower must be a contiguous array of 2 float64",
        ),
        ({"n": 4}, "wrong sizes"),
        ({"n": 0}, "wrong sizes"),
        ({"outer_lower": np.zeros(0)}, "wrong sizes"),
    ],
)
def test_refuses_arrays_of_other_sizes(arguments, message):
    two = np.array([0.0, 1.0])
    good = {
        "matrix": np.ones((2, 3)),
        "outer_lower": two,
        "outer_upper": two,
        "inner_lower": two,
        "inner_upper": two,
        "upper": np.ones(3),
        "n": 3,
    }
    Search(**good)
    with pytest.raises(ValueError, match=message):
        Search(**{**good, **arguments})


def test_refuses_what_is_no_array():
    search = kernel(Polytope(np.ones((1, 3)), [0.0], [1.0]))
    with pytest.raises(TypeError):
        search.linear([0.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="y must be a contiguous array of 3 float64"):
        start(search, np.zeros(4))
    with pytest.raises((ValueError, BufferError)):
        search.linear(np.zeros((3, 2))[:, 0])
    with pytest.raises(
        ValueError, match="center must be a contiguous array of 3 float64"
    ):
        search.descend(np.zeros(2), 0.5, 0, 1, 1.0)
    with pytest.raises(
        ValueError, match="first must be at least 0 and step at least 1"
    ):
        search.descend(np.zeros(3), 0.5, 0, 0, 1.0)
    with pytest.raises(ValueError, match="first must be at least 0"):
        search.tighten(-1, 1.0)


def test_one_thread_at_a_time():
    """What Ctrl-C leaves at work in a thread must not be touched from another."""
    n = 3000
    search = kernel(
        Polytope(
            np.random.default_rng(0).random((12, n)), np.full(12, 0.3), np.full(12, 0.6)
        )
    )
    start(search, np.full(n, 3.0))
    center = np.full(n, 1.0 / n)
    outcomes = []
    worker = threading.Thread(
        target=lambda: outcomes.append(search.descend(center, 0.5, 0, 1, 0.5))
    )
    worker.start()
    time.sleep(0.1)
    calls = [
        lambda: search.run(1, 1.0, 1),
        lambda: start(search, np.zeros(n)),
        lambda: search.descend(np.zeros(n), 0.5, 0, 1, 1.0),
        lambda: search.tighten(0, 1.0),
        lambda: search.linear(np.zeros(n)),
        search.columns,
        search.state,
    ]
    for call in calls:
        with pytest.raises(
            RuntimeError, match="this search is still at work in another thread"
        ):
            call()
    worker.join()
    assert 0 < outcomes[0] < n
    assert search.state()[4] > 0
