"""Least-cost assignment of masses to columns, each column a multiple of a member of a polytope.

    minimise  sum_xy c(x, y) q(x, y)   over q >= 0 with  sum_y q(x, y) = p_x,

where for every column y the vector q(., y) is its mass m_y times a member of the polytope; where asked for, m_y = p_y,
q(x, x) >= floor_x p_x, and q(x, y) = 0 for pairs that are not allowed. A linear program in n^2 variables.

*Bound.* Let nu >= 0 be multipliers of the one-sided rows t.v + a.r >= 0 of the polytope (written for unit mass), f any
prices of the column masses (f = 0 where these are free), and E(x, y) = c(x, y) - f_y - sum_i nu_iy t_i(x) +
sum_k min(0, -(a' nu_y)_k) top_k, with top_k >= r_k. Every feasible q costs at least

    sum_x p_x (floor_x E(x, x) + (1 - floor_x) min_y E(x, y)) + sum_y f_y p_y,

whatever nu and f are: the rows and the masses contribute nothing positive, and row x of q spreads p_x over the columns.
It is evaluated with its own rounding subtracted, so a solver's duals need not be feasible, nor precise.
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
"""Variables up to which the simplex method is fastest; beyond, an interior point says which of them matter."""

SUPPORT, MOST_CANDIDATES = 1e-7, 30_000
"""Share of p_x from which an entry of an interior solution is a candidate for the vertex, and how many of them there
may be for it to be computed."""

MISSED, ROUGH = 1e-7, 1e-3
"""Largest error of the sums and rows of an iterate, relative to the masses, that counts as an assignment, and of one
that says which pairs matter."""

LEAST_GAP, INTERIOR_GAP = 1e-9, 1e-6
"""Gap, as a share of the spread, below which double precision proves nothing more, and from which the support of an
interior solution is that of a vertex."""

DENSE = 300
"""Masses up to which the interior point method begins with all pairs."""

FIRST, WHOLE, NEW, NEW_OF_ROW = 20, 3, 20, 3
"""Beyond: the cheapest pairs of each column to begin with, and as many random ones; columns (of the largest masses)
with all pairs, so that every row has somewhere to go; pairs that join in a round, for each column and each row."""

FIRST_GAP = 0.1
"""Gap of the first round, as a share of the spread, a fifth of it in each that follows: it is about prices alone."""


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
        return np.zeros(self.n) if self.floor is None else self.floor

    @cached_property
    def open(self) -> NDArray[np.bool_]:
        """`allowed`, or everything."""
        return (
            np.ones((self.n, self.n), dtype=np.bool_)
            if self.allowed is None
            else self.allowed
        )

    def check(self) -> None:
        """Raise EmptyPolytope where some mass has no place, or a floor in a place that is not allowed."""
        empty = self.keep and not self.open.any(axis=0).all()
        if (
            empty
            or not self.open.any(axis=1).all()
            or (self.floors[~np.diagonal(self.open)] > 0.0).any()
        ):
            raise EmptyPolytope(NONE)

    @cached_property
    def sides(self) -> tuple[Array, Array, Array]:
        """The one-sided rows ``(sign row - offset) v + auxiliary r >= 0``: sign row (m, n), offset (m,), auxiliary."""
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
    """Those of the one-sided rows of all columns (m, n), of the masses (n,), and of rows of a single column (k,).

    All but those of the masses are not negative.
    """

    rows: Array
    masses: Array
    own: Array = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True, eq=False)
class Assigned:
    """`shares` (n, n) with rows that sum to 1: q(x, y) / p_x; its cost and a proven lower bound of all costs."""

    shares: Array
    cost: float
    bound: float
    multipliers: Multipliers
    method: str


def reduced_costs(problem: Assignment, found: Multipliers) -> Array:
    """E(x, y) of the module's text, each rounded downwards; (n, n)."""
    rows, offset, auxiliary = problem.sides
    nu = np.maximum(np.nan_to_num(found.rows, nan=0.0, posinf=0.0, neginf=0.0), 0.0)
    f = np.nan_to_num(found.masses) if problem.keep else np.zeros(problem.n)
    level = f - offset @ nu
    size = np.abs(f) + np.abs(offset) @ nu
    if auxiliary.shape[1]:
        top = problem.columns.auxiliary_bounds
        room = 4.0 * UNIT * (len(nu) + 4) * (np.abs(auxiliary).T @ nu)
        level = level + top @ np.maximum(auxiliary.T @ nu + room, 0.0)
        size += top @ (np.abs(auxiliary).T @ nu)
    reduced = problem.cost - rows.T @ nu - level
    # Sums of len(nu) + 8 terms, each of them a product of rounded numbers.
    return reduced - 4.0 * UNIT * (len(nu) + 8) * (
        np.abs(problem.cost) + np.abs(rows).T @ nu + size
    )


def lower_bound(
    problem: Assignment, found: Multipliers, reduced: Array | None = None
) -> float:
    """The bound of the module's text, rounded downwards; with `reduced_costs` where these are known."""
    reduced = reduced_costs(problem, found) if reduced is None else reduced
    f = np.nan_to_num(found.masses) if problem.keep else np.zeros(problem.n)
    own = problem.floors * np.diagonal(reduced)
    least = (1.0 - problem.floors) * np.where(problem.open, reduced, np.inf).min(axis=1)
    parts = [*(problem.masses * own), *(problem.masses * least), *(f * problem.masses)]
    return math.nextafter(
        math.fsum(parts) - 8.0 * UNIT * math.fsum(map(abs, parts)), -math.inf
    )


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
    from solvers.assignment_simplex import vertex

    problem.check()
    end = math.inf if time_limit is None else time.monotonic() + time_limit
    proof = proof or problem
    aim = max(gap, LEAST_GAP) * problem.spread()
    if method == "simplex" or (method == "auto" and problem.open.sum() <= SMALL):
        return vertex(problem, proof, problem.open, aim=aim, end=end)
    best, bound, support = _by_columns(problem, proof, aim, end, progress)
    mask = (support > SUPPORT) & problem.open
    np.fill_diagonal(mask, np.diagonal(problem.open))
    if method == "auto" and mask.sum() <= MOST_CANDIDATES and time.monotonic() < end:
        with suppress(BackendFailure):  # the other one is there, or there is none
            basic = vertex(problem, proof, mask, aim=aim, end=end, bound=bound)
            if best is None or basic.cost - basic.bound <= max(aim, best.cost - bound):
                return replace(basic, method="interior point and simplex")
    if best is None:
        raise BackendFailure("the interior point method found no assignment in time")
    return replace(best, bound=bound)


def _by_columns(
    problem: Assignment,
    proof: Assignment,
    aim: float,
    end: float,
    progress: Callable[[float, float, int], None] | None,
) -> tuple[Assigned | None, float, Array]:
    """The best assignment by the interior point method, the bound, and the last shares.

    Of many masses some pairs are taken for each column first. Their multipliers price all pairs, which is the bound,
    and those that would gain join in, until none does: multipliers of a central path need few rounds.
    """
    from solvers.assignment_interior import InteriorPoint

    p, unit, bound, steps = problem.masses, problem.spread(), -math.inf, 0
    worst = float(p @ np.where(problem.open, problem.cost, -np.inf).max(axis=1))
    closed = min(0.5 * aim, INTERIOR_GAP * unit)
    random, none = (
        np.random.default_rng(0),
        Multipliers(0.0 * problem.sides[0], 0.0 * p),
    )
    free = bool(problem.open.all()) and not problem.floors.any()
    best = (
        Assigned(np.tile(p, (problem.n, 1)), unit, bound, none, "constant")
        if free
        else None
    )
    support, pairs, goal = problem.open.astype(np.float64), problem.open, closed
    if problem.n > DENSE:
        ties = problem.cost + 1e-9 * np.abs(problem.cost).max() * random.random(
            problem.cost.shape
        )
        pairs, goal = _least(ties, problem.open, FIRST), max(closed, FIRST_GAP * unit)
        pairs |= _least(random.random(ties.shape), problem.open, FIRST)
        pairs[:, np.argsort(-p)[:WHOLE]] = True
        pairs = (pairs | np.eye(problem.n, dtype=np.bool_)) & problem.open
    while True:
        every, reached, reduced = bool(pairs[problem.open].all()), False, problem.cost
        part, relaxed = replace(problem, allowed=pairs), replace(proof, allowed=pairs)
        for support, found, missed in InteriorPoint(part).run():
            reduced, steps = reduced_costs(proof, found), steps + 1
            cost, lower = problem.cost_of(support), lower_bound(relaxed, found, reduced)
            bound = max(bound, lower if every else lower_bound(proof, found, reduced))
            if bound > worst:
                raise EmptyPolytope(NONE)
            inside = _pulled_in(problem, support) if free else support
            at_most = problem.cost_of(inside)
            if (free or missed <= MISSED) and (best is None or at_most < best.cost):
                best = Assigned(inside, at_most, bound, found, "interior point")
            if progress is not None and best is not None:
                progress(best.cost, bound, steps)
            # Sums lose digits before the gap is closed; a vertex has its own.
            reached = abs(cost - lower) <= goal and (every or missed <= ROUGH)
            if reached or lower > worst or time.monotonic() >= end:
                break
        if (
            every
            or time.monotonic() >= end
            or (best is not None and best.cost - bound <= closed)
        ):
            return best, bound, support
        gains = reduced - np.where(pairs, reduced, np.inf).min(axis=1)[:, None]
        if not reached:  # nothing can be said of prices: more of everything
            gains = -random.random(gains.shape)
        outside = problem.open & ~pairs & (gains < 0.0)
        if goal == closed and not outside.any():
            return best, bound, support
        pairs = (
            pairs
            | _least(gains, outside, NEW)
            | _least(gains.T, outside.T, NEW_OF_ROW).T
        )
        goal = max(closed, goal / 5.0)


def _pulled_in(problem: Assignment, shares: Array) -> Array:
    """Shares mixed with columns that are multiples of p, until their columns are members of the polytope."""
    p = problem.masses
    if not problem.keep:
        shares = np.where(p @ shares > SUPPORT * p, shares, 0.0)
        shares = np.where(shares.any(axis=1, keepdims=True), shares, p)
        shares = shares / shares.sum(axis=1)[:, None]
    masses = p @ shares
    used = masses > 0.0
    worst = max(
        0.0,
        float(
            problem.columns.excess(
                (shares[:, used] * p[:, None] / masses[used]).T
            ).max()
        ),
    )
    room = -float(problem.columns.excess(p)[0])
    share = worst / (worst + room) if worst > 0.0 < room else float(worst > 0.0)
    return (1.0 - share) * shares + share * masses


def _least(values: Array, among: NDArray[np.bool_], count: int) -> NDArray[np.bool_]:
    """The least values of each column, `count` of them, as far as they are `among` those that count."""
    chosen = np.zeros_like(among)
    least = np.argpartition(np.where(among, values, np.inf), count, axis=0)[:count]
    np.put_along_axis(chosen, least, True, axis=0)
    return chosen & among
