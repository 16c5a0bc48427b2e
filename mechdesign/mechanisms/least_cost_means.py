"""Least cost under limits on averages: of the lifts of every output, or of all outputs together.

A notion such as chi2 allows posteriors in a convex set (`convex_means`), and a budget on the mutual
information is a total over all outputs. `ColumnLimits` has both for a table, and solves the program
of least cost with them by tangents (`solvers.average.assignment_convex`).

The set of l1 and chi2 with their inverses is not convex (`convex_means`). Then

- the bound is that of the convex set around it;
- channels are searched for in a convex part of it, one for each output. Above a lift of 1 the
  distance |1/w - 1| is concave, so it lies below its tangents, and these in its place make the set
  smaller and convex. Touched at the lifts of the last solution, they keep that solution inside: so
  a step never costs more than the one before.

For example, the tangent at 1 replaces 1 - 1/w by w - 1, which asks of a lift of 2 what the distance
asks of none: 1 in place of 1/2. If the first solution has the lift 1.5 there, the next tangent is
that at 1.5, (4 w - 3) / 9, which asks 5/9 of a lift of 2.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mechdesign.auditing.averages import average_verdicts
from mechdesign.channel.channel import Channel
from mechdesign.channel.record import AverageBudget
from mechdesign.core.limits import MeanLimits
from mechdesign.mechanisms.average_budgets import float_gains, in_solver_unit
from mechdesign.mechanisms.convex_means import allowed_set, inside_covered
from mechdesign.tables.joint import Joint
from solvers import Array, ConvexSet, CoveredSet
from solvers.assignment.assignment import Assigned, Assignment
from solvers.average.assignment_convex import Total, assign_convex
from solvers.average.problem import Leakage, measure_of
from solvers.errors import BackendFailure, EmptyPolytope

BOUND_SHARE = 0.3
"""Share of the time limit for the bound of a set that is not convex."""

MOST_STEPS = 8
"""Steps from one convex part to the next; the first two or three gain nearly everything."""

LEAST_GAIN = 1e-3
"""A step that lowers the cost by less than this share of its gap to the bound is the last."""

Report = Callable[[float, float, int], None]


@dataclass(frozen=True, eq=False)
class ColumnLimits:
    """The limits on averages of a program of least cost.

    `allowed` holds the posteriors of every output, None for all of them; `averages` are budgets
    for all outputs together, of a table.
    """

    joint: Joint
    allowed: ConvexSet | None
    averages: tuple[AverageBudget, ...]

    @classmethod
    def of(
        cls,
        joint: Joint,
        limits: MeanLimits | None,
        averages: Sequence[AverageBudget],
    ) -> ColumnLimits:
        """The limits of a notion on averages, None for another notion, and further budgets."""
        allowed = None
        if limits is not None:
            allowed = allowed_set(joint, limits)
        return cls(joint, allowed, tuple(averages))

    @property
    def totals(self) -> list[Total]:
        """The budgets as the solver takes them."""
        totals: list[Total] = []
        for budget in self.averages:
            gains = budget.exact_gains
            leakage = Leakage(
                measure_of(budget.measure), self.joint.p_s, float_gains(gains)
            )
            most = in_solver_unit(budget.measure, budget.budget, self.joint, gains)
            totals.append(Total(leakage, self.joint.lift, most))
        return totals

    def excess(self, posteriors: Array) -> Array:
        """By how much posteriors (k, n) break the limits on single outputs, (k,)."""
        if self.allowed is None:
            return np.zeros(len(posteriors))
        return self.allowed.excess_of(self.allowed.matrix @ posteriors.T, 0.0)

    def are_kept(self, channel: Channel, joint: Joint) -> bool:
        """Whether integers keep the budgets for all outputs together, decided exactly."""
        verdicts = average_verdicts(channel, joint, self.averages)
        return all(verdict.kept for verdict in verdicts)

    def solve(
        self,
        problem: Assignment,
        proof: Assignment,
        margin: float,
        *,
        gap: float = 1e-9,
        time_limit: float | None = None,
        progress: Report | None = None,
    ) -> Assigned:
        """The assignment of least cost, with a bound for all of them; see `assign_convex`."""
        totals = self.totals
        if isinstance(self.allowed, CoveredSet):
            return _by_parts(
                self.allowed, totals, problem, proof, margin, gap, time_limit, progress
            )
        sets = None
        if self.allowed is not None:
            sets = [self.allowed] * problem.n
        return assign_convex(
            problem,
            sets,
            totals,
            proof=proof,
            margin=margin,
            gap=gap,
            time_limit=time_limit,
            progress=progress,
        )


def _by_parts(
    allowed: CoveredSet,
    totals: Sequence[Total],
    problem: Assignment,
    proof: Assignment,
    margin: float,
    gap: float,
    time_limit: float | None,
    progress: Report | None,
) -> Assigned:
    """The best assignment in convex parts of a set, with the bound of the set around it."""
    end = math.inf
    seconds = None
    if time_limit is not None:
        end = time.process_time() + time_limit
        seconds = BOUND_SHARE * time_limit
    around, _ = allowed.around(allowed.low, allowed.high)
    n = problem.n
    # Where this is empty, so is the set.
    relaxed = assign_convex(
        problem,
        [around] * n,
        totals,
        proof=proof,
        gap=gap,
        margin=margin,
        time_limit=seconds,
    )
    touched = np.ones((len(allowed.matrix), n))
    best: Assigned | None = None
    for step in range(1, MOST_STEPS + 1):
        left = None
        if end < math.inf:
            left = max(end - time.process_time(), 0.0)
        sets = [inside_covered(allowed, touched[:, y]) for y in range(n)]
        try:
            found = assign_convex(
                problem, sets, totals, margin=margin, gap=gap, time_limit=left
            )
        except (BackendFailure, EmptyPolytope):
            # A part may be empty where the set is not.
            break
        gained = math.inf
        if best is not None:
            gained = best.cost - found.cost
        if gained > 0.0:
            best = found
        assert best is not None  # the first step gains
        if progress is not None:
            progress(best.cost, relaxed.bound, step)
        is_late = time.process_time() >= end
        if is_late or gained <= LEAST_GAIN * max(best.cost - relaxed.bound, 0.0):
            break
        masses = problem.masses @ best.shares
        posteriors = best.shares * problem.masses[:, None]
        posteriors = posteriors / np.where(masses > 0.0, masses, 1.0)
        # An empty column has no lifts; its tangents touch at 1, as in the beginning.
        lifts = np.where(masses > 0.0, allowed.matrix @ posteriors, 1.0)
        touched = np.maximum(lifts, 1.0)
    if best is None:
        raise BackendFailure("no assignment was found in a convex part of the set")
    return replace(best, bound=relaxed.bound)
