"""The public report on a channel for boxes: the promise for the population, and nothing of the table."""

from __future__ import annotations

from dataclasses import replace

import pytest

import mechdesign as md
from mechdesign.report.boxes_page import public_box_page
from mechdesign.report.pages import html_page, markdown
from tests.mechdesign.report.test_boxes_page import designed


@pytest.mark.parametrize("options", [{}, {"given": ("k",)}, {"fill": True}])
def test_nothing_of_the_table_is_in_it(options):
    """The public channel has the same page, and so has one with other counts."""
    _, design = designed(**options)
    channel = design.channel
    page = html_page(public_box_page(channel, satisfied=True))
    public = html_page(public_box_page(channel.public(), satisfied=True))
    if not channel.fills:  # a public channel does not say what fills its boxes
        assert public == page
    text = markdown(public_box_page(channel, satisfied=True))
    claims = channel.claims
    records = claims.utility.records
    for number in (records, claims.slice_records, records - claims.slice_records):
        assert f"{number:,}" not in text
    more = replace(claims.utility, records=records + 1)
    others = replace(claims, slice_records=claims.slice_records + 1, utility=more)
    other = replace(channel, claims=others)
    assert html_page(public_box_page(other, satisfied=True)) == page


def test_it_states_the_promise_and_not_the_use():
    _, design = designed(notion=md.ALIP(0.5, 0.25))
    text = markdown(public_box_page(design.channel, satisfied=True))
    # exp(-0.5) rounded down and exp(0.25) rounded up.
    assert "Population, 90 % confidence: **0.6 to 1.29 times as probable**" in text
    assert "- Table: **not promised**" in text
    assert "Verified in exact arithmetic" in text
    assert "VIOLATED" in markdown(public_box_page(design.channel, satisfied=False))
    assert "the table is missing" in markdown(
        public_box_page(design.channel.public(), satisfied=None)
    )


def test_one_side_is_said_as_one_bound():
    _, design = designed(notion=md.MaxLift(0.25))
    text = markdown(public_box_page(design.channel, satisfied=True))
    assert "at most 1.29 times as probable" in text


def test_given_columns_are_what_it_compares_with():
    _, design = designed(given=("k",))
    text = markdown(public_box_page(design.channel, satisfied=True))
    assert "compared with its share among people of the same k" in text
    assert "- k m: box 1" in text
