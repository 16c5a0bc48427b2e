"""Answers for the groups of a data frame of any kind; only the columns in use are collected.

`answer_groups` takes these steps:

1. The frame is wrapped as a source of batches (`_Table`). A lazy one is collected, with the columns
   that the query and the groups use; with a ledger all columns are needed.
2. `Answering` answers it by the code that answers files, so that the answers are the same.
3. The release is entered in the ledger if there is one (`charged`).
4. The answers become a frame of the kind of the input (`_frame_like`).

For example, a frame with the columns town, kwh and name, and a mechanism for the mean of kwh by
town, give a frame with the columns town, records and mean_kwh.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import narwhals as nw

from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike
from mechdesign.formats.column_names import require_column
from mechdesign.formats.parquet import ParquetBatch
from mechdesign.formats.urls import FRAME
from mechdesign.frames.eager import require_different_names
from mechdesign.jobs.ledger import Ledger
from mechdesign.nonstochastic.ledger_entries import charged
from mechdesign.nonstochastic.mechanism_file import MechanismFile
from mechdesign.nonstochastic.release_answers import RangeRelease
from mechdesign.nonstochastic.table_answers import Answering


def answer_groups(
    frame: Any,
    mechanism: MechanismFile,
    *,
    column: str | None = None,
    individual: str | None = None,
    equals: str | None = None,
    ledger: PathLike | None = None,
) -> tuple[Any, RangeRelease]:
    """A mechanism's answers for the groups of a table, as `apply` writes them, and their guarantee.

    Parameters
    ----------
    frame : DataFrame or Table
        Of pandas, polars or pyarrow; or a lazy frame of polars, DuckDB, Spark or Dask.
    column : str, optional
        The column of numbers, if it has another name than in the mechanism.
    individual : str, optional
        The column that identifies individuals.
    equals : str, optional
        For a count: the value that is counted.
    ledger : path, optional
        Adds up the bits of all releases of the column of these records.

    Returns
    -------
    answers
        A row for each group, in a frame of the same kind as an eager one, else of pyarrow.
    result : RangeRelease
        The guarantee, and errors that depend on the data.

    Raises
    ------
    InputError
        If a column is missing, or a record has no number, or a number outside the range that is
        refused.
    """
    if mechanism.query == "identity":
        raise InputError(
            "this mechanism is for single records: use sanitise(frame, mechanism)"
        )
    opened_ledger: Ledger | None = None
    names: list[str] | None = None
    if ledger is None:
        names = _columns_in_use(mechanism, column, individual)
    else:
        # A ledger knows a record by all its cells, so all columns are collected.
        opened_ledger = Ledger(ledger)
    table = _Table(frame, names)
    answering = Answering(mechanism, table, column, equals, ledger=opened_ledger)
    answers = answering.grouped(individual)
    result = answering.tally.result(None, answering.answers_each)
    # There is a census exactly where there is a ledger.
    if opened_ledger is not None and answering.census is not None:
        result = charged(
            opened_ledger,
            answering.census.content(),
            result,
            equals,
            source=FRAME,
            target=FRAME,
        )
    return _frame_like(frame, answers), result


def _columns_in_use(
    mechanism: MechanismFile, column: str | None, individual: str | None
) -> list[str]:
    """The columns that the answers of a mechanism need."""
    names = [column or mechanism.column, *mechanism.group_by]
    if individual:
        names.append(individual)
    return names


def _frame_like(frame: Any, columns: dict[str, Any]) -> Any:
    """Columns in a frame of the same kind as an eager one, else of pyarrow."""
    backend: Any = "pyarrow"
    if nw.dependencies.is_into_dataframe(frame):
        backend = nw.from_native(frame).implementation
    return nw.from_dict(columns, backend=backend).to_native()


class _Table:
    """The columns of a frame as a source of batches: the part of `Source` that an answer needs."""

    # The cells have types, as those of Parquet files do.
    kind = "Parquet"
    name = "the table"
    # Progress is not reported: the whole frame is in memory.
    size = 1
    position = 0

    def __init__(self, frame: Any, names: Sequence[str] | None) -> None:
        import pyarrow as pa

        # narwhals knows no record batches.
        if isinstance(frame, pa.RecordBatch):
            frame = pa.Table.from_batches([frame])
        # Dask without narwhals, which warns that its support will end.
        is_dask = hasattr(frame, "map_partitions")
        if is_dask:
            header = list(frame.columns)
        else:
            header = list(nw.from_native(frame).lazy().collect_schema())
        self.header = require_different_names(header)
        if names is None:
            columns = self.header
        else:
            # The numbers may be those of the column that names the groups or the individual.
            columns = list(dict.fromkeys(names))
        for name in columns:
            require_column(name, self.header)
        if is_dask:
            frame = frame[columns].compute()
        whole: Any = nw.from_native(frame)
        self._table = whole.lazy().select(columns).collect("pyarrow").to_native()

    def batches(self, *, encode: Sequence[str], **_: Any) -> Iterator[ParquetBatch]:
        """All records."""
        end = 0
        for batch in self._table.to_batches():
            end += batch.num_rows
            yield ParquetBatch(batch, encode, end)

    def where(self, record: int) -> str:
        """The place of a record in messages."""
        return f"row {record} (counted from 0)"
