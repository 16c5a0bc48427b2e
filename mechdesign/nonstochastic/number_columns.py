"""Numbers in the columns of a table, batch by batch, as the doubles nearest to their cells.

`usable_records` reads the batches: empty cells are refused, their records dropped, or they stay as
a symbol of their own. Of each batch `numbers_of` gives the numbers of a column, and `truths_of`
ones and zeros to count. A column of texts is *coded*, so that each distinct text is parsed once:
the cells 2.5, 7, 2.5 are the texts ("2.5", "7") with the codes 0, 1, 0, and their numbers are the
values (2.5, 7, NaN) with the same codes. The NaN at the end is that of missing cells, whose code
is -1 and so counts from the end. A fault is a `BadCell` with its position in the batch, which the
reader turns into a place in the table. `groups` adds the numbers up.

*Exact sums* of doubles by group are collected batch by batch. Added as doubles, 1e16, 1 and -1e16
give 0. Here they give 1, in any order of the records:

1. A double is an integer of 53 bits times a power of two (`as_integers`).
2. `ExactSums.add` cuts it into digits of 26 bits at fixed binary places, three neighbouring ones. A
   digit at place k counts units of 2^(26 k), and carries its sign.
3. The digits of each place are added up by group, in doubles, which hold these sums without
   rounding.
4. `ExactSums.totals` puts the digits of a group together, as one integer of any size.

For example, 0.75 is 50331648 units at place -1, that is times 2^-26, and -5 is -5 units at place 0.
The total in units of 2^-26 is -5 * 2^26 + 50331648, which is -4.25.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.arguments import HOW_WRITTEN
from mechdesign.core.errors import FileError, InputError
from mechdesign.core.wording import quoted
from mechdesign.formats.arrow_arrays import arrow_texts, integers_of
from mechdesign.formats.cells import Encoded
from mechdesign.formats.opening import Batch, Source
from mechdesign.tables.reading import coded_columns

# --------------------------------------------------------------------------- exact sums

DIGIT = 26
"""Bits of a digit of a sum. A batch of 2^25 digits, each with a carry below 2^27, still adds up
below 2^53."""

Floats = NDArray[np.float64]
Codes = NDArray[np.integer[Any]]
Indices = NDArray[np.int64]

Multiples: TypeAlias = tuple[Iterable[int], Fraction]
"""Exact numbers, as whole multiples of a unit."""


class ExactSums:
    """The exact sum of the values of every group. Groups are numbered from 0."""

    def __init__(self) -> None:
        # By binary place in digits: the digits of all groups, which may be negative.
        self._digits: dict[int, Codes] = {}

    def add(self, groups: int, present: Codes, member: Codes, values: Floats) -> None:
        """Add a batch of values.

        Parameters
        ----------
        groups
            The number of groups so far.
        present : (k,) integers
            The groups that may occur in the batch.
        member : (n,) integers
            The group of each value, as a place in `present`.
        values : (n,) array
        """
        whole, exponent = as_integers(values)
        places, shift = np.divmod(exponent, DIGIT)
        mask = (1 << DIGIT) - 1
        # A shift of up to 25 bits must not overflow, so the 53 bits are shifted in two halves: the
        # lower 27, whose digits begin at this place, and the upper 26, which are 2^27 = 2^26 * 2
        # units: one place and one bit higher.
        low = (whole & (2 * mask + 1)) << shift
        high = (whole >> (DIGIT + 1)) << (shift + 1)
        digits = (low & mask, (low >> DIGIT) + (high & mask), high >> DIGIT)
        # Values of one magnitude share their places, so each place is added for all of them.
        lowest = int(places.min(initial=0))
        occurring = np.flatnonzero(np.bincount(places - lowest)) + lowest
        for place in occurring.tolist():
            here = places == place
            signs = np.sign(values[here])
            for k, digit in enumerate(digits, start=place):
                sums = grown(self._digits.get(k, np.zeros(0, np.int64)), groups)
                self._digits[k] = sums
                signed = (digit[here] * signs).astype(np.float64)
                # Exact: see DIGIT.
                added = np.bincount(member[here], signed, present.size)
                sums[present] += added.astype(np.int64)

    def totals(self, groups: int) -> Multiples:
        """The exact sum of each group."""
        sums_by_place = self._digits or {0: np.zeros(0, np.int64)}
        lowest = min(sums_by_place)
        shifts = [(place - lowest) * DIGIT for place in sums_by_place]
        digits = [grown(sums, groups)[:groups] for sums in sums_by_place.values()]

        def totals() -> Iterator[int]:
            # One by one: a list of so many integers would take more room than the digits.
            for row in zip(*digits, strict=True):
                total = 0
                for digit, shift in zip(row, shifts, strict=True):
                    total += int(digit) << shift
                yield total

        return totals(), Fraction(2) ** (lowest * DIGIT)


def grown(array: Codes, size: int) -> Codes:
    """The array, extended by zeros to `size` or to twice its length, so that growing is cheap."""
    if array.size >= size:
        return array
    return np.pad(array, (0, max(size, 2 * array.size) - array.size))


def as_integers(values: Floats) -> tuple[Indices, Indices]:
    """The magnitudes of doubles as integers below 2^53, and their exponents of two (0 for 0)."""
    mantissa, exponent = np.frexp(np.abs(values))
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    exponents = np.where(values == 0, 0, exponent - 53).astype(np.int64)
    return whole, exponents


# ------------------------------------------------------------------------------ columns

NUMBER = r"^[ \t]*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,9})?[ \t]*$"
"""Pattern of a number: digits in plain or scientific notation, neither NaN nor infinity."""

TRUTHS = {"0": 0.0, "1": 1.0, "false": 0.0, "true": 1.0, "False": 0.0, "True": 1.0}
"""The number of each cell of a truth column, whose records are counted without naming a value."""

MISSING_RULES = ("refuse", "symbol", "drop")
"""Treatments of an empty cell among numbers, of which nothing is ever drawn."""


class BadCell(InputError):
    """A cell without a usable number, at `position` of its batch; `what` describes the fault."""

    def __init__(self, position: int, what: str) -> None:
        super().__init__(what)
        self.position = position
        self.what = what


@dataclass(frozen=True, eq=False)
class Numbers:
    """A column of numbers, coded: the number of record i is ``values[codes[i]]``.

    Parameters
    ----------
    values : (m,) array
        NaN where a text is no number. The last entry is that of missing cells, whose code is -1.
    codes : (n,) integers
    """

    values: Floats
    codes: Codes


def usable_records(
    table: Source,
    names: Sequence[str],
    missing: str,
    *,
    stored: str | None = None,
    whole: bool = False,
    advise: bool = True,
    left_out: Callable[[int], None] | None = None,
) -> Iterator[tuple[Batch, Indices, list[Any]]]:
    """Batches of records without an empty cell that is not allowed.

    Parameters
    ----------
    names
        The columns to read.
    missing
        The treatment of a record with an empty cell: refuse, drop or symbol.
    stored
        A column that stays an arrow array where a Parquet file stores it as numbers.
    whole
        Whether a batch keeps the other columns, too.
    advise
        Whether the error for an empty cell names the options of the command line.
    left_out
        Is told how many records of a batch are dropped.

    Yields
    ------
    The batch, the places of its records in the table (from 0), and the columns `names`.

    Raises
    ------
    InputError
        If a cell is empty and `missing` is "refuse".
    """
    # The batch codes texts, and leaves a column of stored numbers as it is.
    numeric_names = [name for name in names if name == stored]
    text_names = [name for name in names if name != stored]
    first = 0
    for batch in table.batches(encode=text_names, read=numeric_names, whole=whole):
        columns = _columns(table, batch, names, numeric_names)
        rows = np.arange(first, first + batch.num_rows)
        first += len(rows)
        try:
            in_use = usable(columns, names, missing, advise=advise)
        except BadCell as error:
            place = table.where(int(rows[error.position]))
            raise FileError(table.name, f"{place}: {error.what}") from None
        if in_use is not None:
            if left_out is not None:
                left_out(int(np.count_nonzero(~in_use)))
            batch = batch.select(in_use)
            rows = rows[in_use]
            columns = [selected(column, in_use) for column in columns]
        # A batch may have lost all its records.
        if len(rows):
            yield batch, rows, columns


def usable(
    columns: Sequence[Any], names: Sequence[str], missing: str, *, advise: bool = True
) -> NDArray[np.bool_] | None:
    """The records without an empty cell, where the others are dropped; None if all are used.

    Parameters
    ----------
    columns
        Columns of one batch, coded or arrow arrays.
    names, missing, advise
        As in `usable_records`.

    Raises
    ------
    InputError
        If `missing` is not a treatment of empty cells.
    BadCell
        If a cell is empty and `missing` is "refuse".
    """
    if missing not in MISSING_RULES:
        raise InputError(
            f"--missing ({quoted(missing)}) must be one of {', '.join(MISSING_RULES)}"
        )
    empty = [_empty_cells(column) for column in columns]
    incomplete = np.logical_or.reduce(empty)
    if missing == "symbol" or not incomplete.any():
        return None
    if missing == "drop":
        return ~incomplete
    position = int(incomplete.argmax())
    name = next(n for n, cells in zip(names, empty, strict=True) if cells[position])
    advice = ""
    if advise:
        advice = (
            "; say --missing drop, or in a column of names --missing symbol (a value of "
            "its own)"
        )
    raise BadCell(position, f"the column {quoted(name)} is empty there{advice}")


def selected(column: Any, in_use: NDArray[np.bool_]) -> Any:
    """Some records of a column, coded or an arrow array."""
    if isinstance(column, Encoded):
        return Encoded(column.codes[in_use], column.texts, column.is_float)
    return column.filter(in_use)


def numbers_of(column: Any, name: str, *, advise: bool = False) -> Numbers:
    """The numbers of a column of a batch: coded texts, or an arrow array of numbers.

    Parameters
    ----------
    advise
        Whether the error for an empty cell names the option that leaves its record out.

    Raises
    ------
    BadCell
        If a cell is empty, or holds no finite number.
    """
    if isinstance(column, Encoded):
        # Each distinct text is parsed once.
        values = _parsed(column.texts)
        codes = column.codes
    else:
        # Every cell is its own value: distinct ones are few only where texts are coded.
        values = integers_of(column, 0).astype(np.float64)
        values[_empty_cells(column)] = np.nan
        codes = np.arange(values.size)
    bad = np.flatnonzero(~np.isfinite(values)[codes])
    if bad.size:
        position = int(bad[0])
        if isinstance(column, Encoded):
            # Code -1, a missing cell, is the empty text at the end.
            is_empty = not (*column.texts, "")[codes[position]].strip()
        else:
            is_empty = bool(_empty_cells(column)[position])
        fault = (
            f"holds no finite number there; {HOW_WRITTEN}; a missing value is an empty cell "
            "(--missing drop)"
        )
        if is_empty:
            fault = "is empty there"
            if advise:
                fault += (
                    ", where a number is wanted; --missing drop leaves such records out"
                )
        raise BadCell(position, f"the column {quoted(name)} {fault}")
    return Numbers(values, codes)


def truths_of(column: Encoded, name: str, equals: str | None) -> Numbers:
    """Ones for the cells that are counted, and zeros.

    Parameters
    ----------
    equals
        The text that is counted; without it the column must hold 0 and 1, or false and true.

    Raises
    ------
    BadCell
        If a cell is no truth value, and `equals` is None.
    """
    if equals is not None:
        truths = [float(text == equals) for text in column.texts]
        # A missing cell does not have the value that is counted.
        return Numbers(np.array([*truths, 0.0]), column.codes)
    truths = [TRUTHS.get(text, np.nan) for text in column.texts]
    # A missing cell is neither.
    values = np.array([*truths, np.nan])
    bad = np.flatnonzero(np.isnan(values[column.codes]))
    if bad.size:
        raise BadCell(
            int(bad[0]),
            f"the column {quoted(name)} is neither 0 nor 1 there; to count records with some "
            "value, name it (--equals VALUE)",
        )
    return Numbers(values, column.codes)


def _columns(
    table: Source, batch: Batch, names: Sequence[str], numeric_names: Sequence[str]
) -> list[Any]:
    """The columns of a batch in the order of `names`: stored numbers as arrays, others coded."""
    from pyarrow import types

    arrays: dict[str, Any] = {}
    for name in numeric_names:
        array = batch.column(name)
        # A column of texts or dates is coded like any other.
        if types.is_integer(array.type) or types.is_floating(array.type):
            arrays[name] = array
    coded_names = [name for name in names if name not in arrays]
    coded = iter(coded_columns(table, batch, coded_names))
    columns: list[Any] = []
    for name in names:
        if name in arrays:
            columns.append(arrays[name])
        else:
            columns.append(next(coded))
    return columns


def _empty_cells(column: Any) -> NDArray[np.bool_]:
    """Which cells of a column, coded or an arrow array, are empty."""
    if isinstance(column, Encoded):
        return column.codes < 0
    # NaN is how pandas stores a missing number, and is an empty cell for every other command.
    return _truths_of(column.is_null(nan_is_null=True))


def _truths_of(array: Any) -> NDArray[np.bool_]:
    """A pyarrow array of truth values without nulls."""
    # Truth values are bits in arrow, so they are cast to bytes first.
    return integers_of(array.cast("uint8")) == 1


def _parsed(texts: Sequence[str]) -> Floats:
    """The doubles nearest to texts (NaN for other texts), and a final NaN for missing cells."""
    import pyarrow as pa
    import pyarrow.compute

    compute: Any = pyarrow.compute
    array = arrow_texts(texts)
    is_number = compute.match_substring_regex(array, NUMBER)
    trimmed = compute.utf8_trim(array.filter(is_number), " \t")
    # Arrow's cast refuses a leading plus sign.
    unsigned = compute.replace_substring_regex(trimmed, r"^\+", "")
    try:
        numbers = integers_of(unsigned.cast(pa.float64()))
    except pa.ArrowInvalid:
        # A notation that Arrow does not read, such as "5.".
        numbers = np.array([float(text) for text in unsigned.to_pylist()])
    values = np.full(len(texts) + 1, np.nan)
    values[:-1][_truths_of(is_number)] = numbers
    return values
