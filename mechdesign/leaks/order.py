"""Whether the records of a file stand in an order that discloses their symbols.

Two tables of counts are weighed against chance, half and half (`evidence`): symbols by the symbol
before (runs, and anything periodic), and symbols by the part of the file, in parts of several sizes
(sorted or grouped by the symbol, or by what it depends on). In the sorted file a a a a b b b b the
symbol a is followed by an a three times and by a b once, and the two halves of the file have the
counts (4, 0) and (0, 4).

An `Order` is fed with the codes of the symbols batch by batch (`add`); `evidence` is the logarithm
of its e-value. Memory does not grow with the file: when there are too many parts, neighbours are
joined.
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
        self._records = 0
        # Counts by the symbol before; the first record has a context of its own, the last row.
        self._pairs = np.zeros((self._classes + 1) * self._classes, np.int64)
        self._last = self._classes
        # Counts by the part of the file, of so many records each.
        self._parts = np.zeros((BLOCKS, self._classes), np.int64)
        self._block = FIRST_BLOCK

    def add(self, codes: Integers) -> None:
        """Count the next records."""
        if not len(codes):
            return
        classes = codes
        if self._size > CLASSES:
            # Neighbouring codes share a class, so that a trend of ordered symbols is still seen.
            classes = codes * CLASSES // self._size
        self._count_pairs(classes)
        self._count_parts(classes)
        self._records += len(classes)

    def _count_pairs(self, classes: Integers) -> None:
        """Count each symbol by the one before it, across batches."""
        before = np.empty_like(classes)
        before[0] = self._last
        before[1:] = classes[:-1]
        cells = before * self._classes + classes
        self._pairs += np.bincount(cells, minlength=len(self._pairs))
        self._last = int(classes[-1])

    def _count_parts(self, classes: Integers) -> None:
        """Count each symbol by the part of the file that its record lies in."""
        records = self._records + len(classes)
        while records > BLOCKS * self._block:
            self._join_neighbours()
        places = np.arange(self._records, records) // self._block
        # Only the rows of the parts that the batch lies in.
        first = int(places[0])
        counts = np.bincount((places - first) * self._classes + classes)
        start = first * self._classes
        flat = self._parts.reshape(-1)
        flat[start : start + len(counts)] += counts

    def _join_neighbours(self) -> None:
        """Parts of twice the size, which leave room for as many again."""
        # Counts of joined parts are sums, so no record has to be seen again.
        half = BLOCKS // 2
        self._parts[:half] = self._parts.reshape(half, 2, -1).sum(axis=1)
        self._parts[half:] = 0
        self._block *= 2

    def evidence(self) -> float:
        """The logarithm of the e-value against a random order."""
        by_symbol_before = _table_evidence(self._pairs.reshape(-1, self._classes))
        # Fine parts show short groups, coarse ones a faint trend.
        parts = self._parts
        by_parts = [_table_evidence(parts)]
        while len(parts) > LUMPED:
            parts = parts.reshape(-1, LUMPED, parts.shape[1]).sum(axis=1)
            by_parts.append(_table_evidence(parts))
        # A mean of e-values is one, so no correction for several tests is needed. The tables by
        # parts share their half, because they are sums of each other.
        return mean_evidence([by_symbol_before, mean_evidence(by_parts)])


def _table_evidence(table: Integers) -> float:
    """The evidence of a table of counts, contexts by symbols."""
    contexts, symbols = np.nonzero(table)
    return log_evidence(contexts, symbols, table[contexts, symbols])
