"""The lower convex envelope of the entropy over two other sets than polytopes and convex sets.

*Sets that are not convex*, by convex sets that cover them. As `solvers.envelope.convex`, with
another set around the members (`OuterRegions`): a union of *regions*. A region is a box of images A
v, and in it cuts around a convex set (`CoveredSet.around`), which is the closer the smaller the box
is.

1. Prices y and a number m with H(v) - y.v >= m on every region give the bound y.p + m for all
   decompositions into members, because the weights of any one sum to one. So pricing searches the
   regions in turn, and the least of their bounds counts.
2. Where a column lies outside the convex set of its region, a cut removes it.
3. Where it lies inside, and is no member, the region is divided at its image, in the coordinate in
   which the convex function errs most there. The next round has two closer convex sets instead.

The first region is a box of all members. For example, with f(u) = |1/u - 1| on u in [1/2, 2], the
convex function below f has 1/4 at u = 3/2, where f has 1/3. Divided there, the regions are [1/2,
3/2] and [3/2, 2], and in both of them the function below meets f at 3/2.

*Uncertain sets*, whose inequalities have uncertain coefficients. It is the program of
`solvers.envelope.polytope`, over an `UncertainSet` in place of a polytope: the posteriors that keep
a promise for every population in a confidence set.

1. `RobustSearch` is the pricer: its branch and bound finds the violated inequalities by sorting.
2. The first columns are the point, the farthest member on the way to every unit vector, and those
   of the columns from elsewhere that are members (`_robust_columns`). Each has all coordinates, so
   where they would take too long, they lead to fewer sets of coordinates (`_first_sets`). The
   farthest members decompose the point by themselves (`along_ways`). The master over all first
   columns has a better decomposition, and prices to begin with (`_first_solution`); without time
   for it the first decomposition stays.
3. `solvers.envelope.generation` runs the same loop as over a polytope.

For example, at p = (0.5, 0.5) the farthest members might be (0.8, 0.2) and (0.2, 0.8). Half of each
decomposes p at 0.500 nats, and their prices are (0.5, 0.5).

Columns are members with the margin, and the bound holds for the set without it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from solvers.envelope.column_pool import along_ways
from solvers.envelope.convex import convex_envelope
from solvers.envelope.convex_pricing import removing
from solvers.envelope.generation import Generation
from solvers.envelope.polytope import checked_prices, concluded, deadline
from solvers.envelope.preparation import Incumbents, Resources, check_length
from solvers.errors import EmptyPolytope
from solvers.points import Array, Points
from solvers.pricing.concave import (
    MEMORY_LIMIT,
    ConcaveSearch,
    SearchCounts,
    SearchResult,
    SearchStatus,
)
from solvers.pricing.set_searches import RobustSearch
from solvers.programs import HighsMaster, MasterSolution
from solvers.results import Envelope, Pricer, Progress
from solvers.sets.convex_set import ConvexSet, CoveredSet, Cut, Cuts, TermsBelow
from solvers.sets.polytope import Polytope
from solvers.sets.uncertain import Sets, UncertainSet

# ------------------------------------------------------------------------- covered sets

LOW = 0
HIGH = 1
"""Ends of an interval in `_Region.bounded`."""

MEMBER = 1e-9
"""Excess, as a share of the bound, up to which a column counts as one of a convex set: columns lie
on its cuts."""

INNER_SHARE = 0.1
"""Share of a box that lies between its ends and the place where it is divided."""

NARROWEST = 1e-6
"""Boxes are not divided below this width, relative to their upper end."""

MOST_REGIONS = 2000
"""Regions beyond which none is divided any more."""

MOST_DIVISIONS = 60
"""Columns that may divide regions in one round, those of most weight first."""


def covered_envelope(covered: CoveredSet, point: Array, **options: Any) -> Envelope:
    """Decompose `point` into members of the set at least entropy, with a proven bound.

    Options and errors are those of `convex_envelope`; `outer` is given.
    """
    outer = OuterRegions(covered, point)
    return convex_envelope(covered, point, outer=outer, **options)


@dataclass(eq=False)
class _Region:
    """A box of images with cuts that hold for all members in it.

    `low` and `high` (m,) are the box, `around` the convex set, and `below` its functions in the
    place of those that are not convex. `search` is the pricing over the region's polytope, None
    after new cuts until it is needed again.
    """

    low: Array
    high: Array
    around: ConvexSet
    below: list[TermsBelow]
    cuts: Cuts
    bounded: NDArray[np.bool_]
    """Which images have a row for each end, (m, 2): those at which a region was divided."""
    search: ConcaveSearch | None = None
    is_empty: bool = False
    divided: bool = False

    def holds(self, image: Array) -> bool:
        """Whether the image lies between the ends that have rows, up to rounding.

        The other ends are those of the box of all members, and cuts remove what is beyond.
        """
        slack = MEMBER * (1.0 + self.high)
        below = self.bounded[:, LOW] & (image < self.low - slack)
        above = self.bounded[:, HIGH] & (image > self.high + slack)
        return not bool((below | above).any())

    def polytope(self) -> Polytope:
        """The cuts, and the ends of the box where it was divided."""
        cuts = self.cuts.polytope
        divided = self.bounded.any(axis=1)
        if not divided.any():
            return cuts
        matrix = self.around.matrix
        # The images of a probability vector are wrong by less.
        room = self.around.roundoff * np.abs(matrix).max(axis=1)
        low = np.where(self.bounded[:, LOW], self.low - room, -np.inf)[divided]
        high = np.where(self.bounded[:, HIGH], self.high + room, np.inf)[divided]
        return Polytope(
            np.vstack([cuts.rows, matrix[divided]]),
            np.concatenate([cuts.lower, low]),
            np.concatenate([cuts.upper, high]),
        )


class OuterRegions:
    """The `OuterSet` of the regions, in which `convex_envelope` searches columns.

    `pricer` searches all of them; `refine` cuts or divides those in which a column was found.
    """

    def __init__(self, covered: CoveredSet, point: Array) -> None:
        self._covered = covered
        self._center = (covered.matrix @ point)[:, None]
        around, below = covered.around(covered.low, covered.high)
        nothing = np.zeros((len(covered.low), 2), bool)
        whole = _Region(covered.low, covered.high, around, below, Cuts(around), nothing)
        self._regions = [whole]

    def pricer(self, workers: int) -> Pricer:
        """The search over the union of all regions."""
        searches: list[ConcaveSearch] = []
        for region in self._regions:
            if region.search is None and not region.is_empty:
                try:
                    region.search = ConcaveSearch(
                        region.polytope(), workers=workers, tightening=0.0
                    )
                except EmptyPolytope:
                    # No member lies in it, so it needs no bound.
                    region.is_empty = True
            if region.search is not None:
                searches.append(region.search)
        return _UnionPricer(searches).run

    def touch(self, images: Array) -> None:
        """Cuts of the regions that touch the set at these images."""
        for image in images:
            for region in self._regions:
                if region.holds(image):
                    region.cuts.add(region.around.cuts_at(image))
                    region.search = None

    def cut(self, outside: Points) -> list[Cut]:
        """Cuts for each column outside, in the regions that it lies in."""
        added: list[Cut] = []
        for image in outside.images(self._covered.matrix):
            for region in self._regions:
                if region.holds(image):
                    added += self._cut_region(region, image)
        return added

    def refine(self, outside: Points) -> bool:
        """Cuts, and divisions of the regions in whose convex sets the columns lie."""
        changed = len(self.cut(outside)) > 0
        fresh: list[_Region] = []
        for image in outside.images(self._covered.matrix):
            for region in self._regions:
                if region.divided or not self._may_divide(fresh):
                    continue
                if region.holds(image) and self._is_around(region, image):
                    halves = self._halves(region, image)
                    region.divided = len(halves) > 0
                    fresh += halves
        # A divided region stays in the list until here: it may hold further columns.
        self._regions = [region for region in self._regions if not region.divided]
        self._regions += fresh
        return changed or len(fresh) > 0

    def _is_around(self, region: _Region, image: Array) -> bool:
        """Whether the region's convex set holds the image."""
        return bool(region.around.excess_of(image[:, None], 0.0)[0] <= MEMBER)

    def _may_divide(self, fresh: list[_Region]) -> bool:
        """Whether there may be more regions, in all and of those that this round has made."""
        total = len(self._regions) + len(fresh)
        return total < MOST_REGIONS and len(fresh) < 2 * MOST_DIVISIONS

    def _cut_region(self, region: _Region, image: Array) -> list[Cut]:
        """Add cuts of the region's convex set that remove the image; none where it is a member."""
        if self._is_around(region, image):
            return []
        column = image[:, None]
        # A cut that touches the convex set where the way from the center leaves it always removes
        # the image (docs/explanation/averages-theory.md, Proposition 2). A set without the center
        # has no such way.
        touch = image
        if region.around.excess_of(self._center, 0.0)[0] <= 0.0:
            share = region.around.shares_inside(self._center, column, 0.0)
            touch = (self._center + share * (column - self._center))[:, 0]
        cuts = removing(region.around.cuts_at(touch), image)
        if cuts:
            region.cuts.add(cuts)
            region.search = None
        return cuts

    def _halves(self, region: _Region, image: Array) -> list[_Region]:
        """The region divided where the functions below err most at the image; none if too small."""
        column = image[:, None]
        # Error of each term, as a share of the bound of its function.
        errors = np.zeros(len(image))
        for function, below in zip(self._covered.nonconvex, region.below, strict=True):
            error = function.terms(column) - below.terms(column)
            errors += error[:, 0] / function.bound
        width = region.high - region.low
        errors[width <= NARROWEST * region.high] = -np.inf
        worst = int(np.argmax(errors))
        if not errors[worst] > 0.0:
            return []
        # At the image, but not so near to an end that one of the halves is hardly smaller.
        least = region.low[worst] + INNER_SHARE * width[worst]
        most = region.high[worst] - INNER_SHARE * width[worst]
        place = float(np.clip(image[worst], least, most))
        halves: list[_Region] = []
        for side in (LOW, HIGH):
            low = region.low.copy()
            high = region.high.copy()
            # The half above has the place as its lower end.
            if side == LOW:
                low[worst] = place
            else:
                high[worst] = place
            bounded = region.bounded.copy()
            bounded[worst, side] = True
            around, below = self._covered.around(low, high)
            # Cuts of the region hold for the members of both halves.
            cuts = region.cuts.copy(around)
            halves.append(_Region(low, high, around, below, cuts, bounded))
        return halves


class _UnionPricer:
    """`ConcaveSearch.run` for a union of polytopes: the least bound, and the columns of all."""

    def __init__(self, searches: list[ConcaveSearch]) -> None:
        self._searches = searches

    def run(
        self,
        prices: Array,
        *,
        cutoff: float,
        tolerance: float,
        slack: float,
        time_limit: float,
        progress: Callable[[float], None] | None = None,
        **options: Any,
    ) -> SearchResult:
        """As `ConcaveSearch.run`; `progress` is left out, for no region knows the others'
        bounds.
        """
        end = time.process_time() + time_limit
        bound = math.inf
        best = math.inf
        status = SearchStatus.DONE
        counts = SearchCounts()
        parts = [Points.units(np.arange(0), len(prices))]
        for search in self._searches:
            # Nothing above what another region has is of any use.
            reach = cutoff
            if best < math.inf:
                reach = min(cutoff, best - tolerance - slack * abs(best))
            result = search.run(
                prices,
                cutoff=reach,
                tolerance=tolerance,
                slack=slack,
                time_limit=max(0.0, end - time.process_time()),
                **options,
            )
            bound = min(bound, result.bound)
            counts += result.counts
            if len(result.points):
                reduced = result.points.entropies() - result.points.dot(prices)
                best = min(best, float(reduced.min()))
                parts.append(result.points)
            if result.status is not SearchStatus.DONE:
                status = result.status
        return SearchResult(status, bound, Points.concatenate(parts), counts)


# ----------------------------------------------------------------------- uncertain sets

TIGHTENING_SHARE = 0.1
"""Share of the time limit that upper bounds of the coordinates may take; half of that over a
polytope, for each of them takes longer here."""

FIRST_SECONDS = 10.0
"""Seconds that the master over the first columns may take; it needs far less."""

UNCERTAIN_MEMBER = 1e-11
"""Excess up to which a column of another run counts as a member: it lay on the boundary, as well as
doubles can tell."""


ENTRY_TIME = 1.5e-7
"""Seconds that an entry of a first column takes: 3.7 s for 5,000 columns of 5,000 coordinates."""

FIRST_SHARE = 0.25
"""Share of the time limit that the first columns may take: with fewer of them, which lead to sets
of coordinates, time is left to improve on them, and for what follows the search."""

LEAST_ENTRIES = 240_000
"""Entries of first columns without any time; they take less than a tenth of a second."""

EXCESS_TIME = 5e-8
"""Seconds that the excess of a column takes, for each of its coordinates and each secret: 6 s for
4,000 columns of 2,000 symbols and 15 secrets."""


def robust_envelope(
    uncertain: UncertainSet,
    *,
    margin: float = 0.0,
    gap: float = 1e-6,
    time_limit: float | None = None,
    memory_limit: int = MEMORY_LIMIT,
    workers: int = 1,
    start: Points | None = None,
    incumbents: Incumbents = tuple,
    dual: ArrayLike | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Envelope:
    """Decompose ``uncertain.point`` into members of the set at least cost, with a proven bound.

    Parameters and errors are those of `lower_envelope`, except that of incumbents only the points
    are used; `margin` is that of `RobustSearch`. Points are members with the margin, and the bound
    holds for the set without it.
    """
    started = time.process_time()
    end = deadline(started, gap, time_limit)
    guess = checked_prices(dual, uncertain.n)
    resources = Resources(workers, memory_limit, time_limit)
    # The search bounds the coordinates first, which takes a while and may be cut short.
    pricer: Pricer | None = None
    interrupted = False
    try:
        pricer = RobustSearch(
            uncertain,
            margin=margin,
            workers=workers,
            memory_limit=memory_limit,
            tightening=resources.share_of_time(TIGHTENING_SHARE),
        ).run
    except KeyboardInterrupt:
        # Without a pricer the run makes what it can of the first columns, in no time.
        interrupted = True
        end = -math.inf
    # Points that miss the margin are left out, and what is left of a known decomposition need not
    # be one. So its weights are of no use.
    candidates = [points for _, points in incumbents()]
    if start is not None:
        candidates.append(start)
    sets = _first_sets(uncertain.point, end)
    reach = uncertain.reach(margin, end, sets)
    ways = sets.towards(reach)
    columns = _robust_columns(uncertain, margin, candidates, ways, end)
    first = _first_solution(uncertain.point, columns, end)
    if guess is None and first is not None:
        guess = first.dual
    run = Generation(
        uncertain.point,
        pricer,
        columns,
        gap,
        end - time.process_time(),
        incumbent=along_ways(sets.masses, reach, len(columns)),
        first=first,
        over_uncertain_set=True,
        guess=guess,
        progress=progress,
    )
    return concluded(run, started, "columns", interrupted)


def _first_sets(point: Array, end: float) -> Sets:
    """The sets to which the first columns lead: each coordinate by itself, where the time until
    `end` is enough for that.
    """
    seconds = max(0.0, end - time.process_time())
    if math.isinf(seconds):
        return Sets.of_each(point)
    entries = max(LEAST_ENTRIES, FIRST_SHARE * seconds / ENTRY_TIME)
    most = max(1, int(entries / len(point)))
    if most >= len(point):
        return Sets.of_each(point)
    return Sets.of_mass(point, most)


def _robust_columns(
    uncertain: UncertainSet,
    margin: float,
    candidates: Sequence[Points],
    ways: Array,
    end: float,
) -> Points:
    """The point, the farthest members on the ways from it, and the candidates inside.

    Candidates are left out where it takes until `end` to tell which of them are inside.
    """
    # Columns begin with the point itself: the decomposition that is always there.
    columns = [Points.from_dense(uncertain.point), Points.from_dense(ways)]
    for points in candidates:
        check_length(points, uncertain.n)
        seconds = EXCESS_TIME * len(points) * uncertain.n * len(uncertain.lower)
        if seconds > end - time.process_time():
            continue
        inside = uncertain.excess_of(points) <= -margin + UNCERTAIN_MEMBER
        columns.append(points.take(inside))
    return Points.concatenate(columns)


def _first_solution(point: Array, columns: Points, end: float) -> MasterSolution | None:
    """The best weights of these columns, and their prices; None if HiGHS fails, or has no time.

    The prices are the center of the first price box, so local searches begin near useful ones.
    """
    seconds = min(FIRST_SECONDS, end - time.process_time())
    if seconds <= 0.0:
        return None
    master = HighsMaster(point)
    master.add(columns, columns.entropies())
    solution = master.solve(seconds)
    if not solution.is_optimal:
        return None
    return solution
