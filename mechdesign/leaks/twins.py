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
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from mechdesign.formats.cells import Encoded
from mechdesign.leaks import evidence
from mechdesign.leaks.column_pairs import ColumnPairs
from mechdesign.leaks.crossing import Crossing, TextNumbers

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
