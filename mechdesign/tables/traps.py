"""What makes a table another one than its owner means: margins, files without a header, blanks after the commas."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mechdesign.core.errors import InputError
from mechdesign.core.numbers import listed, quoted
from mechdesign.tables.variable import Variable

MARGINS = re.compile("all|(grand )?total|totals|sum|overall|alle|gesamt|insgesamt|summe|ensemble")
"""What pivot tables call the sum of the others, in small letters."""

NEARLY = 0.01
"""A named margin may miss the sum of the others by this share: offices round each cell for itself."""

FEWEST = 3
"""Of fewer symbols one is the sum of the others whenever two are alike."""

FEWEST_RECORDS = 20
"""In fewer records all values may differ by chance."""

_NUMBER = re.compile(r"\s*[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?\s*")


def refuse_margins(
    sensitive: Variable, useful: Variable, counts: Sequence[Sequence[int]], *, unnamed: bool = False
) -> None:
    """Refuse a row or column that is the sum of the others: if it is called so, or, if `unnamed`, whatever its name."""
    columns = [*zip(*counts, strict=True)]
    for what, variable, lines in (("row", sensitive, counts), ("column", useful, columns)):
        totals = [sum(line) for line in zip(*lines, strict=True)]
        for name, line in zip(variable.names, lines, strict=True):
            named = MARGINS.fullmatch(name.strip().lower()) is not None
            share = NEARLY if named else 0.0
            if (named or (unnamed and len(lines) >= FEWEST)) and all(
                abs(2 * entry - total) <= share * entry for entry, total in zip(line, totals, strict=True)
            ):
                way = (
                    "a symbol of this name needs another"
                    if named
                    else "a symbol needs the long form, --weight"
                )
                raise InputError(
                    f"the {what} {quoted(name)} is the sum of the other {what}s, a margin that would count everybody "
                    f"twice; remove it ({way})"
                )


def looks_like_data(header: Sequence[str]) -> bool:
    """Whether a line of names holds a number, or a name twice: then it is a record more likely."""
    return len(set(header)) < len(header) or any(map(_NUMBER.fullmatch, header))


def is_count_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether the rows are labels, all different, with numbers behind them."""
    labels = (row[0] for row in rows)
    return (
        min(len(header) - 1, len(rows)) > 1
        and not any(map(_NUMBER.fullmatch, labels))
        and not is_microdata(rows)
    )


def is_microdata(rows: Sequence[Sequence[str]]) -> bool:
    """Whether rows begin alike, or have a word in the place of a number: then they are records more likely."""
    cells = {cell.strip().lower() for row in rows for cell in row[1:]} - {"", "nan", "inf"}
    return len({row[0] for row in rows}) < len(rows) or not all(map(_NUMBER.fullmatch, cells))


def notices_of(variables: Sequence[Variable], records: int | None) -> tuple[str, ...]:
    """What is worth a look in the symbols of a file of so many records."""
    columns = [pair for v in variables for pair in zip(v.columns, zip(*v.symbols, strict=True), strict=True)]
    found = {
        "the name of the column is one of its symbols, too; if the first row of the file is a record, put a line with "
        "the names of the columns above it": [name for name, symbols in columns if name in symbols],
        "every symbol begins with a blank, which belongs to it, also in files to release": [
            name for name, symbols in columns if all(symbol[:1] == " " for symbol in symbols)
        ],
        "every record has another symbol, as an identifier has; bins or groups tell more": [
            ",".join(v.columns)
            for v in variables
            if records is not None and len(v) == records >= FEWEST_RECORDS
        ],
    }
    return tuple(f"{listed(names)}: {text}" for text, names in found.items() if names)
