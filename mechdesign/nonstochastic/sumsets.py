"""Sums of independent members of finite sets of integers.

`sumset` lists the sums of count_k members of each set k. A set is kept as runs of consecutive
integers, because even many sums consist of few runs:

1. Every set is moved to start at 0, and divided by the common unit of all.
2. The sums of n members of one set are put together from those of 1, 2, 4, .. members, by doubling
   (`doublings`, `with_members`): 13 members are 8 and 4 and 1.
3. Two sets are added run by run, [p, q] + [r, s] = [p + r, q + s], or by a convolution where they
   have too many runs (`added`).

For example, the sums of two members of {0, 3} and one of {0, 1} are 0, 1, 3, 4, 6, 7: the runs
[0, 1], [3, 4] and [6, 7].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

LARGEST_SPAN = 1 << 24
"""Largest span of a sumset that is listed whole (128 MB) and convolved in about a second."""

LARGEST_SUMSET = 4_000_000
"""Most members of a sumset of a larger span, and most pairs of runs in one addition, which then
takes less than a second."""

MOST_ADDITIONS = 50_000_000
"""Most pairs of runs in all additions together, where the span is too large for convolutions. They
take some seconds."""

MOST_PAIRS = 300_000
"""Pairs of runs above which one convolution is faster than adding them."""

LARGEST_INTEGER = 1 << 61
"""Largest sum, so that adding two of them cannot overflow 64 bits."""

Integers = NDArray[np.int64]

Runs: TypeAlias = tuple[Integers, Integers]
"""A set as the first and last members of its runs of consecutive integers, in order."""


def sumset(parts: Sequence[tuple[Sequence[int], int]]) -> Integers | None:
    """The sorted distinct sums of `count` members of each set `values`; None if too many."""
    # Every set is moved to start at 0, and divided by the common unit of all: both keep the numbers
    # small.
    base = 0
    offsets: list[tuple[list[int], int]] = []
    for values, count in parts:
        lowest = min(values)
        base += lowest * count
        moved = [v - lowest for v in sorted(set(values))]
        if count and len(moved) > 1:
            offsets.append((moved, count))
    unit = math.gcd(*(v for values, _ in offsets for v in values))
    span = sum(values[-1] * count for values, count in offsets)
    if abs(base) + span > LARGEST_INTEGER:
        return None
    narrow = span <= LARGEST_SPAN * unit
    sums = _Sums(narrow=narrow)
    # The sums of no members: 0 alone.
    total: Runs = (np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64))
    for values, count in offsets:
        units = np.array(values, dtype=np.int64) // unit
        grown = sums.with_members(total, units, count)
        if grown is None:
            return None
        total = grown
    members = int((total[1] - total[0] + 1).sum())
    if not narrow and members > LARGEST_SUMSET:
        return None
    return base + _members(total) * unit


class _Sums:
    """Sums of sets of integers that start at 0, within limits of memory and time.

    Parameters
    ----------
    narrow
        Whether all sums together fit into an array (`LARGEST_SPAN`), so that convolutions can be
        used.
    """

    def __init__(self, *, narrow: bool) -> None:
        self._narrow = narrow
        self._room = MOST_ADDITIONS

    def added(self, a: Runs, b: Runs) -> Runs | None:
        """The sums of a member of each, or None if they are too many to compute."""
        pairs = a[0].size * b[0].size
        if self._narrow and pairs > MOST_PAIRS:
            return _convolved(a, b)
        # Without the second limit a million people, each adding little, would take for ever.
        if pairs > min(LARGEST_SUMSET, self._room):
            return None
        if not self._narrow:
            self._room -= pairs
        # All pairs of runs; the sums of integers of two runs have no gaps.
        first = np.add.outer(a[0], b[0]).ravel()
        last = np.add.outer(a[1], b[1]).ravel()
        return _merged(first, last)

    def doublings(self, values: Integers, count: int) -> list[Runs]:
        """The sums of 1, 2, 4, .. members of a set, up to `count` and as far as possible."""
        doubled = [_merged(values, values)]
        while 1 << len(doubled) <= count:
            twice = self.added(doubled[-1], doubled[-1])
            if twice is None:
                break
            doubled.append(twice)
        return doubled

    def with_members(self, total: Runs, values: Integers, count: int) -> Runs | None:
        """The sums of a member of `total` and `count` members of a set; None if too many."""
        doubled = self.doublings(values, count)
        left = count
        # Adding members in doubles takes some 2 log2(count) additions in the place of `count`.
        while left:
            # The largest power of two of members that is not too much at once: if the sums of 8
            # have too many runs, 13 members are 4 and 4 and 4 and 1.
            most = min(len(doubled), left.bit_length())
            sums: Runs | None = None
            for k in reversed(range(most)):
                sums = self.added(total, doubled[k])
                if sums is not None:
                    left -= 1 << k
                    break
            if sums is None:
                return None
            total = sums
        return total


def _convolved(a: Runs, b: Runs) -> Runs:
    """The sums of a member of each, by a convolution of zeros and ones.

    A result counts pairs, at most 2^24 of them, and the error of the transform is below
    6 * log2(length) * 2^-53 * 2^24 < 1e-6, so that 1/2 separates none from some beyond doubt.
    """
    size = int(a[1][-1] + b[1][-1]) + 1
    # Longer than the result, so that the cyclic convolution does not wrap around.
    length = 1 << size.bit_length()
    ones = np.zeros((2, length))
    for k, runs in enumerate((a, b)):
        ones[k, _members(runs)] = 1.0
    spectra = np.fft.rfft(ones)
    sums = np.flatnonzero(np.fft.irfft(spectra[0] * spectra[1], length)[:size] > 0.5)
    return _merged(sums, sums)


def _members(runs: Runs) -> Integers:
    """All members of a set, in order."""
    first, last = runs
    lengths = last - first + 1
    # A member is its place in the whole, moved from the start of its run there to the run's first
    # member.
    starts = np.cumsum(lengths) - lengths
    return np.arange(lengths.sum()) + np.repeat(first - starts, lengths)


def _merged(first: Integers, last: Integers) -> Runs:
    """The runs of the union of runs that may overlap or touch."""
    order = np.argsort(first, kind="stable")
    first = first[order]
    # A run may lie inside of an earlier one, so the end so far is the largest of all before.
    last = np.maximum.accumulate(last[order])
    # A new run starts where a gap of at least one integer is left.
    starts = np.flatnonzero(first[1:] > last[:-1] + 1) + 1
    return first[np.append(0, starts)], last[np.append(starts, len(last)) - 1]
