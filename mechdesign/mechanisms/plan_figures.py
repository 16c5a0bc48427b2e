"""The design of a verified plan with its figures, computed from the integers of its channel.

The cost is rounded up, the share of unchanged cells down; the law is what an analyst reads. A proof
of the least cost is kept with what its costs are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, cast

import numpy as np

from mechdesign.auditing.demands import Demand, demands_of
from mechdesign.auditing.law import channel_law
from mechdesign.auditing.measures import beyond_given, utility
from mechdesign.auditing.unchanged import share_of_cells, unchanged_cells
from mechdesign.auditing.verdict import Audit
from mechdesign.channel.channel import Channel
from mechdesign.channel.proof import CostProof
from mechdesign.channel.record import (
    Objective,
)
from mechdesign.core.errors import InputError
from mechdesign.core.integers import IntegerRows, Integers
from mechdesign.core.wording import at_least, at_most
from mechdesign.mechanisms.least_cost_objective import exact_costs
from mechdesign.mechanisms.plan_costs import (
    RANKS,
    cell_parts,
    recorded_costs,
)
from mechdesign.mechanisms.plan_request import COSTS, DISTANCE, PlanRequest
from mechdesign.mechanisms.proofs import kept, texts_of
from mechdesign.mechanisms.result import Design, LeastCost, finish
from mechdesign.mechanisms.rounding import Rounded
from mechdesign.mechanisms.smallest_groups import (
    GroupLaw,
)
from mechdesign.release.fixed_counts import mean_counts
from mechdesign.tables.joint import Joint
from mechdesign.tables.people import RECORDS
from solvers import Array
from solvers.plans import (
    CellCosts,
    MatrixCosts,
)

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
