"""Reports in a real browser: nothing on the console, nothing loaded, readable on a desk, a telephone and paper."""

from __future__ import annotations

import re

import pytest

import mechdesign as md
from mechdesign.comparison import curve
from mechdesign.tables.joint import Joint
from tests.mechdesign.report import report_cases as cases
from tests.mechdesign.report.browser import Browser, chromium

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        chromium() is None,
        reason="no chromium on the path (Debian: apt-get install chromium)",
    ),
]

WIDTHS = (1280, 400)

OVERFLOWING = """
[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1
  && !e.closest('.box')).map(e => e.outerHTML.slice(0, 200))
"""

FOREIGN_PICTURES = (
    "[...document.images].filter(i => !i.src.startsWith('data:image/svg+xml')).length"
)

CHART = "document.querySelector('#curve svg.chart').getBoundingClientRect().width"

SHOWN_DETAILS = "[...document.querySelectorAll('details table')].filter(t => t.checkVisibility()).length"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def pages(tmp_path_factory, adult):
    """Adult, hostile labels, 200 x 20 symbols and public versions, as files."""
    folder = tmp_path_factory.mktemp("pages")
    large = Joint.from_counts(cases.counts(200, 20))
    made = {
        "adult": cases.reports(adult, md.ALIP(0.5, 0.5)),
        "hostile": cases.reports(cases.hostile(), md.ALIP(0.3, 0.3)),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(curve, "LONGEST", 0.0)
        made["large"] = cases.reports(large, md.ALIP(1.0, 1.0), "subset-merging")
    files = {}
    for name, reports in made.items():
        for audience, report in zip(("internal", "public"), reports, strict=True):
            path = files[name, audience] = folder / f"{name}-{audience}.html"
            path.write_text(cases.texts(report)[".html"], encoding="utf-8")
    return files


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("audience", ["internal", "public"])
@pytest.mark.parametrize("name", ["adult", "hostile", "large"])
def test_a_page_fits_and_keeps_quiet(browser, pages, name, audience, width):
    page = browser.open(pages[name, audience], width)
    assert page.value("innerWidth") == width
    assert page.value("document.documentElement.scrollWidth") <= width
    assert page.value(OVERFLOWING) == []
    assert page.complaints() == []
    # Pictures are in the page itself, as data.
    fetched = [
        address for address in page.requests() if not address.startswith("data:")
    ]
    assert fetched == [pages[name, audience].resolve().as_uri()]
    assert page.value("document.compatMode") == "CSS1Compat"
    assert page.value("document.querySelectorAll('script').length") == 0
    assert page.value(FOREIGN_PICTURES) == 0
    assert page.value("parseFloat(getComputedStyle(document.body).fontSize)") >= 16


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["adult", "hostile"])
def test_the_curve_is_legible(browser, pages, name, width):
    page = browser.open(pages[name, "internal"], width)
    # Texts of 12 units in a picture of 380 are at least 11 pixels high.
    assert page.value(CHART) >= 380 * 11 / 12


def test_a_page_can_scroll_its_wide_tables(browser, pages):
    page = browser.open(pages["adult", "internal"], 400)
    inside = page.value(
        "[...document.querySelectorAll('.box')].some(b => b.scrollWidth > b.clientWidth)"
    )
    assert inside is True


def test_numbers_are_folded_on_a_screen_and_shown_on_paper(browser, pages):
    page = browser.open(pages["adult", "internal"], 1280)
    assert page.value(SHOWN_DETAILS) == 0
    page.print_media()
    assert page.value(SHOWN_DETAILS) == 1
    assert (
        page.value("getComputedStyle(document.querySelector('nav')).display") == "none"
    )
    assert (
        page.value("getComputedStyle(document.querySelector('.box')).overflowX")
        == "visible"
    )
    pdf = page.pdf()
    assert pdf.startswith(b"%PDF-")
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 12


def test_the_browser_hears_complaints(browser, tmp_path):
    """Otherwise the silence above would prove nothing."""
    bad = tmp_path / "bad.html"
    bad.write_text(
        '<!DOCTYPE html><div style="width:2000px">x</div><script>console.error("no")</script>'
    )
    page = browser.open(bad, 400)
    assert len(page.complaints()) == 1
    assert page.value("document.documentElement.scrollWidth") >= 2000
    blocked = tmp_path / "blocked.html"
    blocked.write_text(
        '<!DOCTYPE html><meta http-equiv="Content-Security-Policy" content="default-src \'none\'">'
        '<script>alert(1)</script><img src="x.png">'
    )
    assert len(browser.open(blocked, 400).complaints()) >= 2
