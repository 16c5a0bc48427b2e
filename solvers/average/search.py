"""The search for a channel within average budgets, or of least leakage at a given utility.

`solvers.average.channels` has the mathematics, and `goals` what differs between the two
problems. A round has three steps, each with a module of its own:

1. The master program over the columns so far (`AverageColumns`) gives a channel, prices y and
   multipliers; the goal brings these into the form of a support, in nats.
2. Pricing (`pricing`) looks for columns v of H(v) + sum_j beta_j L_j(v) < y.v: by local
   searches, and once these find little by branch and bound, which also proves H(v) + sum_j beta_j
   L_j(v) >= y.v + m for all posteriors, a *support*.
3. The columns that gain go to the master, and the bound of the support is kept if it is the best.

The rounds end when the value of the best channel meets the best bound. For example, a budget of
0.15 by total variation, in the table of `solvers.average.channels`, begins with the bound H(X) =
0.693 nats. The first master program has the value 0.347, y = (0.693, 0.693) and beta = 2.31. No
column gains at these, so the tree proves m = 0, and with it the bound 0.693 - (0.693 - 2.31 * 0.15)
= 0.347.

*The first columns.* P(x) itself comes first: as the only output it leaks nothing and tells nothing.
The unit vectors follow: they release X as it is, with all information and all leakage. Mixtures of
two symbols leak little for what they keep, so they are a good start in between: the symbols are
mixed so that their lifts come nearest to 1. For example, the lifts (1.5, 0.5) and (0.5, 1.5) mixed
half and half are (1, 1), and leak nothing.

*Columns.* A column is a posterior v with its entropy and leakages; a channel is one weight P(y) for
each column, with sum_k w_k v_k = p. `append` evaluates new columns and hands them to the master
program; `solve` has it find the best weights, and keeps them where they beat the best channel so
far.

In the example of `solvers.average.channels` there are

    points      (1/2, 1/2)   (1, 0)   (0, 1)
    entropies   0.693        0        0         nats
    leaks       0            0.3      0.3       total variation
    weights     1/2          1/4      1/4       of the best channel with E L <= 0.15

so H(X|Y) = 0.347 nats, and `best.value` = 0.693 - 0.347 = 0.347 is the information.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np

from solvers.average.goals import Charge, Goal, Master, Solution, WeightedColumns
from solvers.average.pricing import COLUMN_SHARE, MIXES, AveragePricing
from solvers.average.problem import AverageOptimum, AverageProblem
from solvers.errors import BackendFailure, EmptyPolytope, InvalidOption
from solvers.points import Points
from solvers.results import Ended, EnvelopeStatus, Progress, Rounds, envelope_bound

# ------------------------------------------------------------------------ first columns

MOST_FIRST_PAIRS = 6000
"""Pairs of symbols with which the master begins at most, chosen at random where there are more."""

LEAST_SHARE = 1e-6
"""Pairs in which one symbol has less are left to the unit vectors."""

INFORMATIVE_GAP = 1e-3
"""Gap (nats) of the channel that keeps most in a polytope: it is only a start."""

INFORMATIVE_SHARE = 0.3
"""Share of the time that its search may take."""


def first_columns(problem: AverageProblem, start: Points | None, end: float) -> Points:
    """P(x), unit vectors, mixtures of two symbols, and what the caller knows.

    All but P(x) are left out where they lie outside the inner polytope. With one, the outputs of
    the channel that keeps most in it come last; their search takes a share of the time until `end`,
    on the clock of `time.process_time`.
    """
    units = Points.units(np.arange(len(problem.point)), len(problem.point))
    # This order counts: the first channels of both goals (`goals`) rely on it.
    parts = [Points.from_dense(problem.point), problem.members(units)]
    parts.append(problem.members(_quiet_pairs(problem)))
    if start is not None:
        parts.append(problem.members(start))
    if problem.inner is not None:
        parts.append(_informative(problem, end))
    return Points.concatenate(parts)


def _quiet_pairs(problem: AverageProblem) -> Points:
    """Pairs of symbols, mixed so that their lifts come nearest to 1 in mean square.

    With lifts a and b = a + d of the two, the share c of the second minimises sum_s P(s) (a_s + c
    d_s - 1)^2: c = sum P (1 - a) d / sum P d^2.
    """
    first, second = np.triu_indices(len(problem.point), 1)
    if len(first) > MOST_FIRST_PAIRS:
        # A fixed seed: equal problems begin with equal columns.
        random = np.random.default_rng(0)
        chosen = random.choice(len(first), MOST_FIRST_PAIRS, replace=False)
        first = first[chosen]
        second = second[chosen]
    secrets = problem.secrets[:, None]
    lifts = problem.matrix[:, first]
    differences = problem.matrix[:, second] - lifts
    numerator = (secrets * (1.0 - lifts) * differences).sum(axis=0)
    denominator = (secrets * differences**2).sum(axis=0)
    # Symbols with the same lifts have no difference: 0 / 0 is NaN, and no proper share below.
    with np.errstate(divide="ignore", invalid="ignore"):
        share = numerator / denominator
    proper = (share > LEAST_SHARE) & (share < 1.0 - LEAST_SHARE)
    return Points.between(
        first[proper], second[proper], share[proper], len(problem.point)
    )


def _informative(problem: AverageProblem, end: float) -> Points:
    """Outputs of the channel that keeps most under the polytope alone."""
    # Imported here, because only these columns need the envelope, which loads vertex enumeration.
    from solvers.envelope.polytope import lower_envelope

    assert problem.inner is not None
    envelope = lower_envelope(
        problem.inner,
        problem.point,
        gap=INFORMATIVE_GAP,
        time_limit=INFORMATIVE_SHARE * (end - time.process_time()),
    )
    return envelope.points


# ------------------------------------------------------------------------------ columns

SHRUNK = 1e-9
"""Relative distance that a channel keeps from its budget; an exact check decides what it leaks."""


class AverageColumns:
    """All columns of one search.

    Attributes
    ----------
    points : Points, (k, n)
        The posteriors.
    entropies : (k,) array
        In nats.
    leaks : (j, k) array
        Every leakage of every column, in its unit.
    best : WeightedColumns
        The best channel so far, over the first columns.
    """

    def __init__(self, problem: AverageProblem, goal: Goal, first: Points) -> None:
        self._problem = problem
        self._goal = goal
        # The limits of the master are a little lower, so that rounding weights to integers keeps
        # the channel within them.
        self._master = Master(problem.point, goal.limits * (1.0 - SHRUNK))
        self.points = first.take(np.arange(0))
        self.entropies = np.zeros(0)
        self.leaks = np.zeros((len(problem.leakages), 0))
        self.append(first)
        # The answer where the time is over before the first program is solved.
        self.best = goal.first_channel(self.leaks)

    def __len__(self) -> int:
        return len(self.points)

    def append(self, points: Points) -> None:
        """Add columns, each charged its true entropy and leakages."""
        entropies = points.entropies()
        leaks = self._problem.leaks(points)
        costs, loads = self._goal.costs_and_loads(entropies, leaks)
        self._master.add(points, costs, loads)
        self.points = Points.concatenate([self.points, points])
        self.entropies = np.concatenate([self.entropies, entropies])
        self.leaks = np.hstack([self.leaks, leaks])

    def solve(self, seconds: float) -> Solution | None:
        """The master over all columns; its weights are kept where they are better."""
        solution = self._master.solve(seconds)
        if solution is None:
            return None
        # The value is that of the columns themselves: the program was scaled and has tolerances.
        entropy = math.fsum((solution.weights * self.entropies).tolist())
        leakage = math.fsum((solution.weights * self.leaks[0]).tolist())
        value = self._goal.value(entropy, leakage)
        if self._goal.is_better(value, self.best.value):
            self.best = WeightedColumns(solution.weights, value)
        return solution


# ------------------------------------------------------------------------------- search

ENOUGH = 8
"""New columns with which a round of local searches is content."""

MOST_COLUMNS = 60
"""Columns that one round adds, those of least reduced cost first."""

SMOOTHING = 0.5
"""Weight of the prices that proved the best bound, in those that are priced by trees."""

TREE_SECONDS = 3.0
"""Time of one tree, before the columns that it has found are used."""

LEAST_SECONDS = 0.1
"""Time that the last master program has although the limit is reached."""

MOST_IDLE = 4
"""Rounds without a new column, a better bound or a new tangent, after which doubles prove nothing
more."""


def search_average(
    problem: AverageProblem,
    goal: Goal,
    tolerance: float,
    time_limit: float,
    start: Points | None,
    progress: Callable[[Progress], None] | None,
) -> AverageOptimum:
    """Run one search; see `solvers.average.channels.best_channel_within`."""
    if not (math.isfinite(tolerance) and tolerance > 0.0):
        raise InvalidOption(f"tolerance ({tolerance}) must be a positive number")
    if not time_limit > 0.0:
        raise InvalidOption(f"time_limit ({time_limit}) must be positive")
    started = time.process_time()
    end = started + time_limit
    first = first_columns(problem, start, end)
    search = AverageSearch(problem, goal, first, tolerance, end, progress)
    return search.result(search.run(), started)


class AverageSearch(Rounds):
    """The rounds of one search: its columns, its pricing, and the best support.

    Used once: `run`, and then `result`. `bound` is in the unit of the goal, and `_support` are the
    prices and multipliers that prove it.
    """

    most_fruitless = MOST_IDLE

    def __init__(
        self,
        problem: AverageProblem,
        goal: Goal,
        first: Points,
        tolerance: float,
        end: float,
        progress: Callable[[Progress], None] | None,
    ) -> None:
        super().__init__(goal.first_bound, tolerance, end, progress)
        self._problem = problem
        self._goal = goal
        self._columns = AverageColumns(problem, goal, first)
        self._pricing = AveragePricing(problem)
        self._support = Charge(
            prices=np.zeros(len(problem.point)),
            multipliers=np.zeros(len(problem.leakages)),
            aim=tolerance,
        )
        self._nodes = 0
        # What the master said last.
        self._charge = self._support

    # ------------------------------------------------------------------ rounds

    @property
    def value(self) -> float:
        """Of the best channel so far, in the unit of the goal."""
        return self._columns.best.value

    @property
    def columns(self) -> int:
        """Number of columns so far."""
        return len(self._columns)

    @property
    def nodes(self) -> int:
        """Boxes of all trees so far."""
        return self._nodes

    @property
    def is_closed(self) -> bool:
        """Whether value and bound have met, from whichever side."""
        return abs(self.value - self.bound) <= self.aim

    def solve(self) -> None:
        """The best channel of the columns so far, and what it charges for columns."""
        solution = self._columns.solve(max(self.seconds, LEAST_SECONDS))
        if solution is None:
            # A master program that met the limit has not failed.
            if self.seconds > 0.0:
                raise Ended(EnvelopeStatus.BACKEND_FAILED)
            raise Ended(EnvelopeStatus.TIME_LIMIT)
        self._charge = self._goal.charge(solution, self.aim)

    def price(self) -> bool:
        """Local searches at the master's prices, and trees once these find little."""
        charge = self._charge
        bound = self.bound
        touched = self._pricing.touched
        added = 0
        # Descents are cheap and prove nothing: while they find enough, no tree is grown.
        if self._pricing.has_descents:
            added = self._search_locally(charge)
        if added >= ENOUGH or self.seconds <= 0.0:
            return True
        added += self._search_trees(charge)
        # New tangents are a gain, too: the next search sees more of the leakages.
        return added > 0 or self.bound != bound or self._pricing.touched > touched

    def _search_locally(self, charge: Charge) -> int:
        """Descents from one kind of mixture after the other, until enough columns are found.

        A mixture that found enough is the first one of the next round, too.
        """
        added = 0
        for _ in MIXES:
            points = self._pricing.descend(charge, self.seconds)
            added += self._add_gaining(points, charge)
            if added >= ENOUGH or self.seconds <= 0.0:
                break
            self._pricing.next_turn()
        return added

    def _search_trees(self, charge: Charge) -> int:
        """Price by branch and bound: at smoothed prices, or the master's if these find nothing."""
        trials = [charge]
        # Prices between those of the best bound and the master's jump less, and prove more.
        if self._support.multipliers.any() and self.rounds > 1:
            trials.insert(0, smoothed(self._support, charge))
        added = 0
        for trial in trials:
            seconds = min(TREE_SECONDS, self.seconds)
            result = self._pricing.search_tree(trial, seconds)
            self._nodes += result.counts.nodes
            # Any prices prove a bound, so that of the smoothed ones counts whatever they find.
            self._take_bound(trial, result.bound)
            # Columns found at smoothed prices are of use only if they gain at the master's.
            added += self._add_gaining(result.points, charge)
            if added:
                break
        return added

    def _add_gaining(self, points: Points, charge: Charge) -> int:
        """Add the columns that gain at the master's prices; tangents where all of them are."""
        if not len(points):
            return 0
        unpolished = points
        # Columns found over tangents are cheapest for these, not yet for the leakage itself.
        if self._pricing.has_descents:
            points = self._problem.polished(
                unpolished, charge.prices, charge.multipliers
            )
        reduced = points.entropies() + charge.multipliers @ self._problem.leaks(points)
        reduced = reduced - points.dot(charge.prices)
        most = max(MOST_COLUMNS, len(charge.prices))
        cheapest = np.argsort(reduced, kind="stable")[:most]
        gaining = cheapest[reduced[cheapest] < -COLUMN_SHARE * charge.aim]
        if len(gaining):
            self._columns.append(points.take(gaining))
        if not self._pricing.has_descents:
            return len(gaining)
        self._pricing.touch(points.take(cheapest), charge)
        if not len(gaining):
            # Where they were found, too: else the search would find them there again.
            self._pricing.touch(unpolished.take(cheapest), charge)
        return len(gaining)

    def _take_bound(self, charge: Charge, minimum: float) -> None:
        """Keep the bound of the support that has this minimum, if it proves more than the best."""
        support = envelope_bound(charge.prices, self._problem.point, minimum)
        if not math.isfinite(support):
            return
        bound = self._goal.bound(support, charge.multipliers)
        if self._goal.is_sharper(bound, self.bound):
            self.bound = bound
            self._support = charge

    # ----------------------------------------------------------------- answers

    def result(self, status: EnvelopeStatus, started: float) -> AverageOptimum:
        """The best channel; EmptyPolytope or BackendFailure where there is none."""
        columns = self._columns
        if not math.isfinite(columns.best.value):
            raise EmptyPolytope(
                "no channel in the polytope that was found keeps so much information"
            )
        if status is EnvelopeStatus.BACKEND_FAILED and not self.rounds:
            raise BackendFailure("HiGHS failed on the master program of the averages")
        used = np.flatnonzero(columns.best.weights > 0.0)
        weights = columns.best.weights[used]
        entropy = math.fsum((weights * columns.entropies[used]).tolist())
        return AverageOptimum(
            status=status,
            weights=weights,
            points=columns.points.take(used),
            information=self._problem.entropy - entropy,
            leakages=columns.leaks[:, used] @ weights,
            value=columns.best.value,
            bound=self.bound,
            multipliers=self._support.multipliers,
            prices=self._support.prices,
            rounds=self.rounds,
            columns=len(columns),
            nodes=self._nodes,
            seconds=time.process_time() - started,
        )


def smoothed(support: Charge, charge: Charge) -> Charge:
    """Prices and multipliers between those of the best support and the master's."""
    rest = 1.0 - SMOOTHING
    return Charge(
        prices=SMOOTHING * support.prices + rest * charge.prices,
        multipliers=SMOOTHING * support.multipliers + rest * charge.multipliers,
        aim=charge.aim,
    )
