from __future__ import annotations

import pytest

from mechdesign.report.sentences import group_lines
from mechdesign.tables.cell_values import CellRules


def lines_of(k, **changes):
    parts = {"known": (), "rows": 8717, "released": 1464, "single": 0}
    parts["rules"] = CellRules()
    return group_lines(k, **{**parts, **changes})


def test_groups():
    (line,) = lines_of(5)
    assert line == (
        "Every released row occurs at least 5 times where the counts are fixed. 1,464 of the 8,717 "
        "rows of the table are released (--smallest-group 1 allows all, with their frequencies)."
    )
    (line,) = lines_of(5, released=8717)
    assert line == (
        "Every released row occurs at least 5 times where the counts are fixed (--smallest-group K "
        "asks for another number). 8,717 of the 8,717 rows of the table are released."
    )


def test_known_columns_and_single_rows():
    first, second = lines_of(5, known=["age", "sex"], single=300)
    assert first.startswith("Every released combination of age, sex occurs at least 5")
    assert second.startswith("300 released rows occur once: whoever knows other")
    assert lines_of(5, known=["age"], single=1)[1].startswith("1 released row occurs")


def test_single_rows_are_named_without_groups():
    (line,) = lines_of(1, released=8717, single=4000)
    assert line.startswith("4,000 rows of the table belong to a single record and can")
    assert line.endswith("--smallest-group K releases only rows that K records have.")
    assert lines_of(1, single=1)[0].startswith("1 row of the table belongs to a single")
    assert lines_of(1) == []


@pytest.mark.parametrize(
    ("rules", "cells"),
    [
        ({"missing": "marginal"}, "empty"),
        ({"unknown": "nearest"}, "unknown"),
        ({"missing": "output:a", "unknown": "marginal"}, "empty or unknown"),
    ],
)
def test_cells_that_are_drawn_leave_no_counts_fixed(rules, cells):
    (line,) = lines_of(5, rules=CellRules(**rules))
    assert f"are fixed, which they are not in a file with {cells} cells. 1,464" in line
