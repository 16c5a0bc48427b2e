"""How far a channel moves the numbers of its columns, under the table: distances and correlations.

It is about the numbers of `released_values`, of which each output is published as one. With the
joint masses q of original and published number, `moved` computes for each column the expected
distance, sum of q(v, z) |v - z|, and the correlation of v and z. For example, half of the records
have 10 and half 30, and all are published as 10: the distance is 10, and there is no correlation,
because the published number is constant.

`_bins_moved` does it for a column in bins, whose values are known bin by bin, and `_symbols_moved`
for a column of numbers that are its symbols.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mechdesign.core.arguments import fraction_of
from mechdesign.core.wording import about
from mechdesign.release.protocol import Releasable
from mechdesign.release.released_values import (
    Floats,
    numbers_of_column,
    symbols_released,
)
from mechdesign.tables.bins import Bins
from mechdesign.tables.cell_values import DAY, Kind
from mechdesign.tables.joint import Joint


@dataclass(frozen=True)
class Moved:
    """How far the numbers of a column move when outputs are published as numbers, under the table.

    Without `edges` the labels are symbols that are numbers, else they are bins. `distance` is the
    expected absolute difference (seconds for dates and times), `correlation` that of original and
    published number (None where one of them is constant); `before` and `after` are the shares of
    the labels. Of a bin with very many values only those in the channel count.
    """

    column: str
    kind: Kind
    edges: tuple[str, ...]
    labels: tuple[str, ...]
    distance: float
    correlation: float | None
    before: tuple[float, ...]
    after: tuple[float, ...]


LARGEST = 10**150
"""Numbers from here on have squares near the largest double, 1.8e308."""


def unit_of(distance: float, kind: str) -> tuple[int, str]:
    """The largest unit within a distance between dates or times: its seconds, and its name.

    Numbers have no unit: 1 and the empty text.
    """
    if kind == "number":
        return 1, ""
    for seconds, name in ((DAY, " days"), (3600, " hours"), (60, " minutes")):
        if distance >= seconds:
            return seconds, name
    return 1, " s"


def distance_text(distance: float, kind: str) -> str:
    """A distance with its unit, where it has one."""
    size, unit = unit_of(distance, kind)
    return f"{about(distance / size)}{unit}"


def moved(channel: Releasable) -> tuple[Moved, ...]:
    """The moves of every column in bins, or of numbers whose distance the design minimised.

    A public channel has none: they are functions of the table. Neither has a column with numbers
    so large that distances and variances in doubles would be infinite.
    """
    symbols = symbols_released(channel)
    joint = channel.joint
    if joint is None:
        return ()
    for bins in channel.useful.bins:
        if bins is not None and bins.values is None:
            return ()
    is_distance = channel.distance is not None
    is_single = len(channel.useful.columns) == 1
    if is_distance and is_single and symbols and not any(channel.useful.bins):
        return (_symbols_moved(channel, joint, symbols),)
    moves: list[Moved] = []
    for part, bins in enumerate(channel.useful.bins):
        if bins is not None and _squares_fit(bins):
            moves.append(_bins_moved(channel, joint, part, bins, symbols))
    return tuple(moves)


def _squares_fit(bins: Bins) -> bool:
    """Whether the squares of all numbers of the bins are far from the largest double."""
    texts = [text for values in bins.values or () for text in values]
    return all(abs(bins.number(text) or 0) < LARGEST for text in texts)


def _bins_moved(
    channel: Releasable,
    joint: Joint,
    part: int,
    bins: Bins,
    symbols: list[int] | None,
) -> Moved:
    """The moves of one column in bins.

    With q(b, z) the joint masses of bins and released numbers, the expected distance is the sum of
    q(b, z) times the mean of |v - z| over the values v in bin b, as often as the table has them.
    """
    texts = numbers_of_column(channel, part, symbols)
    shown = list(dict.fromkeys(texts))
    released = _floats_of(shown, bins)
    number_of_output = [shown.index(text) for text in texts]
    masses = _bin_masses(channel, joint, part, bins, number_of_output)
    # Records that are published without a number are left out.
    masses = masses * [bool(text) for text in shown]
    masses /= masses.sum()
    # Per bin b: the mean of |v - z| for each published number z, and the mean and variance of v.
    distance = np.zeros(masses.shape)
    mean = np.zeros(len(bins))
    variance = np.zeros(len(bins))
    for b, (values, counts) in enumerate(
        zip(bins.values or (), bins.counts or (), strict=True)
    ):
        if values:
            numbers = _floats_of(values, bins)
            shares = np.array(counts, dtype=np.float64) / sum(counts)
            distance[b] = shares @ np.abs(numbers[:, None] - released)
            mean[b] = shares @ numbers
            variance[b] = shares @ (numbers - mean[b]) ** 2
    before = masses.sum(axis=1)
    by_number = masses.sum(axis=0)
    bin_of_number = bins.bins_of([text or "0" for text in shown]).clip(0)
    after = np.bincount(bin_of_number, by_number, len(bins))
    return Moved(
        column=channel.useful.columns[part],
        kind=bins.kind,
        edges=bins.edges,
        labels=bins.labels,
        distance=float((distance * masses).sum()),
        correlation=_correlation(masses, mean, released, variance),
        before=tuple(before.tolist()),
        after=tuple(after.tolist()),
    )


def _floats_of(texts: Sequence[str], bins: Bins) -> Floats:
    """The numbers of texts as doubles; 0 for the empty text."""
    return np.array([float(bins.number(text) or 0) for text in texts])


def _bin_masses(
    channel: Releasable, joint: Joint, part: int, bins: Bins, number_of: Sequence[int]
) -> Floats:
    """q(b, z), the joint masses of bins and numbers; `number_of` has the number of each output."""
    rank = dict(zip(bins.labels, range(len(bins)), strict=True))
    bin_of = [rank.get(symbol[part], -1) for symbol in channel.useful.symbols]
    # q(b, z) = sum over x in b, and over y published as z, of P(x) W(y|x). Of crossed columns
    # several symbols share a bin, and several outputs a number: two 0/1 matrices add them up.
    in_bin = np.equal.outer(np.arange(len(bins)), bin_of).astype(np.float64)
    numbers = np.arange(max(number_of) + 1)
    shown_as = np.equal.outer(number_of, numbers).astype(np.float64)
    weights = joint.p_x[:, None] * channel.matrix
    return in_bin @ weights @ shown_as


def _correlation(
    masses: Floats, original: Floats, released: Floats, inner: Floats | float = 0.0
) -> float | None:
    """The correlation of two numbers with these joint masses; None where one of them is constant.

    `original` are the numbers, or the means of bins with `inner` as the variances inside of them.
    """
    before = masses.sum(axis=1)
    after = masses.sum(axis=0)
    # Both centred at their means: the covariance and the variances are then plain moments.
    original = original - before @ original
    released = released - after @ released
    if np.ptp(released[after > 0]) == 0:
        return None
    if np.ptp(original[before > 0]) == 0 and not np.any(inner):
        return None
    # The law of total variance: between the bins, and inside of them.
    variance = before @ (original**2 + inner)
    released_variance = after @ released**2
    covariance = original @ masses @ released
    return float(covariance / math.sqrt(variance * released_variance))


def _symbols_moved(channel: Releasable, joint: Joint, symbols: list[int]) -> Moved:
    """The moves of a column of numbers that are released as such, in ascending order."""
    names = channel.useful.names
    numbers = np.array([float(fraction_of(name)) for name in names])
    masses = np.zeros((len(names),) * 2)
    masses[:, symbols] = joint.p_x[:, None] * channel.matrix
    distances = np.abs(np.subtract.outer(numbers, numbers))
    order: list[int] = np.argsort(numbers).tolist()
    before: list[float] = masses.sum(axis=1)[order].tolist()
    after: list[float] = masses.sum(axis=0)[order].tolist()
    return Moved(
        column=channel.useful.columns[0],
        kind="number",
        edges=(),
        labels=tuple(names[x] for x in order),
        distance=float((masses * distances).sum()),
        correlation=_correlation(masses, numbers, numbers),
        before=tuple(before),
        after=tuple(after),
    )
