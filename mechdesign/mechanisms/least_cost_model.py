"""The cost and the user's constraints as cvxpy functions of W, and their tangents.

A tangent of a convex function at a channel W0 lies nowhere above it, and is linear in W:

    cost(W) >= cost(W0) + d cost . (W - W0) = slope . W + constant.

`ConvexModel.tangent` has that of the cost at the present value of the cvxpy variable, and `priced`
adds those of the constraints. For example, the cost w^2 of a single share has the tangent w - 0.25
at w0 = 0.5: the slope 1 and the constant -0.25.

A round of the search (`least_cost_round`) proves its bound with one tangent, or with a mean of
several. `largest` is the largest of them at a channel (Kelley 1960).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from mechdesign.core.errors import SolverFailure
from solvers import Array

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
