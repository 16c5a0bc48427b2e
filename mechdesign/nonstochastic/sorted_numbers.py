"""Whether the numbers of a table come in order, and whether that can be chance.

In a table that is sorted by its numbers, the place of a record discloses its number. `Sorted.add`
sees the numbers batch by batch, and keeps whether all steps so far went up, or all down; of the
numbers it keeps the last one, and how often each occurs while an order is still possible.

Few records may be in order by chance (`Sorted.evidence`): of three different numbers two of the 6
arrangements are sorted, so the e-value against a random order is 3. Of ten, it is 10! / 2 =
1,814,400.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
from numpy.typing import NDArray

ENOUGH = 1 << 12
"""Most distinct numbers that are counted: if so many are sorted, it is not by chance."""


class Sorted:
    """Whether numbers come in ascending or descending order."""

    def __init__(self) -> None:
        self._up = self._down = True
        self._last = np.zeros(0)
        self._counts = Counter[float]()

    def add(self, values: NDArray[np.float64]) -> None:
        """The next records."""
        if not len(values):
            return
        # The first step leads from the last number of the batch before.
        steps = np.diff(np.concatenate([self._last, values]))
        self._up = self._up and not (steps < 0).any()
        self._down = self._down and not (steps > 0).any()
        self._last = values[-1:]
        if (self._up or self._down) and len(self._counts) <= ENOUGH:
            self._counts.update(values.tolist())

    def evidence(self) -> float:
        """The logarithm of an e-value against a random order.

        Of the n! / (t_1! t_2! ..) arrangements of n numbers, t_k of them equal, at most two are
        sorted.
        """
        if not self._up and not self._down:
            return -math.inf
        # lgamma(n + 1) = log n!
        ties = sum(math.lgamma(times + 1) for times in self._counts.values())
        return math.lgamma(self._counts.total() + 1) - ties - math.log(2)
