"""The exact verdict on any channel.

`audit` is the public function. A channel is judged on a table, or on every population of a set
(`population.audit_with_confidence`); but one with claims by strata is judged on the confidence sets
of the counts that it carries (`audit_boxes`).

Such a channel sorts the rows of each stratum into boxes and releases a randomised box. Its part
for a stratum is an ordinary channel whose useful symbols are the boxes, with the counts that its
promise is proven on. `audit_boxes` goes part by part:

1. a part that releases nothing keeps every promise, and is passed over;
2. the confidence set is computed again from the counts of the part (`set_of_record`);
3. the part is audited on every population of the set (`population.audit_with_confidence`), and the
   smallest budgets that hold on the whole set are computed (`population.achieved_on_set`).

The promise holds if every part keeps it, and what is achieved is the largest of all parts, side by
side: parts that come to eps_u 0.4 and 0.5 come to 0.5 together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mechdesign.auditing import population as of_channels
from mechdesign.auditing.lifts import Achieved, largest_of
from mechdesign.auditing.verdict import Audit, Worst
from mechdesign.channel.channel import Channel
from mechdesign.channel.file import require_channel
from mechdesign.core.errors import InputError
from mechdesign.notions import Notion
from mechdesign.tables.confidence import ConfidenceSet, set_of_record
from mechdesign.tables.joint import Joint
from mechdesign.tables.people_tables import PeopleRoles, people_of_table
from mechdesign.tables.records import bins_by_column

NO_COUNTS = (
    "this channel of boxes carries no counts (a public one): audit the file that `design` "
    "wrote"
)
"""The refusal of a verdict that nothing could be decided by."""


def audit(
    channel: Channel,
    joint: Any = None,
    notion: Notion | None = None,
    *,
    population: ConfidenceSet | None = None,
    after: Sequence[Channel] = (),
) -> Audit:
    """Decide exactly whether a channel keeps a promise.

    Parameters
    ----------
    channel : Channel
        One of boxes is judged on the confidence sets of the counts that it carries.
    joint : Joint, data frame or path, optional
        By default the table that the channel carries.
    notion : Notion, optional
        By default what the channel was designed for.
    population : ConfidenceSet, optional
        Judge the channel on every population of this set.
    after : sequence of Channel
        Earlier releases of the same record.

    Raises
    ------
    InputError
        As `auditing.population.audit_with_confidence` does.
    """
    require_channel("channel", channel)
    if not channel.takes_table:
        if joint is not None or population is not None or after:
            raise InputError(
                "a channel of boxes is audited on the counts that it carries: leave table, "
                "population and after out"
            )
        return audit_boxes(channel, notion)
    joint = _table_for(channel, joint)
    given_notion: Any = notion
    if notion is None:
        given_notion = channel.promise
    return of_channels.audit_with_confidence(
        channel, joint, given_notion, population=population, after=after
    )


def _table_for(channel: Channel, table: Any) -> Any:
    """The table of an audit: the one that the channel carries where none is given, and of a data
    frame or a file the joint table of the channel's columns, read as the design read its own.
    """
    if table is None:
        return channel.joint
    if isinstance(table, Joint) or channel.sensitive is None:
        return table
    is_path = isinstance(table, (str, Path))
    if not (is_path or hasattr(table, "columns") or hasattr(table, "schema")):
        return table
    if channel.useful.people is not None:
        rules = channel.record.rules
        joint = people_of_table(
            table,
            PeopleRoles.of(channel.useful),
            rules.counted,
            rules.cell_form,
        )
        return joint.protecting_each() if channel.sensitive.protects_columns else joint
    bins = bins_by_column([channel.useful])
    return Joint.from_table(
        table,
        sensitive=channel.sensitive.columns,
        useful=channel.useful.columns,
        bins=bins or None,
        protect_each=channel.sensitive.protects_columns,
        **channel.record.rules.reading,
    )


def audit_boxes(channel: Channel, notion: Notion | None = None) -> Audit:
    """Decide exactly whether a channel for boxes keeps a promise for the population.

    The intervals are computed again from the counts of the file.

    Parameters
    ----------
    channel : Channel
    notion : Notion, optional
        By default what its parts were designed for.

    Raises
    ------
    InputError
        If the channel carries no counts (a public one), or its intervals are not theirs.
    """
    asked = channel.promise if notion is None else notion
    coder, claims, sensitive = channel.boxed
    output_of = dict(zip(channel.output_cells, channel.outputs, strict=True))
    verdicts: list[Audit] = []
    on_sets: list[Achieved] = []
    # Where nothing is released, every value stays as probable as it was.
    worst = Worst(sensitive.names[0], channel.outputs[0], 1.0)
    largest = (False, 0.0)
    records = 0
    for part in channel.parts:
        part_channel = part.channel
        # A part that releases nothing keeps every promise.
        if part_channel is None:
            continue
        joint = part_channel.joint
        record = part_channel.record
        if joint is None or record.confidence is None or asked is None:
            raise InputError(NO_COUNTS)
        populations = set_of_record(record.confidence, joint)
        records += joint.total
        verdict = of_channels.audit_with_confidence(
            part_channel, joint, asked, population=populations
        )
        verdicts.append(verdict)
        # `achieved` of a verdict is that of the table, which is smaller.
        on_set = of_channels.achieved_on_set(part_channel, joint, populations)
        on_sets.append(on_set)
        usage = (not verdict.satisfied, _usage(on_set, asked))
        if usage >= largest:
            largest = usage
            output = output_of[*coder.given_texts(part.stratum), verdict.worst.output]
            worst = replace(verdict.worst, output=output)
    return Audit(
        satisfied=all(verdict.satisfied for verdict in verdicts),
        notion=asked,
        achieved=largest_of(on_sets),
        worst=worst,
        level=claims.level,
        on_table=largest_of(verdict.achieved for verdict in verdicts),
        records=records,
        strata=tuple(verdicts),
        together=_together(channel),
    )


def _usage(achieved: Achieved, notion: Notion) -> float:
    """The largest share of a budget that is used."""
    limits = notion.limits.loosest
    sides = (
        (achieved.eps_l, limits.lower),
        (achieved.eps_u, limits.upper),
        (achieved.eps_ldp, limits.ratio),
    )
    return max(used / most for used, most in sides if math.isfinite(most))


def _together(channel: Channel) -> tuple[tuple[str, ...], ...]:
    """The groups of several sensitive values of all parts, each once.

    Of a group the promise bounds the share of its values together, not of each.
    """
    # The keys are the groups, in the order of their first part.
    groups: dict[tuple[str, ...], None] = {}
    for part in channel.parts:
        for members in part.together:
            if part.channel is not None and len(members) > 1:
                group = tuple(channel.boxed.sensitive.names[s] for s in members)
                groups[group] = None
    return tuple(groups)
