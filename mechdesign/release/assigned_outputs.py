"""The output of every record of a file, when the counts of all pairs are fixed.

`fixed_counts.Flows` says how many records of each input get each output; here they get them, in an
order drawn from the key. Take three records of the input a, of which two get x and one gets y:

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

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.release.draws import Key, Records
from mechdesign.release.fixed_counts import Flows

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
