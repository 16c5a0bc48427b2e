"""The lower convex envelope of the entropy over a convex set that is no polytope.

    minimise sum_k w_k H(v_k)   subject to   sum_k w_k v_k = p,  w >= 0,  v_k in the set

Cuts make a polytope around the set (`solvers.convex_set`), and the envelope over that polytope
(`lower_envelope`) is a bound for the set. Its columns that lie outside are pulled back to the
boundary; the master program over all members is the value. New cuts touch the set where columns
left it, until value and bound meet (outer approximation, Kelley 1960, around a concave
minimisation).

Invariants: every column of the result is a member, the value is the cost of a decomposition of the
point, and the bound holds for the set itself, because every cut holds for all of it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from solvers.concave import SearchCounts
from solvers.convex_set import ConvexSet, Cut
from solvers.envelope import Incumbents, deadline, lower_envelope
from solvers.errors import BackendFailure, OutsidePolytope
from solvers.points import Array, Points
from solvers.polytope import Polytope
from solvers.programs.highs import HighsMaster
from solvers.results import Envelope, EnvelopeStatus, Progress

METHOD = "cuts"

LATER_GAP = 0.25
"""Share of the gap asked for that the envelope over the cuts may leave open; the rest is for the
way from the columns to the members."""

FIRST_SHARE = 0.1
"""Share of the present gap that the envelope over the cuts may leave open while they are coarse."""

MOST_ROUNDS = 200
"""Rounds after which the search counts as stalled; 3 to 20 close the gap on tables of the tests."""

CUTS_A_ROUND = 60
"""Violating columns that give cuts in one round, the cheapest at the current prices first."""

MOST_ENTRIES = 10_000
"""Positive entries of the members with which the envelope over the cuts begins, the cheapest at the
last prices: each entry is checked against every cut, and with more that takes longer than the
search."""

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
        Columns and prices of a neighbouring problem.
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
    search.add_unit_cuts()
    search.solve_master(end)
    if dual is not None:
        search.dual = np.asarray(dual, dtype=np.float64)
    status = EnvelopeStatus.STALLED
    try:
        status = search.run(gap, end, workers, progress)
    except KeyboardInterrupt:
        status = EnvelopeStatus.INTERRUPTED
    return search.result(status, started)


class EnvelopeSearch:
    """Cuts, members and the best decomposition of one run."""

    def __init__(self, convex: ConvexSet, point: Array, margin: float) -> None:
        self.value = 0.0
        self.bound = -math.inf
        self.dual: Array | None = None
        self._convex = convex
        self._point = point
        self._margin = margin
        self._center = (convex.matrix @ point)[:, None]
        # The point itself is the first member, and its trivial decomposition the first value.
        self._members = Points.from_dense(point)
        self._weights = np.ones(1)
        self.value = float(self._members.entropies()[0])
        self._rounds = 0
        self._counts = SearchCounts()
        self._master = HighsMaster(point)
        self._listed = 0
        self._cuts = Cuts(convex)

    @property
    def gap(self) -> float:
        """The present gap; before the first bound the value, for no entropy is negative."""
        return self.value - max(self.bound, 0.0)

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

    def run(
        self,
        gap: float,
        end: float,
        workers: int,
        progress: Callable[[Progress], None] | None,
    ) -> EnvelopeStatus:
        """Rounds of cutting until the gap is closed, or the time is over."""
        share = FIRST_SHARE
        for _ in range(MOST_ROUNDS):
            remaining = end - time.monotonic()
            if remaining <= 0.0:
                return EnvelopeStatus.TIME_LIMIT
            inner_progress = None
            if progress is not None:
                inner_progress = self._reported(progress)
            try:
                envelope = self.envelope_around(
                    max(LATER_GAP * gap, share * self.gap),
                    None if math.isinf(end) else remaining,
                    workers,
                    inner_progress,
                )
            except BackendFailure:
                return EnvelopeStatus.BACKEND_FAILED
            advanced = self._learn(envelope)
            self.solve_master(end)
            if progress is not None:
                progress(self._moment(envelope.counts.nodes))
            if self.value - self.bound <= gap:
                return EnvelopeStatus.OPTIMAL
            stopped = envelope.status not in (
                EnvelopeStatus.OPTIMAL,
                EnvelopeStatus.STALLED,
            )
            if stopped:
                return envelope.status
            if not advanced and share == 0.0:
                return EnvelopeStatus.STALLED
            # Where no column left the set, only a sharper envelope over the same cuts can help.
            share = FIRST_SHARE if advanced else 0.0
        return EnvelopeStatus.STALLED

    def envelope_around(
        self,
        gap: float,
        seconds: float | None,
        workers: int,
        progress: Callable[[Progress], None] | None,
    ) -> Envelope:
        """The envelope over the cuts so far, which proves a bound."""
        return lower_envelope(
            self._cuts.polytope,
            self._point,
            # Cuts meet in more vertices with every round; columns need no list of them.
            method="columns",
            gap=gap,
            time_limit=seconds,
            workers=workers,
            start=self._first_columns(),
            dual=self.dual,
            progress=progress,
        )

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

    def solve_master(self, end: float) -> None:
        """The best decomposition into the members so far; the old one where HiGHS finds none."""
        fresh = self._members.take(np.arange(self._listed, len(self._members)))
        self._master.add(fresh, fresh.entropies())
        self._listed = len(self._members)
        seconds = min(MASTER_SECONDS, max(LEAST_SECONDS, end - time.monotonic()))
        solution = self._master.solve(seconds)
        if not solution.is_optimal:
            return
        costs = self._members.entropies()
        value = math.fsum((solution.weights * costs).tolist())
        if value < self.value:
            self._weights = solution.weights
            self.value = value

    def result(self, status: EnvelopeStatus, started: float) -> Envelope:
        """The envelope of the convex set."""
        used = np.flatnonzero(self._weights > 0.0)
        dual = self.dual
        if dual is None:
            dual = np.zeros(len(self._point))
        return Envelope(
            status=status,
            weights=self._weights[used],
            points=self._members.take(used),
            value=self.value,
            bound=self.bound,
            dual=dual,
            method=METHOD,
            pool=self._members,
            rounds=self._rounds,
            columns=len(self._members),
            counts=self._counts,
            seconds=time.monotonic() - started,
        )

    def _first_columns(self) -> Points:
        """Members for the next envelope over the cuts: those in use and the cheapest."""
        if len(self._members.data) <= MOST_ENTRIES:
            return self._members
        reduced = self._members.entropies()
        if self.dual is not None:
            reduced = reduced - self._members.dot(self.dual)
        # Columns in use come first, whatever they cost at these prices.
        used = np.flatnonzero(self._weights > 0.0)
        reduced[used] = -np.inf
        order = np.argsort(reduced, kind="stable")
        entries = np.cumsum(self._members.sizes[order])
        return self._members.take(np.sort(order[entries <= MOST_ENTRIES]))

    def _learn(self, envelope: Envelope) -> bool:
        """Take the bound, pull columns into the set, and cut where they were outside.

        Returns whether anything was added.
        """
        self._rounds += 1
        self._counts = self._counts + envelope.counts
        self.dual = envelope.dual
        self.bound = max(self.bound, envelope.bound)
        used = envelope.points
        self.add_members(used)
        self._add_pulled(used.take(self._convex.excess(used, self._margin) > 0.0))
        reduced = envelope.pool.entropies() - envelope.pool.dot(envelope.dual)
        cheapest = np.argsort(reduced, kind="stable")[:CUTS_A_ROUND]
        near = envelope.pool.take(np.sort(cheapest))
        near_outside = near.take(self._convex.excess(near) > 0.0)
        self._add_pulled(near_outside)
        outside = used.take(self._convex.excess(used) > 0.0)
        return self.refined(Points.concatenate([outside, near_outside]))

    def refined(self, outside: Points) -> bool:
        """Come nearer to the set where these columns are outside; whether anything changed."""
        return len(self.cut(outside)) > 0

    def cut(self, outside: Points) -> list[Cut]:
        """Add cuts for each point outside, where the way from P_X to it crosses the boundary."""
        if not len(outside):
            return []
        images = outside.images(self._convex.matrix).T
        shares = self._convex.shares_inside(self._center, images, 0.0)
        crossings = self._center + shares * (images - self._center)
        cuts: list[Cut] = []
        for crossing in crossings.T:
            cuts += self._convex.cuts_at(crossing)
        self._cuts.add(cuts)
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

    def _reported(
        self, progress: Callable[[Progress], None]
    ) -> Callable[[Progress], None]:
        """The caller's progress, for the moments of the envelope over the cuts.

        Its value is that of columns outside the set, so only its bound counts.
        """

        def report(inner: Progress) -> None:
            self.bound = max(self.bound, inner.bound)
            progress(self._moment(inner.nodes))

        return report

    def _moment(self, nodes: int) -> Progress:
        """The search as it stands, with the nodes of the present round."""
        return Progress(
            value=self.value,
            bound=self.bound,
            rounds=self._rounds,
            columns=len(self._members),
            nodes=self._counts.nodes + nodes,
        )


class Cuts:
    """The cuts of one run."""

    def __init__(self, convex: ConvexSet) -> None:
        count, self._n = convex.matrix.shape
        self._convex = convex
        self._normals = np.zeros((0, count))
        self._offsets = np.zeros(0)

    def copy(self, convex: ConvexSet) -> Cuts:
        """The same cuts for another set in this one."""
        cuts = Cuts(convex)
        cuts._normals = self._normals
        cuts._offsets = self._offsets
        return cuts

    @property
    def polytope(self) -> Polytope:
        """All cuts, as rows over v; without any a row that holds for every v."""
        if not len(self._normals):
            nothing = np.zeros((1, self._n))
            return Polytope(nothing, np.full(1, -np.inf), np.ones(1))
        rows = self._normals @ self._convex.matrix
        # Products of normals and entries of A are rounded once more.
        sizes = np.abs(self._normals) @ np.abs(self._convex.matrix)
        offsets = self._offsets + self._convex.roundoff * sizes.max(axis=1)
        return Polytope(rows, np.full(len(rows), -np.inf), offsets)

    def add(self, cuts: list[Cut]) -> None:
        """Append cuts."""
        if not cuts:
            return
        normals: list[Array] = []
        offsets: list[float] = []
        for cut in cuts:
            # Powers of two make all rows of size about one, without any rounding.
            scale = 2.0 ** -math.frexp(float(np.abs(cut.normal).max()))[1]
            normals.append(scale * cut.normal)
            offsets.append(scale * cut.offset)
        self._normals = np.vstack([self._normals, *normals])
        self._offsets = np.append(self._offsets, offsets)
