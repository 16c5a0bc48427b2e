"""One round of a least-cost search with convex costs: a cvxpy program, its solution and its bound.

A round minimises the cost, or the largest of the tangents so far (Kelley 1960, "The cutting-plane
method for solving convex programs"), over the channels W(y|x) that keep the constraints and the
promise.

1. `Round` builds the program: rows of W that sum to 1, the rows of the promise on each column of W
   (`_polytope_levels`, or `_separated_levels` for an uncertain set), and the user's constraints.
2. `solve` runs it, by HiGHS if all of it is linear and by Clarabel if not.
3. Its multipliers prove a bound (`_bound`): the tangent of the cost plus those of the constraints
   (`ConvexModel`) is a linear cost, for which `solvers.assignment.assignment` has a bound. Why
   it holds is said in `least_cost_convex`.
4. The solution is cleaned of noise (`_shares`).

Invariant: the bound holds for any multipliers of the right signs, so it never rests on the
solver's own claim of optimality.

*The model*: cost and constraints as cvxpy functions of W, and their tangents. A tangent of a convex
function at a channel W0 lies nowhere above it, and is linear in W:

    cost(W) >= cost(W0) + d cost . (W - W0) = slope . W + constant.

`ConvexModel.tangent` has that of the cost at the present value of the cvxpy variable, and `priced`
adds those of the constraints. For example, the cost w^2 of a single share has the tangent w - 0.25
at w0 = 0.5: the slope 1 and the constant -0.25.

A round proves its bound with one tangent, or with a mean of
several. `largest` is the largest of them at a channel (Kelley 1960).
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import SolverFailure
from solvers import Array
from solvers.assignment.assignment import (
    SUPPORT,
    Assigned,
    Assignment,
    Multipliers,
    lower_bound,
)
from solvers.errors import BackendFailure, EmptyPolytope
from solvers.pace import passing
from solvers.programs.highs import SHARP
from solvers.robust.assignment_uncertain import priced
from solvers.sets.uncertain import UncertainSet

# -------------------------------------------------------------------------------- model

cp: Any = import_module("cvxpy")


@dataclass(frozen=True, eq=False)
class Tangent:
    """A linear function of W that lies nowhere above a convex one: slope . W + constant."""

    slope: Array
    constant: float

    def at(self, shares: Array) -> float:
        """Its value at a channel (n, n)."""
        return float((self.slope * shares).sum()) + self.constant


@dataclass(frozen=True, eq=False)
class ConvexModel:
    """The cvxpy variable W (n, n), with the cost and the user's constraints as functions of it."""

    w: Any
    cost: Any
    constraints: list[Any]

    def value(self, shares: Array) -> float:
        """The cost of a channel; it sets W to the channel."""
        self.w.value = shares
        return float(self.cost.value)

    def tangent(self) -> Tangent:
        """The tangent of the cost at the present value of W."""
        slope = gradient(self.cost, self.w, np.ones(1))
        if slope is None:
            raise SolverFailure(
                "cvxpy knows no gradient of the objective, so nothing can be proven "
                "about it"
            )
        constant = float(self.cost.value) - float((slope * self.w.value).sum())
        return Tangent(slope, constant)

    def priced(self, tangent: Tangent) -> Tangent:
        """The tangent plus those of the user's constraints, times their multipliers.

        g(W) <= 0 with nu >= 0 adds nu g(W0) + nu dg (W - W0), which is negative wherever the
        constraint holds. Multipliers of an equality may have either sign.
        """
        slope = tangent.slope
        constant = tangent.constant
        for constraint in self.constraints:
            is_equality = isinstance(constraint, cp.constraints.Equality)
            is_inequality = isinstance(constraint, cp.constraints.Inequality)
            if not is_equality and not is_inequality:
                # A cone has no such tangent. Without the constraint the bound is still valid.
                continue
            dual = np.ravel(constraint.dual_value, order="F")
            if not is_equality:
                dual = np.maximum(dual, 0.0)
            added = gradient(constraint.expr, self.w, dual)
            if added is None:
                continue
            level = dual @ np.ravel(constraint.expr.value, order="F")
            slope = slope + added
            constant += float(level - (added * self.w.value).sum())
        return Tangent(slope, constant)


def gradient(expression: Any, w: Any, prices: Array) -> Array | None:
    """The gradient by W of `prices` times an expression; None where cvxpy has none.

    A constant, which does not mention W, has the gradient zero.
    """
    if w not in expression.grad:
        return np.zeros(w.shape)
    jacobian = expression.grad[w]
    if jacobian is None:
        return None
    if isinstance(jacobian, float):
        # cvxpy returns zero gradients as a number.
        values = np.zeros(w.size)
    else:
        values = np.ravel(jacobian @ prices)
    # cvxpy stacks the columns of W.
    return values.reshape(w.shape, order="F")


def largest(tangents: Sequence[Tangent], shares: Array) -> float:
    """The piecewise linear model of the cost at a channel; minus infinity without tangents."""
    level = -math.inf
    for tangent in tangents:
        level = max(level, tangent.at(shares))
    return level


# -------------------------------------------------------------------------------- round

CLARABEL = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}
"""Tolerances of the interior point method, sharper than the default (1e-8): the audit of the
integers is exact."""


@dataclass(eq=False)
class SeparatedRows:
    """The rows of an uncertain set that columns have broken so far, each with its column.

    `margin` is the slack with which the program keeps them.
    """

    uncertain: UncertainSet
    margin: float
    blocks: list[tuple[int, Array]] = field(default_factory=list)

    @property
    def rows(self) -> Array:
        """All rows, (k, n)."""
        return np.vstack([block for _, block in self.blocks])

    @property
    def columns(self) -> NDArray[np.intp]:
        """The column of W to which each row applies, (k,)."""
        columns = [y for y, _ in self.blocks]
        sizes = [len(block) for _, block in self.blocks]
        return np.repeat(columns, sizes)


class Round:
    """The cvxpy program of one round; with tangents, the largest of them replaces the cost."""

    def __init__(
        self,
        model: ConvexModel,
        problem: Assignment,
        tangents: Sequence[Tangent],
        separated: SeparatedRows | None,
    ) -> None:
        self.model = model
        self.problem = problem
        self.tangents = tangents
        self.separated = separated
        goal = model.cost
        if tangents:
            # The least variable above all tangents is the largest of them, in linear rows.
            goal = cp.Variable()
        self._above: list[Any] = []
        for tangent in tangents:
            linear = cp.sum(cp.multiply(tangent.slope, model.w)) + tangent.constant
            self._above.append(goal >= linear)
        if separated is None:
            level = self._polytope_levels()
        else:
            level = self._separated_levels(separated)
        p = problem.masses
        # Both sides in units of the mass of their column: rare symbols count like frequent ones.
        self._sides = level >= 0.0
        self._masses = (p @ model.w) / p == 1.0
        self._program = cp.Problem(cp.Minimize(goal), self._constraints())
        self.is_linear = bool(self._program.is_lp())

    def _polytope_levels(self) -> Any:
        """The rows of the polytope on every column (m, n), positive inside."""
        n = self.problem.n
        p = self.problem.masses
        images, offset, auxiliary = self.problem.sides
        # The posterior of y is p W(y|.) / P(y). Its rows stay the same times a positive factor, and
        # without the division by P(y) they are linear in W.
        level = ((images - offset[:, None]) * p) @ self.model.w @ np.diag(1.0 / p)
        if auxiliary.shape[1]:
            # The polytope of some notions is a projection, with further variables for each column.
            lifting = cp.Variable((auxiliary.shape[1], n), nonneg=True)
            level = level + auxiliary @ lifting
        return level

    def _separated_levels(self, separated: SeparatedRows) -> Any:
        """The rows found so far, each on its own column, (k,)."""
        p = self.problem.masses
        columns = separated.columns
        rows = separated.rows - separated.margin * p
        scaled = rows / p[columns][:, None]
        return cp.sum(cp.multiply(scaled, self.model.w.T[columns]), axis=1)

    def _constraints(self) -> list[Any]:
        """All constraints: of the assignment, of the promise, of tangents, and the user's."""
        w = self.model.w
        problem = self.problem
        constraints = [
            cp.sum(w, axis=1) == 1.0,
            self._sides,
            cp.diag(w) >= problem.floors,
            *self._above,
            *self.model.constraints,
        ]
        if problem.keep:
            constraints.append(self._masses)
        if not problem.open.all():
            constraints.append(cp.multiply(~problem.open, w) == 0.0)
        return constraints

    def solve(self, proof: Assignment, end: float) -> Assigned:
        """The solution of the round, with a bound for the problem `proof`.

        Raises
        ------
        EmptyPolytope
            If the solver proves that no channel keeps the constraints.
        BackendFailure
            If it has no answer, or none before `end` (of `time.process_time`).
        """
        self._run(end)
        multipliers = self._multipliers()
        # The bound reads the values and duals of W before `value` below replaces them.
        bound = self._bound(proof, multipliers)
        shares = self._shares()
        solver = "Clarabel"
        if self.is_linear:
            solver = "HiGHS"
        return Assigned(
            shares,
            self.model.value(shares),
            bound,
            multipliers,
            f"cvxpy with {solver}",
        )

    def _run(self, end: float) -> None:
        """Solve by HiGHS if everything is linear, by Clarabel if not."""
        seconds = passing(end - time.process_time())
        options: dict[str, Any] = {
            "solver": cp.CLARABEL,
            **CLARABEL,
            "time_limit": seconds,
        }
        if self.is_linear:
            highs: dict[str, Any] = {}
            if self.separated is not None:
                highs |= SHARP
            highs["time_limit"] = seconds
            options = {"solver": cp.HIGHS, "highs_options": highs}
        with warnings.catch_warnings():
            # An inaccurate solution is judged by its bound, not by a warning.
            warnings.simplefilter("ignore", UserWarning)
            try:
                self._program.solve(**options)
            except cp.SolverError as error:
                raise BackendFailure(f"cvxpy: {error}") from None
        status = self._program.status
        if "infeasible" in status:
            # This includes "infeasible_or_unbounded": shares in [0, 1] are never unbounded.
            raise EmptyPolytope("no channel keeps to the constraints")
        is_late = status == cp.USER_LIMIT and time.process_time() >= end
        if self.model.w.value is None or is_late:
            raise BackendFailure(f"cvxpy ended with {status}")

    def _multipliers(self) -> Multipliers:
        """The duals in the units of `solvers.assignment.assignment`; those of inequalities not
        negative.
        """
        p = self.problem.masses
        prices = np.zeros(len(p))
        if self.problem.keep:
            prices = -self._masses.dual_value / p
        duals = np.maximum(self._sides.dual_value, 0.0)
        if self.separated is None:
            return Multipliers(duals / p, prices)
        no_rows = np.zeros((0, self.problem.n))
        return Multipliers(no_rows, prices, duals / p[self.separated.columns])

    def _cost_tangent(self) -> Tangent:
        """A tangent of the cost: with several so far, their mean by their multipliers."""
        if not self.tangents:
            return self.model.tangent()
        duals = [max(float(row.dual_value), 0.0) for row in self._above]
        weights = np.array(duals)
        # A mean of linear functions below the cost is below it, too.
        weights /= weights.sum()
        slope: Any = 0
        for weight, tangent in zip(weights, self.tangents, strict=True):
            slope = slope + weight * tangent.slope
        constants = [tangent.constant for tangent in self.tangents]
        return Tangent(slope, float(weights @ constants))

    def _bound(self, proof: Assignment, multipliers: Multipliers) -> float:
        """A lower bound on the cost of every channel that `proof` allows."""
        linear = self.model.priced(self._cost_tangent())
        relaxed = replace(proof, cost=linear.slope / self.problem.masses[:, None])
        if self.separated is not None:
            relaxed = priced(
                relaxed,
                self.separated.uncertain,
                self.separated.rows,
                self.separated.columns,
                multipliers,
            )
        return lower_bound(relaxed, multipliers) + linear.constant

    def _shares(self) -> Array:
        """W(y|x) with rows that sum to 1 and nothing where a pair is forbidden."""
        problem = self.problem
        shares = np.where(problem.open, np.maximum(self.model.w.value, 0.0), 0.0)
        if not self.is_linear and not problem.keep:
            # An interior point method leaves traces in a column that should be zero. Their
            # proportions are noise and would break the promise, so the column is emptied, except
            # where it is the largest of a row.
            p = problem.masses
            traces = np.flatnonzero(p @ shares <= SUPPORT * p)
            needed = shares.argmax(axis=1)
            shares[:, np.setdiff1d(traces, needed)] = 0.0
        return shares / shares.sum(axis=1)[:, None]
