"""Counting records: from batches of cells to the exact joint table of the columns asked for."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.core.numbers import fraction_of_text, quoted
from mechdesign.formats.cells import Encoded, as_whole
from mechdesign.tables.exact_table import ExactTable, scaled, without_empty
from mechdesign.tables.variable import Symbol, Variable

Missing: TypeAlias = Literal["refuse", "symbol", "drop"]
"""What a missing cell does: stops the reading, counts as the empty symbol, or drops its record."""

Key: TypeAlias = tuple[str | None, ...]
"""Cells of one record: the sensitive columns, the useful ones, then the weight if there is one."""

Cell: TypeAlias = tuple[Symbol, Symbol]
"""A sensitive and a useful symbol."""

DENSE_LIMIT = 1 << 20
"""Up to this many possible combinations they are counted in one dense array (8 MB)."""


class UnusableCell(InputError):
    """A missing cell, or a weight that is no weight; `column` and `text` say where to look for it."""

    def __init__(self, message: str, column: str, text: str | None) -> None:
        super().__init__(message)
        self.column = column
        self.text = text


@dataclass(frozen=True)
class Roles:
    """Which columns are sensitive, useful, and (optionally) the weight of a record.

    Raises
    ------
    InputError
        If a column has two roles, or a role has no column.
    """

    sensitive: tuple[str, ...]
    useful: tuple[str, ...]
    weight: str | None = None

    def __post_init__(self) -> None:
        if not self.sensitive or not self.useful:
            raise InputError("name at least one sensitive and one useful column")
        for name, times in Counter(self.columns).items():
            if times > 1:
                raise InputError(
                    f"the column {quoted(name)} is asked for {times} times; sensitive, useful and weight must be "
                    "different columns"
                )

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """All columns, in the order of a `Key`."""
        return (*self.sensitive, *self.useful, *([] if self.weight is None else [self.weight]))


class Tally:
    """Exact mass of every combination of symbols, record by record.

    Parameters
    ----------
    roles : Roles
    missing : 'refuse', 'symbol' or 'drop'

    Raises
    ------
    InputError
        If `missing` is none of these.
    """

    def __init__(self, roles: Roles, missing: Missing = "refuse") -> None:
        if missing not in get_args(Missing):
            raise InputError(f"missing ({quoted(missing)}) must be one of {', '.join(get_args(Missing))}")
        self.roles = roles
        self.missing = missing
        self.records = 0
        self.dropped = 0
        self.gaps: set[str] = set()
        """Columns in which cells were missing."""
        self.floats: set[str] = set()
        """Columns that came as floats."""
        self._mass: dict[Cell, Fraction | int] = {}
        self._whole_weights = True

    def add(self, batch: Mapping[Key, int]) -> None:
        """Add records: how many there are of every combination of cells (None where one is missing).

        Raises
        ------
        UnusableCell
            On a missing cell unless `missing` allows it, or a weight that is negative or no number.
        """
        split, weighted = len(self.roles.sensitive), self.roles.weight is not None
        weights: dict[str, Fraction] = {}
        terms: dict[Cell, list[tuple[int, Fraction]]] = {}
        for key, number in batch.items():
            self.records += number
            if None in key and not self._admit(key, number):
                continue
            texts = tuple(part or "" for part in key)
            weight = texts[-1] if weighted else ""
            texts = texts[:-1] if weighted else texts
            if weighted and weight not in weights:
                weights[weight] = self._weight(weight)
            terms.setdefault((texts[:split], texts[split:]), []).append(
                (number, weights.get(weight, Fraction(1)))
            )
        for cell, products in terms.items():
            common = math.lcm(*{weight.denominator for _, weight in products})
            mass = sum(
                number * weight.numerator * (common // weight.denominator) for number, weight in products
            )
            self._mass[cell] = self._mass.get(cell, 0) + (mass if common == 1 else Fraction(mass, common))

    def add_columns(self, columns: Sequence[Encoded]) -> None:
        """Add records given by their columns, in the order of `Roles.columns`."""
        self.floats |= {
            name for name, column in zip(self.roles.columns, columns, strict=True) if column.is_float
        }
        self.add(combinations(columns))

    def _admit(self, key: Key, number: int) -> bool:
        """Whether records with a missing cell are to be counted."""
        empty = [name for name, cell in zip(self.roles.columns, key, strict=True) if cell is None]
        self.gaps.update(empty)
        if self.missing == "drop":
            self.dropped += number
            return False
        if self.missing == "refuse":
            message = (
                f"the column {quoted(empty[0])} has an empty cell; fill it, or say what it means with missing "
                "(--missing): 'symbol' or 'drop'"
            )
            raise UnusableCell(message, empty[0], None)
        if self.roles.weight in empty:
            raise UnusableCell(
                f"the weight column {quoted(empty[-1])} has an empty cell; give a number", empty[-1], None
            )
        return True

    def _weight(self, text: str) -> Fraction:
        column = self.roles.columns[-1]
        try:
            value = fraction_of_text(text)
        except InputError as error:
            raise UnusableCell(f"the weight column {quoted(column)}: {error}", column, text) from None
        if value < 0:
            raise UnusableCell(
                f"the weight column {quoted(column)} has the negative weight {text}", column, text
            )
        self._whole_weights &= value.denominator == 1
        return value

    @property
    def is_counts(self) -> bool:
        """Whether the masses are numbers of records (every weight was whole)."""
        return self._whole_weights

    def table(self) -> ExactTable:
        """The joint table, its symbols sorted by text (by code point, column after column).

        Raises
        ------
        InputError
            If there is no record, no mass, or a single useful symbol.
        """
        notices: list[str] = []
        if self.dropped:
            notices.append(f"dropped {self.dropped} of {self.records} record(s) with an empty cell")
        if not self._mass:
            raise InputError(f"there are no records{' left: ' + notices[0] if notices else ''}")
        mass = self._without_decimal_points(notices)
        rows = sorted({s for s, _ in mass})
        columns = sorted({x for _, x in mass})
        sensitive = Variable(self.roles.sensitive, tuple(rows))
        useful = Variable(self.roles.useful, tuple(columns))
        values = [[Fraction(mass.get((s, x), 0)) for x in columns] for s in rows]
        return without_empty(sensitive, useful, scaled(values, sensitive, useful), tuple(notices))

    def _without_decimal_points(self, notices: list[str]) -> dict[Cell, Fraction | int]:
        """Undo pandas' change of integers to floats in columns with missing cells: 1.0 becomes 1 again.

        Only where every number of such a column is whole; a column of floats without gaps keeps its texts.
        """
        masses = dict(self._mass)
        for i, name in enumerate(self.roles.columns[: len(self.roles.sensitive) + len(self.roles.useful)]):
            if name not in self.floats or name not in self.gaps:
                continue
            texts = {(s + x)[i] for s, x in masses} - {""}
            if not all(text != as_whole(text) for text in texts):
                continue
            notices.append(f"the column {quoted(name)} holds integers and gaps; 1.0 is read as 1")
            renamed: dict[Cell, Fraction | int] = {}
            for (s, x), value in masses.items():
                parts = [*s, *x]
                parts[i] = as_whole(parts[i])
                renamed[tuple(parts[: len(s)]), tuple(parts[len(s) :])] = value
            masses = renamed
        return masses


def combinations(columns: Sequence[Encoded]) -> dict[Key, int]:
    """How often every combination of cells occurs in columns of equal length."""
    sizes = [len(column.texts) + 1 for column in columns]
    codes = [column.codes.astype(np.int64) % size for column, size in zip(columns, sizes, strict=True)]
    possible = math.prod(sizes)
    if possible < 2**63:
        flat = np.ravel_multi_index(tuple(codes), tuple(sizes))
        if possible <= DENSE_LIMIT:
            counts = np.bincount(flat)
            present = np.flatnonzero(counts)
            numbers = counts[present]
        else:
            present, numbers = np.unique(flat, return_counts=True)
        parts = np.unravel_index(present, sizes)
    else:
        distinct, numbers = np.unique(np.stack(codes, axis=1), axis=0, return_counts=True)
        parts = tuple(distinct.T)
    texts = [[*column.texts, None] for column in columns]
    cells: list[list[str | None]] = [
        [text[code] for code in part.tolist()] for text, part in zip(texts, parts, strict=True)
    ]
    keys: Any = zip(*cells, strict=True)
    counter: dict[Key, int] = {}
    for key, number in zip(keys, numbers.tolist(), strict=True):
        counter[key] = counter.get(key, 0) + number  # categories may have equal texts
    return counter
