"""Lines of a plain text for a terminal: wrapped sentences, lists, and tables.

Sentences are wrapped at `WIDTH`. `paragraph` and `item` return one text, with line ends in it;
`lines_of`, `all_lines` and `item_lines` do the same for callers that collect lines. `aligned` pads
cells to the width of their column: ``a  10`` above ``bc  9`` with the first column flush left.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

WIDTH = 96
"""Longest line of a text report, in characters."""

MOST_ESTIMATES = 100
"""Most estimates that a terminal shows; a file has all."""


def paragraph(text: str, first: str = "  ") -> str:
    """`text` wrapped and indented; labels are never broken."""
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=" " * len(first),
        # A broken label could not be searched for, or copied into another command.
        break_long_words=False,
        break_on_hyphens=False,
    )


def lines_of(text: str) -> list[str]:
    """A sentence as lines that fit a terminal, without an indent."""
    return paragraph(text, "").split("\n")


def all_lines(texts: Iterable[str]) -> list[str]:
    """Several sentences as lines that fit a terminal; each sentence starts a line."""
    lines: list[str] = []
    for text in texts:
        lines += lines_of(text)
    return lines


def remark_sentences(messages: Iterable[str]) -> list[str]:
    """The remarks of a search, each with a capital letter and a full stop."""
    sentences: list[str] = []
    for message in messages:
        sentences.append(f"{message[:1].upper()}{message[1:].rstrip('.')}.")
    return sentences


def item(text: str) -> str:
    """`text` as an item of a list."""
    return paragraph(text, "  - ")


def item_lines(texts: Iterable[str]) -> list[str]:
    """The lines of a list that has an item for each text."""
    lines: list[str] = []
    for text in texts:
        lines += item(text).split("\n")
    return lines


def aligned(rows: Sequence[Sequence[str]], *, left: Sequence[int] = ()) -> list[str]:
    """Rows of cells as indented lines; the columns in `left` are flush left, the others
    flush right.
    """
    rows = [[_shortened(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines: list[str] = []
    for row in rows:
        cells: list[str] = []
        for column, (cell, width) in enumerate(zip(row, widths, strict=True)):
            if column in left:
                cells.append(cell.ljust(width))
            else:
                cells.append(cell.rjust(width))
        lines.append(f"  {'  '.join(cells)}".rstrip())
    return lines


def _shortened(cell: str) -> str:
    """A cell without its middle if it is longer than a line: it would widen all lines."""
    if len(cell) <= WIDTH:
        return cell
    half = WIDTH // 2
    return f"{cell[: half - 1]}…{cell[-(WIDTH - half) :]}"


def largest(
    records: Sequence[Mapping[str, Any]], all_in: str
) -> tuple[Sequence[Mapping[str, Any]], list[str]]:
    """The records that a terminal shows, and a line on the others if there are any.

    Up to `MOST_ESTIMATES` records are all shown, in their order; of more, those with the largest
    ``estimate``. `all_in` names the options that show all.
    """
    # A column of 10,000 symbols would scroll away what was said above it.
    if len(records) <= MOST_ESTIMATES:
        return records, []
    # Bounds have no estimates.
    has_bounds = any(record["estimate"] is None for record in records)
    key = "upper" if has_bounds else "estimate"
    shown = sorted(records, key=lambda record: -record[key])[:MOST_ESTIMATES]
    note = (
        f"Shown are the {MOST_ESTIMATES} largest of {len(records):,} estimates; "
        f"all are in {all_in}."
    )
    return shown, [paragraph(note)]
