"""Least-squares regression on a released column, corrected for its randomisation.

With features d of the symbol x, covariates z and an outcome t, the coefficients of a regression
solve the normal equations, sums over the records of

    [ d d'  d z' ]             [ d t ]
    [ z d'  z z' ]  beta   =   [ z t ].

Every entry is linear in functions of x: the features, and the products of two of them. A released
record has a label y in place of x. So each feature d_i(x) is replaced by its unbiased weight b(y),
with the sum over y of W(y | x) b(y) equal to d_i(x), and each product d_i(x) d_j(x) by a weight of
its own. This keeps the expectation of the equations given X, Z and the outcome: a corrected score
(Nakamura 1990, Biometrika 77). Assumption: given X, the label does not depend on outcome and
covariates, which holds for a channel applied to X alone, each record drawn independently.

For example, let two symbols be kept with probability 3/4 and else exchanged. The indicator of the
first has the weight b = 1.5 for the label of the first and -0.5 for the other:

    x the first     3/4 * 1.5 + 1/4 * -0.5 = 1
    x the second    1/4 * 1.5 + 3/4 * -0.5 = 0

`corrected_regression` sums the equations over the records (`_NormalEquations`), refuses them if
they have no unique solution, solves them, and takes standard errors from the scores of the records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.analysis.estimator import Estimator
from mechdesign.analysis.model import label_codes, release_model
from mechdesign.analysis.score_intervals import check_level
from mechdesign.channel.channel import Array, Channel
from mechdesign.core.errors import InputError
from mechdesign.core.wording import quoted

SINGULAR = 1e-10
"""Smallest eigenvalue of the scaled normal matrix, relative to the largest, above which
coefficients are determined."""


@dataclass(frozen=True)
class Regression:
    """Coefficients of a regression, with their standard errors and intervals.

    The errors are heteroscedasticity-consistent (a sandwich).

    Parameters
    ----------
    names : tuple of str
        The features of X, then the covariates.
    coefficients, standard_errors, lower, upper : (k,) arrays
    covariance : (k, k) array
    records : int
    level : float
    """

    names: tuple[str, ...]
    coefficients: Array
    standard_errors: Array
    lower: Array
    upper: Array
    covariance: Array
    records: int
    level: float


def corrected_regression(
    channel: Channel,
    released: Any,
    outcome: Any,
    *,
    features: Mapping[str, Any] | None = None,
    covariates: Mapping[str, Any] | None = None,
    level: float = 0.95,
    form: str = "label",
) -> Regression:
    """Least-squares regression of an outcome on features of X, corrected for the randomisation.

    The normal equations are unbiased, so the coefficients are consistent for those of the
    regression on X itself.

    Parameters
    ----------
    channel : Channel
    released : column of labels
    outcome : (n,) numbers
    features : mapping of name to functional, optional
        A symbol, symbols (an indicator of them), or a mapping of symbol to value; an indicator of
        every symbol by default (no intercept: the coefficients are then the means of the outcome).
        An intercept is a covariate of ones.
    covariates : mapping of name to (n,) numbers, optional
        Kept columns.
    level : float
    form : 'label', 'posterior-draw', 'representative' or 'within'

    Raises
    ------
    InputError
        If released data do not identify a feature or the product of two (which the normal equations
        need), lengths differ, a number is missing, or the normal matrix is singular or not positive
        (too few records, or collinear).
    """
    level = check_level(level)
    model = release_model(channel, form)
    estimator = Estimator.of(model, features, "refuse")
    codes = label_codes(model.labels, released, bins=model.bins)
    size = len(codes)
    target = _numbers("the outcome", outcome, size)

    # Covariates are known, so they need no weights.
    columns: dict[str, Array] = {}
    for name, values in (covariates or {}).items():
        columns[name] = _numbers(f"the covariate {quoted(name)}", values, size)
    # The (n, 0) array gives the matrix its n rows where there are no covariates.
    others = np.column_stack([*columns.values(), np.zeros((size, 0))])

    # The coefficients solve the corrected normal equations.
    equations = _NormalEquations(
        first=estimator.weights,
        second=_products(estimator),
        codes=codes,
        others=others,
        target=target,
    )
    normal, right = equations.sums()
    _check_normal(normal, size)
    beta = np.linalg.solve(normal, right).astype(np.float64)

    # The sandwich: the inverse of the normal matrix on both sides of the scores' covariance. It
    # needs no assumption on the variance of the outcome, and includes the noise of the channel.
    scores = equations.scores(beta)
    bread = np.linalg.inv(normal)
    covariance: Array = bread @ (scores.T @ scores) @ bread.T
    errors = np.sqrt(np.diag(covariance))
    reach = NormalDist().inv_cdf((1.0 + level) / 2.0) * errors
    return Regression(
        names=(*estimator.cells.names, *columns),
        coefficients=beta,
        standard_errors=errors,
        lower=beta - reach,
        upper=beta + reach,
        covariance=covariance,
        records=size,
        level=level,
    )


def _numbers(name: str, values: Any, size: int) -> Array:
    """An array of n finite numbers; InputError, which begins with the name, on anything else."""
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be numbers") from None
    if numbers.shape != (size,):
        raise InputError(
            f"{name} must have one number for each of the {size} released records"
        )
    if not np.isfinite(numbers).all():
        raise InputError(f"{name} has a missing or infinite value; drop these records")
    return numbers


def _products(estimator: Estimator) -> Array:
    """(labels, k, k) weights of the products of two features.

    The normal matrix has sums of such products. The product of two unbiased weights is biased, so
    the products need weights of their own.
    """
    names = estimator.cells.names
    identification = estimator.identification
    hidden = np.flatnonzero(~identification.identifies(estimator.outer))
    if hidden.size:
        # `outer` has the product of the features i and j at i k + j.
        i, j = divmod(int(hidden[0]), len(names))
        raise InputError(
            f"the product of the features {quoted(names[i])} and "
            f"{quoted(names[j])} is not identified: {identification.statement()}"
        )
    return estimator.weights_for(estimator.outer).reshape(-1, len(names), len(names))


@dataclass(frozen=True)
class _NormalEquations:
    """The corrected normal equations of n records, with k features of X and some covariates.

    Parameters
    ----------
    first : (labels, k) array
        The weights of each feature.
    second : (labels, k, k) array
        The weights of the products of two features.
    codes : (n,) integers
        The label of each record.
    others : (n, covariates) array
    target : (n,) array
        The outcome.
    """

    first: Array
    second: Array
    codes: NDArray[np.int64]
    others: Array
    target: Array

    def sums(self) -> tuple[Array, Array]:
        """The normal matrix and the right-hand side, summed over all records."""
        labels = len(self.first)
        # Weights depend on the label alone, so sums over records are sums over labels.
        counts = np.bincount(self.codes, minlength=labels).astype(np.float64)
        features: Array = np.tensordot(counts, self.second, axes=1)
        by_label = np.zeros((labels, self.others.shape[1] + 1))
        np.add.at(by_label, self.codes, np.column_stack([self.others, self.target]))
        cross: Array = self.first.T @ by_label
        mixed = cross[:, :-1]
        covariates = self.others.T @ self.others
        normal = np.block([[features, mixed], [mixed.T, covariates]])
        right = np.concatenate([cross[:, -1], self.others.T @ self.target])
        return normal, right

    def scores(self, beta: Array) -> Array:
        """(n, k + covariates) terms of the normal equations at beta, record by record.

        They sum to 0 where beta solves the equations.
        """
        # Of a record with features d, covariates z and outcome t the terms are d (t - z.b - d.b)
        # and z (t - z.b - d.b). `first` takes the place of d, and `second` that of d d'.
        k = self.first.shape[1]
        of_features = beta[:k]
        of_covariates = beta[k:]
        # d.b and (d d') b depend on the label alone, and are computed once for each.
        rest = self.target - self.others @ of_covariates
        fitted = (self.first @ of_features)[self.codes]
        products = (self.second @ of_features)[self.codes]
        feature_terms = self.first[self.codes] * rest[:, None] - products
        covariate_terms = self.others * (rest - fitted)[:, None]
        return np.column_stack([feature_terms, covariate_terms])


def _check_normal(normal: Array, records: int) -> None:
    """Raise InputError unless the normal matrix is positive definite, whatever its units.

    A corrected one need not be: its features' part is only an unbiased estimate.
    """
    scale = np.sqrt(np.abs(np.diag(normal)))
    if (scale > 0.0).all():
        values = np.linalg.eigvalsh(normal / np.outer(scale, scale))
        if values[0] > SINGULAR * values[-1]:
            return
    raise InputError(
        f"the corrected normal equations of {records} records have no unique solution: "
        "the regressors are collinear, or there are too few records for so strong a "
        "randomisation; use fewer features"
    )
