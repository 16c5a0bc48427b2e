"""Rows that are released as rows of the table: a transport plan between the table's own rows.

A *plan* F(x, y) says how much of the mass P(x) of the row x is released as the row y. Its row sums
are P(x). With the law kept its column sums are P(y), too: every row is released as often as the
table has it, and rows that no record has never occur. The channel is W(y|x) = F(x, y) / P(x).

`plan_design` goes through these steps:

1. The promise becomes linear limits on what goes to each output (`plan_limits`), the objective
   costs of pairs of rows (`plan_costs`).
2. `solvers.plans` finds a plan of least cost with a proven bound, in each stratum of the given
   columns by itself.
3. The plan becomes integers with exact row and column sums (`solvers.plans.integer_plan`), which
   must pass the exact audit and keep the shares that must stay; if they do not, the next plan keeps
   more distance from both.
4. The figures are computed from the integers.

docs/explanation/rows-theory.md has the proofs.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, cast

import numpy as np

from mechdesign.auditing.averages import average_verdicts
from mechdesign.auditing.demands import Demand, demands_of
from mechdesign.auditing.extremes import LargestQuotients, output_masses
from mechdesign.auditing.law import channel_law
from mechdesign.auditing.measures import beyond_given, utility
from mechdesign.auditing.strata import members_of, strata_of, stratum_demands
from mechdesign.auditing.unchanged import share_of_cells, unchanged_cells
from mechdesign.auditing.verdict import Audit, audit
from mechdesign.channel.channel import DENOMINATOR, Channel
from mechdesign.channel.output_cells import own_rows
from mechdesign.channel.proof import CostProof
from mechdesign.channel.record import (
    RELATIVE,
    TOTAL,
    AverageBudget,
    ChannelRecord,
    Objective,
)
from mechdesign.core.errors import InputError, NotPrivate, SolverFailure
from mechdesign.core.integers import IntegerRows, Integers
from mechdesign.core.progress import Steps
from mechdesign.core.wording import at_least, at_most, listed, quoted
from mechdesign.mechanisms.average_budgets import averages_of
from mechdesign.mechanisms.averages import with_averages, with_own_lifts
from mechdesign.mechanisms.least_cost_limits import stays_of_symbols
from mechdesign.mechanisms.least_cost_matrix import exact_costs
from mechdesign.mechanisms.plan_averages import PlanAverage, plan_within
from mechdesign.mechanisms.plan_costs import (
    RANKS,
    CodedCells,
    cell_costs,
    cell_parts,
    check_distance,
    recorded_costs,
)
from mechdesign.mechanisms.plan_integers import keeps_stays, least_shares, plan_rows
from mechdesign.mechanisms.plan_limits import limits_of_demands
from mechdesign.mechanisms.proofs import kept, of_plan, texts_of
from mechdesign.mechanisms.result import Design, LeastCost, finish
from mechdesign.mechanisms.rounding import Rounded
from mechdesign.mechanisms.rules import check_sensitive
from mechdesign.mechanisms.search import cost_steps
from mechdesign.mechanisms.smallest_groups import (
    GroupLaw,
    default_smallest_group,
    group_law,
)
from mechdesign.notions import Notion
from mechdesign.release.mean_counts import mean_counts
from mechdesign.tables.joint import Joint
from mechdesign.tables.people import RECORDS
from solvers import Array, SolverError
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

LEAST_TIME = 1e-3
"""Seconds for a plan where the time is over: a first one is found in any case."""

FLOAT_ERROR = 2.0**-44
"""No sum of products is off by more, relative, whose terms come from less than 500 roundings: one
for each released column, and a few. The terms are added without rounding."""

TRUTH = "truth"
DISTANCE = "distance"
COSTS = "costs"

SPOKEN_DIGITS = 3
"""Significant digits of a cost in a remark; the report has all."""

METHOD = "plan"


@dataclass(frozen=True, eq=False, kw_only=True)
class PlanRequest:
    """What is asked of a release of rows as rows of the table.

    Parameters
    ----------
    joint : Joint
        The table over the released columns, given ones included.
    notion : Notion
        On single lifts.
    given : tuple of str
        Columns that are released as they are.
    promise : {"total", "relative"}
    objective : {"truth", "distance"} or matrix of costs
    distance : {"ranks", "absolute"}, optional
        With the objective distance: of ranks of numbers (the default), or of numbers themselves.
    column_weights : mapping of column to number, optional
    keep_law : bool
        Whether every row is released as often as the table has it.
    stay, forbid : as for `DesignRequest`
    never : sequence of mappings of column to text
        Combinations of cells that are never released.
    smallest_group : int or None
        Least number of records of the rows that are released; None for the default.
    known : tuple of str
        Columns that count for the groups; all released ones by default.
    average : mapping of a measure to its budget, optional
        Budgets on averages over the released rows, as for `DesignRequest`.
    is_average_alone : bool
        Whether nothing was promised of single rows; the channel then states its own lifts.
    whole, after : Joint and channels
        The table with the columns of earlier releases, and these.
    time_limit : float, optional
        Seconds of processor time.
    gap : float
        Distance from the proven least cost at which the search ends.
    """

    joint: Joint
    notion: Notion
    given: tuple[str, ...] = ()
    promise: str = TOTAL
    objective: Any = TRUTH
    distance: str | None = None
    column_weights: Mapping[str, Any] | None = None
    keep_law: bool = True
    stay: Any = None
    forbid: Iterable[tuple[str, str]] = ()
    never: Sequence[Mapping[str, str]] = ()
    smallest_group: int | None = None
    known: tuple[str, ...] = ()
    average: Mapping[str, Any] | None = None
    is_average_alone: bool = False
    whole: Joint | None = None
    after: Sequence[Channel] = ()
    time_limit: float | None = None
    gap: float = 1e-4
    progress: Steps | None = None


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
    if request.notion.limits.mean is not None:
        raise InputError(
            f"{request.notion.name} bounds averages: a release of rows as rows of the table "
            "bounds single lifts; use alip, lip, ldp, max-lift or min-lift, or free outputs "
            "(--objective information)"
        )
    check_sensitive(joint)
    cells = CodedCells.of(joint.useful)
    costs = _costs(request, cells)
    groups = _groups(request, cells)
    demands = demands_of(request.whole or joint, request.notion, request.after, joint)
    strata = [0] * len(joint.useful)
    by_stratum: list[list[Demand]] = [demands]
    if request.given:
        strata = strata_of(request.given, joint)
        by_stratum = [demands] * (max(strata) + 1)
        if request.promise == RELATIVE:
            by_stratum = stratum_demands(demands, joint, request.notion, strata)
        if request.promise == TOTAL:
            check_given(joint, request.given, by_stratum, strata)
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
            plan = _solved(request, problem, averages, margin, started)
        except PlanError as error:
            raise _refusal(request, error) from None
        except SolverError as error:
            raise _not_computed(error) from error
        # Bounds are for the limits as they are asked, whatever the margin.
        if plan.lower_bound > bound:
            bound = plan.lower_bound
            # With budgets on averages the duals are those of a program with their prices, too.
            if not averages:
                proof = of_plan(
                    plan.proof, request.notion.limits, demands, joint.useful_counts
                )
        channel = replace(_channel(request, plan, groups), record=record)
        verdict = audit(
            channel, request.whole or joint, request.notion, after=request.after
        )
        leaked = average_verdicts(channel, joint, averages)
        is_within = verdict.satisfied and all(one.kept for one in leaked)
        if is_within and keeps_stays(channel, stays):
            if request.is_average_alone:
                # Nothing was promised of single rows, so what they do is stated.
                verdict = with_own_lifts(Rounded(channel, verdict), joint).audit
            design = _design(
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
            if not averages:
                return design
            achieved = [
                budget.model_copy(update={"achieved": one.leakage})
                for budget, one in zip(averages, leaked, strict=True)
            ]
            return with_averages(design, achieved)
    raise SolverFailure(
        "no plan passed the exact audit: give a larger budget, or release fewer columns"
    )


def _solved(
    request: PlanRequest,
    problem: PlanProblem,
    averages: Sequence[AverageBudget],
    margin: float,
    started: float,
) -> Plan:
    """The plan of least cost, within the budgets on averages."""

    def left() -> float:
        if request.time_limit is None:
            return math.inf
        return request.time_limit - (time.process_time() - started)

    def solve(problem: PlanProblem, part: float = 1.0) -> Plan:
        limit = None
        if request.time_limit is not None:
            limit = max(left() * part, LEAST_TIME)
        return solve_plan(
            problem,
            time_limit=limit,
            gap=request.gap,
            margin=margin,
            progress=cost_steps(request.progress),
        )

    if not averages:
        return solve(problem)
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
        raise InputError(f"known: {listed(unknown)} is not released")
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
        forbidden=_forbidden(request),
        stay=least_shares(stays),
    )


def _forbidden(request: PlanRequest) -> tuple[Integers, Integers] | None:
    """The pairs of rows (from, to) that no plan may use."""
    useful = request.joint.useful
    pairs = forbidden_pairs(request)
    never = never_released(request)
    if never and request.keep_law:
        raise NotPrivate(
            "never: records of the table have such a row, and the law of the table is kept; "
            "leave it open (--free-frequencies), or leave --never out"
        )
    for y in never:
        pairs += [(x, y) for x in range(len(useful))]
    if not pairs:
        return None
    rows, columns = zip(*pairs, strict=True)
    return np.array(rows, dtype=np.int64), np.array(columns, dtype=np.int64)


def forbidden_pairs(request: PlanRequest) -> list[tuple[int, int]]:
    """The pairs of positions that `forbid` names.

    Each side of a pair is the name of a row, or a cell as ``column=text``: then every row with the
    one cell is never released as a row with the other. A row with both cells may stay; one that is
    named on both sides must change.
    """
    pairs: list[tuple[int, int]] = []
    for pair in request.forbid:
        # A text of two letters has a length of 2 as well.
        if isinstance(pair, str) or len(pair) != 2:
            raise InputError(
                f"forbid: {quoted(pair)} must be a pair of symbols, (from, to)"
            )
        sources = _meant(pair[0], request.joint, "forbid")
        targets = set(_meant(pair[1], request.joint, "forbid"))
        for source in sources:
            for target in targets:
                if target != source or pair[0] == pair[1]:
                    pairs.append((source, target))
    return pairs


def _meant(text: str, joint: Joint, option: str) -> list[int]:
    """The positions of the rows that a text means: a name, a cell of any column, or COLUMN=CELL."""
    useful = joint.useful
    if text in useful.names:
        return [useful.names.index(text)]
    column, has_column, cell = text.partition("=")
    if has_column and column in useful.columns:
        places = [useful.columns.index(column)]
    else:
        cell = text
        places = [
            k
            for k in range(len(useful.columns))
            if any(symbol[k] == text for symbol in useful.symbols)
        ]
        if len(places) > 1:
            names = [f"{useful.columns[k]}={text}" for k in places]
            raise InputError(
                f"{option}: {quoted(text)} is a cell of several columns: write {listed(names)}"
            )
    rows = [
        x
        for x, symbol in enumerate(useful.symbols)
        if places and symbol[places[0]] == cell
    ]
    if not rows:
        raise InputError(f"{option}: the table has no useful symbol {quoted(text)}")
    return rows


def never_released(request: PlanRequest) -> list[int]:
    """The positions of the rows with a combination of cells that `never` names."""
    useful = request.joint.useful
    rows: set[int] = set()
    for combination in request.never:
        if not combination:
            raise InputError(
                "never: a combination without a cell means every row; name its columns and cells"
            )
        unknown = [name for name in combination if name not in useful.columns]
        if unknown:
            raise InputError(f"never: {listed(unknown)} is not released")
        wanted = [
            (useful.columns.index(name), text) for name, text in combination.items()
        ]
        for k, text in wanted:
            # A combination that no row has is kept anyway; a cell that none has is a slip.
            if all(symbol[k] != text for symbol in useful.symbols):
                cell = f"{useful.columns[k]}={text}"
                raise InputError(
                    f"never: no row of the table has {quoted(cell)} (cells are written as text)"
                )
        for x, symbol in enumerate(useful.symbols):
            if all(symbol[k] == text for k, text in wanted):
                rows.add(x)
    return sorted(rows)


def _refusal(request: PlanRequest, error: PlanError) -> Exception:
    """Why there is no plan, in the words of the user."""
    if request.stay is not None or request.forbid or request.never:
        return NotPrivate(
            "no plan keeps the promise with these restrictions (stay, forbid, never): give a "
            "larger budget, leave frequencies open (--free-frequencies), or relax them"
        )
    return _not_computed(error)


def _not_computed(error: SolverError) -> SolverFailure:
    """What a failure of the solver is called."""
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


def _design(
    request: PlanRequest,
    costs: CellCosts | MatrixCosts,
    stays: Sequence[Fraction],
    channel: Channel,
    verdict: Audit,
    bound: float,
    proof: CostProof | None,
    ended_early: bool,
    groups: GroupLaw | None,
    started: float,
) -> Design:
    """The design of a verified channel with its figures."""
    joint = request.joint
    law = channel_law(channel, joint)
    # Labels alone have none, and rows are released as rows.
    assert law is not None
    truth = unchanged_cells(channel, joint)
    unchanged = share_of_cells(truth)
    names = joint.useful.names
    name = request.objective if isinstance(request.objective, str) else COSTS
    distance = None
    if name == DISTANCE:
        distance = request.distance or RANKS
    least = LeastCost(
        objective=Objective(
            # Other words were refused with the costs.
            name=cast("Any", name),
            distance=cast("Any", distance),
            keep_frequencies=request.keep_law,
            stay={
                symbol: str(share)
                for symbol, share in zip(names, stays, strict=True)
                if share
            },
            forbid=tuple((str(a), str(b)) for a, b in request.forbid),
            # Weights of columns are no constraints, yet without them it would be another objective.
            constraints=len(request.never) + len(request.column_weights or {}),
        ),
        cost=_cost(channel, costs),
        cost_lower_bound=bound,
        truth=unchanged,
        frequency_deviation=law.largest_deviation,
    )
    worth = beyond_given(utility(channel, joint), joint, request.given)
    design = finish(
        Rounded(channel, verdict), joint, name, METHOD, started, worth=worth
    )
    figures = {
        **(design.channel.record.utility or {}),
        **least.figures,
        "truth_by_column": truth,
        "law": law.record,
    }
    record = replace(
        design.channel.record,
        objective=least.objective,
        utility=figures,
        promise_kind=request.promise,
    )
    recorded = channel.with_record(record)
    if proof is not None:
        proof = _with_costs(request, proof, costs)
        demands: Sequence[Demand] | None = None
        if request.after:
            demands = demands_of(
                request.whole or joint, request.notion, request.after, joint
            )
        recorded = kept(recorded, proof, bound, demands)
    messages: list[str] = []
    if ended_early:
        unit = "row" if joint.useful.people is None else "record"
        whole = _largest_change(joint)
        messages.append(
            f"the search ended early: a {unit} changes by "
            f"{at_most(least.cost / whole, SPOKEN_DIGITS)} on average (1 where all of it changes), "
            f"and by at least {at_least(least.cost_lower_bound / whole, SPOKEN_DIGITS)} in any "
            "such release; --time-limit (time_limit) allows more time"
        )
    return replace(
        design,
        channel=recorded,
        least=least,
        truth=truth,
        smallest_group=1 if groups is None else groups.k,
        known=() if groups is None else request.known,
        single_rows=_single_rows(channel, joint, groups),
        messages=tuple(messages),
    )


def _largest_change(joint: Joint) -> float:
    """The mean cost of a release that changes all: of people with several records the share of the
    folded cells that are cells of a record.
    """
    people = joint.useful.people
    if people is None:
        return 1.0
    place = joint.useful.columns.index(RECORDS)
    lengths = np.array([int(symbol[place]) for symbol in joint.useful.symbols])
    return float(joint.p_x @ lengths) / people.longest


def _with_costs(
    request: PlanRequest,
    proof: CostProof,
    costs: CellCosts | MatrixCosts,
) -> CostProof:
    """The proof with what its costs are."""
    cells = CodedCells.of(request.joint.useful)
    if isinstance(costs, MatrixCosts):
        units, unit = exact_costs(request.objective, request.joint)
        return proof.model_copy(update={"costs": texts_of(units, unit)})
    parts = cell_parts(
        request.joint,
        cells,
        request.given,
        request.objective,
        request.distance,
        request.column_weights,
    )
    return proof.model_copy(update={"cells": recorded_costs(parts, costs, cells)})


def _single_rows(channel: Channel, joint: Joint, groups: GroupLaw | None) -> int:
    """The released rows that stand for a single record; 0 without whole numbers of records."""
    if groups is not None:
        return groups.unique
    if not joint.is_counts:
        return 0
    records = dict(zip(joint.useful.symbols, joint.useful_counts, strict=True))
    return sum(1 for cells in channel.output_cells if records[cells] == 1)


def groups_of(channel: Channel, joint: Joint) -> tuple[int, int]:
    """How often every released row occurs at least, and how many rows stand for a single record.

    The former is 1 where counts cannot be fixed: then any row may occur once.
    """
    single = _single_rows(channel, joint, None)
    if not joint.is_counts:
        return 1, single
    records = np.array(joint.useful_counts, dtype=np.int64)
    try:
        counts = mean_counts(IntegerRows.of(channel.rows), records).column_units
    except InputError:
        # Integers of other tools may be no fractions of a power of two.
        counts = None
    if counts is None:
        return 1, single
    return int(counts[counts > 0].min()), single


def _moves(channel: Channel) -> tuple[Integers, Integers, Array]:
    """The pairs (true row, released row) of a channel, and their shares of the records."""
    joint = channel.joint
    if joint is None:
        raise TypeError("a designed channel has its table")
    index = joint.useful.index
    outputs = np.array([index[symbol] for symbol in channel.output_cells])
    integers = channel.integers
    before = integers.row_of
    return before, outputs[integers.indices], joint.p_x[before] * channel.shares


def _cost(channel: Channel, costs: CellCosts | MatrixCosts) -> float:
    """The expected cost of a channel, rounded up."""
    before, after, masses = _moves(channel)
    cost = math.fsum((costs.pairs(before, after) * masses).tolist())
    return cost * (1.0 + FLOAT_ERROR)
