"""Which level is proven next: steps that keep the growth of trees, and the last one in the time left."""

from __future__ import annotations

import math

import numpy as np
import pytest

from solvers.envelope.column_pool import (
    ALLOWANCE,
    FIRST_NODES,
    FIRST_STEP,
    GROWTH,
    LARGEST_STEP,
    LAST_SHARE,
    MOST_UNFINISHED,
    Levels,
)
from solvers.points import Points
from solvers.pricing.concave import (
    ConcaveSearch,
    SearchCounts,
    SearchResult,
    SearchStatus,
)
from solvers.sets.polytope import Polytope
from tests.solvers.reference import lift_matrix, random_table

LONG = 1e9


def ended(nodes: int, status: SearchStatus = SearchStatus.DONE) -> SearchResult:
    return SearchResult(status, 0.0, Points.units([], 3), SearchCounts(nodes=nodes))


def test_steps_follow_the_growth_of_the_trees():
    """Nodes that double every 0.05 grow threefold in 0.05 log 3 / log 2."""
    levels = Levels(1.0)
    assert levels.next(1.0, 2.0, LONG) == 1.0 + FIRST_STEP
    assert levels.most_nodes == ALLOWANCE * FIRST_NODES
    levels.learn(ended(20_000), 1.00, 1.0)
    levels.learn(ended(40_000), 1.05, 2.0)
    step = 0.05 * math.log(GROWTH) / math.log(2.0)
    assert levels.next(1.05, 2.0, LONG) == pytest.approx(1.05 + step)
    assert levels.most_nodes == ALLOWANCE * GROWTH * 40_000
    # Where so large a step reaches the end, one tree proves all that is open.
    assert levels.next(1.95, 2.0, LONG) == 2.0


def test_a_step_of_unknown_growth_is_half_of_what_is_open_at_most():
    levels = Levels(1.0)
    assert levels.next(1.95, 2.0, LONG) == pytest.approx(1.95 + LARGEST_STEP * 0.05)


def test_the_last_step_uses_the_time_that_is_left():
    """At 20,000 nodes a second, 8 seconds are too few for two more steps."""
    levels = Levels(1.0)
    levels.learn(ended(20_000), 1.00, 1.0)
    levels.learn(ended(40_000), 1.05, 2.0)
    in_time = LAST_SHARE * 20_000 * 8.0
    step = 0.05 * math.log(in_time / 40_000) / math.log(2.0)
    assert levels.next(1.05, 2.0, 8.0) == pytest.approx(1.05 + step)


def test_unfinished_trees_ask_for_less_with_more_nodes():
    levels = Levels(1.0)
    steps, nodes = [], []
    while not levels.is_stuck:
        steps.append(levels.next(1.0, 2.0, LONG) - 1.0)
        nodes.append(levels.most_nodes)
        levels.learn(ended(1, SearchStatus.NODE_LIMIT), 1.1, 1.0)
    assert len(steps) == MOST_UNFINISHED + 1
    assert steps == sorted(steps, reverse=True)
    assert nodes == sorted(nodes)
    levels.learn(ended(1), 1.1, 1.0)
    assert not levels.is_stuck


@pytest.mark.parametrize("seed", range(5))
def test_halves_have_the_same_minimum(seed):
    """Both rules of splitting find the least cost, and prove it."""
    rng = np.random.default_rng(seed)
    table = random_table(rng, "random", 4, 12)
    polytope = Polytope(lift_matrix(table), np.full(4, 0.7), np.full(4, 1.4))
    search = ConcaveSearch(polytope)
    prices = rng.uniform(0.0, 2.0, polytope.n)
    how = {
        "cutoff": math.inf,
        "tolerance": 1e-9,
        "slack": 0.0,
        "column_cutoff": math.inf,
    }
    first = search.run(prices, **how)
    second = search.run(prices, **how, halves=True)
    assert first.status is second.status is SearchStatus.DONE
    assert second.bound == pytest.approx(first.bound, abs=1e-6)
    costs = second.points.entropies() - second.points.dot(prices)
    assert costs.min() >= second.bound - 1e-9
    assert costs.min() == pytest.approx(second.bound, abs=1e-6)
