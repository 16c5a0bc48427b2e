"""Long work as its watchers see it: a bar on a terminal after a while, lines in a log now and then."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from mechdesign.core.progress import Step

if TYPE_CHECKING:
    from mechdesign.cli.console import Reporter

WINDOW = 30.0
"""Seconds that a rate looks back: long enough to be calm, short enough to follow a change."""

LEAST = 10
"""Units that a rate looks back at least, for a few of them come by fits and starts."""


class Reading(NamedTuple):
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
        self._clock, self._began, self._limit = clock, clock(), limit
        self._done: int | None = None
        self._total = total
        self._samples: deque[tuple[float, int]] = deque()

    def advance(self, amount: int = 1) -> None:
        """Another `amount` is done."""
        if self._done is None:
            self._samples.append((self._began, 0))
        self._done = (self._done or 0) + amount

    def at(self, done: int, total: int | None = None) -> None:
        """So much is done; where the first call is above 0, an earlier run did it, and it says nothing of the rate."""
        if self._done is None:
            self._samples.append((self._clock(), done))
        self._done = done
        self._total = self._total if total is None else total

    def read(self) -> Reading:
        """Where the work stands now."""
        now, done, total = self._clock(), self._done, self._total
        rate = None if done is None else self._rate(now, done)
        ends: list[float] = []
        if done is not None and total is not None and (rate or done >= total):
            ends.append((total - done) / rate if rate and done < total else 0.0)
        if self._limit is not None:
            ends.append(max(0.0, self._limit - (now - self._began)))
        return Reading(done, total, now - self._began, rate, min(ends, default=None))

    def _rate(self, now: float, done: int) -> float | None:
        """Mean over the window, or over a longer time if too little was done within it."""
        samples = self._samples
        while (
            len(samples) > 1
            and samples[1][0] <= now - WINDOW
            and samples[1][1] <= done - LEAST
        ):
            samples.popleft()
        since, before = samples[0]
        samples.append((now, done))
        return (
            (done - before) / (now - since) if now > since and done > before else None
        )


def duration(seconds: float) -> str:
    """As 0:07, 12:34 or 1:02:03."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def amounts(reading: Reading, unit: str) -> str:
    """What is done and at which rate, as in ``12.5 of 40.0 MB, 3.1 MB/s`` or ``3 of 40 rows, 1.5 rows/s``."""
    done, total, rate = reading.done, reading.total, reading.rate
    if done is None:
        return ""
    digits, (scale, name) = (
        (1, _scale(total or done)) if unit == "B" else (0, (1.0, unit))
    )
    known = (
        f"{each / scale:,.{digits}f}" for each in (done, total) if each is not None
    )
    said = f"{' of '.join(known)} {name}"
    if rate is None:
        return said
    if unit == "B":
        scale, name = _scale(rate)
        return f"{said}, {rate / scale:.1f} {name}/s"
    return (
        f"{said}, {rate:,.0f} {unit}/s"
        if rate >= 100.0
        else f"{said}, {rate:.3g} {unit}/s"
    )


def _scale(size: float) -> tuple[float, str]:
    named = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
    return next((each for each in named if size >= each[0]), (1.0, "B"))


PATIENCE = 2.0
"""Seconds before the first sign of life: what is over sooner needs none."""

INTERVAL = 5.0
"""Seconds between two lines of a log."""

BAR_WIDTH = 16
"""Columns; of eighty, the words need the rest."""


class Work(Meter):
    """``with reporter.work("sanitising") as advance: advance(n)``; another thread looks at the count and shows it."""

    __call__ = Meter.advance

    def __init__(
        self,
        reporter: Reporter,
        text: str,
        *,
        unit: str,
        total: int | None,
        limit: float | None,
    ) -> None:
        super().__init__(total, limit)
        self._reporter, self._text, self._unit = reporter, text, unit
        self._step = Step("")
        self._ended = threading.Event()
        self._watcher: threading.Thread | None = None
        self._live: Any = None

    def step(self, step: Step) -> None:
        """Where a search stands: one of `mechdesign.core.progress.Steps`."""
        self._step = step
        if step.done is not None and step.total is not None:
            self.at(step.done, step.total)

    def __enter__(self) -> Work:
        if self._reporter.watched:
            self._watcher = threading.Thread(
                target=self._watch, name="progress", daemon=True
            )
            self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        try:
            if self._watcher is not None:
                self._watcher.join()
        finally:
            # Even if Ctrl-C comes here: it gives the terminal its cursor back.
            if self._live is not None:
                self._reporter.console = None
                with suppress(OSError):
                    self._live.stop()

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
        at = self.read()
        told = {
            "done": at.done,
            "total": at.total,
            "unit": self._unit,
            "seconds": round(at.seconds, 1),
        }
        told["rate"] = None if at.rate is None else float(f"{at.rate:.6g}")
        told["seconds_left"] = (
            None if at.seconds_left is None else round(at.seconds_left, 1)
        )
        self._reporter.progress(self._text, **told, **self._step.figures)

    def _show(self) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.spinner import Spinner

        spinner = Spinner("dots")
        # Its proxies would send what belongs on standard output to the terminal of standard error.
        how: dict[str, Any] = {
            "redirect_stdout": False,
            "redirect_stderr": False,
            "transient": True,
        }
        how |= {"console": Console(stderr=True), "refresh_per_second": 5}
        live = Live(get_renderable=lambda: self._drawn(spinner), **how)
        with suppress(OSError):
            self._live = live
            live.start(refresh=True)
            self._reporter.console = live.console

    def _drawn(self, spinner: Any) -> Any:
        """One line: what, how far, how fast, how long yet."""
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        at = self.read()
        line = Table.grid(padding=(0, 1))
        cells: list[Any] = [Text(self._text, no_wrap=True)]
        if at.total is not None and at.done is not None:
            cells.append(
                ProgressBar(total=at.total, completed=at.done, width=BAR_WIDTH)
            )
        else:
            cells.insert(0, spinner)
        times = f"{duration(at.seconds)} so far"
        if at.seconds_left is not None:
            times = f"{'at most ' if at.total is None else ''}{duration(at.seconds_left)} left"
        # What a search has found comes last, for a narrow terminal cuts there.
        words = [
            amounts(at, self._unit),
            times,
            "" if self._step.done is not None else self._step.text,
        ]
        cells.append(
            Text(
                ", ".join(word for word in words if word),
                no_wrap=True,
                overflow="ellipsis",
            )
        )
        line.add_row(*cells)
        return line
