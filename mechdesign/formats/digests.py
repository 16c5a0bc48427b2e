"""Keyed hashes of records and identifiers, by which a data set is recognised (`census`).

No order, compression or file format changes the hash of a record, which is that of its cells
(`_rowhash.c`). It has a key: without the key nobody can test a guess of a record.

The hash of a record takes two steps: the keyed hashes of its cells are added modulo 2**64, where a
missing cell adds 0, and the sum is mixed under a second key (`RowHasher.mixed`). So a second
reading of one column costs no second hash of the others: the difference of its hashes is added to
the sums (`RowHasher.readings`). With h the hash of a cell in the first reading and h' that in the
second:

    the record (1.0, 2024-01-31, missing)       hash = mix(h(1.0) + h("2024-01-31") + 0)
    with the second cell read by its value      sum + (h' - h)("2024-01-31"), then mixed
    without the second cell                     sum - h("2024-01-31"), then mixed

There are two readings of a record. Earlier versions took a moment in time by its text, and a
float32 by the double that it is exactly. Ledgers hold such hashes, so `RowHasher.records` must
never change. The second reading takes a moment by its value (`moments`), and a float32 by its
shortest text, which is what every writer of CSV gives it. A `RecordCensus` visits both where they
differ.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import replace
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
from mechdesign.formats.census import Census, Content, Hashes
from mechdesign.formats.csv import CsvBatch
from mechdesign.formats.moments import (
    SHORTEST,
    Moments,
    moments_of,
    probed_places,
    some_are_moments,
)
from mechdesign.formats.opening import Batch

WHOLE = 10**15
"""Integers below this are exact as doubles in every notation. Longer ones are hashed as text."""

MOMENT_KEY = 0x6D6F_6D65_6E74_2031
"""The key of moments is that of cells with these bits changed, so that no text hashes like one."""

_NO_HASH = np.uint64(0)
"""The hash of a missing cell, which adds nothing to its record."""


class RowHasher:
    """Hashes of records and identifiers under a secret of 32 bytes.

    The hash of a record is a keyed mix of the sum of the hashes of its cells, so the order of the
    columns does not matter.
    """

    def __init__(self, secret: bytes) -> None:
        # Keys of their own, so that an identifier and a cell with its text hash differently.
        self._cell_key, self._identifier_key, *self._mix_key = struct.unpack(
            "<4Q", secret
        )

    def records(self, batch: Batch) -> Hashes:
        """One hash for each record of a batch of a file."""
        if isinstance(batch, CsvBatch):
            return self.mixed(self._csv_sums(batch))
        return self.columns(batch.stored.columns, batch.num_rows)

    def both_readings(self, batch: Batch) -> tuple[Hashes, Hashes | None]:
        """The hashes of `records`, and those of the second reading where it is another one."""
        as_text, by_value, _ = self.readings(batch, ())
        return as_text, by_value

    def readings(
        self, batch: Batch, left_out: Sequence[str]
    ) -> tuple[Hashes, Hashes | None, Hashes]:
        """The hashes of both readings, and those of the second one without some columns.

        The second item is None where both readings are the same.
        """
        if not isinstance(batch, CsvBatch):
            columns = batch.stored.columns
            are_left_out = [name in left_out for name in batch.stored.schema.names]
            sums = self._sums(columns, batch.num_rows)
            return self._readings(sums, columns, are_left_out)
        sums = self._csv_sums(batch)
        columns: list[Any] = []
        are_left_out: list[bool] = []
        if batch.num_rows:
            probe = batch.at(probed_places(batch.num_rows))
            may_be_moments = probe.begin_with_digit(SHORTEST)
            for place, name in enumerate(batch.names):
                # The bytes of a CSV are hashed as they are. Making texts of a column takes as long,
                # and only moments and columns that are left out are needed as texts.
                has_moments = may_be_moments[place] and some_are_moments(
                    probe.texts(place)
                )
                if name in left_out or has_moments:
                    columns.append(batch.texts(place))
                    are_left_out.append(name in left_out)
        return self._readings(sums, columns, are_left_out)

    def _readings(
        self, sums: Hashes, columns: Sequence[Any], are_left_out: Sequence[bool]
    ) -> tuple[Hashes, Hashes | None, Hashes]:
        """As `readings`, from the sums of the hashes of all cells in the first reading."""
        # Sums are modulo 2^64. So adding the difference of the hashes of a column gives its second
        # reading, and subtracting its hashes takes it out; all other columns are hashed once.
        second = sums.copy()
        differ = False
        for column in columns:
            difference = self._difference(column)
            if difference is not None and difference.any():
                second += difference
                differ = True
        bare = second.copy()
        for column, is_left_out in zip(columns, are_left_out, strict=True):
            if is_left_out:
                # Its hash in the second reading: that of the first, and the difference.
                bare -= self._column(column)
                difference = self._difference(column)
                if difference is not None:
                    bare -= difference
        as_text = self.mixed(sums)
        by_value: Hashes | None = None
        if differ:
            by_value = self.mixed(second)
        if any(are_left_out):
            return as_text, by_value, self.mixed(bare)
        return as_text, by_value, as_text if by_value is None else by_value

    def _difference(self, column: Any) -> Hashes | None:
        """For each cell, its hash in the second reading less that in the first.

        None where the readings of the column are the same.
        """
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
        # The hash function takes texts: the bytes of each moment are one.
        width = moments.values.dtype.itemsize
        ends = np.arange(len(hashes) + 1, dtype=np.int64) * width
        key = self._cell_key ^ MOMENT_KEY
        _rowhash.add_texts(hashes, key, moments.values.tobytes(), ends, True)
        return hashes

    def _csv_sums(self, batch: CsvBatch) -> Hashes:
        """The sum of the hashes of the cells of each record of a CSV, from its bytes."""
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
        return self.mixed(self._sums(columns, records))

    def _sums(self, columns: Iterable[Any], records: int) -> Hashes:
        """The sum of the hashes of the cells of each record."""
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
        """The content of a data set of named columns, and hashes without some of them.

        These are the hashes of its records in the second reading, without the columns `left_out`.
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
            # A key for each place: ("a", "b") is another individual than ("b", "a").
            key = (self._identifier_key + place) % 2**64
            if isinstance(column, Encoded):
                texts = arrow_texts(column.texts)
                distinct = self._texts(texts, key, plain=True)
                sums += np.append(distinct, _NO_HASH)[column.codes]
            else:
                sums += self._texts(column, key, plain=True)
        return self.mixed(sums)

    def mixed(self, sums: Hashes) -> Hashes:
        """The sums themselves, each mixed with a key in place.

        The sums are linear in the cells, so by themselves they disclose which records share cells.
        """
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
        # Texts that are numbers hash as doubles (`_cellhash.c`), so numbers do as well.
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
        """Hashes of the cells of a dictionary array, each value of which is hashed once."""
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
        """Hashes of numbers."""
        hashes = np.zeros(len(values), np.uint64)
        _rowhash.add_doubles(hashes, self._cell_key, np.ascontiguousarray(values))
        return hashes


def _are_exact_doubles(integers: Any) -> bool:
    """Whether all integers of a column are below `WHOLE`."""
    return bool((np.abs(integers_of(integers).astype(np.float64)) < WHOLE).all())


class RecordCensus:
    """Visits all records of a data set, in both readings where they differ."""

    def __init__(self, hasher: RowHasher) -> None:
        self._hasher = hasher
        self._as_text = Census()
        self._by_value: Census | None = None
        """Only from the first batch on whose readings differ."""

    def add(self, batch: Batch) -> None:
        """Visit the records of a batch of a file."""
        self.add_readings(*self._hasher.both_readings(batch))

    def add_readings(self, as_text: Hashes, by_value: Hashes | None) -> None:
        """Visit the hashes of both readings; None for a second one that is the same."""
        if by_value is not None and self._by_value is None:
            self._by_value = self._as_text.copied()
        self._as_text.add(as_text)
        if self._by_value is not None:
            self._by_value.add(as_text if by_value is None else by_value)

    def content(self) -> Content:
        """The content of all records visited."""
        as_text = self._as_text.content()
        if self._by_value is None:
            return as_text
        return replace(self._by_value.content(), as_text=as_text)
