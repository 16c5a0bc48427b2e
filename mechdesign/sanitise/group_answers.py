"""Answers for the groups of a data frame of any kind: the columns that are asked for are read once, batch by batch.

Of Spark they come to the driver as one arrow table, of Dask by partitions, of DuckDB and polars as they stream.
"""

# pyarrow, polars, duckdb and dask tell too little of their types for the strict mode.
# pyright: basic, reportMissingImports=false
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import narwhals as nw

from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike
from mechdesign.formats.cells import require_column
from mechdesign.formats.parquet import ParquetBatch
from mechdesign.nonstochastic.mechanism_file import MechanismFile
from mechdesign.sanitise.answers import Quantised
from mechdesign.sanitise.frames import FRAME, header_of
from mechdesign.sanitise.history import charged
from mechdesign.sanitise.ledger import Ledger
from mechdesign.sanitise.quantized import Answering


def answer_groups(
    frame: Any,
    mechanism: MechanismFile,
    *,
    column: str | None = None,
    individual: str | None = None,
    equals: str | None = None,
    ledger: PathLike | None = None,
) -> tuple[Any, Quantised]:
    """A mechanism's answers for the groups of a table, as `apply` writes them, and what they promise.

    Parameters
    ----------
    frame : pandas or polars DataFrame, pyarrow Table or RecordBatch; or, lazy, of polars, DuckDB, Spark or Dask
    mechanism : MechanismFile
        Of groups; one for single records is for `sanitise`.
    column, individual : str, optional
        The column of numbers, if it is called otherwise here, and the one that identifies individuals.
    equals : str, optional
        For a count: the value of the records that count.
    ledger : path, optional
        Adds up what several releases of the column of these records tell.

    Returns
    -------
    (frame, Quantised)
        A table of the same kind with a row for each group.

    Raises
    ------
    InputError
        If a column is missing, or a record has no number or one outside the range, where the mechanism refuses these.
    """
    if mechanism.query == "identity":
        raise InputError("this mechanism is for single records: use sanitise(frame, mechanism)")
    book = None if ledger is None else Ledger(ledger)
    names = [column or mechanism.column, *mechanism.group_by, *([individual] if individual else [])]
    table = _Table(frame, None if book is not None else names)
    run = Answering(mechanism, table, column, equals, ledger=book)
    answers = run.grouped(individual)
    done = run.tally.result(None, run.answers_each)
    if book is not None:
        done = charged(book, run.census.content(), done, equals, source=FRAME, target=FRAME)
    return _like(frame, answers), done


class _Table:
    """A frame as a `Source` that is read once."""

    kind, name, size, position = "Parquet", "the table", 1, 0

    def __init__(self, frame: Any, names: Sequence[str] | None) -> None:
        lazy = any(
            hasattr(frame, name) for name in ("mapInArrow", "map_partitions", "collect_schema", "fetchall")
        )
        header = list(frame.collect_schema() if hasattr(frame, "collect_schema") else frame.columns)
        self.header = header if lazy else header_of(frame)
        for name in names or ():
            require_column(name, self.header)
        self._frame, self._names = frame, self.header if names is None else list(dict.fromkeys(names))

    def batches(self, *, encode: Sequence[str], **_: Any) -> Iterator[ParquetBatch]:
        """All records."""
        end = 0
        for batch in self._arrow():
            end += batch.num_rows
            yield ParquetBatch(batch, encode, end)

    def where(self, record: int) -> str:
        """The row."""
        return f"row {record} (counted from 0)"

    def _arrow(self) -> Iterator[Any]:
        import pyarrow as pa

        frame, names = self._frame, self._names
        if isinstance(frame, (pa.Table, pa.RecordBatch)):
            yield from (
                frame.select(names).to_batches() if isinstance(frame, pa.Table) else [frame.select(names)]
            )
        elif hasattr(frame, "mapInArrow"):
            yield from frame.select(*names).toArrow().to_batches()
        elif hasattr(frame, "map_partitions"):
            for part in frame[names].partitions:
                yield from _batches(part.compute())
        elif hasattr(frame, "fetchall"):
            quoted = (name.replace('"', '""') for name in names)
            yield from frame.project(", ".join(f'"{name}"' for name in quoted)).to_arrow_reader()
        elif hasattr(frame, "collect_batches"):
            for part in frame.select(names).collect_batches():
                yield from part.to_arrow().to_batches()
        else:
            yield from _batches(frame[names])


def _batches(frame: Any) -> Any:
    return nw.from_native(frame, eager_only=True).to_arrow().to_batches()


def _like(frame: Any, columns: dict[str, Any]) -> Any:
    """A table of the same kind as a frame."""
    import pyarrow as pa

    table = pa.table(columns)
    if isinstance(frame, (pa.Table, pa.RecordBatch)):
        return table
    if hasattr(frame, "mapInArrow"):
        return frame.sparkSession.createDataFrame(table)
    if hasattr(frame, "map_partitions"):
        import dask.dataframe as dd

        return dd.from_pandas(table.to_pandas(), npartitions=1)
    if hasattr(frame, "fetchall"):
        import duckdb

        return duckdb.connect().from_arrow(table)
    made = nw.from_arrow(table, backend=nw.get_native_namespace(frame)).to_native()
    return made.lazy() if hasattr(frame, "collect_schema") and hasattr(frame, "collect") else made
