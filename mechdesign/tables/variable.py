"""A variable: the columns that it comes from and its symbols, as text.

A symbol is a tuple with a text for each column: ``('Husband',)``, or ``('White', 'Male')`` where
race and sex are crossed. Everything else refers to symbols by their positions. `names` are their
texts for people.

A sensitive variable may protect each of its columns for itself: `secrets` are then the variables of
the single columns, and `protected` are all symbols of all secrets. For example, the symbols (White,
Male), (White, Female) and (Black, Male) of race and sex have two secrets, race with White and Black
and sex with Male and Female. `added` sums the rows of a table for each secret: those of the first
two symbols for White.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple, TypeAlias

from mechdesign.core.arguments import check_texts, repeated, valid_text
from mechdesign.core.errors import InputError
from mechdesign.core.wording import listed, quoted
from mechdesign.tables.bins import Bins
from mechdesign.tables.cell_numbers import kind_of, number_of
from mechdesign.tables.people import ABSENT, People
from mechdesign.tables.symbol_lookup import CodedCells, SymbolLookup

Symbol: TypeAlias = tuple[str, ...]
"""One text for each column of the variable."""


class ProtectedSymbol(NamedTuple):
    """A sensitive symbol that is protected.

    `column` is its column where each column is protected for itself, None otherwise; `name` is
    unique among all protected symbols.
    """

    column: str | None
    symbol: Symbol
    name: str


@dataclass(frozen=True)
class Variable:
    """One column, or several crossed ones, and the symbols that occur in them.

    Attributes
    ----------
    columns : tuple of str
        The columns.
    symbols : tuple of tuples of str
        The symbols, with a text for each column.
    protects_columns : bool
        Whether every one of the crossed sensitive columns is protected for itself, instead of
        their combinations.
    bins : tuple of Bins or None
        The bins of each column, or nothing at all. In a column with bins the cells of records are
        numbers, and the symbols are the labels of their bins.
    people : People or None
        How a symbol is the sequence of a person's records, where it is one.

    Raises
    ------
    InputError
        If there are no columns or symbols, they repeat, or they do not fit together.
    """

    columns: tuple[str, ...]
    symbols: tuple[Symbol, ...]
    protects_columns: bool = False
    bins: tuple[Bins | None, ...] = ()
    people: People | None = None

    def __post_init__(self) -> None:
        # Symbols come from frames and files of any kind, and go into files as UTF-8.
        symbols = tuple(map(tuple, self.symbols))
        check_texts(symbols, "a symbol")
        # The class is frozen, so normalised fields are set past its own `__setattr__`.
        columns = tuple(valid_text(name, "a column name") for name in self.columns)
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "symbols", symbols)
        self._check_columns()
        self._check_symbols()
        self._check_bins()
        if self.people is not None and self.people.folded_columns != self.columns:
            raise InputError(
                "the columns of the variable are not those of the sequences of its people"
            )

    @property
    def _title(self) -> str:
        """The columns, quoted for messages."""
        return quoted(",".join(self.columns))

    def _check_columns(self) -> None:
        """Refuse columns that repeat, and single ones that are protected each for itself."""
        if not self.columns or len(set(self.columns)) < len(self.columns):
            raise InputError(
                "a variable needs columns with different names, not "
                f"{listed(list(self.columns)) or 'none'}"
            )
        if self.protects_columns and len(self.columns) < 2:
            raise InputError(
                f"protect-each needs several sensitive columns, not {self._title} alone"
            )

    def _check_symbols(self) -> None:
        """Refuse symbols that repeat or do not fit the columns."""
        if not self.symbols:
            raise InputError(
                f"the column {self._title} has no symbol: the table is empty"
            )
        for symbol in self.symbols:
            if len(symbol) != len(self.columns):
                raise InputError(
                    f"symbol {_quoted_parts(symbol)} has {len(symbol)} part(s) but the columns "
                    f"{self._title} are {len(self.columns)}"
                )
        twice = repeated(self.symbols)
        if twice is not None:
            raise InputError(
                f"the symbol {_quoted_parts(twice)} of {self._title} occurs twice; labels must be "
                "different"
            )

    def _check_bins(self) -> None:
        """Refuse symbols that are no labels of the bins of their column."""
        if self.bins and len(self.bins) != len(self.columns):
            raise InputError(
                f"there must be bins, or None, for each of the {len(self.columns)} columns "
                f"{self._title}"
            )
        for k, bins in enumerate(self.bins):
            if bins is None:
                continue
            # Beside the bins a symbol may be the empty text, of a missing cell, or that of a record
            # that a person does not have.
            labels = {"", ABSENT, *bins.labels}
            strangers = set(self._texts_by_column[k]) - labels
            if strangers:
                raise InputError(
                    f"the symbol {quoted(min(strangers))} of {quoted(self.columns[k])} is none of "
                    "its bins"
                )

    def __len__(self) -> int:
        return len(self.symbols)

    def bins_of(self, part: int) -> Bins | None:
        """The bins of one of the columns."""
        return self.bins[part] if self.bins else None

    @property
    def brief(self) -> str:
        """The columns and the number of symbols: ``occupation (15)``."""
        if self.people is not None:
            records = " x ".join(self.people.columns)
            return f"sequences of {records} ({len(self):,})"
        return f"{' x '.join(self.columns)} ({len(self):,})"

    @cached_property
    def index(self) -> dict[Symbol, int]:
        """Position of every symbol."""
        return dict(zip(self.symbols, range(len(self.symbols)), strict=True))

    @cached_property
    def lookup(self) -> SymbolLookup:
        """Finds the positions of many records."""
        return SymbolLookup(self.symbols)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """One readable text for each symbol, all different.

        It is the text itself for one column. Crossed columns are joined with ``", "``. If that
        makes two symbols look alike, every part of every symbol is written as a JSON string.
        """
        if len(self.columns) == 1:
            return self._texts_by_column[0]
        # ("a, b", "c") and ("a", "b, c") would look alike. Only these need JSON.
        joined = tuple(map(", ".join, self.symbols))
        if len(set(joined)) == len(joined):
            return joined
        unambiguous: list[str] = []
        for symbol in self.symbols:
            parts = [json.dumps(part, ensure_ascii=False) for part in symbol]
            unambiguous.append(", ".join(parts))
        return tuple(unambiguous)

    @cached_property
    def coded(self) -> CodedCells:
        """The cells of all symbols as codes."""
        return CodedCells.of(self.columns, self.symbols)

    @property
    def secrets(self) -> tuple[Variable, ...]:
        """The protected variables: this one, or each of its columns."""
        if not self.protects_columns:
            return (self,)
        secrets: list[Variable] = []
        for column, texts in zip(self.columns, self._texts_by_column, strict=True):
            # Each text once, in the order of the crossed symbols.
            distinct = dict.fromkeys(texts)
            secrets.append(Variable((column,), tuple(zip(distinct, strict=True))))
        return tuple(secrets)

    @property
    def _texts_by_column(self) -> list[tuple[str, ...]]:
        """For each column its part of every symbol."""
        return list(zip(*self.symbols, strict=True))

    @cached_property
    def secret_names(self) -> tuple[tuple[str, ...], ...]:
        """Names of the symbols of each of `secrets`, all different.

        They include their column where a symbol alone could belong to two.
        """
        if not self.protects_columns:
            return (self.names,)
        times: Counter[str] = Counter()
        for secret in self.secrets:
            for name in secret.names:
                times.update(_spellings(secret.columns[0], name))
        names_by_secret: list[tuple[str, ...]] = []
        for secret in self.secrets:
            names: list[str] = []
            for name in secret.names:
                # The shortest spelling that no other protected symbol of any column shares.
                spellings = _spellings(secret.columns[0], name)
                names.append(_first_unique(spellings, times))
            names_by_secret.append(tuple(names))
        return tuple(names_by_secret)

    @cached_property
    def protected(self) -> list[ProtectedSymbol]:
        """All protected symbols, secret after secret."""
        symbols: list[ProtectedSymbol] = []
        for secret, names in zip(self.secrets, self.secret_names, strict=True):
            column = secret.columns[0] if self.protects_columns else None
            for symbol, name in zip(secret.symbols, names, strict=True):
                symbols.append(ProtectedSymbol(column, symbol, name))
        return symbols

    def meant(self, text: str) -> list[str]:
        """The names of the protected symbols that fit a text.

        The text may be a name, a symbol, or ``column=symbol``.
        """
        # An exact name comes first: it may be a spelling of another symbol, too, and all names are
        # different.
        if any(protected.name == text for protected in self.protected):
            return [text]
        names: list[str] = []
        for column, symbol, name in self.protected:
            # The name of a protected column's symbol may contain the column already.
            if column is None:
                spellings = _spellings(self.columns[0], name)
            else:
                spellings = _spellings(column, symbol[0])
            if text in spellings:
                names.append(name)
        return names

    def parts_of_symbols(self, positions: Sequence[int]) -> list[Symbol]:
        """Every symbol in the columns at these positions alone."""
        symbols: list[Symbol] = []
        for symbol in self.symbols:
            symbols.append(tuple(symbol[k] for k in positions))
        return symbols

    def added(self, rows: Sequence[Sequence[int]]) -> list[Sequence[Sequence[int]]]:
        """For each of `secrets` the rows of its symbols.

        `rows` are those of this variable's symbols, and the rows of a column's symbol are sums.
        """
        if not self.protects_columns:
            return [rows]
        tables: list[Sequence[Sequence[int]]] = []
        for secret, texts in zip(self.secrets, self._texts_by_column, strict=True):
            group = [secret.index[(text,)] for text in texts]
            tables.append(added_rows(rows, group))
        return tables

    def public(self) -> Variable:
        """The variable without the values inside of its bins, which are cells of the table."""
        bins: list[Bins | None] = []
        for of_column in self.bins:
            if of_column is not None:
                of_column = of_column.public()
            bins.append(of_column)
        return replace(self, bins=tuple(bins))

    def select(self, keep: Sequence[int]) -> Variable:
        """The variable with only the symbols at the positions `keep`."""
        return replace(self, symbols=tuple(self.symbols[i] for i in keep))


def _quoted_parts(symbol: Symbol) -> str:
    """A symbol in messages."""
    return ", ".join(map(quoted, symbol))


def _spellings(column: str, name: str) -> tuple[str, str, str]:
    """The spellings of a symbol, the shortest first; no other symbol has the last one."""
    # In JSON the quotes show where column and symbol end, whatever they contain.
    return name, f"{column}={name}", f"{json.dumps(column)}={json.dumps(name)}"


def _first_unique(texts: Sequence[str], times: Counter[str]) -> str:
    """The first text that occurs once, or else the last text."""
    for text in texts:
        if times[text] == 1:
            return text
    return texts[-1]


def added_rows(
    rows: Sequence[Sequence[int]], group: Sequence[int]
) -> list[tuple[int, ...]]:
    """Rows added up within each group.

    Parameters
    ----------
    rows : sequence of rows of integers
        All of one length.
    group : sequence of int
        The group of each row. All numbers from 0 to the largest must occur.
    """
    members: list[list[Sequence[int]]] = [[] for _ in range(max(group) + 1)]
    for k, row in zip(group, rows, strict=True):
        members[k].append(row)
    sums: list[tuple[int, ...]] = []
    for part in members:
        # Column by column, in Python's integers: counts may exceed those of machines.
        columns = zip(*part, strict=True)
        sums.append(tuple(map(sum, columns)))
    return sums


def added_columns(
    rows: Sequence[Sequence[int]], group: Sequence[int]
) -> tuple[tuple[int, ...], ...]:
    """Rows whose columns are added up within each group."""
    columns = list(zip(*rows, strict=True))
    return tuple(zip(*added_rows(columns, group), strict=True))


def column_names(variables: Iterable[Variable]) -> tuple[str, ...]:
    """The columns of several variables, one after the other."""
    names: list[str] = []
    for variable in variables:
        names += variable.columns
    return tuple(names)


def numbers_of(variable: Variable, part: int = 0) -> tuple[Fraction | None, ...]:
    """The number behind every symbol of a variable in one of its columns.

    The number of a bin is its median in the table. Dates and times are seconds. It is None for the
    empty text, and for a bin without values.

    Raises
    ------
    InputError
        If the column does not hold numbers, dates or times.
    """
    texts = [symbol[part] for symbol in variable.symbols]
    bins = variable.bins_of(part)
    if bins is None:
        kind = kind_of(filter(None, texts))
    else:
        kind = bins.kind
        # A label such as [20, 30) is no number. The median has the least distance to its records.
        median_of = bins.shown
        texts = [median_of.get(text) or "" for text in texts]
    if kind is None or not any(texts):
        raise InputError(
            f"the column {quoted(variable.columns[part])} holds symbols that are no numbers"
        )
    numbers: list[Fraction | None] = []
    for text in texts:
        # The empty text, of a missing cell or an empty bin, has no number.
        numbers.append(number_of(text, kind) if text else None)
    return tuple(numbers)
