"""Estimated frequencies as a table for eyes, as CSV and as a record for JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from mechdesign.analysis.frequencies import Frequencies, JointFrequencies
from mechdesign.report.wording import count, item, label

NUMBERS = ("estimate", "standard_error", "lower", "upper")

_METHODS = {"unbiased": "unbiased", "ml": "maximum likelihood"}
_TARGETS = {
    "population": "for the population that the records are a sample of",
    "records": "for the frequencies among the records of the file",
}


def estimate_text(result: Frequencies | JointFrequencies, column: str, by: str | None = None) -> str:
    """A line for each frequency, without a final newline.

    Parameters
    ----------
    result : Frequencies or JointFrequencies
    column : str
        Name of the useful column.
    by : str, optional
        Name of the kept column of joint frequencies.
    """
    keys = ("name",) if by is None else ("name", "other")
    titles = (column,) if by is None else (column, by)
    records = result.rows()
    texts = [[label(str(record[key])) for key in keys] for record in records]
    widths = [max(len(titles[k]), *(len(text[k]) for text in texts)) for k in range(len(keys))]
    head = "  ".join(f"{label(title):<{width}}" for title, width in zip(titles, widths, strict=True))
    lines = [
        f"Frequencies of {' by '.join(map(label, titles))} from {count(result.records, 'released record')}, "
        f"{_METHODS[result.method]}; {100 * result.level:g} % intervals",
        f"{_TARGETS[result.target]}.",
        "",
        f"  {head}  estimate  std.error  interval",
    ]
    for text, record in zip(texts, records, strict=True):
        name = "  ".join(f"{cell:<{width}}" for cell, width in zip(text, widths, strict=True))
        lines.append(f"  {name}  {record['estimate']:8.5f}  {_interval(record)}")
    if result.notices:
        lines += ["", "Note", *(item(label(notice)) for notice in result.notices)]
    return "\n".join(lines)


def _interval(record: dict[str, Any]) -> str:
    if record["standard_error"] != record["standard_error"]:
        return "        -  not known from released data"
    return f"{record['standard_error']:9.5f}  {record['lower']:.5f} to {record['upper']:.5f}"


def estimate_csv(result: Frequencies | JointFrequencies, column: str, by: str | None = None) -> str:
    """The same as CSV with all digits; unknown numbers are empty."""
    titles: Sequence[str] = (column,) if by is None else (column, by)
    keys = ("name",) if by is None else ("name", "other")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*titles, *NUMBERS])
    for record in result.rows():
        numbers = ["" if record[key] != record[key] else repr(record[key]) for key in NUMBERS]
        writer.writerow([*(record[key] for key in keys), *numbers])
    return text.getvalue()


def estimate_record(
    result: Frequencies | JointFrequencies, column: str, by: str | None = None
) -> dict[str, Any]:
    """What `estimate --json` prints."""
    record: dict[str, Any] = {
        "column": column,
        "by": by,
        "records": result.records,
        "method": result.method,
        "target": result.target,
        "level": result.level,
        "frequencies": result.rows(),
        "notices": list(result.notices),
    }
    if isinstance(result, Frequencies) and result.likelihood is not None:
        fit = result.likelihood
        record["log_likelihood"] = fit.log_likelihood
        record["log_likelihood_deficit"] = fit.deficit
    return record
