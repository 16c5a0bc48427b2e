"""Subset random response (Zarrabian et al. 2023, Algorithm 2): the optimal channel inside each merged set.

Algorithm 1 splits X into sets; within each set T the problem of the optimal channel is solved on the face
of the polytope where only T has mass (eq. (25)), at the point P(X | T), and the sets' channels are put
together. A set's problem has a solution if and only if the merged set satisfies the notion, for P(X | T) must
itself be a mixture of posteriors of the convex set; the printed test for an empty polytope is not enough.
The repaired partition of subset merging consists of such sets only, so nothing has to be joined here, and
since merging is one of the solutions the result is never worse than subset merging.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.progress import Step
from mechdesign.mechanisms.optimal import (
    ENUMERATIONS,
    GAP_SHARE,
    LEAST_GAP,
    MERGING_SHARE,
    Search,
    utility_entropy,
)
from mechdesign.mechanisms.partitions import LEAST_SECONDS, Risk
from mechdesign.mechanisms.responding import Effort, respond, within
from mechdesign.mechanisms.result import Design, finish
from mechdesign.mechanisms.rounding import RoundingFailure
from mechdesign.mechanisms.rules import Rules
from mechdesign.mechanisms.watchdog import SUBSETS, Watched, designed, marked, watch
from mechdesign.notions import Notion
from mechdesign.tables.joint import Joint
from solvers import Points, Polytope

Array = NDArray[np.float64]

NAME = "subset-response"
METHOD = "subsets"


def subset_response(
    joint: Joint,
    notion: Notion,
    search: Search,
    *,
    risk: Risk = "auto",
    as_published: bool = False,
    rules: Rules | None = None,
) -> Design:
    """Respond at random within the sets of subset merging; verified, and never worse than these."""
    start = time.perf_counter()
    rules = rules or Rules(joint, notion)
    relaxation = rules.of_symbols()
    limit = math.inf if search.time_limit is None else search.time_limit
    end = start + max(MERGING_SHARE * limit, LEAST_SECONDS)
    watched = watch(joint, notion, SUBSETS, risk=risk, as_published=as_published, rules=rules, end=end)
    merged = designed(watched, joint, mechanism=NAME, start=start, as_published=as_published)
    if not merged.verified or all(len(group) == 1 for group in watched.merging.groups):
        return merged
    made = _responded(rules, search, relaxation, watched, start)
    if made is None or made.nmi < merged.nmi:
        # Rounding may cost 1e-7 of H(X), more than the sets gained.
        return replace(merged, seconds=time.perf_counter() - start)
    return marked(made, satisfied=True) if as_published else made


def _responded(
    rules: Rules, search: Search, relaxation: Polytope, watched: Watched, start: float
) -> Design | None:
    """The rounded channel of all sets together; None where no margin survives the audit."""
    joint, merging = rules.joint, watched.merging
    search = replace(search, method=rules.method(search.method))
    for margin in rules.margins:
        weights, points = _columns(joint, search, rules.of_symbols(margin), relaxation, watched, start)
        try:
            rounded = rules.rounded(weights, _sparse(points))
        except RoundingFailure:
            continue
        return finish(
            rounded.channel,
            joint,
            rounded.audit,
            mechanism=NAME,
            method=METHOD,
            repaired=merging.repaired,
            borrowed=tuple(joint.useful.names[x] for x in merging.borrowed),
            seconds=time.perf_counter() - start,
        )
    return None


def _columns(
    joint: Joint, search: Search, inner: Polytope, outer: Polytope, watched: Watched, start: float
) -> tuple[Array, Points]:
    """Weights and posteriors of every set, (k,) and (k, |X|)."""
    groups, report = watched.merging.groups, search.progress
    effort = Effort(
        gap=max(GAP_SHARE * search.gap, LEAST_GAP) * utility_entropy(joint),
        method=search.method,
        enumeration=ENUMERATIONS[search.enumeration],
        end=math.inf if search.time_limit is None else start + search.time_limit,
        workers=search.workers,
        backend=search.backend,
    )

    def show(done: int) -> None:
        if report is not None:
            report(Step(f"{done} of {len(groups)} sets", done=done, total=len(groups)))

    return respond(within(inner, outer, effort), joint.p_x, groups, show)[:2]


def _sparse(points: Points) -> object:
    from scipy.sparse import csr_array

    return csr_array((points.data, points.indices, points.indptr), shape=points.shape)
