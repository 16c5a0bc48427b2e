"""Recommendations of a comparison: the answers to two questions that come before any budget.

`recommend` makes a `Recommendation` for each notion and lam of the rows, at budgets of its own that
do not depend on the grid of the comparison:

1. What does each mechanism keep if nothing may become more than twice as likely (`twice`)? With
   ALIP and lam = 0.5 that is eps_u = log 2, so `_doubling_budget` gives the budget
   epsilon = log(2) / (1 - 0.5) = 1.386 nats.
2. What is the smallest budget that keeps 90 % of the information (`most`)? `_keeping_most` searches
   with the optimum: at 1.348 it keeps 0.9002, and at 1.347 (`too_little`) provably less than 0.9.
3. What do outputs do to the belief in each sensitive symbol? At both budgets and some round ones
   (`SHOWN`) the optimum, or else the first mechanism, gives the range of P(s | y): at epsilon 0.5
   a belief of 0.5 stays within 0.389..0.611, at 1.386 within 0.25..0.75.

`falls` finds the curves that keep less at a larger budget, which heuristics may do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

from mechdesign.auditing.leakages import belief_ranges
from mechdesign.channel.channel import Channel
from mechdesign.comparison.rows import AT, Case, ComparisonRow
from mechdesign.comparison.run import row_of
from mechdesign.core.errors import NotPrivate
from mechdesign.mechanisms.budget import KEPT_AT, KEPT_LESS_AT, keeping
from mechdesign.mechanisms.design_call import design
from mechdesign.mechanisms.optimal import OPTIMAL
from mechdesign.mechanisms.request import DesignRequest
from mechdesign.notions import LARGEST_BUDGET
from mechdesign.tables.joint import Joint

TWICE = math.log(2.0)
"""The budget (nats) of a side at which a belief may double, or halve."""

MOST = 0.9
"""Share of the information from which most of it counts as kept."""

NEARLY = 0.99
"""Share of the optimum's utility from which a mechanism counts as nearly optimal."""

SHOWN = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Budgets (nats) at which beliefs are shown, besides those of the two answers."""

PATIENCE = 10.0
"""Seconds for each optimum by default: a recommendation is a by-product."""

FALL = 1e-3
"""Share of the information by which a curve must fall to be mentioned: more than the gap of any
optimum."""


class Beliefs(NamedTuple):
    """Ranges of the belief in each sensitive symbol, under the best mechanism at a budget (nats):
    the smallest and the largest P(s | y) over its outputs.
    """

    epsilon: float
    nmi: float
    ranges: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Recommendation:
    """Two answers for one notion and lam, with beliefs before and after.

    Attributes
    ----------
    twice
        A row for each mechanism at the budget where a released value makes nothing more than twice
        as likely (or, where only that is bounded, less than half as likely). It is empty where
        single lifts are not bounded.
    most
        The optimum at the smallest budget of four digits that keeps at least `MOST` of the
        information; None where there is none, or the optimum was not run.
    too_little
        The largest budget that provably keeps less than `MOST`; None as for `most`.
    with_optimum
        Whether the optimum was among the mechanisms.
    symbols, before
        The sensitive symbols, and their shares in the table.
    beliefs
        The ranges of these shares after a release, by growing budget.
    """

    notion: str
    lam: float | None
    twice: tuple[ComparisonRow, ...] = ()
    most: ComparisonRow | None = None
    too_little: float | None = None
    with_optimum: bool = False
    symbols: tuple[str, ...] = ()
    before: tuple[float, ...] = ()
    beliefs: tuple[Beliefs, ...] = ()


def recommend(
    joint: Joint,
    rows: Sequence[ComparisonRow],
    *,
    time_limit: float | None = None,
    confidence: float | None = None,
    known_shares: Mapping[Any, Any] | None = None,
    unseen: int = 0,
) -> tuple[Recommendation, ...]:
    """One recommendation for each notion and lam, in the order of the rows.

    With `confidence`, and `known_shares` and `unseen` as for a design, only mechanisms that keep
    the promise for the population at this level are recommended.
    """
    # Mechanisms by notion and lam; a dictionary as an ordered set of them.
    groups: dict[tuple[str, float | None], dict[str, None]] = {}
    for row in rows:
        if row.confidence == confidence:
            groups.setdefault(row.curve, {})[row.mechanism] = None
    if time_limit is None:
        time_limit = PATIENCE
    options: dict[str, Any] = {"time_limit": time_limit}
    if confidence is not None:
        options["confidence"] = confidence
        options["known_shares"] = known_shares
        options["unseen"] = unseen
    recommendations: list[Recommendation] = []
    for (notion, lam), mechanisms in groups.items():
        recommendation = _recommendation(joint, notion, lam, list(mechanisms), options)
        recommendations.append(recommendation)
    return tuple(recommendations)


def _recommendation(
    joint: Joint,
    notion: str,
    lam: float | None,
    mechanisms: Sequence[str],
    options: Mapping[str, Any],
) -> Recommendation:
    """The recommendation for one notion and lam; `options` are those of every design behind it."""
    optimum = ""
    for mechanism in mechanisms:
        if mechanism.partition(AT)[0] == OPTIMAL:
            optimum = mechanism
    # The first answer: every mechanism at the budget of a factor of two.
    shown = set(SHOWN)
    doubling = _doubling_budget(notion, lam)
    twice: list[ComparisonRow] = []
    if doubling is not None:
        shown.add(doubling)
        for mechanism in mechanisms:
            row, _ = _row_at(joint, Case(mechanism, notion, doubling, lam), options)
            twice.append(row)
    # The second answer is that of the optimum. Without it there is none, and the beliefs are those
    # of the first mechanism.
    most = None
    too_little = None
    best = mechanisms[0]
    if optimum:
        best = optimum
        # `keeping` replaces the budget of this case by the ones that it tries.
        case = Case(optimum, notion, 1.0, lam)
        most, too_little = _keeping_most(joint, case, options)
    if most is not None:
        shown.add(most.epsilon)
    # What the outputs do to beliefs, at the budgets of both answers and some others.
    beliefs: list[Beliefs] = []
    for epsilon in sorted(shown):
        row, channel = _row_at(joint, Case(best, notion, epsilon, lam), options)
        ranges = tuple(belief_ranges(channel, joint))
        beliefs.append(Beliefs(epsilon, row.nmi, ranges))
    return Recommendation(
        notion=notion,
        lam=lam,
        twice=tuple(twice),
        most=most,
        too_little=too_little,
        with_optimum=bool(optimum),
        symbols=joint.sensitive.names,
        before=tuple(joint.p_s.tolist()),
        beliefs=tuple(beliefs),
    )


def _doubling_budget(notion: str, lam: float | None) -> float | None:
    """The budget (nats) at which the promise bounds single lifts by a factor of two.

    None where it bounds averages of lifts, or no allowed budget is so large.
    """
    epsilon = TWICE
    if lam is not None:
        # eps_u is the share 1 - lam of the budget.
        epsilon = TWICE / (1.0 - lam)
    if epsilon > LARGEST_BUDGET:
        return None
    limits = Case(OPTIMAL, notion, epsilon, lam).promise().limits
    if limits.mean is not None:
        return None
    # The division above and the split of a budget round, but the promise must not exceed the
    # factor.
    while math.isfinite(limits.upper) and limits.upper > TWICE:
        epsilon = math.nextafter(epsilon, 0.0)
        limits = Case(OPTIMAL, notion, epsilon, lam).promise().limits
    return epsilon


def _row_at(
    joint: Joint, case: Case, options: Mapping[str, Any]
) -> tuple[ComparisonRow, Channel]:
    """The row and the channel of a case."""
    # A mechanism with confidence has its level in its name.
    name = case.mechanism.partition(AT)[0]
    result = design(joint, case.promise(), mechanism=name, **options)
    return row_of(case, result), result.channel


def _keeping_most(
    joint: Joint, case: Case, options: Mapping[str, Any]
) -> tuple[ComparisonRow | None, float | None]:
    """The row at the smallest budget that keeps `MOST`, and the largest that provably does not."""
    request = DesignRequest(joint, case.promise(), **options)
    try:
        result = keeping(request, lambda at: replace(case, epsilon=at).promise(), MOST)
    except NotPrivate:
        return None, None
    details: dict[str, Any] = result.certificate.details
    row = row_of(replace(case, epsilon=details[KEPT_AT]), result)
    return row, details.get(KEPT_LESS_AT)


def falls(
    rows: Sequence[ComparisonRow],
) -> tuple[tuple[ComparisonRow, ComparisonRow], ...]:
    """The steepest fall of each curve that keeps less at a larger budget; heuristics may do so."""
    # By mechanism, notion and lam.
    curves: dict[tuple[str, str, float | None], list[ComparisonRow]] = {}
    for row in sorted(rows, key=lambda row: row.epsilon):
        curves.setdefault((row.mechanism, *row.curve), []).append(row)
    steepest: list[tuple[ComparisonRow, ComparisonRow]] = []
    for members in curves.values():
        steps = list(pairwise(members))
        if not steps:
            continue
        smaller, larger = min(steps, key=lambda step: step[1].nmi - step[0].nmi)
        if smaller.nmi - larger.nmi > FALL:
            steepest.append((smaller, larger))
    return tuple(steepest)
