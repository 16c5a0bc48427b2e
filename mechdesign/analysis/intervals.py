"""Confidence intervals of a mean of bounded weights that hold for rare symbols and few records, too.

A score interval (Wilson 1927, JASA 22) of an estimate t holds every value theta that it does not contradict:
``|t - theta| <= d + z sd(theta)``, the standard deviation being the one that the weights have if theta is true, and d
half of what one record can change, as in the continuity correction for a binomial count. An estimate at the end of the
possible values, whose own error is estimated as zero, so keeps an interval, and none is a point.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.display import Displayed
from mechdesign.core.errors import InputError

Array = NDArray[np.float64]

HALVINGS = 60
"""Bisections of an end: a double has no more digits."""


@dataclass(frozen=True, repr=False, kw_only=True)
class Estimated(Displayed):
    """What estimates have in common.

    Parameters
    ----------
    estimates, standard_errors, lower, upper : arrays of one shape
        Intervals are score intervals within the possible values (`score_interval`).
    records : int
    method : 'unbiased' or 'ml'
    target : 'population' or 'records'
        Whether the intervals are for the population that the records are drawn from, or for the records of the file.
    level : float
        Confidence level of each interval.
    notices : tuple of str
    """

    estimates: Array
    standard_errors: Array
    lower: Array
    upper: Array
    records: int
    method: str
    target: str
    level: float
    notices: tuple[str, ...] = ()

    def __repr__(self) -> str:
        of = f"{'x'.join(map(str, self.estimates.shape))} shares from {self.records:,} records"
        return f"{type(self).__name__}({of}, {self.method}, {100 * self.level:g} % intervals)"

    def _rows(self, names: Iterable[dict[str, str]]) -> list[dict[str, Any]]:
        """Names of the entries, in order, each with its numbers."""
        keys = ("estimate", "standard_error", "lower", "upper")
        columns = (
            values.ravel().tolist()
            for values in (self.estimates, self.standard_errors, self.lower, self.upper)
        )
        rows = zip(*columns, strict=True)
        return [name | dict(zip(keys, row, strict=True)) for name, row in zip(names, rows, strict=True)]


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

    @cached_property
    def _seconds(self) -> tuple[Array, Array, Array]:
        """The squares without what does not vary."""
        (a, b, c), (d, e, f) = self.squares, self.fixed or (0.0, 0.0, 0.0)
        return a - d, b - e, c - f

    def deviation(self, theta: Array, records: int) -> Array:
        """Standard deviation of a mean of so many weights at theta (m,)."""
        above, (least, middle, most) = theta > self.middle, self._seconds
        start, stop = np.where(above, self.middle, self.least), np.where(above, self.most, self.middle)
        first, last = np.where(above, middle, least), np.where(above, most, middle)
        width = stop - start
        share = np.divide(theta - start, width, out=np.ones_like(theta), where=width > 0.0)
        second = first + share * (last - first) - (theta**2 if self.fixed is None else 0.0)
        return np.sqrt(np.maximum(second, 0.0) / records)


def check_level(level: float) -> None:
    """Raise InputError unless `level` is a confidence level."""
    if not 0.0 < level < 1.0:
        raise InputError(f"the level ({level:g}) must be strictly between 0 and 1, such as 0.95")


def score_interval(
    estimate: Array, spread: Spread, step: Array, records: int, level: float
) -> tuple[Array, Array]:
    """Lower and upper ends (m,); `step` is how far apart two records' weights can be (m,)."""
    z, half = NormalDist().inv_cdf((1.0 + level) / 2.0), step / (2.0 * records)
    limits = np.stack([spread.least, spread.most])
    at = np.clip(estimate, *limits)

    def holds(theta: Array) -> NDArray[np.bool_]:
        return np.abs(theta - at) <= half + z * spread.deviation(theta, records)

    inside, outside = np.broadcast_to(at, limits.shape), limits
    for _ in range(HALVINGS):
        theta = (inside + outside) / 2.0
        good = holds(theta)
        inside, outside = np.where(good, theta, inside), np.where(good, outside, theta)
    lower, upper = np.where(holds(limits), limits, inside)
    return lower, upper
