"""The report of any design or channel, as `mechdesign.report` writes it."""

from __future__ import annotations

import math

from mechdesign.channel.channel import Channel
from mechdesign.channel.loading import require_channel
from mechdesign.core.arguments import number
from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike
from mechdesign.mechanisms.result import Design
from mechdesign.report.collect import Wanted, behind, save_reports
from mechdesign.report.writing import check_report


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
    # A design brings its bound and its remarks; of a channel alone they come from the file.
    result = behind(channel, None if isinstance(design, Channel) else design)
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
    save_reports(channel, result, wanted)


def _curve_seconds(curve: float | None) -> float | None:
    """The time for the curve, as a finite number of seconds."""
    if curve is None:
        return None
    seconds = number("curve", curve, "of seconds")
    if not 0.0 <= seconds < math.inf:
        raise InputError(f"curve ({curve!r}) must be a number of seconds, at least 0")
    return seconds
