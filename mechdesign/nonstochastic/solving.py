"""Solvers, with the errors of this package."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from mechdesign.core.errors import SolverFailure
from solvers.errors import BackendFailure

P = ParamSpec("P")
T = TypeVar("T")


def solved(solve: Callable[P, T], *given: P.args, **how: P.kwargs) -> T:
    """What `solve`, of `solvers`, makes of these arguments."""
    try:
        return solve(*given, **how)
    except BackendFailure as error:
        raise SolverFailure(str(error)) from None
