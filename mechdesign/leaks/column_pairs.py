"""Whether two kept columns together stand for a protected one that neither discloses by itself.

The high and the low part of a code, or two numbers whose sum is the symbol, are harmless apart. All
pairs of up to `MOST_COLUMNS` columns are tested on a sample, by the same test as single columns
(`crossing.determines`). Three columns together are not tested.

`ColumnPairs` is made with the names of the columns, takes records batch by batch (`add`) and names
the pairs in the end (`copying`). Two columns with codes below 10 and 5 become one with codes below
50, and its table of counts with the symbols of the hidden column is tested.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import combinations, product
from typing import Any

import numpy as np

from mechdesign.core.integers import Integers
from mechdesign.formats.cells import Encoded
from mechdesign.leaks.crossing import (
    SHARED,
    VALUES,
    Counts,
    determines,
    guessed_shares,
    is_nearly_pure,
)

MOST_COLUMNS = 30
"""Columns whose pairs are tested: 435 pairs take some tenths of a second."""

SAMPLED = 1 << 15
"""Records of the sample from which on batches give fewer."""

LATER = 1 << 12
"""Records that a later batch gives, about."""

PROBED = 1 << 12
"""Records that decide whether a pair is worth the test of all."""


class _SampledColumn:
    """The codes of a column in the sample; None once it has too many values, or no symbols."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._parts: list[Integers] | None = []

    def add(self, cells: Encoded | None) -> None:
        """Add the next records; a column without symbols (lists, bytes) is given up."""
        if self._parts is None:
            return
        if cells is None:
            self._parts = None
            return
        places: list[int] = []
        # The code -1 of a missing cell leads to the empty text at the end.
        for text in (*cells.texts, ""):
            places.append(self._numbers.setdefault(text, len(self._numbers)))
        self._parts.append(np.array(places)[cells.codes])
        # As in `crossing`: a column of so many values rather names individuals.
        if len(self._numbers) > VALUES:
            self._parts = None

    @property
    def size(self) -> int:
        """The number of different values."""
        return len(self._numbers)

    @property
    def codes(self) -> Integers | None:
        """The codes of all records of the sample."""
        if not self._parts:
            return None
        return np.concatenate(self._parts)


class ColumnPairs:
    """Collects a sample of the records, and tests the pairs of its columns.

    Parameters
    ----------
    kept : sequence
        The columns of which no pair may stand for a hidden one.
    named : sequence
        Further kept columns, which the user has named: they are tested with the others, not among
        themselves.
    hidden : sequence
        The protected columns.
    """

    def __init__(
        self, kept: Sequence[Any], named: Sequence[Any], hidden: Sequence[Any]
    ) -> None:
        self._hidden = list(hidden)
        self._pairs: list[tuple[Any, Any]] = []
        self.left_out = len(kept) + len(named) > MOST_COLUMNS
        if not self.left_out:
            # No pair of two named columns: the user has answered for both.
            self._pairs += combinations(kept, 2)
            self._pairs += product(kept, named)
        self._columns: dict[Any, _SampledColumn] = {}
        if self._pairs and hidden:
            for name in (*kept, *named, *hidden):
                self._columns[name] = _SampledColumn()
        self._records = 0

    def add(
        self, count: int, every: Callable[[int], Callable[[Any], Encoded | None]]
    ) -> None:
        """Take some of the next `count` records into the sample; ``every(step)`` gives the cells of
        every step-th of them.
        """
        if not self._columns or not count:
            return
        wanted = LATER
        if self._records < SAMPLED:
            wanted = SAMPLED
        step = max(1, count // wanted)
        column = every(step)
        self._records += -(-count // step)
        for name, sampled in self._columns.items():
            sampled.add(column(name))

    def copying(
        self, copies: Collection[tuple[Any, Any]]
    ) -> list[tuple[tuple[Any, Any], Any]]:
        """The pairs that stand for a hidden column, and for which; without columns that do so alone
        (`copies`, as pairs of a column and a hidden one).
        """
        if not self._columns:
            return []
        tests = len(self._pairs) * len(self._hidden)
        copying: list[tuple[tuple[Any, Any], Any]] = []
        for hidden in self._hidden:
            symbols = self._columns[hidden].codes
            if symbols is None:
                continue
            for first, second in self._pairs:
                if (first, hidden) in copies or (second, hidden) in copies:
                    continue
                if self._stands_for(first, second, symbols, tests):
                    copying.append(((first, second), hidden))
        return copying

    def _stands_for(
        self, first: Any, second: Any, symbols: Integers, tests: int
    ) -> bool:
        """Whether two columns together disclose these symbols, being one of so many tests.

        The cheap reasons against it come first: of 435 pairs nearly all end there.
        """
        left = self._columns[first].codes
        right = self._columns[second].codes
        if left is None or right is None:
            return False
        width = self._columns[second].size
        largest = max(self._columns[first].size, width)
        if SHARED * largest > len(symbols):
            # Together they have no fewer values, and so too few records of each.
            return False
        # Both codes in one number, as two digits; right is below the width.
        values = left * width + right
        if not is_nearly_pure(_counted(values[:PROBED], symbols[:PROBED])):
            return False
        table = _counted(values, symbols)
        if not determines(table, len(symbols), tests):
            return False
        # A pair says nothing new where one of the two says as much: that one was tested alone.
        by_both, _ = guessed_shares(table)
        by_first, _ = guessed_shares(_counted(left, symbols))
        by_second, _ = guessed_shares(_counted(right, symbols))
        return by_both > max(by_first, by_second)


def _counted(values: Integers, symbols: Integers) -> Counts:
    """How often each value came with each symbol."""
    width = int(symbols.max(initial=0)) + 1
    cells, counts = np.unique(values * width + symbols, return_counts=True)
    return cells // width, cells % width, counts
