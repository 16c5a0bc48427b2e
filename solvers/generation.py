"""The lower convex envelope by column generation, any-time and with a proven bound.

A master program over the columns found so far gives prices y; pricing (branch and bound, or all pairs
where the rows see one number) gives new columns and a valid lower bound m of cost - y.v over the
polytope. The weights of any decomposition sum to one, so the envelope at p is at least y.p + m. The
prices stay in a box around the best ones known (du Merle et al. 1999), which is what makes thousands of
symbols tractable: prices of an unripe master jump, and columns found at them are worthless.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from solvers.concave import SearchCounts, SearchResult, SearchStatus
from solvers.costs import Cost
from solvers.points import Points
from solvers.programs import FEASIBILITY, Master, MasterSolution, MasterStatus, PriceBox, new_master
from solvers.results import EnvelopeStatus, Progress

Array = NDArray[np.float64]

CUTOFF_SHARE = 0.9
"""Share of the gap that pricing may leave; the rest is for the tolerance of the master."""

COLUMN_SHARE = 0.02
"""Columns that gain less than this share of the gap are not worth a place in the master."""

TOLERANCE_SHARE = 0.02
"""Accuracy, as a share of the gap, to which a round of pricing knows its minimum."""

EARLY_SLACK = 0.1
"""Share of the (negative) minimum that the bound of a round may lie below it: away from the optimum a
sharper one would enumerate a whole sublevel set and prove nothing that lasts."""

ENOUGH = 20
"""Columns from local searches that make a round without a tree worthwhile."""

MORE = 50
"""Further columns (plus a tenth of the symbols) after which a tree is left for the next round."""

MIXES = (0.5, 0.7, 0.9)
"""Weights of a unit vector against the point itself, from which local searches start in turn."""

RADIUS = 4.0
"""Radius of the price box in units of the present gap: wide enough for the prices to close it."""

GUESS_RADIUS = 0.04
"""Radius of the first box around a guess, in units of the largest price of use."""

LEAST_GAP = 1e-11
"""Gap aimed at when less is asked: rounding leaves some 1e-12 of every proof open, and columns that gain
less are noise."""

IDLE_ROUNDS = 60
"""Rounds in a row without any gain in bound or master after which no more is expected: the back-end does
not take the columns, or its prices are wrong."""

LARGEST_RADIUS = 1e9
"""A wider box binds nothing, and costs of its size would only spoil the master's arithmetic."""

FINISH_SECONDS = 10.0
"""What the last exact master may take after a limit was met; it is warm and needs far less."""


class Pricer(Protocol):
    """What `ConcaveSearch` and `LineSearch` have in common."""

    def run(
        self,
        prices: Array,
        *,
        cutoff: float,
        tolerance: float,
        slack: float,
        column_cutoff: float,
        columns: int = ...,
        center: Array | None = ...,
        mix: float = ...,
        turn: int = ...,
        enough: int | None = ...,
        time_limit: float | None = ...,
        node_limit: int | None = ...,
        progress: Callable[[float], None] | None = ...,
    ) -> SearchResult:
        """See `ConcaveSearch.run`."""
        ...


class NoPricer:
    """In the place of a pricer that Ctrl-C left unfinished: proves nothing and finds nothing."""

    def run(self, prices: Array, **_: object) -> SearchResult:
        """No bound and no points."""
        return SearchResult(SearchStatus.TIME_LIMIT, -math.inf, Points.empty(len(prices)), SearchCounts())


@dataclass(eq=False)
class Generation:
    """One run: master, pool and bounds; `run` works until the gap or a limit is met.

    Parameters
    ----------
    target : (n,) array
        The point p.
    initial : Points
        Columns to begin with; the first one is the point itself, so that every master is feasible.
    stabilise : bool
        Keep the prices in a box; not needed where all vertices are there from the start.
    guess : (n,) array, optional
        Prices of a neighbouring or a merged problem.
    """

    cost: Cost
    target: Array
    pricer: Pricer
    initial: Points
    gap: float
    time_limit: float
    backend: str
    stabilise: bool = True
    guess: Array | None = None
    progress: Callable[[Progress], None] | None = None
    pool: Points = field(init=False)
    costs: Array = field(init=False)
    weights: Array = field(init=False)
    value: float = field(init=False)
    # The cost is never negative, so zero prices and the bound zero are a certificate from the start.
    bound: float = field(init=False, default=0.0)
    dual: Array = field(init=False)
    rounds: int = field(init=False, default=0)
    counts: SearchCounts = field(init=False, default_factory=SearchCounts)
    seconds_pricing: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self._end = time.monotonic() + self.time_limit
        self.pool, self.costs = self.initial, self.cost.of(self.initial)
        self.weights = np.zeros(len(self.pool))
        self.weights[0], self.value = 1.0, float(self.costs[0])
        self.dual = np.zeros_like(self.target)
        self._master: Master = new_master(self.backend, self.target)
        self._master.add(self.pool, self.costs)
        # Local searches go on until every mix in turn has run dry; from then on the tree finds more.
        self._searching, self._dry = True, 0
        self._depth = 0.0
        self._aim = max(self.gap, LEAST_GAP)
        self._idle, self._gained = 0, (-math.inf, math.inf)
        self._incumbent_gap = math.inf
        self._box = self._first_box() if self.stabilise else None

    def run(self) -> EnvelopeStatus:
        """Work until the gap is closed or a limit is met; Ctrl-C ends it like a limit."""
        try:
            status = self._rounds()
        except KeyboardInterrupt:
            status = EnvelopeStatus.INTERRUPTED
        if status is not EnvelopeStatus.OPTIMAL:
            self._solve_exactly(FINISH_SECONDS)
        elif self.value - self.bound > self.gap:
            return EnvelopeStatus.STALLED
        return status

    def _rounds(self) -> EnvelopeStatus:
        if self.guess is not None and self._left() > 0.0:
            self._price(self.guess)
            self._recenter(self.bound + abs(float(self.guess @ self.target) - self.bound))
        while self._left() > 0.0:
            self._keep_box_feasible()
            solution = self._master.solve(self._left(), self._box)
            if solution.status is MasterStatus.TIME_LIMIT:
                return EnvelopeStatus.TIME_LIMIT
            if not self._usable(solution) or (self._box is None and not self._accept(solution)):
                if self._box is not None:
                    return EnvelopeStatus.BACKEND_FAILED
                # A box makes every master feasible by a wide margin, and keeps its prices within bounds.
                self._box = self._first_box()
                continue
            self.rounds += 1
            value = float(solution.dual @ self.target)
            if self._is_idle(value):
                return EnvelopeStatus.STALLED
            stopped = None
            if value - self.bound > self._aim:
                stopped = self._price(solution.dual)
                self._report()
                # Without a column the prices are the best in the box; whether the box held them shows its slack.
                in_box = stopped is EnvelopeStatus.STALLED and self._box is not None and solution.slack > 0.0
                if stopped is not None and value - self.bound > self._aim and not in_box:
                    return stopped
            if stopped is EnvelopeStatus.STALLED or value - self.bound <= self._aim:
                # Where the exact master fails, a boxed one that hardly paid for a slack is as good.
                if self._box is not None and not (
                    self._solve_exactly(self._left()) or self._accept(solution)
                ):
                    if self._left() <= 0.0:
                        return EnvelopeStatus.TIME_LIMIT
                    if self._box.radius >= LARGEST_RADIUS:
                        return EnvelopeStatus.BACKEND_FAILED
                if self.value - self.bound <= self._aim:
                    return EnvelopeStatus.OPTIMAL
                self._widen()
            else:
                self._recenter(value)
                self._keep_incumbent(value - self.bound)
        return EnvelopeStatus.TIME_LIMIT

    def _usable(self, solution: MasterSolution) -> bool:
        """Whether an answer has the form of one; what it says of itself is not believed."""
        return (
            solution.is_optimal
            and solution.dual.shape == self.target.shape
            and solution.weights.shape == self.costs.shape
        )

    def _is_idle(self, value: float) -> bool:
        """Count the rounds that gained nothing worth a tenth of the gap; whether they are too many."""
        bound, least = self._gained
        if self.bound > bound + 0.1 * self._aim or value < least - 0.1 * self._aim:
            self._gained, self._idle = (self.bound, min(value, least)), 0
        else:
            self._idle += 1
        return self._idle > IDLE_ROUNDS

    def _price(self, prices: Array) -> EnvelopeStatus | None:
        """Add columns and raise the bound; the reason if no column was found."""
        started = time.monotonic()
        result = self.pricer.run(
            prices,
            cutoff=-CUTOFF_SHARE * self._aim,
            tolerance=TOLERANCE_SHARE * self._aim,
            slack=EARLY_SLACK,
            column_cutoff=-COLUMN_SHARE * self._aim,
            columns=MORE + len(self.target) // 10,
            center=self.target if self._searching else None,
            mix=MIXES[self._dry % len(MIXES)],
            turn=self.rounds,
            enough=ENOUGH,
            time_limit=self._left(),
            progress=lambda m: self._report(envelope_bound(prices, self.target, m)),
        )
        self._dry = 0 if result.bound == -math.inf else self._dry + 1
        self._searching = self._searching and self._dry < len(MIXES)
        self.seconds_pricing += time.monotonic() - started
        self.counts += result.counts
        lower = envelope_bound(prices, self.target, result.bound)
        if lower > self.bound:
            self.bound, self.dual, self._depth = lower, prices, -result.bound
        if len(result.points):
            costs = self.cost.of(result.points)
            self._master.add(result.points, costs)
            self.pool = Points.concatenate([self.pool, result.points])
            self.costs = np.concatenate([self.costs, costs])
            return None
        return {
            SearchStatus.TIME_LIMIT: EnvelopeStatus.TIME_LIMIT,
            SearchStatus.MEMORY_LIMIT: EnvelopeStatus.MEMORY_LIMIT,
        }.get(result.status, EnvelopeStatus.STALLED)

    def _first_box(self) -> PriceBox:
        # No price of use exceeds the dearest column, and none is negative.
        top = 2.0 * self.cost.peak(self.pool.shape[1]) + 1.0
        if self.guess is not None:
            return PriceBox(self.guess, GUESS_RADIUS * top)
        return PriceBox(np.full_like(self.target, top / 2), top / 2)

    def _recenter(self, value: float) -> None:
        if self._box is not None and self.bound > 0.0:
            wanted = min(self._box.radius, RADIUS * max(value - self.bound, self._aim))
            # Prices lowered by their depth are feasible for every column, so the box must hold them.
            self._box = PriceBox(self.dual, max(wanted, 1.5 * self._depth))

    def _keep_box_feasible(self) -> None:
        """Lower an unproven center until no known column contradicts it: else the master is unbounded."""
        if self._box is not None and self.bound <= 0.0:
            excess = float((self.costs - self.pool.dot(self._box.center)).min())
            if excess < 0.0:
                self._box = PriceBox(self._box.center + excess, self._box.radius)

    def _widen(self) -> None:
        if self._box is not None:
            self._box = PriceBox(self._box.center, min(3.0 * self._box.radius, LARGEST_RADIUS))

    def _solve_exactly(self, seconds: float) -> bool:
        solution = self._master.solve(seconds)
        return self._usable(solution) and self._accept(solution)

    def _keep_incumbent(self, gap: float) -> None:
        """An exact solve each time the gap has fallen to a tenth, so that a limit finds a good answer."""
        if self._box is not None and self.bound > 0.0 and gap < 0.1 * self._incumbent_gap:
            self._incumbent_gap = gap
            self._solve_exactly(self._left())

    def _accept(self, solution: MasterSolution) -> bool:
        """Keep the weights if they are better; False if they do not decompose the target at all."""
        # Columns found since the solve have no weight yet.
        weights = np.pad(solution.weights, (0, len(self.costs) - len(solution.weights)))
        error = float(np.abs(self.pool.combine(weights) - self.target).max())
        if not (weights.min() >= 0.0 and error <= FEASIBILITY):
            return False
        value = float(weights @ self.costs)
        if value < self.value:
            self.weights, self.value = weights, value
        return True

    def _left(self) -> float:
        return self._end - time.monotonic()

    def _report(self, bound: float | None = None) -> None:
        if self.progress is not None:
            best = self.bound if bound is None else max(self.bound, bound)
            self.progress(Progress(self.value, best, self.rounds, len(self.pool), self.counts.nodes))


def envelope_bound(prices: Array, target: Array, minimum: float) -> float:
    """``prices.target + minimum`` rounded down: a lower bound of the envelope at the target.

    The target is itself the rounding of some exact vector: each entry may be off by 4 ulp.
    """
    if not math.isfinite(minimum):
        return -math.inf
    terms = prices * target
    error = 8.0 * np.finfo(np.float64).eps * (float(np.abs(terms).sum()) + abs(minimum))
    return math.fsum(terms) + minimum - error
