"""Standard error: notes, errors and progress for people, or JSON lines for logs (`--log-json`).

A command has one `Reporter` and writes all its messages through it; `failures` words those about
its end.

`main` makes the reporter, enters `hearing` so that warnings of libraries go the same way, and
passes it to the command. The command opens long work with `work`, writes facts with `notice`, and
ends with `done`, which only the log shows, because people see the result itself. Of one fact people
and logs read ::

    mechdesign: note: the table has 3 zero cells
    {"time": "2026-11-23T02:00:00.000Z", "level": "info", "event": "notice", "message": "..."}

*Progress*: a bar on a terminal after a while, lines in a log at intervals. A command enters
``with reporter.work(..) as work``, and the work calls `work.advance(n)`, `work.at(done, total)` or
`work.step(step)` as it goes. These only count (`Meter`). Another thread (`Work._watch`) waits
PATIENCE seconds and then reads the meter: five times a second for the bar, or every INTERVAL
seconds for the log. On a terminal stands, while it lasts, ::

    sanitising ━━━━━━━━━━━━━━━━ 12.5 of 40.0 MB, 3.1 MB/s, 0:09 left

The line of a search, which has no total, ends with what it has found so far (`Step.text`).

*The rate and the seconds left* follow from two counts at two times. `Meter.advance` and `Meter.at`
only count, so they are cheap in an inner loop. `Meter.read` computes

    rate = (done now - done then) / (now - then),    seconds left = (total - done) / rate,

where "then" is about WINDOW seconds ago, or as long ago as it took for LEAST units. With 40 of 100
units done now and 10 of them 30 seconds ago, the rate is 1 unit a second, and a minute is left.
`amounts` and `duration` put a reading into words: ``40 of 100 rows, 1 rows/s`` and ``1:00``.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple

from mechdesign.core.errors import NAMES_OPTIONS, Notice
from mechdesign.core.progress import Step

PROGRAM = "mechdesign"


class Reporter:
    """Writes every message of a command; results go to standard output instead.

    With `quiet` only errors are printed. With `log_json` each message is a line with one JSON
    object: `time` (UTC), `level` (info, warning, error), `event`, `message`, and the fields of the
    event. Messages hold no keys, and no cells of a table beyond those that an error must name.

    Attributes
    ----------
    console : rich.console.Console or None
        That of a progress bar while one is drawn, so that messages appear above it.
    finished : bool
        Whether all results are written: a Ctrl-C after that is no failure.
    """

    def __init__(self, *, quiet: bool = False, log_json: bool = False) -> None:
        self.quiet = quiet
        self.log_json = log_json
        self.console: Any = None
        self.finished = False
        self._began = time.monotonic()
        # The thread of a progress bar writes, too.
        self._lock = threading.Lock()

    @classmethod
    def from_arguments(cls, arguments: Sequence[str]) -> Reporter:
        """The reporter for a command line that may itself be wrong: its options count
        anywhere before ``--``.
        """
        end = len(arguments)
        if "--" in arguments:
            end = arguments.index("--")
        options = set(arguments[:end])
        return cls(quiet="--quiet" in options, log_json="--log-json" in options)

    @property
    def watched(self) -> bool:
        """Whether anybody reads the progress."""
        # A log is read by a program wherever it goes; a bar needs a terminal.
        stream: Any = sys.stderr
        return not self.quiet and (
            self.log_json or (stream is not None and stream.isatty())
        )

    def work(
        self,
        text: str,
        *,
        unit: str = "steps",
        total: int | None = None,
        limit: float | None = None,
    ) -> Work:
        """Long work, to be entered."""
        return Work(self, text, unit=unit, total=total, limit=limit)

    def notice(self, text: str, **fields: object) -> None:
        """A fact about the data or the result that the user should know."""
        self._tell("info", "notice", text, fields)

    def notices(self, texts: Iterable[str]) -> None:
        """A notice for each text."""
        for text in texts:
            self.notice(text)

    def warning(self, text: str, event: str = "warning", **fields: object) -> None:
        """A fact that the user should probably change."""
        self._tell("warning", event, text, fields)

    def error(
        self, text: str, event: str = "error", hint: str | None = None, **fields: object
    ) -> None:
        """The reason why the command ends without its result, in one line; `hint` is a
        second one.
        """
        if hint is not None:
            fields = {"hint": one_line(hint), **fields}
        self._tell("error", event, text, fields, hint or "")

    def done(self, event: str, text: str, **fields: object) -> None:
        """The end of the work in the log, with its seconds; people see the result itself."""
        seconds = round(time.monotonic() - self._began, 3)
        self._log("info", event, text, {**fields, "seconds": seconds})

    def progress(self, text: str, **fields: object) -> None:
        """A line of progress in the log."""
        self._log("info", "progress", text, fields)

    @contextmanager
    def hearing(self) -> Generator[None]:
        """Report warnings and log messages of the libraries in use, too, and restore after."""
        # It also restores `warnings.showwarning`, which `listen` replaces.
        with warnings.catch_warnings():
            handler = self.listen()
            try:
                yield
            finally:
                logging.getLogger().removeHandler(handler)

    def listen(self) -> logging.Handler:
        """Report warnings and log messages of the libraries from now on.

        Nothing is restored: call it directly in a process that is wholly the command's.
        """
        handler = _Forwarding(self)
        logging.getLogger().addHandler(handler)
        warnings.showwarning = self._heard
        return handler

    def _heard(
        self, message: Warning | str, category: type[Warning], *_: object, **__: object
    ) -> None:
        """A warning in the place of `warnings.showwarning`, which has further arguments."""
        if issubclass(category, Notice):
            self.notice(str(message))
            return
        self.warning(f"{category.__name__}: {message}", event="library_warning")

    def _tell(
        self,
        level: str,
        event: str,
        text: str,
        fields: dict[str, object],
        second: str = "",
    ) -> None:
        """A message for whoever reads: a line in the log, or one or two lines for people."""
        self._log(level, event, text, fields)
        # A log has the message already; on a quiet terminal errors alone appear.
        if self.log_json or (self.quiet and level != "error"):
            return
        kind = level
        if level == "info":
            kind = "note"
        message = f"{PROGRAM}: {kind}: {one_line(text)}"
        if second:
            message += f"\n{one_line(second)}"
        self._write(message)

    def _log(
        self, level: str, event: str, text: str, fields: dict[str, object]
    ) -> None:
        """A line of the log, if there is one."""
        if not self.log_json or (self.quiet and level != "error"):
            return
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        record = {
            "time": now.replace("+00:00", "Z"),
            "level": level,
            "event": event,
            "message": one_line(text),
            **fields,
        }
        from mechdesign.report.plain_values import plain

        # In ASCII, because some readers take other characters than \n for the end of a line.
        self._write(json.dumps(plain(record), allow_nan=False, default=str))

    def _write(self, lines: str) -> None:
        """Write lines to standard error, whole, whichever thread they come from."""
        stream: Any = sys.stderr
        # The reader may be gone; that must not cost the result.
        with self._lock, suppress(OSError, ValueError):
            if self.console is not None:
                self.console.print(
                    lines, markup=False, highlight=False, emoji=False, soft_wrap=True
                )
            elif stream is not None:
                stream.write(f"{lines}\n")
                stream.flush()


class _Forwarding(logging.Handler):
    """Messages that libraries log from level WARNING on."""

    def __init__(self, reporter: Reporter) -> None:
        super().__init__(logging.WARNING)
        self._reporter = reporter

    def emit(self, record: logging.LogRecord) -> None:
        self._reporter.warning(
            f"{record.name}: {record.getMessage()}", event="library_warning"
        )


def listen(quiet: bool, log_json: bool) -> None:
    """Make a worker process report as its command does (`comparison.settings`)."""
    # A new process has none of what `main` set in this one.
    NAMES_OPTIONS.set(True)
    Reporter(quiet=quiet, log_json=log_json).listen()


def one_line(text: str) -> str:
    """`text` without line breaks or control characters, which would move a terminal's cursor."""
    characters: list[str] = []
    for character in " ".join(text.split()):
        if not character.isprintable():
            character = " "
        characters.append(character)
    return "".join(characters)


# ----------------------------------------------------------------------------- progress

WINDOW = 30.0
"""Seconds that a rate looks back: long enough to be calm, short enough to follow a change."""

LEAST = 10
"""Fewest units that a rate is computed from, because single units come irregularly."""


class Reading(NamedTuple):
    """The state of a meter: units of work, seconds, units a second; None where not yet known."""

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
        self._limit = limit
        # None until the work counts something; a search may never do.
        self._done: int | None = None
        self._total = total
        self._samples: deque[tuple[float, int]] = deque()

    def advance(self, amount: int = 1) -> None:
        """Another `amount` is done."""
        # The first sample of a rate: nothing was done at the beginning.
        if self._done is None:
            self._samples.append((self._began, 0))
        self._done = (self._done or 0) + amount

    def at(self, done: int, total: int | None = None) -> None:
        """So much is done. What the first call counts was done by an earlier run, and
        does not count for the rate.
        """
        if self._done is None:
            self._samples.append((self._clock(), done))
        self._done = done
        if total is not None:
            self._total = total

    def read(self) -> Reading:
        """The state of the work now."""
        # Copied, because the thread of the work may count on in between.
        now = self._clock()
        done = self._done
        total = self._total
        rate: float | None = None
        seconds_left: float | None = None
        if done is not None:
            rate = self._rate(now, done)
            if total is not None:
                seconds_left = _seconds_left(done, total, rate)
        # The work ends at its limit even if it is not done.
        if self._limit is not None:
            until_limit = max(0.0, self._limit - (now - self._began))
            if seconds_left is None or until_limit < seconds_left:
                seconds_left = until_limit
        return Reading(done, total, now - self._began, rate, seconds_left)

    def _rate(self, now: float, done: int) -> float | None:
        """Mean over the window, or over a longer time if too little was done within it."""
        # The first sample is "then". It goes once the next one, too, is WINDOW seconds and LEAST
        # units back.
        samples = self._samples
        while len(samples) > 1:
            next_time, next_done = samples[1]
            if next_time > now - WINDOW or next_done > done - LEAST:
                break
            samples.popleft()
        since, before = samples[0]
        samples.append((now, done))
        # Without progress there is no rate, rather than one of 0 that never ends.
        if now > since and done > before:
            return (done - before) / (now - since)
        return None


def _seconds_left(done: int, total: int, rate: float | None) -> float | None:
    """Seconds until the total at this rate; None where the rate is not yet known."""
    if done >= total:
        return 0.0
    if rate is None:
        return None
    return (total - done) / rate


def duration(seconds: float) -> str:
    """A time as 0:07, 12:34 or 1:02:03."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}:{minutes:02}:{rest:02}"
    return f"{minutes}:{rest:02}"


def amounts(reading: Reading, unit: str) -> str:
    """The work done and its rate, as in ``12.5 of 40.0 MB, 3.1 MB/s`` or ``3 of 40
    rows, 1.5 rows/s``.
    """
    if reading.done is None:
        return ""
    digits = 0
    scale = 1.0
    name = unit
    if unit == "B":
        digits = 1
        scale, name = _scale(reading.total or reading.done)
    text = f"{reading.done / scale:,.{digits}f}"
    if reading.total is not None:
        text += f" of {reading.total / scale:,.{digits}f}"
    text += f" {name}"
    if reading.rate is None:
        return text
    return f"{text}, {_rate_text(reading.rate, unit)}"


def _rate_text(rate: float, unit: str) -> str:
    """A rate with few digits: ``3.1 MB/s``, ``1.5 rows/s``."""
    if unit == "B":
        scale, name = _scale(rate)
        return f"{rate / scale:.1f} {name}/s"
    if rate >= 100.0:
        return f"{rate:,.0f} {unit}/s"
    return f"{rate:.3g} {unit}/s"


def _scale(size: float) -> tuple[float, str]:
    """The unit of bytes in which a size has few digits."""
    for scale, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= scale:
            return scale, name
    return 1.0, "B"


PATIENCE = 2.0
"""Seconds before anything is shown: shorter work needs no progress."""

INTERVAL = 5.0
"""Seconds between two lines of a log."""

BAR_WIDTH = 16
"""Columns of the bar; the words need the rest of eighty."""


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
        reporter: Reporter,
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
