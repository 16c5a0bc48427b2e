"""What it costs to release one row in the place of another, and the figures of a verified plan.

With the objective truth a changed cell costs the weight of its column; weights sum to 1, so the
cost of a plan is the expected share of changed cells. A column of many different numbers counts
half by whether it changes and half by how far it moves, in ranks: so a number that must change
moves to a near one. With the objective distance numbers count by how far they move alone. For
example, with the columns job and age in full,

    d((nurse, 30), (clerk, 31)) = 1/2 + 1/4 + 1/4 |rank 30 - rank 31| / (ranks - 1).

The rank of a number is the share of the records with a smaller one, plus half of those with the
same: that of the median is 1/2.

*Figures.* The cost is rounded up, the share of unchanged cells down; the law is what an analyst
reads. A proof of the least cost is kept with what its costs are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple, cast

import numpy as np

from mechdesign.auditing.law import channel_law
from mechdesign.auditing.lifts import Demand, demands_of
from mechdesign.auditing.measures import beyond_given, utility
from mechdesign.auditing.unchanged import share_of_cells, unchanged_cells
from mechdesign.auditing.verdict import Audit
from mechdesign.channel.channel import Channel
from mechdesign.channel.proof import CellCost, CostProof
from mechdesign.channel.record import Objective
from mechdesign.core.errors import InputError
from mechdesign.core.integers import IntegerRows, Integers
from mechdesign.core.wording import at_least, at_most, listed, quoted
from mechdesign.mechanisms.least_cost_objective import (
    ABSOLUTE,
    DISTANCE,
    SQUARED,
    TRUTH,
    exact_costs,
)
from mechdesign.mechanisms.plan_request import COSTS, PlanRequest
from mechdesign.mechanisms.proofs import kept, texts_of
from mechdesign.mechanisms.result import Design, LeastCost, finish
from mechdesign.mechanisms.rounding import Rounded
from mechdesign.mechanisms.smallest_groups import GroupLaw
from mechdesign.release.fixed_counts import mean_counts
from mechdesign.tables.joint import Joint
from mechdesign.tables.people import ABSENT, RECORDS
from mechdesign.tables.variable import CodedCells, Variable, numbers_of
from solvers import Array
from solvers.plans import CellCosts, MatrixCosts

# -------------------------------------------------------------------------------- costs

RANKS = "ranks"
"""Distances of the ranks of numbers, which no column's unit decides."""

MANY_NUMBERS = 13
"""Different numbers of a column from which their distance counts: fewer are categories."""


class CellPart(NamedTuple):
    """One term of the cost of a changed cell: the place of its column, its weight, and the
    positions of the column's texts where it counts by how far it moves.
    """

    column: int
    weight: float
    positions: Array | None


def cell_costs(
    joint: Joint,
    cells: CodedCells,
    given: Sequence[str],
    objective: str,
    distance: str | None,
    weights: Mapping[str, Any] | None,
) -> CellCosts:
    """The costs of changed cells and moved numbers of the released columns.

    Raises
    ------
    InputError
        If a weight belongs to no released column or is not positive, or the objective distance
        finds no numbers.
    """
    parts = cell_parts(joint, cells, given, objective, distance, weights)
    return CellCosts(
        codes=np.column_stack([cells.codes[:, part.column] for part in parts]),
        weights=np.array([part.weight for part in parts]),
        positions=tuple(part.positions for part in parts),
    )


def recorded_costs(
    parts: Sequence[CellPart], costs: CellCosts, cells: CodedCells
) -> tuple[CellCost, ...]:
    """The same costs for the proof in a channel file."""
    recorded: list[CellCost] = []
    for part, positions in zip(parts, costs.positions, strict=True):
        places: dict[str, float] | None = None
        if positions is not None:
            # Those of `CellCosts`, whose differences are costs.
            places = dict(
                zip(cells.texts[part.column], positions.tolist(), strict=True)
            )
        name = cells.columns[part.column]
        recorded.append(CellCost(column=name, weight=part.weight, places=places))
    return tuple(recorded)


def cell_parts(
    joint: Joint,
    cells: CodedCells,
    given: Sequence[str],
    objective: str,
    distance: str | None,
    weights: Mapping[str, Any] | None,
) -> list[CellPart]:
    """What changed cells and moved numbers of the released columns cost.

    Raises
    ------
    InputError
        If a weight belongs to no released column or is not positive, or the objective distance
        finds no numbers.
    """
    share_of = column_weights(cells.columns, given, weights)
    if objective not in (TRUTH, DISTANCE):
        raise InputError(
            f"--objective ({quoted(objective)}) must be truth, distance, information, a purpose or "
            "a matrix of costs"
        )
    parts: list[CellPart] = []
    counts_numbers = False
    for k, name in enumerate(cells.columns):
        share = share_of.get(name, 0.0)
        if not share:
            continue
        ranks = _positions(joint, cells, k, objective, distance)
        if ranks is None:
            parts.append(CellPart(k, share, None))
            continue
        counts_numbers = True
        if objective == TRUTH:
            share /= 2
            parts.append(CellPart(k, share, None))
        parts.append(CellPart(k, share, ranks))
    if objective == DISTANCE and not counts_numbers:
        raise InputError(
            "--objective distance needs a released column of numbers; use --objective truth"
        )
    return parts


def check_distance(objective: Any, distance: str | None) -> None:
    """Raise InputError for a distance that the costs of rows do not have."""
    if distance is None:
        return
    if not isinstance(objective, str) or objective != DISTANCE:
        raise InputError(
            f"--distance ({quoted(distance)}) belongs to the objective distance (--objective "
            "distance)"
        )
    if distance == SQUARED:
        raise InputError(
            "squared distances are for one column of numbers (--useful COL --objective distance); "
            "rows count absolute ones, or ranks"
        )
    if distance not in (RANKS, ABSOLUTE):
        raise InputError(
            f"--distance ({quoted(distance)}) must be ranks or absolute for released rows"
        )


def column_weights(
    columns: Sequence[str], given: Sequence[str], weights: Mapping[str, Any] | None
) -> dict[str, float]:
    """The weight of every column that is not given; they sum to 1."""
    released = [name for name in columns if name not in given]
    wanted = dict.fromkeys(released, 1.0)
    for name, weight in (weights or {}).items():
        if name not in wanted:
            raise InputError(
                f"column weight: {quoted(name)} is no released column ({listed(released)})"
            )
        try:
            number = float(weight)
        except (TypeError, ValueError):
            number = -1.0
        if not 0.0 < number < float("inf"):
            raise InputError(
                f"the weight of the column {quoted(name)} ({quoted(weight)}) must be a positive "
                "number"
            )
        wanted[name] = number
    total = sum(wanted.values())
    return {name: weight / total for name, weight in wanted.items()}


def _positions(
    joint: Joint, cells: CodedCells, k: int, objective: str, distance: str | None
) -> Array | None:
    """The positions of the texts of a column of numbers; None where cells only change or not."""
    numbers = _numbers(joint.useful, cells, k)
    if numbers is None:
        return None
    if objective == TRUTH and len(numbers) < MANY_NUMBERS:
        return None
    if objective == DISTANCE and distance == ABSOLUTE:
        return np.array([float(number) for number in numbers])
    return _ranks(joint, cells, k, numbers)


def _numbers(variable: Variable, cells: CodedCells, k: int) -> list[Fraction] | None:
    """The number of every text of a column, None where it does not hold numbers."""
    # Each text is read once, however many rows have it.
    bins = variable.bins_of(k)
    texts = [text for text in cells.texts[k] if not _is_absent(variable, text)]
    if not texts:
        return None
    column = Variable(
        (variable.columns[k],),
        tuple((text,) for text in texts),
        bins=() if bins is None else (bins,),
    )
    try:
        numbers = numbers_of(column)
    except InputError:
        return None
    # A missing cell among the numbers has no distance to them: then cells change or do not.
    present = [number for number in numbers if number is not None]
    if len(present) < len(numbers):
        return None
    if len(texts) < len(cells.texts[k]):
        # Any number does: an absent record stays absent.
        present.insert(cells.texts[k].index(ABSENT), min(present))
    return present


def _is_absent(variable: Variable, text: str) -> bool:
    """Whether a cell is that of a record that a person does not have."""
    return variable.people is not None and text == ABSENT


def _ranks(
    joint: Joint, cells: CodedCells, k: int, numbers: Sequence[Fraction]
) -> Array:
    """The mean rank of every text of a column among the records, in [0, 1]."""
    masses = np.bincount(cells.codes[:, k], joint.p_x, len(numbers))
    for code, text in enumerate(cells.texts[k]):
        if _is_absent(joint.useful, text):
            masses[code] = 0.0
            masses /= masses.sum()
    order = sorted(range(len(numbers)), key=numbers.__getitem__)
    below = np.cumsum(masses[order]) - masses[order]
    ranks = np.zeros(len(numbers))
    ranks[order] = below + masses[order] / 2
    return ranks


# ------------------------------------------------------------------------------ figures

FLOAT_ERROR = 2.0**-44
"""No sum of products is off by more, relative, whose terms come from less than 500 roundings: one
for each released column, and a few. The terms are added without rounding."""


SPOKEN_DIGITS = 3
"""Significant digits of a cost in a remark; the report has all."""


METHOD = "plan"


def design_of_plan(
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
    objective = _objective(request, stays)
    least = LeastCost(
        objective=objective,
        cost=_cost(channel, costs),
        cost_lower_bound=bound,
        truth=unchanged,
        frequency_deviation=law.largest_deviation,
    )
    worth = beyond_given(utility(channel, joint), joint, request.given)
    design = finish(
        Rounded(channel, verdict), joint, objective.name, METHOD, started, worth=worth
    )
    figures = {
        **(design.channel.record.utility or {}),
        **least.figures,
        "truth_by_column": truth,
        "law": law.record,
    }
    record = replace(
        design.channel.record,
        objective=objective,
        utility=figures,
        promise_kind=request.promise,
        averages=channel.record.averages,
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
    return replace(
        design,
        channel=recorded,
        least=least,
        truth=truth,
        smallest_group=1 if groups is None else groups.k,
        known=() if groups is None else request.known,
        single_rows=_single_rows(channel, joint, groups),
        messages=(_unfinished(least, joint),) if ended_early else (),
    )


def _objective(request: PlanRequest, stays: Sequence[Fraction]) -> Objective:
    """The objective with its limits, as the channel file keeps it."""
    name = request.objective if isinstance(request.objective, str) else COSTS
    distance = None
    if name == DISTANCE:
        distance = request.distance or RANKS
    names = request.joint.useful.names
    return Objective(
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
        never=tuple(dict(combination) for combination in request.never),
        column_weights={
            column: float(weight)
            for column, weight in (request.column_weights or {}).items()
        },
    )


def _unfinished(least: LeastCost, joint: Joint) -> str:
    """The message of a search whose cost is not proven to be the least."""
    unit = "row" if joint.useful.people is None else "record"
    whole = _largest_change(joint)
    return (
        f"the search ended early: a {unit} changes by "
        f"{at_most(least.cost / whole, SPOKEN_DIGITS)} on average (1 where all of it changes), "
        f"and by at least {at_least(least.cost_lower_bound / whole, SPOKEN_DIGITS)} in any "
        "such release; --time-limit (time_limit) allows more time"
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
    cells = request.joint.useful.coded
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
