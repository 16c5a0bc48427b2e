"""How any channel is shown and reported: one that a table decides, or one of boxes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from mechdesign.channel.channel import Channel
from mechdesign.channel.loading import require_channel
from mechdesign.core.arguments import number
from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike
from mechdesign.jobs.side_files import codebook_text
from mechdesign.mechanisms.result import Design
from mechdesign.report import boxes, boxes_page, collect, terminal
from mechdesign.report.collect import Wanted
from mechdesign.report.command_records import channel_record
from mechdesign.report.writing import check_report


class Views(NamedTuple):
    """What shows a channel: the words and the record of the command line, its matrix as CSV, and
    what makes and writes its reports (`collect`).
    """

    text: Callable[[Channel], str]
    record: Callable[[Channel], dict[str, Any]]
    matrix: Callable[[Channel], str]
    behind: Callable[..., Any]
    save_reports: Callable[[Channel, Any, Wanted], None]


def _matrices(channel: Channel) -> str:
    """The probabilities of boxes, without the zeros of other strata."""
    return codebook_text(channel).rstrip()


TABLE = Views(
    terminal.channel_text,
    channel_record,
    terminal.matrix_csv,
    collect.behind,
    collect.save_reports,
)
"""Of a channel that a table decides."""

BOXES = Views(
    boxes.box_channel_text,
    boxes.box_channel_record,
    _matrices,
    boxes_page.behind,
    boxes_page.save_reports,
)


def views_of(channel: Channel) -> Views:
    """What shows a channel."""
    return BOXES if channel.judged_alone else TABLE


def write_report(
    design: Design | Channel,
    path: PathLike,
    *,
    public: bool,
    curve: float | None,
    overwrite: bool,
) -> None:
    """Write the report of `mechdesign.report`, which has the parameters and errors."""
    # A design has its channel; a channel stands for itself.
    channel = require_channel(
        "design", getattr(design, "channel", design), "; and no Design"
    )
    check_report(path, force=overwrite, pictures=not public)
    if curve is not None:
        channel.on_tables("a channel of boxes has no curve: leave curve out")
    views = views_of(channel)
    # A design brings its bound and its remarks; of a channel alone they come from the file.
    result = views.behind(channel, None if channel is design else design)
    # Before anything is written: a report of a broken promise would look like a promise.
    if result is not None and not result.verified:
        raise InputError(
            "a channel that breaks its promise has no report; mechdesign.audit says where"
        )
    if result is None and not public:
        raise InputError(
            "the channel is public and has no internal report; give public=True"
        )
    wanted = Wanted(
        internal=None if public else path,
        public=path if public else None,
        overwrite=overwrite,
        seconds=_curve_seconds(curve),
    )
    views.save_reports(channel, result, wanted)


def _curve_seconds(curve: float | None) -> float | None:
    """The time for the curve, as a finite number of seconds."""
    if curve is None:
        return None
    seconds = number("curve", curve, "of seconds")
    if not 0.0 <= seconds < math.inf:
        raise InputError(f"curve ({curve!r}) must be a number of seconds, at least 0")
    return seconds
