"""Small CSV files that a promise with confidence needs: known shares, and a list of symbols.

A list has the header of its columns and a symbol a line; shares have the header ``symbol,share``:

    education         symbol,share
    Bachelors         Husband,0.4
    Masters           Wife,0.6
    Doctorate

A list must be made without looking at the records, because intervals hold for a set of symbols that
was fixed before the sample; so a list that lacks a symbol of the table is refused. Useful symbols
may be on the list and not in the table, and `unseen_symbols` counts them. Of a sensitive value
without records nothing is known, so `check_secrets` refuses it.
"""

from __future__ import annotations

from collections.abc import Sequence

from mechdesign.core.arguments import repeated
from mechdesign.core.errors import FileError
from mechdesign.core.wording import listed, quoted
from mechdesign.formats.opening import all_rows, open_source
from mechdesign.tables.confidence import unprotected
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import Symbol, Variable


def unseen_symbols(path: str, joint: Joint) -> int:
    """How many useful symbols a list has that the table has not.

    Parameters
    ----------
    path : str
        The list, a CSV file with the useful columns, made without looking at the records.
    joint : Joint
        The table.

    Raises
    ------
    InputError
        If the list repeats a symbol, or lacks one of the table.
    """
    symbols = list(map(tuple, _rows(path, joint.useful.columns)))
    twice = repeated(symbols)
    if twice is not None:
        raise FileError(
            path, f"{path}: the symbol {quoted(', '.join(twice))} is listed twice"
        )
    _require_listed(path, symbols, joint.useful)
    # No symbol is listed twice and all of the table are listed, so the others are the difference.
    listed_only = len(symbols) - len(joint.useful)
    # A column of zeros names a symbol without records, too, which the file need not have.
    names = set(map(", ".join, symbols))
    table_only = set(joint.empty_useful) - names
    return listed_only + len(table_only)


def check_secrets(path: str, joint: Joint) -> None:
    """Compare a list of all sensitive values with the table.

    Parameters
    ----------
    path : str
        The list, a CSV file with the sensitive columns, made without looking at the records.
    joint : Joint
        The table.

    Raises
    ------
    InputError
        If the list lacks a value of the table, or names a value of which the table has no record.
    """
    symbols = list(map(tuple, _rows(path, joint.sensitive.columns)))
    _require_listed(path, symbols, joint.sensitive)
    without_records: list[str] = []
    for symbol in symbols:
        if symbol not in joint.sensitive.index:
            without_records.append(", ".join(symbol))
    if without_records:
        raise FileError(path, f"{path}: {unprotected(without_records)}")


def read_shares(path: str) -> dict[str, str]:
    """Known shares by symbol, as the texts that `confidence.check_shares` checks.

    The file is a CSV with the header ``symbol,share``.
    """
    rows = _rows(path, ("symbol", "share"))
    twice = repeated(symbol for symbol, _ in rows)
    if twice is not None:
        raise FileError(path, f"{path}: the share of {quoted(twice)} is given twice")
    return dict(rows)


def _rows(path: str, header: Sequence[str]) -> list[list[str]]:
    """The rows of a file that must have this header."""
    with open_source(path) as source:
        if list(source.header) != list(header):
            raise FileError(
                path, f"{path} must begin with the header {','.join(header)}"
            )
        return all_rows(source)


def _require_listed(path: str, symbols: Sequence[Symbol], variable: Variable) -> None:
    """Refuse a list that lacks a symbol of the table."""
    on_list = set(symbols)
    absent: list[str] = []
    for symbol in variable.symbols:
        if symbol not in on_list:
            absent.append(", ".join(symbol))
    if absent:
        raise FileError(
            path,
            f"{path} does not list {listed(absent)}, which the table has: confidence needs a list "
            "that was made without looking at the records",
        )
