"""`mechdesign check OUT --channel CHANNEL`: is a released file a plausible draw of a channel?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import mechdesign as md
from mechdesign.cli import mechanism as m
from mechdesign.cli import options as o
from mechdesign.cli import released as f
from mechdesign.cli.console import NO, Reporter
from mechdesign.cli.line import flag, option
from mechdesign.cli.parsing import names, number
from mechdesign.core.errors import InputError

if TYPE_CHECKING:
    from mechdesign.analysis.checking import ReleaseCheck
    from mechdesign.formats.cells import Encoded
    from mechdesign.leaks.coded_table import CodedTable

EXAMPLE = "Example:  mechdesign check released.csv --channel channel.json --original people.csv"


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """The comparison, and the level of its test."""

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

    Labels must be possible; with the original also rows, pairs of symbol and label, and
    all other columns. The frequencies must be plausible: the tests are exact with the
    original, conservative without it. Give the same options for columns and labels as
    to `apply`.
    """
    name = "standard input" if released == "-" else released
    false_alarm = number("--false-alarm", compared.false_alarm)
    if m.is_mechanism(channel):
        with reporter.work("checking"):
            mechanism_check = m.check_mechanism(
                channel,
                released,
                numbers,
                text,
                name=name,
                original=compared.original,
                column=next(iter(columns.renamed.values()), None),
            )
        plausible = mechanism_check.plausible
        records = mechanism_check.answers
        record = mechanism_check.record
        verdict = mechanism_check.text
    else:
        from mechdesign.channel.box_channel import BoxChannel
        from mechdesign.channel.loading import load
        from mechdesign.report.releases import check_record, check_text

        loaded = load(channel)
        any_data = compared.any_data
        if isinstance(loaded, BoxChannel):
            if compared.original is not None:
                raise InputError(
                    "a release of boxes is checked by its labels alone: leave --original out"
                )
            loaded = loaded.single()
            # Its table lacks the slice, which is released as well.
            any_data = True
        with reporter.work("checking", unit="records") as advance:
            if isinstance(loaded, md.RowChannel):
                channel_check = _check_rows(
                    loaded,
                    released,
                    compared,
                    text,
                    false_alarm,
                    (columns, published, reading),
                )
            else:
                channel_check = md.check_release(
                    loaded,
                    released,
                    original=compared.original,
                    level=false_alarm,
                    any_data=any_data,
                    ignored=names("--ignore", compared.ignore),
                    text=text.text(),
                    advance=advance,
                    **columns.arguments(),
                    **published.arguments(),
                    **reading.arguments(),
                )
        plausible = channel_check.plausible
        records = channel_check.records
        record = check_record(channel_check)
        verdict = check_text(channel_check, name)
    reporter.done("checked", f"{name} is checked", plausible=plausible, records=records)
    common.answer(lambda: record, lambda: verdict)
    return 0 if plausible else NO


def _check_rows(
    channel: md.RowChannel,
    released: str,
    compared: CheckOptions,
    text: o.TextFormat,
    level: float,
    others: tuple[object, ...],
) -> ReleaseCheck:
    """Check a file of released rows; `others` are groups of options that only single
    columns have.
    """
    from mechdesign.analysis.row_checking import check_rows
    from mechdesign.leaks.coded_table import coded_table

    for options in others:
        if options != type(options)():
            raise InputError(
                "a channel of whole rows is checked under the columns' own names: "
                "leave out the options for columns, labels and identifiers, or rename "
                "the columns of the file"
            )
    if compared.ignore:
        raise InputError(
            "a check of whole rows compares the given and released columns only: leave --ignore out"
        )
    original = None
    if compared.original is not None:
        original = _encoded(coded_table(compared.original, text.text()))
    return check_rows(
        channel,
        _encoded(coded_table(released, text.text())),
        original,
        level=level,
        any_data=compared.any_data,
    )


def _encoded(table: CodedTable) -> dict[str, Encoded]:
    """The columns of a table as `check_rows` reads them."""
    from mechdesign.formats.cells import Encoded

    columns: dict[str, Encoded] = {}
    for name, column in table.columns.items():
        columns[name] = Encoded(column.codes, column.values)
    return columns
