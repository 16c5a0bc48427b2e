"""Counting records: from batches of cells to the exact joint table of the columns asked for.

Lazy tables are grouped where the data are, and only the groups with their numbers of records are fetched.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.core.numbers import fraction_of_text, quoted, repeated
from mechdesign.formats import cells
from mechdesign.formats.cells import Encoded, Numbering
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
        return (
            *self.sensitive,
            *self.useful,
            *([] if self.weight is None else [self.weight]),
        )


def check_missing(missing: str) -> None:
    """Refuse what is no `Missing`."""
    if missing not in get_args(Missing):
        raise InputError(
            f"--missing ({quoted(missing)}) must be one of {', '.join(get_args(Missing))}"
        )


class Tally:
    """Exact mass of every combination of symbols, record by record."""

    def __init__(self, roles: Roles, missing: Missing = "refuse") -> None:
        check_missing(missing)
        self.roles = roles
        self.missing = missing
        self.records = 0
        self.dropped = 0
        self.gaps: set[str] = set()
        """Columns in which cells were missing."""
        self.floats: set[str] = set()
        """Columns that came as floats."""
        self._others: set[str] = set()
        """Columns of which parts came otherwise."""
        self._sensitive, self._useful = Numbering(), Numbering()
        self._mass: dict[int, Fraction | int] = {}
        """By the numbers of a sensitive and a useful symbol, ``s * MOST_SYMBOLS + x``."""
        self.is_counts = True
        """Whether the masses are numbers of records: every weight was whole."""

    def add_columns(
        self, columns: Sequence[Encoded], times: Integers | None = None
    ) -> None:
        """Add records given by their columns, in the order of `Roles.columns`; each stands for `times` records."""
        named = list(zip(self.roles.columns, columns, strict=True))
        self.records += len(columns[0]) if times is None else int(times.sum())
        self.floats |= {name for name, column in named if column.is_float}
        self._others |= {
            name for name, column in named if column.texts and not column.is_float
        }
        gaps = {
            name: column.codes < 0
            for name, column in named
            if len(column) and column.codes.min() < 0
        }
        self.gaps |= gaps.keys()
        if gaps:
            columns, times = self._without_gaps(columns, gaps, times)
        split, weights, unit = len(self.roles.sensitive), times, 1
        if self.roles.weight is not None:
            weights, unit = self._weights(columns[-1], times)
            columns = columns[:-1]
        if not len(columns[0]):
            return
        s, x = (
            self._sensitive.number(columns[:split]),
            self._useful.number(columns[split:]),
        )
        width = len(self._useful)
        pairs, inverse = cells.distinct_numbers(
            s * width + x, len(self._sensitive) * width
        )
        if weights is None:
            numbers = np.bincount(inverse)
        else:
            numbers = np.zeros(len(pairs), weights.dtype)
            np.add.at(numbers, inverse, weights)
        keys: list[int] = (pairs // width * MOST_SYMBOLS + pairs % width).tolist()
        for key, number in zip(keys, numbers.tolist(), strict=True):
            self._mass[key] = self._mass.get(key, 0) + (
                number if unit == 1 else Fraction(number, unit)
            )

    def _without_gaps(
        self,
        columns: Sequence[Encoded],
        gaps: Mapping[str, NDArray[np.bool_]],
        times: Integers | None,
    ) -> tuple[Sequence[Encoded], Integers | None]:
        """The records after the missing cells in them were dealt with as `missing` says."""
        some = np.logical_or.reduce(list(gaps.values()))
        if self.missing == "drop":
            self.dropped += int(
                np.count_nonzero(some) if times is None else times[some].sum()
            )
            kept = [
                Encoded(column.codes[~some], column.texts, column.is_float)
                for column in columns
            ]
            return kept, None if times is None else times[~some]
        if self.missing == "refuse":
            first = int(np.argmax(some))
            empty = next(
                name
                for name in self.roles.columns
                if name in gaps and gaps[name][first]
            )
            how = "fill it, or say what it means with missing (--missing): 'symbol' or 'drop'"
            raise UnusableCell(
                f"the column {quoted(empty)} has an empty cell; {how}", first
            )
        weight = self.roles.weight
        if weight is not None and weight in gaps:
            message = (
                f"the weight column {quoted(weight)} has an empty cell; give a number"
            )
            raise UnusableCell(message, int(np.argmax(gaps[weight])))
        return columns, times

    def _weights(
        self, column: Encoded, times: Integers | None
    ) -> tuple[NDArray[Any], int]:
        """The weight of every record (times `times`) as an integer, and how many of these units make 1."""
        found: dict[int, Fraction] = {}
        codes, first = np.unique(column.codes, return_index=True)
        pairs: list[tuple[int, int]] = list(
            zip(first.tolist(), codes.tolist(), strict=True)
        )
        for position, code in sorted(pairs):
            text, what = (
                column.texts[code],
                f"the weight column {quoted(self.roles.weight)}",
            )
            try:
                found[code] = fraction_of_text(text)
            except InputError as error:
                raise UnusableCell(f"{what}: {error}", position) from None
            if found[code] < 0:
                raise UnusableCell(f"{what} has the negative weight {text}", position)
        unit = math.lcm(*{weight.denominator for weight in found.values()})
        self.is_counts &= unit == 1
        whole = {
            code: weight.numerator * (unit // weight.denominator)
            for code, weight in found.items()
        }
        records = len(column) if times is None else int(times.sum())
        small = max(whole.values(), default=0) * records < LARGEST_SUM
        weights = np.zeros(len(column.texts), np.int64 if small else object)
        weights[list(whole)] = list(whole.values())
        each = weights[column.codes]
        return each if times is None else each * times, unit

    @property
    def cells(self) -> int:
        """Size of the table that `table` gives: sensitive symbols times useful ones, so far."""
        return len(self._sensitive) * len(self._useful)

    def table(self) -> ExactTable:
        """The joint table, its symbols sorted by text (by code point, column after column)."""
        notices: list[str] = []
        if self.dropped:
            notices.append(
                f"dropped {self.dropped} of {self.records} record(s) with an empty cell"
            )
        if not self._mass:
            raise InputError(
                f"there are no records{' left: ' + notices[0] if notices else ''}"
            )
        if mixed := self.floats & self._others:
            raise InputError(
                f"the column {quoted(min(mixed))} holds floats in one part of the table and other cells in another, so "
                "that one number has two texts; give it one type"
            )
        rows, columns = self._sensitive.texts, self._useful.texts
        split = len(self.roles.sensitive)
        rows = self._without_decimal_points(rows, self.roles.sensitive, notices)
        columns = self._without_decimal_points(
            columns, self.roles.columns[split:], notices
        )
        order = [
            sorted(range(len(symbols)), key=symbols.__getitem__)
            for symbols in (rows, columns)
        ]
        sensitive = Variable(self.roles.sensitive, tuple(rows[s] for s in order[0]))
        useful = Variable(self.roles.useful, tuple(columns[x] for x in order[1]))
        values = [
            [self._mass.get(s * MOST_SYMBOLS + x, 0) for x in order[1]]
            for s in order[0]
        ]
        return without_empty(
            sensitive, useful, scaled(values, sensitive, useful), tuple(notices)
        )

    def _without_decimal_points(
        self, symbols: tuple[Symbol, ...], columns: Sequence[str], notices: list[str]
    ) -> tuple[Symbol, ...]:
        """Undo pandas' change of whole numbers to floats in columns with missing cells: 1.0 becomes 1 again."""
        parts = list(zip(*symbols, strict=True))
        for i, name in enumerate(columns[: len(parts)]):
            whole = tuple(map(cells.as_whole, parts[i]))
            changed = all(
                was != now for was, now in zip(parts[i], whole, strict=True) if was
            )
            if name in self.floats and name in self.gaps and changed:
                notices.append(
                    f"the column {quoted(name)} holds integers and gaps; 1.0 is read as 1"
                )
                parts[i] = whole
        return tuple(zip(*parts, strict=True))


def counted_columns(
    frame: Any, names: Sequence[str]
) -> Iterator[tuple[Sequence[Encoded], Integers | None]]:
    """The columns of a table, part by part, and how many records each of their rows stands for (None: one).

    Dask counts partition by partition. What other engines group they hold for equal themselves: 0.0 and -0.0, which are
    both written 0.0, and texts that a collation of theirs makes equal.
    """
    import narwhals as nw

    if hasattr(frame, "to_delayed"):
        import dask

        for name in names:
            cells.require_column(name, list(frame.columns))
        tools: Any = dask
        count, parts = (
            tools.delayed(_counted, pure=False),
            frame[list(names)].to_delayed(),
        )
        yield from tools.compute(*(count(part, names) for part in parts))
        return
    try:
        table: Any = nw.from_native(frame)
    except (
        TypeError,
        nw.exceptions.DuplicateError,
    ):  # the next line says what is wrong
        table = None
    if not isinstance(table, nw.LazyFrame):
        yield cells.encoded_columns(frame, names), None
        return
    available = table.collect_schema().names()
    for name in names:
        cells.require_column(name, available)
    number = max(available, key=len) + "_"  # no column is called so
    how: Any = {"engine": "streaming"} if table.implementation.is_polars() else {}
    found: Any = table.group_by(*names).agg(nw.len().alias(number)).collect(**how)
    columns: list[Encoded] = []
    for each in cells.encoded_columns(found.to_native(), names):
        texts = tuple(
            "0.0" if each.is_float and text == "-0.0" else text for text in each.texts
        )
        columns.append(Encoded(each.codes, texts, each.is_float))
    yield columns, found[number].to_numpy().astype(np.int64)


def _counted(part: Any, names: Sequence[str]) -> tuple[Sequence[Encoded], Integers]:
    """The distinct records of a part, and how often each is there."""
    columns = cells.encoded_columns(part, names)
    distinct, inverse = cells.distinct_records(columns)
    codes = zip(distinct.T, columns, strict=True)
    return [
        Encoded(code, each.texts, each.is_float) for code, each in codes
    ], np.bincount(inverse)
