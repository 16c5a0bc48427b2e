"""`mechdesign estimate OUT --channel CHANNEL`: frequencies of the useful column from a released file."""

from __future__ import annotations

from dataclasses import dataclass

import typer

import mechdesign as md
from mechdesign.cli import options as o
from mechdesign.cli import released as f
from mechdesign.cli.console import Reporter
from mechdesign.cli.line import option
from mechdesign.cli.parsing import number

EXAMPLE = "Example:  mechdesign estimate released.csv --channel channel.json --method ml --level 0.9"


@dataclass(frozen=True, kw_only=True)
class EstimateOptions:
    """The estimate and its intervals."""

    method: str = option(
        "NAME",
        "unbiased (linear; can be negative) or ml (maximum likelihood).",
        "unbiased",
    )
    level: str = option("SHARE", "Confidence level of the intervals.", "0.95")
    target: str = option(
        "WHAT",
        "population (of which the records are a sample) or records (those of the file itself).",
        "population",
    )
    by: str | None = option(
        "COL", "Joint frequencies with a column that was kept as it was."
    )


def estimate(
    reporter: Reporter,
    released: f.ReleasedPath,
    channel: f.ChannelOption,
    columns: f.FileColumns,
    published: f.PublishedForm,
    reading: f.ReleaseReading,
    text: o.TextFormat,
    asked: EstimateOptions,
    common: o.CommonOptions,
    as_csv: o.AsCsv = False,
) -> None:
    """Estimate the frequencies of the useful column from a released file, with confidence intervals.

    Symbols that the channel cannot tell apart are estimated together.
    """
    common.refuse_beside(as_csv)
    from mechdesign.analysis.files import estimate_file
    from mechdesign.report import releases

    loaded = md.Channel.load(channel)
    level = number("--level", asked.level)
    with reporter.work("counting", unit="records") as advance:
        result = estimate_file(
            released,
            loaded,
            method=asked.method,
            level=level,
            target=asked.target,
            by=asked.by,
            columns=columns.renamed,
            form=published.form,
            text=text.text(),
            advance=advance,
            **reading.arguments(),
        )
    reporter.done("estimated", f"{released} is counted", records=result.records)
    names = [",".join(loaded.useful.columns)]
    if asked.by is not None:
        names.append(asked.by)
    if as_csv:
        reporter.notices(result.notices)
        typer.echo(releases.estimate_csv(result, *names), nl=False)
        return
    common.answer(
        lambda: releases.estimate_record(result, *names),
        lambda: releases.estimate_text(result, *names),
    )
