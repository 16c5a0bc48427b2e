"""The C kernels of CSV cells, called as only a mistake would call them, and against Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechdesign.formats import _csv


@given(st.lists(st.text("ab\U0001f600", max_size=20)), st.integers(1, 400))
def test_texts_are_numbered_as_they_come(few, many):
    """As by a dictionary, for texts of every length, with so many of them that the table grows."""
    texts = [*few, *(f"{i % many} {'x' * (i % 30)}" for i in range(2 * many)), *few]
    data = "".join(texts).encode()
    bounds = np.cumsum([0, *(len(text.encode()) for text in texts)])
    code_bytes, first_bytes = _csv.numbered(data, bounds[:-1], bounds[1:], 1, 0)
    number_of: dict[str, int] = {}
    for text in texts:
        number_of.setdefault(text, len(number_of))
    codes = np.frombuffer(code_bytes, np.int32).tolist()
    assert codes[: len(texts)] == [number_of[text] for text in texts]
    firsts = np.frombuffer(first_bytes, np.int32).tolist()
    assert [texts[row] for row in firsts[: len(number_of)]] == list(number_of)


@pytest.mark.parametrize("bounds", [([0], [9]), ([2], [1]), ([-1], [2]), ([0], [])])
def test_cells_outside_of_the_text_are_not_read(bounds):
    starts, ends = (np.array(places, np.int64) for places in bounds)
    with pytest.raises(IndexError, match="lies outside of the text"):
        _csv.numbered(b"abc", starts, ends, 1, 0)


@pytest.mark.parametrize(
    ("ends", "width", "place"),
    [
        ([1, 3], 2, 2),
        ([1, 3], 2, -1),
        ([1, 9], 2, 1),
        ([3, 3], 2, 1),
        ([-2, 3], 2, 1),
        ([1], 2, 1),
        ([3], 0, 0),
    ],
)
def test_cells_that_no_row_has_are_not_read(ends, width, place):
    with pytest.raises(IndexError, match="lies outside of the text"):
        _csv.numbered(
            b"a,b", np.zeros(1, np.int64), np.array(ends, np.int64), width, place
        )


@pytest.mark.parametrize("counts", [[-1, 1], [1, -1], [3, 0], [1 << 62, 1 << 62]])
def test_counts_that_would_read_other_codes(counts):
    cuts = np.array([0, 0, 1, 1], np.int64)
    offsets = np.array([0, 1], np.int32)
    with pytest.raises(IndexError, match="cuts must ascend within the text"):
        _csv.exchanged(
            b"text",
            4,
            cuts,
            np.zeros(1, np.int32),
            np.array(counts, np.int64),
            offsets,
            b"x",
        )
