"""Sets of probability vectors bounded by functions of a few linear images, some of them not convex.

A member v satisfies f_i(A v) <= c_i for every function, as of a `ConvexSet`. A `NonconvexFunction`
is a sum of terms, one for each image, and has a convex function below it on every box of images. So
boxes that cover all images make a union of convex sets around the set (`CoveredSet.around`); the
smaller the boxes, the nearer. `solvers.envelope.covered` searches that union.

For example, the term |1/u - 1| of one image u in [1/2, 2] is convex up to 1 and concave beyond. The
function below is the term itself up to 1, and the chord (u - 1) / 2 from there to 2. At u = 3/2 it
is 1/4, where the term is 1/3. On the box [3/2, 2] it is the chord from 1/3 to 1/2, and meets the
term at both ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from solvers.points import Array
from solvers.sets.convex_set import ConvexFunction, ConvexSet


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
