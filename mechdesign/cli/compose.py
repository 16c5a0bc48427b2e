"""`mechdesign compose CHANNEL CHANNEL ..`: what several releases of the same record tell together, exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mechdesign.cli import mechanism as m
from mechdesign.cli import options as o
from mechdesign.cli.console import Reporter
from mechdesign.cli.parsing import joint_of
from mechdesign.core.errors import InputError

if TYPE_CHECKING:
    from mechdesign.channel.channel import Channel
    from mechdesign.tables.joint import Joint

EXAMPLE = (
    "Example:  mechdesign compose march.json april.json        Of two columns of one table:  "
    "mechdesign compose job.json school.json --table people.csv"
)

ChannelPaths = Annotated[
    list[str],
    typer.Argument(
        metavar="CHANNEL..",
        help="Channel files written by `design`; one file as often as a record is released through it.",
        show_default=False,
    ),
]


def compose(reporter: Reporter, channels: ChannelPaths, table: o.OtherTable, common: o.CommonOptions) -> None:
    """Say exactly what a record tells that is released once through each channel, drawn independently.

    The channels must be for the same table; channels of different useful columns need a --table that has all of
    them. Budgets do not simply add: the sum is shown beside the exact figures.
    """
    from mechdesign.auditing.joint_leakage import compose as run
    from mechdesign.channel.channel import Channel
    from mechdesign.report.composition import composition_record, composition_text

    for path in channels:
        if m.is_mechanism(path):
            raise InputError(
                f"{path} is a mechanism file of `quantize`: compose takes channel files of `design`"
            )
    loaded = [Channel.load(path) for path in channels]
    with reporter.work("composing"):
        joint = table_of(table, loaded)
        found = run(loaded, joint)
    reporter.notices(() if joint is None else joint.notices)
    reporter.done("composed", f"{len(loaded)} releases are composed")
    common.answer(lambda: composition_record(found), lambda: composition_text(found, channels))


def table_of(table: o.OtherTable, channels: list[Channel]) -> Joint | None:
    """The table given, with the useful columns of all channels unless it says others; None if none is given."""
    if table.table is None:
        if table != type(table)():
            raise InputError(
                "--sensitive, --useful, --weight and the like describe a table: give --table TABLE too"
            )
        return None
    hidden = next((each.sensitive.columns for each in channels if each.sensitive is not None), None)
    shown = tuple(dict.fromkeys(column for each in channels for column in each.useful.columns))
    each = table.protect_each or (
        table.sensitive is None
        and all(each.sensitive is not None and each.sensitive.each for each in channels)
    )
    return joint_of(table.table, **table.typed(protect_each=each), known=(hidden, shown))
