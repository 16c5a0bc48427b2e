"""Linear regression on a useful column of which only the released labels are known.

The normal equations of a least-squares regression on d(x, z) are sums over records of terms that are linear in the
indicators of X. Replacing each by its unbiased weight (`estimation_weights`) keeps their expectation given X, Z and the
outcome: a corrected score (Nakamura 1990, Biometrika 77). Assumption: given X, the label does not depend on outcome and
covariates, which holds for a channel applied to X alone, each record drawn independently.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.channel import Channel
from mechdesign.errors import InputError
from mechdesign.estimation import interval
from mechdesign.estimation_cells import Estimator
from mechdesign.estimation_counts import label_codes
from mechdesign.estimation_model import release_model
from mechdesign.exact import quoted

Array = NDArray[np.float64]

SINGULAR = 1e-10
"""Smallest eigenvalue of the scaled normal matrix, relative to the largest, with which coefficients mean anything."""


@dataclass(frozen=True)
class Regression:
    """Coefficients of a regression and their standard errors (heteroscedasticity-consistent sandwich).

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
    """Least-squares regression of an outcome on features of X, corrected for the randomisation of X.

    The normal equations are unbiased, so the coefficients are consistent for those of the regression on X itself.

    Parameters
    ----------
    channel : Channel
    released : column of labels
    outcome : (n,) numbers
    features : mapping of name to functional, optional
        A symbol, symbols (an indicator of them), or a mapping of symbol to value; an indicator of every symbol by
        default (no intercept: the coefficients are then the means of the outcome). An intercept is a covariate of ones.
    covariates : mapping of name to (n,) numbers, optional
        Kept columns.
    level : float
    form : 'label' or 'posterior-draw'

    Raises
    ------
    InputError
        If released data do not identify a feature or the product of two (which the normal equations need), lengths
        differ, a number is missing, or the normal matrix is singular or not positive (too few records, or collinear).
    """
    if not 0.0 < level < 1.0:
        raise InputError(f"the level ({level:g}) must be strictly between 0 and 1, such as 0.95")
    model = release_model(channel, form)
    estimator = Estimator.of(model, features, "refuse")
    codes = label_codes(model.labels, released)
    target = _numbers("the outcome", outcome, len(codes))
    columns = {
        name: _numbers(f"the covariate {quoted(name)}", v, len(codes))
        for name, v in (covariates or {}).items()
    }
    first = estimator.weights
    second = _products(estimator)
    others = np.column_stack([*columns.values(), np.zeros((len(codes), 0))])
    normal, right = _sums(first, second, codes, others, target)
    _check_normal(normal, len(codes))
    beta = np.linalg.solve(normal, right).astype(np.float64)
    scores = _scores(first, second, codes, others, target, beta)
    bread = np.linalg.inv(normal)
    covariance: Array = bread @ (scores.T @ scores) @ bread.T
    errors = np.sqrt(np.diag(covariance))
    lower, upper = interval(beta, errors, level)
    names = (*estimator.cells.names, *columns)
    return Regression(names, beta, errors, lower, upper, covariance, len(codes), level)


def _numbers(what: str, values: Any, size: int) -> Array:
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{what} must be numbers") from None
    if numbers.shape != (size,):
        raise InputError(f"{what} must have one number for each of the {size} released records")
    if not np.isfinite(numbers).all():
        raise InputError(f"{what} has a missing or infinite value; drop these records")
    return numbers


def _products(estimator: Estimator) -> Array:
    """(labels, k, k) weights of the products of two features."""
    c = estimator.cells.functionals
    k = c.shape[1]
    outer = (c[:, :, None] * c[:, None, :]).reshape(len(c), k * k)
    hidden = [p for p in range(k * k) if outer[:, p].any() and not estimator.known.identifies(outer[:, p])]
    if hidden:
        one, two = divmod(hidden[0], k)
        names: Sequence[str] = estimator.cells.names
        raise InputError(
            f"the product of the features {quoted(names[one])} and {quoted(names[two])} is not identified: "
            f"{estimator.known.statement()}"
        )
    return estimator.weights_for(outer).reshape(-1, k, k)


def _sums(
    first: Array, second: Array, codes: NDArray[np.int64], others: Array, target: Array
) -> tuple[Array, Array]:
    counts = np.bincount(codes, minlength=len(first)).astype(np.float64)
    own: Array = np.tensordot(counts, second, axes=1)
    by_label = np.zeros((len(first), others.shape[1] + 1))
    np.add.at(by_label, codes, np.column_stack([others, target]))
    cross: Array = first.T @ by_label
    normal = np.block([[own, cross[:, :-1]], [cross[:, :-1].T, others.T @ others]])
    return normal, np.concatenate([cross[:, -1], others.T @ target])


def _check_normal(normal: Array, records: int) -> None:
    scale = np.sqrt(np.abs(np.diag(normal)))
    if (scale > 0.0).all():
        values = np.linalg.eigvalsh(normal / np.outer(scale, scale))
        if values[0] > SINGULAR * values[-1]:
            return
    raise InputError(
        f"the corrected normal equations of {records} records have no unique solution: the regressors are "
        "collinear, or there are too few records for so strong a randomisation; use fewer features"
    )


def _scores(
    first: Array, second: Array, codes: NDArray[np.int64], others: Array, target: Array, beta: Array
) -> Array:
    """(n, k) contribution of every record to the normal equations at beta; they sum to 0."""
    k = first.shape[1]
    rest = target - others @ beta[k:]
    top = first[codes] * rest[:, None] - (second @ beta[:k])[codes]
    fitted = (first @ beta[:k])[codes]
    return np.column_stack([top, others * (rest - fitted)[:, None]])
