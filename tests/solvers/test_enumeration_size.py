"""The estimate of the number of vertices, and the limits that it enforces."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers import enumeration
from solvers.enumeration import estimate, pivot, vertices
from solvers.enumeration.pivot import walk
from solvers.errors import TooManyVertices
from solvers.sets.polytope import Polytope
from tests.profiles import scaled, slow
from tests.solvers.reference import ratio_polytope
from tests.solvers.test_enumeration import lift_box
from tests.solvers.test_polytope import with_deviation

WITHIN = 2.0
"""The factor promised for tables of up to six rows: seen, 0.5 to 1.5 on nearly all of them."""


@pytest.mark.parametrize(
    ("s", "n"), [(2, 60), (3, 40), (4, 30), (5, 30), (5, 50), (6, 25)]
)
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_estimate_is_near_the_count(s, n, epsilon):
    polytope = lift_box(s, n, epsilon, seed=3)
    found = walk(polytope, most_bases=300_000)
    assert found.status == 0
    guess = estimate(polytope)
    assert sum(found.sizes) / WITHIN <= guess.vertices <= sum(found.sizes) * WITHIN
    assert not guess.at_least


@pytest.mark.parametrize(
    ("n", "ratio"),
    [(20, np.exp(1.0)), (20, np.exp(2.0)), (40, np.exp(2.0)), slow(40, np.exp(1.0))],
)
def test_estimate_of_ratio_rows(n, ratio):
    polytope = ratio_polytope(lift_box(5, n, 1.0, seed=3).rows, ratio)
    count = sum(walk(polytope, most_bases=400_000).sizes)
    assert count / WITHIN <= estimate(polytope).vertices <= count * WITHIN


def test_the_mean_over_seeds_is_unbiased():
    """The random faces give each vertex its weight: over many tables the ratios average to one."""
    ratios = []
    for seed in range(40):
        polytope = lift_box(3, 30, 0.7, seed)
        ratios.append(
            estimate(polytope).vertices / sum(walk(polytope, most_bases=10**6).sizes)
        )
    assert abs(np.mean(ratios) - 1.0) < 0.05


@given(
    seed=st.integers(0, 10_000),
    s=st.integers(1, 5),
    n=st.integers(1, 20),
    epsilon=st.floats(0.3, 5.0),
)
@settings(max_examples=scaled(40))
def test_small_polytopes_are_counted(seed, s, n, epsilon):
    polytope = lift_box(s, n, epsilon, seed)
    guess = estimate(polytope)
    if guess.spread == 0.0:
        assert guess.vertices == len(vertices(polytope))
    else:
        assert guess.vertices > 1000


def test_estimate_of_the_empty_set_and_of_the_simplex():
    empty = Polytope(np.ones((1, 4)), [2.0], [3.0])
    assert estimate(empty).vertices == 0.0
    simplex = estimate(Polytope(np.zeros((0, 400)), [], []))
    assert simplex.vertices == pytest.approx(400.0)


def test_estimate_is_reproducible_and_grows():
    guesses = [estimate(lift_box(5, n, 1.0)) for n in (25, 50, 100, 200)]
    assert guesses == [estimate(lift_box(5, n, 1.0)) for n in (25, 50, 100, 200)]
    for attribute in ("vertices", "memory"):
        values = [getattr(g, attribute) for g in guesses]
        assert values == sorted(values)
        assert values[0] > 0.0


def test_estimate_of_a_huge_polytope_does_bounded_work(monkeypatch):
    """5000 columns and 31 rows: whatever the size, the walks together stay within a few times WORK."""
    done = []

    def counting(polytope, *, most_bases):
        found = walk(polytope, most_bases=most_bases)
        done.append(found.bases * pivot.work_per_basis(polytope.n, polytope.m))
        return found

    monkeypatch.setattr(pivot, "walk", counting)
    rng = np.random.default_rng(0)
    rows = rng.random((31, 5000)) + 0.5
    guess = estimate(Polytope(rows, np.full(31, 0.8), np.full(31, 1.2)))
    assert guess.vertices > 1e9
    assert sum(done) < 5 * pivot.WORK


def test_rows_are_counted_without_forming_them():
    rng = np.random.default_rng(0)
    for polytope in (
        lift_box(3, 5, 1.0),
        ratio_polytope(rng.random((4, 5)), 2.0),
        with_deviation(rng.random((3, 5)), np.full(3, 1 / 3), 0.5),
    ):
        assert (
            polytope.explicit.m
            <= pivot.explicit_rows(polytope)
            <= polytope.explicit.m + 2
        )
    many = with_deviation(rng.random((15, 5000)), np.full(15, 1 / 15), 0.5)  # 3^15 rows
    assert pivot.explicit_rows(many) == pivot.MOST_ROWS + 1
    assert estimate(many).vertices == np.inf
    with pytest.raises(
        TooManyVertices,
        match="without its auxiliary variables the polytope has more than 4096 rows",
    ):
        vertices(many)


def test_too_many_is_refused_before_it_is_tried(monkeypatch):
    def forbidden(*_, **__):
        raise AssertionError("must not be tried")

    monkeypatch.setattr(enumeration, "TRIAL", 0)
    monkeypatch.setattr(pivot, "attempt", forbidden)
    with pytest.raises(
        TooManyVertices,
        match=r"about .*e\+\d+ vertices, too many for max_vertices=2000000",
    ):
        vertices(lift_box(15, 200, 1.0))
    with pytest.raises(
        TooManyVertices,
        match='use method="columns", which needs no enumeration, or raise the limit',
    ):
        vertices(lift_box(5, 100, 1.0), max_vertices=1000)
    with pytest.raises(TooManyVertices, match="memory_limit=1000000 bytes"):
        vertices(lift_box(5, 50, 1.0), memory_limit=1_000_000)


def test_the_limit_holds_during_the_enumeration(monkeypatch):
    polytope = lift_box(5, 50, 1.0)  # 9,160 vertices
    nothing = pivot.Estimate(vertices=1.0, spread=1.0, at_least=True, memory=0.0)
    monkeypatch.setattr(enumeration, "estimate", lambda polytope: nothing)
    with pytest.raises(
        TooManyVertices,
        match=r"exceeded its budget after \d+ bases \(max_vertices=5000, ",
    ):
        vertices(polytope, max_vertices=5000)
    with pytest.raises(TooManyVertices, match="memory_limit=2000000"):
        vertices(polytope, memory_limit=2_000_000)
    assert len(vertices(polytope, max_vertices=9160)) == 9160


@pytest.mark.parametrize("method", ["pivot", "cdd"])
def test_the_limit_holds_for_every_method(method):
    polytope = lift_box(3, 8, 0.5)
    count = len(vertices(polytope))
    assert len(vertices(polytope, method, max_vertices=count)) == count
    with pytest.raises(TooManyVertices):
        vertices(polytope, method, max_vertices=count - 1)


def test_degenerate_bases_do_not_count_as_vertices():
    """Several bases share a vertex; the limit speaks of vertices."""
    polytope = ratio_polytope(lift_box(5, 14, 1.0).rows, 2.0)
    result = vertices(polytope)
    assert result.bases > len(result)
    assert len(vertices(polytope, max_vertices=len(result))) == len(result)


def test_an_estimate_ends_with_its_time(monkeypatch):
    """After four looks at the clock; without a limit it walks more faces than that."""
    walks = []

    def counted(*arguments, **options):
        walks.append(1)
        return walk(*arguments, **options)

    monkeypatch.setattr(pivot, "walk", counted)
    whole = estimate(lift_box(5, 50, 1.0))
    assert not np.isinf(whole.vertices)
    assert len(walks) > 4
    walks.clear()
    clock = iter(range(100))
    monkeypatch.setattr(pivot.time, "process_time", lambda: float(next(clock)))
    ended = estimate(lift_box(5, 50, 1.0), end=3.5)
    assert len(walks) == 4
    assert ended.at_least
    assert np.isinf(ended.vertices)
