"""The columns of a data frame, or the groups of a lazy table, with numbers of records.

`counted_columns` yields the same of every container: parts, each with its columns as codes into
texts, and how many records each row of the part counts for. A `Tally` adds the parts up. There are
three ways to a part:

- A data frame in memory is one part, with one record a row.
- A table of Dask is counted partition by partition on its workers (`_dask_counts`).
- Any other lazy table is grouped where its data are, and only the groups are fetched
  (`_lazy_counts`).

For example, the column job of a frame with the records nurse, clerk, nurse has the codes 0, 1, 0
into the texts nurse and clerk, and no numbers. A lazy table of the same records has the codes 0, 1
and the numbers of records 2, 1.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mechdesign.core.integers import Integers
from mechdesign.formats.cells import Encoded, encoded_columns
from mechdesign.formats.column_names import require_column
from mechdesign.formats.distinct import distinct_records


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
