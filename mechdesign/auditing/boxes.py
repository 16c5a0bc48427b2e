"""The exact verdict on a channel for boxes of rows: every part on its own confidence set.

A channel for boxes (`channel.box_channel`) sorts the rows of each stratum into boxes and releases a
randomised box. Its part for a stratum is an ordinary channel whose useful symbols are the boxes,
and carries the counts that its promise is proven on. `audit_boxes` goes part by part:

1. a part that releases nothing keeps every promise, and is passed over;
2. the confidence set is computed again from the counts of the part (`set_of_record`);
3. the part is audited on every population of the set (`population.audit`), and the smallest budgets
   that hold on the whole set are computed (`population.achieved_on_set`).

The promise holds if every part keeps it, and what is achieved is the largest of all parts, side by
side: parts that come to eps_u 0.4 and 0.5 come to 0.5 together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mechdesign.auditing.extremes import Achieved, largest_of
from mechdesign.auditing.population import achieved_on_set, audit
from mechdesign.auditing.verdict import Audit
from mechdesign.channel.box_channel import BoxChannel
from mechdesign.core.above import above
from mechdesign.core.display import Described
from mechdesign.core.errors import InputError
from mechdesign.notions import Notion, from_record
from mechdesign.tables.confidence import set_of_record
from mechdesign.tables.variable import column_names


@dataclass(frozen=True, repr=False)
class BoxAudit(Described):
    """A verdict on all populations of the confidence sets of all parts.

    `notion` is what was asked, or None for a channel that releases nothing; `sensitive` are the
    protected columns, `given` those that the promise is relative to, and `records` are those that
    the promise is proven on. `achieved` bounds the log-lifts of every population of the sets, and
    `on_table` those of these records. `together` are the sensitive values of which the promise is
    about the group alone, in some stratum at least. Parts that release nothing keep every promise
    and are not among `parts`. `of_people` is whether a row is the sequence of a person's records.
    """

    satisfied: bool
    level: float
    notion: Notion | None
    sensitive: tuple[str, ...]
    given: tuple[str, ...]
    records: int
    achieved: Achieved
    on_table: Achieved
    parts: tuple[Audit, ...]
    together: tuple[tuple[str, ...], ...] = ()
    of_people: bool = False

    def __repr__(self) -> str:
        return f"BoxAudit({self.summary()})"

    def to_record(self) -> dict[str, Any]:
        """The record of `audit --json`."""
        return above("display").record(self)


def audit_boxes(channel: BoxChannel, notion: Notion | None = None) -> BoxAudit:
    """Decide exactly whether a channel for boxes keeps a promise for the population.

    The intervals are computed again from the counts of the file.

    Parameters
    ----------
    channel : BoxChannel
    notion : Notion, optional
        By default what its parts were designed for.

    Raises
    ------
    InputError
        If the channel carries no counts (a public one), or its intervals are not theirs.
    """
    asked = notion
    verdicts: list[Audit] = []
    on_sets: list[Achieved] = []
    records = 0
    for part in channel.parts:
        part_channel = part.channel
        # A part that releases nothing keeps every promise.
        if part_channel is None:
            continue
        joint = part_channel.joint
        record = part_channel.record
        if joint is None or record.confidence is None or record.notion is None:
            raise InputError(
                "this channel of boxes carries no counts (a public one): audit the "
                "file that `design` wrote"
            )
        # All parts are designed for one notion.
        if asked is None:
            asked = from_record(record.notion)
        populations = set_of_record(record.confidence, joint)
        records += joint.total
        verdicts.append(audit(part_channel, joint, asked, population=populations))
        # `achieved` of a verdict is that of the table, which is smaller.
        on_sets.append(achieved_on_set(part_channel, joint, populations))
    return BoxAudit(
        satisfied=all(verdict.satisfied for verdict in verdicts),
        level=channel.level,
        notion=asked,
        sensitive=channel.sensitive.columns,
        given=column_names(channel.given),
        records=records,
        achieved=largest_of(on_sets),
        on_table=largest_of(verdict.achieved for verdict in verdicts),
        parts=tuple(verdicts),
        together=_together(channel),
        of_people=channel.people is not None,
    )


def _together(channel: BoxChannel) -> tuple[tuple[str, ...], ...]:
    """The groups of several sensitive values of all parts, each once.

    Of a group the promise bounds the share of its values together, not of each.
    """
    # The keys are the groups, in the order of their first part.
    groups: dict[tuple[str, ...], None] = {}
    for part in channel.parts:
        for members in part.together:
            if part.channel is not None and len(members) > 1:
                group = tuple(channel.sensitive.names[s] for s in members)
                groups[group] = None
    return tuple(groups)
