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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from mechdesign.auditing.output_masses import OutputMasses, masses_of
from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.tables.joint import Joint


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
        limits: list[list[Fraction | None]] = [
            [Fraction(1)] * size for _ in range(size)
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
        # An impossible s' adds nothing.
        least = Fraction(0)
        for j in range(size):
            ratio = products[s][j]
            if ratio is not None:
                least += Fraction(prior[j], total) / ratio
        highest = max(highest, 1 / least)
        most: Fraction | None = Fraction(0)
        for j in range(size):
            ratio = products[j][s]
            if ratio is None or most is None:
                most = None
            else:
                most += Fraction(prior[j], total) * ratio
        lowest = min(lowest, Fraction(0) if most is None else 1 / most)
    return lowest, highest


def outwards(bounds: tuple[Fraction, Fraction]) -> tuple[float, float]:
    """Bounds as doubles, rounded outwards."""
    lowest, highest = bounds
    below = math.nextafter(float(lowest), -math.inf)
    return max(0.0, below), math.nextafter(float(highest), math.inf)


def limits_of_draw(channel: Channel, joint: Joint | None = None) -> RatioLimits:
    """The limits of one draw of a channel, whatever its output is; given columns are a part of it.

    Raises
    ------
    InputError
        If there is no table, or each of several columns is protected.
    """
    joint = _table_of(channel, joint)
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
    joint = _table_of(first, None)
    limits = limits_of_draw(first)
    for channel in channels[1:]:
        other = _table_of(channel, None)
        if other.sensitive != joint.sensitive or occurring(other) != occurring(joint):
            raise InputError(
                "the channels of these releases protect other secrets: what they tell together is "
                "not known"
            )
        limits = limits.or_those_of(limits_of_draw(channel))
    return outwards(reached(prior_of(joint), [(limits, times)]))


def _table_of(channel: Channel, joint: Joint | None) -> Joint:
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
