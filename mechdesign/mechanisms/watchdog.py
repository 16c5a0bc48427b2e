"""The watchdog mechanisms: publish harmless symbols as they are, merge the others (Zarrabian et al. 2023, Section 3).

A merged set of symbols T becomes one output whose lift is P(T|s)/P(T), a quotient of integers of the
table, so the channel needs no margin: its rows are 0 or 1, and the exact audit has the last word.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from mechdesign.auditing import failing_outputs
from mechdesign.channel import Channel
from mechdesign.errors import InputError
from mechdesign.integer_rows import IntegerRows
from mechdesign.joint import Joint
from mechdesign.mechanisms.finishing import finish
from mechdesign.mechanisms.partitions import RISKS, Lifts, Merging, Risk, merge_all, merge_subsets
from mechdesign.mechanisms.result import Design
from mechdesign.notions import Notion
from mechdesign.rounding import RoundingFailure, partition_channel

METHOD = "partition"


def subset_merging(joint: Joint, notion: Notion, *, risk: Risk = "auto") -> Design:
    """Merge the violating symbols in small sets (Algorithm 1), with repair; always private.

    Parameters
    ----------
    joint : Joint
    notion : Notion
    risk : one of `partitions.RISKS`
        How Algorithm 1 orders sets. `auto` reproduces the paper's figures, `sum` is what it prints for ALIP.

    Raises
    ------
    InputError
        If `risk` is not known.
    """
    return _watchdog(joint, notion, "subset-merging", risk)


def complete_merging(joint: Joint, notion: Notion) -> Design:
    """Merge all the violating symbols into one output, with repair; always private."""
    return _watchdog(joint, notion, "complete-merging", "auto")


def _watchdog(joint: Joint, notion: Notion, mechanism: str, risk: Risk) -> Design:
    if risk not in RISKS:
        raise InputError(f"risk ({risk!r}) must be one of {', '.join(RISKS)}")
    start = time.perf_counter()
    lifts = Lifts(joint.p, notion.limits, risk)
    harmless = _harmless(joint, notion, lifts)
    merging = (merge_subsets if mechanism == "subset-merging" else merge_all)(lifts, harmless)
    try:
        rounded = partition_channel(merging.groups, joint, notion)
    except RoundingFailure:
        # Cannot happen while the partitions err on the safe side; a constant is private whatever happens.
        borrowed = tuple(int(x) for x in np.flatnonzero(harmless))
        merging = Merging((tuple(range(len(joint.useful))),), repaired=True, borrowed=borrowed)
        rounded = partition_channel(merging.groups, joint, notion)
    return finish(
        rounded.channel,
        joint,
        rounded.audit,
        mechanism=mechanism,
        method=METHOD,
        repaired=merging.repaired,
        borrowed=tuple(joint.useful.names[x] for x in merging.borrowed),
        seconds=time.perf_counter() - start,
    )


def _harmless(joint: Joint, notion: Notion, lifts: Lifts) -> NDArray[np.bool_]:
    """The symbols that satisfy the notion by themselves, (|X|,), decided exactly.

    Floating point decides all but those within its rounding error of a limit.
    """
    surely, perhaps = lifts.within(lifts.given_s, lifts.p_x), lifts.nearly_within(lifts.given_s, lifts.p_x)
    if not (perhaps & ~surely).any():
        return surely
    identity = IntegerRows.from_array(np.eye(len(joint.useful), dtype=np.int64))
    channel = Channel(joint.useful, joint.useful.names, identity, denominator=1, joint=joint)
    harmless = np.ones(len(joint.useful), dtype=np.bool_)
    harmless[list(failing_outputs(channel, joint, notion))] = False
    return harmless
