"""The global minimum of a separable concave function, against every vertex in exact arithmetic.

A bound that fails by one unit in the last place fails these tests: truth is a ball of 160 bits.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers import (
    ConcaveSearch,
    EmptyPolytope,
    InvalidOption,
    InvalidPolytope,
    Points,
    Polytope,
    SearchStatus,
    lower_envelope,
    vertices,
)
from tests.oracles.concave_minimum import PRECISION, ConcaveMinimum, concave_minimum
from tests.profiles import scaled
from tests.solvers.reference import (
    INF,
    NOTIONS,
    TABLES,
    Exact,
    exact,
    hard_search,
    plain_minimum,
    random_prices,
    random_table,
    ratio_polytope,
    strange_polytope,
    table_polytope,
)


def assert_minimum(
    polytope: Polytope, truth: Exact, prices: np.ndarray, found: ConcaveMinimum
) -> None:
    """A member, worth what is said, and no bound above the truth."""
    least = truth.minimum(prices)
    size = max(1.0, float(np.abs(polytope.rows).max(initial=0.0)))
    assert found.bound <= found.value
    assert found.bound == -INF or bool(found.bound <= least)
    assert polytope.residual(found.point)[0] <= 1e-9 * size
    assert found.value >= float(least.mid()) - 1e-6 * max(
        1.0, float(np.abs(prices).max())
    )
    assert found.gap == found.value - found.bound


@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize("kind", TABLES)
def test_lift_tables(kind, notion):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        polytope, _ = table_polytope(
            rng, kind, notion, int(rng.integers(2, 4)), int(rng.integers(2, 7))
        )
        truth = exact(polytope)
        prices = random_prices(rng, polytope.n)
        found = concave_minimum(polytope, prices, tolerance=1e-7)
        assert_minimum(polytope, truth, prices, found)
        if found.status is SearchStatus.DONE:
            assert found.is_optimal(1e-7)
        else:  # a lift of 1e6 leaves doubles no more than this
            assert kind in ("rare", "near-tied")
            assert found.status is PRECISION
            assert found.is_optimal(1e-5)


@given(seed=st.integers(0, 10**6), tolerance=st.sampled_from([1e-9, 1e-6, 1e-2]))
@settings(max_examples=scaled(150))
def test_rows_of_any_size_sign_and_width(seed, tolerance):
    rng = np.random.default_rng(seed)
    polytope, _ = strange_polytope(rng)
    truth = exact(polytope)
    prices = random_prices(rng, polytope.n)
    try:
        found = concave_minimum(polytope, prices, tolerance=tolerance)
    except EmptyPolytope:
        assert not truth.points
        return
    if truth.points:
        assert_minimum(polytope, truth, prices, found)
        assert found.status in (SearchStatus.DONE, PRECISION)
        assert (found.gap <= tolerance) == (found.status is SearchStatus.DONE)
        assert found.gap <= tolerance + 1e-6


@pytest.mark.parametrize("workers", [1, 2])
def test_stopped_after_any_number_of_nodes(workers):
    """The bound is valid at every moment, and ends where an unlimited search ends."""
    polytope, target = table_polytope(np.random.default_rng(3), "random", "both", 3, 7)
    polytope = Polytope(polytope.rows, np.full(3, 0.7), np.full(3, 1.3))
    truth = exact(polytope)
    prices = lower_envelope(polytope, target, method="columns", gap=1e-4).dual
    bounds = []
    for limit in range(0, 400):
        found = concave_minimum(
            polytope, prices, tolerance=1e-9, node_limit=limit, workers=workers
        )
        assert_minimum(polytope, truth, prices, found)
        bounds.append(found.bound)
        if found.status is SearchStatus.DONE:
            break
        assert found.status is SearchStatus.NODE_LIMIT
        assert limit <= found.counts.nodes < limit + workers
    assert found.status is SearchStatus.DONE
    assert found.gap <= 1e-9
    assert len(bounds) > 10
    # A single tree never loses what it has proven, but for the tolerance once a better point is known.
    assert workers > 1 or np.diff(bounds).min() >= -1e-9


def test_no_time_at_all():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        polytope, _ = table_polytope(rng, "random", "both", 3, 6)
        truth = exact(polytope)
        prices = random_prices(rng, 6)
        found = concave_minimum(polytope, prices, time_limit=0.0)
        assert found.status is SearchStatus.TIME_LIMIT
        assert found.counts.nodes == 0
        assert_minimum(polytope, truth, prices, found)


def test_memory_limit():
    """What is allowed at the least is the memory of 1000 boxes, and open nodes, of which a box may
    have many, count.
    """
    polytope, prices = hard_search()
    found = concave_minimum(
        polytope, prices, tolerance=1e-9, memory_limit=1, time_limit=20.0
    )
    assert found.status is SearchStatus.MEMORY_LIMIT
    search = ConcaveSearch(polytope, memory_limit=1)
    how = {"cutoff": INF, "tolerance": 1e-9, "slack": 0.0, "column_cutoff": -INF}
    assert search.run(prices, **how).status is SearchStatus.MEMORY_LIMIT
    (_, nodes, *_, boxes), box, node = (
        search._kernels[0].state(),
        10 * 60 + 2 * 13 + 64,
        2 * 32,
    )
    assert nodes > 10 * boxes
    assert 0.9 * 1000 * box < boxes * box + nodes * node < 1.1 * 1000 * box
    longer = concave_minimum(
        polytope, prices, tolerance=1e-9, node_limit=2 * found.counts.nodes
    )
    assert found.bound < longer.value
    assert found.bound <= longer.bound


def test_time_limit_in_the_middle_of_a_search():
    polytope, prices = hard_search()
    best = concave_minimum(polytope, prices, tolerance=1e-9, node_limit=3000)
    for limit in (0.001, 0.01):
        found = concave_minimum(polytope, prices, tolerance=1e-9, time_limit=limit)
        assert found.status is SearchStatus.TIME_LIMIT
        assert found.bound < best.value
        assert found.gap > 0.0


@pytest.mark.parametrize("method", ["descend", "walk"])
def test_a_local_search_takes_no_further_step_after_the_end(method):
    """With 300 rows a single one took 5 s of a limit of 2 s."""
    polytope, prices = hard_search()
    n = len(prices)
    center = np.full(n, 1.0 / n)
    kernel = ConcaveSearch(polytope)._kernels[0]

    def programs(**limits):
        kernel.start(prices, -INF, 1e-9, 0.0, INF, 1000, 1000, **limits)
        before = kernel.state()[4]
        if method == "descend":
            kernel.descend(center, 0.5, 0, n, 1e3)
        else:
            kernel.walk(center, 1, 0, 1, 1e3)
        return kernel.state()[4] - before

    assert programs() == programs(time_left=INF) > 3
    # A walk begins and ends with such a search.
    assert programs(time_left=0.0) == (1 if method == "descend" else 2)


def test_the_same_twice():
    rng = np.random.default_rng(1)
    polytope, _ = table_polytope(rng, "random", "both", 5, 25)
    prices = rng.random(25) + 1.0
    for workers in (1, 2):
        first = concave_minimum(polytope, prices, workers=workers)
        second = concave_minimum(polytope, prices, workers=workers)
        np.testing.assert_array_equal(first.point, second.point)
        assert (first.value, first.bound, first.counts) == (
            second.value,
            second.bound,
            second.counts,
        )


def test_two_workers_find_what_one_finds():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        polytope, _ = table_polytope(
            rng, "random", str(rng.choice(["both", "ratio"])), 3, 6
        )
        truth = exact(polytope)
        prices = random_prices(rng, 6)
        found = concave_minimum(polytope, prices, workers=2, tolerance=1e-8)
        assert_minimum(polytope, truth, prices, found)
        assert found.is_optimal(1e-8)


def test_a_plain_branch_and_bound_agrees_where_vertices_are_many():
    for seed in range(2):
        rng = np.random.default_rng(seed)
        p = random_table(rng, "random", 4, 14)
        rows = p / p.sum(axis=0) / p.sum(axis=1, keepdims=True)
        polytope = Polytope(rows, np.full(4, 0.6), np.full(4, 1.6))
        prices = rng.random(14) * 0.5 + 1.0
        plain = plain_minimum(polytope, prices, 1e-5)
        found = concave_minimum(polytope, prices, tolerance=1e-5)
        assert found.value == pytest.approx(plain, abs=1.1e-5)
        assert found.bound <= plain + 1e-9


def test_points_of_local_searches_meet_their_rows():
    """Basic values that are huge on the way lose digits: one in three of these points missed a row
    by up to 3e-5.
    """
    rng = np.random.default_rng(0)
    table = rng.dirichlet(np.full(1000, 0.3), 5)
    p = table.sum(axis=0) / 5.0
    polytope = Polytope(table / p, np.full(5, np.exp(-1.0)), np.full(5, np.exp(1.0)))
    how = {
        "tolerance": 1e-3,
        "slack": 0.1,
        "cutoff": -INF,
        "column_cutoff": INF,
        "enough": 0,
    }
    found = ConcaveSearch(polytope).run(np.zeros(1000), center=p, **how)
    assert len(found.points) > 500
    assert polytope.residual(found.points.toarray()).max() <= 1e-11


@given(seed=st.integers(0, 10**6))
@settings(max_examples=scaled(30), deadline=None)
def test_walks_end_where_no_neighbour_is_cheaper(seed):
    """From every vertex to a vertex that costs no more; from the cheapest one nowhere."""
    rng = np.random.default_rng(seed)
    polytope, _ = table_polytope(rng, "random", "both", 3, 12)
    prices = random_prices(rng, 12)
    corners = vertices(polytope).points
    how = {
        "tolerance": 1e-3,
        "slack": 0.1,
        "cutoff": -INF,
        "column_cutoff": INF,
        "enough": 0,
    }
    search = ConcaveSearch(polytope)

    def cost(points: Points) -> float:
        return float((points.entropies() - points.dot(prices)).min(initial=INF))

    costs = Points.from_dense(corners).entropies() - corners @ prices
    for start in np.argsort(costs)[:: max(1, len(costs) // 5)]:
        found = search.run(prices, walk=Points.from_dense(corners[start]), **how).points
        assert costs.min() - 1e-9 <= cost(found) <= costs[start] + 1e-9
        assert polytope.residual(found.toarray()).max() <= 1e-11


def test_walks_go_on_where_linearisation_ends():
    """A vertex that is least for its own slopes may have cheaper neighbours: between two a concave
    cost rises first.
    """
    rng = np.random.default_rng(1)
    gained = 0
    stuck = 0
    for _ in range(10):
        polytope, _ = table_polytope(rng, "random", "both", 3, 12)
        prices = random_prices(rng, 12)
        corners = vertices(polytope).points
        how = {
            "tolerance": 1e-3,
            "slack": 0.1,
            "cutoff": -INF,
            "column_cutoff": INF,
            "enough": 0,
        }
        search = ConcaveSearch(polytope)
        costs = Points.from_dense(corners).entropies() - corners @ prices
        slopes = -np.log(np.maximum(corners, 1e-9)) - prices
        ends = (slopes @ corners.T).min(axis=1) >= (slopes * corners).sum(axis=1) - 1e-9
        for place in np.flatnonzero(ends & (costs > costs.min() + 1e-6)):
            found = search.run(
                prices, walk=Points.from_dense(corners[place]), **how
            ).points
            gained += (
                float((found.entropies() - found.dot(prices)).min())
                < costs[place] - 1e-6
            )
            stuck += 1
    assert stuck > 100
    assert gained > stuck // 2


def test_equal_columns_share_one_price():
    """Copies of columns, with other prices, cost what the best priced copy costs."""
    rng = np.random.default_rng(5)
    polytope, _ = table_polytope(rng, "random", "both", 3, 5)
    prices = rng.random(5)
    alone = concave_minimum(polytope, prices, tolerance=1e-10)
    order = rng.permutation(np.repeat(np.arange(5), 4))
    bonus = np.where(np.arange(20) % 3 == 0, 0.0, rng.random(20))
    best = np.array([bonus[order == j].min() for j in range(5)])
    copies = Polytope(polytope.rows[:, order], polytope.lower, polytope.upper)
    found = concave_minimum(
        copies, prices[order] - (bonus - best[order]), tolerance=1e-10
    )
    assert found.value == pytest.approx(alone.value, abs=1e-10)
    assert found.counts == alone.counts
    assert copies.residual(found.point)[0] < 1e-12


def test_auxiliary_variables_describe_the_same_set():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        polytope = ratio_polytope(rng.random((3, 6)) + 0.1, 1.5)
        prices = random_prices(rng, 6)
        with_auxiliary = concave_minimum(polytope, prices, tolerance=1e-9)
        without = concave_minimum(polytope.explicit, prices, tolerance=1e-9)
        assert with_auxiliary.value == pytest.approx(without.value, abs=2e-9)


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1e3, 1e6])
def test_scale_of_the_rows_is_no_matter(scale):
    rng = np.random.default_rng(2)
    polytope, _ = table_polytope(rng, "random", "both", 3, 6)
    prices = rng.random(6) * 2.0
    truth = exact(polytope).minimum(prices)
    scales = np.array([1.0, scale, 1.0])
    scaled = Polytope(
        polytope.rows * scales[:, None],
        polytope.lower * scales,
        polytope.upper * scales,
    )
    found = concave_minimum(scaled, prices, tolerance=1e-9)
    assert found.status is SearchStatus.DONE
    assert found.value == pytest.approx(float(truth.mid()), abs=1e-8)
    assert bool(found.bound <= exact(scaled).minimum(prices))


def test_one_symbol():
    found = concave_minimum(Polytope([[2.0]], [1.0], [3.0]), [0.25])
    assert (found.point.tolist(), found.value) == ([1.0], -0.25)
    assert found.is_optimal(1e-6)


def test_no_rows():
    """The whole simplex: the minimum is the best unit vector."""
    found = concave_minimum(Polytope(np.zeros((0, 4)), [], []), [0.1, 0.4, 0.3, 0.2])
    assert found.point.tolist() == [0.0, 1.0, 0.0, 0.0]
    assert found.is_optimal(1e-6)


def test_a_single_point():
    """As many equations as coordinates: nothing is left to choose."""
    rows = np.array([[0.25, 0.5, 0.75], [1.0, 0.0, 0.0]])
    point = np.array([0.25, 0.5, 0.25])
    w = rows @ point
    polytope = Polytope(rows, w, w)
    found = concave_minimum(polytope, np.zeros(3), tolerance=1e-9)
    np.testing.assert_allclose(found.point, point, atol=1e-12)
    assert found.is_optimal(1e-9)
    assert bool(found.bound <= exact(polytope).minimum(np.zeros(3)))


def test_a_segment():
    """One equation in a triangle leaves a segment, whose ends are the vertices."""
    polytope = Polytope([[0.0, 0.5, 1.0]], [0.375], [0.375])
    prices = np.array([0.0, 0.0, 0.1])
    found = concave_minimum(polytope, prices, tolerance=1e-9)
    truth = exact(polytope)
    assert len(truth.points) == 2
    assert_minimum(polytope, truth, prices, found)
    assert found.is_optimal(1e-9)


@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        (
            [1.25],
            [2.0],
            r"row 0 cannot reach its interval \[1.25, 2.0\] for any v in the simplex",
        ),
        ([-1.0], [0.0625], r"row 0 cannot reach its interval"),
    ],
)
def test_a_row_out_of_reach(lower, upper, message):
    with pytest.raises(EmptyPolytope, match=message):
        concave_minimum(Polytope([[0.125, 1.0]], lower, upper), np.zeros(2))


def test_rows_that_contradict_each_other():
    polytope = Polytope([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [0.6, 0.6], [1.0, 1.0])
    with pytest.raises(
        EmptyPolytope, match="no point satisfies v >= 0, sum v = 1 and the rows"
    ):
        concave_minimum(polytope, np.zeros(3))


@pytest.mark.parametrize("gap", [1e-14, 1e-12, 1e-9, 1e-6])
def test_empty_by_a_hair(gap):
    """v_0 <= 1/2 and v_0 >= 1/2 + gap, said in two rows: empty, or else no more than rounding."""
    polytope = Polytope(
        [[1.0, 0.0, 0.0], [0.5, 0.0, 0.0]], [-INF, 0.25 + gap / 2], [0.5, INF]
    )
    assert not exact(polytope).points
    try:
        found = concave_minimum(polytope, np.zeros(3))
    except EmptyPolytope:
        return
    assert gap < 1e-11
    assert polytope.residual(found.point)[0] < 1e-11


def test_proven_empty_only_by_the_search():
    """Where a simplex vertex is feasible up to rounding, branching may still prove that nothing is."""
    rng = np.random.default_rng(0)
    raised = 0
    for _ in range(300):
        rows = rng.standard_normal((2, 4))
        v = rng.dirichlet(np.ones(4))
        w = rows @ v
        polytope = Polytope(
            np.vstack([rows, rows.sum(axis=0)]), [*w, w.sum() + 1e-12], [*w, INF]
        )
        try:
            found = concave_minimum(polytope, np.zeros(4))
        except EmptyPolytope:
            raised += 1
            continue
        assert np.isfinite(found.bound)
    assert raised > 0


@pytest.mark.parametrize("size", [1e8, 1e150, 1e300])
def test_huge_prices(size):
    """Overflow inside the bound proves nothing, and must not seem to."""
    polytope = Polytope([[0.0, 0.5, 1.0], [1.0, 0.25, 0.0]], [0.2, 0.2], [0.7, 0.9])
    prices = np.array([1.0, -1.0, 0.5]) * size
    found = concave_minimum(polytope, prices, node_limit=50)
    assert not np.isnan(found.bound)
    assert found.bound == -INF or bool(found.bound <= exact(polytope).minimum(prices))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tolerance": 0.0}, r"tolerance \(0.0\) must be a positive number"),
        ({"tolerance": np.nan}, r"tolerance \(nan\) must be a positive number"),
        ({"workers": 0}, r"workers \(0\) must be at least 1"),
        ({"memory_limit": 0}, r"memory_limit \(0\) must be a positive number of bytes"),
    ],
)
def test_options_out_of_range(options, message):
    with pytest.raises(InvalidOption, match=message):
        concave_minimum(Polytope([[1.0, 0.0]], [0.0], [0.5]), np.zeros(2), **options)


@pytest.mark.parametrize(
    ("prices", "message"),
    [
        ([0.0], r"prices must have one entry per coordinate \(2\), not shape \(1,\)"),
        ([[0.0, 0.0]], r"not shape \(1, 2\)"),
        ([0.0, np.nan], "prices has a NaN or infinite entry at 1"),
        ([-INF, 0.0], "prices has a NaN or infinite entry at 0"),
    ],
)
def test_prices_that_are_none(prices, message):
    with pytest.raises(InvalidPolytope, match=message):
        concave_minimum(Polytope([[1.0, 0.0]], [0.0], [0.5]), prices)


def test_unbounded_auxiliary_variable():
    polytope = Polytope([[1.0, 0.0]], [0.0], [INF], [[1.0]])
    with pytest.raises(
        InvalidPolytope, match="auxiliary variable 0 is not bounded by any row"
    ):
        concave_minimum(polytope, np.zeros(2))


def test_more_coordinates_than_the_kernel_numbers():
    polytope = Polytope(np.linspace(0.0, 1.0, 32800)[None, :], [0.1], [0.9])
    with pytest.raises(
        InvalidPolytope, match="32800 different columns and 2 rows are too many"
    ):
        concave_minimum(polytope, np.zeros(32800))
    tied = Polytope(
        np.repeat([[0.0, 1.0]], 16400, axis=0).T.reshape(1, -1), [0.1], [0.9]
    )
    assert concave_minimum(tied, np.zeros(32800)).is_optimal(1e-6)
