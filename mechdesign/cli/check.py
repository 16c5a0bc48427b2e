"""`mechdesign check OUT --channel CHANNEL`: is a released file a plausible draw of a channel?"""

from __future__ import annotations

from typing import Annotated

import typer

from mechdesign.cli import mechanism as m
from mechdesign.cli import options as o
from mechdesign.cli.console import Reporter
from mechdesign.cli.parsing import names, number

EXAMPLE = "Example:  mechdesign check released.csv --channel channel.json --original people.csv"

NO = 1
"""Exit code when the answer is no."""

Original = Annotated[
    str | None,
    typer.Option(
        "--original",
        metavar="IN",
        help="The file that was sanitised: then every record and every other column is compared, too.",
    ),
]
FalseAlarm = Annotated[
    str,
    typer.Option(
        "--false-alarm",
        metavar="P",
        help="Chance that the frequencies of a faithful release are called implausible.",
    ),
]
AnyData = Annotated[
    bool,
    typer.Option(
        "--any-data",
        metavar="",
        help="Without --original: do not expect the frequencies of the channel's own table.",
    ),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(
        "--ignore",
        metavar="COL[,COL..]",
        help="Columns not to compare: removed, or released by another channel; may be repeated.",
    ),
]


def check(
    reporter: Reporter,
    released: o.ReleasedPath,
    channel: o.ChannelOption,
    columns: o.PrivateColumns,
    published: o.PolicyOptions,
    reading: o.ReleaseReading,
    text: o.TextFormat,
    numbers: m.MechanismOptions,
    common: o.CommonOptions,
    original: Original = None,
    false_alarm: FalseAlarm = "0.001",
    any_data: AnyData = False,
    ignore: Ignore = None,
) -> int:
    """Check a released file against its channel: exit 0 if it is a plausible draw, 1 if not.

    Labels, and with the original also rows, pairs of symbol and label and all other columns, must be possible; the
    frequencies must be plausible (exact tests with the original, conservative ones without). What was published,
    and from which columns, is said as it was said to `apply`.
    """
    from mechdesign.analysis.check_file import check_release
    from mechdesign.channel.channel import Channel
    from mechdesign.report.releases import check_record, check_text

    level, policy, written = number("--false-alarm", false_alarm), published.policy(), text.text()
    if m.is_mechanism(channel):
        return m.check_against(
            channel,
            released,
            reporter,
            common,
            numbers,
            original=original,
            renamed=columns.renamed,
            text=written,
        )
    loaded = Channel.load(channel)
    with reporter.work("checking", unit="records") as advance:
        result = check_release(
            released,
            loaded,
            original=original,
            columns=columns.renamed,
            form=published.form,
            policy=policy,
            level=level,
            any_data=any_data,
            keep_sensitive=columns.keep_sensitive,
            ignored=names("--ignore", ignore),
            correlated=names("--correlated", columns.correlated),
            text=written,
            advance=advance,
            **reading.arguments(),
        )
    reporter.done("checked", f"{released} is checked", plausible=result.plausible, records=result.records)
    common.answer(lambda: check_record(result), lambda: check_text(result, released))
    return 0 if result.plausible else NO
