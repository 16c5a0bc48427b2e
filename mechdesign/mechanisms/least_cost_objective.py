"""Costs of a release: of untrue records, of distances between numbers, of a matrix, or convex ones.

The cost d(x, y) is that of releasing y for a record of x. `costs_of` has the costs of an objective
on the symbols of a table:

    truth       d(x, y) = 1 for y other than x
    distance    d(x, y) = |x - y|, or its square, between numbers or the medians of bins
    costs       the matrix that the user gave (`least_cost_matrix`)
    convex      0: the cost is a function of W, and `least_cost_convex` has it

Costs are exact integers over a common unit, so the cost of a channel of integers is exact, too. For
example, the distances between 1, 1.5 and 4 are the integers ((0, 1, 6), (1, 0, 5), (6, 5, 0)) over
the unit 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.channel.channel import Channel
from mechdesign.channel.record import Objective
from mechdesign.core.arguments import fraction_of
from mechdesign.core.errors import InputError
from mechdesign.core.wording import quoted
from mechdesign.mechanisms.least_cost_matrix import exact_costs
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import numbers_of
from solvers import Array

INFORMATION = "information"
TRUTH = "truth"
DISTANCE = "distance"
COSTS = "costs"
CONVEX = "convex"

ABSOLUTE = "absolute"
SQUARED = "squared"


@dataclass(frozen=True)
class LeastCostObjective:
    """The fields of `DesignRequest` of the same names, as given."""

    objective: Any = INFORMATION
    distance: str | None = None
    keep_frequencies: bool = False
    stay: Any = None
    forbid: Iterable[tuple[str, str]] = ()
    constraints: Callable[..., Any] | None = None

    @property
    def name(self) -> str:
        """The name of the objective; with "information" outputs are free."""
        if isinstance(self.objective, str):
            return self.objective
        if callable(self.objective):
            return CONVEX
        return COSTS


@dataclass(frozen=True, eq=False)
class Costs:
    """d(x, y): exact integers (n, n) over one unit, and the nearest doubles."""

    record: Objective
    units: NDArray[Any]
    unit: int

    @property
    def floats(self) -> Array:
        """(n, n) array."""
        # Python divides integers of any size with correct rounding.
        values = [value / self.unit for value in self.units.ravel().tolist()]
        return np.array(values).reshape(self.units.shape)

    def expected(self, channel: Channel, joint: Joint) -> Fraction:
        """The expected cost of a record, exactly: the sum of P(x) W(y|x) d(x, y)."""
        position = {name: y for y, name in enumerate(joint.useful.names)}
        columns = [position[label] for label in channel.outputs]
        expected = Fraction(0)
        rows = zip(
            joint.useful_counts,
            self.units,
            channel.integers.entries(),
            channel.row_totals,
            strict=True,
        )
        for count, costs, entries, total in rows:
            cost = sum(int(costs[columns[output]]) * entry for output, entry in entries)
            expected += Fraction(count * cost, total)
        return expected / (joint.total * self.unit)


def costs_of(objective: LeastCostObjective, joint: Joint) -> Costs:
    """The costs of an objective on the symbols of a table.

    Raises
    ------
    InputError
        If the objective is unknown, or does not fit the table.
    """
    name = objective.name
    power = _power(objective)
    record = Objective.model_validate(
        {
            "name": name,
            "distance": power,
            "keep_frequencies": objective.keep_frequencies,
        }
    )
    n = len(joint.useful)
    if name == TRUTH:
        return Costs(record, ~np.eye(n, dtype=np.bool_), 1)
    if name == CONVEX:
        # The cost is a cvxpy expression; the linear part is zero.
        return Costs(record, np.zeros((n, n), dtype=np.bool_), 1)
    if name == COSTS:
        units, unit = exact_costs(objective.objective, joint)
        return Costs(record, units, unit)
    values = _numbers(joint)
    unit = math.lcm(*(value.denominator for value in values))
    # Integers over the common denominator of all numbers, of Python: squared distances of long
    # numbers exceed 64 bits.
    scaled = np.array([int(value * unit) for value in values], dtype=object)
    distances = np.abs(np.subtract.outer(scaled, scaled))
    if power == SQUARED:
        return Costs(record, distances**2, unit**2)
    return Costs(record, distances, unit)


def _power(objective: LeastCostObjective) -> str | None:
    """The distance between numbers, None for other objectives; InputError for no objective."""
    target = objective.objective
    if isinstance(target, str) and target not in (TRUTH, DISTANCE):
        raise InputError(
            f"objective ({target!r}) must be information, truth, distance or a matrix of costs "
            "(--objective COSTS.csv)"
        )
    power = objective.distance
    if power is not None and objective.name != DISTANCE:
        raise InputError(
            "distance says how numbers are compared: it belongs to objective distance"
        )
    if power not in (None, ABSOLUTE, SQUARED):
        raise InputError(f"distance ({power!r}) must be absolute or squared")
    if objective.name != DISTANCE:
        return None
    if power is None:
        return ABSOLUTE
    return power


def _numbers(joint: Joint) -> list[Fraction]:
    """The number of every symbol; of bins their medians in the table."""
    columns = joint.useful.columns
    # A bin is released as its median, so distances are between medians.
    if any(joint.useful.bins):
        values = [value for value in numbers_of(joint.useful) if value is not None]
        if len(columns) > 1 or len(values) < len(joint.useful):
            raise InputError(
                "objective distance needs one useful column of numbers, each bin with a number "
                "of its own"
            )
        return values
    if len(columns) > 1:
        raise InputError(
            "objective distance needs one useful column of numbers, not several crossed ones"
        )
    column = quoted(",".join(joint.useful.columns))
    values = []
    for symbol in joint.useful.symbols:
        text, *_ = symbol
        try:
            values.append(fraction_of(text))
        except InputError:
            raise InputError(
                f"objective distance needs numbers, but the column {column} has the "
                f"symbol {quoted(text)}; use objective truth, or a matrix of costs"
            ) from None
    return values
