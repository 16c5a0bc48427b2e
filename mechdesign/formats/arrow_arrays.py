"""NumPy arrays and texts as pyarrow arrays, and back, without a copy.

``pa.array`` and ``Array.to_numpy`` import pandas, where it is installed, to find out whether the
data are pandas' own. That takes 40 MB and a third of a second, which a job on files does not need.
"""

# pyarrow has no complete types.
# pyright: basic
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def integers_of(array: Any, missing: int | None = None) -> NDArray[Any]:
    """The integers, or floats, of a pyarrow array.

    Nulls become `missing`; without it their values are arbitrary.
    """
    data = array.buffers()[1]
    kind = array.type.to_pandas_dtype()
    if data is None:
        return np.zeros(0, kind)
    values = np.frombuffer(data, kind)[array.offset : array.offset + len(array)]
    if missing is None or not array.null_count:
        return values
    # Truth values are bits in arrow, so they are cast to bytes first.
    null = integers_of(array.is_null().cast("uint8")) == 1
    return np.where(null, missing, values)


def arrow_integers(array: NDArray[np.integer[Any]]) -> Any:
    """The same integers as a pyarrow array."""
    import pyarrow as pa

    kind = pa.type_for_alias(array.dtype.name)
    data = pa.py_buffer(np.ascontiguousarray(array))
    return pa.Array.from_buffers(kind, len(array), [None, data])


def arrow_texts(texts: Sequence[str]) -> Any:
    """Texts as a pyarrow array."""
    import pyarrow as pa

    encoded = [text.encode() for text in texts]
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(encoded), buffers)


def arrow_offsets(texts: Any) -> tuple[NDArray[np.int64], Any]:
    """The (n + 1,) offsets of the n texts of a pyarrow array, and their bytes."""
    _, offsets, data = texts.buffers()
    if not len(texts):
        return np.zeros(1, np.int64), data or b""
    width = "<i8" if str(texts.type) == "large_string" else "<i4"
    bounds = np.frombuffer(offsets, width)[texts.offset : texts.offset + len(texts) + 1]
    return np.asarray(bounds, np.int64), data or b""


def combined(column: Any) -> Any:
    """A pyarrow array of all chunks, where the column has chunks."""
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        return column.combine_chunks()
    return column
