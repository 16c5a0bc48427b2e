"""A polytope around a convex set, which cuts bring nearer to the set where columns are found.

A search cannot branch over the convex set itself. So it branches over a set around it, and every
column that it finds outside the convex set tells where the set around is too large: a cut there
removes the column (outer approximation, Kelley 1960).

    normal.u <= offset,   the tangent at an image u_0 of the boundary of {f(u) <= c},  u = A v

Every cut holds for all members, so what is proven over the set around holds for the set itself. For
example, around a disc the first four cuts make a square, whose corners are the cheapest columns;
cuts that touch the circle next to the corners make an octagon of it.

`OuterSet` says what a search needs of the set around: `pricer` searches it, `cut` and `refine` take
the columns outside, `touch` places cuts in advance. `OuterPolytope` is that for a convex set, and
`solvers.envelope.covered` has another for sets that are not convex.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from solvers.points import Array, Points
from solvers.pricing.cut_search import CutSearch
from solvers.results import Pricer
from solvers.sets.convex_set import ConvexSet, Cut
from solvers.sets.cuts import Cuts


class OuterSet(Protocol):
    """A set around all members that can be searched, and comes nearer to them."""

    def pricer(self, workers: int) -> Pricer:
        """The search for the cheapest columns over the set as it is now."""
        ...

    def touch(self, images: Array) -> None:
        """Add cuts that touch the set of members at these images (k, m) on its boundary."""
        ...

    def cut(self, outside: Points) -> list[Cut]:
        """Add cuts that remove points outside, and return all of them."""
        ...

    def refine(self, outside: Points) -> bool:
        """Come nearer to the members where these columns are outside; whether anything changed."""
        ...


class OuterPolytope:
    """The cuts around a convex set, and the search over their polytope."""

    def __init__(self, convex: ConvexSet, point: Array) -> None:
        self._convex = convex
        self._center = (convex.matrix @ point)[:, None]
        self._cuts = Cuts(convex)
        # The search over all cuts; None after new ones until it is needed again.
        self._search: CutSearch | None = None

    def pricer(self, workers: int) -> Pricer:
        """As of `OuterSet`."""
        if self._search is None:
            self._search = CutSearch(self._cuts.polytope, workers=workers)
        return self._search.run

    def touch(self, images: Array) -> None:
        """As of `OuterSet`."""
        cuts: list[Cut] = []
        for image in images:
            cuts += self._convex.cuts_at(image)
        self._add(cuts)

    def refine(self, outside: Points) -> bool:
        """As of `OuterSet`."""
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
        # Where a support has no member `touch` is any point, or not finite. Cuts there hold all the
        # same, but need not remove the column.
        triples = zip(images.T, near_images.T, crossings.T, strict=True)
        for image, touch, crossing in triples:
            # A cut that leaves the column where it is would bring it back in the next round.
            deep: list[Cut] = []
            if np.isfinite(touch).all():
                deep = removing(self._convex.cuts_at(touch), image)
            cuts += deep or self._convex.cuts_at(crossing)
        self._add(cuts)
        return cuts

    def _add(self, cuts: list[Cut]) -> None:
        """Add the cuts; a search over the old ones alone is of no use any more."""
        self._cuts.add(cuts)
        self._search = None


def removing(cuts: list[Cut], image: Array) -> list[Cut]:
    """Those of the cuts that the image violates."""
    return [cut for cut in cuts if float(cut.normal @ image) > cut.offset]
