"""The linear program of least change at a node, as HiGHS takes it.

The outputs are the n symbols themselves. The program is

    minimise    sum over x and y != x of p(x) W(y|x)
    subject to  sum_y W(y|x) = 1                                         for all x,
                sum_x G[y, r, x] (p(x) / p(y)) W(y|x) + g[y, r] t_y <= 0  for all y and r,
                W >= 0, t >= 0,

with the bounds r of `row_lifts.output_rows`, G and g. Their rows are divided by p(y), so that the
tolerance of the solver is relative to the mass of the output: without it an output of little mass
could break its bounds by far. For two symbols and one bound that is two rows of sums, two rows of
bounds, and the four variables W(0|0), W(1|0), W(0|1), W(1|1).

`row_node` solves the program of small nodes as a whole; `row_pricing` that of large ones by column
generation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.integers import Integers
from mechdesign.mechanisms.row_budgets import Bounds
from mechdesign.mechanisms.row_lifts import NodeTable, output_rows
from solvers import Array


def least_change_program(table: NodeTable, bounds: Bounds) -> Any:
    """The linear program of least change as HiGHS takes it.

    Variables are W(y|x) at place x n + y, then one auxiliary t_y for each output where quotients
    are bounded.
    """
    p = table.masses
    n = len(p)
    matrix, auxiliary = output_rows(table.lifts, bounds)
    outputs, m, _ = matrix.shape
    pattern = _pattern(n, m, bounds.has_ratio)
    # The column of each W(y|x): its 1 in the sum of row x, then its m entries in the bounds of y.
    entries = np.empty((n * n, 1 + m))
    entries[:, 0] = 1.0
    ratio_of_masses = (p[pattern.x] / p[pattern.y])[:, None]
    # One matrix for all outputs, or that of each.
    of_output: Integers | int = 0
    if outputs > 1:
        of_output = pattern.y
    entries[:, 1:] = ratio_of_masses * matrix[of_output, :, pattern.x]
    values = entries.ravel()
    columns = n * n
    if bounds.has_ratio:
        columns += n
        weights = np.broadcast_to(auxiliary, (n, m))
        values = np.concatenate([values, weights.ravel()])
    # What changes costs its mass; the diagonal, W(x|x), costs nothing.
    cost = np.zeros(columns)
    cost[: n * n] = p[pattern.x]
    cost[: n * n : n + 1] = 0.0
    return _highs_program(pattern, cost, values, n, m)


@dataclass(frozen=True, eq=False)
class Pattern:
    """Where the entries of the program are, which depends on nothing but the sizes.

    `x` and `y` are the symbol and the output of each of the first n^2 variables. Column j of the
    matrix has its entries in the rows ``indices[starts[j]:starts[j + 1]]``.
    """

    x: Integers
    y: Integers
    starts: NDArray[np.int32]
    indices: NDArray[np.int32]


@lru_cache(maxsize=64)
def _pattern(n: int, m: int, has_ratio: bool) -> Pattern:
    """The pattern for n symbols and m rows of each output; nodes of one size share it."""
    x = np.repeat(np.arange(n), n)
    y = np.tile(np.arange(n), n)
    # W(y|x) is in the sum of row x, and in all m rows of the output y.
    index = np.empty((n * n, 1 + m), dtype=np.int32)
    index[:, 0] = x
    index[:, 1:] = n + y[:, None] * m + np.arange(m)
    indices = index.ravel()
    starts = np.arange(n * n + 1) * (1 + m)
    if has_ratio:
        # t_y is in the rows of the output y alone.
        auxiliary_rows = n + np.arange(n)[:, None] * m + np.arange(m)
        indices = np.concatenate([indices, auxiliary_rows.ravel().astype(np.int32)])
        starts = np.concatenate([starts, starts[-1] + np.arange(1, n + 1) * m])
    return Pattern(x, y, starts.astype(np.int32), indices)


def _highs_program(pattern: Pattern, cost: Array, values: Array, n: int, m: int) -> Any:
    """Hand the entries to HiGHS: n rows that sum to one, then m rows of each output."""
    import highspy

    columns = len(cost)
    program = highspy.HighsLp()
    program.num_col_ = columns
    program.num_row_ = n + n * m
    program.col_cost_ = cost
    program.col_lower_ = np.zeros(columns)
    program.col_upper_ = np.full(columns, highspy.kHighsInf)
    program.row_lower_ = np.concatenate(
        [np.ones(n), np.full(n * m, -highspy.kHighsInf)]
    )
    program.row_upper_ = np.concatenate([np.ones(n), np.zeros(n * m)])
    program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    program.a_matrix_.start_ = pattern.starts
    program.a_matrix_.index_ = pattern.indices
    program.a_matrix_.value_ = values
    return program
