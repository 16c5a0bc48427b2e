from __future__ import annotations

from mechdesign.auditing.law import law_of
from mechdesign.core.integers import IntegerRows
from mechdesign.report.law_section import law_lines

CELLS = [("a", "u"), ("b", "v"), ("b", "u")]


def lines_of(rows, outputs, counts=(2, 1, 1)):
    totals = [sum(row) for row in rows]
    columns = ("job", "city")
    return law_lines(
        law_of(counts, IntegerRows.of(rows), totals, CELLS, outputs, columns)
    )


def test_kept_law():
    (line,) = lines_of([[1, 0, 0], [0, 1, 0], [0, 0, 1]], CELLS)
    assert "exactly the probability that the table gives it" in line
    assert "in expectation" in line


def test_changed_law_names_share_pair_impossible_rows_and_vanished_values():
    outputs = [("a", "u"), ("a", "v"), ("a", "u")]
    assert lines_of([[1, 0, 0], [0, 1, 0], [0, 0, 1]], outputs) == [
        "What an analyst reads: the released rows do not have the frequencies of the table "
        "(total variation of whole rows at most 0.5).",
        "Largest change of a share: job a, 50.0 % -> 100.0 %.",
        "Worst pair of columns: job by city, total variation at most 0.5.",
        "At most 25.0 % of the released rows are combinations that no record has.",
        "Never released: job b.",
    ]


def test_single_columns_that_keep_their_law():
    """Two rows that trade places in one column: columns keep their law, pairs do not."""
    cells = [("a", "u"), ("a", "v"), ("b", "u"), ("b", "v")]
    rows = IntegerRows.of([[0, 1, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 0]])
    law = law_of([1, 1, 1, 1], rows, [1] * 4, cells, cells, ("job", "city"))
    lines = law_lines(law)
    assert "Every single column keeps its frequencies." in lines
    assert "Worst pair of columns: job by city, total variation at most 0.5." in lines


def test_law_that_is_off_by_rounding():
    unit = 2**50
    rows = [[unit, 0, 0], [0, unit, 0], [1, 0, unit - 1]]
    (line,) = lines_of(rows, CELLS)
    assert "up to a total variation of 2.3e-16" in line


def test_labels():
    (line,) = lines_of([[1, 0], [0, 1], [1, 0]], None)
    assert "labels and no values of the columns" in line
