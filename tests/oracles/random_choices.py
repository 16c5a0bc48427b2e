"""Every outcome of an algorithm that throws fair coins, with its exact probability."""

from __future__ import annotations

from fractions import Fraction

import numpy as np


class ForcedChance:
    """Coins that fall as a list says, then on 0; all that fell are remembered.

    The orders follow from a seed, since means may not depend on them.
    """

    def __init__(self, forced, seed):
        self.fallen = list(forced)
        self._next = 0
        self._orders = np.random.default_rng(seed)

    def order(self, count):
        return self._orders.permutation(count)

    def coins(self, count):
        end = self._next + count
        self.fallen += [0] * (end - len(self.fallen))
        coins = self.fallen[self._next : end]
        self._next = end
        return np.array(coins, dtype=bool)


def outcomes(algorithm, seed=0):
    """(probability, outcome) of `algorithm(chance)` for every way in which its coins fall."""
    forced = []
    while True:
        chance = ForcedChance(forced, seed)
        outcome = algorithm(chance)
        yield Fraction(1, 2 ** len(chance.fallen)), outcome
        # The next way in the order of binary numbers: the last 0 becomes 1.
        forced = chance.fallen
        while forced and forced[-1] == 1:
            forced.pop()
        if not forced:
            return
        forced[-1] = 1
