"""Errors of the solvers as errors of this package.

``with solver_failures(): solve_program(..)`` raises the `BackendFailure` of a solver, which knows
nothing of this package, as the `SolverFailure` that callers of the package expect.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from mechdesign.core.errors import SolverFailure
from solvers.errors import BackendFailure


@contextmanager
def solver_failures() -> Generator[None]:
    """Raise a failure of a solver within the block as a `SolverFailure`."""
    try:
        yield
    except BackendFailure as error:
        raise SolverFailure(str(error)) from None
