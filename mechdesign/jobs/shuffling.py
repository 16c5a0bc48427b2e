"""Records in random order, however many there are: spread over buckets by random words, then sorted within each."""

# pyarrow tells too little of its types for the strict mode.
# pyright: basic
from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from mechdesign.core.integers import Integers
from mechdesign.core.nameless_file import NamelessFile
from mechdesign.formats.arrow_arrays import arrow_integers, integers_of
from mechdesign.formats.compression import Compression
from mechdesign.formats.opening import open_source
from mechdesign.formats.outputs import KeptColumn
from mechdesign.formats.text_options import TextOptions
from mechdesign.release.draws import Key, RowNumbers

ROOM = 16 << 20
"""Bytes of records that are sorted at a time (16 MB; several times that in memory)."""

UNPACKED = 4
"""How much larger the columns of a Parquet file are in memory, about, than encoded."""

WORD_BITS = 62
"""Records are ordered by random words of so many bits, of which no two are expected to be equal."""


def random_words(key: Key, first: int, count: int) -> Integers:
    """A word for each of some records, by their number."""
    return RowNumbers(first, count).source(key).below(1 << WORD_BITS, count)


def shuffle_file(
    source: Path,
    target: Path,
    key: Key,
    text: TextOptions | None,
    packing: Compression | None,
    folder: Path | None,
) -> None:
    """Write the records of a file, all of its columns, in the order of the words that the key gives them."""
    with open_source(source, text) as table, open(target, "wb") as stream:
        size = table.size
        if table.kind == "Parquet":  # whose size is in rows
            groups = range(table.metadata.num_row_groups)
            size = UNPACKED * sum(
                table.metadata.row_group(i).total_byte_size for i in groups
            )
        kept = [KeptColumn(i) for i in range(len(table.header))]
        with table.sink(stream, kept, compression=packing) as sink:
            parts = (batch.packed() for batch in table.batches())
            for part in _shuffled(parts, key, 1 + size // ROOM, folder):
                sink.write_packed(part)


def _shuffled(
    parts: Iterable[Any], key: Key, buckets: int, folder: Path | None
) -> Iterator[Any]:
    """The records of arrow batches in random order; what is not at hand lies in one file without a name."""
    import pyarrow as pa

    places = list[list[int]]([] for _ in range(buckets))
    store, first = NamelessFile(folder), 0
    with closing(store):
        with open(store.path, "wb") as out:
            for table in _gathered(parts):
                words = random_words(key, first, table.num_rows)
                first += table.num_rows
                bucket = (words >> WORD_BITS // 2) * buckets >> WORD_BITS // 2
                order = np.argsort(bucket, kind="stable")
                ends = np.searchsorted(bucket[order], np.arange(buckets + 1)).tolist()
                whole = table.append_column("", arrow_integers(words)).take(
                    arrow_integers(order)
                )
                for place, start, end in zip(places, ends, ends[1:], strict=False):
                    if start < end:
                        place.append(out.tell())
                        with pa.ipc.new_stream(out, whole.schema) as writer:
                            writer.write_table(whole.slice(start, end - start))
        with open(store.path, "rb") as back:
            for place in places:
                pieces: list[Any] = []
                for start in place:
                    back.seek(start)
                    pieces.append(pa.ipc.open_stream(back).read_all())
                if pieces:
                    whole = pa.concat_tables(pieces).unify_dictionaries()
                    last = whole.num_columns - 1
                    order = np.argsort(
                        integers_of(whole.column(last).combine_chunks()), kind="stable"
                    )
                    mixed = whole.remove_column(last).take(arrow_integers(order))
                    yield from mixed.combine_chunks().to_batches()


def _gathered(parts: Iterable[Any]) -> Iterator[Any]:
    import pyarrow as pa

    waiting, size = list[Any](), 0
    for part in parts:
        waiting.append(part)
        size += part.nbytes
        if size >= ROOM:
            yield pa.Table.from_batches(waiting).unify_dictionaries().combine_chunks()
            waiting, size = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting).unify_dictionaries().combine_chunks()
