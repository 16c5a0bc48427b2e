"""Errors of the solvers as errors of this package."""

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
