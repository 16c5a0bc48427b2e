"""What an envelope computation returns and reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from solvers.concave import SearchCounts, SearchResult
from solvers.points import Array, Points


class EnvelopeStatus(StrEnum):
    """How a computation ended. The bound is valid and the points feasible whichever it is."""

    OPTIMAL = "optimal: the gap is closed"
    TIME_LIMIT = "time limit reached: allow more seconds or a larger gap"
    MEMORY_LIMIT = "memory limit reached: allow more memory or a larger gap"
    INTERRUPTED = "interrupted"
    STALLED = "no further column gains anything in double precision: allow a larger gap"
    BACKEND_FAILED = "HiGHS failed on the master program: allow a larger gap"


@dataclass(frozen=True)
class Progress:
    """A moment of a computation: value of the best decomposition, proven bound, and effort so far."""

    value: float
    bound: float
    rounds: int
    columns: int
    nodes: int


@dataclass(frozen=True, eq=False)
class Envelope:
    """A decomposition ``sum_k weights_k points_k = point`` and what is proven about its cost.

    Attributes
    ----------
    weights : (k,) array
        Positive, summing to one up to rounding.
    points : Points, (k, n)
        Members of the polytope up to rounding.
    value : float
        ``sum_k weights_k cost(points_k)``.
    bound : float
        No decomposition over the relaxation costs less; rounded down.
    dual : (n,) array
        The prices that prove the bound.
    method : str
        'vertices', 'columns' or 'line'.
    pool : Points
        Every column generated, for a warm start nearby.
    """

    status: EnvelopeStatus
    weights: Array
    points: Points
    value: float
    bound: float
    dual: Array
    method: str
    pool: Points
    enumeration: str | None = None
    vertices: int = 0
    rounds: int = 0
    columns: int = 0
    counts: SearchCounts = field(default_factory=SearchCounts)
    seconds: float = 0.0
    seconds_pricing: float = 0.0

    @property
    def gap(self) -> float:
        """``value - bound``."""
        return self.value - self.bound


Pricer: TypeAlias = Callable[..., SearchResult]
"""`ConcaveSearch.run`, or what takes its parameters."""
