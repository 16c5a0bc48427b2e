"""Reports on channels for boxes: the verdict, and the pages for insiders and for everybody."""

from __future__ import annotations

from mechdesign.auditing.boxes import audit_boxes
from mechdesign.channel.box_channel import BoxChannel
from mechdesign.report.boxes_page import save_box_report
from mechdesign.report.public_boxes import save_public_box_report


def verdict_on_boxes(channel: BoxChannel) -> bool | None:
    """True if the channel keeps its promise, exactly; None for a public one, without counts."""
    if channel.utility is None:
        return None
    return audit_boxes(channel).satisfied


def save_internal_report(channel: BoxChannel, path: str, *, overwrite: bool) -> None:
    """Write the report for those who may see the table; InputError for a public channel."""
    save_box_report(channel, path, overwrite=overwrite)


def save_public_report(
    channel: BoxChannel, path: str, *, satisfied: bool | None, overwrite: bool
) -> None:
    """Write the report for everybody; `satisfied` is the exact verdict, if known."""
    save_public_box_report(channel, path, satisfied=satisfied, overwrite=overwrite)
