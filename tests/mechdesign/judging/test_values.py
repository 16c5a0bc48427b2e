"""What a released value may stand for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechdesign.judging.together import covered, numbers_of

AGES = ("19", "20", "29", "30", "65")


def stands_for(value, original=AGES, pairs=None):
    numbers = numbers_of(original)
    (places,) = covered([value], original, numbers, pairs)
    return [original[place] for place in places]


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        ("20", ["20"]),
        ("20-29", ["20", "29"]),
        ("20 - 29", ["20", "29"]),
        ("[20, 30[", ["20", "29"]),
        ("[20,30)", ["20", "29"]),
        ("]20; 30]", ["29", "30"]),
        ("(20:30]", ["29", "30"]),
        (">=30", ["30", "65"]),
        (">30", ["65"]),
        ("<20", ["19"]),
        ("≤20", ["19", "20"]),
        ("65+", ["65"]),
        ("{19, 65}", ["19", "65"]),
        ("*", list(AGES)),
        ("", list(AGES)),
        ("young", []),
        ("{19, 66}", []),
    ],
)
def test_general_values_are_read(value, meant):
    assert stands_for(value) == meant


def test_a_value_of_the_original_is_itself_whatever_it_looks_like():
    assert stands_for("20-29", ("20-29", "20", "25")) == ["20-29"]
    assert stands_for("*", ("*", "a")) == ["*"]


def test_an_escaped_formula_is_the_formula():
    assert stands_for("'=1+1", ("=1+1", "b")) == ["=1+1"]
    assert stands_for("'=1+1", ("=1+1", "'=1+1")) == ["'=1+1"]
    assert stands_for("'b", ("=1+1", "b")) == []


def test_a_name_stands_for_the_values_of_the_records_that_have_it():
    pairs = (np.array([0, 0, 0]), np.array([1, 3, 1]))
    assert stands_for("middle", pairs=pairs) == ["20", "30"]


def test_names_have_no_intervals():
    assert stands_for("20-29", ("20", "old")) == []


@given(st.integers(-50, 50), st.integers(0, 30), st.sets(st.integers(-60, 90)))
def test_an_interval_stands_for_the_numbers_inside(low, width, numbers):
    original = [str(number) for number in sorted(numbers)]
    if not original:
        return
    found = stands_for(f"[{low}, {low + width})", original)
    assert found == [v for v in original if low <= int(v) < low + width]


def test_numbers_are_finite_and_may_be_missing():
    assert numbers_of(["1", "", "2.5"])[[0, 2]].tolist() == [1, 2.5]
    assert numbers_of(["1", "inf"]) is None
    assert numbers_of(["1", "a"]) is None
    assert numbers_of(["", " "]) is None


def test_a_number_is_itself_however_it_is_written():
    assert stands_for("20.0") == ["20"]
    assert stands_for("2e1") == ["20"]
    assert stands_for("0.10000000000000001", ("0.1", "0.2")) == ["0.1"]


def test_whole_numbers_beyond_two_to_53_are_told_apart():
    """The doubles of both identifiers are the same."""
    identifiers = ("9007199254740992", "9007199254740993")
    assert stands_for("9007199254740993.0", identifiers) == ["9007199254740993"]
    assert stands_for("9007199254740992", identifiers[1:]) == []
    assert stands_for("1e16", ("10000000000000000", "1")) == ["10000000000000000"]


@pytest.mark.parametrize(
    ("value", "inside"),
    [
        ("[9007199254740993, 9007199254740995)", [1, 2]),
        ("(9007199254740993, 9007199254740995]", [2, 3]),
        ("9007199254740992-9007199254740993", [0, 1]),
        (">9007199254740993", [2, 3]),
        ("<=9007199254740992", [0]),
        ("9007199254740995+", [3]),
    ],
)
def test_ends_of_intervals_are_exact_where_doubles_are_not(value, inside):
    """Two of these whole numbers are always the same double."""
    identifiers = tuple(str(2**53 + k) for k in range(4))
    assert stands_for(value, identifiers) == [identifiers[k] for k in inside]
