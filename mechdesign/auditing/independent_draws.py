"""What several draws of one person reach together, each independent of the others given the secret.

The released records of a person, or the releases of a person's records of several nights, are
outputs y_1, .., y_n with P(y_1, .., y_n | s) = product of P(y_t | s). Then

    P(s | y_1, .., y_n) / P(s) = 1 / sum over s' of P(s') product of P(y_t | s') / P(y_t | s),

which is at most 1 / sum over s' of P(s') / product of R_t(s, s'), where R_t(s, s') is the largest
P(y | s) / P(y | s') of the outputs that are possible at t; and at least 1 / sum over s' of P(s')
product of R_t(s', s). `RatioLimits` has these R of one set of outputs, exactly, and `reached` the
bounds. Both are attained where the secret has two values; with more they may be above what any
outputs attain, and never below (docs/explanation/nights.md, 'Several draws of one person').

For example, let a secret of two equally likely values have R = 3 in both directions. One draw makes
a value 1 / (1/2 + 1/6) = 1.5 times as likely at most; four make it 1 / (1/2 + 1/162) = 1.975 times.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mechdesign.auditing.columns import (
    Entries,
    OutputMasses,
    columns_on,
    masses_by_output,
    masses_of,
)
from mechdesign.auditing.composition import common_table
from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.tables.joint import Joint

SURE = 0.9
"""Probability of a value of the secret beyond which people are counted as found out."""

MOST_TUPLES = 20_000
"""Most tuples of outputs of one record: they are formed one by one."""

MOST_CANDIDATES = 100
"""People at the extremes who are computed in fractions."""

CLOSE = 1e-9
"""How near to an extreme, relative to it, people are candidates: sums of logarithms are not
exact."""

EXCLUDED = 1e6
"""The logarithm of an infinite quotient: far beyond that of any records, and still a number."""


@dataclass(frozen=True)
class RatioLimits:
    """The largest P(y | s) / P(y | s') of some outputs, for every pair of secrets.

    Attributes
    ----------
    ratios : tuple of tuples of Fraction or None
        By s, then by s'; None where an output of s is impossible with s'.
    """

    ratios: tuple[tuple[Fraction | None, ...], ...]

    @classmethod
    def of(cls, outputs: Iterable[OutputMasses], secrets: Sequence[int]) -> RatioLimits:
        """Those of outputs; `secrets` are the places of the secrets that occur."""
        size = len(secrets)
        # 0 where no output is possible with s.
        limits: list[list[Fraction | None]] = [
            [Fraction(0)] * size for _ in range(size)
        ]
        for output in outputs:
            shares = [Fraction(output.masses[s], output.sums[s]) for s in secrets]
            for i, share in enumerate(shares):
                if not share:
                    continue
                for j, other in enumerate(shares):
                    before = limits[i][j]
                    if not other:
                        limits[i][j] = None
                    elif before is not None and share > before * other:
                        limits[i][j] = share / other
        return cls(tuple(map(tuple, limits)))

    def or_those_of(self, other: RatioLimits) -> RatioLimits:
        """The larger of both, of every pair."""
        rows: list[tuple[Fraction | None, ...]] = []
        for mine, others in zip(self.ratios, other.ratios, strict=True):
            pairs = zip(mine, others, strict=True)
            rows.append(
                tuple(None if a is None or b is None else max(a, b) for a, b in pairs)
            )
        return RatioLimits(tuple(rows))


def reached(
    prior: Sequence[int], draws: Sequence[tuple[RatioLimits, int]]
) -> tuple[Fraction, Fraction]:
    """The bounds of P(s | all outputs) / P(s), over all s.

    Parameters
    ----------
    prior : sequence of positive int
        P(s) in proportion.
    draws : sequence of (RatioLimits, int)
        How many draws have these limits.
    """
    total = sum(prior)
    size = len(prior)
    products: list[list[Fraction | None]] = [[Fraction(1)] * size for _ in range(size)]
    for limits, times in draws:
        for i, row in enumerate(limits.ratios):
            for j, ratio in enumerate(row):
                before = products[i][j]
                if ratio is None or before is None:
                    products[i][j] = None
                else:
                    products[i][j] = before * ratio**times
    lowest, highest = Fraction(1), Fraction(1)
    for s in range(size):
        # An impossible s' adds nothing, and an impossible s is never likely.
        if products[s][s] != 0:
            least = Fraction(0)
            for j in range(size):
                ratio = products[s][j]
                if ratio:
                    least += Fraction(prior[j], total) / ratio
            highest = max(highest, 1 / least)
        most: Fraction | None = Fraction(0)
        for j in range(size):
            ratio = products[j][s]
            if ratio is None or most is None:
                most = None
            else:
                most += Fraction(prior[j], total) * ratio
        if products[s][s] == 0:
            most = None
        lowest = min(lowest, Fraction(0) if most is None else 1 / most)
    return lowest, highest


def outwards(bounds: tuple[Fraction, Fraction]) -> tuple[float, float]:
    """Bounds as doubles, rounded outwards."""
    lowest, highest = bounds
    below = math.nextafter(float(lowest), -math.inf)
    return max(0.0, below), math.nextafter(float(highest), math.inf)


def limits_of_draw(channel: Channel) -> RatioLimits:
    """The limits of one draw of a channel, whatever its output is; given columns are a part of it.

    Raises
    ------
    InputError
        If there is no table, or each of several columns is protected.
    """
    joint = _table_of(channel)
    return RatioLimits.of(masses_of(channel, joint).outputs, occurring(joint))


def occurring(joint: Joint) -> list[int]:
    """The places of the secrets that have records."""
    return [s for s, count in enumerate(joint.sensitive_counts) if count]


def prior_of(joint: Joint) -> list[int]:
    """P(s) in proportion, of the secrets that have records."""
    return [count for count in joint.sensitive_counts if count]


def reached_by_draws(channels: Sequence[Channel], times: int) -> tuple[float, float]:
    """The bounds of so many draws, each through any of some channels, outwards.

    The channels must protect the same secret. Its probabilities are those of the table of the first
    one; the law of what is released given it is that of each channel's own table.

    Raises
    ------
    InputError
        If a channel has no table, or the secrets are not the same.
    """
    first = channels[0]
    joint = _table_of(first)
    limits = limits_of_draw(first)
    for channel in channels[1:]:
        other = _table_of(channel)
        if other.sensitive != joint.sensitive or occurring(other) != occurring(joint):
            raise InputError(
                "the channels of these releases protect other secrets: what they tell together is "
                "not known"
            )
        limits = limits.or_those_of(limits_of_draw(channel))
    return outwards(reached(prior_of(joint), [(limits, times)]))


def _table_of(channel: Channel, joint: Joint | None = None) -> Joint:
    """The table that decides: the one given, else that of the channel."""
    joint = joint or channel.joint
    if joint is None:
        raise InputError(
            "the channel comes without its table, so what several draws tell together is not known"
        )
    if joint.sensitive.protects_columns:
        raise InputError(
            "the channel protects each of several columns (--protect-each): what several draws "
            "tell together is not computed for it"
        )
    return joint


@dataclass(frozen=True)
class PeopleTogether:
    """What all records of a person reach that are drawn one by one.

    Attributes
    ----------
    people, records : int
    most : int
        Most records of a person.
    single : (float, float)
        The smallest and largest factor of one record.
    lowest, highest : float
        Those of all records of a person together, over all people and all outputs that their
        records can have: outwards, and attained where `exact`.
    exact : bool
        Whether somebody attains them: where the secret has two values.
    above : int
        People whose records can reach more than one record.
    sure : int
        People whose records can make a value of the secret more likely than `SURE`.
    """

    people: int
    records: int
    most: int
    single: tuple[float, float]
    lowest: float
    highest: float
    exact: bool
    above: int
    sure: int


def together_of_people(
    channels: Sequence[Channel],
    joint: Joint | None,
    symbols: Integers,
    person_of: Integers,
) -> PeopleTogether:
    """What the records of people reach together, each released once through every channel.

    Parameters
    ----------
    channels : sequence of Channel
    joint : Joint, optional
        The table with the columns of all channels; by default their own.
    symbols : (n,) array
        The useful symbol in that table of every record.
    person_of : (n,) array
        The person of every record, numbered from 0.

    Raises
    ------
    InputError
        If there is no table, or one record has more than `MOST_TUPLES` tuples of outputs.
    """
    table = _table_of(channels[0], common_table(channels, joint))
    secrets = occurring(table)
    prior = prior_of(table)
    columns = _tuples([columns_on(channel, table) for channel in channels])
    outputs = list(masses_by_output(columns, table))
    by_symbol: dict[int, list[OutputMasses]] = {}
    for (inputs, _), output in zip(columns, outputs, strict=True):
        for x in inputs:
            by_symbol.setdefault(x, []).append(output)
    used, places = np.unique(symbols, return_inverse=True)
    occurred: list[int] = used.tolist()
    limits = [RatioLimits.of(by_symbol[x], secrets) for x in occurred]
    lows, highs = _of_all(limits, prior, places.reshape(-1), person_of)
    single = outwards(reached(prior, [(RatioLimits.of(outputs, secrets), 1)]))
    shares = np.array(prior) / sum(prior)
    # People at the extremes, who are computed in fractions.
    low, high = lows.min(axis=0), highs.max(axis=0)
    near = np.flatnonzero(
        (low <= low.min() * (1.0 + CLOSE)) | (high >= high.max() * (1.0 - CLOSE))
    )
    lowest, highest = Fraction(1), Fraction(1)
    seen: set[tuple[tuple[int, int], ...]] = set()
    for person in near.tolist():
        of_person: list[int] = places[person_of == person].tolist()
        counted = tuple(sorted(Counter(of_person).items()))
        if counted in seen:
            continue
        if len(seen) == MOST_CANDIDATES:
            break
        seen.add(counted)
        bounds = reached(prior, [(limits[x], times) for x, times in counted])
        lowest, highest = min(lowest, bounds[0]), max(highest, bounds[1])
    if len(seen) == MOST_CANDIDATES:
        # Who was not computed is at most this far away.
        lowest *= Fraction(1.0 - 2 * CLOSE)
        highest *= Fraction(1.0 + 2 * CLOSE)
    bounds = outwards((lowest, highest))
    beyond = (low < single[0] * (1.0 - CLOSE)) | (high > single[1] * (1.0 + CLOSE))
    return PeopleTogether(
        people=int(person_of.max()) + 1,
        records=len(symbols),
        most=int(np.bincount(person_of).max()),
        single=single,
        lowest=bounds[0],
        highest=bounds[1],
        exact=len(secrets) == 2 and len(seen) < MOST_CANDIDATES,
        above=int(np.count_nonzero(beyond)),
        sure=int(np.count_nonzero((highs * shares[:, None] > SURE).any(axis=0))),
    )


def _tuples(releases: Sequence[Sequence[Entries]]) -> list[Entries]:
    """The columns of all tuples of outputs of one record: products of those of the channels."""
    whole = list(releases[0])
    for columns in releases[1:]:
        products: list[Entries] = []
        for inputs, values in whole:
            value_of = dict(zip(inputs, values, strict=True))
            for others, weights in columns:
                pairs = [
                    (x, value_of[x] * weight)
                    for x, weight in zip(others, weights, strict=True)
                    if x in value_of
                ]
                if pairs:
                    products.append(([x for x, _ in pairs], [w for _, w in pairs]))
            if len(products) > MOST_TUPLES:
                raise InputError(
                    f"one record has more than {MOST_TUPLES:,} tuples of outputs through these "
                    "channels: what people's records tell together is not computed for so many"
                )
        whole = products
    return whole


def _of_all(
    limits: Sequence[RatioLimits],
    prior: Sequence[int],
    places: Integers,
    person_of: Integers,
) -> tuple[np.ndarray, np.ndarray]:
    """(|S|, people) arrays of the bounds of every secret and person, in floating point."""
    size = len(prior)
    people = int(person_of.max()) + 1
    shares = np.array(prior) / sum(prior)
    totals = np.zeros((size, size, people))
    for i in range(size):
        for j in range(size):
            logs = np.array([_log(limit.ratios[i][j]) for limit in limits])
            totals[i, j] = np.bincount(person_of, logs[places], people)
    # An impossible secret: its own quotient is 0.
    impossible = np.array([totals[s, s] < -EXCLUDED / 2 for s in range(size)])
    with np.errstate(over="ignore"):
        lows = 1.0 / np.einsum("j,jsp->sp", shares, np.exp(totals))
        highs = 1.0 / np.einsum("j,sjp->sp", shares, np.exp(-totals))
    lows[impossible] = 0.0
    highs[impossible] = 0.0
    return lows, highs


def _log(ratio: Fraction | None) -> float:
    """The logarithm of a quotient; `EXCLUDED` where it is infinite, less than that where it is
    0.
    """
    if ratio is None:
        return EXCLUDED
    if not ratio:
        return -EXCLUDED
    return math.log(ratio.numerator) - math.log(ratio.denominator)
