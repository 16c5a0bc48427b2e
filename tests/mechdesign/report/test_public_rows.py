"""The public report on a row channel: the promise, and nothing of the table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import mechdesign as md
from mechdesign.report.pages import html_page, markdown
from mechdesign.report.public_rows import public_row_page
from mechdesign.report.row_content import row_report
from mechdesign.report.rows_page import report_page


def table(seed, records):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "illness": rng.choice(["ill", "well"], records),
            "job": rng.choice(["clerk", "cook", "nurse"], records),
            "town": rng.choice(["north", "south"], records),
        }
    )


@pytest.fixture(scope="module")
def design():
    return md.design_rows(
        table(1, 400),
        sensitive="illness",
        release=["job", "town"],
        notion=md.ALIP(0.5, 0.25),
        time_limit=600.0,
    )


def test_it_states_the_promise_and_not_the_use(design):
    text = markdown(public_row_page(design.channel, satisfied=True))
    # exp(-0.5) rounded down and exp(0.25) rounded up.
    assert "by a factor between 0.6 and 1.29" in text
    assert "Verified in exact arithmetic" in text
    assert "illness" in text
    assert "The same for the population: **not promised**" in text
    internal = markdown(report_page(row_report(design.channel), pictures=False))
    assert "The same for the population: **not promised**" in internal
    assert "VIOLATED" in markdown(public_row_page(design.channel, satisfied=False))


def test_nothing_of_the_table_is_in_it(design):
    """A channel with another table, and other figures, has the same public report."""
    channel = design.channel
    other = md.design_rows(
        table(2, 900),
        sensitive="illness",
        release=["job", "town"],
        notion=md.ALIP(0.5, 0.25),
        time_limit=600.0,
    ).channel
    swapped = replace(
        channel,
        table=other.table,
        record=replace(
            channel.record,
            utility=other.record.utility,
            achieved=other.record.achieved,
        ),
    )
    page = html_page(public_row_page(channel, satisfied=True))
    assert html_page(public_row_page(swapped, satisfied=True)) == page
    assert html_page(public_row_page(channel.public(), satisfied=True)) == page
    assert "400" not in markdown(public_row_page(channel, satisfied=True))


def test_a_relative_promise_names_what_it_compares_with():
    design = md.design_rows(
        table(1, 400),
        sensitive="illness",
        release=["job"],
        given="town",
        promise="relative",
        notion=md.LIP(0.5),
        time_limit=600.0,
    )
    text = markdown(public_row_page(design.channel, satisfied=True))
    assert "among the records with the same given columns" in text
    assert "as it is" in text
