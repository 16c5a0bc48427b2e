"""What to settle about a file and its columns before a table is used; nothing is changed here.

*The text of a file.* A file that is read in the wrong way often fails with a message about
something else. So the first bytes are looked at as they are, and every symptom comes with the
option that settles it. For example, a file with a title, semicolons and accents in cp1252 has all
three, and is read with ``--encoding cp1252 --delimiter ';' --skip-lines 1``.

*The columns of a table*: identifiers, look-alikes, gaps. A code for a missing answer, such as -9 or
``?``, is a value like any other for a program, and a wrong one for everybody else. So are two
spellings of one word. Each symptom comes with the option that settles it; nothing is changed here.
"""

from __future__ import annotations

import codecs
import csv
import shlex
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import BinaryIO

from mechdesign.core.arguments import finite_number
from mechdesign.core.errors import FileError
from mechdesign.core.files import PathLike
from mechdesign.core.wording import listed, percent, seen
from mechdesign.formats.column_names import SNIFFED_LINES, lines_above_header
from mechdesign.formats.csv_quotes import (
    FEWEST_INSIDE,
    REMEDY,
    holding_records,
    records_inside,
)
from mechdesign.formats.csv_text import TextOptions, refuse_other_kinds
from mechdesign.formats.inputs import RawInput
from mechdesign.formats.spellings import alike_groups, alike_notice
from mechdesign.leaks.coded_table import CodedColumn, CodedTable
from mechdesign.tables.bin_edges import days_remedy
from mechdesign.tables.thousands import ThousandsPoints, has_decimal_commas

# ----------------------------------------------------------------------- text of a file

SNIFFED = 1 << 16
"""Bytes of a file that are looked at."""

_DELIMITERS = (",", ";", "\t", "|")

_WRITTEN = {"\t": "tab", ";": "';'", "|": "'|'", ",": "','"}
"""Delimiters as they are typed."""

SAME_WIDTH = 0.9
"""Share of the lines that must have the same number of cells if a delimiter is the right one."""


@dataclass(frozen=True)
class Symptom:
    """Something to settle before a table is used.

    Attributes
    ----------
    kind : str
        encoding, delimiter, title, identifier, sample, name, alike, header, quote, days, thousands,
        code, empty, people or series.
    column : str or None
        The column, where it is about one.
    text : str
        What it is.
    option : str or None
        The option that settles it, as it is typed.
    """

    kind: str
    column: str | None
    text: str
    option: str | None


def text_symptoms(path: PathLike, text: TextOptions | None = None) -> list[Symptom]:
    """What the first bytes of a CSV file say about how it should be read, in order.

    Nothing is said of files in other formats.

    Raises
    ------
    FileError
        If the file cannot be opened.
    """
    options = text or TextOptions()
    likely = likely_text(path, options)
    found: list[Symptom] = []
    if likely.encoding != options.encoding:
        found.append(
            Symptom(
                "encoding",
                None,
                f"the text is not {options.encoding}, and can be read as {likely.encoding}",
                f"--encoding {likely.encoding}",
            )
        )
    if likely.delimiter != options.delimiter:
        typed = _WRITTEN[likely.delimiter]
        found.append(
            Symptom(
                "delimiter",
                None,
                f"cells are separated by {typed}",
                f"--delimiter {typed}",
            )
        )
    if likely.skip_lines != options.skip_lines:
        above = likely.skip_lines
        noun = "line looks" if above == 1 else f"{above} lines look"
        found.append(
            Symptom(
                "title",
                None,
                f"the first {noun} like a title or a comment above the header",
                f"--skip-lines {above}",
            )
        )
    return found


def likely_text(
    source: PathLike | BinaryIO,
    text: TextOptions | None = None,
    *,
    name: str | None = None,
) -> TextOptions:
    """How a CSV file is probably written, by its first bytes: as `text` says, where these agree.

    Of files in other formats `text` is returned, and the defaults without it.

    Raises
    ------
    FileError
        If the file cannot be opened.
    """
    options = text or TextOptions()
    raw = RawInput(source, name)
    with closing(raw):
        if raw.is_parquet or raw.statistics is not None:
            return options
        _, stream = raw.from_start()
        head = stream.read(SNIFFED)
    if not head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        try:
            refuse_other_kinds(raw.name, head)
        except FileError:
            # Whoever reads the file gets this error, and no option makes it a CSV.
            return options
    encoding = _encoding_of(head, options.encoding)
    if codecs.lookup(encoding).name == codecs.lookup(options.encoding).name:
        encoding = options.encoding
    lines = head.decode(encoding, "replace").lstrip("\ufeff")
    delimiter = _delimiter_of(lines, options)
    skip_lines = options.skip_lines
    if not skip_lines:
        skip_lines = lines_above_header(lines.encode(), delimiter, options.quote)
    return replace(
        options, encoding=encoding, delimiter=delimiter, skip_lines=skip_lines
    )


def _encoding_of(head: bytes, asked: str) -> str:
    """The encoding that was asked for if the bytes are such text, or else a likely one."""
    for mark, name in (
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if head.startswith(mark) and not asked.lower().startswith(("utf-16", "utf_16")):
            return name
    if _decodes(head, asked):
        return asked
    # Text that is valid UTF-8 by chance is next to impossible. cp1252 is what Windows writes, and
    # it lacks five bytes; latin-1 takes every byte.
    for name in ("utf-8", "cp1252"):
        if _decodes(head, name):
            return name
    return "latin-1"


def _decodes(head: bytes, encoding: str) -> bool:
    """Whether bytes are text in an encoding, but for half of a character at their end."""
    try:
        codecs.getincrementaldecoder(encoding)().decode(head)
    except UnicodeError:
        return False
    return True


def _delimiter_of(text: str, options: TextOptions) -> str:
    """The delimiter that was asked for if it separates anything, or else the one that does."""
    lines = [line for line in text.splitlines() if line.strip()][:SNIFFED_LINES]
    # The last line may be cut.
    if len(lines) > 2:
        lines = lines[:-1]
    if _width(lines, options.delimiter, options.quote) > 1:
        return options.delimiter
    widths: dict[str, int] = {}
    for delimiter in _DELIMITERS:
        if delimiter != options.quote:
            widths[delimiter] = _width(lines, delimiter, options.quote)
    best = max(widths, key=lambda delimiter: widths[delimiter], default=",")
    return best if widths.get(best, 1) > 1 else options.delimiter


def _width(lines: list[str], delimiter: str, quote: str | None) -> int:
    """The number of cells that nearly all lines have; 1 if they have different ones."""
    quoting = csv.QUOTE_NONE if quote is None else csv.QUOTE_MINIMAL
    widths: Counter[int] = Counter()
    for line in lines:
        reader = csv.reader(
            [line], delimiter=delimiter, quotechar=quote or '"', quoting=quoting
        )
        try:
            widths[len(next(reader))] += 1
        except (csv.Error, StopIteration):
            continue
    if not widths:
        return 1
    width, times = widths.most_common(1)[0]
    # Titles are few lines of many.
    allowed = SAME_WIDTH * widths.total() if widths.total() > 9 else widths.total() / 2
    return width if times >= allowed else 1


# ------------------------------------------------------------------- columns of a table

WORDS = frozenset(
    (
        *("?", ".", "-", "--", "*", "#"),
        *("na", "n/a", "#n/a", "<na>", "nan", "null"),
        *("missing", "(missing)", "unknown"),
    )
)
"""Texts that say in any column that a value is missing, in lower case."""

PYTHON_NONE = "None"
"""What a program of Python writes for a missing value; ``none`` is often an answer."""

NEGATIVE = ("-9", "-99", "-999", "-9999", "-1", "-8", "-7")
"""Codes of missing numbers, where all other numbers are at least 0."""

NINES = ("99", "999", "9999", "99999")
"""Codes of missing numbers, where they are far above all other numbers."""

MOST_COMPARED = 100_000
"""Different values above which a column is not searched for look-alikes."""


def table_symptoms(
    table: CodedTable, identifiers: Sequence[str], missing: str
) -> list[Symptom]:
    """The symptoms of all columns, kind by kind.

    `identifiers` are the columns that name records, whose values are not looked at. `missing` is
    what becomes of empty cells: 'symbol' or 'drop'.
    """
    others = [
        column for name, column in table.columns.items() if name not in identifiers
    ]
    compared = [column for column in others if len(column.values) <= MOST_COMPARED]
    return [
        *_identifier_symptoms(table, identifiers),
        *_name_symptoms([*table.columns]),
        *_alike_symptoms(compared),
        *_header_symptoms(compared),
        *_quote_symptoms(compared, len(table.columns)),
        *_days_symptoms(compared),
        *_thousands_symptoms(compared),
        *_code_symptoms(others),
        *_empty_symptoms(others, table.records, missing),
    ]


def _identifier_symptoms(
    table: CodedTable, identifiers: Sequence[str]
) -> list[Symptom]:
    """Columns that name records, and those of which a sample of the values is held."""
    found: list[Symptom] = []
    for name in identifiers:
        found.append(
            Symptom(
                "identifier",
                name,
                f"nearly every record has a value of its own in {seen(name)}: leave it out, sort "
                "numbers into bins (--bin), or draw by it",
                f"apply --identity {shlex.quote(name)}",
            )
        )
        one_in = table.columns[name].one_in
        if one_in > 1:
            found.append(
                Symptom(
                    "sample",
                    name,
                    f"{seen(name)} has too many values to hold: what is said of it rests on the "
                    f"records of one in {one_in} of them, and its numbers of values are estimates",
                    None,
                )
            )
    return found


def _alike_symptoms(columns: Sequence[CodedColumn]) -> list[Symptom]:
    """Columns with different values that look alike."""
    found: list[Symptom] = []
    for column in columns:
        if alike_groups(column.values):
            notice = alike_notice(column.name, column.values) or ""
            text, _, remedy = notice.rpartition("; ")
            found.append(Symptom("alike", column.name, text, remedy))
    return found


def _header_symptoms(columns: Sequence[CodedColumn]) -> list[Symptom]:
    """Columns whose own names are among their values."""
    names = [column.name for column in columns if column.name in column.values]
    # Of one column it may be chance: 'other', say.
    if len(names) < 2:
        return []
    return [
        Symptom(
            "header",
            None,
            f"the names of the columns {listed(names)} are values there, as where files were "
            "joined: take out the headers between their records",
            None,
        )
    ]


def _quote_symptoms(columns: Sequence[CodedColumn], width: int) -> list[Symptom]:
    """Columns whose quotes are a part of the values, and columns with a cell that holds whole
    records, where a quote opens that is closed far below.
    """
    found: list[Symptom] = []
    for column in columns:
        if column.values and all(_is_quoted(value) for value in column.values):
            found.append(
                Symptom(
                    "quote",
                    column.name,
                    f"the values of {seen(column.name)} have quotes around them, as where a blank "
                    "stands before an opening quote",
                    "take the blanks between delimiters and quotes out of the file",
                )
            )
        lines = max(
            (records_inside(value, width, _DELIMITERS) for value in column.values),
            default=0,
        )
        if lines >= FEWEST_INSIDE:
            found.append(
                Symptom(
                    "quote",
                    column.name,
                    f"a cell of {seen(column.name)} {holding_records(lines)}",
                    REMEDY,
                )
            )
    return found


def _is_quoted(value: str) -> bool:
    """Whether a value stands between two quotes, but for blanks."""
    inner = value.strip()
    return len(inner) > 1 and inner[0] == inner[-1] == '"'


def _days_symptoms(columns: Sequence[CodedColumn]) -> list[Symptom]:
    """Columns of numbers that are days."""
    found: list[Symptom] = []
    for column in columns:
        remedy = days_remedy(filter(None, column.values))
        if remedy is not None and len(column.values) > 1:
            found.append(
                Symptom(
                    "days",
                    column.name,
                    f"{seen(column.name)} has numbers {remedy}",
                    None,
                )
            )
    return found


def _code_symptoms(columns: Sequence[CodedColumn]) -> list[Symptom]:
    """Columns with values that look like codes of missing ones."""
    found: list[Symptom] = []
    for column in columns:
        codes = missing_codes(column)
        if codes:
            found.append(
                Symptom(
                    "code",
                    column.name,
                    f"values of {seen(column.name)} look like codes of missing ones "
                    f"({listed(codes)})",
                    # A shell reads a question mark as any file name of one letter.
                    f"--missing-codes={shlex.quote(','.join(codes))} (then --missing)",
                )
            )
    return found


def _empty_symptoms(
    columns: Sequence[CodedColumn], records: int, missing: str
) -> list[Symptom]:
    """Columns with empty cells, and what becomes of these."""
    found: list[Symptom] = []
    effect = "which count as one value here"
    if missing == "drop":
        effect = "and these records are left out"
    for column in columns:
        empty = _empty_cells(column)
        if empty:
            share = empty / records
            cells = "empty cell" if empty == 1 else "empty cells"
            found.append(
                Symptom(
                    "empty",
                    column.name,
                    f"{seen(column.name)} has {empty:,} {cells} ({percent(share)} of the "
                    f"records), {effect}",
                    "--missing drop, symbol or marginal",
                )
            )
    return found


def _name_symptoms(names: Sequence[str]) -> list[Symptom]:
    """Names of columns with characters that nobody sees, or that look like another name."""
    alike = {name for group in alike_groups(names) for name in group}
    found: list[Symptom] = []
    for name in names:
        # What is shown escaped cannot be typed.
        is_hidden = seen(name) != f"'{name}'"
        if is_hidden or name in alike:
            what = "has characters that are hard to see or to type"
            if not is_hidden:
                what = "looks like that of another column"
            found.append(
                Symptom(
                    "name",
                    name,
                    f"the name of the column {seen(name)} {what}: write it anew in the table",
                    None,
                )
            )
    return found


def _thousands_symptoms(columns: Sequence[CodedColumn]) -> list[Symptom]:
    """Columns whose points look like separators of thousands."""
    commas = [has_decimal_commas(column.values) for column in columns]
    found: list[Symptom] = []
    for column in columns:
        points = ThousandsPoints()
        points.add(column.values)
        remedy = points.remedy(has_decimal_commas=any(commas))
        if remedy is not None:
            text = f"{seen(column.name)} has numbers {remedy}"
            found.append(Symptom("thousands", column.name, text, None))
    return found


def missing_codes(column: CodedColumn) -> list[str]:
    """The values of a column that look like codes of missing ones."""
    words: list[str] = []
    numbers: dict[str, float] = {}
    all_numbers = True
    for value in column.values:
        text = value.strip()
        number = finite_number(text)
        if text.lower() in WORDS or text == PYTHON_NONE:
            words.append(value)
        elif number is not None:
            numbers[value] = number
        elif text:
            all_numbers = False
    # Beside other texts a number is one of them.
    return words + _number_codes(numbers) if all_numbers else words


def _number_codes(numbers: dict[str, float]) -> list[str]:
    """The codes of missing values among numbers."""
    found: list[str] = []
    others = {text: value for text, value in numbers.items() if text not in NEGATIVE}
    # -1 is a number like others where there are others below zero, and codes come with numbers.
    if others and min(others.values()) >= 0.0 and len(others) > 1:
        found += [text for text in numbers if text in NEGATIVE]
    rest = sorted(value for text, value in others.items() if text not in NINES)
    for text in others:
        if text not in NINES or len(rest) < 2:
            continue
        # Farther away than all others lie from each other.
        if others[text] - rest[-1] > rest[-1] - rest[0]:
            found.append(text)
    return found


def _empty_cells(column: CodedColumn) -> int:
    """How many cells of a column are empty."""
    if "" not in column.values:
        return 0
    return int(column.counts()[column.values.index("")])
