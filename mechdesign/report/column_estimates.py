"""Estimates from released rows and boxes, in words and as records: `estimate` on whole rows.

A text is a table: a line for each value (or combination of values) of the estimated columns, with
its share, standard error and interval. Where released values do not tell some true values apart, a
column more has the part of each interval that no number of records would close, and a remark below
explains it. `box_estimate_note` is the sentence before the tables of a release in boxes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mechdesign.analysis.column_frequencies import FEW, ColumnFrequencies
from mechdesign.analysis.law_statistics import INTERCEPT, Statistics
from mechdesign.core.wording import about, listed, percent_of
from mechdesign.report import layout, wording

OWN_POPULATION = (
    "These estimates take the released records for draws from the population of the channel's own "
    "table, whose records say how symbols share a box; --any-data does without that, and has "
    "wider intervals."
)

ANY_DATA = (
    "The intervals hold for all data: a symbol has at least the records of the boxes that hold it "
    "alone, and at most those of all boxes that may hold it. There is no estimate between them."
)

NOT_TOLD_APART = (
    "What stands under 'not told apart' is the part of an interval that stays open "
    "however many records there are, because the released values do not tell this "
    "value from others."
)

TOO_NARROW = (
    f"Intervals of values with fewer than {FEW} records hold less often than they say: they are by "
    "the normal approximation."
)


def column_frequencies_text(frequencies: ColumnFrequencies) -> str:
    """The text of `estimate` on released rows, without a final newline."""
    names = [wording.label(name) for name in frequencies.columns]
    # The standard error does not see the open part of an interval, so it gets its own column.
    is_open = frequencies.unidentified > 0.0
    header = [*names, "estimate", "std.error", "interval"]
    if is_open:
        header.insert(-1, "not told apart")

    table = [header]
    records, note = layout.largest(frequencies.rows(), "--json")
    for record in records:
        cells = [wording.label(record[name]) for name in frequencies.columns]
        # The middle of a range that stays open is no estimate.
        cells.append(wording.figure(record["estimate"]))
        cells.append(wording.figure(record["standard_error"]))
        if is_open:
            cells.append(wording.figure(record["unresolved"]))
        cells.append(wording.interval(record["lower"], record["upper"]))
        table.append(cells)

    # Names and intervals are words; the figures between them are aligned to the right.
    words = (*range(len(names)), len(header) - 1)
    records_text = wording.count(frequencies.records, "released row")
    lines = [
        f"{wording.frequencies_of(names)} from {records_text}; "
        f"{percent_of(frequencies.level)} intervals for the population of the records.",
        "",
        *layout.aligned(table, left=words),
        *note,
    ]
    if is_open:
        lines.append(layout.paragraph(NOT_TOLD_APART))
    if frequencies.has_too_narrow:
        lines.append(layout.paragraph(TOO_NARROW))
    return "\n".join(lines)


def column_frequencies_record(frequencies: ColumnFrequencies) -> dict[str, Any]:
    """One of the `frequencies` of `estimate --json` on released rows and boxes."""
    return {
        "columns": frequencies.columns,
        "unidentified": frequencies.unidentified,
        "rows": frequencies.rows(),
    }


def box_estimate_note(*, is_bounded: bool) -> str:
    """What the estimates of columns from boxes rest on.

    Bounded estimates (`estimate --any-data`) rest on nothing but the released file; others on the
    table of the channel.
    """
    if is_bounded:
        return layout.paragraph(ANY_DATA, "")
    return layout.paragraph(OWN_POPULATION, "")


def law_estimate_note(*, fixed: bool, kept: bool) -> str:
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
    if not fixed:
        counts = (
            "The errors include those of the draws. They hold for records of the channel's own "
            "table alone."
        )
    text = f"{text} {counts}"
    return layout.paragraph(text, "")


def silent_note(strata: Sequence[str]) -> str:
    """What the shares of released rows leave out."""
    text = (
        f"Of rows with {listed(strata)} nothing is released: these are the shares "
        "among all others."
    )
    return layout.paragraph(text, "")


MEANS = "mean"
LEAST_SQUARES = "least squares"


def statistics_text(found: Statistics, *, fixed: bool, kept: bool) -> str:
    """The text of `estimate --mean` and `--regress`, without a final newline."""
    table = [["", "estimate", "std.error", "from draws", "interval"]]
    rows = found.rows()
    note: list[str] = []
    if len(rows) > layout.MOST_ESTIMATES:
        note = [
            layout.paragraph(
                f"Shown are the first {layout.MOST_ESTIMATES} of {len(rows):,}; all are in --json."
            )
        ]
    for record, parts in zip(rows[: layout.MOST_ESTIMATES], found.names, strict=False):
        # The mean of all records has no parts.
        name = ", ".join(map(wording.label, parts)) or "all"
        if record["estimate"] is None:
            table.append([name, "-", "-", "-", "no record"])
            continue
        if record["standard_error"] is None:
            one = [name, about(record["estimate"])]
            alike = "one record" if record["records"] == 1 else "equal numbers"
            table.append([*one, "-", "-", alike])
            continue
        table.append(
            [
                name,
                about(record["estimate"]),
                about(record["standard_error"]),
                about(record["from_draws"]),
                f"{about(record['lower'])} to {about(record['upper'])}",
            ]
        )
    kind = _kind_of(found)
    what = f"Mean of {wording.label(found.of)}"
    if kind == LEAST_SQUARES:
        what = f"Least squares of {wording.label(found.of)} on {_names(found.by)}"
    elif found.by:
        what += f" by {_names(found.by)}"
    target = "the population of the records"
    if found.target != "population":
        target = "the records of the table"
    opening = (
        f"{what} from {wording.count(found.records, 'released row')}; "
        f"{percent_of(found.level)} intervals for {target}."
    )
    lines = [
        layout.paragraph(opening, ""),
        "",
        *layout.aligned(table, left=(0, 4)),
        *note,
    ]
    for column, value in found.reference.items():
        text = f"{wording.label(column)} is compared with {wording.label(value)}."
        lines.append(layout.paragraph(text))
    if found.has_too_narrow:
        lines.append(layout.paragraph(TOO_NARROW))
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
        return layout.paragraph(
            f"{text} Its counts were fixed, so the draws add no error.", ""
        )
    return layout.paragraph(
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
