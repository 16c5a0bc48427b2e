"""By what a data set is known again: hashes of its records that no order, packing or file format changes.

The hash of a record is that of its cells (`_rowhash.c`), under a key: whoever lacks it can test no guess. A `Census`
goes over them once and keeps three things. The hash of their sequence tells the same records in the same order; the
sum of the hashes tells the same records in any order; and the records with the smallest hashes, a sample that is the
same wherever the records are, tell how many of them another data set has, too.
"""

# pyarrow tells too little of its types for the strict mode.
# pyright: basic
from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.formats import _rowhash
from mechdesign.formats.cells import (
    Encoded,
    arrow_offsets,
    arrow_texts,
    encode,
    integers_of,
)

Hashes = NDArray[np.uint64]

SAMPLE = 4096
"""Hashes in a sample (32 kB): a share of one half is told to 1 in 100."""

FEWEST = 8
"""Records in a sample from which a share may be told where it is not of all records."""

WHOLE = 10**15
"""Integers below are exact as doubles in every notation; longer ones count as their digits."""

ALL = 2**64 - 1


class RowHasher:
    """Hashes of records and identifiers under a secret of 32 bytes."""

    def __init__(self, secret: bytes) -> None:
        self._seed, self._plain, *self._mix = struct.unpack("<4Q", secret)

    def records(self, batch: Any) -> Hashes:
        """One hash for each record of a batch of a file (`opening.Batch`)."""
        if hasattr(batch, "stored"):
            return self.columns(batch.stored.columns, batch.num_rows)
        sums = np.zeros(batch.num_rows, np.uint64)
        starts, ends = (
            np.ascontiguousarray(each, np.int64) for each in (batch.starts, batch.ends)
        )
        quote = -1 if batch.quote is None or not batch.quotes else ord(batch.quote)
        _rowhash.add_rows(
            sums, self._seed, batch.text, starts, ends, ends.shape[1], quote
        )
        return self._mixed(sums)

    def columns(self, columns: Iterable[Any], records: int) -> Hashes:
        """The same of columns; one of lists or records, which are no text, does not count."""
        sums = np.zeros(records, np.uint64)
        for column in columns:
            sums += self._arrow(column)
        return self._mixed(sums)

    def content(self, columns: Iterable[Any], records: int) -> Content:
        """What a census keeps of columns."""
        census = Census()
        census.add(self.columns(columns, records))
        return census.content()

    def identifiers(self, columns: Sequence[Any]) -> Hashes:
        """One hash for each record, of the texts that identify it (cells or pyarrow arrays), byte for byte."""
        sums = np.zeros(len(columns[0]), np.uint64)
        for place, column in enumerate(columns):
            coded = isinstance(column, Encoded)
            texts = arrow_texts(column.texts) if coded else column
            hashes = self._texts(texts, (self._plain + place) % 2**64, plain=True)
            sums += np.append(hashes, np.uint64(0))[column.codes] if coded else hashes
        return self._mixed(sums)

    def _mixed(self, sums: Hashes) -> Hashes:
        _rowhash.mix(sums, *self._mix)
        return sums

    def _texts(self, texts: Any, seed: int, *, plain: bool) -> Hashes:
        hashes = np.zeros(len(texts), np.uint64)
        ends, data = arrow_offsets(texts)
        _rowhash.add_texts(hashes, seed, data, ends, plain)
        return hashes

    def _arrow(self, column: Any) -> Hashes:
        import pyarrow as pa

        types = pa.types
        if isinstance(column, np.ndarray):
            column = pa.array(column)
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        kind = column.type
        if types.is_dictionary(kind) and len(column.dictionary) > len(column):
            return self._arrow(column.dictionary_decode())
        if types.is_dictionary(kind):
            distinct = np.append(self._arrow(column.dictionary), np.uint64(0))
            return distinct[
                integers_of(column.indices.cast(pa.int64()), len(column.dictionary))
            ]
        if types.is_string(kind) or types.is_large_string(kind):
            hashes = self._texts(column, self._seed, plain=False)
        elif types.is_integer(kind) and bool(
            (np.abs(integers_of(column).astype(np.float64)) < WHOLE).all()
        ):
            hashes = self._doubles(integers_of(column).astype(np.float64))
        elif types.is_float64(kind) or types.is_float32(kind):
            hashes = self._doubles(integers_of(column.cast(pa.float64())))
        else:
            try:
                cells = encode(column, "")
            except InputError:
                return np.zeros(len(column), np.uint64)
            distinct = self._texts(arrow_texts(cells.texts), self._seed, plain=False)
            return np.append(distinct, np.uint64(0))[cells.codes]
        if column.null_count:
            hashes[integers_of(column.is_null().cast(pa.uint8())) == 1] = 0
        return hashes

    def _doubles(self, values: NDArray[np.float64]) -> Hashes:
        hashes = np.zeros(len(values), np.uint64)
        _rowhash.add_doubles(hashes, self._seed, np.ascontiguousarray(values))
        return hashes


@dataclass(frozen=True)
class Content:
    """What a `Census` keeps of a data set.

    `limit` is the largest hash in the sample, or `ALL` where the sample is of all records; `below` are the records up
    to it, `unique` the hashes among them that one record has alone.
    """

    records: int
    ordered: str
    unordered: str
    limit: int
    below: int
    unique: Hashes = field(repr=False)

    def sample(self) -> bytes:
        """The sample, to be kept."""
        return np.append(
            np.array([self.limit, self.below], np.uint64), self.unique
        ).tobytes()

    def share_in(self, samples: Sequence[bytes]) -> float:
        """About which share of these records are in other data sets, of which there are samples.

        Only records that are the only ones of their kind count: of others nobody can say whether they are the same
        or look the same.
        """
        others = [np.frombuffer(sample, np.uint64) for sample in samples]
        if not others or not self.records:
            return 0.0
        limit = min(self.limit, *(int(other[0]) for other in others))
        mine = self.unique[self.unique <= np.uint64(limit)]
        below = len(mine) + round(
            (self.below - len(self.unique)) * (limit / self.limit)
        )
        shared = np.isin(mine, np.concatenate([other[2:] for other in others])).sum()
        return (
            min(1.0, float(shared / below))
            if below >= FEWEST or (limit == ALL and below)
            else 0.0
        )


class Census:
    """The hashes of all records of a data set, one batch after the other."""

    def __init__(self) -> None:
        self._records = self._waiting = 0
        self._sequence = (1, 2)
        self._sums = [0, 0]
        self._values, self._counts = np.zeros(0, np.uint64), np.zeros(0, np.int64)
        self._limit = ALL
        self._more: list[Hashes] = []

    def add(self, hashes: Hashes) -> None:
        """The next records."""
        self._records += len(hashes)
        hashes = np.ascontiguousarray(hashes)
        self._sequence = _rowhash.chain(hashes, *self._sequence)
        products = (hashes >> np.uint64(32)) * (hashes & np.uint64(2**32 - 1))
        for k, words in enumerate((hashes, products)):
            self._sums[k] = (self._sums[k] + int(words.sum(dtype=np.uint64))) % 2**64
        low = hashes[hashes <= np.uint64(self._limit)]
        self._more.append(low)
        self._waiting += len(low)
        if self._waiting > SAMPLE:
            self._merge()

    def _merge(self) -> None:
        more, times = np.unique(
            np.concatenate([np.zeros(0, np.uint64), *self._more]), return_counts=True
        )
        values, place = np.unique(
            np.concatenate([self._values, more]), return_inverse=True
        )
        counts = np.bincount(
            place, np.concatenate([self._counts, times]), len(values)
        ).astype(np.int64)
        if len(values) > SAMPLE:
            values, counts = values[:SAMPLE], counts[:SAMPLE]
            self._limit = int(values[-1])
        self._values, self._counts = values, counts
        self._more, self._waiting = [], 0

    def content(self) -> Content:
        """What is kept of them."""
        self._merge()
        ordered, unordered = (
            struct.pack("<2Q", *self._sequence),
            struct.pack("<3Q", self._records, *self._sums),
        )
        below, unique = int(self._counts.sum()), self._values[self._counts == 1]
        return Content(
            self._records, ordered.hex(), unordered.hex(), self._limit, below, unique
        )
