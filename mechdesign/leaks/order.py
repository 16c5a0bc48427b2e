"""Whether the records of a file stand in an order that discloses their symbols.

Two tables of counts are weighed against chance, half and half: symbols by the symbol before (runs,
and anything periodic), and symbols by the part of the file, in parts of several sizes (sorted or
grouped by the symbol, or by what it depends on).
"""

from __future__ import annotations

import numpy as np

from mechdesign.core.integers import Integers
from mechdesign.leaks.evidence import log_evidence, mean_evidence

CLASSES = 64
"""Symbols are lumped together down to so many, for tables of bounded size."""

BLOCKS = 512
"""Parts of the file in which symbols are counted, at most; when there are more, neighbours are
joined.
"""

FIRST_BLOCK = 8
"""Records of a part at the beginning."""

LUMPED = 4
"""Neighbouring parts that are joined for the next coarser table."""


class Order:
    """Collects symbols in the order of their records, and weighs that order against a random one.

    Parameters
    ----------
    size : int
        The number of symbols; a symbol is a code below it.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._classes = min(size, CLASSES)
        self._pairs = np.zeros((self._classes + 1) * self._classes, np.int64)
        # The first record has a context of its own.
        self._last = self._classes
        self._block = FIRST_BLOCK
        self._records = 0
        self._parts = np.zeros((BLOCKS, self._classes), np.int64)

    def add(self, codes: Integers) -> None:
        """Count the next records."""
        if not len(codes):
            return
        classes = codes
        if self._size > CLASSES:
            classes = codes * CLASSES // self._size
        self._count_pairs(classes)
        self._count_parts(classes)
        self._records += len(classes)

    def _count_pairs(self, classes: Integers) -> None:
        before = np.empty_like(classes)
        before[0] = self._last
        before[1:] = classes[:-1]
        cells = before * self._classes + classes
        self._pairs += np.bincount(cells, minlength=len(self._pairs))
        self._last = int(classes[-1])

    def _count_parts(self, classes: Integers) -> None:
        records = self._records + len(classes)
        while records > BLOCKS * self._block:
            self._join_neighbours()
        places = np.arange(self._records, records) // self._block
        first = int(places[0])
        counts = np.bincount((places - first) * self._classes + classes)
        start = first * self._classes
        flat = self._parts.reshape(-1)
        flat[start : start + len(counts)] += counts

    def _join_neighbours(self) -> None:
        """Parts of twice the size, which leave room for as many again."""
        half = BLOCKS // 2
        self._parts[:half] = self._parts.reshape(half, 2, -1).sum(axis=1)
        self._parts[half:] = 0
        self._block *= 2

    def evidence(self) -> float:
        """The logarithm of the e-value against a random order."""
        runs = _table_evidence(self._pairs.reshape(-1, self._classes))
        parts = self._parts
        coarser = [_table_evidence(parts)]
        while len(parts) > LUMPED:
            parts = parts.reshape(-1, LUMPED, parts.shape[1]).sum(axis=1)
            coarser.append(_table_evidence(parts))
        return mean_evidence([runs, mean_evidence(coarser)])


def _table_evidence(table: Integers) -> float:
    """The evidence of a table of counts, contexts by symbols."""
    contexts, symbols = np.nonzero(table)
    return log_evidence(contexts, symbols, table[contexts, symbols])
