"""The lower convex envelope: methods, options, warm starts, limits, and what is refused."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from solvers import (
    EmptyPolytope,
    Envelope,
    EnvelopeStatus,
    InvalidOption,
    InvalidPolytope,
    OutsidePolytope,
    Points,
    Polytope,
    Progress,
    TooManyVertices,
    lower_envelope,
)
from solvers.enumeration import vertices
from solvers.envelope.polytope import _stars
from solvers.envelope.preparation import MOST_ROWS
from tests.oracles.cvxpy_master import CvxpyMaster
from tests.profiles import scaled
from tests.solvers.reference import (
    INF,
    exact,
    exact_value,
    lift_matrix,
    random_table,
    ratio_polytope,
    table_polytope,
)
from tests.solvers.test_polytope import with_deviation


def assert_envelope(found: Envelope, polytope: Polytope, target: np.ndarray) -> None:
    """A decomposition into members, worth what is said."""
    dense = found.points.toarray()
    assert found.weights.min() > 0.0
    assert found.weights.sum() == pytest.approx(1.0, abs=1e-8)
    np.testing.assert_allclose(found.weights @ dense, target, atol=1e-8)
    assert polytope.residual(dense).max() <= 1e-9 * max(
        1.0, float(np.abs(polytope.rows).max(initial=0.0))
    )
    assert found.value == pytest.approx(exact_value(found.weights, dense), abs=1e-12)
    assert found.bound <= found.value + 1e-8
    assert found.gap == found.value - found.bound


def lifts(s: int, n: int, epsilon: float, seed: int = 0) -> tuple[Polytope, np.ndarray]:
    p = random_table(np.random.default_rng(seed), "random", s, n)
    return Polytope(
        lift_matrix(p), np.full(s, np.exp(-epsilon)), np.full(s, np.exp(epsilon))
    ), p.sum(axis=0)


@pytest.mark.parametrize("method", ["auto", "vertices", "columns"])
def test_methods_agree_with_every_vertex(method):
    for seed in range(6):
        polytope, target = lifts(3, 7, 0.4, seed)
        found = lower_envelope(polytope, target, method=method, gap=1e-7)
        assert_envelope(found, polytope, target)
        truth = exact(polytope)
        assert found.status is EnvelopeStatus.OPTIMAL
        assert found.gap <= 1e-7
        assert found.value == pytest.approx(truth.envelope(target), abs=1.1e-7)
        assert bool(arb(found.bound) <= truth.dual_bound(found.dual, target))
        if method == "columns":
            assert (found.method, found.vertices, found.enumeration) == (
                "columns",
                0,
                None,
            )
        else:
            assert (found.method, found.vertices) == ("vertices", len(truth.points))


def test_auto_leaves_many_vertices_to_columns():
    few = lifts(3, 8, 0.5)
    many = lifts(6, 60, 0.5)
    assert lower_envelope(*few, gap=1e-3).method == "vertices"
    assert lower_envelope(*many, gap=1e-2).method == "columns"
    assert lower_envelope(*lifts(2, 8, 0.5)).method == "line"
    assert lower_envelope(*lifts(2, 8, 0.5), method="vertices").method == "vertices"


def test_too_many_rows_without_the_auxiliary_variables():
    """An l1 norm of 14 deviations would make 2^14 rows."""
    p = random_table(np.random.default_rng(0), "random", 14, 6)
    polytope = with_deviation(lift_matrix(p), p.sum(axis=1), 0.2)
    target = p.sum(axis=0)
    with pytest.raises(
        TooManyVertices,
        match=f"the polytope has more than {MOST_ROWS} rows without its auxiliary",
    ):
        lower_envelope(polytope, target, method="vertices")
    found = lower_envelope(polytope, target, gap=1e-5)
    assert found.method == "columns"
    assert_envelope(found, polytope, target)
    assert found.gap <= 1e-5


def test_auxiliary_variables_describe_the_same_set():
    for seed in range(4):
        p = random_table(np.random.default_rng(seed), "random", 3, 7)
        polytope = ratio_polytope(lift_matrix(p), 1.8)
        target = p.sum(axis=0)
        found = lower_envelope(polytope, target, method="columns", gap=1e-8)
        assert_envelope(found, polytope, target)
        without = lower_envelope(polytope.explicit, target, method="columns", gap=1e-8)
        assert found.value == pytest.approx(without.value, abs=2e-8)


def test_the_bound_is_one_for_the_relaxation():
    """Columns keep to the polytope; the bound holds for the wider set, and is sharp there."""
    for method in ("columns", "vertices"):
        narrow, target = lifts(3, 8, 0.4)
        wide, _ = lifts(3, 8, 0.5)
        found = lower_envelope(
            narrow, target, relaxation=wide, method=method, gap=1e-7, time_limit=5.0
        )
        own = lower_envelope(narrow, target, method=method, gap=1e-7)
        wider = lower_envelope(wide, target, method=method, gap=1e-7)
        assert_envelope(found, narrow, target)
        assert own.value - wider.value > 0.01
        assert found.bound <= wider.value
        assert own.value - 1e-9 <= found.value
        nearly = Polytope(
            narrow.rows, narrow.lower * (1.0 - 1e-9), narrow.upper * (1.0 + 1e-9)
        )
        close = lower_envelope(
            narrow, target, relaxation=nearly, method=method, gap=1e-6
        )
        assert close.gap <= 1e-6
        assert close.value == pytest.approx(own.value, abs=1e-6)


def test_everything_allowed_publishes_the_symbols():
    target = np.array([0.5, 0.3, 0.2])
    for method in ("auto", "columns"):
        found = lower_envelope(
            Polytope(np.eye(2, 3), [0.0, 0.0], [1.0, 1.0]), target, method=method
        )
        assert (found.status, found.value, found.bound) == (
            EnvelopeStatus.OPTIMAL,
            0.0,
            0.0,
        )
        np.testing.assert_allclose(found.points.combine(found.weights), target)


def test_no_rows_at_all():
    found = lower_envelope(Polytope(np.zeros((0, 3)), [], []), [0.5, 0.3, 0.2])
    assert (found.status, found.value, found.bound) == (
        EnvelopeStatus.OPTIMAL,
        0.0,
        0.0,
    )


def test_one_symbol():
    found = lower_envelope(Polytope([[2.0]], [1.0], [3.0]), [1.0])
    assert (found.status, found.value, found.bound) == (
        EnvelopeStatus.OPTIMAL,
        0.0,
        0.0,
    )
    assert found.weights.tolist() == [1.0]


@pytest.mark.parametrize("method", ["columns", "vertices"])
def test_a_set_of_one_point_releases_nothing(method):
    """Three equations leave the target alone: its cost is the envelope."""
    rows = np.array([[0.25, 0.5, 0.75], [1.0, 0.0, 0.0]])
    target = np.array([0.25, 0.5, 0.25])
    w = rows @ target
    found = lower_envelope(Polytope(rows, w, w), target, method=method, gap=1e-9)
    assert found.status is EnvelopeStatus.OPTIMAL
    assert found.value == pytest.approx(1.5 * np.log(2.0), abs=1e-9)


def test_a_symbol_without_mass():
    polytope, target = lifts(3, 6, 0.4)
    wider = Polytope(
        np.column_stack([polytope.rows, np.ones(3)]), polytope.lower, polytope.upper
    )
    found = lower_envelope(wider, np.append(target, 0.0), gap=1e-7)
    assert_envelope(found, wider, np.append(target, 0.0))
    assert found.value == pytest.approx(
        lower_envelope(polytope, target, gap=1e-7).value, abs=2e-7
    )


# ------------------------------------------------------------------ warm starts and back-ends


def test_a_warm_start_reaches_the_same_optimum_with_less_branching():
    polytope, target = lifts(5, 40, 0.5)
    neighbour, _ = lifts(5, 40, 0.55)
    before = lower_envelope(neighbour, target, method="columns", gap=1e-6)
    cold = lower_envelope(polytope, target, method="columns", gap=1e-6)
    warm = lower_envelope(
        polytope,
        target,
        method="columns",
        gap=1e-6,
        start=before.pool,
        dual=before.dual,
    )
    again = lower_envelope(
        polytope, target, method="columns", gap=1e-6, start=cold.pool, dual=cold.dual
    )
    for found in (warm, again):
        assert_envelope(found, polytope, target)
        assert found.gap <= 1e-6
        assert found.value == pytest.approx(cold.value, abs=1e-6)
    assert again.counts.nodes < cold.counts.nodes


def test_a_bad_start_is_harmless():
    """Points that are no members, or no probability vectors, are left out; a silly dual costs time
    only.
    """
    polytope, target = lifts(3, 7, 0.4)
    cold = lower_envelope(polytope, target, method="columns", gap=1e-7)
    member = cold.points.toarray()[0]
    bad = Points.from_dense(
        [
            [1.0, 0, 0, 0, 0, 0, 0],
            0.5 * member,
            0.0 * member,
            [-1.0, 2.0, 0, 0, 0, 0, 0],
            member,
        ]
    )
    for dual in (np.full(7, 1e6), np.full(7, -50.0), np.arange(7.0)):
        found = lower_envelope(
            polytope, target, method="columns", gap=1e-7, start=bad, dual=dual
        )
        assert_envelope(found, polytope, target)
        assert found.gap <= 1e-7
        assert found.value == pytest.approx(cold.value, abs=1e-7)


def test_negative_coordinates_are_no_members():
    """A point whose image is right and whose sum is one, but which is no probability vector."""
    polytope, target = lifts(3, 7, 0.4)
    kernel = np.linalg.svd(np.vstack([polytope.rows, np.ones(7)]))[2][-1]
    point = target + 2.0 * kernel / np.abs(kernel).max()
    assert point.min() < 0.0
    start = Points.from_dense(point)
    cold = lower_envelope(polytope, target, method="columns", gap=1e-7)
    found = lower_envelope(polytope, target, method="columns", gap=1e-7, start=start)
    assert_envelope(found, polytope, target)
    assert found.value == pytest.approx(cold.value, abs=1e-7)


@pytest.mark.parametrize("method", ["columns", "vertices"])
def test_cvxpy_agrees(method, monkeypatch):
    for seed in range(3):
        polytope, target = lifts(3, 8, 0.5, seed)
        highs = lower_envelope(polytope, target, method=method, gap=1e-6)
        with monkeypatch.context() as patch:
            patch.setattr("solvers.envelope.generation.HighsMaster", CvxpyMaster)
            other = lower_envelope(polytope, target, method=method, gap=1e-6)
        assert other.status is EnvelopeStatus.OPTIMAL
        assert other.value == pytest.approx(highs.value, abs=1.1e-6)
        truth = exact(polytope)
        assert bool(arb(other.bound) <= truth.dual_bound(other.dual, target))


def test_the_same_twice_and_with_two_workers():
    polytope, target = lifts(5, 40, 0.5)
    for workers in (1, 2):
        first, second = (
            lower_envelope(
                polytope, target, method="columns", gap=1e-5, workers=workers
            )
            for _ in range(2)
        )
        assert (first.value, first.bound, first.counts) == (
            second.value,
            second.bound,
            second.counts,
        )
        np.testing.assert_array_equal(first.dual, second.dual)
        np.testing.assert_array_equal(first.weights, second.weights)
        assert_envelope(first, polytope, target)
        assert first.gap <= 1e-5


@pytest.mark.parametrize("gap", [1e-12, 1e-16, 1e-300])
@pytest.mark.parametrize("method", ["columns", "vertices"])
def test_a_gap_below_double_precision_ends_soon(method, gap):
    """Columns that gain 1e-15 would go round for ever; the answer is the best of doubles, and says
    so.
    """
    for seed in (0, 3, 5):
        polytope, target = lifts(4, 8, 0.3, seed)
        found = lower_envelope(
            polytope, target, method=method, gap=gap, time_limit=60.0
        )
        assert_envelope(found, polytope, target)
        assert found.status is EnvelopeStatus.STALLED
        assert found.gap <= 1e-10
        assert found.rounds < 150


def test_progress_never_goes_back():
    """The bound rises, the value falls, and the first never passes the second."""
    polytope, target = lifts(8, 60, 0.4)
    seen: list[Progress] = []
    found = lower_envelope(
        polytope, target, method="columns", gap=1e-3, progress=seen.append
    )
    assert len(seen) > 3
    assert all(
        a.bound <= b.bound and a.value >= b.value for a, b in itertools.pairwise(seen)
    )
    assert all(p.bound <= found.value and p.value >= found.bound for p in seen)
    assert seen[-1].rounds <= found.rounds
    assert seen[-1].columns <= found.columns
    assert (found.columns, len(found.pool)) == (len(found.pool), found.columns)


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"method": "simplex"},
            "method 'simplex' is not known; use one of auto, vertices, columns",
        ),
        ({"gap": 0.0}, r"gap \(0.0\) must be a positive number"),
        ({"gap": np.nan}, r"gap \(nan\) must be a positive number"),
        ({"time_limit": -1.0}, r"time_limit \(-1.0\) must be zero or more seconds"),
        ({"time_limit": np.nan}, r"time_limit \(nan\) must be zero or more seconds"),
        ({"workers": 0}, r"workers \(0\) must be at least 1"),
        (
            {"memory_limit": -1},
            r"memory_limit \(-1\) must be a positive number of bytes",
        ),
    ],
)
@pytest.mark.parametrize("s", [2, 3])
def test_options_out_of_range(s, options, message):
    with pytest.raises(InvalidOption, match=message):
        lower_envelope(*lifts(s, 5, 0.4), **options)


@pytest.mark.parametrize(
    ("point", "message"),
    [
        ([0.5, 0.5], "point must be 3 finite numbers"),
        ([0.5, 0.5, np.nan], "point must be 3 finite numbers"),
        ([0.5, 0.5, INF], "point must be 3 finite numbers"),
        ([0.5, 0.5, 0.1], "point must be non-negative and sum to 1"),
        ([0.6, 0.5, -0.1], "point must be non-negative and sum to 1"),
    ],
)
def test_points_that_are_none(point, message):
    with pytest.raises(InvalidPolytope, match=message):
        lower_envelope(Polytope([[0.0, 1.0, 2.0]], [0.0], [2.0]), point)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"dual": [0.0, 0.0]},
            r"dual must have one entry per coordinate \(5\), not shape \(2,\)",
        ),
        (
            {"dual": [0.0, 0.0, np.nan, 0.0, 0.0]},
            "dual has a NaN or infinite entry at 2",
        ),
        ({"start": Points.units([0], 4)}, "start has points of length 4, not 5"),
    ],
)
@pytest.mark.parametrize("s", [2, 3])
def test_starts_of_another_problem(s, options, message):
    with pytest.raises(InvalidPolytope, match=message):
        lower_envelope(*lifts(s, 5, 0.4), **options)


@pytest.mark.parametrize("s", [2, 3])
def test_relaxations_that_are_none(s):
    polytope, target = lifts(s, 5, 0.4)
    other = Polytope(polytope.rows * 1.001, polytope.lower * 0.9, polytope.upper * 1.1)
    with pytest.raises(
        InvalidPolytope,
        match="relaxation must have the same rows and auxiliary columns",
    ):
        lower_envelope(polytope, target, relaxation=other)
    described = Polytope(polytope.rows, polytope.lower, polytope.upper, np.ones((s, 1)))
    with pytest.raises(
        InvalidPolytope,
        match="relaxation must have the same rows and auxiliary columns",
    ):
        lower_envelope(polytope, target, relaxation=described)
    for lower, upper in ((1.0 + 1e-15, 1.0), (1.0, 1.0 - 1e-15)):
        narrower = Polytope(
            polytope.rows, polytope.lower * lower, polytope.upper * upper
        )
        with pytest.raises(
            InvalidPolytope, match="relaxation must contain the polytope"
        ):
            lower_envelope(polytope, target, relaxation=narrower)


def test_empty_polytope():
    polytope = Polytope([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [0.6, 0.6], [1.0, 1.0])
    with pytest.raises(
        EmptyPolytope, match="no point satisfies v >= 0, sum v = 1 and the rows"
    ):
        lower_envelope(polytope, np.full(3, 1 / 3))
    with pytest.raises(EmptyPolytope, match="row 0 cannot reach its interval"):
        lower_envelope(Polytope([[1.0, 0.0]], [1.5], [2.0]), [0.5, 0.5])


def separates(error: OutsidePolytope, polytope: Polytope, point: np.ndarray) -> None:
    normal = np.asarray(error.normal)
    offset = error.offset
    assert float(normal @ point) > offset
    assert (vertices(polytope).points @ normal).max() <= offset + 1e-12


def test_a_point_outside_comes_with_an_inequality_that_separates():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        polytope, _ = lifts(3, 6, 0.4, seed)
        point = np.eye(6)[int(rng.integers(6))]
        if polytope.contains(point)[0]:
            continue
        with pytest.raises(
            OutsidePolytope, match="point is not in the polytope, so it has no"
        ) as caught:
            lower_envelope(polytope, point)
        separates(caught.value, polytope, point)


def test_a_point_outside_a_set_with_auxiliary_variables():
    outside = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        rows = lift_matrix(random_table(rng, "random", 3, 6))
        for polytope in (
            ratio_polytope(rows, 1.3),
            with_deviation(rows, np.full(3, 1 / 3), 0.1),
        ):
            point = rng.dirichlet(np.full(6, 0.2))
            if polytope.contains(point)[0]:
                continue
            outside += 1
            with pytest.raises(
                OutsidePolytope, match="point is not in the polytope"
            ) as caught:
                lower_envelope(polytope, point)
            separates(caught.value, polytope, point)
    assert outside > 10


def test_membership_is_generous_by_a_billionth_only():
    polytope = Polytope([[0.0, 1.0, 3.0]], [0.0], [1.0])
    for excess, inside in ((5e-10, True), (5e-9, False)):
        point = np.array([0.0, 1.0 - excess / 2, excess / 2])
        if inside:
            assert lower_envelope(polytope, point, gap=1e-6).gap <= 1e-6
        else:
            with pytest.raises(OutsidePolytope, match="row 0 gives 1"):
                lower_envelope(polytope, point)


# ------------------------------------------------------------------ known decompositions


@pytest.mark.parametrize("limit", [0.0, 1e-3, None])
def test_never_above_a_known_decomposition(limit):
    """Whatever the limit, and without any solve of the master."""
    polytope, target = lifts(5, 40, 0.5)
    good = lower_envelope(polytope, target, method="columns", gap=1e-3)
    poor = (np.ones(1), Points.from_dense(target))
    known = [poor, (good.weights, good.points)]
    found = lower_envelope(
        polytope,
        target,
        method="columns",
        gap=1e-3,
        time_limit=limit,
        incumbents=lambda: known,
    )
    assert_envelope(found, polytope, target)
    assert found.value <= good.value + 1e-12


def test_what_is_no_decomposition_is_no_incumbent():
    """Weights of another point, or points outside: only the members serve, as columns."""
    polytope, target = lifts(3, 7, 0.4)
    outside = (target, Points.units(np.arange(7), 7))
    half = (np.full(1, 0.5), Points.from_dense(target))
    found = lower_envelope(
        polytope, target, time_limit=0.0, incumbents=lambda: [outside, half]
    )
    assert_envelope(found, polytope, target)
    with pytest.raises(InvalidPolytope, match="start has points of length 2, not 7"):
        lower_envelope(
            polytope,
            target,
            method="columns",
            incumbents=lambda: [(np.ones(1), Points.units([0], 2))],
        )


@given(seed=st.integers(0, 10**6), m=st.integers(2, 6), n=st.integers(2, 12))
@settings(max_examples=scaled(60))
def test_what_completes_a_decomposition_has_the_point_inside(seed, m, n):
    """Members between the point and every unit vector: non-negative weights of them give the point."""
    rng = np.random.default_rng(seed)
    polytope, p = table_polytope(rng, "random", "both", m, n)
    stars = _stars(polytope, p)
    assume(len(stars) == n)  # else the point lies on the boundary
    assert polytope.residual(stars.toarray()).max() <= 1e-12
    assert nnls(stars.toarray().T, p)[1] < 1e-9


@pytest.mark.parametrize("scale", [1.0, 2.0**-45])
@given(seed=st.integers(0, 10**6), m=st.integers(2, 4), n=st.integers(2, 9))
def test_completions_are_members_up_to_the_rounding_of_each_row(scale, seed, m, n):
    """a.v <= b + n 2^-52 |a|.v in rationals, however small the row is: no absolute tolerance lets a
    column out.
    """
    polytope, p = table_polytope(np.random.default_rng(seed), "random", "both", m, n)
    polytope = Polytope(
        scale * polytope.rows, scale * polytope.lower, scale * polytope.upper
    )
    for v in _stars(polytope, p).toarray():
        exactly = [Fraction(x) for x in v]
        for row, low, high in zip(
            polytope.rows, polytope.lower, polytope.upper, strict=True
        ):
            terms = [Fraction(a) * x for a, x in zip(row, exactly, strict=True)]
            slack = n * Fraction(2) ** -52 * sum(map(abs, terms))
            assert low == -INF or sum(terms) >= Fraction(low) - slack
            assert high == INF or sum(terms) <= Fraction(high) + slack
        assert abs(sum(exactly) - 1) <= n * Fraction(2) ** -50
