from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechdesign.auditing.law import law_of
from mechdesign.core.errors import InputError
from mechdesign.core.integers import IntegerRows
from tests.oracles import laws

NAMES = ("a", "b", "c")


def is_above(number: float, exact: Fraction) -> bool:
    """Whether a double is the smallest one at or above a fraction."""
    return Fraction(number) >= exact > Fraction(math.nextafter(number, -math.inf))


@st.composite
def channels(draw):
    """Counts, integers, totals of their own, and cells, some of them equal, over three columns."""
    n = draw(st.integers(1, 6))
    m = draw(st.integers(1, 6))
    cells = st.tuples(*[st.sampled_from("uvw")] * 3)
    inputs = draw(st.lists(cells, min_size=n, max_size=n))
    outputs = draw(st.lists(cells, min_size=m, max_size=m))
    counts = draw(st.lists(st.integers(0, 2**40), min_size=n, max_size=n))
    counts[0] += 1
    values = st.one_of(st.just(0), st.integers(1, 9), st.integers(2**55, 2**60))
    rows = draw(
        st.lists(st.lists(values, min_size=m, max_size=m), min_size=n, max_size=n)
    )
    for row in rows:
        row[0] += 1
    return counts, rows, [sum(row) for row in rows], inputs, outputs


@given(channels())
def test_law_agrees_with_fractions(case):
    """Every figure is the smallest double at or above its value in fractions."""
    counts, rows, totals, inputs, outputs = case
    law = law_of(counts, IntegerRows.of(rows), totals, inputs, outputs, NAMES)
    table, released = laws.law_by_listing(counts, rows, totals, inputs, outputs)
    moved = laws.differences(table, released)

    assert law.kept == (not any(moved.values()))
    assert is_above(law.largest_deviation, max(map(abs, moved.values())))
    assert is_above(law.total_variation, laws.variation(table, released))
    for place, name in enumerate(NAMES):
        before = laws.marginal(table, [place])
        after = laws.marginal(released, [place])
        assert is_above(law.columns[name], laws.variation(before, after))
        gone = {v for (v,), share in before.items() if share and not after.get((v,), 0)}
        assert set(law.vanished.get(name, ())) == gone
    one, other, variation = law.pairs
    pair = [NAMES.index(one), NAMES.index(other)]
    reached = laws.variation(laws.marginal(table, pair), laws.marginal(released, pair))
    assert reached == laws.worst_pair(table, released, 3)
    assert is_above(variation, reached)
    impossible = sum(share for cells, share in released.items() if not table.get(cells))
    assert is_above(law.impossible_rows, Fraction(impossible))

    changes = {}
    for place, name in enumerate(NAMES):
        before = laws.marginal(table, [place])
        after = laws.marginal(released, [place])
        for (value,), change in laws.differences(before, after).items():
            changes[name, value] = (abs(change), before.get((value,), 0), change)
    most = max(changes.values())[0]
    change = law.largest_share_change
    if most == 0:
        assert change is None
    else:
        size, before, signed = changes[change.column, change.value]
        assert size == most
        assert change.before == float(before)
        assert change.after == float(before + signed)
    json.dumps(law.record)


@given(st.lists(st.integers(1, 2**30), min_size=1, max_size=5), st.data())
def test_plan_keeps_the_law_exactly(counts, data):
    """A symmetric plan has row and column sums c_x M, and totals of its own: the law is kept."""
    n = len(counts)
    unit = 2**20
    plan = np.diag([count * unit for count in counts])
    for _ in range(5):
        i, j = data.draw(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)))
        if i != j:
            moved = min(plan[i, i], plan[j, j]) // 3
            plan[[i, j], [i, j]] -= moved
            plan[[i, j], [j, i]] += moved
    cells = [(str(i), str(i % 2)) for i in range(n)]
    totals = [count * unit for count in counts]
    law = law_of(counts, IntegerRows.of(plan), totals, cells, cells, ("a", "b"))
    assert law.kept
    assert law.largest_deviation == law.total_variation == law.impossible_rows == 0
    assert law.largest_share_change is None
    assert law.vanished == {}

    # One unit elsewhere is found, however small it is.
    if n > 1:
        moved = np.array(plan)
        moved[0, 0] -= 1
        moved[0, 1] += 1
        off = law_of(counts, IntegerRows.of(moved), totals, cells, cells, ("a", "b"))
        assert not off.kept
        exact = Fraction(1, sum(counts) * unit)
        assert is_above(off.largest_deviation, exact)


def test_example_of_the_docstring():
    rows = IntegerRows.of([[2, 0], [1, 1]])
    law = law_of([3, 1], rows, [2, 2], [("a",), ("b",)], [("a",), ("b",)], ["x"])
    assert law.total_variation == 0.125
    assert law.pairs is None
    assert law.record["pairs"] is None
    change = law.record["largest_share_change"]
    assert change == {"column": "x", "value": "a", "before": 0.75, "after": 0.875}


def test_value_that_vanishes_and_row_that_nobody_has():
    cells = [("a", "u"), ("b", "v")]
    rows = IntegerRows.of([[1, 0], [0, 1]])
    law = law_of([1, 1], rows, [1, 1], cells, [("a", "u"), ("a", "v")], ["x", "y"])
    assert law.vanished == {"x": ("b",)}
    assert law.impossible_rows == 0.5
    assert law.columns == {"x": 0.5, "y": 0.0}
    assert law.pairs == ("x", "y", 0.5)


def test_labels_have_no_law():
    rows = IntegerRows.of([[1, 1]])
    assert law_of([1], rows, [2], [("a",)], None, ["x"]) is None


def test_wrong_total_is_refused():
    rows = IntegerRows.of([[1, 1]])
    with pytest.raises(InputError, match="do not sum to its total"):
        law_of([1], rows, [3], [("a",)], None, ["x"])


@pytest.mark.parametrize("counts", [[0, 0], [-1, 2], []])
def test_counts_that_are_none_are_refused(counts):
    rows = IntegerRows.of([[1]] * len(counts) or np.zeros((0, 1), dtype=int))
    cells = [("a",)] * len(counts)
    with pytest.raises(InputError, match="counts must not be negative"):
        law_of(counts, rows, [1] * len(counts), cells, [("a",)], ["x"])
