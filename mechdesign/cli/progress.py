"""Long work as its watchers see it: a bar on a terminal after a while, lines in a log now and then."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

from mechdesign.core.progress import Step

if TYPE_CHECKING:
    from mechdesign.cli.console import Reporter


WINDOW = 30.0
"""Seconds that a rate looks back: long enough to be calm, short enough to follow a change."""

LEAST = 10
"""Units that a rate looks back at least, for a few of them come by fits and starts."""


@dataclass(frozen=True)
class Reading:
    """One look at a meter; None where something is not known."""

    done: int | None
    total: int | None
    seconds: float
    rate: float | None
    seconds_left: float | None


class Meter:
    """Counts work; `advance` and `at` are cheap enough for every batch."""

    def __init__(
        self,
        total: int | None = None,
        limit: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._began = clock()
        self._done: int | None = None
        self._total = total
        self._limit = limit
        self._samples: deque[tuple[float, int]] = deque()

    def advance(self, amount: int) -> None:
        """Another `amount` is done."""
        if self._done is None:
            self._samples.append((self._began, 0))
            self._done = 0
        self._done += amount

    def at(self, done: int, total: int | None = None) -> None:
        """So much is done; where the first call is above 0, an earlier run did it, and it says nothing of the rate."""
        if self._done is None:
            self._samples.append((self._clock(), done))
        self._done = done
        if total is not None:
            self._total = total

    def read(self) -> Reading:
        """Where the work stands now."""
        now, done, total = self._clock(), self._done, self._total
        seconds = now - self._began
        rate = None if done is None else self._rate(now, done)
        left: float | None = None
        if total is not None:
            if done is not None and done >= total:
                left = 0.0
            elif done is not None and rate:
                left = (total - done) / rate
        if self._limit is not None:
            until = max(0.0, self._limit - seconds)
            left = until if left is None else min(left, until)
        return Reading(done, total, seconds, rate, left)

    def _rate(self, now: float, done: int) -> float | None:
        """Mean over the window, or over a longer time if too little was done within it."""
        samples = self._samples
        while len(samples) > 1 and samples[1][0] <= now - WINDOW and samples[1][1] <= done - LEAST:
            samples.popleft()
        since, before = samples[0]
        samples.append((now, done))
        return (done - before) / (now - since) if now > since and done > before else None


def duration(seconds: float) -> str:
    """As 0:07, 12:34 or 1:02:03."""
    whole = round(seconds)
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def amounts(reading: Reading, unit: str) -> str:
    """What is done and at which rate, as in ``12.5 of 40.0 MB, 3.1 MB/s`` or ``3 of 40 rows, 1.5 rows/s``."""
    if reading.done is None:
        return ""
    if unit == "B":
        scale, name = _scale(reading.total if reading.total is not None else reading.done)
        done = f"{reading.done / scale:.1f}"
        total = None if reading.total is None else f"{reading.total / scale:.1f}"
    else:
        name = unit
        done = f"{reading.done:,}"
        total = None if reading.total is None else f"{reading.total:,}"
    said = f"{done} {name}" if total is None else f"{done} of {total} {name}"
    return said if reading.rate is None else f"{said}, {_speed(reading.rate, unit)}"


def _scale(size: float) -> tuple[float, str]:
    for power, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= power:
            return power, name
    return 1.0, "B"


def _speed(rate: float, unit: str) -> str:
    if unit == "B":
        scale, name = _scale(rate)
        return f"{rate / scale:.1f} {name}/s"
    return f"{rate:,.0f} {unit}/s" if rate >= 100.0 else f"{rate:.3g} {unit}/s"


PATIENCE = 2.0
"""Seconds before the first sign of life: what is over sooner needs none."""

INTERVAL = 5.0
"""Seconds between two lines of a log."""

BAR_WIDTH = 16
"""Columns; of eighty, the words need the rest."""

REFRESHES = 5
"""Redraws of the bar a second."""


class Work:
    """``with reporter.work("sanitising", unit="B", total=size) as advance: advance(n)``.

    A library that counts by itself is given `at` as its callback, a search that cannot be counted `step`.
    All of them are cheap: another thread looks at the count and shows it.
    """

    def __init__(
        self, reporter: Reporter, text: str, *, unit: str, total: int | None, limit: float | None
    ) -> None:
        self._reporter = reporter
        self._text = text
        self._unit = unit
        self._step = Step("")
        self._meter = Meter(total, limit)
        self._limit = limit
        self._ended = threading.Event()
        self._watcher: threading.Thread | None = None
        self._live: Any = None

    def __call__(self, amount: int = 1) -> None:
        """Another `amount` of the unit is done."""
        self._meter.advance(amount)

    def at(self, done: int, total: int) -> None:
        """So much of so much is done: a `mechdesign.core.progress.Progress`."""
        self._meter.at(done, total)

    def step(self, step: Step) -> None:
        """Where a search stands: one of `mechdesign.core.progress.Steps`."""
        self._step = step
        if step.done is not None and step.total is not None:
            self._meter.at(step.done, step.total)

    def __enter__(self) -> Work:
        if self._reporter.watched:
            self._watcher = threading.Thread(target=self._watch, name="progress", daemon=True)
            self._watcher.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        try:
            if self._watcher is not None:
                self._watcher.join()
        finally:
            # Even if Ctrl-C comes here: it gives the terminal its cursor back.
            self._hide()

    def _watch(self) -> None:
        if self._ended.wait(PATIENCE):
            return
        if not self._reporter.log_json:
            self._show()
            return
        self._log()
        while not self._ended.wait(INTERVAL):
            self._log()

    def _log(self) -> None:
        at = self._meter.read()
        self._reporter.progress(
            self._text,
            done=at.done,
            total=at.total,
            unit=self._unit,
            rate=None if at.rate is None else float(f"{at.rate:.6g}"),
            seconds_left=None if at.seconds_left is None else round(at.seconds_left, 1),
            seconds=round(at.seconds, 1),
            **self._step.figures,
        )

    def _show(self) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.spinner import Spinner

        spinner = Spinner("dots")
        # Its proxies would send what belongs on standard output to the terminal of standard error.
        live = Live(
            console=Console(stderr=True),
            get_renderable=lambda: self._drawn(spinner),
            refresh_per_second=REFRESHES,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        with suppress(OSError):
            self._live = live
            live.start(refresh=True)
            self._reporter.console = live.console

    def _hide(self) -> None:
        if self._live is not None:
            self._reporter.console = None
            with suppress(OSError):
                self._live.stop()

    def _drawn(self, spinner: Any) -> Any:
        """One line: what, how far, how fast, how long yet."""
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        at = self._meter.read()
        line = Table.grid(padding=(0, 1))
        cells: list[Any] = [Text(self._text, no_wrap=True)]
        if at.total is not None and at.done is not None:
            cells.append(ProgressBar(total=at.total, completed=at.done, width=BAR_WIDTH))
        else:
            cells.insert(0, spinner)
        said = "" if self._step.done is not None else self._step.text
        times = _times(at.seconds, at.seconds_left, at.total is None)
        # What a search has found comes last, for a narrow terminal cuts there.
        words = [amounts(at, self._unit), times, said]
        cells.append(Text(", ".join(word for word in words if word), no_wrap=True, overflow="ellipsis"))
        line.add_row(*cells)
        return line


def _times(seconds: float, left: float | None, ends_early: bool) -> str:
    if left is None:
        return f"{duration(seconds)} so far"
    return f"{'at most ' if ends_early else ''}{duration(left)} left"
