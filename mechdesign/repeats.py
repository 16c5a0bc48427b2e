"""Identifiers that come again in a later part of the data with another symbol: their draws would hang together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mechdesign.integer_rows import Integers

REMEMBERED = 1 << 21
"""Different identifiers that are remembered (about 50 MB at worst), so that memory does not grow with the data."""

MERGED = 2
"""A run is merged with the one before unless that is more than this many times as long: few runs, few merges."""

Hashes = NDArray[np.int64]


class Repeats:
    """Which identifiers came with which symbol, by 64-bit hashes of the process: a false alarm is not to be expected.

    Attributes
    ----------
    full : bool
        Whether there were more identifiers than are remembered.
    """

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self.full = False
        self._room = remembered
        # Sorted hashes with their codes, long runs first.
        self._runs: list[tuple[Hashes, NDArray[np.int32]]] = []

    def conflict(self, columns: Sequence[Sequence[str]], codes: Integers) -> int | None:
        """Position of a record whose identifier came with another code in an earlier part; remembers this part.

        Parameters
        ----------
        columns : sequence of columns, each a sequence of n texts
            Of the identifier.
        codes : (n,) integer array
            The same for all records of an identifier within this part.
        """
        parts = columns[0] if len(columns) == 1 else zip(*columns, strict=True)
        hashes = np.fromiter(map(hash, parts), dtype=np.int64, count=len(codes))
        hashes, first = np.unique(hashes, return_index=True)
        found = codes[first].astype(np.int32)
        new = np.ones(len(hashes), dtype=np.bool_)
        for known, symbols in self._runs:
            place = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
            again = known[place] == hashes
            other = np.flatnonzero(again & (symbols[place] != found))
            if other.size:
                return int(first[other[0]])
            new &= ~again
        self._add(hashes[new], found[new])
        return None

    def _add(self, hashes: Hashes, codes: NDArray[np.int32]) -> None:
        self.full = self.full or len(hashes) > self._room
        hashes, codes = hashes[: self._room], codes[: self._room]
        if not len(hashes):
            return
        self._room -= len(hashes)
        while self._runs and len(self._runs[-1][0]) <= MERGED * len(hashes):
            known, symbols = self._runs.pop()
            hashes, codes = np.concatenate([known, hashes]), np.concatenate([symbols, codes])
            order = np.argsort(hashes, kind="stable")
            hashes, codes = hashes[order], codes[order]
        self._runs.append((hashes, codes))
