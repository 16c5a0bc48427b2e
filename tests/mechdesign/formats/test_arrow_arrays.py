from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from mechdesign.formats.arrow_arrays import arrow_integers, arrow_texts, integers_of


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64"])
def test_integers_there_and_back(dtype):
    numbers = np.array([3, 0, 1, 127, 5], dtype)
    array = arrow_integers(numbers)
    array.validate(full=True)
    assert array.equals(pa.array(numbers))
    assert integers_of(array).dtype == numbers.dtype
    assert integers_of(array.slice(1, 3)).tolist() == [0, 1, 127]
    assert arrow_integers(numbers[::2]).to_pylist() == [3, 1, 5]
    assert arrow_integers(numbers[:0]).to_pylist() == []
    assert integers_of(pa.array([], dtype)).tolist() == []


def test_integers_in_the_place_of_nulls():
    array = pa.array([4, None, 6, None], pa.int32())
    assert integers_of(array, -1).tolist() == [4, -1, 6, -1]
    assert integers_of(array.slice(1, 2), 9).tolist() == [9, 6]
    assert integers_of(array.slice(2, 1), 9).tolist() == [6]
    assert integers_of(array)[[0, 2]].tolist() == [4, 6]


@pytest.mark.parametrize(
    "texts", [[], [""], ["a", "", "é🙂", 'x"y\n'], [None], [*"abcdefgh", None, ""]]
)
def test_texts(texts):
    array = arrow_texts(texts)
    array.validate(full=True)
    assert array.equals(pa.array(texts, pa.string()))


def test_pandas_is_not_loaded():
    pytest.importorskip("pandas")
    code = (
        "import sys, numpy as np, mechdesign.formats.arrow_arrays as a;"
        "a.integers_of(a.arrow_integers(np.arange(3))); a.arrow_texts(['x']);"
        "print(*[name for name in ('pandas', 'pyarrow') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    assert done.stdout == "pyarrow\n"
