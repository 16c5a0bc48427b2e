"""Frequencies of X from released data, with confidence intervals.

A released column holds labels y drawn from W(.|x), so their frequencies estimate P_Y = P_X W. Two
estimators go back to P_X: `unbiased` solves the linear equations ``W b = c`` for weights b of the
labels, `ml` maximises the likelihood over all P_X. Assumptions: each record was drawn once,
independently, by this very channel. Symbols that the channel cannot tell apart (`identifiability`)
are estimated together.

For example, a channel keeps either of two symbols with probability 3/4, so a label of `a` counts as
3/2 for `a` and a label of `b` as -1/2 (`W b = c` for the indicator c of `a`). Of 100 labels with 60
of `a`, P(a) is estimated as 0.6 * 3/2 - 0.4 * 1/2 = 0.7.

An unbiased estimate can be an impossible value, a negative share for instance. The reported
estimate is the nearest possible value, which always lies within its interval (`likelihood`);
the unbiased one is kept beside it.

`estimate_frequencies` is the whole way: labels to counts (`label_counts`), weights (`linear`),
estimates with their covariance, intervals.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mechdesign.analysis import likelihood as ml
from mechdesign.analysis.likelihood import check_level, score_interval, spread_of
from mechdesign.analysis.linear import (
    Estimator,
    Identification,
    covariance_of,
    identify,
)
from mechdesign.analysis.model import label_counts, release_model
from mechdesign.analysis.release_facts import OtherRecords
from mechdesign.channel.channel import Array, Channel
from mechdesign.core.display import Displayed
from mechdesign.core.errors import InputError
from mechdesign.core.wording import percent_of, quoted
from mechdesign.release.samplers import Policy

Method = Literal["unbiased", "ml"]
Target = Literal["population", "records"]

BOUNDS = "bounds"
"""The method of a result that has bounds and no estimates."""

VISIBLE_MOVE = 1e-9
"""Distance to the nearest possible value below which an unbiased estimate misses it by rounding
alone."""


def numbers_at(place: int, columns: Mapping[str, Array]) -> dict[str, float | None]:
    """One number of each column, for a record of a result; None where nothing is estimated."""
    numbers: dict[str, float | None] = {}
    for key, values in columns.items():
        value = float(values.flat[place])
        # JSON has no NaN, and a table of bounds has no estimates.
        numbers[key] = None if np.isnan(value) else value
    return numbers


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Estimated(Displayed):
    """Estimates with their errors and intervals: the base of the results for one and two columns.

    Parameters
    ----------
    estimates : array
        Possible values (shares lie in [0, 1]), each within its interval. Where the unbiased
        estimate is impossible, the nearest possible value: over many releases such estimates are
        not unbiased.
    unbiased : array of the same shape
        The unbiased estimates, which may be negative or above 1.
    standard_errors : array of the same shape
        Of the unbiased estimates, or of those of maximum likelihood.
    lower, upper : arrays of the same shape
        Score intervals within the possible values (`likelihood.score_interval`).
    records : int
    method : 'unbiased', 'ml' or 'bounds'
        Bounds have no estimates (NaN): some records without a symbol are among the others, and
        their share is not known.
    target : 'population' or 'records'
        Whether the intervals are for the population that the records are drawn from, or for the
        records of the file.
    level : float
        Confidence level of each interval.
    notices : tuple of str
    """

    estimates: Array
    unbiased: Array
    standard_errors: Array
    lower: Array
    upper: Array
    records: int
    method: str
    target: str
    level: float
    notices: tuple[str, ...] = ()

    def __repr__(self) -> str:
        shape = "x".join(map(str, self.estimates.shape))
        shares = f"{shape} shares from {self.records:,} records"
        intervals = f"{percent_of(self.level)} intervals"
        return f"{type(self).__name__}({shares}, {self.method}, {intervals})"

    def _rows(self, names: Iterable[dict[str, str]]) -> list[dict[str, Any]]:
        """The names of the entries, in order, each with its numbers."""
        columns = {
            "estimate": self.estimates,
            "standard_error": self.standard_errors,
            "lower": self.lower,
            "upper": self.upper,
            "unbiased": self.unbiased,
        }
        return [name | numbers_at(k, columns) for k, name in enumerate(names)]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Frequencies(Estimated):
    """Estimated frequencies, one entry for each of `names`; the rest as in `Estimated`.

    Parameters
    ----------
    names : tuple of str
        A symbol of X, a group of symbols whose sum alone is identified (``{a, b}``), or a
        functional of the user.
    covariance : (m, m) array
        Of the unbiased estimates, or of those of maximum likelihood.
    likelihood : MaximumLikelihood or None
        The certificate of the maximum ('ml').
    """

    names: tuple[str, ...]
    covariance: Array
    likelihood: ml.MaximumLikelihood | None = None

    def as_dict(self) -> dict[str, float]:
        """Name to estimate."""
        return dict(zip(self.names, self.estimates.tolist(), strict=True))

    def rows(self) -> list[dict[str, Any]]:
        """One record a name: name, estimate, standard_error, lower, upper, unbiased."""
        return self._rows({"name": name} for name in self.names)


def identifiability(channel: Channel, *, form: str = "label") -> Identification:
    """The frequencies, and linear functionals of them, that released data identify.

    Parameters
    ----------
    channel : Channel
    form : 'label', 'posterior-draw', 'representative' or 'within'

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
    policy: Policy | None = None,
    missing_share: float | None = None,
    unknown_share: float | None = None,
) -> Frequencies:
    """Estimate the frequencies of X from a released column.

    Parameters
    ----------
    channel : Channel
        With or without its table; the table only makes the unbiased estimates more precise, never
        biased.
    released : column, or mapping of label to count
        pandas, polars or pyarrow column, list or array of labels.
    method : 'unbiased' or 'ml'
        Linear, or maximum likelihood. The result has the exactly unbiased estimates as `unbiased`
        either way.
    level : float
        Confidence level, in (0, 1).
    target : 'population' or 'records'
        Intervals for the population of which the records are an independent sample, or for the
        frequencies among the records themselves (then only the channel's draws are random, and
        intervals are shorter).
    functionals : mapping of name to functional, optional
        Estimated instead of every symbol: a symbol, symbols (their sum) or symbol-to-coefficient
        mappings.
    unidentified : 'groups' or 'refuse'
        Where the channel cannot tell symbols apart: estimate the sums of such groups, or refuse.
    form : 'label', 'posterior-draw', 'representative' or 'within'
        The form of the released column.
    policy : Policy, optional
        What was released for empty and unknown cells, if the file has such records. The estimates
        are those of the other records then.
    missing_share, unknown_share : float, optional
        The share of empty cells, and of unknown symbols, among the records. Where the policy lets
        them through and their share is not known, there are bounds and no estimates (NaN).

    Raises
    ------
    InputError
        On labels that are not the channel's, fewer than two records, functionals that released data
        do not identify, or arguments out of range.
    """
    settings = check_estimate(method, level, target)
    model = release_model(channel, form)
    others = OtherRecords.of(channel, form, policy, (missing_share, unknown_share))
    if others is not None and others.share is not None:
        model = others.corrected(model)
    estimator = Estimator.of(model, functionals, unidentified)
    counts = label_counts(model.labels, released, model.bins)
    if others is not None and others.share is None:
        return _bounded(estimator, others, counts, settings)
    records = record_count(counts)
    cells = estimator.cells
    unbiased: Array = estimator.weights.T @ (counts / records)
    if method == "ml":
        fitted = _likely_fit(estimator, counts, target)
    else:
        fitted = _unbiased_fit(estimator, counts, unbiased, target)
    estimates = np.clip(fitted.estimates, *cells.bounds)
    spread, step = spread_of(estimator, counts, target)
    lower, upper = score_interval(unbiased, spread, step, records, settings["level"])
    # Intervals are those of the unbiased estimate, which are valid for few records, too. The
    # maximum of the likelihood lies near it; where it is outside, the interval is widened.
    lower = np.minimum(lower, estimates)
    upper = np.maximum(upper, estimates)
    notices = (
        *cells.notices,
        *fitted.notices,
        *impossible_notice(fitted.estimates, estimates),
    )
    if others is None:
        notices += _kept_frequencies_notice(channel, records)
    else:
        notices += (
            f"{percent_of(others.share or 0.0)} of the records had {' or '.join(others.names)}: "
            "the estimates are corrected for what was released in their place, and are those of "
            "the other records",
        )
    return Frequencies(
        names=cells.names,
        estimates=estimates,
        unbiased=unbiased,
        # Among the records themselves a variance is the difference of two estimates, and can be
        # negative by chance.
        standard_errors=np.sqrt(np.maximum(np.diag(fitted.covariance), 0.0)),
        lower=np.clip(lower, *cells.bounds),
        upper=np.clip(upper, *cells.bounds),
        covariance=fitted.covariance,
        records=records,
        notices=notices,
        likelihood=fitted.likelihood,
        **settings,
    )


def _bounded(
    estimator: Estimator,
    others: OtherRecords,
    counts: NDArray[np.int64],
    settings: dict[str, Any],
) -> Frequencies:
    """Bounds of the cells where the share of records without a symbol is not known."""
    records = record_count(counts)
    wider = others.extended(estimator)
    means: Array = wider.weights.T @ (counts / records)
    # Of all records as a sample: the interval of their mean weight needs no shares.
    spread, step = spread_of(wider, counts, "population")
    lower, upper = score_interval(means, spread, step, records, settings["level"])
    low, high = others.bounds(estimator, lower, upper)
    cells = estimator.cells
    nothing = np.full(len(cells.names), np.nan)
    return Frequencies(
        names=cells.names,
        estimates=nothing,
        unbiased=nothing,
        standard_errors=nothing,
        lower=low,
        upper=high,
        covariance=np.full((len(cells.names), len(cells.names)), np.nan),
        records=records,
        notices=(
            *cells.notices,
            f"some records had {' or '.join(others.names)}, and how many is not known: so there "
            "are only bounds, which hold for any number of them. With their share "
            "(--missing-share, --unknown-share) or the internal manifest (--manifest) there are "
            "estimates",
        ),
        method=BOUNDS,
        target=settings["target"],
        level=settings["level"],
    )


def check_estimate(method: str, level: float, target: str) -> dict[str, Any]:
    """These fields of `Estimated`, if all are known and in range."""
    if method not in ("unbiased", "ml"):
        raise InputError(f"the method ({quoted(method)}) must be unbiased or ml")
    if target not in ("population", "records"):
        raise InputError(f"the target ({quoted(target)}) must be population or records")
    return {"method": method, "level": check_level(level), "target": target}


def record_count(counts: NDArray[np.int64]) -> int:
    """The number of records; InputError if it is below two."""
    records = int(counts.sum())
    # The variance of a sample divides by one record less.
    if records < 2:
        raise InputError(f"estimates need at least two released records, not {records}")
    return records


@dataclass(frozen=True)
class _Fit:
    """Estimates before they are clipped to possible values, with their covariance."""

    estimates: Array
    covariance: Array
    notices: tuple[str, ...] = ()
    likelihood: ml.MaximumLikelihood | None = None


def _unbiased_fit(
    estimator: Estimator, counts: NDArray[np.int64], unbiased: Array, target: str
) -> _Fit:
    """The unbiased estimates with their covariance for the target."""
    records = int(counts.sum())
    shares = counts / records
    if target == "population":
        covariance = covariance_of(estimator.weights, shares, records)
        return _Fit(unbiased, covariance)
    # Of the records of the file the symbols are given: their variance is taken off.
    products, is_exact = estimator.products(shares, unbiased)
    covariance = covariance_of(estimator.weights, shares, records, products)
    if is_exact:
        return _Fit(unbiased, covariance)
    notice = "some variances are upper bounds: squares of these functionals are not identified"
    return _Fit(unbiased, covariance, (notice,))


def _likely_fit(estimator: Estimator, counts: NDArray[np.int64], target: str) -> _Fit:
    """The estimates of maximum likelihood with their covariance for the target."""
    records = int(counts.sum())
    matrix = estimator.model.matrix
    c = estimator.cells.functionals
    likelihood = ml.maximum_likelihood(matrix, counts)
    shares = likelihood.frequencies
    estimates: Array = c.T @ shares
    covariance = ml.information_covariance(
        matrix, c, shares, records, estimator.identification.rank
    )
    if target == "records":
        # Without the variance of drawing the symbols: those of the file are given.
        second: Array = (c.T * shares) @ c
        sampling = (second - np.outer(estimates, estimates)) / records
        covariance = covariance - sampling
    notices: tuple[str, ...] = ()
    if not likelihood.converged:
        notices = (
            f"the likelihood is only known to be within {likelihood.deficit:.2g} nats "
            "of its maximum",
        )
    return _Fit(estimates, covariance, notices, likelihood)


def impossible_notice(before: Array, after: Array) -> tuple[str, ...]:
    """A notice about the estimates that were moved to the nearest possible value, if any."""
    moved = int((np.abs(after - before) > VISIBLE_MOVE).sum())
    if not moved:
        return ()
    return (
        f"{moved:,} of {before.size:,} unbiased estimates are impossible (a share "
        "below 0 or above 1), as happens by chance; the nearest possible value is "
        "reported. To add or average estimates, take the unbiased ones (`unbiased` "
        "with --json or --csv)",
    )


def _kept_frequencies_notice(channel: Channel, records: int) -> tuple[str, ...]:
    """A notice that released shares are estimates themselves, if the channel keeps the table's."""
    if not _keeps_frequencies(channel):
        return ()
    # The number of records with a label is a sum of independent draws: each has the variance of an
    # indicator.
    variances = channel.matrix * (1.0 - channel.matrix)
    if channel.joint is None:
        # A public channel has no frequencies to average over: the largest variance of any symbol.
        by_label = variances.max(axis=0)
    else:
        by_label = channel.joint.p_x @ variances
    error = float(np.sqrt(by_label.max() / records))
    return (
        "this channel keeps expected frequencies: if these records are distributed as "
        "in its table, the released shares estimate those of the records by "
        f"themselves, each with a standard error of at most {error:.2g} from the "
        "draws; the estimates here need no such assumption",
    )


def _keeps_frequencies(channel: Channel) -> bool:
    """Whether a channel releases every symbol as often as its table has it.

    What was asked for does not say so of released rows: smallest groups move the frequencies of a
    design that was to keep them. Of one column it does, up to the rounding of its rows to integers
    of one common total.
    """
    objective = channel.record.objective
    if channel.published is None and objective is not None:
        return objective.keep_frequencies
    return channel.keeps_law
