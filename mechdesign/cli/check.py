"""Questions to a released file: is it a plausible draw (`check`), and what do attacks find
(`judge`)?

*`mechdesign check OUT --channel CHANNEL`*. `check` hands the file to `mechanism.check_mechanism` (a
file of `quantize`) or to `_check_channel`. The latter counts the labels and tests in
`analysis.checking` whether their frequencies can come from the channel. If a channel keeps a symbol
with probability 0.9, and of its 1,000 records (known from --original) 850 are kept, the file is no
plausible draw. Both answers become a `Verdict`, which is logged and printed; the exit code is 1 if
the file is no plausible draw.

*`mechdesign judge RELEASED --original TABLE --sensitive S`*: attacks on a released file, and what
its readers find, for a release of any tool. All is measured by `judging.judge`. The answer is
printed, and --report writes the same as a page or as JSON. A line such as ::

    learnt from other data: yes among the 5 % that look most like it  39.7 %  94.5 %  24.1 %  39.8 %

says that an attacker is right for 39.7 % of the people of whom he is surest. In the untouched file
it would be 94.5 %, without any file 24.1 %, and the channel proves that no attack does better than
39.8 %.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import mechdesign as md
from mechdesign.cli import options, parsing, table_options
from mechdesign.cli.console import Reporter
from mechdesign.cli.failures import NO
from mechdesign.cli.line import argument, command_line, flag, option
from mechdesign.cli.mechanism import MechanismOptions, check_mechanism, is_mechanism
from mechdesign.cli.parsing import names, number
from mechdesign.cli.released import (
    ChannelOption,
    CheckedForm,
    PrivateColumns,
    ReleasedPath,
    ReleaseReading,
)
from mechdesign.core.errors import InputError

if TYPE_CHECKING:
    from mechdesign.analysis.checking import ReleaseCheck
    from mechdesign.judging.figures import Judgement


CHECK_EXAMPLE = (
    "Example:  mechdesign check released.csv --channel channel.json "
    "--original people.csv"
)


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
    published: CheckedForm,
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
    published: CheckedForm
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


# -------------------------------------------------------------------------------- judge

JUDGE_EXAMPLE = (
    "Example:  mechdesign judge released.csv --original people.csv --sensitive income "
    "--channel channel.json"
)


@dataclass(frozen=True, kw_only=True)
class JudgeOptions:
    """What is judged"""

    released: str = argument(
        "RELEASED",
        "The released file, of this or any other tool.",
        public="RELEASED.csv",
    )
    original: str | None = option(
        "TABLE", "The records behind it, with the secret.", public=options.PUBLIC_TABLE
    )
    sensitive: str | None = option(
        "COL[,COL..]", "Column(s) to protect; several are crossed."
    )
    channel: str | None = option(
        "CHANNEL",
        "The channel that released it: what it proves is set beside the figures.",
    )
    known: str | None = option(
        "COL[,COL..]",
        "Columns that outsiders know of a person; groups are equal in them.",
    )
    learn: str | None = option(
        "COL[,COL..]", "Columns that models learn to predict (default: the first six)."
    )
    identity: str | None = option(
        "COL[,COL..]", "Columns of both files that tell the records apart."
    )
    shuffled: bool = flag("Do not take rows at the same place for the same record.")
    seed: int = option("NUMBER", "Of halves and samples.", 0)
    report: str | None = option(
        "FILE",
        "The same as a report for those who may see the data: .html, .md or .json.",
        again=False,
    )


def judge(
    reporter: Reporter,
    asked: JudgeOptions,
    cells: table_options.CellForms,
    text: table_options.TextFormat,
    common: options.CommonOptions,
    force: options.Force = False,
) -> None:
    """Judge a released file of any tool by attacks on it and by what its readers find.

    Attacks on the secret, singling out, linkability, inference, groups of equal rows (k, l, t,
    beta), what analysts read, what models learn. Each figure stands beside that of the untouched
    file, a guess without any file, and what the channel proves.
    """
    from mechdesign.judging.judge import judge as measure
    from mechdesign.report.judgement import judgement_text
    from mechdesign.report.writing import check_report
    from mechdesign.tables.reading import NO_SENSITIVE, with_columns

    if asked.original is None:
        raise InputError("--original TABLE is missing: which file was released?")
    sensitive = parsing.columns("--sensitive", asked.sensitive)
    if sensitive is None:
        raise InputError(with_columns(NO_SENSITIVE, asked.original, text.text()))
    sources = [asked.released, asked.original]
    if asked.channel is not None:
        sources.append(asked.channel)
    if asked.report is not None:
        check_report(asked.report, force=force, sources=tuple(sources))
    with reporter.work("judging"):
        judgement = measure(
            asked.released,
            original=asked.original,
            sensitive=sensitive,
            channel=asked.channel,
            known=parsing.columns("--known", asked.known),
            learn=parsing.columns("--learn", asked.learn),
            identity=parsing.columns("--identity", asked.identity),
            shuffled=asked.shuffled,
            text=text.text(),
            form=cells.cell_form(),
            seed=asked.seed,
        )
    if asked.report is not None:
        again = command_line("judge", asked, cells, text)
        _save(judgement, asked, again, force=force)
    reporter.done(
        "judged", f"{asked.released} is judged", records=judgement.released_records
    )
    common.answer(lambda: _record(judgement), lambda: judgement_text(judgement))


def _record(judgement: Judgement) -> dict[str, Any]:
    """The judgement as JSON has it, in the report and with --json."""
    return {"format": "mechdesign.judgement", "version": 1, **asdict(judgement)}


def _save(
    judgement: Judgement, asked: JudgeOptions, again: str, *, force: bool
) -> None:
    """Write the report; `again` is the command that makes it again."""
    from mechdesign.report.judgement import judgement_page
    from mechdesign.report.writing import save_document

    page = partial(
        judgement_page,
        judgement,
        os.path.basename(asked.released),
        os.path.basename(asked.original or ""),
        again,
    )
    save_document(asked.report or "", _record(judgement), page, overwrite=force)
