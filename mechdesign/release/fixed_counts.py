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

*The outputs of records.* `Flows` says how many records of each input get each output;
here they get them, in an order drawn from the key. Take three records of the input a, of which two
get x and one gets y:

    record            1      2      3
    random number     .71    .08    .35
    place among a's   third  first  second
    output            y      x      x

The places of the records of an input are a uniform order of them. The number of a record follows
from the key and its row number or identifier alone. With identifiers the order of the file does not
matter, therefore, and a file in batches, on any machine, gets the same outputs.

Equal numbers have no order. If two records of one input have the same number, all records take
other ones; given that there are none, the order is exactly uniform.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.integers import LARGEST_INTEGER, IntegerRows, Integers
from mechdesign.release.draws import Key, Records
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


# ------------------------------------------------------------------- outputs of records

NUMBER_BITS = 62
"""Bits of a record's random number. Two of n records of one input have the same one with
probability below n^2 / 2^63: for five million, .000003.
"""

ATTEMPTS = 4
"""Numbers that records take before equal ones mean equal identifiers. Different records have ties
four times in a row with probability below 10^-20.
"""


SORTED_TOGETHER = 1 << 18
"""Records that are put in order together; of more, some inputs after others."""

PARTS = 16
"""Most parts that are put in order one after the other: each takes a look at all records."""


class OtherTable(InputError):
    """The records are not those of the table whose counts are fixed."""


class TiedRecords(InputError):
    """Two records of one input have the same random number."""


def assigned_outputs(
    codes: NDArray[np.integer], flows: Flows, batches: Sequence[Records], key: Key
) -> NDArray[np.int32]:
    """The output of each record of a whole file.

    A caller who cannot keep all identifiers takes `order_numbers` of each batch, then
    `outputs_by_number`, and reads the file again with the next attempt after `TiedRecords`.

    Parameters
    ----------
    codes : (n_records,) array
        The input of every record, in the order of the file.
    flows : Flows
        The counts of the pairs.
    batches : sequence of Records
        What the random numbers of the records are functions of, in the same order.
    key : Key
        The key of the channel, as for `integer_flows`.

    Returns
    -------
    (n_records,) array
        The output of every record.

    Raises
    ------
    OtherTable
        If an input does not have as many records as the table.
    TiedRecords
        If two records of an input have the same identifier.
    """
    # Before random numbers are made, which identifiers take long for.
    check_counts(codes, flows)
    count = sum(map(len, batches))
    # One array for all attempts: five million records take 40 MB of it.
    numbers = np.empty(count, dtype=np.int64)
    for attempt in range(ATTEMPTS):
        end = 0
        for records in batches:
            start = end
            end += len(records)
            numbers[start:end] = order_numbers(records, key, attempt)
        try:
            return outputs_by_number(codes, flows, numbers)
        except TiedRecords:
            continue
    raise TiedRecords(
        "two records have the same identifier: draws of fixed counts need one record for each"
    )


def order_numbers(records: Records, key: Key, attempt: int = 0) -> Integers:
    """The random number of each record of a batch, below 2^62, other ones for every attempt."""
    purpose = key.derived(records.kind, "fixed counts", str(attempt))
    return records.source(purpose).below(1 << NUMBER_BITS, len(records))


def check_counts(codes: NDArray[np.integer], flows: Flows) -> None:
    """Refuse records that are not as many of every input as the table has.

    Raises
    ------
    OtherTable
    """
    size = len(flows.row_counts)
    is_known = not codes.size or (int(codes.min()) >= 0 and int(codes.max()) < size)
    if is_known and np.array_equal(
        np.bincount(codes, minlength=size), flows.row_counts
    ):
        return
    raise OtherTable(
        "the records are not those of the table of the design: their counts differ"
    )


def outputs_by_number(
    codes: NDArray[np.integer], flows: Flows, numbers: Integers
) -> NDArray[np.int32]:
    """The output of each record; those of an input take its outputs in the order of their numbers.

    Parameters
    ----------
    codes : (n_records,) array
        The input of every record.
    flows : Flows
        The counts of the pairs.
    numbers : (n_records,) array
        The random number of every record.

    Raises
    ------
    OtherTable
        If an input does not have as many records as the table.
    TiedRecords
        If two records of an input have the same number.
    """
    if len(numbers) != len(codes):
        raise InputError(
            f"there are {len(codes)} records, and {len(numbers)} random numbers"
        )
    check_counts(codes, flows)
    outputs = np.empty(len(codes), dtype=np.int32)
    # The pairs ascend by input, so these are the outputs of the first input's records, and so on.
    in_order = np.repeat(flows.columns.astype(np.int32), flows.counts)
    ends = np.cumsum(flows.row_counts)
    together = max(SORTED_TOGETHER, len(codes) // PARTS)
    start = 0
    first = 0
    while first < len(ends):
        # Inputs with so many records together, and at least one input.
        wanted = int(np.searchsorted(ends, start + together, side="right"))
        beyond = max(first + 1, wanted)
        at = np.flatnonzero((codes >= first) & (codes < beyond))
        order = _by_input_and_number(codes[at] - first, numbers[at])
        outputs[at[order]] = in_order[start : start + len(at)]
        start += len(at)
        first = beyond
    return outputs


def _by_input_and_number(codes: NDArray[np.integer], numbers: Integers) -> Integers:
    """The order of records by input, and within it by number.

    Raises
    ------
    TiedRecords
        If two records of an input have the same number.
    """
    # Input and number in one integer, which is sorted faster than two; the last bits of the number
    # are left out for the input.
    bits = int(codes.max(initial=0)).bit_length()
    joined = codes.astype(np.int64) << (NUMBER_BITS - bits)
    joined |= numbers >> bits
    order = np.argsort(joined)
    if not _has_neighbours(joined[order]):
        return order
    # Two records differ in these bits at most.
    order = np.lexsort((numbers, codes))
    ordered = numbers[order]
    is_same = ordered[1:] == ordered[:-1]
    # Ties of different inputs are harmless, and few pairs are looked at.
    for place in np.flatnonzero(is_same).tolist():
        if codes[order[place]] == codes[order[place + 1]]:
            raise TiedRecords("two records of one input have the same random number")
    return order


def _has_neighbours(ordered: Integers) -> bool:
    """Whether two numbers in a row are the same."""
    return bool((ordered[1:] == ordered[:-1]).any())
