from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechdesign.formats import distinct
from mechdesign.formats.cells import Encoded
from mechdesign.formats.distinct import (
    counted_numbers,
    counted_records,
    distinct_numbers,
    numbered,
)


@pytest.mark.parametrize("dense", [0, 1 << 20])
@pytest.mark.parametrize("together", [1, 1 << 20])
@given(st.lists(st.integers(0, 999), max_size=60), st.integers(1000, 3000))
def test_numbers_are_told_apart_in_order(dense, together, numbers, possible):
    """By counting, by sorting all, and by sorting parts."""
    array = np.array(numbers, np.int64)
    expected = sorted(set(numbers))
    with (
        mock.patch.object(distinct, "DENSE_LIMIT", dense),
        mock.patch.object(distinct, "SORTED_TOGETHER", together),
    ):
        present, places = distinct_numbers(array, possible)
        narrow, count = numbered(array, possible)
        counted, counts = counted_numbers(array, possible)
    assert present.tolist() == counted.tolist() == expected
    assert [expected[place] for place in places.tolist()] == numbers
    assert (narrow.dtype, narrow.tolist(), count) == (
        np.int32,
        places.tolist(),
        len(expected),
    )
    assert counts.tolist() == [numbers.count(number) for number in expected]


def test_hashes_of_64_bits_are_told_apart():
    hashes = np.array([2**64 - 1, 0, 2**63, 2**64 - 1, 5], np.uint64)
    with mock.patch.object(distinct, "SORTED_TOGETHER", 1):
        present, places = distinct_numbers(hashes, 1 << 64)
    assert present.tolist() == [0, 5, 2**63, 2**64 - 1]
    assert places.tolist() == [3, 0, 2, 3, 1]


@given(st.data())
def test_records_are_counted_in_the_order_of_their_appearance(data):
    texts = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))
    count = data.draw(st.integers(0, 80))
    columns = []
    for size in texts:
        code = st.integers(-1, size - 1)
        codes = data.draw(st.lists(code, min_size=count, max_size=count))
        columns.append(Encoded(np.array(codes, np.int32), tuple("abc"[:size])))
    records = list(zip(*(column.codes.tolist() for column in columns), strict=True))
    counted = counted_records(columns)
    if counted is None:
        # Too many are possible beside those that there are.
        assert np.prod([size + 1 for size in texts]) > count
        return
    distinct, times = counted
    found = list(zip(*(column.codes.tolist() for column in distinct), strict=True))
    # A dictionary keeps the order in which its keys came.
    assert found == list(dict.fromkeys(records))
    assert times.tolist() == [records.count(record) for record in found]
    assert [column.texts for column in distinct] == [c.texts for c in columns]
