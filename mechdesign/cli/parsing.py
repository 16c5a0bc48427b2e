"""Turns typed text into numbers, columns, symbols and averages, or refuses it in one sentence.

Each function takes the text of one option, or the texts of an option that may be repeated, and
raises InputError with the name of that option. Names and symbols may hold the signs of the syntax,
so each function says at which sign it cuts: ``--bin a=b=0,10,20`` at the last "=", because bins
have none, and ``--forbid a:b:c`` where both parts are symbols of the table. `parsing_budgets` reads
the options of budgets.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from typing import Any

from mechdesign.core.errors import InputError


def number(option: str, text: str, *, zero: bool = False) -> float:
    """A finite positive number, or 0 where `zero` allows it."""
    try:
        value = float(text)
    except ValueError:
        # Fails every comparison below, so a word is refused like a number out of range.
        value = math.nan
    if not (0.0 < value < math.inf or (value == 0.0 and zero)):
        allowed = "a positive number"
        if zero:
            allowed = "a number of at least 0"
        raise InputError(f"{option} ({text!r}) must be {allowed}")
    return value


def averages_of(texts: Sequence[str], keep: str | None = None) -> dict[str, str | None]:
    """KIND=BUDGET, once or several times, as the mapping that `mechdesign.design` takes; KIND alone
    with `keep`.
    """
    asked: dict[str, str | None] = {}
    for text in texts:
        kind, budget = _average_of(text, keep)
        if kind in asked:
            raise InputError(f"--average {kind} is given twice: leave one of them out")
        asked[kind] = budget
    if keep is not None and len(asked) > 1:
        raise InputError(
            "--keep looks for the least average of one kind: give --average once"
        )
    return asked


def _average_of(text: str, keep: str | None) -> tuple[str, str | None]:
    """The kind and the budget of one --average; no budget where --keep looks for the least."""
    kind, equals, budget = text.partition("=")
    if keep is None:
        if not equals:
            raise InputError(
                f"--average ({text}) must be KIND=BUDGET, as in mi=0.05 or mi=25%; KIND alone goes "
                "with --keep SHARE"
            )
        return kind, budget
    if equals:
        raise InputError(
            f"--keep looks for the least average: leave the budget out (--average {kind} --keep "
            f"{keep})"
        )
    return kind, None


def columns(option: str, text: str | None) -> str | tuple[str, ...] | None:
    """A list of columns in the form that `tables.read_joint` takes.

    A text without a double quote stays as it is: the reader first looks for a column of that very
    name, and else splits it at its commas. With one it is read like a CSV line, so that names with
    commas can be crossed.
    """
    if text is None:
        return None
    quoted = '"' in text
    try:
        # Only a quote makes the text CSV; a lone quote in it is an error, and not part of a name.
        names = text.split(",")
        if quoted:
            names = next(csv.reader([text], strict=True))
    except csv.Error as error:
        raise InputError(
            f'{option} {text!r} cannot be read ({error}); write COL, or COL,COL, or "a name, '
            f'with a comma"'
        ) from None
    if "" in names:
        raise InputError(f"{option} {text!r} contains an empty column name")
    if len(set(names)) < len(names):
        raise InputError(f"{option} {text!r} names a column twice")
    if not quoted:
        return text
    return tuple(names)


def codes(text: str | None) -> tuple[str, ...]:
    """The texts of --missing-codes; double quotes hold one with a comma."""
    if text is None:
        return ()
    try:
        found = next(csv.reader([text], strict=True))
    except (csv.Error, StopIteration):
        raise InputError(
            f"--missing-codes {text!r} cannot be read; write TEXT, or TEXT,TEXT"
        ) from None
    return tuple(code for code in found if code)


def names(option: str, texts: Sequence[str] | None) -> tuple[str, ...]:
    """Columns from all values of an option COL[,COL..]."""
    # There may be no table yet that has a column "a,b", so an unquoted comma always separates.
    members: list[str] = []
    for text in texts or ():
        typed = columns(option, text)
        if isinstance(typed, str):
            members += typed.split(",")
        elif typed is not None:
            members += typed
    return tuple(members)


def renamed(pairs: Sequence[str] | None) -> dict[str, str]:
    """Pairs NAME=COL as a mapping."""
    names: dict[str, str] = {}
    for pair in pairs or ():
        name, equals, column = pair.partition("=")
        if not (name and equals and column):
            raise InputError(
                f"--column {pair!r} must be NAME=COL: the channel's name, then the file's"
            )
        if name in names:
            raise InputError(f"--column names {name!r} twice")
        names[name] = column
    return names


def bins_of(texts: Sequence[str] | None) -> Any:
    """The argument of `Joint.binned` for the values of ``--bin [COL=]BINS``."""
    if not texts:
        return None
    # "a=b=0,10,20" are bins of the column a=b, and "0,10,20" of the one column that there is. Bins
    # hold no sign "=", so the last one ends the name.
    pairs = [text.rpartition("=") for text in texts]
    if len(texts) == 1 and not pairs[0][1]:
        return texts[0]
    for name, equals, _ in pairs:
        if not (name and equals):
            raise InputError("several --bin must each say their column: --bin COL=BINS")
    if len({name for name, _, _ in pairs}) < len(pairs):
        raise InputError("--bin names a column twice")
    return {name: bins for name, _, bins in pairs}


def stays_of(
    texts: Sequence[str] | None, symbols: Sequence[str]
) -> dict[str, str] | None:
    """The share of each symbol from values of --stay.

    A value without a symbol is for all symbols that have none of their own.
    """
    common: str | None = None
    single: dict[str, str] = {}
    for text in texts or ():
        # A share has no "=", so the last one ends the symbol.
        symbol, equals, share = text.rpartition("=")
        is_repeated = common is not None
        if equals:
            is_repeated = symbol in single
        if is_repeated:
            raise InputError(
                "--stay gives a share twice; SHARE once for all, and SYMBOL=SHARE once for each"
            )
        if equals:
            single[symbol] = share
        else:
            common = share
    # First the share of all symbols, then over it those of single ones.
    stays: dict[str, str] = {}
    if common is not None:
        stays = dict.fromkeys(symbols, common)
    stays.update(single)
    return stays or None


def pairs_of(
    texts: Sequence[str] | None, symbols: Sequence[str]
) -> list[tuple[str, str]]:
    """Pairs FROM:TO; a symbol may contain colons itself."""
    # "a:b:c" can be a to "b:c", or "a:b" to c: the symbols of the table decide.
    known_symbols = set(symbols)
    pairs: list[tuple[str, str]] = []
    for text in texts or ():
        readings: list[tuple[str, str]] = []
        for place, sign in enumerate(text):
            if sign == ":":
                readings.append((text[:place], text[place + 1 :]))
        if not readings:
            raise InputError(
                f"--forbid {text!r} must be FROM:TO, two symbols with a colon between them"
            )
        fitting = [pair for pair in readings if known_symbols.issuperset(pair)]
        if len(fitting) > 1:
            raise InputError(
                f"--forbid {text!r} has two readings, for symbols contain colons; use Python"
            )
        # A pair of no symbols is refused later, with the symbols that there are.
        pair = readings[0]
        if fitting:
            pair = fitting[0]
        pairs.append(pair)
    return pairs


def any_number(option: str, text: str, allowed: str, beyond: str = "") -> float:
    """A number as typed; its range is checked later."""
    try:
        value = float(text)
    except ValueError:
        raise InputError(
            f"{option} ({text!r}) is not a number; it must be {allowed}"
        ) from None
    # 1e400 overflows; it does not say inf.
    if math.isinf(value) and text.strip().lower().lstrip("+-") not in (
        "inf",
        "infinity",
    ):
        raise InputError(f"{option} ({text}) is {beyond or f'not {allowed}'}")
    return value
