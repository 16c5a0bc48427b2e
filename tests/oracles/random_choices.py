"""Every outcome of an algorithm that throws fair coins, with its exact probability."""

from __future__ import annotations

from fractions import Fraction

import numpy as np


class ForcedCoins:
    """Coins that fall as a list says, then on 0; all that fell are remembered."""

    def __init__(self, forced):
        self.fallen = list(forced)
        self._next = 0

    def __call__(self, count):
        end = self._next + count
        self.fallen += [0] * (end - len(self.fallen))
        coins = self.fallen[self._next : end]
        self._next = end
        return np.array(coins, dtype=bool)


def outcomes(algorithm):
    """(probability, outcome) of `algorithm(coins)` for every way in which its coins fall."""
    forced = []
    while True:
        coins = ForcedCoins(forced)
        outcome = algorithm(coins)
        yield Fraction(1, 2 ** len(coins.fallen)), outcome
        # The next way in the order of binary numbers: the last 0 becomes 1.
        forced = coins.fallen
        while forced and forced[-1] == 1:
            forced.pop()
        if not forced:
            return
        forced[-1] = 1
