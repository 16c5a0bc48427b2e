"""Sets of private posteriors that are not given by listed rows, approached by cuts.

Objectives whose solvers take polytopes work for any promise whose posteriors form a star around
P_X, one of which every ray from P_X leaves once: for limits on averages (`convex_means`) and for
confidence sets (`population_posteriors`). A `CutSet` says which posteriors are members, and which
rows all of them keep. `solved_by_cuts` goes on in rounds:

1. The caller's solver finds weights and posteriors for the polytope of the rows so far. It contains
   the set, so the bound of the solution holds for the set.
2. Posteriors outside are pulled towards P_X until they are members. The parts of their ways may
   differ: with v' = p + r (v - p) and weights in proportion to w / r, they still decompose p,
   because the sum of w (v - p) is zero.
3. The caller finds the best solution over all members so far, of this round and of those before.
   When it is proven, or no posterior was moved by more than `SETTLED`, it is the answer. Else each
   posterior outside adds the rows that it breaks.

For example, the set of all v with |v_0 - v_1| <= 1/2 around p = (1/2, 1/2): the first solution may
have the unit vectors, which are pulled half of the way, and add the rows v_0 - v_1 <= 1/2 and v_1 -
v_0 <= 1/2. The second one is the optimum.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from solvers import (
    Array,
    ConvexSet,
    CoveredSet,
    Polytope,
    SolverError,
    UncertainSet,
)
from solvers.sets.polytope import last_inside

if TYPE_CHECKING:
    # They load slowly, and most designs need neither.
    from solvers.purposes.queries import LeastVariance
    from solvers.purposes.task import TaskEnvelope

SETTLED = 1e-6
"""Largest share of a way by which posteriors of the last round were pulled."""

MOST_ROUNDS = 40
"""Rounds of cuts; 4 to 15 are usual."""

HALVINGS = 60
"""Bisections of the way from P_X: a double has no more digits."""

HALVING_TIME = 3e-8
"""Seconds of a bisection, for each symbol of each posterior and each secret (4.6 s for 400 symbols
and 15 secrets of a population)."""

INSIDE = 2.0**-40
"""Relative distance from the boundary of posteriors that were pulled to it."""

SAME_ROW = 1e-9
"""Rows nearer than this to each other are one."""

Solution = TypeVar("Solution", "LeastVariance", "TaskEnvelope")
Solved = TypeVar("Solved", "LeastVariance", "TaskEnvelope", covariant=True)


class CutSet(Protocol):
    """A set of posteriors with P_X inside, of which every ray from P_X leaves once."""

    @property
    def point(self) -> Array:
        """P_X, (n,)."""
        ...

    def excess(self, points: Array) -> Array:
        """How far posteriors (k, n) are outside, (k,); at most 0 of members."""
        ...

    def rows_at(self, posterior: Array) -> Array:
        """Rows a (k, n) with a.v >= 0 for every member v, nearly 0 at this posterior of the
        boundary.
        """
        ...

    @property
    def secrets(self) -> int:
        """Sensitive symbols that every excess goes through."""
        ...

    def ways_within(self, origin: Array, symbols: NDArray[np.intp]) -> Array:
        """Shares of the ways from a member, (n,), to the unit vectors of some symbols, (k,), that
        lead to members; (k,). There may be larger ones.
        """
        ...


@dataclass(frozen=True, eq=False)
class MeanCuts:
    """The posteriors that a notion on averages allows, also where they are not convex."""

    allowed: ConvexSet
    point: Array

    def excess(self, points: Array) -> Array:
        """As of `CutSet`."""
        return self.allowed.excess_of(self.allowed.matrix @ points.T, 0.0)

    def rows_at(self, posterior: Array) -> Array:
        """As of `CutSet`: tangents of the set, or of the convex set around it."""
        around = self.allowed
        if isinstance(around, CoveredSet):
            around, _ = around.around(around.low, around.high)
        image = around.matrix @ posterior
        if around is not self.allowed:
            # The boundary of the larger set lies further on the same way.
            origin = around.matrix @ self.point
            image = origin + _largest_share(around, origin, image) * (image - origin)
        rows = [
            cut.offset - cut.normal @ around.matrix for cut in around.cuts_at(image)
        ]
        return np.array(rows).reshape(-1, len(self.point))

    @property
    def secrets(self) -> int:
        """As of `CutSet`."""
        return len(self.allowed.matrix)

    def ways_within(self, origin: Array, symbols: NDArray[np.intp]) -> Array:
        """As of `CutSet`, by bisection."""
        start = (self.allowed.matrix @ origin)[:, None]
        ways = self.allowed.matrix[:, symbols] - start
        low = last_inside(
            lambda shares: self.allowed.excess_of(start + shares * ways, 0.0) <= 0.0,
            np.zeros(len(symbols)),
            np.ones(len(symbols)),
            HALVINGS,
        )
        return low * (1.0 - INSIDE)


def _largest_share(around: ConvexSet, origin: Array, image: Array) -> float:
    """The share t >= 1 of a way at which it leaves a convex set; 1 if it already has."""

    def is_inside(shares: Array) -> NDArray[np.bool_]:
        images = origin[:, None] + shares * (image - origin)[:, None]
        return around.excess_of(images, 0.0) <= 0.0

    low = 1.0
    high = 2.0
    while high < 2.0**20 and is_inside(np.array([high])).all():
        low = high
        high *= 2.0
    share = last_inside(is_inside, np.array([low]), np.array([high]), HALVINGS)
    return float(share[0])


@dataclass(frozen=True, eq=False)
class PopulationCuts:
    """The posteriors that are private for a whole confidence set."""

    uncertain: UncertainSet

    @property
    def point(self) -> Array:
        """As of `CutSet`."""
        return self.uncertain.point

    def excess(self, points: Array) -> Array:
        """As of `CutSet`."""
        return self.uncertain.excess(points)

    def rows_at(self, posterior: Array) -> Array:
        """As of `CutSet`: the rows of the worst populations, a little wider for their rounding."""
        w = posterior / self.point
        rows = self.uncertain.cuts(w) + self.uncertain.row_error
        # Rows that are far from this posterior would only make the polytope larger to handle.
        levels = rows @ w / (rows @ np.ones(len(w)))
        return rows[levels <= 0.1 * max(float(levels.max()), 0.0) + 1e-6] / self.point

    @property
    def secrets(self) -> int:
        """As of `CutSet`."""
        return len(self.uncertain.lower)

    def ways_within(self, origin: Array, symbols: NDArray[np.intp]) -> Array:
        """As of `CutSet`, by one chord of each way."""
        return self.uncertain.chords(origin)[symbols] * (1.0 - INSIDE)


class CutSolver(Protocol[Solved]):
    """The solver of an objective, for `solved_by_cuts`."""

    def solve(self, inner: Polytope, outer: Polytope) -> Solved:
        """A solution with posteriors in a polytope, and a bound for another one around it."""
        ...

    def without_rows(self, cuts: CutSet) -> Solved:
        """A solution that needs no rows of the set, for where there is no time for these."""
        ...

    def best_of(self, members: Array, weights: Array) -> Solved:
        """The best solution with some of these posteriors (k, n), of which the last ones decompose
        P_X with these weights.
        """
        ...

    def is_proven(self, value: float, bound: float) -> bool:
        """Whether a value is near enough to its bound."""
        ...


def has_time(cuts: CutSet, end: float) -> bool:
    """Whether the first rows of a set are found by `end`, a moment of `time.process_time`."""
    symbols = len(cuts.point)
    halvings = HALVINGS * cuts.secrets * symbols**2
    # The rows take about as long as the posteriors to which they belong.
    return 2.0 * HALVING_TIME * halvings <= end - time.process_time()


def polytope_at(cuts: CutSet, touched: Array) -> Polytope:
    """The polytope of the rows at posteriors (k, n) of the boundary; it contains the set."""
    rows = _with_new(np.zeros((0, len(cuts.point))), cuts, touched)
    return Polytope(rows, np.zeros(len(rows)), np.full(len(rows), np.inf))


def solved_by_cuts(
    cuts: CutSet, solver: CutSolver[Solution], end: float
) -> tuple[Solution, Array]:
    """The solution with members alone, and the best bound of all rounds with the prices that prove
    it; and the posteriors of the boundary at whose polytope they do.

    `end` is a moment of `time.process_time`.
    """
    # One posterior towards each symbol gives a polytope to begin with.
    touched = _pulled(cuts, np.eye(len(cuts.point)))[1]
    polytope = polytope_at(cuts, touched)
    proof: Solution | None = None
    proven_at = touched
    best: Solution | None = None
    pool = np.zeros((0, len(cuts.point)))
    for _ in range(MOST_ROUNDS):
        try:
            solution = solver.solve(polytope, polytope)
        except SolverError:
            if best is None:
                raise
            # What was found and proven before counts.
            break
        if proof is None or solution.bound > proof.bound:
            proof, proven_at = solution, touched
        shares, members = _pulled(cuts, solution.points.toarray())
        weights = solution.weights / shares
        pool = np.vstack([pool, members])
        found = solver.best_of(pool, weights / weights.sum())
        if best is None or found.value < best.value:
            best = found
        is_settled = bool(shares.min() >= 1.0 - SETTLED)
        is_proven = solver.is_proven(best.value, proof.bound)
        if is_settled or is_proven or time.process_time() >= end:
            break
        touched = np.vstack([touched, members[shares < 1.0]])
        finer = polytope_at(cuts, touched)
        if len(finer.rows) == len(polytope.rows):
            # Doubles tell no further rows apart.
            break
        polytope = finer
    # Of the first round.
    assert best is not None
    assert proof is not None
    decomposition = {"weights": best.weights, "points": best.points}
    return replace(proof, value=best.value, **decomposition), proven_at


def _pulled(cuts: CutSet, points: Array) -> tuple[Array, Array]:
    """The largest share of the way from P_X at which each point (k, n) is a member, (k,), and the
    posteriors there, (k, n).
    """
    ways = points - cuts.point
    whole = cuts.excess(points) <= 0.0
    low = last_inside(
        lambda shares: cuts.excess(cuts.point + shares[:, None] * ways) <= 0.0,
        np.zeros(len(points)),
        np.ones(len(points)),
        HALVINGS,
    )
    shares = np.where(whole, 1.0, low * (1.0 - INSIDE))
    return shares, cuts.point + shares[:, None] * ways


def rows_broken(cuts: CutSet, posterior: Array) -> Array:
    """Rows a (k, n) with a.v >= 0 for every member v, some of which a posterior outside breaks."""
    _, members = _pulled(cuts, posterior[None])
    return cuts.rows_at(members[0])


def _with_new(rows: Array, cuts: CutSet, posteriors: Array) -> Array:
    """The rows (m, n), of length 1, with those of further posteriors that are not among them."""
    for posterior in posteriors:
        for row in cuts.rows_at(posterior):
            scaled = row / np.abs(row).max()
            if len(rows) and np.abs(rows - scaled).max(axis=1).min() <= SAME_ROW:
                continue
            rows = np.vstack([rows, scaled])
    return rows
