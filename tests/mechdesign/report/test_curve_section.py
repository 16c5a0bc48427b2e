"""The section on the trade-off curve: its numbers, the places of its picture, and its reasons."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

import mechdesign as md
from mechdesign.report import blocks
from mechdesign.report.curve_section import HEIGHT, WIDTH, curve_blocks
from tests.cases.designs import uniform_table
from tests.mechdesign.report import report_cases as cases

TABLE = uniform_table(5, m=3)


def parts(notion, mechanism="optimal", seconds=60.0):
    """The report of a new design, with the blocks of its curve by their types."""
    design = md.design(TABLE, notion, mechanism=mechanism)
    report = cases.internal(design, TABLE, seconds=seconds)
    return report, {type(block): block for block in curve_blocks(report)}


def test_a_factor_stands_beside_the_budget_that_is_its_logarithm():
    _, found = parts(md.ALIP(math.log(2), math.log(2)))
    grid = found[blocks.Grid]
    place = grid.header.index("at most times")
    factors = {row[0].text: row[place].text for row in grid.rows}
    assert factors["1.38629*"] == "2"
    # Twice the budget is the square of the factor.
    assert factors["2.77259"] == "4"
    _, found = parts(md.L1Lift(0.5, 0.5), "complete-merging")
    assert "at most times" not in found[blocks.Grid].header


def test_the_picture_has_the_numbers_of_the_record():
    report, found = parts(md.ALIP(0.4, 0.4), "complete-merging")
    chart = found[blocks.CurveChart]
    assert [line.name for line in chart.lines] == ["complete-merging", "optimal"]
    assert chart.lines[0].dashes == ""
    assert chart.lines[1].dashes != ""
    drawn = [place for line in chart.lines for place in line.places]
    rows = report.curve.rows
    assert len(drawn) == len(rows) == 20
    largest = rows[-1].epsilon
    for (x, y), row in zip(drawn, rows, strict=True):
        assert x == pytest.approx(WIDTH * row.epsilon / largest)
        assert y == pytest.approx(HEIGHT * (1 - row.nmi))
    assert chart.chosen == drawn[rows.index(report.curve.chosen)]
    assert [text for _, text in chart.ticks] == ["0.4", "0.8", "1.2", "1.6", "2"]


def test_without_bounds_nothing_is_called_impossible():
    report, _ = parts(md.ALIP(0.4, 0.4))
    rows = tuple(replace(row, upper_bound_nmi=None) for row in report.curve.rows)
    chosen = replace(report.curve.chosen, upper_bound_nmi=None)
    bare = replace(report, curve=replace(report.curve, rows=rows, chosen=chosen))
    found = {type(block): block for block in curve_blocks(bare)}
    assert found[blocks.CurveChart].impossible == ()
    assert "no channel keeps more than" not in found[blocks.Grid].header
    assert "bound" not in found[blocks.Text].text


def test_a_report_without_a_curve_says_why():
    _, found = parts(md.ALIP(0.4, 0.4), seconds=0.0)
    (remark,) = found.values()
    assert remark.text.startswith("No curve: it was not asked for.")
