"""`mechdesign check OUT --channel CHANNEL`: is a released file a plausible draw of a channel?

`check` hands the file to `mechanism.check_mechanism` (a file of `quantize`) or to `_check_channel`.
The latter counts the labels and tests in `analysis.checking` whether their frequencies can come
from the channel. If a channel keeps a symbol with probability 0.9, and of its 1,000 records (known
from --original) 850 are kept, the file is no plausible draw. Both answers become a `Verdict`, which
is logged and printed; the exit code is 1 if the file is no plausible draw.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import mechdesign as md
from mechdesign.cli import options, table_options
from mechdesign.cli.console import NO, Reporter
from mechdesign.cli.line import flag, option
from mechdesign.cli.mechanism import MechanismOptions, check_mechanism, is_mechanism
from mechdesign.cli.parsing import names, number
from mechdesign.cli.released import (
    ChannelOption,
    PolicyOptions,
    PrivateColumns,
    ReleasedPath,
    ReleaseReading,
)

if TYPE_CHECKING:
    from mechdesign.analysis.checking import ReleaseCheck

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
        "Do not expect the frequencies of the channel's own table (without --original)."
    )
    ignore: list[str] | None = option(
        "COL[,COL..]",
        "Columns not to compare: removed, or released by another channel; may be repeated.",
    )


def check(
    reporter: Reporter,
    released: ReleasedPath,
    channel: ChannelOption,
    columns: PrivateColumns,
    published: PolicyOptions,
    reading: ReleaseReading,
    text: table_options.TextFormat,
    numbers: MechanismOptions,
    compared: CheckOptions,
    common: options.CommonOptions,
) -> int:
    """Check a released file against its channel: exit 0 if it is a plausible draw, 1 if not.

    Labels must be possible; with the original also rows, pairs of symbol and label, and
    all other columns. The frequencies must be plausible: the tests are exact with the
    original, conservative without it. Give the same options for columns and labels as
    to `apply`.
    """
    name = released
    if released == "-":
        name = "standard input"
    false_alarm = number("--false-alarm", compared.false_alarm)
    # A mechanism file and a channel file are told apart by their first line, not by an option.
    if is_mechanism(channel):
        with reporter.work("checking"):
            numbers_check = check_mechanism(
                channel,
                released,
                numbers,
                text,
                name=name,
                original=compared.original,
                # A mechanism releases one column, so --column names one at most.
                column=next(iter(columns.renamed.values()), None),
            )
        verdict = Verdict(
            plausible=numbers_check.plausible,
            records=numbers_check.answers,
            record=numbers_check.record,
            text=numbers_check.text,
        )
    else:
        release = Release(released, columns, published, reading, text)
        with reporter.work("checking", unit="records") as advance:
            check = _check_channel(channel, release, compared, false_alarm, advance)
        verdict = Verdict.of(check, name)
    reporter.done(
        "checked",
        f"{name} is checked",
        plausible=verdict.plausible,
        records=verdict.records,
    )
    common.answer(lambda: verdict.record, lambda: verdict.text)
    return 0 if verdict.plausible else NO


@dataclass(frozen=True)
class Verdict:
    """What `check` answers, of a channel or of a mechanism file for numbers."""

    plausible: bool
    records: int
    record: Mapping[str, Any]
    text: str

    @classmethod
    def of(cls, check: ReleaseCheck, name: str) -> Verdict:
        """The verdict on a release through a channel."""
        from mechdesign.report.releases import check_record, check_text

        record = check_record(check)
        text = check_text(check, name)
        return cls(check.plausible, check.records, record, text)


@dataclass(frozen=True)
class Release:
    """A released file, and the options that say how it is read."""

    path: str
    columns: PrivateColumns
    published: PolicyOptions
    reading: ReleaseReading
    text: table_options.TextFormat


def _check_channel(
    path: str,
    release: Release,
    compared: CheckOptions,
    level: float,
    advance: Callable[[int], None],
) -> ReleaseCheck:
    """Check a release against the channel in the file `path`."""
    channel = md.load(path)
    release.columns.check_people([channel])
    return md.check(
        channel,
        release.path,
        original=compared.original,
        level=level,
        any_data=compared.any_data,
        ignored=names("--ignore", compared.ignore),
        text=release.text.text(),
        advance=advance,
        **release.columns.arguments(),
        **release.published.arguments(channel.channels),
        **release.reading.arguments(),
    )
