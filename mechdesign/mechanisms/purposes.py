"""What released records are for: estimates of queries, or another column that X tells about.

`query_design` minimises the variance of estimates, `task_design` maximises the information about
the other column. Both use free outputs, and look for posteriors in the same set as the optimum for
information; only the cost of a posterior differs. Symbols are not merged into classes: what the
promise cannot tell apart may differ in what it says of a query or of the task.

This module has what both share:

- `first_verified`, the way from a solver to a channel. For each margin of the rules, the smallest
  first, the caller's solver finds weights and posteriors inside the set by this margin, and
  `Rules.rounded` makes integers of them. The first that pass the exact audit are returned;
- `with_purpose`, which adds the figures of the purpose to the design and to its channel's record.

*Within a budget on one average* the channel is that of `solvers.average.purposes`. `task_design`
and `query_design` call `purpose_within` in the place of `first_verified`, and add `with_budget` to
their designs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

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
from mechdesign.mechanisms.cut_sets import CutSolver, solved_by_cuts
from mechdesign.mechanisms.result import Design, QueryAccuracy, TaskUtility
from mechdesign.mechanisms.rounding import Rounded, RoundingFailure
from mechdesign.mechanisms.rules import Rules
from solvers import Array, Points, SolverError
from solvers.average.assignment_convex import Total
from solvers.average.problem import Leakage, measure_of
from solvers.average.purposes import Purpose, PurposeWithin, best_within

if TYPE_CHECKING:
    # They load slowly, and most designs need neither.
    from solvers.purposes.queries import LeastVariance
    from solvers.purposes.task import TaskEnvelope


Solution = TypeVar("Solution", "LeastVariance", "TaskEnvelope")


def first_verified(
    rules: Rules,
    solver: CutSolver[Solution],
    end: float,
    least_margin: float = 0.0,
) -> tuple[Rounded, Solution, Array | None]:
    """Solve with growing margins until the rounded channel passes the exact audit.

    A promise without polytope is approached by cuts until `end`, a moment of `time.process_time`.
    The bound is then that of the polytope at the posteriors that come last; they are None else.
    """
    failure: RoundingFailure | None = None
    cuts = rules.cuts
    if cuts is not None:
        try:
            solution, touched = solved_by_cuts(cuts, solver, end)
        except SolverError as error:
            raise SolverFailure(
                f"the optimum could not be computed: {error}"
            ) from error
        # What rounding breaks is repaired by mixing in a little of a constant.
        rounded = rules.rounded(solution.weights, solution.points)
        return rounded, solution, touched
    for margin in rules.margins:
        # Solutions by HiGHS miss rows by more than smaller margins have room for.
        if margin < least_margin and not rules.is_homogeneous:
            continue
        try:
            solution = solver.solve(rules.polytope(margin), rules.relaxation)
        except SolverError as error:
            raise SolverFailure(
                f"the optimum could not be computed: {error}"
            ) from error
        try:
            rounded = rules.rounded(solution.weights, solution.points)
            return rounded, solution, None
        except RoundingFailure as error:
            failure = error
    raise SolverFailure(
        f"no verified channel came out of the optimum ({failure}); use a larger budget"
    )


def touched_in_file(touched: Array | None) -> tuple[tuple[float, ...], ...] | None:
    """Posteriors at which tangents or rows touch what they bound, as proofs have them."""
    if touched is None:
        return None
    return tuple(tuple(row) for row in touched.tolist())


def with_purpose(design: Design, purpose: QueryAccuracy | TaskUtility) -> Design:
    """The design with its purpose, in the record of its channel too."""
    record = design.channel.record
    provenance = dict(record.provenance)
    if isinstance(purpose, TaskUtility):
        provenance["task"] = purpose.column
    record = replace(
        record,
        utility={**(record.utility or {}), **purpose.figures},
        provenance=provenance,
    )
    return replace(design, channel=design.channel.with_record(record), purpose=purpose)


# -------------------------------------------------------- within a budget on an average


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
