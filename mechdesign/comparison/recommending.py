"""What a comparison answers: what 'at most twice as likely' costs, and where keeping most of the information begins.

Both are computed at budgets of their own, so that neither the grid of the comparison nor the clock has a say.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from mechdesign.comparison.grid import Case
from mechdesign.comparison.rows import ComparisonRow
from mechdesign.comparison.run import compare
from mechdesign.mechanisms import OPTIMAL
from mechdesign.notions import LARGEST_BUDGET
from mechdesign.tables.joint import Joint

TWICE = math.log(2.0)
"""The budget (nats) of a side that lets a belief double, or halve."""

MOST = 0.9
"""Share of the information from which most of it counts as kept."""

NEARLY = 0.99
"""Share of the optimum's utility from which a mechanism counts as nearly optimal."""

STEPS = 32
"""Steps of the search for a budget between it and its double: 2.2 % each, the same whatever grid was asked for."""

SMALLEST_POWER = -10
"""The search begins at 2^-10 nats."""

PATIENCE = 10.0
"""Seconds for each optimum unless told otherwise: a recommendation is a by-product."""

FALL = 1e-3
"""Share of the information by which a curve must fall to be spoken of: more than the gap of any optimum."""


@dataclass(frozen=True)
class Recommendation:
    """Two answers for one notion and lam.

    `twice` has a row for each mechanism at the budget where a released value makes nothing more than twice as likely
    (or, where only that is bounded, less than half as likely); it is empty where single lifts are not bounded.
    `most` is the optimum at the smallest budget, on a scale of 2.2 % steps, that keeps at least `MOST` of the
    information; None where no budget does or the optimum was not run.
    """

    notion: str
    lam: float | None
    twice: tuple[ComparisonRow, ...] = ()
    most: ComparisonRow | None = None
    with_optimum: bool = False


@dataclass(frozen=True)
class Fall:
    """A mechanism that keeps less at the larger of two neighbouring budgets."""

    before: ComparisonRow
    after: ComparisonRow


def recommend(
    joint: Joint, rows: Sequence[ComparisonRow], *, time_limit: float | None = None
) -> tuple[Recommendation, ...]:
    """One recommendation for each notion and lam, in the order of the rows."""
    groups: dict[tuple[str, float | None], list[str]] = {}
    for row in rows:
        if row.case.confidence is None:
            groups.setdefault(row.curve, []).append(row.mechanism)
    seconds = PATIENCE if time_limit is None else time_limit
    return tuple(
        _Curve(joint, notion, lam, seconds).recommendation(list(dict.fromkeys(mechanisms)))
        for (notion, lam), mechanisms in groups.items()
    )


@dataclass(frozen=True)
class _Curve:
    """A notion and lam on a table."""

    joint: Joint
    notion: str
    lam: float | None
    seconds: float

    def recommendation(self, mechanisms: Sequence[str]) -> Recommendation:
        budget = _twice(self.notion, self.lam)
        best = OPTIMAL in mechanisms
        return Recommendation(
            self.notion,
            self.lam,
            () if budget is None else self.rows(budget, mechanisms),
            self.first(MOST) if best else None,
            best,
        )

    def rows(self, epsilon: float, mechanisms: Sequence[str]) -> tuple[ComparisonRow, ...]:
        """Each mechanism at one budget."""
        return compare(
            self.joint,
            epsilons=[epsilon],
            lams=None if self.lam is None else [self.lam],
            mechanisms=mechanisms,
            notions=[self.notion],
            time_limit=self.seconds,
        ).rows

    def first(self, share: float) -> ComparisonRow | None:
        """The optimum at the first budget of the scale that keeps so much; it can only grow with the budget."""
        low, high = SMALLEST_POWER * STEPS - 1, math.floor(STEPS * math.log2(LARGEST_BUDGET))
        (found,) = self.rows(2.0 ** (high / STEPS), [OPTIMAL])
        if found.nmi < share:
            return None
        # Doubling first: tables keep most of their information long before the largest budget.
        power = 0
        while power < high:
            (row,) = self.rows(2.0 ** (power / STEPS), [OPTIMAL])
            if row.nmi >= share:
                found, high = row, power
                break
            low, power = power, power + STEPS
        while high - low > 1:
            middle = (low + high) // 2
            (row,) = self.rows(2.0 ** (middle / STEPS), [OPTIMAL])
            if row.nmi >= share:
                found, high = row, middle
            else:
                low = middle
        return found


def _twice(notion: str, lam: float | None) -> float | None:
    """The budget at which the tightest promise on single lifts is a factor of two."""
    epsilon = TWICE if lam is None else TWICE / (1.0 - lam)
    if epsilon > LARGEST_BUDGET:
        return None
    limits = Case(OPTIMAL, notion, epsilon, lam).promise().limits
    if limits.mean is not None:
        return None
    # The split of a budget rounds, and the promise must not exceed the factor.
    while math.isfinite(limits.upper) and limits.upper > TWICE:
        epsilon = math.nextafter(epsilon, 0.0)
        limits = Case(OPTIMAL, notion, epsilon, lam).promise().limits
    return epsilon


def falls(rows: Sequence[ComparisonRow]) -> tuple[Fall, ...]:
    """The steepest fall of each curve that keeps less at a larger budget, as curves of heuristics may."""
    curves: dict[tuple[str, str, float | None], list[ComparisonRow]] = {}
    for row in sorted(rows, key=lambda row: row.epsilon):
        curves.setdefault((row.mechanism, *row.curve), []).append(row)
    found: list[Fall] = []
    for members in curves.values():
        steepest = min(pairwise(members), key=lambda step: step[1].nmi - step[0].nmi, default=None)
        if steepest is not None and steepest[0].nmi - steepest[1].nmi > FALL:
            found.append(Fall(*steepest))
    return tuple(found)
