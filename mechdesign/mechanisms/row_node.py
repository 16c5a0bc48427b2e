"""The channel of one node: what to release next, given what was released of the row so far.

At a node the masses q(s, x) of sensitive symbols and of the next level's symbols are known. With
A[s, x] the lift of s after x (measured against the prior of the promise) and p(x) the mass of x
within the node, output y with the column W(y|x) has the lifts

    L_s(y) = sum_x A[s, x] p(x) W(y|x) / sum_x p(x) W(y|x),

so bounds of the lifts are linear inequalities in the column. They are what the prefix has left of
the promise (docs/explanation/rows-theory.md, propositions 2 and 7). Two objectives (proposition 5):

- truth: the outputs are the symbols themselves, and the mass that becomes another symbol is least:
  a linear program;
- information: outputs are free, and I(X; Y) at the node is largest: the envelope of `solvers`; or
  I(T; Y) of a task T, where the node knows its law.

Floating-point answers become integers over 2^53. What rounding and the tolerance of a solver break
is repaired output by output: a weight a_y on every row of a failing output y moves its lifts
towards those of the node, which keep every bound (`row_budgets`). Lifts are convex combinations, so
the other outputs stay as they are.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.core.row_tree import DENOMINATOR
from mechdesign.core.wording import quoted
from mechdesign.mechanisms.row_budgets import MARGIN, Bounds
from mechdesign.mechanisms.row_pricing import PricedProgram
from solvers import Array, Polytope, SolverError, lower_envelope
from solvers.programs.highs import SHARP, highs_with
from solvers.task import task_envelope

TRUTH = "truth"
INFORMATION = "information"
OBJECTIVES = (TRUTH, INFORMATION)

NOISE = 1e-9
"""Entries W(y|x) below this are what a simplex method leaves, and become zeros."""

MOST_REPAIRS = 8
"""Rounds of repair, each with at least twice the weight of the last; one is usual."""

LARGEST_REPAIR = 0.5
"""Weight of repairs beyond which a constant output is the better channel."""

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


@dataclass(frozen=True, eq=False)
class NodeTable:
    """The law at a node.

    Parameters
    ----------
    lifts : (|S|, n) array
        A[s, x]; every entry finite.
    masses : (n,) array
        p(x), positive, summing to 1.
    task : (|T|, n) array, optional
        P(t | x) at the node, where the outputs should tell of T.
    """

    lifts: Array
    masses: Array
    task: Array | None = None

    def own_lifts(self) -> Array:
        """(|S|,) array: the lifts of the node itself, which every mean of outputs has."""
        return self.lifts @ self.masses

    def of_outputs(self, rows: Array) -> tuple[Array, Array]:
        """Masses of the outputs (m,) and their lifts times these masses (|S|, m) for W as an (n, m)
        array.
        """
        joint = self.masses[:, None] * rows
        return joint.sum(axis=0), self.lifts @ joint


def reachable(bounds: Bounds, own: Array, margin: float) -> Bounds:
    """Bounds moved inwards by a relative margin, as far as the node's own lifts allow.

    A constant output has the node's own lifts, so it always stays within.
    """
    lower = np.minimum(bounds.lower * (1.0 + margin), own[:, None])
    upper = np.maximum(bounds.upper * (1.0 - margin), own[:, None])
    ratio = bounds.ratio
    if bounds.has_ratio:
        some = own[own > 0.0]
        ratio = np.maximum(ratio * (1.0 - margin), float(some.max() / some.min()))
    return Bounds(lower, upper, ratio)


class NodePrograms:
    """Solves the nodes of a tree, one after the other, with one instance of HiGHS."""

    def __init__(self, objective: str) -> None:
        if objective not in OBJECTIVES:
            raise InputError(
                f"objective ({quoted(objective)}) must be truth or information for a release of "
                "rows"
            )
        self.objective = objective
        # False once a program did not end in time; whoever grows another tree sets it to true.
        self.in_time = True
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
        own = table.own_lifts()
        if n == 1:
            return self._constant(table)
        # Solved at the whole margin, checked at half of it: the tolerance of a solver and the
        # rounding fit in between, so repairs are rare.
        checked = reachable(bounds, own, MARGIN / 2)
        if _symbols_keep(table.lifts, checked):
            return np.diag(np.full(n, DENOMINATOR, dtype=np.int64))
        shares = self._shares(table, reachable(bounds, own, MARGIN), end)
        if shares is not None:
            rows = _repaired(table, shares, checked)
            if rows is not None:
                return rows
        # No answer in time, or one beyond repair: the identity needs no solver.
        rows = _repaired(table, np.eye(n), checked)
        if rows is not None:
            return rows
        return self._constant(table)

    def _shares(self, table: NodeTable, bounds: Bounds, end: float) -> Array | None:
        """W(y|x) in floating point by the objective; None where the solver has no answer."""
        seconds = end - time.perf_counter()
        if seconds <= 0.0:
            self.in_time = False
            return None
        if self.objective == TRUTH:
            return self._least_change(table, bounds, seconds)
        if table.task is not None:
            return self._task_envelope(table, table.task, bounds, seconds)
        return self._envelope(table, bounds, seconds)

    def _constant(self, table: NodeTable) -> Integers:
        """One output for all: with the objective truth the symbol of the largest mass."""
        n = len(table.masses)
        if self.objective == INFORMATION:
            return np.full((n, 1), DENOMINATOR, dtype=np.int64)
        rows = np.zeros((n, n), dtype=np.int64)
        rows[:, int(np.argmax(table.masses))] = DENOMINATOR
        return rows

    def _least_change(
        self, table: NodeTable, bounds: Bounds, seconds: float = math.inf
    ) -> Array | None:
        """W(y|x) of least mass off the diagonal, by the simplex methods of HiGHS."""
        import highspy

        n = len(table.masses)
        highs = self._highs
        if n > LARGEST_PROGRAM:
            matrix, auxiliary = _output_rows(table.lifts, bounds)
            program = PricedProgram(
                highs, table.masses, matrix, auxiliary, has_ratio=bounds.has_ratio
            )
            shares = program.solved(time.perf_counter() + seconds)
            self.in_time = self.in_time and program.in_time
            return shares
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
        values = np.array(highs.getSolution().col_value)[: n * n]
        return values.reshape(n, n)

    def _envelope(
        self, table: NodeTable, bounds: Bounds, seconds: float
    ) -> Array | None:
        """W(y|x) of most information: a decomposition of p into posteriors of least entropy."""
        try:
            envelope = lower_envelope(
                lift_polytope(table.lifts, bounds),
                table.masses,
                gap=ENVELOPE_GAP,
                time_limit=min(ENVELOPE_SECONDS, seconds),
            )
        except SolverError:
            return None
        posteriors = envelope.points.toarray()
        # Bayes: W(y|x) = P(y) v_y(x) / p(x).
        return (envelope.weights[:, None] * posteriors / table.masses).T

    def _task_envelope(
        self, table: NodeTable, task: Array, bounds: Bounds, seconds: float
    ) -> Array | None:
        """W(y|x) of most information about the task."""
        polytope = lift_polytope(table.lifts, bounds)
        limit = min(ENVELOPE_SECONDS, seconds)
        try:
            envelope = task_envelope(
                polytope,
                polytope,
                table.masses,
                task,
                gap=TASK_GAP,
                end=time.perf_counter() + limit,
            )
        except SolverError:
            return None
        posteriors = envelope.points.toarray()
        # Bayes: W(y|x) = P(y) v_y(x) / p(x).
        return (envelope.weights[:, None] * posteriors / table.masses).T


def lift_polytope(lifts: Array, bounds: Bounds) -> Polytope:
    """The posteriors v over x whose lifts A v keep the bounds, the same for all outputs; quotients
    by an auxiliary t <= A v <= ratio t.
    """
    count = len(lifts)
    least = bounds.lower[:, 0]
    most = bounds.upper[:, 0]
    rows: list[Array] = []
    lower: list[Array] = []
    upper: list[Array] = []
    auxiliary: list[Array] = []
    if (least > 0.0).any() or np.isfinite(most).any():
        bounded = (least > 0.0) | np.isfinite(most)
        rows.append(lifts[bounded])
        lower.append(np.where(least > 0.0, least, -math.inf)[bounded])
        upper.append(most[bounded])
        auxiliary.append(np.zeros(int(bounded.sum())))
    if bounds.has_ratio:
        # Symbols that do not occur here have lift zero in every output; a relative promise says
        # nothing of them.
        present = lifts.any(axis=1)
        count = int(present.sum())
        rows += [lifts[present], lifts[present]]
        lower += [np.zeros(count), np.full(count, -math.inf)]
        upper += [np.full(count, math.inf), np.zeros(count)]
        auxiliary += [np.full(count, -1.0), np.full(count, -bounds.ratio[0])]
    column = None
    if bounds.has_ratio:
        column = np.concatenate(auxiliary)[:, None]
    return Polytope(
        np.vstack(rows), np.concatenate(lower), np.concatenate(upper), column
    )


@dataclass(frozen=True, eq=False)
class Pattern:
    """Where the entries of the program stand: it depends on nothing but the sizes.

    `x` and `y` are the symbol and the output of each of the first n^2 variables, `starts` and
    `indices` the columns.
    """

    x: Integers
    y: Integers
    starts: NDArray[np.int32]
    indices: NDArray[np.int32]


@lru_cache(maxsize=64)
def _pattern(n: int, m: int, has_ratio: bool) -> Pattern:
    """The pattern for n symbols and m rows of each output."""
    x = np.repeat(np.arange(n), n)
    y = np.tile(np.arange(n), n)
    index = np.empty((n * n, 1 + m), dtype=np.int32)
    index[:, 0] = x
    index[:, 1:] = n + y[:, None] * m + np.arange(m)
    indices = index.ravel()
    starts = np.arange(n * n + 1) * (1 + m)
    if has_ratio:
        more = n + np.arange(n)[:, None] * m + np.arange(m)
        indices = np.concatenate([indices, more.ravel().astype(np.int32)])
        starts = np.concatenate([starts, starts[-1] + np.arange(1, n + 1) * m])
    return Pattern(x, y, starts.astype(np.int32), indices)


def least_change_program(table: NodeTable, bounds: Bounds) -> Any:
    """The linear program of least change as HiGHS takes it.

    Variables are W(y|x) at place x n + y, then one auxiliary t_y for each output where quotients
    are bounded. The rows of an output are divided by p(y), so that tolerances are relative to
    masses.
    """
    p = table.masses
    n = len(p)
    matrix, auxiliary = _output_rows(table.lifts, bounds)
    outputs, m, _ = matrix.shape
    pattern = _pattern(n, m, bounds.has_ratio)
    value = np.empty((n * n, 1 + m))
    value[:, 0] = 1.0
    ratio_of_masses = (p[pattern.x] / p[pattern.y])[:, None]
    # One matrix for all outputs, or that of each.
    of_output = pattern.y if outputs > 1 else 0
    value[:, 1:] = ratio_of_masses * matrix[of_output, :, pattern.x]
    values = value.ravel()
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


def _output_rows(lifts: Array, bounds: Bounds) -> tuple[Array, Array]:
    """Rows G (k, m, n) and g (k, m) with sum_x G[y, r, x] p(x) W(y|x) + g[y, r] t_y <= 0 for every
    output y; k is 1 where all outputs have the same bounds.

    A bound that no symbol's own lift breaks holds for every mixture, and is left out.
    """
    largest = lifts.max(axis=1, keepdims=True)
    smallest = lifts.min(axis=1, keepdims=True)
    above = np.flatnonzero((largest > bounds.upper).any(axis=1))
    below = np.flatnonzero((smallest < bounds.lower).any(axis=1))
    count = len(bounds.ratio)
    # (k, m, n): bounds of some outputs may be infinite only where all are.
    general = [
        lifts[above] - bounds.upper[above].T[:, :, None],
        bounds.lower[below].T[:, :, None] - lifts[below],
    ]
    weights = [np.zeros((count, len(above))), np.zeros((count, len(below)))]
    if bounds.has_ratio:
        # t_y lies between all lifts and their largest over exp(epsilon).
        present = lifts[lifts.any(axis=1)]
        whole = (count, *present.shape)
        general += [np.broadcast_to(-present, whole), np.broadcast_to(present, whole)]
        ratios = np.broadcast_to(-bounds.ratio[:, None], (count, len(present)))
        weights += [np.ones((count, len(present))), ratios]
    return np.concatenate(general, axis=1), np.concatenate(weights, axis=1)


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


def _symbols_keep(lifts: Array, bounds: Bounds) -> bool:
    """Whether every symbol may be released as it is."""
    if (lifts > bounds.upper).any() or (lifts < bounds.lower).any():
        return False
    if not bounds.has_ratio:
        return True
    present = lifts[lifts.any(axis=1)]
    return bool((present.max(axis=0) <= bounds.ratio * present.min(axis=0)).all())


def _excess(table: NodeTable, rows: Array, bounds: Bounds) -> Array:
    """By how much every output breaks every bound, as masses: (bounds, m), positive where it does.

    First upper and lower bounds of single lifts, then quotients of all pairs where there is a bound
    of these; `_room` has the same order.
    """
    masses, scaled = table.of_outputs(rows)
    free = np.isinf(bounds.upper)
    upper = np.where(free, 0.0, bounds.upper)
    over = np.where(free, 0.0, scaled - upper * masses)
    under = bounds.lower * masses - scaled
    excess = [over, under]
    if bounds.has_ratio:
        present = scaled[table.lifts.any(axis=1)]
        excess += [own - bounds.ratio * present for own in present]
    return np.concatenate(excess)


def _room(table: NodeTable, bounds: Bounds) -> Array:
    """What a unit of weight on all rows gives back to each bound, (bounds, k): the slack of the
    node itself.
    """
    own = table.own_lifts()[:, None]
    room = [np.where(np.isinf(bounds.upper), 1.0, bounds.upper - own)]
    room.append(own - bounds.lower)
    if bounds.has_ratio:
        present = own[table.lifts.any(axis=1)]
        room += [bounds.ratio * present - lift for lift in present]
    return np.concatenate(room)


def _repaired(table: NodeTable, shares: Array, bounds: Bounds) -> Integers | None:
    """Integers next to the shares that keep the bounds; None where repairs would cost too much."""
    cleaned = np.where(shares < NOISE, 0.0, shares)
    sums = cleaned.sum(axis=1)
    if not (np.abs(sums - 1.0) < 1e-3).all():
        return None
    cleaned = cleaned / sums[:, None]
    added = np.zeros(cleaned.shape[1])
    for _ in range(MOST_REPAIRS):
        mixed = (1.0 - added.sum()) * cleaned + added
        rows = rounded_rows(mixed)
        excess = _excess(table, rows / DENOMINATOR, bounds)
        broken = excess > 0.0
        if not broken.any():
            return rows
        room = _room(table, bounds)
        if ((room <= 0.0) & broken).any():
            return None
        # An output that fails by e and has c to spare at a constant needs the weight e / c. Twice
        # that leaves room for the rounding of the next round.
        slack = np.where(room > 0.0, room, 1.0)
        needed = np.where(broken, excess / slack, 0.0)
        weight = np.maximum(needed.max(axis=0), 4.0 / DENOMINATOR)
        failing = broken.any(axis=0)
        added = np.where(failing, np.maximum(2.0 * weight, 2.0 * added), added)
        if added.sum() > LARGEST_REPAIR:
            return None
    return None


def rounded_rows(shares: Array) -> Integers:
    """Integers over 2^53 next to rows that sum to 1; the largest entry of a row takes what rounding
    leaves.
    """
    rows = np.rint(shares * float(DENOMINATOR)).astype(np.int64)
    largest = np.argmax(rows, axis=1)
    at = np.arange(len(rows))
    rows[at, largest] += DENOMINATOR - rows.sum(axis=1)
    return rows
