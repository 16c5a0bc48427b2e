"""The envelope over a convex set: valid cuts, proven bounds, members, limits of time."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers import (
    ConvexSet,
    Cut,
    EnvelopeStatus,
    InvalidOption,
    OutsidePolytope,
    Points,
    convex_envelope,
)
from solvers.envelope import convex as convex_module
from solvers.envelope.convex import Members
from solvers.envelope.convex_pricing import OuterPolytope, pair_members
from solvers.programs import HighsMaster, MasterStatus
from tests.ending import ends_by_itself
from tests.profiles import scaled


@dataclass(frozen=True, eq=False)
class Ball:
    """|u - center|^2 <= bound."""

    center: np.ndarray
    bound: float

    def values(self, images):
        return ((images - self.center[:, None]) ** 2).sum(axis=0)

    def gradients(self, images):
        return 2.0 * (images - self.center[:, None])

    def cut(self, image):
        normal = image - self.center
        length = float(np.linalg.norm(normal))
        if length == 0.0:
            return None
        # Cauchy and Schwarz: normal (u - center) <= |normal| radius, for every normal.
        reach = length * math.sqrt(self.bound)
        offset = float(normal @ self.center) + reach
        return Cut(normal, offset, float(np.abs(normal * self.center).sum()) + reach)


def problem(seed, m=3, n=4, size=0.05):
    """A random set around a random point."""
    rng = np.random.default_rng(seed)
    matrix = rng.random((m, n))
    point = rng.dirichlet(np.ones(n) * 3.0)
    return ConvexSet(matrix, [Ball(matrix @ point, size)]), point


def grid_value(convex, point, steps=24):
    """The best decomposition into members on a grid: an upper bound of the envelope, by HiGHS."""
    import highspy

    n = len(point)
    lattice = [
        (*head, steps - sum(head))
        for head in np.ndindex(*(steps + 1,) * (n - 1))
        if sum(head) <= steps
    ]
    grid = np.array(lattice) / steps
    # Members, and those outside on the way to the point, by bisection of the definition.
    low = np.zeros(len(grid))
    high = np.ones(len(grid))
    for _ in range(50):
        middle = 0.5 * (low + high)
        moved = point + middle[:, None] * (grid - point)
        inside = np.ones(len(grid), dtype=bool)
        for function in convex.functions:
            inside &= function.values(convex.matrix @ moved.T) <= function.bound
        low = np.where(inside, middle, low)
        high = np.where(inside, high, middle)
    members = point + low[:, None] * (grid - point)
    costs = -np.where(
        members > 0, members * np.log(np.where(members > 0, members, 1)), 0
    )
    highs = highspy.Highs()
    highs.silent()
    program = highspy.HighsLp()
    program.num_col_ = len(members)
    program.num_row_ = n
    program.col_cost_ = costs.sum(axis=1)
    program.col_lower_ = np.zeros(len(members))
    program.col_upper_ = np.full(len(members), np.inf)
    program.row_lower_ = point
    program.row_upper_ = point
    program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    program.a_matrix_.start_ = np.arange(len(members) + 1) * n
    program.a_matrix_.index_ = np.tile(np.arange(n), len(members))
    program.a_matrix_.value_ = members.ravel()
    highs.passModel(program)
    highs.run()
    return highs.getObjectiveValue()


@pytest.mark.parametrize("seed", range(8))
def test_the_bound_is_below_and_the_value_next_to_the_best_on_a_grid(seed):
    convex, point = problem(seed, size=0.002 + 0.01 * seed)
    found = convex_envelope(convex, point, gap=1e-6)
    best = grid_value(convex, point)
    assert found.status is EnvelopeStatus.OPTIMAL
    assert found.bound <= best + 1e-9
    assert found.value <= best + 1e-6
    # A grid of 24 steps is not far from the optimum.
    assert best - found.value < 0.05
    assert found.gap <= 1e-6


@settings(max_examples=scaled(20), deadline=None)
@given(st.integers(0, 10**6), st.floats(1e-6, 0.3), st.sampled_from([0.0, 1e-12, 1e-6]))
def test_columns_are_members_and_decompose_the_point(seed, size, margin):
    rng = np.random.default_rng(seed)
    convex, point = problem(
        seed, int(rng.integers(2, 5)), int(rng.integers(2, 9)), size
    )
    found = convex_envelope(convex, point, margin=margin, gap=1e-4, time_limit=5.0)
    # Images are rounded; in a small ball that is a larger share of the bound.
    rounding = 16 * 2.0**-53 / math.sqrt(size)
    assert (convex.excess(found.points, margin) <= rounding).all()
    assert found.points.combine(found.weights) == pytest.approx(point, abs=1e-8)
    assert found.value == pytest.approx(
        float(found.weights @ found.points.entropies()), abs=1e-9
    )
    assert found.bound <= found.value + 1e-12


@settings(max_examples=scaled(60))
@given(st.integers(0, 10**6))
def test_cuts_hold_for_all_members(seed):
    convex, point = problem(seed)
    rng = np.random.default_rng(seed)
    others = rng.dirichlet(np.full(4, 0.3), 200)
    shares = convex.shares_inside(
        (convex.matrix @ point)[:, None], convex.matrix @ others.T, 0.0
    )
    members = point + shares[:, None] * (others - point)
    images = convex.matrix @ members.T
    assert (convex.excess(Points.from_dense(members)) <= 0.0).all()
    for image in images.T[:20]:
        for cut in convex.cuts_at(image):
            assert (cut.normal @ images <= cut.offset).all()


@settings(max_examples=scaled(20))
@given(st.integers(0, 10**6), st.integers(1, 8))
def test_few_ways_end_where_those_of_many_do(seed, few):
    """Several halvings at once, of which a single way needs 16 looks at the functions, not 61."""
    convex, point = problem(seed)
    others = np.random.default_rng(seed).dirichlet(np.full(4, 0.3), 30)
    origin = (convex.matrix @ point)[:, None]
    images = convex.matrix @ others.T
    many = convex.shares_inside(origin, images, 0.0)
    looks = []
    excess_of = ConvexSet.excess_of
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            ConvexSet,
            "excess_of",
            lambda *given: looks.append(1) or excess_of(*given),
        )
        found = convex.shares_inside(origin, images[:, :few], 0.0)
    assert found == pytest.approx(many[:few], rel=1e-12, abs=1e-15)
    assert len(looks) == 16


def test_points_outside_return_to_the_boundary_on_their_supports():
    # The two symbols have images on either side of the ball's centre.
    matrix = np.array([[0.0, 1.0, 0.4], [1.0, 0.0, 0.4]])
    convex = ConvexSet(matrix, [Ball(np.array([0.5, 0.5]), 0.01)])
    outside = np.array([[0.2, 0.8, 0.0], [0.9, 0.1, 0.0]])
    moved = convex.repaired(outside, 0.0)
    assert (moved[:, 2] == 0.0).all()
    assert moved.sum(axis=1) == pytest.approx(1.0)
    # (t, 1 - t) is at distance sqrt(2) |t - 1/2| of the centre.
    edge = 0.1 / math.sqrt(2.0)
    assert moved[0, 1] == pytest.approx(0.5 + edge, rel=1e-9)
    assert moved[1, 0] == pytest.approx(0.5 + edge, rel=1e-9)
    assert (convex.excess(Points.from_dense(moved)) <= 0.0).all()


def test_the_time_limit_is_kept():
    convex, point = problem(1, 6, 250, 0.004)
    with ends_by_itself():
        found = convex_envelope(convex, point, gap=1e-9, time_limit=0.4)
    assert found.status is EnvelopeStatus.TIME_LIMIT
    assert found.bound <= found.value


def test_a_master_program_that_meets_the_limit_has_not_failed(monkeypatch):
    convex, point = problem(2)
    solve = HighsMaster.solve
    limits: list[float] = []

    def late(self, seconds, box=None):
        """The first program is solved; the others use up the time and have no answer."""
        end = time.process_time() + seconds
        limits.append(seconds)
        solution = solve(self, seconds, box)
        if len(limits) == 1:
            return solution
        while time.process_time() < end:
            pass
        return replace(solution, status=MasterStatus.TIME_LIMIT)

    monkeypatch.setattr(HighsMaster, "solve", late)
    found = convex_envelope(convex, point, gap=1e-12, time_limit=0.2)
    assert len(limits) > 1
    assert found.status is EnvelopeStatus.TIME_LIMIT


def test_no_time_at_all_leaves_the_point_and_the_bound_of_any_entropy():
    convex, point = problem(2)
    found = convex_envelope(convex, point, time_limit=0.0)
    assert found.status is EnvelopeStatus.TIME_LIMIT
    assert (found.bound, found.dual.tolist()) == (0.0, [0.0] * len(point))
    assert found.points.combine(found.weights) == pytest.approx(point)


def test_without_time_for_a_master_program_a_known_decomposition_counts(monkeypatch):
    """With many symbols the first program takes longer than a short limit: the point alone, which
    would be left, tells nothing.
    """
    convex, point = problem(2, n=4, size=0.15)
    weights = np.array([point[:2].sum(), point[2:].sum()])
    blocks = Points.blocks([[0, 1], [2, 3]], point)
    assert convex.excess(blocks).max() < 0.0
    solve = HighsMaster.solve

    def late(self, seconds, box=None):
        return replace(solve(self, seconds, box), status=MasterStatus.TIME_LIMIT)

    monkeypatch.setattr(HighsMaster, "solve", late)
    found = convex_envelope(
        convex, point, time_limit=0.0, incumbents=lambda: [(weights, blocks)]
    )
    assert found.status is EnvelopeStatus.TIME_LIMIT
    assert found.value == pytest.approx(float(weights @ blocks.entropies()))
    assert found.points.combine(found.weights) == pytest.approx(point)
    # Half of the mass costs less, and decomposes nothing.
    found = convex_envelope(
        convex, point, time_limit=0.0, incumbents=lambda: [(0.5 * weights, blocks)]
    )
    assert found.value == pytest.approx(-float(point @ np.log(point)))
    # What the margin leaves of one is no decomposition.
    outside = Points.units(np.arange(4), 4)
    assert convex.excess(outside).max() > 0.0
    found = convex_envelope(
        convex, point, time_limit=0.0, incumbents=lambda: [(point, outside)]
    )
    assert found.value == pytest.approx(-float(point @ np.log(point)))


def test_no_cut_is_made_when_the_time_is_over(monkeypatch):
    """A cut for each of 2,000 unit vectors takes longer than a short limit."""
    convex, point = problem(2)
    cuts = []
    cut = OuterPolytope.cut

    def counted(self, outside):
        cuts.append(len(outside))
        return cut(self, outside)

    monkeypatch.setattr(OuterPolytope, "cut", counted)
    convex_envelope(convex, point, gap=1e-3)
    assert cuts
    cuts.clear()
    convex_envelope(convex, point, time_limit=0.0)
    assert not cuts


def test_a_face():
    convex, point = problem(3, n=5, size=1.0)
    members = np.array([0, 2, 3])
    face = convex.restrict(members)
    assert face.matrix.shape == (3, 3)
    inner = point[members] / point[members].sum()
    found = convex_envelope(face, inner, gap=1e-6)
    assert found.value <= -float(inner @ np.log(inner)) + 1e-12


def test_a_point_outside_is_refused():
    convex = ConvexSet(np.eye(2), [Ball(np.array([1.0, 0.0]), 0.01)])
    with pytest.raises(OutsidePolytope, match="no decomposition"):
        convex_envelope(convex, np.array([0.5, 0.5]))


def test_a_gap_of_zero_is_refused():
    convex, point = problem(4)
    with pytest.raises(InvalidOption, match="gap"):
        convex_envelope(convex, point, gap=0.0)


def test_progress_and_interruption():
    convex, point = problem(5, 4, 30, 0.003)
    seen = []

    def stop(moment):
        seen.append(moment)
        if len(seen) == 3:
            raise KeyboardInterrupt

    found = convex_envelope(convex, point, gap=1e-7, progress=stop)
    assert found.status is EnvelopeStatus.INTERRUPTED
    assert found.bound <= found.value
    assert seen[0].value >= seen[-1].value


def test_pairs_for_which_there_is_no_time_are_left_out():
    convex, _ = problem(3, m=5, n=40, size=0.2)
    everything = pair_members(convex, 0.0)
    assert len(everything) > 700
    # A pair takes 82 evaluations of five entries each, and half of the time is for them.
    few = pair_members(convex, 0.0, seconds=2 * 300 * 82 * 5e-8)
    assert 0 < len(few) < len(everything) / 2
    known = {tuple(row) for row in everything.toarray().round(12)}
    assert {tuple(row) for row in few.toarray().round(12)} <= known
    in_time = pair_members(convex, 0.0, seconds=60.0)
    assert np.array_equal(in_time.toarray(), everything.toarray())


def sizes_given_to(monkeypatch, kind, name):
    """The lengths of the arrays that a method of a class is called with from now on."""
    sizes = []
    method = getattr(kind, name)

    def noted(self, array):
        sizes.append(len(array))
        method(self, array)

    monkeypatch.setattr(kind, name, noted)
    return sizes


def test_members_beside_the_units_wait_for_no_time_where_something_is_known(
    monkeypatch,
):
    """Each has all coordinates: for 4,500 symbols they took 4 s of a limit of 2."""
    convex, point = problem(2, n=4, size=0.15)
    weights = np.array([point[:2].sum(), point[2:].sum()])
    blocks = Points.blocks([[0, 1], [2, 3]], point)
    added = sizes_given_to(monkeypatch, Members, "add_beside")
    known = {"incumbents": lambda: [(weights, blocks)]}
    found = convex_envelope(convex, point, time_limit=0.0, **known)
    assert not added
    assert found.points.combine(found.weights) == pytest.approx(point)
    # There is nothing else that completes other columns to a decomposition.
    convex_envelope(convex, point, time_limit=0.0)
    assert added == [3]
    added.clear()
    convex_envelope(convex, point, gap=1e-3, time_limit=60.0, **known)
    assert added[0] == 3


def test_cuts_at_pairs_leave_time_for_the_search(monkeypatch):
    """The first search over 7,222 cuts of 4,885 coordinates took 13 s of a limit of 10."""
    convex, point = problem(5, 4, 40, 0.2)
    touched = sizes_given_to(monkeypatch, OuterPolytope, "touch")
    monkeypatch.setattr(convex_module, "PAIRS_FROM", 40)
    convex_envelope(convex, point, gap=0.3, time_limit=60.0)
    enough = touched.pop()
    assert enough == 80
    monkeypatch.setattr(convex_module, "ENTRY_TIME", 0.1)
    convex_envelope(convex, point, gap=0.3, time_limit=60.0)
    # Half of a minute is enough for seven cuts of forty coordinates.
    assert 0 < touched.pop() <= 7
