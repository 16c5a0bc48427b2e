"""What makes a table another one than its owner means: margins, files without a header, blanks after the commas."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mechdesign.core.errors import InputError
from mechdesign.core.numbers import listed, quoted
from mechdesign.tables.variable import Variable

MARGINS = frozenset(
    (
        "all",
        "total",
        "totals",
        "grand total",
        "sum",
        "overall",
        "alle",
        "gesamt",
        "insgesamt",
        "summe",
        "ensemble",
    )
)
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
    """Refuse a row or column that is the sum of the others: if it is called so, or, if `unnamed`, whatever its name.

    Raises
    ------
    InputError
        Naming it and the way out.
    """
    columns = list(zip(*counts, strict=True))
    for what, variable, lines in (("row", sensitive, counts), ("column", useful, columns)):
        totals = [sum(line) for line in zip(*lines, strict=True)]
        for name, line in zip(variable.names, lines, strict=True):
            rests = [total - entry for total, entry in zip(totals, line, strict=True)]
            if name.strip().lower() in MARGINS:
                slack = [max(1.0, NEARLY * entry) if entry > FEWEST else 0.0 for entry in line]
                way = "remove it (a symbol that is really called so needs another name)"
            elif unnamed and len(lines) >= FEWEST:
                slack, way = (
                    [0.0] * len(line),
                    "remove it (if it is a symbol, give the table in long form: --weight)",
                )
            else:
                continue
            if all(abs(e - rest) <= s for e, rest, s in zip(line, rests, slack, strict=True)):
                raise InputError(
                    f"the {what} {quoted(name)} is the sum of the other {what}s, a margin that would count everybody "
                    f"twice; {way}"
                )


def looks_like_data(header: Sequence[str]) -> bool:
    """Whether a line of names holds a number, or a name twice: then it is a record more likely."""
    return len(set(header)) < len(header) or any(_NUMBER.fullmatch(name) for name in header)


def is_count_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether the rows are labels, all different, with numbers behind them."""
    labels = {row[0] for row in rows}
    return (
        len(header) > 2
        and len(labels) == len(rows) > 1
        and not any(map(_NUMBER.fullmatch, labels))
        and not is_microdata(rows)
    )


def is_microdata(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the rows begin alike, or with a word in the place of a number: then they are records more likely."""
    words = (cell for row in rows for cell in row[1:] if not _NUMBER.fullmatch(cell))
    return len({row[0] for row in rows}) < len(rows) or any(
        cell.strip().lower() not in ("", "nan", "inf") for cell in words
    )


def notices_of(variables: Sequence[Variable], records: int | None) -> tuple[str, ...]:
    """What is worth a look in the symbols of a file of so many records."""
    columns = [
        (name, symbols)
        for variable in variables
        for name, symbols in zip(variable.columns, zip(*variable.symbols, strict=True), strict=True)
    ]
    headless = [name for name, symbols in columns if name in symbols]
    padded = [name for name, symbols in columns if all(symbol[:1] == " " for symbol in symbols)]
    found: list[str] = []
    if headless:
        found.append(
            f"{listed(headless)}: the name of the column is one of its symbols, too; if the first row of the file is a "
            "record, put a line with the names of the columns above it"
        )
    if padded:
        found.append(
            f"{listed(padded)}: every symbol begins with a blank, which belongs to it, also in files to release"
        )
    found += [
        f"{listed(variable.columns)}: every record has another symbol, as an identifier has; bins or groups tell more"
        for variable in variables
        if len(variable) == records >= FEWEST_RECORDS
    ]
    return tuple(found)
