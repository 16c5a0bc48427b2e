"""The exact squared error of cells of sorted weighted values.

A cell is a run of neighbouring values that all get one number, and its loss is least for their
weighted mean. With cumulative sums of w, w x and w x^2 in exact fractions, the loss of a cell is
sum w x^2 - (sum w x)^2 / sum w: three differences, whatever its size. For example, the values 1, 2
and 6 of weight 1 have the mean 3 and the loss 41 - 81 / 3 = 14 = 4 + 1 + 9.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from mechdesign.core.errors import InputError
from mechdesign.nonstochastic.domains import exact_number


def exact_weights(weights: Sequence[object] | None, size: int) -> list[Fraction]:
    """`size` non-negative weights, not all zero; all ones by default."""
    if weights is None:
        return [Fraction(1)] * size
    exact = [exact_number(f"weight {k + 1}", w) for k, w in enumerate(weights)]
    if len(exact) != size:
        raise InputError(f"{size} values need {size} weights, not {len(exact)}")
    for k, weight in enumerate(exact):
        if weight < 0:
            raise InputError(f"weight {k + 1} ({float(weight):g}) must not be negative")
    # The mean error is divided by the sum of all weights.
    if not any(exact):
        raise InputError("all weights are zero; give at least one positive weight")
    return exact


@dataclass(frozen=True)
class CellLoss:
    """Exact squared error and representative of the cells of sorted values.

    A cell is a slice [a, b) of the values. All three sums of a cell are differences of cumulative
    ones, so a cell of any size takes constant time.
    """

    values: Sequence[Fraction]
    weights: Sequence[Fraction]

    @cached_property
    def _masses(self) -> list[Fraction]:
        """The weight of the values before every place."""
        return list(itertools.accumulate(self.weights, initial=Fraction(0)))

    @cached_property
    def _moments(self) -> list[Fraction]:
        """The weighted sum of the values before every place."""
        terms = [w * v for w, v in zip(self.weights, self.values, strict=True)]
        return list(itertools.accumulate(terms, initial=Fraction(0)))

    @cached_property
    def _squares(self) -> list[Fraction]:
        """The weighted sum of the squared values before every place."""
        terms = [w * v * v for w, v in zip(self.weights, self.values, strict=True)]
        return list(itertools.accumulate(terms, initial=Fraction(0)))

    def representative(self, a: int, b: int) -> Fraction:
        """The number of least loss for the cell [a, b): its weighted mean.

        It is the plain mean if all weights of the cell are 0.
        """
        mass = self._masses[b] - self._masses[a]
        # Without weight every number has no loss. The plain mean lies in the cell, which keeps the
        # numbers of consecutive cells in order.
        if not mass:
            return sum(self.values[a:b], Fraction(0)) / (b - a)
        return (self._moments[b] - self._moments[a]) / mass

    def cost(self, a: int, b: int) -> Fraction:
        """The loss of the cell [a, b), not divided by the total weight."""
        mass = self._masses[b] - self._masses[a]
        if not mass:
            return Fraction(0)
        moment = self._moments[b] - self._moments[a]
        square = self._squares[b] - self._squares[a]
        # sum w (v - mean)^2 = sum w v^2 - (sum w v)^2 / sum w. In fractions the difference loses no
        # digits, as it would in doubles.
        return square - moment**2 / mass

    def total(self, edges: Sequence[int]) -> Fraction:
        """The mean squared error of the cells between consecutive edges."""
        loss = Fraction(0)
        for a, b in itertools.pairwise(edges):
            loss += self.cost(a, b)
        return loss / sum(self.weights, Fraction(0))
