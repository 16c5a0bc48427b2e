"""`mechdesign estimate OUT --channel CHANNEL`: frequencies of the useful column from a
released file.

A channel publishes y for x with P(y | x), so the labels of a file have the frequencies
P(y) = sum over x of P(x) P(y | x). `analysis` solves this for P(x), with confidence intervals. For
example, a channel keeps yes and no with probability 0.8, and 56 % of the labels are yes: then
0.56 = 0.8 P(yes) + 0.2 (1 - P(yes)), and P(yes) is 60 %.

Three functions count the file and print the answer: `_estimate_column` for the useful column, or
for boxes by name, `_estimate_shares` for the columns of released rows, and `_estimate_statistics`
for their means and regressions. `estimate` chooses among them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

import mechdesign as md
from mechdesign.cli import options, table_options
from mechdesign.cli.console import Reporter
from mechdesign.cli.line import option
from mechdesign.cli.parsing import names, number
from mechdesign.cli.released import (
    ChannelOption,
    FileColumns,
    OtherCells,
    ReleasedForm,
    ReleasedPath,
    ReleaseReading,
)
from mechdesign.core.errors import InputError

if TYPE_CHECKING:
    from mechdesign.analysis.law_estimates import ColumnFrequencies
    from mechdesign.analysis.release_facts import RecordsWithout

ESTIMATE_EXAMPLE = (
    "Example:  mechdesign estimate released.csv --channel channel.json --method ml "
    "--level 0.9"
)


@dataclass(frozen=True, kw_only=True)
class EstimateOptions:
    """The estimate and its intervals."""

    method: str = option(
        "NAME",
        "Method of estimation: unbiased (linear; can be negative) or ml (maximum likelihood).",
        "unbiased",
    )
    level: str = option("SHARE", "Confidence level of the intervals.", "0.95")
    target: str = option(
        "WHAT",
        "Quantity to estimate: population (of which the records are a sample) or records (those "
        "of the file itself).",
        "population",
    )
    by: str | None = option(
        "COL[,COL..]",
        "Joint frequencies with a column that was kept as it was. With --mean the released columns "
        "of the groups.",
    )
    of: str | None = option(
        "COL[,COL..]",
        "Column of released rows to estimate, or several together; default: each by itself.",
    )
    queries: str | None = option(
        "FILE",
        "Answers to the linear queries of a CSV, such as design --objective takes, in place of the "
        "frequency of every symbol.",
    )
    mean: str | None = option(
        "COL",
        "Mean of a released column of numbers, of rows; with --by in every group.",
    )
    regress: str | None = option(
        "COL",
        "Least squares of a released column of numbers, of rows, on others (--on).",
    )
    on: str | None = option(
        "COL[,COL..]", "Released columns that a regression (--regress) is on."
    )


def estimate(
    reporter: Reporter,
    released: ReleasedPath,
    channel: ChannelOption,
    columns: FileColumns,
    published: ReleasedForm,
    others: OtherCells,
    reading: ReleaseReading,
    text: table_options.TextFormat,
    asked: EstimateOptions,
    common: options.CommonOptions,
    as_csv: options.AsCsv = False,
) -> None:
    """Estimate the frequencies of the useful column from a released file, with confidence
    intervals.

    Symbols that the channel cannot tell apart are estimated together.
    """
    common.refuse_beside(as_csv)
    from mechdesign.analysis.estimating import Estimator, estimator_of
    from mechdesign.channel.file import load

    # The kind of the channel decides which options have a meaning; the others are refused, because
    # the user would take an ignored one for obeyed.
    loaded = load(channel)
    columns.check_people([loaded])
    columns = replace(columns, person=None, wave=None)
    file = _ReleasedFile(released, columns, published, others, reading, text)
    question = (asked.mean, asked.regress, asked.on)
    is_statistic = any(word is not None for word in question)
    if is_statistic:
        _check_question(asked, as_csv=as_csv)
    estimator = Estimator.COLUMN
    is_by_one = not is_statistic and (asked.by is not None or as_csv)
    if asked.queries is not None:
        is_by_one = True
        if is_statistic or asked.of is not None or asked.by is not None:
            raise InputError(
                "--queries asks for its own answers: leave --of, --by, --mean and --regress out"
            )
    if is_by_one:
        _refuse_by(loaded)
    if not is_by_one:
        besides = file.other_records(loaded)
        estimator = estimator_of(
            loaded,
            has_others=besides.are_there,
            is_statistic=is_statistic,
        )
        if estimator is Estimator.STATISTICS:
            _estimate_statistics(reporter, file, loaded, besides, asked, common)
        elif estimator is Estimator.SHARES:
            _estimate_shares(reporter, file, loaded, besides, asked, common)
    if estimator is not Estimator.COLUMN:
        return
    if asked.of is not None:
        raise InputError(_of_refusal(loaded.single(), asked))
    # Of boxes their own frequencies; `show` says which rows each of them has.
    _estimate_column(reporter, file, loaded, asked, common, as_csv=as_csv)


def _refuse_by(channel: md.Channel) -> None:
    """Refuse --by and --csv for rows in boxes and for people."""
    if channel.fills:
        raise InputError(
            "--by, --queries and --csv are not for rows: name columns (--of COL,..), or take --json"
        )
    if channel.people is not None:
        raise InputError(
            "--by, --queries and --csv are not built for people with several records: name columns "
            "of a record (--of COL,..), or take --json"
        )


def _of_refusal(channel: md.Channel, asked: EstimateOptions) -> str:
    """Why columns of released rows (--of) cannot be estimated here, and what to do."""
    from mechdesign.analysis.law_estimates import NOT_KEPT
    from mechdesign.tables.row_boxes import BOX

    if channel.useful.columns == (BOX,):
        return (
            "--of names columns of released rows, and this channel releases labels of boxes: leave "
            "it out, and the boxes are estimated (`mechdesign show` says what they hold)"
        )
    if len(channel.useful.columns) == 1:
        return "--of names columns of released rows; a channel of one column estimates its own"
    if channel.keeps_law or channel.tells_shares:
        beside = "--by" if asked.by is not None else "--csv"
        return f"--of is not for {beside}: leave one of them out"
    if channel.releases_symbols:
        return NOT_KEPT
    return (
        "--of names columns of released rows, and this channel releases labels in their place: "
        "leave it out, and whole rows are estimated"
    )


class _ReleasedFile(NamedTuple):
    """A released file, and the options on how it was published and is read."""

    path: str
    columns: FileColumns
    published: ReleasedForm
    others: OtherCells
    reading: ReleaseReading
    text: table_options.TextFormat

    def other_records(self, channel: md.Channel) -> RecordsWithout:
        """Records of the file in whose place another value was drawn."""
        from mechdesign.analysis.release_facts import other_records

        policy = self.others.arguments()["policy"]
        return other_records(self.path, channel, policy, self.others.manifest)


def _estimate_column(
    reporter: Reporter,
    file: _ReleasedFile,
    channel: md.Channel,
    asked: EstimateOptions,
    common: options.CommonOptions,
    *,
    as_csv: bool,
) -> None:
    """Frequencies of the useful column, alone or together with a kept column (--by)."""
    from mechdesign.analysis.file_frequencies import estimate_file
    from mechdesign.report import releases

    level = number("--level", asked.level)
    functionals: dict[str, dict[str, float]] | None = None
    if asked.queries is not None:
        from mechdesign.mechanisms.queries import coefficients_in

        symbols = channel.single().useful.names
        functionals = coefficients_in(asked.queries, symbols, file.text.text())
    with reporter.work("counting", unit="records") as advance:
        result = estimate_file(
            file.path,
            channel,
            method=asked.method,
            level=level,
            target=asked.target,
            by=asked.by,
            functionals=functionals,
            columns=file.columns.renamed,
            form=file.published.form,
            text=file.text.text(),
            advance=advance,
            **file.others.arguments(),
            **file.reading.arguments(),
        )
    reporter.done("estimated", f"{file.path} is counted", records=result.records)
    names = [",".join(channel.single().useful.columns)]
    if asked.by is not None:
        names.append(asked.by)
    if as_csv:
        reporter.notices(result.notices)
        typer.echo(releases.estimate_csv(result, *names), nl=False)
        return
    common.answer(
        lambda: releases.estimate_record(result, *names),
        lambda: releases.estimate_text(result, *names),
    )


def _estimate_shares(
    reporter: Reporter,
    file: _ReleasedFile,
    channel: md.Channel,
    without: RecordsWithout,
    asked: EstimateOptions,
    common: options.CommonOptions,
) -> None:
    """Shares of columns of released rows."""
    from mechdesign.analysis.file_frequencies import NO_MANIFEST
    from mechdesign.analysis.law_estimates import estimate_shares
    from mechdesign.analysis.release_facts import has_fixed_counts
    from mechdesign.report.releases import law_estimate_note, silent_note
    from mechdesign.report.wording import paragraph

    _refuse_renaming(file)
    level = number("--level", asked.level)
    fixed = has_fixed_counts(file.path, channel)
    with reporter.work("counting", unit="records") as advance:
        estimates = estimate_shares(
            channel,
            file.path,
            names("--of", asked.of) or None,
            level=level,
            target=asked.target,
            fixed=fixed,
            text=file.text.text(),
            advance=advance,
        )
    records = estimates[0].records
    reporter.done("estimated", f"{file.path} is counted", records=records)
    facts = {
        "records": records,
        "level": level,
        "target": asked.target,
        "fixed_counts": fixed,
    }
    notes = [
        law_estimate_note(target=asked.target, fixed=fixed, kept=channel.keeps_law)
    ]
    if channel.silent_strata:
        notes.append(silent_note(channel.silent_strata))
    if not without.are_known:
        reporter.notice(NO_MANIFEST)
    notes += [paragraph(f"Note: {note}.", "") for note in without.counted_otherwise]
    _answer_columns(estimates, facts, notes, common)


def _refuse_renaming(file: _ReleasedFile) -> None:
    """Refuse the options for columns and labels of other names."""
    for group in (file.columns, file.published, file.reading):
        if group != type(group)():
            raise InputError(
                "released rows are read under the columns' own names: leave out the options for "
                "columns, labels and identifiers, or rename the columns of the file"
            )


def _check_question(asked: EstimateOptions, *, as_csv: bool) -> None:
    """Refuse two questions at once, and options that means and regressions do not have."""
    from mechdesign.analysis.law_statistics import check_question

    check_question(
        of=asked.of,
        mean=asked.mean,
        by=names("--by", asked.by),
        regress=asked.regress,
        on=names("--on", asked.on),
    )
    if as_csv or asked.method != "unbiased":
        raise InputError(
            "--csv and --method are not for means (--mean) and regressions "
            "(--regress): leave them out"
        )


def _estimate_statistics(
    reporter: Reporter,
    file: _ReleasedFile,
    channel: md.Channel,
    without: RecordsWithout,
    asked: EstimateOptions,
    common: options.CommonOptions,
) -> None:
    """A mean or a regression of columns of released rows."""
    from mechdesign.analysis.law_statistics import estimate_means, estimate_regression
    from mechdesign.analysis.release_facts import has_fixed_counts
    from mechdesign.report.releases import (
        statistics_record,
        statistics_text,
    )
    from mechdesign.report.wording import paragraph

    _refuse_renaming(file)
    fixed = has_fixed_counts(file.path, channel)
    kept = channel.keeps_law
    with reporter.work("counting", unit="records") as advance:
        settings: dict[str, Any] = {
            "level": number("--level", asked.level),
            "target": asked.target,
            "fixed": fixed,
            "text": file.text.text(),
            "advance": advance,
        }
        if asked.mean is not None:
            by = names("--by", asked.by)
            found = estimate_means(channel, file.path, asked.mean, by, **settings)
        else:
            on = names("--on", asked.on)
            outcome = asked.regress or ""
            found = estimate_regression(channel, file.path, outcome, on, **settings)
    reporter.done("estimated", f"{file.path} is counted", records=found.records)
    text = statistics_text(found, fixed=fixed, kept=kept)
    for note in without.counted_otherwise:
        text += "\n" + paragraph(f"Note: {note}.", "")
    common.answer(lambda: statistics_record(found, fixed=fixed), lambda: text)


def _answer_columns(
    estimates: Sequence[ColumnFrequencies],
    facts: Mapping[str, Any],
    notes: Sequence[str],
    common: options.CommonOptions,
) -> None:
    """Print the estimates of columns one below the other, then notes; `facts` begin the record."""
    from mechdesign.report.releases import (
        column_frequencies_record,
        column_frequencies_text,
    )

    def record() -> dict[str, Any]:
        frequencies = [column_frequencies_record(column) for column in estimates]
        return {**facts, "frequencies": frequencies}

    def people_text() -> str:
        tables = [column_frequencies_text(column) for column in estimates]
        return "\n\n".join([*tables, *notes])

    common.answer(record, people_text)
