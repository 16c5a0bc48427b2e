"""`mechdesign estimate OUT --channel CHANNEL`: frequencies of the useful column from a released file."""

from __future__ import annotations

from typing import Annotated

import typer

from mechdesign.cli import options as o
from mechdesign.cli import released as r
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
Identity = Annotated[
    list[str] | None,
    typer.Option(
        "--identity",
        metavar="COL[,COL..]",
        help="The job drew by this identifier: as given to `apply`. Each identifier counts once.",
    ),
]
AsCsv = Annotated[bool, typer.Option("--csv", metavar="", help="Print a CSV table and nothing else.")]


def estimate(
    context: typer.Context,
    released: r.Released,
    channel: r.ChannelOption,
    method: Method = "unbiased",
    level: Level = "0.95",
    target: Target = "population",
    by: By = None,
    rename: r.Rename = None,
    released_column: r.ReleasedColumn = None,
    form: r.Form = "label",
    identity: Identity = None,
    delimiter: r.Delimiter = ",",
    quote: r.Quote = '"',
    encoding: r.Encoding = "utf-8",
    as_csv: AsCsv = False,
    as_json: o.AsJson = False,
    quiet: o.Quiet = False,
    log_json: o.LogJson = False,
    debug: o.Debug = False,
) -> None:
    """Estimate the frequencies of the useful column from a released file, with confidence intervals.

    Symbols that the channel cannot tell apart are estimated together.
    """
    if as_csv and as_json:
        raise InputError("--csv and --json both claim standard output: give one of them")
    from mechdesign.analysis.estimate_file import estimate_file
    from mechdesign.channel.channel import Channel
    from mechdesign.cli.numbers import number
    from mechdesign.cli.reporting import reporter_of
    from mechdesign.report import estimate_text

    share = number("--level", level)
    text = r.text_options(delimiter, quote, encoding)
    loaded = Channel.load(channel)
    reporter = reporter_of(context)
    with reporter.work("counting", unit="records") as advance:
        result = estimate_file(
            released,
            loaded,
            method=method,
            level=share,
            target=target,
            by=by,
            columns=r.renamed(rename),
            released_columns=r.names("--released-column", released_column) or None,
            form=form,
            identity=r.names("--identity", identity),
            text=text,
            advance=advance,
        )
    reporter.done("estimated", f"{released} is counted", records=result.records)
    column = ",".join(loaded.useful.columns)
    if as_csv:
        reporter.notices(result.notices)
        typer.echo(estimate_text.estimate_csv(result, column, by), nl=False)
    elif as_json:
        from mechdesign.report.records import to_json

        typer.echo(to_json(estimate_text.estimate_record(result, column, by)))
    else:
        typer.echo(estimate_text.estimate_text(result, column, by))
