"""Weights of symbols for released labels: posterior, unbiased, and those of a regression.

A released record has a label y in the place of its symbol x, and a weighted analysis gives it a
weight for every symbol. There are two kinds (`record_weights`). *Posterior* weights are P(x | y),
by Bayes' rule (`posterior_table`). *Unbiased* weights b(y, x) have the indicator of X as their
expectation: with the channel W(y | x'), the sum over y of W(y | x') b(y, x) is 1 if x = x', else 0.
For example, a channel that keeps either of two symbols with probability 3/4 has b = 3/2 for the
symbol of the label and -1/2 for the other: 3/4 * 3/2 - 1/4 * 1/2 = 1, and -3/4 * 1/2 + 1/4 * 3/2 =
0.

`expand_records` writes the weights out, one row for each record and symbol. Two records with the
labels a and b become

    record    symbol    weight
         0    a            3/2
         0    b           -1/2
         1    a           -1/2
         1    b            3/2

Unbiased weights suit whatever is linear in the indicators of X, such as the normal equations of a
regression. Posterior weights suit guesses about single records.

*Cells of a released row* have the posteriors P(x_j | y). With the law of the table as the prior,
Bayes' rule over the rows x of the table gives

    P(x | y) = P(x) W(y | x) / sum over x' of P(x') W(y | x'),

and the probability of a cell is the sum over the rows that have it. For example, of a table with
the rows (nurse, 30) and (clerk, 50), equally many, the released row (nurse, 30) comes from the
first with W = 0.9 and from the second with W = 0.3: the true job is nurse with 0.75, and the true
age is 30 with 0.75 as well.

*Least-squares regression*, corrected for the randomisation. With features d of the symbol x,
covariates z and an outcome t, the coefficients of a regression solve the normal equations, sums
over the records of

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
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mechdesign.analysis.likelihood import check_level
from mechdesign.analysis.linear import Estimator, errors_of_level
from mechdesign.analysis.model import (
    Codes,
    ReleaseModel,
    label_codes,
    prior_of,
    release_model,
)
from mechdesign.channel.channel import Array, Channel
from mechdesign.core.errors import InputError
from mechdesign.core.wording import quoted
from mechdesign.formats.cells import encoded_columns
from mechdesign.tables.columns import positions_of
from mechdesign.tables.variable import Variable

Kind = Literal["unbiased", "posterior"]


@dataclass(frozen=True, eq=False)
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
            # NaN differs from 0 and stays: a label without posterior is not an empty entry.
            table[label] = {x: p for x, p in chances if p != 0.0}
        return table


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
    form : 'label', 'posterior-draw', 'representative' or 'within'

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
    # A label that the prior excludes gives 0 / 0, so NaN: any number would look like a posterior.
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
    form : 'label', 'posterior-draw', 'representative' or 'within'

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
    # Refused rather than joined into groups: the columns of the result are the channel's symbols.
    return Estimator.of(model, unidentified="refuse").weights


@dataclass(frozen=True, eq=False)
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
    # Only the labels that occur need weights.
    if not np.isfinite(table[np.unique(codes)]).all():
        raise InputError(
            "the data hold a label that no symbol of positive prior gives: the prior "
            "does not fit them"
        )
    # Sparse, for most labels have few symbols behind them. Labels without mass do not occur.
    expanded = csr_array(np.nan_to_num(table))[codes].tocoo()
    record, symbol = (part.astype(np.int64) for part in expanded.coords)
    return ExpandedRecords(record, symbol, expanded.data, model.symbols, kind)


# ----------------------------------------------------------------------- cells of a row


class CellPosteriors(NamedTuple):
    """P(x | released row) for one column of N released records.

    Attributes
    ----------
    symbols : tuple of str
        The symbols of the column.
    matrix : (N, |X|) array
        Rows sum to 1.
    """

    symbols: tuple[str, ...]
    matrix: Array


def row_posteriors(channel: Channel, released: Any) -> dict[str, CellPosteriors]:
    """The probabilities of the true cells of released records, for every released column.

    The prior is the table of the channel, so this is for those who may see that table.

    Parameters
    ----------
    channel : Channel
        One that releases rows, with its table.
    released : pandas, polars or pyarrow table
        The release, with all columns of the channel.

    Returns
    -------
    dict of str to CellPosteriors
        One entry for each column that is not given.

    Raises
    ------
    InputError
        If the channel is public or releases no rows, a released column is missing, or the channel
        cannot have released a record.
    """
    joint = channel.joint
    if joint is None:
        raise InputError(
            "a public channel has no table, which is the prior of the posterior probabilities; "
            "load the channel file that was designed without --public"
        )
    if channel.published is None:
        raise InputError(
            "row_posteriors is for channels that release rows (--release); posterior_table is for "
            "labels"
        )
    variable = Variable(channel.output_columns, channel.output_cells)
    outputs = positions_of(encoded_columns(released, variable.columns), variable)
    unknown = np.flatnonzero(outputs < 0)
    if unknown.size:
        raise InputError(
            f"record {unknown[0] + 1} of the released table cannot come from this channel; "
            "`mechdesign check` lists such records"
        )
    integers = channel.integers
    masses = joint.p_x[integers.row_of] * channel.shares
    of_output = np.bincount(integers.indices, masses, len(channel.outputs))
    shares = masses / of_output[integers.indices]
    posteriors: dict[str, CellPosteriors] = {}
    for place, name in enumerate(channel.useful.columns):
        if name in channel.given:
            continue
        texts = sorted({symbol[place] for symbol in channel.useful.symbols})
        code_of = dict(zip(texts, range(len(texts)), strict=True))
        codes = np.array([code_of[symbol[place]] for symbol in channel.useful.symbols])
        # One line for each output, and a column for each symbol.
        numbers = integers.indices * len(texts) + codes[integers.row_of]
        size = len(channel.outputs) * len(texts)
        matrix: Array = np.bincount(numbers, shares, size).astype(np.float64)
        matrix = matrix.reshape(len(channel.outputs), len(texts))
        posteriors[name] = CellPosteriors(tuple(texts), matrix[outputs])
    return posteriors


# --------------------------------------------------------------------------- regression

SINGULAR = 1e-10
"""Smallest eigenvalue of the scaled normal matrix, relative to the largest, above which
coefficients are determined."""


@dataclass(frozen=True, eq=False)
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
    reach = errors_of_level(level) * errors
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
