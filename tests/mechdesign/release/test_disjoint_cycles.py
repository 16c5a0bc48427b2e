"""Cycles of entries without a common one, and the moves along them."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechdesign.release import table_rounding as module
from mechdesign.release.draws import Key
from mechdesign.release.table_rounding import (
    KeyedChance,
    disjoint_cycles,
    moved_along_cycles,
)
from tests.oracles.random_choices import outcomes

PLACES = st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=24)


def arrays(places):
    pairs = np.array(sorted(places), dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


@given(places=PLACES)
def test_cycles_close_and_have_no_entry_in_common(places):
    rows, columns = arrays(places)
    seen = set()
    for cycle in disjoint_cycles(rows, columns):
        assert len(cycle) >= 4
        assert len(cycle) % 2 == 0
        assert not seen & set(cycle)
        assert len(set(cycle)) == len(cycle)
        seen |= set(cycle)
        # Two entries of every row and column that it visits, in turn.
        for lines in (rows, columns):
            visited = lines[cycle].tolist()
            assert all(visited.count(line) == 2 for line in visited)
        after = cycle[1:] + cycle[:1]
        same_row = [rows[a] == rows[b] for a, b in zip(cycle, after, strict=True)]
        assert same_row[::2] != same_row[1::2]
        assert len(set(same_row[::2])) == 1


@given(places=PLACES)
def test_a_forest_has_no_cycle_and_anything_else_has_one(places):
    rows, columns = arrays(places)
    # Union by listing: an entry that joins two parts already joined closes a cycle.
    part = {("row", row): {("row", row)} for row in rows.tolist()}
    part |= {("column", column): {("column", column)} for column in columns.tolist()}
    is_forest = True
    for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
        mine = part["row", row]
        if ("column", column) in mine:
            is_forest = False
            continue
        joined = mine | part["column", column]
        for vertex in joined:
            part[vertex] = joined
    assert (not any(disjoint_cycles(rows, columns))) == is_forest


@given(
    places=PLACES,
    values=st.lists(st.integers(0, 8), min_size=24, max_size=24),
    seed=st.integers(0, 3),
)
def test_moves_keep_sums_and_means(places, values, seed):
    rows, columns = arrays(places)
    entries = np.array(values[: len(rows)], dtype=np.int64)

    def algorithm(chance):
        return moved_along_cycles(rows, columns, entries, 8, chance)

    mean = np.zeros(len(rows), dtype=object)
    for probability, moved in outcomes(algorithm, seed):
        assert ((moved >= 0) & (moved <= 8)).all()
        for lines in (rows, columns):
            before = np.bincount(lines, entries, minlength=6)
            assert np.array_equal(np.bincount(lines, moved, minlength=6), before)
        mean += probability * moved.astype(object)
    assert mean.tolist() == entries.tolist()


def test_the_example_of_the_module():
    rows = np.array([0, 0, 1, 1, 2, 2, 2])
    columns = np.array([0, 1, 0, 2, 0, 1, 2])
    entries = np.array([2, 2, 1, 3, 1, 2, 1])
    up = np.array([3, 1, 0, 4, 1, 3, 0])
    seen = set()
    for seed in range(20):
        # Which cycles there are depends on the order; that of the example occurs.
        for _, moved in outcomes(
            lambda chance: moved_along_cycles(rows, columns, entries, 4, chance), seed
        ):
            seen.add(tuple(moved.tolist()))
    assert {tuple(up.tolist()), tuple((2 * entries - up).tolist())} <= seen


class Lines:
    """Counts the lines that `disjoint_cycles` runs."""

    def __init__(self):
        self.count = 0

    def __call__(self, frame, event, argument):
        if frame.f_code is not module.disjoint_cycles.__code__:
            return None
        self.count += event == "line"
        return self


@pytest.mark.parametrize("size", [250, 1000, 4000])
def test_the_steps_are_proportional_to_the_entries(size):
    generator = np.random.default_rng(6)
    rows = np.tile(np.arange(size), 4)
    columns = np.concatenate([generator.permutation(size) for _ in range(4)])
    lines = Lines()
    before = sys.gettrace()
    sys.settrace(lines)
    try:
        cycles = [*disjoint_cycles(rows, columns)]
    finally:
        sys.settrace(before)
    assert len(cycles) > 4
    assert lines.count < 25 * len(rows)


def test_all_calls_of_a_chance_differ():
    chance = KeyedChance(Key.insecure(1))
    again = KeyedChance(Key.insecure(1))
    both = again.coins(80)
    assert np.array_equal(np.concatenate([chance.coins(30), chance.coins(50)]), both)
    orders = [chance.order(30).tolist() for _ in range(3)]
    assert len({tuple(order) for order in orders}) == 3
    assert all(sorted(order) == list(range(30)) for order in orders)
    assert again.order(30).tolist() == orders[0]
