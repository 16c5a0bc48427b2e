"""The channel that keeps most information within average leakages, and the privacy funnel.

    minimise    sum_k w_k H(v_k)
    subject to  sum_k w_k v_k = p,  sum_k w_k L_j(v_k) <= budget_j for every j,  w >= 0,

over posteriors v_k in a polytope, where L(v) = sum_s P(s) f(w_s) (or max_s w_s - 1) is what the
output leaks, w = A v are its lifts and A[s, x] = P(s, x) / (P(s) P(x)). Exchanging cost and row
gives the least leakage at a given utility (Makhdoumi et al. 2014 call this the privacy funnel).

Here are the entry points. Each checks its arguments (`AverageProblem.of`), chooses what is
minimised and what is bounded (`goals`), and starts the rounds of `search_average`: a master
program finds the best weights w of the posteriors so far and gives prices y and multipliers
beta_j, and pricing (`pricing`) looks for the least H(v) + sum_j beta_j L_j(v) - y.v.

Invariants: every column is a member of the inner polytope and is charged its true H and L. For any
y and beta >= 0 with H(v) + sum_j beta_j L_j(v) - y.v >= m on the outer polytope, every channel has
H(X|Y) + sum_j beta_j E L_j >= y.p + m (docs/explanation/averages-theory.md, 'Several average
budgets'); such supports prove the bounds, and are rounded down.

For example, P(s, x) = [[0.4, 0.1], [0.1, 0.4]] has p = (1/2, 1/2) and A = [[1.6, 0.4], [0.4, 1.6]].
By total variation the posterior p leaks 0, and (1, 0) and (0, 1) leak 0.3. A budget of 0.15 is kept
by w = 1/2, 1/4, 1/4 for these three: half of the time X is released as it is. It keeps 0.347 of
the 0.693 nats; y = (0.693, 0.693), beta = 0.693 / 0.3 = 2.31 and m = 0 prove that no channel keeps
more.

*Published heuristics.* Both look for channels P(y|x) that keep much I(X;Y) and leak little about S.

- `greedy_merging` (Makhdoumi, Salamatian, Fawaz and Medard 2014, 'From the information bottleneck
  to the privacy funnel', algorithm 1) begins with X itself and merges two outputs at a time: those
  whose union lowers the leakage most for the information that it loses.
- `convex_concave` starts from random channels and, for a multiplier beta, lowers H(X|Y) + beta
  I(S;Y), which is a concave plus a convex function. Here each step is one of exponentiated
  gradient, and steps that do not lower the cost are rejected. beta is doubled, then found by
  bisection, so that the leakage comes near the budget.

A channel that leaks L > e is `thinned` to the budget e: it answers the share e / L of the records
only, and so keeps that share of its information. For example, one that leaks 0.2 nats answers a
quarter of the records within 0.05 nats.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from solvers.average.goals import LeastLeakage, WithinBudgets
from solvers.average.problem import AverageOptimum, AverageProblem, Measure
from solvers.average.search import search_average
from solvers.errors import InvalidOption
from solvers.points import Array, Points
from solvers.results import Progress
from solvers.sets.polytope import Polytope

# --------------------------------------------------------------------- optimal channels

__all__ = [
    "AverageOptimum",
    "Measure",
    "best_channel_within",
    "funnel_measures",
    "least_leakage",
]


def best_channel_within(
    joint: Array,
    budgets: Mapping[Measure, float] | Mapping[str, float],
    *,
    inner: Polytope | None = None,
    outer: Polytope | None = None,
    gains: Array | None = None,
    tolerance: float = 1e-4,
    time_limit: float = 30.0,
    start: Points | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> AverageOptimum:
    """Most information about X within average leakages about S.

    Parameters
    ----------
    joint : (|S|, |X|) array
        P(s, x), positive row and column sums, summing to one.
    budgets : mapping
        Most average leakage of every measure, in the units of `AverageOptimum.leakages`, which has
        the order of this mapping. Zero may stand alone: then posteriors leak what rounding leaves,
        and the multiplier is that of total variation.
    inner, outer : Polytope, optional
        The set of the posteriors P(x | y), and one with the same rows around it, for which the
        bound holds (by default the same). Without both, every posterior is allowed.
    gains : (g, |S|) array, optional
        What each guess gains, for the measure gain.
    tolerance : float
        Nats between value and bound at which the search stops.
    time_limit : float
        Seconds after which the best channel so far and its bound are returned.
    start : Points, optional
        Posteriors to begin with; those outside the inner polytope are left out.
    progress : callable, optional
        Told of I(X;Y), its bound, and the effort so far.

    Raises
    ------
    InvalidOption
        On a joint table, budget, tolerance or limit out of range.
    EmptyPolytope
        If P(x) itself is not in the inner polytope.
    BackendFailure
        If HiGHS fails on the master program.
    """
    if not budgets:
        raise InvalidOption("budgets must name a measure at least")
    problem = AverageProblem.of(joint, list(budgets), inner, outer, gains)
    limits = np.array(list(budgets.values()), dtype=np.float64)
    for limit in limits.tolist():
        if not (math.isfinite(limit) and limit >= 0.0):
            raise InvalidOption(f"budget ({limit}) must be a finite number, 0 or more")
    if (limits > 0.0).all():
        goal = WithinBudgets(problem, limits)
        return search_average(problem, goal, tolerance, time_limit, start, progress)
    if len(limits) > 1:
        raise InvalidOption("of several budgets each must be above 0")
    # All measures are zero together, and total variation alone has a finite multiplier there.
    linear = AverageProblem.of(joint, [Measure.TOTAL_VARIATION], inner, outer)
    goal = WithinBudgets(linear, limits)
    optimum = search_average(linear, goal, tolerance, time_limit, start, progress)
    leakages = problem.leaks(optimum.points) @ optimum.weights
    return replace(optimum, leakages=leakages)


def least_leakage(
    joint: Array,
    measure: Measure | str,
    keep: float,
    *,
    inner: Polytope | None = None,
    outer: Polytope | None = None,
    gains: Array | None = None,
    tolerance: float = 1e-4,
    time_limit: float = 30.0,
    start: Points | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> AverageOptimum:
    """Least average leakage of a channel with ``I(X;Y) >= keep H(X)``.

    As `best_channel_within`; `tolerance`, value and bound are in the unit of the leakage.

    Raises
    ------
    InvalidOption
        If `keep` is not between 0 and 1, or as above.
    EmptyPolytope
        If no posteriors in the inner polytope that were found keep so much.
    """
    problem = AverageProblem.of(joint, [measure], inner, outer, gains)
    if not 0.0 <= keep <= 1.0:
        raise InvalidOption(f"keep ({keep}) must be between 0 and 1")
    goal = LeastLeakage(problem, keep)
    return search_average(problem, goal, tolerance, time_limit, start, progress)


def funnel_measures(
    joint: Array, measure: Measure | str, channel: Array, gains: Array | None = None
) -> tuple[float, float]:
    """I(X;Y) in nats and the average leakage of a channel P(y | x), (n, k), in floating point."""
    problem = AverageProblem.of(joint, [measure], None, None, gains)
    mass = problem.point @ channel
    points = Points.from_dense((problem.point[:, None] * channel / mass).T)
    information = problem.entropy - float(mass @ points.entropies())
    return information, float(mass @ problem.leaks(points)[0])


# --------------------------------------------------------------------------- heuristics

STEPS = 300
"""Steps of one restart; the cost has settled by then."""

FIRST_MULTIPLIER = 4.0
"""The first beta of a restart."""

MULTIPLIERS = 8
"""Values of beta in a restart."""

SPARSITY = 0.3
"""Concentration of the Dirichlet distribution of the first rows; below 1 most entries are small."""

LARGEST_EXPONENT = 50.0
"""Limit of the exponents of a step: no entry becomes zero, from where it could not return."""

SMALLEST = 1e-300
"""Added inside logarithms of empty outputs."""


@dataclass(frozen=True, eq=False)
class BaselineChannel:
    """A channel P(y | x), (n, k), with its information and leakage, as in `AverageOptimum`."""

    channel: Array
    information: float
    leakage: float


def measured(
    joint: Array, measure: Measure | str, channel: Array, gains: Array | None = None
) -> BaselineChannel:
    """Information (nats) and leakage of a channel (n, k); outputs without mass are left out.

    `joint` is P(s, x), (|S|, n), as in all functions here, and `gains` are those of
    `best_channel_within`.
    """
    masses = joint.sum(axis=0) @ channel
    # Of an output that never occurs no posterior is defined.
    channel = channel[:, masses > 0.0]
    information, leakage = funnel_measures(joint, measure, channel, gains)
    return BaselineChannel(channel, information, leakage)


def thinned(
    joint: Array,
    measure: Measure | str,
    channel: Array,
    budget: float,
    gains: Array | None = None,
) -> BaselineChannel:
    """The channel within the budget: it answers nothing with the least probability that suffices.

    Information and leakage are both linear in the share of records that are answered.
    """
    answering = measured(joint, measure, channel, gains)
    if answering.leakage <= budget:
        return answering
    share = budget / answering.leakage
    silent = np.full((len(channel), 1), 1.0 - share)
    return measured(joint, measure, np.hstack([share * channel, silent]), gains)


def greedy_merging(
    joint: Array,
    measure: Measure | str,
    *,
    budget: float,
    end: float = math.inf,
    gains: Array | None = None,
) -> BaselineChannel:
    """Merge, from the identity on, the two outputs whose union leaks least for what it loses.

    It ends when the channel leaks no more than the budget. Of all channels on the way, thinned to
    the budget, the one that keeps most is returned. `end` (on the clock of `time.process_time`)
    stops it earlier.
    """
    groups = [[x] for x in range(joint.shape[1])]
    merged = measured(joint, measure, _membership(groups), gains)
    within = thinned(joint, measure, merged.channel, budget, gains)
    while len(groups) > 1 and time.process_time() < end:
        # Further merging would only lose information.
        if merged.leakage <= budget:
            break
        groups, merged = _best_merger(joint, measure, groups, merged, gains)
        # A fine channel thinned may keep more than a coarse one that is within the budget.
        trial = thinned(joint, measure, merged.channel, budget, gains)
        if trial.information > within.information:
            within = trial
    return within


def _best_merger(
    joint: Array,
    measure: Measure | str,
    groups: list[list[int]],
    before: BaselineChannel,
    gains: Array | None,
) -> tuple[list[list[int]], BaselineChannel]:
    """The groups and the channel after the best merger of two: the fall of the leakage for each nat
    of information lost counts.
    """
    best = (groups, before)
    best_score = -math.inf
    for i in range(len(groups)):
        for j in range(i):
            # j < i: the groups between and around the two stay.
            merged = groups[:j] + groups[j + 1 : i] + groups[i + 1 :]
            merged.append(groups[i] + groups[j])
            trial = measured(joint, measure, _membership(merged), gains)
            lost = before.information - trial.information
            score = (before.leakage - trial.leakage) / max(lost, SMALLEST)
            if score > best_score:
                best = (merged, trial)
                best_score = score
    return best


def _membership(groups: list[list[int]]) -> Array:
    """The channel that releases the group of each symbol: [[0, 2], [1]] has the rows 10, 01, 10."""
    count = sum(len(group) for group in groups)
    channel = np.zeros((count, len(groups)))
    for y, group in enumerate(groups):
        channel[group, y] = 1.0
    return channel


def convex_concave(
    joint: Array,
    budget: float,
    *,
    restarts: int = 30,
    seed: int = 0,
    end: float = math.inf,
) -> BaselineChannel:
    """The best of `restarts` within a budget of I(S;Y) in nats.

    Each restart descends from one random channel for `MULTIPLIERS` values of beta: doubled until
    the leakage is within the budget, then found by bisection. What leaks more is thinned.
    """
    count = joint.shape[1]
    # A fixed seed: the same table has the same reference.
    random = np.random.default_rng(seed)
    # One output for all symbols: the channel that says nothing is always within the budget.
    best = measured(joint, Measure.MUTUAL_INFORMATION, np.ones((count, 1)))
    for _ in range(restarts):
        # beta of the restart lies between these two; none is known to be too large at first.
        low = 0.0
        high = math.inf
        multiplier = FIRST_MULTIPLIER
        # Sparse rows are near deterministic channels, where minima of the concave part lie.
        first = random.dirichlet(np.full(count, SPARSITY), size=count)
        for _ in range(MULTIPLIERS):
            if time.process_time() >= end:
                return best
            channel = _descend(joint, first, multiplier)
            raw = measured(joint, Measure.MUTUAL_INFORMATION, channel)
            trial = thinned(joint, Measure.MUTUAL_INFORMATION, channel, budget)
            if trial.information > best.information:
                best = trial
            # Too much leakage: the multiplier of the leakage must be larger.
            if raw.leakage > budget:
                low = multiplier
            else:
                high = multiplier
            if math.isinf(high):
                multiplier = 2.0 * multiplier
            else:
                multiplier = 0.5 * (low + high)
    return best


def _descend(joint: Array, channel: Array, multiplier: float) -> Array:
    """A local minimum of H(X|Y) + beta I(S;Y) near the channel (n, k).

    A step multiplies entry (x, y) by exp(-step slope) and divides each row by its sum.
    """
    step = 0.5
    cost, slope = _lagrangian(joint, channel, multiplier)
    for _ in range(STEPS):
        # A constant in a row's slope changes nothing, as the row is normalised; this one keeps all
        # exponents negative.
        descent = slope - slope.min(axis=1, keepdims=True)
        trial = channel * np.exp(-np.minimum(step * descent, LARGEST_EXPONENT))
        trial /= trial.sum(axis=1, keepdims=True)
        trial_cost, trial_slope = _lagrangian(joint, trial, multiplier)
        # A longer step after each success, a much shorter one after a failure: no line search.
        if trial_cost < cost:
            channel = trial
            cost = trial_cost
            slope = trial_slope
            step *= 1.3
        else:
            step *= 0.3
        if step < 1e-9:
            break
    return channel


def _lagrangian(joint: Array, channel: Array, multiplier: float) -> tuple[float, Array]:
    """H(X|Y) + beta I(S;Y), and its gradient over P(y|x), each row divided by P(x)."""
    point = joint.sum(axis=0)
    mass = point @ channel
    # log P(x | y), (n, k).
    log_posterior = np.log(point[:, None] * channel + SMALLEST)
    log_posterior = log_posterior - np.log(mass + SMALLEST)
    # P(s, y), and log P(s | y) / P(s), (|S|, k).
    together = joint @ channel
    log_lift = np.log(together + SMALLEST) - np.log(mass + SMALLEST)
    log_lift -= np.log(joint.sum(axis=1))[:, None]
    cost = -(point[:, None] * channel * log_posterior).sum()
    cost += multiplier * (together * log_lift).sum()
    # The logarithms alone: the derivatives of p log p and of its denominators cancel.
    slope = multiplier * (joint / point).T @ log_lift - log_posterior
    return float(cost), slope
