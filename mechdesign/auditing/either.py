"""The exact verdict on a channel of any kind: of one variable, of rows, or of boxes.

`audit` is the public function. It chooses by the type of the channel, and refuses arguments that
the kind does not have:

    Channel      `population.audit`    on a table, or every population of a set; after others
    RowChannel   `rows.audit_rows`     on a table, by default the channel's own
    BoxChannel   `boxes.audit_boxes`   on the confidence sets of the counts that it carries
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

from mechdesign.auditing import population as of_channels
from mechdesign.auditing.boxes import BoxAudit, audit_boxes
from mechdesign.auditing.rows import RowAudit, audit_rows
from mechdesign.auditing.verdict import Audit
from mechdesign.channel.box_channel import BoxChannel
from mechdesign.channel.channel import Channel
from mechdesign.channel.row_channel import RowChannel
from mechdesign.core.errors import InputError
from mechdesign.notions import Notion
from mechdesign.tables.confidence import ConfidenceSet
from mechdesign.tables.joint import Joint


@overload
def audit(
    channel: Channel,
    joint: Joint,
    notion: Notion,
    *,
    population: ConfidenceSet | None = None,
    after: Sequence[Channel] = (),
) -> Audit: ...
@overload
def audit(
    channel: RowChannel, joint: Any = None, notion: Notion | None = None
) -> RowAudit: ...
@overload
def audit(
    channel: BoxChannel, joint: None = None, notion: Notion | None = None
) -> BoxAudit: ...
def audit(
    channel: Channel | RowChannel | BoxChannel,
    joint: Any = None,
    notion: Notion | None = None,
    *,
    population: ConfidenceSet | None = None,
    after: Sequence[Channel] = (),
) -> Audit | RowAudit | BoxAudit:
    """Decide exactly whether a channel keeps a promise.

    Parameters
    ----------
    channel : Channel, RowChannel or BoxChannel
        One of boxes is judged on the confidence sets of the counts that it carries.
    joint : Joint; for a channel of rows a frame, or nothing for the table that the channel carries
    notion : Notion
        A channel of rows is by default held against what it was designed for.
    population : ConfidenceSet, optional
        Judge a channel of one variable on every population of this set.
    after : sequence of Channel
        Earlier releases of the same record.

    Raises
    ------
    InputError
        As `auditing.population.audit` and `auditing.rows.audit_rows` do.
    """
    if isinstance(channel, BoxChannel):
        if joint is not None or population is not None or after:
            raise InputError(
                "a channel of boxes is audited on the counts that it carries: leave table, "
                "population and after out"
            )
        return audit_boxes(channel, notion)
    if isinstance(channel, RowChannel):
        if population is not None or after:
            raise InputError("population and after are not built for a channel of rows")
        return audit_rows(channel, joint, notion)
    # A missing table or notion is refused there, with the other checks of its arguments.
    given_notion: Any = notion
    return of_channels.audit(
        channel, joint, given_notion, population=population, after=after
    )
