"""Exact draws from integer rows.

An output y is drawn for an input x by comparing a uniform integer u in [0, total of row x) with the
cumulative integers of row x: P(y | x) is ``rows[x][y] / total`` exactly. No floating point
anywhere. For example, with the row (3, 0, 5) over 8 the cumulated integers are 3 and 8: u = 0, 1, 2
give the output 0, and u = 3, .., 7 the output 2.

Most draws need no search. A guide table cuts [0, total) into equal buckets, and has for each
row and bucket the output, if all of the bucket leads to one; only the other buckets are searched by
bisection.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.integers import IntegerRows, Integers
from mechdesign.release.draws import Draws

CHUNK = 1 << 16
"""Records drawn at a time: the arrays of one chunk stay in the processor's cache."""

GUIDE_ENTRIES = 1 << 18
"""Entries of the guide table over all rows (1 MB): it stays in cache. Larger ones save few
searches.
"""

GUIDE_BITS = range(4, 11)
"""Leading bits of u that index the guide table; more than ten save nothing."""


class Sampler:
    """Draws outputs for codes of inputs; made once per channel.

    Parameters
    ----------
    rows : sequence of sequences of int, or IntegerRows
        The integers of every row over its outputs.
    totals : int or sequence of int
        The sum of each row, at most 2^62; one number where all rows have the same sum.

    Raises
    ------
    InputError
        If a row has another sum.
    """

    def __init__(
        self, rows: Sequence[Sequence[int]], totals: int | Sequence[int]
    ) -> None:
        integers = IntegerRows.of(rows)
        wanted = [totals] * len(integers) if isinstance(totals, int) else totals
        for x, (total, right) in enumerate(
            zip(integers.row_sums(), wanted, strict=True)
        ):
            if total != right:
                raise InputError(
                    f"row {x} sums to {total}, not to the denominator {right}"
                )
        # One bound for all records is drawn faster than a bound for each of them.
        self._common: int | None = None
        if len(set(wanted)) == 1:
            self._common = wanted[0]
        self._totals = np.array(wanted, dtype=np.int64)
        self._starts = integers.indptr
        self._outputs = integers.indices
        # Cumulated integers of each row, over its positive entries. The running sum over all rows
        # may overflow; differences modulo 2**64 are right, because rows are below 2**62.
        lengths = np.diff(integers.indptr)
        running = np.cumsum(integers.values.view(np.uint64), dtype=np.uint64)
        before = np.concatenate([np.zeros(1, np.uint64), running])[integers.indptr[:-1]]
        self._above = (running - np.repeat(before, lengths)).view(np.int64)
        # Bisection of the longest row; shorter rows have converged before.
        self._steps = int(lengths.max(initial=1) - 1).bit_length()
        # Every row gets the same number of buckets, so that a bucket is found by one multiplication
        # and one shift; channels with many rows get coarser ones.
        bits = (GUIDE_ENTRIES // max(1, len(integers))).bit_length() - 1
        bits = min(max(bits, GUIDE_BITS.start), GUIDE_BITS.stop - 1)
        # The bucket of u in row x is u >> shift[x]; rows of other totals have other shifts.
        lengths_in_bits = [(total - 1).bit_length() for total in wanted]
        self._shifts = np.array(
            [max(0, length - bits) for length in lengths_in_bits], dtype=np.int64
        )
        self._buckets = int(((self._totals - 1) >> self._shifts).max()) + 1

    @cached_property
    def _guide(self) -> NDArray[np.int32]:
        """For each row and bucket the output of all of it, or -1 if several."""
        rows = len(self._totals)
        # Both ends of a bucket lead to the same output exactly if all of the bucket does, because
        # cumulated integers grow along a row.
        x = np.repeat(np.arange(rows, dtype=np.int64), self._buckets)
        shifts = self._shifts[x]
        # Buckets beyond the total of a row are never asked for.
        ends = self._totals[x] - 1
        places = np.tile(np.arange(self._buckets, dtype=np.int64), rows)
        first = np.minimum(places << shifts, ends)
        last = np.minimum(first + ((1 << shifts) - 1), ends)
        low = self._search(x, first)
        high = self._search(x, last)
        return np.where(low == high, low, -1).astype(np.int32)

    def _search(self, codes: Integers, numbers: Integers) -> Integers:
        """The output y with cumulated(y - 1) <= u < cumulated(y), by bisection in each row."""
        low = self._starts[codes]
        high = self._starts[codes + 1] - 1
        # The invariant: the answer lies in [low, high]. All records bisect at once, also those that
        # have converged, for which `low < high` stops the lower end.
        for _ in range(self._steps):
            middle = (low + high) >> 1
            right = self._above[middle] <= numbers
            low = np.where(right & (low < high), middle + 1, low)
            high = np.where(right, high, middle)
        return self._outputs[low]

    def outputs(self, codes: Integers, numbers: Integers) -> NDArray[np.int32]:
        """The output for each input code and uniform integer."""
        # Most integers fall into a bucket of one output; only the others are searched.
        shift = self._shifts[0] if self._common is not None else self._shifts[codes]
        result = self._guide[codes * self._buckets + (numbers >> shift)]
        split = np.flatnonzero(result < 0)
        if split.size:
            result[split] = self._search(codes[split], numbers[split])
        return result

    def draw(self, codes: Integers, source: Draws) -> NDArray[np.int32]:
        """One independent output for each input code; always one integer of `source` per code."""
        result = np.empty(len(codes), dtype=np.int32)
        for start in range(0, len(codes), CHUNK):
            part = codes[start : start + CHUNK].astype(np.int64, copy=False)
            result[start : start + CHUNK] = self.outputs(
                part, self._below(part, source)
            )
        return result

    def _below(self, codes: Integers, source: Draws) -> Integers:
        """A uniform integer below the total of its row for each record."""
        if self._common is not None:
            return source.below(self._common, len(codes))
        return source.below_each(self._totals[codes])
