"""The channel that keeps most information within an average leakage, and the privacy funnel.

    minimise    sum_k w_k H(v_k)
    subject to  sum_k w_k v_k = p,  sum_k w_k L(v_k) <= budget,  w >= 0,

over posteriors v_k in a polytope, where L(v) = sum_s P(s) f(w_s) is what the output leaks, w = A v
are its lifts and A[s, x] = P(s, x) / (P(s) P(x)). Exchanging cost and row gives the least leakage
at a given utility (Makhdoumi et al. 2014 call this the privacy funnel).

A master program over the posteriors so far is priced by branch and bound: for prices y and a
multiplier beta, the least H(v) + beta L(v) - y.v. Chords lie below the concave H, tangents below
the convex f; each term of L is an auxiliary variable above its tangents, so a box is a linear
program of the kernel. Tangents touch f where columns were found, and stay for all later rounds.

Invariants: every column is a member of the inner polytope and is charged its true H and L. For any
y and beta >= 0 with H(v) + beta L(v) - y.v >= m on the outer polytope, every channel has H(X|Y) +
beta E L >= y.p + m (sum the inequality with the weights); such supports prove the bounds, and are
rounded down.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.concave import (
    FEWEST_BOXES,
    MEMORY_LIMIT,
    ConcaveSearch,
    SearchCounts,
    SearchResult,
    SearchStatus,
    identical_columns,
    kernel_rows,
)
from solvers.errors import (
    BackendFailure,
    EmptyPolytope,
    InvalidOption,
    InvalidPolytope,
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
        Its average leakage, in the unit of the measure: nats for mi, E sum_s |P(s|y) - P(s)| / 2
        for tv, E sum_s P(s) (w_s - 1)^2 for chi2, sum_y max_x P(y|s) - 1, that is e^leakage - 1,
        for maximal-leakage.
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
        Most average leakage, in the unit of `AverageOptimum.leakage`. At zero, posteriors leak what
        rounding leaves, and the multiplier is that of total variation.
    inner, outer : Polytope, optional
        The set of the posteriors P(x | y), and one with the same rows around it, for which the
        bound holds (by default the same). Without both, every posterior is allowed.
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
    if budget > 0.0:
        return _search(problem, goal, tolerance, time_limit, start, progress)
    # All measures are zero together, and total variation alone has a finite multiplier there.
    linear = replace(problem, measure=Measure.TOTAL_VARIATION)
    found = _search(linear, goal, tolerance, time_limit, start, progress)
    leakage = float(found.weights @ problem.leakages(found.points))
    return replace(found, leakage=leakage)


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

    As `best_channel_on_average`; `tolerance`, value and bound are in the unit of the leakage.

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


def funnel_measures(
    joint: Array, measure: Measure | str, channel: Array
) -> tuple[float, float]:
    """I(X;Y) in nats and the average leakage of a channel P(y | x), (n, k), in floating point."""
    problem = _Problem.of(joint, measure, None, None)
    mass = problem.point @ channel
    points = Points.from_dense((problem.point[:, None] * channel / mass).T)
    information = problem.entropy - float(mass @ points.entropies())
    return information, float(mass @ problem.leakages(points))


# ---------------------------------------------------------------------------- the problem

MOST_PAIRED = 3000
"""Symbols up to which all pairs are held in memory."""

MOST_SORTED = 50_000
"""Cheap intervals among which columns are chosen."""

ZOOMS = 14
"""Times that the interval around the cheapest share is halved."""

ZOOM_STEPS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Shares of an interval that are compared."""

NARROWEST = 1e-9
"""Intervals of shares that are not halved any more; their bounds hold as they are."""

PAIR_ROUNDING = 1e-13
"""Relative error of the bound of an interval, of the sizes of its terms."""

LEAST_TANGENT = 1e-7
"""Tangents of w log w touch it here at the least: at zero it has none."""

FIRST_TANGENTS = (
    1e-4,
    0.02,
    0.1,
    0.25,
    0.5,
    0.75,
    1.25,
    1.5,
    2.0,
    3.0,
    5.0,
    10.0,
    20.0,
)
"""Lifts at which the first tangents touch."""

SHRUNK = 1e-9
"""Relative distance that a channel keeps from its budget; an exact check decides what it leaks."""

TANGENT_SHARE = 0.15
"""Share of the tolerance by which tangents may lie below a column's true leakage."""

FEW_ULP = 16.0 * np.finfo(np.float64).eps
"""Relative rounding error of a lift, a tangent or an entropy, generously."""

WORST_SUM = 1e-9
"""Distance from 1 within which the entries of a joint table sum to one."""


POLISHING_STEPS = 30
"""Steps of the descent on a column's own support."""

FIRST_STEP = 0.3
"""Length of the first of them, in units of the entropy's own curvature."""

SMALLEST_ENTRY = 1e-11
"""Entries of a column below this become zeros."""


@dataclass(frozen=True, eq=False)
class _Problem:
    """The table, what is measured, and where posteriors may lie."""

    point: Array
    secrets: Array
    matrix: Array
    measure: Measure
    inner: Polytope | None
    outer: Polytope | None

    @classmethod
    def of(
        cls,
        joint: Array,
        measure: Measure | str,
        inner: Polytope | None,
        outer: Polytope | None,
    ) -> _Problem:
        """Check the arguments; InvalidOption where one is out of range."""
        table = np.ascontiguousarray(joint, dtype=np.float64)
        if table.ndim != 2 or not np.isfinite(table).all() or (table < 0.0).any():
            raise InvalidOption(
                "joint must be a matrix of finite probabilities, none negative"
            )
        point = table.sum(axis=0)
        secrets = table.sum(axis=1)
        if (point <= 0.0).any() or (secrets <= 0.0).any():
            raise InvalidOption("joint has a row or column without mass; leave it out")
        if abs(float(table.sum()) - 1.0) > WORST_SUM:
            raise InvalidOption(f"joint sums to {float(table.sum())}, not to 1")
        try:
            kind = Measure(measure)
        except ValueError:
            names = ", ".join(known.value for known in Measure)
            raise InvalidOption(f"measure ({measure}) must be one of {names}") from None
        if outer is None:
            outer = inner
        if inner is None and outer is not None:
            raise InvalidOption("an outer polytope needs an inner one")
        if inner is not None and outer is not None:
            inner.check_relaxation(outer)
            if inner.n != len(point):
                raise InvalidPolytope(
                    f"the polytope has {inner.n} coordinates and joint {len(point)} columns"
                )
            if inner.excess(point)[0] > 0.0:
                raise EmptyPolytope("the marginal of X is not a member of the polytope")
        # Divided one after the other: the product of two rare marginals could vanish.
        matrix = table / point / secrets[:, None]
        return cls(point, secrets, matrix, kind, inner, outer)

    @property
    def entropy(self) -> float:
        """H(X) in nats."""
        return math.fsum(entropy_terms(self.point).tolist())

    def leakages(self, points: Points) -> Array:
        """L of every point, (k,)."""
        lifts = points.images(self.matrix)
        if self.measure is Measure.MAXIMAL_LEAKAGE:
            return np.maximum(lifts.max(axis=1) - 1.0, 0.0)
        if self.measure is Measure.TOTAL_VARIATION:
            return 0.5 * np.abs(lifts - 1.0) @ self.secrets
        return self.term(lifts) @ self.secrets

    def term(self, lifts: Array) -> Array:
        """f of a smooth measure, the version that is never negative: linear terms sum to zero."""
        if self.measure is Measure.CHI_SQUARE:
            return (lifts - 1.0) ** 2
        return 1.0 - lifts - entropy_terms(lifts)

    def slope(self, lifts: Array) -> Array:
        """The derivative of `term`; lifts must be positive."""
        if self.measure is Measure.CHI_SQUARE:
            return 2.0 * (lifts - 1.0)
        return np.log(lifts)

    def polished(self, points: Points, prices: Array, multiplier: float) -> Points:
        """Points moved downhill on their own supports: the leakage bends where tangents do not.

        Exponentiated gradient on each point by itself; a step that does not lower the cost is taken
        back and the next one is shorter.
        """
        if not (self.is_smooth and self.inner is None and len(points)):
            return points
        moved = points.toarray()
        support = moved > 0.0
        cost, slope = self._reduced(moved, support, prices, multiplier)
        steps = np.full((len(moved), 1), FIRST_STEP)
        for _ in range(POLISHING_STEPS):
            mean = (moved * slope).sum(axis=1, keepdims=True)
            way = np.where(support, slope - mean, 0.0)
            trial = moved * np.exp(-np.clip(steps * way, -1.0, 1.0))
            trial /= trial.sum(axis=1, keepdims=True)
            trial[trial < SMALLEST_ENTRY] = 0.0
            trial /= trial.sum(axis=1, keepdims=True)
            lower, other = self._reduced(trial, support, prices, multiplier)
            falls = lower < cost
            cost = np.where(falls, lower, cost)
            moved = np.where(falls[:, None], trial, moved)
            slope = np.where(falls[:, None], other, slope)
            steps *= np.where(falls, 1.5, 0.25)[:, None]
        return Points.from_dense(moved)

    def _reduced(
        self, dense: Array, support: NDArray[np.bool_], prices: Array, multiplier: float
    ) -> tuple[Array, Array]:
        """H + beta L - y.v at points (k, n), and its gradient on their supports."""
        lifts = dense @ self.matrix.T
        cost = entropy_terms(dense).sum(axis=1) - dense @ prices
        cost = cost + multiplier * (self.term(lifts) @ self.secrets)
        slopes = self.slope(np.maximum(lifts, LEAST_TANGENT)) * self.secrets
        positive = np.where(support, np.maximum(dense, SMALLEST_ENTRY), 1.0)
        gradient = multiplier * (slopes @ self.matrix) - np.log(positive) - prices
        return cost, gradient

    def leakage_slopes(self, lifts: Array) -> tuple[Array, Array]:
        """L at lifts (m, k), and a subgradient of it, (m, k)."""
        if self.measure is Measure.MAXIMAL_LEAKAGE:
            largest = lifts.argmax(axis=0)
            slope = np.zeros_like(lifts)
            slope[largest, np.arange(lifts.shape[1])] = 1.0
            return lifts.max(axis=0) - 1.0, slope
        weight = self.secrets[:, None]
        if self.measure is Measure.TOTAL_VARIATION:
            leak = 0.5 * (weight * np.abs(lifts - 1.0)).sum(axis=0)
            return leak, 0.5 * weight * np.sign(lifts - 1.0)
        # A lift of zero in the middle of an interval is zero all over it: any slope will do.
        slopes = self.slope(np.maximum(lifts, np.finfo(np.float64).tiny))
        return (weight * self.term(lifts)).sum(axis=0), weight * slopes

    @property
    def has_pairs(self) -> bool:
        """Whether pairs of symbols with one share each are all that pricing needs to look at."""
        few = len(self.point) <= MOST_PAIRED
        return len(self.secrets) == 2 and self.inner is None and few

    @property
    def is_smooth(self) -> bool:
        """Whether f needs infinitely many tangents."""
        return self.measure in (Measure.MUTUAL_INFORMATION, Measure.CHI_SQUARE)

    def members(self, points: Points) -> Points:
        """Those of the points that lie in the inner polytope."""
        if self.inner is None or not len(points):
            return points
        return points.take(self.inner.excess(points.toarray()) <= 0.0)


class _Tangents:
    """Rows ``slope w_s - offset <= r_j`` below the terms of the leakage, with r_j the j-th term."""

    def __init__(self, problem: _Problem) -> None:
        self._problem = problem
        count = len(problem.secrets)
        self._secret: list[int] = []
        self._slope: list[float] = []
        self._offset: list[float] = []
        largest = problem.matrix.max(axis=1)
        if problem.measure is Measure.MAXIMAL_LEAKAGE:
            self._add_kinks(np.ones(count))
            top = np.array([float(largest.max()) - 1.0])
        elif problem.measure is Measure.TOTAL_VARIATION:
            self._add_kinks(problem.secrets)
            top = problem.secrets * (largest - 1.0)
        else:
            ends = np.stack([np.zeros(count), largest])
            top = problem.secrets * problem.term(ends).max(axis=0)
            for s in range(count):
                for touch in FIRST_TANGENTS:
                    if touch < largest[s]:
                        self._add_touching(s, touch)
        # No term of a member is larger; some room for rounding.
        self.top = np.maximum(top, 0.0) * (1.0 + 1e-6) + 1e-9

    def _add_kinks(self, sizes: Array) -> None:
        """The single rows ``size (w_s - 1) <= r`` of a measure with a kink at 1."""
        for s, size in enumerate(sizes.tolist()):
            self._append(s, size, size, size)

    def _add_touching(self, s: int, touch: float) -> None:
        """The tangent of P(s) f at one lift."""
        weight = float(self._problem.secrets[s])
        at = np.array([touch])
        value = weight * float(self._problem.term(at)[0])
        slope = weight * float(self._problem.slope(at)[0])
        self._append(s, slope, slope * touch - value, weight * (1.0 + touch))

    def _append(self, s: int, slope: float, offset: float, size: float) -> None:
        """One row, moved down by what rounding can have added anywhere on the simplex."""
        largest = float(self._problem.matrix[s].max())
        room = FEW_ULP * (size + abs(offset) + abs(slope) * (largest + 1.0))
        self._secret.append(s)
        self._slope.append(slope)
        self._offset.append(offset + room)

    def touch(self, points: Points, room: float) -> int:
        """Add tangents where these lie more than `room` below a term of a point; how many."""
        if not self._problem.is_smooth or not len(points):
            return 0
        before = len(self._secret)
        lifts = points.images(self._problem.matrix)
        true = self._problem.term(lifts) * self._problem.secrets
        room /= len(self._problem.secrets)
        for k in range(len(points)):
            for s in range(len(self._problem.secrets)):
                lift = float(lifts[k, s])
                if true[k, s] > self._height(s, lift) + room:
                    self._add_touching(s, max(lift, LEAST_TANGENT))
        return len(self._secret) - before

    def _height(self, s: int, lift: float) -> float:
        """The highest tangent of a term at a lift."""
        height = 0.0
        for owner, slope, offset in zip(
            self._secret, self._slope, self._offset, strict=True
        ):
            if owner == s:
                height = max(height, slope * lift - offset)
        return height

    @property
    def rows(self) -> tuple[Array, Array, Array]:
        """Columns of v (m, n), columns of r (m, j), and upper ends (m,)."""
        owner = np.array(self._secret)
        slope = np.array(self._slope)
        of_points = slope[:, None] * self._problem.matrix[owner]
        of_terms = np.zeros((len(owner), len(self.top)))
        if len(self.top) == 1:
            of_terms[:, 0] = -1.0
        else:
            of_terms[np.arange(len(owner)), owner] = -1.0
        return of_points, of_terms, np.array(self._offset)


class _LeakageSearch(ConcaveSearch):
    """`ConcaveSearch` for H(v) + beta L(v) - y.v, with L above its tangents alone."""

    def __init__(self, problem: _Problem, tangents: _Tangents) -> None:
        from solvers._kernel import Search

        self.n = len(problem.point)
        general, ends, free = _polytope_rows(problem)
        of_points, of_terms, upper = tangents.rows
        terms = of_terms.shape[1]
        size = np.abs(of_points).max(axis=1)
        scale = np.exp2(-np.ceil(np.log2(np.maximum(size, 1.0))))
        lower = of_points.min(axis=1) - tangents.top.max() - 1.0
        between = len(free) - self.n
        tangent_rows = np.hstack([of_points, np.zeros((len(upper), between)), of_terms])
        wide = np.hstack([general, np.zeros((len(general), terms))])
        matrix = np.vstack([wide[:-1], tangent_rows * scale[:, None], wide[-1:]])

        def joined(at: int, tangent: Array) -> Array:
            return np.concatenate([ends[at][:-1], tangent * scale, ends[at][-1:]])

        self._members, self._first = identical_columns(matrix[:, : self.n])
        distinct = len(self._first)
        columns = np.concatenate(
            [self._first, np.arange(self.n, matrix.shape[1])]
        ).astype(np.intp)
        top = np.concatenate([free, tangents.top])
        inner_lower = joined(0, lower)
        inner_upper = joined(1, upper)
        outer_lower = joined(2, lower)
        outer_upper = joined(3, upper)
        self._kernels: list[Any] = [
            Search(
                np.ascontiguousarray(matrix[:, columns]),
                outer_lower,
                outer_upper,
                inner_lower,
                inner_upper,
                np.ascontiguousarray(top[columns]),
                distinct,
            )
        ]
        box_bytes = 10 * distinct + 2 * matrix.shape[0] + 64
        self._box_limit = max(FEWEST_BOXES, MEMORY_LIMIT // box_bytes)
        self._pool = None
        self._between = between
        self._terms = terms

    def charge(self, multiplier: float) -> None:
        """Set what a unit of leakage costs."""
        costs = np.zeros(self._between + self._terms)
        costs[self._between :] = multiplier
        self._auxiliary_costs = costs


class _PairSearch:
    """The same for two secrets and no polytope, over pairs of symbols and the share of the second.

    Some minimiser has at most two symbols, because the fibre of a lift is a polytope with two rows
    on which H is concave. On an interval of shares a chord lies below H and a tangent at the middle
    below L: what is left is linear, and least at an end. Intervals that may hold less than the
    target are halved.
    """

    def __init__(self, problem: _Problem) -> None:
        self._problem = problem
        self._lifts = problem.matrix
        first, second = np.triu_indices(len(problem.point), 1)
        self._first = first
        self._second = second
        self._beta = 0.0

    def charge(self, multiplier: float) -> None:
        """Set what a unit of leakage costs."""
        self._beta = multiplier

    def run(
        self,
        prices: Array,
        *,
        cutoff: float,
        tolerance: float,
        slack: float,
        column_cutoff: float,
        time_limit: float,
        columns: int,
    ) -> SearchResult:
        """As `ConcaveSearch.run`."""
        end = time.monotonic() + time_limit
        first, second = self._first, self._second
        low = np.zeros(len(first))
        high = np.ones(len(first))
        leaks, _ = self._problem.leakage_slopes(self._lifts)
        alone = self._beta * leaks - prices
        best = float(alone.min())
        size = float(np.abs(prices).max()) + self._beta * float(leaks.max())
        bound = best - PAIR_ROUNDING * size
        good = np.flatnonzero(alone < column_cutoff)
        parts = [Points.units(good, len(prices))]
        status = SearchStatus.DONE
        counted = 0
        while len(first):
            if time.monotonic() > end:
                status = SearchStatus.TIME_LIMIT
                # What is left is bounded by the intervals as they stand.
                least, _ = self._bounds(prices, first, second, low, high)
                bound = min(bound, float(least.min()))
                break
            counted += len(first)
            least, cost = self._bounds(prices, first, second, low, high)
            parts.append(
                self._cheapest(
                    prices, first, second, low, high, cost, column_cutoff, columns
                )
            )
            best = min(best, float(cost.min()))
            target = min(cutoff, best - tolerance - slack * abs(best))
            is_open = (least < target) & (high - low > NARROWEST)
            bound = min(bound, float(least[~is_open].min(initial=math.inf)))
            middle = 0.5 * (low + high)[is_open]
            first = np.tile(first[is_open], 2)
            second = np.tile(second[is_open], 2)
            low = np.concatenate([low[is_open], middle])
            high = np.concatenate([middle, high[is_open]])
        points = Points.concatenate(parts)
        return SearchResult(status, bound, points, SearchCounts(counted))

    def _bounds(
        self,
        prices: Array,
        first: NDArray[np.intp],
        second: NDArray[np.intp],
        low: Array,
        high: Array,
    ) -> tuple[Array, Array]:
        """A lower bound on every interval, and the cost in its middle."""
        middle = 0.5 * (low + high)
        width = high - low
        at_low = _binary_entropy(low)
        at_high = _binary_entropy(high)
        at_middle = _binary_entropy(middle)
        start = self._lifts[:, first]
        way = self._lifts[:, second] - start
        leak, slope = self._problem.leakage_slopes(start + middle * way)
        rise = self._beta * (slope * way).sum(axis=0)
        rise += prices[first] - prices[second]
        paid = prices[first] + middle * (prices[second] - prices[first])
        rest = self._beta * leak - paid
        linear = 0.5 * (at_low + at_high) + rest
        fall = 0.5 * np.abs(at_high - at_low + rise * width)
        steepest = float(np.abs(slope * way).max(initial=0.0))
        size = 1.0 + float(np.abs(prices).max()) + self._beta * steepest
        return linear - fall - PAIR_ROUNDING * size, at_middle + rest

    def _cheapest(
        self,
        prices: Array,
        first: NDArray[np.intp],
        second: NDArray[np.intp],
        low: Array,
        high: Array,
        cost: Array,
        cutoff: float,
        columns: int,
    ) -> Points:
        """The cheapest shares of the cheapest intervals, one for each first symbol."""
        gaining = np.flatnonzero(cost < cutoff)
        if len(gaining) > MOST_SORTED:
            part = np.argpartition(cost[gaining], MOST_SORTED)[:MOST_SORTED]
            gaining = gaining[part]
        order = gaining[np.argsort(cost[gaining], kind="stable")]
        _, place = np.unique(first[order], return_index=True)
        chosen = order[np.sort(place)[:columns]]
        first = first[chosen]
        second = second[chosen]
        low = low[chosen]
        high = high[chosen]
        middle = 0.5 * (low + high)
        for _ in range(ZOOMS):
            # The cheapest of five shares, then its neighbourhood.
            costs: list[Array] = []
            for step in ZOOM_STEPS:
                share = low + step * (high - low)
                costs.append(self._bounds(prices, first, second, share, share)[1])
            at = np.array(ZOOM_STEPS)[np.argmin(costs, axis=0)]
            width = high - low
            middle = low + at * width
            low = np.maximum(low, middle - 0.25 * width)
            high = np.minimum(high, middle + 0.25 * width)
        # Unit vectors are priced by themselves.
        proper = (middle > 0.0) & (middle < 1.0)
        share = middle[proper]
        indices = np.column_stack([first[proper], second[proper]]).ravel()
        data = np.column_stack([1.0 - share, share]).ravel()
        sizes = np.full(len(share), 2)
        return Points.of_sizes(
            sizes, indices.astype(np.int32), data, len(self._problem.point)
        )


def _binary_entropy(share: Array) -> Array:
    return entropy_terms(share) + entropy_terms(1.0 - share)


def _polytope_rows(problem: _Problem) -> tuple[Array, tuple[Array, ...], Array]:
    """Rows with the row of ones last, their ends (inner and outer), and tops of the variables."""
    n = len(problem.point)
    if problem.inner is None or problem.outer is None:
        one = np.ones(1)
        return np.ones((1, n)), (one, one, one, one), np.ones(n)
    rows = kernel_rows(problem.inner, problem.outer)
    ends = (rows.inner_lower, rows.inner_upper, rows.outer_lower, rows.outer_upper)
    return rows.matrix, ends, rows.top


# ---------------------------------------------------------------------------- the master


@dataclass(frozen=True, eq=False)
class _Solution:
    """Weights of the columns, and prices y with the multiplier of the average row."""

    weights: Array
    prices: Array
    multiplier: float


class _Master:
    """min cost.w subject to sum_k w_k v_k = point, load.w <= limit, w >= 0, grown by columns."""

    def __init__(self, point: Array, limit: float) -> None:
        import highspy

        self._optimal = highspy.HighsModelStatus.kOptimal
        self._inf = highspy.kHighsInf
        n = len(point)
        self._n = n
        self._rows = np.exp2(-np.round(np.log2(point)))
        self._load = float(np.exp2(-np.round(np.log2(max(limit, 1e-3)))))
        self._highs = highs_with(
            SHARP | {"presolve": "off", "simplex_scale_strategy": 0}
        )
        lower = np.append(point * self._rows, -self._inf)
        upper = np.append(point * self._rows, limit * self._load)
        none = np.zeros(n + 1, np.int32)
        self._highs.addRows(n + 1, lower, upper, 0, none, [], [])
        self._scale = np.zeros(0)

    def add(self, points: Points, costs: Array, loads: Array) -> None:
        """Append columns, each scaled by a power of two so that its largest entry is about one."""
        dense = points.toarray() * self._rows
        entries = np.hstack([dense, (loads * self._load)[:, None]])
        scale = np.exp2(-np.round(np.log2(np.abs(entries).max(axis=1))))
        entries *= scale[:, None]
        owner, index = np.nonzero(entries)
        starts = np.searchsorted(owner, np.arange(len(entries))).astype(np.int32)
        self._highs.addCols(
            len(entries),
            costs * scale,
            np.zeros(len(entries)),
            np.full(len(entries), self._inf),
            len(index),
            starts,
            index.astype(np.int32),
            entries[owner, index],
        )
        self._scale = np.concatenate([self._scale, scale])

    def solve(self, seconds: float) -> _Solution | None:
        """Go on from the last basis, once more from nothing where that fails; None if both fail."""
        highs = self._highs
        for _ in range(2):
            limit = highs.getRunTime() + max(seconds, 0.1)
            highs.setOptionValue("time_limit", limit)
            highs.run()
            if highs.getModelStatus() == self._optimal:
                answer = highs.getSolution()
                weights = np.maximum(np.array(answer.col_value), 0.0) * self._scale
                dual = np.array(answer.row_dual)
                prices = dual[: self._n] * self._rows
                return _Solution(weights, prices, max(0.0, -dual[-1] * self._load))
            highs.clearSolver()
        return None


# ---------------------------------------------------------------------------- the search

MOST_FIRST_PAIRS = 6000
"""Pairs of symbols with which the master begins at most, chosen at random where there are more."""

LEAST_SHARE = 1e-6
"""Pairs in which one symbol has less are left to the unit vectors."""

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


@dataclass(frozen=True)
class _Goal:
    """A budget of leakage, or else the share of H(X) to be kept."""

    budget: float | None
    keep: float | None


def _search(
    problem: _Problem,
    goal: _Goal,
    tolerance: float,
    time_limit: float,
    start: Points | None,
    progress: Callable[[Progress], None] | None,
) -> AverageOptimum:
    """Run one search; see `best_channel_on_average`."""
    if not (math.isfinite(tolerance) and tolerance > 0.0):
        raise InvalidOption(f"tolerance ({tolerance}) must be a positive number")
    if not time_limit > 0.0:
        raise InvalidOption(f"time_limit ({time_limit}) must be positive")
    run = _Run(problem, goal, tolerance, time_limit, progress)
    run.add_first(start)
    return run.run()


class _Run:
    """Columns, tangents, and the best channel and bound of one run."""

    def __init__(
        self,
        problem: _Problem,
        goal: _Goal,
        tolerance: float,
        time_limit: float,
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self._problem = problem
        self._tolerance = tolerance
        self._started = time.monotonic()
        self._end = self._started + time_limit
        self._progress = progress
        self._maximise = goal.budget is not None
        entropy = problem.entropy
        # What is known about H(X), rounded towards weaker bounds.
        error = FEW_ULP * (entropy + len(problem.point) * float(problem.point.max()))
        self._entropy = entropy
        self._highest = entropy + error
        if goal.budget is not None:
            self._limit = goal.budget
        else:
            assert goal.keep is not None
            self._limit = (1.0 - goal.keep) * self._highest
        self._master = _Master(problem.point, self._limit * (1.0 - SHRUNK))
        self._tangents = _Tangents(problem)
        self._kernel: _LeakageSearch | None = None
        self._pairs: _PairSearch | None = None
        if problem.has_pairs:
            self._pairs = _PairSearch(problem)
        self._points = Points.from_dense(problem.point)
        self._entropies = np.zeros(0)
        self._leaks = np.zeros(0)
        self._weights = np.ones(1)
        self._value = -math.inf if self._maximise else math.inf
        self._bound = self._highest if self._maximise else 0.0
        self._prices = np.zeros(len(problem.point))
        self._multiplier = 0.0
        self._rounds = 0
        self._nodes = 0
        self._turn = 0
        self._idle = 0

    # ----------------------------------------------------------------- columns

    def add_first(self, start: Points | None) -> None:
        """P(x) itself, unit vectors, and what the caller knows."""
        problem = self._problem
        units = Points.units(np.arange(len(problem.point)), len(problem.point))
        parts = [Points.from_dense(problem.point), problem.members(units)]
        parts.append(problem.members(self._quiet_pairs()))
        if start is not None:
            parts.append(problem.members(start))
        if problem.inner is not None:
            parts.append(self._informative())
        first = Points.concatenate(parts)
        self._points = first.take(np.arange(0))
        self._append(first)

    def _quiet_pairs(self) -> Points:
        """Pairs of symbols, mixed so that their lifts come nearest to 1 in mean square."""
        first, second = np.triu_indices(len(self._problem.point), 1)
        if len(first) > MOST_FIRST_PAIRS:
            random = np.random.default_rng(0)
            chosen = random.choice(len(first), MOST_FIRST_PAIRS, replace=False)
            first = first[chosen]
            second = second[chosen]
        weight = self._problem.secrets[:, None]
        start = self._problem.matrix[:, first]
        way = self._problem.matrix[:, second] - start
        length = (weight * way**2).sum(axis=0)
        along = (weight * (1.0 - start) * way).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = along / length
        proper = (share > LEAST_SHARE) & (share < 1.0 - LEAST_SHARE)
        mixed = share[proper]
        indices = np.column_stack([first[proper], second[proper]]).ravel()
        data = np.column_stack([1.0 - mixed, mixed]).ravel()
        sizes = np.full(len(mixed), 2)
        return Points.of_sizes(
            sizes, indices.astype(np.int32), data, len(self._problem.point)
        )

    def _informative(self) -> Points:
        """Outputs of the channel that keeps most under the polytope alone."""
        # Only these columns need the envelope, which loads vertex enumeration.
        from solvers.envelope import lower_envelope

        assert self._problem.inner is not None
        envelope = lower_envelope(
            self._problem.inner,
            self._problem.point,
            gap=1e-3,
            time_limit=0.3 * (self._end - time.monotonic()),
        )
        return envelope.points

    def _append(self, points: Points) -> None:
        entropies = points.entropies()
        leaks = self._problem.leakages(points)
        if self._maximise:
            self._master.add(points, entropies, leaks)
        else:
            self._master.add(points, leaks, entropies)
        self._points = Points.concatenate([self._points, points])
        self._entropies = np.concatenate([self._entropies, entropies])
        self._leaks = np.concatenate([self._leaks, leaks])

    def _add_gaining(self, points: Points, prices: Array, multiplier: float) -> int:
        """Add the columns that gain at the master's prices; tangents where all of them are."""
        if not len(points):
            return 0
        found = points
        if self._pairs is None:
            points = self._problem.polished(found, prices, multiplier)
        reduced = points.entropies() + multiplier * self._problem.leakages(points)
        reduced = reduced - points.dot(prices)
        cheapest = np.argsort(reduced, kind="stable")[: max(MOST_COLUMNS, len(prices))]
        gaining = cheapest[reduced[cheapest] < -COLUMN_SHARE * self._aim]
        if len(gaining):
            self._append(points.take(gaining))
        room = TANGENT_SHARE * self._aim / max(multiplier, LEAST_MULTIPLIER)
        if self._pairs is not None:
            return len(gaining)
        touched = self._tangents.touch(points.take(cheapest), room)
        if not len(gaining):
            # Where they were found, too: or else the search would find them there again.
            touched += self._tangents.touch(found.take(cheapest), room)
        if touched:
            self._kernel = None
        return len(gaining)

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

    def _price(self, solution: _Solution) -> None:
        """Local searches at the master's prices, and trees once these find little."""
        prices = solution.prices
        multiplier = solution.multiplier
        if not self._maximise:
            # The master's multiplier is leakage per nat: supports count nats per leakage.
            multiplier = 1.0 / max(multiplier, LEAST_MULTIPLIER)
            prices = prices * multiplier
        self._aim = self._tolerance * (1.0 if self._maximise else multiplier)
        self._rounds += 1
        added = 0
        # All pairs are priced at once: there is nothing for local searches to find.
        for _ in MIXES if self._pairs is None else ():
            mix = MIXES[self._turn % len(MIXES)]
            points = self._locally(prices, multiplier, mix)
            added += self._add_gaining(points, prices, multiplier)
            if added >= ENOUGH or self._left() <= 0.0:
                break
            self._turn += 1
        if added >= ENOUGH or self._left() <= 0.0:
            return
        before = self._bound
        tangents = self._kernel
        added += self._by_tree(prices, multiplier)
        changed = added > 0 or self._bound != before or self._kernel is not tangents
        self._idle = 0 if changed else self._idle + 1

    def _searcher(self, multiplier: float) -> _LeakageSearch | _PairSearch:
        if self._pairs is not None:
            self._pairs.charge(multiplier)
            return self._pairs
        if self._kernel is None:
            self._kernel = _LeakageSearch(self._problem, self._tangents)
        self._kernel.charge(multiplier)
        return self._kernel

    def _locally(self, prices: Array, multiplier: float, mix: float) -> Points:
        kernel = self._searcher(multiplier)
        assert isinstance(kernel, _LeakageSearch)
        result = kernel.run(
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

    def _by_tree(self, prices: Array, multiplier: float) -> int:
        """Price by branch and bound: at smoothed prices, or the master's if these find nothing."""
        trials = [(prices, multiplier)]
        if self._multiplier > 0.0 and self._rounds > 1:
            smooth = SMOOTHING * self._prices + (1.0 - SMOOTHING) * prices
            charge = SMOOTHING * self._multiplier + (1.0 - SMOOTHING) * multiplier
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
            added += self._add_gaining(result.points, prices, multiplier)
            if added:
                break
        return added

    def _learn(self, prices: Array, multiplier: float, minimum: float) -> None:
        """Keep the support if it proves more than the others."""
        support = envelope_bound(prices, self._problem.point, minimum)
        if not math.isfinite(support):
            return
        if self._maximise:
            least = support - multiplier * self._limit
            least -= FEW_ULP * (abs(support) + multiplier * self._limit)
            bound = self._highest - least
            better = bound < self._bound
        else:
            # The least entropy that a channel must reach is what `keep` asks of the true H(X).
            excess = support - self._limit
            excess -= FEW_ULP * (abs(support) + self._limit)
            bound = excess / multiplier * (1.0 - FEW_ULP)
            better = bound > self._bound
        if better:
            self._bound = bound
            self._prices = prices
            self._multiplier = multiplier

    # ------------------------------------------------------------------ answers

    def _solve(self) -> _Solution | None:
        """The master; its weights are kept where they are better."""
        solution = self._master.solve(max(self._left(), 0.1))
        if solution is None:
            return None
        entropy = math.fsum((solution.weights * self._entropies).tolist())
        leakage = math.fsum((solution.weights * self._leaks).tolist())
        value = leakage
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
        return abs(self._value - self._bound)

    def _left(self) -> float:
        return self._end - time.monotonic()

    def _report(self) -> None:
        if self._progress is None:
            return
        self._progress(
            Progress(
                self._value, self._bound, self._rounds, len(self._points), self._nodes
            )
        )

    def _result(self, status: EnvelopeStatus) -> AverageOptimum:
        if not math.isfinite(self._value):
            if not self._maximise and self._problem.inner is not None:
                raise EmptyPolytope(
                    "no channel in the polytope that was found keeps so much information"
                )
            raise BackendFailure("HiGHS failed on the master program of the averages")
        used = np.flatnonzero(self._weights > 0.0)
        weights = self._weights[used]
        entropy = math.fsum((weights * self._entropies[used]).tolist())
        leakage = math.fsum((weights * self._leaks[used]).tolist())
        return AverageOptimum(
            status=status,
            weights=weights,
            points=self._points.take(used),
            information=self._entropy - entropy,
            leakage=leakage,
            value=self._value,
            bound=self._bound,
            multiplier=self._multiplier,
            prices=self._prices,
            rounds=self._rounds,
            columns=len(self._points),
            nodes=self._nodes,
            seconds=time.monotonic() - self._started,
        )
