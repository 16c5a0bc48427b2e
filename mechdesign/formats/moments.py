"""Dates and times as one value each, whatever wrote them: the same moment has the same bytes.

Every writer of CSV has a text of its own for a moment: ``2026-11-23 08:00:00+00:00`` (pandas),
``2026-11-23 08:00:00.000000Z`` (pyarrow), ``2026-11-23T08:00:00.000000+0000`` (polars),
``2026-11-23 08:00:00+00`` (DuckDB), and ``2026-11-23`` where all times of a column are midnight. A
moment is the seconds since 1970, the nanoseconds after them, and whether it has a zone (then the
seconds are those of UTC). For example, ``1970-01-02 01:00:00.5+01:00`` is 86,400 seconds,
500,000,000 nanoseconds, and a zone.

`moments_of` takes the ticks of dates and timestamps as they are. Of texts, 64 spread over the
column are matched with `PATTERN` first (`some_are_moments`). If one of them is a moment, all texts
are matched, and the parts of those that fit are added up column by column (`_moments_in_texts`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.integers import Integers
from mechdesign.formats.arrow_arrays import arrow_integers, arrow_offsets, integers_of

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
