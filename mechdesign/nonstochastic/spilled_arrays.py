"""Arrays of many batches, in memory or, if they are large, in a file without a name.

Batches are written one after the other as the bytes of their arrays, and read again in that order.
Only the length of each batch is remembered, which with the dtypes says how many bytes to read:

>>> pairs = SpilledArrays("i4", "f8")
>>> pairs.add(np.array([3, 1]), np.array([0.5, 2.0]))
>>> [[array.tolist() for array in batch] for batch in pairs]
[[[3, 1], [0.5, 2.0]]]
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import NDArray

SPILLED = 1 << 24
"""Most bytes that are kept in memory."""


class SpilledArrays:
    """Batches of some arrays of equal length, in the order in which they were added.

    Parameters
    ----------
    *types : str
        The dtype of each array of a batch, such as ``"i4"``.

    Attributes
    ----------
    sizes : list of int
        The length of each batch.
    """

    def __init__(self, *types: str) -> None:
        self._types = [np.dtype(name) for name in types]
        self.sizes = list[int]()
        with ExitStack() as open_files:
            self._file = open_files.enter_context(
                tempfile.SpooledTemporaryFile(SPILLED)
            )
            # Closed, and so removed, with this object, however the program leaves it. A method of
            # this object would keep it alive; the stack of files does not know it.
            weakref.finalize(self, open_files.pop_all().close)

    def add(self, *arrays: NDArray[Any]) -> None:
        """Add a batch: an array of each type, all of one length."""
        self.sizes.append(len(arrays[0]))
        for dtype, array in zip(self._types, arrays, strict=True):
            self._file.write(array.astype(dtype, copy=False).tobytes())

    def __iter__(self) -> Iterator[list[Any]]:
        self._file.seek(0)
        for size in self.sizes:
            batch: list[Any] = []
            for dtype in self._types:
                content = self._file.read(size * dtype.itemsize)
                batch.append(np.frombuffer(content, dtype))
            yield batch
