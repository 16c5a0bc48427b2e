"""Least-cost assignment of masses to columns, each column a multiple of a member of a polytope.

    minimise  sum_xy c(x, y) q(x, y)   over q >= 0 with  sum_y q(x, y) = p_x,

where for every column y the vector q(., y) is its mass m_y times a member of the polytope. On
request m_y = p_y, q(x, x) >= floor_x p_x, and q(x, y) = 0 for pairs that are not allowed. This is a
linear program in n^2 variables; `solvers.assignment.assigning` solves it. Here is the problem, and
the bound that proves its solutions.

*Bound.* Let nu >= 0 be multipliers of the one-sided rows t.v + a.r >= 0 of the polytope (written
for unit mass), f any prices of the column masses (f = 0 where these are free), and E(x, y) = c(x,
y) - f_y - sum_i nu_iy t_i(x) + sum_k min(0, -(a' nu_y)_k) top_k, with top_k >= r_k. Every feasible
q costs at least

    sum_x p_x (floor_x E(x, x) + (1 - floor_x) min_y E(x, y)) + sum_y f_y p_y,

whatever nu and f are: the rows and the masses contribute nothing positive, and row x of q spreads
p_x over the columns. It is evaluated with its own rounding subtracted, so a solver's duals need not
be feasible, nor precise (`reduced_costs`, `lower_bound`).

For example, let p = (1/2, 1/2), let a mass cost 0 in its own column and 1 in the other, and let the
polytope be v_0 <= 3/4, v_1 <= 3/4. For unit mass its rows are

    3/4 - v_0 = -v_0 / 4 + 3 v_1 / 4 >= 0,     3/4 - v_1 = 3 v_0 / 4 - v_1 / 4 >= 0.

With nu = 1 for the first row in column 0, and for the second one in column 1, every E is 1/4: E(0,
0) = 0 + 1/4 and E(1, 0) = 1 - 3/4. So the bound is 1/4, and q = [[3/8, 1/8], [1/8, 3/8]], whose
columns are multiples of (3/4, 1/4) and (1/4, 3/4), costs as much.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from solvers.errors import EmptyPolytope, InvalidPolytope
from solvers.points import Array
from solvers.sets.polytope import Polytope

NONE = "no assignment keeps to the polytope, the floors and the pairs that are allowed"

UNIT = 2.0**-53
"""Largest relative error of one floating-point operation."""

SUPPORT = 1e-7
"""Share of its mass below which an entry of an inexact solution is a trace and not support."""

LEAST_GAP = 1e-9
"""Gap, as a share of the spread, below which double precision proves nothing more."""


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
        """Raise EmptyPolytope where a mass has no place, or a floor is in a place not allowed."""
        empty_column = self.keep and not self.open.any(axis=0).all()
        empty_row = not self.open.any(axis=1).all()
        closed_floor = (self.floors[~np.diagonal(self.open)] > 0.0).any()
        if empty_column or empty_row or closed_floor:
            raise EmptyPolytope(NONE)

    @property
    def is_free(self) -> bool:
        """Whether multiples of p are an assignment: no floors, and every pair is allowed."""
        return bool(self.open.all()) and not self.floors.any()

    @cached_property
    def sides(self) -> tuple[Array, Array, Array]:
        """The one-sided rows ``(row - offset) v + auxiliary r >= 0``: (m, n), (m,), (m, k).

        As sum v = 1, the offset can be taken from every entry of the row.
        """
        # The polytope has them as rows v + auxiliary r <= bounds.
        rows, auxiliary, bounds = self.columns.one_sided
        return -rows, -bounds, -auxiliary

    def cost_of(self, shares: Array) -> float:
        """Of q(x, y) / p_x."""
        return math.fsum((self.masses * (shares * self.cost).sum(axis=1)).tolist())

    def spread(self) -> float:
        """Cost of columns that are all multiples of p: the unit of relative gaps.

        In the example of the module this is 1/2.
        """
        return float(self.masses @ self.cost @ self.masses)


@dataclass(frozen=True, eq=False)
class Multipliers:
    """Dual variables; all but those of the masses are not negative.

    Attributes
    ----------
    rows : (m, n) array
        Of the one-sided rows, for every column.
    masses : (n,) array
        Of the masses of the columns, where they are kept.
    cuts : (k,) array
        Of further rows of single columns (`solvers.assignment.robust`).
    """

    rows: Array
    masses: Array
    cuts: Array = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True, eq=False)
class Assigned:
    """An assignment as `shares` (n, n) q(x, y) / p_x, with rows that sum to 1.

    `bound` is a proven lower bound of the cost of every assignment. Over a set that is no polytope
    `sides`, (n, n), prove it: its column y times that of every assignment is not negative. Of a
    convex set they are sums of the rows that touch it at the posteriors `touched`, (k, n). With
    totals over the columns `charges` are a price of each, and the sums of its tangents (k, n) in
    every column.
    """

    shares: Array
    cost: float
    bound: float
    multipliers: Multipliers
    method: str
    sides: Array | None = None
    touched: Array | None = None
    charges: tuple[tuple[float, Array], ...] = ()


def sides_of(problem: Assignment, multipliers: Multipliers) -> Array:
    """What the rows of the polytope take off the costs, (n, n): column y of it times every
    assignment's is not negative, up to rounding.
    """
    prices = _mass_prices(problem, multipliers)
    return problem.cost - prices - reduced_costs(problem, multipliers)


def _mass_prices(problem: Assignment, multipliers: Multipliers) -> Array:
    """f of the module's text: zero where the masses of the columns are free."""
    if not problem.keep:
        return np.zeros(problem.n)
    return np.nan_to_num(multipliers.masses)


def reduced_costs(problem: Assignment, multipliers: Multipliers) -> Array:
    """E(x, y) of the module's text, each rounded downwards; (n, n)."""
    rows, offset, auxiliary = problem.sides
    # The bound holds for any finite multipliers, so whatever a solver returned is made finite.
    finite = np.nan_to_num(multipliers.rows, nan=0.0, posinf=0.0, neginf=0.0)
    nu = np.maximum(finite, 0.0)
    f = _mass_prices(problem, multipliers)
    # Beside each value the sum of the moduli of its terms, of which rounding takes its share.
    level = f - offset @ nu
    size = np.abs(f) + np.abs(offset) @ nu
    if auxiliary.shape[1]:
        # min(0, -(a' nu)_k) top_k, with (a' nu)_k rounded upwards.
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
    """The bound of the module's text, rounded downwards; `reduced` are the `reduced_costs`."""
    if reduced is None:
        reduced = reduced_costs(problem, multipliers)
    f = _mass_prices(problem, multipliers)
    # Of each mass the floor pays E(x, x), and what is above it at least the cheapest pair of its
    # row: no other equation is used.
    at_floor = problem.floors * np.diagonal(reduced)
    cheapest = np.where(problem.open, reduced, np.inf).min(axis=1)
    above_floor = (1.0 - problem.floors) * cheapest
    parts = np.concatenate(
        [problem.masses * at_floor, problem.masses * above_floor, f * problem.masses]
    )
    # Each part is a product of a few rounded numbers; their sum is exact.
    error = 8.0 * UNIT * math.fsum(np.abs(parts))
    return math.nextafter(math.fsum(parts) - error, -math.inf)
