"""What analysts can learn from released data: frequencies of X with confidence intervals.

A released column holds labels y drawn from W(.|x); its frequencies estimate P_Y = P_X W. From there `unbiased` solves
the linear equations (weights b with ``W b = c``), `ml` maximises the likelihood over all P_X. Assumptions: each record
was drawn once, independently, by this very channel; symbols that the channel does not identify (`identifiability`) are
only estimated together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mechdesign.analysis.intervals import Spread, score_interval
from mechdesign.analysis.likelihood import (
    MaximumLikelihood,
    information_covariance,
    maximum_likelihood,
    smoothed_fit,
)
from mechdesign.analysis.linear import (
    Identification,
    identify,
    population_covariance,
    randomisation_covariance,
)
from mechdesign.analysis.model import Estimator, label_counts, release_model
from mechdesign.channel.channel import Channel
from mechdesign.core.display import Displayed
from mechdesign.core.errors import InputError
from mechdesign.core.numbers import quoted

Array = NDArray[np.float64]

Method = Literal["unbiased", "ml"]
Target = Literal["population", "records"]

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
        Intervals are score intervals within the possible values (`intervals.score_interval`); NaN where nothing can be
        said.
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
        result = _unbiased(estimator, counts, target, level)
    else:
        result = _likely(estimator, counts, target, level, bootstrap, seed)
    said = (*estimator.cells.notices, *result.notices, *_invariant(channel, records))
    return replace(result, notices=said)


def _invariant(channel: Channel, records: int) -> tuple[str, ...]:
    """What the released shares say by themselves where the channel keeps those of its table in expectation."""
    objective = channel.record.objective
    if objective is None or not objective.keep_frequencies:
        return ()
    variances = channel.matrix * (1.0 - channel.matrix)
    prior = variances.max(axis=0) if channel.joint is None else channel.joint.p_x @ variances
    error = float(np.sqrt(prior.max() / records))
    return (
        "this channel keeps expected frequencies: if these records are distributed as in its table, the released "
        f"shares estimate those of the records by themselves, each with a standard error of at most {error:.2g} from "
        "the draws; the estimates here need no such assumption",
    )


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


def _unbiased(estimator: Estimator, counts: NDArray[np.int64], target: str, level: float) -> Frequencies:
    records, notices = int(counts.sum()), list[str]()
    shares = counts / records
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
    result = _with_intervals(estimator, estimate, covariance, counts, ("unbiased", target, level))
    return replace(result, notices=tuple(notices))


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
    result = _with_intervals(estimator, estimate, covariance, counts, ("ml", target, level))
    if bootstrap is not None:
        lower, upper = _percentiles(estimator, counts, fit, level, bootstrap, seed)
        found = lower < upper  # resamples of records that all say the same differ in nothing
        result = replace(
            result, lower=np.where(found, lower, result.lower), upper=np.where(found, upper, result.upper)
        )
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
    estimator: Estimator,
    estimate: Array,
    covariance: Array,
    counts: NDArray[np.int64],
    how: tuple[str, str, float],
) -> Frequencies:
    method, target, level = how
    cells, records = estimator.cells, int(counts.sum())
    known = np.array(cells.identified)
    covariance = np.where(np.outer(known, known), covariance, np.nan)
    # The maximum of the likelihood lies near the unbiased estimate, whose interval is known to hold.
    centre = estimator.weights.T @ (counts / records)
    ends = score_interval(centre, *spread_of(estimator, counts, target), records, level)
    lower, upper = np.minimum(ends[0], estimate), np.maximum(ends[1], estimate)
    lowest, highest = cells.bounds
    return Frequencies(
        cells.names,
        estimate,
        np.sqrt(np.maximum(np.diag(covariance), 0.0)),
        np.where(known, np.clip(lower, lowest, highest), np.nan),
        np.where(known, np.clip(upper, lowest, highest), np.nan),
        covariance,
        cells.identified,
        records,
        method,
        target,
        level,
    )


def spread_of(estimator: Estimator, counts: NDArray[np.int64], target: str) -> tuple[Spread, Array]:
    """The mean square of the weights at every value of the cells, and how far apart two weights can be.

    The frequencies within a cell, and those of the other symbols, are as fitted.
    """
    weights, c = estimator.weights, estimator.cells.functionals
    squares = estimator.model.matrix @ weights**2
    fit = smoothed_fit(estimator.model.matrix, counts)[:, None]
    least, most = estimator.cells.bounds

    def given(chosen: NDArray[np.bool_]) -> Array:
        inside = chosen * np.maximum(fit, np.finfo(np.float64).tiny)
        return inside / inside.sum(axis=0)

    shares = given(c == least), np.broadcast_to(fit, c.shape), given(c == most)
    mean, low, high = ([(share * values).sum(axis=0) for share in shares] for values in (squares, c, c**2))
    fixed = (high[0], high[1], high[2]) if target == "records" else None
    return Spread(least, low[1], most, (mean[0], mean[1], mean[2]), fixed), np.ptp(weights, axis=0)
