"""The lower convex envelope of the entropy over a convex set that is no polytope.

    minimise sum_k w_k H(v_k)   subject to   sum_k w_k v_k = p,  w >= 0,  v_k in the set

Cuts make a polytope around the set (`solvers.convex_set`). A round has three steps:

1. The master program over the members so far gives a decomposition, its value, and prices y.
2. Columns v of H(v) - y.v < 0 are searched over the polytope. Local searches come first, for they
   are cheap. Then branch and bound proves H(v) - y.v >= m there, and so the bound y.p + m for the
   set (docs/explanation/optimum-theory.md, 'A bound from prices').
3. A column outside the set gives two things: members next to it for the master, and a cut that
   touches the set there (outer approximation, Kelley 1960, around a concave minimisation).

The rounds end when the bound meets the value. For example, around a disc the first cuts make a
square; its corners are the cheapest columns, the next cuts remove them, and the points of the
circle next to them are members.

Invariants: every column of the result is a member, the value is the cost of a decomposition of the
point, and the bound holds for the set itself, because every cut holds for all of it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from solvers.concave import SearchCounts, SearchResult, SearchStatus
from solvers.convex_set import ConvexSet, Cut
from solvers.cut_search import CutSearch
from solvers.cuts import Cuts
from solvers.envelope import Incumbents, deadline
from solvers.errors import OutsidePolytope
from solvers.pair_members import pair_members
from solvers.points import Array, Points
from solvers.programs.highs import HighsMaster
from solvers.results import (
    Envelope,
    EnvelopeStatus,
    Pricer,
    Progress,
    envelope_bound,
    lowered_prices,
)

METHOD = "cuts"

CUTOFF_SHARE = 0.9
"""Share of the gap that pricing may leave; the rest is for the tolerance of the master."""

COLUMN_SHARE = 0.02
"""Columns that gain less than this share of the gap are not worth their place."""

EARLY_SLACK = 0.1
"""Share of the (negative) minimum that the bound of a round may lie below it: a sharper one does
not last."""

SEARCHED_SHARE = 10.0
"""Gaps: once local searches find no column that gains as much, branch and bound begins. It finds
more by then, and alone proves anything."""

MIXES = (0.5, 0.7, 0.9)
"""Weights of a unit vector against the point itself, from which local searches start in turn."""

PAIRS_FROM = 60
"""Coordinates from which all pairs are a better beginning than local searches alone."""

CUTS_A_COORDINATE = 2
"""Cuts for each coordinate that the cheapest pairs give: more of them make every tree slower."""

CUTS_A_ROUND = 60
"""Columns that give cuts in one round, the cheapest first."""

MOST_LOWERINGS = 3
"""Times in a row that prices of rare coordinates are lowered and priced again."""

IDLE_ROUNDS = 3
"""Rounds of branch and bound without a column or a better bound, after which the search counts as
stalled."""

MASTER_SECONDS = 10.0
"""Time that one master program over members may take; it needs milliseconds."""

LEAST_SECONDS = 0.1
"""Time that the last master program has although the limit is reached."""


def convex_envelope(
    convex: ConvexSet,
    point: Array,
    *,
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
    return run_search(
        EnvelopeSearch(convex, point, margin),
        gap=gap,
        time_limit=time_limit,
        workers=workers,
        start=start,
        dual=dual,
        incumbents=incumbents,
        progress=progress,
    )


def run_search(
    search: EnvelopeSearch,
    *,
    gap: float,
    time_limit: float | None,
    workers: int,
    start: Points | None,
    dual: ArrayLike | None,
    incumbents: Incumbents,
    progress: Callable[[Progress], None] | None,
) -> Envelope:
    """Run a search from what is known; parameters and errors are those of `convex_envelope`."""
    started = time.monotonic()
    end = deadline(started, gap, time_limit)
    search.begin()
    candidates = [points for _, points in incumbents()]
    if start is not None and len(start):
        candidates.append(start)
    for points in candidates:
        search.add_members(points)
    status = EnvelopeStatus.STALLED
    try:
        search.add_unit_cuts()
        search.solve_master(end)
        search.add_pairs(gap, end)
        if dual is not None:
            search.prices = np.asarray(dual, dtype=np.float64)
        status = search.run(_Limits(gap, end, workers), progress)
    except KeyboardInterrupt:
        status = EnvelopeStatus.INTERRUPTED
    return search.result(status, started)


@dataclass(frozen=True)
class _Limits:
    """The gap in nats, the end on the clock of `time.monotonic`, and the threads of one search."""

    gap: float
    end: float
    workers: int

    @property
    def seconds(self) -> float:
        """The time that is left."""
        return max(0.0, self.end - time.monotonic())


class EnvelopeSearch:
    """Cuts, members and the best decomposition of one run.

    `run_search` calls `begin`, then `add_members`, `add_unit_cuts`, `solve_master` and `add_pairs`
    for the first members and cuts, `run` for the rounds, and `result` at the end, also after
    Ctrl-C. Columns are searched next at `prices`, and `dual` are the prices that prove the bound.
    `value` and `bound` are in nats.
    """

    def __init__(self, convex: ConvexSet, point: Array, margin: float) -> None:
        self.bound = -math.inf
        self.dual = np.zeros(len(point))
        self.prices = np.zeros(len(point))
        self._convex = convex
        self._point = point
        self._margin = margin
        self._center = (convex.matrix @ point)[:, None]
        # The point itself is the first member, and its trivial decomposition the first value.
        self._members = Points.from_dense(point)
        self._weights = np.ones(1)
        self.value = float(self._members.entropies()[0])
        self._rounds = 0
        # Number of local searches so far: each starts from other places.
        self._turn = 0
        self._counts = SearchCounts()
        self._pricing_seconds = 0.0
        self._master = HighsMaster(point)
        # Number of members that the master has already.
        self._listed = 0
        self._cuts = Cuts(convex)
        self._searcher: CutSearch | None = None

    def begin(self) -> None:
        """Take the point itself as the first member.

        Raises
        ------
        OutsidePolytope
            If it is none.
        """
        itself = Points.from_dense(self._point)
        if self._convex.excess(itself, self._margin)[0] > 0.0:
            normal = np.zeros(len(self._point))
            raise OutsidePolytope(
                "point is not in the set, so it has no decomposition", normal, 0.0
            )
        self.add_members(itself)

    # ------------------------------------------------------------------------ the rounds

    def run(
        self, limits: _Limits, progress: Callable[[Progress], None] | None
    ) -> EnvelopeStatus:
        """Rounds of searching and cutting until the gap is closed, or the time is over."""
        # Local searches come first, until they find nothing that gains much.
        locally = True
        idle = 0
        while self.value - self.bound > limits.gap:
            if limits.seconds <= 0.0:
                return EnvelopeStatus.TIME_LIMIT
            self._rounds += 1
            prices = self.prices
            bound = self.bound
            if locally:
                result = self._search_locally(limits)
                locally = self._gain(result.points) > SEARCHED_SHARE * limits.gap
            else:
                result = self._raise_bound(limits, progress)
            added = self._take_columns(result.points, prices)
            solved = self.solve_master(limits.end)

            if progress is not None:
                progress(self._progress())
            if not solved:
                # A master program that met the limit has not failed.
                if limits.seconds <= 0.0:
                    return EnvelopeStatus.TIME_LIMIT
                return EnvelopeStatus.BACKEND_FAILED
            if result.status is SearchStatus.MEMORY_LIMIT and not added:
                return EnvelopeStatus.MEMORY_LIMIT
            if added or locally or self.bound > bound:
                idle = 0
            else:
                idle += 1
            if idle > IDLE_ROUNDS:
                return EnvelopeStatus.STALLED
        return EnvelopeStatus.OPTIMAL

    def pricer(self, workers: int) -> Pricer:
        """The search over the polytope of all cuts so far."""
        if self._searcher is None:
            self._searcher = CutSearch(self._cuts.polytope, workers=workers)
        return self._searcher.run

    def _search_locally(self, limits: _Limits) -> SearchResult:
        """Descents from between the point and the unit vectors, which prove nothing."""
        mix = MIXES[self._turn % len(MIXES)]
        turn = self._turn // len(MIXES)
        self._turn += 1
        return self._call_pricer(
            self.prices,
            limits,
            center=self._point,
            mix=mix,
            turn=turn,
            enough=0,
            cutoff=-math.inf,
            tolerance=limits.gap,
        )

    def _raise_bound(
        self, limits: _Limits, progress: Callable[[Progress], None] | None
    ) -> SearchResult:
        """Branch and bound over the polytope at the master's prices, which proves a bound."""
        prices = self.prices
        result = self._search_tree(prices, limits, progress)
        for _ in range(MOST_LOWERINGS):
            if not len(result.points) or result.bound >= -CUTOFF_SHARE * limits.gap:
                break
            # Blunt prices of rare coordinates may be all that keeps the bound down.
            lowered = lowered_prices(prices, result.points, self._point, limits.gap)
            if lowered is None or limits.seconds <= 0.0:
                break
            prices = lowered
            further = self._search_tree(prices, limits, progress)
            points = Points.concatenate([result.points, further.points])
            result = SearchResult(further.status, further.bound, points, further.counts)
        return result

    def _search_tree(
        self,
        prices: Array,
        limits: _Limits,
        progress: Callable[[Progress], None] | None,
    ) -> SearchResult:
        """One branch and bound at these prices, whose bound is kept if it is the best."""

        def report(minimum: float) -> None:
            if progress is not None:
                self._take_bound(prices, minimum)
                progress(self._progress())

        result = self._call_pricer(
            prices,
            limits,
            cutoff=-CUTOFF_SHARE * limits.gap,
            tolerance=0.0,
            progress=report,
        )
        self._take_bound(prices, result.bound)
        return result

    def _take_bound(self, prices: Array, minimum: float) -> None:
        """Keep the bound that these prices and the minimum of H(v) - prices.v prove, if better."""
        bound = envelope_bound(prices, self._point, minimum)
        if bound > self.bound:
            self.bound = bound
            self.dual = prices

    def _call_pricer(
        self, prices: Array, limits: _Limits, **options: object
    ) -> SearchResult:
        """Run the pricer in the time that is left, and count its effort."""
        started = time.monotonic()
        result = self.pricer(limits.workers)(
            prices,
            slack=EARLY_SLACK,
            column_cutoff=-COLUMN_SHARE * limits.gap,
            time_limit=limits.seconds,
            **options,
        )
        self._pricing_seconds += time.monotonic() - started
        self._counts += result.counts
        return result

    def _gain(self, points: Points) -> float:
        """What the best of the columns gains at the present prices."""
        if not len(points):
            return 0.0
        return float((points.dot(self.prices) - points.entropies()).max())

    def _take_columns(self, points: Points, prices: Array) -> bool:
        """Members next to the cheapest columns, and cuts where these lie outside.

        Returns whether anything was added.
        """
        if not len(points):
            return False
        before = len(self._members)
        reduced = points.entropies() - points.dot(prices)
        cheapest = np.argsort(reduced, kind="stable")[:CUTS_A_ROUND]
        # In the order of the search, so that equal runs give equal cuts.
        points = points.take(np.sort(cheapest))
        self.add_members(points)
        # Columns between the margin and the boundary are no members, and need no cut.
        self._add_pulled(points.take(self._convex.excess(points, self._margin) > 0.0))
        refined = self.refined(points.take(self._convex.excess(points) > 0.0))
        return refined or len(self._members) > before

    # ------------------------------------------------------------------- members and cuts

    def add_members(self, points: Points) -> None:
        """Keep those of the points that are members."""
        inside = self._convex.excess(points, self._margin) <= 0.0
        if inside.any():
            self._members = Points.concatenate([self._members, points.take(inside)])

    def _add_dense(self, points: Array) -> None:
        """Keep those of the points (k, n) that are members."""
        images = self._convex.matrix @ points.T
        inside = self._convex.excess_of(images, self._margin) <= 0.0
        if inside.any():
            members = Points.from_dense(points[inside])
            self._members = Points.concatenate([self._members, members])

    def add_unit_cuts(self) -> None:
        """Cuts where the ways from the point to the unit vectors leave the set.

        The crossings become members: a little of them completes any other columns to a
        decomposition. Else one rare coordinate that these miss would leave the point itself alone.
        """
        units = Points.units(np.arange(len(self._point)), len(self._point))
        excess = self._convex.excess(units)
        waiting = excess > 0.0
        self.add_members(units)
        self._add_pulled(units.take(waiting))
        images = units.images(self._convex.matrix)
        while waiting.any():
            # The farthest unit vector that no cut has removed yet.
            farthest = int(np.argmax(np.where(waiting, excess, -np.inf)))
            waiting[farthest] = False
            for cut in self.cut(units.take([farthest])):
                waiting &= images @ cut.normal <= cut.offset

    def add_pairs(self, gap: float, end: float) -> None:
        """Members that mix two coordinates, those that the master can use, and cuts there."""
        if len(self._point) < PAIRS_FROM or time.monotonic() >= end:
            return
        pairs = pair_members(self._convex, self._margin)
        entropies = pairs.entropies()

        # Of the pairs the cheapest at the present prices become members, until none gains.
        waiting = np.ones(len(pairs), bool)
        a_round = max(CUTS_A_ROUND, len(self._point))
        while time.monotonic() < end:
            reduced = entropies - pairs.dot(self.prices)
            gaining = waiting & (reduced < -COLUMN_SHARE * gap)
            if not gaining.any():
                break
            order = np.argsort(np.where(gaining, reduced, np.inf), kind="stable")
            chosen = order[: min(a_round, int(gaining.sum()))]
            waiting[chosen] = False
            self._members = Points.concatenate([self._members, pairs.take(chosen)])
            if not self.solve_master(end):
                break

        # Pairs lie on the boundary of the set, so cuts touch it at the cheapest of them.
        reduced = entropies - pairs.dot(self.prices)
        near = np.argsort(reduced, kind="stable")[
            : CUTS_A_COORDINATE * len(self._point)
        ]
        near = near[reduced[near] < CUTOFF_SHARE * gap]
        self._cut_at(pairs.take(near).images(self._convex.matrix))

    def _cut_at(self, images: Array) -> None:
        """Cuts that touch the set at these images (k, m) on its boundary."""
        cuts: list[Cut] = []
        for image in images:
            cuts += self._convex.cuts_at(image)
        self._cuts.add(cuts)
        self._searcher = None

    def refined(self, outside: Points) -> bool:
        """Come nearer to the set where these columns are outside; whether anything changed."""
        return len(self.cut(outside)) > 0

    def cut(self, outside: Points) -> list[Cut]:
        """Add a cut next to each point outside, and return all of them.

        It touches the set at the member next to the point on its own support, where there is one:
        such a cut goes deepest. Else, or where that cut leaves the point, it touches the set where
        the way from P_X to the point crosses the boundary; that one always removes it.
        """
        if not len(outside):
            return []
        images = outside.images(self._convex.matrix).T
        near = self._convex.repaired(outside.toarray(), 0.0)
        near_images = self._convex.matrix @ near.T
        shares = self._convex.shares_inside(self._center, images, 0.0)
        crossings = self._center + shares * (images - self._center)
        cuts: list[Cut] = []
        triples = zip(images.T, near_images.T, crossings.T, strict=True)
        for image, touch, crossing in triples:
            deep: list[Cut] = []
            if np.isfinite(touch).all():
                deep = removing(self._convex.cuts_at(touch), image)
            cuts += deep or self._convex.cuts_at(crossing)
        self._cuts.add(cuts)
        self._searcher = None
        return cuts

    def _add_pulled(self, outside: Points) -> None:
        """Members next to columns outside: on the way to P_X, and on their own supports."""
        if not len(outside):
            return
        images = outside.images(self._convex.matrix).T
        dense = outside.toarray()
        shares = self._convex.shares_inside(self._center, images, self._margin)
        pulled = self._point + shares[:, None] * (dense - self._point)
        self._add_dense(pulled)
        # Next to the column itself, where its support has members. A little of the column above
        # makes up for the move, and costs less than P_X in every column.
        repaired = self._convex.repaired(dense, self._margin)
        self._add_dense(repaired)

    # ------------------------------------------------------------------ master and result

    def solve_master(self, end: float) -> bool:
        """The best decomposition into the members so far, and its prices; whether HiGHS found
        them.
        """
        fresh = self._members.take(np.arange(self._listed, len(self._members)))
        self._master.add(fresh, fresh.entropies())
        self._listed = len(self._members)
        seconds = min(MASTER_SECONDS, max(LEAST_SECONDS, end - time.monotonic()))
        solution = self._master.solve(seconds)
        if not solution.is_optimal:
            return False
        self.prices = solution.dual
        costs = self._members.entropies()
        value = math.fsum((solution.weights * costs).tolist())
        if value < self.value:
            self._weights = solution.weights
            self.value = value
        return True

    def result(self, status: EnvelopeStatus, started: float) -> Envelope:
        """The envelope of the convex set."""
        used = np.flatnonzero(self._weights > 0.0)
        return Envelope(
            status=status,
            weights=self._weights[used],
            points=self._members.take(used),
            value=self.value,
            bound=self.bound,
            dual=self.dual,
            method=METHOD,
            pool=self._members,
            rounds=self._rounds,
            columns=len(self._members),
            counts=self._counts,
            seconds=time.monotonic() - started,
            seconds_pricing=self._pricing_seconds,
        )

    def _progress(self) -> Progress:
        """The search as it stands."""
        return Progress(
            value=self.value,
            bound=self.bound,
            rounds=self._rounds,
            columns=len(self._members),
            nodes=self._counts.nodes,
        )


def removing(cuts: list[Cut], image: Array) -> list[Cut]:
    """Those of the cuts that the image violates."""
    return [cut for cut in cuts if float(cut.normal @ image) > cut.offset]
