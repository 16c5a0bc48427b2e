"""The members of a convex set that a search has, and their best decomposition of a point.

    minimise sum_k w_k H(v_k)   subject to   sum_k w_k v_k = p,  w >= 0

over the members v_k so far: a linear program, which HiGHS goes on with as members are added. Its
weights w are the decomposition. Its dual prices y tell which further columns v would help: those of
H(v) - y.v < 0.

Columns of a search mostly lie outside the set, so `add_beside` adds the members next to them
instead: the last one on the way from p to the column, and one on the column's own support. For
example, a column (1, 0) outside a set around p = (1/2, 1/2) gives the member (0.7, 0.3) of the way.

`solvers.convex` searches the columns, and keeps what it finds here.
"""

from __future__ import annotations

import math
import time

import numpy as np

from solvers.convex_set import ConvexSet
from solvers.points import Array, Points
from solvers.programs.master import HighsMaster

MASTER_SECONDS = 10.0
"""Time that one master program over members may take; it needs milliseconds."""

LEAST_SECONDS = 0.1
"""Time that the last master program has although the limit is reached."""


class MemberMaster:
    """Members with the margin, and the master program over them.

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
        """Append members next to columns outside: on the way to P_X, and on their own supports."""
        if not len(outside):
            return
        images = outside.images(self._convex.matrix).T
        dense = outside.toarray()
        shares = self._convex.shares_inside(self._center, images, self._margin)
        self._add_dense(self._point + shares[:, None] * (dense - self._point))
        # Next to the column itself, where its support has members. A little of the column above
        # makes up for the move, and costs less than P_X in every column.
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
        seconds = min(MASTER_SECONDS, max(LEAST_SECONDS, end - time.monotonic()))
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
