"""The channel that keeps most information within an average leakage, and the reverse: the privacy funnel.

    minimise sum_k w_k H(v_k)   subject to   sum_k w_k v_k = p,  sum_k w_k L(v_k) <= budget,  w >= 0,

over posteriors v_k in a polytope, where L(v) = sum_s P(s) f(w_s) is what the output leaks, w = A v are
its lifts and A[s, x] = P(s, x) / (P(s) P(x)). Exchanging cost and row gives the least leakage at a given
utility (Makhdoumi et al. 2014 call this the privacy funnel).

A master program over the posteriors so far is priced by branch and bound: for prices y and a multiplier
beta, the least H(v) + beta L(v) - y.v. Chords lie below the concave H, tangents below the convex f; each
term of L is an auxiliary variable above its tangents, so a box is a linear program of the kernel. Tangents
touch f where columns were found, and stay for all later rounds.

Invariants: every column is a member of the inner polytope and is charged its true H and L. For any y and
beta >= 0 with H(v) + beta L(v) - y.v >= m on the outer polytope, every channel has
H(X|Y) + beta E L >= y.p + m (sum the inequality with the weights); such supports prove the bounds, and are
rounded down.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from solvers.concave import (
    FEWEST_BOXES,
    MEMORY_LIMIT,
    ConcaveSearch,
    identical_columns,
    kernel_rows,
)
from solvers.errors import (
    BackendFailure,
    EmptyPolytope,
    InvalidOption,
    InvalidPolytope,
    SolverError,
)
from solvers.points import Array, Points, entropy_terms
from solvers.polytope import Polytope
from solvers.programs.highs import SHARP, highs_with
from solvers.results import EnvelopeStatus, Progress, envelope_bound


class Measure(StrEnum):
    """What an output leaks about S, on average over the outputs."""

    MUTUAL_INFORMATION = "mi"
    TOTAL_VARIATION = "tv"
    CHI_SQUARE = "chi2"
    MAXIMAL_LEAKAGE = "maximal-leakage"


@dataclass(frozen=True, eq=False)
class AverageOptimum:
    """A channel as posteriors with weights, and what is proven about it.

    Attributes
    ----------
    status : EnvelopeStatus
    weights : (k,) array
        P(y), positive, summing to one up to rounding.
    points : Points, (k, n)
        P(x | y), one output a row.
    information : float
        I(X;Y) of the channel in nats.
    leakage : float
        Its average leakage, in the unit of the measure: nats for mi, E sum_s |P(s|y) - P(s)| / 2 for tv,
        E sum_s P(s) (w_s - 1)^2 for chi2, sum_y max_x P(y|s) - 1, that is e^leakage - 1, for
        maximal-leakage.
    value, bound : float
        Of `best_channel_on_average`: the information, and a proven upper bound of it. Of
        `least_leakage`: the leakage, and a proven lower bound of it.
    multiplier : float
        beta, nats of information per unit of leakage, of the support that proves the bound.
    prices : (n,) array
        Its y.
    """

    status: EnvelopeStatus
    weights: Array
    points: Points
    information: float
    leakage: float
    value: float
    bound: float
    multiplier: float
    prices: Array
    rounds: int
    columns: int
    nodes: int
    seconds: float

    @property
    def gap(self) -> float:
        """The distance between value and bound."""
        return abs(self.value - self.bound)

    def channel(self, point: Array) -> Array:
        """P(y | x), (n, k), where `point` is P(x); rows sum to one up to rounding."""
        return self.points.toarray().T * self.weights / point[:, None]


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
    """Most information about X within an average leakage about S.

    Parameters
    ----------
    joint : (|S|, |X|) array
        P(s, x), positive row and column sums, summing to one.
    measure : Measure or its name
    budget : float
        Most average leakage, in the unit of `AverageOptimum.leakage`.
    inner, outer : Polytope, optional
        The set of the posteriors P(x | y), and one with the same rows around it, for which the bound
        holds (by default the same). Without both, every posterior is allowed.
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
    problem = _Problem.of(joint, measure, inner, outer)
    if not (math.isfinite(budget) and budget >= 0.0):
        raise InvalidOption(f"budget ({budget}) must be a finite number, 0 or more")
    goal = _Goal(budget=budget, keep=None)
    return _search(problem, goal, tolerance, time_limit, start, progress)


def least_leakage(
    joint: Array,
    measure: Measure | str,
    keep: float,
    *,
    inner: Polytope | None = None,
    outer: Polytope | None = None,
    tolerance: float = 1e-4,
    time_limit: float = 30.0,
    start: Points | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> AverageOptimum:
    """Least average leakage of a channel with ``I(X;Y) >= keep H(X)``.

    As `best_channel_on_average`; `tolerance` is in the unit of the leakage, and so are value and bound.

    Raises
    ------
    InvalidOption
        If `keep` is not between 0 and 1, or as above.
    EmptyPolytope
        If no posteriors in the inner polytope that were found keep so much.
    """
    problem = _Problem.of(joint, measure, inner, outer)
    if not 0.0 <= keep <= 1.0:
        raise InvalidOption(f"keep ({keep}) must be between 0 and 1")
    goal = _Goal(budget=None, keep=keep)
    return _search(problem, goal, tolerance, time_limit, start, progress)
