"""Which budget and which mechanism a comparison speaks for: the knee, and the cheapest that is nearly optimal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mechdesign.comparison.rows import ComparisonRow
from mechdesign.mechanisms import OPTIMAL

NEARLY = 0.99
"""Share of the optimum's utility from which a mechanism counts as nearly optimal."""

FEWEST_BUDGETS = 3
"""A chord and a point above it: below this number of budgets there is no knee."""


@dataclass(frozen=True)
class Recommendation:
    """What to take for one notion and lam.

    `epsilon` is the budget of the knee, None where the curve has none; `row` is what the best mechanism achieves
    there. `cheapest` is the mechanism that took the least time over the whole curve among those within 1% of the
    optimum at that budget; None if the optimum was not computed there. `share` is its share of the optimum's utility.
    """

    notion: str
    lam: float | None
    epsilon: float | None = None
    row: ComparisonRow | None = None
    cheapest: ComparisonRow | None = None
    share: float | None = None
    seconds: float | None = None


def recommend(rows: Sequence[ComparisonRow]) -> tuple[Recommendation, ...]:
    """One recommendation for each notion and lam, in the order of the rows."""
    groups: dict[tuple[str, float | None], list[ComparisonRow]] = {}
    for row in rows:
        if row.satisfied:
            groups.setdefault(row.curve, []).append(row)
    return tuple(_recommendation(notion, lam, group) for (notion, lam), group in groups.items())


def _recommendation(notion: str, lam: float | None, rows: Sequence[ComparisonRow]) -> Recommendation:
    by_mechanism: dict[str, list[ComparisonRow]] = {}
    for row in rows:
        by_mechanism.setdefault(row.mechanism, []).append(row)
    best = by_mechanism.get(OPTIMAL) or max(
        by_mechanism.values(), key=lambda curve: sum(r.nmi for r in curve)
    )
    curve = sorted(best, key=lambda row: row.epsilon)
    at = knee([row.epsilon for row in curve], [row.nmi for row in curve])
    if at is None:
        return Recommendation(notion, lam)
    chosen = curve[at]
    if OPTIMAL not in by_mechanism:
        return Recommendation(notion, lam, chosen.epsilon, chosen)
    near = [row for row in rows if row.epsilon == chosen.epsilon and row.nmi >= NEARLY * chosen.nmi]
    cost = {name: sum(row.seconds for row in group) for name, group in by_mechanism.items()}
    cheapest = min(near, key=lambda row: cost[row.mechanism])
    share = 1.0 if chosen.nmi == 0.0 else cheapest.nmi / chosen.nmi
    return Recommendation(notion, lam, chosen.epsilon, chosen, cheapest, share, cost[cheapest.mechanism])


def knee(budgets: Sequence[float], utilities: Sequence[float]) -> int | None:
    """Position of the point farthest above the chord from first to last (Satopää et al. 2011, both axes scaled to 1).

    None with fewer than three budgets, or where no point lies above the chord: more budget then keeps paying.
    """
    if len(budgets) < FEWEST_BUDGETS:
        return None
    width, height = budgets[-1] - budgets[0], utilities[-1] - utilities[0]
    if height <= 0.0:
        return None
    above = [
        (u - utilities[0]) / height - (e - budgets[0]) / width
        for e, u in zip(budgets, utilities, strict=True)
    ]
    best = max(range(len(above)), key=above.__getitem__)
    return best if above[best] > 0.0 else None
