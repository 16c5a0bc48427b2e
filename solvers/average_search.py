"""The search for a channel within average budgets, or of least leakage at a given utility.

`solvers.average` has the mathematics. A round has two steps:

1. The master program over the columns so far (`average_master`) gives a channel, prices y and
   multipliers.
2. Pricing looks for columns v of H(v) + sum_j beta_j L_j(v) < y.v: by local searches, and once
   these find little by branch and bound, which also proves H(v) + sum_j beta_j L_j(v) >= y.v + m
   for all posteriors, a *support*. Each support proves a bound; the best is kept.

Pricing works with tangents below the leakages (`average_tangents`), which are added where they lie
too low; with two secrets it prices all pairs of symbols instead (`average_pairs`).

Both problems use the same supports, in nats. For budgets e_j the master minimises H(X|Y), and its
multipliers are beta, nats per unit of leakage: I(X;Y) <= H(X) - (y.p + m - sum_j beta_j e_j). For
the least leakage the master minimises E L with H(X|Y) <= (1 - k) H(X), and its multiplier mu is
leakage per nat; divided by mu, its prices and the leakage have the form of a support with beta =
1 / mu, so E L >= (y.p + m - (1 - k) H(X)) / beta.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from solvers.average_first import first_columns
from solvers.average_master import Master, Solution
from solvers.average_pairs import PairSearch
from solvers.average_problem import FEW_ULP, AverageProblem
from solvers.average_result import AverageOptimum
from solvers.average_tangents import LeakageSearch, Tangents
from solvers.errors import BackendFailure, EmptyPolytope, InvalidOption
from solvers.points import Array, Points
from solvers.results import EnvelopeStatus, Progress, envelope_bound

SHRUNK = 1e-9
"""Relative distance that a channel keeps from its budget; an exact check decides what it leaks."""

TANGENT_SHARE = 0.15
"""Share of the tolerance by which tangents may lie below a column's true leakage."""

MIXES = (0.5, 0.9, 0.2)
"""Weights of unit vectors in the mixtures with P(x) from which local searches begin."""

ENOUGH = 8
"""New columns with which a round of local searches is content."""

MOST_COLUMNS = 60
"""Columns that one round adds, those of least reduced cost first."""

COLUMN_SHARE = 0.02
"""Share of the tolerance that a column must gain."""

CUTOFF_SHARE = 0.4
"""Share of the tolerance by which pricing may miss the minimum; the rest is for the master."""

SMOOTHING = 0.5
"""Weight of the prices that proved the best bound, in those that are priced by trees."""

TREE_SECONDS = 3.0
"""Time of one tree, before the columns that it has found are used."""

MOST_IDLE = 4
"""Rounds in which nothing was added and no bound rose, after which doubles prove nothing more."""

LEAST_MULTIPLIER = 1e-9
"""Multipliers below are rounding: the average row costs nothing."""


@dataclass(frozen=True, eq=False)
class Goal:
    """Budgets of all leakages, (j,), or else the share of H(X) to be kept."""

    budgets: Array | None
    keep: float | None


def search_average(
    problem: AverageProblem,
    goal: Goal,
    tolerance: float,
    time_limit: float,
    start: Points | None,
    progress: Callable[[Progress], None] | None,
) -> AverageOptimum:
    """Run one search; see `solvers.average.best_channel_within`."""
    if not (math.isfinite(tolerance) and tolerance > 0.0):
        raise InvalidOption(f"tolerance ({tolerance}) must be a positive number")
    if not time_limit > 0.0:
        raise InvalidOption(f"time_limit ({time_limit}) must be positive")
    run = AverageSearch(problem, goal, tolerance, time_limit, progress)
    run.add_first(start)
    return run.run()


class AverageSearch:
    """Columns, tangents, and the best channel and bound of one run.

    Used once: `add_first` and then `run`. Column k has the posterior ``_points[k]``, the entropy
    ``_entropies[k]`` in nats and the leakages ``_leaks[:, k]``. `_value` and `_bound` are nats of
    I(X;Y) for budgets, else units of the leakage; `_prices` and `_multipliers` are those of the
    support that proves the bound.
    """

    def __init__(
        self,
        problem: AverageProblem,
        goal: Goal,
        tolerance: float,
        time_limit: float,
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self._problem = problem
        self._tolerance = tolerance
        self._started = time.monotonic()
        self._end = self._started + time_limit
        self._progress = progress
        self._maximise = goal.budgets is not None
        entropy = problem.entropy
        # What is known about H(X), rounded towards weaker bounds.
        error = FEW_ULP * (entropy + len(problem.point) * float(problem.point.max()))
        self._entropy = entropy
        self._highest = entropy + error
        # The sides of the master's rows, and what is known before any column: nothing but H(X).
        if goal.budgets is not None:
            self._limits = goal.budgets
            self._value = -math.inf
            self._bound = self._highest
        else:
            assert goal.keep is not None
            self._limits = np.array([(1.0 - goal.keep) * self._highest])
            self._value = math.inf
            self._bound = 0.0
        self._master = Master(problem.point, self._limits * (1.0 - SHRUNK))
        self._tangents = [
            Tangents(problem.matrix, leakage) for leakage in problem.leakages
        ]
        # The search over the tangents so far; None after new tangents until it is needed again.
        self._kernel: LeakageSearch | None = None
        self._pairs: PairSearch | None = None
        if problem.has_pairs:
            self._pairs = PairSearch(problem)
        self._points = Points.from_dense(problem.point)
        self._entropies = np.zeros(0)
        self._leaks = np.zeros((len(problem.leakages), 0))
        self._weights = np.ones(1)
        self._prices = np.zeros(len(problem.point))
        self._multipliers = np.zeros(len(problem.leakages))
        # The tolerance in the unit of a support, nats: H(v) + sum_j beta_j L_j(v).
        self._aim = tolerance
        self._rounds = 0
        self._nodes = 0
        # Number of local searches so far: each begins with other mixtures.
        self._turn = 0
        # Rounds in a row without a new column or a better bound.
        self._idle = 0

    # ----------------------------------------------------------------- columns

    def add_first(self, start: Points | None) -> None:
        """The columns to begin with (`average_first`); `start` are those that the caller knows."""
        first = first_columns(self._problem, start, self._end)
        self._points = first.take(np.arange(0))
        self._append(first)
        self._start_with_known_channel()

    def _start_with_known_channel(self) -> None:
        """The answer where the time is over before the first program is solved."""
        point = self._problem.point
        weights = np.zeros(len(self._points))
        if self._maximise:
            # The first column, P(x), is a constant output: it leaks nothing and tells nothing.
            weights[0] = 1.0
            self._value = 0.0
        elif self._problem.inner is None:
            # The unit vectors behind it release X as it is: all information, all leakage.
            weights[1 : 1 + len(point)] = point
            self._value = math.fsum((weights * self._leaks[0]).tolist())
        self._weights = weights

    def _append(self, points: Points) -> None:
        """Add columns to the lists and to the master, with their true entropies and leakages."""
        entropies = points.entropies()
        leaks = self._problem.leaks(points)
        if self._maximise:
            self._master.add(points, entropies, leaks)
        else:
            self._master.add(points, leaks[0], entropies[None, :])
        self._points = Points.concatenate([self._points, points])
        self._entropies = np.concatenate([self._entropies, entropies])
        self._leaks = np.hstack([self._leaks, leaks])

    def _add_gaining(self, points: Points, prices: Array, multipliers: Array) -> int:
        """Add the columns that gain at the master's prices; tangents where all of them are."""
        if not len(points):
            return 0
        unpolished = points
        if self._pairs is None:
            points = self._problem.polished(unpolished, prices, multipliers)
        reduced = points.entropies() + multipliers @ self._problem.leaks(points)
        reduced = reduced - points.dot(prices)
        cheapest = np.argsort(reduced, kind="stable")[: max(MOST_COLUMNS, len(prices))]
        gaining = cheapest[reduced[cheapest] < -COLUMN_SHARE * self._aim]
        if len(gaining):
            self._append(points.take(gaining))
        if self._pairs is not None:
            return len(gaining)
        touched = self._touch(points.take(cheapest), multipliers)
        if not len(gaining):
            # Where they were found, too: or else the search would find them there again.
            touched += self._touch(unpolished.take(cheapest), multipliers)
        if touched:
            # It is built of all tangents, and made again where it is needed.
            self._kernel = None
        return len(gaining)

    def _touch(self, points: Points, multipliers: Array) -> int:
        """Tangents of every leakage where they lie too low at these points; how many."""
        touched = 0
        # Each leakage may miss its share of the aim, in nats; its multiplier converts nats.
        aim = TANGENT_SHARE * self._aim / len(self._tangents)
        for tangents, multiplier in zip(self._tangents, multipliers, strict=True):
            room = aim / max(multiplier, LEAST_MULTIPLIER)
            touched += tangents.touch(points, room)
        return touched

    # ------------------------------------------------------------------ rounds

    def run(self) -> AverageOptimum:
        """Rounds of the master and of pricing until the gap is closed or the time is over."""
        status = EnvelopeStatus.TIME_LIMIT
        try:
            while True:
                solution = self._solve()
                if solution is None:
                    if self._left() > 0.0:
                        status = EnvelopeStatus.BACKEND_FAILED
                    break
                self._report()
                if self._gap <= self._tolerance:
                    status = EnvelopeStatus.OPTIMAL
                    break
                if self._left() <= 0.0:
                    break
                if self._idle > MOST_IDLE:
                    status = EnvelopeStatus.STALLED
                    break
                self._price(solution)
        except KeyboardInterrupt:
            status = EnvelopeStatus.INTERRUPTED
        return self._result(status)

    def _price(self, solution: Solution) -> None:
        """Local searches at the master's prices, and trees once these find little."""
        prices = solution.prices
        multipliers = solution.multipliers
        self._aim = self._tolerance
        if not self._maximise:
            # The master's multiplier is leakage per nat: supports count nats per leakage.
            multipliers = 1.0 / np.maximum(multipliers, LEAST_MULTIPLIER)
            prices = prices * multipliers[0]
            self._aim *= float(multipliers[0])
        self._rounds += 1
        added = 0
        # All pairs are priced at once: there is nothing for local searches to find.
        if self._pairs is None:
            added = self._search_locally(prices, multipliers)
        if added >= ENOUGH or self._left() <= 0.0:
            return
        bound = self._bound
        kernel = self._kernel
        added += self._by_tree(prices, multipliers)
        # New tangents are a gain, too: they took away the kernel of the old ones.
        changed = added > 0 or self._bound != bound or self._kernel is not kernel
        if changed:
            self._idle = 0
        else:
            self._idle += 1

    def _search_locally(self, prices: Array, multipliers: Array) -> int:
        """Descents from one kind of mixture after the other, until enough columns are found."""
        added = 0
        for _ in MIXES:
            mix = MIXES[self._turn % len(MIXES)]
            points = self._locally(prices, multipliers, mix)
            added += self._add_gaining(points, prices, multipliers)
            if added >= ENOUGH or self._left() <= 0.0:
                break
            self._turn += 1
        return added

    def _searcher(self, multipliers: Array) -> LeakageSearch | PairSearch:
        """The pricing that proves a bound, charged with these multipliers."""
        if self._pairs is not None:
            self._pairs.charge(multipliers)
            return self._pairs
        return self._tree(multipliers)

    def _tree(self, multipliers: Array) -> LeakageSearch:
        """The search over tangents, charged with these multipliers."""
        if self._kernel is None:
            self._kernel = LeakageSearch(self._problem, self._tangents)
        self._kernel.charge(multipliers)
        return self._kernel

    def _locally(self, prices: Array, multipliers: Array, mix: float) -> Points:
        """Columns of descents from unit vectors mixed with P(x), the first with weight `mix`."""
        result = self._tree(multipliers).run(
            prices,
            cutoff=-math.inf,
            tolerance=self._aim,
            slack=0.0,
            column_cutoff=-COLUMN_SHARE * self._aim,
            center=self._problem.point,
            mix=mix,
            turn=self._turn,
            enough=0,
            time_limit=max(self._left(), 0.0),
        )
        return result.points

    def _by_tree(self, prices: Array, multipliers: Array) -> int:
        """Price by branch and bound: at smoothed prices, or the master's if these find nothing."""
        trials = [(prices, multipliers)]
        # Prices between those of the best bound and the master's jump less, and prove more.
        if self._multipliers.any() and self._rounds > 1:
            smooth = SMOOTHING * self._prices + (1.0 - SMOOTHING) * prices
            charge = SMOOTHING * self._multipliers + (1.0 - SMOOTHING) * multipliers
            trials.insert(0, (smooth, charge))
        added = 0
        for y, beta in trials:
            kernel = self._searcher(beta)
            result = kernel.run(
                y,
                cutoff=-CUTOFF_SHARE * self._aim,
                tolerance=0.25 * self._aim,
                slack=0.05,
                column_cutoff=-COLUMN_SHARE * self._aim,
                columns=max(300, len(prices)),
                time_limit=max(0.0, min(TREE_SECONDS, self._left())),
            )
            self._nodes += result.counts.nodes
            self._learn(y, beta, result.bound)
            added += self._add_gaining(result.points, prices, multipliers)
            if added:
                break
        return added

    def _learn(self, prices: Array, multipliers: Array, minimum: float) -> None:
        """Keep the support if it proves more than the others; the module has the two bounds."""
        support = envelope_bound(prices, self._problem.point, minimum)
        if not math.isfinite(support):
            return
        if self._maximise:
            charged = math.fsum((multipliers * self._limits).tolist())
            least = support - charged - FEW_ULP * (abs(support) + charged)
            bound = self._highest - least
            better = bound < self._bound
        else:
            # The least entropy that a channel must reach is what `keep` asks of the true H(X).
            limit = float(self._limits[0])
            excess = support - limit
            excess -= FEW_ULP * (abs(support) + limit)
            bound = excess / float(multipliers[0]) * (1.0 - FEW_ULP)
            better = bound > self._bound
        if better:
            self._bound = bound
            self._prices = prices
            self._multipliers = multipliers

    # ------------------------------------------------------------------ answers

    def _solve(self) -> Solution | None:
        """The master; its weights are kept where they are better."""
        solution = self._master.solve(max(self._left(), 0.1))
        if solution is None:
            return None
        entropy = math.fsum((solution.weights * self._entropies).tolist())
        value = math.fsum((solution.weights * self._leaks[0]).tolist())
        better = value < self._value
        if self._maximise:
            value = self._entropy - entropy
            better = value > self._value
        if better:
            self._value = value
            self._weights = solution.weights
        return solution

    @property
    def _gap(self) -> float:
        """The distance between value and bound."""
        return abs(self._value - self._bound)

    def _left(self) -> float:
        """Seconds that are left."""
        return self._end - time.monotonic()

    def _report(self) -> None:
        """Report the state of the run, if the caller wants to know."""
        if self._progress is None:
            return
        self._progress(
            Progress(
                self._value, self._bound, self._rounds, len(self._points), self._nodes
            )
        )

    def _result(self, status: EnvelopeStatus) -> AverageOptimum:
        """The best channel; EmptyPolytope or BackendFailure where there is none."""
        if not math.isfinite(self._value):
            raise EmptyPolytope(
                "no channel in the polytope that was found keeps so much information"
            )
        if status is EnvelopeStatus.BACKEND_FAILED and not self._rounds:
            raise BackendFailure("HiGHS failed on the master program of the averages")
        used = np.flatnonzero(self._weights > 0.0)
        weights = self._weights[used]
        entropy = math.fsum((weights * self._entropies[used]).tolist())
        return AverageOptimum(
            status=status,
            weights=weights,
            points=self._points.take(used),
            information=self._entropy - entropy,
            leakages=self._leaks[:, used] @ weights,
            value=self._value,
            bound=self._bound,
            multipliers=self._multipliers,
            prices=self._prices,
            rounds=self._rounds,
            columns=len(self._points),
            nodes=self._nodes,
            seconds=time.monotonic() - self._started,
        )
