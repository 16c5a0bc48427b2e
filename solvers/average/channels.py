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
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from solvers.average.goals import LeastLeakage, WithinBudgets
from solvers.average.problem import AverageOptimum, AverageProblem, Measure
from solvers.average.search import search_average
from solvers.errors import InvalidOption
from solvers.points import Array, Points
from solvers.results import Progress
from solvers.sets.polytope import Polytope

__all__ = [
    "AverageOptimum",
    "Measure",
    "best_channel_on_average",
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


def best_channel_on_average(
    joint: Array,
    measure: Measure | str,
    budget: float,
    *,
    inner: Polytope | None = None,
    outer: Polytope | None = None,
    tolerance: float = 1e-4,
    time_limit: float = 30.0,
    start: Points | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> AverageOptimum:
    """`best_channel_within` for a single measure."""
    return best_channel_within(
        joint,
        {str(measure): budget},
        inner=inner,
        outer=outer,
        tolerance=tolerance,
        time_limit=time_limit,
        start=start,
        progress=progress,
    )


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
