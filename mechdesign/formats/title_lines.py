"""Lines above the header of a CSV: titles, dates, comments; and rows that do not fit the header.

Exports often begin with a title, and some rows have one cell more than the header. Nothing of this
is guessed silently: `--skip-lines` says how many lines to pass over, and messages name the number
that `lines_above_header` finds. For example, of

    Survey 2024
    job,region
    clerk,n
    baker,s

most lines have two cells, and the first of them with two names is the second line: one is above it.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence

SNIFFED_LINES = 60
"""Lines that decide where the header is."""

COMMENT = b"#"
"""The usual beginning of a line that is no data."""


def lines_above_header(text: bytes, delimiter: str, quote: str | None) -> int:
    """How many lines of the beginning of a file stand above its header; 0 if none is recognised.

    `text` is UTF-8. Its last line may be cut.
    """
    lines = text.splitlines()
    # Of a short text all lines are whole.
    if len(lines) > SNIFFED_LINES:
        lines = lines[:SNIFFED_LINES]
    rows = [_cells(line, delimiter, quote) for line in lines]
    widths = Counter(len(row) for row in rows if row)
    if not widths:
        return 0
    # The most common width; of equally common ones the larger, for titles have few cells.
    width = max(widths, key=lambda size: (widths[size], size))
    for place, (line, row) in enumerate(zip(lines, rows, strict=True)):
        if line.startswith(COMMENT):
            continue
        if len(row) == width and (width == 1 or _are_names(row)):
            return place
    return 0


def misfit_hint(
    widths: Sequence[int], width: int, last_cells: Sequence[bytes], delimiter: str
) -> str:
    """What rows are that are longer than the header, all by one cell; otherwise empty.

    Parameters
    ----------
    widths : sequence of int
        Cells of the rows behind the header.
    width : int
        Cells of the header.
    last_cells : sequence of bytes
        The last cell of each row.
    """
    if not widths or any(size != width + 1 for size in widths):
        return ""
    if not any(last_cells):
        return (
            f": every row ends with a {delimiter!r} that the header lacks; put one at the end of "
            "the header, too"
        )
    return (
        ": every row has one cell more than the header, as where rows begin with a name of their "
        f"own; name that column in the header (row{delimiter}..)"
    )


def title_hint(lines: int) -> str:
    """What to do about so many lines above the header; empty for none."""
    if not lines:
        return ""
    noun = "line looks" if lines == 1 else f"{lines} lines look"
    return (
        f"; the first {noun} like a title or a comment: skip what stands above the header "
        f"(--skip-lines {lines})"
    )


def _cells(line: bytes, delimiter: str, quote: str | None) -> list[str]:
    """The cells of a line by itself, none of a blank line."""
    text = line.decode("utf-8", "replace")
    if not text.strip():
        return []
    quoting = csv.QUOTE_NONE if quote is None else csv.QUOTE_MINIMAL
    reader = csv.reader(
        [text], delimiter=delimiter, quotechar=quote or '"', quoting=quoting
    )
    try:
        return next(reader)
    except (csv.Error, StopIteration):
        # A cell that is too long for Python's reader, or goes on in the next line.
        return []


def _are_names(row: Sequence[str]) -> bool:
    """Whether the cells of a row can be the names of columns."""
    # The names of the rows often have no name themselves.
    named = [cell for cell in row[1:] if cell.strip()]
    has_first = bool(row[0].strip())
    return (
        len(named) == len(row) - 1
        and len(set(named)) == len(named)
        and (has_first or len(row) > 2)
    )
