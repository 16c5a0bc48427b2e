"""Reports on channels of whole rows, for callers that need not know their kind.

A channel of rows (`RowChannel`) and one for boxes of rows (`BoxChannel`) have pages of their own,
an internal one and one for everybody. The functions here choose by the type of the channel.
`report` of Python and the commands `report` and `design --report` call them: first the verdict,
which the page for everybody shows and cannot compute, then one or both pages.
"""

from __future__ import annotations

from mechdesign.auditing.boxes import audit_boxes
from mechdesign.auditing.rows import audit_rows
from mechdesign.channel.box_channel import BoxChannel
from mechdesign.channel.row_channel import RowChannel
from mechdesign.report.boxes_page import save_box_report
from mechdesign.report.public_boxes import save_public_box_report
from mechdesign.report.public_rows import save_public_row_report
from mechdesign.report.rows_page import save_row_report


def verdict_on_rows(channel: RowChannel | BoxChannel) -> bool | None:
    """Whether the channel keeps its promise, exactly; None for a public one.

    A public file lacks what the verdict is decided by: the table, or the counts of the boxes.
    """
    if isinstance(channel, BoxChannel):
        if channel.utility is None:
            return None
        return audit_boxes(channel).satisfied
    if channel.table is None:
        return None
    return audit_rows(channel).satisfied


def save_internal_report(
    channel: RowChannel | BoxChannel, path: str, *, overwrite: bool
) -> None:
    """Write the report for those who may see the table.

    Raises
    ------
    InputError
        If the channel is a public one.
    """
    if isinstance(channel, BoxChannel):
        save_box_report(channel, path, overwrite=overwrite)
    else:
        save_row_report(channel, path, overwrite=overwrite)


def save_public_report(
    channel: RowChannel | BoxChannel,
    path: str,
    *,
    satisfied: bool | None,
    overwrite: bool,
) -> None:
    """Write the report for everybody; `satisfied` is the exact verdict, if known."""
    if isinstance(channel, BoxChannel):
        save_public_box_report(channel, path, satisfied=satisfied, overwrite=overwrite)
    else:
        save_public_row_report(channel, path, satisfied=satisfied, overwrite=overwrite)
