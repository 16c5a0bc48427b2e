"""The exact verdict for a whole confidence set: the promise of a channel for every population in
it.

A channel may be designed with confidence: its promise is to hold for every population that the
counts of the table do not contradict (`tables.confidence`). `audit_with_confidence` gives the
verdict of any channel of one variable. It decides

1. on the table (`verdict.audit_on_table`);
2. on the averages of the channel's record (`averages.average_verdicts`), on the table as well;
3. on the confidence set (`audit_population`), where the caller names one or the channel was
   designed for one (`set_behind`, which computes it from the counts).

The verdict on a set is one on three quotients: the largest lift, the largest inverse of a lift and
the largest quotient of two lifts, over all outputs and all populations of the set. They come from
`population_extremes` as quotients of integers, and are held against the budgets as those of a table
are (`lifts.Extreme`): a largest lift of 3/2 keeps eps_u = 0.5, because log(3/2) = 0.4055.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mechdesign.auditing import verdict
from mechdesign.auditing.averages import average_verdicts
from mechdesign.auditing.columns import Entries, columns_on, released_part
from mechdesign.auditing.lifts import Achieved, Extreme, allowed_sides
from mechdesign.auditing.population_extremes import (
    Bound,
    Population,
    achieved_of,
    largest_bound,
    population_of,
)
from mechdesign.auditing.verdict import Audit
from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.core.limits import LiftLimits
from mechdesign.notions import Notion
from mechdesign.tables.confidence import ConfidenceSet, confidence_set, set_of_record
from mechdesign.tables.joint import Joint

NOT_STACKED = "confidence is not built with protect-each, or after other releases"


def audit_with_confidence(
    channel: Channel,
    joint: Joint,
    notion: Notion,
    *,
    population: ConfidenceSet | None = None,
    after: Sequence[Channel] = (),
) -> Audit:
    """Decide exactly whether `channel` keeps `notion`: on `joint`, and for the population if it was
    designed so.

    A channel that was designed with confidence is judged on every population in the set of the
    counts of `joint`, at the level of its design: `satisfied` and `worst` are those of the set,
    `achieved` is that of the table.

    Parameters
    ----------
    channel : Channel
        Its rows may stand in another order than the useful symbols of the joint.
    joint : Joint
        Not necessarily the table that the channel was designed for.
    notion : Notion
    population : ConfidenceSet, optional
        Judge any channel on this set.
    after : sequence of Channel
        Earlier releases of the same record, drawn independently: all together must keep the notion.
        The table has the useful columns of all of them.

    Raises
    ------
    InputError
        If the useful symbols of channel and joint differ, or the rows are no probabilities; with a
        set of populations, if the intervals in the channel file are not those of its table, or the
        notion is none on single lifts.
    """
    on_table = verdict.audit_on_table(channel, joint, notion, after=after)
    averages = average_verdicts(channel, joint, channel.record.averages)
    averages_kept = all(average.kept for average in averages)
    on_table = replace(
        on_table, satisfied=on_table.satisfied and averages_kept, averages=averages
    )
    if after or joint.sensitive.protects_columns:
        if population is not None or channel.record.confidence is not None:
            raise InputError(NOT_STACKED)
        return on_table
    confidence = population
    if confidence is None:
        confidence = set_behind(channel, joint)
    if confidence is None:
        return on_table
    # `satisfied` speaks of the lifts on the set, and of averages on the table: they have no verdict
    # on a set.
    on_set = audit_population(channel, joint, notion, confidence)
    return replace(
        on_table, satisfied=on_set.satisfied and averages_kept, worst=on_set.worst
    )


def audit_population(
    channel: Channel, joint: Joint, notion: Notion, confidence: ConfidenceSet
) -> Audit:
    """Decide exactly whether `channel` satisfies `notion` for every population of a set, which is
    all it speaks of.
    """
    lift_limits(notion)
    joint = released_part(channel, joint)
    population = population_of(confidence, tuple(joint.useful_counts))
    sides = _sides(population, columns_on(channel, joint), joint, notion)
    return verdict.verdict_of(sides, channel.outputs, notion)


def achieved_on_set(
    channel: Channel, joint: Joint, confidence: ConfidenceSet
) -> Achieved:
    """The smallest doubles that bound the log-lifts of a channel on every population of a set."""
    joint = released_part(channel, joint)
    population = population_of(confidence, tuple(joint.useful_counts))
    return achieved_of(population.worst(columns_on(channel, joint)))


def failing_outputs(
    channel: Channel, joint: Joint, notion: Notion, confidence: ConfidenceSet
) -> tuple[int, ...]:
    """Positions of the outputs that violate `notion` for some population of the set, decided
    exactly.
    """
    lift_limits(notion)
    joint = released_part(channel, joint)
    population = population_of(confidence, tuple(joint.useful_counts))
    failing: list[int] = []
    for y, column in enumerate(columns_on(channel, joint)):
        sides = _sides(population, [column], joint, notion)
        if not all(side.kept for side in sides):
            failing.append(y)
    return tuple(failing)


def lift_limits(notion: Notion) -> LiftLimits:
    """The bounds on single lifts, or InputError for notions on averages."""
    limits = notion.limits
    if limits.mean is not None:
        raise InputError(
            f"{notion.name} bounds averages over the sensitive symbols, for which "
            "confidence is not built; use alip, lip, ldp, max-lift or min-lift"
        )
    return limits


def set_behind(channel: Channel, joint: Joint) -> ConfidenceSet | None:
    """The set of populations that a channel was designed for, computed from counts; None for a
    promise about the table.

    On the channel's own table the intervals must be those in its file.
    """
    record = channel.record.confidence
    if record is None:
        return None
    joint = released_part(channel, joint)
    if _is_own_table(channel, joint):
        return set_of_record(record, joint)
    if record.get("shares") == "known":
        raise InputError(
            "the channel was designed with known shares, which a public file and "
            "another table do not have: audit the internal channel file on its own "
            "table"
        )
    return confidence_set(
        joint,
        record["level"],
        estimate_shares=record.get("shares") == "estimated",
        unseen=record.get("unseen", 0),
    )


def _is_own_table(channel: Channel, joint: Joint) -> bool:
    """Whether the channel was designed for this table."""
    own = channel.joint
    if own is None:
        return False
    return (
        own.sensitive == joint.sensitive
        and own.useful == joint.useful
        and own.counts == joint.counts
    )


def _sides(
    population: Population, columns: Sequence[Entries], joint: Joint, notion: Notion
) -> list[Extreme]:
    """The extremes of outputs as the verdict on a table has them: for every side and every
    different budget the largest quotient.
    """
    allowed = allowed_sides(joint.sensitive, notion)
    largest: dict[tuple[str, float], Bound] = {}

    def compare(side: str, budget: float, bound: Bound) -> None:
        best = largest.get((side, budget))
        if best is not None:
            bound = largest_bound([best, bound])
        largest[side, budget] = bound

    if len(set(allowed)) == 1:
        # The largest of all symbols decides.
        ((lower, upper),) = set(allowed)
        worst = population.worst(columns)
        compare("eps_u", upper, worst.high)
        compare("eps_l", lower, worst.low)
        compare("eps_ldp", notion.limits.loosest.ratio, worst.ratio)
    else:
        for y, column in enumerate(columns):
            bounds = population.bounds(column, y)
            for bound, (_, upper) in zip(bounds.highs, allowed, strict=True):
                compare("eps_u", upper, bound)
            for bound, (lower, _) in zip(bounds.lows, allowed, strict=True):
                compare("eps_l", lower, bound)
            ratio = largest_bound(bounds.ratios)
            compare("eps_ldp", notion.limits.loosest.ratio, ratio)
    names = joint.sensitive.names
    extremes: list[Extreme] = []
    for (side, budget), bound in largest.items():
        extreme = Extreme(
            side=side,
            budget=budget,
            over=bound.quotient,
            # The other side of the lift is that of its inverse.
            lift=bound.inverse if side == "eps_l" else bound.quotient,
            sensitive=names[bound.s],
            y=bound.y,
            against=None if bound.t is None else names[bound.t],
        )
        extremes.append(extreme)
    return extremes
