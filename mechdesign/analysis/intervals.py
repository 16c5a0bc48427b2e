"""Confidence intervals of a mean of bounded weights that hold for rare symbols and few records, too.

A score interval (Wilson 1927, JASA 22) of an estimate t holds every value theta that it does not contradict:
``|t - theta| <= d + z sd(theta)``, the standard deviation being the one that the weights have if theta is true, and d
half of what one record can change, as in the continuity correction for a binomial count. An estimate at the end of the
possible values, whose own error is estimated as zero, so keeps an interval, and none is a point.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError

Array = NDArray[np.float64]

HALVINGS = 60
"""Bisections of an end: a double has no more digits."""


@dataclass(frozen=True)
class Spread:
    """Mean square of the weights (m,) if a frequency has its `least`, its `middle` or its `most`; linear in between.

    `fixed` is the part of it that does not vary, at the same values; None where it is theta^2.
    """

    least: Array
    middle: Array
    most: Array
    squares: tuple[Array, Array, Array]
    fixed: tuple[Array, Array, Array] | None = None

    def deviation(self, theta: Array, records: int) -> Array:
        """Standard deviation of a mean of so many weights at theta (m,)."""
        fixed = theta**2 if self.fixed is None else self._between(theta, self.fixed)
        return np.sqrt(np.maximum(self._between(theta, self.squares) - fixed, 0.0) / records)

    def _between(self, theta: Array, values: tuple[Array, Array, Array]) -> Array:
        above = theta > self.middle
        start, stop = np.where(above, self.middle, self.least), np.where(above, self.most, self.middle)
        first, last = np.where(above, values[1], values[0]), np.where(above, values[2], values[1])
        width = stop - start
        share = np.divide(theta - start, width, out=np.ones_like(theta), where=width > 0.0)
        return first + share * (last - first)


def check_level(level: float) -> None:
    """Raise InputError unless `level` is a confidence level."""
    if not 0.0 < level < 1.0:
        raise InputError(f"the level ({level:g}) must be strictly between 0 and 1, such as 0.95")


def score_interval(
    estimate: Array, spread: Spread, step: Array, records: int, level: float
) -> tuple[Array, Array]:
    """Lower and upper ends (m,); `step` is how far apart two records' weights can be (m,)."""
    z, half = NormalDist().inv_cdf((1.0 + level) / 2.0), step / (2.0 * records)
    at = np.clip(estimate, spread.least, spread.most)

    def end(limit: Array) -> Array:
        inside, outside = at, limit
        for _ in range(HALVINGS):
            theta = (inside + outside) / 2.0
            holds = np.abs(theta - at) <= half + z * spread.deviation(theta, records)
            inside, outside = np.where(holds, theta, inside), np.where(holds, outside, theta)
        holds = np.abs(limit - at) <= half + z * spread.deviation(limit, records)
        return np.where(holds, limit, inside)

    return end(spread.least), end(spread.most)
