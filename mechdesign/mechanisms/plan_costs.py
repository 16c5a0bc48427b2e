"""What it costs to release one row in the place of another.

With the objective truth a changed cell costs the weight of its column; weights sum to 1, so the
cost of a plan is the expected share of changed cells. A column of many different numbers counts
half by whether it changes and half by how far it moves, in ranks: so a number that must change
moves to a near one. With the objective distance numbers count by how far they move alone. For
example, with the columns job and age in full,

    d((nurse, 30), (clerk, 31)) = 1/2 + 1/4 + 1/4 |rank 30 - rank 31| / (ranks - 1).

The rank of a number is the share of the records with a smaller one, plus half of those with the
same: that of the median is 1/2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from mechdesign.channel.proof import CellCost
from mechdesign.core.errors import InputError
from mechdesign.core.wording import listed, quoted
from mechdesign.mechanisms.least_cost_objective import (
    ABSOLUTE,
    DISTANCE,
    SQUARED,
    TRUTH,
)
from mechdesign.tables.joint import Joint
from mechdesign.tables.people import ABSENT
from mechdesign.tables.variable import CodedCells, Variable, numbers_of
from solvers import Array
from solvers.plans import CellCosts

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
            f"objective ({quoted(objective)}) must be truth, distance, information, a purpose or a "
            "matrix of costs"
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
            "objective distance needs a released column of numbers; use objective truth"
        )
    return parts


def check_distance(objective: Any, distance: str | None) -> None:
    """Raise InputError for a distance that the costs of rows do not have."""
    if distance is None:
        return
    if not isinstance(objective, str) or objective != DISTANCE:
        raise InputError(
            f"distance ({quoted(distance)}) belongs to the objective distance (--objective "
            "distance)"
        )
    if distance == SQUARED:
        raise InputError(
            "squared distances are for one column of numbers (--useful COL --objective distance); "
            "rows count absolute ones, or ranks"
        )
    if distance not in (RANKS, ABSOLUTE):
        raise InputError(
            f"distance ({quoted(distance)}) must be ranks or absolute for released rows"
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
