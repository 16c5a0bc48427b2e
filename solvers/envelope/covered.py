"""The lower convex envelope of the entropy over a set that is not convex, by convex sets that cover
it.

As `solvers.envelope.convex`, with another set around the members (`OuterRegions`): a union of
*regions*. A region is a box of images A v, and in it cuts around a convex set
(`CoveredSet.around`), which is the closer the smaller the box is.

1. Prices y and a number m with H(v) - y.v >= m on every region give the bound y.p + m for all
   decompositions into members, because the weights of any one sum to one. So pricing searches the
   regions in turn, and the least of their bounds counts.
2. Where a column lies outside the convex set of its region, a cut removes it.
3. Where it lies inside, and is no member, the region is divided at its image, in the coordinate in
   which the convex function errs most there. The next round has two closer convex sets instead.

The first region is a box of all members. For example, with f(u) = |1/u - 1| on u in [1/2, 2], the
convex function below f has 1/4 at u = 3/2, where f has 1/3. Divided there, the regions are [1/2,
3/2] and [3/2, 2], and in both of them the function below meets f at 3/2.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.envelope.convex import convex_envelope
from solvers.envelope.convex_pricing import removing
from solvers.errors import EmptyPolytope
from solvers.points import Array, Points
from solvers.pricing.concave import (
    ConcaveSearch,
    SearchCounts,
    SearchResult,
    SearchStatus,
)
from solvers.results import Envelope, Pricer
from solvers.sets.convex_set import ConvexSet, CoveredSet, Cut, Cuts, TermsBelow
from solvers.sets.polytope import Polytope

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
