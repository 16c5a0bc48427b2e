"""Maximum-likelihood frequencies of X from counts of Y, with a certified distance from the maximum.

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
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechdesign.analysis.linear import Array, coefficients
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
