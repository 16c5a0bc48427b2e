"""`mechdesign quantize DATA OUT`: release numbers in cells, noiselessly private."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from mechdesign.cli import options as o
from mechdesign.core.errors import InputError

EXAMPLE = (
    "Example:  mechdesign quantize meters.csv released.csv --column kwh --epsilon 2 --query mean --group-by day "
    "--range 0,100 --individual household"
)

Source = Annotated[str, typer.Argument(metavar="DATA", help="CSV or Parquet file, one record a row.")]
Target = Annotated[
    str, typer.Argument(metavar="OUT", help="Where to write the release (the same kind of file).")
]
Column = Annotated[
    str | None, typer.Option("--column", metavar="COL", help="The column of numbers to release.")
]
Bits = Annotated[
    str | None,
    typer.Option(
        "--epsilon",
        metavar="BITS",
        help="Budget of one answer: one individual can bring about at most floor(2^BITS) outputs.",
        rich_help_panel=o.BUDGET_PANEL,
    ),
]
Query = Annotated[
    str,
    typer.Option(
        "--query",
        metavar="NAME",
        help="identity (each record's own value), mean, sum or count, of all records or of each group.",
    ),
]
GroupBy = Annotated[
    str | None,
    typer.Option("--group-by", metavar="COL[,COL..]", help="One answer for each value of these columns."),
]
Range = Annotated[
    str | None,
    typer.Option(
        "--range",
        metavar="LO,HI",
        help="The smallest and largest value that anybody's cell could have; not taken from the data.",
        rich_help_panel=o.BUDGET_PANEL,
    ),
]
Clip = Annotated[bool, typer.Option("--clip", metavar="", help="Move values outside the range to its ends.")]
Equals = Annotated[
    str | None,
    typer.Option("--equals", metavar="VALUE", help="With --query count: count the records with this value."),
]
Individual = Annotated[
    str | None,
    typer.Option(
        "--individual",
        metavar="COL",
        help="Column that says whose record it is; then the budgets of one individual's answers are added up.",
        rich_help_panel=o.BUDGET_PANEL,
    ),
]
LayoutName = Annotated[
    str,
    typer.Option(
        "--layout",
        metavar="NAME",
        help="widest (the smallest worst-case error), levels (the most levels), uniform (equal cells).",
    ),
]
Missing = Annotated[
    str,
    typer.Option(
        "--missing",
        metavar="WHAT",
        help="What an empty cell is: refuse (an error), drop (leave the record out), symbol (a group of its own).",
    ),
]
MechanismPath = Annotated[
    str | None,
    typer.Option(
        "--mechanism", metavar="FILE", help="Where to write the mechanism file (OUT.mechanism.json)."
    ),
]


def quantize(
    context: typer.Context,
    source: Source,
    target: Target,
    column: Column = None,
    epsilon: Bits = None,
    query: Query = "identity",
    group_by: GroupBy = None,
    range_: Range = None,
    clip: Clip = False,
    equals: Equals = None,
    individual: Individual = None,
    layout: LayoutName = "widest",
    missing: Missing = "refuse",
    mechanism: MechanismPath = None,
    force: o.Force = False,
    as_json: o.AsJson = False,
    quiet: o.Quiet = False,
    log_json: o.LogJson = False,
    debug: o.Debug = False,
) -> None:
    """Release a column, or its mean, sum or count, in cells so coarse that no individual changes much.

    No noise and no probabilities: whatever the other records are, one individual can bring about at most
    floor(2^epsilon) different outputs (noiseless privacy). The count is exact and is written, with all
    thresholds, into a mechanism file beside the release.
    """
    if column is None or epsilon is None:
        raise InputError(f"{'--column COL' if column is None else '--epsilon BITS'} is missing")
    from mechdesign.cli.reporting import reporter_of
    from mechdesign.nonstochastic.quantize_job import quantize_file
    from mechdesign.nonstochastic.quantize_options import QuantizeOptions, layout_named
    from mechdesign.report.quantize_text import quantize_record, quantize_text

    groups = o.columns("--group-by", group_by) or ()
    options = QuantizeOptions(
        column=column,
        epsilon=epsilon,
        query=query,
        group_by=tuple(groups.split(",")) if isinstance(groups, str) else groups,
        range_text=range_,
        equals=equals,
        individual=individual,
        clip=clip,
        layout=layout_named(layout),
        missing=missing,
    )
    beside = mechanism or f"{target}.mechanism.json"
    reporter = reporter_of(context)
    start = time.perf_counter()
    with reporter.work("quantising"):
        done = quantize_file(source, target, options, mechanism_path=beside, force=force)
    reporter.notices(done.notices)
    reporter.done("quantised", f"written to {target}", output=target, mechanism=beside, records=done.records)
    if as_json:
        from mechdesign.report.records import to_json

        typer.echo(to_json(quantize_record(done, target, beside, time.perf_counter() - start)))
        return
    typer.echo(quantize_text(done))
    typer.echo(f"\nWritten to {target}; the mechanism and its guarantee to {beside}.")
