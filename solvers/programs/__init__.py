"""The master program of an envelope: min cost.w subject to sum_k w_k v_k = point, w >= 0.

One back-end a file behind one small protocol; `MASTERS` is the registry.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from pkgutil import resolve_name
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from solvers.errors import BackendFailure, InvalidOption
from solvers.points import Points

Array = NDArray[np.float64]

FEASIBILITY = 1e-7
"""Largest residual of the equations, in units about as large as each entry of the point, at which an answer of
a back-end is believed: its own default tolerance. Whoever releases a channel verifies it exactly; this only
catches a back-end that lies."""


@dataclass(frozen=True, eq=False)
class PriceBox:
    """lower <= prices <= upper, per coordinate: keeps the prices of an unripe program from jumping.

    In the primal, mass of a coordinate that no column brings costs `upper`, and mass too much brings `lower`.
    """

    lower: Array
    upper: Array


class MasterStatus(StrEnum):
    """How a solve of the master ended."""

    OPTIMAL = "optimal"
    TIME_LIMIT = "time limit reached: allow more seconds"
    FAILED = "the back-end failed: try another one (highs, cvxpy)"


@dataclass(frozen=True, eq=False)
class MasterSolution:
    """Weights (k,), prices (n,) and value ``prices.point`` of one solve.

    `slack` is the mass that the box paid for, `residual` the worst equation with it counted in.
    """

    status: MasterStatus
    weights: Array
    dual: Array
    value: float
    slack: float
    residual: float

    @property
    def is_optimal(self) -> bool:
        """Claimed optimal, finite, and its equations hold to `FEASIBILITY`."""
        return (
            self.status is MasterStatus.OPTIMAL
            and bool(np.isfinite(self.dual).all())
            and bool(np.isfinite(self.weights).all())
            and self.residual <= FEASIBILITY
        )


class Master(Protocol):
    """A linear program that grows by columns."""

    def add(self, points: Points, costs: Array) -> None:
        """Append columns."""
        ...

    def solve(self, time_limit: float, box: PriceBox | None = None) -> MasterSolution:
        """Optimise, from where the last solve ended if the back-end can."""
        ...


MASTERS: dict[str, tuple[str, str | Callable[[Array], Master]]] = {
    "highs": ("highspy", "solvers.programs.highs:HighsMaster"),
    "cvxpy": ("cvxpy", "solvers.programs.cvx:CvxpyMaster"),
}
"""The package that each back-end needs, and what builds its masters; imported when it is first used."""


def new_master(backend: str, target: Array) -> Master:
    """An empty master for the point `target` (n,)."""
    if backend not in MASTERS:
        raise InvalidOption(f"backend {backend!r} is not known; use one of {', '.join(MASTERS)}")
    package, build = MASTERS[backend]
    if find_spec(package) is None:
        raise BackendFailure(f"backend {backend!r} needs the package {package}, which is not installed")
    return (resolve_name(build) if isinstance(build, str) else build)(target)
