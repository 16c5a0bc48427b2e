"""The answers of a finite query, its fibres, and the gaps where a threshold can go.

A threshold separates two consecutive answers, so a quantiser of a finite query is a set of gaps:
gap g lies between values[g] and values[g + 1] (theory.md, section 7). Noiseless privacy (Farokhi 2020)
limits the outputs on a fibre, as rows of an integer program and as an exact count.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError, SolverFailure
from mechdesign.nonstochastic.fibres import (
    base_sums,
    contributions,
    is_finite,
    lattice_unit,
    others,
)
from mechdesign.nonstochastic.queries import LinearQuery, Query
from solvers.errors import BackendFailure
from solvers.programs.highs import Program, Solution, SparseRows

LARGEST_FIBRES = 20_000_000
"""Members of all fibres together that are kept: 160 MB."""

Indices = NDArray[np.int64]
P = ParamSpec("P")
T = TypeVar("T")


def solved(solve: Callable[P, T], *given: P.args, **how: P.kwargs) -> T:
    """What `solve`, of `solvers`, makes of these arguments, with the errors of this package."""
    try:
        return solve(*given, **how)
    except BackendFailure as error:
        raise SolverFailure(str(error)) from None


@dataclass(frozen=True, eq=False)
class GapProblem:
    """What a quantiser of a finite query is chosen from."""

    query: Query
    values: tuple[Fraction, ...]
    fibres: tuple[Indices, ...] = field(repr=False)

    @property
    def gaps(self) -> int:
        """Number of gaps."""
        return len(self.values) - 1

    @cached_property
    def intervals(self) -> Indices:
        """The maximal fibres as gaps: (k, 2) rows (first gap, one past the last), both increasing."""
        ends = np.concatenate([rows[:, [0, -1]] for rows in self.fibres])
        ends = np.unique(ends[ends[:, 1] > ends[:, 0]], axis=0)
        ends = ends[np.lexsort((-ends[:, 1], ends[:, 0]))]
        farthest = np.maximum.accumulate(ends[:, 1]) if ends.size else ends[:, 1]
        keep = np.ones(len(ends), dtype=np.bool_)
        keep[1:] = ends[1:, 1] > farthest[:-1]
        return ends[keep]

    @cached_property
    def runs(self) -> bool:
        """Whether every fibre is a run of consecutive answers, so that counting thresholds is exact."""
        return all(bool((np.diff(rows, axis=1) <= 1).all()) for rows in self.fibres)

    def reach(self) -> Indices:
        """For each gap g, the first gap beyond every fibre that contains g: (gaps,) integers.

        Two gaps g < h are inside one fibre iff h < reach[g].
        """
        beyond = np.arange(1, self.gaps + 1)
        first = self.intervals[:, 0]
        if first.size:
            # Maximal intervals increase in both ends: the last that starts at or before g reaches farthest.
            place = np.searchsorted(first, np.arange(self.gaps), side="right") - 1
            found = np.where(place >= 0, self.intervals[np.maximum(place, 0), 1], 0)
            beyond = np.maximum(beyond, found)
        return beyond

    def binding(self, outputs: int) -> list[tuple[int, ...]]:
        """The distinct fibres with more than `outputs` answers: the only ones that can break the budget."""
        found: dict[tuple[int, ...], None] = {}
        for rows in self.fibres:
            distinct = 1 + np.count_nonzero(np.diff(rows, axis=1), axis=1)
            for row in np.unique(rows[distinct > outputs], axis=0):
                found[tuple(np.unique(row).tolist())] = None
        return list(found)


def gap_problem(query: Query) -> GapProblem:
    """The gap problem of a query on finite domains: answers and fibres on the lattice of the contributions.

    For order statistics a linear query stands for the query: its fibres are the maximal ones.
    """
    linear = query if isinstance(query, LinearQuery) else query.largest_fibre[0]
    blocks = linear.blocks
    if not all(is_finite(block) for block in blocks):
        raise InputError(
            "optimal thresholds need finite domains (use finite(...) or integers(lo, hi)); "
            "for intervals use design_quantizer with layout 'widest' or 'levels'"
        )
    if sum(block.count for block in blocks) == 1:  # no sums, so no common unit
        alone = tuple(contributions(blocks[0]))
        return GapProblem(query, alone, (np.arange(len(alone))[None],))
    unit = lattice_unit(blocks)
    answers = base_sums(blocks, unit)
    fibres: list[Indices] = []
    for k, block in enumerate(blocks):
        bases = None if answers is None else base_sums(others(linear, k), unit)
        steps, known = (
            [int(v * unit) for v in contributions(block)],
            sum(f.size for f in fibres),
        )
        if (
            answers is None
            or bases is None
            or bases.size * len(steps) + known > LARGEST_FIBRES
        ):
            raise InputError(
                f"the query has more than {LARGEST_FIBRES:,} answers on its fibres, or answers of more than 18 digits "
                "in their common unit, too many to list; coarser values (a common unit for weights and domains) make "
                "it smaller, and design_quantizer needs no list"
            )
        fibres.append(np.searchsorted(answers, bases[:, None] + np.array(steps)))
    values = tuple(
        Fraction(v, unit) for v in ([] if answers is None else answers.tolist())
    )
    return GapProblem(query, values, tuple(fibres))


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
        self.rows = SparseRows()

    def column(self, a: int, b: int) -> int:
        """The column of pair (a, b)."""
        if b == a + 1:
            return a
        column = self._pairs.get((a, b))
        if column is None:
            column = self._gaps + len(self._pairs)
            self._pairs[a, b] = column
            for g in range(a, b):
                self.rows.add((column, g), (1.0, -1.0), 0.0, math.inf)
        if len(self.rows.columns) > LARGEST_PROGRAM:
            raise InputError(
                f"the integer program has more than {LARGEST_PROGRAM:,} entries; use coarser values, "
                "or method='earliest', which is sufficient"
            )
        return column

    @property
    def columns(self) -> int:
        """Number of columns so far: gaps, then pairs."""
        return self._gaps + len(self._pairs)

    def program(self, costs: Floats, extra: Floats | tuple[()] = ()) -> Program:
        """The program with these costs of thresholds, and of `extra` continuous columns in [0, 1]."""
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
        """The point with these thresholds."""
        point = np.zeros(self.columns)
        point[list(gaps)] = 1.0
        chosen = np.zeros(self._gaps + 1)
        chosen[1:] = np.cumsum(point[: self._gaps])
        for (a, b), column in self._pairs.items():
            point[column] = float(chosen[b] > chosen[a])
        return point

    def gaps_of(self, solution: Solution) -> list[int]:
        """The thresholds of a solution, rounded."""
        return np.flatnonzero(np.rint(solution.x[: self._gaps]) == 1).tolist()


def budget_model(problem: GapProblem, outputs: int) -> Separation:
    """The constraints of the integer program: at most `outputs` cells on every fibre that could have more."""
    model = Separation(problem.gaps)
    for fibre in problem.binding(outputs):
        columns = [model.column(a, b) for a, b in itertools.pairwise(fibre)]
        model.rows.add(columns, [1.0] * len(columns), -math.inf, outputs - 1.0)
    return model
