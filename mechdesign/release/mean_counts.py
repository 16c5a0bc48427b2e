"""How many records of each input get each output in the mean, exactly, in a common unit.

A channel has integers for each row, w(x, y), whose sum may be another one for every row, T(x). If
c(x) records have the input x, then c(x) w(x, y) / T(x) of them get y in the mean. The unit is the
smallest fraction 1 / U of which all of these can be multiples:

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
