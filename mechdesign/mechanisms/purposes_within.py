"""Queries and tasks within a budget on one average: the channel of `solvers.average.purposes`,
rounded to integers that keep the budget.

`task_design` and `query_design` call `purpose_within` in the place of `purposes.first_verified`,
and add `with_budget` to their designs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from mechdesign.channel.record import AverageBudget
from mechdesign.core.errors import InputError, SolverFailure
from mechdesign.mechanisms.average_budgets import in_solver_unit
from mechdesign.mechanisms.averages import (
    SHRUNK,
    achieved_averages,
    posterior_sets,
    verified_within,
    with_averages,
    with_own_lifts,
)
from mechdesign.mechanisms.result import Design
from mechdesign.mechanisms.rounding import Rounded
from mechdesign.mechanisms.rules import Rules
from solvers import Array, Points, SolverError
from solvers.average.assignment_convex import Total
from solvers.average.problem import Leakage, measure_of
from solvers.average.purposes import Purpose, PurposeWithin, best_within


def purpose_within(
    rules: Rules,
    purpose: Purpose,
    budgets: Sequence[AverageBudget],
    is_proven: Callable[[float, float], bool],
    end: float,
    *,
    alone: bool,
) -> tuple[Rounded, PurposeWithin]:
    """The verified channel, and the solution with its bound; `alone` as in `averages.for_average`.

    Raises
    ------
    InputError
        If there is more than one budget.
    SolverFailure
        If no channel was found or verified.
    """
    if len(budgets) > 1:
        raise InputError(
            "queries and tasks stand beside one average: leave the others out (--average)"
        )
    joint = rules.joint
    leakage = Leakage(measure_of(budgets[0].measure), joint.p_s)
    most = in_solver_unit(budgets[0].measure, budgets[0].budget, joint)
    inner, outer = posterior_sets(rules, alone=alone)
    try:
        solution = best_within(
            purpose,
            Total(leakage, joint.lift, most),
            joint.p_x,
            inner,
            outer,
            is_proven=is_proven,
            end=end,
            shrunk=SHRUNK[0],
        )
    except SolverError as error:
        raise SolverFailure(f"the optimum could not be computed: {error}") from error

    def candidates() -> Iterator[tuple[Array, Points]]:
        yield solution.weights, Points.from_dense(solution.points)
        # A little of a constant makes up for what rounding adds to the average.
        points = Points.from_dense(np.vstack([solution.points, joint.p_x]))
        for share in SHRUNK:
            yield np.append((1.0 - share) * solution.weights, share), points

    rounded, _ = verified_within(rules, budgets, candidates())
    if alone:
        rounded = with_own_lifts(rounded, joint)
    return rounded, solution


def with_budget(design: Design, budgets: Sequence[AverageBudget]) -> Design:
    """The design with the budgets and what its channel leaks in the record."""
    joint = design.channel.joint
    if not budgets or joint is None:
        return design
    return with_averages(design, achieved_averages(design.channel, joint, budgets))
