"""`mechdesign show CHANNEL`: the matrix and the codebook, for eyes or for other tools."""

from __future__ import annotations

from typing import Annotated

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
    from mechdesign.report import terminal
    from mechdesign.report.record import channel_record

    if m.is_mechanism(channel):
        m.show_mechanism(channel, reporter, common, as_csv=as_csv)
        return
    loaded = md.Channel.load(channel)
    reporter.done("shown", f"{channel} is shown")
    if as_csv:
        typer.echo(terminal.matrix_csv(loaded), nl=False)
    else:
        common.answer(lambda: channel_record(loaded), lambda: terminal.channel_text(loaded))
