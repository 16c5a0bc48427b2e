"""Names of columns: the check that a column exists, with a hint when it does not.

`require_column` suggests the name that is most alike. If the header is one name with a delimiter in
it, the file was read with the wrong one, and `misread` says so:

    'rac' of age, race      did you mean 'race'?
    'age' of "age;race"     its cells seem to be separated by semicolons
    'age' of 'Survey 2024'  the first line looks like a title (of a `Header` that knows it)
"""

from __future__ import annotations

import csv
import difflib
import io
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from mechdesign.core.errors import InputError
from mechdesign.core.wording import listed, quoted
from mechdesign.formats.title_lines import delimiter_hint, quote_hint, title_hint

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


def require_column(name: str, available: Collection[Any]) -> None:
    """Refuse a column that does not exist, with the nearest name and all names."""
    if name in available:
        return
    columns = [str(column) for column in available]
    if str(name) in columns:
        raise _no_text(name)
    near = difflib.get_close_matches(str(name), columns, n=1, cutoff=ALIKE)
    suggestion = f"; did you mean {quoted(near[0])}?" if near else ""
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
