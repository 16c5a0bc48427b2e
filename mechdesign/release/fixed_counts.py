"""How many records of each input get each output, when all the counts are fixed.

A channel says how many records of the input x get the output y in the mean, F(x, y), often a
fraction. Independent draws give counts around it, and the counts that come out tell an observer of
the whole file which moves were made. Draws of fixed counts give every output exactly the number of
records that the table's sums promise. Then the whole file tells of a person no more than the own
released value does (docs/explanation/whole-file.md, proposition 1).

For example, two records have the row a, one has b, and the pairs are, in units of 1/4:

          x  y                               x  y         x  y
    a     5  3  = 2 records            a     1  1         2  0
    b     3  1  = 1 record             b     1  0   or    0  1
          2  1  records                with probability 3/4 and 1/4

Whole parts are split off (5 = 4 + 1), and the rest is rounded by `table_rounding`. The mean of
every count is its fraction: a's records go to x 1 * 3/4 + 2 * 1/4 = 5/4 times.

`integer_flows` draws such counts from a key; `assigned_outputs` gives them to the records.

*Mean counts* are exact, in a common unit. A channel has integers for each row, w(x, y), whose sum
may be another one for every row, T(x). If c(x) records have the input x, then c(x) w(x, y) / T(x)
of them get y in the mean. The unit is the smallest fraction 1 / U of which all of these can be
multiples:

    c(x)   w(x, .)   T(x)   c w / T          U      in units
    2      3  5       8      3/4  5/4        4      3  5
    1      5  3       8      5/8  3/8        8      5  3

Together U = 8, and the rows are 6 10 and 5 3. The columns add up to 11 / 8 and 13 / 8: their counts
cannot be fixed, and vary by one record.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.integers import LARGEST_INTEGER, IntegerRows, Integers
from mechdesign.release.draws import Key
from mechdesign.release.table_rounding import KeyedChance, rounded_up

# -------------------------------------------------------------------------- mean counts


@dataclass(frozen=True, eq=False)
class MeanCounts:
    """What `fixed_counts.integer_flows` draws from.

    Attributes
    ----------
    rows, columns : (m,) arrays
        Input and output of each pair.
    values : (m,) array of Python integers
        Records of each pair in the mean, in units of 1 / `unit`.
    row_units : (n,) array
        Records of each input.
    column_units : (k,) array, optional
        Records of each output, if all of these are whole numbers.
    unit : int
        A power of two.
    """

    rows: Integers
    columns: Integers
    values: NDArray[Any]
    row_units: Integers
    column_units: Integers | None
    unit: int


def mean_counts(rows: IntegerRows, counts: Integers) -> MeanCounts:
    """The mean counts of a channel on a table.

    Parameters
    ----------
    rows : IntegerRows
        The rows of the channel, each with any sum.
    counts : (n,) array
        Records of the table with each input.

    Raises
    ------
    InputError
        If the unit is not a power of two of at most 2^62.
    """
    if len(counts) != len(rows):
        raise InputError(
            f"the channel has {len(rows)} inputs, and there are counts for {len(counts)}"
        )
    totals = rows.row_sums()
    records: list[int] = np.asarray(counts).tolist()
    unit = 1
    for pairs, total, count in zip(rows.pairs(), totals, records, strict=True):
        # Inputs without records have no pairs.
        if count:
            common = math.gcd(count * math.gcd(*pairs[1::2]), total)
            unit = math.lcm(unit, total // common)
    if unit > LARGEST_INTEGER or unit & (unit - 1):
        raise InputError(
            "draws of fixed counts need a channel that sends multiples of a record divided by a "
            "power of two from each input to each output (--draws independent)"
        )
    row_of = rows.row_of
    kept = np.flatnonzero(np.asarray(counts)[row_of] > 0)
    row_of = row_of[kept]
    column_of = rows.indices[kept]
    # In Python's integers: these are exact fractions, of any size before they are divided.
    records_of = np.array(records, dtype=object)[row_of]
    totals_of = np.array(totals, dtype=object)[row_of]
    values = rows.values[kept].astype(object) * records_of * unit // totals_of
    sums = np.zeros(rows.shape[1], dtype=object)
    np.add.at(sums, column_of, values)
    column_units = None
    if not np.any(sums % unit):
        column_units = (sums // unit).astype(np.int64)
    return MeanCounts(row_of, column_of, values, np.asarray(counts), column_units, unit)


# ------------------------------------------------------------------------- fixed counts

HALF = 31
"""Bits of the lower half of a value: billions of halves can be added in 64 bits."""


@dataclass(frozen=True, eq=False)
class Flows:
    """The number of records of each input that get each output.

    Attributes
    ----------
    rows, columns : (m,) arrays
        Inputs and outputs of the pairs, ascending by input, then by output.
    counts : (m,) array
        Records of each pair, positive.
    row_counts : (n,) array
        Records of each input.
    """

    rows: Integers
    columns: Integers
    counts: Integers
    row_counts: Integers


def integer_flows(
    rows: Any,
    columns: Any,
    values: Any,
    row_units: Any,
    column_units: Any | None,
    unit: int,
    key: Key,
) -> Flows:
    """Draw whole numbers of records with given sums and means.

    Each count is the floor or the ceiling of values / unit, and has this as its exact mean. The
    counts follow from the key and the pairs alone, in whatever order these are given.

    Parameters
    ----------
    rows, columns : (m,) arrays of int
        Input and output of each pair; a pair occurs once.
    values : (m,) sequence of int
        What each pair gets in the mean, in units of 1 / `unit`: positive, of any size.
    row_units : (n,) array of int
        Records of each input. The values of each row add up to these times `unit`.
    column_units : (k,) array of int, optional
        Records of each output, likewise. Without it the sums of the columns are free: each becomes
        the floor or the ceiling of what its values add up to. **The promise for observers of the
        whole file is proven for given sums only**; free ones vary by one record.
    unit : int
        A power of two, at most 2^62.
    key : Key
        The key of the channel, as `Release` derives it from its digest.

    Returns
    -------
    Flows

    Raises
    ------
    InputError
        If the values are not positive integers, or do not add up to the given sums.
    """
    bits = _bits(unit)
    row_counts = _integers("row_units", row_units)
    row_of = _integers("rows", rows)
    column_of = _integers("columns", columns)
    exact = _exact(values)
    if not len(row_of) == len(column_of) == len(exact):
        raise InputError("rows, columns and values must have the same length")
    _check_sums("row", row_of, exact, row_counts, unit)
    if column_units is not None:
        column_counts = _integers("column_units", column_units)
        _check_sums("column", column_of, exact, column_counts, unit)

    wholes = (exact // unit).astype(np.int64)
    remainders = (exact % unit).astype(np.int64)
    # The given order must not matter.
    at = np.lexsort((column_of, row_of))
    fractional = at[remainders[at] > 0]
    parts = remainders[fractional]
    part_rows = row_of[fractional]
    part_columns = column_of[fractional]
    if column_units is None:
        # One more row makes the sums of the columns whole; its own sum is then whole, too.
        missing = _missing(part_columns, parts, unit)
        completed = np.flatnonzero(missing)
        parts = np.concatenate([parts, missing[completed]])
        part_columns = np.concatenate([part_columns, completed])
        added = np.full(len(completed), len(row_counts))
        part_rows = np.concatenate([part_rows, added])

    chance = KeyedChance(key.derived("fixed counts"))
    is_up = rounded_up(part_rows, part_columns, parts, bits, chance)
    counts = wholes.copy()
    counts[fractional] += is_up[: len(fractional)]
    kept = at[counts[at] > 0]
    return Flows(row_of[kept], column_of[kept], counts[kept], row_counts)


def _bits(unit: int) -> int:
    """The b of a unit of 2^b."""
    if not 1 <= unit <= LARGEST_INTEGER or unit & (unit - 1):
        raise InputError(
            f"the unit of fixed counts must be a power of two of at most {LARGEST_INTEGER}"
        )
    return unit.bit_length() - 1


def _integers(name: str, values: Any) -> Integers:
    """An argument as an array of non-negative integers."""
    array = np.asarray(values)
    if array.size == 0:
        return np.zeros(0, dtype=np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu" or int(array.min()) < 0:
        raise InputError(f"{name} must be non-negative whole numbers")
    return array.astype(np.int64)


def _exact(values: Any) -> NDArray[Any]:
    """Positive integers, as Python's integers if some of them do not fit 64 bits."""
    array = np.asarray(values)
    if array.size == 0:
        return np.zeros(0, dtype=np.int64)
    is_whole = array.dtype.kind in "iu"
    if array.dtype == object:
        is_whole = all(isinstance(value, int) for value in array.flat)
    if array.ndim != 1 or not is_whole or array.min() <= 0:
        raise InputError("the values of fixed counts must be positive whole numbers")
    if array.max() <= LARGEST_INTEGER:
        return array.astype(np.int64)
    return array.astype(object)


def _check_sums(
    axis: str, place: Integers, exact: NDArray[Any], counts: Integers, unit: int
) -> None:
    """Refuse values whose sum over a row or column is not its count of units."""
    if place.size and int(place.max()) >= len(counts):
        raise InputError(f"a pair has a {axis} without a count")
    # The sums need more than 64 bits, those of halves of the values do not.
    lower = np.zeros(len(counts), dtype=exact.dtype)
    upper = np.zeros(len(counts), dtype=exact.dtype)
    np.add.at(lower, place, exact & (1 << HALF) - 1)
    np.add.at(upper, place, exact >> HALF)
    sums = (upper.astype(object) << HALF) + lower
    wrong = np.flatnonzero(sums != counts.astype(object) * unit)
    if wrong.size:
        raise InputError(
            f"the pairs of {axis} {int(wrong[0]) + 1} do not add up to its count of records"
        )


def _missing(columns: Integers, parts: Integers, unit: int) -> Integers:
    """What each column lacks to a multiple of the unit."""
    size = int(columns.max()) + 1 if columns.size else 0
    sums = np.zeros(size, dtype=np.uint64)
    # Sums wrap around at 2^64, which is a multiple of the unit.
    np.add.at(sums, columns, parts.astype(np.uint64))
    last_places = np.uint64(unit - 1)
    return (-sums & last_places).astype(np.int64)
