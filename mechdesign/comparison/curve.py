"""The trade-off curve of a report: as many budgets around the chosen one as a time limit allows.

A design has one budget; its report shows what other budgets would keep. For a design with ALIP and
eps_l = eps_u = 0.25 nats the axis is epsilon = eps_l + eps_u at lam = eps_l / epsilon = 0.5, and
the curve goes through epsilon = 0.5. Seven of its ten points: ::

    epsilon          0.125   0.25    0.375   0.5 (chosen)   0.75    1.0     1.25
    nmi              0.4833  0.5589  0.6232  0.6441         0.6987  0.7687  0.8567
    upper_bound_nmi  0.4834  0.5590  0.6233  0.6442         0.6988  0.7688  0.8568

1. `axis_of` names the budget that varies, or finds that there is none.
2. `_tasks` plans one run of `compare` for each multiple of the chosen budget (`FACTORS`), the
   coarse picture first. Each has the mechanism of the design and, where it can be computed, the
   optimum. The chosen point is the design itself.
3. `_computed` works through the tasks until all are done or the next might exceed the time.
4. `_with_bounds_of_larger` shares the proven bounds: that of a larger budget also holds for every
   smaller one.

`curve_through` does all this. With fewer than `FEWEST` points it gives the reason instead.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from mechdesign.channel.channel import Channel
from mechdesign.channel.record import Objective
from mechdesign.comparison.rows import AT, Case, ComparisonRow, with_bounds
from mechdesign.comparison.run import compare, row_of
from mechdesign.core.errors import InputError, SolverFailure
from mechdesign.core.progress import Progress
from mechdesign.mechanisms import OBJECTIVES
from mechdesign.mechanisms.optimal import OPTIMAL
from mechdesign.mechanisms.posteriors import check_optimum
from mechdesign.mechanisms.request import MECHANISMS
from mechdesign.mechanisms.result import Design
from mechdesign.notions import LARGEST_BUDGET, Notion
from mechdesign.tables.joint import Joint

LONGEST = 6.0
"""Seconds for the whole curve by default: a report is a by-product, and `compare` has no limit."""

SHARE_OF_ONE = 0.2
"""Largest share of these seconds for one budget; a search that exceeds it ends with its proven gap.
"""

GAP = 2e-3
"""Share of H(X) between a point and its bound: half a pixel of the picture."""

FACTORS = (0.5, 2.0, 1.5, 0.25, 2.5, 0.75, 1.25, 1.75, 2.25)
"""Budgets beside the chosen one, as multiples of it, the coarse picture first."""

FEWEST = 3
"""Least number of points of a curve."""

MORE = "`mechdesign compare` computes the curve without a limit."


@dataclass(frozen=True, kw_only=True)
class Curve:
    """The trade-off around a design.

    Attributes
    ----------
    axis : str
        The notion and its budget, as a title of the axis.
    chosen : ComparisonRow
        The row of the design itself, which is also among the rows.
    rows : tuple of ComparisonRow
        Those of the design's mechanism first, then those of the optimum; budgets ascending.
    remarks : tuple of str
        What is missing or was cut short.
    """

    axis: str
    chosen: ComparisonRow
    rows: tuple[ComparisonRow, ...]
    remarks: tuple[str, ...]


class Axis(NamedTuple):
    """The budget axis through a notion: its name in a comparison, the chosen budget (nats), and the
    share of the lower side; None where the budget is not split.
    """

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
    """The axis of `compare` through this notion; None where there is none."""
    if not notion.takes_lam():
        (budget,) = notion.budgets()
        return Axis(notion.label, getattr(notion, budget), None)
    values = notion.values()
    eps_l = values["eps_l"]
    epsilon = eps_l + values["eps_u"]
    # With one side free the budget is that of the other side, and a notion of its own.
    if math.isinf(epsilon):
        if notion.one_sided is None:
            return None
        return axis_of(notion.one_sided)
    lam = eps_l / epsilon
    # A side next to zero rounds lam to 0 or 1, which no grid allows.
    if epsilon > LARGEST_BUDGET or not 0.0 < lam < 1.0:
        return None
    return Axis(notion.label, epsilon, lam)


def curve_through(
    joint: Joint,
    design: Design,
    axis: Axis,
    progress: Progress | None,
    seconds: float | None = None,
) -> tuple[Curve | None, str]:
    """The curve through a design in about so many seconds, or the reason why there is none."""
    if seconds is None:
        seconds = LONGEST
    if seconds == 0.0:
        return None, f"No curve: it was not asked for. {MORE}"
    if design.seconds > seconds:
        return None, (
            f"No curve: the channel took {design.seconds:.0f} s, and a report takes "
            f"{seconds:g} s for its curve. {MORE}"
        )
    mechanism = _mechanism_of(design)
    eps_l, eps_u = design.notion.sides
    row = row_of(Case(mechanism, axis.notion, axis.epsilon, axis.lam), design)
    chosen = replace(row, eps_l=eps_l, eps_u=eps_u)
    seconds_of_one = SHARE_OF_ONE * seconds
    tasks = _tasks(design, axis, mechanism, seconds_of_one)
    computed = _computed(joint, tasks, chosen.case, seconds, progress)
    rows = sorted(
        _with_bounds_of_larger([chosen, *computed.rows]),
        key=lambda row: (row.mechanism != mechanism, row.epsilon),
    )
    points = len({row.epsilon for row in rows})
    planned = len({axis.epsilon, *(task.epsilon for task in tasks)})
    if points < FEWEST:
        return None, f"No curve: {computed.why_few}. {MORE}"
    remarks: list[str] = []
    if points < planned:
        remarks.append(
            f"The curve has {points} of {planned} budgets: {computed.why_few}. {MORE}"
        )
    remarks += _remarks_on_rows(rows, computed.cut_short, seconds_of_one)
    curve = Curve(
        axis=axis.text,
        # The same row as before, now with the best bound proven for it.
        chosen=next(row for row in rows if row.case == chosen.case),
        rows=tuple(rows),
        remarks=tuple(remarks),
    )
    return curve, ""


def _remarks_on_rows(
    rows: Sequence[ComparisonRow], cut_short: int, seconds_of_one: float
) -> list[str]:
    """What a reader of the curve must know of its points."""
    remarks: list[str] = []
    if cut_short > 0:
        remarks.append(
            f"{cut_short} of its searches ended early "
            f"({seconds_of_one:.2g} s each): there the best channel "
            "may keep more than the line shows, never more than the proven bound."
        )
    if not all(math.isfinite(row.min_log_lift) for row in rows):
        remarks.append(
            "Where a lift is 0 the loss of belief is infinite; such points are not drawn."
        )
    return remarks


def _mechanism_of(design: Design) -> str:
    """The mechanism of a design by its name in rows, with its confidence.

    A design of no mechanism of `compare` is shown on the curve of the optimum.
    """
    mechanism = OPTIMAL
    if design.mechanism in MECHANISMS or design.least is not None:
        mechanism = design.mechanism
    if design.confidence is not None:
        mechanism += f"{AT}{design.confidence.level!r}"
    return mechanism


class _Task(NamedTuple):
    """One run of `compare`: its budget (nats) and its other arguments."""

    epsilon: float
    arguments: dict[str, Any]


def _tasks(design: Design, axis: Axis, mechanism: str, seconds: float) -> list[_Task]:
    """The runs of `compare` for a curve, of so many seconds each; that at the chosen budget first.

    `mechanism` is the name of the design in rows.
    """
    optimum: list[str] = []
    if mechanism != OPTIMAL and _has_optimum(design):
        optimum = [OPTIMAL]
    # The level after the @ is the argument `confidence` of `compare`, among those shared.
    designed = [mechanism.partition(AT)[0]]
    shared = _shared_arguments(design, axis, seconds)
    elsewhere = dict(shared)
    if design.least is not None:
        objective = design.least.objective
        if _is_comparable(objective, design.channel):
            elsewhere["keep_frequencies"] = objective.keep_frequencies
            elsewhere["distance"] = objective.distance
        else:
            # `compare` would drop rules of this design, and so draw the curve of another one.
            designed = []
    # `compare` refuses a name that is given twice.
    elsewhere["mechanisms"] = list(dict.fromkeys([*designed, *optimum]))
    tasks: list[_Task] = []
    if optimum:
        # The design itself is there: only the optimum is missing at the chosen budget.
        tasks.append(_Task(axis.epsilon, shared | {"mechanisms": optimum}))
    for factor in FACTORS:
        epsilon = axis.epsilon * factor
        if epsilon <= LARGEST_BUDGET:
            tasks.append(_Task(epsilon, elsewhere))
    return tasks


def _has_optimum(design: Design) -> bool:
    """Whether the optimum can be computed for the notion of the design on its table."""
    joint = design.channel.joint
    if joint is None:
        return False
    try:
        check_optimum(design.notion, joint)
    except InputError:
        return False
    return True


def _is_comparable(objective: Objective, channel: Channel) -> bool:
    """Whether `compare` can design for this objective at other budgets.

    `compare` has no arguments for the least shares of symbols that stay, for forbidden
    replacements, for further constraints, and for smallest groups.
    """
    has_restrictions = objective.stay or objective.forbid or objective.constraints
    # Of rows, what was to keep the frequencies and does not has smallest groups that moved them.
    is_row = channel.published is not None
    has_groups = is_row and objective.keep_frequencies and not channel.keeps_law
    return objective.name in OBJECTIVES and not has_restrictions and not has_groups


def _shared_arguments(design: Design, axis: Axis, seconds: float) -> dict[str, Any]:
    """The arguments of `compare` that are the same at every budget."""
    lams = None
    if axis.lam is not None:
        lams = [axis.lam]
    confidence = None
    if design.confidence is not None:
        confidence = design.confidence.level
    budgets: dict[str, tuple[float, float]] = {}
    for symbol, lower, upper in design.notion.symbol_budgets:
        budgets[symbol] = (lower, upper)
    return {
        "notions": [axis.notion],
        "budgets": budgets,
        "confidence": confidence,
        "lams": lams,
        "time_limit": seconds,
        "gap": GAP,
    }


@dataclass(frozen=True)
class _Computed:
    """The rows of a curve besides the chosen one.

    `cut_short` is the number of searches that the time limit ended, and `why_few` the reason of
    missing rows, if any are.
    """

    rows: list[ComparisonRow]
    cut_short: int
    why_few: str


def _computed(
    joint: Joint,
    tasks: Sequence[_Task],
    chosen: Case,
    seconds: float,
    progress: Progress | None,
) -> _Computed:
    """Work through the tasks until they are done or the next one might exceed the time."""
    rows: list[ComparisonRow] = []
    cut_short = 0
    why_few = (
        f"the {seconds:g} s that a report takes for it were too short for this table"
    )
    started = time.monotonic()
    slowest = 0.0
    for k, task in enumerate(tasks):
        if progress is not None:
            progress(k, len(tasks))
        began = time.monotonic()
        # The slowest task so far is the forecast for the next.
        if began - started + slowest > seconds:
            break
        try:
            comparison = compare(joint, epsilons=[task.epsilon], **task.arguments)
        except KeyboardInterrupt:
            why_few = "its computation was stopped"
            break
        except SolverFailure:
            # The other budgets may have one all the same.
            why_few = "other budgets gave no verified channel"
            continue
        slowest = max(slowest, time.monotonic() - began)
        rows += [row for row in comparison.rows if row.case != chosen]
        cut_short += len(comparison.notices)
    return _Computed(rows, cut_short, why_few)


def _with_bounds_of_larger(rows: Sequence[ComparisonRow]) -> list[ComparisonRow]:
    """The rows by falling budget, each with the best bound of its own or a larger budget.

    A channel that keeps a promise also keeps the one with a larger budget, so the bound of a larger
    budget holds for a smaller one.
    """
    # By confidence, for a promise about the table bounds none for the population. Budgets fall from
    # row to row, so `best` holds the least bound of this budget and all larger ones.
    best: dict[float | None, float] = {}
    bounded: list[ComparisonRow] = []
    for row in sorted(with_bounds(rows), key=lambda row: -row.epsilon):
        level = row.confidence
        bound = row.upper_bound_nmi
        if bound is not None:
            best[level] = min(bound, best.get(level, math.inf))
        if row.satisfied:
            bounded.append(replace(row, upper_bound_nmi=best.get(level)))
        else:
            bounded.append(row)
    return bounded
