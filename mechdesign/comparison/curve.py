"""The trade-off curve of a report, in a bounded time: as many budgets around the chosen one as it
allows.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from mechdesign.comparison.grid import AT, Case
from mechdesign.comparison.rows import ComparisonRow, with_bounds
from mechdesign.comparison.run import compare, row_of
from mechdesign.core.errors import InputError, SolverFailure
from mechdesign.core.progress import Progress
from mechdesign.mechanisms import OBJECTIVES
from mechdesign.mechanisms.optimal import OPTIMAL
from mechdesign.mechanisms.posteriors import check_convex
from mechdesign.mechanisms.request import MECHANISMS
from mechdesign.mechanisms.result import Design
from mechdesign.notions import LARGEST_BUDGET, Notion
from mechdesign.tables.joint import Joint

LONGEST = 6.0
"""Seconds for the whole curve unless told otherwise: a report is a by-product, `compare` is there
for more.
"""

OF_ALL = 0.2
"""Share of these seconds for one budget at most; the search then stops with its proven gap."""

GAP = 2e-3
"""Share of H(X) between a point and its bound: half a pixel of the picture."""

FACTORS = (0.5, 2.0, 1.5, 0.25, 2.5, 0.75, 1.25, 1.75, 2.25)
"""Budgets beside the chosen one, as multiples of it, the coarse picture first."""

FEWEST = 3
"""Points that make a curve."""

MORE = "`mechdesign compare` computes the curve without a limit."


@dataclass(frozen=True, kw_only=True)
class Curve:
    """The trade-off: rows of the mechanism (and of the optimum), the chosen point, what the budget
    axis is.
    """

    axis: str
    chosen: ComparisonRow
    rows: tuple[ComparisonRow, ...]
    remarks: tuple[str, ...]


class Axis(NamedTuple):
    """The budget axis through a notion: its name in a comparison, the chosen budget and how it is
    split.
    """

    notion: str
    epsilon: float
    lam: float | None

    @property
    def text(self) -> str:
        """``alip, epsilon = eps_l + eps_u in nats, lam 0.5``."""
        split = (
            ("", "")
            if self.lam is None
            else (" = eps_l + eps_u", f", lam {self.lam:g}")
        )
        return f"{self.notion}, epsilon{split[0]} in nats{split[1]}"


def axis_of(notion: Notion) -> Axis | None:
    """The axis that `compare` can follow through this notion; None where there is none."""
    if not notion.takes_lam():
        (budget,) = notion.budgets()
        return Axis(notion.label, getattr(notion, budget), None)
    eps_l, eps_u = notion.values()["eps_l"], notion.values()["eps_u"]
    if math.isinf(eps_l + eps_u):
        return None if notion.one_sided is None else axis_of(notion.one_sided)
    epsilon = eps_l + eps_u
    lam = eps_l / epsilon
    return (
        Axis(notion.label, epsilon, lam)
        if epsilon <= LARGEST_BUDGET and 0.0 < lam < 1.0
        else None
    )


def curve_through(
    joint: Joint,
    design: Design,
    axis: Axis,
    progress: Progress | None,
    seconds: float | None = None,
) -> tuple[Curve | None, str]:
    """The curve through a design in about so many seconds, or why there is none."""
    seconds = LONGEST if seconds is None else seconds
    if seconds == 0.0:
        return None, f"No curve: it was not asked for. {MORE}"
    if design.seconds > seconds:
        return None, (
            f"No curve: the channel took {design.seconds:.0f} s, and a report takes "
            f"{seconds:g} s for its curve. {MORE}"
        )
    made_by = (
        design.mechanism
        if design.mechanism in MECHANISMS or design.least is not None
        else OPTIMAL
    )
    made_by += "" if design.confidence is None else f"{AT}{design.confidence.level!r}"
    eps_l, eps_u = design.notion.sides
    row = row_of(Case(made_by, axis.notion, axis.epsilon, axis.lam), design)
    chosen, rows, cut_short = (
        replace(row, eps_l=eps_l, eps_u=eps_u),
        list[ComparisonRow](),
        0,
    )
    why_few = (
        f"the {seconds:g} s that a report takes for it were too short for this table"
    )
    tasks = _tasks(design, axis, made_by, OF_ALL * seconds)
    started, slowest = time.monotonic(), 0.0
    for k, (epsilon, task) in enumerate(tasks):
        if progress is not None:
            progress(k, len(tasks))
        began = time.monotonic()
        if began - started + slowest > seconds:
            break
        try:
            made = compare(joint, epsilons=[epsilon], **task)
        except KeyboardInterrupt:
            why_few = "its computation was stopped"
            break
        except SolverFailure:
            why_few = "other budgets gave no verified channel"
            continue
        slowest = max(slowest, time.monotonic() - began)
        rows += [row for row in made.rows if row.case != chosen.case]
        cut_short += len(made.notices)
    rows = sorted(
        _bounded([chosen, *rows]),
        key=lambda row: (row.mechanism != made_by, row.epsilon),
    )
    chosen = next(row for row in rows if row.case == chosen.case)
    budgets, wanted = (
        len({row.epsilon for row in rows}),
        len({axis.epsilon, *(at for at, _ in tasks)}),
    )
    if budgets < FEWEST:
        return None, f"No curve: {why_few}. {MORE}"
    remarks: list[str] = []
    if budgets < wanted:
        remarks.append(
            f"The curve has {budgets} of {wanted} budgets: {why_few}. {MORE}"
        )
    if cut_short > 0:
        remarks.append(
            f"{cut_short} of its searches ended early ({OF_ALL * seconds:.2g} s each): "
            "there the best channel may keep more than the line shows, never more "
            "than the proven bound."
        )
    if not all(math.isfinite(row.min_log_lift) for row in rows):
        remarks.append(
            "Where a lift is 0 the loss of belief is infinite; such points are not drawn."
        )
    return Curve(
        axis=axis.text, chosen=chosen, rows=tuple(rows), remarks=tuple(remarks)
    ), ""


def _bounded(rows: Sequence[ComparisonRow]) -> list[ComparisonRow]:
    """With bounds of larger budgets too, which hold for smaller ones: their channels keep the
    larger promise.
    """
    best: dict[float | None, float] = {}
    found: list[ComparisonRow] = []
    for row in sorted(with_bounds(rows), key=lambda row: -row.epsilon):
        level, bound = row.confidence, row.upper_bound_nmi
        if bound is not None:
            best[level] = min(bound, best.get(level, math.inf))
        found.append(
            replace(row, upper_bound_nmi=best.get(level)) if row.satisfied else row
        )
    return found


def _has_optimum(design: Design) -> bool:
    """Whether the optimum can be computed for the notion of the design on its table."""
    joint = design.channel.joint
    if joint is None:
        return False
    try:
        check_convex(design.notion, joint)
    except InputError:
        return False
    return True


def _tasks(
    design: Design, axis: Axis, made_by: str, seconds: float
) -> list[tuple[float, dict[str, Any]]]:
    """The budgets, and what `compare` takes for each."""
    beside: list[str] = []
    if made_by != OPTIMAL and _has_optimum(design):
        beside = [OPTIMAL]
    own, level = (
        [made_by.partition(AT)[0]],
        design.confidence and design.confidence.level,
    )
    budgets = {symbol: (lower, upper) for symbol, lower, upper in design.notion.own}
    shared: dict[str, Any] = {
        "notions": [axis.notion],
        "budgets": budgets,
        "confidence": level,
    }
    shared |= {
        "lams": None if axis.lam is None else [axis.lam],
        "time_limit": seconds,
        "gap": GAP,
    }
    both = shared
    if design.least is not None:
        asked = design.least.objective
        both = shared | {
            "keep_frequencies": asked.keep_frequencies,
            "distance": asked.distance,
        }
        if (
            asked.stay
            or asked.forbid
            or asked.constraints
            or asked.name not in OBJECTIVES
        ):
            own, both = (
                [],
                shared,
            )  # `compare` cannot make such a channel at other budgets.
    both = both | {"mechanisms": list(dict.fromkeys([*own, *beside]))}
    # Only the optimum is missing at the chosen budget.
    tasks = [(axis.epsilon, shared | {"mechanisms": beside})] * bool(beside)
    return tasks + [
        (at, both)
        for factor in FACTORS
        if (at := axis.epsilon * factor) <= LARGEST_BUDGET
    ]
