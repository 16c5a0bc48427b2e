"""Sets of probability vectors bounded by convex functions of a few linear images.

A member v satisfies f_i(A v) <= c_i for every function. For privacy promises u = A v are the lifts
of an output, and f_i is an average of them. A `ConvexSet` answers three questions about points:

- `excess`: how far outside they are;
- `shares_inside`, `repaired`: which member is next to them, by bisection on the way from another
  member, or by Newton's method on their own support;
- `cuts_at`: which inequalities ``g u <= h`` hold for all members and touch the set there. The
  normal g may carry any rounding error, because h is computed from g itself (`ConvexFunction.cut`);
  the error of h is bounded here.

For example, A = [[1.6, 0.4], [0.4, 1.6]] and f(u) = (u_1 - 1)^2 / 2 + (u_2 - 1)^2 / 2 <= 0.09 leave
the v from (1/4, 3/4) to (3/4, 1/4). The point (1, 0) has u = (1.6, 0.4) and f = 0.36, so its excess
is 0.36 / 0.09 - 1 = 3. Half of the way from (1/2, 1/2) to it is inside, up to u = (1.3, 0.7). The
cut there is 0.3 u_1 - 0.3 u_2 <= 0.18, which u = (1.6, 0.4) violates.

*Covered sets.* A member v satisfies f_i(A v) <= c_i for every function, as of a `ConvexSet`. A
`NonconvexFunction` is a sum of terms, one for each image, and has a convex function below it on
every box of images. So boxes that cover all images make a union of convex sets around the set
(`CoveredSet.around`); the smaller the boxes, the nearer. `solvers.envelope.other_sets` searches
that union.

For example, the term |1/u - 1| of one image u in [1/2, 2] is convex up to 1 and concave beyond. The
function below is the term itself up to 1, and the chord (u - 1) / 2 from there to 2. At u = 3/2 it
is 1/4, where the term is 1/3. On the box [3/2, 2] it is the chord from 1/3 to 1/2, and meets the
term at both ends.

*Cuts.* Members v of the set are probability vectors. A cut g.u <= h
holds for the images u = A v of all of them, so it is the row (g A).v <= h.

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
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from solvers.points import Array, Points
from solvers.sets.polytope import Polytope, last_inside

BISECTIONS = 60
"""Halvings of the way to the boundary: a double has no more digits."""

HALVINGS_AT_ONCE = 4
"""Halvings of few ways that are done together, by as many points as they can lead to."""

PARTS = 2**HALVINGS_AT_ONCE

FEW_WAYS = 8
"""Ways up to which several halvings at once take less time."""

PULLED_BACK = 2.0**-30
"""Relative distance from the boundary of points that were pulled back to it: around tiny sets the
functions are known to fewer digits, because they see differences of images."""

UNIT_ROUNDOFF = 2.0**-53

FEW_ROUNDINGS = 64
"""Roundings of one term of a cut: its entry of A, its entry of the normal, a power or a logarithm
with a few units in the last place, generously."""

ROUNDINGS_A_SUM = 8
"""Roundings for each summand of the sums over the images."""

NEWTON_STEPS = 12
"""Newton steps back to the boundary on the support of a point: they converge quadratically, and
three to six are enough where the support has a member."""

LONGEST_STEP = 0.9
"""Largest share of an entry that one Newton step may take away, so that the support stays."""

BINDING_SHARE = 0.5
"""Functions that use less than this share of the largest use at a point give no cut there."""


@dataclass(frozen=True, eq=False)
class Cut:
    """The inequality ``normal u <= offset`` for the images u of all members.

    `size` is the sum of the absolute values of the terms of the offset: its rounding error is a few
    units of that.
    """

    normal: Array
    offset: float
    size: float


class ConvexFunction(Protocol):
    """A convex function f of u (m,) with an upper bound c."""

    @property
    def bound(self) -> float:
        """The bound c, rounded up: members have f(u) <= c."""
        ...

    def values(self, images: Array) -> Array:
        """f of every column of `images` (m, k), as an array (k,); possibly inf."""
        ...

    def gradients(self, images: Array) -> Array:
        """The gradients of f at every column of `images` (m, k), as columns (m, k)."""
        ...

    def cut(self, image: Array) -> Cut | None:
        """A cut that is nearly tight at `image` (m,) where f has the value c; None if f has no
        tangent there.

        The offset must be valid for the normal as returned, whatever error that has.
        """
        ...


@dataclass(frozen=True, eq=False)
class ConvexSet:
    """{v >= 0, sum v = 1, f_i(A v) <= c_i}.

    Parameters
    ----------
    matrix : (m, n) array
        A; its entries may be wrong by a few units in the last place.
    functions : sequence of ConvexFunction
    """

    matrix: Array
    functions: Sequence[ConvexFunction]

    def restrict(self, members: NDArray[np.intp]) -> ConvexSet:
        """The face on which only these coordinates are positive, in these coordinates."""
        return ConvexSet(self.matrix[:, members], self.functions)

    @property
    def roundoff(self) -> float:
        """Relative rounding error of a sum over the images, in units of its absolute terms."""
        count = FEW_ROUNDINGS + ROUNDINGS_A_SUM * len(self.matrix)
        return count * UNIT_ROUNDOFF

    def excess(self, points: Points, margin: float = 0.0) -> Array:
        """The largest f_i(A v) / c_i - (1 - margin) of every point, (k,); at most 0 of members."""
        return self.excess_of(points.images(self.matrix).T, margin)

    def excess_of(self, images: Array, margin: float) -> Array:
        """The same of points given by their images (m, k)."""
        worst = np.full(images.shape[1], -np.inf)
        for function in self.functions:
            # The bound of a tiny budget, a power of it, can underflow to 0.
            used = function.values(images) / max(function.bound, sys.float_info.min)
            worst = np.maximum(worst, used - (1.0 - margin))
        return worst

    def shares_inside(self, origins: Array, images: Array, margin: float) -> Array:
        """The largest t in [0, 1] with origin + t (image - origin) inside, for each pair; (k,).

        Both are given by their images, as arrays (m, 1) or (m, k), and (m, k). The origins must be
        members; by convexity every smaller t is inside, too.
        """
        ways = images - origins
        # Members are left as they are: bisection would stop short of 1.
        whole = self.excess_of(images, margin) <= 0.0
        if images.shape[1] <= FEW_WAYS:
            low = self._crossings(origins, ways, margin)
        else:
            low = last_inside(
                lambda shares: self.excess_of(origins + shares * ways, margin) <= 0.0,
                np.zeros(images.shape[1]),
                np.ones(images.shape[1]),
                BISECTIONS,
            )
        # A little less than the crossing, so that rounding leaves the point inside.
        return np.where(whole, 1.0, low * (1.0 - PULLED_BACK))

    def _crossings(self, origins: Array, ways: Array, margin: float) -> Array:
        """The places of bisection on few ways, of which several halvings are done at once.

        A call takes nearly the same time for one point as for a few dozen.
        """
        parts = np.arange(1, PARTS) / PARTS
        low = np.zeros(ways.shape[1])
        width = 1.0
        for _ in range(BISECTIONS // HALVINGS_AT_ONCE):
            places = low[:, None] + width * parts
            points = origins[:, :, None] + places * ways[:, :, None]
            flat = points.reshape(len(points), -1)
            inside = (self.excess_of(flat, margin) <= 0.0).reshape(places.shape)
            # Inside up to the crossing: the number of places before the first one outside.
            before = np.logical_and.accumulate(inside, axis=1).sum(axis=1)
            width /= PARTS
            low = low + width * before
        return low

    def repaired(self, points: Array, margin: float) -> Array:
        """Points (k, n) moved to the boundary on their own supports; members where it worked.

        Newton's method for f(A v) = c along d_x = -v_x (a_x - a v) with a = A^T grad f, the
        gradient in the metric in which no entry becomes zero before the others: f changes by minus
        the variance of a under v.
        """
        moved = points.copy()
        target = (1.0 - margin) * (1.0 - PULLED_BACK)
        for _ in range(NEWTON_STEPS):
            images = self.matrix @ moved.T
            use, slopes = self._worst(images)
            outside = use > target
            if not outside.any():
                break
            sensitivity = slopes.T @ self.matrix
            mean = (moved * sensitivity).sum(axis=1, keepdims=True)
            centred = np.where(moved > 0.0, sensitivity - mean, 0.0)
            variance = (moved * centred**2).sum(axis=1)
            # Without variance no way on the support leads inside; such points stay where they are.
            with np.errstate(divide="ignore", invalid="ignore"):
                steps = (use - target) / variance
                steps = np.minimum(steps, LONGEST_STEP / centred.max(axis=1))
            steps = np.where(outside & np.isfinite(steps), steps, 0.0)
            moved *= 1.0 - steps[:, None] * centred
            moved /= moved.sum(axis=1, keepdims=True)
        return moved

    def _worst(self, images: Array) -> tuple[Array, Array]:
        """The largest f / c at every column of `images` (m, k); (k,), and its gradient (m, k)."""
        worst = np.full(images.shape[1], -np.inf)
        slopes = np.zeros_like(images)
        for function in self.functions:
            use = function.values(images) / function.bound
            larger = use > worst
            with np.errstate(all="ignore"):
                gradients = function.gradients(images) / function.bound
            slopes = np.where(larger, gradients, slopes)
            worst = np.where(larger, use, worst)
        # Where a function is infinite there is no way along its gradient.
        finite = np.isfinite(worst) & np.isfinite(slopes).all(axis=0)
        return np.where(finite, worst, -np.inf), np.where(finite, slopes, 0.0)

    def cuts_at(self, image: Array) -> list[Cut]:
        """Cuts of the functions that bind at the image (m,), widened by their rounding errors."""
        column = image[:, None]
        # No image of a probability vector is larger than the largest entry of its row.
        largest = np.abs(self.matrix).max(axis=1)
        shares: list[float] = []
        for function in self.functions:
            shares.append(float(function.values(column)[0]) / function.bound)
        cuts: list[Cut] = []
        for share, function in zip(shares, self.functions, strict=True):
            # A function that is far from its bound would give a cut far from the set.
            if not math.isfinite(share) or share < BINDING_SHARE * max(shares):
                continue
            cut = function.cut(image)
            if cut is None or not np.isfinite(cut.normal).all():
                continue
            size = cut.size + float(np.abs(cut.normal) @ largest)
            offset = cut.offset + self.roundoff * size
            if math.isfinite(offset):
                cuts.append(Cut(cut.normal, offset, size))
        return cuts


# ------------------------------------------------------------------------- covered sets


class TermsBelow(ConvexFunction, Protocol):
    """A convex function that is a sum of terms, one for each image."""

    def terms(self, images: Array) -> Array:
        """The terms at every column of `images` (m, k), as (m, k)."""
        ...


@runtime_checkable
class NonconvexFunction(ConvexFunction, Protocol):
    """A function f of u (m,) like a `ConvexFunction`, but not convex: a sum of one term for each
    image.

    It grows along every way from the center, so that ways from there leave the set once. It has no
    cuts of its own.
    """

    def terms(self, images: Array) -> Array:
        """The terms at every column of `images` (m, k), as (m, k)."""
        ...

    def below(self, low: Array, high: Array) -> TermsBelow:
        """A convex function with the same bound, nowhere above f on the box low <= u <= high."""
        ...


@dataclass(frozen=True, eq=False)
class CoveredSet(ConvexSet):
    """{v >= 0, sum v = 1, f_i(A v) <= c_i}, where `functions` may hold some that are not convex.

    Parameters
    ----------
    low, high : (m,) arrays
        A box that the images of all members lie in.
    """

    low: Array
    high: Array

    def restrict(self, members: NDArray[np.intp]) -> CoveredSet:
        """As of `ConvexSet`."""
        return CoveredSet(self.matrix[:, members], self.functions, self.low, self.high)

    @cached_property
    def nonconvex(self) -> tuple[NonconvexFunction, ...]:
        """The functions that are not convex."""
        return tuple(f for f in self.functions if isinstance(f, NonconvexFunction))

    def around(self, low: Array, high: Array) -> tuple[ConvexSet, list[TermsBelow]]:
        """A convex set around the members whose images lie in a box, and its functions below.

        The functions below are in the order of `nonconvex`.
        """
        functions: list[ConvexFunction] = []
        below: list[TermsBelow] = []
        for function in self.functions:
            if isinstance(function, NonconvexFunction):
                lower = function.below(low, high)
                functions.append(lower)
                below.append(lower)
            else:
                functions.append(function)
        return ConvexSet(self.matrix, functions), below


# --------------------------------------------------------------------------------- cuts


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
