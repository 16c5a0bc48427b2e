"""`mechdesign show CHANNEL`: the matrix and the codebook, for eyes or for other tools.

`show` asks what the file is: a mechanism file of `quantize` (`mechanism.show_mechanism`) or a
channel (`_show_channel`). Each has a text for people, such as
``clerk: mix-1 89.098 %, mix-2 10.902 %``, exact decimals as CSV (--csv), and a record (--json).
"""

from __future__ import annotations

import mechdesign as md
from mechdesign.cli import options
from mechdesign.cli.console import NO, Reporter
from mechdesign.cli.mechanism import is_mechanism, show_mechanism

EXAMPLE = (
    "Example:  mechdesign show channel.json        For other tools:  mechdesign show "
    "channel.json --csv > W.csv"
)


BROKEN = (
    "its own table disproves the promise of the file, which was edited or damaged: nothing is "
    "released through it (`audit` shows where)"
)
"""The note beside a shown channel that breaks its promise."""


def show(
    reporter: Reporter,
    channel: options.ChannelPath,
    common: options.CommonOptions,
    as_csv: options.AsCsv = False,
) -> int:
    """Print the probabilities of a channel, and the meaning of each output for the useful column.

    With --csv the matrix with exact decimals, a row per useful symbol, as `audit --matrix` reads
    it. A channel of boxes has a matrix for each stratum: these are one long table.
    """
    common.refuse_beside(as_csv)
    if is_mechanism(channel):
        show_mechanism(channel, common, as_csv=as_csv)
        reporter.done("shown", f"{channel} is shown")
        return 0
    kept = _show_channel(channel, common, as_csv=as_csv)
    if kept is False:
        # On standard error too, for whoever reads the matrix alone.
        reporter.notice(BROKEN)
    reporter.done("shown", f"{channel} is shown", satisfied=kept)
    return NO if kept is False else 0


def _show_channel(
    path: str, common: options.CommonOptions, *, as_csv: bool
) -> bool | None:
    """Print a channel; whether it keeps its promise on its own table, None without one."""
    from mechdesign.auditing.stated import keeps_promise
    from mechdesign.report import display

    channel = md.load(path)
    kept = keeps_promise(channel)
    text = display.matrix if as_csv else display.summary
    common.answer(
        lambda: {**display.record(channel), "satisfied": kept}, lambda: text(channel)
    )
    return kept
