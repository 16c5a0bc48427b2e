"""Means by group and least squares from released rows, with the errors that the draws add.

Where every row is released as often as the table has it, each statistic of the released columns is
estimated by that of the file. Its error has two parts. A statistic such as a mean or a coefficient
is nearly a mean of psi(y) over the N released records (psi is its influence function; for a mean of
v it is v minus the mean). Given the table, independent draws add the covariance

    (1/N) ( sum over y of q(y) psi(y) psi(y)'  -  sum over x of p(x) m(x) m(x)' ),

with the law p of the table, the law q of released rows, and m(x) = sum over y of W(y|x) psi(y).
Draws of fixed counts add nothing. For the population that the records are a sample of, the
covariance of the sample comes on top, (1/N) times that of psi under p: given the table the draws
have the table's statistic as their mean, so the two parts are uncorrelated.

    mean of v in the group g       psi = [in g] (v - mean) / P(g)
    least squares of v on z        psi = (E z z')^-1 z (v - z' beta)

The second makes no assumption on the errors of the regression (a sandwich, White 1980).

Where the law is moved (smallest groups, free frequencies), q - p is known from the channel and its
table. It is taken off the shares of rows before anything is computed of them.

For example, 100 records have v = 0 or 1, half of them each, and one in four zeros trades its place
with a one. The mean is .5 in the table. Given the table its draws have the standard error
sqrt(.25 * .75 / 100) = .043, and the sample adds .05.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mechdesign.analysis.frequencies import numbers_at, record_count
from mechdesign.analysis.law_estimates import (
    POPULATION,
    Array,
    check_interval,
    check_kept,
    counts_of_release,
)
from mechdesign.analysis.linear import errors_of_level
from mechdesign.analysis.released_table import Advance
from mechdesign.channel.channel import Channel
from mechdesign.channel.row_law import RowLaw
from mechdesign.core.arguments import finite_number
from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.core.wording import listed, quoted
from mechdesign.formats.csv_text import TextOptions
from mechdesign.tables.thousands import thousands_remedy

SINGULAR = 1e-10
"""Smallest eigenvalue of the normal matrix, scaled to a unit diagonal, relative to the largest,
above which coefficients are determined. Doubles leave about 1e-12 of a matrix without full rank."""

INTERCEPT = "(intercept)"

FEW = 10
"""Records of a group below which a normal interval holds clearly less often than its level."""

FEWEST_RECORDS = 2
"""Records of which something varies."""


@dataclass(frozen=True, eq=False)
class Statistics:
    """Estimated statistics of a released file.

    Attributes
    ----------
    of : str
        The column whose mean or regression it is.
    by : tuple of str
        The columns of the groups, or those that the regression is on.
    names : tuple of tuple of str
        For a mean the values of its group; for a coefficient its column and, for a column of
        texts, the value that is compared with `reference`.
    estimates, standard_errors, lower, upper : (k,) arrays
        NaN where the file has no record of a group, errors and intervals for the population also
        where it has one, or only equal numbers: nothing is known of their spread then.
    from_draws : (k,) array
        The part of each standard error that the draws add; 0 for fixed counts.
    behind : (k,) array of int
        Released records of each group; of a regression those with the value of the coefficient,
        or with another number than most.
    records : int
        Released records.
    level : float
        Confidence level of each interval (normal approximation).
    target : str
        What the intervals are for: population or records.
    reference : dict of str to str
        Of a regression, by column of texts, the value that the others are compared with.
    notices : tuple of str
        What is odd about the numbers.
    """

    of: str
    by: tuple[str, ...]
    names: tuple[tuple[str, ...], ...]
    estimates: Array
    standard_errors: Array
    lower: Array
    upper: Array
    from_draws: Array
    behind: Integers
    records: int
    level: float
    target: str
    reference: dict[str, str]
    notices: tuple[str, ...] = ()

    @property
    def has_too_narrow(self) -> bool:
        """Whether an interval is too narrow for its few records."""
        is_given = ~np.isnan(self.standard_errors)
        is_few = self.behind < FEW
        return self.target == POPULATION and bool((is_given & is_few).any())

    def rows(self) -> list[dict[str, Any]]:
        """A record for each statistic; null where nothing is estimated."""
        figures = {
            "estimate": self.estimates,
            "standard_error": self.standard_errors,
            "from_draws": self.from_draws,
            "lower": self.lower,
            "upper": self.upper,
        }
        rows: list[dict[str, Any]] = []
        for k, name in enumerate(self.names):
            row = {"name": ", ".join(name), "records": int(self.behind[k])}
            rows.append(row | numbers_at(k, figures))
        return rows


def check_question(
    *,
    of: Any,
    mean: str | None,
    by: Sequence[str],
    regress: str | None,
    on: Sequence[str],
) -> None:
    """Refuse arguments of two questions at once, or of half of one."""
    questions = {"of (--of)": of, "mean (--mean)": mean, "regress (--regress)": regress}
    asked = [name for name, column in questions.items() if column is not None]
    if len(asked) > 1:
        raise InputError(f"{' and '.join(asked)} are two questions: ask one at a time")
    if by and mean is None:
        raise InputError("by (--by) has the groups of a mean: give mean (--mean), too")
    if on and regress is None:
        raise InputError(
            "on (--on) has the columns that a regression is on: give regress (--regress), too"
        )


def estimate_means(
    channel: Channel,
    released: Any,
    of: str,
    by: Sequence[str] = (),
    *,
    level: float = 0.95,
    target: str = POPULATION,
    fixed: bool = False,
    text: TextOptions | None = None,
    advance: Advance | None = None,
) -> Statistics:
    """The mean of a released column of numbers, in all records or in groups.

    Parameters
    ----------
    channel : Channel
        One that releases rows as such, also in filled boxes; with its table unless it keeps the
        law.
    released : path, data frame or sequence of tuples
    of : str
        A released column whose values are numbers.
    by : sequence of str
        Released columns: a mean for each combination of their values.
    level, target, fixed, text, advance
        As `law_estimates.estimate_shares` has them.

    Raises
    ------
    InputError
        If a column is not released, values are no numbers, or what the channel moved is not known.
    """
    law = _ReleasedLaw.of(channel, released, text, advance)
    numbers = law.numbers(of)
    unit = _unit(numbers)
    values = numbers / unit
    groups: dict[tuple[str, ...], int] = {}
    codes = law.codes(by, groups)
    size = len(groups)
    shares = np.bincount(codes, law.weights, size)
    sums = np.bincount(codes, law.weights * values, size)
    # A group without a released record has no mean; a moved law may leave less than nothing.
    inside = np.bincount(codes[: len(law.counts)], law.counts, size).astype(np.int64)
    is_there = (shares > 0) & (inside > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        means = np.where(is_there, sums / shares, np.nan)
    # A moved law has negative weights, so that a mean may come out beyond every number.
    means = np.clip(means, values.min(), values.max())
    influence = np.zeros((len(values), size))
    rows = np.flatnonzero(is_there[codes])
    influence[rows, codes[rows]] = (values[rows] - means[codes[rows]]) / shares[
        codes[rows]
    ]
    # The textbook's n / (n - 1) in every group; of equal numbers nothing is known of their spread.
    present = np.flatnonzero(law.counts)
    pairs = np.unique(np.column_stack([codes[present], values[present]]), axis=0)
    different = np.bincount(pairs[:, 0].astype(np.int64), minlength=size)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = np.where(different > 1, inside / (inside - 1), np.nan)
    found = law.statistics(
        of,
        tuple(by),
        tuple(groups),
        means,
        influence,
        scale,
        inside,
        level,
        target,
        fixed=fixed,
        units=np.full(size, unit),
    )
    return replace(
        found,
        lower=np.clip(found.lower, numbers.min(), numbers.max()),
        upper=np.clip(found.upper, numbers.min(), numbers.max()),
    )


def estimate_regression(
    channel: Channel,
    released: Any,
    outcome: str,
    on: Sequence[str],
    *,
    level: float = 0.95,
    target: str = POPULATION,
    fixed: bool = False,
    text: TextOptions | None = None,
    advance: Advance | None = None,
) -> Statistics:
    """The least-squares regression of a released column of numbers on other released columns.

    A column of numbers has one coefficient. A column with other texts has one for each value but
    the most frequent in the file, which the others are compared with.

    Parameters
    ----------
    outcome : str
    on : sequence of str
    channel, released, level, target, fixed, text, advance
        As `estimate_means` has them.

    Raises
    ------
    InputError
        As `estimate_means`, and if the columns do not determine the coefficients.
    """
    if not on:
        raise InputError("a regression needs columns that it is on (on, --on)")
    law = _ReleasedLaw.of(channel, released, text, advance)
    numbers = law.numbers(outcome)
    unit = _unit(numbers)
    values = numbers / unit
    names, features, reference = law.features(on)
    units = np.array([_unit(feature) for feature in features.T])
    features = features / units
    # Numbers without their middles lose no digits to the rounding of the sums. The intercept, which
    # is the first coefficient, has no middle.
    shares = law.counts / law.records
    middle = shares @ values[: len(law.counts)]
    middles = shares @ features[: len(law.counts)]
    middles[0] = 0.0
    features = features - middles
    centred = values - middle
    weighted = features * law.weights[:, None]
    gram = features.T @ weighted
    _check_determined(gram, on)
    beta = np.asarray(np.linalg.solve(gram, weighted.T @ centred), dtype=np.float64)
    residuals = centred - features @ beta
    scores = np.linalg.solve(gram, (features * residuals[:, None]).T).T
    influence = np.asarray(scores, dtype=np.float64)
    # Back to numbers with their middles, of which the intercept alone depends.
    beta[0] += middle - middles @ beta
    influence[:, 0] -= influence @ middles
    # HC1: as many records less as there are coefficients.
    left = law.records - len(names)
    scale = np.full(len(names), law.records / left if left > 0 else np.nan)
    behind = law.behind(names)
    # The rows of the table, by which a moved law is corrected, do not stand in for the file.
    for name, records in zip(names, behind.tolist(), strict=True):
        if not records and len(name) == 1:
            raise InputError(
                f"the released file does not determine the coefficient of {quoted(name[0])}: all "
                "its records have one number there; leave it out"
            )
    beta[behind == 0] = np.nan
    # A value of one record has its number exactly, which says nothing of other records.
    scale[behind < FEWEST_RECORDS] = np.nan
    # As of a mean: of equal numbers nothing is known of their spread.
    if len(np.unique(numbers[: len(law.counts)][law.counts > 0])) < 2:
        scale[:] = np.nan
    return law.statistics(
        outcome,
        tuple(on),
        tuple(names),
        beta,
        influence,
        scale,
        behind,
        level,
        target,
        fixed=fixed,
        units=unit / units,
        reference=reference,
    )


def _unit(numbers: Array) -> float:
    """A power of two near the largest number: its squares and those of smaller ones are doubles.

    Division by a power of two loses no digit.
    """
    largest = float(np.abs(numbers).max())
    if largest == 0.0:
        return 1.0
    return math.ldexp(1.0, math.frexp(largest)[1] - 1)


def _check_determined(gram: Array, on: Sequence[str]) -> None:
    """Refuse columns of which one is a combination of others."""
    scale = np.sqrt(np.clip(np.diag(gram), 0.0, None))
    is_singular = bool((scale == 0.0).any())
    if not is_singular:
        eigenvalues = np.linalg.eigvalsh(gram / np.outer(scale, scale))
        is_singular = bool(eigenvalues[0] <= SINGULAR * eigenvalues[-1])
    if is_singular:
        raise InputError(
            f"the released file does not determine coefficients of {listed(list(on))}: one of the "
            "columns is constant, or follows from the others; leave it out"
        )


@dataclass(frozen=True, eq=False)
class _ReleasedLaw:
    """The law of a released file, less what the release moved, and how its rows were drawn.

    Attributes
    ----------
    drawn : RowLaw
    cells : tuple of tuple of str
        Rows: the channel's outputs, and behind them, where the law is moved, the table's rows.
    weights : (rows,) array
        The share of each row among released records; where the law is moved, less q and plus p.
    counts : (outputs,) integers
    """

    drawn: RowLaw
    cells: tuple[tuple[str, ...], ...]
    weights: Array
    counts: Integers

    @classmethod
    def of(
        cls,
        channel: Channel,
        released: Any,
        text: TextOptions | None,
        advance: Advance | None,
    ) -> _ReleasedLaw:
        """Count a release."""
        check_kept(channel)
        law = channel.row_law
        counts = counts_of_release(channel, law, released, text, advance)
        shares = counts / record_count(counts)
        if law.is_kept:
            return cls(law, tuple(law.outputs), shares, counts)
        weights = np.concatenate([shares - law.expected, law.row_masses])
        return cls(law, (*law.outputs, *law.rows), weights, counts)

    def place(self, name: str) -> int:
        """The position of a released column."""
        columns = self.drawn.columns
        if name not in columns:
            raise InputError(
                f"the channel releases no column {quoted(name)} (it releases {listed(columns)}): "
                "relations with other columns are weaker in a released file than in its table"
            )
        return columns.index(name)

    def texts(self, name: str) -> list[str]:
        """The text of every row in a column."""
        place = self.place(name)
        return [cells[place] for cells in self.cells]

    def numbers(self, name: str) -> Array:
        """The number of every row in a column; InputError if a text is none."""
        texts = self.texts(name)
        numbers = _numbers_of(texts)
        if numbers is None:
            _refuse_gaps(name, texts)
            raise InputError(
                f"the column {quoted(name)} has values that are no numbers (bins are none, either):"
                " ask for a column of numbers, or for frequencies (--of, of=)"
            )
        return numbers

    def codes(
        self, names: Sequence[str], groups: dict[tuple[str, ...], int]
    ) -> Integers:
        """The group of every row; the groups that a row has are numbered in `groups`, sorted."""
        columns = [self.texts(name) for name in names]
        keys = list(zip(*columns, strict=True)) if columns else [()] * len(self.cells)
        for key in sorted(set(keys)):
            groups[key] = len(groups)
        return np.array([groups[key] for key in keys], dtype=np.int64)

    def features(
        self, names: Sequence[str]
    ) -> tuple[list[tuple[str, ...]], Array, dict[str, str]]:
        """The names and columns of a regression, with an intercept, and what is left out of each
        column of texts.
        """
        labels: list[tuple[str, ...]] = [(INTERCEPT,)]
        columns: list[Array] = [np.ones(len(self.cells))]
        reference: dict[str, str] = {}
        for name in names:
            texts = self.texts(name)
            numbers = _numbers_of(texts)
            if numbers is not None:
                labels.append((name,))
                columns.append(numbers)
                continue
            _refuse_gaps(name, texts)
            shares: dict[str, float] = {}
            for value, weight in zip(texts, self.weights.tolist(), strict=True):
                shares[value] = shares.get(value, 0.0) + weight
            most = max(shares, key=lambda value: shares[value])
            reference[name] = most
            for value in sorted(shares):
                # A value that the file does not have has no coefficient.
                if value != most and shares[value] > 0:
                    labels.append((name, value))
                    columns.append(np.array([float(text == value) for text in texts]))
        return labels, np.column_stack(columns), reference

    def behind(self, names: Sequence[tuple[str, ...]]) -> Integers:
        """Released records on which each coefficient of a regression rests.

        They have its value, or, in a column of numbers, another one than most.
        """
        found = np.full(len(names), self.records)
        for k, (column, *value) in enumerate(names[1:], 1):
            times: Counter[str] = Counter()
            texts = self.texts(column)[: len(self.counts)]
            for text, count in zip(texts, self.counts.tolist(), strict=True):
                times[text] += count
            found[k] = times[value[0]] if value else self.records - max(times.values())
        return found

    @cached_property
    def records(self) -> int:
        """Number of released records."""
        return int(self.counts.sum())

    def statistics(
        self,
        of: str,
        by: tuple[str, ...],
        names: tuple[tuple[str, ...], ...],
        estimates: Array,
        influence: Array,
        scale: Array,
        behind: Integers,
        level: float,
        target: str,
        *,
        fixed: bool,
        units: Array,
        reference: dict[str, str] | None = None,
    ) -> Statistics:
        """The statistics with their errors, from the influence of every row on them.

        `scale` corrects the variance of the sample for what was estimated from it. Estimates and
        influences are in `units`.
        """
        confidence = check_interval(level, target)
        drawn = np.zeros(len(names))
        if not fixed:
            drawn = self._drawn(influence)
        variance = drawn.copy()
        if target == POPULATION:
            sampled = self.weights @ influence**2
            variance += scale * np.clip(sampled, 0.0, None)
        errors = units * np.sqrt(variance / self.records)
        estimates = units * estimates
        width = errors_of_level(confidence) * errors
        is_there = ~np.isnan(estimates)

        def known(values: Array) -> Array:
            return np.where(is_there, values, np.nan)

        return Statistics(
            of=of,
            by=by,
            names=names,
            estimates=estimates,
            standard_errors=known(errors),
            lower=estimates - width,
            upper=estimates + width,
            from_draws=known(units * np.sqrt(drawn / self.records)),
            behind=behind,
            records=self.records,
            level=confidence,
            target=target,
            reference=reference or {},
            notices=self._notices((of, *by)),
        )

    def _notices(self, names: Sequence[str]) -> tuple[str, ...]:
        """What is odd about the numbers of some columns."""
        others = [self.texts(name) for name in self.drawn.columns]
        found: list[str] = []
        for name in names:
            remedy = thousands_remedy(self.texts(name), others)
            if remedy is not None:
                found.append(f"the column {quoted(name)} holds numbers {remedy}")
        return tuple(found)

    def _drawn(self, influence: Array) -> Array:
        """Per record, the variance that independent draws add to each statistic."""
        law = self.drawn
        of_output = influence[: len(self.counts)]
        spread = np.zeros(influence.shape[1])
        for k in range(influence.shape[1]):
            column = of_output[law.indices, k]
            size = len(law.masses)
            second = np.bincount(law.class_of, law.shares * column**2, size)
            first = np.bincount(law.class_of, law.shares * column, size)
            spread[k] = law.masses @ (second - first**2)
        # Rounding may leave a little less than nothing where rows stay what they are.
        return np.clip(spread, 0.0, None)


def _refuse_gaps(name: str, texts: Sequence[str]) -> None:
    """Refuse a column of numbers with released empty cells, which would be one of texts."""
    filled = [text for text in texts if text]
    if filled and len(filled) < len(texts) and _numbers_of(filled) is not None:
        raise InputError(
            f"the column {quoted(name)} has released empty cells beside its numbers, and what "
            "stands for them is not known: design for the records that have all cells "
            "(--missing drop), or ask for frequencies (--of)"
        )


def _numbers_of(texts: Sequence[str]) -> Array | None:
    """The texts as numbers; None if one of them is none."""
    numbers: dict[str, float] = {}
    for text in set(texts):
        number = finite_number(text)
        if number is None:
            return None
        numbers[text] = number
    return np.array([numbers[text] for text in texts])
