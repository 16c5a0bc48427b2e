"""Standard error: notes and errors for people, or JSON lines for logs (`--log-json`).

A command has one `Reporter` and writes all its messages through it. `failure_of` turns an exception
into one or two such lines and an exit code.

`main` makes the reporter, enters `hearing` so that warnings of libraries go the same way, and
passes it to the command. The command opens long work with `work`, writes facts with `notice`, and
ends with `done`, which only the log shows, because people see the result itself. Of one fact people
and logs read ::

    mechdesign: note: the table has 3 zero cells
    {"time": "2026-11-23T02:00:00.000Z", "level": "info", "event": "notice", "message": "..."}
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple

from mechdesign.cli.first_options import COMMANDS
from mechdesign.cli.progress import Work
from mechdesign.core.above import above
from mechdesign.core.errors import (
    NAMES_OPTIONS,
    FileError,
    InputError,
    MechdesignError,
    notes_of,
)
from mechdesign.core.files import reason
from mechdesign.core.wording import listed

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


NO = 1
"""Exit code when the answer is no."""

INTERRUPTED = 130
"""Exit code of a process that the user stopped (128 + SIGINT), as shells expect."""

NOBODY_READS = 141
"""Exit code of a process whose reader has gone (128 + SIGPIPE), as shells expect."""

GAVE_UP = 3
"""Exit code when there is no verified answer; also of a defect, so that a crash is
never read as a verdict.
"""


class Interrupted(MechdesignError):
    """The user stopped a command, whose notes say what it had written (exit 130, as shells
    expect).
    """

    exit_code = INTERRUPTED


class Failure(NamedTuple):
    """The end of a command: `event` names it in a log; with --debug, `puzzling` errors
    have a traceback.
    """

    event: str
    text: str
    exit_code: int
    hint: str | None = None
    puzzling: bool = True


PRINTERS = ("typer.", "rich.", "mechdesign.cli.")
"""The modules whose own functions write to standard output, and to no file."""


def _is_from_printing(error: OSError) -> bool:
    """Whether an error comes from standard output, which the system does not say."""
    *_, (innermost, _) = traceback.walk_tb(error.__traceback__)
    return f"{innermost.f_globals['__name__']}.".startswith(PRINTERS)


def _has_working_folder() -> bool:
    """Whether the folder that relative paths begin in is still there."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return False
    return True


def failure_of(error: BaseException) -> Failure:
    """The message for `error` with its notes, and the exit code."""
    from typer import Abort

    from mechdesign.jobs.stopping import NOTHING

    notes = notes_of(error)
    # typer raises Abort where the user ends a question; it means the same.
    if isinstance(error, (KeyboardInterrupt, Abort)):
        error = Interrupted("interrupted")
    if isinstance(error, Interrupted):
        notes = notes or [NOTHING]
    failure = _failure_of(error)
    return failure._replace(text="; ".join([failure.text, *notes]))


def _failure_of(error: BaseException) -> Failure:
    """The message for an error without its notes, and the exit code."""
    from typer import TyperException

    match error:
        case TyperException():
            return _usage(error)
        case MechdesignError(exit_code=code):
            # A wrong file is wrong input to whoever reads the log.
            kind = type(error)
            if isinstance(error, FileError):
                kind = InputError
            event = re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()
            return Failure(event, str(error), code, puzzling=code != INTERRUPTED)
        # Whatever file it was: full disks and missing rights are for the user to mend.
        case OSError():
            if error.filename is None and _is_from_printing(error):
                text = f"standard output cannot be written: {reason(error)}"
                return Failure("file_error", text, 2)
            where = " a file"
            if error.filename is None and not _has_working_folder():
                text = (
                    "the working folder was removed; go to another one, and start again"
                )
                return Failure("file_error", text, 2)
            if error.filename is not None:
                where = f" {error.filename!r}"
            return Failure(
                "file_error", f"cannot use{where}: {error.strerror or error}", 2
            )
        case MemoryError():
            text = "out of memory; try --method columns, or fewer symbols"
            return Failure("out_of_memory", text, GAVE_UP)
        case _:
            # A defect must neither print a traceback nor exit with 1, which would read as a
            # verdict.
            text = (
                f"internal error ({type(error).__name__}: {error}); --debug shows where; "
                f"please report it"
            )
            return Failure("internal_error", text, GAVE_UP)


def _usage(error: Any) -> Failure:
    """A usage error of typer; its classes differ in whether they have a context and a
    formatted message.
    """
    format_message = getattr(error, "format_message", None)
    if format_message is None:
        message = getattr(error, "message", "")
    else:
        message = format_message()
    context = getattr(error, "ctx", None)
    command = PROGRAM
    if context is not None:
        command = context.command_path
    message = str(message).rstrip(".") or "something is missing"
    unknown = _UNKNOWN_OPTION.match(message)
    if unknown is not None:
        # The part of the path after the program's name.
        name = command.removeprefix(PROGRAM).strip()
        meant = OTHER_NAMES.get(name, {}).get(unknown.group(1))
        if meant is not None:
            message = f"{name} has no option {unknown.group(1)}: it is {meant} here"
        elif name:
            message = _elsewhere(name, unknown.group(1)) or message
    if message == _MISSING_CHANNEL:
        message = (
            f"--channel is missing: give the data file and the channel, as in {command} FILE "
            f"--channel CHANNEL; for a channel alone there is {PROGRAM} show CHANNEL"
        )
    if message.startswith(_EXTRA_ARGUMENT) and context is not None:
        message += _place_of_output(context.command)
    return Failure(
        "usage_error",
        message,
        int(getattr(error, "exit_code", 2)),
        hint=f"Try: {command} --help",
        puzzling=False,
    )


_UNKNOWN_OPTION = re.compile(r"No such option: (--[a-z-]+)")
"""How typer begins when a command lacks an option."""

_MISSING_CHANNEL = "Missing option '--channel'"
"""What typer says where the one file that is given may be the channel itself."""

OTHER_NAMES: dict[str, dict[str, str]] = {
    "apply": {
        "--channel": "the first argument, CHANNEL,",
        "--output": "the third argument, OUT,",
        "--table": "the second argument, IN,",
        "--release": "the columns of the channel (--keep adds others)",
    },
    "assess": {
        "--useful": "--columns",
        "--release": "--columns",
        "--output": "--report",
        "--html": "--report",
    },
    "audit": {"--original": "--table"},
    "check": {"--table": "--original", "--sensitive": "in the channel (--channel)"},
    "compare": {"--report": "--output and --plot"},
    "compose": {"--original": "--table"},
    "design": {
        "--columns": "--release",
        "--table": "the first argument, TABLE,",
        "--original": "the first argument, TABLE,",
        "--drop": "--leave-out",
    },
    "estimate": {"--columns": "--of"},
    "judge": {
        "--table": "--original",
        "--columns": "--known",
        "--release": "--known",
        "--output": "--report",
        "--html": "--report",
    },
    "report": {"--output": "--report", "--html": "--report"},
}
"""Options of one command that people try at another, and what is meant there."""

MOST_SIBLINGS = 3
"""An option that more commands have is not said to be theirs: it is no slip between two."""


def _elsewhere(name: str, option: str) -> str:
    """The commands that have an option that this one lacks, in a sentence; else nothing."""
    # The program that runs has loaded the one command that was named.
    program = above("application").application()
    having = [
        sibling
        for sibling in COMMANDS
        if any(option in p.opts for p in program.commands[sibling].params)
    ]
    if not 1 <= len(having) <= MOST_SIBLINGS:
        return ""
    verb = "has" if len(having) == 1 else "have"
    return f"{name} has no option {option}: {listed(having)} {verb} it"


_EXTRA_ARGUMENT = "Got unexpected extra argument"
"""How typer begins when a command has too many arguments."""


def _place_of_output(command: Any) -> str:
    """Which option names the output, as the extra argument is most often meant as one."""
    options: set[str] = set()
    for parameter in command.params:
        options.update(parameter.opts)
    for option in ("--output", "--report"):
        if option in options:
            return f"; what is to be written is named by an option: {option} FILE"
    return ""
