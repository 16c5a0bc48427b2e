"""The channel of one node: what to release next, given what was released of the row so far.

At a node the masses q(s, x) of sensitive symbols and of the next level's symbols are known. With A[s, x] the lift of s
after x (measured against the prior of the promise) and p(x) the mass of x within the node, output y with the column
W(y|x) has the lifts

    L_s(y) = sum_x A[s, x] p(x) W(y|x) / sum_x p(x) W(y|x),

so bounds of the lifts are linear inequalities in the column. Two objectives:

- truth: the outputs are the symbols themselves, and the mass that becomes another symbol is least: a linear program;
- information: outputs are free, and I(X; Y) at the node is largest: the envelope of `solvers`.

Floating-point answers become integers over 2^53. What rounding and the tolerance of a solver break is repaired output
by output: a weight a_y on every row of a failing output y moves its lifts towards those of the node, which keep every
bound (`row_budgets`). Lifts are convex combinations, so the other outputs stay as they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.core.row_tree import DENOMINATOR
from mechdesign.core.wording import quoted
from mechdesign.mechanisms.row_budgets import MARGIN, Bounds
from solvers import Array, Polytope, SolverError, lower_envelope
from solvers.programs.highs import SHARP, highs_with

TRUTH, INFORMATION = "truth", "information"
OBJECTIVES = (TRUTH, INFORMATION)

NOISE = 1e-9
"""Entries W(y|x) below this are what a simplex method leaves, and become zeros."""

MOST_REPAIRS = 8
"""Rounds of repair, each with at least twice the weight of the last; one is usual."""

LARGEST_REPAIR = 0.5
"""Weight of repairs beyond which a constant output is the better channel."""

ENVELOPE_GAP, ENVELOPE_SECONDS = 1e-6, 2.0
"""Nats of a node within which its envelope is searched, and the most that one node may take."""


@dataclass(frozen=True, eq=False)
class NodeTable:
    """The law at a node.

    Parameters
    ----------
    lifts : (|S|, n) array
        A[s, x]; every entry finite.
    masses : (n,) array
        p(x), positive, summing to 1.
    """

    lifts: Array
    masses: Array

    def own_lifts(self) -> Array:
        """(|S|,) array: the lifts of the node itself, which every mean of outputs has."""
        return self.lifts @ self.masses

    def of_outputs(self, rows: Array) -> tuple[Array, Array]:
        """Masses of the outputs (m,) and their lifts times these masses (|S|, m) for W as an (n, m) array."""
        joint = self.masses[:, None] * rows
        return joint.sum(axis=0), self.lifts @ joint


def reachable(bounds: Bounds, own: Array, margin: float) -> Bounds:
    """Bounds moved inwards by a relative margin, as far as the node's own lifts allow."""
    lower = np.minimum(bounds.lower * (1.0 + margin), own)
    upper = np.maximum(bounds.upper * (1.0 - margin), own)
    ratio = bounds.ratio
    if math.isfinite(ratio):
        some = own[own > 0.0]
        ratio = max(ratio * (1.0 - margin), float(some.max() / some.min()))
    return Bounds(lower, upper, ratio)


class NodePrograms:
    """Solves the nodes of a tree, one after the other, with one instance of HiGHS."""

    def __init__(self, objective: str) -> None:
        if objective not in OBJECTIVES:
            raise InputError(
                f"objective ({quoted(objective)}) must be truth or information for a release of rows"
            )
        self.objective = objective
        self._highs: Any = highs_with({**SHARP, "presolve": "off"})

    def channel(self, table: NodeTable, bounds: Bounds) -> Integers:
        """(n, m) integers over 2^53 whose lifts keep the bounds; m = n with the objective truth.

        Columns without mass are zero. Where no channel is found that keeps the bounds, a single constant output.
        """
        n = len(table.masses)
        own = table.own_lifts()
        if n == 1:
            return np.full((1, 1), DENOMINATOR, dtype=np.int64)
        identity = np.eye(n)
        if _keeps(table, identity, reachable(bounds, own, MARGIN / 2)):
            return (identity * DENOMINATOR).astype(np.int64)
        inner = reachable(bounds, own, MARGIN)
        shares = self._shares(table, inner)
        if shares is not None:
            rows = _repaired(table, shares, reachable(bounds, own, MARGIN / 2))
            if rows is not None:
                return rows
        return self._constant(table)

    def _shares(self, table: NodeTable, bounds: Bounds) -> Array | None:
        """W(y|x) in floating point by the objective; None where the solver has no answer."""
        if self.objective == TRUTH:
            return self._least_change(table, bounds)
        return self._envelope(table, bounds)

    def _constant(self, table: NodeTable) -> Integers:
        """One output for all: with the objective truth the symbol of the largest mass."""
        n = len(table.masses)
        if self.objective == INFORMATION:
            return np.full((n, 1), DENOMINATOR, dtype=np.int64)
        rows = np.zeros((n, n), dtype=np.int64)
        rows[:, int(np.argmax(table.masses))] = DENOMINATOR
        return rows

    def _least_change(self, table: NodeTable, bounds: Bounds) -> Array | None:
        """W(y|x) of least mass off the diagonal, by the dual simplex method of HiGHS."""
        import highspy

        program = least_change_program(table, bounds)
        highs = self._highs
        highs.passModel(program)
        highs.run()
        if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        n = len(table.masses)
        values = np.array(highs.getSolution().col_value)[: n * n]
        return values.reshape(n, n)

    def _envelope(self, table: NodeTable, bounds: Bounds) -> Array | None:
        """W(y|x) of most information: a decomposition of p into posteriors of least entropy."""
        try:
            found = lower_envelope(
                lift_polytope(table.lifts, bounds),
                table.masses,
                gap=ENVELOPE_GAP,
                time_limit=ENVELOPE_SECONDS,
            )
        except SolverError:
            return None
        posteriors = found.points.toarray()
        return (found.weights[:, None] * posteriors / table.masses).T


def lift_polytope(lifts: Array, bounds: Bounds) -> Polytope:
    """The posteriors v over x whose lifts A v keep the bounds; quotients by an auxiliary t <= A v <= ratio t."""
    count = len(lifts)
    rows: list[Array] = []
    lower: list[Array] = []
    upper: list[Array] = []
    auxiliary: list[Array] = []
    if (bounds.lower > 0.0).any() or np.isfinite(bounds.upper).any():
        bounded = (bounds.lower > 0.0) | np.isfinite(bounds.upper)
        rows.append(lifts[bounded])
        lower.append(np.where(bounds.lower > 0.0, bounds.lower, -math.inf)[bounded])
        upper.append(bounds.upper[bounded])
        auxiliary.append(np.zeros(int(bounded.sum())))
    if math.isfinite(bounds.ratio):
        # Symbols that do not occur here have lift zero in every output; a relative promise says nothing of them.
        present = lifts.any(axis=1)
        count = int(present.sum())
        rows += [lifts[present], lifts[present]]
        lower += [np.zeros(count), np.full(count, -math.inf)]
        upper += [np.full(count, math.inf), np.zeros(count)]
        auxiliary += [np.full(count, -1.0), np.full(count, -bounds.ratio)]
    column = None
    if math.isfinite(bounds.ratio):
        column = np.concatenate(auxiliary)[:, None]
    return Polytope(
        np.vstack(rows), np.concatenate(lower), np.concatenate(upper), column
    )


def least_change_program(table: NodeTable, bounds: Bounds) -> Any:
    """The linear program of least change as HiGHS takes it.

    Variables are W(y|x) at place x n + y, then one auxiliary t_y for each output where quotients are bounded. The rows
    of an output are divided by p(y), so that tolerances are relative to masses.
    """
    import highspy

    lifts, p = table.lifts, table.masses
    n = len(p)
    # Rows G with sum_x G[r, x] p(x) W(y|x) + g[r] t_y <= 0; those that hold for every column are left out.
    above = np.flatnonzero((lifts > bounds.upper[:, None]).any(axis=1))
    below = np.flatnonzero((lifts < bounds.lower[:, None]).any(axis=1))
    general = [
        lifts[above] - bounds.upper[above, None],
        bounds.lower[below, None] - lifts[below],
    ]
    weights = [np.zeros(len(above)), np.zeros(len(below))]
    has_ratio = math.isfinite(bounds.ratio)
    if has_ratio:
        present = lifts.any(axis=1)
        general += [-lifts[present], lifts[present]]
        count = int(present.sum())
        weights += [np.ones(count), np.full(count, -bounds.ratio)]
    matrix = np.vstack(general)
    auxiliary = np.concatenate(weights)
    m = len(matrix)

    x = np.repeat(np.arange(n), n)
    y = np.tile(np.arange(n), n)
    index = np.empty((n * n, 1 + m), dtype=np.int32)
    value = np.empty((n * n, 1 + m))
    index[:, 0] = x
    value[:, 0] = 1.0
    index[:, 1:] = n + y[:, None] * m + np.arange(m)
    value[:, 1:] = (p[x] / p[y])[:, None] * matrix[:, x].T
    columns = n * n
    starts = np.arange(columns + 1) * (1 + m)
    indices = index.ravel()
    values = value.ravel()
    if has_ratio:
        columns += n
        more = n + np.arange(n)[:, None] * m + np.arange(m)
        indices = np.concatenate([indices, more.ravel().astype(np.int32)])
        values = np.concatenate([values, np.tile(auxiliary, n)])
        starts = np.concatenate([starts, starts[-1] + np.arange(1, n + 1) * m])

    program = highspy.HighsLp()
    program.num_col_ = columns
    program.num_row_ = n + n * m
    cost = np.zeros(columns)
    cost[: n * n] = np.where(x == y, 0.0, p[x])
    program.col_cost_ = cost
    program.col_lower_ = np.zeros(columns)
    program.col_upper_ = np.full(columns, highspy.kHighsInf)
    program.row_lower_ = np.concatenate(
        [np.ones(n), np.full(n * m, -highspy.kHighsInf)]
    )
    program.row_upper_ = np.concatenate([np.ones(n), np.zeros(n * m)])
    program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    program.a_matrix_.start_ = starts.astype(np.int32)
    program.a_matrix_.index_ = indices
    program.a_matrix_.value_ = values
    return program


def _excess(table: NodeTable, rows: Array, bounds: Bounds) -> tuple[Array, Array]:
    """For every bound and output by how much it is broken, and what a unit of weight on all rows gives back.

    Both are (bounds, m) arrays over bounds of single lifts and, where there is one, of all quotients.
    """
    masses, scaled = table.of_outputs(rows)
    own = table.own_lifts()
    upper = np.where(np.isfinite(bounds.upper), bounds.upper, 0.0)
    free = np.isinf(bounds.upper)
    over = np.where(free[:, None], 0.0, scaled - upper[:, None] * masses)
    under = bounds.lower[:, None] * masses - scaled
    excess = [over, under]
    room = [np.where(free, 1.0, upper - own), own - bounds.lower]
    if math.isfinite(bounds.ratio):
        present = np.flatnonzero(table.lifts.any(axis=1))
        for s in present.tolist():
            excess.append(scaled[s] - bounds.ratio * scaled[present])
            room.append(bounds.ratio * own[present] - own[s])
    both = np.vstack(excess)
    return both, np.repeat(np.concatenate(room)[:, None], both.shape[1], axis=1)


def _keeps(table: NodeTable, rows: Array, bounds: Bounds) -> bool:
    excess, _ = _excess(table, rows, bounds)
    return bool((excess <= 0.0).all())


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
        excess, room = _excess(table, rows / DENOMINATOR, bounds)
        broken = excess > 0.0
        if not broken.any():
            return rows
        if (room[broken] <= 0.0).any():
            return None
        needed = np.where(broken, excess / np.where(broken, room, 1.0), 0.0)
        weight = np.maximum(needed.max(axis=0), 4.0 / DENOMINATOR)
        failing = broken.any(axis=0)
        added = np.where(failing, np.maximum(2.0 * weight, 2.0 * added), added)
        if added.sum() > LARGEST_REPAIR:
            return None
    return None


def rounded_rows(shares: Array) -> Integers:
    """Integers over 2^53 next to rows that sum to 1; the largest entry of a row takes what rounding leaves."""
    rows = np.rint(shares * float(DENOMINATOR)).astype(np.int64)
    largest = np.argmax(rows, axis=1)
    at = np.arange(len(rows))
    rows[at, largest] += DENOMINATOR - rows.sum(axis=1)
    return rows
