"""The lower convex envelope of the entropy over a convex set that is no polytope.

    minimise sum_k w_k H(v_k)   subject to   sum_k w_k v_k = p,  w >= 0,  v_k in the set

Cuts make a polytope around the set (`convex_pricing`). A round has three steps; data go from
one to the next:

1. The master program over the members so far gives a decomposition, its value, and prices y
   (`MemberMaster`).
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

*The master program* over the members v_k so far, where p is the point, in designs P_X, and H the
entropy in nats, is linear:

    minimise sum_k w_k H(v_k)   subject to   sum_k w_k v_k = p,  w >= 0

Each v_k is a column of it. `solve` gives the new members to HiGHS, which goes
on from its last basis. The weights w are the decomposition. The dual prices y tell which further
columns v would help: those of negative reduced cost H(v) - y.v.

The search looks for such columns in a polytope around the set, so they mostly lie
outside the set itself. `add_beside` adds the members next to them instead: the last one on the way
from p to the column, and one on the column's own support. For example, let p = (1/2, 1/2), and let
the set be the v from (1/4, 3/4) to (3/4, 1/4). Then the column (1, 0) gives the member (3/4, 1/4).

All members keep a margin from the boundary of the set, so that rounding does not move them out.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from solvers.envelope.convex_pricing import (
    COLUMN_SHARE,
    CUTOFF_SHARE,
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
from solvers.results import Envelope, EnvelopeStatus, Progress, run_rounds
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
    search = EnvelopeSearch(convex, outer, point, margin, limits, progress)
    candidates = [points for _, points in incumbents()]
    if start is not None and len(start):
        candidates.append(start)
    for points in candidates:
        search.add_members(points)
    try:
        search.prepare(dual)
    except KeyboardInterrupt:
        return search.result(EnvelopeStatus.INTERRUPTED, started)
    status = run_rounds(search, gap=gap, end=limits.end, most_idle=IDLE_ROUNDS)
    return search.result(status, started)


class EnvelopeSearch:
    """The rounds of one run: its master, its pricing, and the set around the members.

    `convex_envelope` calls `add_members` for what the caller knows, `prepare` for the first members
    and cuts, `run_rounds` with its rounds, and `result` at the end, also after Ctrl-C.

    Raises
    ------
    OutsidePolytope
        If the point is no member.
    """

    def __init__(
        self,
        convex: ConvexSet,
        outer: OuterSet,
        point: Array,
        margin: float,
        limits: Limits,
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self._convex = convex
        self._outer = outer
        self._point = point
        self._margin = margin
        self._limits = limits
        self._progress = progress
        itself = Points.from_dense(point)
        if convex.excess(itself, margin)[0] > 0.0:
            raise OutsidePolytope(
                "point is not in the set, so it has no decomposition",
                np.zeros(len(point)),
                0.0,
            )
        self._master = MemberMaster(convex, point, margin)
        self._master.add(itself)
        report = None
        if progress is not None:
            report = self.report
        self._pricing = ConvexPricing(outer, point, limits, report)
        self._rounds = 0
        # Local searches come first, until they find nothing that gains much.
        self._locally = True
        self._is_out_of_memory = False

    # ------------------------------------------------------------- first members and cuts

    def add_members(self, points: Points) -> None:
        """Those of the points that are members."""
        self._master.add(points)

    def prepare(self, dual: ArrayLike | None) -> None:
        """First members and cuts; `dual` are prices of the caller for the first round."""
        self._add_units()
        self._master.solve(self._limits.end)
        if len(self._point) >= PAIRS_FROM and self._limits.seconds > 0.0:
            self._add_pairs()
        if dual is not None:
            self._master.prices = np.asarray(dual, dtype=np.float64)

    def _add_units(self) -> None:
        """Cuts where the ways from the point to the unit vectors leave the set.

        The crossings become members: a little of them completes any other columns to a
        decomposition. Else one rare coordinate that these miss would leave the point itself alone.
        """
        units = Points.units(np.arange(len(self._point)), len(self._point))
        excess = self._convex.excess(units)
        waiting = excess > 0.0
        self._master.add(units)
        self._master.add_beside(units.take(waiting))
        images = units.images(self._convex.matrix)
        while waiting.any():
            # The farthest unit vector that no cut has removed yet.
            farthest = int(np.argmax(np.where(waiting, excess, -np.inf)))
            waiting[farthest] = False
            for cut in self._outer.cut(units.take([farthest])):
                waiting &= images @ cut.normal <= cut.offset

    def _add_pairs(self) -> None:
        """Members that mix two coordinates, those that the master can use, and cuts there."""
        gap = self._limits.gap
        pairs = pair_members(self._convex, self._margin)
        entropies = pairs.entropies()

        # Of the pairs the cheapest at the present prices become members, until none gains: all of
        # them together would make every master program slow.
        waiting = np.ones(len(pairs), bool)
        a_round = max(CUTS_A_ROUND, len(self._point))
        while self._limits.seconds > 0.0:
            reduced = entropies - pairs.dot(self._master.prices)
            gaining = waiting & (reduced < -COLUMN_SHARE * gap)
            if not gaining.any():
                break
            order = np.argsort(np.where(gaining, reduced, np.inf), kind="stable")
            chosen = order[: min(a_round, int(gaining.sum()))]
            waiting[chosen] = False
            self._master.append(pairs.take(chosen))
            if not self._master.solve(self._limits.end):
                break

        # Pairs lie on the boundary of the set, so cuts touch it at the cheapest of them.
        reduced = entropies - pairs.dot(self._master.prices)
        most = CUTS_A_COORDINATE * len(self._point)
        near = np.argsort(reduced, kind="stable")[:most]
        near = near[reduced[near] < CUTOFF_SHARE * gap]
        self._outer.touch(pairs.take(near).images(self._convex.matrix))

    # ------------------------------------------------------------------------ the rounds

    @property
    def value(self) -> float:
        """The cost of the best decomposition, in nats."""
        return self._master.value

    @property
    def bound(self) -> float:
        """The proven bound of the cost, in nats."""
        return self._pricing.bound

    def solve(self) -> EnvelopeStatus | None:
        """The best decomposition into the members so far."""
        if not self._master.is_solved and not self._master.solve(self._limits.end):
            # A master program that met the limit has not failed.
            if self._limits.seconds <= 0.0:
                return EnvelopeStatus.TIME_LIMIT
            return EnvelopeStatus.BACKEND_FAILED
        if self._is_out_of_memory:
            return EnvelopeStatus.MEMORY_LIMIT
        return None

    def price(self) -> bool:
        """Columns by local searches, and once these find little by branch and bound."""
        prices = self._master.prices
        bound = self.bound
        searched_locally = self._locally
        self._rounds += 1
        if searched_locally:
            result = self._pricing.descend(prices)
            best = self._master.reduced_costs(result.points).min(initial=0.0)
            self._locally = -best > SEARCHED_SHARE * self._limits.gap
        else:
            result = self._pricing.raise_bound(prices)
        added = self._take_columns(result.points)
        self._is_out_of_memory = (
            result.status is SearchStatus.MEMORY_LIMIT and not added
        )
        return added or self._locally or self.bound > bound

    def price_until(self, wanted: float) -> None:
        """Rounds at the prices of `prepare`, without master programs, up to this bound, or until a
        member of the set costs so little that they do not prove it.
        """
        idle = 0
        for _ in range(MOST_ROUNDS):
            idle = 0 if self.price() else idle + 1
            costs = self._master.reduced_costs(self._master.members)
            if costs.min() < -self._limits.gap:
                # What they do prove is known after a tree.
                if self._locally:
                    self._pricing.raise_bound(self._master.prices)
                break
            is_over = self._limits.seconds <= 0.0 or idle == IDLE_ROUNDS
            if self.bound >= wanted or is_over:
                break

    def _take_columns(self, points: Points) -> bool:
        """Members next to the cheapest columns, and cuts where these lie outside.

        Returns whether anything was added.
        """
        if not len(points):
            return False
        before = len(self._master)
        reduced = self._master.reduced_costs(points)
        cheapest = np.argsort(reduced, kind="stable")[:CUTS_A_ROUND]
        # In the order of the search, so that equal runs give equal cuts.
        points = points.take(np.sort(cheapest))
        self._master.add(points)
        # Columns between the margin and the boundary are no members, and need no cut.
        not_members = self._convex.excess(points, self._margin) > 0.0
        self._master.add_beside(points.take(not_members))
        refined = self._outer.refine(points.take(self._convex.excess(points) > 0.0))
        return refined or len(self._master) > before

    # ---------------------------------------------------------------------------- results

    def result(self, status: EnvelopeStatus, started: float) -> Envelope:
        """The envelope of the convex set."""
        master = self._master
        used = np.flatnonzero(master.weights > 0.0)
        return Envelope(
            status=status,
            weights=master.weights[used],
            points=master.members.take(used),
            value=master.value,
            bound=self._pricing.bound,
            dual=self._pricing.dual,
            method=METHOD,
            pool=master.members,
            rounds=self._rounds,
            columns=len(master),
            counts=self._pricing.counts,
            seconds=time.process_time() - started,
            seconds_pricing=self._pricing.seconds,
        )

    def report(self) -> None:
        """Tell the caller how the search stands, if he wants to know."""
        if self._progress is None:
            return
        self._progress(
            Progress(
                value=self.value,
                bound=self.bound,
                rounds=self._rounds,
                columns=len(self._master),
                nodes=self._pricing.counts.nodes,
            )
        )


MASTER_SECONDS = 10.0
"""Time that one master program over members may take; it needs milliseconds."""

LEAST_SECONDS = 0.1
"""Time that the last master program has although the limit is reached."""


class MemberMaster:
    """Members that keep a margin from the boundary, and the master program over them.

    Attributes
    ----------
    members : Points, (k, n)
        All of them in the order in which they came; the point itself is the first.
    weights : array
        The best decomposition so far, over the first members.
    value : float
        Its cost in nats.
    prices : (n,) array
        y of the last program, at which columns are searched next; a caller may set better ones.
    """

    def __init__(self, convex: ConvexSet, point: Array, margin: float) -> None:
        self._convex = convex
        self._point = point
        self._margin = margin
        self._center = (convex.matrix @ point)[:, None]
        # The point alone is a decomposition: a value without any program.
        self.members = Points.from_dense(point)
        self.weights = np.ones(1)
        self.value = float(self.members.entropies()[0])
        self.prices = np.zeros(len(point))
        self._program = HighsMaster(point)
        # Number of members that the program has already.
        self._listed = 0

    def __len__(self) -> int:
        return len(self.members)

    @property
    def is_solved(self) -> bool:
        """Whether the program has all members, so that solving it again would change nothing."""
        return self._listed == len(self.members)

    # ---------------------------------------------------------------------------- members

    def add(self, points: Points) -> None:
        """Append those of the points that are members."""
        inside = self._convex.excess(points, self._margin) <= 0.0
        self.append(points.take(inside))

    def append(self, members: Points) -> None:
        """Append points that were found to be members."""
        if len(members):
            self.members = Points.concatenate([self.members, members])

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
            self.append(Points.from_dense(points[inside]))

    # ---------------------------------------------------------------------------- program

    def solve(self, end: float) -> bool:
        """The best decomposition into the members so far, and its prices; whether HiGHS found
        them.
        """
        # Only the new members: the program goes on from the basis of the others.
        fresh = self.members.take(np.arange(self._listed, len(self.members)))
        self._program.add(fresh, fresh.entropies())
        self._listed = len(self.members)
        seconds = min(MASTER_SECONDS, max(LEAST_SECONDS, end - time.process_time()))
        solution = self._program.solve(seconds)
        if not solution.is_optimal:
            return False
        self.prices = solution.dual
        costs = self.members.entropies()
        # Exact summation, so that values of different rounds can be compared at their last digits.
        value = math.fsum((solution.weights * costs).tolist())
        # A program may end a rounding above the last one: its weights are no gain then.
        if value < self.value:
            self.weights = solution.weights
            self.value = value
        return True

    def reduced_costs(self, points: Points) -> Array:
        """H(v) - y.v of points at the present prices, (k,); negative ones gain."""
        return points.entropies() - points.dot(self.prices)
