"""The exact verdict on a channel, or on one for boxes of rows.

`audit` is the public function. It chooses by the type of the channel, and refuses arguments that
the kind does not have:

    Channel      `population.audit`    on a table, or every population of a set; after others
    BoxChannel   `boxes.audit_boxes`   on the confidence sets of the counts that it carries
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

from mechdesign.auditing import population as of_channels
from mechdesign.auditing.boxes import BoxAudit, audit_boxes
from mechdesign.auditing.verdict import Audit
from mechdesign.channel.box_channel import BoxChannel
from mechdesign.channel.channel import Channel
from mechdesign.channel.loading import require_channel
from mechdesign.core.errors import InputError
from mechdesign.notions import Notion
from mechdesign.tables.confidence import ConfidenceSet
from mechdesign.tables.joint import Joint
from mechdesign.tables.people_tables import PeopleRoles, people_of_frame
from mechdesign.tables.records import bins_by_column


@overload
def audit(
    channel: Channel,
    joint: Any = None,
    notion: Notion | None = None,
    *,
    population: ConfidenceSet | None = None,
    after: Sequence[Channel] = (),
) -> Audit: ...
@overload
def audit(
    channel: BoxChannel, joint: None = None, notion: Notion | None = None
) -> BoxAudit: ...
def audit(
    channel: Channel | BoxChannel,
    joint: Any = None,
    notion: Notion | None = None,
    *,
    population: ConfidenceSet | None = None,
    after: Sequence[Channel] = (),
) -> Audit | BoxAudit:
    """Decide exactly whether a channel keeps a promise.

    Parameters
    ----------
    channel : Channel or BoxChannel
        One of boxes is judged on the confidence sets of the counts that it carries.
    joint : Joint or data frame, optional
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
        As `auditing.population.audit` does.
    """
    require_channel("channel", channel)
    if channel.judged_alone is True:
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
    return of_channels.audit(
        channel, joint, given_notion, population=population, after=after
    )


def _table_for(channel: Channel, table: Any) -> Any:
    """The table of an audit: the one that the channel carries where none is given, and of a data
    frame the joint table of the channel's columns.
    """
    if table is None:
        return channel.joint
    if isinstance(table, Joint) or channel.sensitive is None:
        return table
    if not hasattr(table, "columns") and not hasattr(table, "schema"):
        return table
    if channel.useful.people is not None:
        rules = channel.record.rules
        joint = people_of_frame(
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
    )
