"""Least-cost programs with convex costs or the user's own constraints, modelled in cvxpy.

`ConvexProgram` reads the cost and the constraints as functions of the channel W. `_ConvexSearch`
solves the program in rounds:

1. One program is solved by cvxpy, which gives a channel W0 and multipliers (`least_cost_round`).
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
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.mechanisms.least_cost_round import (
    ConvexModel,
    Round,
    SeparatedRows,
    Tangent,
    largest,
)
from mechdesign.tables.joint import Joint
from solvers import Array
from solvers.assignment.assignment import Assigned, Assignment
from solvers.errors import BackendFailure
from solvers.robust.assignment_uncertain import MOST_CUTTING_ROUNDS, separated
from solvers.sets.uncertain import UncertainSet

cp: Any = import_module("cvxpy")

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
