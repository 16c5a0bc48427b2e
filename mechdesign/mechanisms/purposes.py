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
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from mechdesign.core.errors import SolverFailure
from mechdesign.mechanisms.cut_sets import CutSolver, solved_by_cuts
from mechdesign.mechanisms.result import Design, QueryAccuracy, TaskUtility
from mechdesign.mechanisms.rounding import Rounded, RoundingFailure
from mechdesign.mechanisms.rules import Rules
from solvers import Array, SolverError

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
