"""Rows that are released as rows of the table: a transport plan between the table's own rows.

A *plan* F(x, y) says how much of the mass P(x) of the row x is released as the row y. Its row sums
are P(x). With the law kept its column sums are P(y), too: every row is released as often as the
table has it, and rows that no record has never occur. The channel is W(y|x) = F(x, y) / P(x).

`plan_design` goes through these steps:

1. The promise becomes linear limits on what goes to each output (`plan_request`), the objective
   costs of pairs of rows (`plan_costs`).
2. `solvers.plans` finds a plan of least cost with a proven bound, in each stratum of the given
   columns by itself.
3. The plan becomes integers with exact row and column sums (`solvers.plans.integer_plan`), which
   must pass the exact audit and keep the shares that must stay; if they do not, the next plan keeps
   more distance from both.
4. The figures are computed from the integers (`plan_costs`).

docs/explanation/rows-theory.md has the proofs.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from mechdesign.auditing.averages import average_verdicts
from mechdesign.auditing.lifts import (
    Demand,
    LargestQuotients,
    demands_of,
    output_masses,
)
from mechdesign.auditing.strata import members_of, strata_of, stratum_demands
from mechdesign.auditing.verdict import audit_on_table
from mechdesign.channel.channel import DENOMINATOR, Channel
from mechdesign.channel.output_cells import own_rows
from mechdesign.channel.proof import AverageCharge, CostProof
from mechdesign.channel.record import (
    RELATIVE,
    AverageBudget,
    ChannelRecord,
)
from mechdesign.core.errors import InputError, NotPrivate, SolverFailure
from mechdesign.core.wording import listed
from mechdesign.mechanisms.average_budgets import averages_of
from mechdesign.mechanisms.least_cost_objective import exact_costs, stays_of_symbols
from mechdesign.mechanisms.least_cost_rounding import (
    keeps_stays,
    least_shares,
    plan_rows,
)
from mechdesign.mechanisms.plan_costs import (
    cell_costs,
    check_distance,
    design_of_plan,
)
from mechdesign.mechanisms.plan_request import (
    PlanRequest,
    check_stays,
    forbidden,
    limits_of_demands,
)
from mechdesign.mechanisms.proofs import charged, of_plan
from mechdesign.mechanisms.result import Design
from mechdesign.mechanisms.rounding import Rounded
from mechdesign.mechanisms.search_options import cost_steps
from mechdesign.mechanisms.smallest_groups import (
    GroupLaw,
    default_smallest_group,
    group_law,
)
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import CodedCells
from solvers import Array, SolverError
from solvers.errors import OutOfTime
from solvers.plans import (
    CellCosts,
    MatrixCosts,
    Plan,
    PlanError,
    PlanProblem,
    solve_plan,
)

MARGINS = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3)
"""Relative distances from the budgets that are tried in turn: rounding a plan to integers moves the
lifts of a row of few records by some 1e-10, and solvers keep limits to 1e-9."""

GROUP_TIME = 20.0
"""Most seconds for the choice of the rows that are released with a smallest group."""

GROUP_SHARE = 0.4
"""Most of the time limit that this choice may take."""

PLANS_TIME = 0.9
"""Part of the time limit for plans within budgets on averages; the rest is for exact checks."""

PAIR_TIME = 2e-8
"""Seconds for a pair of rows that are left for the exact checks of a plan and of its bound, which
look at all pairs: 2.7 s for 11,800 rows."""

CHECKS_SHARE = 0.2
"""Most of the time limit that is left for them."""

LEAST_TIME = 1e-3
"""Seconds for a plan where the time is over: its first programs may take as long again."""


def plan_design(request: PlanRequest) -> Design:
    """The plan of least cost for a promise, verified exactly, as a design.

    Raises
    ------
    InputError
        If an option does not fit the table.
    NotPrivate
        If the given columns alone break the promise, or the restrictions leave no plan.
    SolverFailure
        If no plan passed the exact audit.
    """
    started = time.process_time()
    joint = request.joint
    cells = joint.useful.coded
    costs = _costs(request, cells)
    groups = _groups(request, cells)
    demands = demands_of(request.whole or joint, request.notion, request.after, joint)
    strata, by_stratum = _by_stratum(request, demands)
    stays = stays_of_symbols(request.stay or 0, joint)
    problem = _problem(request, costs, groups, strata, by_stratum, stays)
    record = ChannelRecord(promise_kind=request.promise)
    bound = 0.0
    proof: CostProof | None = None
    averages: tuple[AverageBudget, ...] = ()
    if request.average is not None:
        averages = averages_of(request.average, joint)
    for margin in MARGINS:
        try:
            plan, charges = _solved(request, problem, averages, margin, started)
        except PlanError as error:
            raise _refusal(request, error) from None
        except SolverError as error:
            raise _not_computed(error) from error
        # Bounds are for the limits as they are asked, whatever the margin.
        if plan.lower_bound > bound:
            bound = plan.lower_bound
            proof = of_plan(
                plan.proof, request.notion.limits, demands, joint.useful_counts
            )
            if proof is not None and averages:
                proof = charged(proof, charges, alone=request.is_average_alone)
        channel = _channel(request, plan, groups).with_record(record)
        verdict = audit_on_table(
            channel, request.whole or joint, request.notion, after=request.after
        )
        leaked = average_verdicts(channel, joint, averages)
        is_within = verdict.satisfied and all(one.kept for one in leaked)
        if is_within and keeps_stays(channel, stays):
            if request.is_average_alone:
                # Loaded here, because few designs need it.
                from mechdesign.mechanisms.averages import with_own_lifts

                # Nothing was promised of single rows, so what they do is stated.
                verdict = with_own_lifts(Rounded(channel, verdict), joint).audit
            achieved = tuple(
                budget.model_copy(update={"achieved": one.leakage})
                for budget, one in zip(averages, leaked, strict=True)
            )
            channel = channel.with_record(replace(record, averages=achieved))
            return design_of_plan(
                request,
                costs,
                stays,
                channel,
                verdict,
                bound,
                proof,
                plan.ended_early,
                groups,
                started,
            )
    raise SolverFailure(
        "no plan passed the exact audit: give a larger budget, or release fewer columns"
    )


def _by_stratum(
    request: PlanRequest, demands: list[Demand]
) -> tuple[list[int], list[list[Demand]]]:
    """The stratum of every row, by its given cells, and the demands of each stratum.

    Raises
    ------
    NotPrivate
        If the given columns alone break the promise.
    """
    joint = request.joint
    if not request.given:
        return [0] * len(joint.useful), [demands]
    strata = strata_of(request.given, joint)
    if request.promise == RELATIVE:
        return strata, stratum_demands(demands, joint, request.notion, strata)
    by_stratum = [demands] * (max(strata) + 1)
    check_given(joint, request.given, by_stratum, strata)
    return strata, by_stratum


def _solved(
    request: PlanRequest,
    problem: PlanProblem,
    averages: Sequence[AverageBudget],
    margin: float,
    started: float,
) -> tuple[Plan, tuple[AverageCharge, ...]]:
    """The plan of least cost within the budgets on averages, and what they add to its proof."""

    def left() -> float:
        if request.time_limit is None:
            return math.inf
        whole = request.time_limit * (PLANS_TIME if averages else 1.0)
        # What comes after the plan is part of the limit.
        checks = PAIR_TIME * len(request.joint.useful) ** 2
        whole -= min(checks, CHECKS_SHARE * request.time_limit)
        return whole - (time.process_time() - started)

    def solve(
        problem: PlanProblem, part: float = 1.0, start: Plan | None = None
    ) -> Plan:
        limit = None
        deadline = None
        if request.time_limit is not None:
            limit = max(left() * part, LEAST_TIME)
            deadline = left()
            # Budgets on averages take many plans, whose first ones must not take longer, either.
            if not averages:
                deadline += request.time_limit
        return solve_plan(
            problem,
            time_limit=limit,
            deadline=deadline,
            start=start,
            gap=request.gap,
            margin=margin,
            progress=cost_steps(request.progress),
        )

    if not averages:
        return solve(problem), ()
    # Imported here with the solvers of averages, which most plans do without.
    from mechdesign.mechanisms.plan_averages import PlanAverage, plan_within

    limited = [PlanAverage(average, request.joint, margin) for average in averages]
    return plan_within(problem, limited, solve, request.gap, lambda: left() <= 0.0)


def _costs(request: PlanRequest, cells: CodedCells) -> CellCosts | MatrixCosts:
    """The costs of the objective."""
    check_distance(request.objective, request.distance)
    if isinstance(request.objective, str):
        return cell_costs(
            request.joint,
            cells,
            request.given,
            request.objective,
            request.distance,
            request.column_weights,
        )
    if request.column_weights:
        raise InputError(
            "column weights are for the objectives truth and distance: a matrix of costs says "
            "itself what each row costs"
        )
    units, unit = exact_costs(request.objective, request.joint)
    values = [value / unit for value in units.ravel().tolist()]
    return MatrixCosts(np.array(values).reshape(units.shape))


def _groups(request: PlanRequest, cells: CodedCells) -> GroupLaw | None:
    """The rows that are released and how often, where small groups are not; None for all rows."""
    joint = request.joint
    size = request.smallest_group
    known = _places(request.known, cells)
    counts = np.array(joint.useful_counts, dtype=object)
    if size is None:
        size = 1
        if request.keep_law and joint.is_counts:
            size = default_smallest_group(cells.codes, counts.astype(np.int64), known)
    if size == 1:
        return None
    if not joint.is_counts:
        raise InputError(
            "a smallest group counts records, and this table has weights or probabilities"
        )
    if not request.keep_law:
        raise InputError(
            "a smallest group fixes how often each row is released, and free frequencies leave it "
            "open: leave one of them out (--smallest-group, --free-frequencies)"
        )
    return group_law(
        cells.codes,
        counts.astype(np.int64),
        size,
        known,
        given=_places(request.given, cells) or (),
        time_limit=_group_time(request),
        progress=request.progress,
    )


def _places(names: Sequence[str], cells: CodedCells) -> list[int] | None:
    """The places of some columns; None where none is named."""
    if not names:
        return None
    unknown = [name for name in names if name not in cells.columns]
    if unknown:
        raise InputError(f"--known: {listed(unknown)} is not released")
    return [cells.columns.index(name) for name in names]


def _group_time(request: PlanRequest) -> float:
    """Seconds for the choice of the rows that are released."""
    if request.time_limit is None:
        return GROUP_TIME
    return min(GROUP_TIME, request.time_limit * GROUP_SHARE)


def check_given(
    joint: Joint,
    given: Sequence[str],
    by_stratum: Sequence[Sequence[Demand]],
    strata: Sequence[int],
) -> None:
    """Raise NotPrivate where the given columns alone break a total promise, decided exactly."""
    useful = joint.useful
    strata_members = members_of(strata)
    for k, (demands, members) in enumerate(
        zip(by_stratum, strata_members, strict=True)
    ):
        largest = LargestQuotients()
        for demand in demands:
            masses = output_masses(demand, members, [1] * len(members))
            largest.add(masses, demand, k)
        if all(extreme.kept for extreme in largest.extremes):
            continue
        symbol = useful.symbols[members[0]]
        cells = [f"{name}={symbol[useful.columns.index(name)]}" for name in given]
        remedy = "release them (--release), or promise relative to them"
        if useful.people is not None:
            # The number of records is always given.
            remedy = "promise relative to them"
        raise NotPrivate(
            f"the given columns alone break the promise where {listed(cells)}: {remedy} "
            "(--promise relative)"
        )


def _problem(
    request: PlanRequest,
    costs: CellCosts | MatrixCosts,
    groups: GroupLaw | None,
    strata: Sequence[int],
    by_stratum: Sequence[Sequence[Demand]],
    stays: Sequence[Fraction],
) -> PlanProblem:
    """The program of the request."""
    joint = request.joint
    pairs = forbidden(request)
    check_stays(request, stays, pairs)
    targets: Array | None = None
    if groups is not None:
        targets = groups.targets / joint.total
    elif request.keep_law:
        targets = joint.p_x
    return PlanProblem(
        masses=joint.p_x,
        targets=targets,
        costs=costs,
        limits=limits_of_demands(by_stratum, strata, joint.useful_counts),
        strata=np.array(strata) if request.given else None,
        forbidden=pairs,
        stay=least_shares(stays),
    )


def _refusal(request: PlanRequest, error: PlanError) -> Exception:
    """Why there is no plan, in the words of the user."""
    if request.stay is not None or request.forbid or request.never:
        restrictions = {
            "--stay": request.stay is not None,
            "--forbid": bool(request.forbid),
            "--never": bool(request.never),
        }
        given = [option for option, is_given in restrictions.items() if is_given]
        remedies = "give a larger budget"
        if (request.smallest_group or 1) > 1:
            # Their numbers of records leave no frequencies open.
            remedies += ", allow smaller groups (--smallest-group)"
        elif request.keep_law:
            remedies += ", leave frequencies open (--free-frequencies)"
        return NotPrivate(
            f"no plan keeps the promise with {' and '.join(given)}: {remedies}, or ask for less"
        )
    return _not_computed(error)


def _not_computed(error: SolverError) -> SolverFailure:
    """What a failure of the solver is called."""
    if isinstance(error, OutOfTime):
        return SolverFailure(
            "the time limit is too short to find rows that keep the promise: give more time "
            "(--time-limit), put numbers in bins (--bin), or release fewer columns"
        )
    return SolverFailure(f"the plan could not be computed: {error}")


def _channel(request: PlanRequest, plan: Plan, groups: GroupLaw | None) -> Channel:
    """The channel of a plan, in integers."""
    joint = request.joint
    released: Sequence[int] | None = None
    if request.keep_law:
        released = joint.useful_counts
        if groups is not None:
            released = groups.targets.tolist()
    rows = plan_rows(plan, joint.useful_counts, released)
    outputs = rows.outputs.tolist()
    return Channel(
        useful=joint.useful,
        outputs=tuple(joint.useful.names[y] for y in outputs),
        rows=rows.integers,
        denominator=DENOMINATOR,
        joint=joint,
        totals=rows.totals,
        given=request.given,
        published=own_rows(joint.useful, outputs),
    )
