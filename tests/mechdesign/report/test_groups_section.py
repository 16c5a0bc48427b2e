from __future__ import annotations

from mechdesign.report.groups_section import group_lines


def lines_of(k, **changes):
    parts = {
        "is_default": True,
        "known": None,
        "rows": 8717,
        "released": 1464,
        "unique": 0,
    }
    return group_lines(k, **{**parts, **changes})


def test_default_groups():
    (line,) = lines_of(5)
    assert line == (
        "Every released row occurs at least 5 times where the counts are fixed (the default here; "
        "--smallest-group K asks for another number). 1,464 of the 8,717 rows of the table are "
        "released."
    )


def test_groups_that_were_asked_for():
    (line,) = lines_of(10, is_default=False)
    assert "at least 10 times" in line
    assert "default" not in line


def test_known_columns_and_single_rows():
    first, second = lines_of(5, known=["age", "sex"], unique=300)
    assert first.startswith("Every released combination of age, sex occurs at least 5")
    assert second.startswith("300 released rows occur once: whoever knows other")
    assert lines_of(5, known=["age"], unique=1)[1].startswith("1 released row occurs")


def test_single_rows_are_named_without_groups():
    (line,) = lines_of(1, released=8717, unique=4000)
    assert "of 8,717 released rows, 4,000 occur once" in line
    assert "--smallest-group K" in line
    (line,) = lines_of(1, released=10)
    assert "none occur once" in line
