"""The pass over the data: every batch of the source goes to the output, in order or at random.

`write_release` is the loop. For each batch of the source

1. `_ReleasedColumns.of_batch` draws, shows the batch to the checks of disclosure, and gives the
   released columns as dictionary arrays: codes of the batch, ``[0, 1, 0]``, into one array of
   labels for the whole table, ``["A", "B"]``;
2. `inspect` sees the batch as it was read, for the hashes of its records;
3. the sink writes the kept columns of the batch as they are, and the released ones.

The source reads a CSV or a Parquet file, the sink writes one, and neither knows of channels.

*Random order* of records, however many there are: they are spread over buckets by random words,
then sorted within each. Record i has the random word w of 62 bits (`WORD_BITS`), which follows from
the key and i alone, and the output is in the order of the words. What is too large for memory is
spread first: with B buckets, a record goes to bucket floor(B v / 2**31), where v is the leading
half of w. This never falls as w grows, so the buckets, each sorted, follow one another. With words
of 4 bits in the place of 62, and 2 buckets, four records with the words 9, 2, 14, 5 go to the
buckets 1, 0, 1, 0; sorted, these have the records 2, 4 and 1, 3, which is the order of the output.
"""

# pyarrow tells too little of its types for the strict mode.
# pyright: basic
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.core.files import NamelessFile
from mechdesign.core.integers import Integers
from mechdesign.formats.arrow_arrays import (
    KeptColumn,
    Output,
    WrittenColumn,
    arrow_integers,
    arrow_texts,
    integers_of,
    taken_records,
)
from mechdesign.formats.compression import Compression
from mechdesign.formats.csv import CsvBatch
from mechdesign.formats.csv_sinks import CsvSink
from mechdesign.formats.csv_text import TextOptions
from mechdesign.formats.opening import Batch, Kind, Sink, Source, open_source, sink_for
from mechdesign.formats.parquet import ParquetSource
from mechdesign.formats.parquet_sink import ParquetSink
from mechdesign.formats.spellings import as_text
from mechdesign.jobs.recipe import BadRecord, Drawer, Place
from mechdesign.release.draws import Key, RowNumbers
from mechdesign.tables.rebuilding import own_values

# ------------------------------------------------------------------------- random order

ROOM = 16 << 20
"""Bytes of records that are sorted at a time (16 MB; several times that in memory)."""

UNPACKED = 4
"""About how many times larger the columns of a Parquet file are in memory than in the file."""

WORD_BITS = 62
"""The bits of the random words by which records are ordered; no two words are expected to be
equal.
"""


def random_words(key: Key, first: int, count: int) -> Integers:
    """The words of `count` records, of which `first` is the number of the first one."""
    return RowNumbers(first, count).source(key).below(1 << WORD_BITS, count)


def shuffle_file(
    source: Path,
    target: Path,
    key: Key,
    text: TextOptions | None,
    packing: Compression | None,
    folder: Path | None,
) -> None:
    """Write the records of a file, all of its columns, in the order of the words that the key
    gives them.
    """
    # The file was written here, so nothing stands above its header.
    written = None if text is None else text.of_output
    with open_source(source, written) as table, open(target, "wb") as stream:
        size = table.size
        # About the bytes of the records in memory, from which the number of buckets follows.
        if isinstance(table, ParquetSource):
            # The size of a Parquet source is in rows.
            groups = [
                table.metadata.row_group(i)
                for i in range(table.metadata.num_row_groups)
            ]
            size = UNPACKED * sum(group.total_byte_size for group in groups)
        kept = [KeptColumn(i) for i in range(len(table.header))]
        with table.sink(stream, kept, compression=packing) as sink:
            parts = (batch.packed() for batch in table.batches())
            for part in _shuffled(parts, key, 1 + size // ROOM, folder):
                sink.write_packed(part)


def _shuffled(
    parts: Iterable[Any], key: Key, buckets: int, folder: Path | None
) -> Iterator[Any]:
    """The records of arrow batches in random order; those that wait lie in one file without a name.

    A record goes to the bucket that the leading bits of its word name, and is sorted by the whole
    word within it.
    """
    import pyarrow as pa

    store = NamelessFile(folder)
    with closing(store):
        # Everything is spread before the first record is given: the last one may come first.
        places = _spread(parts, key, buckets, store.path)
        with open(store.path, "rb") as stored:
            for starts in places:
                pieces: list[Any] = []
                for start in starts:
                    stored.seek(start)
                    pieces.append(pa.ipc.open_stream(stored).read_all())
                if pieces:
                    yield from _sorted_by_word(pieces)


def _spread(
    parts: Iterable[Any], key: Key, buckets: int, store: Path
) -> list[list[int]]:
    """Write the records to a file, bucket by bucket, with their words as a last column.

    Returns for each bucket where in the file its pieces begin.
    """
    import pyarrow as pa

    places: list[list[int]] = [[] for _ in range(buckets)]
    first = 0
    with open(store, "wb") as out:
        for table in _gathered(parts):
            words = random_words(key, first, table.num_rows)
            first += table.num_rows
            # Half of the bits of a word, so that the product fits into 64 bits.
            bucket = (words >> WORD_BITS // 2) * buckets >> WORD_BITS // 2
            order = np.argsort(bucket, kind="stable")
            ends = np.searchsorted(bucket[order], np.arange(buckets + 1)).tolist()
            worded = table.append_column("", arrow_integers(words))
            grouped = taken_records(worded, arrow_integers(order))
            for starts, (start, end) in zip(places, pairwise(ends), strict=True):
                if start < end:
                    starts.append(out.tell())
                    with pa.ipc.new_stream(out, grouped.schema) as writer:
                        writer.write_table(grouped.slice(start, end - start))
    return places


def _sorted_by_word(pieces: Sequence[Any]) -> list[Any]:
    """The records of a bucket in the order of their words, without the words."""
    import pyarrow as pa

    bucket = pa.concat_tables(pieces).unify_dictionaries()
    last = bucket.num_columns - 1
    words = integers_of(bucket.column(last).combine_chunks())
    order = arrow_integers(np.argsort(words, kind="stable"))
    records = taken_records(bucket.remove_column(last), order)
    return records.combine_chunks().to_batches()


def _gathered(parts: Iterable[Any]) -> Iterator[Any]:
    """The batches joined to tables of about `ROOM` bytes."""
    waiting: list[Any] = []
    size = 0
    for part in parts:
        waiting.append(part)
        size += part.nbytes
        if size >= ROOM:
            yield _joined(waiting)
            waiting = []
            size = 0
    if waiting:
        yield _joined(waiting)


def _joined(parts: Sequence[Any]) -> Any:
    """Batches as one table; each had dictionaries of its own, which become one."""
    import pyarrow as pa

    return pa.Table.from_batches(parts).unify_dictionaries().combine_chunks()


# ------------------------------------------------------------------- pass over the data


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
