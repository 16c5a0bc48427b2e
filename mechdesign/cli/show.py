"""`mechdesign show CHANNEL`: the matrix and the codebook, for eyes or for other tools."""

from __future__ import annotations

from functools import partial
from typing import Any

import mechdesign as md
from mechdesign.cli import mechanism as m
from mechdesign.cli import options as o
from mechdesign.cli.console import Reporter

EXAMPLE = "Example:  mechdesign show channel.json        For other tools:  mechdesign show channel.json --csv > W.csv"


def show(
    reporter: Reporter,
    channel: o.ChannelPath,
    common: o.CommonOptions,
    as_csv: o.AsCsv = False,
) -> None:
    """Print the probabilities of a channel, and what each output says about the useful column.

    With --csv the matrix with exact decimals, a row per useful symbol, as `audit --matrix` reads it.
    """
    common.refuse_beside(as_csv)
    shown: tuple[Any, Any, Any]
    if m.is_mechanism(channel):
        from mechdesign.nonstochastic.claims import read_verified
        from mechdesign.report.ranges import cells_csv, text_of, verdict_record

        shown = (
            read_verified(channel),
            verdict_record,
            cells_csv if as_csv else partial(text_of, "show"),
        )
    else:
        from mechdesign.report.record import channel_record
        from mechdesign.report.terminal import channel_text, matrix_csv

        shown = (
            md.Channel.load(channel),
            channel_record,
            matrix_csv if as_csv else channel_text,
        )
    reporter.done("shown", f"{channel} is shown")
    found, record, text = shown
    common.answer(lambda: record(found), lambda: text(found))
