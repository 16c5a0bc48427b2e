"""The lower convex envelope of the entropy over a convex set that is no polytope.

    minimise sum_k w_k H(v_k)   subject to   sum_k w_k v_k = p,  w >= 0,  v_k in the set

Cuts make a polytope around the set (`convex_pricing`). A round has three steps; data go from
one to the next:

1. The master program over the members so far gives a decomposition, its value, and prices y
   (`solvers.envelope.column_pool`).
2. Columns v of H(v) - y.v < 0 are searched over the polytope (`convex_pricing`). Local searches
   come first, for they are cheap. Then branch and bound proves H(v) - y.v >= m there, and so the
   bound y.p + m for the set.
3. A column outside the set gives two things: members next to it for the master, and a cut that
   touches the set there.

The rounds end when the bound meets the value. For example, around a disc the first cuts make a
square; its corners are the cheapest columns, the next cuts remove them, and the points of the
circle next to them are members.

Invariants: every column of the result is a member, the value is the cost of a decomposition of the
point, and the bound holds for the set itself, because every cut holds for all of it.

*Members.* The search looks for columns in a polytope around the set, so they mostly lie outside the
set itself. `Members.add_beside` adds the members next to them instead: the last one on the way from
p to the column, and one on the column's own support. For example, let p = (1/2, 1/2), and let the
set be the v from (1/4, 3/4) to (3/4, 1/4). Then the column (1, 0) gives the member (3/4, 1/4).

All members keep a margin from the boundary of the set, so that rounding does not move them out.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress

import numpy as np
from numpy.typing import ArrayLike

from solvers.envelope.column_pool import (
    COLUMN_SHARE,
    CUTOFF_SHARE,
    ColumnPool,
    PooledRounds,
)
from solvers.envelope.convex_pricing import (
    ConvexPricing,
    Limits,
    OuterPolytope,
    OuterSet,
    pair_members,
)
from solvers.envelope.polytope import Incumbents, deadline
from solvers.errors import OutsidePolytope
from solvers.points import Array, Points
from solvers.pricing.concave import SearchStatus
from solvers.programs import HighsMaster
from solvers.results import Ended, Envelope, EnvelopeStatus, Progress
from solvers.sets.convex_set import ConvexSet

METHOD = "cuts"

SEARCHED_SHARE = 10.0
"""Gaps: once local searches find no column that gains as much, branch and bound begins. It finds
more by then, and alone proves anything."""

PAIRS_FROM = 60
"""Coordinates from which all pairs are a better beginning than local searches alone."""

CUTS_A_COORDINATE = 2
"""Cuts for each coordinate that the cheapest pairs give: more of them make every tree slower."""

CUTS_A_ROUND = 60
"""Columns that give cuts in one round, the cheapest first."""

MOST_ROUNDS = 300
"""Rounds at prices that do not change; tables of up to 100 symbols take up to 40."""

IDLE_ROUNDS = 3
"""Rounds of branch and bound without a column or a better bound, after which the search counts as
stalled."""


MASTER_SECONDS = 10.0
"""Time that one master program over members may take; it needs milliseconds."""

CUT_TIME = 4e-4
ENTRY_TIME = 4e-7
"""Seconds of a cut at a pair, and of each coordinate of it in the first search: 7,222 cuts of 4,885
coordinates took 3 and 13 s."""

CUTS_SHARE = 0.5
"""Share of the time that is left which these cuts may take."""

BESIDE_TIME = 2e-7
"""Seconds that an entry of a member takes which `Members.add_beside` adds: 4 s for 4,500 of 4,500
coordinates."""

BESIDE_SHARE = 0.2
"""Share of the time that is left which the first of these may take."""

LEAST_SECONDS = 0.1
"""Time that the last master program has although the limit is reached."""


def convex_envelope(
    convex: ConvexSet,
    point: Array,
    *,
    outer: OuterSet | None = None,
    margin: float = 0.0,
    gap: float = 1e-6,
    time_limit: float | None = None,
    workers: int = 1,
    start: Points | None = None,
    dual: ArrayLike | None = None,
    incumbents: Incumbents = tuple,
    progress: Callable[[Progress], None] | None = None,
) -> Envelope:
    """Decompose `point` into members of the set at least entropy, with a proven bound.

    Parameters
    ----------
    convex : ConvexSet
    point : (n,) array
        A member of the set, with positive entries.
    outer : OuterSet, optional
        A set around all members, in which columns are searched; by default a polytope of cuts.
    margin : float
        Members keep this relative distance from all bounds; the bound of the result is for the set
        itself.
    gap : float
        Stop once ``value - bound`` is at most this (nats).
    time_limit : float, optional
        Seconds; the best decomposition so far and its valid bound are returned. Ctrl-C does so too.
    start, dual : optional
        Columns and prices of a neighbouring problem; the first search is at these prices.
    incumbents : callable
        Known decompositions of the point, as (weights, points).
    progress : callable, optional

    Raises
    ------
    OutsidePolytope
        If the point is no member.
    InvalidOption
        On options out of range.
    """
    started = time.process_time()
    limits = Limits(gap, deadline(started, gap, time_limit), workers)
    if outer is None:
        outer = OuterPolytope(convex, point)
    search = EnvelopeSearch(convex, outer, point, margin, limits, dual, progress)
    for weights, points in incumbents():
        search.add_known(np.asarray(weights, dtype=np.float64), points)
    if start is not None and len(start):
        search.add_members(start)
    return search.result(search.run(), started)


class EnvelopeSearch(PooledRounds):
    """The rounds of one run: its master, its pricing, and the set around the members.

    `convex_envelope` calls `add_members` for what the caller knows, then `run`, and `result` at the
    end. `dual` are prices of the caller for the first round.

    Raises
    ------
    OutsidePolytope
        If the point is no member.
    """

    most_fruitless = IDLE_ROUNDS

    def __init__(
        self,
        convex: ConvexSet,
        outer: OuterSet,
        point: Array,
        margin: float,
        limits: Limits,
        dual: ArrayLike | None,
        progress: Callable[[Progress], None] | None,
    ) -> None:
        itself = Points.from_dense(point)
        if convex.excess(itself, margin)[0] > 0.0:
            raise OutsidePolytope(
                "point is not in the set, so it has no decomposition",
                np.zeros(len(point)),
                0.0,
            )
        pool = ColumnPool(point, itself, None, HighsMaster(point))
        super().__init__(pool, limits.gap, limits.end, progress)
        self._convex = convex
        self._outer = outer
        self._margin = margin
        self._guess = dual
        self._members = Members(convex, point, margin, pool)
        self._members.add(itself)
        self._pricing = ConvexPricing(outer, point, limits, self.prove)
        # Local searches come first, until they find nothing that gains much.
        self._locally = True
        # Known decompositions: their weights, and the place of their first column in the pool.
        self._known: list[tuple[Array, int]] = []

    # ------------------------------------------------------------- first members and cuts

    def add_members(self, points: Points) -> None:
        """Those of the points that are members."""
        self._members.add(points)

    def add_known(self, weights: Array, points: Points) -> None:
        """The members of a known decomposition; the whole of it counts where the time is over
        before there is another one.
        """
        first = len(self.pool)
        self._members.add(points)
        # What the margin leaves of it need not be a decomposition.
        if len(self.pool) == first + len(points):
            self._known.append((weights, first))

    def prepare(self) -> None:
        """First members and cuts, and the prices of the first round."""
        self._add_units()
        # Where HiGHS fails now, it may not do so once there are more members.
        with suppress(Ended):
            self.solve()
            if len(self.pool.target) >= PAIRS_FROM and self.seconds > 0.0:
                self._add_pairs()
        if self._guess is not None:
            self.prices = np.asarray(self._guess, dtype=np.float64)

    def _add_units(self) -> None:
        """Cuts where the ways from the point to the unit vectors leave the set.

        The crossings become members: a little of them completes any other columns to a
        decomposition. Else one rare coordinate that these miss would leave the point itself alone.
        """
        units = Points.units(np.arange(len(self.pool.target)), len(self.pool.target))
        excess = self._convex.excess(units)
        waiting = excess > 0.0
        self._members.add(units)
        # Each of these has all coordinates. Where they take much of the time, pairs and a known
        # decomposition keep more.
        needed = BESIDE_TIME * int(waiting.sum()) * len(excess)
        if not self._known or needed <= BESIDE_SHARE * self.seconds:
            self._members.add_beside(units.take(waiting))
        images = units.images(self._convex.matrix)
        # Without the others, columns are searched in a larger set.
        while waiting.any() and self.seconds > 0.0:
            # The farthest unit vector that no cut has removed yet.
            farthest = int(np.argmax(np.where(waiting, excess, -np.inf)))
            waiting[farthest] = False
            for cut in self._outer.cut(units.take([farthest])):
                waiting &= images @ cut.normal <= cut.offset

    def _add_pairs(self) -> None:
        """Members that mix two coordinates, those that the master can use, and cuts there."""
        gap = self.aim
        pairs = pair_members(self._convex, self._margin, self.seconds)
        entropies = pairs.entropies()

        # Of the pairs the cheapest at the present prices become members, until none gains: all of
        # them together would make every master program slow.
        waiting = np.ones(len(pairs), bool)
        a_round = max(CUTS_A_ROUND, len(self.pool.target))
        while self.seconds > 0.0:
            reduced = entropies - pairs.dot(self.prices)
            gaining = waiting & (reduced < -COLUMN_SHARE * gap)
            if not gaining.any():
                break
            order = np.argsort(np.where(gaining, reduced, np.inf), kind="stable")
            chosen = order[: min(a_round, int(gaining.sum()))]
            waiting[chosen] = False
            self.pool.append(pairs.take(chosen))
            self.solve()

        # Pairs lie on the boundary of the set, so cuts touch it at the cheapest of them.
        reduced = entropies - pairs.dot(self.prices)
        most = float(CUTS_A_COORDINATE * len(self.pool.target))
        # Cuts are of use to the trees that follow: there must be time for these, too.
        of_cut = CUT_TIME + ENTRY_TIME * len(self.pool.target)
        most = min(most, CUTS_SHARE * self.seconds / of_cut)
        near = np.argsort(reduced, kind="stable")[: int(most)]
        near = near[reduced[near] < CUTOFF_SHARE * gap]
        self._outer.touch(pairs.take(near).images(self._convex.matrix))

    # ------------------------------------------------------------------------ the rounds

    @property
    def nodes(self) -> int:
        """Boxes of all trees so far."""
        return self._pricing.counts.nodes

    def solve(self) -> None:
        """The best decomposition into the members so far."""
        if self.pool.is_solved:
            return
        seconds = min(MASTER_SECONDS, max(LEAST_SECONDS, self.seconds))
        solution = self.pool.master.solve(seconds)
        if self.pool.is_usable(solution):
            self.prices = solution.dual
            self.pool.accept(solution)
            return
        # A master program that met the limit has not failed.
        if self.seconds <= 0.0:
            for weights, first in self._known:
                self.pool.adopt(weights, first)
            raise Ended(EnvelopeStatus.TIME_LIMIT)
        raise Ended(EnvelopeStatus.BACKEND_FAILED)

    def price(self) -> bool:
        """Columns by local searches, and once these find little by branch and bound."""
        prices = self.prices
        bound = self.bound
        searched_locally = self._locally
        if searched_locally:
            result = self._pricing.descend(prices)
            best = self.pool.reduced_costs(result.points, prices).min(initial=0.0)
            self._locally = -best > SEARCHED_SHARE * self.aim
        else:
            result = self._pricing.raise_bound(prices)
        added = self._take_columns(result.points)
        if result.status is SearchStatus.MEMORY_LIMIT and not added:
            raise Ended(EnvelopeStatus.MEMORY_LIMIT)
        return added or self._locally or self.bound > bound

    def price_until(self, wanted: float) -> None:
        """Rounds at the prices of `prepare`, without master programs, up to this bound, or until a
        member of the set costs so little that they do not prove it.
        """
        # That entropies are not negative is none of what the prices prove.
        self.bound = -math.inf
        idle = 0
        for _ in range(MOST_ROUNDS):
            try:
                idle = 0 if self.price() else idle + 1
            except Ended:
                break
            costs = self.pool.reduced_costs(self.pool.points, self.prices)
            if costs.min() < -self.aim:
                # What they do prove is known after a tree.
                if self._locally:
                    self._pricing.raise_bound(self.prices)
                break
            is_over = self.seconds <= 0.0 or idle == IDLE_ROUNDS
            if self.bound >= wanted or is_over:
                break

    def _take_columns(self, points: Points) -> bool:
        """Members next to the cheapest columns, and cuts where these lie outside.

        Returns whether anything was added.
        """
        if not len(points):
            return False
        before = len(self.pool)
        reduced = self.pool.reduced_costs(points, self.prices)
        cheapest = np.argsort(reduced, kind="stable")[:CUTS_A_ROUND]
        # In the order of the search, so that equal runs give equal cuts.
        points = points.take(np.sort(cheapest))
        self._members.add(points)
        # Columns between the margin and the boundary are no members, and need no cut.
        not_members = self._convex.excess(points, self._margin) > 0.0
        self._members.add_beside(points.take(not_members))
        refined = self._outer.refine(points.take(self._convex.excess(points) > 0.0))
        return refined or len(self.pool) > before

    # ---------------------------------------------------------------------------- results

    def result(self, status: EnvelopeStatus, started: float) -> Envelope:
        """The envelope of the convex set."""
        pool = self.pool
        used = np.flatnonzero(pool.weights > 0.0)
        return Envelope(
            status=status,
            weights=pool.weights[used],
            points=pool.points.take(used),
            value=pool.value,
            bound=self.bound,
            dual=self.dual,
            method=METHOD,
            pool=pool.points,
            rounds=self.rounds,
            columns=len(pool),
            counts=self._pricing.counts,
            seconds=time.process_time() - started,
            seconds_pricing=self._pricing.seconds,
        )


class Members:
    """Adds to a pool what lies in the set with a margin, and members next to what does not."""

    def __init__(
        self, convex: ConvexSet, point: Array, margin: float, pool: ColumnPool
    ) -> None:
        self._convex = convex
        self._point = point
        self._margin = margin
        self._pool = pool
        self._center = (convex.matrix @ point)[:, None]

    def add(self, points: Points) -> None:
        """Append those of the points that are members."""
        inside = self._convex.excess(points, self._margin) <= 0.0
        self._pool.append(points.take(inside))

    def add_beside(self, outside: Points) -> None:
        """Append members next to columns outside: on the way to p, and on their own supports."""
        if not len(outside):
            return
        images = outside.images(self._convex.matrix).T
        dense = outside.toarray()
        shares = self._convex.shares_inside(self._center, images, self._margin)
        self._add_dense(self._point + shares[:, None] * (dense - self._point))
        # A member on the support of the column itself costs less entropy than the one above, which
        # has p mixed in. A little of that one makes up for the move, so that the mean is p still.
        self._add_dense(self._convex.repaired(dense, self._margin))

    def _add_dense(self, points: Array) -> None:
        """Append those of the points (k, n) that are members."""
        images = self._convex.matrix @ points.T
        inside = self._convex.excess_of(images, self._margin) <= 0.0
        if inside.any():
            self._pool.append(Points.from_dense(points[inside]))
