"""A partition of X as a channel: harmless symbols are released as they are, risky ones merged
(Zarrabian et al. 2023, Section 3).

A symbol is *harmless* if it satisfies the notion as an output of its own, else *risky*. `merging`

1. decides exactly which symbols are harmless (`_harmless`);
2. merges the risky ones: `partitions.merge_all` makes one set of them, `partitions.merge_subsets`
   several small ones. Where these violate the notion, the repair lets harmless symbols join. (For
   the l1- and chi2-inverse, which are not convex, a set can even be worse than its parts.)
3. makes the channel that publishes the set of a symbol and audits it exactly
   (`rounding.partition_channel`). The lift of a set T is P(T|s)/P(T), a quotient of integers of
   the table, so the channel needs no margin.

For example, with harmless a, b and risky c, d, complete merging has the outputs a, b and {c, d}:

    W(.|a) = (1, 0, 0),   W(.|b) = (0, 1, 0),   W(.|c) = W(.|d) = (0, 0, 1).

`subset_response` calls `partition_of` for the first two steps alone. Without the repair, as the
procedures are published, a channel may violate the notion; it is `marked` and cannot be saved.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mechdesign.channel.channel import Channel
from mechdesign.core.integers import IntegerRows
from mechdesign.mechanisms import partitions
from mechdesign.mechanisms.heuristic_options import (
    COMPLETE,
    HeuristicOptions,
    Randomisation,
    shares_of,
)
from mechdesign.mechanisms.merged_sets import MergedSets
from mechdesign.mechanisms.partitions import Merging
from mechdesign.mechanisms.result import Design, finish
from mechdesign.mechanisms.rounding import RoundingFailure, partition_channel
from mechdesign.mechanisms.rules import Rules
from mechdesign.mechanisms.search import Search

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

    It is always private after its repair. Complete merging randomises all risky symbols alike, the
    others merge them in small sets (Algorithm 1).
    """
    started = time.process_time()
    joint = rules.joint
    names = joint.useful.names
    partition, harmless = partition_of(mechanism, rules, search, options, share)
    # R(y) has a probability for each risky symbol, whether or not the repair borrowed others.
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


def partition_of(
    mechanism: str,
    rules: Rules,
    search: Search,
    options: HeuristicOptions,
    share: float,
) -> tuple[Merging, NDArray[np.bool_]]:
    """The partition of X, and which symbols satisfy the notion by themselves, (|X|,)."""
    started = time.process_time()
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
    """R(y) of the group of risky symbols, by its place in the partition.

    It is empty where one output is enough.
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
