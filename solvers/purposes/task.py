"""The channel that tells most about another column: least expected entropy of B v over a polytope.

    minimise sum_k w_k h(B v_k)   subject to   sum_k w_k v_k = p,  w >= 0,  v_k in Pi,

where column x of B is P(T | x) and h is the entropy. A master program over the columns so far gives
prices y; pricing gives columns v with h(B v) < y.v, and a lower bound m of h(B v) - y.v over Pi;
y.p + m bounds the program from below, and the search ends when that meets the master's value.
`TaskPricing` prices over listed vertices where these are few, by branch and bound else.

For example, if B has the columns (1, 0), (1, 0) and (0, 1), an output that mixes the first two
symbols costs nothing, and one that mixes the first and the last half and half costs log 2.

Invariants: every column is a member of the inner polytope; the bound holds for the relaxation.
Proofs: docs/explanation/purposes-theory.md, 'Tasks'.

*Pricing*: the posterior v of least h(B v) - y.v in a polytope, with a bound. Both classes have the
method `least`. `Listing` evaluates all vertices, for a concave cost has its minimum at one of them.
`Branching` searches the |T| coordinates z = B v by branch and bound, however many symbols v has:

1. On a box of z, each term -z log z lies above its chord, so the chords make a linear program in v,
   whose value bounds the box from below (`NodeProgram`).
2. The box of least bound is cut in two, where a term lies furthest above its chord.
3. The search ends when the least bound meets the cost of the best posterior.

For example, on the box [0, 1] the chord of -z log z is 0, and at z = 1/2 the term lies .35 above
it; on [1/4, 1/2] the chord is .347 at both ends, and the term at most .022 above it.

*The linear program of one box*, whose multipliers prove its bound:

    minimise  c.v + s.z   over   v in Pi,  sum v = 1,  B v - z = 0,  low <= z <= high,

where c are minus the prices and s the slopes of the chords. With multipliers u of the rows and the
reduced costs r = (c, s) - u M of their matrix M, every feasible point costs at least

    u.(sides of the rows) + min over the simplex of r.v + min over the boxes of r.z,

*for any u*: the minimum over simplex and boxes is taken here, so nothing rests on HiGHS's claim
that its u is optimal, and a positive value for the program without costs proves that it is empty.
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from solvers.enumeration import vertices
from solvers.envelope.column_pool import ColumnPool, PooledRounds, along_ways
from solvers.errors import BackendFailure, EmptyPolytope, OutOfTime, TooManyVertices
from solvers.points import Array, Points, entropy_terms
from solvers.programs import SHARP, HighsMaster, MasterStatus, highs_with
from solvers.results import Ended, EnvelopeStatus, Progress
from solvers.sets.polytope import Polytope, towards_units

# ------------------------------------------------------------------------------ pricing

NODES_A_ROUND = 2000
"""Boxes after which pricing is content with the columns so far, if they gain anything: new prices
are worth more than a proof for old ones."""

VERTEX_ERROR = 1e-12
"""Distance from a vertex within which doubles place it, beside the residual that is measured."""


class Listing:
    """min over the relaxation of h(B v) - prices.v, at its vertices; columns are the inner ones.

    Parameters
    ----------
    outer : Polytope
        The relaxation.
    task : (|T|, n) array
        B.
    listed, members : (k, n) arrays
        The vertices of the relaxation, and those of the inner polytope.
    """

    nodes = 0

    def __init__(
        self, outer: Polytope, task: Array, listed: Array, members: Array
    ) -> None:
        self._vertices = listed
        self._members = members
        self._member_costs = task_entropies(members, task)
        self._costs = task_entropies(listed, task)
        # Distance of a listed vertex from the true one.
        self._error = float(max(outer.residual(listed).max(), 0.0)) + VERTEX_ERROR
        self._terms = len(task)

    def least(
        self, prices: Array, tolerance: float, end: float, most: int
    ) -> tuple[float, Array]:
        """As `Branching.least`; listed vertices need neither a tolerance nor time."""
        reduced = self._costs - self._vertices @ prices
        error = self._error
        # Each of the |T| terms moves by at most the entropy of the error, as they are concave.
        slack = self._terms * float(entropy_terms(np.array([error])).sum())
        slack += float(np.abs(prices).max()) * error * len(prices)
        gains = self._member_costs - self._members @ prices
        best = np.argsort(gains, kind="stable")[:most]
        best = best[gains[best] < 0.0]
        return float(reduced.min()) - slack, self._members[best]


class Branching:
    """min over the relaxation of h(B v) - prices.v, by best-first branch and bound in z = B v.

    `nodes` counts the linear programs of all calls.
    """

    def __init__(self, inner: Polytope, outer: Polytope, task: Array) -> None:
        self._task = task
        self._program = NodeProgram(inner, outer, task)
        self.nodes = 0

    def least(
        self, prices: Array, tolerance: float, end: float, most: int
    ) -> tuple[float, Array]:
        """A proven lower bound of the minimum, and points of negative reduced cost; (k, n).

        The search stops when the bound is within `tolerance` of the least reduced cost that was
        found, or of zero, and at `end`.
        """
        size = len(self._task)
        root = self._node(prices, np.zeros(size), np.ones(size))
        if root is None:
            # An empty node proves everything; at the root it would be a failure of HiGHS.
            return -math.inf, np.zeros((0, len(prices)))
        # The serial number orders nodes of equal bounds, which cannot be compared themselves.
        queue: list[tuple[float, int, _Node]] = [(root.bound, 0, root)]
        order = itertools.count(1)
        gaining: list[tuple[float, Array]] = []
        best = 0.0
        bound = root.bound
        last = self.nodes + NODES_A_ROUND
        while queue:
            # The least bound of all open boxes bounds the minimum.
            bound, _, node = heapq.heappop(queue)
            if bound >= best - tolerance or time.process_time() >= end:
                break
            if self.nodes > last and best < -tolerance:
                break
            terms = entropy_terms(np.clip(self._task @ node.v, 0.0, 1.0))
            cost = float(terms.sum() - prices @ node.v)
            if cost < 0.0:
                gaining.append((cost, node.v))
                best = min(best, cost)
            for low, high in self._branches(node):
                child = self._node(prices, low, high)
                if child is None:
                    continue
                # A part of a box has at least the bound of the whole.
                tightened = _Node(low, high, max(child.bound, bound), child.v, child.z)
                heapq.heappush(queue, (tightened.bound, next(order), tightened))
        else:
            # All boxes were empty or closed: nothing is below the best point found.
            bound = best
        gaining.sort(key=lambda pair: pair[0])
        columns = [v for _, v in gaining[:most]]
        if not columns:
            return bound, np.zeros((0, len(prices)))
        return bound, np.array(columns)

    def _branches(self, node: _Node) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """Two boxes that cover the node's, cut where a term lies furthest above its chord."""
        terms = entropy_terms(np.clip(node.z, 0.0, 1.0))
        slope, intercept = _chords(node.low, node.high)
        error = terms - (slope * node.z + intercept)
        t = int(np.argmax(error))
        width = node.high[t] - node.low[t]
        # Near an end the cut would leave a box as wide as before.
        least = node.low[t] + 0.1 * width
        most = node.high[t] - 0.1 * width
        cut = float(np.clip(node.z[t], least, most))
        left_high = node.high.copy()
        left_high[t] = cut
        right_low = node.low.copy()
        right_low[t] = cut
        return (node.low, left_high), (right_low, node.high)

    def _node(self, prices: Array, low: Array, high: Array) -> _Node | None:
        """The program of a box; None where the box has no member."""
        self.nodes += 1
        slope, intercept = _chords(low, high)
        solution = self._program.solve(-prices, slope, low, high)
        if solution is None:
            return None
        bound, v, z = solution
        return _Node(low, high, bound + float(intercept.sum()), v, z)


@dataclass(frozen=True, eq=False)
class _Node:
    """A box of z, (|T|,), the minimiser v (n,) of its program and the bound that is proven."""

    low: Array
    high: Array
    bound: float
    v: Array
    z: Array


def task_entropies(points: Array, task: Array) -> Array:
    """Entropy of the task at each point, (k,), in nats."""
    return entropy_terms(np.clip(points @ task.T, 0.0, 1.0)).sum(axis=1)


def _chords(low: Array, high: Array) -> tuple[Array, Array]:
    """Slope and intercept of the chord of -z log z on each interval, rounded downwards."""
    at_low = entropy_terms(low)
    at_high = entropy_terms(high)
    width = high - low
    positive = width > 0.0
    slope = np.where(positive, (at_high - at_low) / np.where(positive, width, 1.0), 0.0)
    # Below both ends whatever the rounding of the slope: then below the concave term in between.
    intercept = np.minimum(at_low - slope * low, at_high - slope * high)
    size = np.abs(at_low) + np.abs(at_high) + np.abs(slope)
    return slope, intercept - MULTIPLIER_ERROR * size


MULTIPLIER_ERROR = 64.0 * np.finfo(np.float64).eps
"""Relative error of a bound that is summed from multipliers, of the sum of its terms' sizes."""

SMALLEST_ENTRY = 1e-11
"""Entries of a minimiser below this are HiGHS's tolerance and become zeros."""


class NodeProgram:
    """min costs.v + slope.z with v in the polytope, z = B v in a box; HiGHS, warm from box to box.

    Variables are v, the k auxiliary variables of the polytope, and z; rows are those of the
    polytope, sum v = 1, and B v - z = 0. HiGHS minimises over the inner polytope, so that its
    answers are columns; its multipliers are then charged with the sides of the outer one.
    """

    def __init__(self, inner: Polytope, outer: Polytope, task: Array) -> None:
        import highspy

        self._statuses = highspy.HighsModelStatus
        auxiliary = outer.auxiliary_columns
        size, n = task.shape
        k = auxiliary.shape[1]
        self._n = n
        self._k = k
        top = outer.auxiliary_bounds if k else np.zeros(0)
        matrix = np.block(
            [
                [outer.rows, auxiliary, np.zeros((outer.m, size))],
                [np.ones((1, n)), np.zeros((1, k + size))],
                [task, np.zeros((size, k)), -np.eye(size)],
            ]
        )
        self._matrix = matrix
        # Sides of the rows for the bound, of the outer polytope.
        self._lower = np.concatenate([outer.lower, [1.0], np.zeros(size)])
        self._upper = np.concatenate([outer.upper, [1.0], np.zeros(size)])
        self._top = top
        self._highs = highs_with({**SHARP, "presolve": "off"})
        columns = n + k + size
        inf = highspy.kHighsInf
        self._highs.addVars(
            columns,
            np.zeros(columns),
            np.concatenate([np.ones(n), top, np.ones(size)]),
        )
        # Sides of the rows for HiGHS, of the inner polytope; the matrix by rows, without zeros.
        row, column = np.nonzero(matrix)
        starts = np.searchsorted(row, np.arange(len(matrix))).astype(np.int32)
        below = np.concatenate([inner.lower, [1.0], np.zeros(size)])
        above = np.concatenate([inner.upper, [1.0], np.zeros(size)])
        self._highs.addRows(
            len(matrix),
            np.where(np.isfinite(below), below, -inf),
            np.where(np.isfinite(above), above, inf),
            len(row),
            starts,
            column.astype(np.int32),
            matrix[row, column],
        )
        self._every = np.arange(columns, dtype=np.int32)
        self._boxes = np.arange(n + k, columns, dtype=np.int32)

    def solve(
        self, costs: Array, slope: Array, low: Array, high: Array
    ) -> tuple[float, Array, Array] | None:
        """A lower bound, the minimiser v (n,) and its z; None where HiGHS finds no member."""
        highs = self._highs
        objective = np.concatenate([costs, np.zeros(self._k), slope])
        highs.changeColsCost(len(self._every), self._every, objective)
        highs.changeColsBounds(len(self._boxes), self._boxes, low, high)
        highs.run()
        status = highs.getModelStatus()
        if status == self._statuses.kInfeasible and self._is_proven_empty(low, high):
            return None
        solution = highs.getSolution()
        primal = np.array(solution.col_value, dtype=np.float64)
        dual = np.array(solution.row_dual, dtype=np.float64)
        if len(dual) != len(self._matrix) or len(primal) != len(self._every):
            # HiGHS has no answer. Multipliers of zero prove a poor bound, and the box is cut again.
            highs.clearSolver()
            dual = np.zeros(len(self._matrix))
            primal = np.concatenate(
                [np.full(self._n, 1.0 / self._n), np.zeros(self._k), 0.5 * (low + high)]
            )
        bound = self._safe_bound(objective, dual, low, high)
        # HiGHS's tolerance leaves traces of zeros and sums that are nearly 1.
        v = np.where(primal[: self._n] > SMALLEST_ENTRY, primal[: self._n], 0.0)
        v /= v.sum()
        z = np.clip(primal[self._n + self._k :], low, high)
        return bound, v, z

    def _is_proven_empty(self, low: Array, high: Array) -> bool:
        """Whether the ray that HiGHS gives proves that the box has no member."""
        _, has_ray, ray = self._highs.getDualRay()
        if not has_ray:
            return False
        ray = np.array(ray, dtype=np.float64)
        # The program without costs has the value 0 or is empty; a positive bound means empty.
        nothing = np.zeros(len(self._every))
        # Conventions differ on the sign of a ray; each sign that proves it is a proof.
        bounds = [self._safe_bound(nothing, sign * ray, low, high) for sign in (1, -1)]
        return max(bounds) > 0.0

    def _safe_bound(
        self, objective: Array, dual: Array, low: Array, high: Array
    ) -> float:
        """The value that these multipliers prove: valid for any, sharp for optimal ones."""
        dual = np.where(np.isfinite(dual), dual, 0.0)
        # A multiplier of the side that is free proves nothing and is left out.
        dual = np.where((dual > 0.0) & ~np.isfinite(self._lower), 0.0, dual)
        dual = np.where((dual < 0.0) & ~np.isfinite(self._upper), 0.0, dual)
        side = np.where(dual > 0.0, self._lower, self._upper)
        # Zero times an infinite side would be NaN.
        constant = np.where(dual != 0.0, dual * np.where(dual != 0.0, side, 0.0), 0.0)
        reduced = objective - dual @ self._matrix
        n = self._n
        k = self._k
        # Each variable at its cheapest: z in its interval, auxiliary ones in [0, top], and v at the
        # cheapest corner of the simplex.
        rest = reduced[n + k :]
        boxes = np.minimum(rest * low, rest * high)
        parts = np.concatenate(
            [constant, np.minimum(reduced[n : n + k], 0.0) * self._top, boxes]
        )
        least = float(reduced[:n].min())
        size = float(
            np.abs(objective).max()
            + (np.abs(dual) @ np.abs(self._matrix)).max()
            + np.abs(parts).sum()
        )
        return math.fsum(parts.tolist()) + least - MULTIPLIER_ERROR * size


# ------------------------------------------------------------------------------- search

PRICING_SHARE = 0.25
"""Share of the gap between master and bound that pricing may leave open."""

COLUMNS_A_ROUND = 50
"""Columns that one round of pricing adds at most, those of least reduced cost first."""

SAME_COLUMN = 1e-10
"""Columns nearer than this to each other are one."""

MOST_IDLE = 2
"""Rounds in a row without a new column, after which doubles prove nothing more."""

MOST_STILL = 400
"""Rounds in a row with new columns that gain nothing; real tables need 5 to 40 rounds in all."""

MOST_VERTICES = 30_000
"""Vertices up to which all are columns of one master program; with more, branching was faster."""

LISTING_SHARE = 0.2
"""Share of the remaining time that listing the vertices may take."""

HALVINGS = 52
"""Bisections of the way from the point to a unit vector."""

PULLED_IN = 2.0**-42
"""Relative distance from the boundary of a column that was moved into the inner polytope."""


@dataclass(frozen=True, eq=False)
class TaskEnvelope:
    """A decomposition of the point, its cost in nats, and what no decomposition can cost less than.

    Attributes
    ----------
    weights : (k,) array
    points : Points, (k, n)
    value, bound : float
        Expected entropy of the task given the output, and its proven lower bound.
    nodes : int
        Linear programs of the branch and bound.
    prices : (n,) array or None
        Those that prove the bound; None without a bound.
    """

    status: EnvelopeStatus
    weights: Array
    points: Points
    value: float
    bound: float
    rounds: int
    columns: int
    nodes: int
    prices: Array | None = None


def task_envelope(
    inner: Polytope,
    outer: Polytope,
    point: Array,
    task: Array,
    *,
    gap: float,
    end: float = math.inf,
    start: Array | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> TaskEnvelope:
    """The least expected entropy of ``task @ v`` over decompositions of a point.

    Parameters
    ----------
    inner, outer : Polytope
        The set of the columns, and the one that the bound is for; the same rows.
    point : (n,) array
    task : (|T|, n) array
        P(t | x); columns sum to 1.
    gap : float
        Nats between value and bound at which the search stops.
    end : float
        When to stop, on the clock of `time.process_time`.
    start : (k, n) array, optional
        Members of the inner polytope to begin with.

    Raises
    ------
    EmptyPolytope
        If the point itself is not in the inner polytope.
    BackendFailure
        If HiGHS fails on the master program.
    """
    inner.check_relaxation(outer)
    if inner.excess(point)[0] > 0.0:
        raise EmptyPolytope("the point is not a member of the polytope")
    listed = _listed(outer, end)
    members = None
    if listed is not None:
        members = _listed(inner, end)
    pricing: Listing | Branching
    if listed is None or members is None:
        pricing = Branching(inner, outer, task)
    else:
        pricing = Listing(outer, task, listed, members)
    search = _Search(point, _reach(inner, point), task, pricing, gap, end, progress)
    if start is not None and len(start):
        search.add(start)
    return search.result(search.run())


def best_members(point: Array, task: Array, members: Array) -> TaskEnvelope:
    """The least expected entropy over decompositions into some of the points (k, n).

    There is no bound: other points may do better.

    Raises
    ------
    BackendFailure
        If HiGHS fails, or the points do not decompose the point.
    """
    master = HighsMaster(point)
    master.add(Points.from_dense(members), task_entropies(members, task))
    solution = master.solve(math.inf)
    if not solution.is_optimal:
        raise BackendFailure("HiGHS failed on the master program of the task")
    used = solution.weights > 0.0
    return TaskEnvelope(
        status=EnvelopeStatus.OPTIMAL,
        weights=solution.weights[used],
        points=Points.from_dense(members[used]),
        value=solution.value,
        bound=-math.inf,
        rounds=1,
        columns=len(members),
        nodes=0,
    )


def _listed(polytope: Polytope, end: float) -> Array | None:
    """All vertices, (k, n); None where they are too many."""
    seconds = None
    if end < math.inf:
        seconds = max(0.0, LISTING_SHARE * (end - time.process_time()))
    try:
        listed = vertices(polytope, max_vertices=MOST_VERTICES, time_limit=seconds)
    except (TooManyVertices, OutOfTime, BackendFailure):
        return None
    return listed.points


def _reach(inner: Polytope, point: Array) -> Array:
    """Shares of the ways to the unit vectors, as far as the polytope reaches; (n,)."""
    reach = inner.reaches(point, HALVINGS)
    return np.where(reach == 1.0, 1.0, reach * (1.0 - PULLED_IN))


class _Search(PooledRounds):
    """The rounds of one run: its columns, their master program, and the pricing for further ones.

    `add` takes what the caller knows; then come `run`, and `result`, which is what it found.
    """

    most_fruitless = MOST_IDLE
    most_still = MOST_STILL

    def __init__(
        self,
        point: Array,
        reach: Array,
        task: Array,
        pricing: Listing | Branching,
        gap: float,
        end: float,
        progress: Callable[[Progress], None] | None,
    ) -> None:
        # P_X itself and one member towards each symbol decompose P_X: a value without any master.
        ways = towards_units(point, reach)
        columns = Points.from_dense(np.vstack([point, ways]))
        pool = ColumnPool(
            point,
            columns,
            along_ways(point, reach, len(columns)),
            HighsMaster(point),
            lambda columns: task_entropies(columns.toarray(), task),
        )
        super().__init__(pool, gap, end, progress)
        self._pricing = pricing

    @property
    def nodes(self) -> int:
        """Linear programs of the branch and bound so far."""
        return self._pricing.nodes

    def add(self, columns: Array) -> int:
        """Add the columns (k, n) that are new; returns how many."""
        known = self.pool.points.toarray()
        before = len(known)
        for column in columns:
            if np.abs(known - column).max(axis=1).min() > SAME_COLUMN:
                known = np.vstack([known, column])
        self.pool.append(Points.from_dense(known[before:]))
        return len(known) - before

    def solve(self) -> None:
        """The best decomposition into the columns so far, with its prices."""
        if self.pool.is_solved:
            return
        if self.seconds <= 0.0:
            raise Ended(EnvelopeStatus.TIME_LIMIT)
        solution = self.pool.master.solve(self.seconds)
        if solution.status is MasterStatus.TIME_LIMIT:
            raise Ended(EnvelopeStatus.TIME_LIMIT)
        if not self.pool.is_usable(solution):
            raise BackendFailure("HiGHS failed on the master program of the task")
        self.prices = solution.dual
        self.pool.accept(solution)

    def price(self) -> bool:
        """Columns that gain, and a bound, at the prices of the master."""
        # A sharp bound for these prices is of use only once the gap is nearly closed.
        sharp = PRICING_SHARE * (self.value - self.bound)
        tolerance = max(0.5 * self.aim, min(self.aim, sharp))
        minimum, candidates = self._pricing.least(
            self.prices, tolerance, self.end, COLUMNS_A_ROUND
        )
        self.prove(self.prices, minimum)
        return self.add(candidates) > 0

    def result(self, status: EnvelopeStatus) -> TaskEnvelope:
        """The best decomposition, and what is proven of it."""
        # Columns that came after the last solution have no weights.
        used = np.flatnonzero(self.pool.weights > 0.0)
        return TaskEnvelope(
            status=status,
            weights=self.pool.weights[used],
            points=self.pool.points.take(used),
            value=self.value,
            bound=self.bound,
            rounds=self.rounds,
            columns=self.columns,
            nodes=self.nodes,
            prices=self.dual,
        )
