"""What identifies the records of a part of a table, so that the same record gets the same draw.

A draw follows from the key, the channel and the identity of the record, which has one of three
forms:

- its columns of identifiers, as text (`Identifiers`), wherever the record stands;
- a column of row numbers (`NumberedRecords`), in any order;
- else its place in the table (`RowNumbers`): the number of the first row of the part, and on.

`identified_records` chooses by the options and refuses what would identify two records as one or
one as two: an empty identifier, a float (which has more than one text), a row number that comes
twice. `record_name` names a record in a message in the same terms.
"""

# pyarrow and narwhals tell too little of their types for the strict mode.
# pyright: basic
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.core.wording import quoted
from mechdesign.formats.arrow_arrays import arrow_offsets, integers_of, without_nulls
from mechdesign.formats.cells import encode, simple_texts
from mechdesign.jobs.column_plan import Plan
from mechdesign.jobs.options import ReleaseOptions
from mechdesign.jobs.recipe import BadRecord
from mechdesign.release.draws import (
    Identifiers,
    NumberedRecords,
    Records,
    RowNumbers,
)


def identified_records(
    column: Callable[[int], Any],
    header: Sequence[Any],
    plan: Plan,
    options: ReleaseOptions,
    *,
    first_row: int,
    count: int,
) -> Records:
    """The identities of `count` records, of which `column` gives the columns by number."""
    if plan.identity:
        return Identifiers(
            [_identifiers(column(number), header[number]) for number in plan.identity]
        )
    name = options.row_numbers
    if name is not None:
        return _numbered(column(header.index(name)), name)
    return RowNumbers(first_row, count)


def record_name(records: Records, position: int) -> str:
    """How a message names the record at a position of a part.

    Not by its identifier, which is somebody's and ends in logs.
    """
    if isinstance(records, Identifiers):
        return f"the record at place {position} (counted from 0) of its part"
    if isinstance(records, RowNumbers):
        return f"row number {records.first + position} (counted from 0)"
    return f"row number {records.numbers[position]}"


def _identifiers(column: Any, name: str) -> Any:
    """A column of identifiers as arrow texts; raises BadRecord at an empty one."""
    texts = simple_texts(column)
    if texts is None:
        cells = encode(column, name)
        texts = cells.expanded()
        if cells.is_float:
            raise InputError(
                f"the column {quoted(name)} holds floats, which have more than one text and "
                "identify nothing; turn them into integers or text"
            )
    texts = without_nulls(texts)
    # The text of row i lies between ends[i] and ends[i + 1] in the buffer: an empty one has none.
    ends, _ = arrow_offsets(texts)
    missing = np.flatnonzero(ends[1:] == ends[:-1])
    if len(missing):
        position = int(missing[0])
        raise BadRecord(
            position,
            f"the column {quoted(name)} is empty, and the record cannot be identified",
            f"entry {position}",
        )
    return texts


def _numbered(column: Any, name: str) -> NumberedRecords:
    """A column of row numbers, each of which one record of the part has alone."""
    import narwhals as nw
    import pyarrow as pa

    if isinstance(column, np.ndarray):
        column = pa.array(column)
    if isinstance(column, pa.Array):
        column = pa.chunked_array([column])
    series = nw.from_native(column, series_only=True)
    if not series.dtype.is_integer() or series.null_count():
        fault = str(series.dtype)
        if series.dtype.is_integer():
            fault = "gaps"
        raise InputError(
            f"the column {quoted(name)} must hold an integer for every record, its row number, and "
            f"it holds {fault}"
        )
    # By way of arrow: to_numpy would load pandas.
    records = NumberedRecords(integers_of(series.to_arrow()))
    # Usually they ascend, and then none can come twice: sorting them would take longer.
    ascending = (records.numbers[1:] > records.numbers[:-1]).all()
    if not ascending:
        values, times = np.unique(records.numbers, return_counts=True)
        if times.max() > 1:
            raise InputError(
                f"the column {quoted(name)} gives the row number {values[np.argmax(times > 1)]} to "
                "two records, whose draws would depend on each other"
            )
    return records
