"""Counting records: from batches of cells to the exact joint table of the columns asked for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.numbers import fraction_of_text, quoted, repeated
from mechdesign.formats.cells import Encoded, Numbering, as_whole, distinct_numbers
from mechdesign.tables.exact_table import ExactTable, scaled, without_empty
from mechdesign.tables.variable import Symbol, Variable

Missing: TypeAlias = Literal["refuse", "symbol", "drop"]
"""What a missing cell does: stops the reading, counts as the empty symbol, or drops its record."""

MOST_SYMBOLS = 1 << 31
"""Symbols of a variable (a pair of their numbers is one integer); memory ends long before."""

LARGEST_SUM = 2**63
"""Weights that sum to less are added up as machine integers."""


class UnusableCell(InputError):
    """A missing cell, or a weight that is no weight, in the record at `position` of those that were added."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


@dataclass(frozen=True)
class Roles:
    """Which columns are sensitive, useful, and (optionally) the weight of a record."""

    sensitive: tuple[str, ...]
    useful: tuple[str, ...]
    weight: str | None = None

    def __post_init__(self) -> None:
        if not self.sensitive or not self.useful:
            raise InputError("name at least one sensitive and one useful column")
        if (twice := repeated(self.columns)) is not None:
            raise InputError(
                f"the column {quoted(twice)} is asked for {self.columns.count(twice)} times; sensitive, useful and "
                "weight must be different columns"
            )

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """All columns: the sensitive ones, the useful ones, then the weight if there is one."""
        return (*self.sensitive, *self.useful, *([] if self.weight is None else [self.weight]))


class Tally:
    """Exact mass of every combination of symbols, record by record."""

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
        self._sensitive, self._useful = Numbering(), Numbering()
        self._mass: dict[int, Fraction | int] = {}
        """By the numbers of a sensitive and a useful symbol, ``s * MOST_SYMBOLS + x``."""
        self.is_counts = True
        """Whether the masses are numbers of records: every weight was whole."""

    def add_columns(self, columns: Sequence[Encoded]) -> None:
        """Add records given by their columns, in the order of `Roles.columns`."""
        named = list(zip(self.roles.columns, columns, strict=True))
        self.records += len(columns[0])
        self.floats |= {name for name, column in named if column.is_float}
        gaps = {name: column.codes < 0 for name, column in named if len(column) and column.codes.min() < 0}
        self.gaps |= gaps.keys()
        if gaps:
            columns = self._without_gaps(columns, gaps)
        split, weights, unit = len(self.roles.sensitive), None, 1
        if self.roles.weight is not None:
            weights, unit = self._weights(columns[-1])
            columns = columns[:-1]
        if not len(columns[0]):
            return
        s, x = self._sensitive.number(columns[:split]), self._useful.number(columns[split:])
        width = len(self._useful)
        pairs, inverse = distinct_numbers(s * width + x, len(self._sensitive) * width)
        if weights is None:
            numbers = np.bincount(inverse)
        else:
            numbers = np.zeros(len(pairs), weights.dtype)
            np.add.at(numbers, inverse, weights)
        keys: list[int] = (pairs // width * MOST_SYMBOLS + pairs % width).tolist()
        for key, number in zip(keys, numbers.tolist(), strict=True):
            self._mass[key] = self._mass.get(key, 0) + (number if unit == 1 else Fraction(number, unit))

    def _without_gaps(
        self, columns: Sequence[Encoded], gaps: Mapping[str, NDArray[np.bool_]]
    ) -> Sequence[Encoded]:
        """The columns after the missing cells in them were dealt with as `missing` says."""
        some = np.logical_or.reduce(list(gaps.values()))
        if self.missing == "drop":
            self.dropped += int(np.count_nonzero(some))
            return [Encoded(column.codes[~some], column.texts, column.is_float) for column in columns]
        if self.missing == "refuse":
            first = int(np.argmax(some))
            empty = next(name for name in self.roles.columns if name in gaps and gaps[name][first])
            how = "fill it, or say what it means with missing (--missing): 'symbol' or 'drop'"
            raise UnusableCell(f"the column {quoted(empty)} has an empty cell; {how}", first)
        weight = self.roles.weight
        if weight is not None and weight in gaps:
            message = f"the weight column {quoted(weight)} has an empty cell; give a number"
            raise UnusableCell(message, int(np.argmax(gaps[weight])))
        return columns

    def _weights(self, column: Encoded) -> tuple[NDArray[Any], int]:
        """The weight of every record as an integer, and how many of these units make 1."""
        found: dict[int, Fraction] = {}
        codes, first = np.unique(column.codes, return_index=True)
        pairs: list[tuple[int, int]] = list(zip(first.tolist(), codes.tolist(), strict=True))
        for position, code in sorted(pairs):
            text, what = column.texts[code], f"the weight column {quoted(self.roles.weight)}"
            try:
                found[code] = fraction_of_text(text)
            except InputError as error:
                raise UnusableCell(f"{what}: {error}", position) from None
            if found[code] < 0:
                raise UnusableCell(f"{what} has the negative weight {text}", position)
        unit = math.lcm(*{weight.denominator for weight in found.values()})
        self.is_counts &= unit == 1
        whole = {code: weight.numerator * (unit // weight.denominator) for code, weight in found.items()}
        small = max(whole.values(), default=0) * len(column) < LARGEST_SUM
        weights = np.zeros(len(column.texts), np.int64 if small else object)
        weights[list(whole)] = list(whole.values())
        return weights[column.codes], unit

    def table(self) -> ExactTable:
        """The joint table, its symbols sorted by text (by code point, column after column)."""
        notices: list[str] = []
        if self.dropped:
            notices.append(f"dropped {self.dropped} of {self.records} record(s) with an empty cell")
        if not self._mass:
            raise InputError(f"there are no records{' left: ' + notices[0] if notices else ''}")
        rows, columns = self._sensitive.texts, self._useful.texts
        split = len(self.roles.sensitive)
        rows = self._without_decimal_points(rows, self.roles.sensitive, notices)
        columns = self._without_decimal_points(columns, self.roles.columns[split:], notices)
        order = [sorted(range(len(symbols)), key=symbols.__getitem__) for symbols in (rows, columns)]
        sensitive = Variable(self.roles.sensitive, tuple(rows[s] for s in order[0]))
        useful = Variable(self.roles.useful, tuple(columns[x] for x in order[1]))
        values = [[self._mass.get(s * MOST_SYMBOLS + x, 0) for x in order[1]] for s in order[0]]
        return without_empty(sensitive, useful, scaled(values, sensitive, useful), tuple(notices))

    def _without_decimal_points(
        self, symbols: tuple[Symbol, ...], columns: Sequence[str], notices: list[str]
    ) -> tuple[Symbol, ...]:
        """Undo pandas' change of integers to floats in columns with missing cells: 1.0 becomes 1 again.

        Only where every number of such a column is whole; a column of floats without gaps keeps its texts.
        """
        parts = list(zip(*symbols, strict=True))
        for i, name in enumerate(columns[: len(parts)]):
            whole = tuple(map(as_whole, parts[i]))
            changed = all(was != now for was, now in zip(parts[i], whole, strict=True) if was)
            if name in self.floats and name in self.gaps and changed:
                notices.append(f"the column {quoted(name)} holds integers and gaps; 1.0 is read as 1")
                parts[i] = whole
        return tuple(zip(*parts, strict=True))
