"""The heuristics: publish harmless symbols as they are, merge the others (Zarrabian et al. 2023,
Section 3), and respond at random within the merged sets (Algorithm 2).

A merged set of symbols T becomes one output whose lift is P(T|s)/P(T), a quotient of integers of
the table, so the channel needs no margin, and the exact audit has the last word. Merging is not
always enough, and for the l1- and chi2-inverse, which are not convex, it can even be worse than its
parts; then `partitions` repairs. What is returned satisfies the notion, unless it was asked for as
published.

Complete merging may draw its output from any distribution R(y) that is the same for every risky
symbol (Section 3.1.1): each output then has the lifts of the merged set, whatever R is; a single
output is the simplest R.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mechdesign.channel.channel import DENOMINATOR, Channel
from mechdesign.core.errors import InputError
from mechdesign.core.integers import IntegerRows
from mechdesign.core.progress import Step
from mechdesign.core.rationals import fraction_of
from mechdesign.core.wording import listed
from mechdesign.mechanisms import partitions
from mechdesign.mechanisms.merged_sets import RISKS, MergedSets, Risk
from mechdesign.mechanisms.optimal import MERGING_SHARE, respond
from mechdesign.mechanisms.partitions import Merging
from mechdesign.mechanisms.posteriors import check_optimum
from mechdesign.mechanisms.result import Design, finish
from mechdesign.mechanisms.rounding import Rounded, RoundingFailure, partition_channel
from mechdesign.mechanisms.rules import Rules, check_sensitive, table_rules
from mechdesign.mechanisms.search import Search, utility_entropy
from mechdesign.notions import Notion
from mechdesign.release.policies import apportioned
from mechdesign.tables.joint import Joint

Randomisation: TypeAlias = str | Sequence[float]
"""`merge`, `uniform`, or the probabilities of the outputs, one for each risky symbol in the table's
order."""

MERGE = "merge"
UNIFORM = "uniform"

SUM_TOLERANCE = Fraction(1, 10**9)
"""Probabilities may miss a sum of 1 by this much, as those of an outside matrix; they are then
normalised exactly."""


def shares_of(randomisation: Randomisation, risky: Sequence[str]) -> list[int]:
    """R(y) as positive integers that sum to 2**53."""
    if isinstance(randomisation, str):
        if randomisation == MERGE:
            return [DENOMINATOR]
        if randomisation != UNIFORM:
            raise InputError(
                f"the randomisation ({randomisation!r}) must be {MERGE}, {UNIFORM} or "
                "a list of probabilities"
            )
        return apportioned([1] * len(risky), DENOMINATOR).tolist()
    values = [fraction_of(value) for value in randomisation]
    if len(values) != len(risky):
        raise InputError(
            f"R(y) has {len(values)} probabilities, but {len(risky)} risky symbols "
            f"need one each: {listed(list(risky))}"
        )
    for value in values:
        if not 0 <= value <= 1:
            raise InputError(f"R(y) contains {float(value):g}, which is no probability")
    total = sum(values)
    if abs(total - 1) > SUM_TOLERANCE:
        raise InputError(
            f"R(y) sums to {float(total):.12g}; probabilities must sum to 1"
        )
    unit = math.lcm(*(value.denominator for value in values))
    whole = apportioned([int(value * unit) for value in values], DENOMINATOR)
    return whole[whole > 0].tolist()


SMALLER_BUDGETS = (1 / 2, 1 / 4, 1 / 8, 1 / 16)
"""Shares of the budget whose responses are tried, too: on 840 random designs the best of all
smaller budgets kept more in 33, always one of these."""

ROUNDING_GAIN = 1e-7
"""Rounding to integers changes the share of H(X) that is kept by less: responses that keep so much
less than what is there need not be rounded."""

MOST_SYMBOLS_OF_SMALLER = 60
"""Symbols up to which these are tried: on larger tables the response itself takes seconds."""

COMPLETE = "complete-merging"
SUBSETS = "subset-merging"
RESPONSE = "subset-response"

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


@dataclass(frozen=True, kw_only=True)
class HeuristicOptions:
    """What the heuristics leave open, for figures of the paper and for study; designs take the
    standard.

    Parameters
    ----------
    risk : {"auto", "log-max", "log-ratio", "sum"}
        How subset merging and subset response order sets; "sum" is what the paper prints for ALIP.
    randomisation : {"merge", "uniform"} or sequence of float
        The R(y) of complete merging.
    as_published : bool
        Leave out the repair. Where the channel violates the notion, `verified` is False; it cannot
        be saved in any case.
    smaller_budgets : bool
        Whether subset response also tries parts of the budget.
    """

    risk: Risk = "auto"
    randomisation: Randomisation = MERGE
    as_published: bool = False
    smaller_budgets: bool = True

    def __post_init__(self) -> None:
        if self.risk not in RISKS:
            raise InputError(f"risk ({self.risk!r}) must be one of {', '.join(RISKS)}")

    def check(self, mechanism: str) -> None:
        """Raise InputError if one of them does not belong to the mechanism."""
        if self.risk != "auto" and mechanism not in (RESPONSE, SUBSETS):
            raise InputError(
                f"risk belongs to {SUBSETS} and {RESPONSE}, not to {mechanism}"
            )
        if self.randomisation != MERGE and mechanism != COMPLETE:
            raise InputError(
                f"a randomisation R(y) belongs to {COMPLETE}, not to {mechanism}"
            )
        if self.as_published and mechanism not in HEURISTICS:
            raise InputError(
                f"as_published belongs to the heuristics, not to {mechanism}, which needs no repair"
            )


STANDARD = HeuristicOptions()


def heuristic(
    joint: Joint,
    notion: Notion,
    mechanism: str,
    options: HeuristicOptions = STANDARD,
    search: Search | None = None,
) -> Design:
    """Run a heuristic as figures of the paper and studies of it need: with another risk or R(y), or
    without repair.

    Raises
    ------
    InputError
        If the mechanism is no heuristic, or an option does not belong to it.
    """
    options.check(mechanism)
    if mechanism not in HEURISTICS:
        raise InputError(
            f"mechanism ({mechanism!r}) must be one of {', '.join(HEURISTICS)}"
        )
    check_sensitive(joint)
    rules = table_rules(joint, notion)
    return HEURISTICS[mechanism](rules, search or Search(), options)


def merging(
    mechanism: str,
    rules: Rules,
    search: Search,
    options: HeuristicOptions,
    *,
    share: float = 1.0,
) -> tuple[Merging, Design]:
    """A partition of X and the design that publishes it, within a share of the time; always private
    after its repair.

    Complete merging randomises all the violating symbols alike, the others merge them in small sets
    (Algorithm 1).
    """
    started = time.perf_counter()
    joint = rules.joint
    names = joint.useful.names
    partition, harmless = _partition(mechanism, rules, search, options, share)
    risky = np.flatnonzero(~harmless).tolist()
    try:
        rounded = partition_channel(
            partition.groups,
            rules,
            shares=_randomised(partition, options.randomisation, risky, names),
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


def _partition(
    mechanism: str,
    rules: Rules,
    search: Search,
    options: HeuristicOptions,
    share: float,
) -> tuple[Merging, NDArray[np.bool_]]:
    """The partition of X, and which symbols satisfy the notion by themselves, (|X|,)."""
    started = time.perf_counter()
    end = max(search.end(started, share), started + partitions.LEAST_SECONDS)
    sets = rules.sets(rules.joint, options.risk)
    harmless = _harmless(rules, sets)
    merge = partitions.merge_subsets
    if mechanism == COMPLETE:
        merge = partitions.merge_all
    repair = not options.as_published
    return merge(sets, harmless, repair=repair, end=end), harmless


def _randomised(
    partition: Merging,
    randomisation: Randomisation,
    risky: Sequence[int],
    names: Sequence[str],
) -> dict[int, list[int]]:
    """R(y) of the group of risky symbols, by its place in the partition; empty where one output is
    enough.
    """
    if not risky:
        return {}
    shares = shares_of(randomisation, [names[x] for x in risky])
    if len(shares) == 1:
        return {}
    # Complete merging has a single group of risky symbols; no other mechanism has more than one
    # share.
    places = [k for k, group in enumerate(partition.groups) if risky[0] in group]
    return dict.fromkeys(places, shares)


def marked(design: Design, *, satisfied: bool) -> Design:
    """The design of an unrepaired procedure: it says whether it violates, and its channel refuses
    to be saved.
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
    surely = sets.within(sets.given_s, sets.p_x, 1.0)
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


def subset_response(
    rules: Rules, search: Search, options: HeuristicOptions = STANDARD
) -> Design:
    """Respond at random within the sets of subset merging; verified, and never worse than these.

    Within each set the problem of the optimal channel is solved, and the sets' channels are put
    together. The printed test for an empty polytope is not enough for such a problem to have a
    solution: P(X | T) must itself be a mixture of posteriors of the convex set, hence the merged
    set satisfy the notion. The repaired partition of subset merging consists of such sets only, so
    nothing has to be joined here.

    A larger budget may merge other sets, within which less can be kept. The channels of some
    smaller budgets keep the promise, too, and the best of all is returned.
    """
    started = time.perf_counter()
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
        found = _response(rules, partition, search, options, merged.nmi)
        best = found or merged
    may_try = options.smaller_budgets and not options.as_published
    is_small = len(rules.joint.useful) <= MOST_SYMBOLS_OF_SMALLER
    if may_try and rules.demands is None and is_small:
        best = _best_of_smaller(rules, partition, best, search, options, started)
    return replace(best, seconds=time.perf_counter() - started)


def _best_of_smaller(
    rules: Rules,
    partition: Merging,
    best: Design,
    search: Search,
    options: HeuristicOptions,
    started: float,
) -> Design:
    """The best response of some smaller budgets as a channel of the whole one, or `best` where that
    keeps more.

    Partitions that refine one of a larger budget are left out: within its sets the larger budget
    keeps as much.
    """
    end = search.end(started)
    tried = [partition]
    for factor in SMALLER_BUDGETS:
        smaller = rules.notion.scaled(factor)
        left = end - time.perf_counter()
        if smaller is None or left <= 0.0 or best.nmi >= 1.0:
            break
        limited = search
        if left < math.inf:
            limited = replace(search, time_limit=left)
        inner = replace(rules, notion=smaller)
        other, _ = _partition(RESPONSE, inner, limited, options, MERGING_SHARE)
        if any(_refines(other, coarser) for coarser in tried):
            continue
        tried.append(other)
        response = _response(inner, other, limited, options, best.nmi)
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
    for at, group in enumerate(other.groups):
        place |= dict.fromkeys(group, at)
    return all(len({place[x] for x in group}) == 1 for group in partition.groups)


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
    """The best response within the sets of a partition; None if it keeps less than `least`, as a
    share of H(X), or none was verified.
    """
    started = time.perf_counter()
    # The largest first: mostly one is enough to see that too little is kept.
    masses = [float(rules.joint.p_x[list(group)].sum()) for group in partition.groups]
    order = np.argsort(masses, kind="stable")[::-1]
    groups = [partition.groups[at] for at in order.tolist()]

    def show(done: int) -> None:
        if search.progress is not None:
            total = len(groups)
            search.progress(Step(f"{done} of {total} sets", done=done, total=total))

    end = search.end(started)
    joint = rules.joint
    names = joint.useful.names
    most_lost = (1.0 - least + ROUNDING_GAIN) * utility_entropy(joint)
    for margin in rules.margins:
        # The larger the margin, the farther are posteriors from the limits that rounding may break.
        solve = rules.solver(margin, search, end)
        try:
            response = respond(solve, joint.p_x, groups, end, show, most_lost)
            if response is None:
                return None
            weights, points, _ = response
            rounded = rules.rounded(weights, points)
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


def subset_merging(
    rules: Rules, search: Search, options: HeuristicOptions = STANDARD
) -> Design:
    """Algorithm 1, repaired."""
    return merging(SUBSETS, rules, search, options)[1]


def complete_merging(
    rules: Rules, search: Search, options: HeuristicOptions = STANDARD
) -> Design:
    """All risky symbols as one, randomised alike, repaired."""
    return merging(COMPLETE, rules, search, options)[1]


HEURISTICS: Mapping[str, Callable[[Rules, Search, HeuristicOptions], Design]] = (
    MappingProxyType(
        {RESPONSE: subset_response, SUBSETS: subset_merging, COMPLETE: complete_merging}
    )
)
