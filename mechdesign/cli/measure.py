"""`mechdesign measure CHANNEL`: every leakage and utility measure of a channel."""

from __future__ import annotations

from typing import Annotated

import typer

from mechdesign.cli import options as o

EXAMPLE = "Example:  mechdesign measure channel.json --alpha 2 --alpha 10"

Alphas = Annotated[
    list[float] | None,
    typer.Option(
        "--alpha",
        metavar="A",
        help="Order above 1 of the alpha-lift and its relatives; may be repeated (default 2).",
    ),
]
Orders = Annotated[
    list[float] | None,
    typer.Option(
        "--order",
        metavar="R",
        help="A further positive order, or inf, of Sibson's and Arimoto's information; may be repeated.",
    ),
]
PerOutput = Annotated[
    bool,
    typer.Option("--per-output", metavar="", help="Print the measures of every output, too (JSON has them)."),
]


def measure(
    context: typer.Context,
    channel: o.ChannelPath,
    table: o.OtherTable = None,
    sensitive: o.Sensitive = None,
    useful: o.Useful = None,
    weight: o.Weight = None,
    contingency: o.Contingency = False,
    probabilities: o.Probabilities = False,
    missing: o.Missing = "refuse",
    alphas: Alphas = None,
    orders: Orders = None,
    per_output: PerOutput = False,
    as_json: o.AsJson = False,
    quiet: o.Quiet = False,
    log_json: o.LogJson = False,
    debug: o.Debug = False,
) -> None:
    """Print every measure of what a channel keeps of the useful column and says about the sensitive one.

    They are measured on the channel's own table unless another one is given.
    """
    from mechdesign.auditing.channel_measures import measure as measures_of
    from mechdesign.channel.channel import Channel
    from mechdesign.cli.reporting import reporter_of
    from mechdesign.cli.tables import TableOptions, joint_for

    reporter = reporter_of(context)
    loaded = Channel.load(channel)
    options = TableOptions(sensitive, useful, weight, contingency, probabilities, missing)
    with reporter.work("measuring"):
        joint = joint_for(loaded, channel, table, options)
        result = measures_of(loaded, joint, tuple(alphas) if alphas else (2.0,), tuple(orders or ()))
    reporter.notices(joint.notices if table is not None else ())
    reporter.done("measured", f"{channel} is measured")
    if as_json:
        from mechdesign.report.records import measures_record, to_json

        typer.echo(to_json(measures_record(result)))
        return
    from mechdesign.report.measures_text import measures_text, outputs_text

    typer.echo(measures_text(result))
    if per_output:
        typer.echo(f"\nOutput by output\n{outputs_text(result)}")
