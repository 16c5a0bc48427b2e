"""Separable costs: their values against exact arithmetic, their largest value, their names."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvers.costs import COSTS, cost_named
from solvers.errors import InvalidOption
from solvers.points import Points
from tests.oracles.vertices import rational
from tests.solvers.reference import exact_cost


@pytest.mark.parametrize("name", COSTS)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 9))
def test_cost_of_points_against_exact_arithmetic(name, seed, n):
    rng = np.random.default_rng(seed)
    dense = rng.dirichlet(np.full(n, 0.3), size=4)
    dense[dense < 0.05] = 0.0
    found = cost_named(name).of(Points.from_dense(dense))
    for value, row in zip(found, dense, strict=True):
        assert value == pytest.approx(
            float(exact_cost([rational(x) for x in row], name).mid()), rel=1e-14, abs=1e-15
        )


@pytest.mark.parametrize("name", COSTS)
def test_nothing_for_zero_and_for_one(name):
    assert cost_named(name).term(np.array([0.0, 1.0])).tolist() == [0.0, 0.0]


def test_codes_are_those_of_the_kernel():
    assert {name: cost.code for name, cost in COSTS.items()} == {"entropy": 0, "gini": 1}


def test_unknown_cost():
    with pytest.raises(InvalidOption, match="cost 'variance' is not known; use one of entropy, gini"):
        cost_named("variance")
