"""The errors that `mechdesign` raises, each with the exit code that the command line gives it.

A message is written once, with the options of the command line. When it is shown, `str` of the
error decides by `NAMES_OPTIONS` whether its options become parameters::

    command line    a.csv: a cell is empty (--missing symbol)
    Python          a.csv: a cell is empty (missing='symbol')

The name of the file comes from `errors_naming`, a block that the readers of a file put around their
work: the functions in it raise `InputError` without knowing the file.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

OPTION = re.compile(r"(\(?)(?<![\w-])--([a-z][a-z-]*)(?: ([^\s()]+)(?=\)))?")
"""A command-line option in a message. Its value is recognised only inside parentheses."""

NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")
"""The value of an option that is a number."""

NAMES_OPTIONS: ContextVar[bool] = ContextVar("names_options", default=False)
"""Whether messages name command-line options; otherwise they name Python parameters.

The command line sets this while it runs.
"""

PARAMETER_OF_OPTION = {
    "as": "form",
    "bin": "bins",
    "probabilities": "Joint.from_probabilities",
    "table": "joint",
    "weighted": "weights",
}
"""Options whose Python parameter has another name."""


class MechdesignError(Exception):
    """Base class of all errors of this package.

    The message that is given has the options of the command line. `str` gives them as parameters to
    users of Python.
    """

    exit_code: int = 2

    def __str__(self) -> str:
        text = super().__str__()
        if NAMES_OPTIONS.get():
            return text
        return OPTION.sub(_as_parameter, text)


class Notice(UserWarning):
    """A fact about the data that the user should know; the command line prints it as a note."""


def _as_parameter(option: re.Match[str]) -> str:
    """``(--missing symbol)`` as ``(missing='symbol')``, ``--force`` as ``force``."""
    parenthesis = option[1]
    name = option[2].replace("-", "_")
    value = option[3]
    name = PARAMETER_OF_OPTION.get(name, name)
    # Outside parentheses the option is part of a sentence, as is a name with a dot.
    assigned = bool(parenthesis) and name.isidentifier()
    equals = "=" if assigned else ""
    shown = ""
    if value:
        # Messages quote what a shell would interpret, such as the delimiter '|'.
        # Either kind of quotes of the shell; a text of Python has its own.
        shell = '"' if value.startswith('"') else "'"
        shown = repr(value.strip(shell))
        if NUMBER.fullmatch(value):
            # Parameters that are numbers refuse texts, such as skip_lines='1'.
            shown = value
    if assigned and (name == "unknown" or (name, value) == ("missing", "marginal")):
        # What becomes of records without a row in the channel is said by a policy.
        return f"{parenthesis}policy=Policy({name}={shown or '..'})"
    return f"{parenthesis}{name}{equals}{shown}"


class InputError(MechdesignError, ValueError):
    """A file, column, symbol or argument is not usable (exit code 2)."""


class FileError(InputError):
    """A file is not usable. The message begins with the name of the file.

    Parameters
    ----------
    file : str
        The name of the file, as messages print it.
    message : str
        The whole message.
    """

    def __init__(self, file: str, message: str) -> None:
        super().__init__(message)
        self.file = file

    def __reduce__(self) -> tuple[type[FileError], tuple[str, str]]:
        # The default would call the constructor with the message alone.
        return type(self), (self.file, self.args[0])


AGAIN = 75
"""Exit code of what may succeed when it is started again, as sendmail and others use it
(EX_TEMPFAIL).
"""


class StartAgain(InputError):
    """Another job was in the way, and nothing is wrong with the input: start again (exit code
    75).
    """

    exit_code = AGAIN


class FileChanged(FileError):
    """A file changed while it was read: start again when it is complete (exit code 75)."""

    exit_code = AGAIN


class NotPrivate(MechdesignError):
    """An audit failed, or no private channel exists (exit code 1)."""

    exit_code = 1


class SolverFailure(MechdesignError):
    """The solver stopped without a verified channel, or without a proof (exit code 3)."""

    exit_code = 3


class ProofOutOfTime(SolverFailure):
    """A limit of time ended before a proof did (exit code 3)."""


@contextmanager
def errors_naming(name: str) -> Generator[None]:
    """Begin the message of every `InputError` with the name of the file, exactly once."""
    try:
        yield
    except InputError as error:
        # Nested readers of one file each add its name; its message has it already.
        if isinstance(error, FileError) and error.file == name:
            raise
        named = FileError(name, f"{name}: {error}")
        # Whether to start again does not depend on the name.
        named.exit_code = error.exit_code
        with errors_noting(*notes_of(error)):
            raise named from None


@contextmanager
def errors_noting(*notes: str) -> Generator[None]:
    """Add notes to every error inside, such as which files were complete before it.

    The command line prints them behind the message of the error.
    """
    try:
        yield
    except BaseException as error:
        for note in notes:
            error.add_note(note)
        raise


def notes_of(error: BaseException) -> list[str]:
    """The notes that were added to an error, the innermost first."""
    return [*getattr(error, "__notes__", ())]


def require_type(name: str, value: object, kind: type[T], hint: str = "") -> T:
    """Return the argument `value` if it is a `kind`; raise `InputError` otherwise.

    `hint` is added to the message as it is.
    """
    if isinstance(value, kind):
        return value
    raise InputError(
        f"{name} must be a {kind.__name__}, not {type(value).__name__}{hint}"
    )
