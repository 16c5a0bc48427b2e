"""What to settle about the columns of a table before it is used: identifiers, look-alikes, gaps.

A code for a missing answer, such as -9 or ``?``, is a value like any other for a program, and a
wrong one for everybody else. So are two spellings of one word. Each symptom comes with the option
that settles it; nothing is changed here.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence

import numpy as np

from mechdesign.core.wording import listed, seen
from mechdesign.formats.alike import alike_groups, alike_notice
from mechdesign.formats.text_doctor import Symptom
from mechdesign.leaks.coded_table import CodedColumn, CodedTable

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
    others = [
        column for name, column in table.columns.items() if name not in identifiers
    ]
    for column in others:
        if len(column.values) <= MOST_COMPARED and alike_groups(column.values):
            notice = alike_notice(column.name, column.values) or ""
            text, _, remedy = notice.rpartition("; ")
            found.append(Symptom("alike", column.name, text, remedy))
    for column in others:
        codes = missing_codes(column)
        if codes:
            found.append(
                Symptom(
                    "code",
                    column.name,
                    f"values of {seen(column.name)} look like codes of missing ones "
                    f"({listed(codes)})",
                    f"--missing-codes={','.join(codes)} (then --missing)",
                )
            )
    effect = "which count as one value here"
    if missing == "drop":
        effect = "and these records are left out"
    for column in others:
        empty = _empty_cells(column)
        if empty:
            share = empty / table.records
            cells = "empty cell" if empty == 1 else "empty cells"
            found.append(
                Symptom(
                    "empty",
                    column.name,
                    f"{seen(column.name)} has {empty:,} {cells} ({share:.1%} of the records), "
                    f"{effect}",
                    "--missing drop, symbol or marginal",
                )
            )
    return found


def missing_codes(column: CodedColumn) -> list[str]:
    """The values of a column that look like codes of missing ones."""
    words: list[str] = []
    numbers: dict[str, float] = {}
    all_numbers = True
    for value in column.values:
        text = value.strip()
        number = _number(text)
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


def _number(text: str) -> float | None:
    """A text as a finite number, None if it is none."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _empty_cells(column: CodedColumn) -> int:
    """How many cells of a column are empty."""
    if "" not in column.values:
        return 0
    return int(np.count_nonzero(column.codes == column.values.index("")))
