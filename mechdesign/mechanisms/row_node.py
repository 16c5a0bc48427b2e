"""The channel of one node: what to release next, given what was released of the row so far.

At a node the law of the sensitive symbol and of the next level's symbol x is known (`NodeTable`),
and how far the lifts of its outputs may go (`Bounds`): that is what the prefix has left of the
promise (docs/explanation/rows-theory.md, propositions 2 and 7). `NodePrograms.channel` finds the
channel W(y|x) for one of two objectives (proposition 5):

- truth: the outputs are the symbols themselves, and the mass that becomes another symbol is least:
  a linear program (`row_program`, or `row_pricing` where there are many symbols);
- information: outputs are free, and I(X; Y) at the node is largest: the envelope of `solvers`; or
  I(T; Y) of a task T, where the node knows its law.

It takes the first of these that keeps the bounds:

1. the symbols as they are (`row_lifts.symbols_keep`);
2. the answer of the solver, as integers over 2^53 (`row_repair`);
3. the symbols mixed with a constant as far as they need it;
4. a constant, which always keeps them.

For example, two symbols of mass 1/2 with the lifts 1.5 and 0.5 of one secret, and 0.5 and 1.5 of
another, cannot be released as they are within 0.75 and 1.25. The channel of least change releases
each as the other in one of four cases: then all lifts are 1.5 * 3/4 + 0.5 / 4 = 1.25 or 0.75.
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.core.row_tree import DENOMINATOR
from mechdesign.core.wording import quoted
from mechdesign.mechanisms.row_budgets import MARGIN, Bounds
from mechdesign.mechanisms.row_lifts import (
    NodeTable,
    lift_polytope,
    output_rows,
    reachable,
    symbols_keep,
)
from mechdesign.mechanisms.row_pricing import PricedProgram
from mechdesign.mechanisms.row_program import least_change_program
from mechdesign.mechanisms.row_repair import repaired
from solvers import Array, SolverError, lower_envelope
from solvers.programs.highs import SHARP, highs_with
from solvers.task import task_envelope

TRUTH = "truth"
INFORMATION = "information"
OBJECTIVES = (TRUTH, INFORMATION)

LARGEST_PROGRAM = 100
"""Symbols of a node up to which the program of least change is solved as a whole, with the square
of that many variables; above, columns join as they are needed, which is up to three times as fast
at 217 symbols."""

LARGEST_NODE = 3000
"""Symbols of a level up to which it is designed: arrays of all pairs then have 70 MB each."""

ENVELOPE_GAP = 1e-6
"""Nats within which the envelope of a node is searched."""

TASK_GAP = 1e-5
"""The same for the task of a node, whose pricing takes longer."""

ENVELOPE_SECONDS = 2.0
"""Longest that the envelope of one node may take."""


class NodePrograms:
    """Solves the nodes of a tree, one after the other, with one instance of HiGHS.

    `row_growth` makes one for all trees of a search, sets `in_time` to true before each tree and
    calls `channel` for every node of it.
    """

    def __init__(self, objective: str) -> None:
        if objective not in OBJECTIVES:
            raise InputError(
                f"objective ({quoted(objective)}) must be truth or information for a release of "
                "rows"
            )
        self.objective = objective
        # False once a program did not end in time.
        self.in_time = True
        # The programs are small: presolving them takes longer than solving.
        self._highs: Any = highs_with({**SHARP, "presolve": "off"})

    def channel(
        self, table: NodeTable, bounds: Bounds, end: float = math.inf
    ) -> Integers:
        """(n, m) integers over 2^53 whose lifts keep the bounds; m = n with the objective truth.

        Columns without mass are zero. Where the solver has no answer before `end` (of
        `time.perf_counter`), the symbols themselves mixed with the repairs that they need; where
        that is too much, a single constant output.
        """
        n = len(table.masses)
        # The lifts of the node itself, which a constant output has.
        own_lifts = table.own_lifts()
        if n == 1:
            return self._constant(table)
        # Solved at the whole margin, checked at half of it: the tolerance of a solver and the
        # rounding fit in between, so repairs are rare.
        checked = reachable(bounds, own_lifts, MARGIN / 2)
        if symbols_keep(table.lifts, checked):
            return np.diag(np.full(n, DENOMINATOR, dtype=np.int64))
        shares = self._shares(table, reachable(bounds, own_lifts, MARGIN), end)
        if shares is not None:
            rows = repaired(table, shares, checked)
            if rows is not None:
                return rows
        # No answer in time, or one beyond repair: the identity needs no solver.
        rows = repaired(table, np.eye(n), checked)
        if rows is not None:
            return rows
        return self._constant(table)

    def _constant(self, table: NodeTable) -> Integers:
        """One output for all: with the objective truth the symbol of the largest mass."""
        n = len(table.masses)
        if self.objective == INFORMATION:
            return np.full((n, 1), DENOMINATOR, dtype=np.int64)
        rows = np.zeros((n, n), dtype=np.int64)
        rows[:, int(np.argmax(table.masses))] = DENOMINATOR
        return rows

    def _shares(self, table: NodeTable, bounds: Bounds, end: float) -> Array | None:
        """W(y|x) in floating point by the objective; None where the solver has no answer."""
        seconds = end - time.perf_counter()
        if seconds <= 0.0:
            self.in_time = False
            return None
        if self.objective == INFORMATION:
            return _most_informative(table, bounds, min(ENVELOPE_SECONDS, seconds))
        return self._least_change(table, bounds, seconds)

    def _least_change(
        self, table: NodeTable, bounds: Bounds, seconds: float = math.inf
    ) -> Array | None:
        """W(y|x) of least mass off the diagonal, by the simplex methods of HiGHS."""
        if len(table.masses) > LARGEST_PROGRAM:
            return self._solved_by_pricing(table, bounds, seconds)
        return self._solved_whole(table, bounds, seconds)

    def _solved_whole(
        self, table: NodeTable, bounds: Bounds, seconds: float
    ) -> Array | None:
        """The optimum over all pairs of symbols at once."""
        import highspy

        n = len(table.masses)
        highs = self._highs
        highs.passModel(least_change_program(table, bounds))
        # HiGHS counts the time of all runs of one object together.
        limit = min(highs.getRunTime() + seconds, highspy.kHighsInf)
        highs.setOptionValue("time_limit", limit)
        highs.run()
        status = highs.getModelStatus()
        if status == highspy.HighsModelStatus.kTimeLimit:
            self.in_time = False
        if status != highspy.HighsModelStatus.kOptimal:
            return None
        # The variables W(y|x) come before the auxiliaries.
        values = np.array(highs.getSolution().col_value)[: n * n]
        return values.reshape(n, n)

    def _solved_by_pricing(
        self, table: NodeTable, bounds: Bounds, seconds: float
    ) -> Array | None:
        """The same for many symbols, whose pairs join as they are needed."""
        matrix, auxiliary = output_rows(table.lifts, bounds)
        program = PricedProgram(
            self._highs, table.masses, matrix, auxiliary, has_ratio=bounds.has_ratio
        )
        shares = program.solved(time.perf_counter() + seconds)
        self.in_time = self.in_time and program.in_time
        return shares


def _most_informative(table: NodeTable, bounds: Bounds, seconds: float) -> Array | None:
    """W(y|x) of most information about x, or about the task: a decomposition of p into posteriors
    of least mean entropy; None where the search fails.
    """
    p = table.masses
    polytope = lift_polytope(table.lifts, bounds)
    try:
        if table.task is None:
            envelope = lower_envelope(polytope, p, gap=ENVELOPE_GAP, time_limit=seconds)
        else:
            end = time.perf_counter() + seconds
            envelope = task_envelope(
                polytope, polytope, p, table.task, gap=TASK_GAP, end=end
            )
    except SolverError:
        return None
    posteriors = envelope.points.toarray()
    # Bayes: W(y|x) = P(y) v_y(x) / p(x).
    return (envelope.weights[:, None] * posteriors / p).T
