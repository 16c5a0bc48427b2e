"""The header of a table: names of columns with hints, and lines above it that are none.

*Names.* `require_column` suggests the name that is most alike. If the header is one name with a
delimiter in it, the file was read with the wrong one, and `misread` says so:

    'rac' of age, race      did you mean 'race'?
    'age' of "age\u200b"    '\u200b' is no part of the name that anybody sees: write it anew
    'age' of "age;race"     its cells seem to be separated by semicolons
    'age' of 'Survey 2024'  the first line looks like a title (of a `Header` that knows it)

*Lines above the header.* Exports often begin with a title, and some rows have one cell more than
the header. Nothing of this is guessed silently: `--skip-lines` says how many lines to pass over,
and messages name the number that `lines_above_header` finds. For example, of

    Survey 2024
    job,region
    clerk,n
    baker,s

most lines have two cells, and the first of them with two names is the second line: one is above it.
"""

from __future__ import annotations

import csv
import difflib
import io
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from mechdesign.core.errors import InputError
from mechdesign.core.wording import listed, look, quoted

# --------------------------------------------------------------- lines above the header

SNIFFED_LINES = 60
"""Lines that decide where the header is."""

LINES_ALIKE = 2 / 3
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


EXCEL_SEPARATOR = re.compile(r'"?sep=(.)', re.IGNORECASE)
"""A first line that is no header: it says to Excel what separates cells."""


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
            return place if below.count(width) >= LINES_ALIKE * len(below) else 0
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


IN_SINGLE_QUOTES = (
    '; its cells seem to be quoted by single quotes: say so (--quote "\'")'
)


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
    # A comma in the line for Excel has divided it.
    if EXCEL_SEPARATOR.match(header[0].decode("utf-8", "replace") + delimiter):
        return title_hint(1)
    if not header[-1] and all(size == width - 1 for size in widths):
        return f": the header ends with a {delimiter!r} that the rows lack; take it away there"
    if not widths or any(size != width + 1 for size in widths):
        return ""
    if not any(last_cells):
        return (
            f": every row ends with a {delimiter!r} that the header lacks; put one at the end of "
            "the header, too"
        )
    # A delimiter within single quotes has divided the last cell.
    if all(cell[-1:] == b"'" != cell[:1] for cell in last_cells):
        return IN_SINGLE_QUOTES
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
    return IN_SINGLE_QUOTES


def delimiter_hint(names: Collection[str]) -> str:
    """What to do about a header that is one name with a delimiter in it; empty for any other."""
    if len(names) != 1:
        return ""
    (only,) = names
    excel = EXCEL_SEPARATOR.match(only)
    if excel is not None and excel[1] in _DELIMITERS:
        _, typed = _DELIMITERS[excel[1]]
        return (
            "; the first line tells Excel the separator, and the header is the second one: skip it "
            f"(--skip-lines 1), and say what separates cells (--delimiter {typed})"
        )
    delimiter = delimiter_within(only)
    if delimiter is None:
        return ""
    name, typed = _DELIMITERS[delimiter]
    return f"; its cells seem to be separated by {name}: say so (--delimiter {typed})"


def delimiter_within(name: str) -> str | None:
    """The usual delimiter in the only name of a header; None if there is none."""
    return next((delimiter for delimiter in _DELIMITERS if delimiter in name), None)


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
    """Whether a row is a header that lacks the names of some columns, and no title: it has
    different names for most of them, and three at least, because a title may have two parts.
    """
    names = [cell for cell in row if cell.strip()]
    return len(set(names)) == len(names) and max(2, width / 2) < len(names) < width


def _are_names(row: Sequence[str]) -> bool:
    """Whether the cells of a row can be the names of columns.

    A name that comes twice is refused with the header: what stands below it is no header instead.
    """
    # The names of the rows often have no name themselves.
    has_first = bool(row[0].strip())
    return all(cell.strip() for cell in row[1:]) and (has_first or len(row) > 2)


# -------------------------------------------------------------------------------- names

ALIKE = 0.65
"""Least likeness (difflib) of a suggested name: 'rac' is like 'race', 'nope' (0.6) is not like
'income'."""


TEXT_NAMES = "frame.columns = frame.columns.map(str)"
"""What makes texts of the names of a pandas table."""


class Header(list[str]):
    """The names of the columns of a file, which may be a title instead.

    Attributes
    ----------
    lines_above : int
        How many lines, this one among them, look like a title or a comment above the header.
    """

    def __init__(self, names: Iterable[str], lines_above: int) -> None:
        super().__init__(names)
        self.lines_above = lines_above


def names_text(names: Sequence[str]) -> str:
    """Names as ``--sensitive`` takes them: like a CSV line where a name has a comma or a quote."""
    if len(names) == 1 and '"' not in names[0]:
        return names[0]
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(names)
    return line.getvalue()


def misread(header: Collection[Any]) -> str:
    """A hint for a header that is a title, has quotes, or is one name with a delimiter in it."""
    if isinstance(header, Header) and quote_hint(header):
        return quote_hint(header)
    if isinstance(header, Header) and header.lines_above:
        return title_hint(header.lines_above)
    return delimiter_hint([str(name) for name in header])


def _quoting_hint(name: str, columns: Collection[str]) -> str:
    """How a name with a comma is written, if `name` is a part of one; otherwise empty."""
    for column in columns:
        parts = column.split(",")
        if len(parts) > 1 and name.strip() in {part.strip() for part in parts}:
            written = column.replace('"', '""')
            typed = f"'\"{written}\"'"
            return f"; a name with a comma is written in double quotes among others: {typed}"
    return ""


def require_text_names(names: Iterable[Any]) -> None:
    """Refuse names that are no texts, such as the numbers that pandas gives by itself."""
    for name in names:
        if not isinstance(name, str):
            raise _no_text(name)


def _no_text(name: Any) -> InputError:
    return InputError(
        f"the name of the column {quoted(str(name))} is no text in this table: give its columns "
        f"names that are texts ({TEXT_NAMES})"
    )


def require_columns(names: Iterable[str], available: Collection[Any]) -> None:
    """Refuse columns of which one does not exist."""
    # A search through thousands of names for each of thousands would take seconds.
    there = dict.fromkeys(available)
    for name in names:
        if name not in there:
            # A header knows what was misread in it.
            require_column(name, available)


def require_column(name: str, available: Collection[Any]) -> None:
    """Refuse a column that does not exist, with the nearest name and all names."""
    if name in available:
        return
    columns = [str(column) for column in available]
    if str(name) in columns:
        raise _no_text(name)
    near = difflib.get_close_matches(str(name), columns, n=1, cutoff=ALIKE)
    suggestion = f"; did you mean {quoted(near[0])}?" if near else ""
    alike = [column for column in columns if look(column) == look(str(name))]
    if alike:
        suggestion = (
            f"; {quoted(alike[0])} looks nearly the same, and has characters that are hard to see "
            "or to type: write that name anew in the table"
        )
    if not suggestion:
        suggestion = _quoting_hint(str(name), columns)
    if len(columns) == 1 and str(name) in columns[0].split(" "):
        suggestion = (
            "; its cells seem to be separated by blanks: write commas in their place "
            "(tr -s ' ' ',')"
        )
    raise InputError(
        f"there is no column {quoted(name)}{suggestion} (columns: {listed(columns, 20)})"
        f"{misread(available)}"
    )
