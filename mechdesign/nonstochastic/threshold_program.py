"""The integer program of thresholds: the gaps of a finite query that get one, within a budget.

Binaries t_g place a threshold in gap g. Two consecutive members a < b of a fibre get different
outputs iff a threshold lies between them: z_ab = max of t_g over a <= g < b. The outputs on a fibre
number one plus the sum of its z, so the budget is linear: the sum is at most K - 1, K =
floor(2^epsilon) (docs/explanation/ranges-theory.md, 'Programs for thresholds').

For example, a fibre has the answers number 0, 1 and 3, and K is 2. Its first pair has gap 0 alone,
so z_01 is t_0; the second has gaps 1 and 2, so z_13 is at least t_1 and t_2. The budget is the row
t_0 + z_13 <= 1.

`budget_model` makes these rows for all fibres that could break the budget. A search adds costs, and
rows of its own, to the `Separation` that it returns.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.nonstochastic.answer_gaps import GapProblem
from solvers.programs.highs import Program, Solution, SparseRows

LARGEST_PROGRAM = 2_000_000
"""Most non-zero entries of a program, which take the solver some 100 MB."""

Floats = NDArray[np.float64]


class Separation:
    """The columns and rows of the program, which grow pair by pair.

    `budget_model` makes it with the rows of the budget. A search may add rows of its own with
    `column`; then `program` gives the solver's form, and `gaps_of` reads a solution.

    The columns are a binary t_g for each gap, then z_ab for pairs of consecutive members of fibres.
    A pair of neighbours (b = a + 1) is t_a itself. The z are not declared integer: once the t are
    integers the rows leave them no other value, and branching on the t alone was faster.
    """

    def __init__(self, gaps: int) -> None:
        self._gaps = gaps
        self._pairs: dict[tuple[int, int], int] = {}
        self.rows = SparseRows()

    def column(self, a: int, b: int) -> int:
        """The column of the pair (a, b), with rows z_ab >= t_g for every gap in it.

        No row bounds z_ab from above: the budget alone limits it, and only from above, so the
        smallest z decides.
        """
        # Between neighbours lies one gap only.
        if b == a + 1:
            return a
        # Many fibres have the same pair.
        column = self._pairs.get((a, b))
        if column is None:
            column = self._gaps + len(self._pairs)
            self._pairs[a, b] = column
            for g in range(a, b):
                self.rows.add((column, g), (1.0, -1.0), 0.0, math.inf)
        if len(self.rows.columns) > LARGEST_PROGRAM:
            raise InputError(
                f"the integer program has more than {LARGEST_PROGRAM:,} entries; use coarser "
                "values, or method='earliest', which is sufficient"
            )
        return column

    @property
    def columns(self) -> int:
        """Number of columns so far: gaps, then pairs."""
        return self._gaps + len(self._pairs)

    def program(self, costs: Floats, extra: Floats | tuple[()] = ()) -> Program:
        """The program with these costs of thresholds, and of further columns in [0, 1]."""
        all_costs = np.concatenate((costs, np.zeros(len(self._pairs)), extra))
        integer = np.zeros(all_costs.size, dtype=np.bool_)
        integer[: self._gaps] = True
        return Program(
            all_costs,
            np.zeros(all_costs.size),
            np.ones(all_costs.size),
            self.rows,
            integer,
        )

    def start(self, gaps: Sequence[int]) -> Floats:
        """The point with thresholds in these gaps, for the solver to improve on."""
        point = np.zeros(self.columns)
        point[list(gaps)] = 1.0
        # below[g]: thresholds in the gaps below g; a pair is separated if the numbers at its ends
        # differ.
        below = np.zeros(self._gaps + 1)
        below[1:] = np.cumsum(point[: self._gaps])
        for (a, b), column in self._pairs.items():
            point[column] = float(below[b] > below[a])
        return point

    def gaps_of(self, solution: Solution) -> list[int]:
        """The gaps with a threshold in a solution, which is rounded."""
        return np.flatnonzero(np.rint(solution.x[: self._gaps]) == 1).tolist()


def budget_model(problem: GapProblem, outputs: int) -> Separation:
    """The constraints: at most `outputs` cells on every fibre that could have more."""
    model = Separation(problem.gaps)
    for fibre in problem.binding(outputs):
        columns = [model.column(a, b) for a, b in itertools.pairwise(fibre)]
        # One output, and one more for every separated pair.
        model.rows.add(columns, [1.0] * len(columns), -math.inf, outputs - 1.0)
    return model
