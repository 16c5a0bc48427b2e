"""Long work as its watchers see it: a bar on a terminal after a while, lines in a log now and then."""

from __future__ import annotations

import threading
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any

from mechdesign.cli.meter import Meter, amounts, duration
from mechdesign.core.progress import Step

if TYPE_CHECKING:
    from mechdesign.cli.reporting import Reporter

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
