"""The HTML file needs nothing else, is valid, and its pictures can be read without colours or eyes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mechdesign as md
from mechdesign.report import blocks, channel_section, drawing, writing
from mechdesign.report.document import document_of
from tests.mechdesign.report import report_cases as cases

LOADING = {
    "src",
    "href",
    "srcset",
    "data",
    "action",
    "poster",
    "background",
    "xlink:href",
}


@pytest.fixture(scope="module")
def page():
    """The internal report with hostile labels, its pictures drawn."""
    report = cases.reports(cases.hostile(), md.ALIP(0.3, 0.3))[0]
    return cases.texts(report)[".html"]


def test_it_loads_nothing(page):
    parsed = cases.parsed(page)
    assert not {
        "script",
        "link",
        "iframe",
        "object",
        "embed",
        "base",
        "form",
    } & set(parsed.tags)
    for _, name, value in parsed.attributes:
        assert not name.startswith("on")
        if name in LOADING and not value.startswith("data:image/svg+xml;base64,"):
            assert value.startswith("#")
            assert value[1:] in parsed.ids
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL).group(1)
    assert "url(" not in style
    assert "@import" not in style
    assert "default-src 'none'" in page


def test_it_is_valid(page):
    parsed = cases.parsed(page)
    assert parsed.faults == []
    assert len(parsed.ids) == len(set(parsed.ids))
    assert page.startswith('<!DOCTYPE html>\n<html lang="en">')
    assert parsed.tags.count("h1") == parsed.tags.count("main") == 1
    referred = {
        name
        for _, key, value in parsed.attributes
        if key in ("aria-labelledby",)
        for name in value.split()
    }
    assert referred <= set(parsed.ids)


def test_the_curve_is_described_and_marks_the_chosen_point(page):
    (picture,) = re.findall(r'<svg class="chart".*?</svg>', page, re.DOTALL)
    drawn = ElementTree.fromstring(picture)
    assert drawn.get("role") == "img"
    assert "with the chosen point marked" in drawn.get("aria-label")
    (line,) = drawn.findall("polyline")
    corners = line.get("points").split(" ")
    assert len(corners) == 10
    (ring,) = drawn.findall("circle")
    # The fourth of the multiples of the chosen budget, 0.25 to 2.5, is that budget.
    assert f"{ring.get('cx')},{ring.get('cy')}" == corners[3]
    (area,) = drawn.findall("polygon")
    bounds = area.get("points").split(" ")
    assert len(bounds) == 12
    # In SVG y grows downwards: no bound lies below its point.
    for point, bound in zip(corners, bounds, strict=False):
        x, y = map(float, point.split(","))
        assert bound.split(",")[0] == f"{x:.1f}"
        assert float(bound.split(",")[1]) <= y


def test_labels_reach_the_heat_maps_as_letters(page):
    maps = re.search(r'<figure class="maps.*?</figure>', page, re.DOTALL)[0]
    assert '<th scope="row">&lt;script&gt;alert(1)&lt;/script&gt;</th>' in maps
    assert '<th scope="row">a &amp; b</th>' in maps
    assert '<th scope="row">id=&quot;x&quot; url(#gradient)</th>' in maps


def lightness(colour: str) -> float:
    red, green, blue = (int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5))
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
        for c in (red, green, blue)
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((lightness(one), lightness(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_colours_keep_their_order_in_grey_and_texts_stand_out():
    pale, middle, dark = writing.COLOURS
    assert lightness(pale) > 1.5 * lightness(middle) > 6 * lightness(dark)
    assert contrast(pale, drawing.INK) > 7
    assert contrast(middle, drawing.INK) > 4.5
    assert contrast(dark, "#ffffff") > 7
    for colour in ("#5a5a5a", "#1f3a5f", "#8a3b00", "#1b1b1b"):  # of texts on white
        assert contrast(colour, "#ffffff") > 4.5


@given(st.floats(-1.0, 1.0))
def test_a_darker_cell_is_a_larger_lift_and_its_number_stands_out(tint):
    """Lightness falls strictly with the lift, and letters have a contrast of at least 3 to their ground."""
    ground, ink = styled(tint)
    assert lightness(styled(-1.0)[0]) >= lightness(ground) >= lightness(styled(1.0)[0])
    assert lightness(ground) >= lightness(styled(min(1.0, tint + 0.1))[0])
    assert contrast(ground, ink) > 3.0


def styled(tint):
    style = writing._tint(blocks.Cell("x", tint=tint))
    colours = re.findall("#[0-9a-f]+", style)
    return colours[0], "#ffffff" if "#fff" in colours[1:] else drawing.INK


@pytest.mark.parametrize(
    ("lift", "shown", "tint"),
    [
        (0.0, "0", -1.0),
        (0.001, "<.01", -1.0),
        (1.0, "1.00", 0.0),
        (4.0, "4.00", 2 / 3),
        (12.0, "12.0", 1.0),
    ],
)
def test_a_lift_in_its_cell(lift, shown, tint):
    cell = channel_section._lift(lift, "", 8.0)
    assert (cell.text, cell.tint) == (shown, pytest.approx(tint))


def test_no_page_on_a_channel_needs_matplotlib(monkeypatch):
    monkeypatch.setattr(drawing, "import_module", None)
    internal, public = cases.reports(cases.hostile(), md.ALIP(0.3, 0.3))
    assert writing.html_page(document_of(internal)).count("<svg") == 1
    assert "<svg" not in writing.html_page(document_of(public))


@pytest.mark.parametrize("name", ["parts.html.jinja", "page.md.jinja"])
def test_every_kind_of_block_has_its_place(name):
    """Else a page would leave out what the others have."""
    laid_out = (Path(writing.__file__).parent / name).read_text(encoding="utf-8")
    assert set(re.findall(r'kind == "(\w+)"', laid_out)) == {
        kind.__name__ for kind in get_args(blocks.Block)
    }


def test_numbers_of_a_picture_are_folded_and_a_share_darkens_its_cell():
    row = (blocks.Cell("x"), blocks.Cell("1", 1.0))
    grid = blocks.Grid("Caption", ("a", "b"), (row,), folded=True)
    made = blocks.Document(
        "T", "B", False, "L", (), (blocks.Section("s", "S", (grid,)),), "F"
    )
    page = writing.html_page(made)
    assert "<summary>Caption: in numbers</summary>" in page
    assert '<td class="s5">1</td>' in page
    assert '<th scope="row">x</th>' in page
