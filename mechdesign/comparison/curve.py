"""The trade-off curve of a report: as many budgets around the chosen one as a time limit allows.

A design has one budget; its report shows what other budgets would keep. For a design with ALIP and
eps_l = eps_u = 0.25 nats the axis is epsilon = eps_l + eps_u at lam = eps_l / epsilon = 0.5, and
the curve goes through epsilon = 0.5. Seven of its ten points: ::

    epsilon          0.125   0.25    0.375   0.5 (chosen)   0.75    1.0     1.25
    nmi              0.4833  0.5589  0.6232  0.6441         0.6987  0.7687  0.8567
    upper_bound_nmi  0.4834  0.5590  0.6233  0.6442         0.6988  0.7688  0.8568

`curve_through` does it, or gives the reason why there is no curve:

1. `_obstacle` finds designs whose channels at other budgets would keep another promise, and
   `case_of` the place of the design on the axis of `compare`.
2. `_arguments` are those of `compare`, which is run for one multiple of the chosen budget after
   the other (`FACTORS`), the coarse picture first. Each run has the mechanism of the design and,
   where it can be computed, the optimum. The chosen point is the design itself.
3. `_computed` works through the budgets until all are done or the next might exceed the time.
4. `_with_bounds_of_larger` shares the proven bounds: that of a larger budget also holds for every
   smaller one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from mechdesign.channel.record import Objective
from mechdesign.comparison.rows import AT, Case, ComparisonRow, with_bounds
from mechdesign.comparison.run import compare, row_of
from mechdesign.comparison.settings import FREE
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
"""Processor seconds for the whole curve by default: a report is a by-product, and `compare` has no
limit.
"""

SHARE_OF_ONE = 0.2
"""Largest share of these seconds for one budget; a search that exceeds it ends with its proven gap.
"""

GAP = 2e-3
"""Share of H(X) between a point and its bound: half a pixel of the picture."""

FACTORS = (0.5, 2.0, 1.5, 0.25, 2.5, 0.75, 1.25, 1.75, 2.25)
"""Budgets beside the chosen one, as multiples of it, the coarse picture first."""

FEWEST = 3
"""Least number of budgets of a curve."""

MORE = "`mechdesign compare` computes the curve without a limit."

NOT_ASKED = "it was not asked for"
STOPPED = "its computation was stopped"
NOT_VERIFIED = "other budgets gave no verified channel"

NO_AXIS = (
    "No curve: with these budgets (a side free, or beyond what a curve can reach) there "
    "is no axis."
)
NO_EARLIER = "No curve: it would belong to channels that ignore the earlier releases."
NO_AVERAGE = "No curve: it would belong to channels that ignore the average budget."
NO_GIVEN = "No curve: it would belong to channels that change the given columns."
NO_BOXES = "No curve: at every budget other boxes would be learned."
NO_SAMPLE = "No curve: `mechdesign compare --confidence` draws it from the same shares and symbols."
NO_RULES = "No curve: it would belong to channels that ignore the rules of this one."


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
        Which budgets are missing, and why.
    """

    axis: str
    chosen: ComparisonRow
    rows: tuple[ComparisonRow, ...]
    remarks: tuple[str, ...]


def curve_through(
    design: Design,
    joint: Joint | None,
    *,
    seconds: float | None = None,
    progress: Progress | None = None,
) -> tuple[Curve | None, str]:
    """The curve through a design in about so many processor seconds, or the reason why there is
    none. Boxes have no `joint`.
    """
    if joint is None:
        return None, NO_BOXES
    obstacle = _obstacle(design)
    if obstacle:
        return None, obstacle
    case = case_of(design.notion, _mechanism_of(design))
    if case is None:
        return None, NO_AXIS
    if seconds is None:
        seconds = LONGEST
    if seconds == 0.0:
        return None, f"No curve: {NOT_ASKED}. {MORE}"
    arguments = _arguments(design, joint, case, SHARE_OF_ONE * seconds)
    if not arguments["mechanisms"]:
        return None, NO_RULES
    eps_l, eps_u = design.notion.sides
    chosen = replace(row_of(case, design), eps_l=eps_l, eps_u=eps_u)
    epsilons = _budgets(case, arguments)
    rows, why_few = _computed(joint, epsilons, arguments, chosen, seconds, progress)
    points = len({row.epsilon for row in rows})
    if points < FEWEST:
        return None, f"No curve: {why_few}. {MORE}"
    remarks: list[str] = []
    planned = len({case.epsilon, *epsilons})
    if points < planned:
        remarks.append(
            f"The curve has {points} of {planned} budgets: {why_few}. {MORE}"
        )
    rows = sorted(
        _with_bounds_of_larger(rows),
        key=lambda row: (row.mechanism != case.mechanism, row.epsilon),
    )
    curve = Curve(
        axis=_axis_text(case),
        # The same row as before, now with the best bound proven for it.
        chosen=next(row for row in rows if row.case == case),
        rows=tuple(rows),
        remarks=tuple(remarks),
    )
    return curve, ""


def case_of(notion: Notion, mechanism: str) -> Case | None:
    """The case of `compare` at this notion, through which its axis leads; None without an axis."""
    # With one side free the budget is that of the other side, and a notion of its own.
    kept = notion.one_sided or notion
    sides = [getattr(kept, name) for name in kept.budgets()]
    epsilon = math.fsum(sides)
    # Infinite is the budget of a notion whose free side makes no other notion of it.
    if epsilon > LARGEST_BUDGET:
        return None
    # A side next to zero rounds lam to 0 or 1, which no grid allows.
    if kept.takes_lam() and not 0.0 < sides[0] / epsilon < 1.0:
        return None
    return Case.at(mechanism, notion)


def _axis_text(case: Case) -> str:
    """``alip, epsilon = eps_l + eps_u in nats, lam 0.5``."""
    if case.lam is None:
        return f"{case.notion}, epsilon in nats"
    return f"{case.notion}, epsilon = eps_l + eps_u in nats, lam {case.lam:g}"


def _obstacle(design: Design) -> str:
    """Why channels at other budgets would keep another promise than this one; nothing if they
    would not. A curve of them would mislead.
    """
    channel = design.channel
    sample = design.confidence
    if channel.record.after:
        return NO_EARLIER
    if channel.record.averages:
        return NO_AVERAGE
    if channel.given:
        return NO_GIVEN
    if sample is not None and (sample.unseen or sample.shares_are_known):
        return NO_SAMPLE
    return ""


def _mechanism_of(design: Design) -> str:
    """The mechanism of a design by its name in rows, with its confidence.

    A design of no mechanism of `compare` is shown on the curve of the optimum.
    """
    mechanism = OPTIMAL
    if design.mechanism in MECHANISMS or design.least is not None:
        mechanism = design.mechanism
    is_free = design.least and not design.least.objective.keep_frequencies
    if is_free and _is_of_rows(design):
        # Ways to release rows say in their names that they leave the law open.
        mechanism += FREE
    if design.confidence is not None:
        mechanism += f"{AT}{design.confidence.level!r}"
    return mechanism


def _arguments(
    design: Design, joint: Joint, case: Case, seconds: float
) -> dict[str, Any]:
    """The arguments of `compare` beside the budget, for so many seconds each."""
    # The level after the @ is the argument `confidence`.
    mechanisms = [case.mechanism.partition(AT)[0]]
    least: dict[str, Any] = {}
    if design.least is not None:
        objective = design.least.objective
        if not _is_comparable(objective, design):
            # `compare` would drop rules of this design, and so draw the curve of another one.
            mechanisms = []
        elif _is_of_rows(design):
            # Rows are changed cell by cell: as symbols of one column each would be the same or not.
            least["release"] = design.channel.useful.columns
            least["distance"] = objective.distance
        else:
            least["keep_frequencies"] = objective.keep_frequencies
            least["distance"] = objective.distance
    if _has_optimum(design.notion, joint):
        mechanisms.append(OPTIMAL)
    budgets: dict[str, tuple[float, float]] = {}
    for symbol, lower, upper in design.notion.symbol_budgets:
        budgets[symbol] = (lower, upper)
    return {
        # `compare` refuses a name that is given twice.
        "mechanisms": list(dict.fromkeys(mechanisms)),
        "notions": [case.notion],
        "budgets": budgets,
        "confidence": None if design.confidence is None else design.confidence.level,
        "lams": None if case.lam is None else [case.lam],
        "time_limit": seconds,
        "gap": GAP,
        **least,
    }


def _has_optimum(notion: Notion, joint: Joint) -> bool:
    """Whether the optimum can be computed for the notion on the table."""
    try:
        check_optimum(notion, joint)
    except InputError:
        return False
    return True


def _is_of_rows(design: Design) -> bool:
    """Whether rows of the table are released, and not one column or labels."""
    return design.channel.published is not None


def _is_comparable(objective: Objective, design: Design) -> bool:
    """Whether `compare` can design for this objective at other budgets.

    `compare` has no arguments for the least shares of symbols that stay, for forbidden
    replacements, for further constraints, and for smallest groups.
    """
    # Of rows, what was to keep the frequencies and does not has smallest groups that moved them.
    moved = objective.keep_frequencies and not design.channel.keeps_law
    has_groups = _is_of_rows(design) and moved
    return objective.name in OBJECTIVES and not objective.is_special and not has_groups


def _budgets(case: Case, arguments: dict[str, Any]) -> list[float]:
    """The budgets at which something is missing, in the order of the work."""
    epsilons = [factor * case.epsilon for factor in FACTORS]
    # The design itself is there, and beside it the optimum may be missing.
    if arguments["mechanisms"] != [case.mechanism]:
        epsilons.insert(0, case.epsilon)
    return [epsilon for epsilon in epsilons if epsilon <= LARGEST_BUDGET]


def _computed(
    joint: Joint,
    epsilons: Sequence[float],
    arguments: dict[str, Any],
    chosen: ComparisonRow,
    seconds: float,
    progress: Progress | None,
) -> tuple[list[ComparisonRow], str]:
    """The chosen row, with the rows of these budgets until they are done or the next one might
    exceed the time; and the reason of missing rows, if any are.
    """
    rows = [chosen]
    why_few = (
        f"the {seconds:g} s that a report takes for it were too short for this table"
    )
    # A channel that took longer than all of the curve may has none at other budgets.
    if chosen.seconds > seconds:
        return rows, why_few
    started = time.process_time()
    slowest = 0.0
    for k, epsilon in enumerate(epsilons):
        if progress is not None:
            progress(k, len(epsilons))
        began = time.process_time()
        # The slowest budget so far is the forecast for the next.
        if began - started + slowest > seconds:
            break
        try:
            comparison = compare(joint, epsilons=[epsilon], **arguments)
        except KeyboardInterrupt:
            why_few = STOPPED
            break
        except SolverFailure:
            # The other budgets may have one all the same.
            why_few = NOT_VERIFIED
            continue
        slowest = max(slowest, time.process_time() - began)
        rows += [row for row in comparison.rows if row.case != chosen.case]
    return rows, why_few


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
