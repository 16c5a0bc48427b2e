"""Least-cost assignments whose columns keep convex inequalities, alone or summed over the columns.

To the problem of `solvers.assignment.assignment` two kinds of limits may be added on the columns
q(., y) = m_y v_y, with masses m_y and posteriors v_y:

- each v_y lies in a `ConvexSet`;
- a *total*, sum_y m_y L(v_y) <= e, of a convex leakage L >= 0 (`average_problem.Leakage`).

Both are cut by tangents, found where the columns of a solution lie outside, in rounds (Kelley 1960,
"The cutting-plane method for solving convex programs"):

1. The linear program over the tangents so far is a relaxation. A total has a variable t_y >= 0 for
   each column, above the tangents of m_y L(v_y), and sum_y t_y <= e.
2. Its multipliers nu of the tangents of sets, and mu of those of totals, prove a bound. With

       c'(x, y) = c(x, y) - sum_i nu_i a_i(x) + sum_k mu_k b_k(x),

   over the tangents a_i.q >= 0 and b_k.q <= m_y L of column y, every assignment costs at least the
   bound of `solvers.assignment.assignment` for c', less e max_y sum_k mu_k: tangents of sets
   contribute nothing positive, and those of totals at most sum_y (sum_k mu_k) m_y L(v_y).
3. Columns outside get new tangents. Where nothing but the columns is restricted, the solution is
   also mixed with columns that tell nothing, until it is inside; so the search may end at any time.

For example, let p = (1/2, 1/2), let every wrong column cost 1, and let L(v) = |v_0 - v_1| have the
total 1/2. The first program leaves all masses in place, where both L are 1. The tangents there are
L >= v_0 - v_1 in column 0 and L >= v_1 - v_0 in column 1, with which a quarter of each mass moves.

Solutions keep a margin, and the bound holds without it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from solvers.assignment import assignment
from solvers.assignment.assignment import UNIT, Assigned, Assignment, Multipliers
from solvers.assignment.simplex import Program, check_time
from solvers.average.problem import FEW_ULP, Leakage
from solvers.errors import BackendFailure
from solvers.pace import end_of
from solvers.points import Array
from solvers.sets.convex_set import ConvexSet
from solvers.sets.polytope import last_inside

METHOD = "simplex with tangents"

MOST_ROUNDS = 400
"""Rounds of adding tangents; 5 to 40 are usual."""

BISECTIONS = 60
"""Halvings of the way to the boundary of a set: a double has no more digits."""

TRACE = 1e-10
"""Share of its mass below which a column is empty: its direction is rounding."""

KEPT_MARGIN = 0.5
"""Share of the margin that solutions keep. The programs keep the whole of it, so that rounds end
with a solution inside although no tangent is ever exact."""

LEAST_TANGENT = 1e-9
"""Tangents of leakages touch lifts of at least this."""


@dataclass(frozen=True, eq=False)
class Total:
    """The limit sum_y m_y L(v_y) <= most; `matrix` (m, n) maps posteriors to lifts."""

    leakage: Leakage
    matrix: Array
    most: float

    def of(self, posteriors: Array, masses: Array) -> float:
        """The total of columns with these posteriors (k, n) and masses (k,)."""
        return float(masses @ self.leakage.of_lifts(posteriors @ self.matrix.T))

    def _lifts(self, posterior: Array) -> Array:
        """Where the tangent touches."""
        return np.maximum(self.matrix @ posterior, LEAST_TANGENT)

    def coefficients(self, posterior: Array) -> Array:
        """Of the tangent at this posterior, (k,) (`Leakage.coefficients`)."""
        return self.leakage.coefficients(self._lifts(posterior))

    def tangent(self, posterior: Array) -> Array:
        """b (n,) with b.v <= L(v) for all v, and nearly equal at this posterior (n,)."""
        lifts = self._lifts(posterior)
        values, slopes = self.leakage.slopes(lifts[:, None])
        slope = slopes[:, 0]
        level = float(values[0]) - float(slope @ lifts)
        # Lowered by what rounding can have added anywhere on the simplex.
        size = np.abs(slope) @ self.matrix + abs(level) + np.abs(slope) @ lifts + 1.0
        terms = len(lifts) + 4
        return level + slope @ self.matrix - FEW_ULP * terms * size


def assign_convex(
    problem: Assignment,
    sets: Sequence[ConvexSet] | None,
    totals: Sequence[Total] = (),
    *,
    proof: Assignment | None = None,
    margin: float = 0.0,
    gap: float = 1e-9,
    time_limit: float | None = None,
    progress: Callable[[float, float, int], None] | None = None,
) -> Assigned:
    """Solve the problem with posteriors in convex sets, and with totals over the columns.

    Parameters
    ----------
    problem : Assignment
    sets : sequence of ConvexSet, optional
        One for each column. Where they are not all the same, the bound is about columns in these
        sets, like the solution.
    totals : sequence of Total
    proof : Assignment, optional
        With the same rows and fewer restrictions: the bound holds for it.
    margin : float
        By which share solutions stay away from the limits.
    gap : float
        Stop when cost and bound differ by at most this share of `Assignment.spread`.
    time_limit : float, optional
        Seconds.
    progress : callable, optional
        Called with cost, bound and number of rounds so far.

    Raises
    ------
    EmptyPolytope
        If there is no such assignment.
    BackendFailure
        If none was found in time.
    OutOfTime
        If there is no time for a program at all.
    """
    problem.check()
    end = end_of(time_limit)
    if proof is None:
        proof = problem
    check_time(problem, end)
    aim = max(gap, assignment.LEAST_GAP) * problem.spread()
    search = _Rounds(problem, sets, totals, proof, margin, progress)
    return search.run(aim, end)


class _Rounds:
    """The program that grows by tangents, with the best assignment and the best bound so far."""

    def __init__(
        self,
        problem: Assignment,
        sets: Sequence[ConvexSet] | None,
        totals: Sequence[Total],
        proof: Assignment,
        margin: float,
        progress: Callable[[float, float, int], None] | None,
    ) -> None:
        self._problem = problem
        self._sets = sets
        self._totals = totals
        self._proof = proof
        self._margin = margin
        self._progress = progress
        self._program = _TangentProgram(problem, totals, margin)
        self._best: Assigned | None = None
        self._bound = -math.inf
        none = Multipliers(np.zeros((0, problem.n)), np.zeros(problem.n))
        self._proven_by = none

    def run(self, aim: float, end: float) -> Assigned:
        """Rounds until the best assignment is proven, or the time is over."""
        for rounds in range(1, MOST_ROUNDS + 1):
            try:
                shares, multipliers = self._program.solve(end)
            except BackendFailure:
                # What was found and proven before counts.
                break
            bound = self._program.bound(self._proof, multipliers)
            if bound > self._bound:
                self._bound = bound
                self._proven_by = multipliers
            inside = self._cut(shares)
            self._keep(inside, multipliers)
            best = self._best
            if best is not None and self._progress is not None:
                self._progress(best.cost, self._bound, rounds)
            is_proven = best is not None and best.cost - self._bound <= aim
            # Where the solution itself is inside, no round finds a cheaper one.
            if is_proven or inside is shares or time.process_time() >= end:
                break
        if self._best is None:
            raise BackendFailure("no assignment was found in time")
        multipliers = self._proven_by
        sides: Array | None = None
        touched: Array | None = None
        if self._sets is not None:
            sides, touched = self._program.sides(multipliers)
        return replace(
            self._best,
            bound=self._bound,
            multipliers=multipliers,
            sides=sides,
            touched=touched,
            charges=self._program.charges(multipliers),
        )

    def _keep(self, shares: Array | None, multipliers: Multipliers) -> None:
        """Keep shares that cost less than the best so far."""
        if shares is None:
            return
        cost = self._problem.cost_of(shares)
        if self._best is None or cost < self._best.cost:
            self._best = Assigned(shares, cost, -math.inf, multipliers, METHOD)

    def _cut(self, shares: Array) -> Array | None:
        """Add the tangents that the shares (n, n) need; shares that are inside, if any are known.

        These are the same shares where nothing is outside, and else mixed with columns that tell
        nothing, where every pair is allowed.
        """
        problem = self._problem
        p = problem.masses
        masses = p @ shares
        used = np.flatnonzero(masses > TRACE * p)
        posteriors = (shares[:, used] * p[:, None] / masses[used]).T
        mixing = 0.0
        kept = KEPT_MARGIN * self._margin
        if self._sets is not None:
            for y, posterior in zip(used.tolist(), posteriors, strict=True):
                allowed = self._sets[y]
                image = allowed.matrix @ posterior
                excess = float(allowed.excess_of(image[:, None], kept)[0])
                if excess <= 0.0:
                    continue
                origin = allowed.matrix @ p
                room = -float(allowed.excess_of(origin[:, None], kept)[0])
                # The excess is convex along the way, and -room where a column tells nothing.
                mixing = max(mixing, excess / (excess + max(room, 0.0)))
                share, rows = _tangents(allowed, origin, image, self._margin)
                boundary = p + share * (posterior - p)
                for row in rows:
                    self._program.add_set(y, row, boundary, allowed, origin)
        for k, total in enumerate(self._totals):
            value = total.of(posteriors, masses[used])
            most = (1.0 - kept) * total.most
            if value <= most:
                continue
            # Columns that tell nothing leak nothing.
            mixing = max(mixing, 1.0 - most / value)
            for y, posterior in zip(used.tolist(), posteriors, strict=True):
                self._program.add_total(k, y, posterior)
        if not mixing:
            return shares
        if not problem.is_free:
            return None
        return (1.0 - mixing) * shares + mixing * masses


def _tangents(
    allowed: ConvexSet, origin: Array, image: Array, margin: float
) -> tuple[float, list[Array]]:
    """The share of the way to the posterior of this image at which the boundary is, and rows a (n,)
    that touch the set there, with a.v >= 0 for all members v.
    """
    # The boundary lies a little beyond a point that is only inside of the margin.
    room = -float(allowed.excess_of(origin[:, None], 0.0)[0])
    farthest = 1.0
    if margin and room > 0.0:
        farthest += 2.0 * margin / room
    way = image - origin
    share = last_inside(
        lambda shares: (
            allowed.excess_of(origin[:, None] + shares * way[:, None], 0.0) <= 0.0
        ),
        np.zeros(1),
        np.array([farthest]),
        BISECTIONS,
    )
    low = float(share[0])
    boundary = origin + low * way
    rows = [
        cut.offset - cut.normal @ allowed.matrix for cut in allowed.cuts_at(boundary)
    ]
    return low, rows


class _TangentProgram:
    """The linear program over the tangents so far, and what its multipliers prove."""

    def __init__(
        self, problem: Assignment, totals: Sequence[Total], margin: float
    ) -> None:
        self._problem = problem
        self._totals = totals
        self._margin = margin
        self._program = Program(problem)
        xs, ys = np.nonzero(problem.open)
        self._program.add(xs, ys)
        for total in totals:
            self._program.add_total((1.0 - margin) * total.most)
        # Of each row behind the first ones: its column, its total (-1 for a set), its entries for
        # q, and the error of each.
        self._columns: list[int] = []
        self._kinds: list[int] = []
        self._rows: list[Array] = []
        # Of rows of totals; empty for sets.
        self._coefficients: list[Array] = []
        # Where rows touch their sets, or leakages.
        self._touched: list[Array] = []

    def solve(self, end: float) -> tuple[Array, Multipliers]:
        """As `Program.solve`."""
        return self._program.solve(end)

    def add_set(
        self, y: int, row: Array, touched: Array, allowed: ConvexSet, origin: Array
    ) -> None:
        """Add a.v >= 0 for the posterior of column y, with the margin; the row touches the set at
        the posterior `touched`.
        """
        p = self._problem.masses
        # In units of its room where a column tells nothing: so a margin is one of the excess.
        room = -float(allowed.excess_of(origin[:, None], 0.0)[0])
        level = float(row @ p)
        if level <= 0.0 or room <= 0.0:
            return
        row = row * (room / level)
        self._program.cut([(y, ((row - self._margin) * p)[None, :])])
        self._columns.append(y)
        self._kinds.append(-1)
        self._rows.append(row)
        self._coefficients.append(np.zeros(0))
        self._touched.append(touched)

    def add_total(self, k: int, y: int, posterior: Array) -> None:
        """Add b.q <= t_ky for column y of a total, with the tangent b at a posterior."""
        total = self._totals[k]
        row = total.tangent(posterior)
        self._coefficients.append(total.coefficients(posterior))
        self._program.cut_total(k, y, row * self._problem.masses)
        self._columns.append(y)
        self._kinds.append(k)
        self._rows.append(row)
        self._touched.append(posterior)

    def charges(self, multipliers: Multipliers) -> tuple[tuple[float, Array], ...]:
        """The price of each total, and the sums of its tangents in every column, (k, n)."""
        nu = np.nan_to_num(multipliers.cuts, nan=0.0, posinf=0.0)
        found: list[tuple[float, Array]] = []
        for k, total in enumerate(self._totals):
            touched = total.coefficients(self._problem.masses)
            sums = np.zeros((len(touched), self._problem.n))
            prices = np.zeros(self._problem.n)
            for i, y in enumerate(self._columns[: len(nu)]):
                if self._kinds[i] == k:
                    sums[:, y] += nu[i] * self._coefficients[i]
                    prices[y] += nu[i]
            found.append((float(prices.max()), sums))
        return tuple(found)

    def sides(self, multipliers: Multipliers) -> tuple[Array, Array]:
        """The sums of the tangents of sets in every column, (n, n), which are not negative on
        members, and the posteriors where these touch, (k, n).
        """
        # The last program may have more tangents than the one that these multipliers are of.
        nu = np.zeros(len(self._rows))
        known = np.nan_to_num(multipliers.cuts, nan=0.0, posinf=0.0)
        nu[: len(known)] = known
        n = self._problem.n
        sums = np.zeros((n, n))
        touched = [np.zeros((0, n))]
        for i, y in enumerate(self._columns):
            if self._kinds[i] < 0 and nu[i] > 0.0:
                sums[:, y] += nu[i] * self._rows[i]
                touched.append(self._touched[i][None])
        return sums, np.unique(np.vstack(touched), axis=0)

    def bound(self, proof: Assignment, multipliers: Multipliers) -> float:
        """A lower bound on the cost of every assignment of `proof` within all limits."""
        if not self._rows:
            return assignment.lower_bound(proof, multipliers)
        nu = np.nan_to_num(multipliers.cuts, nan=0.0, posinf=0.0)
        rows = np.array(self._rows)
        columns = np.array(self._columns, dtype=np.intp)
        kinds = np.array(self._kinds)
        # Tangents of sets lower the cost, those of totals raise it.
        sign = np.where(kinds < 0, -1.0, 1.0)
        prices = np.zeros_like(proof.cost)
        sizes = np.zeros_like(proof.cost)
        np.add.at(prices.T, columns, (sign * nu)[:, None] * rows)
        np.add.at(sizes.T, columns, nu[:, None] * (np.abs(rows) + 1.0))
        # Sums of len(nu) + 8 terms, each a product of rounded numbers; rows are sums themselves.
        terms = len(nu) + 8 + self._problem.n
        error = 4.0 * UNIT * terms * (np.abs(proof.cost) + sizes)
        relaxed = replace(proof, cost=proof.cost + prices - error)
        bound = assignment.lower_bound(relaxed, multipliers)
        for k, total in enumerate(self._totals):
            charged = np.zeros(proof.n)
            np.add.at(charged, columns[kinds == k], nu[kinds == k])
            charge = float(charged.max()) * total.most
            bound -= charge * (1.0 + 4.0 * UNIT * terms)
        return math.nextafter(bound - 4.0 * UNIT * abs(bound), -math.inf)
