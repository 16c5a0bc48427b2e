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
from dataclasses import dataclass
from typing import Any

import numpy as np

from solvers.concave import MOST_STARTS, SearchCounts, SearchResult, SearchStatus
from solvers.points import Array, Points
from solvers.programs.highs import (
    FEASIBILITY,
    HighsMaster,
    MasterSolution,
    MasterStatus,
    PriceBox,
)
from solvers.results import (
    EnvelopeStatus,
    Pricer,
    Progress,
    envelope_bound,
    lowered_prices,
)

CUTOFF_SHARE = 0.9
"""Share of the gap that pricing may leave; the rest is for the tolerance of the master."""

COLUMN_SHARE = 0.02
"""Columns that gain less than this share of the gap are not worth their place."""

TOLERANCE_SHARE = 0.02
"""Accuracy, as a share of the gap, to which a round of pricing knows its minimum."""

EARLY_SLACK = 0.1
"""Share of the (negative) minimum that the bound of a round may lie below it: a sharper one does not last."""

MOST_NEW = 300
"""Columns after which a tree is left for the next round: at the prices of an unripe master it proves little. Nearly
all trees end before."""

FIRST_RADIUS, GUESS_RADIUS = 1.0, 0.1
"""Radius of the first price box around zero (an output that hides no more than a factor e pays for itself), and
around prices of a neighbouring problem."""

MOST_SCALE = 1e4
"""Most that the box is wider for a rare coordinate: its price times its mass is what matters, and where rare
symbols make outputs private that would not be, prices of -50 and less occur."""

RADIUS = 8.0
"""Radius of the price box around proven prices in units of the gap: wide enough for the prices to close it."""

LARGEST_RADIUS = 1e9
"""A wider box binds nothing, and costs of its size would only spoil the master's arithmetic."""

COVERED, NEARLY_COVERED = 1e-9, 0.05
"""Mass that a box pays for, below which it counts as rounding (the columns decompose the point), and at which
an exact solve begins to give decompositions of use."""

EXACT_GROWTH, EXACT_SHARE = 1.5, 0.1
"""By how much the columns grow between exact solves while they do not cover the point, and the share of the
time left that one of these may take."""

SMOOTHING = 0.7
"""Share of the mean of the prices so far in those of local searches (Pessoa et al. 2018), which else jump."""

MIXES, AROUND = (0.5, 0.7, 0.9), (0.3, 0.5, 0.7)
"""Weights of a unit vector against the point itself, from which local searches start in turn, and against an
output in use, from which further ones do."""

MOST_WALKED = 400_000
"""Edges that walks look along in one round, for each step: a fraction of a second."""

ENOUGH, FEW = 20, 5
"""Columns that make a round of local searches from the point, and around outputs in use, worth another one."""

AROUND_STARTS = 3000
"""Local searches around outputs in use in one round, a tenth of it for each output at least."""

CHEAP_TREE = 50_000
"""Pivots, a fraction of a second, below which the next tree is as cheap as what would clear its way."""

MOST_LOWERINGS = 10
"""Times in a row that prices of rare coordinates are lowered and priced again."""

POLISH_SHARE = 1.0
"""Share of the pivots of the trees that further local searches may take between them."""

LEAST_GAP = 1e-11
"""Gap aimed at when less is asked: rounding leaves some 1e-12 of every proof open, and columns that gain
less are noise."""

IDLE_ROUNDS = 60
"""Rounds without any gain after which HiGHS is not believed to take the columns."""

FINISH_SECONDS = 2.0
"""What the last exact master may take after a limit was met; it is warm and mostly needs far less."""

DEAR = 3000.0
"""Pivots over an uncertain set for each new column from which on local searches wait for the next tree, which
finds one for 500."""


@dataclass(eq=False)
class Generation:
    """One run: master, pool and bounds; `run` works until the gap or a limit is met."""

    target: Array
    pricer: (
        Pricer | None
    )  # None where Ctrl-C or the clock left it unfinished: no time is left to call it
    initial: Points
    gap: float
    time_limit: float
    incumbent: Array | None = None
    stabilise: bool = True
    uncertain: bool = False
    guess: Array | None = None
    completion: Callable[[], Points] | None = None
    progress: Callable[[Progress], None] | None = None

    def __post_init__(self) -> None:
        self._end = time.monotonic() + self.time_limit
        self.pool, self.costs = self.initial, self.initial.entropies()
        self.weights = (
            np.eye(1, len(self.pool))[0] if self.incumbent is None else self.incumbent
        )
        self.value = float(self.weights @ self.costs)
        # The cost is never negative, so zero prices and the bound zero are a certificate from the start.
        self.dual, self.bound = np.zeros_like(self.target), 0.0
        self.rounds, self.counts, self.seconds_pricing = 0, SearchCounts(), 0.0
        self._master = HighsMaster(self.target)
        self._master.add(self.pool, self.costs)
        self._aim = max(self.gap, LEAST_GAP)
        self._idle, self._gained = 0, (-math.inf, math.inf)
        self._depth, self._incumbent_gap = 0.0, math.inf
        rare = np.maximum(len(self.target) * self.target, 1.0 / MOST_SCALE)
        self._scale = np.maximum(1.0 / rare, 1.0)
        self._radius = FIRST_RADIUS if self.guess is None else GUESS_RADIUS
        self._center = np.zeros_like(self.target) if self.guess is None else self.guess
        self._boxed = self.stabilise
        self._turn, self._credit, self._next_exact = 0, 0.0, 0.0
        self._solved = 0  # columns that the last master without a box knew
        self._random = np.random.default_rng(0)

    def run(self) -> EnvelopeStatus:
        """Work until the gap is closed or a limit is met; Ctrl-C ends it like a limit."""
        try:
            failed = self._search() if self.stabilise else None
            status = self._prove() if failed is None else failed
        except KeyboardInterrupt:
            status = EnvelopeStatus.INTERRUPTED
        if status is not EnvelopeStatus.OPTIMAL:
            self._solve_exactly(FINISH_SECONDS)
            if (
                self.value - self.bound <= self._aim
                and status is EnvelopeStatus.STALLED
            ):
                status = EnvelopeStatus.OPTIMAL
        if status is EnvelopeStatus.OPTIMAL and self.value - self.bound > self.gap:
            return EnvelopeStatus.STALLED
        return status

    # -------------------------------------------------------------- local searches

    def _search(self) -> EnvelopeStatus | None:
        """Local searches alone until they run dry: at first in a box, until the columns cover the point."""
        if (
            self.guess is None
        ):  # sow the local minima of the cost between every coordinate and the point
            for turn in range(-(-len(self.target) // MOST_STARTS)):
                self._searched(
                    self.dual,
                    cutoff=math.inf,
                    center=self.target,
                    mix=MIXES[0],
                    turn=turn,
                )
        mean: Array | None = None
        covered = False
        while self._left() > 0.0 and not self._idling(
            self.value if covered else -self.rounds
        ):
            if self.value - self.bound <= self._aim:
                break
            solution = self._solve()
            if isinstance(solution, EnvelopeStatus):
                return solution
            prices, pivots = solution.dual, self.counts.pivots
            if self._boxed and covered:
                break  # only a box helps HiGHS
            if self._boxed:
                found = self._descend(prices)
                covered = solution.slack <= COVERED or self._radius >= LARGEST_RADIUS
                if covered:
                    self._boxed = False
                elif found < ENOUGH:
                    self._radius *= 2.0
                    if self.completion is not None:
                        self._add(self.completion(), prices, math.inf)
                        self.completion = None
                elif (
                    solution.slack <= NEARLY_COVERED
                    and len(self.pool) >= self._next_exact
                ):
                    self._next_exact = EXACT_GROWTH * len(self.pool)
                    self._solve_exactly(EXACT_SHARE * self._left())
            else:
                self._accept(solution)
                mean = (
                    prices
                    if mean is None
                    else SMOOTHING * mean + (1.0 - SMOOTHING) * prices
                )
                found = self._walk(solution)
                if found < ENOUGH:
                    found += self._descend(prices, mean)
                if found < ENOUGH:
                    found += self._descend(prices)
                if found < ENOUGH:
                    break
            self._report()
            if (
                self.uncertain
                and covered
                and self.counts.pivots - pivots > DEAR * max(found, 1)
            ):
                break  # a tree finds columns for less, and a bound
        self._idle, self._gained = 0, (-math.inf, math.inf)
        return None

    def _descend(self, prices: Array, at: Array | None = None) -> int:
        """Searches from mixtures of the point and every coordinate, until one of the mixes finds enough."""
        found = 0
        for _ in MIXES:
            mix = MIXES[self._turn % len(MIXES)]
            found += self._searched(prices, at=at, center=self.target, mix=mix)
            if found >= ENOUGH:
                break
            self._turn += 1
        return found

    def _look_around(self, solution: MasterSolution) -> int:
        """Searches from mixtures of some outputs in use and every coordinate."""
        used = np.flatnonzero(solution.weights > 0.0)
        starts = min(len(self.target), MOST_STARTS)
        few = int(np.clip(AROUND_STARTS // starts, 1, 10))
        found = 0
        for k in self._random.permutation(used)[:few].tolist():
            center = self.pool.take([k]).toarray()[0]
            mix = AROUND[self._random.integers(len(AROUND))]
            found += self._searched(solution.dual, center=center, mix=mix)
        return found

    def _walk(self, solution: MasterSolution) -> int:
        """Walks from the outputs in use to ever cheaper neighbours, which searches over polytopes know."""
        if self.uncertain:
            return 0
        used = np.flatnonzero(solution.weights > 0.0)
        some = self._random.permutation(used)[: max(MOST_WALKED // len(self.target), 1)]
        return self._searched(solution.dual, walk=self.pool.take(some), turn=0)

    def _searched(
        self,
        prices: Array,
        *,
        at: Array | None = None,
        cutoff: float | None = None,
        turn: int | None = None,
        **start: Any,
    ) -> int:
        """Search without a tree, at prices `at` if given, from the coordinates of `turn`; add and count what gains."""
        turn = int(self._random.integers(1 << 20)) if turn is None else turn
        if self._left() <= 0.0:
            return 0
        cutoff = -COLUMN_SHARE * self._aim if cutoff is None else cutoff
        start |= {
            "turn": turn,
            "enough": 0,
            "cutoff": -math.inf,
            "tolerance": self._aim,
        }
        result = self._asked(
            prices if at is None else at, column_cutoff=cutoff, **start
        )
        return self._add(result.points, prices, cutoff)

    def _asked(self, prices: Array, **options: Any) -> SearchResult:
        """What the pricer finds in the time that is left, counted."""
        assert self.pricer is not None, "priced after the end"
        started = time.monotonic()
        result = self.pricer(
            prices, slack=EARLY_SLACK, time_limit=self._left(), **options
        )
        self.seconds_pricing += time.monotonic() - started
        self.counts += result.counts
        return result

    def _add(self, points: Points, prices: Array, cutoff: float) -> int:
        """Give the master the points that cost less than their prices; how many these are."""
        costs = points.entropies()
        gains = np.flatnonzero(costs - points.dot(prices) < cutoff)
        if len(gains):
            points, costs = points.take(gains), costs[gains]
            self._master.add(points, costs)
            self.pool = Points.concatenate([self.pool, points])
            self.costs = np.concatenate([self.costs, costs])
        return len(gains)

    # -------------------------------------------------------------- trees

    def _prove(self) -> EnvelopeStatus:
        """Rounds of exact pricing, with local searches in between, until the gap is closed."""
        while self._left() > 0.0:
            self._keep_box_feasible()
            solution = self._solve()
            if isinstance(solution, EnvelopeStatus):
                return solution
            if solution.slack <= COVERED and self._accept(solution) and not self._boxed:
                self._solved = len(self.costs)
            value = float(solution.dual @ self.target)
            if self._idling(value):
                return EnvelopeStatus.STALLED
            stopped = None
            if value - self.bound > self._aim:
                pivots = self.counts.pivots
                stopped = self._price(solution.dual)
                self._report()
                if stopped is None:
                    self._credit += max(
                        0.0, POLISH_SHARE * (self.counts.pivots - pivots) - CHEAP_TREE
                    )
                    self._polish()
                elif (
                    stopped is not EnvelopeStatus.STALLED
                    and value - self.bound > self._aim
                ):
                    return stopped
            if value - self.bound <= self._aim:
                self._solve_exactly(self._left())
                if self.value - self.bound <= self._aim:
                    return EnvelopeStatus.OPTIMAL
                if not self._boxed:
                    return EnvelopeStatus.STALLED
                self._widen()
            elif stopped is EnvelopeStatus.STALLED:
                # Prices in a box, or blunt ones: nothing is stalled before the master's own were priced.
                if not self._boxed:
                    return EnvelopeStatus.STALLED
                self._widen()
            else:
                self._recenter(value)
                gap = value - self.bound
                if self._boxed and self.bound > 0.0 and gap < 0.1 * self._incumbent_gap:
                    self._incumbent_gap = gap  # so that a limit finds a good answer
                    self._solve_exactly(self._left())
        return EnvelopeStatus.TIME_LIMIT

    def _price(self, prices: Array) -> EnvelopeStatus | None:
        """Add columns and raise the bound; the reason if no column was found."""
        result = self._priced(prices)
        found = self._add(result.points, prices, math.inf)
        for _ in range(MOST_LOWERINGS):
            if not len(result.points) or result.bound > -CUTOFF_SHARE * self._aim:
                break
            lowered = lowered_prices(prices, result.points, self.target, self._aim)
            if lowered is None or self._left() <= 0.0:
                break
            prices = lowered
            result = self._priced(prices)
            found += self._add(result.points, prices, math.inf)
        if found:
            return None
        return {
            SearchStatus.TIME_LIMIT: EnvelopeStatus.TIME_LIMIT,
            SearchStatus.MEMORY_LIMIT: EnvelopeStatus.MEMORY_LIMIT,
        }.get(result.status, EnvelopeStatus.STALLED)

    def _priced(self, prices: Array) -> SearchResult:
        """The search for the cheapest column, which raises the bound."""
        result = self._asked(
            prices,
            cutoff=-CUTOFF_SHARE * self._aim,
            column_cutoff=-COLUMN_SHARE * self._aim,
            tolerance=TOLERANCE_SHARE * self._aim,
            columns=MOST_NEW,
            progress=lambda minimum: self._report(
                envelope_bound(prices, self.target, minimum)
            ),
        )
        lower = envelope_bound(prices, self.target, result.bound)
        if lower > self.bound:
            self.bound, self.dual, self._depth = lower, prices, -result.bound
        return result

    def _polish(self) -> None:
        """Local searches at the new prices: far cheaper than the next tree, for which they clear the way."""
        while self.stabilise and self._credit > 0.0 and self._left() > 0.0:
            pivots = self.counts.pivots
            solution = self._solve()
            found = 0
            if not isinstance(solution, EnvelopeStatus):
                found = self._walk(solution)
                if found < FEW:
                    found += self._look_around(solution)
            self._credit -= self.counts.pivots - pivots
            if found < FEW:
                return

    # -------------------------------------------------------------- the master

    def _solve(self) -> MasterSolution | EnvelopeStatus:
        """The master in its box, or without where that fails, or the other way round."""
        for _ in range(2):
            solution = self._master.solve(
                self._left(), self._box() if self._boxed else None
            )
            if solution.status is MasterStatus.TIME_LIMIT:
                return EnvelopeStatus.TIME_LIMIT
            if self._usable(solution):
                self.rounds += 1
                return solution
            self._boxed = not self._boxed
        return EnvelopeStatus.BACKEND_FAILED

    def _box(self) -> PriceBox:
        wide = self._radius * self._scale
        # Unproven high prices of rare coordinates would draw every local search to these.
        up = wide if self.bound > 0.0 else self._radius
        return PriceBox(self._center - wide, self._center + up)

    def _usable(self, solution: MasterSolution) -> bool:
        """Whether an answer has the form of one; what it says of itself is not believed."""
        fits = (
            solution.dual.shape == self.target.shape
            and solution.weights.shape == self.costs.shape
        )
        return solution.is_optimal and fits

    def _idling(self, value: float) -> bool:
        """Count the rounds that gained nothing worth a tenth of the gap; whether they are too many."""
        bound, least = self._gained
        if self.bound > bound + 0.1 * self._aim or value < least - 0.1 * self._aim:
            self._gained, self._idle = (self.bound, min(value, least)), 0
        else:
            self._idle += 1
        return self._idle > IDLE_ROUNDS

    def _recenter(self, value: float) -> None:
        if self.stabilise and self.bound > 0.0:
            wanted = RADIUS * max(value - self.bound, self._aim)
            # Prices lowered by their depth are feasible for every column, so the box must hold them.
            self._radius = max(min(wanted, LARGEST_RADIUS), 1.5 * self._depth)
            self._center, self._boxed = self.dual, True

    def _keep_box_feasible(self) -> None:
        """Lower an unproven center until no known column contradicts it: else the master is unbounded."""
        if self._boxed and self.bound <= 0.0:
            excess = float((self.costs - self.pool.dot(self._center)).min())
            if excess < 0.0:
                self._center = self._center + excess

    def _widen(self) -> None:
        self._radius *= 3.0
        if self._radius > LARGEST_RADIUS:
            self._boxed = False

    def _solve_exactly(self, seconds: float) -> None:
        if self._solved < len(self.costs):
            solution = self._master.solve(seconds)
            if self._usable(solution):
                self._accept(solution)

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
            self.progress(
                Progress(
                    self.value, best, self.rounds, len(self.pool), self.counts.nodes
                )
            )
