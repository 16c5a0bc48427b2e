"""The two problems on averages: most information within budgets, and least leakage at a utility.

A search handles both by the same rounds. What differs is here, as a `Goal`: the cost and the rows
of the master program, the value of a channel, and the bound that a *support* proves. A support is
a triple of prices y, multipliers beta and a number m with

    H(v) + sum_j beta_j L_j(v) >= y.v + m   for all posteriors v,

in nats; beta_j is nats per unit of the leakage L_j. Summed with the weights P(y) of any channel it
gives H(X|Y) + sum_j beta_j E L_j >= y.p + m.

- `WithinBudgets`: the master minimises H(X|Y) with E L_j <= e_j. Its multipliers are beta, and
  I(X;Y) <= H(X) - (y.p + m - sum_j beta_j e_j).
- `LeastLeakage`: the master minimises E L with H(X|Y) <= (1 - k) H(X), where k is the share of H(X)
  to be kept. Its multiplier mu is leakage per nat. Divided by mu, its prices and the leakage have
  the form of a support with beta = 1 / mu, and so E L >= (y.p + m - (1 - k) H(X)) / beta.

For example, H(X) = 1 nat, y.p + m = 0.6, beta = 2 and e = 0.1 prove I(X;Y) <= 1 - (0.6 - 0.2) =
0.6; with k = 0.8 they prove E L >= (0.6 - 0.2) / 2 = 0.2.

*The master program* finds the best channel made of given posteriors, by a row for every average
budget.

    minimise    cost.w
    subject to  sum_k w_k v_k = point,  load_j.w <= limit_j for every j,  w >= 0

Column k is an output with the probability w_k and the posterior v_k. Within budgets its cost is its
entropy, and its loads are what it leaks by every measure; for the least leakage it is the reverse.
The duals are the prices y of the equations and the multipliers beta >= 0 of the budgets. A new
column gains exactly if cost + beta.load < y.v, which is what the search looks for.

The program is solved again whenever the search has added columns, from the basis of the last
solution. The tolerances of HiGHS are absolute. So rows and columns are scaled to a size of about
one, by powers of two, which change no digit. For example, a symbol with P(x) = 0.001 has its row
multiplied by 2^10, and its right side becomes 1.024.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from solvers.average.problem import FEW_ULP, AverageProblem
from solvers.pace import passing
from solvers.points import Array, Points
from solvers.programs import SHARP, highs_with, run_highs, stop_at

# ----------------------------------------------------------------------- master program

LEAST_SCALED = 1e-3
"""Rows of smaller budgets are not scaled any further: their loads would be large numbers."""


@dataclass(frozen=True, eq=False)
class Solution:
    """An optimum of the unscaled program.

    Attributes
    ----------
    weights : (columns,) array
        The probability of each output.
    prices : (n,) array
        y, the duals of the equations.
    multipliers : (j,) array
        beta, the duals of the budgets.
    """

    weights: Array
    prices: Array
    multipliers: Array


LARGEST_COST = 1e6
"""Costs of columns beyond are scaled down together: HiGHS gave up on some of 8e8, which belong to
channels that tell next to nothing apart."""


class Master:
    """The program above for a point and limits, without columns at first.

    Parameters
    ----------
    point : (n,) array
        Positive: the mean of the posteriors.
    limits : (j,) array
        The right sides of the rows of loads.
    """

    def __init__(self, point: Array, limits: Array) -> None:
        import highspy

        self._optimal = highspy.HighsModelStatus.kOptimal
        self._inf = highspy.kHighsInf
        n = len(point)
        self._n = n
        self._row_scale = _towards_one(point)
        self._load_scale = _towards_one(np.maximum(limits, LEAST_SCALED))
        self._column_scale = np.zeros(0)
        self._cost_scale = 1.0
        # Presolve would throw the basis away, and the program is scaled already.
        self._highs = highs_with(
            SHARP | {"presolve": "off", "simplex_scale_strategy": 0}
        )
        count = n + len(limits)
        scaled = point * self._row_scale
        # The first n rows are equations: both ends are the same.
        lower = np.append(scaled, np.full(len(limits), -self._inf))
        upper = np.append(scaled, limits * self._load_scale)
        # No entries yet: the columns bring them.
        self._highs.addRows(count, lower, upper, 0, np.zeros(count, np.int32), [], [])

    def add(self, points: Points, costs: Array, loads: Array) -> None:
        """Append k columns with their costs (k,) and loads (j, k)."""
        # One line for each column: its posterior, then its loads.
        posteriors = points.toarray() * self._row_scale
        scaled_loads = loads * self._load_scale[:, None]
        entries = np.hstack([posteriors, scaled_loads.T])
        scale = _towards_one(np.abs(entries).max(axis=1))
        entries *= scale[:, None]
        # HiGHS takes the entries that are not zero, column by column, and where each column starts.
        column_of, rows = np.nonzero(entries)
        starts = np.searchsorted(column_of, np.arange(len(entries)))
        least = np.zeros(len(entries))
        most = np.full(len(entries), self._inf)
        self._highs.addCols(
            len(entries),
            costs * scale,
            least,
            most,
            len(rows),
            starts.astype(np.int32),
            rows.astype(np.int32),
            entries[column_of, rows],
        )
        self._column_scale = np.concatenate([self._column_scale, scale])

    def change_costs(self, costs: Array) -> None:
        """Give all columns other costs (k,); the basis stays."""
        count = len(costs)
        columns = np.arange(count, dtype=np.int32)
        scaled = costs * self._column_scale
        largest = float(np.abs(scaled).max(initial=0.0))
        self._cost_scale = 1.0
        if largest > LARGEST_COST:
            self._cost_scale = float(_towards_one(np.array(largest)))
        self._highs.changeColsCost(count, columns, scaled * self._cost_scale)

    def solve(self, seconds: float) -> Solution | None:
        """Go on from the last basis, once more from nothing where that fails; None if both fail."""
        highs = self._highs
        for _ in range(2):
            limit = highs.getRunTime() + passing(max(seconds, 0.1))
            highs.setOptionValue("time_limit", limit)
            stop_at(highs, time.process_time() + max(seconds, 0.1))
            run_highs(highs)
            if highs.getModelStatus() == self._optimal:
                answer = highs.getSolution()
                values = np.maximum(np.array(answer.col_value), 0.0)
                dual = np.array(answer.row_dual) / self._cost_scale
                prices = dual[: self._n] * self._row_scale
                # A larger limit lowers the cost, so duals of budgets are negative; above zero they
                # are rounding.
                multipliers = -dual[self._n :] * self._load_scale
                return Solution(
                    values * self._column_scale, prices, np.maximum(0.0, multipliers)
                )
            # Forget the basis: the second run starts from nothing.
            highs.clearSolver()
        return None


def _towards_one(sizes: Array) -> Array:
    """Powers of two by which positive numbers come nearest to one."""
    return np.exp2(-np.round(np.log2(sizes)))


# -------------------------------------------------------------------------------- goals

LEAST_MULTIPLIER = 1e-9
"""Multipliers below are rounding: the average row costs nothing."""


@dataclass(frozen=True, eq=False)
class Charge:
    """Prices y (n,) and multipliers beta (j,) in the form of a support, for pricing.

    `aim` is the tolerance of the search in the unit of a support, nats.
    """

    prices: Array
    multipliers: Array
    aim: float


@dataclass(frozen=True, eq=False)
class WeightedColumns:
    """A channel: the weights of the columns so far, and its value in the unit of the goal."""

    weights: Array
    value: float


class Goal(Protocol):
    """What a search for averages maximises or minimises."""

    limits: Array
    """Right sides of the master's rows of loads."""
    first_bound: float
    """The bound of the value that holds without any support."""

    def costs_and_loads(self, entropies: Array, leaks: Array) -> tuple[Array, Array]:
        """Costs (k,) and loads (rows, k) of columns, from their entropies (k,) and leakages
        (j, k).
        """
        ...

    def first_channel(self, leaks: Array) -> WeightedColumns:
        """A channel of the first columns, whose leakages (j, k) are given, without any program."""
        ...

    def value(self, entropy: float, leakage: float) -> float:
        """The value of a channel of this H(X|Y) and first leakage."""
        ...

    def is_better(self, value: float, other: float) -> bool:
        """Whether the one value is better than the other."""
        ...

    def charge(self, solution: Solution, tolerance: float) -> Charge:
        """Prices and multipliers of the master in the form of a support."""
        ...

    def bound(self, support: float, multipliers: Array) -> float:
        """The bound of the value that a support proves; `support` is y.p + m."""
        ...

    def is_sharper(self, bound: float, other: float) -> bool:
        """Whether the one bound proves more than the other."""
        ...


class WithinBudgets:
    """`Goal` of most information I(X;Y), in nats, with budgets (j,) of all leakages."""

    def __init__(self, problem: AverageProblem, budgets: Array) -> None:
        self._entropy = problem.entropy
        self._highest = highest_entropy(problem)
        self.limits = budgets
        # Without a support nothing is known but I(X;Y) <= H(X).
        self.first_bound = self._highest

    def costs_and_loads(self, entropies: Array, leaks: Array) -> tuple[Array, Array]:
        """H(X|Y) is the cost, and the leakages are the loads."""
        return entropies, leaks

    def first_channel(self, leaks: Array) -> WeightedColumns:
        """The first column, P(x), is a constant output: it leaks nothing and tells nothing."""
        weights = np.zeros(leaks.shape[1])
        weights[0] = 1.0
        return WeightedColumns(weights, 0.0)

    def value(self, entropy: float, leakage: float) -> float:
        """I(X;Y) = H(X) - H(X|Y)."""
        return self._entropy - entropy

    def is_better(self, value: float, other: float) -> bool:
        """More information is better."""
        return value > other

    def charge(self, solution: Solution, tolerance: float) -> Charge:
        """The master's own, for it counts in nats."""
        return Charge(solution.prices, solution.multipliers, tolerance)

    def bound(self, support: float, multipliers: Array) -> float:
        """H(X) - (y.p + m - sum_j beta_j e_j), rounded up."""
        charged = math.fsum((multipliers * self.limits).tolist())
        # The least H(X|Y) of the support, rounded down.
        least = support - charged - FEW_ULP * (abs(support) + charged)
        return self._highest - least

    def is_sharper(self, bound: float, other: float) -> bool:
        """Bounds are above the information."""
        return bound < other


class LeastLeakage:
    """`Goal` of the least average of one leakage, in its unit, with I(X;Y) >= keep H(X)."""

    def __init__(self, problem: AverageProblem, keep: float) -> None:
        self._problem = problem
        # The largest H(X|Y) that a channel may have, rounded so that the bound becomes weaker.
        self.limits = np.array([(1.0 - keep) * highest_entropy(problem)])
        self.first_bound = 0.0

    def costs_and_loads(self, entropies: Array, leaks: Array) -> tuple[Array, Array]:
        """The leakage is the cost, and H(X|Y) the load."""
        return leaks[0], entropies[None, :]

    def first_channel(self, leaks: Array) -> WeightedColumns:
        """The unit vectors behind P(x) release X as it is: all information, all leakage.

        A polytope may leave them out; then no channel is known.
        """
        weights = np.zeros(leaks.shape[1])
        if self._problem.inner is not None:
            return WeightedColumns(weights, math.inf)
        point = self._problem.point
        weights[1 : 1 + len(point)] = point
        return WeightedColumns(weights, math.fsum((weights * leaks[0]).tolist()))

    def value(self, entropy: float, leakage: float) -> float:
        """The leakage itself."""
        return leakage

    def is_better(self, value: float, other: float) -> bool:
        """Less leakage is better."""
        return value < other

    def charge(self, solution: Solution, tolerance: float) -> Charge:
        """The master's multiplier is leakage per nat: supports count nats per leakage."""
        # Where H(X|Y) is below its limit the multiplier is 0. Any positive one proves a bound.
        multipliers = 1.0 / np.maximum(solution.multipliers, LEAST_MULTIPLIER)
        prices = solution.prices * multipliers[0]
        return Charge(prices, multipliers, tolerance * float(multipliers[0]))

    def bound(self, support: float, multipliers: Array) -> float:
        """(y.p + m - (1 - k) H(X)) / beta, rounded down."""
        limit = float(self.limits[0])
        excess = support - limit
        excess -= FEW_ULP * (abs(support) + limit)
        # A bound below 0 is rounded towards 0 here, but `first_bound` is sharper than any such.
        return excess / float(multipliers[0]) * (1.0 - FEW_ULP)

    def is_sharper(self, bound: float, other: float) -> bool:
        """Bounds are below the leakage."""
        return bound > other


def highest_entropy(problem: AverageProblem) -> float:
    """H(X) rounded up: both goals have it where a larger one makes the bound weaker."""
    entropy = problem.entropy
    error = FEW_ULP * (entropy + len(problem.point) * float(problem.point.max()))
    return entropy + error
