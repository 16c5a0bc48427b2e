"""The last step of a design with confidence: its set in the record, and advice where little is
kept.

`designing` calls `confident` with the verified design. It writes the confidence set into the record
of the channel. A channel that keeps nearly nothing is no fault of the search: the intervals of few
records are wide. So a message says about how many records would be enough (`records_needed`):

1. The goal is half of what the optimum of the table alone keeps.
2. All counts are doubled, again and again. The table stays the same, only the intervals shrink.
3. The first number of records is named at which the optimum over the confidence set reaches the
   goal.

For example, a table alone would keep 0.6, and a channel private for the set of its 300 records
keeps 0.04. With 600, 1,200 and 2,400 records like these it would be 0.09, 0.17 and 0.31. So 2,400
are named, the first number that reaches 0.3.
"""

from __future__ import annotations

import time
from dataclasses import replace

from mechdesign.auditing.population import lift_limits
from mechdesign.mechanisms.population import PopulationRules
from mechdesign.mechanisms.result import Design
from mechdesign.mechanisms.rules import Rules
from mechdesign.mechanisms.search import Search, utility_entropy
from mechdesign.notions import Notion
from mechdesign.tables.confidence import ConfidenceSet, confidence_set
from mechdesign.tables.joint import Joint

LITTLE = 0.05
"""A channel that keeps less of H(X) than this is worth a word on how many records would be needed.
"""

GOAL = 0.5
"""Share of what the table alone would allow that the estimate of needed records aims at."""

MOST_DOUBLINGS = 30
"""Doublings of the records up to which that estimate goes: a thousand million times the records."""

ESTIMATE_GAP = 0.02
"""Gap, in units of H(X), of the designs behind that estimate."""

ESTIMATE_SECONDS = 5.0
"""Longest that the estimate may take in all."""


def confident(
    design: Design,
    rules: PopulationRules,
    started: float,
    time_limit: float | None = None,
) -> Design:
    """The design with its set in the record, and with advice on how many records would be needed.

    The advice costs an estimate, which ends when `time_limit` seconds have passed since `started`.
    """
    messages = design.messages
    # A design of least cost may keep little because its restrictions ask for that.
    if design.nmi < LITTLE and design.least is None:
        end = time.process_time() + ESTIMATE_SECONDS
        if time_limit is not None:
            end = min(end, started + time_limit)
        messages = (*messages, _advice(design, rules, end))
    record = replace(design.channel.record, confidence=rules.populations.to_record())
    return replace(
        design,
        channel=design.channel.with_record(record),
        confidence=rules.populations,
        messages=messages,
        seconds=time.process_time() - started,
    )


def _advice(design: Design, rules: PopulationRules, end: float) -> str:
    """The sentence for a channel that keeps little; the estimate in it ends at `end`."""
    needed = records_needed(rules.joint, rules.notion, rules.populations, end=end)
    way_out = "merge symbols, or choose a lower level or a larger budget"
    if needed is not None:
        way_out = (
            f"about {needed} records like these would keep half of what the table "
            "alone allows (an estimate), merging symbols or a lower level ask for "
            "fewer"
        )
    return (
        f"{rules.joint.total} records say so little of their population that a channel "
        f"private for all of the set keeps only {design.nmi:.2g} of H(X); {way_out}"
    )


def records_needed(
    joint: Joint,
    notion: Notion,
    populations: ConfidenceSet,
    *,
    end: float | None = None,
) -> int | None:
    """About how many records (2, 4, 8, .. times these) keep half of what the table alone allows.

    None where the estimate did not end until `end`, a moment of `time.process_time`, or no number
    was enough. All counts are multiplied alike, so the table stays the same and only the intervals
    shrink.
    """
    if end is None:
        end = time.process_time() + ESTIMATE_SECONDS
    if time.process_time() >= end:
        return None
    search = Search(gap=ESTIMATE_GAP)

    def kept(rules: Rules) -> float:
        # The optimum in floating point is enough for an estimate: no channel comes of it.
        envelope = rules.solver(0.0, search, end)()
        return 1.0 - envelope.value / utility_entropy(joint)

    goal = GOAL * kept(Rules(joint, notion))
    # Known shares stay known: more records do not change them.
    shares = None
    if populations.shares_are_known:
        shares = dict(
            zip(joint.sensitive.symbols, populations.share_lower, strict=True)
        )
    for k in range(1, MOST_DOUBLINGS + 1):
        counts: list[tuple[int, ...]] = []
        for row in joint.counts:
            counts.append(tuple(count << k for count in row))
        larger = replace(joint, counts=tuple(counts))
        if time.process_time() > end:
            return None
        larger_set = confidence_set(
            larger,
            populations.level,
            shares=shares,
            estimate_shares=lift_limits(notion).need_shares,
            unseen=populations.unseen,
        )
        if kept(PopulationRules(larger, notion, populations=larger_set)) >= goal:
            return larger.total
    return None
