"""Writing a quantised release: a column replaced, or a table of answers, as CSV or as Parquet."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from mechdesign.formats.csv_text import MARK, CsvText

_TERMINATOR = "\r\n"
"""The writer quotes line breaks in a cell only if they belong to its own line ending: it gets both."""


def csv_lines(rows: Sequence[Sequence[str]], newline: str) -> list[str]:
    """The rows as lines that end with `newline`."""
    lines: list[str] = []
    sink: Any = SimpleNamespace(write=lines.append)
    csv.writer(sink, lineterminator=_TERMINATOR).writerows(rows)
    return [line[: -len(_TERMINATOR)] + newline for line in lines]


def replace_csv(
    source: str, target: Path, column: str, kept: Sequence[bool] | None, texts: Sequence[str]
) -> None:
    """Copy a CSV file with one column replaced; records that are not kept are left out."""
    with CsvText(source) as table, open(target, "w", encoding="utf-8", newline="") as sink:
        place = table.header.index(column)
        sink.write(MARK if table.has_mark else "")
        sink.writelines(csv_lines([table.header], table.newline))
        read, written = 0, 0
        for rows in table.batches():
            released: list[list[str]] = []
            for row in rows:
                if kept is None or kept[read]:
                    row[place] = texts[written]
                    released.append(row)
                    written += 1
                read += 1
            sink.writelines(csv_lines(released, table.newline))


def write_csv(target: Path, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table of texts."""
    with open(target, "w", encoding="utf-8", newline="") as sink:
        sink.writelines(csv_lines([header, *rows], "\n"))
