"""Arrays of many batches, in memory or, if they are large, in a file without a name."""

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
    types
        The dtype of each array, by name.
    """

    def __init__(self, *types: str) -> None:
        self._types = [np.dtype(name) for name in types]
        self.sizes = list[int]()
        with ExitStack() as open_files:
            self._file = open_files.enter_context(
                tempfile.SpooledTemporaryFile(SPILLED)
            )
            # Closed, and so removed, with this object, however the program leaves it.
            weakref.finalize(self, open_files.pop_all().close)

    def add(self, *arrays: NDArray[Any]) -> None:
        """Add a batch."""
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
