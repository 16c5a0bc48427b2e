"""What is said on standard error: notes and errors for people, or JSON lines for logs (`--log-json`)."""

from __future__ import annotations

import json
import logging
import math
import sys
import threading
import time
import warnings
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TextIO, cast

from mechdesign.cli.line import PROGRAM
from mechdesign.cli.work import Work

if TYPE_CHECKING:
    import typer

QUIET = "--quiet"
LOG_JSON = "--log-json"


class Reporter:
    """Every message of a command goes through here; results go to standard output instead.

    With `quiet` only errors are left. With `log_json` each message is a line with one JSON object: `time`
    (UTC), `level` (info, warning, error), `event`, `message`, and what belongs to the event. Nobody gives it
    keys or cells of a table, beyond what an error must name.
    """

    def __init__(self, *, quiet: bool = False, log_json: bool = False) -> None:
        self.quiet = quiet
        self.log_json = log_json
        self.console: Any = None
        self.finished = False
        self._began = time.monotonic()
        self._lock = threading.Lock()

    @classmethod
    def from_arguments(cls, arguments: Sequence[str]) -> Reporter:
        """As asked for anywhere on the command line, which may itself be the error to report."""
        options = set(arguments[: arguments.index("--")] if "--" in arguments else arguments)
        return cls(quiet=QUIET in options, log_json=LOG_JSON in options)

    @property
    def watched(self) -> bool:
        """Whether progress is of interest to anybody."""
        stream: Any = sys.stderr
        return not self.quiet and (self.log_json or (stream is not None and stream.isatty()))

    def work(
        self, text: str, *, unit: str = "steps", total: int | None = None, limit: float | None = None
    ) -> Work:
        """Long work, to be entered."""
        return Work(self, text, unit=unit, total=total, limit=limit)

    def notice(self, text: str, event: str = "notice", **fields: object) -> None:
        """Something that the user should know of the data or of the result."""
        self._tell("info", event, text, fields, prefix="note: ")

    def notices(self, texts: Iterable[str]) -> None:
        """A notice for each text."""
        for text in texts:
            self.notice(text)

    def warning(self, text: str, event: str = "warning", **fields: object) -> None:
        """Something that the user should probably change."""
        self._tell("warning", event, text, fields, prefix="warning: ")

    def error(self, text: str, event: str = "error", hint: str | None = None, **fields: object) -> None:
        """Why the command ends without its result, in one line; `hint` is a second one."""
        if hint is not None:
            fields = {"hint": one_line(hint), **fields}
        self._tell("error", event, text, fields, prefix="error: ", second=hint)

    def done(self, event: str, text: str | None = None, **fields: object) -> None:
        """The end of the work in the log, with its seconds; for people, standard output says it."""
        if self.log_json and not self.quiet:
            fields = {**fields, "seconds": round(time.monotonic() - self._began, 3)}
            self._log("info", event, event if text is None else text, fields)

    def progress(self, text: str, **fields: object) -> None:
        """A line of progress in the log."""
        if self.log_json and not self.quiet:
            self._log("info", "progress", text, fields)

    @contextmanager
    def hearing(self) -> Generator[None]:
        """Warnings and log messages of the libraries in use take this way, too."""
        with warnings.catch_warnings():
            handler = self.listen()
            try:
                yield
            finally:
                logging.getLogger().removeHandler(handler)

    def listen(self) -> logging.Handler:
        """Hear the libraries from now on, in a process that is wholly the command's."""
        handler = _Forwarding(self)
        logging.getLogger().addHandler(handler)
        warnings.showwarning = self._heard
        return handler

    def _heard(
        self,
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        self.warning(f"{category.__name__}: {message}", event="library_warning")

    def _tell(
        self,
        level: str,
        event: str,
        text: str,
        fields: dict[str, object],
        *,
        prefix: str,
        second: str | None = None,
    ) -> None:
        if self.quiet and level != "error":
            return
        if self.log_json:
            self._log(level, event, text, fields)
            return
        lines = [f"{PROGRAM}: {prefix}{one_line(text)}", *([] if second is None else [one_line(second)])]
        self._write("\n".join(lines))

    def _log(self, level: str, event: str, text: str, fields: dict[str, object]) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        record = {"time": now, "level": level, "event": event, "message": one_line(text), **fields}
        # ASCII, for some readers of lines take more than \n for the end of one.
        self._write(json.dumps(_plain(record), allow_nan=False))

    def _write(self, lines: str) -> None:
        stream: Any = sys.stderr
        # Nobody may be listening any more; that must not cost the result.
        with self._lock, suppress(OSError, ValueError):
            if self.console is not None:
                self.console.print(lines, markup=False, highlight=False, emoji=False, soft_wrap=True)
            elif stream is not None:
                stream.write(f"{lines}\n")
                stream.flush()


class _Forwarding(logging.Handler):
    """What libraries log from level WARNING on."""

    def __init__(self, reporter: Reporter) -> None:
        super().__init__(logging.WARNING)
        self._reporter = reporter

    def emit(self, record: logging.LogRecord) -> None:
        self._reporter.warning(f"{record.name}: {record.getMessage()}", event="library_warning")


def reporter_of(context: typer.Context) -> Reporter:
    """The reporter that `main` made; a plain one for a command that is called in another way."""
    return context.obj if isinstance(context.obj, Reporter) else Reporter()


def one_line(text: str) -> str:
    """`text` without line breaks or control characters, which would move a terminal's cursor."""
    return "".join(c if c.isprintable() else " " for c in " ".join(text.split()))


def _plain(value: object) -> Any:
    """What JSON can carry: infinities as texts, NaN as null, anything else it does not know as a text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None if math.isnan(value) else f"{value:g}"
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in cast("Mapping[object, object]", value).items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in cast("Sequence[object]", value)]
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)
