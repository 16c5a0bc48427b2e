"""The trade-off curve of a report, in a bounded time: as many budgets around the chosen one as it allows."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from mechdesign.auditing.verdict import Achieved
from mechdesign.comparison.rows import ComparisonRow
from mechdesign.comparison.run import Comparison, compare
from mechdesign.core.errors import InputError, SolverFailure
from mechdesign.core.progress import Progress
from mechdesign.mechanisms import OPTIMAL
from mechdesign.mechanisms.posteriors import check_polytope
from mechdesign.notions import LARGEST_BUDGET, Notion
from mechdesign.tables.joint import Joint

LONGEST = 20.0
"""Seconds for the whole curve: a report is a by-product, `compare` is there for more."""

LONGEST_POINT = 4.0
"""Seconds for one budget; the search then stops with its proven gap."""

FACTORS = (0.5, 2.0, 1.5, 0.25, 2.5, 0.75, 1.25, 1.75, 2.25)
"""Budgets beside the chosen one, as multiples of it, the coarse picture first."""

FEWEST = 3
"""Points that make a curve."""

VARIED = ("subset-response", "subset-merging", "complete-merging")
"""Mechanisms with options that `compare` does not vary."""

MORE = "`mechdesign compare` computes the curve without a limit."


@dataclass(frozen=True, kw_only=True)
class Curve:
    """The trade-off: rows of the mechanism (and of the optimum), the chosen point, what the budget axis is."""

    axis: str
    chosen: ComparisonRow
    rows: tuple[ComparisonRow, ...]
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class Axis:
    """The budget axis through a notion: its name in a comparison, the chosen budget and how it is split."""

    notion: str
    epsilon: float
    lam: float | None

    @property
    def text(self) -> str:
        """``alip, epsilon = eps_l + eps_u in nats, lam 0.5``."""
        if self.lam is None:
            return f"{self.notion}, epsilon in nats"
        return f"{self.notion}, epsilon = eps_l + eps_u in nats, lam {self.lam:g}"


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
    return Axis(notion.label, epsilon, lam) if epsilon <= LARGEST_BUDGET and 0.0 < lam < 1.0 else None


def chosen_row(
    axis: Axis,
    notion: Notion,
    achieved: Achieved,
    *,
    mechanism: str,
    nmi: float,
    upper_bound_nmi: float | None,
    satisfied: bool,
) -> ComparisonRow:
    """The channel of the report as a row of the comparison."""
    return ComparisonRow(
        mechanism=mechanism,
        notion=axis.notion,
        epsilon=axis.epsilon,
        lam=axis.lam,
        eps_l=notion.sides[0],
        eps_u=notion.sides[1],
        nmi=nmi,
        upper_bound_nmi=upper_bound_nmi,
        max_log_lift=achieved.eps_u,
        min_log_lift=0.0 - achieved.eps_l,
        satisfied=satisfied,
        repaired=False,
        seconds=0.0,
    )


def curve_through(
    joint: Joint,
    notion: Notion,
    axis: Axis,
    chosen: ComparisonRow,
    seconds: float,
    progress: Progress | None,
    options: Mapping[str, Any] | None = MappingProxyType({}),
) -> tuple[Curve | None, str]:
    """The curve through the chosen row, or why there is none.

    `options` are further ones of `compare`; None where it cannot make the chosen channel at other budgets.
    """
    if seconds > LONGEST / FEWEST:
        return None, (
            f"No curve: the channel took {seconds:.0f} s, and a report takes at most {LONGEST:.0f} s for its curve. "
            f"{MORE}"
        )
    collected = _collect(joint, notion, axis, chosen, progress, options)
    rows = sorted(
        [collected.chosen, *collected.rows], key=lambda row: (row.mechanism != chosen.mechanism, row.epsilon)
    )
    budgets = {row.epsilon for row in rows}
    if len(budgets) < FEWEST:
        return None, f"No curve: {collected.why_few}. {MORE}"
    return Curve(
        axis=axis.text, chosen=collected.chosen, rows=tuple(rows), remarks=collected.remarks(budgets)
    ), ""


@dataclass
class _Collected:
    """The rows so far, and what went short."""

    chosen: ComparisonRow
    rows: list[ComparisonRow]
    wanted: int
    cut_short: int = 0
    failed: int = 0
    stopped: bool = False

    @property
    def why_few(self) -> str:
        if self.stopped:
            return "its computation was stopped"
        if self.failed:
            return "other budgets gave no verified channel"
        return f"the {LONGEST:.0f} s that a report takes for it were too short for this table"

    def remarks(self, budgets: set[float]) -> tuple[str, ...]:
        texts: list[str] = []
        if len(budgets) < self.wanted:
            texts.append(f"The curve has {len(budgets)} of {self.wanted} budgets: {self.why_few}. {MORE}")
        if self.cut_short:
            texts.append(
                f"{self.cut_short} of its searches ended early ({LONGEST_POINT:.0f} s each): there the best channel "
                "may keep more than the line shows, never more than the proven bound."
            )
        if self.chosen.mechanism in VARIED:
            texts.append(
                f"The line of {self.chosen.mechanism} is drawn with its default options (--risk, --randomisation); a "
                "channel made with others may lie beside it."
            )
        if any(math.isinf(row.min_log_lift) for row in [self.chosen, *self.rows]):
            texts.append("Where a lift is 0 the loss of belief is infinite; such points are not drawn.")
        return tuple(texts)


def _collect(
    joint: Joint,
    notion: Notion,
    axis: Axis,
    chosen: ComparisonRow,
    progress: Progress | None,
    options: Mapping[str, Any] | None,
) -> _Collected:
    beside = [OPTIMAL] if chosen.mechanism != OPTIMAL and _has_optimum(notion) else []
    # Only the optimum is missing at the chosen budget.
    own = [] if options is None else [chosen.mechanism]
    tasks = [(1.0, beside)] * bool(beside) + [(factor, [*own, *beside]) for factor in FACTORS]
    tasks = [(axis.epsilon * factor, names) for factor, names in tasks]
    tasks = [(epsilon, names) for epsilon, names in tasks if epsilon <= LARGEST_BUDGET]
    found = _Collected(chosen, [], len({epsilon for epsilon, _ in tasks} | {axis.epsilon}))
    started = time.monotonic()
    slowest = 0.0
    for k, (epsilon, names) in enumerate(tasks):
        if progress is not None:
            progress(k, len(tasks))
        began = time.monotonic()
        if began - started + slowest > LONGEST:
            break
        try:
            made = _point(joint, axis, epsilon, names, (options or {}) if names != beside else {})
        except KeyboardInterrupt:
            found.stopped = True
            break
        except SolverFailure:
            found.failed += 1
            continue
        slowest = max(slowest, time.monotonic() - began)
        found.rows += made.rows
        found.cut_short += len(made.notices)
        if epsilon == axis.epsilon:
            bounds = [row.upper_bound_nmi for row in made.rows if row.upper_bound_nmi is not None]
            found.chosen = replace(chosen, upper_bound_nmi=min(bounds, default=None))
    return found


def _point(
    joint: Joint, axis: Axis, epsilon: float, mechanisms: list[str], options: Mapping[str, Any]
) -> Comparison:
    return compare(
        joint,
        mechanisms=mechanisms,
        keep_frequencies=bool(options.get("keep_frequencies")),
        distance=options.get("distance"),
        epsilons=[epsilon],
        lams=None if axis.lam is None else [axis.lam],
        notions=[axis.notion],
        time_limit=LONGEST_POINT,
    )


def _has_optimum(notion: Notion) -> bool:
    try:
        check_polytope(notion)
    except InputError:
        return False
    return True
