"""The trade-off curve: what the best channel keeps at several budgets.

A budget is a factor K of `CURVE_FACTORS`: no lift is above K or below 1/K. Each becomes a point, as
``CurvePoint(factor=2.0, kept=0.41, bound=0.41)``: 41 % of the information is kept, and no channel
with this promise keeps more.

- `_curve_of_column`: one `md.compare` of the optimum at all budgets, which shares its tables.
- `_curve_by_design`: rows and boxes are designed once for each budget, each with an equal share of
  the time. A budget that cannot be kept has no point; if none can, the last refusal is shown.
"""

from __future__ import annotations

import math
from dataclasses import replace

import mechdesign as md
from mechdesign.app.box_search import searched_boxes
from mechdesign.app.choice import Choice
from mechdesign.app.column_search import searched
from mechdesign.app.memory_table import MemoryTable
from mechdesign.app.results import CurvePoint, Say
from mechdesign.app.searching import joint_of

CURVE_FACTORS = (1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
"""Budgets of the trade-off curve, as factors."""


def compare_budgets(
    table: MemoryTable, choice: Choice, say: Say
) -> tuple[CurvePoint, ...]:
    """What the best channel keeps at several budgets."""
    choice.check()
    joint = joint_of(table, choice)
    if choice.is_rows or choice.is_boxes:
        return _curve_by_design(table, joint, choice, say)
    return _curve_of_column(joint, choice, say)


def _curve_of_column(
    joint: md.Joint, choice: Choice, say: Say
) -> tuple[CurvePoint, ...]:
    """The curve of one column, by the comparison of the optimum at all budgets."""
    if choice.used_bins:
        joint = joint.binned(choice.used_bins)
    # LIP(ln K) is the promise of a factor between 1/K and K.
    budgets = [math.log(factor) for factor in CURVE_FACTORS]
    comparison = md.compare(
        joint,
        epsilons=budgets,
        notions=("lip",),
        mechanisms=("optimal",),
        confidence=choice.confidence,
        time_limit=choice.seconds,
        progress=lambda done, total: say(f"{done} of {total} budgets"),
    )
    # With a level every budget has two rows, of which the last one is for the population.
    # A dict keeps the last row of an equal budget.
    kept = {row.epsilon: row for row in comparison.rows}
    points: list[CurvePoint] = []
    for factor, budget in zip(CURVE_FACTORS, budgets, strict=True):
        row = kept[budget]
        points.append(CurvePoint(factor, row.nmi, row.upper_bound_nmi))
    return tuple(points)


def _curve_by_design(
    table: MemoryTable, joint: md.Joint, choice: Choice, say: Say
) -> tuple[CurvePoint, ...]:
    """The curve of rows or boxes: a design at every budget, each with its share of the time."""
    share = choice.seconds / len(CURVE_FACTORS)
    points: list[CurvePoint] = []
    refusal = ""
    for done, factor in enumerate(CURVE_FACTORS):
        say(f"{done} of {len(CURVE_FACTORS)} budgets")
        tried = replace(choice, factor=str(factor), time_limit=str(share))
        try:
            design = _designed(table, joint, tried)
        except (md.InputError, md.SolverFailure) as error:
            # Given columns may break a small budget alone; a larger one may still be kept.
            refusal = str(error)
            continue
        points.append(CurvePoint(factor, design.nmi, design.upper_bound_nmi))
    if not points:
        raise md.InputError(refusal)
    return tuple(points)


def _designed(table: MemoryTable, joint: md.Joint, choice: Choice) -> md.Design:
    """The design at the budget of `choice`, without reports: only its figures are used."""
    if choice.is_boxes:
        return searched_boxes(table, joint, choice, _silent)
    return searched(joint, choice, _silent)


def _silent(text: str) -> None:
    """Takes the progress of a single budget, which says nothing of the whole."""
