"""The pass over the data: every batch of the source, with its released columns, goes to the
output.

`write_release` is the loop. For each batch of the source

1. `_ReleasedColumns.of_batch` draws, shows the batch to the checks of disclosure, and gives the
   released columns as dictionary arrays: codes of the batch, ``[0, 1, 0]``, into one array of
   labels for the whole table, ``["A", "B"]``;
2. `inspect` sees the batch as it was read, for the hashes of its records;
3. the sink writes the kept columns of the batch as they are, and the released ones.

The source reads a CSV or a Parquet file, the sink writes one, and neither knows of channels.
"""

# pyarrow tells too little of its types for the strict mode.
# pyright: basic
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.formats.arrow_arrays import (
    KeptColumn,
    Output,
    WrittenColumn,
    arrow_integers,
    arrow_texts,
)
from mechdesign.formats.cell_forms import as_text
from mechdesign.formats.csv import CsvBatch
from mechdesign.formats.csv_sinks import CsvSink
from mechdesign.formats.csv_text import TextOptions
from mechdesign.formats.file_kinds import Compression
from mechdesign.formats.opening import Batch, Kind, Sink, Source, sink_for
from mechdesign.formats.parquet import ParquetSource
from mechdesign.formats.parquet_sink import ParquetSink
from mechdesign.jobs.recipe import BadRecord, Drawer, Place
from mechdesign.tables.rebuilding import own_values


@dataclass(frozen=True)
class FileFormat:
    """How an output is written.

    Attributes
    ----------
    kind : 'CSV' or 'Parquet'
    text : TextOptions or None
        Delimiter, quote and encoding of a CSV.
    packing : 'gzip' or 'zstd', or None
        Compression of a CSV.
    escape : bool
        Whether cells that a spreadsheet would take for formulas get an apostrophe before them.
    """

    kind: Kind
    text: TextOptions | None
    packing: Compression | None
    escape: bool


def schema_of(table: Source) -> Any:
    """The arrow schema of a Parquet file; None for a CSV, whose text has no types."""
    if isinstance(table, ParquetSource):
        return table.schema
    return None


def write_release(
    drawer: Drawer,
    table: Source,
    target: Path,
    format: FileFormat,
    advance: Callable[[float], None],
    inspect: Callable[[Batch], None] | None = None,
) -> int:
    """Write the released copy of a table.

    Parameters
    ----------
    drawer : Drawer
        Made for the header of the table.
    advance : function
        Called with the share that is done.
    inspect : function, optional
        Called with every batch as it was read.

    Returns
    -------
    int
        The number of records written.

    Raises
    ------
    InputError
        At the first record that cannot be released, by its line or row.
    """
    columns = _ReleasedColumns(drawer, table, format)
    encoded, stored = drawer.reads(schema_of(table))
    first_row = 0
    try:
        with (
            open(target, "wb") as stream,
            sink_for(
                table,
                format.kind,
                stream,
                columns.outputs,
                format.packing,
                format.text,
                format.escape,
            ) as sink,
        ):
            withhold_layout(sink, drawer)
            for batch in table.batches(encode=encoded, read=stored):
                kept, written = columns.of_batch(batch, first_row)
                first_row += batch.num_rows
                if inspect is not None:
                    inspect(batch)
                # All of its records may be left out.
                if kept.num_rows:
                    # Cells of a Parquet file are escaped as they are written.
                    if format.escape and isinstance(kept, CsvBatch):
                        kept = kept.escaped()
                    sink.write(kept, written)
                    advance(table.position / table.size)
    except BadRecord as error:
        # The search for its line may read the file again, so the pass must have ended.
        where = table.where(error.position)
        raise InputError(f"{where}: {error.what}") from None
    return sink.records


def write_columns(
    drawer: Drawer,
    table: Source,
    target: Path,
    format: FileFormat,
    outputs: Sequence[Output],
    written: Sequence[Any],
    advance: Callable[[float], None],
) -> int:
    """Write a copy of a table with columns that are known for all records already.

    Parameters
    ----------
    drawer : Drawer
        Of the release, which decides what of the layout of the source may show.
    outputs : sequence of Output
        The columns of the output.
    written : sequence of arrow arrays
        The written ones of them, with a value for each record of the table.
    advance : function
        Called with the share that is done.

    Returns
    -------
    int
        The number of records written.
    """
    first_row = 0
    with (
        open(target, "wb") as stream,
        sink_for(
            table,
            format.kind,
            stream,
            outputs,
            format.packing,
            format.text,
            format.escape,
        ) as sink,
    ):
        withhold_layout(sink, drawer)
        for batch in table.batches():
            columns = [array.slice(first_row, batch.num_rows) for array in written]
            first_row += batch.num_rows
            if not batch.num_rows:
                continue
            # Cells of a Parquet file are escaped as they are written.
            if format.escape and isinstance(batch, CsvBatch):
                batch = batch.escaped()
            sink.write(batch, columns)
            advance(table.position / table.size)
    return sink.records


def withhold_layout(sink: Sink, drawer: Drawer) -> None:
    """Keep the layout of the source out of the output, as far as it shows what was left out."""
    keeps_all = drawer.recipe.options.keeps_all
    if isinstance(sink, ParquetSink):
        # Records are gone: the row groups would show how many of each are missing.
        if drawer.may_drop:
            sink.merge_groups()
        # The notes of the file describe columns that do not stay.
        if not keeps_all:
            sink.leave_out_notes()
    elif isinstance(sink, CsvSink) and not keeps_all:
        # Line breaks of two kinds would tell records apart that have equal cells now.
        sink.even_lines()


class _ReleasedColumns:
    """Draws the released columns of every batch, and has them in arrays of the types of the
    output.
    """

    def __init__(self, drawer: Drawer, table: Source, format: FileFormat) -> None:
        self._drawer = drawer
        self._table = table
        schema = None
        if format.kind == "Parquet":
            schema = schema_of(table)
        types: dict[Place, Any] = {}
        self.outputs: list[Output] = []
        """The columns of the output, for its sink."""
        for column in drawer.plan.columns:
            if column.release is None:
                self.outputs.append(KeptColumn(column.source or 0))
                continue
            own_type = None
            if schema is not None:
                own_type = drawer.own_type(
                    column, lambda number: schema.field(number).type
                )
            types[column.release] = own_type
            self.outputs.append(WrittenColumn(column.name, column.source, own_type))
        # One array of labels for the whole table; of text where the column has no type of its own.
        self._labels: dict[Place, Any] = {}
        for place, texts in drawer.labels.items():
            if types[place] is not None:
                self._labels[place] = own_values(texts, types[place])
            elif format.escape:
                self._labels[place] = arrow_texts([as_text(text) for text in texts])
            else:
                self._labels[place] = arrow_texts(texts)
        self._places = list(types)

    def of_batch(self, batch: Batch, first_row: int) -> tuple[Batch, list[Any]]:
        """The records of a batch that stay, and their released columns."""
        import pyarrow as pa

        header = self._table.header
        # A bad record is known by its place in the part; the caller needs that in the table.
        try:
            drawn = self._drawer.draw(
                lambda number: batch.column(header[number]),
                batch.num_rows,
                first_row=first_row,
            )
        except BadRecord as error:
            error.position += first_row
            raise
        except InputError as error:
            raise InputError(f"{self._table.name}: {error}") from None
        self._drawer.checks.add(batch.num_rows, lambda step: batch.some(step).column)
        kept = batch
        if self._drawer.dropped is not None:
            kept = batch.select(~self._drawer.dropped)
        columns: list[Any] = []
        for place in self._places:
            codes = arrow_integers(drawn[place].codes.astype(np.int32, copy=False))
            # Not safe: the codes that were drawn are those of labels.
            coded = pa.DictionaryArray.from_arrays(
                codes, self._labels[place], safe=False
            )
            columns.append(coded)
        return kept, columns
