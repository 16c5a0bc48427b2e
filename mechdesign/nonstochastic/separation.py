"""Integer programs over thresholds and over the pairs of answers that they separate."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.nonstochastic.milp import Program, Rows, Solution

LARGEST_PROGRAM = 2_000_000
"""Non-zero entries of a program that is handed to the solver: some 100 MB there."""

Floats = NDArray[np.float64]


class Separation:
    """Binary t_g for each gap, and z_ab = max of t_g over a <= g < b for the pairs that matter.

    Collects constraints and builds the program; a pair of neighbours (b = a + 1) is t_a itself. The
    z need not be declared integer: the rows leave them no other value once the t are integers,
    and searching over the t alone was faster.
    """

    def __init__(self, gaps: int) -> None:
        self._gaps = gaps
        self._pairs: dict[tuple[int, int], int] = {}
        self._exact: set[tuple[int, int]] = set()
        self._rows = Rows()

    def _column(self, a: int, b: int, *, exact: bool) -> int:
        """The column of pair (a, b); `exact` forbids z = 1 without a threshold between."""
        if b == a + 1:
            return a
        column = self._pairs.get((a, b))
        if column is None:
            column = self._gaps + len(self._pairs)
            self._pairs[a, b] = column
            for g in range(a, b):
                self._rows.add((column, g), (1.0, -1.0), 0.0, math.inf)
        if exact and (a, b) not in self._exact:
            self._exact.add((a, b))
            self._rows.add((column, *range(a, b)), (1.0, *[-1.0] * (b - a)), -math.inf, 0.0)
        if len(self._rows.columns) > LARGEST_PROGRAM:
            raise InputError(
                f"the integer program has more than {LARGEST_PROGRAM:,} entries; use coarser values, "
                "or method='lp', which is sufficient"
            )
        return column

    def _separated(self, members: Sequence[int], *, exact: bool) -> list[int]:
        return [self._column(a, b, exact=exact) for a, b in itertools.pairwise(members)]

    def limit_fibre(self, members: Sequence[int], outputs: int) -> None:
        """At most `outputs` cells on the fibre with these answers (sorted, distinct indices)."""
        columns = self._separated(members, exact=False)
        self._rows.add(columns, [1.0] * len(columns), -math.inf, outputs - 1.0)

    def limit_difference(self, a: Sequence[int], b: Sequence[int], outputs: int) -> None:
        """At most `outputs` cells meet exactly one of two sets of answers."""
        weights: dict[int, float] = {}
        union = sorted({*a, *b})
        for members, weight in ((union, 2.0), (a, -1.0), (b, -1.0)):
            for column in self._separated(members, exact=weight < 0):
                weights[column] = weights.get(column, 0.0) + weight
        kept = {column: weight for column, weight in weights.items() if weight}
        self._rows.add(list(kept), list(kept.values()), -math.inf, float(outputs))

    @property
    def rows(self) -> Rows:
        """The rows collected so far, to be extended by further ones."""
        return self._rows

    @property
    def columns(self) -> int:
        """Number of columns so far: gaps, then pairs."""
        return self._gaps + len(self._pairs)

    def program(self, costs: Floats, extra: Floats | None = None) -> Program:
        """The program with these costs of thresholds, and of `extra` continuous columns in [0, 1]."""
        more = np.empty(0) if extra is None else extra
        all_costs = np.concatenate((costs, np.zeros(len(self._pairs)), more))
        integer = np.zeros(all_costs.size, dtype=np.bool_)
        integer[: self._gaps] = True
        return Program(all_costs, np.zeros(all_costs.size), np.ones(all_costs.size), self._rows, integer)

    def start(self, gaps: Sequence[int], extra: int = 0) -> Floats:
        """The point with these thresholds (further columns zero)."""
        point = np.zeros(self.columns + extra)
        point[list(gaps)] = 1.0
        chosen = np.zeros(self._gaps + 1)
        chosen[1:] = np.cumsum(point[: self._gaps])
        for (a, b), column in self._pairs.items():
            point[column] = float(chosen[b] > chosen[a])
        return point

    def gaps_of(self, solution: Solution) -> list[int]:
        """The thresholds of a solution, rounded."""
        return np.flatnonzero(np.rint(solution.x[: self._gaps]) == 1).tolist()
