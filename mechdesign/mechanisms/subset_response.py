"""Subset random response (Zarrabian et al. 2023, Algorithm 2): the optimal channel inside each merged set.

Algorithm 1 splits X into sets; within each set T the problem of the optimal channel is solved on the face
of the polytope where only T has mass (eq. (25)), at the point P(X | T), and the sets' channels are put
together. A set's problem has a solution if and only if the merged set satisfies the notion, for P(X | T) must
itself be a mixture of posteriors of the convex set; the printed test for an empty polytope is not enough.
The repaired partition of subset merging consists of such sets only, so nothing has to be joined here, and
since merging is one of the solutions the result is never worse than subset merging.
"""

from __future__ import annotations

import time
from dataclasses import replace

from mechdesign.core.errors import InputError
from mechdesign.core.progress import Step
from mechdesign.mechanisms.optimal import MERGING_SHARE, respond
from mechdesign.mechanisms.posteriors import check_polytope
from mechdesign.mechanisms.result import Design, finish
from mechdesign.mechanisms.rounding import RoundingFailure
from mechdesign.mechanisms.rules import Rules
from mechdesign.mechanisms.search import Search
from mechdesign.mechanisms.watchdog import HeuristicOptions, marked, merging

NAME = "subset-response"


def subset_response(rules: Rules, search: Search, options: HeuristicOptions) -> Design:
    """Respond at random within the sets of subset merging; verified, and never worse than these."""
    started = time.perf_counter()
    check_polytope(rules.notion)
    if not rules.has_faces:
        raise InputError(
            f"{NAME} with symbols of no record is not built: an output of a few symbols would be released for "
            "these, too, so that sets cannot be looked at one by one; use another mechanism"
        )
    rules = replace(rules, by_symbol=True)
    groups, merged = merging(NAME, rules, search, options, share=MERGING_SHARE)
    if not merged.verified or all(len(group) == 1 for group in groups.groups):
        return merged

    def show(done: int) -> None:
        if search.progress is not None:
            total = len(groups.groups)
            search.progress(Step(f"{done} of {total} sets", done=done, total=total))

    end = search.end(started)
    for margin in rules.margins:
        solve = rules.solver(margin, search, end)
        try:
            rounded = rules.rounded(*respond(solve, rules.joint.p_x, groups.groups, end, show)[:2])
        except RoundingFailure:
            continue
        made = finish(
            rounded.channel,
            rules.joint,
            rounded.audit,
            mechanism=NAME,
            method="subsets",
            repaired=merged.repaired,
            borrowed=merged.borrowed,
            seconds=time.perf_counter() - started,
        )
        if made.nmi >= merged.nmi:
            return marked(made, satisfied=True) if options.as_published else made
        break  # rounding may cost 1e-7 of H(X), more than the sets gained
    return replace(merged, seconds=time.perf_counter() - started)
