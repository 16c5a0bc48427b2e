"""`assess`: what the columns of a table say about a sensitive column S, before any channel is
designed.

A released column can be made private by a channel, but the columns beside it are released as they
are. This module measures what they say: each column by itself, every pair of columns, and all
columns of a row together. All lifts are exact figures of the table, P(s | value) / P(s), not
estimates for a population.

Every column becomes integer codes (`coded_table`). A column, a pair or a whole row is then one code
a record (`_combined`), and all its figures come from its table of counts with S (`_disclosure`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from mechdesign.core.display import Displayed
from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.core.wording import quoted
from mechdesign.formats.text_options import TextOptions
from mechdesign.leaks.coded_table import CodedColumn, CodedTable, coded_table
from mechdesign.leaks.left_out import logarithms_left_out
from mechdesign.leaks.row_guess import RowGuess, guess_from_rows
from mechdesign.tables.reading import columns_named

RARE = 10
"""Values of fewer records are rare: a cell of the table with S then rests on a handful of records.
"""

IDENTIFIER_SHARE = 0.95
"""A column with so many values a record identifies its records."""

IDENTIFIER_RECORDS = 20
"""In shorter tables all values may differ by chance."""

MOST_PAIR_COLUMNS = 30
"""Pairs are tried among so many columns (435 pairs), those that say most by themselves."""

PAIR_RECORDS = 200_000
"""Pairs are counted in so many records, evenly spread: a ranking needs no more."""

SHOWN_PAIRS = 10
"""Pairs that an assessment lists."""


@dataclass(frozen=True)
class Disclosure:
    """What one column, or several together, say about S in this table.

    Attributes
    ----------
    columns : tuple of str
    values : int
        Distinct values (of several columns: distinct combinations).
    information : float
        Share of H(S) that a record's value tells, read from the *other* records with that value.
        The plain I(S; columns) / H(S) of the table would call any column with many values telling.
    largest_lift, smallest_lift : float or None
        The extremes of P(s | value) / P(s) over values of two records or more; None where there are
        none.
    largest_at : str or None
        The symbol of S with the largest lift. The value of the column is not named: it may be a
        person's.
    pinned : float
        Share of the records whose value comes again, always with the same symbol of S.
    guessed : float
        Share of the records whose symbol is right when it is guessed from the other records with
        their value.
    """

    columns: tuple[str, ...]
    values: int
    information: float
    largest_lift: float | None
    smallest_lift: float | None
    largest_at: str | None
    pinned: float
    guessed: float


@dataclass(frozen=True)
class ColumnAssessment:
    """One column: what it says about S, whether it identifies records, and how many of its values
    are rare.
    """

    disclosure: Disclosure
    identifier: bool
    rare_values: int
    rare_records: int

    @property
    def name(self) -> str:
        """The name of the column."""
        return self.disclosure.columns[0]


@dataclass(frozen=True, repr=False)
class Assessment(Displayed):
    """What a table says about S; columns and pairs come worst first.

    Attributes
    ----------
    records : int
    sensitive : tuple of str
    shares : dict of str to float
        P(s) of every symbol of S.
    rare_secrets : tuple of str
        Symbols of S with fewer than `RARE` records: the table supports no promise about them for a
        population.
    guessed_without : float
        Share of the records guessed right when nothing is known of them.
    columns : tuple of ColumnAssessment
    pairs : tuple of Disclosure
    row : Disclosure
        All columns together, without identifiers.
    unique_rows : float
        Share of the records whose row, without identifiers and S, no other record has.
    guess : RowGuess
        A cross-validated guess of S from the whole row, without identifiers.
    unreadable : tuple of str
        Columns that hold lists, structures or bytes, which were not looked at.
    """

    records: int
    sensitive: tuple[str, ...]
    shares: dict[str, float]
    rare_secrets: tuple[str, ...]
    guessed_without: float
    columns: tuple[ColumnAssessment, ...]
    pairs: tuple[Disclosure, ...]
    row: Disclosure
    unique_rows: float
    guess: RowGuess
    unreadable: tuple[str, ...]

    def __repr__(self) -> str:
        return (
            f"Assessment({len(self.columns)} columns about {','.join(self.sensitive)}, "
            f"{self.records:,} records)"
        )


def assess(
    table: Any,
    *,
    sensitive: str | Sequence[str],
    columns: str | Sequence[str] | None = None,
    text: TextOptions | None = None,
) -> Assessment:
    """Measure what each column, every pair, and whole rows say about a sensitive column.

    Parameters
    ----------
    table : path, or a pandas, polars or pyarrow table
        One record a row.
    sensitive : str or sequence of str
        The column(s) to protect; several are crossed.
    columns : str or sequence of str, optional
        The columns to look at; default: all others.
    text : TextOptions, optional
        How a CSV file is written.

    Raises
    ------
    InputError
        If a column is missing or named twice, S has a single symbol, or the table has no records.
    """
    coded = coded_table(table, text)
    secret = _crossed(coded, _named("sensitive", sensitive, coded))
    if columns is None:
        others = [name for name in coded.columns if name not in secret.names]
    else:
        others = list(_named("columns", columns, coded))
    _check(coded, secret, others)
    measured = [_assessed(coded.columns[name], secret) for name in others]
    measured.sort(key=lambda column: _severity(column.disclosure), reverse=True)
    # A column with a value for each record tells nothing of others, and makes every row unique.
    telling = [column.name for column in measured if not column.identifier]
    row = _joined(coded, telling, secret.codes)
    counts = np.bincount(secret.codes)
    shares: dict[str, float] = {}
    rare_secrets: list[str] = []
    for symbol, count in zip(secret.symbols, counts.tolist(), strict=True):
        shares[symbol] = count / coded.records
        if count < RARE:
            rare_secrets.append(symbol)
    unreadable: tuple[str, ...] = ()
    if columns is None:
        unreadable = tuple(coded.unreadable)
    return Assessment(
        records=coded.records,
        sensitive=secret.names,
        shares=shares,
        rare_secrets=tuple(rare_secrets),
        guessed_without=float(counts.max() / coded.records),
        columns=tuple(measured),
        pairs=_worst_pairs(coded, telling, secret),
        row=_disclosure(tuple(telling), row, secret),
        unique_rows=_unique_share(row),
        guess=guess_from_rows(
            [coded.columns[name] for name in telling], secret.codes, secret.symbols
        ),
        unreadable=unreadable,
    )


@dataclass(frozen=True)
class _Secret:
    """The sensitive columns, crossed: record i has the symbol ``symbols[codes[i]]``."""

    names: tuple[str, ...]
    codes: Integers
    symbols: tuple[str, ...]


def _named(
    argument: str, columns: str | Sequence[str], coded: CodedTable
) -> tuple[str, ...]:
    """The columns of an argument; a text that is no column is split at its commas."""
    names = columns_named(columns, [*coded.columns, *coded.unreadable])
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{argument}: the column {quoted(name)} is named twice")
        if name in coded.unreadable:
            raise InputError(
                f"the column {quoted(name)} holds lists, structures or bytes, which "
                "are no symbols; leave it out"
            )
    return names


def _crossed(coded: CodedTable, names: tuple[str, ...]) -> _Secret:
    if not names:
        raise InputError("sensitive: name at least one column to protect")
    codes = _combined([coded.columns[name] for name in names], coded.records)
    places, first = np.unique(codes, return_index=True)
    symbols: list[str] = []
    for at in first.tolist():
        parts = [coded.columns[name] for name in names]
        symbols.append(", ".join(part.values[part.codes[at]] for part in parts))
    return _Secret(names, np.searchsorted(places, codes), tuple(symbols))


def _check(coded: CodedTable, secret: _Secret, others: Sequence[str]) -> None:
    if not coded.records:
        raise InputError("the table has no records; there is nothing to assess")
    if len(secret.symbols) < 2:
        raise InputError(
            f"the sensitive column {quoted(','.join(secret.names))} has a single symbol: "
            "there is nothing to protect"
        )
    for name in others:
        if name in secret.names:
            raise InputError(
                f"the column {quoted(name)} is sensitive; leave it out of the columns to look at"
            )
    if not others:
        raise InputError("there is no column beside the sensitive one to look at")


def identifies_records(column: CodedColumn) -> bool:
    """Whether nearly every record has a value of its own, so that the column names records."""
    records = len(column.codes)
    if records < IDENTIFIER_RECORDS:
        return False
    return len(column.values) >= IDENTIFIER_SHARE * records


def _assessed(column: CodedColumn, secret: _Secret) -> ColumnAssessment:
    counts = np.bincount(column.codes, minlength=len(column.values))
    rare = counts[counts < RARE]
    return ColumnAssessment(
        disclosure=_disclosure((column.name,), column.codes.astype(np.int64), secret),
        identifier=identifies_records(column),
        rare_values=len(rare),
        rare_records=int(rare.sum()),
    )


def _disclosure(
    columns: tuple[str, ...], codes: Integers, secret: _Secret
) -> Disclosure:
    """Measure the table of counts n(value, s), of which only the cells with records are listed."""
    width = len(secret.symbols)
    pairs, counts = np.unique(codes * width + secret.codes, return_counts=True)
    value = pairs // width
    symbol = pairs % width
    # Cells of one value stand together: `starts` are the first ones, `sizes` the values' records.
    starts = np.flatnonzero(np.diff(value, prepend=-1))
    cells_of_value = np.diff(np.append(starts, len(value)))
    sizes = np.zeros(0, np.int64)
    if len(starts):
        sizes = np.add.reduceat(counts, starts)
    size = np.repeat(sizes, cells_of_value)
    total = int(counts.sum())
    mass = np.bincount(secret.codes, minlength=width)
    # P(s | value) / P(s) = (n(value, s) / n(value)) / (n(s) / N).
    lifts = counts * total / (size * mass[symbol])

    # A value of a single record has extreme lifts in every table, so it counts for none.
    repeated = size > 1
    largest: float | None = None
    smallest: float | None = None
    largest_at: str | None = None
    if repeated.any():
        at = int(np.argmax(np.where(repeated, lifts, -1.0)))
        largest = float(lifts[at])
        largest_at = secret.symbols[int(symbol[at])]
        if (cells_of_value[sizes > 1] < width).any():
            # A value that lacks a symbol of S has the lift 0 there, and no cell in the list.
            smallest = 0.0
        else:
            smallest = float(lifts[repeated].min())

    information = _information(counts, size, mass[symbol], total, mass)
    # All records of the value have one symbol of S.
    pinned = counts[repeated & (counts == size)].sum() / total
    return Disclosure(
        columns=columns,
        values=len(starts),
        information=information,
        largest_lift=largest,
        smallest_lift=smallest,
        largest_at=largest_at,
        pinned=float(pinned),
        guessed=_guessed(value, counts, starts, total),
    )


def _information(
    counts: Integers, size: Integers, mass: Integers, total: int, masses: Integers
) -> float:
    """The share of H(S) that values tell about a record left out.

    The figure is 1 - (mean negative logarithm of `logarithms_left_out`) / H(S), or 0 where that is
    negative.
    """
    logarithms = logarithms_left_out(counts, size, mass, total, len(masses))
    score = -float((counts / total * logarithms).sum())
    shares = masses[masses > 0] / total
    entropy = -float((shares * np.log(shares)).sum())
    return max(0.0, 1 - score / entropy)


def _guessed(value: Integers, counts: Integers, starts: Integers, total: int) -> float:
    """Share guessed right from the other records with the same value.

    A record is guessed right if its symbol is still the most frequent one once the record itself is
    taken out. So a value that one record has alone says nothing.
    """
    # Within each value, the most frequent symbol first.
    order = np.lexsort((-counts, value))
    ranked = counts[order]
    ends = np.append(starts[1:], len(value))
    most = ranked[starts]
    second = np.zeros_like(most)
    several = ends - starts > 1
    second[several] = ranked[starts[several] + 1]
    # Only records with the most frequent symbol can be right, and a tie is not.
    right = int(most[most - 1 > second].sum())
    return right / total


def _severity(disclosure: Disclosure) -> tuple[float, float, float]:
    """The order of columns and pairs: information, records pinned down, the largest lift."""
    return disclosure.information, disclosure.pinned, disclosure.largest_lift or 0.0


def _combined(columns: Sequence[CodedColumn], records: int) -> Integers:
    """One integer for each distinct combination of values, renumbered at every step to stay below
    2**63.
    """
    codes = np.zeros(records, np.int64)
    for column in columns:
        codes = codes * len(column.values) + column.codes
        codes = np.unique(codes, return_inverse=True)[1]
    return codes


def _joined(coded: CodedTable, names: Sequence[str], like: Integers) -> Integers:
    return _combined([coded.columns[name] for name in names], len(like))


def _unique_share(row: Integers) -> float:
    """Share of the records whose row no other record has."""
    counts = np.bincount(row)
    return float(np.count_nonzero(counts == 1) / len(row))


def _worst_pairs(
    coded: CodedTable, names: Sequence[str], secret: _Secret
) -> tuple[Disclosure, ...]:
    """The pairs that say more than either of their columns, worst first."""
    step = max(1, -(-coded.records // PAIR_RECORDS))
    sample = slice(None, None, step)
    part = _Secret(secret.names, secret.codes[sample], secret.symbols)
    pairs: list[Disclosure] = []
    for first, second in combinations(names[:MOST_PAIR_COLUMNS], 2):
        left = coded.columns[first]
        right = coded.columns[second]
        codes = left.codes[sample].astype(np.int64) * len(right.values)
        codes = codes + right.codes[sample]
        pairs.append(_disclosure((first, second), codes, part))
    pairs.sort(key=_severity, reverse=True)
    return tuple(pairs[:SHOWN_PAIRS])
