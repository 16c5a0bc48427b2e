"""What analysts can learn from released data: frequencies of X with confidence intervals.

A released column holds labels y drawn from W(.|x); its frequencies estimate P_Y = P_X W. From there `unbiased` solves
the linear equations (weights b with ``W b = c``), `ml` maximises the likelihood over all P_X. Assumptions: each record
was drawn once, independently, by this very channel; symbols that the channel does not identify (`identifiability`) are
only estimated together.

A score interval (Wilson 1927, JASA 22) of an estimate t holds every value theta that it does not contradict:
``|t - theta| <= d + z sd(theta)``, the standard deviation being the one that the weights have if theta is true, and d
half of what one record can change, as in the continuity correction for a binomial count. An estimate at the end of the
possible values, whose own error is estimated as zero, so keeps an interval, and none is a point.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mechdesign.analysis import likelihood as ml
from mechdesign.analysis.linear import Identification, covariance_of, identify
from mechdesign.analysis.model import Estimator, label_counts, release_model
from mechdesign.channel.channel import Array, Channel
from mechdesign.core.arguments import number
from mechdesign.core.display import Displayed
from mechdesign.core.errors import InputError
from mechdesign.core.wording import percent_of, quoted

Method = Literal["unbiased", "ml"]
Target = Literal["population", "records"]

HALVINGS = 60
"""Bisections of an end: a double has no more digits."""


@dataclass(frozen=True, repr=False, kw_only=True)
class Estimated(Displayed):
    """What estimates have in common.

    Parameters
    ----------
    estimates, standard_errors, lower, upper : arrays of one shape
        Intervals are score intervals within the possible values (`score_interval`).
    records : int
    method : 'unbiased' or 'ml'
    target : 'population' or 'records'
        Whether the intervals are for the population that the records are drawn from, or for the records of the file.
    level : float
        Confidence level of each interval.
    notices : tuple of str
    """

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
        return f"{type(self).__name__}({of}, {self.method}, {percent_of(self.level)} intervals)"

    def _rows(self, names: Iterable[dict[str, str]]) -> list[dict[str, Any]]:
        """Names of the entries, in order, each with its numbers."""
        keys = ("estimate", "standard_error", "lower", "upper")
        columns = (self.estimates, self.standard_errors, self.lower, self.upper)
        rows = zip(*(values.ravel().tolist() for values in columns), strict=True)
        return [
            name | dict(zip(keys, row, strict=True))
            for name, row in zip(names, rows, strict=True)
        ]


@dataclass(frozen=True)
class Spread:
    """Mean square of the weights (m,) if a frequency has its `least`, its `middle` or its `most`; linear in between.

    `fixed` is the part of it that does not vary, at the same values; None where it is theta^2.
    """

    least: Array
    middle: Array
    most: Array
    squares: tuple[Array, Array, Array]
    fixed: tuple[Array, Array, Array] | None = None

    @cached_property
    def _seconds(self) -> tuple[Array, Array, Array]:
        """The squares without what does not vary."""
        (a, b, c), (d, e, f) = self.squares, self.fixed or (0.0, 0.0, 0.0)
        return a - d, b - e, c - f

    def deviation(self, theta: Array, records: int) -> Array:
        """Standard deviation of a mean of so many weights at theta (m,)."""
        above, (least, middle, most) = theta > self.middle, self._seconds
        start, stop = (
            np.where(above, self.middle, self.least),
            np.where(above, self.most, self.middle),
        )
        first, last = np.where(above, middle, least), np.where(above, most, middle)
        width = stop - start
        share = np.divide(
            theta - start, width, out=np.ones_like(theta), where=width > 0.0
        )
        second = (
            first + share * (last - first) - (theta**2 if self.fixed is None else 0.0)
        )
        return np.sqrt(np.maximum(second, 0.0) / records)


def check_level(level: float) -> float:
    """The confidence level as a float."""
    value = number("level", level, "between 0 and 1, such as 0.95")
    if not 0.0 < value < 1.0:
        raise InputError(
            f"the level ({value:g}) must be strictly between 0 and 1, such as 0.95"
        )
    return value


def score_interval(
    estimate: Array, spread: Spread, step: Array, records: int, level: float
) -> tuple[Array, Array]:
    """Lower and upper ends of estimates (.., m); `step` is how far apart two records' weights can be (m,)."""
    z, half = NormalDist().inv_cdf((1.0 + level) / 2.0), step / (2.0 * records)
    limits = np.stack(np.broadcast_arrays(spread.least, spread.most, estimate)[:2])
    at = np.clip(estimate, *limits)

    def holds(theta: Array) -> NDArray[np.bool_]:
        return np.abs(theta - at) <= half + z * spread.deviation(theta, records)

    inside, outside = np.broadcast_to(at, limits.shape), limits
    for _ in range(HALVINGS):
        theta = (inside + outside) / 2.0
        good = holds(theta)
        inside, outside = np.where(good, theta, inside), np.where(good, outside, theta)
    lower, upper = np.where(holds(limits), limits, inside)
    return lower, upper


@dataclass(frozen=True, repr=False, kw_only=True)
class Frequencies(Estimated):
    """Estimated frequencies, one entry for each of `names`; the rest as in `Estimated`.

    Parameters
    ----------
    names : tuple of str
        A symbol of X, symbols that only their sum is known of (``{a, b}``), or what the user asked for.
    covariance : (m, m) array
        Of the estimates.
    likelihood : MaximumLikelihood or None
        How near to the maximum ('ml').
    """

    names: tuple[str, ...]
    covariance: Array
    likelihood: ml.MaximumLikelihood | None = None

    def as_dict(self) -> dict[str, float]:
        """Name to estimate."""
        return dict(zip(self.names, self.estimates.tolist(), strict=True))

    def rows(self) -> list[dict[str, Any]]:
        """One record a name: name, estimate, standard_error, lower, upper."""
        return self._rows({"name": name} for name in self.names)


def identifiability(channel: Channel, *, form: str = "label") -> Identification:
    """Which frequencies, and which linear functionals of them, released data can tell.

    Parameters
    ----------
    channel : Channel
    form : 'label' or 'posterior-draw'

    Raises
    ------
    InputError
        As `estimate_frequencies`, of the channel and the form.
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
    unidentified : 'groups' or 'refuse'
        Where the channel cannot tell symbols apart: estimate the sums of such groups, or refuse.
    form : 'label' or 'posterior-draw'
        What the released column holds.

    Raises
    ------
    InputError
        On labels that are not the channel's, fewer than two records, functionals that released data cannot tell,
        or arguments out of range.
    """
    asked = check_estimate(method, level, target)
    model = release_model(channel, form)
    estimator = Estimator.of(model, functionals, unidentified)
    counts = label_counts(model.labels, released, model.bins)
    records = record_count(counts)
    cells, shares = estimator.cells, counts / records
    # The maximum of the likelihood lies near the unbiased estimate, whose interval is known to hold.
    estimate = centre = estimator.weights.T @ shares
    fit, notice = None, ""
    if method == "ml":
        fit = ml.maximum_likelihood(model.matrix, counts)
        estimate = cells.functionals.T @ fit.frequencies
        covariance = _likely_covariance(
            estimator, fit.frequencies, estimate, records, target
        )
        if not fit.converged:
            notice = f"the likelihood is only known to be within {fit.deficit:.2g} nats of its maximum"
    elif target == "population":
        covariance = covariance_of(estimator.weights, shares, records)
    else:
        products, exact = estimator.products(shares, estimate)
        covariance = covariance_of(estimator.weights, shares, records, products)
        if not exact:
            notice = "some variances are upper bounds: squares of these functionals are not identified"
    ends = score_interval(
        centre, *spread_of(estimator, counts, target), records, asked["level"]
    )
    return Frequencies(
        names=cells.names,
        estimates=estimate,
        standard_errors=np.sqrt(np.maximum(np.diag(covariance), 0.0)),
        lower=np.clip(np.minimum(ends[0], estimate), *cells.bounds),
        upper=np.clip(np.maximum(ends[1], estimate), *cells.bounds),
        covariance=covariance,
        records=records,
        notices=(
            *cells.notices,
            *filter(None, [notice]),
            *_invariant(channel, records),
        ),
        likelihood=fit,
        **asked,
    )


def record_count(counts: NDArray[np.int64]) -> int:
    """The number of records, if it is enough."""
    records = int(counts.sum())
    if records < 2:
        raise InputError(f"estimates need at least two released records, not {records}")
    return records


def _invariant(channel: Channel, records: int) -> tuple[str, ...]:
    """What the released shares say by themselves where the channel keeps those of its table in expectation."""
    objective = channel.record.objective
    if objective is None or not objective.keep_frequencies:
        return ()
    variances = channel.matrix * (1.0 - channel.matrix)
    prior = (
        variances.max(axis=0)
        if channel.joint is None
        else channel.joint.p_x @ variances
    )
    error = float(np.sqrt(prior.max() / records))
    return (
        "this channel keeps expected frequencies: if these records are distributed as in its table, the released "
        f"shares estimate those of the records by themselves, each with a standard error of at most {error:.2g} from "
        "the draws; the estimates here need no such assumption",
    )


def check_estimate(method: str, level: float, target: str) -> dict[str, Any]:
    """These fields of `Estimated`, if all are known and in range."""
    if method not in ("unbiased", "ml"):
        raise InputError(f"the method ({quoted(method)}) must be unbiased or ml")
    if target not in ("population", "records"):
        raise InputError(f"the target ({quoted(target)}) must be population or records")
    return {"method": method, "level": check_level(level), "target": target}


def _likely_covariance(
    estimator: Estimator, fit: Array, estimate: Array, records: int, target: str
) -> Array:
    c, rank = estimator.cells.functionals, estimator.known.rank
    covariance = ml.information_covariance(
        estimator.model.matrix, c, fit, records, rank
    )
    if target == "records":
        second: Array = (c.T * fit) @ c
        covariance = covariance - (second - np.outer(estimate, estimate)) / records
    return covariance


def spread_of(
    estimator: Estimator, counts: NDArray[np.int64], target: str
) -> tuple[Spread, Array]:
    """The mean square of the weights at every value of the cells (all else as fitted), and how far apart two can be."""
    weights, c = estimator.weights, estimator.cells.functionals
    squares = estimator.model.matrix @ weights**2
    fit = ml.smoothed_fit(estimator.model.matrix, counts)[..., None]
    least, most = estimator.cells.bounds

    def given(chosen: NDArray[np.bool_]) -> Array:
        inside = chosen * np.maximum(fit, np.finfo(np.float64).tiny)
        return inside / inside.sum(axis=-2, keepdims=True)

    shares = given(c == least), fit, given(c == most)
    mean, low, high = (
        [(share * values).sum(axis=-2) for share in shares]
        for values in (squares, c, c**2)
    )
    fixed = (high[0], high[1], high[2]) if target == "records" else None
    return Spread(least, low[1], most, (mean[0], mean[1], mean[2]), fixed), np.ptp(
        weights, axis=0
    )
