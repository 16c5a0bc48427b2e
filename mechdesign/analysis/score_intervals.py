"""Confidence intervals for linear estimates of frequencies, also for few records and rare symbols.

A score interval (Wilson 1927, JASA 22) of an estimate t holds every value theta that t does not
contradict:

    |t - theta| <= d + z sd(theta),

where sd(theta) is the standard deviation of the mean weight if theta is true, and d is half of the
change that one record can make, as in the continuity correction for a binomial count. An estimate
at the end of the possible values has an estimated error of zero and yet gets an interval; no
interval is a point.

For example, if none of 100 records has the label a, and labels were not randomised, the share of a
has the interval [0, 0.046]. If either of two labels is kept with 3/4, 25 labels a among the 100
give the same estimate of 0, but weights differ by 2 rather than 1: the interval is [0, 0.197].

Invariant: both ends are possible values, and the estimate, moved to the nearest possible value,
lies between them.

`spread_of` gives sd(theta) as a `Spread`, from the weights and the counts of the labels;
`score_interval` then finds both ends by bisection.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from mechdesign.analysis import likelihood as ml
from mechdesign.analysis.estimator import Estimator
from mechdesign.channel.channel import Array
from mechdesign.core.arguments import number
from mechdesign.core.errors import InputError

HALVINGS = 60
"""Bisections of an end: a double has no more digits."""


@dataclass(frozen=True)
class Spread:
    """Mean square of the weights as a function of the frequency theta, (m,) cells at once.

    The function is linear between three values of theta: the `least` possible one, the fitted one
    (`middle`) and the `most`.

    Parameters
    ----------
    least, middle, most : (m,) arrays
    squares : three (m,) arrays
        The mean square at these values.
    fixed : three (m,) arrays, optional
        The part of the mean square that does not vary, at the same values; theta^2 by default.
    """

    least: Array
    middle: Array
    most: Array
    squares: tuple[Array, Array, Array]
    fixed: tuple[Array, Array, Array] | None = None

    @cached_property
    def _varying(self) -> tuple[Array, Array, Array]:
        """The mean squares without the fixed part."""
        if self.fixed is None:
            return self.squares
        at_least, at_middle, at_most = self.squares
        return (
            at_least - self.fixed[0],
            at_middle - self.fixed[1],
            at_most - self.fixed[2],
        )

    def deviation(self, theta: Array, records: int) -> Array:
        """Standard deviation of a mean of that many weights, if theta (m,) is true."""
        at_least, at_middle, at_most = self._varying
        # Linear interpolation on the piece that holds theta: from least to middle, or to most.
        above = theta > self.middle
        start = np.where(above, self.middle, self.least)
        stop = np.where(above, self.most, self.middle)
        first = np.where(above, at_middle, at_least)
        last = np.where(above, at_most, at_middle)
        width = stop - start
        # On a piece of no width theta is its end.
        share = np.divide(
            theta - start, width, out=np.ones_like(theta), where=width > 0.0
        )
        # The variance is the mean square minus the fixed part, which is theta^2 by default.
        variance = first + share * (last - first)
        if self.fixed is None:
            variance = variance - theta**2
        # The fit can leave a variance of zero below it by rounding.
        return np.sqrt(np.maximum(variance, 0.0) / records)


def spread_of(
    estimator: Estimator, counts: NDArray[np.int64], target: str
) -> tuple[Spread, Array]:
    """The spread of the cells' weights, and the range of the weights over the labels (m,).

    At the fitted frequencies the mean square is that of the fit. At the ends of the possible values
    all mass lies on the symbols with the smallest or the largest coefficient, in proportion to the
    fit.
    """
    weights = estimator.weights
    c = estimator.cells.functionals
    # (|X|, m): E[b(Y)^2 | x].
    squares = estimator.model.matrix @ weights**2
    fit = ml.smoothed_fit(estimator.model.matrix, counts)[..., None]
    least, most = estimator.cells.bounds

    def restricted(to: NDArray[np.bool_]) -> Array:
        """The fit on some symbols alone, as frequencies."""
        # Positive even where the fit is zero by rounding, so that there is something to divide.
        inside = to * np.maximum(fit, np.finfo(np.float64).tiny)
        return inside / inside.sum(axis=-2, keepdims=True)

    at_least = restricted(c == least)
    at_most = restricted(c == most)

    def means(values: Array) -> tuple[Array, Array, Array]:
        """The means of (|X|, m) values under the three frequencies."""
        return (
            (at_least * values).sum(axis=-2),
            (fit * values).sum(axis=-2),
            (at_most * values).sum(axis=-2),
        )

    fixed = None
    if target == "records":
        # With the symbols of the records given, sum_x P(x) c(x)^2 is no part of the variance.
        fixed = means(c**2)
    spread = Spread(
        least=least,
        middle=(fit * c).sum(axis=-2),
        most=most,
        squares=means(squares),
        fixed=fixed,
    )
    return spread, np.ptp(weights, axis=0)


def score_interval(
    estimate: Array, spread: Spread, step: Array, records: int, level: float
) -> tuple[Array, Array]:
    """Lower and upper ends of score intervals, by bisection of both at once.

    Parameters
    ----------
    estimate : (.., m) array
    spread : Spread
    step : (m,) array
        Largest difference between the weights of two records.
    records : int
    level : float
        Confidence level, in (0, 1).
    """
    z = NormalDist().inv_cdf((1.0 + level) / 2.0)
    half_step = step / (2.0 * records)
    # Axis 0: the lower and the upper end.
    least, most, _ = np.broadcast_arrays(spread.least, spread.most, estimate)
    limits = np.stack([least, most])
    possible = np.clip(estimate, least, most)

    def is_held(theta: Array) -> NDArray[np.bool_]:
        """Whether the estimate does not contradict theta."""
        reach = half_step + z * spread.deviation(theta, records)
        return np.abs(theta - possible) <= reach

    # The interval holds the estimate itself. Bisection keeps a held value inside and, unless the
    # limit is held, one outside.
    inside = np.broadcast_to(possible, limits.shape)
    outside = limits
    for _ in range(HALVINGS):
        theta = (inside + outside) / 2.0
        held = is_held(theta)
        inside = np.where(held, theta, inside)
        outside = np.where(held, outside, theta)
    lower, upper = np.where(is_held(limits), limits, inside)
    return lower, upper


def check_level(level: float) -> float:
    """The confidence level as a float; InputError outside of (0, 1)."""
    value = number("level", level, "between 0 and 1, such as 0.95")
    if not 0.0 < value < 1.0:
        raise InputError(
            f"the level ({value:g}) must be strictly between 0 and 1, such as 0.95"
        )
    return value
