"""The members of a convex set that a search has, and their best decomposition of a point.

    minimise sum_k w_k H(v_k)   subject to   sum_k w_k v_k = p,  w >= 0

over the members v_k so far, where p is the point, in designs P_X, and H the entropy in nats. It is
a linear program, and each v_k is a column of it. `solve` gives the new members to HiGHS, which goes
on from its last basis. The weights w are the decomposition. The dual prices y tell which further
columns v would help: those of negative reduced cost H(v) - y.v.

`solvers.envelope.convex` searches such columns in a polytope around the set, so they mostly lie
outside the set itself. `add_beside` adds the members next to them instead: the last one on the way
from p to the column, and one on the column's own support. For example, let p = (1/2, 1/2), and let
the set be the v from (1/4, 3/4) to (3/4, 1/4). Then the column (1, 0) gives the member (3/4, 1/4).

All members keep a margin from the boundary of the set, so that rounding does not move them out.
"""

from __future__ import annotations

import math
import time

import numpy as np

from solvers.points import Array, Points
from solvers.programs.master import HighsMaster
from solvers.sets.convex_set import ConvexSet

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
