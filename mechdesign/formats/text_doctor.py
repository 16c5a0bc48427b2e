"""What is wrong with how a CSV file is read: its encoding, its delimiter, lines above its header.

A file that is read in the wrong way often fails with a message about something else. So the first
bytes are looked at as they are, and every symptom comes with the option that settles it. For
example, a file with a title, semicolons and accents in cp1252 has all three, and is read with
``--encoding cp1252 --delimiter ';' --skip-lines 1``.
"""

from __future__ import annotations

import codecs
import csv
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, replace
from typing import BinaryIO

from mechdesign.core.errors import FileError
from mechdesign.core.files import PathLike
from mechdesign.formats.inputs import RawInput
from mechdesign.formats.other_kinds import refuse_other_kinds
from mechdesign.formats.text_options import TextOptions
from mechdesign.formats.title_lines import SNIFFED_LINES, lines_above_header

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
        encoding, delimiter, title, identifier, alike, code, empty or people.
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
