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
from collections.abc import Collection, Sequence

SNIFFED_LINES = 60
"""Lines that decide where the header is."""

ALIKE = 2 / 3
"""Share of the lines below a header that have its width, at least: a few may be faulty."""

COMMENT = b"#"
"""The usual beginning of a line that is no data."""


_DELIMITERS = {
    ";": ("semicolons", "';'"),
    "\t": ("tabs", "tab"),
    "|": ("bars", "'|'"),
    ",": ("commas", "','"),
}
"""Usual delimiters: their names, and how they are typed on the command line."""


def lines_above_header(text: bytes, delimiter: str, quote: str | None) -> int:
    """How many lines of the beginning of a file stand above its header; 0 if none is recognised.

    `text` is UTF-8. Its last line may be cut.
    """
    lines = text.splitlines()
    # Of a short text all lines are whole.
    if len(lines) > SNIFFED_LINES:
        lines = lines[:SNIFFED_LINES]
    if _has_other_delimiter(lines, delimiter):
        return 0
    rows = [_cells(line, delimiter, quote) for line in lines]
    widths = Counter(len(row) for row in rows if row)
    if not widths:
        return 0
    # The most common width; of equally common ones the larger, for titles have few cells.
    width = max(widths, key=lambda size: (widths[size], size))
    for place, (line, row) in enumerate(zip(lines, rows, strict=True)):
        if line.startswith(COMMENT):
            continue
        if place and _is_narrow_header(rows[place - 1], width):
            return place - 1
        if len(row) == width and (width == 1 or _are_names(row)):
            below = [len(one) for one in rows[place:] if one]
            # Lines of all widths are a column of texts whose delimiters nobody quoted.
            return place if below.count(width) >= ALIKE * len(below) else 0
        # A header with a delimiter at its end, which the rows lack, is no title.
        if len(row) == width + 1 > 2 and not row[-1] and _are_names(row[:-1]):
            return place
    return 0


def _has_other_delimiter(lines: Sequence[bytes], delimiter: str) -> bool:
    """Whether another delimiter divides all lines alike, the first one among them, which is a
    header then: as in ``bmi;age`` above ``18,5;40``, whose comma is that of a decimal.
    """
    filled = [line for line in lines if line.strip()]
    for other in _DELIMITERS:
        counts = {line.count(other.encode()) for line in filled}
        if other != delimiter and len(counts) == 1 and 0 not in counts:
            return True
    return False


def misfit_hint(
    widths: Sequence[int],
    header: Sequence[bytes],
    last_cells: Sequence[bytes],
    delimiter: str,
) -> str:
    """What rows are that do not fit the header, all in the same way; otherwise empty.

    Parameters
    ----------
    widths : sequence of int
        Cells of the rows behind the header.
    header : sequence of bytes
        The cells of the header, with their quotes.
    last_cells : sequence of bytes
        The last cell of each row.
    """
    width = len(header)
    quoted = quote_hint([cell.decode("utf-8", "replace") for cell in header])
    if quoted:
        return quoted
    other = delimiter_hint([cell.decode("utf-8", "replace") for cell in header])
    if other:
        return other
    if not header[-1] and all(size == width - 1 for size in widths):
        return f": the header ends with a {delimiter!r} that the rows lack; take it away there"
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


def quote_hint(names: Collection[str]) -> str:
    """What to do about a header whose names stand in single quotes; empty for any other."""
    if not names or any(
        len(name) < 2 or not name[0] == "'" == name[-1] for name in names
    ):
        return ""
    return '; its cells seem to be quoted by single quotes: say so (--quote "\'")'


def delimiter_hint(names: Collection[str]) -> str:
    """What to do about a header that is one name with a delimiter in it; empty for any other."""
    if len(names) != 1:
        return ""
    (only,) = names
    for delimiter, (name, typed) in _DELIMITERS.items():
        if delimiter in only:
            return (
                f"; its cells seem to be separated by {name}: "
                f"say so (--delimiter {typed})"
            )
    return ""


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


def _is_narrow_header(row: Sequence[str], width: int) -> bool:
    """Whether a row is a header that lacks the names of its last columns, and no title: it has
    different names for most of them.
    """
    names = [cell for cell in row if cell.strip()]
    is_first = row[: len(names)] == names
    return (
        is_first
        and len(set(names)) == len(names)
        and width / 2 < len(names) < width - 1
    )


def _are_names(row: Sequence[str]) -> bool:
    """Whether the cells of a row can be the names of columns.

    A name that comes twice is refused with the header: what stands below it is no header instead.
    """
    # The names of the rows often have no name themselves.
    has_first = bool(row[0].strip())
    return all(cell.strip() for cell in row[1:]) and (has_first or len(row) > 2)
