"""The observer of a whole file where pairs have few records: what each record did, by messages.

Independent draws were made, and the observer knows how many records n(y) of the file have each
output y (`whole_file` has the setting). Take records a and b that draw x or y, and a record c that
draws y or z, each with probability 1/2. If the file has one record with each output, the one with z
is c. So c is not at y, and a and b are as likely there: 1/2 and not the 1/3 of the channel.

Such conclusions spread from output to output, as belief propagation passes them on:

1. A record tells each output how likely it is to be there, by what all its other outputs say.
2. An output tells each record how much likelier its number n(y) is if the record is there: the
   chance that n(y) - 1 of the others are, over the chance that n(y) are.

The records of an input are alike and send the same messages. The number of other records at an
output is a sum of independent indicators. Its chances are read off the generating function
prod (1 - p + p z), at points of a circle, whose radius makes n(y) the mean of the sum.

Where outputs and inputs form no cycles the beliefs are the exact probabilities. In general they
rank the records well, and are surer than they should be: use `whole_file.success`, how often the
observer is right, and not how sure he is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.leaks.whole_file import FilePosterior, Floats, beliefs, factors

DAMPING = 0.5
"""The share of the old message in the new one. Undamped messages can swing for ever."""

CLOSE = 1e-6
"""The change of all beliefs in a round at which messages end: far below what is printed."""

MOST_ROUNDS = 300
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
    close: float = CLOSE,
    most_rounds: int = MOST_ROUNDS,
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
