"""Cuts around a convex set, collected as the rows of a polytope.

Members v of the set are probability vectors (`solvers.sets.convex_set`). A cut g.u <= h holds for
the images u = A v of all of them, so it is the row (g A).v <= h.

1. `add` stores a cut after scaling g and h, by a power of two, so that g is of a size of about one.
2. `polytope` multiplies every g by A.
3. It adds a constant c to all entries of the row and to its end: as sum v = 1, the row says the
   same, and its end is no longer next to zero, where the tolerance of a simplex method is lost.
4. It moves the end outwards by what rounding can have added, so no member is cut off.

For example, with A = [[1.6, 0.4], [0.4, 1.6]] the cut 0.3 u_1 - 0.3 u_2 <= 0.18, scaled by 2, is
the row (0.72, -0.72).v <= 0.36, and with the constant 1 it is (1.72, 0.28).v <= 1.36. Either says
v_1 <= 3/4, because v_2 = 1 - v_1.
"""

from __future__ import annotations

import math

import numpy as np

from solvers.points import Array
from solvers.sets.convex_set import ConvexSet, Cut
from solvers.sets.polytope import Polytope


class Cuts:
    """The cuts of one run, as scaled normals (k, m) and offsets (k,)."""

    def __init__(self, convex: ConvexSet) -> None:
        count, self._n = convex.matrix.shape
        self._convex = convex
        self._normals = np.zeros((0, count))
        self._offsets = np.zeros(0)

    def copy(self, convex: ConvexSet) -> Cuts:
        """The same cuts for a subset of the set; cuts added later to one are not in the other."""
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
        # The simplex meets rows relative to their ends. Where these are next to zero, as around
        # tiny sets, a constant on both sides (sum v = 1) gives the row a scale: a power of two.
        largest = np.maximum(np.abs(rows).max(axis=1), np.finfo(np.float64).tiny)
        constant = np.exp2(np.ceil(np.log2(largest)))
        # Products of normals and entries of A are rounded once more, and so are the sums.
        sizes = np.abs(self._normals) @ np.abs(self._convex.matrix) + constant[:, None]
        offsets = self._offsets + constant
        offsets += self._convex.roundoff * sizes.max(axis=1)
        rows = rows + constant[:, None]
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
