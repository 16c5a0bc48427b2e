"""The public report on a channel for boxes: the promise for the population, and nothing of the table."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import mechdesign as md
from mechdesign.report.content import public_report
from mechdesign.report.writing import report_text
from tests.mechdesign.report.test_box_section import designed


def page_of(channel, ending, *, satisfied=True):
    """The public report as the text of a page."""
    report = public_report(channel, channel.promise, satisfied=satisfied)
    return report_text(report, ending)


@pytest.mark.parametrize("options", [{}, {"given": ("k",)}, {"fill": True}])
def test_nothing_of_the_table_is_in_it(options):
    """The public channel has the same page, and so has one with other counts."""
    _, design = designed(**options)
    channel = design.channel
    page = page_of(channel, ".html")
    public = page_of(channel.public(), ".html")
    if not channel.fills:  # a public channel does not say what fills its boxes
        assert public == page
    text = page_of(channel, ".md", satisfied=True)
    claims = channel.claims
    records = claims.utility.records
    for number in (records, claims.slice_records, records - claims.slice_records):
        assert f"{number:,}" not in text
    more = replace(claims.utility, records=records + 1)
    others = replace(claims, slice_records=claims.slice_records + 1, utility=more)
    other = replace(channel, claims=others)
    assert page_of(other, ".html") == page


def test_it_states_the_promise_and_not_the_use():
    _, design = designed(notion=md.ALIP(0.5, 0.25))
    text = page_of(design.channel, ".md", satisfied=True)
    # exp(-0.5) rounded down and exp(0.25) rounded up.
    card = "Times as likely as before, in the population (90 % confidence)"
    assert f"{card}: **0.60653 to 1.2841**" in text
    assert "Achieved" not in text
    assert "records of the proof" not in text
    assert "Verified in exact arithmetic" in text
    assert "VIOLATED" in page_of(design.channel, ".md", satisfied=False)
    public = design.channel.public()
    assert "the table is missing" in page_of(public, ".md", satisfied=None)


def test_one_side_is_said_as_one_bound():
    _, design = designed(notion=md.MaxLift(0.25))
    text = page_of(design.channel, ".md", satisfied=True)
    assert "(90 % confidence): **0 to 1.2841**" in text
    assert "much less likely, or rule it out" in text


def test_given_columns_are_what_it_compares_with():
    _, design = designed(given=("k",))
    text = page_of(design.channel, ".md", satisfied=True)
    assert "compared with records of the same given columns" in text
    assert "| k m | box 1" in text


def test_filled_boxes_have_no_probabilities_that_no_public_file_has():
    """The totals of their rows are in proportion to the records of the boxes."""
    _, design = designed(fill=True)
    record = json.loads(page_of(design.channel, ".json"))
    assert record["channel"]["totals"] is None
    assert record["channel"]["rows"] == []
    assert record["boxes"]["rows"][0]["records"] is None
    text = page_of(design.channel, ".md")
    assert "drawn from a box" in text
    assert "Labels of boxes" not in text
