"""Exact sums of doubles by group, collected batch by batch.

Added as doubles, 1e16, 1 and -1e16 give 0. Here they give 1, in any order of the records:

1. A double is an integer of 53 bits times a power of two (`as_integers`).
2. `ExactSums.add` cuts it into digits of 26 bits at fixed binary places, three neighbouring ones. A
   digit at place k counts units of 2^(26 k), and carries its sign.
3. The digits of each place are added up by group, in doubles, which hold these sums without
   rounding.
4. `ExactSums.totals` puts the digits of a group together, as one integer of any size.

For example, 0.75 is 50331648 units at place -1, that is times 2^-26, and -5 is -5 units at place 0.
The total in units of 2^-26 is -5 * 2^26 + 50331648, which is -4.25.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

DIGIT = 26
"""Bits of a digit of a sum. A batch of 2^25 digits, each with a carry below 2^27, still adds up
below 2^53."""

Floats = NDArray[np.float64]
Codes = NDArray[np.integer[Any]]
Indices = NDArray[np.int64]

Multiples: TypeAlias = tuple[Iterable[int], Fraction]
"""Exact numbers, as whole multiples of a unit."""


class ExactSums:
    """The exact sum of the values of every group. Groups are numbered from 0."""

    def __init__(self) -> None:
        # By binary place in digits: the digits of all groups, which may be negative.
        self._digits: dict[int, Codes] = {}

    def add(self, groups: int, present: Codes, member: Codes, values: Floats) -> None:
        """Add a batch of values.

        Parameters
        ----------
        groups
            The number of groups so far.
        present : (k,) integers
            The groups that may occur in the batch.
        member : (n,) integers
            The group of each value, as a place in `present`.
        values : (n,) array
        """
        whole, exponent = as_integers(values)
        places, shift = np.divmod(exponent, DIGIT)
        mask = (1 << DIGIT) - 1
        # A shift of up to 25 bits must not overflow, so the 53 bits are shifted in two halves: the
        # lower 27, whose digits begin at this place, and the upper 26, which are 2^27 = 2^26 * 2
        # units: one place and one bit higher.
        low = (whole & (2 * mask + 1)) << shift
        high = (whole >> (DIGIT + 1)) << (shift + 1)
        digits = (low & mask, (low >> DIGIT) + (high & mask), high >> DIGIT)
        # Values of one magnitude share their places, so each place is added for all of them.
        lowest = int(places.min(initial=0))
        occurring = np.flatnonzero(np.bincount(places - lowest)) + lowest
        for place in occurring.tolist():
            here = places == place
            signs = np.sign(values[here])
            for k, digit in enumerate(digits, start=place):
                sums = grown(self._digits.get(k, np.zeros(0, np.int64)), groups)
                self._digits[k] = sums
                signed = (digit[here] * signs).astype(np.float64)
                # Exact: see DIGIT.
                added = np.bincount(member[here], signed, present.size)
                sums[present] += added.astype(np.int64)

    def totals(self, groups: int) -> Multiples:
        """The exact sum of each group."""
        sums_by_place = self._digits or {0: np.zeros(0, np.int64)}
        lowest = min(sums_by_place)
        shifts = [(place - lowest) * DIGIT for place in sums_by_place]
        digits = [grown(sums, groups)[:groups] for sums in sums_by_place.values()]

        def totals() -> Iterator[int]:
            # One by one: a list of so many integers would take more room than the digits.
            for row in zip(*digits, strict=True):
                total = 0
                for digit, shift in zip(row, shifts, strict=True):
                    total += int(digit) << shift
                yield total

        return totals(), Fraction(2) ** (lowest * DIGIT)


def grown(array: Codes, size: int) -> Codes:
    """The array, extended by zeros to `size` or to twice its length, so that growing is cheap."""
    if array.size >= size:
        return array
    return np.pad(array, (0, max(size, 2 * array.size) - array.size))


def as_integers(values: Floats) -> tuple[Indices, Indices]:
    """The magnitudes of doubles as integers below 2^53, and their exponents of two (0 for 0)."""
    mantissa, exponent = np.frexp(np.abs(values))
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    exponents = np.where(values == 0, 0, exponent - 53).astype(np.int64)
    return whole, exponents
