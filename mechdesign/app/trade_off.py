"""The trade-off curve: what the best channel keeps at several budgets."""

from __future__ import annotations

import math

import mechdesign as md
from mechdesign.app.choice import Choice
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
    if choice.is_rows:
        raise md.InputError(
            "The curve is drawn for one released column; here whole rows are released."
        )
    joint = joint_of(table, choice)
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
    kept = {row.epsilon: row for row in comparison.rows}
    points: list[CurvePoint] = []
    for factor, budget in zip(CURVE_FACTORS, budgets, strict=True):
        row = kept[budget]
        points.append(CurvePoint(factor, row.nmi, row.upper_bound_nmi))
    return tuple(points)
