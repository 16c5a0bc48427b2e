"""From an exception to one or two lines and an exit code."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mechdesign.cli.reporting import PROGRAM
from mechdesign.core.errors import MechdesignError

INTERRUPTED = 130
"""Exit code of a process that the user stopped (128 + SIGINT), as shells expect."""

NOBODY_READS = 141
"""Exit code of a process whose reader has gone (128 + SIGPIPE), as shells expect."""

GAVE_UP = 3
"""Exit code when there is no verified answer; also of a defect, so that a crash is never read as a verdict."""


@dataclass(frozen=True)
class Failure:
    """How a command ended without its result.

    `event` is its name in a log; `puzzling` is an error whose traceback may help whoever asks for it.
    """

    event: str
    text: str
    exit_code: int
    hint: str | None = None
    puzzling: bool = True


def failure_of(error: BaseException) -> Failure:
    """What to say of `error`, and the exit code."""
    from typer import Abort, TyperException

    if isinstance(error, TyperException):
        return _usage(error)
    if isinstance(error, MechdesignError):
        if error.exit_code == INTERRUPTED:
            return interrupted(str(error))
        return Failure(_snake(type(error).__name__), str(error), error.exit_code)
    if isinstance(error, (KeyboardInterrupt, Abort)):
        return interrupted()
    if isinstance(error, OSError):
        where = f" {error.filename!r}" if error.filename is not None else " a file"
        return Failure("file_error", f"cannot use{where}: {error.strerror or error}", 2)
    if isinstance(error, MemoryError):
        return Failure("out_of_memory", "out of memory; try --method columns, or fewer symbols", GAVE_UP)
    # The last resort of a program with users: a defect must neither print a traceback at them nor exit
    # with 1, which would read as a verdict.
    what = f"{type(error).__name__}: {error}"
    return Failure(
        "internal_error", f"internal error ({what}); --debug shows where; please report it", GAVE_UP
    )


def interrupted(text: str = "interrupted; nothing was written") -> Failure:
    """The user stopped it."""
    return Failure("interrupted", text, INTERRUPTED, puzzling=False)


def _usage(error: Exception) -> Failure:
    message = getattr(error, "message", "")
    format_message = getattr(error, "format_message", None)
    if format_message is not None:
        message = format_message()
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else PROGRAM
    text = str(message).rstrip(".") or "something is missing"
    code = int(getattr(error, "exit_code", 2))
    return Failure("usage_error", text, code, hint=f"Try: {command} --help", puzzling=False)


def _snake(name: str) -> str:
    """InputError as input_error."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
