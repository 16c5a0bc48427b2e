"""Bounds from multipliers in fractions, pair by pair, for small tables."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product


def least_cost(counts, costs, prices, lifts, ratios, lower, upper, targets, stay=0):
    """sum_x P(x) (stay E(x, x) + (1 - stay) min_y E(x, y)) + sum_y f_y q_y, exactly.

    Limits are those of the budgets alone, in nats, not those that follow from others.
    """
    n = len(counts[0])
    total = sum(map(sum, counts))
    shares = [Fraction(sum(row), total) for row in counts]
    masses = [sum(row[x] for row in counts) for x in range(n)]
    lift = [
        [Fraction(row[x], masses[x]) / share for x in range(n)]
        for row, share in zip(counts, shares, strict=True)
    ]
    low = Fraction(math.exp(-lower)) if lower < math.inf else Fraction(0)
    high = Fraction(math.exp(upper)) if upper < math.inf else None

    def reduced(x, y):
        value = Fraction(costs[x][y]) - Fraction(prices[y])
        for s, row in enumerate(lift):
            multiplier = Fraction(lifts[s][y])
            if multiplier:
                # Without an upper limit the largest lift is one.
                end = low if multiplier > 0 else (high or max(row))
                value -= multiplier * (row[x] - end)
            if ratios:
                value -= Fraction(ratios[s][y]) * row[x]
        return value

    bound = sum(Fraction(f) * q for f, q in zip(prices, targets, strict=True))
    for x in range(n):
        least = min(reduced(x, y) for y in range(n))
        part = stay * reduced(x, x) + (1 - stay) * least
        bound += Fraction(masses[x], total) * part
    return bound


def least_entropy(counts, prices, low, high):
    """The least H(v) - prices . v over posteriors v with the lift of the first of two secrets from
    `low` to `high`: over all its vertices, single symbols and pairs on either end.
    """
    n = len(counts[0])
    share = sum(counts[0]) / (sum(counts[0]) + sum(counts[1]))
    lift = [counts[0][x] / (counts[0][x] + counts[1][x]) / share for x in range(n)]
    best = min(
        (-prices[x] for x in range(n) if low <= lift[x] <= high), default=math.inf
    )
    for x, z in product(range(n), repeat=2):
        for end in (low, high):
            if lift[x] < end < lift[z]:
                part = (end - lift[x]) / (lift[z] - lift[x])
                entropy = -part * math.log(part) - (1 - part) * math.log(1 - part)
                value = entropy - part * prices[z] - (1 - part) * prices[x]
                best = min(best, value)
    return best
