"""The texts of cells: parts of columns, moments in any zone, and texts whose hashes collide."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from mechdesign.formats import _csv
from mechdesign.formats.cells import encode
from mechdesign.tables.rebuilding import own_values


def test_a_part_of_a_column_has_its_own_texts_alone():
    """Else a row group of n different texts would take n texts for each of its batches."""
    whole = pa.array([f"text {i}" for i in range(1000)]).dictionary_encode()
    part = encode(whole.slice(990), "x")
    assert [part.texts[code] for code in part.codes] == [
        f"text {i}" for i in range(990, 1000)
    ]
    assert len(part.texts) == 10


def test_texts_whose_hashes_meet_are_told_apart():
    """Hashes that agree in the mark (the upper half) and the first slot, of texts found by turning
    `hash_of` back.
    """

    def text_of(number):
        number = (number ^ number >> 32) * pow(0xD6E8FEB86659FD93, -1, 2**64) % 2**64
        number = (number ^ number >> 32) * pow(0x9E3779B97F4A7C15, -1, 2**64) % 2**64
        return (number ^ 8 * 0x0101010101010101).to_bytes(8, "little")

    texts = [text_of(0x123456789ABCDEF0 ^ k << 20) for k in (0, 1, 0, 2, 1)]
    bounds = np.arange(0, 48, 8)
    codes, firsts = _csv.numbered(b"".join(texts), bounds[:-1], bounds[1:], 1, 0)
    assert np.frombuffer(codes, np.int32).tolist() == [0, 1, 0, 2, 1]
    assert np.frombuffer(firsts, np.int32).tolist() == [0, 1, 3]


@pytest.mark.parametrize(
    "column",
    [
        [0.0, -0.0, 1.5, np.float32(-0.0)],
        np.array([0.0, -0.0, 1.5, -0.0], np.float32),
        pa.array([0.0, -0.0, 1.5, -0.0]),
        pa.chunked_array([pa.array([0.0]), pa.array([-0.0, 1.5, -0.0])]),
        pd.Series([0.0, -0.0, 1.5, -0.0]),
        pd.Series([0.0, -0.0, 1.5, -0.0], dtype="Float64"),
        pl.Series([0.0, -0.0, 1.5, -0.0]),
    ],
    ids=lambda column: type(column).__module__,
)
def test_both_zeros_are_one_text(column):
    cells = encode(column, "x")
    assert [cells.texts[code] for code in cells.codes] == ["0.0", "0.0", "1.5", "0.0"]


MOMENTS = [
    datetime(2024, 1, 31, 7, tzinfo=UTC),
    datetime(2024, 7, 1, 22, 0, 0, 500_000, tzinfo=UTC),
]


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata"])
def test_moments_have_one_text_in_whichever_zone_they_are_shown(zone):
    """A channel that was designed on one of these tables knows the symbols of all, and identities
    are the same.
    """
    shown = [moment.astimezone(ZoneInfo(zone)) for moment in MOMENTS]
    arrow = pa.array(shown, pa.timestamp("us", zone))
    columns = [
        shown,
        np.array(shown, object),
        arrow,
        arrow.dictionary_encode(),
        pa.chunked_array([arrow]),
    ]
    columns += [
        pd.Series(shown),
        pd.Series(shown, dtype="category"),
        pd.Series(shown, dtype=object),
    ]
    columns += [pl.Series(shown), pd.Series(pd.arrays.ArrowExtensionArray(arrow))]
    for column in columns:
        cells = encode(column, "at")
        texts = [cells.texts[code] for code in cells.codes]
        assert texts == [
            "2024-01-31 07:00:00+00:00",
            "2024-07-01 22:00:00.500000+00:00",
        ]
    assert encode([datetime(2024, 1, 31, 7)], "at").texts == ("2024-01-31 07:00:00",)


def test_a_moment_has_one_text_in_every_unit():
    """Two Parquet files of the same data may count in nanoseconds and in milliseconds."""
    moment = datetime(2024, 1, 31, 8, 0, 0, 500_000)
    for unit in ("ms", "us", "ns"):
        zoned = pa.timestamp(unit, "UTC")
        for array, text in (
            (pa.array([moment], pa.timestamp(unit)), "2024-01-31 08:00:00.500000"),
            (pa.array([moment], zoned), "2024-01-31 08:00:00.500000+00:00"),
        ):
            assert encode(array, "at").texts == (text,)
            assert own_values([text, ""], array.type).to_pylist()[0] == array[0].as_py()
    for unit in ("us", "ns"):
        array = pa.array([moment.time()], pa.time64(unit))
        assert encode(array, "at").texts == (str(moment.time()),)
        assert own_values(["08:00:00.500000"], array.type).equals(array)
    finest = pa.array([1], pa.timestamp("ns"))
    assert encode(finest, "at").texts == ("1970-01-01 00:00:00.000000001",)
