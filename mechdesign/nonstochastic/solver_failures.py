"""Errors of the solvers as errors of this package."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mechdesign.core.errors import SolverFailure
from solvers.errors import BackendFailure


@contextmanager
def solver_failures() -> Iterator[None]:
    """Within this block a failure of a solver is a `SolverFailure`."""
    try:
        yield
    except BackendFailure as error:
        raise SolverFailure(str(error)) from None
