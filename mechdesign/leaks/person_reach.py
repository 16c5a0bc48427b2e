"""What the released records of a person reach together, where each is drawn by itself.

Draws are independent, so for whoever knows that the outputs y_1, .., y_n are those of one person
the probabilities multiply: P(s | y_1, .., y_n) is in proportion to P(s) times the product of
P(y_i | s) / P(y_i), which the channel and its table give exactly. `reach_of_people` gives every
person the outputs that are most likely for their records, and compares what they reach together
with what one record can reach.

For example, with a secret of two values at one half each, one record makes it 1.5 times as likely
at most: .75. Four such records of one person have the odds 3^4 to 1: .988, so 1.98 times.
"""

# SciPy has no complete types.
# pyright: basic
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mechdesign.auditing.verdict import achieved_by
from mechdesign.channel.channel import Channel
from mechdesign.core.integers import Integers

SURE = 0.9
"""Probability of a value of the secret beyond which people are counted as found out."""

ROUNDING = 1e-9
"""By how much a lift must exceed what one record reaches to be counted: sums of logarithms are not
exact, and most people reach exactly as much."""


IMPOSSIBLE = -1e6
"""The logarithm of a likelihood of zero: far below that of any record, and still a number."""


@dataclass(frozen=True)
class PersonReach:
    """What a person's records reach together in a table.

    Attributes
    ----------
    people : int
    single : (float, float)
        The smallest and largest factor that one released record reaches.
    lowest, highest : float
        The smallest and largest factor that all records of a person reach together: those of the
        people at the extremes are computed in fractions, and rounded outwards.
    above : int
        People whose records together reach more than one record can.
    sure : int
        People for whom a value of the secret is more likely than `SURE`.
    """

    people: int
    single: tuple[float, float]
    lowest: float
    highest: float
    above: int
    sure: int


def reach_of_people(
    channel: Channel, symbols: Integers, person_of: Integers
) -> PersonReach | None:
    """What the people of a table reach.

    Parameters
    ----------
    channel : Channel
        With its table; each record is drawn by itself.
    symbols : (n,) array
        The useful symbol of every record.
    person_of : (n,) array
        The person of every record, numbered from 0.

    Returns
    -------
    PersonReach or None
        None where the channel has no table, or protects each of several columns.
    """
    joint = channel.joint
    if joint is None or joint.sensitive.protects_columns:
        return None
    # The most likely output of each symbol: with ties the first one.
    integers = channel.integers
    likely = np.zeros(len(channel.useful), dtype=np.int64)
    shares = channel.shares
    for x in range(len(likely)):
        span = slice(int(integers.indptr[x]), int(integers.indptr[x + 1]))
        likely[x] = integers.indices[span][int(np.argmax(shares[span]))]

    def exact(y: int) -> list[int]:
        inputs, values = channel.columns[y]
        return [
            sum(counts[x] * w for x, w in zip(inputs, values, strict=True))
            for counts in joint.counts
        ]

    achieved = achieved_by(channel, joint)
    single = (math.exp(-achieved.eps_l), math.exp(achieved.eps_u))
    masses = _masses(channel)
    prior = joint.sensitive_counts
    return _reach(masses, prior, exact, likely[symbols], person_of, single)


def reach_of_values(
    values: Integers, secret: Integers, person_of: Integers
) -> PersonReach:
    """What the people of a table reach by one column as it is, before any release.

    Parameters
    ----------
    values, secret, person_of : (n,) arrays
        For every record its value, the secret and the person, each numbered from 0.
    """
    width = int(secret.max()) + 1
    table = np.bincount(
        values * width + secret, minlength=(int(values.max()) + 1) * width
    )
    counts = table.reshape(-1, width).T
    total = len(values)
    with np.errstate(invalid="ignore"):
        lifts = counts / counts.sum(axis=0) * total / counts.sum(axis=1)[:, None]
    single = (float(np.nanmin(lifts)), float(np.nanmax(lifts)))

    def exact(y: int) -> list[int]:
        return [int(count) for count in counts[:, y]]

    prior: list[int] = counts.sum(axis=1).tolist()
    return _reach(counts / total, prior, exact, values, person_of, single)


def _reach(
    masses: np.ndarray,
    prior_counts: Sequence[int],
    exact: Callable[[int], list[int]],
    outputs: Integers,
    person_of: Integers,
    single: tuple[float, float],
) -> PersonReach:
    """What people reach whose records have these outputs.

    Parameters
    ----------
    masses : (|S|, outputs) array of P(s, y)
    prior_counts : sequence of int
        P(s) in integers of a common unit.
    exact : function
        Gives P(s, y) of an output in integers of a common unit.
    outputs, person_of : (n,) arrays
        The output and the person of every record.
    single : (float, float)
        The smallest and largest factor of one record.
    """
    prior = masses.sum(axis=1) / masses.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        likelihood = np.log(masses / masses.sum(axis=0) / prior[:, None])
    people = int(person_of.max()) + 1
    posterior = np.empty((len(prior), people))
    for s, row in enumerate(likelihood):
        weights = np.bincount(person_of, np.maximum(row[outputs], IMPOSSIBLE), people)
        posterior[s] = math.log(prior[s]) + weights
    # Where the records of a person have different secrets, they may exclude every value.
    excluded = posterior.max(axis=0) < IMPOSSIBLE / 2
    posterior[:, excluded] = np.log(prior)[:, None]
    posterior -= posterior.max(axis=0)
    posterior = np.exp(posterior)
    posterior /= posterior.sum(axis=0)
    lifts = posterior / prior[:, None]
    low, high = single[0] * (1.0 - ROUNDING), single[1] * (1.0 + ROUNDING)
    outside = ((lifts < low) | (lifts > high)).any(axis=0)

    def extreme(place: int) -> Fraction:
        s, person = map(int, np.unravel_index(place, lifts.shape))
        of_person = outputs[person_of == person].tolist()
        weights = [Fraction(count) for count in prior_counts]
        for y in of_person:
            weights = [
                weight * mass / count
                for weight, mass, count in zip(
                    weights, exact(y), prior_counts, strict=True
                )
            ]
        whole = sum(weights)
        if not whole:
            return Fraction(1)
        share = Fraction(prior_counts[s], sum(prior_counts))
        return weights[s] / whole / share

    lowest = extreme(int(np.argmin(lifts)))
    highest = extreme(int(np.argmax(lifts)))
    return PersonReach(
        people=people,
        single=single,
        lowest=max(0.0, math.nextafter(float(lowest), -math.inf)),
        highest=math.nextafter(float(highest), math.inf),
        above=int(np.count_nonzero(outside)),
        sure=int(np.count_nonzero((posterior > SURE).any(axis=0))),
    )


def _masses(channel: Channel) -> np.ndarray:
    """(|S|, outputs) array of P(s, y)."""
    joint = channel.joint
    if joint is None:
        raise TypeError("the channel has no table")
    # The sparse array stands on the left: (Y, X) times (X, S).
    return np.asarray(channel.probabilities.T @ joint.p.T).T
