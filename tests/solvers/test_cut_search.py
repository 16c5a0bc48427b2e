"""Branch and bound over many cuts: the same minimum as with all rows at hand, and as all vertices."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers import InvalidOption, Polytope, vertices
from solvers.pricing.concave import ConcaveSearch, SearchStatus
from solvers.pricing.set_searches import CutSearch
from tests.profiles import scaled


def around(seed, secrets, n, count, size=0.4):
    """Cuts that touch a ball of images around that of a random point, and the point."""
    random = np.random.default_rng(seed)
    matrix = random.random((secrets, n))
    point = random.dirichlet(np.ones(n))
    normals = random.normal(size=(count, secrets))
    normals /= np.linalg.norm(normals, axis=1)[:, None]
    ends = normals @ (matrix @ point) + size * random.uniform(0.1, 0.3, count)
    return Polytope(normals @ matrix, np.full(count, -np.inf), ends), point


def least(search, prices, **options):
    found = search.run(
        prices,
        **{
            "cutoff": np.inf,
            "tolerance": 0.0,
            "slack": 0.0,
            "column_cutoff": np.inf,
        }
        | options,
    )
    assert found.status is SearchStatus.DONE
    return found


@settings(max_examples=scaled(60), deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 4), st.integers(2, 7), st.integers(1, 30))
def test_the_minimum_is_that_of_all_rows_at_hand(seed, secrets, n, count):
    """The bound holds, and is met by a member that costs as much."""
    polytope, _ = around(seed, secrets, n, count)
    prices = np.random.default_rng(seed + 1).normal(size=n)
    found = least(CutSearch(polytope), prices)
    other = least(ConcaveSearch(polytope, tightening=0.0), prices)
    assert found.bound == pytest.approx(other.bound, abs=1e-8)
    assert polytope.residual(found.points.toarray()).max() <= 1e-9
    costs = found.points.entropies() - found.points.dot(prices)
    assert costs.min() == pytest.approx(found.bound, abs=1e-8)
    listed = vertices(polytope, max_vertices=100_000).points
    positive = np.where(listed > 0, listed, 1.0)
    values = -(listed * np.log(positive)).sum(axis=1) - listed @ prices
    assert found.bound <= values.min() + 1e-12
    assert values.min() == pytest.approx(found.bound, abs=1e-8)


def test_identical_columns_and_threads():
    polytope, point = around(3, 3, 6, 40)
    twice = Polytope(
        np.hstack([polytope.rows, polytope.rows]), polytope.lower, polytope.upper
    )
    prices = np.random.default_rng(0).normal(size=12)
    one = least(CutSearch(twice), prices)
    two = least(CutSearch(twice, workers=2), prices)
    assert one.bound == pytest.approx(two.bound, abs=1e-9)
    best = np.maximum(prices[:6], prices[6:])
    assert one.bound == pytest.approx(least(CutSearch(polytope), best).bound, abs=1e-9)
    # Local searches from the middle find members, too.
    center = np.concatenate([0.5 * point, 0.5 * point])
    local = CutSearch(twice).run(
        prices,
        cutoff=-np.inf,
        tolerance=0.0,
        slack=0.0,
        column_cutoff=np.inf,
        center=center,
        enough=0,
    )
    assert len(local.points)
    assert twice.residual(local.points.toarray()).max() <= 1e-9
    with pytest.raises(InvalidOption, match="workers"):
        CutSearch(twice, workers=0)


def test_wrong_sizes_are_refused():
    from solvers._kernel import Search

    one = np.ones(1)
    with pytest.raises(ValueError, match="cuts must be a contiguous array of 4"):
        Search(np.ones((1, 2)), one, one, one, one, np.ones(2), 2, np.ones(3), 2)
    with pytest.raises(ValueError, match="wrong sizes"):
        Search(np.ones((1, 2)), one, one, one, one, np.ones(2), 2, np.ones(4), -2)
