"""The columns of a search for averages, and the best channel that the master makes of them.

A column is a posterior v with its entropy and leakages; a channel is one weight P(y) for each
column, with sum_k w_k v_k = p. `append` evaluates new columns and hands them to the master program;
`solve` has it find the best weights, and keeps them where they beat the best channel so far.

In the example of `solvers.average.channels` there are

    points      (1/2, 1/2)   (1, 0)   (0, 1)
    entropies   0.693        0        0         nats
    leaks       0            0.3      0.3       total variation
    weights     1/2          1/4      1/4       of the best channel with E L <= 0.15

so H(X|Y) = 0.347 nats, and `best.value` = 0.693 - 0.347 = 0.347 is the information.
"""

from __future__ import annotations

import math

import numpy as np

from solvers.average.goals import Goal, WeightedColumns
from solvers.average.master import Master, Solution
from solvers.average.problem import AverageProblem
from solvers.points import Points

SHRUNK = 1e-9
"""Relative distance that a channel keeps from its budget; an exact check decides what it leaks."""


class AverageColumns:
    """All columns of one search.

    Attributes
    ----------
    points : Points, (k, n)
        The posteriors.
    entropies : (k,) array
        In nats.
    leaks : (j, k) array
        Every leakage of every column, in its unit.
    best : WeightedColumns
        The best channel so far, over the first columns.
    """

    def __init__(self, problem: AverageProblem, goal: Goal, first: Points) -> None:
        self._problem = problem
        self._goal = goal
        # The limits of the master are a little lower, so that rounding weights to integers keeps
        # the channel within them.
        self._master = Master(problem.point, goal.limits * (1.0 - SHRUNK))
        self.points = first.take(np.arange(0))
        self.entropies = np.zeros(0)
        self.leaks = np.zeros((len(problem.leakages), 0))
        self.append(first)
        # The answer where the time is over before the first program is solved.
        self.best = goal.first_channel(self.leaks)

    def __len__(self) -> int:
        return len(self.points)

    def append(self, points: Points) -> None:
        """Add columns, each charged its true entropy and leakages."""
        entropies = points.entropies()
        leaks = self._problem.leaks(points)
        costs, loads = self._goal.costs_and_loads(entropies, leaks)
        self._master.add(points, costs, loads)
        self.points = Points.concatenate([self.points, points])
        self.entropies = np.concatenate([self.entropies, entropies])
        self.leaks = np.hstack([self.leaks, leaks])

    def solve(self, seconds: float) -> Solution | None:
        """The master over all columns; its weights are kept where they are better."""
        solution = self._master.solve(seconds)
        if solution is None:
            return None
        # The value is that of the columns themselves: the program was scaled and has tolerances.
        entropy = math.fsum((solution.weights * self.entropies).tolist())
        leakage = math.fsum((solution.weights * self.leaks[0]).tolist())
        value = self._goal.value(entropy, leakage)
        if self._goal.is_better(value, self.best.value):
            self.best = WeightedColumns(solution.weights, value)
        return solution
