"""`mechdesign show CHANNEL`: the matrix and the codebook, for eyes or for other tools."""

from __future__ import annotations

from typing import Annotated, Any

import typer

import mechdesign as md
from mechdesign.cli import mechanism as m
from mechdesign.cli import options as o
from mechdesign.cli.console import Reporter
from mechdesign.core.errors import InputError

EXAMPLE = "Example:  mechdesign show channel.json        For other tools:  mechdesign show channel.json --csv > W.csv"

AsCsv = Annotated[
    bool,
    typer.Option(
        "--csv",
        metavar="",
        help="The matrix as CSV with exact decimals, as `audit --matrix` reads it: a row per useful symbol.",
    ),
]


def show(reporter: Reporter, channel: o.ChannelPath, common: o.CommonOptions, as_csv: AsCsv = False) -> None:
    """Print the probabilities of a channel, and what each output says about the useful column."""
    if as_csv and common.as_json:
        raise InputError("--csv and --json both claim standard output: give one of them")
    shown: tuple[Any, Any, Any]
    if m.is_mechanism(channel):
        from mechdesign.nonstochastic.mechanism_file import read_verified
        from mechdesign.report.ranges import cells_csv, cells_text, verdict_record

        shown = read_verified(channel), verdict_record, cells_csv if as_csv else cells_text
    else:
        from mechdesign.report.record import channel_record
        from mechdesign.report.terminal import channel_text, matrix_csv

        shown = md.Channel.load(channel), channel_record, matrix_csv if as_csv else channel_text
    reporter.done("shown", f"{channel} is shown")
    found, record, text = shown
    common.answer(lambda: record(found), lambda: text(found))
