from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.errors import BackendFailure, EmptyPolytope, InvalidOption
from solvers.plans import row_merging
from solvers.plans.merging_program import Merging, MergingProgram
from solvers.plans.row_merging import merge_rows
from tests.oracles import merged_rows
from tests.profiles import scaled


def random_problem(rng, *, items=4, targets=3, width=3, values=3, most=2):
    return Merging(
        items=rng.integers(0, values, (items, width)),
        amounts=rng.integers(1, most + 1, items),
        targets=rng.integers(0, values, (targets, width)),
        held=rng.integers(0, 5, targets),
        weights=rng.integers(1, 5, width) / 4,
        worst=float(rng.choice([0.0, 0.5, 1.0, 3.0])),
        mean=float(rng.choice([0.0, 0.5, 2.0])),
    )


def as_lists(problem):
    return (
        problem.items,
        problem.amounts.tolist(),
        problem.targets,
        problem.weights,
        problem.worst,
        problem.mean,
    )


def check_flow(problem, merged):
    """Whole units, all of an item's, at the cost that counting gives."""
    sent = np.zeros(len(problem.items), dtype=int)
    np.add.at(sent, merged.item, merged.amount)
    assert (merged.amount > 0).all()
    assert sent.tolist() == problem.amounts.tolist()
    moves = []
    for x, y, amount in zip(merged.item, merged.target, merged.amount, strict=True):
        old = tuple(problem.items[x].tolist())
        moves += [(old, tuple(problem.targets[y].tolist()))] * int(amount)
    counted = merged_rows.cost_of(
        [old for old, _ in moves],
        [new for _, new in moves],
        moves,
        problem.weights.tolist(),
        problem.worst,
        problem.mean,
    )
    assert merged.cost == pytest.approx(counted, abs=1e-9)


@settings(max_examples=scaled(15))
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 4))
def test_bound_best_flow_and_integers_are_in_order(seed, targets, width):
    """bound <= least cost of a flow <= least cost of integers <= cost, and the first two meet."""
    problem = random_problem(np.random.default_rng(seed), targets=targets, width=width)
    merged = merge_rows(problem)
    check_flow(problem, merged)
    fraction = merged_rows.best_fraction(*as_lists(problem))
    assert merged.bound <= fraction + 1e-7
    # The search ends within `GAP`; where bound and solution do not meet, no pair is left to join.
    slack = row_merging.GAP * problem.amounts.sum() + 1e-5
    assert merged.bound >= fraction - slack
    listed = merged_rows.best_by_listing(*as_lists(problem))
    assert fraction <= listed + 1e-7
    assert merged.cost >= listed - 1e-9


def test_integers_are_mostly_the_best_ones():
    """Rounding and single moves are a heuristic: on small tables they find the best 8 times of 10."""
    hits = 0
    for seed in range(25):
        problem = random_problem(np.random.default_rng(seed))
        best = merged_rows.best_by_listing(*as_lists(problem))
        cost = merge_rows(problem).cost
        hits += cost <= best + 1e-9
        assert cost <= 1.6 * best + 1e-9
    assert hits >= 20


def test_targets_that_are_not_among_the_nearest_join(monkeypatch):
    """With one target an item at first, pricing finds what all pairs together give."""
    rng = np.random.default_rng(3)
    problem = random_problem(rng, items=40, targets=25, width=4, values=5)
    whole = merge_rows(problem)
    monkeypatch.setattr(row_merging, "NEAREST", 1)
    rounds = []
    priced = merge_rows(problem, progress=rounds.append)
    assert len(rounds) > 1
    assert rounds[0].cost > rounds[-1].cost
    assert priced.bound == pytest.approx(whole.bound, abs=0.02)


def test_without_time_units_go_to_near_targets_in_turn():
    problem = random_problem(np.random.default_rng(1), items=30, targets=9)
    merged = merge_rows(problem, time_limit=0)
    check_flow(problem, merged)
    assert merged.bound == 0


def test_units_move_until_the_time_is_over(monkeypatch):
    """Moves of 14,000 rows took 6 s of a limit of .8 s."""
    problem = random_problem(np.random.default_rng(1), items=30, targets=9)
    moves = []
    move = row_merging._Units._move

    def counted(units, pairs, place):
        moves.append(place)
        return move(units, pairs, place)

    monkeypatch.setattr(row_merging._Units, "_move", counted)
    merge_rows(problem)
    assert moves
    moves.clear()
    check_flow(problem, merge_rows(problem, time_limit=0))
    assert not moves


def test_failing_program_leaves_the_last_answer(monkeypatch):
    def fail(self, *, time_limit):
        raise BackendFailure("no optimum")

    monkeypatch.setattr(MergingProgram, "solve", fail)
    problem = random_problem(np.random.default_rng(1))
    merged = merge_rows(problem)
    check_flow(problem, merged)
    assert merged.bound == 0


def test_balanced_targets_are_worth_a_farther_move():
    """Two items near the same target part ways if the tables count."""
    problem = {
        "items": np.array([[0, 0], [0, 0]]),
        "amounts": np.array([1, 1]),
        "targets": np.array([[0, 1], [1, 0]]),
        "held": np.array([0, 0]),
        "weights": np.array([0.4, 0.5]),
    }
    near = merge_rows(Merging(**problem, worst=0.0, mean=0.0))
    assert near.target.tolist() == [1, 1]
    assert near.cost == pytest.approx(0.8)


def test_columns_that_must_not_change():
    problem = Merging(
        items=np.array([[0, 0], [1, 0]]),
        amounts=np.array([1, 1]),
        targets=np.array([[0, 1], [1, 2]]),
        held=np.array([1, 1]),
        weights=np.array([math.inf, 0.5]),
        worst=0.0,
        mean=0.0,
    )
    merged = merge_rows(problem)
    assert merged.target[np.argsort(merged.item)].tolist() == [0, 1]
    assert merged.cost == pytest.approx(1.0)


def test_item_without_a_target_is_refused():
    problem = Merging(
        items=np.array([[0, 0], [2, 0]]),
        amounts=np.array([1, 1]),
        targets=np.array([[0, 1], [1, 2]]),
        held=np.array([1, 1]),
        weights=np.array([math.inf, 0.5]),
        worst=1.0,
        mean=0.0,
    )
    with pytest.raises(EmptyPolytope, match="may go to no target"):
        merge_rows(problem)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weights": np.ones(3)}, "need the same columns"),
        ({"targets": np.zeros((0, 2), dtype=int)}, "there is no target"),
        ({"amounts": np.array([0])}, "at least 1"),
        ({"held": np.array([-1])}, "not below 0"),
        ({"worst": -1.0}, "must not be negative"),
        ({"weights": np.array([np.nan, 1.0])}, "must not be negative"),
    ],
)
def test_wrong_problems_are_refused(changes, message):
    parts = {
        "items": np.array([[0, 0]]),
        "amounts": np.array([1]),
        "targets": np.array([[0, 1]]),
        "held": np.array([0]),
        "weights": np.ones(2),
        "worst": 1.0,
        "mean": 1.0,
    }
    with pytest.raises(InvalidOption, match=message):
        Merging(**{**parts, **changes})
