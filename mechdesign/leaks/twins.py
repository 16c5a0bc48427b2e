"""Looks in kept columns for copies of protected ones: each column by itself, and every pair.

A release makes a `Twins` with the names of the columns and feeds it batch by batch (`add`). Each
kept column has a table of counts with each protected one (`Crossing`): how often each value came
with each symbol. Pairs of kept columns have a sample of their own (`ColumnPairs`). At the end
`copies` and `copying_pairs` name those that disclose a protected column. For example, if nearly all
records with one postal code are from one town, the code is a copy of the protected town.

Comparing all records would take longer than the release, so `add` compares no more than it must:

1. The batches up to the first 4096 records (`evidence.LOOKED`), and then one whenever the number of
   records has doubled, are sampled (`_compare_sample`): about 4096 records of each. Of batches of
   10,000 records these are the batches 1, 3, 7, 15 and so on.
2. A column of very many values looks like a copy in a sample where each value came once. It is
   undecided, and compared in all records of this batch in place of the sample.
3. In all other batches, only columns that are still undecided are compared, in all records
   (`_compare_all`).

*Pairs.* The high and the low part of a code, or two numbers whose sum is the symbol, are harmless
apart. All pairs of up to `MOST_COLUMNS` columns are tested on a sample, by the same test as single
columns (`evidence.determines`). Three columns together are not tested.

`ColumnPairs` is made with the names of the columns, takes records batch by batch (`add`) and names
the pairs in the end (`copying`). Two columns with codes below 10 and 5 become one with codes below
50, and its table of counts with the symbols of the hidden column is tested.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from itertools import combinations, product
from typing import Any, TypeAlias

import numpy as np

from mechdesign.core.integers import Integers
from mechdesign.formats.cells import Encoded
from mechdesign.leaks import evidence
from mechdesign.leaks.evidence import (
    SHARED,
    VALUES,
    Counts,
    Crossing,
    TextNumbers,
    determines,
    guessed_shares,
    is_nearly_pure,
)

# --------------------------------------------------------------------- pairs of columns

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
        # As in a `Crossing`: a column of so many values rather names individuals.
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


# -------------------------------------------------------------------------- all columns

CellsOf: TypeAlias = Callable[[Any], Encoded | None]
"""Gives the cells of a column; None for one without symbols."""

Sampler: TypeAlias = Callable[[int], CellsOf]
"""Gives, for a step k, the columns of every k-th record of a batch."""

CACHED = 64
"""Columns of a batch that are held as cells at once: of many columns not all."""


class Twins:
    """Compares every kept column, and every pair of them, with every hidden one.

    Of a batch some records are compared (`evidence.LOOKED`). A column that looks like a copy but
    has too many values for so few records is compared in all records, until there are enough of
    them: so it is seen in the file as `inspect` sees it.

    Parameters
    ----------
    kept : sequence
        The columns that must not stand for a hidden one.
    hidden : sequence
        The protected columns.
    named : sequence
        Kept columns that may, because the user has named them; pairs of one of them with another
        column may not.
    """

    def __init__(
        self, kept: Sequence[Any], hidden: Sequence[Any], named: Sequence[Any] = ()
    ) -> None:
        self._crossings: dict[tuple[Any, Any], Crossing] = {}
        # The symbols of a hidden column have the same numbers in all its crossings, so its cells
        # are numbered once a batch.
        symbols = {other: TextNumbers() for other in hidden}
        for name in kept:
            for other in hidden:
                self._crossings[name, other] = Crossing(symbols=symbols[other])
        self._pairs = ColumnPairs(kept, named, hidden)
        self._records = 0
        # The number of records from which on a batch is sampled again.
        self._next_sample = 0

    @property
    def pairs_left_out(self) -> bool:
        """Whether there are too many columns for a test of their pairs."""
        return self._pairs.left_out

    def add(self, count: int, every: Sampler) -> None:
        """Compare some of the next `count` records; ``every(step)`` gives the cells of every
        step-th of them.
        """
        if not count:
            return
        is_first = self._records < evidence.LOOKED
        has_doubled = self._records >= self._next_sample
        self._records += count
        if is_first or has_doubled:
            self._next_sample = 2 * self._records
            self._compare_sample(count, every)
            self._pairs.add(count, every)
            return
        # Between samples only those are compared that have too few records for a verdict.
        undecided: list[tuple[Any, Any]] = []
        for pair, crossing in self._crossings.items():
            if crossing.undecided:
                undecided.append(pair)
        self._compare_all(undecided, every)

    def copies(self) -> list[tuple[Any, Any]]:
        """Columns that stand for hidden ones, and for which."""
        # Of many tests each needs more evidence.
        tests = len(self._crossings)
        copies: list[tuple[Any, Any]] = []
        for pair, crossing in self._crossings.items():
            if crossing.stands_for(tests):
                copies.append(pair)
        return copies

    def copying_pairs(self) -> list[tuple[tuple[Any, Any], Any]]:
        """Pairs of columns that stand for hidden ones together, and for which."""
        return self._pairs.copying(self.copies())

    def _compare_sample(self, count: int, every: Sampler) -> None:
        """Compare some records of a batch; those columns in all records that need it."""
        step = max(1, count // evidence.LOOKED)
        # A column is read once for all the crossings that it is in.
        column = lru_cache(CACHED)(every(step))
        undecided: list[tuple[Any, Any]] = []
        for pair, crossing in self._crossings.items():
            if crossing.full:
                continue
            sampled = crossing
            if step > 1:
                # On a copy, for a sample that decides nothing must not be counted twice.
                sampled = crossing.copy()
            _add(sampled, pair, column)
            if step > 1 and sampled.undecided:
                # The sample is forgotten: all records of the batch are counted in its place.
                undecided.append(pair)
            else:
                self._crossings[pair] = sampled
        self._compare_all(undecided, every)

    def _compare_all(self, pairs: Sequence[tuple[Any, Any]], every: Sampler) -> None:
        """Compare all records of a batch, in some pairs of a kept and a hidden column."""
        if not pairs:
            return
        column = lru_cache(CACHED)(every(1))
        for pair in pairs:
            _add(self._crossings[pair], pair, column)


def _add(crossing: Crossing, pair: tuple[Any, Any], column: CellsOf) -> None:
    """Count the cells of a pair of columns, where both have symbols."""
    name, other = pair
    values = column(name)
    symbols = column(other)
    if values is not None and symbols is not None:
        crossing.add(values, symbols)
