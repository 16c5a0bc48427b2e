"""Frequencies of X jointly with another column, which the release kept unchanged.

The assumptions are those of `frequencies` and one more: given the symbol of X, the label does not
depend on the other column. A channel that was applied to X alone guarantees that.

The share of a cell (x, z) is the mean over records of b(label) where the other column has z, and of
0 elsewhere: an unbiased estimate with the weights b of `frequencies`, and with their score
intervals. For example, a label a has the weights 3/2 for the symbol a and -1/2 for b, a label b
the reverse, and four records are (a, u), (b, u), (a, v), (a, v):

         u                         v
    a    (3/2 - 1/2) / 4 = 0.25    (3/2 + 3/2) / 4 = 0.75
    b    (3/2 - 1/2) / 4 = 0.25    -(1/2 + 1/2) / 4 = -0.25, reported as 0

`estimate_joint` crosses the two columns (`crossed_counts`), fits every cell (`_Fitted`), and makes
errors and intervals of the mean squares of the fit. Arrays have a row for each symbol and a column
for each value z.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.analysis import frequencies as f
from mechdesign.analysis.frequencies import Estimated
from mechdesign.analysis.likelihood import (
    Spread,
    information_covariance,
    maximum_likelihood,
    score_interval,
    spread_of,
)
from mechdesign.analysis.linear import Estimator
from mechdesign.analysis.model import crossed_counts, release_model
from mechdesign.channel.channel import Array, Channel


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class JointFrequencies(Estimated):
    """Estimated joint frequencies: rows are symbols of X (or groups), columns values of the other
    column.

    All entries of `unbiased` sum to 1 if the names cover every symbol; the rest as in
    `frequencies.Estimated`.

    Parameters
    ----------
    names : tuple of str
        A symbol of X, or symbols whose sum alone is identified.
    others : tuple of str
        Values of the kept column.
    """

    names: tuple[str, ...]
    others: tuple[str, ...]

    def rows(self) -> list[dict[str, Any]]:
        """One record a cell: name, other, estimate, standard_error, lower, upper, unbiased."""
        cells: list[dict[str, str]] = []
        for name in self.names:
            cells += [{"name": name, "other": other} for other in self.others]
        return self._rows(cells)


def estimate_joint(
    channel: Channel,
    released: Any,
    other: Any = None,
    *,
    method: f.Method = "unbiased",
    level: float = 0.95,
    target: f.Target = "population",
    functionals: Any = None,
    form: str = "label",
) -> JointFrequencies:
    """Estimate the joint frequencies of X and another column.

    Parameters
    ----------
    channel : Channel
    released : column of labels, or mapping of (label, value of the other column) to count
    other : column of the same length
        The kept column; None with counts.
    method, level, target, functionals, form
        As in `estimate_frequencies`; 'ml' fits each value of the kept column by itself, which
        maximises the joint likelihood.

    Raises
    ------
    InputError
        On labels that are not the channel's, columns of different lengths, or functionals that
        released data do not identify.
    """
    settings = f.check_estimate(method, level, target)
    estimator = Estimator.of(release_model(channel, form), functionals)
    counts, values = crossed_counts(estimator.model.labels, released, other)
    records = f.record_count(counts)
    unbiased: Array = estimator.weights.T @ (counts / records)
    if method == "ml":
        fitted = _likely_joint(estimator, counts)
    else:
        fitted = _unbiased_joint(estimator, counts / records)
    if target == "records":
        # The symbols are given: only the channel's draws vary.
        variances = (fitted.second - fitted.products) / records
    else:
        variances = (fitted.second - fitted.estimates**2) / (records - 1)
    estimates = np.clip(fitted.estimates, *_possible(estimator))
    lower, upper = _joint_interval(estimator, fitted, counts, target, settings["level"])
    return JointFrequencies(
        names=estimator.cells.names,
        others=values,
        estimates=estimates,
        unbiased=unbiased,
        standard_errors=np.sqrt(np.maximum(variances, 0.0)),
        lower=np.minimum(lower, estimates),
        upper=np.maximum(upper, estimates),
        records=records,
        notices=(
            *estimator.cells.notices,
            *f.impossible_notice(fitted.estimates, estimates),
        ),
        **settings,
    )


def _joint_interval(
    estimator: Estimator,
    fitted: _Fitted,
    counts: NDArray[np.int64],
    target: str,
    level: float,
) -> tuple[Array, Array]:
    """Score intervals of the cells; records of another value have the weight 0."""
    records = int(counts.sum())
    of_symbols, _ = spread_of(estimator, counts.sum(axis=1), target)
    zeros = np.zeros_like(fitted.estimates)
    # The ends are the same for all values z.
    least, most = _possible(estimator)
    least = least + zeros
    most = most + zeros
    # One more record, as if the columns were independent: a cell without records gets a positive
    # variance.
    unrelated: Array = of_symbols.squares[1][:, None] * counts.sum(axis=0) / records
    square = (records * fitted.second + unrelated) / (records + 1)
    at_most = np.maximum(of_symbols.squares[2][:, None], square)
    fixed = None
    if target == "records":
        fixed = (zeros, fitted.products, most**2)
    spread = Spread(
        least=least,
        middle=np.clip(fitted.estimates, least, most),
        most=most,
        squares=(square, square, at_most),
        fixed=fixed,
    )
    # A record of another value weighs 0, so this is one of the weights that a record can have.
    smallest, largest = _with_zero(
        estimator.weights.min(axis=0), estimator.weights.max(axis=0)
    )
    step = (largest - smallest)[:, None]
    return score_interval(fitted.estimates, spread, step, records, level)


def _possible(estimator: Estimator) -> tuple[Array, Array]:
    """(m, 1) smallest and largest possible values of a cell; zero is one of them.

    A value of the kept column may have no record.
    """
    least, most = _with_zero(*estimator.cells.bounds)
    return least[:, None], most[:, None]


def _with_zero(low: Array, high: Array) -> tuple[Array, Array]:
    """The ends of an interval, widened to hold zero."""
    return np.minimum(low, 0.0), np.maximum(high, 0.0)


@dataclass(frozen=True)
class _Fitted:
    """Cell by cell: the estimates, E b(Y)^2 (`second`), and sum_x P(x) c(x)^2 (`products`).

    The variance of one record's weight is `second` minus the square of the estimate; with the
    symbols given, `second` minus `products`.
    """

    estimates: Array
    second: Array
    products: Array


def _unbiased_joint(estimator: Estimator, shares: Array) -> _Fitted:
    """Unbiased estimates: means of the weights, for the records of each value."""
    estimates: Array = estimator.weights.T @ shares
    second: Array = (estimator.weights**2).T @ shares
    if estimator.cells.disjoint:
        # The coefficients are 0 and 1, which are their own squares.
        return _Fitted(estimates, second, estimates)
    squared = estimator.cells.functionals**2
    unbiased: Array = estimator.weights_for(squared).T @ shares
    identified = estimator.identification.identifies(squared)[:, None]
    # Where a square is not identified, the smallest value that its mean can have: variances are
    # then too large rather than too small.
    products = np.where(identified, unbiased, estimates**2)
    return _Fitted(estimates, second, products)


def _likely_joint(estimator: Estimator, counts: NDArray[np.int64]) -> _Fitted:
    """Each value z by itself: P(x, z) = P(z) P(x|z), the share of z being that of the file."""
    records = int(counts.sum())
    fits = [_likely_column(estimator, column, records) for column in counts.T]
    return _Fitted(
        estimates=np.column_stack([fit.estimates for fit in fits]),
        second=np.column_stack([fit.second for fit in fits]),
        products=np.column_stack([fit.products for fit in fits]),
    )


def _likely_column(
    estimator: Estimator, column: NDArray[np.int64], records: int
) -> _Fitted:
    """The cells of one value z, from the counts of its labels among all the records."""
    matrix = estimator.model.matrix
    c = estimator.cells.functionals
    with_value = int(column.sum())
    if with_value == 0:
        zeros = np.zeros(c.shape[1])
        return _Fitted(zeros, zeros, zeros)
    # P(x|z), and the functionals of it.
    fit = maximum_likelihood(matrix, column).frequencies
    given_value = c.T @ fit
    rank = estimator.identification.rank
    covariance = information_covariance(matrix, c, fit, with_value, rank)
    # The variance of one record's weight given z; the mean square over all records follows.
    variance = with_value * np.diag(covariance)
    share = with_value / records
    return _Fitted(
        estimates=share * given_value,
        second=share * (variance + given_value**2),
        products=share * ((c**2).T @ fit),
    )
