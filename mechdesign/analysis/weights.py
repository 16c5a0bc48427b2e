"""Weights of symbols for released labels: posterior probabilities, unbiased weights, regressions.

A released record has a label y in the place of its symbol x, and a weighted analysis gives it a
weight for every symbol. There are two kinds (`record_weights`). *Posterior* weights are P(x | y),
by Bayes' rule. *Unbiased* weights b(y, x) have the indicator of X as their expectation: with the
channel W(y | x'), the sum over y of W(y | x') b(y, x) is 1 if x = x', else 0. For example, a
channel that keeps either of two symbols with probability 3/4 has b = 3/2 for the symbol of the
label and -1/2 for the other: 3/4 * 3/2 - 1/4 * 1/2 = 1, and -3/4 * 1/2 + 1/4 * 3/2 = 0.

`corrected_regression` needs the unbiased ones. The normal equations of a least-squares regression
on d(x, z) are sums over records of terms that are linear in the indicators of X. Replacing each by
its unbiased weight keeps their expectation given X, Z and the outcome: a corrected score (Nakamura
1990, Biometrika 77). Assumption: given X, the label does not depend on outcome and covariates,
which holds for a channel applied to X alone, each record drawn independently.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mechdesign.analysis.estimator import Estimator
from mechdesign.analysis.label_counts import Codes, label_codes
from mechdesign.analysis.model import ReleaseModel, prior_of, release_model
from mechdesign.analysis.score_intervals import check_level
from mechdesign.channel.channel import Array, Channel
from mechdesign.core.errors import InputError
from mechdesign.core.wording import quoted

Kind = Literal["unbiased", "posterior"]

SINGULAR = 1e-10
"""Smallest eigenvalue of the scaled normal matrix, relative to the largest, above which
coefficients are determined."""


@dataclass(frozen=True)
class PosteriorTable:
    """P(x | label): one row a label, one column a symbol, rows sum to 1.

    A label that no symbol of positive prior gives has a row of NaN.
    """

    labels: tuple[str, ...]
    symbols: tuple[str, ...]
    matrix: Array

    def as_dict(self) -> dict[str, dict[str, float]]:
        """Label to the symbols that can have caused it, with their probabilities."""
        table: dict[str, dict[str, float]] = {}
        for label, row in zip(self.labels, self.matrix.tolist(), strict=True):
            chances = zip(self.symbols, row, strict=True)
            table[label] = {x: p for x, p in chances if p != 0.0}
        return table


@dataclass(frozen=True)
class ExpandedRecords:
    """Released records, with one row for every symbol that has a weight, for weighted analyses.

    Parameters
    ----------
    record : (rows,) array
        Position of the released record, ascending.
    symbol : (rows,) array
        Position in `symbols`.
    weight : (rows,) array
        The weights of one record sum to 1.
    symbols : tuple of str
    kind : 'unbiased' or 'posterior'
    """

    record: Codes
    symbol: Codes
    weight: Array
    symbols: tuple[str, ...]
    kind: str

    def __len__(self) -> int:
        return len(self.record)


def posterior_table(
    channel: Channel, prior: Any = None, *, form: str = "label"
) -> PosteriorTable:
    """P(x | label) for every label.

    Parameters
    ----------
    channel : Channel
    prior : mapping of symbol to probability, or |X| probabilities, optional
        P(x) among the records of interest, for instance estimated by maximum likelihood; that of
        the channel's table by default.
    form : 'label' or 'posterior-draw'

    Raises
    ------
    InputError
        If there is no prior (a public channel), or it is not one.
    """
    model = release_model(channel, form)
    return PosteriorTable(model.labels, model.symbols, _posteriors(model, prior))


def _posteriors(model: ReleaseModel, prior: Any) -> Array:
    """P(x | label) by Bayes' rule, (labels, |X|); NaN for labels without mass."""
    joint = prior_of(model, prior, "the posterior table")[:, None] * model.matrix
    masses = joint.sum(axis=0)
    with np.errstate(invalid="ignore"):
        shares: Array = np.where(masses > 0.0, joint / masses, np.nan)
    return np.ascontiguousarray(shares.T)


def record_weights(
    channel: Channel, *, kind: Kind = "unbiased", prior: Any = None, form: str = "label"
) -> Array:
    """(labels, |X|) weights that a record with this label gives each symbol; rows sum to 1.

    'posterior' weights are P(x|y). They suit inference about single records (the best guess of a
    symbol), but a regression on X weighted by them is attenuated, as with any misclassified
    regressor.

    'unbiased' weights b have ``E[b(Y, x) | X = x'] = 1 if x = x' else 0``. So every sum over
    records that is linear in the indicators of X, such as the normal equations of a regression, has
    the same expectation as with X itself, given X and all kept columns. They need no prior, but can
    be negative and magnify noise.

    Parameters
    ----------
    channel : Channel
    kind : 'unbiased' or 'posterior'
    prior : optional
        For 'posterior', as in `posterior_table`.
    form : 'label' or 'posterior-draw'

    Raises
    ------
    InputError
        For 'unbiased' if the channel does not identify every symbol, for 'posterior' if there is no
        prior.
    """
    model = release_model(channel, form)
    if kind == "posterior":
        return _posteriors(model, prior)
    if kind != "unbiased":
        raise InputError(
            f"the kind of weights ({quoted(kind)}) must be unbiased or posterior"
        )
    if prior is not None:
        raise InputError("unbiased weights take no prior: they hold for every one")
    return Estimator.of(model, unidentified="refuse").weights


def expand_records(
    channel: Channel,
    released: Any,
    *,
    kind: Kind = "unbiased",
    prior: Any = None,
    form: str = "label",
) -> ExpandedRecords:
    """One row for every released record and symbol of X with a weight other than 0.

    Parameters
    ----------
    channel : Channel
    released : column of labels
    kind, prior, form
        As in `record_weights`.

    Raises
    ------
    InputError
        As `record_weights`; on labels that are not the channel's.
    """
    from scipy.sparse import csr_array

    model = release_model(channel, form)
    table = record_weights(channel, kind=kind, prior=prior, form=form)
    codes = label_codes(model.labels, released, bins=model.bins)
    if not np.isfinite(table[np.unique(codes)]).all():
        raise InputError(
            "the data hold a label that no symbol of positive prior gives: the prior "
            "does not fit them"
        )
    # Sparse, for most labels have few symbols behind them. Labels without mass do not occur.
    expanded = csr_array(np.nan_to_num(table))[codes].tocoo()
    record, symbol = (part.astype(np.int64) for part in expanded.coords)
    return ExpandedRecords(record, symbol, expanded.data, model.symbols, kind)


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
    form : 'label' or 'posterior-draw'

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

    # The sandwich: the inverse of the normal matrix on both sides of the scores' covariance.
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
        one, two = divmod(int(hidden[0]), len(names))
        raise InputError(
            f"the product of the features {quoted(names[one])} and "
            f"{quoted(names[two])} is not identified: {identification.statement()}"
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
        rest = self.target - self.others @ beta[k:]
        fitted = (self.first @ beta[:k])[self.codes]
        products = (self.second @ beta[:k])[self.codes]
        of_features = self.first[self.codes] * rest[:, None] - products
        of_covariates = self.others * (rest - fitted)[:, None]
        return np.column_stack([of_features, of_covariates])


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
