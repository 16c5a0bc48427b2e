"""Results on released files: the verdict of `check` and the frequencies of `estimate`,
as text, CSV and JSON.

A check is a line with the verdict, a list of what is impossible, and a line for each test of
frequencies. That line has the p-value beside the chance that a faithful release fails. An estimate
is a table with a line for each symbol.

*Estimates from rows*: `estimate` on whole rows. A text is a table: a line for each value (or
combination of values) of the estimated columns, with its share, standard error and interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from mechdesign.analysis.checking import PERSON, FrequencyTest, ReleaseCheck
from mechdesign.analysis.frequencies import Frequencies
from mechdesign.analysis.joint_frequencies import JointFrequencies
from mechdesign.analysis.law_estimates import POPULATION, ColumnFrequencies
from mechdesign.analysis.law_statistics import FEW, INTERCEPT, Statistics
from mechdesign.core.wording import (
    about,
    about_to,
    at_most,
    listed,
    percent_of,
    reading_order,
)
from mechdesign.report import wording
from mechdesign.report.plain_values import csv_text
from mechdesign.report.record import picked
from mechdesign.report.wording import (
    aligned,
    count,
    figure,
    frequencies_of,
    interval,
    item,
    label,
    largest,
    paragraph,
)

MOST_SHOWN = 10
"""Suspects named in the text; JSON has all."""

_COMPARISONS = {
    "originals": "the released values of each original symbol against its row of the channel",
    "table": "the released values against what the channel's table predicts",
    "any data": "the released values against everything that any data could give",
}
"""What a test of frequencies compares."""

_SCOPES = {"table": " of records with the frequencies of the table"}
"""For which data a test keeps its promise, where these are not all."""

NUMBER_COLUMNS = ("estimate", "standard_error", "lower", "upper", "unbiased")
"""Columns of the CSV after those of the symbols."""

_METHODS = {
    "unbiased": "unbiased",
    "ml": "maximum likelihood",
    "bounds": "bounds alone",
}
_TARGETS = {
    "population": "for the population that the records are a sample of",
    "records": "for the frequencies among the records of the file",
}


def check_text(check: ReleaseCheck, path: str) -> str:
    """Verdict, findings, the test of frequencies and what was not checked, without a
    final newline.
    """
    lines = [_verdict(check, path)]
    if check.findings:
        lines += ["", "Impossible"]
        for finding in check.findings:
            text = finding.text
            # A finding names its first record. Of changed cells only the first of each batch is
            # looked for, so their number would be too small.
            if finding.records > 1 and finding.kind != "cells":
                units = "people" if check.unit == PERSON else None
                text += f" ({count(finding.records, check.unit, units)} in all)"
            lines.append(item(label(text)))
    lines += ["", "Frequencies (for specialists)", *_test(check.frequencies)]
    if check.also is not None:
        lines += _test(check.also)
    if check.notices:
        lines += ["", "Note", *[item(label(notice)) for notice in check.notices]]
    return "\n".join(lines)


def check_record(check: ReleaseCheck) -> dict[str, Any]:
    """What `check --json` prints."""
    record: dict[str, Any] = {"plausible": check.plausible, **asdict(check)}
    for name, test in (("frequencies", check.frequencies), ("also", check.also)):
        if test is not None:
            record[name]["plausible"] = test.plausible
    return record


def estimate_text(result: Frequencies | JointFrequencies, *columns: str) -> str:
    """A line for each frequency of a column, or of it by another one, without a final newline."""
    titles = [label(column) for column in columns]
    rows = [[*titles, "estimate", "std.error", "interval"]]
    records, note = largest(result.rows(), len(titles), "--json and --csv")
    for record in records:
        # The symbols, then the numbers in the order of `NUMBER_COLUMNS`; the last of them, the
        # unbiased estimate, is for programs.
        *names, estimate, error, lower, upper, _ = record.values()
        numbers = figure(estimate), figure(error), interval(lower, upper)
        rows.append([*map(label, names), *numbers])
    lines = [
        f"{frequencies_of(titles)} from {count(result.records, 'released record')}, "
        f"{_METHODS[result.method]}; {percent_of(result.level)} intervals",
        f"{_TARGETS[result.target]}.",
        "",
        *aligned(rows, left=(*range(len(titles)), len(titles) + 2)),
        *note,
    ]
    if result.notices:
        lines += ["", "Note", *(item(label(notice)) for notice in result.notices)]
    return "\n".join(lines)


def estimate_csv(result: Frequencies | JointFrequencies, *columns: str) -> str:
    """The same as CSV with all digits."""
    lines: list[list[object]] = [[*columns, *NUMBER_COLUMNS]]
    for record in result.rows():
        lines.append([*record.values()])
    return csv_text(lines)


def estimate_record(
    result: Frequencies | JointFrequencies, column: str, by: str | None = None
) -> dict[str, Any]:
    """What `estimate --json` prints."""
    facts = picked(result, "records", "method", "target", "level", "notices")
    record: dict[str, Any] = {
        "column": column,
        "by": by,
        **facts,
        "frequencies": result.rows(),
    }
    if isinstance(result, Frequencies) and result.likelihood is not None:
        fit = result.likelihood
        record["log_likelihood"] = fit.log_likelihood
        record["log_likelihood_deficit"] = fit.deficit
    return record


def _verdict(check: ReleaseCheck, path: str) -> str:
    """The first line: whether the file can be a draw of the channel."""
    if not check.records and check.plausible:
        return f"{label(path)} has no records, so that nothing could be tested."
    verdict = "does NOT look like"
    if check.plausible:
        verdict = "looks like"
    text = f"{label(path)} {verdict} a faithful release of its channel"
    # A faithful release of other records may fail the test against the table, so the
    # verdict is conditional.
    only_table = check.frequencies.against == "table" and not check.findings
    if only_table and not check.plausible:
        text += ", if the records have the frequencies of its table"
    units = "people" if check.unit == PERSON else None
    return f"{text} ({count(check.records, check.unit, units)})."


def _test(test: FrequencyTest) -> list[str]:
    """The p-value of a test, and the labels that it finds suspect."""
    if test.records == 0:
        return [paragraph("nothing to test.")]
    verdict = "plausible" if test.plausible else "not plausible"
    chance = (
        f"a faithful release{_SCOPES.get(test.against, '')} fails with a chance of at most "
        f"{test.level:g}"
    )
    lines = [
        item(
            f"{_COMPARISONS[test.against]}: {verdict}, p-value at most {at_most(test.p_value)} "
            f"({chance})"
        )
    ]
    for suspect in test.suspects[:MOST_SHOWN]:
        text = (
            f"{label(suspect.name)}: {count(suspect.records, 'record')}, adjusted p-value at most "
            f"{at_most(suspect.p_value)}"
        )
        lines.append(paragraph(text, "      "))
    if len(test.suspects) > MOST_SHOWN:
        lines.append(paragraph(f"and {len(test.suspects) - MOST_SHOWN} more", "      "))
    return lines


# ------------------------------------------------------------------ estimates from rows


def column_frequencies_text(frequencies: ColumnFrequencies) -> str:
    """The text of `estimate` on released rows, without a final newline."""
    names = [wording.label(name) for name in frequencies.columns]
    header = [*names, "estimate", "std.error", "interval"]
    table = [header]
    records, note = wording.largest(frequencies.rows(), len(names), "--json")
    for record in records:
        cells = [wording.label(record[key]) for key in frequencies.keys]
        cells.append(wording.figure(record["estimate"]))
        cells.append(wording.figure(record["standard_error"]))
        cells.append(wording.interval(record["lower"], record["upper"]))
        table.append(cells)

    # Names and intervals are words; the figures between them are aligned to the right.
    words = (*range(len(names)), len(header) - 1)
    records_text = wording.count(frequencies.records, "released row")
    lines = [
        f"{wording.frequencies_of(names)} from {records_text}; "
        f"{percent_of(frequencies.level)} intervals for {_target(frequencies.target)}.",
        "",
        *wording.aligned(table, left=words),
        *note,
    ]
    if frequencies.has_others and frequencies.target == POPULATION:
        of_others = wording.interval(0.0, frequencies.upper_of_others)
        text = (
            "Combinations of these values that the table does not have are not listed; the "
            f"interval of each is {of_others}."
        )
        lines.append(wording.paragraph(text))
    return "\n".join(lines)


def _target(target: str) -> str:
    """What intervals are for, in words."""
    if target == POPULATION:
        return "the population of the records"
    return "the records of the table"


def column_frequencies_record(frequencies: ColumnFrequencies) -> dict[str, Any]:
    """One of the `frequencies` of `estimate --json` on released rows."""
    return {
        "columns": frequencies.columns,
        "rows": frequencies.rows(),
        "upper_of_others": frequencies.upper_of_others,
    }


NOT_OF_PARTS = (
    "That is right for the records of the channel's own table, all or a random part of them, and "
    "wrong for records that were picked by what they hold, such as those of one group: take groups "
    "from the whole file (--of A,B, or --mean with --by)."
)
"""What a release that moves the frequencies says of a file that may be a part of it."""


def law_estimate_note(*, target: str, fixed: bool, kept: bool) -> str:
    """What the shares of released rows rest on."""
    if not kept:
        text = (
            "The release moves the frequencies of its table, by an amount that the channel knows. "
            "It is taken off these shares, and not off other statistics of the file."
        )
        counts = "Its counts were fixed, so the errors are those of the sample alone."
    else:
        text = (
            "The release keeps the frequencies of its table, so these are the shares of the file "
            "itself; means, tables and regressions of the released columns are those of the file, "
            "too."
        )
        counts = (
            "Its counts were fixed: they are exactly the table's, and the errors are those of the "
            "sample alone."
        )
    if target != POPULATION:
        counts = (
            "Its counts were fixed, so that nothing but rounding separates these shares from those "
            "of the records themselves."
        )
    if not fixed:
        counts = (
            "The errors include those of the draws. They hold for records of the channel's own "
            "table alone."
        )
        if not kept:
            counts = f"{NOT_OF_PARTS} The errors include those of the draws."
    text = f"{text} {counts}"
    return wording.paragraph(text, "")


def silent_note(strata: Sequence[str]) -> str:
    """What the shares of released rows leave out."""
    text = (
        f"Of rows with {listed(strata)} nothing is released: these are the shares "
        "among all others."
    )
    return wording.paragraph(text, "")


TOO_NARROW = (
    f"Intervals of values with fewer than {FEW} records hold less often than they say: they are by "
    "the normal approximation."
)

MEANS = "mean"
LEAST_SQUARES = "least squares"


def statistics_text(found: Statistics, *, fixed: bool, kept: bool) -> str:
    """The text of `estimate --mean` and `--regress`, without a final newline."""
    table = [["", "estimate", "std.error", "from draws", "interval"]]
    is_regression = _kind_of(found) == LEAST_SQUARES
    rows = found.rows()
    note: list[str] = []
    if len(rows) > wording.MOST_ESTIMATES:
        note = [
            wording.paragraph(
                f"Shown are the first {wording.MOST_ESTIMATES} of {len(rows):,}; all are in --json."
            )
        ]
    order = reading_order(found.names)
    for place in order[: wording.MOST_ESTIMATES]:
        record, parts = rows[place], found.names[place]
        # The mean of all records has no parts.
        name = ", ".join(map(wording.label, parts)) or "all"
        if record["estimate"] is None:
            table.append([name, "-", "-", "-", "no record"])
            continue
        error = record["standard_error"]
        if error is None:
            one = [name, about(record["estimate"])]
            alike = "equal numbers"
            if record["records"] < 2:
                alike = "one record" if record["records"] else "no record"
            elif is_regression and found.records <= len(found.names):
                alike = "too few records"
            table.append([*one, "-", "-", alike])
            continue
        table.append(
            [
                name,
                about_to(record["estimate"], error),
                about(error),
                about(record["from_draws"]),
                f"{about_to(record['lower'], error)} to {about_to(record['upper'], error)}",
            ]
        )
    what = f"Mean of {wording.label(found.of)}"
    if is_regression:
        what = f"Least squares of {wording.label(found.of)} on {_names(found.by)}"
    elif found.by:
        what += f" by {_names(found.by)}"
    opening = (
        f"{what} from {wording.count(found.records, 'released row')}; "
        f"{percent_of(found.level)} intervals for {_target(found.target)}."
    )
    lines = [
        wording.paragraph(opening, ""),
        "",
        *wording.aligned(table, left=(0, 4)),
        *note,
    ]
    for column, value in found.reference.items():
        text = f"{wording.label(column)} is compared with {wording.label(value)}."
        lines.append(wording.paragraph(text))
    if found.has_too_narrow:
        lines.append(wording.paragraph(TOO_NARROW))
    for notice in found.notices:
        lines.append(wording.paragraph(f"Note: {notice}."))
    lines += ["", statistics_note(fixed=fixed, kept=kept)]
    return "\n".join(lines)


def statistics_record(found: Statistics, *, fixed: bool) -> dict[str, Any]:
    """The record of `estimate --mean` and `--regress` with --json."""
    return {
        "statistic": _kind_of(found),
        "of": found.of,
        "columns": found.by,
        "records": found.records,
        "level": found.level,
        "target": found.target,
        "fixed_counts": fixed,
        "reference": found.reference,
        "notices": found.notices,
        "rows": found.rows(),
    }


def statistics_note(*, fixed: bool, kept: bool) -> str:
    """What means and regressions of released rows rest on."""
    text = (
        "The release moves the frequencies of its table, by an amount that the channel knows. It "
        "is taken off before the statistic is computed."
    )
    if kept:
        text = (
            "The release keeps the frequencies of its table, so this is the statistic of the file "
            "itself."
        )
    if fixed:
        return wording.paragraph(
            f"{text} Its counts were fixed, so the draws add no error.", ""
        )
    if not kept:
        text = f"{text} {NOT_OF_PARTS}"
    return wording.paragraph(
        f"{text} What stands under 'from draws' is the part of the standard error that other "
        "programs do not see. It holds for records of the channel's own table alone.",
        "",
    )


def _kind_of(found: Statistics) -> str:
    """Whether it is a mean or a regression."""
    is_regression = found.names[0] == (INTERCEPT,)
    return LEAST_SQUARES if is_regression else MEANS


def _names(columns: Sequence[str]) -> str:
    """Names of columns in a sentence."""
    return ", ".join(map(wording.label, columns))
