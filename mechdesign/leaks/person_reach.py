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
    masses = _masses(channel)
    total = masses.sum()
    prior = masses.sum(axis=1) / total
    with np.errstate(divide="ignore"):
        likelihood = np.log(masses / masses.sum(axis=0) / prior[:, None])
    # The most likely output of each symbol: with ties the first one.
    integers = channel.integers
    likely = np.zeros(len(channel.useful), dtype=np.int64)
    shares = channel.shares
    for x in range(len(likely)):
        span = slice(int(integers.indptr[x]), int(integers.indptr[x + 1]))
        likely[x] = integers.indices[span][int(np.argmax(shares[span]))]
    outputs = likely[symbols]
    people = int(person_of.max()) + 1
    posterior = np.empty((len(prior), people))
    for s, row in enumerate(likelihood):
        weights = np.bincount(person_of, np.maximum(row[outputs], -1e6), people)
        posterior[s] = math.log(prior[s]) + weights
    posterior -= posterior.max(axis=0)
    posterior = np.exp(posterior)
    posterior /= posterior.sum(axis=0)
    lifts = posterior / prior[:, None]
    achieved = achieved_by(channel, joint)
    single = (math.exp(-achieved.eps_l), math.exp(achieved.eps_u))
    low, high = single[0] * (1.0 - ROUNDING), single[1] * (1.0 + ROUNDING)
    outside = ((lifts < low) | (lifts > high)).any(axis=0)
    exact = _Exact(channel, outputs, person_of)
    s, person = np.unravel_index(int(np.argmin(lifts)), lifts.shape)
    lowest = exact.lift(int(s), int(person))
    s, person = np.unravel_index(int(np.argmax(lifts)), lifts.shape)
    highest = exact.lift(int(s), int(person))
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


class _Exact:
    """Lifts of all records of a person in fractions."""

    def __init__(
        self, channel: Channel, outputs: Integers, person_of: Integers
    ) -> None:
        self._channel = channel
        self._outputs = outputs
        self._person_of = person_of

    def lift(self, s: int, person: int) -> Fraction:
        """P(s | the outputs of the person) / P(s)."""
        joint = self._channel.joint
        if joint is None:
            raise TypeError("the channel has no table")
        prior = [Fraction(count, joint.total) for count in joint.sensitive_counts]
        weights = list(prior)
        for y in self._outputs[self._person_of == person].tolist():
            inputs, values = self._channel.columns[y]
            masses = [
                sum(counts[x] * w for x, w in zip(inputs, values, strict=True))
                for counts in joint.counts
            ]
            whole = sum(masses)
            weights = [
                weight * Fraction(mass, whole) / share
                for weight, mass, share in zip(weights, masses, prior, strict=True)
            ]
        return weights[s] / sum(weights) / prior[s]
