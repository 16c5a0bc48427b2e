"""Pictures of columns: every record is in one bar, and rare values are together."""

from __future__ import annotations

import pytest

from mechdesign.app.choice import Choice
from mechdesign.app.memory_table import read_content
from mechdesign.app.pictures import merged_bars, pictures_of

COUNTS = {"a": 50, "b": 40, "c": 12, "d": 9, "e": 2}


@pytest.fixture
def table():
    """Letters in these numbers, beside a column with ten values in 11 or 12 records."""
    lines = ["letter,other"]
    letters = [letter for letter, count in COUNTS.items() for _ in range(count)]
    lines += [f"{letter},v{place % 10}" for place, letter in enumerate(letters)]
    return read_content("letters.csv", "\n".join(lines).encode())


def as_counts(bars):
    return [(bar.label, bar.records, bar.is_rare) for bar in bars]


def test_rare_values_are_one_marked_bar(table):
    letter, other = pictures_of(table)
    assert as_counts(letter.bars) == [
        ("a", 50, False),
        ("b", 40, False),
        ("c", 12, False),
        ("2 values in fewer than 10 records each", 11, True),
    ]
    assert letter.rare == 2
    assert other.bars[-1].label == "2 other values"
    assert not any(bar.is_rare for bar in other.bars)
    assert sum(bar.records for bar in other.bars) == table.records


def test_merged_values_follow_the_chosen_limit(table):
    choice = Choice(
        roles={"other": "protect", "letter": "release"}, level="0.9", merge_rare="41"
    )
    assert as_counts(merged_bars(table, choice)) == [
        ("a", 50, False),
        ("4 values in fewer than 41 records each", 63, True),
    ]
