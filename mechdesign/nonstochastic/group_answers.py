"""Answers for the groups of a data frame of any kind, of which the columns that are asked for
come to this process.
"""

# pyarrow, polars, duckdb and dask tell too little of their types for the strict mode.
# pyright: basic, reportMissingImports=false
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import narwhals as nw

from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike
from mechdesign.formats.column_names import require_column
from mechdesign.formats.parquet import ParquetBatch
from mechdesign.formats.urls import FRAME
from mechdesign.frames.eager import all_different
from mechdesign.jobs.ledger import Ledger
from mechdesign.nonstochastic.ledger_entries import charged
from mechdesign.nonstochastic.mechanism_file import MechanismFile
from mechdesign.nonstochastic.mechanism_jobs import Answering
from mechdesign.nonstochastic.release_answers import Quantised


def answer_groups(
    frame: Any,
    mechanism: MechanismFile,
    *,
    column: str | None = None,
    individual: str | None = None,
    equals: str | None = None,
    ledger: PathLike | None = None,
) -> tuple[Any, Quantised]:
    """A mechanism's answers for the groups of a table, as `apply` writes them, and what they
    promise.

    Parameters
    ---------- frame : pandas or polars DataFrame, pyarrow Table or RecordBatch; or, lazy, of
    polars, DuckDB, Spark or Dask
        The answers, a row for each group, are of the same kind as an eager frame, else of pyarrow.
    column, individual : str, optional
        The column of numbers, if it is called otherwise here, and the one that identifies
        individuals.
    equals : str, optional
        For a count: the value of the records that count.
    ledger : path, optional
        Adds up what several releases of the column of these records tell.

    Raises InputError if a column is missing, or a record has no number, or one outside the range
    that is refused.
    """
    if mechanism.query == "identity":
        raise InputError(
            "this mechanism is for single records: use sanitise(frame, mechanism)"
        )
    book = None if ledger is None else Ledger(ledger)
    names = [
        column or mechanism.column,
        *mechanism.group_by,
        *([individual] if individual else []),
    ]
    table = _Table(frame, None if book is not None else names)
    run = Answering(mechanism, table, column, equals, ledger=book)
    answers = run.grouped(individual)
    done = run.tally.result(None, run.answers_each)
    if book is not None:
        done = charged(
            book, run.census.content(), done, equals, source=FRAME, target=FRAME
        )
    eager = nw.dependencies.is_into_dataframe(frame)
    kind: Any = nw.from_native(frame).implementation if eager else "pyarrow"
    return nw.from_dict(answers, backend=kind).to_native(), done


class _Table:
    """A frame as a `Source` that is read once."""

    kind, name, size, position = "Parquet", "the table", 1, 0

    def __init__(self, frame: Any, names: Sequence[str] | None) -> None:
        import pyarrow as pa

        if isinstance(frame, pa.RecordBatch):
            frame = pa.Table.from_batches([frame])
        dask = hasattr(
            frame, "map_partitions"
        )  # of which narwhals warns that it will know it no more
        self.header = all_different(
            list(
                frame.columns if dask else nw.from_native(frame).lazy().collect_schema()
            )
        )
        for name in names or ():
            require_column(name, self.header)
        wanted = self.header if names is None else list(dict.fromkeys(names))
        whole: Any = nw.from_native(frame[wanted].compute() if dask else frame)
        self._table = whole.lazy().select(wanted).collect("pyarrow").to_native()

    def batches(self, *, encode: Sequence[str], **_: Any) -> Iterator[ParquetBatch]:
        """All records."""
        end = 0
        for batch in self._table.to_batches():
            end += batch.num_rows
            yield ParquetBatch(batch, encode, end)

    def where(self, record: int) -> str:
        """The row."""
        return f"row {record} (counted from 0)"
