"""Progress of long work: a bar on a terminal after a while, lines in a log at intervals.

A command enters ``with reporter.work(..) as work``, and the work calls `work.advance(n)`,
`work.at(done, total)` or `work.step(step)` as it goes. These only count (`meter`). Another thread
(`Work._watch`) waits PATIENCE seconds and then reads the meter: five times a second for the bar, or
every INTERVAL seconds for the log. On a terminal stands, while it lasts, ::

    sanitising ━━━━━━━━━━━━━━━━ 12.5 of 40.0 MB, 3.1 MB/s, 0:09 left

The line of a search, which has no total, ends with what it has found so far (`Step.text`).
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any, Protocol

from mechdesign.cli.meter import Meter, Reading, amounts, duration
from mechdesign.core.progress import Step

PATIENCE = 2.0
"""Seconds before anything is shown: shorter work needs no progress."""

INTERVAL = 5.0
"""Seconds between two lines of a log."""

BAR_WIDTH = 16
"""Columns of the bar; the words need the rest of eighty."""


class ReadsProgress(Protocol):
    """What is needed of the reporter of messages (`console.Reporter`)."""

    log_json: bool
    console: Any
    """That of the bar while one is drawn, so that messages appear above it."""

    @property
    def watched(self) -> bool:
        """Whether anybody reads the progress."""
        ...

    def progress(self, text: str, **fields: object) -> None:
        """A line of progress in the log."""
        ...


class Work(Meter):
    """``with reporter.work("sanitising") as advance: advance(n)``; another thread reads
    the meter and shows it.

    Entering starts the thread, if anybody reads the progress; leaving stops it and takes the bar
    away. The thread waits PATIENCE seconds, then draws a bar on a terminal (`_show`), or writes a
    line into the log every INTERVAL seconds (`_log`).
    """

    __call__ = Meter.advance

    def __init__(
        self,
        reporter: ReadsProgress,
        text: str,
        *,
        unit: str,
        total: int | None,
        limit: float | None,
    ) -> None:
        super().__init__(total, limit)
        self._reporter = reporter
        self._text = text
        self._unit = unit
        self._step = Step("")
        self._ended = threading.Event()
        self._watcher: threading.Thread | None = None
        self._live: Any = None

    def step(self, step: Step) -> None:
        """The state of a search: one of `mechdesign.core.progress.Steps`."""
        self._step = step
        # A search in rounds counts them; others have a bound and findings only.
        if step.done is not None and step.total is not None:
            self.at(step.done, step.total)

    def __enter__(self) -> Work:
        if self._reporter.watched:
            # A daemon: the process may end, as by a second Ctrl-C, while it still waits.
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
            # This gives the terminal its cursor back, even if Ctrl-C comes during the join.
            if self._live is not None:
                self._reporter.console = None
                with suppress(OSError):
                    self._live.stop()

    def _watch(self) -> None:
        """What the thread does, until the work ends."""
        if self._ended.wait(PATIENCE):
            return
        if not self._reporter.log_json:
            self._show()
            return
        self._log()
        while not self._ended.wait(INTERVAL):
            self._log()

    def _log(self) -> None:
        """A line on the state of the work in the log."""
        reading = self.read()
        rate = reading.rate
        # A log keeps numbers short, and no rate is known to more than six digits.
        if rate is not None:
            rate = float(f"{rate:.6g}")
        left = reading.seconds_left
        if left is not None:
            left = round(left, 1)
        self._reporter.progress(
            self._text,
            done=reading.done,
            total=reading.total,
            unit=self._unit,
            seconds=round(reading.seconds, 1),
            rate=rate,
            seconds_left=left,
            **self._step.figures,
        )

    def _show(self) -> None:
        """Start the bar; rich redraws it in a thread of its own until `__exit__` stops it."""
        from rich.console import Console
        from rich.live import Live
        from rich.spinner import Spinner

        spinner = Spinner("dots")
        # Without redirection: rich would send standard output to the terminal of standard error.
        live = Live(
            get_renderable=lambda: self._drawn(spinner),
            console=Console(stderr=True),
            refresh_per_second=5,
            redirect_stdout=False,
            redirect_stderr=False,
            transient=True,
        )
        # A terminal that has gone must not end the work.
        with suppress(OSError):
            self._live = live
            live.start(refresh=True)
            self._reporter.console = live.console

    def _drawn(self, spinner: Any) -> Any:
        """One line: the work, how far it is, how fast, and the time left."""
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        reading = self.read()
        cells: list[Any] = []
        name = Text(self._text, no_wrap=True)
        if reading.total is not None and reading.done is not None:
            bar = ProgressBar(
                total=reading.total, completed=reading.done, width=BAR_WIDTH
            )
            cells += [name, bar]
        else:
            cells += [spinner, name]
        words = [amounts(reading, self._unit), _times(reading)]
        if self._step.done is None:
            # The findings of a search come last, because a narrow terminal cuts there.
            words.append(self._step.text)
        text = ", ".join(word for word in words if word)
        cells.append(Text(text, no_wrap=True, overflow="ellipsis"))
        line = Table.grid(padding=(0, 1))
        line.add_row(*cells)
        return line


def _times(reading: Reading) -> str:
    """The time so far, or the time that is left."""
    if reading.seconds_left is None:
        return f"{duration(reading.seconds)} so far"
    left = f"{duration(reading.seconds_left)} left"
    # Without a total the time left is that until the limit.
    if reading.total is None:
        return f"at most {left}"
    return left
