"""Least-cost programs with convex costs or the user's own constraints, modelled in cvxpy.

`ConvexProgram` reads the cost and the constraints as functions of the channel W. `_ConvexSearch`
solves the program in rounds:

1. One program is solved by cvxpy, which gives a channel W0 and multipliers (`Round`).
2. The best channel so far and the best bound so far are kept. Where they meet, the search ends.
3. Else a relaxation is sharpened for the next round. Of an uncertain set, whose rows are too many
   to list, the rows that a column of W0 breaks are added. When none is broken, and the cost has a
   kink at W0, it is replaced by the largest of its tangents so far (Kelley 1960).

*Bound.* A convex cost lies above its tangent at the solution W0, and so does the function g of a
constraint g(W) <= 0 with a multiplier nu >= 0. Hence, for every W that keeps the constraints,

    cost(W) >= cost(W0) + nu g(W0) + (d cost + nu dg)(W - W0).

The right side is linear in W, so the bound of `solvers.assignment.assignment` holds for it. cvxpy
evaluates the tangents in double precision.

For example, let the cost be w^2 for a single share w, which the promise keeps at 0.4 or more. The
tangent at w0 = 0.5 is w - 0.25, so no channel costs less than 0.15. At w0 = 0.4 it is 0.8 w - 0.16,
which proves 0.16: the cost of w0 itself.

*One round.* A round minimises the cost, or the largest of the tangents so far (Kelley 1960, "The
cutting-plane method for solving convex programs"), over the channels W(y|x) that keep the
constraints and the promise.

1. `Round` builds the program: rows of W that sum to 1, the rows of the promise on each column of W
   (`_polytope_levels`, or `_separated_levels` for an uncertain set), and the user's constraints.
2. `solve` runs it, by HiGHS if all of it is linear and by Clarabel if not.
3. Its multipliers prove a bound (`_bound`): the tangent of the cost plus those of the constraints
   (`ConvexModel`) is a linear cost, for which `solvers.assignment.assignment` has a bound.
4. The solution is cleaned of noise (`_shares`).

Invariant: the bound holds for any multipliers of the right signs, so it never rests on the
solver's own claim of optimality.

*The model*: cost and constraints as cvxpy functions of W, and their tangents. A tangent of a convex
function at a channel W0 lies nowhere above it, and is linear in W:

    cost(W) >= cost(W0) + d cost . (W - W0) = slope . W + constant.

`ConvexModel.tangent` has that of the cost at the present value of the cvxpy variable, and `priced`
adds those of the constraints. For example, the cost w^2 of a single share has the tangent w - 0.25
at w0 = 0.5: the slope 1 and the constant -0.25.

A round proves its bound with one tangent, or with a mean of several. `largest` is the largest of
them at a channel (Kelley 1960).
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError, SolverFailure
from mechdesign.tables.joint import Joint
from solvers import Array
from solvers.assignment.assignment import (
    SUPPORT,
    Assigned,
    Assignment,
    Multipliers,
    lower_bound,
)
from solvers.assignment.robust import MOST_CUTTING_ROUNDS, priced, separated
from solvers.errors import BackendFailure, EmptyPolytope
from solvers.pace import passing
from solvers.programs import SHARP
from solvers.sets.uncertain import UncertainSet

# ---------------------------------------------------------------------------- one round

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


# ------------------------------------------------------------------------------- search

MOST_CUTS = 200
"""Tangents of a cost with kinks after which no more are added."""

CLOSED = 1e-7
"""Gap between cost and bound, relative to costs above 1, that ends the search."""

LARGEST_VIOLATION = 1e-7
"""Largest violation of a user's constraint by the integers, in its own unit."""


class ConvexProgram:
    """A cost and constraints as functions of the cvxpy variable W (n, n) and the table.

    Parameters
    ----------
    joint : Joint
    cost : callable or (n, n) array
        The cost as a convex expression of W and the table; an array holds linear costs.
    constraints : callable, optional
        One or several cvxpy constraints on W, from W and the table.
    """

    def __init__(
        self, joint: Joint, cost: Any, constraints: Callable[..., Any] | None
    ) -> None:
        n = len(joint.useful)
        w: Any = cp.Variable((n, n), nonneg=True, name="W")
        if callable(cost):
            expression = cp.sum(cost(w, joint))
        else:
            expression = cp.sum(cp.multiply(joint.p_x[:, None] * cost, w))
        own_constraints = _constraints_on(w, joint, constraints)
        self.model = ConvexModel(w, expression, own_constraints)
        program = cp.Problem(cp.Minimize(expression), own_constraints)
        if not program.is_dcp():
            raise InputError(
                "the objective and the constraints must be convex in W by the rules of cvxpy (DCP)"
            )
        for variable in program.variables():
            if variable.id != w.id:
                raise InputError(
                    "the objective and the constraints must be written with W alone, "
                    "without other variables"
                )

    @property
    def constraints(self) -> list[Any]:
        """The user's constraints."""
        return self.model.constraints

    def value(self, shares: Array) -> float:
        """The cost of a channel."""
        return self.model.value(shares)

    def violation(self, shares: Array) -> float:
        """The largest violation of the user's constraints by a channel, to which it sets W."""
        self.model.w.value = shares
        violation = 0.0
        for constraint in self.constraints:
            violation = max(violation, float(np.max(constraint.violation())))
        return violation

    def is_kept_by(self, shares: Array) -> bool:
        """Whether a channel keeps to the user's constraints."""
        return self.violation(shares) <= LARGEST_VIOLATION

    def solve(
        self,
        problem: Assignment,
        proof: Assignment,
        uncertain: UncertainSet | None,
        margin: float,
        end: float,
    ) -> Assigned:
        """The optimum of `problem`, with a bound for `proof`, searched until `end`.

        `problem` keeps a distance from the promise, so that its solution still holds it after the
        rounding to integers. `proof` keeps none, so its bound is one for every private channel.
        `margin` is that distance as a share of the room of an uncertain set.

        Raises
        ------
        EmptyPolytope
            If no channel keeps the constraints.
        BackendFailure
            If no channel was found in time.
        """
        problem.check()
        return _ConvexSearch(self, problem, proof, uncertain, margin).run(end)


def _constraints_on(
    w: Any, joint: Joint, constraints: Callable[..., Any] | None
) -> list[Any]:
    """The user's constraints as a list."""
    if constraints is None:
        return []
    if not callable(constraints):
        raise InputError(
            "constraints must be a function of W and the table, not a "
            f"{type(constraints).__name__}"
        )
    answer = constraints(w, joint)
    listed = [answer]
    if isinstance(answer, (list, tuple)):
        listed = list(answer)
    for constraint in listed:
        if not isinstance(constraint, cp.constraints.constraint.Constraint):
            raise InputError(
                "constraints must return cvxpy constraints on W, not a "
                f"{type(constraint).__name__}"
            )
    return listed


class _ConvexSearch:
    """The rounds of one search, with the best channel and the best bound so far.

    Of an uncertain set the program has the rows so far, until no column breaks one by more than
    half the margin. Until then columns are pulled inside, where the constraints allow it, so that
    there is a channel to return at any time. At a kink of the cost one tangent proves little: then
    all tangents so far, weighted by their multipliers, take the place of the cost.
    """

    def __init__(
        self,
        program: ConvexProgram,
        problem: Assignment,
        proof: Assignment,
        uncertain: UncertainSet | None,
        margin: float,
    ) -> None:
        self._program = program
        self._problem = problem
        self._proof = proof
        self._best: Assigned | None = None
        self._bound = -math.inf
        self._tangents: list[Tangent] = []
        self._separated: SeparatedRows | None = None
        if uncertain is not None:
            # The rows that the identity breaks most, so that the first program has some.
            blocks: list[tuple[int, Array]] = []
            for y, unit in enumerate(np.diag(1.0 / problem.masses)):
                blocks.append((y, uncertain.cuts(unit)))
            self._separated = SeparatedRows(uncertain, margin * uncertain.room, blocks)

    def run(self, end: float) -> Assigned:
        """Rounds until cost and bound meet, nothing is left to sharpen, or the time is over."""
        for _ in range(MOST_CUTTING_ROUNDS):
            current = Round(
                self._program.model, self._problem, self._tangents, self._separated
            )
            try:
                solution = current.solve(self._proof, end)
            except BackendFailure:
                # A later round may fail: its program has more rows, or less time.
                if self._best is None:
                    raise
                break
            self._bound = max(self._bound, solution.bound)
            is_broken = self._take(solution)
            if self._is_closed() or time.process_time() >= end:
                break
            if is_broken and not self._tangents:
                # The new rows come first: tangents outside of them prove little.
                continue
            if not self._add_tangent(solution.shares) and not is_broken:
                break
        if self._best is None:
            raise BackendFailure("no channel was found in time")
        return replace(self._best, bound=self._bound)

    def _take(self, solution: Assigned) -> bool:
        """Keep the solution if it is the best so far; whether a column broke further rows."""
        if self._separated is None:
            # All rows of the promise are in the program, so the solution keeps them.
            self._keep(solution, solution.shares)
            return False
        # At half the margin, so that a column on a row that the program has does not break it.
        _, pulled, broken = separated(
            self._problem,
            self._separated.uncertain,
            solution.shares,
            0.5 * self._separated.margin,
        )
        self._separated.blocks += broken
        is_usable = False
        if self._problem.is_free:
            # Half, because rounding to integers needs some of the tolerance.
            violation = self._program.violation(pulled)
            is_usable = violation <= 0.5 * LARGEST_VIOLATION
        if is_usable:
            self._keep(solution, pulled)
        elif not broken:
            self._keep(solution, solution.shares)
        return bool(broken)

    def _keep(self, solution: Assigned, shares: Array) -> None:
        """Keep these shares if they cost less than the best so far."""
        cost = self._program.value(shares)
        if self._best is None or cost < self._best.cost:
            self._best = replace(solution, shares=shares, cost=cost)

    def _is_closed(self) -> bool:
        """Whether cost and bound have met."""
        if self._best is None:
            return False
        gap = self._best.cost - self._bound
        return gap <= CLOSED * max(1.0, abs(self._best.cost))

    def _add_tangent(self, shares: Array) -> bool:
        """Add the tangent at a channel where the tangents so far lie below the cost there."""
        # `value` also sets W to the channel, where `tangent` then differentiates.
        value = self._program.value(shares)
        # A tenth of what ends the search: a smaller shortfall cannot be what keeps the gap open.
        shortfall = value - largest(self._tangents, shares)
        is_sharp = shortfall <= 0.1 * CLOSED * max(1.0, abs(value))
        if is_sharp or len(self._tangents) >= MOST_CUTS:
            return False
        self._tangents.append(self._program.model.tangent())
        return True
