"""Results of an envelope computation, its progress reports, and the bound that prices prove.

A status never weakens a result: whatever ended the search, `Envelope.points` are feasible and
`Envelope.bound` is valid. For example, weights (0.5, 0.5) of the points (0.2, 0.8) and (0.8, 0.2)
have the value 0.5004 nats at the point (0.5, 0.5); with a bound of 0.5003 the gap is 1e-4.

`envelope_bound` is y.point + m for prices y and a lower bound m of cost(v) - y.v, rounded down so
that it survives floating point. `lowered_prices` lowers prices of rare coordinates, hardly known,
where these keep that bound down.

*Rounds of column generation*, which every search for a channel goes through. A search holds columns
(posteriors that outputs may have) and a master program over them. A round is

1. `solve`: the master gives the best channel of the columns so far, its value, and prices;
2. `price`: at these prices a search over the whole set looks for columns that gain, and proves a
   bound for all channels.

Searches differ in what a column costs (entropy, the entropy of a task, leakage, variance) and in
the set that columns come from. `run_rounds` has what they share: when a run ends, and why. The
bound may lie on either side of the value, for some searches maximise.

The loop over polytopes and uncertain sets (`solvers.envelope.generation`) has phases of its own,
with prices in a box; its rounds are not these.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, TypeAlias

import numpy as np

from solvers.points import Array, Points
from solvers.pricing.concave import SearchCounts, SearchResult

# ------------------------------------------------------------------------------ results

LOWERING_SHARE = 0.1
"""Largest share of the gap by which lower prices of rare coordinates may lower the bound."""


class EnvelopeStatus(StrEnum):
    """How a computation ended. In every case the bound is valid and the points are feasible."""

    OPTIMAL = "optimal: the gap is closed"
    TIME_LIMIT = "time limit reached: allow more seconds or a larger gap"
    MEMORY_LIMIT = "memory limit reached: allow more memory or a larger gap"
    INTERRUPTED = "interrupted"
    STALLED = "no further column gains anything in double precision: allow a larger gap"
    BACKEND_FAILED = "HiGHS failed on the master program: allow a larger gap"


@dataclass(frozen=True)
class Progress:
    """State of a computation: value of the best decomposition, proven bound, and effort so far."""

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
"""`ConcaveSearch.run`, or another pricing method with its parameters."""


def envelope_bound(prices: Array, target: Array, minimum: float) -> float:
    """``prices.target + minimum`` rounded down: a lower bound of the envelope at the target.

    This is weak duality (docs/explanation/optimum-theory.md, 'A bound from prices'): every
    decomposition has weights that sum to 1, and each of its points costs at least ``prices.point +
    minimum``. Any prices are valid, and any proven lower bound will do for `minimum`.

    The target is itself the rounding of some exact vector: each entry may be off by 4 ulp. The sum
    of products is exact (`math.fsum`), so 8 ulp of the terms cover that, the products and the last
    addition.
    """
    # Also true of NaN: no minimum is proven, so no bound is.
    if not math.isfinite(minimum):
        return -math.inf
    terms = prices * target
    # Rounding is relative to the moduli of the terms: large prices of opposite signs may cancel.
    error = 8.0 * np.finfo(np.float64).eps * (float(np.abs(terms).sum()) + abs(minimum))
    return math.fsum(terms) + minimum - error


def lowered_prices(
    prices: Array, points: Points, target: Array, gap: float
) -> Array | None:
    """Prices at which no point gains, lowered at rare coordinates; None if that costs too much.

    The master meets its equations to about 1e-10, so it hardly determines the price of a coordinate
    of probability 1e-8. A column may seem to gain much by such a price although its weight can only
    be tiny; its reduced cost would then spoil the bound.

    So each point that gains lowers the price of one coordinate: that with the least ratio target /
    value, which limits the weight of the point most. The bound falls by ``drop.target``, at most
    `LOWERING_SHARE` of the gap.
    """
    # A point gains where its price exceeds its cost: its reduced cost is minus this excess.
    excess = points.dot(prices) - points.entropies()
    first = points.indptr[:-1]
    # The weight of a point is at most target / value at each of its coordinates.
    ratio = target[points.indices] / points.data
    least = np.minimum.reduceat(ratio, first)[points.owner]
    # The first entry of each point at which the least ratio is met.
    position = np.arange(len(ratio))
    candidates = np.where(ratio == least, position, len(ratio))
    rarest = np.minimum.reduceat(candidates, first)
    drop = np.zeros_like(prices)
    # A coordinate that several points chose pays for the most demanding of them.
    charge = np.maximum(excess, 0.0) / points.data[rarest]
    np.maximum.at(drop, points.indices[rarest], charge)
    if float(drop @ target) > LOWERING_SHARE * gap:
        return None
    return prices - drop


# ------------------------------------------------------------------------------- rounds


class Rounds(Protocol):
    """What a search does in a round, and where it stands."""

    @property
    def value(self) -> float:
        """Of the best channel so far; infinite before there is one."""
        ...

    @property
    def bound(self) -> float:
        """What no channel can pass, as far as it is proven."""
        ...

    def solve(self) -> EnvelopeStatus | None:
        """Solve the master over the columns so far; a status ends the run."""
        ...

    def price(self) -> bool:
        """Add columns and sharpen the bound; False if nothing was gained."""
        ...

    def report(self) -> None:
        """Tell the caller how the search stands."""
        ...


def run_rounds(
    search: Rounds, *, gap: float, end: float, most_idle: int
) -> EnvelopeStatus:
    """Solve and price until value and bound meet, or a limit is met.

    Parameters
    ----------
    search : Rounds
        Its value and bound are valid at any moment, so Ctrl-C ends a run like a limit.
    gap : float
        Distance of value and bound at which the search is done.
    end : float
        When to stop, on the clock of `time.process_time`.
    most_idle : int
        Rounds in a row without a gain, after which doubles prove nothing more.
    """
    idle = 0
    try:
        while True:
            ended = search.solve()
            if ended is not None:
                return ended
            search.report()
            if abs(search.value - search.bound) <= gap:
                return EnvelopeStatus.OPTIMAL
            if time.process_time() >= end:
                return EnvelopeStatus.TIME_LIMIT
            if idle > most_idle:
                return EnvelopeStatus.STALLED
            if search.price():
                idle = 0
            else:
                idle += 1
    except KeyboardInterrupt:
        return EnvelopeStatus.INTERRUPTED
