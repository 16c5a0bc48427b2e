"""Keyed hashes of records, by which a data set is recognised.

No order, compression or file format changes the hash of a record, which is that of its cells
(`_rowhash.c`). It has a key: without the key nobody can test a guess of a record. A `Census` visits
the hashes once and keeps three things:

- the hash of their sequence, which is equal for the same records in the same order;
- sums of the hashes, which are equal for the same records in any order;
- the smallest hashes, a sample that depends on the records alone, from which the share of records
  in another data set is estimated.

There are two readings of a record. Earlier versions took a moment in time by its text, and a
float32 by the double that it is exactly; ledgers hold such hashes, so `RowHasher.records` must
never change. The second reading takes a moment by its value (`moments`), and a float32 by its
shortest text, which is what every writer of CSV gives it. A `RecordCensus` visits both where they
differ.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.formats import _rowhash
from mechdesign.formats.arrow_arrays import (
    arrow_offsets,
    arrow_texts,
    combined,
    integers_of,
)
from mechdesign.formats.cells import Encoded, encode
from mechdesign.formats.csv import CsvBatch
from mechdesign.formats.moments import Moments, moments_of
from mechdesign.formats.opening import Batch

Hashes = NDArray[np.uint64]

SAMPLE = 4096
"""Hashes in a sample (32 kB). A share of one half has a standard error of 1 in 100."""

FEWEST = 8
"""Fewest records in a sample of some records from which a share is estimated."""

WHOLE = 10**15
"""Integers below are exact as doubles in every notation. Longer ones count as their digits."""

ALL = 2**64 - 1
"""The limit of a sample of all records."""

MOMENT_KEY = 0x6D6F_6D65_6E74_2031
"""Makes the key of moments from that of cells, so that no text hashes like one."""

LOW_WORD = np.uint64(2**32 - 1)

_NO_HASH = np.uint64(0)
"""The hash of a missing cell, which adds nothing to its record."""


class RowHasher:
    """Hashes of records and identifiers under a secret of 32 bytes.

    The hash of a record is a keyed mix of the sum of the hashes of its cells, so the order of the
    columns does not matter.
    """

    def __init__(self, secret: bytes) -> None:
        self._cell_key, self._identifier_key, *self._mix_key = struct.unpack(
            "<4Q", secret
        )

    def records(self, batch: Batch) -> Hashes:
        """One hash for each record of a batch of a file."""
        if isinstance(batch, CsvBatch):
            return self._csv_records(batch)
        return self.columns(batch.stored.columns, batch.num_rows)

    def both_readings(self, batch: Batch) -> tuple[Hashes, Hashes | None]:
        """The hashes of `records`, and those of the second reading where it is another one."""
        as_text, by_value, _ = self.readings(batch, ())
        return as_text, by_value

    def readings(
        self, batch: Batch, left_out: Sequence[str]
    ) -> tuple[Hashes, Hashes | None, Hashes]:
        """The hashes of both readings, and those of the second one without some columns."""
        if isinstance(batch, CsvBatch):
            names: Sequence[str] = batch.names
            columns = [batch.texts(place) for place in range(batch.ends.shape[1])]
            sums = self._csv_sums(batch)
        else:
            names = batch.stored.schema.names
            columns = batch.stored.columns
            sums = self._sums(columns, batch.num_rows)
        return self._readings(sums, columns, [name in left_out for name in names])

    def _readings(
        self, sums: Hashes, columns: Sequence[Any], are_left_out: Sequence[bool]
    ) -> tuple[Hashes, Hashes | None, Hashes]:
        by_value: Hashes | None = None
        for column in columns:
            difference = self._difference(column)
            if difference is not None and difference.any():
                by_value = difference + (sums if by_value is None else by_value)
        bare = (sums if by_value is None else by_value).copy()
        for column, is_left_out in zip(columns, are_left_out, strict=True):
            if is_left_out:
                bare -= self._column(column)
                difference = self._difference(column)
                if difference is not None:
                    bare -= difference
        if by_value is not None:
            by_value = self._mixed(by_value)
        return self._mixed(sums), by_value, self._mixed(bare)

    def _difference(self, column: Any) -> Hashes | None:
        """For each cell, what the second reading adds to its hash; None where they are the same."""
        import pyarrow as pa

        if isinstance(column, np.ndarray):
            column = pa.array(column)
        column = combined(column)
        kind = column.type
        if pa.types.is_dictionary(kind):
            distinct = self._difference(column.dictionary)
            if distinct is None:
                return None
            size = len(column.dictionary)
            codes = integers_of(column.indices.cast(pa.int64()), size)
            return np.append(distinct, _NO_HASH)[codes]
        if pa.types.is_float32(kind):
            shortest = column.cast(pa.string()).cast(pa.float64())
            return self._column(shortest) - self._column(column)
        moments = moments_of(column)
        if moments is None:
            return None
        difference = np.zeros(len(column), np.uint64)
        places = moments.places
        difference[places] = self._moments(moments) - self._column(column)[places]
        return difference

    def _moments(self, moments: Moments) -> Hashes:
        """Hashes of the bytes of moments."""
        hashes = np.zeros(len(moments.values), np.uint64)
        width = moments.values.dtype.itemsize
        ends = np.arange(len(hashes) + 1, dtype=np.int64) * width
        key = self._cell_key ^ MOMENT_KEY
        _rowhash.add_texts(hashes, key, moments.values.tobytes(), ends, True)
        return hashes

    def _csv_records(self, batch: CsvBatch) -> Hashes:
        return self._mixed(self._csv_sums(batch))

    def _csv_sums(self, batch: CsvBatch) -> Hashes:
        sums = np.zeros(batch.num_rows, np.uint64)
        starts = np.ascontiguousarray(batch.starts, np.int64)
        ends = np.ascontiguousarray(batch.ends, np.int64)
        _rowhash.add_rows(
            sums,
            self._cell_key,
            batch.text,
            starts,
            ends,
            ends.shape[1],
            batch.quote_code,
        )
        return sums

    def columns(self, columns: Iterable[Any], records: int) -> Hashes:
        """One hash for each record of columns of a frame.

        Columns of lists or records have no text and do not count.
        """
        return self._mixed(self._sums(columns, records))

    def _sums(self, columns: Iterable[Any], records: int) -> Hashes:
        sums = np.zeros(records, np.uint64)
        for column in columns:
            sums += self._column(column)
        return sums

    def content(self, columns: Iterable[Any], records: int) -> Content:
        """The content of a data set that consists of columns."""
        listed = [*columns]
        content, _ = self.content_and_bare(listed, records, [None] * len(listed), ())
        return content

    def content_and_bare(
        self,
        columns: Iterable[Any],
        records: int,
        names: Sequence[Any],
        left_out: Sequence[Any],
    ) -> tuple[Content, Hashes]:
        """The content of a data set of named columns, and the hashes of its records, in the second
        reading, without some of them.
        """
        listed = [*columns]
        sums = self._sums(listed, records)
        are_left_out = [name in left_out for name in names]
        as_text, by_value, bare = self._readings(sums, listed, are_left_out)
        census = RecordCensus(self)
        census.add_readings(as_text, by_value)
        return census.content(), bare

    def identifiers(self, columns: Sequence[Any]) -> Hashes:
        """One hash for each record, of the texts that identify it, byte for byte.

        Parameters
        ----------
        columns : sequence of Encoded or pyarrow arrays
            The parts of the identifier, whose order matters.
        """
        sums = np.zeros(len(columns[0]), np.uint64)
        for place, column in enumerate(columns):
            key = (self._identifier_key + place) % 2**64
            if isinstance(column, Encoded):
                texts = arrow_texts(column.texts)
                distinct = self._texts(texts, key, plain=True)
                sums += np.append(distinct, _NO_HASH)[column.codes]
            else:
                sums += self._texts(column, key, plain=True)
        return self._mixed(sums)

    def _mixed(self, sums: Hashes) -> Hashes:
        _rowhash.mix(sums, *self._mix_key)
        return sums

    def _texts(self, texts: Any, key: int, *, plain: bool) -> Hashes:
        """Hashes of texts; unless `plain`, a text that is a number hashes as this number."""
        hashes = np.zeros(len(texts), np.uint64)
        offsets, data = arrow_offsets(texts)
        _rowhash.add_texts(hashes, key, data, offsets, plain)
        return hashes

    def _column(self, column: Any) -> Hashes:
        """Hashes of the cells of a NumPy array or pyarrow column; equal texts hash alike."""
        import pyarrow as pa

        types = pa.types
        if isinstance(column, np.ndarray):
            column = pa.array(column)
        column = combined(column)
        kind = column.type
        if types.is_dictionary(kind):
            return self._coded_column(column)
        if types.is_string(kind) or types.is_large_string(kind):
            hashes = self._texts(column, self._cell_key, plain=False)
        elif types.is_integer(kind) and _are_exact_doubles(column):
            hashes = self._doubles(integers_of(column).astype(np.float64))
        elif types.is_float64(kind) or types.is_float32(kind):
            hashes = self._doubles(integers_of(column.cast(pa.float64())))
        else:
            return self._other_column(column)
        if column.null_count:
            null = integers_of(column.is_null().cast(pa.uint8())) == 1
            hashes[null] = _NO_HASH
        return hashes

    def _coded_column(self, column: Any) -> Hashes:
        import pyarrow as pa

        size = len(column.dictionary)
        # The dictionary of a slice may be that of a much larger column.
        if size > len(column):
            return self._column(column.dictionary_decode())
        distinct = np.append(self._column(column.dictionary), _NO_HASH)
        return distinct[integers_of(column.indices.cast(pa.int64()), size)]

    def _other_column(self, column: Any) -> Hashes:
        """Hashes of the texts of dates, truth values and the like."""
        try:
            cells = encode(column, "")
        except InputError:
            return np.zeros(len(column), np.uint64)
        distinct = self._texts(arrow_texts(cells.texts), self._cell_key, plain=False)
        return np.append(distinct, _NO_HASH)[cells.codes]

    def _doubles(self, values: NDArray[np.float64]) -> Hashes:
        hashes = np.zeros(len(values), np.uint64)
        _rowhash.add_doubles(hashes, self._cell_key, np.ascontiguousarray(values))
        return hashes


def _are_exact_doubles(integers: Any) -> bool:
    return bool((np.abs(integers_of(integers).astype(np.float64)) < WHOLE).all())


@dataclass(frozen=True)
class Content:
    """What a `Census` keeps of a data set.

    Attributes
    ----------
    records : int
        The number of records.
    ordered, unordered : str
        Hashes of the records in their order and in any order, in hexadecimal digits.
    limit : int
        The largest hash in the sample, or `ALL` where the sample is of all records.
    below : int
        The number of records with hashes up to the limit.
    unique : array of hashes
        The hashes among them that exactly one record has.
    copies : int
        How often every record is there; then so many equal records count as one in samples.
    single : array of hashes
        Where `copies` is not 1, the hashes that exactly so many records have.
    as_text : Content or None
        The same records in the reading of earlier versions, where it is another one.
    """

    records: int
    ordered: str
    unordered: str
    limit: int
    below: int
    unique: Hashes = field(repr=False)
    copies: int = 1
    single: Hashes | None = field(default=None, repr=False)
    as_text: Content | None = None

    @property
    def readings(self) -> tuple[Content, ...]:
        """The content in every reading."""
        if self.as_text is None:
            return (self,)
        return self, self.as_text

    @classmethod
    def of_sample(cls, sample: bytes, *, records: int, unordered: str) -> Content:
        """The content as far as a sample has it; its order is not known."""
        limit, below = np.frombuffer(sample, np.uint64)[:2].tolist()
        return cls(
            records=records,
            ordered="",
            unordered=unordered,
            limit=limit,
            below=below,
            unique=np.frombuffer(sample, np.uint64)[2:],
        )

    def sample(self) -> bytes:
        """The sample as bytes: the limit, the number below it, then the unique hashes."""
        below, unique = self._counted_once
        head = np.array([self.limit, below], np.uint64)
        return np.append(head, unique).tobytes()

    @property
    def _counted_once(self) -> tuple[int, Hashes]:
        """The number of records in the sample, and the unique ones, without the further copies."""
        if self.single is None:
            return self.below, self.unique
        return self.below // self.copies, self.single

    def share_in(self, samples: Sequence[bytes]) -> float:
        """The estimated share of these records that other data sets have, from their samples.

        Only records that are unique here count. Two equal records may be of the same individual
        or of two who look the same, which nobody can tell.
        """
        if self.as_text is not None:
            as_value = replace(self, as_text=None)
            return max(as_value.share_in(samples), self.as_text.share_in(samples))
        if not samples or not self.records:
            return 0.0
        others = [np.frombuffer(sample, np.uint64) for sample in samples]
        # Up to the smallest limit all samples are complete.
        limit = min(self.limit, *(int(other[0]) for other in others))
        records, singles = self._counted_once
        unique = singles[singles <= np.uint64(limit)]
        repeated = round((records - len(singles)) * (limit / self.limit))
        below = len(unique) + repeated
        complete = limit == ALL and below > 0
        if below < FEWEST and not complete:
            return 0.0
        other_hashes = np.concatenate([other[2:] for other in others])
        shared = np.isin(unique, other_hashes).sum()
        return min(1.0, float(shared / below))


class Census:
    """Visits the hashes of all records of a data set, batch by batch."""

    def __init__(self) -> None:
        self._records = 0
        self._sequence = (1, 2)
        """State of the hash of the sequence."""
        self._sum = 0
        self._sum_of_products = 0
        """Sums modulo 2^64 of the hashes, and of the products of their two halves."""
        self._values = np.zeros(0, np.uint64)
        self._counts = np.zeros(0, np.int64)
        """The smallest hashes so far, ascending, and how many records have each."""
        self._limit = ALL
        self._waiting: list[Hashes] = []
        """Hashes up to the limit that are not yet merged into the sample."""
        self._waiting_count = 0

    def add(self, hashes: Hashes) -> None:
        """Visit the next records."""
        hashes = np.ascontiguousarray(hashes)
        self._records += len(hashes)
        self._sequence = _rowhash.chain(hashes, *self._sequence)
        products = (hashes >> np.uint64(32)) * (hashes & LOW_WORD)
        self._sum = (self._sum + _sum_of(hashes)) % 2**64
        self._sum_of_products = (self._sum_of_products + _sum_of(products)) % 2**64
        low = hashes[hashes <= np.uint64(self._limit)]
        self._waiting.append(low)
        self._waiting_count += len(low)
        if self._waiting_count > SAMPLE:
            self._merge()

    def _merge(self) -> None:
        """Merge the waiting hashes into the sample, and lower the limit if it is full."""
        waiting = np.concatenate([np.zeros(0, np.uint64), *self._waiting])
        new, new_counts = np.unique(waiting, return_counts=True)
        values, place = np.unique(
            np.concatenate([self._values, new]), return_inverse=True
        )
        all_counts = np.concatenate([self._counts, new_counts])
        counts = np.bincount(place, all_counts, len(values)).astype(np.int64)
        if len(values) > SAMPLE:
            values = values[:SAMPLE]
            counts = counts[:SAMPLE]
            self._limit = int(values[-1])
        self._values = values
        self._counts = counts
        self._waiting = []
        self._waiting_count = 0

    def content(self) -> Content:
        """The content of all records visited."""
        self._merge()
        # In a table in which all rows were doubled no record is unique: two count as one.
        copies = math.gcd(*self._counts.tolist()) or 1
        ordered = struct.pack("<2Q", *self._sequence)
        unordered = struct.pack("<3Q", self._records, self._sum, self._sum_of_products)
        return Content(
            records=self._records,
            ordered=ordered.hex(),
            unordered=unordered.hex(),
            limit=self._limit,
            below=int(self._counts.sum()),
            unique=self._values[self._counts == 1],
            copies=copies,
            single=None if copies == 1 else self._values[self._counts == copies],
        )


class RecordCensus:
    """Visits all records of a data set, in both readings where they differ."""

    def __init__(self, hasher: RowHasher) -> None:
        self._hasher = hasher
        self._by_value = Census()
        self._as_text = Census()
        self._differ = False

    def add(self, batch: Batch) -> None:
        """Visit the records of a batch of a file."""
        self.add_readings(*self._hasher.both_readings(batch))

    def add_readings(self, as_text: Hashes, by_value: Hashes | None) -> None:
        """Visit the hashes of both readings; None for a second one that is the same."""
        if by_value is not None:
            self._differ = True
        self._as_text.add(as_text)
        self._by_value.add(as_text if by_value is None else by_value)

    def content(self) -> Content:
        """The content of all records visited."""
        as_text = self._as_text.content()
        if not self._differ:
            return as_text
        return replace(self._by_value.content(), as_text=as_text)


def _sum_of(words: Hashes) -> int:
    """The sum of words modulo 2^64."""
    return int(words.sum(dtype=np.uint64))
