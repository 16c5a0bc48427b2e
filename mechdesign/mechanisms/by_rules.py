"""The design of a request by the rules of its promise: by the objective or mechanism that it names.

`by_rules` runs it, and merges where the optimum fails or ends early (`_optimal_or_merging`).
`for_population` is the design whose promise holds for every population in the confidence set of the
counts. The modules of an objective are imported where it is asked for: all of them take longer to
load than a small table takes to design.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from mechdesign.auditing.population import NOT_STACKED, lift_limits
from mechdesign.channel.record import AverageBudget
from mechdesign.core.errors import InputError, SolverFailure
from mechdesign.mechanisms import combinations
from mechdesign.mechanisms.average_budgets import NO_PROMISE, averages_of
from mechdesign.mechanisms.heuristics import HEURISTICS, subset_merging
from mechdesign.mechanisms.optimal import OPTIMAL, NotRounded, optimal, proven
from mechdesign.mechanisms.posteriors import check_optimum
from mechdesign.mechanisms.request import DesignRequest
from mechdesign.mechanisms.result import Design
from mechdesign.mechanisms.rules import Rules
from mechdesign.mechanisms.search_options import STANDARD, Search
from mechdesign.notions import Notion
from mechdesign.tables.confidence import confidence_set
from mechdesign.tables.joint import Joint

if TYPE_CHECKING:
    from mechdesign.mechanisms.population import PopulationRules


def for_population(
    request: DesignRequest,
    level: float,
    whole: Joint,
    joint: Joint,
    notion: Notion,
    started: float,
) -> Design:
    """The design whose promise holds for the population at a confidence level.

    `whole` is the table of the request, `joint` that of the released columns.
    """
    # Loaded here, because few designs need it.
    from mechdesign.mechanisms.population import confident

    rules = _population_rules(request, level, whole, joint, notion)
    result = by_rules(rules, request, started)
    return confident(result, rules, started, request.time_limit)


def _population_rules(
    request: DesignRequest, level: float, whole: Joint, joint: Joint, notion: Notion
) -> PopulationRules:
    """The rules of a promise about every population in the confidence set of the counts."""
    # Loaded here, because few designs need it.
    from mechdesign.mechanisms.population import PopulationRules

    combinations.check(combinations.POPULATION, request.named)
    if whole.sensitive.protects_columns:
        raise InputError(NOT_STACKED)
    populations = confidence_set(
        joint,
        level,
        shares=request.known_shares,
        estimate_shares=lift_limits(notion).need_shares,
        unseen=request.unseen,
    )
    return PopulationRules(joint, notion, populations=populations)


def by_rules(rules: Rules, request: DesignRequest, started: float) -> Design:
    """Run the objective or the mechanism of a request."""
    search = replace(request.search, since=started)
    # `design` puts this notion where the user gave none.
    alone = request.average is not None and request.notion == NO_PROMISE
    if not request.has_free_outputs or request.has_purpose:
        budgets: tuple[AverageBudget, ...] = ()
        if request.average is not None:
            budgets = averages_of(request.average, rules.joint)
        return _for_objective(rules, request, search, started, budgets, alone=alone)
    if request.average is not None and request.keep is None:
        # Loaded here, because few designs need it.
        from mechdesign.mechanisms.averages import for_average

        return for_average(rules, request.average, search, started, alone=alone)
    if request.average is not None:
        # Loaded here, because few designs need it.
        from mechdesign.mechanisms.least_leakage import for_share

        keep = request.keep
        return for_share(rules, request.average, keep, search, started, alone=alone)
    if request.mechanism in HEURISTICS:
        return HEURISTICS[request.mechanism](rules, search, STANDARD)
    check_optimum(rules.notion, rules.joint)
    if request.fallback:
        return _optimal_or_merging(rules, search, started)
    return optimal(rules, search)


def _for_objective(
    rules: Rules,
    request: DesignRequest,
    search: Search,
    started: float,
    budgets: tuple[AverageBudget, ...],
    *,
    alone: bool,
) -> Design:
    """The channel of least cost, or the best one for queries or a task."""
    if not request.has_free_outputs:
        # Loaded here, because few designs need it.
        from mechdesign.mechanisms.least_cost import least_cost

        return least_cost(rules, request.least_cost, search, budgets, alone=alone)
    if not budgets:
        check_optimum(rules.notion, rules.joint)
    if request.task is not None:
        # Loaded here, because few designs need it.
        from mechdesign.mechanisms.purposes import for_task

        return for_task(rules, request.task, search, started, budgets, alone=alone)
    # Loaded here, because few designs need it.
    from mechdesign.mechanisms.query_design import for_queries

    return for_queries(rules, request.objective, search, started, budgets, alone=alone)


def _optimal_or_merging(rules: Rules, search: Search, started: float) -> Design:
    """The optimum; subset merging where the search failed, or ended early with less utility."""
    try:
        best = optimal(rules, search)
    except SolverFailure as error:
        # Merging has an answer however little time is left.
        merged = subset_merging(rules, search)
        message = f"the optimum failed ({error}); this is {merged.mechanism}, verified"
        if isinstance(error, NotRounded):
            # The bound of the float optimum holds although no channel came of it.
            proof = proven(error.envelope, merged.entropy, merged.nmi)
            merged = replace(merged, certificate=proof)
        return _fallen_back(merged, message, started)
    gap = best.certificate.gap_nmi
    if gap is None or gap <= search.gap:
        return best
    if time.process_time() >= search.end(started):
        # The search began with merged channels, so that it keeps no less than they do.
        return best
    merged = subset_merging(rules, search)
    if merged.nmi <= best.nmi:
        return best
    # The bound is one for all channels, so it holds for that of merging, too.
    merged = replace(merged, certificate=best.certificate.at(merged.nmi))
    message = f"the search ended below {merged.mechanism}, which is emitted, verified"
    return _fallen_back(merged, message, started)


def _fallen_back(merged: Design, message: str, started: float) -> Design:
    """The design of merging in place of the optimum, with a message about the reason."""
    return replace(
        merged,
        fallback_from=OPTIMAL,
        messages=(*merged.messages, message),
        seconds=time.process_time() - started,
    )
