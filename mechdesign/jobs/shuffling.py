"""Records in random order, however many there are: spread over buckets by random words, then
sorted within each.

Record i has the random word w of 62 bits (`WORD_BITS`), which follows from the key and i alone, and
the output is in the order of the words. What is too large for memory is spread first: with B
buckets, a record goes to bucket floor(B v / 2**31), where v is the leading half of w. This never
falls as w grows, so the buckets, each sorted, follow one another. With words of 4 bits in the
place of 62, and 2 buckets, four records with the words 9, 2, 14, 5 go to the buckets 1, 0, 1, 0;
sorted, these have the records 2, 4 and 1, 3, which is the order of the output.
"""

# pyarrow tells too little of its types for the strict mode.
# pyright: basic
from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from mechdesign.core.files import NamelessFile
from mechdesign.core.integers import Integers
from mechdesign.formats.arrow_arrays import (
    KeptColumn,
    arrow_integers,
    integers_of,
    taken_records,
)
from mechdesign.formats.csv_text import TextOptions
from mechdesign.formats.file_kinds import Compression
from mechdesign.formats.opening import open_source
from mechdesign.formats.parquet import ParquetSource
from mechdesign.release.draws import Key, RowNumbers

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
