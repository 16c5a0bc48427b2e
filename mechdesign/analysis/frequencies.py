"""What analysts can learn from released data: frequencies of X with confidence intervals, alone or jointly.

A released column holds labels y drawn from W(.|x); its frequencies estimate P_Y = P_X W. From there `unbiased` solves
the linear equations (weights b with ``W b = c``), `ml` maximises the likelihood over all P_X. Assumptions: each record
was drawn once, independently, by this very channel; symbols that the channel does not identify (`identifiability`) are
only estimated together. Joint frequencies with another column assume further that, given the symbol of X, the label
does not depend on it: a channel that was applied to X alone guarantees that for kept columns, two channels if their
draws were independent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mechdesign.analysis.likelihood import MaximumLikelihood, information_covariance, maximum_likelihood
from mechdesign.analysis.linear import (
    Identification,
    bernstein_reach,
    identify,
    population_covariance,
    randomisation_covariance,
)
from mechdesign.analysis.model import (
    Cells,
    Estimator,
    ReleaseModel,
    crossed_counts,
    label_counts,
    release_model,
)
from mechdesign.channel.channel import Channel
from mechdesign.core.display import Displayed
from mechdesign.core.errors import InputError
from mechdesign.core.numbers import quoted

Array = NDArray[np.float64]

Method = Literal["unbiased", "ml"]
Target = Literal["population", "records"]

FEW = 10
"""Occurrences of a label below which the normal approximation of an interval is worth a warning."""

SMALL = 30
"""Records below which no normal approximation is trusted."""

RESAMPLES = 400
"""Bootstrap resamples: percentiles of a 95 % interval then have some ten values beyond them."""


@dataclass(frozen=True, repr=False)
class Frequencies(Displayed):
    """Estimated frequencies, one entry for each of `names`.

    Parameters
    ----------
    names : tuple of str
        A symbol of X, symbols that only their sum is known of (``{a, b}``), or what the user asked for.
    estimates, standard_errors, lower, upper : (m,) arrays
        Intervals are cut to the possible values; NaN where nothing can be said.
    covariance : (m, m) array
        Of the estimates.
    identified : tuple of bool
        Whether each can be estimated at all; false only for the completions of 'minimum-norm'.
    records : int
    method : 'unbiased' or 'ml'
    target : 'population' or 'records'
        Whether the intervals are for the population that the records are drawn from, or for the records of the file.
    level : float
        Confidence level of each interval.
    notices : tuple of str
    likelihood : MaximumLikelihood or None
        How near to the maximum ('ml').
    """

    names: tuple[str, ...]
    estimates: Array
    standard_errors: Array
    lower: Array
    upper: Array
    covariance: Array
    identified: tuple[bool, ...]
    records: int
    method: str
    target: str
    level: float
    notices: tuple[str, ...] = ()
    likelihood: MaximumLikelihood | None = None

    def __repr__(self) -> str:
        of = f"{'x'.join(map(str, self.estimates.shape))} shares from {self.records:,} records"
        return f"Frequencies({of}, {self.method}, {100 * self.level:g} % intervals)"

    def as_dict(self) -> dict[str, float]:
        """Name to estimate."""
        return dict(zip(self.names, self.estimates.tolist(), strict=True))

    def rows(self) -> list[dict[str, Any]]:
        """One record a name: name, estimate, standard_error, lower, upper, identified."""
        numbers = (self.estimates, self.standard_errors, self.lower, self.upper)
        columns = [values.tolist() for values in numbers]
        return [
            {"name": n, "estimate": e, "standard_error": s, "lower": lo, "upper": up, "identified": known}
            for n, e, s, lo, up, known in zip(self.names, *columns, self.identified, strict=True)
        ]


def identifiability(channel: Channel, *, form: str = "label") -> Identification:
    """Which frequencies, and which linear functionals of them, released data can tell.

    Parameters
    ----------
    channel : Channel
    form : 'label' or 'posterior-draw'

    Raises
    ------
    InputError
        As `estimation_model.release_model`.
    """
    model = release_model(channel, form)
    return identify(model.symbols, model.matrix)


def estimate_frequencies(
    channel: Channel,
    released: Any,
    *,
    method: Method = "unbiased",
    level: float = 0.95,
    target: Target = "population",
    functionals: Any = None,
    unidentified: str = "groups",
    form: str = "label",
    bootstrap: int | None = None,
    seed: int = 0,
) -> Frequencies:
    """Estimate the frequencies of X from what was released.

    Parameters
    ----------
    channel : Channel
        With or without its table; the table only makes the unbiased estimates more precise, never biased.
    released : column, or mapping of label to count
        pandas, polars or pyarrow column, list or array of labels.
    method : 'unbiased' or 'ml'
        Linear and exactly unbiased (estimates can be negative), or maximum likelihood (never negative).
    level : float
        Confidence level, in (0, 1).
    target : 'population' or 'records'
        Intervals for the population of which the records are an independent sample, or for the frequencies among the
        records themselves (then only the channel's draws are random, and intervals are shorter).
    functionals : mapping of name to functional, optional
        What to estimate instead of every symbol: a symbol, symbols (their sum) or symbol-to-coefficient mappings.
    unidentified : 'groups', 'refuse' or 'minimum-norm'
        Where the channel cannot tell symbols apart: estimate the sums of such groups, refuse, or complete
        the estimate by what is nearest to the channel's table (unbiased only; marked, without intervals).
    form : 'label' or 'posterior-draw'
        What the released column holds.
    bootstrap : int, optional
        'ml' only: percentile intervals of so many resamples of the released records in place of the expected
        information.
    seed : int
        Of the bootstrap.

    Raises
    ------
    InputError
        On labels that are not the channel's, fewer than two records, functionals that released data cannot tell,
        or arguments out of range.
    """
    _check(method, level, target, bootstrap)
    if method == "ml" and unidentified == "minimum-norm":
        raise InputError(
            "unidentified='minimum-norm' is for the unbiased method; use groups or refuse with ml"
        )
    model = release_model(channel, form)
    estimator = Estimator.of(model, functionals, unidentified)
    counts = label_counts(model.labels, released, model.bins)
    records = int(counts.sum())
    if records < 2:
        raise InputError(f"estimates need at least two released records, not {records}")
    if method == "unbiased":
        result = _unbiased(estimator, counts / records, records, target, level)
    else:
        result = _likely(estimator, counts, target, level, bootstrap, seed)
    return replace(result, notices=(*estimator.cells.notices, *result.notices, *_rare(model, counts)))


def _check(method: str, level: float, target: str, bootstrap: int | None) -> None:
    if method not in ("unbiased", "ml"):
        raise InputError(f"the method ({quoted(method)}) must be unbiased or ml")
    if target not in ("population", "records"):
        raise InputError(f"the target ({quoted(target)}) must be population or records")
    if not 0.0 < level < 1.0:
        raise InputError(f"the level ({level:g}) must be strictly between 0 and 1, such as 0.95")
    if bootstrap is not None and (method != "ml" or target != "population"):
        raise InputError("the bootstrap is for method='ml' with target='population'")
    if bootstrap is not None and bootstrap < RESAMPLES // 4:
        raise InputError(f"bootstrap ({bootstrap}) must be at least {RESAMPLES // 4} resamples")


def _unbiased(estimator: Estimator, shares: Array, records: int, target: str, level: float) -> Frequencies:
    notices: list[str] = []
    estimate = estimator.weights.T @ shares
    if target == "population":
        covariance = population_covariance(estimator.weights, shares, records)
    else:
        products, exact = estimator.products(shares, estimate)
        covariance = randomisation_covariance(estimator.weights, shares, records, products)
        if not exact:
            notices.append("some variances are upper bounds: squares of these functionals are not identified")
    if not all(estimator.cells.identified):
        estimate = _nearest(estimator, shares)
    result = _with_intervals(estimator.cells, estimate, covariance, level, ("unbiased", target, records))
    return replace(_not_too_sure(result, estimator), notices=tuple(notices))


def _nearest(estimator: Estimator, shares: Array) -> Array:
    """The P_X nearest to the table's (or to equal frequencies) that has the released frequencies in its fit."""
    model = estimator.model
    size = len(model.symbols)
    anchor = np.full(size, 1.0 / size) if model.prior is None else model.prior
    change: Array = estimator.weights.T @ (shares - anchor @ model.matrix)
    return anchor + change


def _likely(
    estimator: Estimator,
    counts: NDArray[np.int64],
    target: str,
    level: float,
    bootstrap: int | None,
    seed: int,
) -> Frequencies:
    model, cells = estimator.model, estimator.cells
    records, c = int(counts.sum()), cells.functionals
    fit = maximum_likelihood(model.matrix, counts)
    estimate = c.T @ fit.frequencies
    covariance = information_covariance(model.matrix, c, fit.frequencies, records, estimator.known.rank)
    if target == "records":
        second: Array = (c.T * fit.frequencies) @ c
        covariance = covariance - (second - np.outer(estimate, estimate)) / records
    result = _not_too_sure(
        _with_intervals(cells, estimate, covariance, level, ("ml", target, records)), estimator
    )
    if bootstrap is not None:
        lower, upper = _percentiles(estimator, counts, fit, level, bootstrap, seed)
        result = replace(result, lower=lower, upper=upper)
    rough = f"the likelihood is only known to be within {fit.deficit:.2g} nats of its maximum"
    notices = () if fit.converged else (rough,)
    return replace(result, likelihood=fit, notices=notices)


def _percentiles(
    estimator: Estimator,
    counts: NDArray[np.int64],
    fit: MaximumLikelihood,
    level: float,
    times: int,
    seed: int,
) -> tuple[Array, Array]:
    """Percentile intervals over resamples of the released records, each fitted anew."""
    records = int(counts.sum())
    draws = np.random.default_rng(seed).multinomial(records, counts / records, size=times)
    fits = [maximum_likelihood(estimator.model.matrix, draw, fit.frequencies).frequencies for draw in draws]
    values = np.array(fits) @ estimator.cells.functionals
    tail = (1.0 - level) / 2.0
    lower, upper = np.quantile(values, [tail, 1.0 - tail], axis=0)
    return lower, upper


def _with_intervals(
    cells: Cells, estimate: Array, covariance: Array, level: float, how: tuple[str, str, int]
) -> Frequencies:
    method, target, records = how
    known = np.array(cells.identified)
    covariance = np.where(np.outer(known, known), covariance, np.nan)
    errors = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    lowest, highest = cells.bounds
    lower, upper = interval(estimate, errors, level)
    lower, upper = np.clip(lower, lowest, highest), np.clip(upper, lowest, highest)
    return Frequencies(
        cells.names,
        estimate,
        errors,
        lower,
        upper,
        covariance,
        cells.identified,
        records,
        method,
        target,
        level,
    )


def _not_too_sure(found: Frequencies, estimator: Estimator) -> Frequencies:
    """Wider intervals where the normal ones would be too short: few records, or none that differ.

    A sample whose records all say the same of a frequency has no variance, and still leaves its population open.
    """
    if found.target != "population":
        return found
    reach = bernstein_reach(estimator.weights, found.standard_errors, found.records, found.level)
    lowest, highest = estimator.cells.bounds
    doubtful = (found.standard_errors == 0.0) | (found.records < SMALL)
    lower, upper = np.maximum(found.estimates - reach, lowest), np.minimum(found.estimates + reach, highest)
    return replace(
        found, lower=np.where(doubtful, lower, found.lower), upper=np.where(doubtful, upper, found.upper)
    )


def interval(estimate: Array, errors: Array, level: float) -> tuple[Array, Array]:
    """Normal interval of confidence `level` around each estimate."""
    reach = NormalDist().inv_cdf((1.0 + level) / 2.0) * errors
    return estimate - reach, estimate + reach


def _rare(model: ReleaseModel, counts: NDArray[np.int64]) -> tuple[str, ...]:
    few = [label for label, n in zip(model.labels, counts.tolist(), strict=True) if n < FEW]
    if not few:
        return ()
    return (
        f"{len(few)} of {len(model.labels)} labels occur fewer than {FEW} times (such as {quoted(few[0])}): "
        "intervals that depend on them are approximate",
    )


@dataclass(frozen=True, repr=False)
class JointFrequencies(Displayed):
    """Estimated joint frequencies: rows are symbols of X (or groups), columns values of the other column.

    Parameters
    ----------
    names : tuple of str
        A symbol of X, or symbols that only their sum is known of.
    others : tuple of str
        Values of the kept column, or symbols of the other released one.
    estimates, standard_errors, lower, upper : (m, k) arrays
        All entries of `estimates` sum to 1 if the names cover every symbol.
    records : int
    method, target : str
    level : float
    notices : tuple of str
    """

    names: tuple[str, ...]
    others: tuple[str, ...]
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
        return f"JointFrequencies({of}, {self.method}, {100 * self.level:g} % intervals)"

    def rows(self) -> list[dict[str, Any]]:
        """One record a cell: name, other, estimate, standard_error, lower, upper."""
        keys = ("estimate", "standard_error", "lower", "upper")
        values = (self.estimates, self.standard_errors, self.lower, self.upper)
        return [
            {"name": name, "other": other, **{k: float(v[i, j]) for k, v in zip(keys, values, strict=True)}}
            for i, name in enumerate(self.names)
            for j, other in enumerate(self.others)
        ]


def estimate_joint(
    channel: Channel,
    released: Any,
    other: Any = None,
    *,
    other_channel: Channel | None = None,
    method: Method = "unbiased",
    level: float = 0.95,
    target: Target = "population",
    functionals: Any = None,
    form: str = "label",
) -> JointFrequencies:
    """Estimate the joint frequencies of X and another column.

    Parameters
    ----------
    channel : Channel
    released : column of labels of `channel`, or a mapping of (label, value of the other column) to count
    other : column of the same length
        A column that was kept as it was, or, with `other_channel`, the labels of that channel; None with counts.
    other_channel : Channel, optional
        Unbiased method only.
    method, level, target, functionals, form
        As in `estimation.estimate_frequencies`; 'ml' fits each value of the kept column by itself, which
        maximises the joint likelihood.

    Raises
    ------
    InputError
        On labels that are not the channel's, columns of different lengths, or functionals that cannot be told.
    """
    if method not in ("unbiased", "ml") or target not in ("population", "records"):
        raise InputError(
            f"the method ({quoted(method)}) must be unbiased or ml, the target ({quoted(target)}) population or records"
        )
    if not 0.0 < level < 1.0:
        raise InputError(f"the level ({level:g}) must be strictly between 0 and 1, such as 0.95")
    if method == "ml" and other_channel is not None:
        raise InputError("two released columns are estimated by method='unbiased' only")
    first = Estimator.of(release_model(channel, form), functionals)
    second = None if other_channel is None else Estimator.of(release_model(other_channel))
    labels = None if second is None else second.model.labels
    counts, values = crossed_counts(first.model.labels, released, other, labels)
    records = int(counts.sum())
    if records < 2:
        raise InputError(f"estimates need at least two released records, not {records}")
    fitted = (
        _likely_joint(first, counts) if method == "ml" else _unbiased_joint(first, second, counts / records)
    )
    estimates, variances = fitted.estimates, (fitted.second - fitted.estimates**2) / (records - 1)
    if target == "records":
        variances = (fitted.second - fitted.products) / records
    errors = np.sqrt(np.maximum(variances, 0.0))
    lower, upper = interval(estimates, errors, level)
    if functionals is None:
        lower, upper = np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0)
    notices = first.cells.notices if second is None else (*first.cells.notices, *second.cells.notices)
    others = values if second is None else second.cells.names
    return JointFrequencies(
        first.cells.names, others, estimates, errors, lower, upper, records, method, target, level, notices
    )


@dataclass(frozen=True)
class _Fitted:
    """Estimates; E b(Y)^2; and sum_x P(x) c(x)^2, cell by cell."""

    estimates: Array
    second: Array
    products: Array


def _unbiased_joint(first: Estimator, second: Estimator | None, shares: Array) -> _Fitted:
    """The weights of a pair of labels are the products of the weights of each."""
    one = first.weights
    two = np.eye(shares.shape[1]) if second is None else second.weights
    estimates: Array = one.T @ shares @ two
    squares: Array = (one**2).T @ shares @ (two**2)
    return _Fitted(estimates, squares, _squares(first, shares @ two, estimates))


def _squares(first: Estimator, shares: Array, estimates: Array) -> Array:
    if first.cells.disjoint:  # squares of 0 and 1
        return estimates
    squared = first.cells.functionals**2
    seen = np.array([first.known.identifies(c) for c in squared.T])
    values: Array = first.weights_for(squared).T @ shares
    # The smallest that a square can be on average, so that variances are too large rather than too small.
    return np.where(seen[:, None], values, estimates**2)


def _likely_joint(first: Estimator, counts: NDArray[np.int64]) -> _Fitted:
    """Each value z by itself: P(x, z) = P(z) P(x|z), the share of z being that of the file."""
    matrix, c = first.model.matrix, first.cells.functionals
    records = int(counts.sum())
    parts: list[tuple[Array, Array, Array]] = []
    for column in counts.T:
        n = int(column.sum())
        fit = maximum_likelihood(matrix, column).frequencies
        inside = c.T @ fit
        variance = np.diag(information_covariance(matrix, c, fit, n, first.known.rank))
        share = n / records
        second = share * (n * variance + inside**2)
        parts.append((share * inside, second, share * ((c**2).T @ fit)))
    estimates, second, products = (np.column_stack(part) for part in zip(*parts, strict=True))
    return _Fitted(estimates, second, products)
