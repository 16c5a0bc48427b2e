"""What released records are for: estimates of queries, or another column that X tells about.

`query_design` minimises the variance of estimates, `for_task` maximises the information about the
other column. Both use free outputs, and look for posteriors in the same set as the optimum for
information; only the cost of a posterior differs. Symbols are not merged into classes: what the
promise cannot tell apart may differ in what it says of a query or of the task.

Both share

- `first_verified`, the way from a solver to a channel. For each margin of the rules, the smallest
  first, the caller's solver finds weights and posteriors inside the set by this margin, and
  `Rules.rounded` makes integers of them. The first that pass the exact audit are returned;
- `with_purpose`, which adds the figures of the purpose to the design and to its channel's record.

*Within a budget on one average* the channel is that of `solvers.average.purposes`. `for_task`
and `query_design` call `purpose_within` in the place of `first_verified`, and add `with_budget` to
their designs.

*A task* is another column T, and the channel has most I(T;Y) for the promise. Under the chain T - X
- Y the posterior of T given an output with posterior v = P(x | y) is B v, with B(t, x) = P(t | x).
So I(T;Y) = H(T) - sum of t_k h(B v_k), where t_k are the probabilities of the outputs and h is the
entropy. `for_task` designs in these steps:

1. `task_joint` checks the table of the task against that of the promise;
2. `solvers.purposes.task` finds the posteriors v_k of least expected entropy, with a bound, for one
   margin after the other until the rounded channel passes the exact audit
   (`first_verified`);
3. `task_figures` computes from the integers of the channel which share of I(T;X) it keeps.

For example, two symbols of X with the same P(T | x) may be released as one and lose nothing of the
task, though they lose information about X.

Proofs: docs/explanation/purposes-theory.md, 'Tasks'.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from mechdesign.channel.channel import Channel
from mechdesign.channel.proof import TaskProof
from mechdesign.channel.record import AverageBudget
from mechdesign.core.errors import InputError, SolverFailure
from mechdesign.core.wording import quoted
from mechdesign.mechanisms.average_budgets import in_solver_unit
from mechdesign.mechanisms.averages import (
    SHRUNK,
    achieved_averages,
    posterior_sets,
    verified_within,
    with_averages,
    with_own_lifts,
)
from mechdesign.mechanisms.cut_sets import (
    CutSet,
    CutSolver,
    has_time,
    solved_by_cuts,
)
from mechdesign.mechanisms.fewer_outputs import rounded_in_time
from mechdesign.mechanisms.optimal import (
    MergedChannels,
    merged_channels,
    response_until,
)
from mechdesign.mechanisms.queries import TASK
from mechdesign.mechanisms.result import Design, QueryAccuracy, TaskUtility, finish
from mechdesign.mechanisms.rounding import Rounded, RoundingFailure
from mechdesign.mechanisms.rules import Rules
from mechdesign.mechanisms.search_options import Search
from mechdesign.tables.joint import Joint
from solvers import Array, EnvelopeStatus, Points, Polytope, SolverError
from solvers.average.assignment_convex import Total
from solvers.average.problem import Leakage, measure_of
from solvers.average.purposes import Purpose, PurposeWithin, TaskPurpose, best_within
from solvers.purposes.task import TaskEnvelope, best_members, task_envelope

if TYPE_CHECKING:
    from solvers.purposes.queries import LeastVariance


# ------------------------------------------------------------------------- all purposes

Solution = TypeVar("Solution", "LeastVariance", "TaskEnvelope")


def first_verified(
    rules: Rules,
    solver: CutSolver[Solution],
    end: float,
    least_margin: float = 0.0,
    search: Search | None = None,
) -> tuple[Rounded, Solution, Array | None]:
    """Solve with growing margins until the rounded channel passes the exact audit.

    A promise without polytope is approached by cuts until `end`, a moment of `time.process_time`.
    The bound is then that of the polytope at the posteriors that come last; they are None else, as
    where the time does not do for a first polytope. A
    solution that ran out of the time of `search` has as many outputs as there is time for.
    """
    failure: RoundingFailure | None = None
    cuts = rules.cuts
    if cuts is not None and not has_time(cuts, end):
        solution = solver.without_rows(cuts)
        return _rounded(rules, solution, search), solution, None
    if cuts is not None:
        try:
            solution, touched = solved_by_cuts(cuts, solver, end)
        except SolverError as error:
            raise SolverFailure(
                f"the optimum could not be computed: {error}"
            ) from error
        # What rounding breaks is repaired by mixing in a little of a constant.
        rounded = _rounded(rules, solution, search)
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
            rounded = _rounded(rules, solution, search)
            return rounded, solution, None
        except RoundingFailure as error:
            failure = error
    raise SolverFailure(
        f"no verified channel came out of the optimum ({failure}); use a larger budget"
    )


def _rounded(
    rules: Rules, solution: LeastVariance | TaskEnvelope, search: Search | None
) -> Rounded:
    """The channel of a solution, with fewer outputs where all of them would take too long."""
    seconds: float | None = None
    if search is not None and solution.status is EnvelopeStatus.TIME_LIMIT:
        seconds = search.afterwards()
    return rounded_in_time(rules, solution.weights, solution.points, seconds)


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


# -------------------------------------------------------------------------------- tasks

INFORMATION_ERROR = 1e-12
"""Relative error of an information that is summed in doubles from exact masses."""

TASK_MARGIN = 1e-9
"""Least margin for a task: columns may come from HiGHS, which meets rows to 1e-10."""


def for_task(
    rules: Rules,
    task: Joint,
    search: Search,
    started: float,
    averages: Sequence[AverageBudget] = (),
    *,
    alone: bool = False,
) -> Design:
    """The channel that tells most about the task column, verified exactly.

    `averages` are budgets on averages over the outputs; `alone` as in `averages.for_average`.

    Raises
    ------
    InputError
        If the task does not fit the table, or the useful column says nothing about it.
    SolverFailure
        If no channel was verified.
    """
    joint = rules.joint
    table = task_joint(task, joint)
    masses = _masses(table, joint)
    # In nats, the unit of the gap.
    most = information_of(table, joint)
    column = ",".join(table.sensitive.columns)
    if not most > INFORMATION_ERROR:
        raise InputError(
            f"the useful column says nothing about the task {quoted(column)}: there is nothing to "
            "keep"
        )
    given_x = masses / masses.sum(axis=0)
    # Symbols that the promise cannot tell apart may differ in what they say of the task.
    single = replace(rules, by_symbol=True)

    end = search.end(started)
    merged: MergedChannels | None = None
    search_end = end
    if end < math.inf and not averages and single.cuts is None:
        merged = merged_channels(single, started, end)
        search_end -= single.response_share * (end - started)
    program = _TaskProgram(
        joint.p_x, given_x, search.gap * most, search_end, single, search, merged
    )
    if averages:
        found = _task_within(single, program, averages, end, alone=alone)
    else:
        found = _task_by_promise(single, program, end)

    figures = task_figures(found.rounded.channel, joint, table)
    kept = figures.kept
    utility_of_task = TaskUtility(
        column=column,
        task_kept=kept,
        task_upper_bound=max(kept, task_bound(figures, found.bound)),
    )
    messages: tuple[str, ...] = ()
    if utility_of_task.task_upper_bound - kept > search.gap:
        messages = (f"the search ended early ({found.status})",)
    design = finish(
        found.rounded, joint, TASK, found.method, started, messages=messages
    )
    design = with_purpose(with_budget(design, averages), utility_of_task)
    if found.prices is None or (averages and not alone and rules.cuts is not None):
        return design
    proof = TaskProof(
        prices=tuple(found.prices.tolist()),
        task=_counts(table, joint),
        leakages=found.leakages,
        touched=found.touched,
        alone=alone or None,
    )
    return replace(design, channel=design.channel.with_proof(proof))


@dataclass(frozen=True, eq=False)
class _TaskProgram:
    """Least expected entropy of the task, as `purposes.first_verified` asks for it.

    `given_x` is P(T|X), (|T|, n), and `gap` in nats. A search that does not end by `end` may have
    found less than merged symbols tell: the best of the `merged` channels and of the response
    within their sets is taken then.
    """

    point: Array
    given_x: Array
    gap: float
    end: float
    rules: Rules
    search: Search
    merged: MergedChannels | None

    def solve(self, inner: Polytope, outer: Polytope) -> TaskEnvelope:
        """As of `CutSolver`."""
        best = task_envelope(
            inner, outer, self.point, self.given_x, gap=self.gap, end=self.end
        )
        if best.status is not EnvelopeStatus.TIME_LIMIT or self.merged is None:
            return best
        return self._best_merged(best, self.merged)

    def without_rows(self, cuts: CutSet) -> TaskEnvelope:
        """As of `CutSolver`: merged symbols, and the response within their sets."""
        now = time.process_time()
        nothing = TaskEnvelope(
            status=EnvelopeStatus.TIME_LIMIT,
            weights=np.ones(1),
            points=Points.from_dense(self.point[None]),
            value=math.inf,
            bound=-math.inf,
            rounds=0,
            columns=0,
            nodes=0,
        )
        return self._best_merged(nothing, merged_channels(self.rules, now, self.end))

    def _best_merged(self, best: TaskEnvelope, merged: MergedChannels) -> TaskEnvelope:
        """The best of a solution, of merged symbols, and of the response within their sets."""
        known = list(merged.channels)
        until = time.process_time() + (self.search.left() or 0.0)
        response = response_until(self.rules, self.search, merged.subsets, until)
        if response is not None:
            known.append((response.weights, response.points))
        for weights, points in known:
            # P(t, y) of every output, whose sum over t is the weight.
            masses = points.images(self.given_x).T * weights
            value = _conditional_entropy(masses)
            if value < best.value:
                best = replace(best, weights=weights, points=points, value=value)
        return best

    def best_of(self, members: Array, weights: Array) -> TaskEnvelope:
        """As of `CutSolver`; one linear program has no need of the weights."""
        return best_members(self.point, self.given_x, members)

    def is_proven(self, value: float, bound: float) -> bool:
        """As of `CutSolver`."""
        return value - bound <= 0.5 * self.gap


@dataclass(frozen=True)
class TaskFigures:
    """What a channel tells of a task.

    `prior` is H(T) and `largest` I(T;X), in nats; `kept` is I(T;Y) / I(T;X), rounded down.
    """

    prior: float
    largest: float
    kept: float


class _TaskFound(NamedTuple):
    """A verified channel for a task, with the bound on the entropy of the task and its proof.

    `prices`, `leakages` and `touched` are as in `TaskProof`, `prices` None without a proof.
    `status` says how the search ended.
    """

    rounded: Rounded
    bound: float
    prices: Array | None
    touched: tuple[tuple[float, ...], ...] | None
    leakages: tuple[float, ...] | None = None
    status: str = "some posteriors are not listed"
    method: str = "vertices"


def _task_by_promise(rules: Rules, program: _TaskProgram, end: float) -> _TaskFound:
    """The best channel by the promise, without a budget on an average."""
    rounded, solution, rows_at = first_verified(
        rules, program, end, least_margin=TASK_MARGIN, search=program.search
    )
    return _TaskFound(
        rounded=rounded,
        bound=solution.bound,
        prices=solution.prices,
        touched=touched_in_file(rows_at),
        status=solution.status,
        # Branch and bound has nodes; listed vertices need none.
        method="columns" if solution.nodes else "vertices",
    )


def _task_within(
    rules: Rules,
    program: _TaskProgram,
    averages: Sequence[AverageBudget],
    end: float,
    *,
    alone: bool,
) -> _TaskFound:
    """The best channel within a budget on an average, beside the promise or alone."""
    rounded, within = purpose_within(
        rules,
        TaskPurpose(program.given_x),
        averages,
        program.is_proven,
        end,
        alone=alone,
    )
    return _TaskFound(
        rounded=rounded,
        bound=within.bound,
        prices=within.prices,
        touched=touched_in_file(within.touched),
        leakages=(max(within.charge, 0.0),),
    )


def information_of(table: Joint, joint: Joint) -> float:
    """I(T;X) in nats for the task of a checked table, with the symbols of `joint`."""
    masses = _masses(table, joint)
    return _entropy(masses.sum(axis=1)) - _conditional_entropy(masses)


def task_figures(channel: Channel, joint: Joint, table: Joint) -> TaskFigures:
    """What the channel of `joint` tells of the task of a checked table (`task_joint`)."""
    masses = _masses(table, joint)
    return task_figures_of(channel, joint, masses / masses.sum(axis=0))


def task_bound(figures: TaskFigures, least: float) -> float:
    """The share of I(T;X) that no channel exceeds if none has an H(T|Y) below `least`."""
    # I(T;Y) = H(T) - H(T|Y).
    bound = (figures.prior - least) / figures.largest
    return float(min(1.0, bound + INFORMATION_ERROR))


def task_figures_of(channel: Channel, joint: Joint, given_x: Array) -> TaskFigures:
    """The same for P(T | X), (|T|, n); InputError if X says nothing about T."""
    told = told_of_task(channel.matrix, joint.p_x, given_x)
    if not told.largest > INFORMATION_ERROR:
        raise InputError("the useful symbols say nothing about the task")
    kept = told.released / told.largest
    return TaskFigures(told.prior, told.largest, max(0.0, kept - INFORMATION_ERROR))


class ToldOfTask(NamedTuple):
    """H(T), I(T;X) and I(T;Y), in nats."""

    prior: float
    largest: float
    released: float


def told_of_task(matrix: Array, p_x: Array, given_x: Array) -> ToldOfTask:
    """What a channel P(Y|X), (n, outputs), and X itself tell of a task P(T|X), (|T|, n)."""
    # H(T) depends on P(T | X) and P_X of the table; both tables count the same records.
    prior = _entropy(given_x @ p_x)
    largest = prior - float(p_x @ _column_entropies(given_x))
    released = _conditional_entropy(given_x * p_x @ matrix)
    return ToldOfTask(prior, largest, prior - released)


def check_not_released(task: Sequence[str], released: Sequence[str]) -> None:
    """Raise InputError if a column of the task is released itself, or given."""
    if not set(task).isdisjoint(released):
        raise InputError(
            f"the task {quoted(','.join(task))} is released itself: leave the task out, or release "
            "other columns"
        )


def task_joint(task: Any, joint: Joint) -> Joint:
    """The table of the task column and the useful symbols, checked against the table.

    Raises
    ------
    InputError
        If it has other useful columns or symbols, or a single value of the task.
    """
    if not isinstance(task, Joint):
        raise InputError(
            "task must be a Joint of the task column and the useful column "
            "(Joint.from_table(frame, sensitive=TASK, useful=..)); with a data frame its name is "
            "enough"
        )
    name = quoted(",".join(task.sensitive.columns))
    if task.sensitive.columns == joint.sensitive.columns:
        raise InputError(
            f"the task {name} is the sensitive column: choose the column that the release should "
            "tell about"
        )
    check_not_released(task.sensitive.columns, joint.useful.columns)
    if task.useful.columns != joint.useful.columns:
        raise InputError(
            f"the table of the task {name} must have the useful column "
            f"{quoted(','.join(joint.useful.columns))}"
        )
    missing = [x for x in joint.useful.names if x not in task.useful.names]
    if missing or len(task.useful) != len(joint.useful):
        raise InputError(
            f"the table of the task {name} must have the same useful symbols as the table"
        )
    if len(task.sensitive) < 2:
        raise InputError(
            f"the task {name} has a single value: there is nothing to tell"
        )
    return task


def _counts(table: Joint, joint: Joint) -> tuple[tuple[int, ...], ...]:
    """The records of the task's table, with the symbols in the order of `joint`."""
    order = [table.useful.names.index(name) for name in joint.useful.names]
    return tuple(tuple(row[x] for x in order) for row in table.counts)


def _masses(table: Joint, joint: Joint) -> Array:
    """P(t, x) of the task's table, (|T|, n), with the symbols x in the order of `joint`."""
    order = [table.useful.names.index(name) for name in joint.useful.names]
    return table.p[:, order]


def _entropy(p: Array) -> float:
    """In nats."""
    positive = p[p > 0.0]
    return -math.fsum((positive * np.log(positive)).tolist())


def _column_entropies(conditional: Array) -> Array:
    """Entropy of every column of conditional probabilities, in nats."""
    positive = np.where(conditional > 0.0, conditional, 1.0)
    return -(positive * np.log(positive)).sum(axis=0)


def _conditional_entropy(masses: Array) -> float:
    """H(row | column) of joint masses, in nats."""
    total = masses.sum(axis=0)
    occurs = total > 0.0
    conditional = masses[:, occurs] / total[occurs]
    return float(total[occurs] @ _column_entropies(conditional))
