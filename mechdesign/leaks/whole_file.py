"""What somebody believes who knows the table and the channel, and sees the whole released file.

He knows the rows of the table, their numbers of records and secrets, but not who has which. Of
independent draws the counts that come out tell him which moves were made. He scales the pairs F
until rows and columns add up to what he knows: the rows to the table, the columns to the file. Let
100 records have the row a and 100 the row b; each keeps its row with probability 3/4:

           F             the file has 120 x and 80 y         scaled
    a    75  25                                              83.7  16.3   = 100
    b    25  75                                              36.3  63.7   = 100
                                                             = 120 = 80

Of a record with y he believes that it was a with probability 16.3 / 80 = .204, less than the 25 /
100 = .25 of the channel. If a has a secret that b has not, that is his belief of the secret.

The scaled pairs are the mean ones if pairs have many records. **Where they have few, he can know
far more than scaling says**: had a and b one record each, and the file one x and one y, it would be
1/10 (both moved or none), and scaling changes nothing. `posterior_by_messages` is the stronger
observer there. With draws of fixed counts (`release.fixed_counts`) he knows what the channel says,
however few the records.

*Messages.* Where pairs have few records, the observer follows what each record did. Independent
draws were made, and the observer knows how many records n(y) of the file have each output y. Take
records a and b that draw x or y, and a record c that draws y or z, each with probability 1/2. If
the file has one record with each output, the one with z is c. So c is not at y, and a and b are as
likely there: 1/2 and not the 1/3 of the channel.

Such conclusions spread from output to output, as belief propagation passes them on:

1. A record tells each output how likely it is to be there, by what all its other outputs say.
2. An output tells each record how much likelier its number n(y) is if the record is there: the
   chance that n(y) - 1 of the others are, over the chance that n(y) are.

The records of an input are alike and send the same messages. The number of other records at an
output is a sum of independent indicators. Its chances are read off the generating function
prod (1 - p + p z), at points of a circle, whose radius makes n(y) the mean of the sum.

Where outputs and inputs form no cycles the beliefs are the exact probabilities. In general they
rank the records well, and are surer than they should be: use `success`, how often the
observer is right, and not how sure he is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers

Floats = NDArray[np.float64]

CLOSE = 1e-9
"""The relative deviation of the rows at which scaling ends: far below what is printed of beliefs,
far above the rounding errors of sums.
"""

MOST_ROUNDS = 2_000
"""Rounds of scaling. Counts that a few pairs alone allow are approached as slowly as one over the
number of rounds; `FilePosterior.deviation` says how far it came.
"""


@dataclass(frozen=True, eq=False)
class FilePosterior:
    """Beliefs of somebody who sees the whole file.

    Attributes
    ----------
    posteriors : (k, m) array
        The probability of each secret for a record with each output; NaN for outputs that no
        record has.
    flows : (p,) array
        The scaled pairs, in records.
    deviation : float
        The largest relative deviation of a row of `flows` from its number of records.
    rounds : int
        Rounds of scaling.
    """

    posteriors: Floats
    flows: Floats
    deviation: float
    rounds: int


def posterior_given_file(
    rows: Integers,
    columns: Integers,
    values: Any,
    released: Integers,
    shares: Floats,
    *,
    close: float = CLOSE,
    most_rounds: int = MOST_ROUNDS,
) -> FilePosterior:
    """P(secret | output, all counts of the file), for large counts.

    Parameters
    ----------
    rows, columns : (p,) arrays
        Input and output of each pair.
    values : (p,) array
        What each pair gets in the mean, in any unit: the number of records of the input, times
        the probability of the output.
    released : (m,) array
        Records of the file with each output.
    shares : (k, n) array
        The share of each secret among the records of each input.
    close : float
        The relative deviation at which scaling ends.
    most_rounds : int
        Rounds after which it ends otherwise.

    Raises
    ------
    InputError
        If no draws from these pairs give such a file.
    """
    flows = np.asarray(values, dtype=np.float64)
    targets = np.asarray(released, dtype=np.float64)
    row_count = shares.shape[1]
    if not flows.sum() > 0 or not targets.sum() > 0:
        raise InputError("there must be at least one pair and one released record")
    # In records of the file.
    flows = flows * (targets.sum() / flows.sum())
    row_targets: Floats = np.bincount(rows, flows, row_count).astype(np.float64)
    rounds = 0
    deviation = np.inf
    while True:
        flows = flows * factors(columns, flows, targets)[columns]
        rounds += 1
        sums = np.bincount(rows, flows, minlength=row_count)
        known = row_targets > 0
        deviation = float(np.max(np.abs(sums[known] / row_targets[known] - 1)))
        # After the columns, whose beliefs then add up to one.
        if deviation <= close or rounds >= most_rounds:
            break
        flows = flows * factors(rows, flows, row_targets)[rows]
    return FilePosterior(
        beliefs(columns, flows, targets, shares[:, rows]), flows, deviation, rounds
    )


def beliefs(
    columns: Integers, flows: Floats, targets: Floats, shares: Floats
) -> Floats:
    """The probability of each secret given the output; NaN for outputs without records.

    Parameters
    ----------
    columns, flows : (p,) arrays
        Output and records of each pair; the records of an output add up to its target.
    targets : (m,) array
        Records of each output.
    shares : (k, p) array
        The share of each secret among the records of a pair's input.
    """
    posteriors = np.full((len(shares), len(targets)), np.nan)
    seen = targets > 0
    for secret, share in enumerate(shares):
        found = np.bincount(columns, share * flows, minlength=len(targets))
        posteriors[secret, seen] = found[seen] / targets[seen]
    return posteriors


def success(believed: Floats, holds: NDArray[np.bool_], share: float) -> float:
    """How often an observer is right about the records of which he is surest.

    Parameters
    ----------
    believed : (n_records,) array
        His probability that a record has the secret.
    holds : (n_records,) array
        Whether it has.
    share : float
        The share of the records that he points at, in (0, 1].

    Returns
    -------
    float
        The share of these that have the secret. Of equally sure ones he picks at random, and this
        is the mean.
    """
    if not 0 < share <= 1:
        raise InputError(f"share ({share}) must be above 0 and at most 1")
    picked = math.ceil(share * len(believed))
    least = np.partition(believed, len(believed) - picked)[len(believed) - picked]
    surer = believed > least
    equal = believed == least
    of_equal = (picked - surer.sum()) * holds[equal].mean()
    return float((holds[surer].sum() + of_equal) / picked)


def factors(places: Integers, flows: Floats, targets: Floats) -> Floats:
    """What scales the flows of each row, or column, to its target."""
    sums = np.bincount(places, flows, minlength=len(targets))
    if np.any((sums == 0) & (targets > 0)):
        raise InputError(
            "no draws of this channel from this table can give the released counts"
        )
    return np.divide(targets, sums, out=np.zeros_like(sums), where=sums > 0)


# ----------------------------------------------------------------------------- messages

DAMPING = 0.5
"""The share of the old message in the new one. Undamped messages can swing for ever."""

CLOSE_MESSAGES = 1e-6
"""The change of all beliefs in a round at which messages end: far below what is printed."""

MOST_MESSAGES = 300
"""Rounds after which they end otherwise. Where they swing, more do not help."""

SUREST = 40.0
"""The largest log-odds of a record. Surer ones differ from certainty by less than rounding does."""

LARGEST_MESSAGE = 30.0
"""The largest logarithm of a message, far surer than any draw makes one."""

LEAST_CHANCE = 1e-14
"""Chances below this are rounding errors of the sum over the circle."""

FEWEST_POINTS = 17
POINTS_PER_DEVIATION = 14
"""Points on the circle: a number of records that is so many standard deviations from the mean,
and would be confused with it, has a chance below `LEAST_CHANCE`.
"""

MOST_NEWTON_STEPS = 60
NEWTON_CLOSE = 1e-6
"""The search for the radius. An inexact one costs points, not truth."""

MARGIN = 0.3
"""The mean that the radius aims at stays so far from none and all of the records, where it would be
zero or infinite.
"""

CHUNK = 1 << 21
"""Points of pairs that are in memory at a time (32 MB an array)."""


def posterior_by_messages(
    rows: Integers,
    columns: Integers,
    values: Any,
    counts: Integers,
    released: Integers,
    shares: Floats,
    *,
    close: float = CLOSE_MESSAGES,
    most_rounds: int = MOST_MESSAGES,
) -> FilePosterior:
    """P(secret | output, all counts of the file), by belief propagation.

    Parameters
    ----------
    rows, columns : (p,) arrays
        Input and output of each pair.
    values : (p,) array
        What each pair gets in the mean, in any unit.
    counts : (n,) array
        Records of each input.
    released : (m,) array
        Records of the file with each output.
    shares : (k, n) array
        The share of each secret among the records of each input.
    close : float
        The change of beliefs at which messages end.
    most_rounds : int
        Rounds after which they end otherwise.

    Raises
    ------
    InputError
        If an output of the file is that of no pair, or the records are not as many.
    """
    targets = np.asarray(released, dtype=np.float64)
    amounts = np.asarray(values, dtype=np.float64)
    if int(np.sum(counts)) != int(np.sum(released)):
        raise InputError("the file must have as many records as the table")
    # By output: the pairs of each are neighbours.
    order = np.argsort(columns, kind="stable")
    messages = _Messages(rows[order], columns[order], amounts[order], counts, targets)
    believed = messages.believed()
    rounds = 0
    while rounds < most_rounds:
        rounds += 1
        messages.pass_on()
        before = believed
        believed = messages.believed()
        if np.max(np.abs(believed - before)) <= close:
            break
    flows = np.empty(len(order))
    flows[order] = believed * messages.records
    # The beliefs of an output add up to one record each.
    flows *= factors(columns, flows, targets)[columns]
    sums = np.bincount(rows, flows, minlength=len(counts))
    known = counts > 0
    deviation = float(np.max(np.abs(sums[known] / counts[known] - 1)))
    posteriors = beliefs(columns, flows, targets, shares[:, rows])
    return FilePosterior(posteriors, flows, deviation, rounds)


class _Messages:
    """The messages of outputs to records, one for each pair.

    Attributes
    ----------
    records : (p,) array
        Records of each pair's input.
    """

    def __init__(
        self,
        rows: Integers,
        columns: Integers,
        values: Floats,
        counts: Integers,
        targets: Floats,
    ) -> None:
        self._rows = rows
        self._columns = columns
        self._values = values
        self._targets = targets
        self.records = counts[rows].astype(np.float64)
        # Logarithms of the messages, and of the radius of each output's circle.
        self._heard = np.where(targets[columns] > 0, 0.0, -LARGEST_MESSAGE)
        self._radius = np.zeros(len(targets))
        possible = np.bincount(columns, self.records, minlength=len(targets))
        # At the middle where even the margins exceed the records.
        least = np.minimum(MARGIN, possible / 2)
        self._aims = np.clip(targets, least, possible - least)

    def _weights(self) -> tuple[Floats, Floats]:
        """The weight of each pair, and the sum of the weights of its input."""
        weights = self._values * np.exp(self._heard)
        totals: Any = np.bincount(self._rows, weights)
        return weights, totals[self._rows]

    def believed(self) -> Floats:
        """The probability that a record of the pair's input has the pair's output."""
        weights, total = self._weights()
        return weights / total

    def pass_on(self) -> None:
        """One message from every record to every output, and one back."""
        weights, total = self._weights()
        # Without what this output said itself.
        others = np.maximum(total - weights, np.finfo(np.float64).tiny)
        log_odds = np.clip(np.log(self._values) - np.log(others), -SUREST, SUREST)
        tilted, deviations = self._tilted(log_odds)
        said = self._radius[self._columns] + self._said(tilted, deviations)
        said[self._targets[self._columns] == 0] = -LARGEST_MESSAGE
        said = np.clip(said, -LARGEST_MESSAGE, LARGEST_MESSAGE)
        self._heard = DAMPING * self._heard + (1 - DAMPING) * said

    def _tilted(self, log_odds: Floats) -> tuple[Floats, Floats]:
        """Probabilities on the circle, where each output's target is the mean, by Newton's method.

        Also the standard deviation of the number of records of each output.
        """
        size = len(self._targets)
        for _ in range(MOST_NEWTON_STEPS):
            tilted = 1 / (1 + np.exp(-log_odds - self._radius[self._columns]))
            mean = np.bincount(self._columns, self.records * tilted, size)
            variance = np.bincount(
                self._columns, self.records * tilted * (1 - tilted), size
            )
            step = (self._aims - mean) / np.maximum(variance, NEWTON_CLOSE)
            if np.max(np.abs(step)) <= NEWTON_CLOSE:
                break
            # Steps of one: far from the aim the variance can be almost zero.
            moved = self._radius + np.clip(step, -1, 1)
            self._radius = np.clip(moved, -SUREST, SUREST)
        tilted = 1 / (1 + np.exp(-log_odds - self._radius[self._columns]))
        spread = self.records * tilted * (1 - tilted)
        return tilted, np.sqrt(np.bincount(self._columns, spread, size))

    def _said(self, tilted: Floats, deviations: Floats) -> Floats:
        """log P(n - 1 of the others) / P(n of the others) for each pair, on the circle."""
        half = np.ceil(POINTS_PER_DEVIATION * deviations / 2).astype(np.int64)
        # An odd number of points: -1, where a factor can be zero, is not among them.
        points = FEWEST_POINTS + 2 * half
        pair_points = points[self._columns]
        said = np.empty(len(tilted))
        for count in np.unique(pair_points).tolist():
            pairs = np.flatnonzero(pair_points == count)
            step = max(1, CHUNK // count)
            start = 0
            while start < len(pairs):
                end = start + step
                # Whole outputs: up to the last pair of the one that `end` falls into.
                if end < len(pairs):
                    last = self._columns[pairs[end]]
                    end = int(np.searchsorted(self._columns[pairs], last, "right"))
                chunk = pairs[start:end]
                said[chunk] = self._said_by(chunk, tilted[chunk], count)
                start = end
        return said

    def _said_by(self, pairs: Integers, tilted: Floats, points: int) -> Floats:
        """The same for all pairs of some outputs, with so many points."""
        circle = np.exp(2j * np.pi * np.arange(points) / points)
        single = np.log(1 - tilted[:, None] + tilted[:, None] * circle)
        columns = self._columns[pairs]
        is_first = np.diff(columns, prepend=-1) > 0
        starts = np.flatnonzero(is_first)
        every = np.add.reduceat(self.records[pairs, None] * single, starts, axis=0)
        others = np.exp(every[np.cumsum(is_first) - 1] - single)
        turned = others * circle ** -self._targets[columns][:, None]
        at_target = turned.real.mean(axis=1)
        one_less = (turned * circle).real.mean(axis=1)
        return np.log(np.maximum(one_less, LEAST_CHANCE)) - np.log(
            np.maximum(at_target, LEAST_CHANCE)
        )
