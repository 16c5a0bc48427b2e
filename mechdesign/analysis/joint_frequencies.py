"""Frequencies of X jointly with another column, which was kept as it was.

Beyond what `frequencies` assumes: given the symbol of X, the label does not depend on the other column. A channel that
was applied to X alone guarantees that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.analysis import frequencies as f
from mechdesign.analysis.frequencies import Estimated
from mechdesign.analysis.likelihood import information_covariance, maximum_likelihood
from mechdesign.analysis.model import Estimator, crossed_counts, release_model
from mechdesign.channel.channel import Array, Channel


@dataclass(frozen=True, repr=False, kw_only=True)
class JointFrequencies(Estimated):
    """Estimated joint frequencies: rows are symbols of X (or groups), columns values of the other column.

    All entries of `estimates` sum to 1 if the names cover every symbol; the rest as in `frequencies.Estimated`.

    Parameters
    ----------
    names : tuple of str
        A symbol of X, or symbols that only their sum is known of.
    others : tuple of str
        Values of the kept column.
    """

    names: tuple[str, ...]
    others: tuple[str, ...]

    def rows(self) -> list[dict[str, Any]]:
        """One record a cell: name, other, estimate, standard_error, lower, upper."""
        return self._rows(
            {"name": name, "other": other}
            for name in self.names
            for other in self.others
        )


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
    released : column of labels of `channel`, or a mapping of (label, value of the other column) to count
    other : column of the same length
        The kept column; None with counts.
    method, level, target, functionals, form
        As in `estimate_frequencies`; 'ml' fits each value of the kept column by itself, which
        maximises the joint likelihood.

    Raises
    ------
    InputError
        On labels that are not the channel's, columns of different lengths, or functionals that cannot be told.
    """
    asked = f.check_estimate(method, level, target)
    first = Estimator.of(release_model(channel, form), functionals)
    counts, values = crossed_counts(first.model.labels, released, other)
    records = f.record_count(counts)
    fitted = (
        _likely_joint(first, counts)
        if method == "ml"
        else _unbiased_joint(first, counts / records)
    )
    estimates, variances = (
        fitted.estimates,
        (fitted.second - fitted.estimates**2) / (records - 1),
    )
    if target == "records":
        variances = (fitted.second - fitted.products) / records
    lower, upper = _joint_interval(first, fitted, counts, target, asked["level"])
    return JointFrequencies(
        names=first.cells.names,
        others=values,
        estimates=estimates,
        standard_errors=np.sqrt(np.maximum(variances, 0.0)),
        lower=lower,
        upper=upper,
        records=records,
        notices=first.cells.notices,
        **asked,
    )


def _joint_interval(
    first: Estimator,
    fitted: _Fitted,
    counts: NDArray[np.int64],
    target: str,
    level: float,
) -> tuple[Array, Array]:
    """Score intervals of the cells; weights are those of the label, or 0 for records of another value."""
    one, records = f.spread_of(first, counts.sum(axis=1), target)[0], int(counts.sum())
    every = np.zeros_like(fitted.estimates)
    least, top = (end[:, None] + every for end in _with_zero(*first.cells.bounds))
    # One record more, as if the columns were unrelated: what did not occur can occur all the same.
    expected: Array = one.squares[1][:, None] * counts.sum(axis=0) / records
    square = (records * fitted.second + expected) / (records + 1)
    squares = (square, square, np.maximum(one.squares[2][:, None], square))
    fixed = (every, fitted.products, top**2) if target == "records" else None
    spread = f.Spread(least, np.clip(fitted.estimates, least, top), top, squares, fixed)
    low, high = _with_zero(first.weights.min(axis=0), first.weights.max(axis=0))
    lower, upper = f.score_interval(
        fitted.estimates, spread, (high - low)[:, None], records, level
    )
    return np.minimum(lower, fitted.estimates), np.maximum(upper, fitted.estimates)


def _with_zero(low: Array, high: Array) -> tuple[Array, Array]:
    return np.minimum(low, 0.0), np.maximum(high, 0.0)


@dataclass(frozen=True)
class _Fitted:
    """Estimates; E b(Y)^2; and sum_x P(x) c(x)^2, cell by cell."""

    estimates: Array
    second: Array
    products: Array


def _unbiased_joint(first: Estimator, shares: Array) -> _Fitted:
    """The weights of a label, for the records of each value."""
    estimates: Array = first.weights.T @ shares
    squares: Array = (first.weights**2).T @ shares
    if first.cells.disjoint:  # squares of 0 and 1
        return _Fitted(estimates, squares, estimates)
    squared = first.cells.functionals**2
    # The smallest that a square can be on average, so that variances are too large rather than too small.
    values: Array = first.weights_for(squared).T @ shares
    products = np.where(first.known.identifies(squared)[:, None], values, estimates**2)
    return _Fitted(estimates, squares, products)


def _likely_joint(first: Estimator, counts: NDArray[np.int64]) -> _Fitted:
    """Each value z by itself: P(x, z) = P(z) P(x|z), the share of z being that of the file."""
    matrix, c = first.model.matrix, first.cells.functionals
    records = int(counts.sum())
    parts: list[tuple[Array, Array, Array]] = []
    for column in counts.T:
        n = int(column.sum())
        if n == 0:
            none = np.zeros(c.shape[1])
            parts.append((none, none, none))
            continue
        fit = maximum_likelihood(matrix, column).frequencies
        inside = c.T @ fit
        variance = np.diag(information_covariance(matrix, c, fit, n, first.known.rank))
        share = n / records
        second = share * (n * variance + inside**2)
        parts.append((share * inside, second, share * ((c**2).T @ fit)))
    estimates, second, products = (
        np.column_stack(part) for part in zip(*parts, strict=True)
    )
    return _Fitted(estimates, second, products)
