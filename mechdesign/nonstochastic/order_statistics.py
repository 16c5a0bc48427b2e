"""Order statistics, such as medians, of groups whose values may be too many for memory.

1. `OrderedValues.add` keeps all values with their groups, in a file if they are many
   (`SpilledArrays`).
2. `OrderedValues.ranked` takes as many groups at a time as fit into memory. A pass over all values
   gathers theirs, group by group (`_sorted_by_group`).
3. Of each group the values at the two ranks asked for are selected, without sorting the others
   (`_ranked_slice`).
4. Their means are exact: integers of one unit, a power of two.

For example, group 0 has the values 3, 1, 4 and 2.5, and group 1 has 7 and 8. Medians are the means
of ranks 2 and 3, and of ranks 1 and 2: 2.75 and 7.5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np

from mechdesign.nonstochastic.exact_sums import (
    Codes,
    Floats,
    Multiples,
    as_integers,
)
from mechdesign.nonstochastic.spilled_arrays import SpilledArrays

RANKED = 1 << 20
"""Values that are gathered at once: 8 MB."""

PASSES = 10
"""Most passes over the values; more would take longer than the memory they save is worth."""


class OrderedValues:
    """All values of groups, for order statistics. Groups are numbered from 0."""

    def __init__(self) -> None:
        self._values = SpilledArrays("i4", "f8")

    def add(self, group: Codes, values: Floats) -> None:
        """Add a batch of values and the group of each."""
        self._values.add(group, values)

    def ranked(
        self, sizes: Codes, ranks: Callable[[int], tuple[int, int]]
    ) -> Multiples:
        """The mean of two order statistics of each group, as integers and their unit.

        It is 0 for an empty group.

        Parameters
        ----------
        sizes : (groups,) integers
            The number of values of each group.
        ranks
            From the size of a group to the places, from 1, of the two values in its order.
        """
        ends = np.cumsum(sizes)
        middle = np.zeros((2, sizes.size))
        first = 0
        while first < sizes.size:
            # Groups in slices that fit into memory, with a pass over all values for each.
            start = int(ends[first] - sizes[first])
            room = max(RANKED, int(ends[-1]) // PASSES)
            # A group that is larger than the memory has a slice of its own.
            last = max(first + 1, int(np.searchsorted(ends, start + room, "right")))
            middle[:, first:last] = self._ranked_slice(first, sizes[first:last], ranks)
            first = last
        # A double is an integer times a power of two. Over the least of these powers all sums are
        # exact.
        whole, exponent = as_integers(middle)
        lowest = int(exponent.min(initial=0))
        signed = np.copysign(whole, middle).astype(np.int64)
        shifts = exponent - lowest

        def doubled_means() -> Iterator[int]:
            for low, high, low_shift, high_shift in zip(*signed, *shifts, strict=True):
                yield (int(low) << int(low_shift)) + (int(high) << int(high_shift))

        # Half of the unit of the values, because the means are doubled.
        return doubled_means(), Fraction(2) ** (lowest - 1)

    def _ranked_slice(
        self, first: int, sizes: Codes, ranks: Callable[[int], tuple[int, int]]
    ) -> Floats:
        """(2, groups) the two order statistics of the groups from `first` on, of these sizes."""
        by_group, ends = self._sorted_by_group(first, sizes)
        statistics = np.zeros((2, sizes.size))
        for k, (size, end) in enumerate(zip(sizes.tolist(), ends, strict=True)):
            if size:
                places = np.array(ranks(size)) - 1
                members = by_group[end - size : end]
                members.partition(places)
                statistics[:, k] = members[places]
        return statistics

    def _sorted_by_group(self, first: int, sizes: Codes) -> tuple[Floats, list[int]]:
        """The values of the groups from `first` on, group by group, and where each group ends."""
        ends = np.cumsum(sizes)
        by_group = np.empty(int(ends[-1]))
        # The next free place of each group; after the pass, the end of its values.
        free = ends - sizes
        for group, values in self._values:
            in_slice = (group >= first) & (group < first + sizes.size)
            group = group[in_slice] - first
            values = values[in_slice]
            # A run of equal numbers in this order is copied to the free places of its group.
            order = np.argsort(group, kind="stable")
            present, run_start, count = np.unique(
                group[order], return_index=True, return_counts=True
            )
            offsets = np.repeat(free[present] - run_start, count)
            by_group[np.arange(order.size) + offsets] = values[order]
            free[present] += count
        return by_group, free.tolist()
