"""The best channel for a purpose within a budget on one average leakage.

    minimise f(t, v)   over weights t >= 0 and posteriors v_k of a polytope
    subject to   sum_k t_k v_k = p,   sum_k t_k L(v_k) <= e,

with a convex leakage L >= 0 (`average_problem.Leakage`). The purpose is the entropy of a task, f =
sum_k t_k h(B v_k), or the variance of queries, f = tr(G M^-1) with M = sum_k t_k u_k u_k^T and u =
v / p (`solvers.purposes.task`, `solvers.purposes.queries`).

*Relaxation.* L lies above its tangents b_1, .., b_m. Where b_i is the largest of them, a cell of
the polytope, their maximum is linear; there a posterior may be split into vertices of the cell with
the same mean of that maximum. Splitting lowers the entropy and raises M. So the vertices of all
cells, with the largest tangent there as their load, are posteriors enough for a program whose
optimum is no larger than that above. Tangents are added at the vertices in use, until the loads of
these are true.

*Bounds.* For a task the program over listed vertices is a linear one, whose duals y and beta >= 0
prove y.p - beta e, as of any column generation. For queries let s_k = u_k^T M^-1 G M^-1 u_k. If
y.v_k + beta l_k >= s_k for all vertices with loads l_k, no t has f(t) < f^2 / (y.p + beta e): 1/f
is concave and homogeneous of degree one in t with the gradient s / f^2, hence 1/f(t') <= sum_k t'_k
s_k / f^2 <= (y.p + beta e) / f^2. The linear program max s.t has such y and beta as its duals; its
optimum is also the direction of the next step (Frank and Wolfe 1956).

For example, let p = (1/2, 1/2) and L(v) = |v_0 - v_1| with e = 1/2. The cells are v_0 >= v_1 and
its opposite, their vertices (1, 0), (0, 1) with the load 1 and (1/2, 1/2) with the load 0. Half of
the weight may be on the first two.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from solvers.average.assignment_convex import Total
from solvers.average.goals import Master, Solution
from solvers.average.problem import FEW_ULP
from solvers.enumeration import vertices
from solvers.errors import (
    BackendFailure,
    EmptyPolytope,
    OutOfTime,
    SolverError,
    TooManyVertices,
)
from solvers.pace import seconds_until
from solvers.points import Array, Points
from solvers.programs import HighsMaster
from solvers.purposes.task import task_entropies
from solvers.sets.polytope import Polytope, last_inside, towards_units

MOST_VERTICES = 20_000
"""Vertices of all cells up to which tangents are added."""

MOST_ROUNDS = 25
"""Rounds of adding tangents."""

MOST_STEPS = 60
"""Steps of Frank and Wolfe for the variance, each a linear program."""

TRUE = 1e-6
"""Share of the budget by which the load of a vertex in use may be below its leakage."""

SAME = 1e-9
"""Posteriors and tangents nearer than this to each other are one."""

HALVINGS = 50
"""Bisections: of ways to the unit vectors, and of a step."""

BOUND_ERROR = 1e-9
"""Relative error that is taken off a bound: doubles, and duals of HiGHS."""

LISTING_SHARE = 0.2
"""Share of the time that listing the vertices of one round may take."""

LEAST_WAY = 1e-6
"""Least share of the way to a unit vector of the first posteriors."""


@dataclass(frozen=True, eq=False)
class PurposeWithin:
    """Weights (k,) and posteriors (k, n), f at them, and what no channel can go below.

    `prices` (n,), `charge`, of the leakage, and `touched` (m, n), where the tangents below it touch
    it, are what proves the bound; of queries with `inverse`, the M^-1 of their weights.
    """

    weights: Array
    points: Array
    value: float
    bound: float
    prices: Array
    charge: float
    inverse: Array | None = None
    touched: Array | None = None


class Purpose(Protocol):
    """What is minimised over weights of listed posteriors with loads."""

    def best(
        self, point: Array, points: Array, loads: Array, most: float, end: float
    ) -> PurposeWithin:
        """The best weights with sum t v = point and loads.t <= most, and a bound for all."""
        ...


@dataclass(frozen=True, eq=False)
class TaskPurpose:
    """The entropy of a task given the output; `task` is P(t|x), (|T|, n)."""

    task: Array

    def best(
        self, point: Array, points: Array, loads: Array, most: float, end: float
    ) -> PurposeWithin:
        """As of `Purpose`: one linear program."""
        costs = task_entropies(points, self.task)
        solution = _solution(_program(point, points, costs, loads, most), end)
        value = math.fsum((solution.weights * costs).tolist())
        # Any prices prove a bound, once they are lowered until no column is cheaper.
        charge = float(solution.multipliers[0])
        reduced = costs - points @ solution.prices + charge * loads
        paid = float(solution.prices @ point) - charge * most
        bound = paid + min(float(reduced.min()), 0.0)
        bound -= BOUND_ERROR * (1.0 + abs(bound))
        return PurposeWithin(
            solution.weights, points, value, bound, solution.prices, charge
        )


@dataclass(frozen=True, eq=False)
class QueryPurpose:
    """tr(G M^-1) of queries with the products G, (n, n); `gap` is that of a search, as a share."""

    gram: Array
    gap: float

    def best(
        self, point: Array, points: Array, loads: Array, most: float, end: float
    ) -> PurposeWithin:
        """As of `Purpose`: steps of Frank and Wolfe from posteriors towards all unit vectors."""
        u = points / point
        weights = _towards_all(point, points, loads, most)
        value, inverse = self._value(u, weights)
        bound = -math.inf
        proof = (np.zeros(len(point)), 0.0, inverse)
        # The steps differ in their costs alone, so each goes on from the basis of the last.
        program = _program(point, points, np.zeros(len(points)), loads, most)
        for _ in range(MOST_STEPS):
            sandwich = inverse @ self.gram @ inverse
            gains = np.einsum("ki,ij,kj->k", u, sandwich, u, optimize=True)
            program.change_costs(-gains)
            solution = _solution(program, end)
            # The duals of the negated program, raised until they hold for every vertex.
            prices = -solution.prices
            charge = float(solution.multipliers[0])
            missing = gains - points @ prices - charge * loads
            raised = max(float(missing.max()), 0.0)
            paid = float(prices @ point) + charge * most + raised
            proven = value**2 / paid * (1.0 - BOUND_ERROR)
            if proven > bound:
                bound = proven
                proof = (prices, charge, inverse)
            if value - bound <= 0.5 * self.gap * value or time.process_time() >= end:
                break
            way = solution.weights - weights
            step = self._step(u, weights, way)
            weights = weights + step * way
            value, inverse = self._value(u, weights)
        weights = _with_few(point, points, loads, weights)
        value, _ = self._value(u, weights)
        return PurposeWithin(weights, points, value, bound, *proof)

    def _value(self, u: Array, weights: Array) -> tuple[float, Array]:
        """f and M^-1."""
        used = weights > 0.0
        information = (u[used].T * weights[used]) @ u[used]
        try:
            inverse = np.linalg.inv(information)
        except np.linalg.LinAlgError:
            raise BackendFailure(
                "the posteriors do not tell all symbols apart"
            ) from None
        inverse = 0.5 * (inverse + inverse.T)
        return float(np.sum(self.gram * inverse)), inverse

    def _step(self, u: Array, weights: Array, way: Array) -> float:
        """The step in [0, 1) of least f along the way; f is convex there."""
        low = 0.0
        high = 0.999
        golden = 0.5 * (math.sqrt(5.0) - 1.0)
        one = high - golden * (high - low)
        two = low + golden * (high - low)
        at_one = self._value(u, weights + one * way)[0]
        at_two = self._value(u, weights + two * way)[0]
        for _ in range(HALVINGS // 2):
            if at_one <= at_two:
                high, two, at_two = two, one, at_one
                one = high - golden * (high - low)
                at_one = self._value(u, weights + one * way)[0]
            else:
                low, one, at_one = one, two, at_two
                two = low + golden * (high - low)
                at_two = self._value(u, weights + two * way)[0]
        return 0.5 * (low + high)


def best_within(
    purpose: Purpose,
    total: Total,
    point: Array,
    inner: Polytope | None,
    outer: Polytope | None,
    *,
    is_proven: Callable[[float, float], bool],
    end: float = math.inf,
    shrunk: float = 0.0,
) -> PurposeWithin:
    """The best channel for a purpose within an average budget, with a proven bound.

    Parameters
    ----------
    purpose : Purpose
    total : Total
        The leakage and its budget.
    point : (n,) array
    inner, outer : Polytope or None
        The set of the posteriors and the one that the bound is for; None for all posteriors.
    is_proven : callable
        Whether a value is near enough to its bound.
    end : float
        A moment of `time.process_time`.
    shrunk : float
        By which share the solution stays below the budget; the bound is for the whole one.

    Raises
    ------
    SolverError
        If no channel was found.
    """
    n = len(point)
    tangents = [np.zeros(n)]
    touched = np.zeros((0, n))
    pool = np.vstack([point, _stars(point, inner, total)])
    best: PurposeWithin | None = None
    proof: PurposeWithin | None = None
    bound = -math.inf
    for _ in range(MOST_ROUNDS):
        try:
            listed = cell_vertices(tangents, outer, n, end)
            listed = np.vstack([listed, pool])
            loads = np.max(listed @ np.array(tangents).T, axis=1)
            relaxed = purpose.best(point, listed, loads, total.most, end)
            if proof is None or relaxed.bound > bound:
                bound, proof = relaxed.bound, replace(relaxed, touched=touched)
            used = listed[relaxed.weights > SAME]
        except SolverError:
            # Too many vertices, or no time: what was proven before counts.
            used = np.zeros((0, n))
        members = _members(used, point, inner)
        pool = _with_new(pool, members)
        leaks = total.leakage.of_lifts(pool @ total.matrix.T)
        found = purpose.best(point, pool, leaks, (1.0 - shrunk) * total.most, end)
        if best is None or found.value < best.value:
            best = found
        if is_proven(best.value, bound) or time.process_time() >= end or not len(used):
            break
        leaked = total.leakage.of_lifts(used @ total.matrix.T)
        known = np.max(used @ np.array(tangents).T, axis=1)
        before = len(tangents)
        for v in used[leaked > known + TRUE * total.most]:
            row = total.tangent(v)
            if np.abs(np.array(tangents) - row).max(axis=1).min() > SAME:
                tangents.append(row)
                touched = np.vstack([touched, v])
        if len(tangents) == before:
            break
    assert best is not None  # of the first round
    kept = best.weights > 0.0
    # Without a relaxation the prices of the channel itself are as good as any.
    return replace(
        proof or best,
        weights=best.weights[kept],
        points=best.points[kept],
        value=best.value,
        bound=bound,
    )


def _program(
    point: Array, points: Array, costs: Array, loads: Array, most: float
) -> Master:
    """The linear program over listed posteriors with one row of loads."""
    master = Master(point, np.array([most]))
    master.add(Points.from_dense(points), costs, loads[None, :])
    return master


def _solution(master: Master, end: float) -> Solution:
    """The solution of a program over listed posteriors."""
    seconds = 10.0
    if end < math.inf:
        seconds = max(end - time.process_time(), 0.1)
    solution = master.solve(seconds)
    if solution is None:
        raise BackendFailure("HiGHS failed on the program of listed posteriors")
    return solution


def cell_vertices(
    tangents: Sequence[Array],
    outer: Polytope | None,
    n: int,
    end: float,
    share: float = LISTING_SHARE,
) -> Array:
    """The vertices of all cells, in each of which one of the tangents is the largest; (k, n).

    The listing has this share of the time until `end`.
    """
    found = [np.eye(n)] if outer is None and len(tangents) == 1 else []
    seconds = None
    if end < math.inf:
        seconds = share * max(end - time.process_time(), 0.0)
    deadline = math.inf if seconds is None else time.process_time() + seconds
    total = 0
    for i, tangent in enumerate(tangents):
        rows = [tangent - other for j, other in enumerate(tangents) if j != i]
        cell = np.array(rows).reshape(-1, n)
        low = np.zeros(len(cell))
        high = np.full(len(cell), np.inf)
        if outer is not None:
            explicit = outer.explicit
            cell = np.vstack([cell, explicit.rows])
            low = np.append(low, explicit.lower)
            high = np.append(high, explicit.upper)
        if not len(cell):
            continue
        if time.process_time() >= deadline:
            raise OutOfTime("the cells were not listed in time")
        # A little wider, so that vertices on the border of cells are not lost to rounding.
        low = low - FEW_ULP * (1.0 + np.abs(cell).max(axis=1))
        try:
            listed = vertices(
                Polytope(cell, low, high),
                max_vertices=MOST_VERTICES,
                time_limit=seconds_until(deadline),
            ).points
        except EmptyPolytope:
            continue
        total += len(listed)
        if total > MOST_VERTICES:
            raise TooManyVertices("the cells have too many vertices")
        found.append(listed)
    if not found:
        raise BackendFailure("no cell has a vertex")
    return np.vstack(found)


def _stars(point: Array, inner: Polytope | None, total: Total) -> Array:
    """Posteriors from the point towards every unit vector, within the polytope and the budget."""

    def is_inside(shares: Array) -> NDArray[np.bool_]:
        trial = towards_units(point, shares)
        leakages = total.leakage.of_lifts(trial @ total.matrix.T)
        inside = leakages <= 0.5 * total.most
        if inner is not None:
            inside &= inner.excess(trial) <= 0.0
        return inside

    nothing = np.zeros(len(point))
    shares = last_inside(is_inside, nothing, np.ones(len(point)), HALVINGS)
    return towards_units(point, np.maximum(shares, LEAST_WAY))


def _members(points: Array, point: Array, inner: Polytope | None) -> Array:
    """Points pulled towards P_X until they are members of the inner polytope."""
    if inner is None or not len(points):
        return points
    ways = points - point
    whole = inner.excess(points) <= 0.0
    low = last_inside(
        lambda shares: inner.excess(point + shares[:, None] * ways) <= 0.0,
        np.zeros(len(points)),
        np.ones(len(points)),
        HALVINGS,
    )
    shares = np.where(whole, 1.0, low)
    return point + shares[:, None] * ways


def _with_new(pool: Array, points: Array) -> Array:
    """The pool with the points that are not in it."""
    for v in points:
        if np.abs(pool - v).max(axis=1).min() > SAME:
            pool = np.vstack([pool, v])
    return pool


def _towards_all(point: Array, points: Array, loads: Array, most: float) -> Array:
    """Weights with information about every symbol: of least load among those that tell something.

    Half of them tell as much as the budget allows, the other half begins at the first posteriors,
    which are those towards the unit vectors.
    """
    n = len(point)
    master = Master(point, np.array([most]))
    # Without the point itself, which tells nothing.
    distance = np.abs(points - point).max(axis=1)
    costs = -np.minimum(distance, 1.0)
    master.add(Points.from_dense(points), costs, loads[None, :])
    solution = master.solve(1.0)
    if solution is None:
        raise BackendFailure(
            "the posteriors do not decompose the point within the budget"
        )
    weights = 0.5 * solution.weights
    # The posteriors towards the unit vectors decompose the point with weights p_x / r_x.
    reach = np.full(len(points), np.inf)
    # On the way to a unit vector its entry is the only one that grows, whatever the point.
    place = (points / point).argmax(axis=1)
    ratio = (points - point) / (np.eye(n)[place] - point + 1e-300)
    for k in range(len(points)):
        x = int(place[k])
        ray = (1.0 - ratio[k, x]) * point
        ray[x] += ratio[k, x]
        if ratio[k, x] > 0.0 and np.abs(ray - points[k]).max() <= SAME:
            reach[k] = ratio[k, x]
    star = np.zeros(len(points))
    for x in range(n):
        places = np.flatnonzero((place == x) & np.isfinite(reach))
        if not len(places):
            raise BackendFailure("there is no posterior towards a symbol")
        k = int(places[np.argmin(loads[places])])
        star[k] = point[x] / reach[k]
    star /= star.sum()
    return weights + 0.5 * star


def _with_few(point: Array, points: Array, loads: Array, weights: Array) -> Array:
    """Weights with the same M and mean, and no larger load, of which few are positive."""
    used = np.flatnonzero(weights > 1e-12)
    chosen = points[used]
    n = len(point)
    u = chosen / point
    i, j = np.triu_indices(n)
    columns = np.hstack([chosen, u[:, i] * u[:, j]])
    target = weights[used] @ columns
    possible = target > 0.0
    kept = np.zeros_like(weights)
    kept[used] = weights[used]
    if len(used) <= columns.shape[1]:
        return kept
    master = HighsMaster(target[possible])
    master.add(Points.from_dense(columns[:, possible]), loads[used])
    solution = master.solve(5.0)
    if solution.is_optimal:
        kept[used] = solution.weights
    return kept
