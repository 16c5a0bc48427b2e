"""Numbers in reports are never more favourable than the values behind them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechdesign.report.wording import (
    about,
    at_least,
    at_most,
    count,
    item,
    label,
    paragraph,
    percent,
    percent_at_most,
)


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_bounds_are_rounded_outwards_and_not_far(value):
    assert value <= float(at_most(value)) <= value * 1.0002
    assert value * 0.9998 <= float(at_least(value)) <= value
    assert float(about(value)) == pytest.approx(value, rel=1e-4)


@pytest.mark.parametrize(
    ("function", "value", "text"),
    [
        (at_most, 0.123451, "0.12346"),
        (at_least, 0.123459, "0.12345"),
        (about, 0.123456, "0.12346"),
        (at_most, 0.0, "0"),
        (at_most, math.inf, "inf"),
        (about, -math.inf, "-inf"),
        (about, -1.5, "-1.5"),
        (percent, 0.8508123, "85.081 %"),
        (percent_at_most, 0.8508123, "85.082 %"),
        (percent, 1.0, "100.000 %"),
    ],
)
def test_numbers(function, value, text):
    assert function(value) == text


def test_counts():
    assert count(1, "record") == "1 record"
    assert count(31_580, "record") == "31,580 records"


def test_labels_are_shown_as_they_are_but_for_control_characters():
    assert label("é 日本 ?") == "é 日本 ?"
    assert label("\x1b[2J\n") == "\\x1b[2J\\n"
    assert label("") == '""'


def test_paragraphs_wrap_without_breaking_words():
    text = " ".join(["word"] * 60)
    lines = paragraph(text).splitlines()
    assert len(lines) == 4
    assert all(line.startswith("  word") and len(line) <= 96 for line in lines)
    assert item("one " * 40).splitlines()[0].startswith("  - one")
    assert item("one " * 40).splitlines()[1].startswith("    one")
