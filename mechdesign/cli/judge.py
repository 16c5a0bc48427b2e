"""`mechdesign judge RELEASED --original TABLE --sensitive S`: attacks on a released file, and what
its readers find, for a release of any tool.

All is measured by `judging.judge`. The answer is printed, and --report writes the same as a page or
as JSON. A line such as ::

    learnt from other data: yes among the 5 % that look most like it  39.7 %  94.5 %  24.1 %  39.8 %

says that an attacker is right for 39.7 % of the people of whom he is surest. In the untouched file
it would be 94.5 %, without any file 24.1 %, and the channel proves that no attack does better than
39.8 %.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from mechdesign.cli import options, parsing, table_options
from mechdesign.cli.console import Reporter
from mechdesign.cli.line import argument, command_line, flag, option
from mechdesign.core.errors import InputError

if TYPE_CHECKING:
    from mechdesign.judging.figures import Judgement

EXAMPLE = (
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
    from mechdesign.tables.reading import with_columns

    if asked.original is None:
        raise InputError("--original TABLE is missing: which file was released?")
    sensitive = parsing.columns("--sensitive", asked.sensitive)
    if sensitive is None:
        question = "--sensitive COL is missing: which column is to be protected?"
        raise InputError(with_columns(question, asked.original, text.text()))
    sources = [asked.released, asked.original]
    if asked.channel is not None:
        sources.append(asked.channel)
    if asked.report is not None:
        check_report(asked.report, force=force, sources=tuple(sources), pictures=False)
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
            seed=asked.seed,
        )
    if asked.report is not None:
        again = command_line("judge", asked, text)
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
