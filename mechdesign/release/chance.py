"""Fair coins and random orders that follow from a key, one after the other."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.integers import Integers
from mechdesign.release.draws import Key, RowNumbers

ORDER_BITS = 62
"""Bits of the random words by which things are ordered. Equal words keep their order, so this is
for orders on which no promise depends.
"""


class Chance(Protocol):
    """Fair, independent coins, and orders that are independent of them."""

    def coins(self, count: int) -> NDArray[np.bool_]:
        """As many coins, other ones at every call."""
        ...

    def order(self, count: int) -> Integers:
        """The numbers below `count` in a random order, another one at every call."""
        ...


class KeyedChance:
    """The coins and orders of a key: each call goes on where the last one ended."""

    def __init__(self, key: Key) -> None:
        self._coin_key = key.derived("coins")
        self._order_key = key.derived("order")
        self._coins = 0
        self._ordered = 0

    def coins(self, count: int) -> NDArray[np.bool_]:
        """The next coins."""
        source = RowNumbers(self._coins, count).source(self._coin_key)
        self._coins += count
        return source.below(2, count) == 1

    def order(self, count: int) -> Integers:
        """The order of the next random words."""
        source = RowNumbers(self._ordered, count).source(self._order_key)
        self._ordered += count
        return np.argsort(source.below(1 << ORDER_BITS, count), kind="stable")
