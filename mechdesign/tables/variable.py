"""A variable: the columns that it comes from and its symbols, as text.

A symbol is a tuple with a text for each column: ``('Husband',)``, or ``('White', 'Male')`` where
race and sex are crossed. Everything else refers to symbols by their positions. `names` are their
texts for people.

A sensitive variable may protect each of its columns for itself: `secrets` are then the variables of
the single columns, and `protected` are all symbols of all secrets. For example, the symbols (White,
Male), (White, Female) and (Black, Male) of race and sex have two secrets, race with White and Black
and sex with Male and Female. `added` sums the rows of a table for each secret: those of the first
two symbols for White.

*Coded cells.* With the symbols (nurse, 30), (clerk, 30) and (nurse, 41) the first column has the
texts nurse and clerk and the codes 0, 1, 0, the second one the texts 30 and 41 and the codes 0, 0,
1.

*Lookup* of many records, without a Python loop over them. Every column has numbers for its own
texts. A symbol is found column by column: the symbols that agree with a record so far have a
number, and that number together with the code of the next column leads to the next one. So the
integers stay small, however many columns there are.

For example, the symbols are (a, x), (b, x) and (b, y). After the first column there are two
numbers, 0 for a and 1 for b. After the second there are three: 0 from (0, x), 1 from (1, x) and 2
from (1, y). A record (a, y) would be (0, y), which leads nowhere.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.arguments import check_texts, repeated, valid_text
from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.core.wording import listed, quoted
from mechdesign.formats.cells import Encoded, as_whole
from mechdesign.tables.bins import Bins
from mechdesign.tables.cell_values import kind_of, number_of
from mechdesign.tables.people import ABSENT, People

# ------------------------------------------------------------------------------- lookup

# -------------------------------------------------------------------------- coded cells


@dataclass(frozen=True, eq=False)
class CodedCells:
    """The cells of every symbol as codes, column by column.

    `codes` is an (n, columns) array of places in `texts`, which has the different texts of each
    column in the order of their first use.
    """

    columns: tuple[str, ...]
    codes: Integers
    texts: tuple[tuple[str, ...], ...]

    @classmethod
    def of(
        cls, columns: tuple[str, ...], symbols: Sequence[tuple[str, ...]]
    ) -> CodedCells:
        """The cells of some symbols."""
        codes = np.empty((len(symbols), len(columns)), dtype=np.int64)
        texts: list[tuple[str, ...]] = []
        for k, cells in enumerate(zip(*symbols, strict=True)):
            places = {text: place for place, text in enumerate(dict.fromkeys(cells))}
            codes[:, k] = list(map(places.__getitem__, cells))
            texts.append(tuple(places))
        return cls(columns, codes, tuple(texts))


# ------------------------------------------------------------------------------- lookup

Codes = NDArray[np.int64]

NOWHERE = -1
"""The position of a record that agrees with no symbol."""

DENSE_LIMIT = 1 << 20
"""Most numbers of a step that are looked up in an array (4 MB); more are searched for."""

DENSE_LIMIT_OF_ALL = 1 << 24
"""The same of all steps together (64 MB): people with many records have hundreds of columns."""


@dataclass(frozen=True)
class _Step:
    """From the symbols that agree in the columns so far to those that agree in one more.

    Attributes
    ----------
    size : int
        One more than the different texts of the column: the last code is that of no text of it.
    present : (k,) array
        The sorted ``number * size + code`` that occur; their places are the next numbers, and k is
        the number of a record that agrees with no symbol.
    dense : array or None
        The next number of each of them, and of all others k; None where it would be too large.
    """

    size: int
    present: Codes
    dense: NDArray[np.int32] | None

    def next(self, numbers: Codes, codes: Codes) -> Codes:
        """The next number of every record."""
        joined = numbers * self.size
        joined += codes
        if self.dense is not None:
            return self.dense.take(joined).astype(np.int64)
        nowhere = len(self.present)
        places = np.searchsorted(self.present, joined)
        places[places == nowhere] = 0
        return np.where(self.present[places] == joined, places, nowhere)


class SymbolLookup:
    """Finds records among symbols.

    Parameters
    ----------
    symbols : sequence of tuples of str
        All different, with a text for each column.
    """

    def __init__(self, symbols: Sequence[tuple[str, ...]]) -> None:
        self._code_of: list[dict[str, int]] = []
        self._steps: list[_Step] = []
        numbers = np.zeros(len(symbols), np.int64)
        count = 1
        room = DENSE_LIMIT_OF_ALL
        for part in range(len(symbols[0])):
            code_of: dict[str, int] = {}
            texts = [symbol[part] for symbol in symbols]
            codes = [code_of.setdefault(text, len(code_of)) for text in texts]
            size = len(code_of) + 1
            joined = numbers * size + np.array(codes, np.int64)
            present, numbers = np.unique(joined, return_inverse=True)
            dense: NDArray[np.int32] | None = None
            # One number more than those of symbols: that of a record that agrees with none.
            needed = (count + 1) * size
            if needed <= min(DENSE_LIMIT, room):
                room -= needed
                dense = np.full(needed, len(present), dtype=np.int32)
                dense[present] = np.arange(len(present))
            self._code_of.append(code_of)
            self._steps.append(_Step(size, present, dense))
            count = len(present)
        # The position of each last number; one more for records that lead nowhere.
        self._positions = np.full(len(symbols) + 1, NOWHERE)
        self._positions[numbers] = np.arange(len(symbols))

    def has_empty(self, part: int) -> bool:
        """Whether a symbol has the empty text in a column."""
        return "" in self._code_of[part]

    def positions(self, columns: Sequence[Encoded]) -> Codes:
        """The position of every record among the symbols, or `NOWHERE`.

        A missing cell is looked up as the empty text. A float is looked up as it is shown
        (``1.0``), and then as an integer (``1``).
        """
        positions = self._found(columns, whole=False)
        if any(column.is_float for column in columns):
            # pandas turns integers with gaps into floats, and the symbols are the integers.
            lost = np.flatnonzero(positions == NOWHERE)
            if lost.size:
                rest = [column.recoded(column.codes[lost]) for column in columns]
                positions[lost] = self._found(rest, whole=True)
        return positions

    def lacks(self, columns: Sequence[Encoded]) -> NDArray[np.bool_]:
        """Which records have an empty cell in a column in which no symbol is empty."""
        lacking = np.zeros(len(columns[0]), np.bool_)
        for part, column in enumerate(columns):
            if self.has_empty(part):
                continue
            empty = np.array([*(not text for text in column.texts), True])
            lacking |= _by_code(empty, column)
        return lacking

    def _found(self, columns: Sequence[Encoded], *, whole: bool) -> Codes:
        """The positions by the texts as they are, or by those of floats as integers."""
        numbers = np.zeros(len(columns[0]), np.int64)
        steps = zip(columns, self._code_of, self._steps, strict=True)
        for column, code_of, step in steps:
            texts: Sequence[str] = column.texts
            if whole and column.is_float:
                texts = [as_whole(text) for text in texts]
            nowhere = len(code_of)
            codes = [code_of.get(text, nowhere) for text in texts]
            codes.append(code_of.get("", nowhere))
            codes_of_records = _by_code(np.array(codes, np.int64), column)
            numbers = step.next(numbers, codes_of_records)
        return self._positions[numbers]


def _by_code(of_texts: NDArray[Any], column: Encoded) -> NDArray[Any]:
    """What belongs to the text of every record; the last entry belongs to a missing cell."""
    return of_texts[np.maximum(column.codes, -1)]


# ----------------------------------------------------------------------------- variable

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
