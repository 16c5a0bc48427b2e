"""What it costs to release one number for a cell of sorted values.

Used by the dynamic programs: a cell is a slice [a, b) of the sorted values.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.nonstochastic.domains import exact_number

Loss = Literal["squared", "absolute", "worst"]
LOSSES: tuple[Loss, ...] = ("squared", "absolute", "worst")

Floats = NDArray[np.float64]


def check_loss(loss: str) -> None:
    """Raise InputError unless `loss` is one of `LOSSES`."""
    if loss not in LOSSES:
        raise InputError(f"loss ({loss!r}) must be one of {', '.join(LOSSES)}")


def exact_weights(weights: Sequence[object] | None, size: int) -> list[Fraction]:
    """`size` non-negative weights, not all zero; all ones by default.

    Raises
    ------
    InputError
        On a wrong number of weights, a negative one, or none that is positive.
    """
    if weights is None:
        return [Fraction(1)] * size
    exact = [exact_number(f"weight {k + 1}", w) for k, w in enumerate(weights)]
    if len(exact) != size:
        raise InputError(f"{size} values need {size} weights, not {len(exact)}")
    for k, weight in enumerate(exact):
        if weight < 0:
            raise InputError(f"weight {k + 1} ({float(weight):g}) must not be negative")
    if not any(exact):
        raise InputError("all weights are zero; give at least one positive weight")
    return exact


@dataclass(frozen=True)
class CellLoss:
    """Exact loss and representative of one cell.

    Parameters
    ----------
    values, weights
        Sorted values and their weights.
    loss
        "squared": weighted sum of squares about the weighted mean; "absolute": weighted sum of
        distances to a weighted median; "worst": half the width, about the mid-range (weights
        play no part).
    """

    values: Sequence[Fraction]
    weights: Sequence[Fraction]
    loss: Loss

    def representative(self, a: int, b: int) -> Fraction:
        """What is released for the cell [a, b)."""
        if self.loss == "worst":
            return (self.values[a] + self.values[b - 1]) / 2
        mass = sum(self.weights[a:b], Fraction(0))
        if not mass:
            return sum(self.values[a:b], Fraction(0)) / (b - a)
        if self.loss == "squared":
            return (
                sum((w * v for w, v in zip(self.weights[a:b], self.values[a:b], strict=True)), Fraction(0))
                / mass
            )
        below = Fraction(0)
        for k in range(a, b):
            below += self.weights[k]
            if 2 * below >= mass:
                return self.values[k]
        return self.values[b - 1]

    def cost(self, a: int, b: int) -> Fraction:
        """The loss of the cell [a, b), not divided by the total weight."""
        middle = self.representative(a, b)
        if self.loss == "worst":
            return self.values[b - 1] - middle
        power = 2 if self.loss == "squared" else 1
        pairs = zip(self.weights[a:b], self.values[a:b], strict=True)
        return sum((w * abs(v - middle) ** power for w, v in pairs), Fraction(0))

    def total(self, edges: Sequence[int]) -> Fraction:
        """The distortion of the cells between consecutive edges: a mean, or the largest for "worst"."""
        costs = [self.cost(a, b) for a, b in itertools.pairwise(edges)]
        if self.loss == "worst":
            return max(costs)
        return sum(costs, Fraction(0)) / sum(self.weights, Fraction(0))


def cost_matrix(values: Floats, weights: Floats, loss: Loss) -> Floats:
    """Cost of every cell [a, b): (m + 1, m + 1), infinite unless a < b.

    Squared losses are updated one value at a time (Welford), which keeps their relative accuracy.
    """
    size = values.size
    costs = np.full((size + 1, size + 1), np.inf)
    if loss == "worst":
        for a in range(size):
            costs[a, a + 1 :] = (values[a:] - values[a]) / 2
        return costs
    if loss == "absolute":
        mass, moment = (np.concatenate(([0.0], np.cumsum(w))) for w in (weights, weights * values))
        for a in range(size):
            ends = np.arange(a + 1, size + 1)
            last = np.asarray(np.searchsorted(mass, (mass[a] + mass[ends]) / 2), dtype=np.int64) - 1
            middle: NDArray[np.int64] = np.minimum(np.maximum(last, a), ends - 1)
            centre = values[middle]
            above = (moment[ends] - moment[middle]) - centre * (mass[ends] - mass[middle])
            below = centre * (mass[middle] - mass[a]) - (moment[middle] - moment[a])
            costs[a, ends] = np.maximum(above + below, 0.0)
        return costs
    mass, mean, cost = np.zeros(size), np.zeros(size), np.zeros(size)
    for length in range(1, size + 1):
        starts = np.arange(size - length + 1)
        new, weight = values[starts + length - 1], weights[starts + length - 1]
        grown = mass[starts] + weight
        share = np.divide(weight, grown, out=np.zeros_like(grown), where=grown > 0)
        shift = new - mean[starts]
        cost[starts] += mass[starts] * share * shift**2
        mean[starts] += share * shift
        mass[starts] = grown
        costs[starts, starts + length] = cost[starts]
    return costs
