"""The command line: `main` runs one line of words and returns the exit code; no mathematics
is here.

``main(["audit", "channel.json"])`` imports the module of `audit` alone (`application`). typer
parses the words, and `line.command` makes the groups of options of them and calls the function
`audit`, which computes and prints. Every exception, Ctrl-C too, becomes one or two lines on
standard error and an exit code (`failures.failure_of`). The codes: 0 done, 1 the answer is no, 2
bad input, 3 no verified answer. `program` is the process around it.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mechdesign.cli.console import Reporter


GARBAGE = 200_000
"""New objects between two garbage collections.

A start has fewer. Imported modules stay, and searching them for garbage takes a tenth of it.
"""

COMPLETION = "_MECHDESIGN_COMPLETE"
"""The variable by which typer knows that a shell asks how a word goes on."""


def program() -> int:
    """The process `mechdesign`: `main`, without a last search for garbage among all modules."""
    # pyarrow's own allocator keeps 30 MB more than it needs.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    # Terminals without a size say 0, and a help of no width would be empty.
    if os.environ.get("COLUMNS") == "0":
        del os.environ["COLUMNS"]
    # Older objects are searched still less often than that, in every 20th and 400th round.
    gc.set_threshold(GARBAGE, 20, 20)
    code = main()
    # The interpreter collects garbage once more as it ends, but leaves frozen objects out.
    gc.freeze()
    return code


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line on `argv` (default: those of the process) and return its exit code."""
    from mechdesign.cli.console import Reporter
    from mechdesign.core.errors import NAMES_OPTIONS

    if argv is None:
        argv = sys.argv[1:]
    arguments = list(argv)
    _speak_utf8()
    # Before typer parses anything: a wrong line, too, is reported as --quiet and --log-json say.
    reporter = Reporter.from_arguments(arguments)
    # Reset at the end, because `main` may run within a process that also calls Python functions,
    # whose errors name parameters.
    token = NAMES_OPTIONS.set(True)
    try:
        with reporter.hearing():
            return _run(arguments, reporter)
    finally:
        NAMES_OPTIONS.reset(token)


def _is_first_try(arguments: Sequence[str], commands: Sequence[str]) -> bool:
    """Whether the line is empty, asks for help in a word, or is nothing but the name of a file."""
    if not arguments:
        # A shell that completes words calls the program without any.
        return COMPLETION not in os.environ
    if len(arguments) > 1 or arguments[0].startswith("-"):
        return False
    word = arguments[0]
    if word in commands:
        return False
    return word == "help" or os.path.isfile(word)


def _print_welcome(text: str) -> int:
    """Print the first screen; the exit code."""
    from mechdesign.cli.failures import NOBODY_READS

    try:
        print(text, flush=True)
    except BrokenPipeError:
        # Python would complain at its end, when it writes the rest.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NOBODY_READS
    return 0


def _run(arguments: list[str], reporter: Reporter) -> int:
    """Run the command, or report why it failed; the exit code."""
    from mechdesign.cli.console import PROGRAM
    from mechdesign.cli.failures import INTERRUPTED, NOBODY_READS, Failure, failure_of
    from mechdesign.formats.inputs import inputs_held
    from mechdesign.jobs.stopping import Stopped, stoppable

    trace: dict[str, object] = {}
    ends_in_order: AbstractContextManager[None] = stoppable()
    same_inputs: AbstractContextManager[None] = inputs_held()
    # The page ends by itself when it is asked to, and tables may change as long as it is open.
    if arguments[:1] == ["app"]:
        ends_in_order = nullcontext()
        same_inputs = nullcontext()
    try:
        from mechdesign.cli.first_options import NAMES, welcome

        if _is_first_try(arguments, NAMES):
            return _print_welcome(welcome(arguments))
        if arguments[:1] == ["help"]:
            arguments = [*arguments[1:], "--help"]
        from mechdesign.cli.application import application

        # Whatever is half written is cleared away on the way out of a signal. The first word is the
        # command: only its module is imported.
        with ends_in_order, same_inputs:
            code = application(*arguments[:1])(
                arguments, prog_name=PROGRAM, standalone_mode=False, obj=reporter
            )
        if code != INTERRUPTED:
            # A command that is done returns None.
            if isinstance(code, int):
                return code
            return 0
        # typer turns Ctrl-C into this exit code; it is reported like any other end.
        failure = failure_of(KeyboardInterrupt())
    except SystemExit as end:
        # Where standard output is a closed pipe, typer exits with 1, which would read as a verdict.
        # Shell completion exits with 0.
        if end.code:
            return NOBODY_READS
        return 0
    except Stopped as stopped:
        failure = Failure("stopped", str(stopped), stopped.exit_code, puzzling=False)
    except (Exception, KeyboardInterrupt) as error:
        failure = failure_of(error)
        if "--debug" in arguments and failure.puzzling:
            from traceback import format_exc, print_exc

            if reporter.log_json:
                trace = {"traceback": format_exc()}
            else:
                print_exc()
    # Everything was written before the signal came: the command did what it was asked to do.
    if reporter.finished and failure.exit_code == INTERRUPTED:
        return 0
    text = failure.text
    if reporter.finished:
        text = f"{text}; the release itself is written whole"
    fields = {"exit_code": failure.exit_code, **trace}
    hint = failure.hint or _hint_of_locale(arguments)
    if failure.event == "usage_error":
        hint = _hint_of_dash(arguments) or hint
    reporter.error(text, event=failure.event, hint=hint, **fields)
    return failure.exit_code


def _hint_of_dash(words: Sequence[str]) -> str | None:
    """How to name a file that was taken for an option."""
    for word in words:
        if word.startswith("-") and os.path.isfile(word):
            return f"A file whose name begins with a dash is given as ./{word}"
    return None


def _hint_of_locale(words: Sequence[str]) -> str | None:
    """How to name a column that the locale has no characters for, where a word has such ones.

    Python keeps the bytes of such characters as lone surrogates, which are in no table.
    """
    if sys.getfilesystemencoding() == "utf-8" or "".join(words).isascii():
        return None
    return (
        "The locale of this terminal has no characters beyond ASCII, so that names with such "
        "characters are not found: set PYTHONUTF8=1 (or a UTF-8 locale), and try again"
    )


def _speak_utf8() -> None:
    """Print Unicode labels whatever the locale is; characters that cannot be encoded
    are escaped.
    """
    for stream in (sys.stdout, sys.stderr):
        # A stream that was put in the place of the process's own, as tests do, has no such method.
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="backslashreplace")
