"""Channels of boxes with other strata than those of a design."""

from __future__ import annotations

from collections.abc import Sequence

from mechdesign.channel.boxes import channel_of_boxes
from mechdesign.channel.channel import BoxPart, Channel


def with_parts(channel: Channel, parts: Sequence[BoxPart]) -> Channel:
    """A channel of boxes with other strata."""
    coder, claims, sensitive = channel.boxed
    return channel_of_boxes(
        sensitive=sensitive,
        given=coder.given,
        columns=coder.columns,
        parts=parts,
        level=claims.level,
        slice_records=claims.slice_records,
        provenance=channel.provenance,
        utility=claims.utility,
        people=coder.people,
    )
