"""What a page has room for, and that nothing is shortened without a word."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechdesign.report.blocks import (
    LONGEST_LABEL,
    MOST_MAP_COLUMNS,
    MOST_MAP_ROWS,
    MOST_ROWS,
    Blocked,
    Grid,
    blocked,
    cells,
    grid,
    groups_by_likeness,
    label_remarks,
    short,
)
from mechdesign.report.channel_section import ABOVE, BELOW, _ends, _limits, _map, tenths
from mechdesign.report.record import Lifts, Promise
from mechdesign.report.wording import isolated


@given(st.text())
def test_short_labels_fit_and_change_only_if_they_must(text):
    shown = short(text).strip("\u2068\u2069")
    assert 0 < len(shown) <= LONGEST_LABEL
    if text.isascii() and text.isprintable() and 0 < len(text) <= LONGEST_LABEL:
        assert shown == text
    assert (
        bool(label_remarks([text])) is ("…" in shown and "…" not in text) or "…" in text
    )


def test_right_to_left_labels_are_isolated():
    assert isolated("עברית") == "\u2068עברית\u2069"
    assert isolated("مرحبا 12") == "\u2068مرحبا 12\u2069"
    assert isolated("déjà 日本") == "déjà 日本"


def test_remarks_only_where_something_is_left_out():
    rows = [cells("x", str(k)) for k in range(MOST_ROWS + 1)]
    assert grid("", ("a", "b"), rows[:-1], "outputs") == [
        Grid("", ("a", "b"), tuple(rows[:-1]))
    ]
    shown, remark = grid("", ("a", "b"), rows, "outputs")
    assert shown == Grid("", ("a", "b"), tuple(rows[:-1]))
    assert "The first 200 of 201 (outputs)" in remark.text
    assert label_remarks(["short"]) == []


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (1.0, "100"),
        (1.0 - 1e-12, ">99.9"),
        (0.9996, ">99.9"),
        (0.9994, "99.9"),
        (1e-12, "<0.1"),
        (0.0004, "<0.1"),
        (0.0006, "0.1"),
        (0.5, "50.0"),
    ],
)
def test_a_probability_is_neither_zero_nor_one_unless_it_is(share, text):
    assert tenths(share) == text


lifts = st.integers(1, 130).flatmap(
    lambda rows: st.integers(1, 40).flatmap(
        lambda columns: st.integers(0, 2**32).map(lambda seed: (rows, columns, seed))
    )
)


@given(lifts)
def test_blocks_show_the_lift_farthest_from_one(size):
    rows, columns, seed = size
    values = tuple(
        tuple(
            math.exp(((seed * (s + 7) * (x + 3)) % 101 - 50) / 20) for x in range(rows)
        )
        for s in range(columns)
    )
    names = tuple(f"x{k}" for k in range(rows)), tuple(f"s{k}" for k in range(columns))
    groups = groups_by_likeness(values, MOST_MAP_COLUMNS)
    assert sorted(s for group in groups for s in group) == list(range(columns))
    made = blocked(
        Lifts(sensitive=names[1], columns=names[0], values=values),
        "useful",
        "sensitive",
        groups,
    )
    assert len(made.rows) == len(made.values) <= MOST_MAP_ROWS
    assert len(made.columns) == len(made.values[0]) <= MOST_MAP_COLUMNS
    assert bool(made.note) is (rows > MOST_MAP_ROWS or columns > MOST_MAP_COLUMNS)
    flat = [v for row in values for v in row]
    shown = [v for line in made.values for v in line]
    assert set(shown) <= set(flat)
    assert max(abs(math.log(v)) for v in shown) == max(abs(math.log(v)) for v in flat)
    if not made.note:
        assert made.values == tuple(zip(*values, strict=True))
        assert (made.rows, made.columns) == names


def test_a_lift_of_zero_is_the_farthest():
    made = blocked(
        Lifts(
            sensitive=("s",),
            columns=tuple(f"x{k}" for k in range(60)),
            values=((0.0,) + (9.0,) * 59,),
        ),
        "u",
        "s",
        ((0,),),
    )
    assert made.values[0] == (0.0,)
    assert made.rows[0] == "x0 and 1 more"
    assert "up to 2 neighbours of u are joined" in made.note


@pytest.mark.parametrize(
    ("values", "end"),
    [
        ((1.0, 1.1), 2.0),
        ((0.5, 2.0), 2.0),
        ((0.49, 1.0), 4.0),
        ((1.0, 5.0), 8.0),
        ((0.0, 1.0), 8.0),
        ((99.0,), 8.0),
    ],
)
def test_the_colours_of_both_maps_end_at_the_same_power_of_two(values, end):
    assert (
        _ends(
            Blocked(("x",), ("s",) * len(values), (values,), "", ()),
            Blocked(("x",), ("s",), ((1.0,),), "", ()),
        )
        == end
    )


def test_a_block_of_symbols_is_marked_by_the_narrowest_of_their_budgets():
    promise = Promise(
        statement="",
        verdict="",
        satisfied=True,
        low=0.5,
        high=2.0,
        allowed=((0.5, 2.0), (0.9, 1.1)),
        bounds=(),
    )
    table = Blocked(
        ("x", "y", "z"),
        ("a and 1 more",),
        ((0.8,), (1.0,), (1.2,)),
        "put together",
        ((0, 1),),
    )
    shown = _map("After", table, "output", "s", promise, 2.0)
    assert [row[1].text for row in shown.rows] == [
        f"0.80{BELOW}",
        "1.00",
        f"1.20{ABOVE}",
    ]
    assert "2 of 3 cells outside what is allowed" in shown.caption


def test_symbols_of_a_block_have_similar_lifts_and_not_neighbouring_names():
    """Of 32 sensitive symbols every second one is likely where the others are not."""
    up = (4.0, 0.25, 4.0)
    down = (0.25, 4.0, 0.25)
    values = tuple(up if s % 2 else down for s in range(32))
    groups = groups_by_likeness(values, MOST_MAP_COLUMNS)
    assert len(groups) == 16
    for group in groups:
        assert len({s % 2 for s in group}) == 1
    names = tuple(f"s{s:02}" for s in range(32))
    made = blocked(Lifts(names, ("x", "y", "z"), values), "u", "s", groups)
    assert set(made.values[0]) == {4.0, 0.25}


def test_limits_follow_the_symbols_of_a_column():
    """Symbols are joined by likeness, so their budgets are not neighbours either."""
    promise = Promise(
        statement="",
        verdict="",
        satisfied=True,
        low=0.5,
        high=2.0,
        allowed=((0.5, 2.0), (0.9, 1.1), (0.4, 3.0)),
        bounds=(),
    )
    limits = _limits(promise, ((0, 2), (1,)))
    assert limits[0] == pytest.approx((0.5, 2.0))
    assert limits[1] == pytest.approx((0.9, 1.1))
