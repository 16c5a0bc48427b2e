"""The question of `row_merging`: which items go to which targets, and what a change costs.

Items are rows of c columns with whole amounts, and each unit of them goes to one of the targets,
rows of the same columns that hold some units already. `Merging` has both with the weights, and
`Tables` numbers the cells of all two-way tables: of two columns with the values a, b and u, v the
row (a, v) lies in the second of four cells.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from solvers.errors import InvalidOption
from solvers.points import Array

Integers = NDArray[np.int64]

CHUNK = 4_000_000
"""Pairs of item and target that are held at once: 32 MB of costs."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Merging:
    """Items, targets, and what a change costs.

    Attributes
    ----------
    items, targets : (n, c) and (m, c) int arrays
        Codes from 0 on; the same code in a column is the same value.
    amounts : (n,) int array
        Units of each item, at least 1.
    held : (m,) int array
        Units that lie on each target and stay there.
    weights : (c,) array
        Cost of a change in each column; infinite in columns that must not change.
    places : sequence of c arrays or None
        In a column with places, one for each code, a change costs the weight times the distance of
        the two places. Columns that must not change have none.
    levels : sequence of c int arrays or None
        In a column with levels, one for each code, tables count levels in place of codes.
    worst, mean : float
        Weights of the largest and of the average change of a two-way table.
    """

    items: Integers
    amounts: Integers
    targets: Integers
    held: Integers
    weights: Array
    worst: float
    mean: float
    places: Sequence[Array | None] | None = None
    levels: Sequence[Integers | None] | None = None

    def __post_init__(self) -> None:
        width = self.items.shape[1]
        if self.targets.shape[1] != width or self.weights.shape != (width,):
            raise InvalidOption("items, targets and weights need the same columns")
        for each in (self.places, self.levels):
            if each is not None and len(each) != width:
                raise InvalidOption("places and levels need an entry for every column")
        if not len(self.targets):
            raise InvalidOption("there is no target")
        if (self.amounts < 1).any() or (self.held < 0).any():
            raise InvalidOption(
                "amounts must be at least 1, and held units not below 0"
            )
        if not (self.weights >= 0).all() or min(self.worst, self.mean) < 0:
            raise InvalidOption("weights must not be negative")

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """The pairs of columns whose tables count; a single column is paired with itself."""
        width = self.items.shape[1]
        if width == 1:
            return [(0, 0)]
        return list(itertools.combinations(range(width), 2))

    @cached_property
    def tables(self) -> Tables:
        """The cells of all two-way tables."""
        return Tables.of(self)

    def costs(self, items: Integers) -> Array:
        """The cost d of a move from each of some items to every target, (items, targets)."""
        return self._summed(self.items[items][:, None], self.targets[None])

    def costs_of(self, items: Integers, targets: Integers) -> Array:
        """The cost d of a move from items[i] to targets[i], for every i."""
        return self._summed(self.items[items], self.targets[targets])

    def _summed(self, own: Integers, other: Integers) -> Array:
        """Costs of all columns together; the columns are the last axis of both."""
        costs = np.zeros(np.broadcast_shapes(own.shape, other.shape)[:-1])
        for column, weight in enumerate(self.weights.tolist()):
            here, there = own[..., column], other[..., column]
            places = None if self.places is None else self.places[column]
            if places is not None:
                costs += weight * np.abs(places[here] - places[there])
            elif math.isinf(weight):
                costs[here != there] = math.inf
            else:
                costs += weight * (here != there)
        return costs

    def chunks(self) -> Iterator[Integers]:
        """The items in parts, so that a part's costs fit the memory."""
        size = max(1, CHUNK // len(self.targets))
        for start in range(0, len(self.items), size):
            yield np.arange(start, min(start + size, len(self.items)))


@dataclass(frozen=True, eq=False)
class Tables:
    """All two-way tables, their cells numbered one after the other.

    `of_items` and `of_targets`, (n, pairs) and (m, pairs), are the cells of each row; `pair` is the
    table of each cell, and `goal` what it held before, less what targets hold and keep.
    """

    of_items: Integers
    of_targets: Integers
    pair: Integers
    goal: Array

    @classmethod
    def of(cls, problem: Merging) -> Tables:
        """The tables of items and targets."""
        rows = np.concatenate([problem.items, problem.targets])
        for column, level in enumerate(problem.levels or ()):
            if level is not None:
                rows[:, column] = level[rows[:, column]]
        cells: list[Integers] = []
        pair: list[int] = []
        for place, (one, other) in enumerate(problem.pairs):
            width = int(rows[:, other].max()) + 1
            crossed = rows[:, one] * width + rows[:, other]
            used, cell = np.unique(crossed, return_inverse=True)
            cells.append(cell + len(pair))
            pair += [place] * len(used)
        every_cell = np.stack(cells, axis=1).astype(np.int64)
        of_items = every_cell[: len(problem.items)]
        # What targets hold is on both sides and cancels out.
        amounts = np.repeat(problem.amounts, len(problem.pairs))
        goal = sums(of_items.ravel(), amounts, len(pair))
        of_targets = every_cell[len(problem.items) :]
        return cls(of_items, of_targets, np.array(pair, dtype=np.int64), goal)

    def deviations(self, arrived: Array) -> Array:
        """What each cell has more than before, from what arrived at each target."""
        pairs = self.of_targets.shape[1]
        amounts = np.repeat(arrived, pairs)
        return sums(self.of_targets.ravel(), amounts, len(self.goal)) - self.goal

    def variations(self, arrived: Array) -> Array:
        """V_p of every pair, in units."""
        moduli = np.abs(self.deviations(arrived))
        return sums(self.pair, moduli, int(self.pair[-1]) + 1) / 2


def sums(places: Integers, values: Array | Integers, size: int) -> Array:
    """The sum of the values at each place from 0 to size - 1."""
    return np.bincount(places, weights=values, minlength=size).astype(np.float64)
