"""What an envelope computation returns and reports, and what prices prove."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

import numpy as np

from solvers.concave import SearchCounts, SearchResult
from solvers.points import Array, Points

LOWERING_SHARE = 0.1
"""Most that lower prices of rare coordinates may cost, as a share of the gap."""


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


def envelope_bound(prices: Array, target: Array, minimum: float) -> float:
    """``prices.target + minimum`` rounded down: a lower bound of the envelope at the target.

    The target is itself the rounding of some exact vector: each entry may be off by 4 ulp.
    """
    if not math.isfinite(minimum):
        return -math.inf
    terms = prices * target
    error = 8.0 * np.finfo(np.float64).eps * (float(np.abs(terms).sum()) + abs(minimum))
    return math.fsum(terms) + minimum - error


def lowered_prices(
    prices: Array, points: Points, target: Array, gap: float
) -> Array | None:
    """Prices at which the points no longer gain, where rare coordinates alone have to pay for that.

    The master knows a price as well as its coordinate is worth: to 1e-10 of a probability of 1e-8 is not known
    at all, and a column that gains much, of which there can be next to nothing, would open the whole bound.
    """
    excess = points.dot(prices) - points.entropies()
    first, worth = points.indptr[:-1], target[points.indices] / points.data
    least = np.minimum.reduceat(worth, first)[points.owner]
    rarest = np.minimum.reduceat(
        np.where(worth == least, np.arange(len(worth)), len(worth)), first
    )
    drop = np.zeros_like(prices)
    np.maximum.at(
        drop, points.indices[rarest], np.maximum(excess, 0.0) / points.data[rarest]
    )
    return prices - drop if float(drop @ target) <= LOWERING_SHARE * gap else None
