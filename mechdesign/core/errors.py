"""Every error that `mechdesign` raises, with the exit code that the command line gives it."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

OPTION = re.compile(r"(\(?)(?<![\w-])--([a-z][a-z-]*)(?: ([^\s()]+)(?=\)))?")
"""An option of the command line in a message, perhaps in parentheses and there perhaps with a value."""

NAMES_OPTIONS: ContextVar[bool] = ContextVar("names_options", default=False)
"""Whether messages name options of the command line, which sets this while it runs; else parameters of Python."""

CALLED = {
    "as": "form", "bin": "bins", "probabilities": "Joint.from_probabilities", "table": "joint", "weighted": "weights"
}  # fmt: skip
"""What is called otherwise in Python."""


class MechdesignError(Exception):
    """Base of every error of this package; `exit_code` is that of the command line."""

    exit_code: int = 2

    def __str__(self) -> str:
        text = super().__str__()
        return text if NAMES_OPTIONS.get() else OPTION.sub(_parameter, text)


def _parameter(found: re.Match[str]) -> str:
    """``(--missing symbol)`` as ``(missing='symbol')``, ``--force`` as ``force``."""
    opened, name, value = found[1], found[2].replace("-", "_"), found[3]
    name = CALLED.get(name, name)
    said = repr(value.strip("'")) if value else ""
    return f"{opened}{name}{'=' if opened and name.isidentifier() else ''}{said}"


class InputError(MechdesignError, ValueError):
    """A file, column, symbol or argument is not usable (exit 2)."""


class NotPrivate(MechdesignError):
    """The answer is no: an audit failed or no private channel exists (exit 1)."""

    exit_code = 1


class SolverFailure(MechdesignError):
    """The solver stopped without a verified channel (exit 3)."""

    exit_code = 3


@contextmanager
def naming(name: str) -> Generator[None]:
    """Errors of input tell which file, or part of one, they are about."""
    try:
        yield
    except InputError as error:
        if str(error).startswith(name):
            raise
        raise InputError(f"{name}: {error}") from None


def expected(name: str, value: object, kind: type[T], hint: str = "") -> T:
    """`value`, which is an argument of this name, if it is of this kind; else InputError."""
    if isinstance(value, kind):
        return value
    raise InputError(
        f"{name} must be a {kind.__name__}, not {type(value).__name__}{hint}"
    )
