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
never change. The second reading takes a moment by its value (`moments_of`), and a float32 by its
shortest text, which is what every writer of CSV gives it. A `RecordCensus` visits both where they
differ.

*Moments.* The same moment has the same bytes, whatever wrote it. Every writer of CSV has a text of
its own for a moment: ``2026-11-23 08:00:00+00:00`` (pandas), ``2026-11-23 08:00:00.000000Z``
(pyarrow), ``2026-11-23T08:00:00.000000+0000`` (polars), ``2026-11-23 08:00:00+00`` (DuckDB), and
``2026-11-23`` where all times of a column are midnight. A moment is the seconds since 1970, the
nanoseconds after them, and whether it has a zone (then the seconds are those of UTC). For example,
``1970-01-02 01:00:00.5+01:00`` is 86,400 seconds, 500,000,000 nanoseconds, and a zone.

`moments_of` takes the ticks of dates and timestamps as they are. Of texts, 64 spread over the
column are matched with `PATTERN` first (`some_are_moments`). If one of them is a moment, all texts
are matched, and the parts of those that fit are added up column by column (`_moments_in_texts`).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.formats import _rowhash
from mechdesign.formats.arrow_arrays import (
    arrow_integers,
    arrow_offsets,
    arrow_texts,
    combined,
    integers_of,
)
from mechdesign.formats.cells import Encoded, encode
from mechdesign.formats.census import Census, Content, Hashes
from mechdesign.formats.csv import CsvBatch
from mechdesign.formats.opening import Batch

# ------------------------------------------------------------------------------ moments

PATTERN = (
    r"^(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[ T](?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})"
    r"(?::(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]{1,9}))?)?"
    r"(?P<zone>Z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?$"
)
"""Pattern of the texts that are moments."""

PROBED = 64
"""Texts of a column that are matched first. The others are matched only if one of these is a
moment: matching every text of a large column takes long."""

SHORTEST = len("2026-11-23")
"""Characters of the shortest moment, and so its bytes."""

DAY = 86_400
HOUR = 3_600
MINUTE = 60

DIGITS = 9
"""Digits of a fraction of a second: nanoseconds."""

MOMENT = np.dtype([("seconds", "<i8"), ("nanoseconds", "<i4"), ("zoned", "<i4")])
"""The bytes of a moment."""

UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""Units of Arrow's timestamps in a second."""


@dataclass(frozen=True)
class Moments:
    """The cells of a column that are moments.

    Attributes
    ----------
    places : (m,) integers
        Their positions in the column.
    values : (m,) array of `MOMENT`
    """

    places: Integers
    values: NDArray[Any]


def moments_of(column: Any) -> Moments | None:
    """The moments in a pyarrow array of texts, dates or timestamps; None where there are none."""
    import pyarrow as pa

    types = pa.types
    kind = column.type
    if types.is_string(kind) or types.is_large_string(kind):
        return _moments_in_texts(column)
    if types.is_timestamp(kind):
        per_second = UNITS[kind.unit]
        ticks = integers_of(column.cast(pa.int64()))
        zoned = kind.tz is not None
    elif types.is_date32(kind):
        per_second = 1
        ticks = integers_of(column.cast(pa.int32())).astype(np.int64) * DAY
        zoned = False
    elif types.is_date64(kind):
        per_second = UNITS["ms"]
        ticks = integers_of(column.cast(pa.int64()))
        zoned = False
    else:
        return None
    places = _present(column)
    ticks = ticks[places].astype(np.int64)
    # Floor division, so that moments before 1970 have nanoseconds above zero as well.
    values = np.zeros(len(places), MOMENT)
    values["seconds"] = ticks // per_second
    values["nanoseconds"] = ticks % per_second * (UNITS["ns"] // per_second)
    values["zoned"] = zoned
    return Moments(places, values)


def _present(column: Any) -> Integers:
    """The positions of the cells that are not null."""
    if not column.null_count:
        return np.arange(len(column))
    return np.flatnonzero(integers_of(column.is_valid().cast("uint8")))


@lru_cache
def probed_places(count: int) -> Integers:
    """The positions of the cells of a column of `count` that are matched first."""
    return np.linspace(0, count - 1, PROBED).astype(np.int64)


def some_are_moments(probe: Any) -> bool:
    """Whether a moment is among the probed texts of a column.

    Otherwise the whole column is taken to have none.
    """
    import pyarrow.compute

    # The stubs of pyarrow lack these functions.
    pc: Any = pyarrow.compute

    offsets, _ = arrow_offsets(probe)
    # Most columns, of which there may be thousands, have texts too short for a date.
    if (np.diff(offsets) < SHORTEST).all():
        return False
    return bool(pc.any(pc.match_substring_regex(probe, PATTERN)).as_py())


def _moments_in_texts(texts: Any) -> Moments | None:
    """The moments in a pyarrow array of texts; None where there are none."""
    import pyarrow as pa
    import pyarrow.compute

    # The stubs of pyarrow lack these functions.
    pc: Any = pyarrow.compute

    if not len(texts):
        return None
    probe = texts.take(arrow_integers(probed_places(len(texts))))
    if not some_are_moments(probe):
        return None
    parts = pc.extract_regex(texts, PATTERN)
    places = _present(parts)
    fields = parts.take(arrow_integers(places)).flatten()
    day, hour, minute, second, fraction, zone = fields
    try:
        days = integers_of(day.cast(pa.date32()).cast(pa.int32()))
    except pa.ArrowInvalid:
        # The 31st of February: then all texts of the column count as texts.
        return None
    offsets, zoned = _zones(zone)
    values = np.zeros(len(places), MOMENT)
    values["seconds"] = days.astype(np.int64) * DAY
    values["seconds"] += _numbers(hour) * HOUR + _numbers(minute) * MINUTE
    # A zone ahead of UTC has reached its time of day earlier.
    values["seconds"] += _numbers(second) - offsets
    # A fraction of .5 is 500,000,000 nanoseconds.
    values["nanoseconds"] = _numbers(pc.utf8_rpad(fraction, DIGITS, "0"))
    values["zoned"] = zoned
    return Moments(places, values)


def _numbers(digits: Any) -> Integers:
    """Texts of digits as numbers; an empty text is 0."""
    import pyarrow as pa
    import pyarrow.compute

    # The stubs of pyarrow lack these functions.
    pc: Any = pyarrow.compute

    return integers_of(pc.utf8_lpad(digits, 1, "0").cast(pa.int64()))


def _zones(zones: Any) -> tuple[Integers, NDArray[np.bool_]]:
    """The seconds by which each cell is ahead of UTC, and whether it has a zone."""
    import pyarrow as pa

    # A column has few zones, so each is parsed once.
    coded = zones.dictionary_encode()
    codes = integers_of(coded.indices.cast(pa.int64()))
    texts = coded.dictionary.to_pylist()
    offsets = np.array([_offset(text) for text in texts], np.int64)
    zoned = np.array([bool(text) for text in texts], np.bool_)
    return offsets[codes], zoned[codes]


def _offset(zone: str) -> int:
    """The seconds of a zone such as +01, -0530, +05:30 or Z."""
    parts = re.fullmatch(r"([+-])([0-9]{2}):?([0-9]{2})?", zone)
    if parts is None:
        # Z, or no zone at all.
        return 0
    sign, hours, minutes = parts.groups()
    seconds = int(hours) * HOUR + int(minutes or 0) * MINUTE
    return -seconds if sign == "-" else seconds


# ------------------------------------------------------------------------------- hashes

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
