"""As `release_writing`, for Parquet."""

# pyarrow tells too little of its types for the strict mode.
# pyright: basic
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mechdesign.formats.parquet_text import ParquetText


def replace_parquet(
    source: str, target: Path, column: str, kept: Sequence[bool] | None, values: Sequence[float]
) -> None:
    """Copy a Parquet file with one column replaced by doubles; records that are not kept are left out."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with ParquetText(source) as table:
        place = table.header.index(column)
        released = pa.field(column, pa.float64(), nullable=table.schema.field(place).nullable)
        # Notes of pandas on the old type of the column would be read as orders to convert it back.
        notes = {k: v for k, v in (table.schema.metadata or {}).items() if k != b"pandas"}
        schema = table.schema.set(place, released).with_metadata(notes or None)
        read, written = 0, 0
        with pq.ParquetWriter(target, schema) as writer:
            for batch in table.batches():
                rows = batch.num_rows
                part = batch if kept is None else batch.filter(pa.array(kept[read : read + rows]))
                fresh = pa.array(values[written : written + part.num_rows], pa.float64())
                columns = [fresh if i == place else old for i, old in enumerate(part.columns)]
                writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
                read, written = read + rows, written + part.num_rows


def write_parquet(
    target: Path,
    names: Sequence[str],
    keys: Sequence[Sequence[str]],
    records: Sequence[int],
    values: Sequence[float],
) -> None:
    """A table of answers: the groups as text, the number of records, and the answer."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    groups = [pa.array([key[i] for key in keys], pa.string()) for i in range(len(names) - 2)]
    columns = [*groups, pa.array(records, pa.int64()), pa.array(values, pa.float64())]
    pq.write_table(pa.Table.from_arrays(columns, names=list(names)), target)
