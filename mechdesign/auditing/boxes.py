"""The exact verdict on a channel for boxes of rows: every part on its own confidence set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mechdesign.auditing.population import achieved_on_set, audit
from mechdesign.auditing.verdict import Achieved, Audit
from mechdesign.channel.box_channel import BoxChannel
from mechdesign.core.display import Described
from mechdesign.core.errors import InputError
from mechdesign.core.wording import at_most, percent_of
from mechdesign.notions import Notion, from_record
from mechdesign.tables.confidence import set_of_record


@dataclass(frozen=True, repr=False)
class BoxAudit(Described):
    """A verdict on all populations of the confidence sets of all parts.

    `achieved` bounds the log-lifts of every population of the sets, `on_table` those of the records
    that the promise was proven on. Parts that release nothing keep every promise and are not among
    `parts`.
    """

    satisfied: bool
    level: float
    achieved: Achieved
    on_table: Achieved
    parts: tuple[Audit, ...]

    def __repr__(self) -> str:
        return f"BoxAudit({self.summary()})"

    def to_record(self) -> dict[str, Any]:
        """The record of `audit --json`."""
        return {
            "satisfied": self.satisfied,
            "confidence": self.level,
            "achieved": asdict(self.achieved),
            "population": {"level": self.level, **asdict(self.achieved)},
            "table": asdict(self.on_table),
            "parts": len(self.parts),
        }

    def summary(self) -> str:
        """The verdict as text."""
        verdict = "satisfied" if self.satisfied else "VIOLATED"
        return (
            f"{verdict} for the population with {percent_of(self.level)} confidence: eps_l "
            f"{at_most(self.achieved.eps_l)}, eps_u {at_most(self.achieved.eps_u)}, eps_ldp "
            f"{at_most(self.achieved.eps_ldp)}"
        )


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
        asked = notion
        if asked is None:
            asked = from_record(record.notion)
        populations = set_of_record(record.confidence, own.joint)
        verdicts.append(audit(own, own.joint, asked, population=populations))
        # `achieved` of a verdict is that of the table, which is smaller.
        on_sets.append(achieved_on_set(own, own.joint, populations))
    satisfied = all(verdict.satisfied for verdict in verdicts)
    on_table = _largest([verdict.achieved for verdict in verdicts])
    return BoxAudit(
        satisfied, channel.level, _largest(on_sets), on_table, tuple(verdicts)
    )


def _largest(parts: Sequence[Achieved]) -> Achieved:
    """What all parts keep at once."""
    return Achieved(
        max((part.eps_l for part in parts), default=0.0),
        max((part.eps_u for part in parts), default=0.0),
        max((part.eps_ldp for part in parts), default=0.0),
    )
