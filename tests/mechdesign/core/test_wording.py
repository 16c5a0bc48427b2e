"""The order and the shares that people read."""

from __future__ import annotations

import pytest

from mechdesign.core.wording import about_percent, percent, reading_order


@pytest.mark.parametrize(
    ("texts", "read"),
    [
        (["10", "100", "9", "1e1"], ["9", "10", "1e1", "100"]),
        (["-1", "-10", "", "0.5"], ["-10", "-1", "0.5", ""]),
        (
            ["[120, 150]", "[30, 60)", "(-inf, 30)"],
            ["(-inf, 30)", "[30, 60)", "[120, 150]"],
        ),
        # Not all of them are numbers.
        (["b", "10", "9"], ["b", "10", "9"]),
        (["", ""], ["", ""]),
        (["nan", "inf", "1"], ["nan", "inf", "1"]),
        ([], []),
    ],
)
def test_numbers_are_read_in_their_order(texts, read):
    order = reading_order([[text] for text in texts])
    assert [texts[place] for place in order] == read


def test_crossed_columns_are_read_column_by_column():
    rows = [("b", "10"), ("b", "9"), ("a", "9"), ("a", "10")]
    order = reading_order(rows)
    assert [rows[place] for place in order] == [
        ("b", "9"),
        ("b", "10"),
        ("a", "9"),
        ("a", "10"),
    ]


def test_rows_of_several_lengths_stay():
    assert reading_order([("job", "10"), ("9",), ()]) == [0, 1, 2]


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.8, "about 80 %"),
        (0.001, "less than 1 %"),
        (0.9999, "more than 99 %"),
        (0.5, "about 50 %"),
    ],
)
def test_an_estimated_share_claims_no_certainty(share, text):
    assert about_percent(share) == text


def test_no_share_is_rounded_to_certainty():
    assert percent(0.99996) == ">99.9 %"
    assert percent(0.0001) == "<0.1 %"
    assert (percent(1.0), percent(0.0), percent(-0.0)) == ("100 %", "0 %", "0 %")


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (2.5, "250.0 %"),
        (999_999.0, "99999900.0 %"),
        (2.75e6, "2.75e+08 %"),
        (1e300, "1e+302 %"),
        (float("inf"), "inf %"),
    ],
)
def test_errors_of_any_size_are_percentages(share, text):
    assert percent(share) == text
