"""Subset response: a random response within each set of subset merging (Zarrabian et al. 2023,
Algorithm 2).

Subset merging releases a set T of risky symbols as one output, whose posterior is P(X | T). Within
T more can be kept, if this output is split into several ones that are private, too. Their
posteriors have mass on T only, and their mixture is P(X | T). The best split is a problem of the
optimal channel, for the symbols of T alone. The channels of all sets are put together. For example,
of the outputs a and {b, c, d} the second becomes several outputs, such as {b, c} and {c, d}, each
drawn with some probability for b, c or d.

1. The sets come from subset merging with its repair (`merged_release`).
2. `set_response.respond` solves every set; the whole is rounded and audited.
3. The sets of some smaller budgets are tried, too, since a larger budget may merge other sets,
   within which less can be kept. Their channels keep the promise, and the best of all is returned.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.core.progress import Step
from mechdesign.mechanisms.heuristic_options import RESPONSE, STANDARD, HeuristicOptions
from mechdesign.mechanisms.incumbents import MERGING_SHARE
from mechdesign.mechanisms.merged_release import marked, merging, partition_of
from mechdesign.mechanisms.partitions import Merging
from mechdesign.mechanisms.posteriors import check_optimum
from mechdesign.mechanisms.result import Design, finish
from mechdesign.mechanisms.rounding import Rounded, RoundingFailure
from mechdesign.mechanisms.rules import Rules
from mechdesign.mechanisms.search import Search, utility_entropy
from mechdesign.mechanisms.set_response import respond

SMALLER_BUDGETS = (1 / 2, 1 / 4, 1 / 8, 1 / 16)
"""Shares of the budget whose responses are tried, too: on 840 random designs the best of all
smaller budgets kept more in 33, always one of these."""

ROUNDING_GAIN = 1e-7
"""Rounding to integers changes the share of H(X) that is kept by less: responses that keep so much
less than what is there need not be rounded."""

MOST_SYMBOLS_OF_SMALLER = 60
"""Symbols up to which these are tried: on larger tables the response itself takes seconds."""


def subset_response(
    rules: Rules, search: Search, options: HeuristicOptions = STANDARD
) -> Design:
    """Respond at random within the sets of subset merging; verified, and never worse than these.

    The paper's test for an empty polytope is not enough for the problem of a set to have a
    solution: P(X | T) must itself be a mixture of posteriors of the convex set, hence the merged
    set satisfy the notion. The repaired partition of subset merging consists of such sets only, so
    nothing has to be joined here.
    """
    started = time.process_time()
    check_optimum(rules.notion, rules.joint)
    if not rules.has_faces:
        raise InputError(
            f"{RESPONSE} with symbols of no record is not built: an output of a few "
            "symbols would be released for these, too, so that sets cannot be looked "
            "at one by one; use another mechanism"
        )
    rules = replace(rules, by_symbol=True)
    partition, merged = merging(RESPONSE, rules, search, options, share=MERGING_SHARE)
    best = merged
    if merged.verified and not _is_finest(partition):
        response = _response(rules, partition, search, options, merged.nmi)
        if response is not None:
            best = response
    # Earlier releases, and studies of the published procedure, take the budget as it is.
    may_try = options.smaller_budgets and not options.as_published
    is_small = len(rules.joint.useful) <= MOST_SYMBOLS_OF_SMALLER
    if may_try and rules.demands is None and is_small:
        best = _best_of_smaller(rules, partition, best, search, options, started)
    return replace(best, seconds=time.process_time() - started)


def _best_of_smaller(
    rules: Rules,
    partition: Merging,
    best: Design,
    search: Search,
    options: HeuristicOptions,
    started: float,
) -> Design:
    """The best response of some smaller budgets as a channel of the whole one, or else `best`.

    Partitions that refine one of a larger budget are left out: within its sets the larger budget
    keeps as much.
    """
    end = search.end(started)
    tried = [partition]
    for factor in SMALLER_BUDGETS:
        smaller = rules.notion.scaled(factor)
        left = end - time.process_time()
        if smaller is None or left <= 0.0 or best.nmi >= 1.0:
            break
        limited = search
        if left < math.inf:
            limited = replace(search, time_limit=left)
        stricter = replace(rules, notion=smaller)
        other, _ = partition_of(RESPONSE, stricter, limited, options, MERGING_SHARE)
        if any(_refines(other, coarser) for coarser in tried):
            continue
        tried.append(other)
        response = _response(stricter, other, limited, options, best.nmi)
        if response is None or not response.nmi > best.nmi:
            continue
        # The smaller budget implies the whole one, but the record must show the verdict of the
        # notion that was asked for.
        verdict = rules.verdict(response.channel)
        if verdict.satisfied:
            best = finish(
                Rounded(response.channel, verdict),
                rules.joint,
                RESPONSE,
                "subsets",
                started,
                repaired=response.repaired,
                borrowed=response.borrowed,
                messages=(
                    f"the sets of a smaller budget, {smaller.text}, keep more and are used",
                ),
            )
    return best


def _refines(partition: Merging, other: Merging) -> bool:
    """Whether every set of a partition lies in one of the other."""
    place: dict[int, int] = {}
    for number, group in enumerate(other.groups):
        place |= dict.fromkeys(group, number)
    for group in partition.groups:
        first, *rest = group
        if any(place[x] != place[first] for x in rest):
            return False
    return True


def _is_finest(partition: Merging) -> bool:
    """Whether every set is a single symbol."""
    return all(len(group) == 1 for group in partition.groups)


def _response(
    rules: Rules,
    partition: Merging,
    search: Search,
    options: HeuristicOptions,
    least: float,
) -> Design | None:
    """The best response within the sets of a partition.

    None if it keeps less than `least`, as a share of H(X), or if none was verified.
    """
    started = time.process_time()
    # The largest first: mostly one is enough to see that too little is kept.
    masses = [float(rules.joint.p_x[list(group)].sum()) for group in partition.groups]
    order = np.argsort(masses, kind="stable")[::-1]
    groups = [partition.groups[place] for place in order.tolist()]

    def show(done: int) -> None:
        if search.progress is not None:
            total = len(groups)
            search.progress(Step(f"{done} of {total} sets", done=done, total=total))

    end = search.end(started)
    joint = rules.joint
    names = joint.useful.names
    # The sets are given up as soon as they leave more than this of H(X) open.
    most_lost = (1.0 - least + ROUNDING_GAIN) * utility_entropy(joint)
    for margin in rules.margins:
        # The larger the margin, the farther are posteriors from the limits that rounding may break.
        solve = rules.solver(margin, search, end)
        try:
            response = respond(solve, joint.p_x, groups, end, show, most_lost)
            if response is None:
                return None
            rounded = rules.rounded(response.weights, response.points)
        except RoundingFailure:
            continue
        design = finish(
            rounded,
            joint,
            RESPONSE,
            "subsets",
            started,
            repaired=partition.repaired,
            borrowed=tuple(names[x] for x in partition.borrowed),
        )
        if design.nmi < least:
            # Rounding may cost 1e-7 of H(X), more than the sets gained.
            return None
        if options.as_published:
            return marked(design, satisfied=True)
        return design
    return None
