"""The robust envelope against the polytope of all vertices of small boxes, and the search's own
promises.
"""

from __future__ import annotations

import time
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import nnls

from solvers import (
    BackendFailure,
    EnvelopeStatus,
    InvalidPolytope,
    Points,
    Polytope,
    RobustSearch,
    UncertainSet,
    lower_envelope,
    robust_envelope,
)
from solvers.assignment import robust
from solvers.assignment import simplex as assignment_simplex
from solvers.assignment.assignment import Assignment
from solvers.envelope import other_sets
from solvers.programs import HighsMaster
from solvers.sets.uncertain import Sets
from tests.profiles import scaled

Array = NDArray[np.float64]

GAP = 1e-5


def _vertices(lower: Array, upper: Array) -> list[Array]:
    found: list[Array] = []
    n = len(lower)
    for free in range(n):
        for ends in product(
            *((0.0,) if x == free else (lower[x], upper[x]) for x in range(n))
        ):
            p = np.array(ends)
            p[free] = 1.0 - p.sum()
            if lower[free] - 1e-12 <= p[free] <= upper[free] + 1e-12:
                found.append(p)
    return found


def _random(
    seed: int, size: int, n: int, width: float
) -> tuple[Array, Array, Array, Array, Array]:
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(n), size)
    shares = rng.dirichlet(np.full(size, 5.0))
    down, up = rng.random((2, size, n)) * width
    return (
        shares @ p,
        np.maximum(p - down, 0.0),
        np.minimum(p + up, 1.0),
        np.maximum(shares - 0.1 * width, 0.0),
        np.minimum(shares + 0.1 * width, 1.0),
    )


def _explicit(uncertain: UncertainSet) -> Polytope:
    """Every inequality of the set, one row for each choice of vertices."""
    boxes = [
        _vertices(a, b) for a, b in zip(uncertain.lower, uncertain.upper, strict=True)
    ]
    size = len(boxes)
    rows: list[Array] = []
    if np.isfinite(uncertain.ratio):
        for s, t in product(range(size), repeat=2):
            if s != t:
                rows += [p - uncertain.ratio * q for p in boxes[s] for q in boxes[t]]
    pis = _vertices(uncertain.share_lower, uncertain.share_upper)
    for chosen in product(*boxes):
        for pi in pis:
            mean = pi @ np.array(chosen)
            if np.isfinite(uncertain.most):
                rows += [p - uncertain.most * mean for p in chosen]
            if uncertain.least > 0.0:
                rows += [uncertain.least * mean - p for p in chosen]
    matrix = np.unique(np.array(rows) / uncertain.point, axis=0)
    return Polytope(matrix, np.full(len(matrix), -np.inf), np.zeros(len(matrix)))


SIDES = {
    "ratio": {"ratio": 2.0},
    "most": {"most": 1.5},
    "least": {"least": 0.6},
    "both": {"most": 1.7, "least": 0.5},
}


@pytest.mark.parametrize("sides", SIDES)
@pytest.mark.parametrize("seed", range(3))
def test_the_envelope_is_that_of_all_rows(sides: str, seed: int) -> None:
    """Bound and value enclose those of the polytope with every row listed, |S| = 2, n = 3 and 4."""
    uncertain = UncertainSet(*_random(seed, 2, 3 + seed % 2, 0.15), **SIDES[sides])
    listed = lower_envelope(_explicit(uncertain), uncertain.point, gap=GAP)
    found = robust_envelope(uncertain, gap=GAP)
    assert found.gap <= GAP
    assert found.bound <= listed.value + 1e-9
    assert listed.bound <= found.value + 1e-9


@pytest.mark.parametrize("sides", SIDES)
@settings(max_examples=scaled(8))
@given(seed=st.integers(0, 10**6))
def test_excess_is_that_of_the_worst_row(sides: str, seed: int) -> None:
    """The two sorts against the largest of all rows, where one fails; where none does, neither does
    the other.
    """
    uncertain = UncertainSet(*_random(seed, 2, 4, 0.3), **SIDES[sides])
    points = np.random.default_rng(seed).dirichlet(np.ones(4), 20)
    rows = _explicit(uncertain).rows
    failing = np.maximum((points @ rows.T).max(axis=1), 0.0)
    assert np.maximum(uncertain.excess(points), 0.0) == pytest.approx(failing, abs=1e-9)


@pytest.mark.parametrize("sides", SIDES)
def test_points_keep_the_margin_and_decompose_the_point(sides: str) -> None:
    uncertain = UncertainSet(*_random(5, 4, 12, 0.03), **SIDES[sides])
    found = robust_envelope(uncertain, margin=1e-6, gap=1e-3)
    assert uncertain.excess_of(found.points).max() <= -1e-6 + 1e-11
    assert found.points.combine(found.weights) == pytest.approx(
        uncertain.point, abs=1e-9
    )
    assert found.gap <= 1e-3


def test_a_wider_set_of_coefficients_costs_more() -> None:
    point, lower, upper, a, b = _random(1, 3, 8, 0.05)
    narrow = robust_envelope(
        UncertainSet(point, lower, upper, a, b, ratio=2.0), gap=1e-4
    )
    wide = robust_envelope(
        UncertainSet(point, lower * 0.8, np.minimum(upper * 1.2, 1.0), a, b, ratio=2.0),
        gap=1e-4,
    )
    assert wide.value >= narrow.bound - 1e-9


def test_nothing_known_is_the_staircase_of_local_differential_privacy() -> None:
    """Boxes [0, 1]: the set is max w <= e^eps min w, of which k-ary randomised response is a
    member.
    """
    n = 4
    e = np.e
    uncertain = UncertainSet(
        np.full(n, 0.25),
        np.zeros((2, n)),
        np.ones((2, n)),
        np.zeros(2),
        np.ones(2),
        ratio=e,
    )
    rows = [
        np.eye(n)[x] - e * np.eye(n)[z] for x in range(n) for z in range(n) if x != z
    ]
    listed = lower_envelope(
        Polytope(np.array(rows), np.full(12, -np.inf), np.zeros(12)),
        np.full(n, 0.25),
        gap=1e-6,
    )
    found = robust_envelope(uncertain, gap=1e-6)
    assert found.value == pytest.approx(listed.value, abs=3e-6)


def test_two_threads_and_a_warm_start_agree_with_one() -> None:
    uncertain = UncertainSet(*_random(2, 3, 15, 0.02), ratio=2.0)
    one = robust_envelope(uncertain, gap=1e-4)
    two = robust_envelope(uncertain, gap=1e-4, workers=2, start=one.pool, dual=one.dual)
    assert abs(one.value - two.value) <= 2e-4


def test_columns_of_another_length_are_refused() -> None:
    uncertain = UncertainSet(*_random(2, 3, 5, 0.02), ratio=2.0)
    with pytest.raises(InvalidPolytope, match=r"start has points of length 4, not 5"):
        robust_envelope(uncertain, start=Points.units([0], 4))


def test_limits_leave_a_valid_answer() -> None:
    uncertain = UncertainSet(*_random(3, 4, 40, 0.01), most=1.1, least=0.9)
    found = robust_envelope(uncertain, gap=1e-6, time_limit=0.0)
    assert found.bound <= found.value
    assert found.points.combine(found.weights) == pytest.approx(
        uncertain.point, abs=1e-9
    )


def test_randomised_responses_are_members_and_decompose() -> None:
    uncertain = UncertainSet(*_random(4, 3, 6, 0.05), ratio=1.5)
    units = uncertain.pulled(0.0)
    assert uncertain.excess(units).max() <= 1e-12
    assert nnls(units.T, uncertain.point)[1] <= 1e-12
    assert (np.diag(units) > uncertain.point).all()


@pytest.mark.parametrize(
    "kinds", [{"ratio": 1.5}, {"most": 1.4, "least": 0.5}, {"ratio": 1.6, "least": 0.7}]
)
@pytest.mark.parametrize("margin", [0.0, 1e-8])
def test_randomised_responses_are_as_far_as_they_can_be(
    kinds: dict[str, float], margin: float
) -> None:
    """As bisection finds them, on the whole set and on a face, where inequalities are not linear on
    the way.
    """
    whole = UncertainSet(*_random(5, 3, 7, 0.02), **kinds)
    for uncertain in (whole, whole.face(np.arange(6))):
        assert uncertain.excess(uncertain.point)[0] < -margin
        low = np.zeros(uncertain.n)
        high = np.ones(uncertain.n)
        for _ in range(40):
            middle = 0.5 * (low + high)
            fine = (
                uncertain.excess(
                    (1.0 - middle)[:, None] * uncertain.point + np.diag(middle)
                )
                <= -margin
            )
            low = np.where(fine, middle, low)
            high = np.where(fine, high, middle)
        farthest = (1.0 - low)[:, None] * uncertain.point + np.diag(low)
        assert uncertain.pulled(margin) == pytest.approx(farthest, abs=1e-9)


def test_a_linear_minimum_is_that_of_all_rows() -> None:
    uncertain = UncertainSet(*_random(6, 2, 4, 0.2), ratio=1.8)
    direction = np.array([1.0, -2.0, 0.5, 0.3])
    v = RobustSearch(uncertain, tightening=0.0).linear(direction)
    from scipy.optimize import linprog

    rows = _explicit(uncertain).rows
    best = linprog(
        direction, A_ub=rows, b_ub=np.zeros(len(rows)), A_eq=np.ones((1, 4)), b_eq=[1.0]
    )
    assert direction @ v == pytest.approx(best.fun, abs=1e-7)


def test_a_coordinate_beyond_the_point_counts_as_one() -> None:
    """A last column of the boxes has w = 1: the same as a coordinate whose w is the mean of the
    others.
    """
    point, lower, upper, a, b = _random(7, 2, 3, 0.1)
    rest = np.full((2, 1), 0.2)
    wide = UncertainSet(
        point,
        np.hstack([lower * 0.8, 0 * rest]),
        np.hstack([upper, rest]),
        a,
        b,
        ratio=2.0,
    )
    h, g = wide.extremes(point)
    assert h == pytest.approx(1.0)
    assert g == pytest.approx(1.0)
    assert wide.excess(np.eye(3)).shape == (3,)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ratio": 1.0}, "ratio and most must be above 1"),
        ({"least": 1.0}, "least at least 0 and below 1"),
        ({"point": np.array([0.5, 0.5, 0.0])}, "point must be positive"),
        ({"lower": np.full((2, 3), np.nan)}, "lower contains NaN"),
        ({"lower": np.ones((2, 2))}, "must have 3 columns"),
        ({"share_lower": np.zeros(3)}, "one entry per box"),
        (
            {"upper": np.full((2, 3), 0.1), "lower": np.zeros((2, 3))},
            "holds no probability vector",
        ),
    ],
)
def test_bad_sets_are_refused(change: dict[str, object], message: str) -> None:
    point, lower, upper, a, b = _random(8, 2, 3, 0.1)
    arguments = {
        "point": point,
        "lower": lower,
        "upper": upper,
        "share_lower": a,
        "share_upper": b,
        "ratio": 2.0,
    }
    with pytest.raises(InvalidPolytope, match=message):
        UncertainSet(**(arguments | change))  # type: ignore[arg-type]


def test_no_points_have_no_excess() -> None:
    uncertain = UncertainSet(*_random(9, 2, 3, 0.1), ratio=2.0)
    assert uncertain.excess_of(Points.units([], 3)).shape == (0,)


def test_a_program_that_fails_takes_nothing_that_was_proven_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The bound is that of the last round before, though the assignment may be an older one."""
    uncertain = UncertainSet(*_random(2, 3, 6, 0.05), ratio=1.6)
    n = uncertain.n
    solve = assignment_simplex.Program.solve
    rounds = []
    cost = np.random.default_rng(2).random((n, n)) * (1.0 - np.eye(n))
    problem = Assignment(
        cost, uncertain.point, Polytope(np.zeros((0, n)), np.zeros(0), np.zeros(0))
    )

    def failing(program: assignment_simplex.Program, end: float) -> object:
        if len(rounds) == 3:
            raise BackendFailure("no more")
        return solve(program, end)

    monkeypatch.setattr(assignment_simplex.Program, "solve", failing)
    # Without the counterpart, which would go on where the rounds fail.
    monkeypatch.setattr(robust, "LARGEST_COUNTERPART", 0)
    found = robust.assign_uncertain(
        problem, uncertain, progress=lambda *at: rounds.append(at)
    )
    assert rounds[1][0] == rounds[2][0] == found.cost
    assert rounds[1][1] < rounds[2][1] == found.bound


@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.1, 0.5, 1.0]))
def test_columns_are_pulled_to_members_with_the_margin(seed: int, share: float) -> None:
    """excess + margin <= 0 for every column of the pulled shares, whose rows still sum to 1."""
    uncertain = UncertainSet(*_random(seed, 3, 6, 0.05), ratio=1.6)
    n = uncertain.n
    margin = share * uncertain.room
    problem = Assignment(
        np.ones((n, n)),
        uncertain.point,
        Polytope(np.zeros((0, n)), np.zeros(0), np.zeros(0)),
    )
    shares = np.random.default_rng(seed).dirichlet(np.full(n, 0.2), size=n)
    _, pulled, _ = robust.separated(problem, uncertain, shares, margin)
    assert pulled.sum(axis=1) == pytest.approx(np.ones(n), abs=1e-12)
    masses = uncertain.point @ pulled
    columns = (pulled * uncertain.point[:, None] / masses).T
    assert (uncertain.excess(columns) + margin).max() <= 1e-12


def test_bounds_of_coordinates_do_not_sort_for_every_secret():
    seconds: list[float] = []
    for size in (500, 1_000):
        _, lower, upper, share_lower, share_upper = _random(1, size, 5, 0.2)
        uncertain = UncertainSet(
            np.full(5, 0.2), lower, upper, share_lower, share_upper, most=1.2, least=0.8
        )
        runs: list[float] = []
        for _ in range(3):
            started = time.process_time()
            # Without time there is one program, for the first coordinate.
            RobustSearch(uncertain, tightening=0.0)
            runs.append(time.process_time() - started)
        seconds.append(min(runs))
    # A sort for each secret, by insertion, is cubic: 8 times.
    assert seconds[1] <= 6.0 * seconds[0], seconds


def test_chords_end_with_their_time(monkeypatch) -> None:
    """One chord without time; its ends are members, only nearer to the point."""
    whole = UncertainSet(*_random(5, 3, 7, 0.02), most=1.4, least=0.5)
    uncertain = whole.face(np.arange(6))
    calls: list[int] = []
    kinds_of = UncertainSet._kinds

    def counted(self: UncertainSet, points: Array) -> Array:
        calls.append(1)
        return kinds_of(self, points)

    monkeypatch.setattr(UncertainSet, "_kinds", counted)
    uncertain.pulled(0.0)
    assert len(calls) > 2
    calls.clear()
    first = uncertain.pulled(0.0, end=-np.inf)
    assert len(calls) == 2
    assert (uncertain.excess(first) <= 1e-12).all()


@pytest.mark.parametrize("seed", range(5))
def test_three_steps_fill_like_a_sort_on_the_way_to_unit_vectors(seed: int) -> None:
    whole = UncertainSet(*_random(seed, 4, 7, 0.1), most=1.4)
    for uncertain in (whole, whole.face(np.arange(4))):
        reach = np.random.default_rng(seed).random(uncertain.n)
        points = (1.0 - reach)[:, None] * uncertain.point + np.diag(reach)
        each = Sets.of_each(uncertain.point)
        steps = uncertain._extremes_towards(each, reach)
        for one, other in zip(steps, uncertain.extremes(points), strict=True):
            assert one == pytest.approx(other, abs=1e-12)


def test_without_time_no_program_is_solved(monkeypatch) -> None:
    """The members on the ways to the unit vectors decompose the point by themselves."""
    uncertain = UncertainSet(*_random(3, 4, 40, 0.01), most=1.1, least=0.9)

    def refused(*_: object) -> None:
        raise AssertionError("a program after the end")

    monkeypatch.setattr(HighsMaster, "solve", refused)
    found = robust_envelope(uncertain, gap=1e-3, time_limit=0.0)
    assert found.status is EnvelopeStatus.TIME_LIMIT
    assert found.points.combine(found.weights) == pytest.approx(
        uncertain.point, abs=1e-9
    )
    point = uncertain.point
    assert found.value < -float(point @ np.log(point))


def test_columns_of_a_neighbour_wait_for_no_time(monkeypatch):
    """To tell which of thousands of columns are inside takes longer than a short limit."""
    uncertain = UncertainSet(*_random(5, 2, 6, 0.03))
    first = robust_envelope(uncertain, gap=1e-3)
    asked: list[int] = []
    excess_of = UncertainSet.excess_of

    def counted(self: UncertainSet, points: Points) -> Array:
        asked.append(len(points))
        return excess_of(self, points)

    monkeypatch.setattr(UncertainSet, "excess_of", counted)
    robust_envelope(uncertain, gap=1e-3, start=first.pool)
    assert len(first.pool) in asked
    asked.clear()
    found = robust_envelope(uncertain, gap=1e-3, start=first.pool, time_limit=0.0)
    assert len(first.pool) not in asked
    assert found.points.combine(found.weights) == pytest.approx(uncertain.point)


def _by_hand(uncertain: UncertainSet, share: float, members: Array) -> Array:
    """The point at this share of the way to some coordinates."""
    end = np.where(members, uncertain.point, 0.0)
    return (1.0 - share) * uncertain.point + share * end / end.sum()


def test_ways_to_sets_end_where_the_set_does() -> None:
    """A little beyond the end of a way, which is no whole way, is no member."""
    uncertain = UncertainSet(*_random(5, 3, 24, 0.004), ratio=1.5)
    sets = Sets.of_mass(uncertain.point, 5)
    reach = uncertain.reach(0.0, sets=sets)
    points = sets.towards(reach)
    for place, share in enumerate(reach):
        members = sets.of == place
        assert points[place] == pytest.approx(_by_hand(uncertain, share, members))
        assert 0.0 < share < 1.0
        assert uncertain.excess(points[place])[0] <= 1e-12
        assert uncertain.excess(_by_hand(uncertain, share + 1e-6, members))[0] > 0.0


def test_sets_have_masses_as_equal_as_they_can() -> None:
    point = np.array([0.05, 0.4, 0.05, 0.3, 0.1, 0.1])
    sets = Sets.of_mass(point, 3)
    assert sets.masses == pytest.approx([0.4, 0.3, 0.3])
    # The two large coordinates are by themselves.
    assert sets.of.tolist() == [2, 0, 2, 1, 2, 2]
    assert Sets.of_mass(point, 10).of.tolist() != [0] * 6
    assert sorted(Sets.of_mass(point, 10).of.tolist()) == [0, 1, 2, 3, 4, 5]


def test_without_time_few_columns_of_many_coordinates_decompose_the_point(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of them has all coordinates: one for every coordinate takes seconds."""
    uncertain = UncertainSet(*_random(3, 2, 40, 0.01), most=1.5, least=0.6)
    all_of_them = robust_envelope(uncertain, gap=1e-9, time_limit=0.0)
    assert len(all_of_them.pool) == 1 + uncertain.n
    monkeypatch.setattr(other_sets, "LEAST_ENTRIES", 10 * uncertain.n)
    found = robust_envelope(uncertain, gap=1e-9, time_limit=0.0)
    assert found.status is EnvelopeStatus.TIME_LIMIT
    assert len(found.pool) == 11
    assert found.points.combine(found.weights) == pytest.approx(uncertain.point)
    assert uncertain.excess(found.points.toarray()).max() <= 1e-12
    point = uncertain.point
    entropy = -float(point @ np.log(point))
    # A few large sets tell a good part of what all coordinates tell.
    told = (entropy - found.value) / (entropy - all_of_them.value)
    assert 0.3 < told < 1.0
