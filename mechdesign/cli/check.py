"""`mechdesign check OUT --channel CHANNEL`: is a released file a plausible draw of a channel?"""

from __future__ import annotations

from dataclasses import dataclass

import mechdesign as md
from mechdesign.cli import mechanism as m
from mechdesign.cli import options as o
from mechdesign.cli.console import NO, Reporter
from mechdesign.cli.line import flag, option
from mechdesign.cli.parsing import names, number

EXAMPLE = "Example:  mechdesign check released.csv --channel channel.json --original people.csv"


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """What is compared, and when it is called implausible."""

    original: str | None = option(
        "IN", "The file that was sanitised: then every record and every other column is compared, too."
    )
    false_alarm: str = option(
        "P", "Chance that the frequencies of a faithful release are called implausible.", "0.001"
    )
    any_data: bool = flag("Without --original: do not expect the frequencies of the channel's own table.")
    ignore: list[str] | None = option(
        "COL[,COL..]", "Columns not to compare: removed, or released by another channel; may be repeated."
    )


def check(
    reporter: Reporter,
    released: o.ReleasedPath,
    channel: o.ChannelOption,
    columns: o.PrivateColumns,
    published: o.PolicyOptions,
    reading: o.ReleaseReading,
    text: o.TextFormat,
    numbers: m.MechanismOptions,
    compared: CheckOptions,
    common: o.CommonOptions,
) -> int:
    """Check a released file against its channel: exit 0 if it is a plausible draw, 1 if not.

    Labels, and with the original also rows, pairs of symbol and label and all other columns, must be possible; the
    frequencies must be plausible (exact tests with the original, conservative ones without). What was published,
    and from which columns, is said as it was said to `apply`.
    """
    from mechdesign.report.releases import check_record, check_text

    level, policy = number("--false-alarm", compared.false_alarm), published.arguments()
    if m.is_mechanism(channel):
        return m.check_against(
            channel,
            released,
            reporter,
            common,
            numbers,
            original=compared.original,
            renamed=columns.renamed,
            text=text.text(),
        )
    with reporter.work("checking", unit="records") as advance:
        result = md.check_release(
            md.Channel.load(channel),
            released,
            original=compared.original,
            level=level,
            any_data=compared.any_data,
            ignored=names("--ignore", compared.ignore),
            text=text.text(),
            advance=advance,
            **columns.arguments(),
            **policy,
            **reading.arguments(),
        )
    reporter.done("checked", f"{released} is checked", plausible=result.plausible, records=result.records)
    common.answer(lambda: check_record(result), lambda: check_text(result, released))
    return 0 if result.plausible else NO
