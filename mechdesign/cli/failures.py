"""How a command ends that has no result: an exception becomes one or two lines and an exit code.

`failure_of` words it. A usage error names the option or the command that was probably meant
(`OTHER_NAMES`); an error of the file system says which file. Of a defect people read that it is
one, and how to see where.
"""

from __future__ import annotations

import os
import re
import traceback
from typing import Any, NamedTuple

from mechdesign.cli.console import PROGRAM
from mechdesign.cli.first_options import COMMANDS
from mechdesign.core.above import above
from mechdesign.core.errors import FileError, InputError, MechdesignError, notes_of
from mechdesign.core.files import reason
from mechdesign.core.wording import listed

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
