"""The heuristics of the watchdog: complete merging, subset merging and subset response (Zarrabian
et al. 2023, Section 3).

All publish harmless symbols as they are. They differ in the risky ones, say b, c, d, e beside the
harmless a:

    complete merging   one output of all                       a, {b, c, d, e}
    subset merging     several small sets (Algorithm 1)        a, {b, c}, {d, e}
    subset response    within each of these sets an output     a, and for {b, c} for example the
                       at random (Algorithm 2)                 outputs b and {b, c}

`merging` merges by the partitions of `merged_sets`, and `subset_response` responds. What is
returned satisfies the notion, unless it was asked for as published.

`HEURISTICS` has the three by name; designs call them with the `STANDARD` options, and `heuristic`
with others.

*A partition as a channel.* A symbol is *harmless* if it satisfies the notion as an output of its
own, else *risky*. `merging`

1. decides exactly which symbols are harmless (`_harmless`);
2. merges the risky ones: `merged_sets.merge_all` makes one set of them, `merged_sets.merge_subsets`
   several small ones. Where these violate the notion, the repair lets harmless symbols join. (For
   the l1- and chi2-inverse, which are not convex, a set can even be worse than its parts.)
3. makes the channel that publishes the set of a symbol and audits it exactly
   (`rounding.partition_channel`). The lift of a set T is P(T|s)/P(T), a quotient of integers of
   the table, so the channel needs no margin.

For example, with harmless a, b and risky c, d, complete merging has the outputs a, b and {c, d}:

    W(.|a) = (1, 0, 0),   W(.|b) = (0, 1, 0),   W(.|c) = W(.|d) = (0, 0, 1).

`subset_response` calls `partition_of` for the first two steps alone. Without the repair, as the
procedures are published, a channel may violate the notion; it is `marked` and cannot be saved.

*Subset response.* Subset merging releases a set T of risky symbols as one output, whose posterior
is P(X | T). Within T more can be kept, if this output is split into several ones that are private,
too. Their posteriors have mass on T only, and their mixture is P(X | T). The best split is a
problem of the optimal channel, for the symbols of T alone. The channels of all sets are put
together. For example, of the outputs a and {b, c, d} the second becomes several outputs, such as
{b, c} and {c, d}, each drawn with some probability for b, c or d.

1. The sets come from subset merging with its repair (`partition_of`).
2. `optimal.respond` solves every set; the whole is rounded and audited.
3. The sets of some smaller budgets are tried, too, since a larger budget may merge other sets,
   within which less can be kept. Their channels keep the promise, and the best of all is returned.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.core.integers import IntegerRows
from mechdesign.core.progress import Step
from mechdesign.mechanisms import merged_sets
from mechdesign.mechanisms.merged_sets import MergedSets, Merging
from mechdesign.mechanisms.optimal import MERGING_SHARE, respond
from mechdesign.mechanisms.posteriors import check_optimum
from mechdesign.mechanisms.result import Design, finish
from mechdesign.mechanisms.rounding import Rounded, RoundingFailure, partition_channel
from mechdesign.mechanisms.rules import Rules, check_sensitive, table_rules
from mechdesign.mechanisms.search_options import (
    COMPLETE,
    RESPONSE,
    STANDARD,
    SUBSETS,
    HeuristicOptions,
    Search,
    utility_entropy,
)
from mechdesign.notions import Notion
from mechdesign.tables.joint import Joint

# --------------------------------------------------------------- partitions as channels

UNWRITABLE = (
    "a channel made as published, without repair, is for study and is not written; "
    "design it with its repair"
)
VIOLATES = (
    "this is the procedure as published, without repair: its channel VIOLATES the "
    "notion, is for study only and cannot be written to a file"
)
AS_PUBLISHED = (
    "this is the procedure as published, without repair; here its channel satisfies "
    "the notion; it is for study and cannot be written to a file"
)


def merging(
    mechanism: str,
    rules: Rules,
    search: Search,
    options: HeuristicOptions,
    *,
    share: float = 1.0,
) -> tuple[Merging, Design]:
    """A partition of X and the design that publishes it, within a share of the time.

    It is always private after its repair. Complete merging has one set of all risky symbols, the
    others merge them in small sets (Algorithm 1).
    """
    started = time.process_time()
    joint = rules.joint
    names = joint.useful.names
    partition, harmless = partition_of(mechanism, rules, search, options, share)
    try:
        rounded = partition_channel(
            partition.groups,
            rules,
            must_satisfy=not options.as_published,
        )
    except RoundingFailure:
        # Cannot happen while the partitions err on the safe side; a constant is private
        # whatever happens.
        borrowed = tuple(np.flatnonzero(harmless).tolist())
        everything = tuple(range(len(names)))
        partition = Merging((everything,), repaired=True, borrowed=borrowed)
        rounded = partition_channel(partition.groups, rules)
    design = finish(
        rounded,
        joint,
        mechanism,
        "partition",
        started,
        repaired=partition.repaired,
        borrowed=tuple(names[x] for x in partition.borrowed),
    )
    if options.as_published:
        design = marked(design, satisfied=rounded.audit.satisfied)
    return partition, design


def partition_of(
    mechanism: str,
    rules: Rules,
    search: Search,
    options: HeuristicOptions,
    share: float,
) -> tuple[Merging, NDArray[np.bool_]]:
    """The partition of X, and which symbols satisfy the notion by themselves, (|X|,)."""
    started = time.process_time()
    end = max(search.end(started, share), started + merged_sets.LEAST_SECONDS)
    sets = rules.sets(rules.joint, options.risk)
    harmless = _harmless(rules, sets)
    merge = merged_sets.merge_subsets
    if mechanism == COMPLETE:
        merge = merged_sets.merge_all
    repair = not options.as_published
    return merge(sets, harmless, repair=repair, end=end), harmless


def marked(design: Design, *, satisfied: bool) -> Design:
    """The design of an unrepaired procedure.

    A message tells whether it violates the notion, and its channel refuses to be saved.
    """
    message = VIOLATES
    if satisfied:
        message = AS_PUBLISHED
    record = design.channel.record
    provenance = {**record.provenance, "as_published": True, "satisfied": satisfied}
    return replace(
        design,
        channel=design.channel.with_record(
            replace(record, provenance=provenance, unwritable=UNWRITABLE)
        ),
        verified=satisfied,
        as_published=True,
        messages=(*design.messages, message),
    )


def _harmless(rules: Rules, sets: MergedSets) -> NDArray[np.bool_]:
    """The symbols that satisfy the notion by themselves, (|X|,), decided exactly.

    Floating point decides all but those within its rounding error of a limit.
    """
    joint = rules.joint
    # Lifts inside the limits by more than their rounding error, and those not outside by more.
    surely = sets.harmless
    perhaps = sets.within(sets.given_s, sets.p_x, -1.0)
    if not (perhaps & ~surely).any():
        return surely
    identity = IntegerRows.from_array(np.eye(len(joint.useful), dtype=np.int64))
    channel = Channel(
        joint.useful, joint.useful.names, identity, denominator=1, joint=joint
    )
    harmless = np.ones(len(joint.useful), dtype=np.bool_)
    harmless[list(rules.failing(channel))] = False
    return harmless


# ---------------------------------------------------------------------- subset response

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
            limited = replace(search, time_limit=left, since=None)
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


# --------------------------------------------------------------------------- heuristics


def heuristic(
    joint: Joint,
    notion: Notion,
    mechanism: str,
    options: HeuristicOptions = STANDARD,
    search: Search | None = None,
) -> Design:
    """Run a heuristic with options for figures of the paper and for study.

    Raises
    ------
    InputError
        If the mechanism is no heuristic, or an option does not belong to it.
    """
    options.check(mechanism)
    if mechanism not in HEURISTICS:
        raise InputError(
            f"--mechanism ({mechanism!r}) must be one of {', '.join(HEURISTICS)}"
        )
    check_sensitive(joint)
    rules = table_rules(joint, notion)
    return HEURISTICS[mechanism](rules, search or Search(), options)


def subset_merging(
    rules: Rules, search: Search, options: HeuristicOptions = STANDARD
) -> Design:
    """Algorithm 1, repaired."""
    return merging(SUBSETS, rules, search, options)[1]


def complete_merging(
    rules: Rules, search: Search, options: HeuristicOptions = STANDARD
) -> Design:
    """All risky symbols as one, repaired."""
    return merging(COMPLETE, rules, search, options)[1]


HEURISTICS: Mapping[str, Callable[[Rules, Search, HeuristicOptions], Design]] = (
    MappingProxyType(
        {RESPONSE: subset_response, SUBSETS: subset_merging, COMPLETE: complete_merging}
    )
)
"""The heuristics by the name of their mechanism."""
