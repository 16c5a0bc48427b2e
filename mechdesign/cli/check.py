"""`mechdesign check OUT --channel CHANNEL`: is a released file a plausible draw of a channel?"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import mechdesign as md
from mechdesign.cli import mechanism as m
from mechdesign.cli import options as o
from mechdesign.cli import released as f
from mechdesign.cli.console import NO, Reporter
from mechdesign.cli.line import flag, option
from mechdesign.cli.parsing import names, number

EXAMPLE = "Example:  mechdesign check released.csv --channel channel.json --original people.csv"


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """What is compared, and when it is called implausible."""

    original: str | None = option(
        "IN",
        "The file that was sanitised: then every record and every other column is compared, too.",
    )
    false_alarm: str = option(
        "P", "Chance that a faithful release fails the test of frequencies.", "0.001"
    )
    any_data: bool = flag(
        "Without --original: do not expect the frequencies of the channel's own table."
    )
    ignore: list[str] | None = option(
        "COL[,COL..]",
        "Columns not to compare: removed, or released by another channel; may be repeated.",
    )


def check(
    reporter: Reporter,
    released: f.ReleasedPath,
    channel: f.ChannelOption,
    columns: f.PrivateColumns,
    published: f.PolicyOptions,
    reading: f.ReleaseReading,
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
    where = "standard input" if released == "-" else released
    level, policy = number("--false-alarm", compared.false_alarm), published.arguments()
    if m.is_mechanism(channel):
        from mechdesign.nonstochastic.released_check import check_quantised
        from mechdesign.report.ranges import text_of

        column = next(iter(columns.renamed.values()), None)
        how: dict[str, Any] = {
            "data": compared.original,
            "column": column,
            "equals": numbers.equals,
        }
        with reporter.work("checking"):
            found = check_quantised(channel, released, **how, text=text.text())
        plausible, records = found.satisfied, found.answers
        record, said = (
            {"plausible": plausible, **asdict(found)},
            text_of("check", found, where),
        )
    else:
        from mechdesign.report.releases import check_record, check_text

        how = columns.arguments() | policy | reading.arguments()
        how |= {
            "original": compared.original,
            "level": level,
            "any_data": compared.any_data,
        }
        how["ignored"] = names("--ignore", compared.ignore)
        with reporter.work("checking", unit="records") as advance:
            loaded = md.Channel.load(channel)
            result = md.check_release(
                loaded, released, **how, text=text.text(), advance=advance
            )
        plausible, records = result.plausible, result.records
        record, said = check_record(result), check_text(result, where)
    reporter.done(
        "checked", f"{where} is checked", plausible=plausible, records=records
    )
    common.answer(lambda: record, lambda: said)
    return 0 if plausible else NO
