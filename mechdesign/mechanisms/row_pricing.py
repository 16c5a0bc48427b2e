"""The program of least change of a large node, by column generation.

The program (`row_program`) has a variable W(y|x) for every pair of symbols, which are a million for
1,000 symbols. Few of them are used. So it begins with those that keep a symbol as it is, and those
that lead to the most frequent symbol: a constant is among them, and a constant keeps every bound.
Then, in rounds, the pairs join whose reduced costs are most negative,

    cost(x, y) - u_x - sum over r of v_{y,r} (p(x) / p(y)) G[y, r, x],

with the duals u of the rows that sum to one and v of the bounds of the outputs (Dantzig and Wolfe
1960). Where no reduced cost is negative, the answer is that of the whole program. Whenever time is
over, the last answer keeps all bounds, and is only not the best one.

`row_node` makes a `PricedProgram` for one node and calls `solved` once. A program of 217 symbols
begins with 433 of its 47,089 pairs; each round lets some 8 * 217 join at most.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.integers import Integers
from solvers import Array

ENOUGH = 1e-9
"""Reduced cost, as a share of the records, below which a column is worth nothing."""

JOINING = 4
"""Columns that join in a round for every output, and for every symbol: more make rounds slower,
fewer make more rounds."""


DEFAULT_SIMPLEX, PRIMAL_SIMPLEX = 1, 4
"""Strategies of HiGHS; with the primal one programs whose columns join are twice as fast."""


class PricedProgram:
    """One program of least change, whose columns join as they are needed.

    Parameters
    ----------
    highs : HiGHS
    masses : (n,) array
        p(x).
    matrix : (k, m, n) array
        G: bounds of the outputs, the same for all where k is 1.
    auxiliary : (k, m) array
        Coefficients of t_y in these rows; not used where `has_ratio` is false.
    """

    def __init__(
        self,
        highs: Any,
        masses: Array,
        matrix: Array,
        auxiliary: Array,
        *,
        has_ratio: bool,
    ) -> None:
        self._highs = highs
        self._masses = masses
        self._matrix = matrix
        self._auxiliary = auxiliary
        self._has_ratio = has_ratio
        self._size = len(masses)
        self.in_time = True
        self._x: Integers = np.zeros(0, dtype=np.int64)
        self._y: Integers = np.zeros(0, dtype=np.int64)

    def solved(self, end: float) -> Array | None:
        """W(y|x) as an (n, n) array; None where not even the first round is over at `end` (of
        `time.perf_counter`).
        """
        self._begin()
        # After columns have joined, the last answer is a feasible basis of the new program.
        self._highs.setOptionValue("simplex_strategy", PRIMAL_SIMPLEX)
        answer = self._rounds(end)
        self._highs.setOptionValue("simplex_strategy", DEFAULT_SIMPLEX)
        if answer is None:
            return None
        first = 0
        if self._has_ratio:
            # The auxiliaries t_y come before the pairs.
            first = self._size
        # Pairs that joined after the last run in time have no value: they stay zero.
        values = np.zeros(len(self._x))
        values[: len(answer) - first] = answer[first:]
        shares = np.zeros((self._size, self._size))
        shares[self._x, self._y] = values
        return shares

    def _rounds(self, end: float) -> Array | None:
        """The values of the columns that are there after the last round in time."""
        answer: Array | None = None
        while self._run(end):
            answer = np.array(self._highs.getSolution().col_value)
            x, y = self._priced()
            if not len(x):
                return answer
            self._join(x, y)
        self.in_time = False
        return answer

    def _begin(self) -> None:
        """The program of the symbols as they are, and of the most frequent one for all."""
        import highspy

        n = self._size
        m = self._matrix.shape[1]
        program = highspy.HighsLp()
        program.num_col_ = 0
        program.num_row_ = n + n * m
        program.row_lower_ = np.concatenate(
            [np.ones(n), np.full(n * m, -highspy.kHighsInf)]
        )
        program.row_upper_ = np.concatenate([np.ones(n), np.zeros(n * m)])
        if self._has_ratio:
            # The auxiliaries t_y come first, so that the places of the pairs only grow.
            program.num_col_ = n
            program.col_cost_ = np.zeros(n)
            program.col_lower_ = np.zeros(n)
            program.col_upper_ = np.full(n, highspy.kHighsInf)
            program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
            program.a_matrix_.start_ = np.arange(n + 1) * m
            program.a_matrix_.index_ = n + np.arange(n * m)
            weights = np.broadcast_to(self._auxiliary, (n, m))
            program.a_matrix_.value_ = weights.ravel()
        self._highs.passModel(program)
        # The pairs (x, x), and (x, heaviest) for every other x.
        symbols = np.arange(n)
        heaviest = int(np.argmax(self._masses))
        others = symbols[symbols != heaviest]
        x = np.concatenate([symbols, others])
        y = np.concatenate([symbols, np.full(n - 1, heaviest)])
        self._join(x, y)

    def _join(self, x: Integers, y: Integers) -> None:
        """Add the columns of pairs of a symbol and an output, as in `row_program`."""
        import highspy

        m = self._matrix.shape[1]
        of_output = y
        if len(self._matrix) == 1:
            of_output = np.zeros_like(y)
        values = np.empty((len(x), 1 + m))
        values[:, 0] = 1.0
        quotients = (self._masses[x] / self._masses[y])[:, None]
        values[:, 1:] = quotients * self._matrix[of_output, :, x]
        index = np.empty((len(x), 1 + m), dtype=np.int32)
        index[:, 0] = x
        index[:, 1:] = self._size + y[:, None] * m + np.arange(m)
        self._highs.addCols(
            len(x),
            np.where(x == y, 0.0, self._masses[x]),
            np.zeros(len(x)),
            np.full(len(x), highspy.kHighsInf),
            values.size,
            (np.arange(len(x)) * (1 + m)).astype(np.int32),
            index.ravel(),
            values.ravel(),
        )
        self._x = np.concatenate([self._x, x])
        self._y = np.concatenate([self._y, y])

    def _run(self, end: float) -> bool:
        """Solve with the columns that are there; whether that ended in time."""
        import highspy

        seconds = end - time.perf_counter()
        if seconds <= 0.0:
            return False
        # HiGHS counts the time of all runs of one object together.
        limit = min(self._highs.getRunTime() + seconds, highspy.kHighsInf)
        self._highs.setOptionValue("time_limit", limit)
        self._highs.run()
        return self._highs.getModelStatus() == highspy.HighsModelStatus.kOptimal

    def _priced(self) -> tuple[Integers, Integers]:
        """The pairs that are worth most, some for every output and some for every symbol."""
        n = self._size
        p = self._masses
        m = self._matrix.shape[1]
        duals = np.array(self._highs.getSolution().row_dual)
        # v_{y,r} / p(y), and then its sum over r with G[y, r, x], (outputs, symbols).
        of_bounds = duals[n:].reshape(n, m) / p[:, None]
        if len(self._matrix) == 1:
            priced_bounds = of_bounds @ self._matrix[0]
        else:
            priced_bounds = np.einsum("ym,ymx->yx", of_bounds, self._matrix)
        # The formula of the module. Keeping a symbol costs nothing, and pairs that are there
        # already have nothing to gain.
        reduced = p - duals[:n] - p * priced_bounds
        reduced[np.arange(n), np.arange(n)] -= p
        reduced[self._y, self._x] = 0.0
        chosen: NDArray[np.bool_] = np.zeros((n, n), dtype=np.bool_)
        joining = min(JOINING, n)
        # Some for each output and for each symbol: with the best of all alone, one row would take
        # a whole round.
        for axis in (0, 1):
            best = np.argpartition(reduced, joining - 1, axis=axis)
            best = np.take(best, range(joining), axis=axis)
            np.put_along_axis(chosen, best, values=True, axis=axis)
        y, x = np.nonzero(chosen & (reduced < -ENOUGH))
        return x, y
