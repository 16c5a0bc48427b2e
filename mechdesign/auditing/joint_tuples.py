"""Tuples of outputs that may have the largest or the smallest lift of all.

Releases of one record are one channel, whose outputs are tuples and whose columns are products of
their columns (docs/how-to/many-releases.md, proposition 1). There are too many tuples to compare
all of them in integers. So the first channels come as `followed` directions
(`columns.directions`), and `candidates` joins the last channel to them in floating point:

    P(s, (direction i, y)) = sum over x of P(s, x) u_i(x) W(y|x),

one matrix product for a block of directions (`_log_lifts`). Sums of n non-negative terms have a
proven relative error, so a tuple whose lift is smaller than another's by more than the errors of
both is surely not extreme. `_Nearest` keeps the few others, for the largest lift, the smallest lift
and their quotient each. They are formed again in integers, and the caller compares them exactly.

Example: P(s, x) is 0.4, 0.1 for s and 0.1, 0.4 for t. The direction (1, 0.5) and the output (1,
0.5) have the product (1, 0.25) and the masses 0.425 and 0.2, so the lifts are 1.36 and 0.64.

Floating point only selects, with margins wider than its error. Where products could underflow
(`_may_underflow`), all tuples are returned.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mechdesign.auditing.columns import Direction, Entries, directions
from mechdesign.auditing.measures import ROUNDOFF
from mechdesign.channel.channel import Array
from mechdesign.tables.joint import Joint

BLOCK = 2**22
"""Doubles of one block of products: 32 MB."""

LEAST_PRODUCT = 2.0**-900
"""Smallest product of positive entries for which nothing can underflow; below it nothing rests on
doubles.
"""

LARGEST_LOG = math.log(1e300)
"""Largest log lift that the margin of a comparison grows with: an infinite one needs no margin."""


def candidates(
    table: Joint, followed: Sequence[Direction], columns: Sequence[Entries]
) -> list[Direction]:
    """Every tuple of a followed direction and an output that may be extreme.

    That is, in its largest lift, in its smallest lift, or in their quotient.

    Parameters
    ----------
    table : Joint
        With one secret.
    followed : sequence of Direction
        Of all channels but the last.
    columns : sequence of Entries
        Of the last channel.
    """
    n = len(table.useful)
    size = len(table.sensitive)
    first = dense_columns([column for column, _ in followed], n)
    last = dense_columns(columns, n)
    if _may_underflow(table, followed, columns, first, last):
        return directions(followed, columns)
    # Zeros are exact, because nothing underflows. A lift is wrong by n + 5 roundings in P(s, y) and
    # |S| more in P(y).
    slack = 8.0 * (2 * n + size + 20) * ROUNDOFF
    largest = _Nearest(slack)
    smallest = _Nearest(slack)
    quotients = _Nearest(slack)
    step = max(1, BLOCK // (size * max(n, len(last))))
    for start in range(0, len(first), step):
        places, logs = _log_lifts(table, first[start : start + step], last)
        places[:, 0] += start
        high = logs.max(axis=1)
        low = logs.min(axis=1)
        largest.add(high, places)
        smallest.add(-low, places)
        quotients.add(high - low, places)
    # One tuple may be extreme in several ways, and is formed in integers once.
    pairs: set[tuple[int, int]] = set()
    for nearest in (largest, smallest, quotients):
        for i, y in nearest.places.tolist():
            pairs.add((i, y))
    extreme: list[Direction] = []
    for i, y in sorted(pairs):
        _, outputs = followed[i]
        # Formed again, in integers; `directions` numbers the outputs of the one column from 0.
        for column, _ in directions([followed[i]], [columns[y]]):
            extreme.append((column, (*outputs, y)))
    return extreme


def dense_columns(columns: Sequence[Entries], n: int) -> Array:
    """Columns as rows of doubles, each entry correctly rounded, the largest of each 1; (k, n)."""
    dense = np.zeros((len(columns), n))
    for k, (inputs, values) in enumerate(columns):
        largest = max(values)
        dense[k, list(inputs)] = [value / largest for value in values]
    return dense


def _may_underflow(
    table: Joint,
    followed: Sequence[Direction],
    columns: Sequence[Entries],
    first: Array,
    last: Array,
) -> bool:
    """Whether an entry is lost in doubles, or a product of positive entries may be."""
    entries = sum(len(inputs) for inputs, _ in columns)
    entries += sum(len(inputs) for (inputs, _), _ in followed)
    if np.count_nonzero(first) + np.count_nonzero(last) < entries:
        return True
    # No positive product P(s, x) u(x) W(y|x) is smaller than that of the smallest of each.
    smallest_product = 1.0
    for factors in (table.p, last, first):
        smallest_product *= float(factors[factors > 0.0].min())
    return smallest_product < LEAST_PRODUCT


def _log_lifts(
    table: Joint, block: Array, last: Array
) -> tuple[NDArray[np.intp], Array]:
    """The tuples (direction in the block, output) that can occur, (k, 2), and the logarithm of each
    of their lifts, (k, |S|).
    """
    n = len(table.useful)
    # (directions, |S|, n) -> (directions, |S|, outputs): the sum over x is a matrix product.
    products = block[:, None, :] * table.p
    masses = (products.reshape(-1, n) @ last.T).reshape(len(block), -1, len(last))
    places = np.argwhere(masses.any(axis=1))
    masses = masses[places[:, 0], :, places[:, 1]]
    with np.errstate(divide="ignore"):
        logs = np.log(masses / (table.p_s * masses.sum(axis=1, keepdims=True)))
    return places, logs


class _Nearest:
    """The tuples whose value may be the largest, if values are wrong by at most `slack` each.

    `places` has them, as rows (direction, output), after each `add`.
    """

    def __init__(self, slack: float) -> None:
        self._slack = slack
        self._values: Array = np.zeros(0)
        self.places: NDArray[np.intp] = np.zeros((0, 2), dtype=np.intp)

    def add(self, values: Array, places: NDArray[np.intp]) -> None:
        """Take in more tuples, and drop those that are surely smaller than another."""
        values = np.append(self._values, values)
        places = np.concatenate([self.places, places])
        best = float(values.max(initial=0.0))
        # A log lift is wrong by a few roundings of its lift, and by one more of its own size.
        margin = self._slack * (1.0 + min(best, LARGEST_LOG))
        near = np.flatnonzero(values >= best - margin)
        if math.isinf(best):
            near = near[:1]  # of lifts of zero one is enough
        self._values = values[near]
        self.places = places[near]
