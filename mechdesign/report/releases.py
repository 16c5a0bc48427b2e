"""Results on released files: the verdict of `check` and the frequencies of `estimate`,
as text, CSV and JSON.

A check is a line with the verdict, a list of what is impossible, and a line for each test of
frequencies. That line has the p-value beside the chance that a faithful release fails. An estimate
is a table with a line for each symbol. Estimates of released rows and boxes are in `row_estimates`.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from mechdesign.analysis.checking import PERSON, FrequencyTest, ReleaseCheck
from mechdesign.analysis.frequencies import Frequencies
from mechdesign.analysis.joint_frequencies import JointFrequencies
from mechdesign.core.wording import at_most, percent_of
from mechdesign.report.layout import aligned, item, largest, paragraph
from mechdesign.report.plain_values import csv_text, picked
from mechdesign.report.wording import count, figure, frequencies_of, interval, label

MOST_SHOWN = 10
"""Suspects named in the text; JSON has all."""

_COMPARISONS = {
    "originals": "the released values of each original symbol against its row of the channel",
    "table": "the released values against what the channel's table predicts",
    "any data": "the released values against everything that any data could give",
}
"""What a test of frequencies compares."""

_SCOPES = {"table": " of records like those of the table"}
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
    records, note = largest(result.rows(), "--json and --csv")
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
        text += ", if the records are like those of its table"
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
