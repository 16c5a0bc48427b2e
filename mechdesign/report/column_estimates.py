"""Estimates from released rows and boxes, in words and as records: `estimate` on whole rows.

A text is a table: a line for each value (or combination of values) of the estimated columns, with
its share, standard error and interval. Where released values do not tell some true values apart, a
column more has the part of each interval that no number of records would close, and a remark below
explains it. `box_estimate_note` is the sentence before the tables of a release in boxes.
"""

from __future__ import annotations

from typing import Any

from mechdesign.analysis.column_frequencies import ColumnFrequencies
from mechdesign.core.wording import percent_of
from mechdesign.report import layout, wording

OWN_POPULATION = (
    "These estimates take the released records for draws from the population of the channel's own "
    "table, whose records say how symbols share a box; --any-data does without that, and has "
    "wider intervals."
)

ANY_DATA = (
    "The intervals hold for all data: a symbol has at least the records of the boxes that hold it "
    "alone, and at most those of all boxes that may hold it. The estimate is the middle."
)

NOT_TOLD_APART = (
    "What stands under 'not told apart' is the part of an interval that stays open "
    "however many records there are, because the released values do not tell this "
    "value from others."
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
        cells += [f"{record['estimate']:.5f}", f"{record['standard_error']:.5f}"]
        if is_open:
            cells.append(f"{record['unresolved']:.5f}")
        cells.append(f"{record['lower']:.5f} to {record['upper']:.5f}")
        table.append(cells)

    # Names and intervals are words; the figures between them are aligned to the right.
    words = (*range(len(names)), len(header) - 1)
    records_text = wording.count(frequencies.records, "released row")
    lines = [
        f"Frequencies of {' by '.join(names)} from {records_text}; "
        f"{percent_of(frequencies.level)} intervals for the population of the records.",
        "",
        *layout.aligned(table, left=words),
        *note,
    ]
    if is_open:
        lines.append(layout.paragraph(NOT_TOLD_APART))
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
