"""Guesses at what a table is, for hints in messages: records, counts, or a missing header.

A guess decides nothing. It adds a sentence to an error or a notice, so each test here may be wrong
about an unusual file. The texts of two small files tell the kinds apart::

    job,yes,no        different labels, numbers behind them: `is_count_table`
    nurse,3,1
    clerk,0,2

    job,pain          a word in place of a number, or a label that occurs twice: `is_microdata`
    nurse,yes
    clerk,no

A header such as ``job,3`` has a number, so it may be a record without a header (`looks_like_data`).
Of counted records, `is_grid` suspects a count table in long form whose column of counts was not
named: most pairs of symbols then have one row, and none has two. `notices_of` warns of columns
whose own name is a symbol, whose symbols all begin with a blank, or differ in every record.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mechdesign.core.wording import listed
from mechdesign.tables.variable import Variable

FEWEST_RECORDS = 20
"""Fewest records of a suspected identifier: in fewer ones all values may differ by chance."""

# A decimal comma too: it is how many countries write the numbers of a count table.
_NUMBER = re.compile(r"\s*[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?\s*")


def is_grid(counts: Sequence[Sequence[int]]) -> bool:
    """Whether more than half of the pairs of symbols occur, and each once.

    Then the rows of the file are cells of a count table, and not records. `counts` are numbers of
    records, sensitive symbols by useful ones.
    """
    # A single row or column is no grid.
    if min(len(counts), len(counts[0])) < 2:
        return False
    if max(map(max, counts)) != 1:
        return False
    # All entries are 0 or 1, so their sum is the number of pairs that occur.
    occurring = sum(map(sum, counts))
    return 2 * occurring > len(counts) * len(counts[0])


def looks_like_data(header: Sequence[str]) -> bool:
    """Whether a line of names has a number or a repeated name, as a record may."""
    if len(set(header)) < len(header):
        return True
    return any(_is_number(name) for name in header)


def is_count_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether the rows are different labels with numbers behind them."""
    # Fewer than two rows or two columns of numbers are too little for a guess.
    if min(len(header) - 1, len(rows)) < 2:
        return False
    if any(_is_number(row[0]) for row in rows):
        return False
    return not is_microdata(rows)


def is_microdata(rows: Sequence[Sequence[str]]) -> bool:
    """Whether rows share their first cell, or have a word in place of a number, as records do."""
    first_cells = {row[0] for row in rows}
    if len(first_cells) < len(rows):
        return True
    # Cells behind the first one, which in a count table are all numbers.
    for row in rows:
        for cell in row[1:]:
            text = cell.strip().lower()
            # A count table may have empty cells and results of arithmetic as well.
            if text not in ("", "nan", "inf") and not _is_number(text):
                return True
    return False


def notices_of(variables: Sequence[Variable], records: int | None) -> tuple[str, ...]:
    """Notices about suspicious symbols in a file.

    Parameters
    ----------
    variables : sequence of Variable
        The variables of the file.
    records : int or None
        Its number of records, None if it has weights or probabilities.
    """
    named_like_symbol: list[str] = []
    blank_first: list[str] = []
    identifiers: list[str] = []
    for variable in variables:
        texts_by_column = zip(*variable.symbols, strict=True)
        for name, texts in zip(variable.columns, texts_by_column, strict=True):
            if name in texts:
                named_like_symbol.append(name)
            if all(text.startswith(" ") for text in texts):
                blank_first.append(name)
        # As many symbols as records: each record has its own. Rows of several columns often are
        # unique without an identifier among them, and bins of one column would not change that.
        is_column = len(variable.columns) == 1
        all_differ = records is not None and len(variable) == records >= FEWEST_RECORDS
        if is_column and all_differ:
            identifiers.append(",".join(variable.columns))
    notices: list[str] = []
    if named_like_symbol:
        notices.append(
            f"{listed(named_like_symbol)}: the name of the column is one of its symbols, too; if "
            "the first row of the file is a record, put a line with the names of the columns "
            "above it; if files were joined, take out the headers between their records"
        )
    if blank_first:
        notices.append(
            f"{listed(blank_first)}: every symbol begins with a blank, which belongs to it, also "
            "in files to release"
        )
    if identifiers:
        notices.append(
            f"{listed(identifiers)}: every record has another symbol, as an identifier has; bins "
            "or groups are more useful"
        )
    return tuple(notices)


def _is_number(text: str) -> bool:
    """Whether a text is a number, with a point or a comma."""
    return _NUMBER.fullmatch(text) is not None
