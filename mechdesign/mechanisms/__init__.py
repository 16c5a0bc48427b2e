"""Mechanisms: each computes a channel for a table and a notion, verified exactly before it is returned."""

from __future__ import annotations

import time
from dataclasses import replace

from mechdesign.errors import InputError, SolverFailure
from mechdesign.joint import Joint
from mechdesign.mechanisms.heuristics import HEURISTICS, HeuristicOptions
from mechdesign.mechanisms.optimal import Search, optimal
from mechdesign.mechanisms.randomisation import MERGE, Randomisation
from mechdesign.mechanisms.result import Design
from mechdesign.mechanisms.risks import Risk
from mechdesign.mechanisms.watchdog import subset_merging
from mechdesign.notions import Notion
from mechdesign.posteriors import check_polytope
from mechdesign.progress import Steps

__all__ = ["MECHANISMS", "Search", "design"]

OPTIMAL, FALLBACK = "optimal", "subset-merging"

MECHANISMS = (OPTIMAL, *HEURISTICS)


def design(
    joint: Joint,
    notion: Notion,
    *,
    mechanism: str = OPTIMAL,
    method: str = "auto",
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
) -> Design:
    """Compute a release channel P(Y|X) for the table, proven private in exact arithmetic.

    Parameters
    ----------
    joint : Joint
        The table P_SX; the guarantee is about this table, not about a population it was drawn from.
    notion : Notion
    mechanism : {"optimal", "subset-response", "subset-merging", "complete-merging"}
    method : {"auto", "vertices", "columns"}
        How the optimum is searched, of the whole table or of the sets of subset-response.
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
        Called with each `mechdesign.progress.Step` of the search: its `str` is a line to show, its
        `figures` are the utility so far, the proven bound and their gap.

    Returns
    -------
    Design

    Raises
    ------
    InputError
        If an argument is out of range or the mechanism is not known.
    SolverFailure
        If no channel was verified and no fallback is allowed.
    """
    if mechanism not in MECHANISMS:
        raise InputError(f"mechanism ({mechanism!r}) must be one of {', '.join(MECHANISMS)}")
    search = Search(
        method=method, gap=gap, time_limit=time_limit, workers=workers, start=start, progress=progress
    )
    options = HeuristicOptions(risk=risk, randomisation=randomisation, as_published=as_published)
    options.check_for(mechanism)
    if mechanism in HEURISTICS:
        return HEURISTICS[mechanism](joint, notion, options, search)
    check_polytope(notion)
    started = time.perf_counter()
    try:
        best = optimal(joint, notion, search)
    except SolverFailure as error:
        if not fallback:
            raise
        merged = subset_merging(joint, notion)
        return _fallen_back(merged, f"the optimum failed ({error}); this is {FALLBACK}, verified", started)
    if not fallback or best.certificate.gap_nmi is None or best.certificate.gap_nmi <= gap:
        return best
    merged = subset_merging(joint, notion)
    if merged.nmi <= best.nmi:
        return best
    bounded = replace(merged, certificate=best.certificate.at(merged.nmi))
    return _fallen_back(bounded, f"the search ended below {FALLBACK}, which is emitted, verified", started)


def _fallen_back(result: Design, message: str, started: float) -> Design:
    return replace(
        result,
        fallback_from=OPTIMAL,
        messages=(*result.messages, message),
        seconds=time.perf_counter() - started,
    )
