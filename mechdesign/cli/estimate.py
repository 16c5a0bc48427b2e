"""`mechdesign estimate OUT --channel CHANNEL`: frequencies of the useful column from a released file."""

from __future__ import annotations

from typing import Annotated

import typer

from mechdesign.cli import options as o
from mechdesign.cli.console import Reporter
from mechdesign.cli.parsing import number
from mechdesign.core.errors import InputError

EXAMPLE = "Example:  mechdesign estimate released.csv --channel channel.json --method ml --level 0.9"

Method = Annotated[
    str,
    typer.Option(
        "--method",
        metavar="NAME",
        help="unbiased (linear; estimates can be negative) or ml (maximum likelihood).",
    ),
]
Level = Annotated[str, typer.Option("--level", metavar="SHARE", help="Confidence level of the intervals.")]
Target = Annotated[
    str,
    typer.Option(
        "--target",
        metavar="WHAT",
        help="population (of which the records are a sample) or records (those of the file itself).",
    ),
]
By = Annotated[
    str | None,
    typer.Option("--by", metavar="COL", help="Joint frequencies with a column that was kept as it was."),
]


def estimate(
    reporter: Reporter,
    released: o.ReleasedPath,
    channel: o.ChannelOption,
    columns: o.FileColumns,
    published: o.PublishedForm,
    reading: o.ReleaseReading,
    text: o.TextFormat,
    common: o.CommonOptions,
    method: Method = "unbiased",
    level: Level = "0.95",
    target: Target = "population",
    by: By = None,
    as_csv: o.AsCsv = False,
) -> None:
    """Estimate the frequencies of the useful column from a released file, with confidence intervals.

    Symbols that the channel cannot tell apart are estimated together.
    """
    if as_csv and common.as_json:
        raise InputError("--csv and --json both claim standard output: give one of them")
    from mechdesign.analysis.estimate_file import estimate_file
    from mechdesign.channel.channel import Channel
    from mechdesign.report import releases

    share, written = number("--level", level), text.text()
    loaded = Channel.load(channel)
    with reporter.work("counting", unit="records") as advance:
        result = estimate_file(
            released,
            loaded,
            method=method,
            level=share,
            target=target,
            by=by,
            columns=columns.renamed,
            form=published.form,
            text=written,
            advance=advance,
            **reading.arguments(),
        )
    reporter.done("estimated", f"{released} is counted", records=result.records)
    column = ",".join(loaded.useful.columns)
    if as_csv:
        reporter.notices(result.notices)
        typer.echo(releases.estimate_csv(result, column, by), nl=False)
        return
    common.answer(
        lambda: releases.estimate_record(result, column, by),
        lambda: releases.estimate_text(result, column, by),
    )
