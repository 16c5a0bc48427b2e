"""Methods for `Assignment` problems: the simplex method, or an interior point method and then it.

The problem (`solvers.assignment.assignment`) is the linear program

    minimise  sum_xy c(x, y) q(x, y)   over q >= 0 with  sum_y q(x, y) = p_x,

where every column q(., y) is a multiple of a member of a polytope. So n masses have n^2 variables,
the *pairs* (x, y): what of the mass p_x goes to column y. `assign` chooses the method:

1. Up to `SMALL` pairs the simplex method finds an optimal vertex at once (`simplex`).
2. Beyond, the interior point method shows which pairs matter (`_PairGeneration`). Up to `DENSE`
   masses it has all pairs. Of more it begins with the cheapest ones of every column. Each solve
   gives multipliers, hence a reduced cost E(x, y) of every pair and a bound for all of them
   (`solvers.assignment.assignment`). Pairs cheaper than the cheapest one so far in their row join,
   until there are none or cost and bound meet.
   These rounds are not those of `solvers.results.Rounds`, which solve a master to its optimum and
   then look at prices: here every iterate of the interior point proves a bound. And the goal at
   which the iterates stop changes from round to round, so the solve over all pairs ends the search
   whatever its gap.
3. The simplex method finds a vertex among the pairs to which the last solution gives mass. It has
   fewer positive entries, and no error of an interior point.

For example, 1,000 masses have 1,000,000 pairs. The first solve has some 40,000 of them. It ends at
a gap of a tenth of the spread (the cost of the trivial solution, `Assignment.spread`), because only
its multipliers are used.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from solvers.assignment.assignment import (
    LEAST_GAP,
    NONE,
    SUPPORT,
    Assigned,
    Assignment,
    Multipliers,
    lower_bound,
    reduced_costs,
)
from solvers.assignment.interior import InteriorPoint
from solvers.assignment.simplex import vertex
from solvers.errors import BackendFailure, EmptyPolytope
from solvers.pace import end_of, one_thread
from solvers.points import Array

SMALL = 3000
"""Variables up to which the simplex method is fastest; beyond, an interior point shows which of
them matter."""

MOST_CANDIDATES = 30_000
"""Candidates up to which the vertex is computed by the simplex method."""

MISSED = 1e-7
"""Largest error of the sums and rows of an iterate, relative to the masses, that counts as an
assignment."""

ROUGH = 1e-3
"""Largest such error of an iterate that shows which pairs matter."""

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
"""Gap of the first round over some pairs, as a share of the spread: only its prices are used."""

GAP_FACTOR = 5.0
"""Factor by which the gap becomes smaller from round to round."""


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
    problem.check()
    end = end_of(time_limit)
    if proof is None:
        proof = problem
    # In units of the cost; doubles prove no smaller share than `LEAST_GAP`.
    aim = max(gap, LEAST_GAP) * problem.spread()
    if method == "simplex" or (method == "auto" and problem.open.sum() <= SMALL):
        return vertex(problem, proof, problem.open, aim=aim, end=end)
    search = _PairGeneration(problem, proof, aim, end, progress)
    support = search.run()
    best = search.best
    bound = search.bound
    # A vertex near the interior solution is sparser, and exact where that is rough.
    mask = (support > SUPPORT) & problem.open
    # Floors are on the diagonal, so its pairs are variables in any case.
    np.fill_diagonal(mask, np.diagonal(problem.open))
    if method == "auto" and mask.sum() <= MOST_CANDIDATES and time.process_time() < end:
        # Where this fails, the interior solution is returned, if there is one.
        with suppress(BackendFailure):
            basic = vertex(problem, proof, mask, aim=aim, end=end, bound=bound)
            if best is None or basic.cost - basic.bound <= max(aim, best.cost - bound):
                return replace(basic, method="interior point and simplex")
    if best is None:
        raise BackendFailure("the interior point method found no assignment in time")
    return replace(best, bound=bound)


class _PairGeneration:
    """The best assignment by the interior point method, over more and more pairs (x, y).

    Multipliers from the central path need few rounds, for they change little from one to the next.
    `best` and `bound` hold the assignment and the proven bound at any moment.
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
            # Columns that tell nothing are an assignment before anything is computed.
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
            if all_pairs or time.process_time() >= self._end or self._is_closed():
                return support
            # A pair gains if it is cheaper than the cheapest one that its row has so far.
            gains = reduced - np.where(pairs, reduced, np.inf).min(axis=1)[:, None]
            if not reached:
                # Prices of an unfinished solve are no guide: add random pairs.
                gains = -self._random.random(gains.shape)
            outside = problem.open & ~pairs & (gains < 0.0)
            if goal == self._closed and not outside.any():
                return support
            of_columns = _least(gains, outside, NEW)
            of_rows = _least(gains.T, outside.T, NEW_OF_ROW).T
            pairs = pairs | of_columns | of_rows
            # Early rounds need only rough prices, so the goal is sharpened from round to round.
            goal = max(self._closed, goal / GAP_FACTOR)

    def _is_closed(self) -> bool:
        return self.best is not None and self.best.cost - self.bound <= self._closed

    def _first_pairs(self) -> NDArray[np.bool_]:
        """The cheapest and some random pairs of each column, the diagonal, some whole columns."""
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

    @one_thread(for_scipy=True)
    def _solve(
        self, pairs: NDArray[np.bool_], all_pairs: bool, goal: float
    ) -> tuple[Array, Array, bool]:
        """Iterate over some pairs.

        Returns the last shares, the last reduced costs, and whether the goal was reached.
        """
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
            # Over all pairs the sums need not be met: a vertex is computed from the support.
            is_usable = all_pairs or missed <= ROUGH
            reached = is_usable and abs(cost - lower) <= goal
            # A bound above the dearest assignment: these pairs alone allow none.
            is_impossible = lower > self._worst
            if reached or is_impossible or time.process_time() >= self._end:
                break
        return support, reduced, reached

    def _keep(self, support: Array, multipliers: Multipliers, missed: float) -> None:
        """Keep an iterate that is the best assignment so far; pulled inside where possible."""
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
    """Shares mixed with columns that are multiples of p, until all columns are members.

    With the largest excess e of a column and the excess -r of p, both convex in the column, the
    share e / (e + r) of p is enough: (1 - share) e - share r = 0.
    """
    p = problem.masses
    if not problem.keep:
        # Columns with a trace of mass may lie far outside; emptied, they restrict nothing.
        shares = np.where(p @ shares > SUPPORT * p, shares, 0.0)
        shares = np.where(shares.any(axis=1, keepdims=True), shares, p)
        shares = shares / shares.sum(axis=1)[:, None]
    masses = p @ shares
    used = masses > 0.0
    columns = (shares[:, used] * p[:, None] / masses[used]).T
    worst = max(0.0, float(problem.columns.excess(columns).max()))
    room = -float(problem.columns.excess(p)[0])
    share = 0.0
    if worst > 0.0:
        # Without room around p only its own multiples are members.
        share = 1.0
        if room > 0.0:
            share = worst / (worst + room)
    return (1.0 - share) * shares + share * masses


def _least(values: Array, among: NDArray[np.bool_], count: int) -> NDArray[np.bool_]:
    """Mask of the `count` least values of each column, of those that are in `among`."""
    mask = np.zeros_like(among)
    least = np.argpartition(np.where(among, values, np.inf), count, axis=0)[:count]
    np.put_along_axis(mask, least, True, axis=0)
    return mask & among
