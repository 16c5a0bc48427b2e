"""Maximum-likelihood frequencies of X from counts of Y, certified, and intervals of frequencies.

Iterative Bayesian update: ``p(x) <- p(x) g(x)`` with ``g(x) = sum_y f(y) W(y|x) / (pW)(y)`` never
lowers the likelihood ``L(p) = sum_y n(y) log (pW)(y)``. For every p and every p* (Jensen)

    L(p*) - L(p) = N sum_y f(y) log ((p*W)(y) / (pW)(y))
                <= N log sum_x p*(x) g(x)
                <= N log max_x g(x),

so the largest g bounds the deficit, whatever produced p: g is the certificate. Here f(y) = n(y) / N
are the shares of the labels among the N records.

For example, two symbols keep their label with probability 0.8, and 6 of 10 records have the first
label. At p = (0.5, 0.5) the g are 1.12 and 0.88, so no p is better by more than log 1.12 = 0.113
nats a record; the update is (0.56, 0.44). At (2/3, 1/3) the labels have exactly the frequencies 0.6
and 0.4: both g are 1, which proves the maximum.

`maximum_likelihood` alternates some updates with a Newton step, a non-negative least-squares
problem (`_newton`), until the certificate is small enough. A step that lowers L is not taken, and
the point with the best certificate is the answer. `smoothed_fit` and `information_covariance` are
for intervals: a fit without zeros, and the precision of the estimates.

*Confidence intervals* are for linear estimates, also for few records and rare symbols. A score
interval (Wilson 1927, JASA 22) of an estimate t holds every value theta that t does not
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

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mechdesign.analysis.linear import Array, Estimator, coefficients, errors_of_level
from mechdesign.core.arguments import number
from mechdesign.core.errors import InputError

DEFICIT = 1e-6
"""Largest deficit of the log-likelihood in nats: no test or interval depends on so little."""

ROUNDING = 1e-12
"""Deficit for each record below which double arithmetic may not get: g is a sum of some hundred
rounded terms. It is a thousandth of a nat for a billion records.
"""

SLACK = 1e-14
"""Added to the certificate of each record: rounding may have lowered the largest g by so much."""

ITERATIONS = 5_000
"""Most cycles; typical problems take fewer than 20."""

UPDATES = 6
"""Updates before each Newton step."""

STEP_FACTOR = 0.5
SHORTEST_STEP = 1e-10
"""A Newton direction is shortened until L rises, or given up."""

CLOSED = 1e3
"""Weight of the row that keeps the sum of a Newton iterate at 1; the exact sum is restored
afterwards.
"""

EQUAL = 1e-15
"""Mean log-likelihoods this close cannot be told apart in doubles; then the certificate decides."""

PATIENCE = 25
"""Cycles without a better certificate after which the best point so far is final."""

SMOOTH = 50
"""Updates of a smoothed fit: near the maximum, but with some mass on every symbol."""


@dataclass(frozen=True)
class MaximumLikelihood:
    """A maximiser of the likelihood and how good it is.

    Attributes
    ----------
    frequencies : (|X|,) array
    log_likelihood : float
        In nats, of all records.
    deficit : float
        Proven distance of the log-likelihood from its maximum, in nats.
    iterations : int
    converged : bool
        Whether the deficit is as small as aimed at.
    """

    frequencies: Array
    log_likelihood: float
    deficit: float
    iterations: int
    converged: bool


def maximum_likelihood(
    matrix: Array, counts: NDArray[np.int64] | Array, iterations: int = ITERATIONS
) -> MaximumLikelihood:
    """Maximise the likelihood of `counts` over all P_X.

    Parameters
    ----------
    matrix : (|X|, labels) array
        The channel W.
    counts : (labels,) array
        Released records with each label.
    iterations : int
        Most cycles of updates and a Newton step.

    Raises
    ------
    InputError
        If there are no records, or a label occurs that the channel never gives.
    """
    numbers = np.asarray(counts, dtype=np.float64)
    if numbers.sum() <= 0:
        raise InputError("there are no released records to estimate from")
    if (matrix[:, numbers > 0].max(axis=0) <= 0.0).any():
        raise InputError(
            "a label occurs that no symbol can give: the data are not of this channel"
        )
    problem = _Likelihood(matrix, numbers)
    goal = max(DEFICIT / problem.records, ROUNDING)
    # From the uniform point, for an update never makes a zero positive.
    p = np.full(len(matrix), 1.0 / len(matrix))
    best = p
    best_gap = _gap(problem, p)
    best_cycle = 0
    cycle = 0
    while best_gap > goal and cycle < iterations and cycle - best_cycle < PATIENCE:
        cycle += 1
        # The updates never lower L, but get slow near the maximum, where Newton steps are fast.
        for _ in range(UPDATES):
            p = p * problem.gradient(p)
            p /= p.sum()
        p = _newton(problem, p)
        gap = _gap(problem, p)
        if gap < best_gap:
            best = p
            best_gap = gap
            best_cycle = cycle
    return MaximumLikelihood(
        frequencies=best,
        log_likelihood=problem.records * problem.value(best),
        deficit=problem.records * (best_gap + SLACK),
        iterations=cycle,
        converged=best_gap <= goal,
    )


class _Likelihood:
    """Mean log-likelihood L / N and its gradient g, over the labels that occur."""

    def __init__(self, matrix: Array, counts: Array) -> None:
        seen = counts > 0
        self.records = float(counts.sum())
        self.shares: Array = counts[seen] / self.records
        self.matrix: Array = matrix[:, seen]

    def value(self, p: Array) -> float:
        """sum_y f(y) log (pW)(y); minus infinity where a label that occurs has no mass."""
        q = p @ self.matrix
        if not (q > 0.0).all():
            return -math.inf
        return float(self.shares @ np.log(q))

    def gradient(self, p: Array) -> Array:
        """g(x) = sum_y f(y) W(y|x) / (pW)(y)."""
        return self.matrix @ (self.shares / (p @ self.matrix))


def _gap(problem: _Likelihood, p: Array) -> float:
    """log max_x g(x), which bounds the deficit of each record (module docstring)."""
    return max(0.0, math.log(float(problem.gradient(p).max())))


def _newton(problem: _Likelihood, p: Array) -> Array:
    """The maximiser of the quadratic model over the simplex, or as far towards it as L rises.

    With u = (p'W)/(pW), L / N grows by ``sum_y f(y) log u(y)`` from p to p'. Near u = 1 the
    logarithm is (u - 1) - (u - 1)^2 / 2 = (1 - (u - 2)^2) / 2. So the model of -L / N is, but for a
    constant, ``sum_y f(y) (u(y) - 2)^2 / 2``: non-negative least squares in p', with a heavy last
    row for the sum.
    """
    from scipy.optimize import nnls

    root = np.sqrt(problem.shares)
    rows = (root / (p @ problem.matrix))[:, None] * problem.matrix.T
    system = np.vstack([rows, np.full((1, len(p)), CLOSED)])
    try:
        target, _ = nnls(system, np.append(2.0 * root, CLOSED))
    except RuntimeError:
        # The active-set method cycled. The next updates lead to another point.
        return p
    if target.sum() <= 0.0:
        return p
    target = _polished(rows, 2.0 * root, target / target.sum())
    before = problem.value(p)
    step = 1.0
    while step >= SHORTEST_STEP:
        new = p + step * (target - p)
        new /= new.sum()
        after = problem.value(new)
        if after > before:
            return new
        # The likelihoods are equal in double precision: the certificate decides.
        if after > before - EQUAL and _gap(problem, new) < _gap(problem, p):
            return new
        step *= STEP_FACTOR
    return p


def _polished(rows: Array, wanted: Array, target: Array) -> Array:
    """The same minimiser to full accuracy: on its support, with the sum exactly 1.

    It solves the Karush-Kuhn-Tucker equations of least squares under that constraint.
    """
    inside = np.flatnonzero(target)
    part = rows[:, inside]
    # For the shift d of the minimiser: A'A d + 1 m = A'(b - A p) and 1'd = 0, with a multiplier m.
    ones = np.ones((1, len(inside)))
    system = np.block([[part.T @ part, ones.T], [ones, np.zeros((1, 1))]])
    right = np.append(part.T @ (wanted - part @ target[inside]), 0.0)
    shift = np.linalg.lstsq(system, right, rcond=None)[0][:-1]
    polished = np.zeros_like(target)
    polished[inside] = target[inside] + shift
    if polished.min() < 0.0:
        # The support was not that of the minimiser.
        return target
    return polished


def smoothed_fit(matrix: Array, counts: NDArray[np.int64]) -> Array:
    """Frequencies near those of maximum likelihood, none of them zero, for each row of counts.

    `counts` is (.., labels), the result (.., |X|).
    """
    shares: Array = counts / counts.sum(axis=-1, keepdims=True)
    p = np.full((*counts.shape[:-1], len(matrix)), 1.0 / len(matrix))
    for _ in range(SMOOTH):
        # f(y) / (pW)(y), and 0 for labels that do not occur.
        ratios = np.divide(shares, p @ matrix, out=shares * 0.0, where=shares > 0.0)
        p = p * (ratios @ matrix.T)
        p /= p.sum(axis=-1, keepdims=True)
    return p


def information_covariance(
    matrix: Array, functionals: Array, fit: Array, records: int, rank: int
) -> Array:
    """Asymptotic covariance of maximum-likelihood functionals; records are draws of a population.

    It is the inverse of the expected information at the fit p, on the plane where frequencies sum
    to 1. With the frequencies q = pW of the labels and D = diag(q) the information of a record is
    I = W D^-1 W'. As I p = W D^-1 q = 1, the inverse on the plane is I^-1 - p p', and functionals c
    have the covariance (c' I^-1 c - (c'p)(c'p)') / N.

    It ignores that frequencies cannot be negative, so it is not too small where one is estimated
    as 0. A label with an expected count below one counts as one record, for D must be invertible.
    """
    # c' I^-1 c = b' D b for the weights b of least variance with W b = c, b = D^-1 W' I^-1 c. They
    # exist where W has not full rank, too.
    q = np.maximum(fit @ matrix, 1.0 / records)
    weights = coefficients(matrix, functionals, q, rank)
    estimate = functionals.T @ fit
    second: Array = (weights.T * q) @ weights
    return (second - np.outer(estimate, estimate)) / records


# ---------------------------------------------------------------------- score intervals

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

    def deviation(self, theta: Array, records: int | Array) -> Array:
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
    fit = smoothed_fit(estimator.model.matrix, counts)[..., None]
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
    estimate: Array, spread: Spread, step: Array, records: int | Array, level: float
) -> tuple[Array, Array]:
    """Lower and upper ends of score intervals, by bisection of both at once.

    Parameters
    ----------
    estimate : (.., m) array
    spread : Spread
    step : (m,) array
        Largest difference between the weights of two records.
    records : int or (m,) array
        The same for all cells, or of each.
    level : float
        Confidence level, in (0, 1).
    """
    z = errors_of_level(level)
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
