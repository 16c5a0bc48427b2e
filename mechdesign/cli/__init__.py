"""The command line: parse, call, print; no mathematics. `main` turns every error into one or two lines."""

from __future__ import annotations

import sys
from collections.abc import Sequence

PROGRAM = "mechdesign"

INTERRUPTED = 130
"""Exit code of a process that the user stopped (128 + SIGINT), as shells expect."""

GAVE_UP = 3
"""Exit code when there is no verified answer; also of a defect, so that a crash is never read as a verdict."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line on `argv` (default: those of the process) and return its exit code."""
    from typer import Abort, TyperException

    from mechdesign.cli.app import app
    from mechdesign.errors import MechdesignError

    arguments = list(sys.argv[1:] if argv is None else argv)
    _speak_utf8()
    debug = "--debug" in arguments
    try:
        code: object = app(arguments, prog_name=PROGRAM, standalone_mode=False)
    except TyperException as error:
        return _fail(_usage_lines(error), error.exit_code)
    except MechdesignError as error:
        if debug:
            raise
        return _fail([str(error)], error.exit_code)
    except (KeyboardInterrupt, Abort):
        return _fail(["interrupted; nothing was written"], INTERRUPTED)
    except OSError as error:
        if debug:
            raise
        return _fail([_os_line(error)], 2)
    except MemoryError:
        if debug:
            raise
        return _fail(["out of memory; try --method columns, or fewer symbols"], GAVE_UP)
    except Exception as error:
        # The last resort of a program with users: a defect must neither print a traceback at them nor
        # exit with 1, which would read as a verdict.
        if debug:
            raise
        kind = type(error).__name__
        return _fail([f"internal error ({kind}: {error}); --debug shows where; please report it"], GAVE_UP)
    if code == INTERRUPTED:
        return _fail(["interrupted; nothing was written"], INTERRUPTED)
    return code if isinstance(code, int) else 0


def _fail(lines: list[str], code: int) -> int:
    first, *rest = lines
    print(f"{PROGRAM}: error: {_one_line(first)}", *map(_one_line, rest), sep="\n", file=sys.stderr)
    return code


def _one_line(text: str) -> str:
    """`text` without line breaks or control characters, which would move a terminal's cursor."""
    return "".join(c if c.isprintable() else " " for c in " ".join(text.split()))


def _usage_lines(error: Exception) -> list[str]:
    message = getattr(error, "message", "")
    format_message = getattr(error, "format_message", None)
    if format_message is not None:
        message = format_message()
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else PROGRAM
    return [str(message).rstrip(".") or "something is missing", f"Try: {command} --help"]


def _os_line(error: OSError) -> str:
    where = f" {error.filename!r}" if error.filename is not None else ""
    return f"cannot use{where or ' a file'}: {error.strerror or error}"


def _speak_utf8() -> None:
    """Labels are Unicode whatever the locale is; what cannot be encoded is escaped instead of raising."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="backslashreplace")
