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
the set that columns come from (a polytope, a convex set, regions, an uncertain set). `Rounds` has
what they share: the order of the steps, the reports, and when a run ends, and why. The bound may
lie on either side of the value, for some searches maximise. Those for a decomposition of least cost
also share their columns and their bound (`solvers.envelope.column_pool`).
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

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

GAIN_SHARE = 0.1
"""Share of the gap by which value or bound must move for a round to count as a gain."""


class Ended(Exception):
    """A search cannot go on; `status` says why."""

    def __init__(self, status: EnvelopeStatus) -> None:
        super().__init__(status)
        self.status = status


class Rounds(ABC):
    """A search in rounds: `run` works until value and bound meet, or a limit is met.

    Value and bound are valid at any moment, so Ctrl-C ends a run like a limit.

    Parameters
    ----------
    bound : float
        What no channel can pass before anything is proven; later what is proven.
    aim : float
        Distance of value and bound at which the search is done.
    end : float
        When to stop, on the clock of `time.process_time`.
    progress : callable, optional

    Attributes
    ----------
    rounds : int
        Rounds of pricing.
    still : int
        Of the last ones, those in which neither value nor bound moved.
    """

    most_fruitless: int = 0
    """Rounds in a row in which `price` finds nothing, after which doubles prove nothing more."""

    most_still: float = math.inf
    """Rounds in a row that move neither value nor bound, whatever `price` finds, after which the
    master is not expected to use it. Cuts may take many such rounds."""

    def __init__(
        self,
        bound: float,
        aim: float,
        end: float,
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self.bound = bound
        self.aim = aim
        self.end = end
        self.progress = progress
        self.rounds = 0
        self.forget_rounds()

    # --------------------------------------------------------- what searches differ in

    @property
    @abstractmethod
    def value(self) -> float:
        """Of the best channel so far; infinite before there is one."""

    @property
    @abstractmethod
    def columns(self) -> int:
        """Number of columns so far."""

    @property
    @abstractmethod
    def nodes(self) -> int:
        """Boxes that branch and bound has looked at so far."""

    def prepare(self) -> None:  # noqa: B027
        """Make first columns by a search, where there is one."""

    @abstractmethod
    def solve(self) -> None:
        """Solve the master over the columns so far.

        Raises
        ------
        Ended
            If the master cannot be solved.
        """

    @abstractmethod
    def price(self) -> bool:
        """Add columns and sharpen the bound; False if nothing was found.

        Raises
        ------
        Ended
            If pricing cannot go on.
        """

    # ------------------------------------------------------------- what they share

    @property
    def seconds(self) -> float:
        """Seconds that are left."""
        return max(0.0, self.end - time.process_time())

    @property
    def is_closed(self) -> bool:
        """Whether value and bound have met."""
        return self.value - self.bound <= self.aim

    def run(self) -> EnvelopeStatus:
        """Solve and price until the search is done, or cannot or may not go on."""
        try:
            self.prepare()
            return self._work()
        except Ended as ended:
            return EnvelopeStatus.OPTIMAL if self.is_closed else ended.status
        except KeyboardInterrupt:
            return EnvelopeStatus.INTERRUPTED

    def _work(self) -> EnvelopeStatus:
        """The rounds."""
        fruitless = 0
        while True:
            self.solve()
            self.report()
            if self.is_closed:
                return EnvelopeStatus.OPTIMAL
            if self.seconds <= 0.0:
                return EnvelopeStatus.TIME_LIMIT
            if fruitless > self.most_fruitless or self._count_still() > self.most_still:
                return EnvelopeStatus.STALLED
            self.rounds += 1
            if self.price():
                fruitless = 0
            else:
                fruitless += 1

    def _count_still(self) -> int:
        """Rounds in a row in which neither value nor bound moved, with the present one."""
        value, bound = self._moved_to
        least = GAIN_SHARE * self.aim
        # Not a number, at first, is no small step.
        is_still = abs(self.value - value) <= least and abs(self.bound - bound) <= least
        if is_still:
            self.still += 1
        else:
            self.forget_rounds()
            self._moved_to = (self.value, self.bound)
        return self.still

    def forget_rounds(self) -> None:
        """Count rounds without a gain from here on: what came before had another purpose."""
        self.still = 0
        self._moved_to = (math.nan, math.nan)

    def report(self) -> None:
        """Tell the caller how the search stands, if he wants to know."""
        if self.progress is not None:
            self.progress(
                Progress(self.value, self.bound, self.rounds, self.columns, self.nodes)
            )
