"""`mechdesign measure CHANNEL`: every leakage and utility measure of a channel."""

from __future__ import annotations

from typing import Annotated

import typer

from mechdesign.cli import mechanism as m
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
    table: o.OtherTable,
    common: o.CommonOptions,
    alphas: Alphas = None,
    orders: Orders = None,
    per_output: PerOutput = False,
) -> None:
    """Print every measure of what a channel keeps of the useful column and says about the sensitive one.

    They are measured on the channel's own table unless another one is given.
    """
    from mechdesign.auditing.measures import measure as measures_of
    from mechdesign.channel.channel import Channel
    from mechdesign.cli.reporting import reporter_of

    reporter = reporter_of(context)
    if m.is_mechanism(channel):
        m.measure_mechanism(channel, reporter, common)
        return
    loaded = Channel.load(channel)
    with reporter.work("measuring"):
        joint = table.read_for(loaded, channel)
        result = measures_of(loaded, joint, tuple(alphas) if alphas else (2.0,), tuple(orders or ()))
    reporter.notices(joint.notices if table.table is not None else ())
    reporter.done("measured", f"{channel} is measured")
    from mechdesign.report.records import measures_record
    from mechdesign.report.terminal import measures_text, outputs_text

    def text() -> str:
        return measures_text(result) + (f"\n\nOutput by output\n{outputs_text(result)}" if per_output else "")

    common.answer(lambda: measures_record(result), text)
