"""Data frames of Dask, released partition by partition.

A release reads the frame before it gives a new one back: twice to compare the readings
(`readings`), and once to count X in every partition (`partition_totals`). The new frame is lazy.
Its tasks (`_Release`) draw for a partition each, with row numbers that begin where the partition
begins: partitions of 3, 2 and 4 records begin at 0, 3 and 5. What is read ahead of the release is
made by tasks, too (`_Counting`, `_Digesting`), so that only counts and hashes leave the workers.

The key travels inside of the tasks, and no graph, report or log shows it. Where the network is not
trusted, connect with ``tls://``.
"""

# dask and pandas have no complete types.
# pyright: basic, reportMissingImports=false
from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from uuid import uuid4

import narwhals as nw
import numpy as np

from mechdesign.core.integers import Integers
from mechdesign.formats.arrow_arrays import integers_of
from mechdesign.frames.adapter import NativeTable, keeps_index
from mechdesign.frames.eager import FrameChecks, adapter_of, arrow_columns, sanitised
from mechdesign.frames.readings import (
    RecordHasher,
    has_places,
    partition_totals,
    refuse_partition,
    repeated_row_number,
    unstable_error,
)
from mechdesign.jobs.options import ReleaseOptions
from mechdesign.jobs.recipe import Drawer, Recipe


@dataclass(frozen=True)
class DaskFrame(NativeTable):
    """A data frame of Dask as a `LazyTable`."""

    rows_have_places: ClassVar[bool] = True

    @staticmethod
    def is_native(frame: Any) -> bool:
        """True for a table of this library."""
        return nw.dependencies.is_dask_dataframe(frame)

    def released(self, recipe: Recipe, first_row: int) -> tuple[Any, list[str]]:
        """The released data frame, with its partitions and types, and notes on it."""
        header = self.names
        drawer = recipe.drawer(header)
        # What is wrong with the types is found before anything is read.
        meta = _meta(self.native, drawer)
        notes = [*drawer.type_notes]
        if recipe.draws:
            _compare_readings(self.native, drawer)
        totals = partition_totals(
            drawer,
            lambda places: self._counts(recipe, places),
            lambda parts: self.native.partitions[:parts].compute(),
        )
        work = _Release(recipe, header, totals)
        # Identifiers and row numbers fix the draws wherever a record lies.
        if not has_places(drawer):
            return self._mapped(work, meta), notes
        # Where each partition begins: a cumulated sum, so that no partition waits for later ones.
        lengths = self.native.map_partitions(_length, meta=(None, np.dtype(np.int64)))
        first_rows = lengths.cumsum() - lengths + first_row
        return self._mapped(work, meta, first_rows), notes

    def _mapped(self, work: _Release, meta: Any, *first_rows: Any) -> Any:
        """The frame of the released partitions, with their first row numbers where places count."""
        released = self.native.map_partitions(work, *first_rows, meta=meta)
        if keeps_index(adapter_of(self.native._meta), work.options):
            return released
        # Without its index the divisions, which are values of it, are wrong.
        return released.clear_divisions()

    def _counts(self, recipe: Recipe, places: Sequence[int]) -> Any:
        """The counts of every partition."""
        return _computed(self.native, _Counting(recipe, self.names, places), places)


def _meta(frame: Any, drawer: Drawer) -> Any:
    """The released frame without records, from which Dask has the types."""
    from dask.dataframe.utils import clear_known_categories

    meta = sanitised(frame._meta.iloc[:0], drawer)
    # A partition has the categories of its own records, which nobody knows beforehand.
    categories: list[Any] = []
    for name in drawer.plan.others:
        if str(meta.dtypes[name]) == "category":
            categories.append(name)
    if categories:
        meta = clear_known_categories(meta, cols=categories)
    return meta


def _computed(frame: Any, work: _Task, places: Sequence[int]) -> Any:
    """What a task makes of every partition of the columns with these numbers."""
    import dask

    tools: Any = dask
    # Dask would hash every part for a pure function.
    delayed_work = tools.delayed(work, pure=False)
    names = [frame.columns[at] for at in places]
    parts = frame[names].to_delayed()
    return tools.compute(*map(delayed_work, parts))


def _compare_readings(frame: Any, drawer: Drawer) -> None:
    """Read the compared columns twice; raises InputError if the readings differ."""
    work = _Digesting(drawer)
    # One task for both: hashes under the secrets of another hasher would never agree.
    first = _computed(frame, work, work.columns)
    second = _computed(frame, work, work.columns)
    name = drawer.recipe.options.row_numbers
    if name is not None and first:
        numbers = np.concatenate([part.row_numbers for part in first])
        values, times = np.unique(numbers, return_counts=True)
        if (times > 1).any():
            raise repeated_row_number(name, int(values[np.argmax(times > 1)]))
    # Without places a record is known by its identifiers, and may move between partitions.
    if has_places(drawer):
        agree = _sequences(first) == _sequences(second)
    else:
        agree = _sum_of(first) == _sum_of(second)
    if not agree:
        raise unstable_error(drawer)


@dataclass(frozen=True)
class _Digest:
    """The records of a partition: a hash of their sequence, and what is the same in any order.

    Attributes
    ----------
    ordered : str
        A hash of the hashes of the records, in their order.
    records : int
        The number of records.
    hash_sum : int
        The sum of the hashes of the records, modulo 2^64.
    row_numbers : array
        The row numbers that a column gives to the records; empty without such a column.
    """

    ordered: str
    records: int
    hash_sum: int
    row_numbers: Integers


def _sequences(parts: Sequence[_Digest]) -> list[str]:
    """The hash of the sequence of records of every partition."""
    return [part.ordered for part in parts]


def _sum_of(parts: Sequence[_Digest]) -> tuple[int, int]:
    """The number of records of all partitions, and the sum of their hashes modulo 2^64."""
    records = 0
    hash_sum = 0
    for part in parts:
        records += part.records
        hash_sum += part.hash_sum
    return records, hash_sum % 2**64


class _Task:
    """A task with a name for people, and nothing of the key in the names that Dask gives.

    Dask makes names of tasks from their arguments; a token of its own keeps the key out of them.
    """

    title = "sanitise_partition"

    def __init__(self) -> None:
        self.__name__ = self.title
        self._token = uuid4().hex

    def __dask_tokenize__(self) -> str:
        return self._token

    def __repr__(self) -> str:
        return self.__name__


class _Release(_Task):
    """Releases a partition."""

    def __init__(
        self,
        recipe: Recipe,
        header: Sequence[Any],
        totals: Sequence[Integers] | None,
    ) -> None:
        super().__init__()
        self._recipe = recipe
        self._header = header
        self._totals = totals

    @property
    def options(self) -> ReleaseOptions:
        """The options of the release."""
        return self._recipe.options

    def __call__(self, part: Any, first_row: Any = ()) -> Any:
        """The released partition, whose first record has the row number in a column of one cell."""
        drawer = self._recipe.drawer(self._header)
        checks = FrameChecks(drawer)
        released = sanitised(part, drawer, first_row=int(next(iter(first_row), 0)))
        checks.add(part)
        refuse_partition(drawer, checks, self._totals)
        return released


class _Counting(_Task):
    """Counts the symbols of a partition, of which only some columns are there."""

    def __init__(
        self, recipe: Recipe, header: Sequence[Any], places: Sequence[int]
    ) -> None:
        super().__init__()
        self._recipe = recipe
        self._header = header
        self._places = places

    def __call__(self, part: Any) -> Any:
        """The counts of a partition."""
        drawer = self._recipe.drawer(self._header)
        once = np.ones(len(part), np.int64)
        drawer.count(lambda at: part.iloc[:, self._places.index(at)], once)
        return drawer.counts


class _Digesting(_Task):
    """Hashes a partition, of which only the compared columns are there."""

    def __init__(self, drawer: Drawer) -> None:
        super().__init__()
        self._hasher = RecordHasher(drawer)
        self.columns = self._hasher.columns
        name = drawer.recipe.options.row_numbers
        self._number: int | None = None
        if name is not None:
            self._number = self.columns.index(drawer.header.index(name))

    def __call__(self, part: Any) -> _Digest:
        """The digest of a partition."""
        columns = arrow_columns(part)
        hashes = self._hasher.hashes(columns, len(part))
        numbers = np.zeros(0, np.int64)
        if self._number is not None:
            numbers = integers_of(columns[self._number].drop_null()).astype(np.int64)
        return _Digest(
            ordered=hashlib.blake2b(hashes.tobytes()).hexdigest(),
            records=len(part),
            hash_sum=int(hashes.sum(dtype=np.uint64)),
            row_numbers=numbers,
        )


def _length(part: Any) -> Any:
    """The number of records of a partition, as a column of one cell.

    Of an empty partition the column is empty: it takes its index from the first record.
    """
    import pandas as pd

    return pd.Series(len(part), index=part.index[:1], dtype=np.int64)
