"""Every error that `mechdesign` raises, with the exit code that the command line gives it."""

from __future__ import annotations


class MechdesignError(Exception):
    """Base of every error of this package; `exit_code` is that of the command line."""

    exit_code: int = 2


class InputError(MechdesignError, ValueError):
    """A file, column, symbol or argument is not usable (exit 2)."""


class NotPrivate(MechdesignError):
    """The answer is no: an audit failed or no private channel exists (exit 1)."""

    exit_code = 1


class SolverFailure(MechdesignError):
    """The solver stopped without a verified channel (exit 3)."""

    exit_code = 3
