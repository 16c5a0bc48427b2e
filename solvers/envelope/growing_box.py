"""The box that holds the prices of column generation until its columns decompose the point.

    center_j - radius s_j  <=  y_j  <=  center_j + radius,    s_j = 1 / (n p_j), from 1 to 10^4

Before that, prices of the master jump from round to round, and columns found at them are worthless
(du Merle et al. 1999). The radius doubles while the columns do not suffice (`grow`), and the box
must be gone in the end: in a box without the best prices no proof reaches the optimum
(docs/explanation/optimum-theory.md, 'Prices in a box').

For example, at p = (0.5, 0.499, 0.001) the first box, around zero, allows prices from -1 to 1, and
from -333 to 1 for the rare coordinate.
"""

from __future__ import annotations

import numpy as np

from solvers.points import Array
from solvers.programs.master import PriceBox

FIRST_RADIUS = 1.0
"""Radius of the first price box: around zero, an output that hides no more than a factor e pays for
itself."""

MOST_SCALE = 1e4
"""Most that the box is wider for a rare coordinate: its price times its mass is what matters, and
where rare symbols make outputs private that would not be, prices of -50 and less occur."""

LARGEST_RADIUS = 1e9
"""A wider box binds nothing, and costs of its size would only spoil the master's arithmetic."""


class GrowingBox:
    """Prices within a radius of a center.

    Parameters
    ----------
    target : (n,) array
        The point to decompose.
    center : (n,) array, optional
        Prices of a neighbouring problem; zeros without.
    in_use : bool
        Whether the master is held in the box; `in_use` may be changed at any time.
    """

    def __init__(
        self, target: Array, center: Array | None = None, *, in_use: bool
    ) -> None:
        self.in_use = in_use
        # Coordinates that are rarer than the average are allowed lower prices.
        rare = np.maximum(len(target) * target, 1.0 / MOST_SCALE)
        self._scale = np.maximum(1.0 / rare, 1.0)
        self._center = np.zeros_like(target)
        if center is not None:
            self._center = center
        self._radius = FIRST_RADIUS

    def limits(self) -> PriceBox | None:
        """The limits of the prices at present; None while the box is not in use.

        Low prices of rare coordinates are allowed, for they occur. High ones are not: unproven as
        they are, they would draw every local search to these coordinates.
        """
        if not self.in_use:
            return None
        lower = self._center - self._radius * self._scale
        return PriceBox(lower, self._center + self._radius)

    def grow(self) -> None:
        """Double the radius; beyond `LARGEST_RADIUS` the box is given up."""
        self._radius *= 2.0
        if self._radius > LARGEST_RADIUS:
            self.in_use = False
