"""Bounds in floating point on the extreme lifts of outputs, so that few outputs are computed in
integers.

The extremes of a channel over a confidence set are exact (`population_extremes`), and an output of
800 symbols takes ten milliseconds so. Most outputs are far from the largest, which is all that a
verdict asks for. `largest_lifts` bounds the three quotients of an output from above, by the same
knapsacks in floating point and with what rounding may have changed on the safe side. An output
whose bound is below a quotient that is known exactly cannot have the largest one.

The outputs of an optimum all reach their limit up to a margin, some 1e-14 apart. Long doubles,
where a machine has them, tell these apart, too.

With u half of the distance of 1 to the next number, a sum of m nonnegative terms is wrong by m u of
its value. No spread is more than the room, which is at most 1. So the masses of a knapsack, up to
the symbol that fills it, are at most 2 and wrong by 2 (n + 2) u, and the place of that symbol is
wrong only among symbols where the mass is so near to the room. With w the largest entry among these
and d = `MARGIN` (n + S + 16) u, P(y|s) is wrong by less than d (P(y|s) + w), and a mean over S
shares by less than d times its largest value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.balls import SCALE

Number = np.longdouble
Array = NDArray[Number]

MARGIN = 16.0
"""Units of rounding for every term of a sum. A knapsack adds and subtracts five sums, of terms that
are products of two rounded numbers: together less than that.
"""

FIRST = 64
"""Symbols of which the first are tried: wide intervals are filled after few of them. Where more
were needed once, as many are tried at the next output."""

UNIT = np.finfo(Number).eps / 2
"""Half of the distance of 1 to the next number: the relative error of one operation."""


class Largest(NamedTuple):
    """Upper bounds of the largest lift, inverse of a lift and quotient of lifts of an output."""

    high: Number
    low: Number
    ratio: Number


class Screen:
    """A confidence set in doubles: lower ends and spreads of every P(.|s), and those of P(S)."""

    def __init__(
        self,
        lower: Sequence[Sequence[int]],
        spread: Sequence[Sequence[int]],
        share_lower: Sequence[int],
        share_spread: Sequence[int],
        unit: int,
    ) -> None:
        # Ends are at most 2^60, and divided by a power of two.
        self._lower = np.array(lower, dtype=np.int64).astype(Number) / SCALE
        room = np.array([SCALE - sum(row) for row in lower], dtype=np.int64)
        self._room = room.astype(Number) / SCALE
        # No symbol takes more than the room, so that a cumulative sum of the first ones is small
        # where it decides.
        widths = np.array(spread, dtype=np.int64).astype(Number) / SCALE
        self._width = np.minimum(widths, self._room[:, None])
        self._share_lower = _shares(share_lower, unit)
        (self._share_room,) = _shares([unit - sum(share_lower)], unit)
        self._share_width = np.minimum(_shares(share_spread, unit), self._share_room)
        terms = self._lower.shape[0] + self._lower.shape[1] + 16
        self._error = MARGIN * terms * UNIT
        self._first = FIRST

    def largest_lifts(self, inputs: Sequence[int], values: Sequence[int]) -> Largest:
        """Upper bounds for the output with the entries `values` at the symbols `inputs`."""
        w = np.zeros(self._lower.shape[1], dtype=Number)
        w[list(inputs)] = _shares(values, max(values))
        order = np.argsort(-w, kind="stable")
        base = self._lower @ w
        error = self._error
        added, at_most = self._filled(w, order)
        most = base + added
        most += error * (most + at_most)
        added, at_most = self._filled(w, order[::-1])
        least = base + added
        # A probability that may be zero gives no bound: the quotient is computed exactly.
        least = np.maximum(least - error * (least + at_most), 0.0)
        of_means = error * most.max()
        with np.errstate(divide="ignore"):
            smallest_means = self._least_means(least, most) - of_means
            largest_means = -self._least_means(-most, -least) + of_means
            high = np.where(smallest_means > 0.0, most / smallest_means, np.inf)
            low = largest_means / least
            ratio = _largest_quotient(most, least)
        widened = 1.0 + error
        return Largest(
            high.max() * widened,
            low.max() * widened,
            ratio * widened,
        )

    def _filled(self, w: Array, order: NDArray[np.intp]) -> tuple[Array, Array]:
        """What the room of every s adds to P(y|s), if it fills the symbols in this order, and the
        largest entry that may be the one of the symbol that fills it.
        """
        nearly = self._room - self._error
        surely = self._room + self._error
        size = min(self._first, len(order))
        while True:
            first = order[:size]
            width = self._width[:, first]
            masses = np.cumsum(width, axis=1)
            if size == len(order) or (masses[:, -1] > surely).all():
                break
            size = min(2 * size, len(order))
        # The next output needs about as many.
        self._first = size
        worth = np.cumsum(width * w[first], axis=1)
        rows = np.arange(len(masses))
        # All of the last symbol, but for the mass that it does not take.
        last = np.minimum((masses < self._room[:, None]).sum(axis=1), size - 1)
        unused = masses[rows, last] - self._room
        # Entries fall or rise, so the largest one is at an end of the places in question.
        begin = (masses < nearly[:, None]).sum(axis=1)
        end = (masses <= surely[:, None]).sum(axis=1)
        largest = np.maximum(
            w[first[np.minimum(begin, size - 1)]], w[first[np.minimum(end, size - 1)]]
        )
        return worth[rows, last] - unused * w[first[last]], largest

    def _least_means(self, values: Array, instead: Array) -> Array:
        """For every s the least mean of `values` over the box of P(S), with that of s in `instead`,
        which is not smaller.
        """
        order = np.argsort(values, kind="stable")
        ascending = values[order]
        width = self._share_width[order]
        masses = _cumulative(width)
        worth = _cumulative(width * ascending)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        # The others fill the room as if s were not there, and s comes behind the smaller ones.
        smaller: NDArray[np.intp] = np.searchsorted(ascending, instead)
        own_width = self._share_width
        mass_before = masses[smaller] - np.where(rank < smaller, own_width, 0.0)
        own = np.clip(self._share_room - mass_before, 0.0, own_width)
        mass = self._share_room - own
        # Beyond the place of s: with its width filled, too, and taken out again.
        is_beyond = mass > masses[rank]
        extra = np.where(is_beyond, own_width, 0.0)
        mass = np.minimum(mass + extra, masses[-1])
        before = cast("NDArray[np.intp]", np.searchsorted(masses, mass))
        last = np.clip(before - 1, 0, len(order) - 1)
        filled = worth[last] + (mass - masses[last]) * ascending[last]
        base = self._share_lower @ values
        raised = self._share_lower * (instead - values)
        return base + raised + filled - extra * values + own * instead


def _shares(values: Sequence[int], unit: int) -> Array:
    """Integers over a unit, each rounded twice."""
    return np.array(values, dtype=Number) / Number(unit)


def _cumulative(values: Array) -> Array:
    """Sums of the first 0, 1, .. values."""
    sums = np.zeros(len(values) + 1, dtype=Number)
    np.cumsum(values, out=sums[1:])
    return sums


def _largest_quotient(most: Array, least: Array) -> Number:
    """The largest most[s] / least[t] of two different symbols; infinity where there is one only."""
    if len(most) == 1:
        return Number(np.inf)
    s = int(most.argmax())
    t = int(least.argmin())
    if s != t:
        return most[s] / least[t]
    # The symbol that has both meets the next one of the others.
    others = np.arange(len(most)) != s
    return max(most[s] / least[others].min(), most[others].max() / least[t])
