"""Lifts as ratios of integers, what is demanded of them, and the extreme ones of a channel; no floating point."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import mul
from typing import NamedTuple, TypeAlias

from mechdesign.auditing.exponentials import at_most_exp

Entries: TypeAlias = tuple[Sequence[int], Sequence[int]]
"""Rows of the positive entries of one output, and those entries."""


class LiftCell(NamedTuple):
    """One lift, ``mass * total / (row * output)`` in integers, of symbol `s` on output `y`."""

    s: int
    y: int
    mass: int
    row: int
    output: int
    total: int

    @property
    def lift(self) -> tuple[int, int]:
        """Numerator and denominator of the lift."""
        return self.mass * self.total, self.row * self.output

    @property
    def inverse(self) -> tuple[int, int]:
        """Those of its inverse; the denominator is 0 for a lift of 0."""
        return self.row * self.output, self.mass * self.total


@dataclass(frozen=True)
class Demand:
    """One table with its limits.

    `counts` has a row for each sensitive symbol and a column for each useful one, `sums` are total * P(s), `lower`
    and `upper` the budgets of each symbol in nats, `ratio` that of their quotients, `before` the earlier outputs.
    """

    counts: Sequence[Sequence[int]]
    sums: Sequence[int]
    names: Sequence[str]
    lower: Sequence[float]
    upper: Sequence[float]
    ratio: float
    before: tuple[str, ...] = ()

    @cached_property
    def total(self) -> int:
        """The common denominator of P(s)."""
        return sum(self.sums)

    @cached_property
    def groups(self) -> list[tuple[str, float, list[int]]]:
        """Symbols with the same budget, by side."""
        found: dict[tuple[str, float], list[int]] = {}
        for side, budgets in (("eps_l", self.lower), ("eps_u", self.upper)):
            for s, budget in enumerate(budgets):
                found.setdefault((side, budget), []).append(s)
        return [(*key, rows) for key, rows in found.items()]


@dataclass(frozen=True)
class DemandCell:
    """A quotient with the budget whose exp must bound it; `side` is what of `verdict.Achieved` it tells."""

    side: str
    budget: float
    over: tuple[int, int]
    cell: LiftCell
    demand: Demand
    against: int | None = None

    @property
    def kept(self) -> bool:
        """Whether it keeps to its budget, decided exactly; an infinite one is no limit."""
        return math.isinf(self.budget) or at_most_exp(*self.over, self.budget)


def extreme_cells(columns: Iterable[Entries], demands: Sequence[Demand]) -> list[DemandCell]:
    """For every side and every different budget the cell with the largest quotient, of all outputs and tables.

    Found by exact comparison of every cell; of equal ones the first. Outputs that never occur demand nothing.
    """
    most: dict[tuple[str, float], DemandCell] = {}
    for y, (at, values) in enumerate(columns):
        for demand in demands:
            masses = [sum(map(mul, [row[x] for x in at], values)) for row in demand.counts]
            if not any(masses):
                continue
            found: list[tuple[str, float, tuple[int, int], LiftCell, int | None]] = []
            for side, budget, rows in demand.groups:
                cell = _extreme(rows, masses, demand, y, largest=side == "eps_u")
                found.append((side, budget, cell.lift if side == "eps_u" else cell.inverse, cell, None))
            above, below = (_extreme(range(len(masses)), masses, demand, y, largest=k) for k in (True, False))
            ratio = above.mass * below.row, below.mass * above.row
            for side, budget, over, cell, against in (
                *found,
                ("eps_ldp", demand.ratio, ratio, above, below.s),
            ):
                best = most.get((side, budget))
                if (
                    best is None or over[0] * best.over[1] > best.over[0] * over[1]
                ):  # a zero below is infinity
                    most[side, budget] = DemandCell(side, budget, over, cell, demand, against)
    return list(most.values())


def _extreme(
    rows: Sequence[int], masses: Sequence[int], demand: Demand, y: int, *, largest: bool
) -> LiftCell:
    """The cell with the largest or the smallest lift among some symbols."""
    sums, best = demand.sums, rows[0]
    for s in rows[1:]:
        difference = masses[s] * sums[best] - masses[best] * sums[s]
        if difference > 0 if largest else difference < 0:
            best = s
    return LiftCell(best, y, masses[best], sums[best], sum(masses), demand.total)
