"""What is done, how fast, how long yet: the meter, and long work in this process."""

from __future__ import annotations

import io
import json
import sys
import threading
import time

import pytest

from mechdesign.cli import console as work_module
from mechdesign.cli.console import WINDOW, Meter, Reading, Reporter, amounts, duration
from mechdesign.core.progress import Progress, Step


class Clock:
    """A clock that is moved by hand."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def watch(monkeypatch):
    """A function that puts a terminal, or another stream, in the place of standard error."""

    def install(stream=None, patience=0.0):
        stream = Terminal() if stream is None else stream
        # Not before the test itself: pytest puts its own there at the start of each phase.
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setattr(work_module, "PATIENCE", patience)
        monkeypatch.setattr(work_module, "INTERVAL", 0.01)
        monkeypatch.setenv("COLUMNS", "120")
        monkeypatch.setenv("TERM", "xterm-256color")
        return stream

    return install


def assert_shown(text, stream):
    deadline = time.monotonic() + 20.0
    while text not in stream.getvalue():
        assert time.monotonic() < deadline, (
            f"{text!r} never came, but {stream.getvalue()!r}"
        )
        time.sleep(0.005)


def test_a_meter_knows_nothing_before_the_first_step(clock):
    meter = Meter(clock=clock)
    clock.now += 3.0
    assert meter.read() == Reading(None, None, 3.0, None, None)


def test_rate_and_time_left_of_steady_work(clock):
    meter = Meter(total=100, clock=clock)
    for _ in range(10):
        clock.now += 2.0
        meter.advance(4)
    assert meter.read() == Reading(40, 100, 20.0, 2.0, 30.0)


def test_the_rate_is_that_of_the_last_half_minute(clock):
    meter = Meter(total=10_000, clock=clock)
    for second in range(300):
        clock.now += 1.0
        meter.advance(10 if second < 200 else 1)
        reading = meter.read()
        if second < 200:
            assert reading.rate == pytest.approx(10.0)
    assert reading.rate == pytest.approx(1.0)
    assert reading.seconds_left == pytest.approx(10_000 - reading.done)
    assert WINDOW < 100.0


def test_steps_rarer_than_the_window_still_have_a_rate(clock):
    meter = Meter(clock=clock)
    meter.at(0, 10)
    rates = []
    for done in range(1, 4):
        for _ in range(12):
            clock.now += 10.0
            rates.append(meter.read().rate)
        meter.at(done, 10)
    rates.append(meter.read().rate)
    assert rates[:12] == [None] * 12
    assert all(1 / 240 <= rate <= 1 / 120 for rate in rates[12:])
    assert rates[-1] == pytest.approx(1 / 120)


def test_what_an_earlier_run_did_is_no_work_of_this_one(clock):
    meter = Meter(clock=clock)
    meter.at(300, 320)
    clock.now += 5.0
    assert meter.read().rate is None
    meter.at(310, 320)
    assert meter.read() == Reading(310, 320, 5.0, 2.0, 5.0)


def test_time_left_ends_at_nought(clock):
    meter = Meter(total=10, clock=clock)
    clock.now += 1.0
    meter.advance(12)
    assert meter.read().seconds_left == 0.0


def test_a_limit_is_the_time_left_unless_the_work_is_faster(clock):
    meter = Meter(limit=60.0, clock=clock)
    clock.now += 15.0
    assert meter.read().seconds_left == 45.0
    meter.at(0, 10)
    clock.now += 1.0
    meter.at(5, 10)
    assert meter.read().seconds_left == 1.0
    clock.now += 100.0
    assert meter.read().seconds_left == 0.0


@pytest.mark.parametrize(
    ("done", "total", "rate", "unit", "text"),
    [
        (None, None, None, "rows", ""),
        (3, 40, None, "rows", "3 of 40 rows"),
        (3, 40, 1.5, "rows", "3 of 40 rows, 1.5 rows/s"),
        (1_234_567, None, 98_765.4, "rows", "1,234,567 rows, 98,765 rows/s"),
        (1, 9, 0.01234, "sets", "1 of 9 sets, 0.0123 sets/s"),
        (12_500_000, 40_000_000, 3_100_000.0, "B", "12.5 of 40.0 MB, 3.1 MB/s"),
        (700, None, 650.0, "B", "700.0 B, 650.0 B/s"),
        (2_500, None, 999.0, "B", "2.5 kB, 999.0 B/s"),
        (1, 3_000_000_000, None, "B", "0.0 of 3.0 GB"),
    ],
)
def test_amounts_in_words(done, total, rate, unit, text):
    assert amounts(Reading(done, total, 1.0, rate, None), unit) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "0:00"), (7.4, "0:07"), (59.6, "1:00"), (754, "12:34"), (3723, "1:02:03")],
)
def test_durations_in_words(seconds, text):
    assert duration(seconds) == text


def test_a_bar_with_rate_and_time_left(watch):
    terminal = watch()
    with Reporter().work("sanitising", unit="B", total=8_000_000) as advance:
        advance(1_000_000)
        assert_shown("1.0 of 8.0 MB", terminal)
        assert_shown("MB/s", terminal)
        assert_shown(" left", terminal)
        advance(1_000_000)
        assert_shown("2.0 of 8.0 MB", terminal)
    shown = terminal.getvalue()
    assert "sanitising" in shown
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l"), "the cursor is back"


def test_a_search_shows_its_words_and_at_most_its_limit(watch):
    terminal = watch()
    with Reporter().work("searching", limit=100.0) as work:
        work.step(Step("utility 0.9, at most 0.95"))
        assert_shown("utility 0.9, at most 0.95", terminal)
        assert_shown("at most 1:", terminal)
        work.step(Step("utility 0.91, at most 0.95"))
        assert_shown("utility 0.91", terminal)


def test_work_of_unknown_length_says_how_long_it_takes(watch):
    terminal = watch()
    with Reporter().work("measuring"):
        assert_shown("measuring", terminal)
        assert_shown("so far", terminal)


def test_counted_steps_of_a_search_are_a_bar(watch):
    terminal = watch()
    with Reporter().work("searching", unit="sets", limit=1000.0) as work:
        work.step(Step("0 of 40 sets", done=0, total=40))
        assert_shown("0 of 40 sets", terminal)
        time.sleep(0.01)
        work.step(Step("3 of 40 sets", done=3, total=40))
        assert_shown("3 of 40 sets", terminal)
        assert_shown("sets/s", terminal)


def test_notes_come_between_two_pictures_of_the_bar(watch):
    terminal = watch()
    reporter = Reporter()
    with reporter.work("sanitising", unit="B", total=8) as advance:
        advance(1)
        assert_shown("sanitising", terminal)
        reporter.notice("a [bold]long[/bold] " + "word " * 60)
        reporter.warning("beware :smile:")
    shown = terminal.getvalue()
    assert "mechdesign: note: a [bold]long[/bold] " + "word " * 59 + "word\n" in shown
    assert "mechdesign: warning: beware :smile:\n" in shown
    reporter.notice("afterwards")
    assert terminal.getvalue().endswith("mechdesign: note: afterwards\n")


def test_nothing_is_shown_before_its_time(watch):
    terminal = watch(patience=60.0)
    with Reporter().work("sanitising", total=8) as advance:
        advance(1)
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("closed", [False, True])
def test_no_terminal_no_bar(monkeypatch, watch, closed):
    stream = watch(io.StringIO())
    if closed:
        monkeypatch.setattr(sys, "stderr", None)
    threads = threading.active_count()
    reporter = Reporter()
    with reporter.work("sanitising", total=8) as advance:
        advance(1)
        assert threading.active_count() == threads
    assert stream.getvalue() == ""
    reporter.notice("heard or not")
    assert stream.getvalue() == ("" if closed else "mechdesign: note: heard or not\n")


def test_quiet_shows_no_bar(watch):
    terminal = watch()
    threads = threading.active_count()
    with Reporter(quiet=True).work("sanitising", total=8) as advance:
        advance(1)
        assert threading.active_count() == threads
    assert terminal.getvalue() == ""


def test_an_error_within_the_work_takes_the_bar_away(watch):
    terminal = watch()

    def fail_at_work():
        with Reporter().work("sanitising", total=8):
            assert_shown("sanitising", terminal)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_at_work()
    assert terminal.getvalue().rindex("\x1b[?25h") > terminal.getvalue().rindex(
        "\x1b[?25l"
    )
    assert not any(thread.name == "progress" for thread in threading.enumerate())


def test_a_terminal_that_goes_away_does_not_end_the_work(monkeypatch, watch):
    terminal = watch()

    def gone(text):
        tried.append(text)
        raise OSError(5, "Input/output error")

    tried, reporter = list[str](), Reporter()
    with reporter.work("sanitising", total=8) as advance:
        assert_shown("sanitising", terminal)
        monkeypatch.setattr(terminal, "write", gone)
        advance(1)
        reporter.notice("to nobody")
    assert tried
    assert not any(thread.name == "progress" for thread in threading.enumerate())


def test_lines_of_progress_in_a_log(watch):
    stream = watch(io.StringIO())
    with Reporter(log_json=True).work("sanitising", unit="B", total=8_000) as advance:
        assert_shown("\n", stream)
        advance(1_000)
        assert_shown('"done": 1000', stream)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    first, last = lines[0], lines[-1]
    assert set(first) == {
        *(
            "time",
            "level",
            "event",
            "message",
            "done",
            "total",
            "unit",
            "rate",
            "seconds_left",
            "seconds",
        )
    }
    assert (first["done"], first["total"], first["rate"], first["seconds_left"]) == (
        None,
        8000,
        None,
        None,
    )
    assert (last["level"], last["event"], last["message"]) == (
        "info",
        "progress",
        "sanitising",
    )
    assert (last["done"], last["total"], last["unit"]) == (1000, 8000, "B")
    assert last["rate"] > 0.0
    assert last["seconds_left"] == pytest.approx(
        7000 / last["rate"], rel=0.01, abs=0.06
    )


def test_figures_of_a_search_are_fields_of_the_log(watch):
    stream = watch(io.StringIO())
    with Reporter(log_json=True).work("searching") as work:
        work.step(Step("utility 0.5", {"nmi": 0.5, "gap_nmi": float("inf")}))
        assert_shown("gap_nmi", stream)
    last = json.loads(stream.getvalue().splitlines()[-1])
    assert (last["nmi"], last["gap_nmi"]) == (0.5, "inf")


def test_a_log_of_short_work_has_no_progress(watch):
    stream = watch(io.StringIO(), patience=60.0)
    with Reporter(log_json=True).work("sanitising", total=8) as advance:
        advance(8)
    assert stream.getvalue() == ""


def test_work_counts_as_libraries_do(watch):
    terminal = watch()

    def library(progress: Progress) -> None:
        for done in range(5):
            progress(done, 4)

    with Reporter().work("comparing", unit="rows") as work:
        library(work.at)
        assert_shown("4 of 4 rows", terminal)
