"""Least-cost assignment of masses to columns, each column a multiple of a member of a polytope.

    minimise  sum_xy c(x, y) q(x, y)   over q >= 0 with  sum_y q(x, y) = p_x,

where for every column y the vector q(., y) is its mass m_y times a member of the polytope; where
asked for, m_y = p_y, q(x, x) >= floor_x p_x, and q(x, y) = 0 for pairs that are not allowed. A
linear program in n^2 variables.

*Bound.* Let nu >= 0 be multipliers of the one-sided rows t.v + a.r >= 0 of the polytope (written
for unit mass), f any prices of the column masses (f = 0 where these are free), and E(x, y) = c(x,
y) - f_y - sum_i nu_iy t_i(x) + sum_k min(0, -(a' nu_y)_k) top_k, with top_k >= r_k. Every feasible
q costs at least

    sum_x p_x (floor_x E(x, x) + (1 - floor_x) min_y E(x, y)) + sum_y f_y p_y,

whatever nu and f are: the rows and the masses contribute nothing positive, and row x of q spreads
p_x over the columns. It is evaluated with its own rounding subtracted, so a solver's duals need not
be feasible, nor precise.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from solvers.errors import BackendFailure, EmptyPolytope, InvalidPolytope
from solvers.points import Array
from solvers.polytope import Polytope

NONE = "no assignment keeps to the polytope, the floors and the pairs that are allowed"

UNIT = 2.0**-53
"""Largest relative error of one floating-point operation."""

SMALL = 3000
"""Variables up to which the simplex method is fastest; beyond, an interior point says which of them
matter."""

SUPPORT = 1e-7
"""Share of p_x from which an entry of an interior solution is a candidate for the vertex."""

MOST_CANDIDATES = 30_000
"""Candidates up to which the vertex is computed by the simplex method."""

MISSED = 1e-7
"""Largest error of the sums and rows of an iterate, relative to the masses, that counts as an
assignment."""

ROUGH = 1e-3
"""Largest such error of an iterate that shows which pairs matter."""

LEAST_GAP = 1e-9
"""Gap, as a share of the spread, below which double precision proves nothing more."""

INTERIOR_GAP = 1e-6
"""Gap, as a share of the spread, from which the support of an interior solution is that of a
vertex."""

DENSE = 300
"""Masses up to which the interior point method begins with all pairs."""

FIRST = 20
"""Beyond `DENSE`: cheapest pairs of each column to begin with, and as many random ones."""

WHOLE = 3
"""Beyond `DENSE`: columns of the largest masses that begin with all pairs, so that every row has
somewhere to go."""

NEW = 20
"""Pairs of each column that join in a round."""

NEW_OF_ROW = 3
"""Pairs of each row that join in a round."""

FIRST_GAP = 0.1
"""Gap of the first round over some pairs, as a share of the spread: it is about prices alone."""

GAP_FACTOR = 5.0
"""What the gap of a round is divided by in the next one."""


@dataclass(frozen=True, eq=False)
class Assignment:
    """The problem above.

    Parameters
    ----------
    cost : (n, n) array
        Of one unit of mass of x in column y.
    masses : (n,) array
        p, positive, with sum 1; it is a member of the polytope.
    columns : Polytope
        Over n coordinates.
    keep : bool
        Whether column y has the mass p_y.
    floor : (n,) array, optional
        Least share of each mass in its own column.
    allowed : (n, n) array of bool, optional
    """

    cost: Array
    masses: Array
    columns: Polytope
    keep: bool = False
    floor: Array | None = None
    allowed: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        n = len(self.masses)
        if self.cost.shape != (n, n) or self.columns.n != n:
            raise InvalidPolytope(
                f"cost must be {n} x {n}, and the polytope have {n} coordinates"
            )
        if not np.isfinite(self.cost).all():
            raise InvalidPolytope(
                "cost contains NaN or an infinity; forbid pairs with `allowed`"
            )

    @property
    def n(self) -> int:
        """Number of masses and of columns."""
        return len(self.masses)

    @cached_property
    def floors(self) -> Array:
        """`floor`, or zeros."""
        if self.floor is None:
            return np.zeros(self.n)
        return self.floor

    @cached_property
    def open(self) -> NDArray[np.bool_]:
        """`allowed`, or everything."""
        if self.allowed is None:
            return np.ones((self.n, self.n), dtype=np.bool_)
        return self.allowed

    def check(self) -> None:
        """Raise EmptyPolytope where some mass has no place, or a floor in a place that is not
        allowed.
        """
        empty_column = self.keep and not self.open.any(axis=0).all()
        empty_row = not self.open.any(axis=1).all()
        closed_floor = (self.floors[~np.diagonal(self.open)] > 0.0).any()
        if empty_column or empty_row or closed_floor:
            raise EmptyPolytope(NONE)

    @property
    def is_free(self) -> bool:
        """Whether columns that are multiples of p are an assignment: no floors, and every pair is
        allowed.
        """
        return bool(self.open.all()) and not self.floors.any()

    @cached_property
    def sides(self) -> tuple[Array, Array, Array]:
        """The one-sided rows ``(sign row - offset) v + auxiliary r >= 0``: sign row (m, n), offset
        (m,), auxiliary.
        """
        rows, auxiliary, bounds = self.columns.one_sided
        return -rows, -bounds, -auxiliary

    def cost_of(self, shares: Array) -> float:
        """Of q(x, y) / p_x."""
        return math.fsum((self.masses * (shares * self.cost).sum(axis=1)).tolist())

    def spread(self) -> float:
        """Cost of columns that are all multiples of p: the unit in which gaps are meant."""
        return float(self.masses @ self.cost @ self.masses)


@dataclass(frozen=True, eq=False)
class Multipliers:
    """Those of the one-sided rows of all columns (m, n), of the masses (n,), and of rows of a
    single column (k,).

    All but those of the masses are not negative.
    """

    rows: Array
    masses: Array
    own: Array = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True, eq=False)
class Assigned:
    """`shares` (n, n) with rows that sum to 1: q(x, y) / p_x; its cost and a proven lower bound of
    all costs.
    """

    shares: Array
    cost: float
    bound: float
    multipliers: Multipliers
    method: str


def _mass_prices(problem: Assignment, multipliers: Multipliers) -> Array:
    """f of the module's text: zero where the masses of the columns are free."""
    if not problem.keep:
        return np.zeros(problem.n)
    return np.nan_to_num(multipliers.masses)


def reduced_costs(problem: Assignment, multipliers: Multipliers) -> Array:
    """E(x, y) of the module's text, each rounded downwards; (n, n)."""
    rows, offset, auxiliary = problem.sides
    finite = np.nan_to_num(multipliers.rows, nan=0.0, posinf=0.0, neginf=0.0)
    nu = np.maximum(finite, 0.0)
    f = _mass_prices(problem, multipliers)
    # Beside each value the sum of the moduli of its terms, of which rounding takes its share.
    level = f - offset @ nu
    size = np.abs(f) + np.abs(offset) @ nu
    if auxiliary.shape[1]:
        top = problem.columns.auxiliary_bounds
        terms = np.abs(auxiliary).T @ nu
        room = 4.0 * UNIT * (len(nu) + 4) * terms
        level = level + top @ np.maximum(auxiliary.T @ nu + room, 0.0)
        size += top @ terms
    reduced = problem.cost - rows.T @ nu - level
    # Sums of len(nu) + 8 terms, each of them a product of rounded numbers.
    error = 4.0 * UNIT * (len(nu) + 8)
    return reduced - error * (np.abs(problem.cost) + np.abs(rows).T @ nu + size)


def lower_bound(
    problem: Assignment, multipliers: Multipliers, reduced: Array | None = None
) -> float:
    """The bound of the module's text, rounded downwards; `reduced` are the `reduced_costs`, where
    computed before.
    """
    if reduced is None:
        reduced = reduced_costs(problem, multipliers)
    f = _mass_prices(problem, multipliers)
    at_floor = problem.floors * np.diagonal(reduced)
    cheapest = np.where(problem.open, reduced, np.inf).min(axis=1)
    above_floor = (1.0 - problem.floors) * cheapest
    parts = np.concatenate(
        [problem.masses * at_floor, problem.masses * above_floor, f * problem.masses]
    )
    error = 8.0 * UNIT * math.fsum(np.abs(parts))
    return math.nextafter(math.fsum(parts) - error, -math.inf)


def assign(
    problem: Assignment,
    *,
    proof: Assignment | None = None,
    gap: float = 1e-9,
    time_limit: float | None = None,
    method: str = "auto",
    progress: Callable[[float, float, int], None] | None = None,
) -> Assigned:
    """Solve the problem, any-time and with a proven bound.

    Parameters
    ----------
    problem : Assignment
    proof : Assignment, optional
        With the same rows and fewer restrictions: the bound holds for it.
    gap : float
        Stop when cost and bound differ by at most this share of `Assignment.spread`.
    time_limit : float, optional
        Seconds.
    method : {"auto", "simplex", "interior"}
    progress : callable, optional
        Called with cost, bound and number of steps so far.

    Raises
    ------
    EmptyPolytope
        If there is no such assignment.
    BackendFailure
        If the time was over, or the method failed, before one was found.
    """
    # The methods import this module, which describes their problem.
    from solvers.assignment_simplex import vertex

    problem.check()
    end = math.inf
    if time_limit is not None:
        end = time.monotonic() + time_limit
    proof = proof or problem
    aim = max(gap, LEAST_GAP) * problem.spread()
    if method == "simplex" or (method == "auto" and problem.open.sum() <= SMALL):
        return vertex(problem, proof, problem.open, aim=aim, end=end)
    search = _PairGeneration(problem, proof, aim, end, progress)
    support = search.run()
    best = search.best
    bound = search.bound
    # A vertex near the interior solution is sparser, and exact where that is rough.
    mask = (support > SUPPORT) & problem.open
    np.fill_diagonal(mask, np.diagonal(problem.open))
    if method == "auto" and mask.sum() <= MOST_CANDIDATES and time.monotonic() < end:
        # Without a vertex the interior solution is there, or there is none.
        with suppress(BackendFailure):
            basic = vertex(problem, proof, mask, aim=aim, end=end, bound=bound)
            if best is None or basic.cost - basic.bound <= max(aim, best.cost - bound):
                return replace(basic, method="interior point and simplex")
    if best is None:
        raise BackendFailure("the interior point method found no assignment in time")
    return replace(best, bound=bound)


class _PairGeneration:
    """The best assignment by the interior point method, over more and more pairs (x, y).

    Of many masses some pairs are taken for each column first. Their multipliers price all pairs,
    which is the bound, and those that would gain join in, until none does: multipliers of a central
    path need few rounds. `best` and `bound` hold the assignment and the proven bound at any moment.
    """

    def __init__(
        self,
        problem: Assignment,
        proof: Assignment,
        aim: float,
        end: float,
        progress: Callable[[float, float, int], None] | None,
    ) -> None:
        self.problem = problem
        self.bound = -math.inf
        self.best: Assigned | None = None
        self._proof = proof
        self._end = end
        self._progress = progress
        self._steps = 0
        self._closed = min(0.5 * aim, INTERIOR_GAP * problem.spread())
        # No assignment costs more: a bound above this proves that there is none.
        dearest = np.where(problem.open, problem.cost, -np.inf).max(axis=1)
        self._worst = float(problem.masses @ dearest)
        self._random = np.random.default_rng(0)
        if problem.is_free:
            none = Multipliers(0.0 * problem.sides[0], 0.0 * problem.masses)
            constant = np.tile(problem.masses, (problem.n, 1))
            self.best = Assigned(
                constant, problem.spread(), self.bound, none, "constant"
            )

    def run(self) -> Array:
        """Work until the gap is closed, no pair gains, or the time is over; the last shares."""
        problem = self.problem
        pairs = problem.open
        goal = self._closed
        if problem.n > DENSE:
            pairs = self._first_pairs()
            goal = max(self._closed, FIRST_GAP * problem.spread())
        while True:
            all_pairs = bool(pairs[problem.open].all())
            support, reduced, reached = self._solve(pairs, all_pairs, goal)
            if all_pairs or time.monotonic() >= self._end or self._is_closed():
                return support
            gains = reduced - np.where(pairs, reduced, np.inf).min(axis=1)[:, None]
            if not reached:
                # Prices of an unfinished solve tell nothing: more of all pairs.
                gains = -self._random.random(gains.shape)
            outside = problem.open & ~pairs & (gains < 0.0)
            if goal == self._closed and not outside.any():
                return support
            of_columns = _least(gains, outside, NEW)
            of_rows = _least(gains.T, outside.T, NEW_OF_ROW).T
            pairs = pairs | of_columns | of_rows
            goal = max(self._closed, goal / GAP_FACTOR)

    def _is_closed(self) -> bool:
        return self.best is not None and self.best.cost - self.bound <= self._closed

    def _first_pairs(self) -> NDArray[np.bool_]:
        """The cheapest and some random pairs of each column, the diagonal, and some whole
        columns.
        """
        problem = self.problem
        shape = problem.cost.shape
        # Equal costs are ordered at random, or all columns would take the same pairs.
        largest = np.abs(problem.cost).max()
        costs = problem.cost + 1e-9 * largest * self._random.random(shape)
        pairs = _least(costs, problem.open, FIRST)
        pairs |= _least(self._random.random(shape), problem.open, FIRST)
        pairs[:, np.argsort(-problem.masses)[:WHOLE]] = True
        diagonal = np.eye(problem.n, dtype=np.bool_)
        return (pairs | diagonal) & problem.open

    def _solve(
        self, pairs: NDArray[np.bool_], all_pairs: bool, goal: float
    ) -> tuple[Array, Array, bool]:
        """Iterates over some pairs: the last shares and reduced costs, and whether the goal was
        reached.
        """
        # The methods import this module, which describes their problem.
        from solvers.assignment_interior import InteriorPoint

        problem = self.problem
        support = problem.open.astype(np.float64)
        reduced = problem.cost
        reached = False
        relaxed = replace(self._proof, allowed=pairs)
        for iterate in InteriorPoint(replace(problem, allowed=pairs)).run():
            support, multipliers, missed = iterate
            self._steps += 1
            reduced = reduced_costs(self._proof, multipliers)
            cost = problem.cost_of(support)
            # Bounds for these pairs alone, and for all pairs.
            lower = lower_bound(relaxed, multipliers, reduced)
            proven = lower
            if not all_pairs:
                proven = lower_bound(self._proof, multipliers, reduced)
            self.bound = max(self.bound, proven)
            if self.bound > self._worst:
                raise EmptyPolytope(NONE)
            self._keep(support, multipliers, missed)
            # Sums lose digits before the gap is closed; a vertex has its own.
            reached = abs(cost - lower) <= goal and (all_pairs or missed <= ROUGH)
            if reached or lower > self._worst or time.monotonic() >= self._end:
                break
        return support, reduced, reached

    def _keep(self, support: Array, multipliers: Multipliers, missed: float) -> None:
        """Keep an iterate that is the best assignment so far, pulled into the polytope where that
        is free.
        """
        problem = self.problem
        inside = support
        if problem.is_free:
            inside = _pulled_in(problem, support)
        is_assignment = problem.is_free or missed <= MISSED
        cost = problem.cost_of(inside)
        if is_assignment and (self.best is None or cost < self.best.cost):
            self.best = Assigned(
                inside, cost, self.bound, multipliers, "interior point"
            )
        if self._progress is not None and self.best is not None:
            self._progress(self.best.cost, self.bound, self._steps)


def _pulled_in(problem: Assignment, shares: Array) -> Array:
    """Shares mixed with columns that are multiples of p, until their columns are members of the
    polytope.
    """
    p = problem.masses
    if not problem.keep:
        shares = np.where(p @ shares > SUPPORT * p, shares, 0.0)
        shares = np.where(shares.any(axis=1, keepdims=True), shares, p)
        shares = shares / shares.sum(axis=1)[:, None]
    masses = p @ shares
    used = masses > 0.0
    columns = (shares[:, used] * p[:, None] / masses[used]).T
    worst = max(0.0, float(problem.columns.excess(columns).max()))
    room = -float(problem.columns.excess(p)[0])
    # The excess is convex: mixed with this share of p it is at most zero.
    share = 0.0
    if worst > 0.0:
        share = 1.0
        if room > 0.0:
            share = worst / (worst + room)
    return (1.0 - share) * shares + share * masses


def _least(values: Array, among: NDArray[np.bool_], count: int) -> NDArray[np.bool_]:
    """The least values of each column, `count` of them, as far as they are `among` those that
    count.
    """
    mask = np.zeros_like(among)
    least = np.argpartition(np.where(among, values, np.inf), count, axis=0)[:count]
    np.put_along_axis(mask, least, True, axis=0)
    return mask & among
