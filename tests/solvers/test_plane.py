"""Pricing in a plane: every vertex is looked at, and the bound is below every vertex in exact
arithmetic.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers import Polytope, SearchStatus
from solvers._plane import pairs, triples
from solvers.pricing.concave import ConcaveSearch
from solvers.pricing.plane import PlaneSearch, plane_search
from tests.profiles import scaled
from tests.solvers.reference import (
    INF,
    NOTIONS,
    TABLES,
    exact,
    random_prices,
    random_table,
    table_polytope,
)

OPTIONS = {"cutoff": -INF, "tolerance": 1e-9, "slack": 0.0}


def searched(
    polytope: Polytope, relaxation: Polytope | None = None
) -> PlaneSearch | None:
    outer = relaxation or polytope
    return plane_search(polytope, outer, ConcaveSearch(polytope, relaxation=outer))


def large(n: int, seed: int = 0) -> Polytope:
    p = random_table(np.random.default_rng(seed), "random", 3, n)
    return Polytope(
        p / p.sum(axis=0) / p.sum(axis=1, keepdims=True),
        np.full(3, 0.7),
        np.full(3, 1.4),
    )


@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(TABLES),
    notion=st.sampled_from([n for n in NOTIONS if n != "ratio"]),
    level=st.sampled_from([-1e-6, INF]),
)
@settings(max_examples=scaled(150))
def test_bound_is_never_above_the_least_vertex_and_the_best_column_is_there(
    seed, kind, notion, level
):
    rng = np.random.default_rng(seed)
    polytope, _ = table_polytope(rng, kind, notion, 3, int(rng.integers(3, 8)))
    search = searched(polytope)
    if search is None:
        return
    prices = random_prices(rng, polytope.n)
    truth = exact(polytope).minimum(prices)
    least = float(truth.mid())
    size = max(1.0, float(np.abs(prices).max()))
    found = search.run(prices, column_cutoff=level, **{**OPTIONS, "cutoff": INF})
    assert bool(found.bound <= truth)
    assert found.bound >= min(least, level) - 2e-6 * size
    dense = found.points.toarray()
    if len(dense):
        assert polytope.residual(dense).max() <= 1e-9 * max(
            1.0, float(np.abs(polytope.rows).max())
        )
        logs = np.log(np.where(dense > 0.0, dense, 1.0))
        best = float((-(dense * logs).sum(axis=1) - dense @ prices).min())
        assert best >= least - 1e-6 * size
    if least < min(level, 0.0) - 1e-5:
        assert best <= least + 1e-5 * size


@pytest.mark.parametrize("seed", range(4))
def test_agrees_with_branch_and_bound(seed):
    """Two independent searches of 40 symbols, at prices where many vertices are nearly minimal."""
    polytope = large(40, seed)
    prices = np.random.default_rng(seed).uniform(0.5, 0.9, 40)
    plane = searched(polytope)
    tree = ConcaveSearch(polytope)
    assert plane is not None
    first = plane.run(prices, column_cutoff=-1e-6, **OPTIONS)
    second = tree.run(prices, column_cutoff=-1e-6, **{**OPTIONS, "cutoff": -1e-6})
    assert first.status is second.status is SearchStatus.DONE
    assert first.counts.programs == 0
    assert first.bound == pytest.approx(second.bound, abs=1e-7)


def test_the_relaxation_bounds_and_the_polytope_holds_the_columns():
    inner = large(30)
    outer = Polytope(inner.rows, inner.lower - 1e-3, inner.upper + 1e-3)
    search = searched(inner, outer)
    prices = np.random.default_rng(2).uniform(0.5, 0.9, 30)
    found = search.run(prices, column_cutoff=-1e-6, **OPTIONS)
    assert inner.residual(found.points.toarray()).max() < 1e-12
    assert (
        found.bound
        <= searched(outer).run(prices, column_cutoff=-1e-6, **OPTIONS).bound + 1e-12
    )
    assert (
        found.bound <= searched(inner).run(prices, column_cutoff=-1e-6, **OPTIONS).bound
    )


def test_identical_symbols_share_one_price():
    polytope = large(12)
    twice = Polytope(
        np.repeat(polytope.rows, 2, axis=1), polytope.lower, polytope.upper
    )
    prices = np.random.default_rng(3).uniform(0.5, 0.9, 12)
    worse = np.column_stack([prices, prices - 0.25]).ravel()
    alone = searched(polytope).run(prices, column_cutoff=-1e-6, **OPTIONS)
    found = searched(twice).run(worse, column_cutoff=-1e-6, **OPTIONS)
    assert found.bound == alone.bound
    assert found.points.toarray()[:, 1::2].max() == 0.0


def test_no_time_proves_nothing():
    found = searched(large(30)).run(
        np.full(30, 0.8), column_cutoff=-1e-6, time_limit=0.0, **OPTIONS
    )
    assert (found.status, found.bound) == (SearchStatus.TIME_LIMIT, -INF)


def test_what_is_no_plane_is_left_to_the_tree():
    rng = np.random.default_rng(0)
    four, _ = table_polytope(rng, "random", "both", 4, 9)
    two, _ = table_polytope(rng, "random", "both", 2, 9)
    ratio, _ = table_polytope(rng, "random", "ratio", 3, 9)
    near, _ = table_polytope(rng, "near-tied", "both", 3, 9)
    assert [searched(polytope) for polytope in (four, two, ratio, near)] == [None] * 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"f": np.zeros(2)},
            "f must be a contiguous array of|g must be a contiguous array of 2",
        ),
        (
            {"best": np.zeros(3, dtype=np.float32)},
            "best must be a contiguous array of 3 items of format d",
        ),
        (
            {"support": np.zeros((2, 3), dtype=np.int32)},
            "support must be a contiguous array of 9 items of format i",
        ),
        (
            {"candidates": np.array([3], dtype=np.int32)},
            "candidates must be indices of points",
        ),
    ],
)
def test_refuses_arrays_of_other_sizes(change, message):
    given_arrays = {
        "f": np.zeros(3),
        "g": np.zeros(3),
        "s": np.zeros(3),
        "candidates": np.arange(3, dtype=np.int32),
        "best": np.zeros(3),
        "support": np.zeros((3, 3), dtype=np.int32),
        **change,
    }
    with pytest.raises(ValueError, match=message):
        triples(
            *given_arrays.values(), 1.0, 1.0, 1.0, 1e-15, 0.0, 0.5, INF, -1.0, 0, 1.0
        )


def test_refuses_a_line_that_is_none():
    arrays = (
        np.zeros((1, 3)),
        np.zeros(3),
        np.zeros(3),
        np.zeros((3, 3), dtype=np.int32),
    )
    with pytest.raises(ValueError, match="line and first must be indices"):
        pairs(*arrays, 1, 1e-15, 1e-9, 1.0, 0.0, 0.5, INF, -1.0, 0, 1.0)
