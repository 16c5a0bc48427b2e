"""`mechdesign show CHANNEL`: the matrix and the codebook, for eyes or for other tools."""

from __future__ import annotations

import mechdesign as md
from mechdesign.cli import mechanism as m
from mechdesign.cli import options as o
from mechdesign.cli.console import Reporter
from mechdesign.core.errors import InputError

EXAMPLE = (
    "Example:  mechdesign show channel.json        For other tools:  mechdesign show "
    "channel.json --csv > W.csv"
)


def show(
    reporter: Reporter,
    channel: o.ChannelPath,
    common: o.CommonOptions,
    as_csv: o.AsCsv = False,
) -> None:
    """Print the probabilities of a channel, and the meaning of each output for the useful column.

    With --csv the matrix with exact decimals, a row per useful symbol, as `audit --matrix` reads
    it.
    """
    common.refuse_beside(as_csv)
    if m.is_mechanism(channel):
        m.show_mechanism(channel, common, as_csv=as_csv)
    else:
        _show_channel(channel, common, as_csv=as_csv)
    reporter.done("shown", f"{channel} is shown")


def _show_channel(path: str, common: o.CommonOptions, *, as_csv: bool) -> None:
    from mechdesign.report.record import channel_record
    from mechdesign.report.terminal import channel_text, matrix_csv

    channel = md.load(path)
    if isinstance(channel, md.RowChannel):
        if as_csv:
            raise InputError(
                f"{path} is a channel of rows, which has no single matrix: leave --csv out"
            )
        from mechdesign.report.rows import row_channel_record, row_channel_text

        rows = channel
        common.answer(lambda: row_channel_record(rows), lambda: row_channel_text(rows))
        return
    if isinstance(channel, md.BoxChannel):
        if as_csv:
            raise InputError(
                f"{path} is a channel for boxes, which has no single matrix: leave --csv out"
            )
        from mechdesign.report.boxes import box_channel_record

        boxes = channel
        common.answer(lambda: box_channel_record(boxes), boxes.summary)
        return
    text = matrix_csv if as_csv else channel_text
    common.answer(lambda: channel_record(channel), lambda: text(channel))
