"""Boxes on the page: what is promised together is shown together."""

from __future__ import annotations

import random
import re

import pytest

from mechdesign.app.choice import Choice
from mechdesign.app.memory_table import read_content
from mechdesign.app.session import design_channel

ROLES = {"illness": "protect", "job": "release"}


@pytest.fixture
def table():
    """800 records, of which three have a rare illness."""
    rng = random.Random(3)
    lines = ["illness,job"]
    for number in range(800):
        secret = rng.choice(["ill", "well"])
        if number < 3:
            secret = "rare"
        lines.append(f"{secret},{rng.choice(['clerk', 'cook', 'nurse'])}")
    return read_content("people.csv", "\n".join(lines).encode())


def designed(table, seed):
    choice = Choice(
        roles=ROLES,
        objective="information",
        level="0.9",
        merge_rare="20",
        factor="5",
        slice_seed=seed,
    )
    return design_channel(table, choice, lambda line: None)


def test_values_that_are_promised_together_are_one_line(table):
    """A line for each of them would claim more than the promise."""
    # A slice of 80 records seldom has one of the three.
    sections = designed(table, 1).sections
    promise = sections.partition("<summary>What is kept</summary>")[0]
    symbols = re.findall(r'<th scope="row">(.*?)</th>', promise)
    assert any(" or " in symbol and "rare" in symbol for symbol in symbols)
    assert "rare" not in symbols
    assert "Promised together, as one value: " in sections
    before = re.findall(r"</th>\s*<td\s*>([\d.]+) %</td>", promise)
    assert sum(map(float, before)) == pytest.approx(100, abs=0.1)


def test_every_released_label_has_its_boxes(table):
    result = designed(table, 1)
    assert result.title == "A channel for merged values of job"
    assert "box 4: job {any other}" in result.sections
    for name in ("clerk", "cook", "nurse"):
        assert name in result.sections
    assert "Posterior of each output" in result.sections


def test_the_downloads_have_a_report_with_every_box(table):
    result = designed(table, 1)
    texts = {file.name: file.text for file in result.files}
    assert "<html" in texts["report.html"]
    for name in ("clerk", "cook", "nurse"):
        assert name in texts["report.html"]


def test_the_report_for_everybody_has_no_counts(table):
    """Boxes are in both reports, shares of the records and the factors of outputs in one."""
    result = designed(table, 1)
    texts = {file.name: file.text for file in result.files}
    public = texts["public-report.html"]
    for name in ("clerk", "cook", "nurse"):
        assert name in public
    assert "records of the proof" in texts["report.html"]
    assert "records of the proof" not in public


def test_unchanged_cells_of_boxes(table):
    assert "What each column keeps" in designed(table, 1).sections
