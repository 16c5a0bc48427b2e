from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechdesign.formats import distinct
from mechdesign.formats.distinct import counted_numbers, distinct_numbers


@pytest.mark.parametrize("dense", [0, 1 << 20])
@pytest.mark.parametrize("together", [0, 1 << 20])
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
        counted, counts = counted_numbers(array, possible)
    assert present.tolist() == counted.tolist() == expected
    assert [expected[place] for place in places.tolist()] == numbers
    assert counts.tolist() == [numbers.count(number) for number in expected]


def test_hashes_of_64_bits_are_told_apart():
    hashes = np.array([2**64 - 1, 0, 2**63, 2**64 - 1, 5], np.uint64)
    with mock.patch.object(distinct, "SORTED_TOGETHER", 1):
        present, places = distinct_numbers(hashes, 1 << 64)
    assert present.tolist() == [0, 5, 2**63, 2**64 - 1]
    assert places.tolist() == [3, 0, 2, 3, 1]
