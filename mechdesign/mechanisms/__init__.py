"""Mechanisms: each computes a channel for a table and a notion, verified exactly before it is returned.

`design` runs the optimum or one of the heuristics by name, with the options that belong to each.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from mechdesign.auditing.demands import demands_of
from mechdesign.auditing.population import NOT_STACKED, lift_limits
from mechdesign.auditing.verdict import is_stacked
from mechdesign.channel.channel import Channel
from mechdesign.core.arguments import several
from mechdesign.core.errors import InputError, SolverFailure, expected
from mechdesign.core.progress import Steps
from mechdesign.core.wording import quoted
from mechdesign.mechanisms.after import check_room, spending
from mechdesign.mechanisms.binning import binned_for, refuse_identifier
from mechdesign.mechanisms.least_cost import (
    DISTANCE,
    INFORMATION,
    TRUTH,
    Wanted,
    least_cost,
)
from mechdesign.mechanisms.optimal import OPTIMAL, NotRounded, optimal, proven
from mechdesign.mechanisms.partitions import Risk
from mechdesign.mechanisms.population import PopulationRules, confident
from mechdesign.mechanisms.posteriors import check_polytope
from mechdesign.mechanisms.result import Design, Search
from mechdesign.mechanisms.rules import Rules
from mechdesign.mechanisms.watchdog import (
    HEURISTICS,
    MERGE,
    HeuristicOptions,
    Randomisation,
    subset_merging,
)
from mechdesign.notions import Notion
from mechdesign.tables.confidence import check_level, confidence_set
from mechdesign.tables.joint import Joint

__all__ = ["MECHANISMS", "Search", "design"]

MECHANISMS = (OPTIMAL, *HEURISTICS)

OBJECTIVES = (TRUTH, DISTANCE)
"""Objectives with names, beside information, which is what mechanisms are for."""


def design(
    joint: Joint,
    notion: Notion,
    *,
    mechanism: str = OPTIMAL,
    method: str = "auto",
    enumerate: str = "auto",
    gap: float = 1e-4,
    time_limit: float | None = None,
    seed: int = 0,
    fallback: bool = True,
    risk: Risk = "auto",
    randomisation: Randomisation = MERGE,
    as_published: bool = False,
    workers: int = 1,
    start: Design | None = None,
    progress: Steps | None = None,
    confidence: float | None = None,
    known_shares: Mapping[Any, Any] | None = None,
    unseen: int = 0,
    bins: Any = None,
    allow_identifier: bool = False,
    protect_each: bool = False,
    budgets: Mapping[str, tuple[float, float]] | None = None,
    after: Sequence[Channel] = (),
    release: str | Sequence[str] | None = None,
    objective: Any = INFORMATION,
    distance: str | None = None,
    keep_frequencies: bool = False,
    stay: Any = None,
    forbid: Iterable[tuple[str, str]] = (),
    constraints: Callable[..., Any] | None = None,
) -> Design:
    """Compute a release channel P(Y|X) for the table, proven private in exact arithmetic.

    Parameters
    ----------
    joint : Joint
        The table P_SX; without `confidence` the guarantee is about this table, not about a population it was
        drawn from.
    notion : Notion
    mechanism : {"optimal", "subset-response", "subset-merging", "complete-merging"}
    method : {"auto", "vertices", "columns"}
        How the optimum is searched, of the whole table or of the sets of subset-response.
    enumerate : {"auto", "pivot", "pycddlib", "pycddlib-exact"}
        Who lists the vertices, where the method is "vertices"; "auto" is the fastest. The exact one needs the full
        pycddlib, with GMP.
    gap : float
        Stop when the proven upper bound minus the NMI of the emitted integers is at most this.
    time_limit : float, optional
        Seconds; the best verified channel so far is returned with its proven gap.
    seed : int
        Every search of today is deterministic, so the seed changes nothing; it is recorded.
    fallback : bool
        Emit subset merging where the optimum fails, or is worse when its time is over; the result says so
        in `fallback_from`. Without it SolverFailure is raised.
    risk : {"auto", "log-max", "log-ratio", "sum"}
        How subset-merging and subset-response order sets; "sum" is what the paper prints for ALIP.
    randomisation : {"merge", "uniform"} or sequence of float
        The R(y) of complete-merging: see `watchdog.complete_merging`.
    as_published : bool
        Leave out the repair of a heuristic, for study. Where the channel violates the notion, `verified` is
        False; it cannot be saved in any case.
    workers : int
        Threads of the branch and bound.
    start : Design, optional
        The design of a neighbouring budget on the same table, for a warm start.
    progress : callable, optional
        Called with each `mechdesign.core.progress.Step` of the search: its `str` is a line to show, its
        `figures` are the utility so far, the proven bound and their gap.
    confidence : float, optional
        Level in [0.5, 1) at which the promise holds for the population that the counts are a sample of: for
        every one in the Clopper-Pearson set of the counts (`tables.confidence`). Independent records of one
        population and symbols that were fixed without looking at them; ALIP, LIP, LDP, max-lift and min-lift.
    known_shares : mapping, optional
        P(s) of every sensitive symbol where it is known (a register, a census) and need not be estimated.
    unseen : int
        With `confidence`: symbols of X that were on the list beforehand but occur in no record. They are protected
        too if their records are released with the policy ``unknown="marginal"``.
    bins : optional
        As in `Joint.binned`, or "auto" for a column: as many bins as move the released medians least at this budget.
    allow_identifier : bool
        Whether the useful column may have nearly as many symbols as there are records.
    protect_each : bool
        Several sensitive columns are each protected for themselves, not their combinations.
    budgets : mapping, optional
        Sensitive symbols with an eps_l and an eps_u of their own, in place of those of the notion; where each of
        several columns is protected and two have a symbol of one name, it is called ``column=symbol``.
    after : sequence of Channel
        Earlier releases of the same records, drawn independently: all together keep the promise.
    release : str or sequence of str, optional
        The useful columns of the table that this channel releases, by default all; with `after` the table has those
        of the earlier channels as well.
    objective : {"information", "truth", "distance"}, matrix or callable
        Most information with free outputs; or least expected cost on the column's own symbols: most records as they
        are, numbers moved least, or costs d(x, y) as an array in the order of the symbols, or a pandas frame or a
        mapping of mappings with the symbols as labels. A callable takes the cvxpy variable W (|X|, |X|) and the joint
        and returns a convex cost to minimise.
    distance : {"absolute", "squared"}, optional
        How numbers are compared, with objective "distance".
    keep_frequencies : bool
        The expected share of every symbol stays (invariant PRAM), to within 1e-12.
    stay : number or mapping of symbol to number, optional
        Least probability that a symbol is released as it is.
    forbid : pairs (from, to)
        Symbols that are never released one for the other.
    constraints : callable, optional
        Takes the cvxpy variable W and the joint and returns further convex constraints.

    Returns
    -------
    Design

    Raises
    ------
    InputError
        If an argument is out of range, the mechanism is not known, or there is a single sensitive symbol.
    NotPrivate
        If the releases `after` which this one is made break the promise already, or leave nothing to spend.
    SolverFailure
        If no channel was verified and no fallback is allowed.
    """
    expected("joint", joint, Joint, "; Joint.from_table and Joint.from_counts make one")
    expected("notion", notion, Notion, "; write one, as in ALIP(eps_l=0.5, eps_u=0.5)")
    if len(joint.sensitive) == 1:
        raise InputError(
            f"the sensitive column {quoted(','.join(joint.sensitive.columns))} has a single symbol "
            f"({quoted(joint.sensitive.names[0])}): there is nothing to protect"
        )
    given = {
        key: value
        for key, value in locals().items()
        if key not in ("joint", "notion", "bins")
    }
    for each in several("after", after, "channels"):
        expected("each of after", each, Channel)
    started = time.perf_counter()
    search = Search(method, enumerate, gap, time_limit, workers, start, progress)
    if bins is not None:
        return _in_bins(joint, notion, bins, search, given, started)
    if not allow_identifier:
        refuse_identifier(joint)
    joint = joint.protecting_each() if protect_each else joint
    notion = notion.with_budgets(budgets) if budgets else notion
    whole, joint = joint, joint if release is None else joint.releasing(release)
    if mechanism not in MECHANISMS:
        raise InputError(
            f"mechanism ({mechanism!r}) must be one of {', '.join(MECHANISMS)}"
        )
    options = HeuristicOptions(
        risk=risk, randomisation=randomisation, as_published=as_published
    )
    options.check(mechanism)
    forbidden = several("forbid", forbid, "pairs, as in [('Sales', 'Tech')]")
    wanted = Wanted(objective, distance, keep_frequencies, stay, forbidden, constraints)
    _check_objective(wanted, mechanism, options)
    stacked = is_stacked(whole, notion, after)
    if confidence is not None:
        if stacked:
            raise InputError(NOT_STACKED)
        if options != HeuristicOptions():
            raise InputError(
                "risk, randomisation and as_published do not go with confidence"
            )
        check_level(confidence)
        need = lift_limits(notion).need_shares
        chosen = confidence_set(
            joint, confidence, shares=known_shares, estimate_shares=need, unseen=unseen
        )
        rules = PopulationRules(joint, notion, chosen=chosen)
    elif unseen or known_shares is not None:
        what = "unseen symbols" if unseen else "known shares"
        raise InputError(
            f"{what} need a confidence level: without one the table itself is the population"
        )
    else:
        rules = Rules(
            joint, notion, demands_of(whole, notion, after, joint) if stacked else None
        )
    if after:
        check_room(rules, after)
    if wanted.name != INFORMATION:
        made = least_cost(rules, wanted, search)
    else:
        made = _by_rules(rules, mechanism, search, options, fallback, started)
    if isinstance(rules, PopulationRules):
        return confident(made, rules, started)
    return spending(made, rules, whole, after, search.time_limit) if after else made


def _in_bins(
    joint: Joint,
    notion: Notion,
    bins: Any,
    search: Search,
    given: dict[str, Any],
    started: float,
) -> Design:
    """The design of the table in bins, which may have to be searched for; `given` is what `design` takes besides."""
    binned, said = binned_for(
        joint, bins, search.time_limit, partial(design, notion=notion, **given)
    )
    if search.time_limit is not None:
        left = search.end(started) - time.perf_counter()
        given["time_limit"] = max(search.time_limit / 2, left)
    result = design(binned, notion, **given)
    return replace(
        result,
        messages=(*said, *result.messages),
        seconds=time.perf_counter() - started,
    )


def _check_objective(wanted: Wanted, mechanism: str, options: HeuristicOptions) -> None:
    if wanted.name != INFORMATION:
        if mechanism != OPTIMAL or options != HeuristicOptions():
            raise InputError(
                f"objective {wanted.name} is a mechanism of its own: leave {mechanism} out"
            )
    elif wanted != Wanted():
        raise InputError(
            "distance, keep_frequencies, stay, forbid and constraints are for channels on the column's own "
            "symbols: say what these should cost with objective (--objective truth, distance or COSTS.csv)"
        )


def _by_rules(
    rules: Rules,
    mechanism: str,
    search: Search,
    options: HeuristicOptions,
    fallback: bool,
    started: float,
) -> Design:
    if mechanism in HEURISTICS:
        return HEURISTICS[mechanism](rules, search, options)
    check_polytope(rules.notion)
    try:
        best = optimal(rules, search)
    except SolverFailure as error:
        if not fallback:
            raise
        merged = subset_merging(rules, replace(search, time_limit=None), options)
        said = f"the optimum failed ({error}); this is {merged.mechanism}, verified"
        if isinstance(error, NotRounded):
            merged = replace(
                merged, certificate=proven(error.envelope, merged.entropy, merged.nmi)
            )
    else:
        if (
            not fallback
            or best.certificate.gap_nmi is None
            or best.certificate.gap_nmi <= search.gap
        ):
            return best
        left = (
            None
            if search.time_limit is None
            else max(0.0, search.end(started) - time.perf_counter())
        )
        merged = subset_merging(rules, replace(search, time_limit=left), options)
        if merged.nmi <= best.nmi:
            return best
        said = f"the search ended below {merged.mechanism}, which is emitted, verified"
        merged = replace(merged, certificate=best.certificate.at(merged.nmi))
    seconds = time.perf_counter() - started
    return replace(
        merged,
        fallback_from=OPTIMAL,
        messages=(*merged.messages, said),
        seconds=seconds,
    )
