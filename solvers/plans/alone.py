"""Multipliers that prove a bound from every output on its own, for many limits.

For given prices u_x of inputs the best bound takes, for every output y, the multipliers of

    minimise  sum_x (d(x, y) - u_x) f(x)   over shares f of the inputs that keep the limits,

a program of one output (`pricing` has the bound). All outputs have the same rows, so each starts
from the basis of the last one. Where costs are not negative, no program is worth less than 0 for
prices u = 0. So there is a bound before there is any plan: each output alone, free to take what it
likes of every input.

For example, under LDP 1 a table of 2,000 x 15 symbols has such programs of 2,000 shares and 31
rows, some 3 ms each. They prove that 20 % of the records must change if the law is kept.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from solvers.plans.pricing import Pricer
from solvers.plans.program import OPTIONS, PRIMAL_SIMPLEX, Group, Prices
from solvers.points import Array
from solvers.programs.highs import highs_with, set_options

FORBIDDEN = 1e3
"""Cost of a pair that is forbidden, in units of the largest reduced cost."""


def alone(pricer: Pricer, group: Group, inputs: Array, seconds: float) -> Prices:
    """The multipliers of every output for given prices of inputs.

    Multipliers of outputs that were not reached in `seconds` of processor time, and of a penalty,
    are 0. Outputs of large masses come first.
    """
    end = time.process_time() + seconds
    ranges = group.ranges
    o = len(group.outputs)
    prices = Prices(
        inputs,
        np.zeros(o),
        np.zeros((len(ranges.values), o)),
        np.zeros((len(ranges.compared), o)),
        np.zeros((len(ranges.penalty.forms), o)),
    )
    # Reduced costs without multipliers, which those of outputs that are done must not change.
    plain = replace(
        prices,
        ranges=np.zeros_like(prices.ranges),
        compared=np.zeros_like(prices.compared),
    )
    program = _OneOutput(group)
    for part in pricer.chunks():
        block = pricer.reduced(plain, part)
        masses = group.targets[part]
        for place in np.argsort(-masses, kind="stable"):
            if time.process_time() >= end:
                return prices
            y = part.start + int(place)
            solved = program.solve(block[:, place])
            if solved is not None:
                prices.ranges[:, y], prices.compared[:, y] = solved
    return prices


class _OneOutput:
    """The program of one output: shares of all inputs, and an auxiliary of each group."""

    def __init__(self, group: Group) -> None:
        import highspy

        ranges = group.ranges
        self._ranges = len(ranges.values)
        self._compared = len(ranges.compared)
        n = len(group.inputs)
        scaled = ranges.scales[:, None] * ranges.compared
        auxiliary = np.eye(ranges.groups)[ranges.group]
        self._columns = n + ranges.groups
        # The limits are those of proofs: mean - r >= 0 and ratio r - mean >= 0 for compared values.
        matrix = np.block(
            [
                [ranges.values, np.zeros((self._ranges, ranges.groups))],
                [scaled, -auxiliary],
                [-scaled, ranges.true_ratio * auxiliary],
                [np.ones((1, n)), np.zeros((1, ranges.groups))],
            ]
        )
        rows = len(matrix)
        infinite = highspy.kHighsInf
        nothing = np.zeros(2 * self._compared)
        lower = np.concatenate([ranges.true_lower, nothing, [1.0]])
        upper = np.concatenate([ranges.true_upper, nothing + infinite, [1.0]])
        self._optimal = highspy.HighsModelStatus.kOptimal
        self._highs: Any = highs_with(OPTIONS)
        ways = {"simplex_strategy": PRIMAL_SIMPLEX, "presolve": "off"}
        set_options(self._highs, ways)
        empty = np.zeros(rows, np.int32)
        self._highs.addRows(rows, lower, np.minimum(upper, infinite), 0, empty, [], [])
        count = self._columns
        self._highs.addCols(
            count,
            np.zeros(count),
            np.zeros(count),
            np.full(count, infinite),
            count * rows,
            np.arange(count, dtype=np.int32) * rows,
            np.tile(np.arange(rows, dtype=np.int32), count),
            matrix.T.ravel(),
        )
        self._costs = np.zeros(count)

    def solve(self, costs: Array) -> tuple[Array, Array] | None:
        """Multipliers of ranges and of compared values; None where there is no optimum."""
        finite = np.isfinite(costs)
        if not finite.all():
            dear = FORBIDDEN * (1.0 + np.abs(costs[finite]).max(initial=0.0))
            costs = np.where(finite, costs, dear)
        self._costs[: len(costs)] = costs
        places = np.arange(self._columns, dtype=np.int32)
        self._highs.changeColsCost(self._columns, places, self._costs)
        self._highs.run()
        if self._highs.getModelStatus() != self._optimal:
            self._highs.clearSolver()
            return None
        dual = np.asarray(self._highs.getSolution().row_dual, dtype=np.float64)
        above, below = dual[self._ranges : -1].reshape(2, self._compared)
        return dual[: self._ranges], above - below
