"""The compiled rounds over all pairs across an edge and all triples around a corner.

Symbols are points of a plane, and the polytope is a polygon in it
(`solvers.pricing.plane_polygon`). So its vertices are mixtures of few symbols: a single symbol
inside; a *pair* on both sides of an edge, mixed to a point on it; or a *triple* around a corner,
mixed to the corner itself. A mixture theta costs H(theta) - theta.y at the prices y, and the
cheapest one is wanted with a proven lower bound.

One `PlaneSweep` prices them all: `include` takes the single symbols, then each call of `pairs` or
`triples` is a *round* for one edge or corner, after which `supports` has its best mixtures.

The loops (`_plane.h`) pass over whatever costs more than a *level*, which falls as cheaper mixtures
are found, and keep the best mixture with each symbol. What they pass over is bounded by the level,
and what they evaluate by its value less an allowance for rounding; so the least of both, `bound`,
bounds every vertex. For example, after a mixture of cost -1 the level is -0.5 (`KEEP`): of a
mixture with a bound of -0.4 no logarithm is taken, and the bound stays at -1 (less rounding).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.points import Array
from solvers.pricing.concave import SLICE
from solvers.pricing.plane_polygon import OUTSIDE

KEEP = 0.5
"""Share of the best value found beyond which a vertex is no candidate for a column any more."""

FARTHEST = 1e4
"""Slopes of the touching plane, in units of the largest price, beyond which it is as good as
none."""


class PlaneSweep:
    """The rounds over all vertices at fixed prices.

    Parameters
    ----------
    prices : (n,) array
        Of the groups of symbols.
    level : float
        The cost from which a mixture is of no interest, to begin with.
    time_limit : float or None
        Seconds for all rounds together.
    blur : float
        The absolute error of an entry of the lines.

    Attributes
    ----------
    priced : int
        Mixtures evaluated so far.
    """

    def __init__(
        self, prices: Array, level: float, time_limit: float | None, blur: float
    ) -> None:
        self.prices = prices
        self.priced = 0
        self._level = level
        self._blur = blur
        self._deadline = np.inf
        if time_limit is not None:
            self._deadline = time.process_time() + time_limit
        # No vertex costs less: entropies are not negative.
        self._floor = -float(prices.max())
        self._lowest = np.inf
        # The best value with each symbol in the present round, and the symbols that it mixes.
        self._best = np.full(len(prices), np.inf)
        self._support = np.full((len(prices), 3), -1, dtype=np.int32)

    @property
    def bound(self) -> float:
        """A lower bound of all values: whatever was passed over costs more than the level."""
        return float(min(self._lowest, self._level))

    @property
    def left(self) -> float | None:
        """Seconds left, None for any number."""
        if np.isinf(self._deadline):
            return None
        return max(0.0, self._deadline - time.process_time())

    def include(self, value: float) -> None:
        """Take the least value of the unit vectors into account."""
        self._lowest = min(self._lowest, value)
        # Up to `KEEP` of a negative value mixtures are wanted as columns; positive ones never are.
        if value < 0.0:
            value = KEEP * value
        self._level = min(self._level, value)

    def supports(self, size: int) -> NDArray[np.int32]:
        """The distinct supports of the best mixtures of the last round, (k, size)."""
        support = self._support[np.isfinite(self._best)][:, :size]
        if not len(support):
            return support
        return np.unique(np.sort(support, axis=1), axis=0)

    def pairs(self, lines: Array, edge: int) -> bool:
        """Price all pairs across an edge; whether the time was enough.

        With a line of values f < 0 at one symbol and g > 0 at the other, the weights g / (g - f)
        and -f / (g - f) mix the pair to zero: 3/4 and 1/4 for the values -1 and 3.
        """
        from solvers._plane import pairs

        self._begin()
        # Rounding of a value is relative to the prices in it.
        largest_price = float(np.abs(self.prices).max())
        return self._in_slices(
            pairs,
            lines,
            self.prices,
            self._best,
            self._support,
            edge,
            self._blur,
            OUTSIDE,
            largest_price,
        )

    def triples(self, lines: Array, corner: tuple[int, int]) -> bool:
        """Price all triples that hold the corner of two lines; whether the time was enough.

        With f and g the two lines, the corner is the origin of the plane (f, g). A plane ``a + b f
        + c g`` above all prices gives theta.y <= a there, so a triple costs at least H(theta) - a,
        and exactly that plus the mixture of its gaps to the plane: with small gaps come first, most
        triples are out of reach at a glance.
        """
        from solvers._plane import triples

        self._begin()
        f = np.ascontiguousarray(lines[corner[0]])
        g = np.ascontiguousarray(lines[corner[1]])
        offset, slopes = _touching_plane(f, g, self.prices)
        gaps = offset + slopes[0] * f + slopes[1] * g - self.prices
        # Lowered until it touches: no price lies above the plane, whatever the solver returned.
        offset = offset - float(gaps.min())
        gaps = np.ascontiguousarray(gaps - gaps.min())
        nearest_first = np.argsort(gaps, kind="stable").astype(np.int32)
        reach = float(max(np.hypot(f, g).max(), 1.0))
        # The size of all terms of a value, of which its rounding is a few units.
        plane_size = abs(offset) + 2.0 * float(np.abs(slopes).sum()) * reach
        size = plane_size + float(np.abs(self.prices).max()) + float(gaps.max())
        return self._in_slices(
            triples,
            f,
            g,
            gaps,
            nearest_first,
            self._best,
            self._support,
            offset,
            size,
            reach,
            2.0 * self._blur,
        )

    def _begin(self) -> None:
        """Forget the mixtures of the last round; level and bound stay."""
        self._best = np.full(len(self.prices), np.inf)
        self._support = np.full((len(self.prices), 3), -1, dtype=np.int32)

    def _in_slices(
        self, loop: Callable[..., tuple[int, float, float, int]], *arguments: Any
    ) -> bool:
        """All of a compiled loop; whether the time was enough.

        It runs in slices of `SLICE` seconds, between which the clock and Ctrl-C have their turn. A
        slice ends with the symbol where the next one begins, and hands level and least value on.
        """
        # Symbol from which the next slice goes on.
        first = 0
        while first < len(self.prices):
            left = min(SLICE, self._deadline - time.process_time())
            if left <= 0.0:
                return False
            state = (self._level, KEEP, self._lowest, self._floor)
            first, self._level, self._lowest, priced = loop(
                *arguments, *state, first, left
            )
            self.priced += priced
        return True


def _touching_plane(f: Array, g: Array, prices: Array) -> tuple[float, Array]:
    """The plane above all prices that is lowest at the origin: its height there, and its slopes.

    The slopes are the best multipliers of the corner. Any plane gives a valid bound, so the caller
    need not trust the answer.
    """
    from scipy.optimize import linprog

    # Minimise the height a subject to a + b f + c g >= y at every symbol.
    top = float(np.abs(prices).max())
    matrix = -np.column_stack([np.ones(len(f)), f, g])
    # The allowance for rounding grows with the slopes, so a steep plane is as good as none.
    limit = FARTHEST * (1.0 + top)
    ranges = [(-10.0 - 3.0 * top, None), (-limit, limit), (-limit, limit)]
    solution = linprog(
        [1.0, 0.0, 0.0], A_ub=matrix, b_ub=-prices, bounds=ranges, method="highs"
    )
    if solution.x is None:
        # The level plane at the largest price lies above all of them.
        return top, np.zeros(2)
    return float(solution.x[0]), np.asarray(solution.x[1:])
