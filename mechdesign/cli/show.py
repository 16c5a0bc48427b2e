"""`mechdesign show CHANNEL`: the matrix and the codebook, for eyes or for other tools.

`show` asks what the file is: a mechanism file of `quantize` (`mechanism.show_mechanism`), a channel
(`_show_channel`), or one of boxes (`_show_boxes`). Each has a text for people, such as
 ``clerk: mix-1 89.098 %, mix-2 10.902 %``, exact decimals as CSV (--csv), and a record
(--json).
"""

from __future__ import annotations

import mechdesign as md
from mechdesign.cli import options
from mechdesign.cli.console import Reporter
from mechdesign.cli.mechanism import is_mechanism, show_mechanism

EXAMPLE = (
    "Example:  mechdesign show channel.json        For other tools:  mechdesign show "
    "channel.json --csv > W.csv"
)


def show(
    reporter: Reporter,
    channel: options.ChannelPath,
    common: options.CommonOptions,
    as_csv: options.AsCsv = False,
) -> None:
    """Print the probabilities of a channel, and the meaning of each output for the useful column.

    With --csv the matrix with exact decimals, a row per useful symbol, as `audit --matrix` reads
    it. A channel of boxes has a matrix for each stratum: these are one long table.
    """
    common.refuse_beside(as_csv)
    if is_mechanism(channel):
        show_mechanism(channel, common, as_csv=as_csv)
    else:
        _show_channel(channel, common, as_csv=as_csv)
    reporter.done("shown", f"{channel} is shown")


def _show_channel(path: str, common: options.CommonOptions, *, as_csv: bool) -> None:
    """Print a channel; those of boxes go on to `_show_boxes`."""
    from mechdesign.report.command_records import channel_record
    from mechdesign.report.terminal import channel_text, matrix_csv

    channel = md.load(path)
    if isinstance(channel, md.BoxChannel):
        _show_boxes(channel, common, as_csv=as_csv)
        return
    text = channel_text
    if as_csv:
        text = matrix_csv
    common.answer(lambda: channel_record(channel), lambda: text(channel))


def _show_boxes(
    channel: md.BoxChannel,
    common: options.CommonOptions,
    *,
    as_csv: bool,
) -> None:
    """A channel of boxes has a matrix for every stratum: as CSV they are one long table."""
    from mechdesign.jobs.box_codebook import box_codebook_text
    from mechdesign.report.boxes import box_channel_record

    record = box_channel_record(channel)
    text = channel.summary()
    if as_csv:
        text = box_codebook_text(channel)
    # The end of the last line is printed with the answer.
    common.answer(lambda: record, text.rstrip)
