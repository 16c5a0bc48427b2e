"""The exact verdict on a channel for boxes of rows: every part on its own confidence set."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from mechdesign.auditing.extremes import Achieved, largest_of
from mechdesign.auditing.population import achieved_on_set, audit
from mechdesign.auditing.verdict import Audit
from mechdesign.channel.box_channel import BoxChannel
from mechdesign.core.display import BOX_RENDERER, Described
from mechdesign.core.errors import InputError
from mechdesign.notions import Notion, from_record
from mechdesign.tables.confidence import set_of_record


@dataclass(frozen=True, repr=False)
class BoxAudit(Described):
    """A verdict on all populations of the confidence sets of all parts.

    `notion` is what was asked, or None for a channel that releases nothing; `sensitive` are the
    protected columns, `given` those that the promise is relative to, and `records` are those that
    the promise is proven on. `achieved` bounds the log-lifts of every population of the sets, and
    `on_table` those of these records. `together` are the sensitive values of which the promise is
    about the group alone, in some stratum at least. Parts that release nothing keep every promise
    and are not among `parts`.
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

    def __repr__(self) -> str:
        return f"BoxAudit({self.summary()})"

    def to_record(self) -> dict[str, Any]:
        """The record of `audit --json`."""
        return import_module(BOX_RENDERER).box_audit_record(self)

    def summary(self) -> str:
        """The text of `audit`, without a final newline."""
        return import_module(BOX_RENDERER).box_audit_text(self)


def audit_boxes(channel: BoxChannel, notion: Notion | None = None) -> BoxAudit:
    """Decide exactly whether a channel for boxes keeps a promise for the population.

    The intervals are computed again from the counts of the file.

    Parameters
    ----------
    channel : BoxChannel
    notion : Notion, optional
        By default what each part was designed for.

    Raises
    ------
    InputError
        If the channel carries no counts (a public one), or its intervals are not theirs.
    """
    verdicts: list[Audit] = []
    asked = notion
    records = 0
    on_sets: list[Achieved] = []
    for part in channel.parts:
        own = part.channel
        if own is None:
            continue
        record = own.record
        if own.joint is None or record.confidence is None or record.notion is None:
            raise InputError(
                "this channel of boxes carries no counts (a public one): audit the "
                "file that `design` wrote"
            )
        if asked is None:
            asked = from_record(record.notion)
        populations = set_of_record(record.confidence, own.joint)
        records += own.joint.total
        verdicts.append(audit(own, own.joint, asked, population=populations))
        # `achieved` of a verdict is that of the table, which is smaller.
        on_sets.append(achieved_on_set(own, own.joint, populations))
    return BoxAudit(
        satisfied=all(verdict.satisfied for verdict in verdicts),
        level=channel.level,
        notion=asked,
        sensitive=channel.sensitive.columns,
        given=tuple(name for variable in channel.given for name in variable.columns),
        records=records,
        achieved=largest_of(on_sets),
        on_table=largest_of(verdict.achieved for verdict in verdicts),
        parts=tuple(verdicts),
        together=_together(channel),
    )


def _together(channel: BoxChannel) -> tuple[tuple[str, ...], ...]:
    """The groups of several sensitive values of all parts, each once."""
    groups: dict[tuple[str, ...], None] = {}
    for part in channel.parts:
        for members in part.together:
            if part.channel is not None and len(members) > 1:
                groups[tuple(channel.sensitive.names[s] for s in members)] = None
    return tuple(groups)
