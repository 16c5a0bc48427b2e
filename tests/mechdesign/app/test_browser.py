"""The page in a real browser, by keyboard alone: Chromium through Playwright."""

from __future__ import annotations

import itertools
import json
import math
import os
import random
import shutil
import time
import zipfile

import pandas as pd
import pytest

playwright = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed (pip install playwright)"
)

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
MOST_TABS = 120
FILE = "File with one record a row: CSV, also in a .zip; Parquet; SPSS, Stata or SAS"
SECONDS = (
    120_000  # in milliseconds, as Playwright counts; a bound on waiting, not a measure
)

pytestmark = [
    # A browser takes seconds to start; test_server.py asks for the same pages without one.
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
    pytest.mark.usefixtures("quick_work"),
]


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        # Its sandbox needs a user who is not root.
        arguments = []
        if os.getuid() == 0:
            arguments = ["--no-sandbox"]
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser):
    context = browser.new_context(viewport={"width": 400, "height": 800})
    page = context.new_page()
    page.set_default_timeout(SECONDS)
    page.problems = []
    # From the beginning: a listener that comes with the key may come too late.
    page.choosers = []
    page.on("filechooser", lambda chooser: page.choosers.append(chooser))
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on(
        "console",
        lambda line: line.type == "error" and page.problems.append(line.text),
    )
    page.on(
        "request",
        lambda request: (
            page.problems.append(request.url)
            if not request.url.startswith(("http://127.0.0.1:", "data:"))
            else None
        ),
    )
    yield page
    context.close()


def focused_name(page):
    """The accessible name of what has the focus."""
    return page.evaluate(
        """() => {
            const element = document.activeElement;
            if (element.labels && element.labels.length) {
                return element.labels[0].textContent.trim();
            }
            return (element.getAttribute("aria-label") || element.textContent || "").trim();
        }"""
    )


def unnamed(page):
    """Controls, and places that the keyboard scrolls, that a screen reader could not name."""
    return page.evaluate(
        """() => [...document.querySelectorAll(
            "input:not([type=hidden]), select, button, a, summary, [role=region], [role=img]"
        )].filter(
            element => !(element.labels && element.labels.length)
                && !element.getAttribute("aria-label")
                && (element.matches("select, input") || !element.textContent.trim())
        ).map(element => element.outerHTML)"""
    )


def tab_to(page, name):
    """Press Tab until the element of this name has the focus."""
    for _ in range(MOST_TABS):
        page.keyboard.press("Tab")
        if focused_name(page) == name:
            return
    raise AssertionError(f"no way to {name!r} by keyboard")


def heading_with_focus(page, text):
    """Wait until the focus is on the heading that an action leads to.

    While the browser goes from one page to the next there is a moment with no body, and so
    with no element that could have the focus: that is "not yet", not a mistake of the page.
    """
    page.wait_for_function(
        "text => document.activeElement?.textContent.includes(text)", arg=text
    )


def unfold(page):
    """Open everything that is folded."""
    page.evaluate(
        "document.querySelectorAll('details').forEach(part => part.open = true)"
    )


def height(page):
    return page.evaluate("document.documentElement.scrollHeight")


def choose(page, label, words):
    """Choose an option of a list by typing its first letters."""
    tab_to(page, label)
    page.keyboard.type(words)


def fits(page):
    return page.evaluate(
        "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )


def open_by_keyboard(page, address, path):
    page.goto(address)
    tab_to(page, FILE)
    page.keyboard.press("Space")
    end = time.monotonic() + SECONDS / 1000
    while not page.choosers and time.monotonic() < end:
        page.wait_for_timeout(50)
    page.choosers.pop().set_files(path)
    tab_to(page, "Open")
    page.keyboard.press("Enter")
    heading_with_focus(page, "2. Columns")


def the_line_follows_the_slider(page):
    """The line over the trade-off curve shows the factor of the slider, and the ring the design."""
    ring = page.locator("svg.chart circle")
    chosen = ring.get_attribute("cx")
    assert line_place(page) == pytest.approx(float(chosen), abs=0.1)
    slider = page.locator("#factor")
    design = float(slider.input_value())
    slider.press("ArrowRight")
    larger = float(slider.input_value())
    assert larger > design
    place = float(chosen) * math.log(larger) / math.log(design)
    assert line_place(page) == pytest.approx(place, abs=0.1)
    assert ring.get_attribute("cx") == chosen
    slider.press("ArrowLeft")


def line_place(page):
    """Where the line over the curve is, in units of the picture."""
    moved = page.get_attribute("#budget-line", "transform")
    return float(moved.removeprefix("translate(").removesuffix(")"))


def test_the_whole_walk_by_keyboard_at_400_pixels(served, people, page, tmp_path):
    _, address = served
    open_by_keyboard(page, address, people)
    assert fits(page)
    choose(page, "Role of illness", "protect")
    choose(page, "Role of job", "release")
    tab_to(page, "Assess the columns")
    page.keyboard.press("Enter")
    heading_with_focus(page, "2. Columns")
    assert "values; tells " in page.inner_text("main")
    assert "of the protected information" in page.text_content("main")
    tab_to(page, "A factor of at most")
    before = page.input_value("#factor")
    page.keyboard.press("ArrowRight")
    after = page.input_value("#factor")
    assert float(after) > float(before)
    assert f"more than {after} times" in page.inner_text("#factor-words")
    tab_to(page, "Design the channel")
    page.keyboard.press("Enter")
    heading_with_focus(page, "4. A channel for job")
    text = page.inner_text("main")
    assert "Verified in exact arithmetic" in text
    assert fits(page)
    assert unnamed(page) == []
    unfold(page)
    assert fits(page)
    assert unnamed(page) == []
    for name in ("Probability of every value of", "Posterior of each output"):
        assert page.get_by_role("region", name=name).first.is_visible()
    # Roles and budget are still there, so that another one can be tried.
    assert page.input_value("#factor") == after
    the_line_follows_the_slider(page)
    tab_to(
        page,
        "Channel file, with the counts of the table: keep it to yourself (channel.json)",
    )
    with page.expect_download() as download:
        page.keyboard.press("Enter")
    target = tmp_path / "downloaded.json"
    download.value.save_as(target)
    assert json.loads(target.read_text())["format"] == "mechdesign.channel"
    assert page.problems == []


@pytest.mark.parametrize("population", [False, True])
def test_a_channel_takes_at_most_five_choices_and_clicks(
    served, people, page, tmp_path, population
):
    """The file is open, as after `mechdesign app people.csv`."""
    _, address = served
    open_by_keyboard(page, address, people)
    steps = [
        lambda: page.get_by_label("Role of illness").select_option("protect"),
        lambda: page.get_by_label("Role of job").select_option("release"),
        lambda: page.get_by_role("button", name="Design the channel").click(),
    ]
    if population:
        steps.insert(2, lambda: page.get_by_label("Holds for").select_option(index=1))
    for step in steps:
        step()
    heading_with_focus(page, "4. A channel for job")
    text = page.inner_text("main")
    assert "Verified in exact arithmetic" in text
    with page.expect_download() as download:
        page.get_by_role("link", name="(channel.json)").click()
    assert len(steps) + 1 <= 5
    target = tmp_path / "downloaded.json"
    download.value.save_as(target)
    record = json.loads(target.read_text())
    assert (record.get("confidence") is not None) == population
    assert page.problems == []


def test_from_a_survey_to_a_checked_release_in_ten_clicks(
    served, people, page, tmp_path
):
    """By keyboard alone, at 400 pixels, by what the page advises. Choosing the file in the window
    of the system is one of the ten.
    """
    _, address = served
    open_by_keyboard(page, address, people)
    clicks = 3
    choose(page, "Role of illness", "protect")
    clicks += 1
    steps = (
        ("Advise me: try releases of a sample", "2. Columns"),
        ("Take this advice", "3. Promise"),
        ("Design the channel", "4. A channel for job"),
        ("Release and check the file", "5. The released file"),
    )
    for button, heading in steps:
        tab_to(page, button)
        page.keyboard.press("Enter")
        heading_with_focus(page, heading)
        clicks += 1
    assert fits(page)
    assert unnamed(page) == []
    text = page.inner_text("main")
    assert "Checked: it looks like a faithful release of its channel" in text
    for reading in ("job: 0 % of the records differ", "What an analyst reads"):
        assert reading in page.text_content("main")
    tab_to(page, "Everything in one archive (release.zip)")
    with page.expect_download() as download:
        page.keyboard.press("Enter")
    clicks += 1
    assert clicks <= 10
    target = tmp_path / "release.zip"
    download.value.save_as(target)
    archive = zipfile.ZipFile(target)
    released = archive.read("give away/released.csv").decode().splitlines()
    assert len(released) == 601
    assert released[0].replace('"', "") == "job,town,age,note"
    for name in (
        "give away/released.csv.manifest.json",
        "give away/public-report.html",
        "keep/board.html",
        "keep/check.txt",
        "keep/channel.json",
        "keep/report.html",
    ):
        assert archive.read(name)
    # Single files, too; and no second release.
    with page.expect_download() as download:
        page.get_by_role("link", name="One page for those who decide").click()
    download.value.save_as(target)
    assert b"What nobody can find out" in target.read_bytes()
    assert page.get_by_role("button", name="Release and check the file").count() == 0
    assert page.problems == []


def test_twenty_columns_do_not_scroll_endlessly_at_400_pixels(served, page, tmp_path):
    """A window of 800 pixels is scrolled four times, with every step that is done folded."""
    path = tmp_path / "wide.csv"
    rng = random.Random(2)
    lines = [",".join(f"c{number}" for number in range(20))]
    for _ in range(500):
        lines.append(",".join(str(rng.randrange(2 + k % 4)) for k in range(20)))
    path.write_text("\n".join(lines) + "\n")
    _, address = served
    open_by_keyboard(page, address, path)
    assert fits(page)
    assert height(page) < 3_200
    choose(page, "Role of c0", "protect")
    choose(page, "Role of c1", "release")
    choose(page, "Role of c2", "release")
    tab_to(page, "Design the channel")
    page.keyboard.press("Enter")
    heading_with_focus(page, "4. A channel for")
    assert height(page) < 3_200


def test_a_refused_field_keeps_what_was_typed(served, people, page):
    _, address = served
    open_by_keyboard(page, address, people)
    choose(page, "Role of illness", "protect")
    choose(page, "Role of age", "release")
    page.get_by_text("bins are advised").click()
    page.get_by_label("Bins of age").fill("ten")
    page.get_by_label("Processor seconds").fill("20")
    page.get_by_role("button", name="Design the channel").click()
    heading_with_focus(page, "Bins of age: bins 'ten' must be a width")
    assert page.locator('[role="alert"]').count() == 1
    assert page.input_value("#bins-3") == "ten"
    assert page.input_value("#time_limit") == "20"
    assert page.input_value("#role-0") == "protect"
    assert page.input_value("#role-3") == "release"
    assert page.problems == []


def test_every_control_has_an_accessible_name(served, people, page):
    _, address = served
    open_by_keyboard(page, address, people)
    unfold(page)
    assert unnamed(page) == []
    tree = page.locator("main").aria_snapshot()
    for name in (
        'combobox "Role of illness"',
        'slider "A factor of at most"',
        'textbox "Bins of age"',
        'combobox "Rare values of the released column"',
        'combobox "Holds for"',
        'button "Design the channel"',
        'group "illness"',
        'heading "1. File"',
        'heading "2. Columns"',
        'heading "3. Promise"',
    ):
        assert name in tree, tree


def test_a_mistake_gets_the_focus(served, people, page):
    _, address = served
    open_by_keyboard(page, address, people)
    tab_to(page, "Design the channel")
    page.keyboard.press("Enter")
    heading_with_focus(page, "No column is protected")
    assert page.locator('[role="alert"]').count() == 1
    assert page.problems == []


def test_cancel_by_keyboard(served, people, page, monkeypatch):
    from mechdesign.app import session as s
    from tests.mechdesign.app.tasks import endless

    monkeypatch.setitem(s.TASKS, "design", ("Searching", endless))
    _, address = served
    open_by_keyboard(page, address, people)
    choose(page, "Role of illness", "protect")
    choose(page, "Role of job", "release")
    tab_to(page, "Design the channel")
    page.keyboard.press("Enter")
    heading_with_focus(page, "Searching")
    page.wait_for_function(
        "() => document.getElementById('status')?.textContent === 'one step'"
    )
    page.wait_for_function("() => Number(document.getElementById('clock').textContent)")
    tab_to(page, "Cancel")
    page.keyboard.press("Enter")
    heading_with_focus(page, "Cancelled.")
    assert page.problems == []


def test_a_large_table(served, page, tmp_path):
    """100,000 rows and 20 columns: every step answers in time, at 400 pixels."""
    rng = random.Random(2)
    path = tmp_path / "large.csv"
    with path.open("w") as file:
        print(*(f"c{number}" for number in range(20)), sep=",", file=file)
        for _ in range(100_000):
            print(
                *(rng.randrange(2 + number) for number in range(20)), sep=",", file=file
            )
    session, address = served
    open_by_keyboard(page, address, path)
    assert "100,000 records, 20 columns" in page.inner_text("main")
    assert fits(page)
    choose(page, "Role of c2", "protect")
    choose(page, "Role of c9", "release")
    tab_to(page, "Assess the columns")
    page.keyboard.press("Enter")
    # The page is there while the search runs, and so is its cancel button.
    heading_with_focus(page, "Assessing the columns")
    assert session.running
    assert page.get_by_role("button", name="Cancel").is_visible()
    page.wait_for_function(
        "() => document.body?.dataset.running === 'no' && document.body.innerText.includes('values; bins are advised; tells')"
    )
    tab_to(page, "Design the channel")
    page.keyboard.press("Enter")
    heading_with_focus(page, "4. A channel for c9")
    assert "Verified in exact arithmetic" in page.inner_text("main")
    assert page.problems == []
    # What the browser gets grows with the columns, not with the records.
    small = tmp_path / "small.csv"
    with path.open() as file:
        small.write_text("".join(itertools.islice(file, 2001)))
    large_page = page.content()
    tab_to(page, "Forget this file")
    page.keyboard.press("Enter")
    heading_with_focus(page, "1. File")
    open_by_keyboard(page, address, small)
    assert len(large_page) < 2 * len(page.content())


@pytest.mark.parametrize("kind", ["sav", "zip"])
def test_other_files_go_the_whole_way(served, people, page, tmp_path, kind):
    """A file of SPSS, and a CSV alone in a zip archive."""
    path = tmp_path / f"people.{kind}"
    if kind == "sav":
        pyreadstat = pytest.importorskip(
            "pyreadstat", reason="the extra stats is not installed"
        )
        table = pd.read_csv(people, dtype=str, keep_default_na=False)
        pyreadstat.write_sav(table, path)
    else:
        with zipfile.ZipFile(path, "w") as archive:
            archive.write(people, "people.csv")
    _, address = served
    open_by_keyboard(page, address, path)
    page.get_by_label("Role of illness").select_option("protect")
    page.get_by_label("Role of job").select_option("release")
    page.get_by_role("button", name="Design the channel").click()
    heading_with_focus(page, "4. A channel for job")
    page.get_by_role("button", name="Release and check the file").click()
    heading_with_focus(page, "5. The released file")
    assert "Checked: it looks like a faithful release" in page.inner_text("main")
    assert page.problems == []


def test_two_windows_with_different_files(served, people, page, tmp_path):
    """The page has one file; a window that shows another one changes nothing, and says so."""
    other = tmp_path / "other.csv"
    other.write_text("health,wage\n" + "well,1\nill,2\n" * 50)
    _, address = served
    open_by_keyboard(page, address, people)
    second = page.context.new_page()
    second.goto(address)
    second.get_by_role("button", name="Forget this file").click()
    second.set_input_files("#table", other)
    second.get_by_role("button", name="Open").click()
    heading_with_focus(second, "2. Columns")
    page.get_by_label("Role of illness").select_option("protect")
    page.get_by_role("button", name="Release all others").click()
    page.wait_for_selector("#error")
    assert "opened in another window" in page.inner_text("#error")
    assert page.get_by_label("Role of health").input_value() == "leave out"
    assert "other.csv" in page.inner_text("main")


def test_a_file_that_cannot_be_sent_is_not_shown_as_being_opened(served, people, page):
    _, address = served
    page.goto(address)
    # The server would answer before it has read the request, and the browser would not hear it.
    page.evaluate("document.getElementById('upload').dataset.largest = '1000'")
    page.set_input_files("#table", people)
    page.get_by_role("button", name="Open").click()
    page.wait_for_selector("#opening:has-text('people.csv is larger than 1 GiB')")
    page.evaluate("document.getElementById('upload').dataset.largest = '1000000'")
    page.route("**/upload*", lambda route: route.abort())
    page.get_by_role("button", name="Open").click()
    page.wait_for_selector("#opening:has-text('people.csv could not be sent')")
