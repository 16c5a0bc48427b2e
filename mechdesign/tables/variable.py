"""A variable: the columns it comes from and its symbols, as text."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from mechdesign.core.errors import InputError
from mechdesign.core.numbers import listed, quoted, repeated, valid_text
from mechdesign.tables.bins import Bins

Symbol: TypeAlias = tuple[str, ...]
"""One text per column of the variable."""


def _texts(column: str, name: str) -> tuple[str, ...]:
    """What may be written for a symbol of a column, the shortest first; the last is that of no other symbol."""
    return name, f"{column}={name}", f"{json.dumps(column)}={json.dumps(name)}"


def added_rows(
    rows: Sequence[Sequence[int]], group: Sequence[int]
) -> list[tuple[int, ...]]:
    """Rows added up within each group; `group` has their numbers from 0, none left out."""
    parts: list[list[Sequence[int]]] = [[] for _ in range(max(group) + 1)]
    for k, row in zip(group, rows, strict=True):
        parts[k].append(row)
    return [tuple(map(sum, zip(*part, strict=True))) for part in parts]


def added_columns(
    rows: Sequence[Sequence[int]], group: Sequence[int]
) -> tuple[tuple[int, ...], ...]:
    """Rows whose columns are added up within each group."""
    return tuple(zip(*added_rows(list(zip(*rows, strict=True)), group), strict=True))


@dataclass(frozen=True)
class Variable:
    """One column, or several crossed ones, and the symbols that occur in them.

    Where `bins` has bins for a column (as many entries as columns, or none at all), cells of records are numbers, and
    the symbols are the labels of the bins that they fall into.

    `each` says of crossed sensitive columns that every one is protected for itself, not their combinations.
    """

    columns: tuple[str, ...]
    symbols: tuple[Symbol, ...]
    each: bool = False
    bins: tuple[Bins | None, ...] = ()

    def __post_init__(self) -> None:
        columns = tuple(valid_text(c, "a column name") for c in self.columns)
        symbols = tuple(
            tuple(valid_text(part, "a symbol") for part in symbol)
            for symbol in self.symbols
        )
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "symbols", symbols)
        if not columns or len(set(columns)) < len(columns):
            raise InputError(
                f"a variable needs columns with different names, not {listed(list(columns)) or 'none'}"
            )
        title = ",".join(columns)
        if self.each and len(columns) < 2:
            raise InputError(
                f"protect-each needs several sensitive columns, not {quoted(title)} alone"
            )
        if not symbols:
            raise InputError(
                f"the column {quoted(title)} has no symbol: the table is empty"
            )
        for symbol in symbols:
            if len(symbol) != len(columns):
                raise InputError(
                    f"symbol {', '.join(map(quoted, symbol))} has {len(symbol)} part(s) but the columns "
                    f"{quoted(title)} are {len(columns)}"
                )
        if (twice := repeated(symbols)) is not None:
            raise InputError(
                f"the symbol {', '.join(map(quoted, twice))} of {quoted(title)} occurs twice; labels must be different"
            )
        if self.bins and len(self.bins) != len(columns):
            raise InputError(
                f"there must be bins, or None, for each of the {len(columns)} columns {quoted(title)}"
            )
        for k, bins in enumerate(self.bins):
            odd = (
                {part[k] for part in symbols} - {"", *bins.labels}
                if bins is not None
                else None
            )
            if odd:
                raise InputError(
                    f"the symbol {quoted(min(odd))} of {quoted(columns[k])} is none of its bins"
                )

    def __len__(self) -> int:
        return len(self.symbols)

    def bins_of(self, part: int) -> Bins | None:
        """The bins of one of the columns."""
        return self.bins[part] if self.bins else None

    @property
    def brief(self) -> str:
        """``occupation (15)``."""
        return f"{' x '.join(self.columns)} ({len(self):,})"

    @cached_property
    def index(self) -> dict[Symbol, int]:
        """Position of every symbol."""
        return {symbol: i for i, symbol in enumerate(self.symbols)}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """One readable text per symbol, all different.

        The text itself for one column; crossed columns are joined with ``", "``. If that makes two
        symbols look alike, every part of every symbol is written as a JSON string.
        """
        if len(self.columns) == 1:
            return tuple(symbol[0] for symbol in self.symbols)
        joined = tuple(", ".join(symbol) for symbol in self.symbols)
        if len(set(joined)) == len(joined):
            return joined
        shown = (
            [json.dumps(part, ensure_ascii=False) for part in symbol]
            for symbol in self.symbols
        )
        return tuple(map(", ".join, shown))

    @property
    def secrets(self) -> tuple[Variable, ...]:
        """What is protected: the variable, or each of its columns."""
        if not self.each:
            return (self,)
        parts = zip(self.columns, zip(*self.symbols, strict=True), strict=True)
        return tuple(
            Variable((c,), tuple((s,) for s in dict.fromkeys(symbols)))
            for c, symbols in parts
        )

    @cached_property
    def secret_names(self) -> tuple[tuple[str, ...], ...]:
        """Names of the symbols of each of `secrets`, all different: with their column where two could be meant."""
        if not self.each:
            return (self.names,)
        texts = [
            [_texts(secret.columns[0], name) for name in secret.names]
            for secret in self.secrets
        ]
        times = Counter(text for names in texts for each in names for text in each)
        return tuple(
            tuple(
                next((text for text in each if times[text] == 1), each[-1])
                for each in names
            )
            for names in texts
        )

    @cached_property
    def protected(self) -> list[tuple[str | None, Symbol, str]]:
        """Everything that is protected: its column where each is a secret of its own, its symbol and its name."""
        return [
            (secret.columns[0] if self.each else None, symbol, name)
            for secret, names in zip(self.secrets, self.secret_names, strict=True)
            for symbol, name in zip(secret.symbols, names, strict=True)
        ]

    def meant(self, text: str) -> list[str]:
        """The names (`protected`) that a text can stand for: a name, a symbol, or ``column=symbol``."""
        every = self.protected
        if any(name == text for _, _, name in every):
            return [text]
        plain = [
            (self.columns[0], name) if c is None else (c, symbol[0])
            for c, symbol, name in every
        ]
        return [
            name
            for pair, (_, _, name) in zip(plain, every, strict=True)
            if text in _texts(*pair)
        ]

    def added(self, rows: Sequence[Sequence[int]]) -> list[Sequence[Sequence[int]]]:
        """For each of `secrets` the rows of its symbols: sums of those that the symbols of this variable have."""
        if not self.each:
            return [rows]
        parts = zip(self.secrets, zip(*self.symbols, strict=True), strict=True)
        return [
            added_rows(rows, [secret.index[text,] for text in texts])
            for secret, texts in parts
        ]

    def select(self, keep: Sequence[int]) -> Variable:
        """The variable with only the symbols at the positions `keep`."""
        return replace(self, symbols=tuple(self.symbols[i] for i in keep))
