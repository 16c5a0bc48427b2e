"""Budgets on average leakages: most information within one (the privacy funnel), verified exactly.

The optimum comes from `solvers.average`, for a budget that is smaller by a relative `SHRUNK`, and
with its bound for the budget itself. Rounding to integers may still exceed the budget; then the
budget shrinks further, and the exact audit decides each time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mechdesign.auditing.averages import average_leakage, average_verdicts
from mechdesign.auditing.measures import utility
from mechdesign.auditing.verdict import achieved_by
from mechdesign.channel.channel import Channel
from mechdesign.channel.record import AVERAGE_MEASURES, AverageBudget
from mechdesign.core.arguments import number
from mechdesign.core.errors import InputError, SolverFailure
from mechdesign.core.integers import IntegerRows
from mechdesign.mechanisms.optimal import ENTROPY_ERROR
from mechdesign.mechanisms.result import Certificate, Design, finish
from mechdesign.mechanisms.rounding import RoundingFailure, partition_channel
from mechdesign.mechanisms.rules import Rules
from mechdesign.mechanisms.search import Search, utility_entropy
from mechdesign.notions import ALIP, LARGEST_BUDGET, MaxLift, Notion
from mechdesign.tables.joint import Joint
from solvers import SolverError
from solvers.average import AverageOptimum, best_channel_on_average

SHRUNK = (1e-9, 1e-7, 1e-5, 1e-3)
"""Relative shares by which the budget is reduced in turn, until the integers keep the budget."""

MARGIN = 1e-9
"""Distance of the columns from the limits of a notion: the kernel meets its rows to 1e-10."""

NO_PROMISE = MaxLift(LARGEST_BUDGET)
"""Stands for no promise on single lifts while an average alone is searched for; never emitted."""

DEFAULT_SECONDS = 30.0
"""Of a search for which no limit was given."""


def averages_of(asked: Any, joint: Joint) -> tuple[AverageBudget, ...]:
    """The budgets from a mapping of measures to numbers, or to texts such as ``25%``.

    Raises
    ------
    InputError
        If a measure is not known, or a budget is out of range.
    """
    if not isinstance(asked, Mapping) or not asked:
        raise InputError(
            'average must be a mapping from a measure to its budget, as in {"mi": 0.05}'
        )
    if len(asked) > 1:
        raise InputError(
            "one average budget is built, not several: leave out all but one"
        )
    ((measure, value),) = asked.items()
    if measure not in AVERAGE_MEASURES:
        raise InputError(
            f"the average {measure!r} is not known; use one of {', '.join(AVERAGE_MEASURES)}"
        )
    name = f"the average {measure}"
    if isinstance(value, str) and value.endswith("%"):
        share = number(name, _float(name, value[:-1]), "of per cent") / 100.0
        if not 0.0 < share <= 1.0:
            raise InputError(f"{name} ({value}) must be above 0 and at most 100 %")
        budget = share * own_leakage(joint, measure)
        if not budget > 0.0:
            raise InputError(
                "the useful column says nothing about the sensitive one: there is nothing to limit"
            )
    else:
        if isinstance(value, str):
            value = _float(name, value)
        budget = number(name, value, "above 0")
    if not 0.0 < budget <= LARGEST_BUDGET:
        raise InputError(
            f"{name} ({value}) must be above 0 and at most {LARGEST_BUDGET:g}"
        )
    return (AverageBudget(measure=measure, budget=budget),)


def _float(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(
            f"{name} ({text!r}) must be a number, or a per cent such as 25%"
        ) from None


def own_leakage(joint: Joint, measure: str) -> float:
    """What X itself leaks about S on average, which no channel exceeds."""
    n = len(joint.useful)
    rows = IntegerRows.of_pairs([[x, 1] for x in range(n)], n)
    channel = Channel(joint.useful, joint.useful.names, rows, 1, joint)
    return average_leakage(channel, joint, measure)


def for_average(
    rules: Rules, asked: Any, search: Search, started: float, *, alone: bool
) -> Design:
    """The channel that keeps most within an average budget, verified exactly.

    Parameters
    ----------
    alone : bool
        Whether no promise on single lifts was asked for. The design then has the extreme lifts of
        the channel itself as its notion.

    Raises
    ------
    InputError
        If the budget is none.
    SolverFailure
        If no channel was verified.
    """
    joint = rules.joint
    (budget,) = averages_of(asked, joint)
    single = replace(rules, by_symbol=True)
    failure: Exception | None = None
    found = _found(single, budget, SHRUNK[0], search, alone=alone)
    for share in SHRUNK:
        if share != SHRUNK[0]:
            found = _found(single, budget, share, search, alone=alone)
        try:
            rounded = single.rounded(found.weights, found.points)
        except RoundingFailure as error:
            failure = error
            continue
        (verdict,) = average_verdicts(rounded.channel, joint, [budget])
        if verdict.kept:
            break
    else:
        # A constant leaks nothing, whatever the budget.
        everything = [list(range(len(joint.useful)))]
        rounded = partition_channel(everything, single)
        (verdict,) = average_verdicts(rounded.channel, joint, [budget])
        if not verdict.kept:
            raise SolverFailure(f"no channel was verified ({failure})")
    notion = rounded.audit.notion
    if alone:
        notion = _extremes(rounded.channel, joint)
        rounded = replace(rounded, audit=Rules(joint, notion).verdict(rounded.channel))
        if not rounded.audit.satisfied:
            raise SolverFailure("the extreme lifts of the channel were not verified")
    worth = utility(rounded.channel, joint)
    bound = found.bound / utility_entropy(joint)
    upper = max(worth.nmi, min(1.0, bound + ENTROPY_ERROR * (1.0 + abs(bound))))
    certificate = Certificate(upper_bound_nmi=upper, scope="proven").at(worth.nmi)
    messages: list[str] = []
    if certificate.gap_nmi is not None and certificate.gap_nmi > search.gap:
        messages.append(f"the search ended early ({found.status})")
    design = finish(
        rounded,
        joint,
        "average",
        "columns",
        started,
        worth=worth,
        certificate=certificate,
        messages=tuple(messages),
    )
    kept = _with_achieved(budget, verdict.leakage)
    record = replace(design.channel.record, averages=(kept,))
    return replace(design, channel=design.channel.with_record(record))


def _with_achieved(budget: AverageBudget, leakage: float) -> AverageBudget:
    """The budget with what the channel leaks."""
    return AverageBudget(measure=budget.measure, budget=budget.budget, achieved=leakage)


def _found(
    rules: Rules, budget: AverageBudget, share: float, search: Search, *, alone: bool
) -> AverageOptimum:
    """The optimum at a budget reduced by a share; its bound is raised to that of the whole one."""
    whole = budget.budget
    if budget.measure == "maximal-leakage":
        # The solver's unit is e^leakage - 1.
        whole = math.expm1(budget.budget)
    inner = None
    outer = None
    if not alone:
        outer = rules.relaxation
        inner = rules.polytope(MARGIN)
    limit = search.time_limit
    if limit is None:
        limit = DEFAULT_SECONDS
    try:
        found = best_channel_on_average(
            rules.joint.p,
            budget.measure,
            whole * (1.0 - share),
            inner=inner,
            outer=outer,
            tolerance=0.9 * search.gap * utility_entropy(rules.joint),
            time_limit=limit,
            progress=search.shown(rules.joint),
        )
    except SolverError as error:
        raise SolverFailure(f"the optimum could not be computed: {error}") from error
    # The support H(v) + beta L(v) >= y.v + m holds for every budget: the bound grows by beta times
    # the difference, doubled for the rounding of the product.
    return replace(found, bound=found.bound + 2.0 * found.multiplier * whole * share)


def _extremes(channel: Any, joint: Joint) -> Notion:
    """The extreme lifts of a channel as a notion that it keeps, and no smaller budget."""
    achieved = achieved_by(channel, joint)
    least = 1e-12
    lower = max(achieved.eps_l, least)
    upper = max(achieved.eps_u, least)
    if math.isinf(lower):
        return MaxLift(upper)
    return ALIP(lower, upper)
