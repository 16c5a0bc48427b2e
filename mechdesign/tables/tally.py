"""Counting records: from batches of cells to the exact joint table of the chosen columns.

A `Tally` is made once for the `Roles` of the columns. `add_columns` is called for every batch: it
treats missing cells, turns weights into exact fractions, numbers the symbols in the order in which
they come (`formats.distinct.Numbering`), and adds the mass of each pair of symbols to a dictionary.
`table`, at the end, sorts the symbols by text and scales the masses to integers. So the result
depends neither on the order of the records nor on how they are cut into batches.

For example, the records (nurse, 1.5), (clerk, 1), (nurse, 2) of one useful column with weights give
the masses nurse 7/2 and clerk 1, and the integers clerk 2 and nurse 7: halves are the unit.

*Frames and lazy tables.* `counted_columns` yields the same of every container: parts, each with its
columns as codes into texts, and how many records each row of the part counts for. A `Tally` adds
the parts up. There are three ways to a part:

- A data frame in memory is one part, with one record a row.
- A table of Dask is counted partition by partition on its workers (`_dask_counts`).
- Any other lazy table is grouped where its data are, and only the groups are fetched
  (`_lazy_counts`).

For example, the column job of a frame with the records nurse, clerk, nurse has the codes 0, 1, 0
into the texts nurse and clerk, and no numbers. A lazy table of the same records has the codes 0, 1
and the numbers of records 2, 1.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.arguments import HOW_WRITTEN, fraction_of_text, repeated
from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.core.wording import quoted
from mechdesign.formats.cells import (
    CellForm,
    Encoded,
    Normalisation,
    as_whole,
    encoded_columns,
)
from mechdesign.formats.column_names import require_column
from mechdesign.formats.distinct import (
    Numbering,
    counted_records,
    distinct_numbers,
    distinct_records,
)
from mechdesign.formats.spellings import alike_notice
from mechdesign.tables.cell_values import (
    REFUSE,
    CellRules,
    check_missing,
    counted_as,
    released_as,
)
from mechdesign.tables.exact_table import ExactTable, scaled, without_empty
from mechdesign.tables.succession import MEANING, Succession
from mechdesign.tables.variable import Symbol, Variable

# --------------------------------------------------------------- frames and lazy tables


def counted_columns(
    frame: Any, names: Sequence[str]
) -> Iterator[tuple[Sequence[Encoded], Integers | None]]:
    """The columns of a table, part by part, and the number of records of each row.

    None in place of the numbers means one record each.

    Parameters
    ----------
    frame : data frame or lazy table
        The records.
    names : sequence of str
        The columns.
    """
    import narwhals as nw

    if _is_dask(frame):
        yield from _dask_counts(frame, names)
        return
    try:
        table: Any = nw.from_native(frame)
    except (TypeError, nw.exceptions.DuplicateError):
        # `encoded_columns` explains what is wrong.
        table = None
    if isinstance(table, nw.LazyFrame):
        yield _lazy_counts(table, names)
    else:
        yield encoded_columns(frame, names), None


def _is_dask(frame: Any) -> bool:
    """Whether a table is a frame of Dask, which need not be installed."""
    # A frame exists only if its package was imported.
    dask = sys.modules.get("dask.dataframe")
    return dask is not None and isinstance(frame, dask.DataFrame)


def _dask_counts(
    frame: Any, names: Sequence[str]
) -> Iterator[tuple[Sequence[Encoded], Integers]]:
    """The distinct records of every partition with their numbers.

    A record may occur in several parts. Parts have texts of their own, so their codes differ.
    """
    import dask

    for name in names:
        require_column(name, list(frame.columns))
    # Only the counts leave the workers. Dask would hash every part for a pure function.
    tools: Any = dask
    count = tools.delayed(_counts_of_part, pure=False)
    parts = frame[list(names)].to_delayed()
    yield from tools.compute(*(count(part, names) for part in parts))


def _counts_of_part(
    part: Any, names: Sequence[str]
) -> tuple[Sequence[Encoded], Integers]:
    """The distinct records of a part, and how often each occurs.

    `part` is the pandas frame of one partition.
    """
    columns = encoded_columns(part, names)
    # `distinct` has a row of codes for each distinct record; `inverse` names the row of it that
    # each record equals.
    distinct, inverse = distinct_records(columns)
    coded: list[Encoded] = []
    for column, codes in zip(columns, distinct.T, strict=True):
        coded.append(column.recoded(codes))
    return coded, np.bincount(inverse)


def _lazy_counts(table: Any, names: Sequence[str]) -> tuple[list[Encoded], Integers]:
    """The groups of a lazy table, and their numbers of records.

    Engines decide themselves which cells are equal: some have collations that make different texts
    equal.
    """
    import narwhals as nw

    available = table.collect_schema().names()
    for name in names:
        require_column(name, available)
    # Longer than every name, so it is none of them.
    count_name = max(available, key=len) + "_"
    groups = table.group_by(*names).agg(nw.len().alias(count_name))
    # Polars then reads its files in pieces.
    if table.implementation.is_polars():
        counted: Any = groups.collect(engine="streaming")
    else:
        counted = groups.collect()
    columns = encoded_columns(counted.to_native(), names)
    return columns, counted[count_name].to_numpy().astype(np.int64)


# -------------------------------------------------------------------------------- tally

Missing: TypeAlias = str
"""The effect of a missing cell: an error (``refuse``), the empty symbol (``symbol``), or its record
is not counted (``drop``; ``marginal`` and ``output:LABEL`` also say what `apply` releases for it).
"""

MOST_SYMBOLS = 1 << 31
"""Bound of the numbers of symbols, so that a pair of them is one integer. Memory ends long
before."""

MOST_CELLS = 1 << 25
"""Most cells of a table: some 1.5 GB at the peak, because the counts are Python integers."""

LARGEST_SUM = 2**63
"""Bound of sums of weights that are added as machine integers."""


class UnusableCell(InputError):
    """A missing cell or an invalid weight, in the record at `position` of those added together."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


@dataclass(frozen=True)
class Roles:
    """The sensitive columns, the useful ones, and perhaps one with the weight of a record.

    The useful columns may be the sensitive ones: then a release of the column is to protect it.
    """

    sensitive: tuple[str, ...]
    useful: tuple[str, ...]
    weight: str | None = None

    def __post_init__(self) -> None:
        if not self.sensitive or not self.useful:
            raise InputError("name at least one sensitive and one useful column")
        twice = repeated(self.columns)
        if twice is not None:
            raise InputError(
                f"the column {quoted(twice)} is named {self.columns.count(twice)} times; "
                "sensitive, useful and weight must be different columns, or the useful columns "
                "all of the sensitive ones in the same order"
            )

    @property
    def are_same(self) -> bool:
        """Whether the useful columns are the sensitive ones."""
        return self.sensitive == self.useful

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """All columns, each once: sensitive, useful, then the weight if there is one."""
        columns = self.sensitive
        if not self.are_same:
            columns = (*columns, *self.useful)
        if self.weight is not None:
            columns = (*columns, self.weight)
        return columns


@dataclass(frozen=True)
class _Weights:
    """The weight of every record as an integer number of units, `per_one` of which make 1."""

    units: NDArray[Any]
    per_one: int


class Tally:
    """Exact mass of every combination of symbols, added batch by batch.

    Attributes
    ----------
    roles : Roles
        The columns.
    missing : 'refuse', 'symbol' or 'drop'
        The effect of a missing cell.
    form : CellForm
        The form in which cells are compared.
    rules : CellRules
        What the table tells the channel about its cells.
    records, dropped : int
        The number of records so far, and of those dropped for a missing cell.
    gaps : set of str
        Columns with missing cells.
    floats : set of str
        Columns that came as floats.
    is_counts : bool
        Whether the masses are numbers of records: every weight was whole.
    """

    def __init__(
        self,
        roles: Roles,
        missing: Missing = REFUSE,
        form: CellForm | None = None,
    ) -> None:
        check_missing(missing)
        self.roles = roles
        self.missing = counted_as(missing)
        self.form = form or CellForm()
        self.rules = CellRules(
            counted=self.missing,
            missing=released_as(missing),
            normalise=cast("Normalisation", self.form.normalise),
            trim=self.form.trim,
            missing_codes=self.form.missing_codes,
        )
        self.records = 0
        self.dropped = 0
        self.gaps: set[str] = set()
        self.floats: set[str] = set()
        self.is_counts = True
        self._not_floats: set[str] = set()
        """Columns of which a part came as other than floats."""
        self._sensitive = Numbering()
        self._useful = Numbering()
        self._mass: dict[int, Fraction | int] = {}
        """By ``s * MOST_SYMBOLS + x``, the numbers of a sensitive and a useful symbol."""
        self._succession = Succession()

    def add_columns(
        self, columns: Sequence[Encoded], times: Integers | None = None
    ) -> None:
        """Add n records, in batches of any size and any number.

        Parameters
        ----------
        columns : sequence of Encoded
            Their cells, in the order of `Roles.columns`.
        times : (n,) array, optional
            How many records each one counts for; one by default.

        Raises
        ------
        UnusableCell
            If a cell is missing that must not be, or a weight is not a number of at least 0.
        """
        self.records += _total(len(columns[0]), times)
        columns = self._in_form(columns)
        # Before records with gaps are dropped: they decide whether a column is one of floats.
        self._note_types(columns)
        gaps = self._gaps_in(columns)
        self.gaps |= gaps.keys()
        if gaps:
            columns, times = self._without_gaps(columns, gaps, times)
        # Groups of a lazy table count for several records each; a weight column multiplies these.
        weights = None if times is None else _Weights(times, 1)
        if self.roles.weight is not None:
            weights = self._weights(columns[-1], times)
            columns = columns[:-1]
        if len(columns[0]):
            self._add_masses(columns, weights)

    def _in_form(self, columns: Sequence[Encoded]) -> Sequence[Encoded]:
        """The columns with their cells in the form, and the weights in theirs."""
        if self.form.changes_nothing:
            return columns
        size = len(self.roles.sensitive) + len(self.roles.useful)
        symbols = [self.form.cells(column) for column in columns[:size]]
        form = _form_of_weights(self.form)
        return [*symbols, *map(form.cells, columns[size:])]

    def _note_types(self, columns: Sequence[Encoded]) -> None:
        """Remember the columns that came as floats, and as anything else."""
        for name, column in zip(self.roles.columns, columns, strict=True):
            if column.is_float:
                self.floats.add(name)
            elif column.texts:
                self._not_floats.add(name)

    def _gaps_in(self, columns: Sequence[Encoded]) -> dict[str, NDArray[np.bool_]]:
        """For each column with missing cells, which records miss it."""
        gaps: dict[str, NDArray[np.bool_]] = {}
        for name, column in zip(self.roles.columns, columns, strict=True):
            if len(column) and column.codes.min() < 0:
                gaps[name] = column.codes < 0
        return gaps

    def _add_masses(self, columns: Sequence[Encoded], weights: _Weights | None) -> None:
        """Add the masses of records without gaps, given by their sensitive and useful columns."""
        split = len(self.roles.sensitive)
        if weights is None:
            self._succession.add(columns, split)
            counted = counted_records(columns)
            if counted is not None:
                columns, times = counted
                weights = _Weights(times, 1)
        sensitive = self._sensitive.number(columns[:split])
        released = columns if self.roles.are_same else columns[split:]
        useful = self._useful.number(released)
        # One integer for each pair of symbols, small enough to be counted by position.
        width = len(self._useful)
        # `pairs` are the distinct ones, `inverse` the place of each record's pair among them.
        pairs, inverse = distinct_numbers(
            sensitive * width + useful, len(self._sensitive) * width
        )
        unit = 1
        if weights is None:
            masses: NDArray[Any] = np.bincount(inverse)
        else:
            unit = weights.per_one
            # Unlike `bincount`, which adds in doubles, this is exact.
            masses = np.zeros(len(pairs), weights.units.dtype)
            np.add.at(masses, inverse, weights.units)
        # The number of useful symbols may still grow with later batches, so the key of a pair in
        # `_mass` does not depend on it, as the pair's number here does.
        keys: list[int] = (pairs // width * MOST_SYMBOLS + pairs % width).tolist()
        for key, mass in zip(keys, masses.tolist(), strict=True):
            exact = mass if unit == 1 else Fraction(mass, unit)
            # Fractions, because each batch may have another unit.
            self._mass[key] = self._mass.get(key, 0) + exact

    def _without_gaps(
        self,
        columns: Sequence[Encoded],
        gaps: Mapping[str, NDArray[np.bool_]],
        times: Integers | None,
    ) -> tuple[Sequence[Encoded], Integers | None]:
        """The records after the treatment of their missing cells, by `missing`."""
        incomplete = np.logical_or.reduce(list(gaps.values()))
        if self.missing == "drop":
            complete = ~incomplete
            left = [column.recoded(column.codes[complete]) for column in columns]
            if times is None:
                self.dropped += int(np.count_nonzero(incomplete))
                return left, None
            self.dropped += int(times[incomplete].sum())
            return left, times[complete]
        weight = self.roles.weight
        if weight is not None and weight in gaps:
            raise UnusableCell(
                f"the weight column {quoted(weight)} has an empty cell; give a number, or leave "
                "such records out (--missing drop)",
                int(np.argmax(gaps[weight])),
            )
        if self.missing == "refuse":
            first = int(np.argmax(incomplete))
            empty = next(name for name, missing in gaps.items() if missing[first])
            raise UnusableCell(
                f"the column {quoted(empty)} has an empty cell; fill it, or say what it means with "
                "missing (--missing): 'symbol', 'drop' or 'marginal'",
                first,
            )
        return columns, times

    def _weights(self, column: Encoded, times: Integers | None) -> _Weights:
        """The weight of each record, times the number of records that it counts for."""
        weight_of = self._weight_of_code(column)
        # Decimals are exact: all weights here become whole numbers of units of 1 / per_one.
        per_one = 1
        for weight in weight_of.values():
            per_one = math.lcm(per_one, weight.denominator)
        if per_one != 1:
            self.is_counts = False
        units_of: dict[int, int] = {}
        for code, weight in weight_of.items():
            units_of[code] = weight.numerator * (per_one // weight.denominator)
        # Python's integers add what could overflow machine integers.
        bound = max(units_of.values(), default=0) * _total(len(column), times)
        dtype = np.int64 if bound < LARGEST_SUM else object
        table = np.zeros(len(column.texts), dtype)
        table[list(units_of)] = list(units_of.values())
        units = table[column.codes]
        if times is not None:
            units = units * times
        return _Weights(units, per_one)

    def _weight_of_code(self, column: Encoded) -> dict[int, Fraction]:
        """The exact weight of each code.

        The first invalid one in the order of records is refused.
        """
        name = f"the weight column {quoted(self.roles.weight)}"
        # Codes by their first record, so that the error names the first faulty line.
        codes, first = np.unique(column.codes, return_index=True)
        order = np.argsort(first)
        weights: dict[int, Fraction] = {}
        ordered_codes: list[int] = codes[order].tolist()
        positions: list[int] = first[order].tolist()
        for code, position in zip(ordered_codes, positions, strict=True):
            text = column.texts[code]
            try:
                weight = fraction_of_text(text)
            except InputError:
                # Whoever names another column as the weight does not want its cells in a log.
                raise UnusableCell(
                    f"{name} has a cell that is no finite number; {HOW_WRITTEN}",
                    position,
                ) from None
            if weight < 0:
                raise UnusableCell(f"{name} has the negative weight {text}", position)
            weights[code] = weight
        return weights

    @property
    def cells(self) -> int:
        """Size of the joint table so far: sensitive symbols times useful ones."""
        return len(self._sensitive) * len(self._useful)

    def table(self) -> ExactTable:
        """The joint table, its symbols sorted by text (by code point, column after column).

        Raises
        ------
        InputError
            If there are no records, one number has two texts, or nothing remains to release.
        """
        notices: list[str] = []
        if self.dropped:
            notices.append(
                f"dropped {self.dropped} of {self.records} record(s) with an empty cell"
            )
        # What the notices explain is the cause, if nothing is left.
        if not self._mass:
            cause = f" left: {notices[0]}" if notices else ""
            raise InputError(f"there are no records{cause}")
        # Partitions of one table may have different types.
        mixed = self.floats & self._not_floats
        if mixed:
            raise InputError(
                f"the column {quoted(min(mixed))} holds floats in one part of the table and other "
                "cells in another, so that one number has two texts; give it one type"
            )
        self._check_size()
        rows = self._without_decimal_points(
            self._sensitive.texts, self.roles.sensitive, notices
        )
        notices += _alike_notices(self.roles.sensitive, rows)
        if self.roles.are_same:
            # The same texts, whose notices are there already.
            columns = rows
        else:
            columns = self._without_decimal_points(
                self._useful.texts, self.roles.useful, notices
            )
            notices += _alike_notices(self.roles.useful, columns)
        # Sorted by text, so that the table does not depend on the order or the parts of the data.
        # The orders have the numbers of the symbols, under which their masses are stored.
        row_order = sorted(range(len(rows)), key=rows.__getitem__)
        column_order = sorted(range(len(columns)), key=columns.__getitem__)
        # Most cells of many columns are empty, so that only those with mass are visited.
        row_of = {s: row for row, s in enumerate(row_order)}
        column_of = {x: column for column, x in enumerate(column_order)}
        masses: list[list[Fraction | int]] = [[0] * len(columns) for _ in rows]
        for key, mass in self._mass.items():
            s, x = divmod(key, MOST_SYMBOLS)
            masses[row_of[s]][column_of[x]] = mass
        notices += self._succession_notices(masses)
        sorted_rows = tuple(map(rows.__getitem__, row_order))
        sorted_columns = tuple(map(columns.__getitem__, column_order))
        sensitive = Variable(self.roles.sensitive, sorted_rows)
        useful = Variable(self.roles.useful, sorted_columns)
        counts = scaled(masses, sensitive, useful)
        # Weights of zero give symbols without mass.
        return without_empty(sensitive, useful, counts, tuple(notices))

    def _succession_notices(self, masses: Sequence[Sequence[Any]]) -> list[str]:
        """That the records seem to depend on each other."""
        # Counts of records weigh 1 each; otherwise nothing was added to the succession.
        counts = np.array([float(sum(row)) for row in masses])
        found = self._succession.finding(self.roles.sensitive, counts, len(self._mass))
        return [] if found is None else [f"{found}: {MEANING}"]

    def _check_size(self) -> None:
        """Refuse a table that would not fit into memory, before it is made."""
        if self.cells <= MOST_CELLS:
            return
        sensitive, useful = len(self._sensitive), len(self._useful)
        raise InputError(
            f"the sensitive column {quoted(','.join(self.roles.sensitive))} has {sensitive:,} "
            f"different values, and {quoted(','.join(self.roles.useful))} has {useful:,}: a table "
            f"of both has {self.cells:,} cells, more than memory is planned for; name columns "
            "with fewer values, or sort numbers into classes first"
        )

    def _without_decimal_points(
        self, symbols: tuple[Symbol, ...], columns: Sequence[str], notices: list[str]
    ) -> tuple[Symbol, ...]:
        """Undo pandas' change of integers with gaps to floats: 1.0 becomes 1 again.

        Each column that is changed gets its sentence in `notices`.
        """
        parts = list(zip(*symbols, strict=True))
        if not parts:
            return ()
        for i, name in enumerate(columns):
            if name not in self.floats or name not in self.gaps:
                continue
            whole = tuple(map(as_whole, parts[i]))
            # A text that stays was a fraction, and then the column was not one of integers.
            # Neither is one of empty cells alone.
            is_whole = any(parts[i])
            for text, integer in zip(parts[i], whole, strict=True):
                if text and text == integer:
                    is_whole = False
            if is_whole:
                notices.append(
                    f"the column {quoted(name)} holds integers and gaps; 1.0 is read as 1"
                )
                parts[i] = whole
        return tuple(zip(*parts, strict=True))


def _alike_notices(columns: Sequence[str], symbols: Sequence[Symbol]) -> list[str]:
    """A notice for each column with symbols that look alike."""
    notices: list[str] = []
    for name, texts in zip(columns, zip(*symbols, strict=True), strict=False):
        notice = alike_notice(name, texts)
        if notice is not None:
            notices.append(notice)
    return notices


def _form_of_weights(form: CellForm) -> CellForm:
    """What a form makes of weights: codes of missing values become empty cells.

    A code that is a weight itself stays one: 9 may be missing in an answer, and 9 records here.
    """
    codes = [code for code in form.missing_codes if not _is_weight(code)]
    return CellForm(trim=form.trim, missing_codes=tuple(codes))


def _is_weight(text: str) -> bool:
    """Whether a cell can be a weight: a finite number of at least 0."""
    try:
        return fraction_of_text(text) >= 0
    except InputError:
        return False


def _total(records: int, times: Integers | None) -> int:
    """The number of records that count."""
    return records if times is None else int(times.sum())
