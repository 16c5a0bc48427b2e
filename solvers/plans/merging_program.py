"""The question of `row_merging`: which items go to which targets, and what a change costs.

Items are rows of c columns with whole amounts, and each unit of them goes to one of the targets,
rows of the same columns that hold some units already. `Merging` has both with the weights, and
`Tables` numbers the cells of all two-way tables: of two columns with the values a, b and u, v the
row (a, v) lies in the second of four cells.

*The program.* Variables: what arrives at each target, what each cell of a two-way table has too
much and too little, the largest change of a table, and the flow F of every pair. Rows:

- an item sends its amount: ``sum_y F(x, y) = amount_x``,
- a target gets what is sent: ``sum_x F(x, y) - arrived_y = 0``,
- a cell: ``sum of arrived_y over the targets in it - over + under = goal``,
- a table: ``sum of (over + under) / 2 over its cells - largest <= 0``.

So a flow has two entries only, and the tables are counted once a target.

HiGHS solves it by its interior point method without crossover. Prices, by which pairs are chosen,
are as good inside the optimal face, and integers are made afterwards, so no vertex is needed. On
70,000 pairs this takes two seconds. The simplex method needs minutes, because ties abound here.

The value of the dual is computed from the prices alone, made feasible first: prices of cells are
cut to the weight that their table has (`dual_value`). So it is a bound, up to the rounding of a
sum, however well HiGHS has solved.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.errors import BackendFailure, InvalidOption
from solvers.pace import passing
from solvers.points import Array
from solvers.programs import highs_with, run_highs, stop_at

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

    def __post_init__(self) -> None:
        width = self.items.shape[1]
        if self.targets.shape[1] != width or self.weights.shape != (width,):
            raise InvalidOption("items, targets and weights need the same columns")
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
            changes = own[..., column] != other[..., column]
            if math.isinf(weight):
                costs[changes] = math.inf
            else:
                costs += weight * changes
        return costs

    def chunks(self) -> Iterator[Integers]:
        """The items in parts, so that a part's costs fit the memory."""
        size = max(1, CHUNK // len(self.targets))
        for start in range(0, len(self.items), size):
            yield np.arange(start, min(start + size, len(self.items)))


@dataclass(frozen=True, eq=False)
class Tables:
    """All two-way tables, their cells numbered one after the other.

    `of_targets`, (m, pairs), are the cells of each target; `pair` is the table of each cell, and
    `goal` what it held before, less what targets hold and keep.
    """

    of_targets: Integers
    pair: Integers
    goal: Array

    @classmethod
    def of(cls, problem: Merging) -> Tables:
        """The tables of items and targets."""
        rows = np.concatenate([problem.items, problem.targets])
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
        return cls(of_targets, np.array(pair, dtype=np.int64), goal)

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


# ---------------------------------------------------------------------- integer program

OPTIONS: dict[str, str | int | float] = {
    "solver": "ipm",
    "run_crossover": "off",
    # One thread makes results repeatable.
    "threads": 1,
    # Bounds come from the prices, and integers are made of the flow, so four digits are enough.
    "ipm_optimality_tolerance": 1e-4,
}


@dataclass(frozen=True, eq=False)
class MergingSolution:
    """A flow on the pairs of the program, its cost, and prices.

    `item_prices` and `target_prices` give the reduced cost d(x, y) - u_x - v_y of any pair, and
    `dual_value` is a bound on the cost of all flows for which none is negative. `pair_weights` is
    the price of V_p for every two-way table: the weights `worst` and `mean`, shared out.
    """

    flow: Array
    cost: float
    dual_value: float
    item_prices: Array
    target_prices: Array
    pair_weights: Array


class MergingProgram:
    """The program, which pairs may join: `item`, `target` and `costs` by pair."""

    def __init__(self, problem: Merging, item: Integers, target: Integers) -> None:
        self._problem = problem
        self.item = item
        self.target = target
        self.costs = problem.costs_of(item, target)

    def add(self, item: Integers, target: Integers) -> int:
        """Let pairs join, and return how many were new."""
        width = len(self._problem.targets)
        known = self.item * width + self.target
        new = ~np.isin(item * width + target, known)
        item, target = item[new], target[new]
        self.item = np.concatenate([self.item, item])
        self.target = np.concatenate([self.target, target])
        self.costs = np.concatenate([self.costs, self._problem.costs_of(item, target)])
        return len(item)

    def solve(self, *, time_limit: float = math.inf) -> MergingSolution:
        """Solve on the present pairs.

        Raises
        ------
        BackendFailure
            If HiGHS finds no flow within so many seconds of processor time.
        """
        import highspy

        problem = self._problem
        highs = highs_with(OPTIONS)
        highs.setOptionValue("time_limit", min(passing(time_limit), highspy.kHighsInf))
        highs.passModel(self._model())
        stop_at(highs, time.process_time() + time_limit)
        run_highs(highs)
        solution = highs.getSolution()
        values = np.array(solution.col_value)
        prices = np.array(solution.row_dual)
        n, m = len(problem.items), len(problem.targets)
        flow = np.zeros(len(self.item))
        if solution.value_valid and solution.dual_valid and np.isfinite(prices).all():
            flow = np.maximum(values[-len(self.item) :], 0.0)
        sent = sums(self.item, flow, n)
        # An interior point is a flow and has prices wherever the method ends: the amounts are made
        # exact here, and bounds are computed from the prices. So the status does not matter.
        if not (sent > 0).all():
            status = highs.modelStatusToString(highs.getModelStatus())
            raise BackendFailure(
                f"HiGHS ended with '{status}' and no flow on a program of moves"
            )
        flow *= (problem.amounts / sent)[self.item]
        return self._priced(flow, prices[n + m :])

    def _model(self) -> Any:
        """The program as HiGHS reads it."""
        import highspy
        from scipy import sparse

        problem = self._problem
        tables = problem.tables
        n, m = len(problem.items), len(problem.targets)
        cells, pairs = len(tables.goal), len(problem.pairs)
        flows = len(self.item)
        sent = _ones(self.item, np.arange(flows), (n, flows))
        got = _ones(self.target, np.arange(flows), (m, flows))
        cell_of_target = _ones(
            tables.of_targets.ravel(), np.repeat(np.arange(m), pairs), (cells, m)
        )
        cell = sparse.identity(cells)
        half = _ones(tables.pair, np.arange(cells), (pairs, cells)) / 2
        largest = sparse.csc_matrix(-np.ones((pairs, 1)))
        # By columns: arrived, over, under, largest, flows.
        blocks: list[list[Any]] = [
            [None, None, None, None, sent],
            [-sparse.identity(m), None, None, None, got],
            [cell_of_target, -cell, cell, None, None],
            [None, half, half, largest, None],
        ]
        matrix: Any = sparse.bmat(blocks, format="csc")
        each_cell = np.full(2 * cells, problem.mean / (2 * pairs))
        costs = np.concatenate([np.zeros(m), each_cell, [problem.worst], self.costs])
        equal = np.concatenate([problem.amounts, np.zeros(m), tables.goal])

        program: Any = highspy.HighsLp()
        program.num_row_, program.num_col_ = matrix.shape
        program.col_cost_ = costs
        program.col_lower_ = np.zeros(len(costs))
        program.col_upper_ = np.full(len(costs), np.inf)
        program.row_lower_ = np.concatenate([equal, np.full(pairs, -np.inf)])
        program.row_upper_ = np.concatenate([equal, np.zeros(pairs)])
        program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        program.a_matrix_.start_ = matrix.indptr
        program.a_matrix_.index_ = matrix.indices
        program.a_matrix_.value_ = matrix.data
        return program

    def _priced(self, flow: Array, prices: Array) -> MergingSolution:
        """The solution with prices that are feasible in the dual.

        With prices z of cells and w of tables, |z| <= w / 2, w >= mean / pairs and sum w <= worst +
        mean, the cost of any flow is at least

            sum_xy F(x, y) (d(x, y) + z(y)) - sum z goal,   z(y) = sum of z over the cells of y,

        because sum w V_p is at least sum z (arrived - goal) and at most the weighted changes. An
        item pays at least its cheapest target.
        """
        problem = self._problem
        tables = problem.tables
        cells, pairs = len(tables.goal), len(problem.pairs)
        # The duals of HiGHS: of the rows of tables not positive, their sum is -worst.
        shares = np.maximum(-prices[cells:], 0.0)
        if shares.sum() > 0:
            shares *= problem.worst / shares.sum()
        weights = shares + problem.mean / pairs
        limit = weights[tables.pair] / 2
        cell_prices = np.clip(-prices[:cells], -limit, limit)
        target_prices = -cell_prices[tables.of_targets].sum(axis=1)
        # The cheapest of an item's pairs; other pairs are priced later.
        item_prices = np.full(len(problem.items), np.inf)
        reduced = self.costs - target_prices[self.target]
        np.minimum.at(item_prices, self.item, reduced)
        value = float(problem.amounts @ item_prices - cell_prices @ tables.goal)
        return MergingSolution(
            flow=flow,
            cost=self._cost(flow),
            dual_value=value,
            item_prices=item_prices,
            target_prices=target_prices,
            pair_weights=weights,
        )

    def _cost(self, flow: Array) -> float:
        """The objective of a flow."""
        problem = self._problem
        arrived = sums(self.target, flow, len(problem.targets))
        variations = problem.tables.variations(arrived)
        moved = float(self.costs @ flow)
        return (
            moved
            + problem.worst * float(variations.max())
            + problem.mean * float(variations.mean())
        )


def _ones(rows: Integers, columns: Integers, shape: tuple[int, int]) -> Any:
    """A sparse matrix with a one at each place."""
    from scipy import sparse

    return sparse.csc_matrix((np.ones(len(rows)), (rows, columns)), shape=shape)
