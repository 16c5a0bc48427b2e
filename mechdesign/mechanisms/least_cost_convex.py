"""Least-cost programs with convex costs or further constraints of the user's own, modelled in
cvxpy.

*Bound.* A convex cost lies above its tangent at the solution W0, and so does a constraint g(W) <= 0
with its multiplier nu >= 0: cost(W) >= cost(W0) + nu g(W0) + (d cost + nu dg)(W - W0) for every W
that keeps the constraints. The right side is linear in W, so the bound of `solvers.assignment`
holds for it. Tangents are those that cvxpy evaluates, in double precision.
"""

# cvxpy has no complete types.
# pyright: basic
from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from mechdesign.core.errors import InputError, SolverFailure
from mechdesign.tables.joint import Joint
from solvers import Array
from solvers.assignment import SUPPORT, Assigned, Assignment, Multipliers, lower_bound
from solvers.assignment_simplex import MOST_CUTTING_ROUNDS, priced, separated
from solvers.errors import BackendFailure, EmptyPolytope
from solvers.programs.highs import SHARP
from solvers.uncertain import UncertainSet

cp: Any = import_module("cvxpy")
MOST_CUTS, CLOSED = 200, 1e-7
"""Tangents of a cost with kinks, and the gap (relative to costs above 1) at which they are enough.
"""

LARGEST_VIOLATION = 1e-7
"""By how much the integers may miss a constraint of the user's own, in its own unit."""

CLARABEL = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}


class ConvexProgram:
    """A cost and constraints as functions of the cvxpy variable W and the table; `cost` is None for
    linear costs.
    """

    def __init__(
        self, joint: Joint, cost: Any, constraints: Callable[..., Any] | None
    ) -> None:
        n = len(joint.useful)
        self.w: Any = cp.Variable((n, n), nonneg=True, name="W")
        linear = (
            cp.sum(cp.multiply(joint.p_x[:, None] * cost, self.w))
            if not callable(cost)
            else None
        )
        self.cost: Any = cp.sum(cost(self.w, joint)) if linear is None else linear
        if constraints is not None and not callable(constraints):
            raise InputError(
                "constraints must be a function of W and the table, not a "
                f"{type(constraints).__name__}"
            )
        given = [] if constraints is None else constraints(self.w, joint)
        self.constraints: list[Any] = (
            list(given) if isinstance(given, (list, tuple)) else [given]
        )
        for each in self.constraints:
            if not isinstance(each, cp.constraints.constraint.Constraint):
                raise InputError(
                    f"constraints must return cvxpy constraints on W, not a {type(each).__name__}"
                )
        goal = cp.Problem(cp.Minimize(self.cost), self.constraints)
        if not goal.is_dcp():
            raise InputError(
                "the objective and the constraints must be convex in W by the rules of cvxpy (DCP)"
            )
        if any(variable.id != self.w.id for variable in goal.variables()):
            raise InputError(
                "the objective and the constraints must be written with W alone, "
                "without other variables"
            )

    def solve(
        self,
        problem: Assignment,
        proof: Assignment,
        uncertain: UncertainSet | None,
        margin: float,
        end: float,
    ) -> Assigned:
        """The optimum by HiGHS if everything is linear, by Clarabel if not; with a bound for
        `proof`.

        Of an uncertain set the program has the rows found so far, until no column breaks one by
        half the margin; till then columns are pulled inside where the constraints allow it. At a
        kink one tangent proves little: the cost is replaced by its tangents so far (Kelley 1960),
        weighed by their multipliers, until cost and bound meet.
        """
        problem.check()
        is_free = bool(problem.open.all()) and not problem.floors.any()
        best, bound, broken, cuts, tangents = None, -math.inf, [], [], []
        if (
            uncertain is not None
        ):  # the rows that the identity breaks most, so that there are some
            margin *= uncertain.room
            cuts = [
                (y, uncertain.cuts(unit))
                for y, unit in enumerate(np.diag(1.0 / problem.masses))
            ]
        for _ in range(MOST_CUTTING_ROUNDS):
            try:
                made = self._once(
                    problem, proof, tangents, (uncertain, cuts, margin), end
                )
            except BackendFailure:
                if best is None:
                    raise
                break
            bound, inside = max(bound, made.bound), made.shares
            if uncertain is not None:
                _, pulled, broken = separated(problem, uncertain, inside, 0.5 * margin)
                cuts += broken
                if is_free and self.violation(pulled) <= 0.5 * LARGEST_VIOLATION:
                    inside = pulled
            cost = self.value(inside)
            if (not broken or inside is not made.shares) and (
                best is None or cost < best.cost
            ):
                best = replace(made, shares=inside, cost=cost)
            closed = best is not None and best.cost - bound <= CLOSED * max(
                1.0, abs(best.cost)
            )
            if closed or time.monotonic() >= end:
                break
            if not broken or tangents:
                value = self.value(made.shares)
                model = max(
                    (float((s * made.shares).sum()) + c for s, c in tangents),
                    default=-math.inf,
                )
                if (
                    value - model > 0.1 * CLOSED * max(1.0, abs(value))
                    and len(tangents) < MOST_CUTS
                ):
                    tangents.append(self._tangent())
                elif not broken:
                    break
        if best is None:
            raise BackendFailure("no channel was found in time")
        return replace(best, bound=bound)

    def _once(
        self,
        problem: Assignment,
        proof: Assignment,
        tangents: list[Any],
        own: tuple[Any, ...],
        end: float,
    ) -> Assigned:
        w, p, n = self.w, problem.masses, problem.n
        uncertain, cuts, margin = own
        goal = cp.Variable() if tangents else self.cost
        above = [
            goal >= cp.sum(cp.multiply(slope, w)) + constant
            for slope, constant in tangents
        ]
        if uncertain is not None:
            rows = np.vstack([more for _, more in cuts])
            of = np.repeat([y for y, _ in cuts], [len(more) for _, more in cuts])
            level = cp.sum(
                cp.multiply((rows - margin * p) / p[of][:, None], w.T[of]), axis=1
            )
        else:
            images, offset, auxiliary = problem.sides
            level = ((images - offset[:, None]) * p) @ w @ np.diag(1.0 / p)
            if auxiliary.shape[1]:
                level = level + auxiliary @ cp.Variable(
                    (auxiliary.shape[1], n), nonneg=True
                )
        sides, masses = level >= 0.0, (p @ w) / p == 1.0
        kept = [
            cp.sum(w, axis=1) == 1.0,
            sides,
            cp.diag(w) >= problem.floors,
            *above,
            *self.constraints,
        ]
        kept += [masses] * problem.keep + [cp.multiply(~problem.open, w) == 0.0] * (
            not problem.open.all()
        )
        program = cp.Problem(cp.Minimize(goal), kept)
        linear, left = program.is_lp(), max(end - time.monotonic(), 0.0)
        highs = {**({} if uncertain is None else SHARP), "time_limit": left}
        clarabel = {"solver": cp.CLARABEL, **CLARABEL, "time_limit": left}
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", UserWarning
            )  # an inaccurate solution is judged by its bound
            try:
                program.solve(
                    **(
                        {"solver": cp.HIGHS, "highs_options": highs}
                        if linear
                        else clarabel
                    )
                )
            except cp.SolverError as error:
                raise BackendFailure(f"cvxpy: {error}") from None
        if "infeasible" in program.status:  # or unbounded, which no W is
            raise EmptyPolytope("no channel keeps to the constraints")
        if w.value is None or (
            program.status == cp.USER_LIMIT and time.monotonic() >= end
        ):
            raise BackendFailure(f"cvxpy ended with {program.status}")
        prices = -masses.dual_value / p if problem.keep else np.zeros(len(p))
        nu, none = np.maximum(sides.dual_value, 0.0), np.zeros((0, n))
        found = (
            Multipliers(nu / p, prices)
            if uncertain is None
            else Multipliers(none, prices, nu / p[of])
        )
        if tangents:
            weights = np.array([max(float(row.dual_value), 0.0) for row in above])
            weights /= weights.sum()
            slope = sum(
                weight * each[0] for weight, each in zip(weights, tangents, strict=True)
            )
            constant = float(weights @ [each[1] for each in tangents])
        else:
            slope, constant = self._tangent()
        for each in self.constraints:
            equal = isinstance(each, cp.constraints.Equality)
            if not equal and not isinstance(each, cp.constraints.Inequality):
                continue  # without its tangent a constraint is left out: the bound holds all the more
            dual = np.ravel(each.dual_value, order="F")
            dual = dual if equal else np.maximum(dual, 0.0)
            tangent = _gradient(each.expr, w, dual)
            if tangent is not None:
                slope = slope + tangent
                constant += float(
                    dual @ np.ravel(each.expr.value, order="F")
                    - (tangent * w.value).sum()
                )
        relaxed = replace(proof, cost=slope / p[:, None])
        if uncertain is not None:
            relaxed = priced(relaxed, uncertain, rows, of, found)
        bound = lower_bound(relaxed, found) + constant
        shares = np.where(problem.open, np.maximum(w.value, 0.0), 0.0)
        if (
            not linear and not problem.keep
        ):  # what is left of a column that should be zero has no shape
            hardly = np.flatnonzero(p @ shares <= SUPPORT * p)
            shares[:, np.setdiff1d(hardly, shares.argmax(axis=1))] = 0.0
        shares /= shares.sum(axis=1)[:, None]
        solver = "HiGHS" if linear else "Clarabel"
        return Assigned(
            shares, self.value(shares), bound, found, f"cvxpy with {solver}"
        )

    def _tangent(self) -> tuple[Array, float]:
        slope = _gradient(self.cost, self.w, np.ones(1))
        if slope is None:
            raise SolverFailure(
                "cvxpy knows no gradient of the objective, so nothing can be proven about it"
            )
        return slope, float(self.cost.value) - float((slope * self.w.value).sum())

    def value(self, shares: Array) -> float:
        """The cost of a channel."""
        self.w.value = shares
        return float(self.cost.value)

    def violation(self, shares: Array) -> float:
        """By how much a channel misses the user's constraints."""
        self.w.value = shares
        largest = 0.0
        for constraint in self.constraints:
            largest = max(largest, float(np.max(constraint.violation())))
        return largest

    def is_kept_by(self, shares: Array) -> bool:
        """Whether a channel keeps to the user's constraints."""
        return self.violation(shares) <= LARGEST_VIOLATION


def _gradient(expression: Any, w: Any, prices: Array) -> Array | None:
    """The gradient of `prices` times an expression by W; zero for a constant, None where cvxpy has
    none.
    """
    found = expression.grad.get(w) if w in expression.grad else 0.0
    if found is None:
        return None
    values = np.zeros(w.size) if isinstance(found, float) else np.ravel(found @ prices)
    return values.reshape(w.shape, order="F")
