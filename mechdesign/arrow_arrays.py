"""Arrays between NumPy, Python and pyarrow without a copy, and without pandas.

``pa.array`` and ``Array.to_numpy`` load pandas, where it is installed, to ask whether the data are its own: 40 MB
and a third of a second that a job on files has no use for.
"""

# pyarrow tells too little of its types for the strict mode.
# pyright: basic
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def integers_of(array: Any) -> NDArray[np.integer[Any]]:
    """The integers of a pyarrow array that has no nulls."""
    data = array.buffers()[1]
    if data is None:
        return np.zeros(0, str(array.type))
    return np.frombuffer(data, str(array.type))[array.offset : array.offset + len(array)]


def arrow_integers(array: NDArray[np.integer[Any]]) -> Any:
    """A contiguous array as a pyarrow array of the same integers."""
    import pyarrow as pa

    kind = pa.type_for_alias(array.dtype.name)
    return pa.Array.from_buffers(kind, len(array), [None, pa.py_buffer(np.ascontiguousarray(array))])


def arrow_texts(texts: Sequence[str]) -> Any:
    """Texts as a pyarrow array."""
    import pyarrow as pa

    encoded = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(encoded), buffers)
