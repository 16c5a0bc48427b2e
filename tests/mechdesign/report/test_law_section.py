from __future__ import annotations

import mechdesign as md
from mechdesign.auditing.law import law_of
from mechdesign.channel.channel import Channel
from mechdesign.core.integers import IntegerRows
from mechdesign.report.law_section import (
    TITLE,
    channel_law_lines,
    law_lines,
)
from mechdesign.report.wording import times_at_most

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
        "Largest change of a share: job a, 50.0 % -> 100 %.",
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


def test_labels_are_named_with_the_errors_of_estimates():
    """A coin that is told with the probability 3/4 doubles standard errors of its frequencies."""
    joint = md.Joint.from_counts(
        [[40, 10], [10, 40]], sensitive="s", useful="coin", useful_labels=["h", "t"]
    )
    rows = IntegerRows.of([[3 * 2**51, 2**51], [2**51, 3 * 2**51]])
    channel = Channel(useful=joint.useful, outputs=("u", "v"), rows=rows, joint=joint)
    (line,) = channel_law_lines(channel, joint)
    assert line.startswith(
        f"{TITLE}: labels, such as 'u', are released in the place of"
    )
    assert "standard errors of up to 2 times" in line


def test_a_single_column_is_called_exact_only_where_it_is():
    cells = [("a",), ("b",)]
    unit = 2**50

    def lines(rows):
        return law_lines(
            law_of([1, 1], IntegerRows.of(rows), [unit] * 2, cells, cells, ["job"])
        )

    (exact,) = lines([[0, unit], [unit, 0]])
    assert "every released value has exactly the probability" in exact
    assert "Frequencies and means of job" in exact
    (near,) = lines([[1, unit - 1], [unit, 0]])
    assert "the frequencies of the table, up to a total variation of 4.5e-16" in near
    off = lines([[unit // 2, unit // 2], [unit, 0]])
    assert "do not have the frequencies of the table" in off[0]
    assert off[1:] == ["Largest change of a share: job a, 50.0 % -> 75.0 %."]


def test_a_change_of_a_share_is_seen():
    unit = 10**6
    rows = [[unit - 400, 400, 0], [0, unit, 0], [0, 0, unit]]
    cells = [("a",), ("b",), ("c",)]
    law = law_of([1, 1, 2], IntegerRows.of(rows), [unit] * 3, cells, cells, ["job"])
    assert "Largest change of a share: job a, 25.00 % -> 24.99 %." in law_lines(law)
    # Rounded to a decimal, a change by 0.03 % would look like one by 0.1 %.
    law = law_of(
        [1_665, 1, 8_334], IntegerRows.of(rows), [unit] * 3, cells, cells, ["job"]
    )
    assert "Largest change of a share: job a, 16.650 % -> 16.643 %." in law_lines(law)


def test_large_numbers_of_times_are_written_out():
    shown = [times_at_most(factor) for factor in (4.51, 56.2, 371.0, 9_999.0, 3.71e7)]
    assert shown == ["4.6", "57", "380", "10,000", "3.8e+07"]
