"""Readings of a lazy table, compared with each other, and what its partitions disclose.

A lazy table is computed whenever it is read. If a computation depends on a random or time function,
on the work of several threads or on data that change, two readings hold other records at the same
places, or other symbols for the same identifiers. The draws of both together would disclose more of
a record than one draw may. No text of a query plan shows this in every case, so the table is judged
by what it does: it is read twice before anything is released, and every batch that is released
later is compared with the first reading.

A reading keeps one hash of eight bytes a record, under secrets that nobody keeps. With a hash h_c
for each compared column c, the hash of a record is mix(sum over c of h_c(cell)) (`RecordHasher`). A
chance agreement has probability 2^-64. Cells of lists and structures have no hash: they are no
symbols and identify nothing. What is compared depends on what the draws are functions of
(`compared_columns`):

- of records that are known by their place: the useful columns and all columns that stay, in order,
  for a draw must not move to another record;
- of records with identifiers or row numbers: these and the useful columns, in any order.

A `Reading` holds the hashes of all records, and `Readings` compares: `compare_two` once before the
release, then `check_part` for every batch of a later reading, and `check_length` at its end. For
example, the hashes 7, 3, 9 of three records agree with 3, 7, 9 only if identifiers fix their draws.
Then they are kept sorted, and a later batch with the hashes 9, 7 is found in 3, 7, 9.

*Batch by batch* is what polars and DuckDB have in common:

1. The adapter of an engine makes a `BatchRelease`.
2. It calls `compare_readings` once, which refuses a table whose first two readings differ.
3. It calls `parts` with the batches of a new reading whenever the engine reads the release.

`parts` compares each batch, draws it with the row numbers of its place in the table, and yields it.
For example, the second of two batches of 1,000 records has the row numbers 1,000 to 1,999 if the
first record is number 0. Checks that need all records, such as whether another column gives X away,
can only be made at the end: they raise after the last batch.

*Partitions* of a table on a cluster are released each by itself. The partition of a record
discloses X where X differs between partitions: if the first holds the nurses and the second the
clerks, the number of the part alone gives the job. So X is counted where the data are, in a job of
its own that reads the useful columns alone: ::

    partition   clerk  nurse
    0               0    500
    1             700      0

`partition_totals` does this before a frame is given back. It refuses a table whose partitions
differ by more than chance (`_refuse_apart`, a test of independence of symbol and partition by
`leaks.evidence`), and returns the totals (700, 500).

Each partition is compared with the rest of the totals once more when it is released
(`refuse_partition`), because an engine may cut the table in another way then: (0, 500) here against
(700, 0) elsewhere. The order within each partition is an error where it discloses X, and so is a
kept column that copies X there. One identifier with two symbols is found where both records are in
one batch of Spark, or in one partition of Dask.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.core.wording import quoted
from mechdesign.formats.arrow_arrays import combined, integers_of
from mechdesign.formats.census import Hashes
from mechdesign.formats.digests import RowHasher
from mechdesign.frames.eager import FrameChecks, adapter_of, sanitised
from mechdesign.jobs.recipe import Drawer, Recipe
from mechdesign.leaks.evidence import LEVEL, LOOKED, decisive, log_evidence

UNSTABLE = (
    "two readings of this table differ, so that its records would be drawn twice: it depends on a "
    "random or time function, on an order that nothing fixes, or on data that change; store it "
    "first (in a file or a table), and release what was stored"
)

NO_ORDER = (
    ", or name what identifies a record (identity=.. or row_numbers=..), "
    "if only the order differs"
)


def has_places(drawer: Drawer) -> bool:
    """Whether the place of a record fixes its draw: nothing else identifies it."""
    is_numbered = drawer.recipe.options.row_numbers is not None
    return drawer.recipe.draws and not drawer.plan.identity and not is_numbered


def unstable_error(drawer: Drawer) -> InputError:
    """The refusal of a table whose readings differ."""
    if has_places(drawer):
        return InputError(UNSTABLE + NO_ORDER)
    return InputError(UNSTABLE)


def compared_columns(drawer: Drawer) -> list[int]:
    """The numbers of the columns in which two readings must agree."""
    plan = drawer.plan
    places = {*plan.identity}
    for group in plan.inputs:
        places.update(group)
    name = drawer.recipe.options.row_numbers
    if name is not None:
        places.add(drawer.header.index(name))
    if has_places(drawer):
        # The kept columns tell which record is at a place, even where its symbol is a common one.
        for column in plan.columns:
            if column.release is None and column.source is not None:
                places.add(column.source)
    return sorted(places)


class RecordHasher:
    """One hash for each record, of the columns in which two readings must agree."""

    def __init__(self, drawer: Drawer) -> None:
        self.columns = compared_columns(drawer)
        # A secret for each column: two cells that change places must change the hash.
        self._hashers = [RowHasher(secrets.token_bytes(32)) for _ in self.columns]
        self._mixer = RowHasher(secrets.token_bytes(32))

    def hashes(self, columns: list[Any], count: int) -> Hashes:
        """The hashes of `count` records; `columns` are the compared ones, in their order."""
        hashes = np.zeros(count, np.uint64)
        for hasher, column in zip(self._hashers, columns, strict=True):
            hashes += hasher.columns([column], count)
        # Without this, the sum over all records would be a sum over the columns, and would stay the
        # same when identifiers exchange their symbols.
        return self._mixer.mixed(hashes)


@dataclass(frozen=True)
class Reading:
    """The hashes of all records of a reading; sorted, unless their places count."""

    hashes: Hashes
    has_places: bool

    def agrees_with(self, other: Reading) -> bool:
        """Whether both readings have the same records (at the same places, if they count)."""
        return np.array_equal(self.hashes, other.hashes)

    def holds(self, hashes: Hashes, first: int) -> bool:
        """Whether the reading has these records, the first of them at the place `first`."""
        if self.has_places:
            return np.array_equal(self.hashes[first : first + len(hashes)], hashes)
        if not len(self.hashes):
            return not len(hashes)
        # The hashes are sorted. One beyond the last is compared with the last, and differs.
        at = np.searchsorted(self.hashes, hashes)
        at = np.minimum(at, len(self.hashes) - 1)
        return bool((self.hashes[at] == hashes).all())


class Readings:
    """Reads a lazy table, compares the readings, and holds later ones against the first."""

    def __init__(self, drawer: Drawer) -> None:
        self._drawer = drawer
        self._hasher = RecordHasher(drawer)
        self._first: Reading | None = None

    def compare_two(self, read: Callable[[], Iterable[Any]]) -> None:
        """Read the table twice, the second time after the end of the first.

        Raises
        ------
        InputError
            If the readings differ, or two records have one row number.
        """
        self._first = self._read(read())
        if not self._first.agrees_with(self._read(read())):
            raise unstable_error(self._drawer)

    def check_part(self, part: Any, first: int) -> None:
        """Raise InputError if a part, whose first record is at place `first`, is not as before."""
        if self._first is not None and not self._first.holds(self._hashes(part), first):
            raise unstable_error(self._drawer)

    def check_length(self, records: int) -> None:
        """Raise InputError if a whole reading has another number of records than before."""
        if self._first is not None and len(self._first.hashes) != records:
            raise unstable_error(self._drawer)

    def _read(self, parts: Iterable[Any]) -> Reading:
        """A whole reading; InputError if two records have one row number."""
        hashes: list[Hashes] = [np.zeros(0, np.uint64)]
        numbers: list[Integers] = [np.zeros(0, np.int64)]
        for part in parts:
            hashes.append(self._hashes(part))
            numbers.extend(self._row_numbers(part))
        self._refuse_repeats(np.concatenate(numbers))
        places_count = has_places(self._drawer)
        # Sorted, two readings in different orders are equal arrays, and `holds` can search.
        whole = np.concatenate(hashes)
        if not places_count:
            whole = np.sort(whole)
        return Reading(whole, places_count)

    def _hashes(self, part: Any) -> Hashes:
        """The hashes of the records of a part."""
        columns = adapter_of(part).arrow_columns()
        compared = [columns[at] for at in self._hasher.columns]
        return self._hasher.hashes(compared, len(part))

    def _row_numbers(self, part: Any) -> Iterator[Integers]:
        """The row numbers of a part, if a column has them; gaps are refused when drawing."""
        name = self._drawer.recipe.options.row_numbers
        if name is not None:
            at = self._drawer.header.index(name)
            column = combined(adapter_of(part).arrow_columns()[at])
            yield integers_of(column.drop_null()).astype(np.int64)

    def _refuse_repeats(self, numbers: Integers) -> None:
        """Raise InputError if two records have one row number."""
        values, times = np.unique(numbers, return_counts=True)
        repeated = values[times > 1]
        if len(repeated):
            name = self._drawer.recipe.options.row_numbers
            raise repeated_row_number(name, int(repeated[0]))


def repeated_row_number(name: Any, number: int) -> InputError:
    """The refusal of a row number that two records have."""
    return InputError(
        f"the column {quoted(name)} gives the row number {number} to two records, whose draws "
        "would depend on each other"
    )


# ----------------------------------------------------------------------- batch by batch


class BatchRelease:
    """The release of a lazy table, which is repeated whenever the table is read.

    Parameters
    ----------
    recipe : Recipe
        The recipe, with keys that last.
    header : sequence
        The names of the columns of the table.
    first_row : int
        The row number of the first record.
    """

    def __init__(self, recipe: Recipe, header: Sequence[Any], first_row: int) -> None:
        self._recipe = recipe
        self._header = header
        self._first_row = first_row
        self._readings = Readings(recipe.drawer(header))

    def compare_readings(self, read: Callable[[], Iterable[Any]]) -> None:
        """Read the table twice; raises InputError if the readings differ.

        `read` starts a new reading, and returns its batches: data frames of polars, or record
        batches of Arrow. A recipe that draws nothing gives the same answer to the same number in
        every reading.
        """
        if self._recipe.draws:
            self._readings.compare_two(read)

    def parts(self, batches: Iterable[Any], *, whole: bool) -> Iterator[Any]:
        """The released batches of a reading, of the whole table or of its first records."""
        drawer = self._recipe.drawer(self._header)
        checks = FrameChecks(drawer)
        place = 0
        for batch in batches:
            # Before anything of the batch leaves: another reading would be a second draw.
            self._readings.check_part(batch, place)
            yield sanitised(batch, drawer, first_row=self._first_row + place)
            checks.add(batch)
            place += len(batch)
        # The first records alone are no whole reading, and end earlier.
        if whole:
            self._readings.check_length(place)
        drawer.checks.refuse(can_shuffle=False)


# --------------------------------------------------------------------------- partitions

APART = (
    "the partitions tell of {} by which records they hold (of random ones at most one in {:,} "
    "does): put the records in random order over all partitions (on Spark orderBy(rand())), or "
    "keep this knowingly (--keep-order)"
)

IN_PARTITION = "a partition: "
"""The beginning of a message about one partition."""


def partition_totals(
    drawer: Drawer,
    count_partitions: Callable[[Sequence[int]], Sequence[Any]],
    first_parts: Callable[[int], Any],
) -> list[Integers] | None:
    """How many records of all partitions have each symbol; None if the order is kept knowingly.

    Where no partition has enough records to show copies, those of the first partitions are
    examined together.

    Parameters
    ----------
    drawer : Drawer
        The drawer of the table.
    count_partitions : callable
        Gives the counts of every partition, from the columns with these numbers.
    first_parts : callable
        Gives the records of so many first partitions as one frame.

    Raises
    ------
    InputError
        If partitions differ more than by chance, or a kept column copies a protected one.
    """
    if not drawer.checks.orders:
        return None
    places: set[int] = set()
    for group in drawer.plan.inputs:
        places.update(group)
    if not drawer.releases:
        # A mechanism counts individuals in any case.
        places.update(drawer.plan.identity)
    # A table without partitions counts as one without records.
    parts = count_partitions(sorted(places)) or [drawer.counts]
    # For each released column the counts by partition (rows) and symbol (columns).
    tables: list[Integers] = []
    for counts in zip(*parts, strict=True):
        tables.append(np.array(counts, np.int64).reshape(len(parts), -1))
    _refuse_apart(drawer, tables)
    # Large partitions are examined for copies one by one, when they are released.
    records = tables[0].sum(axis=1)
    if records.max() < LOOKED:
        # The fewest partitions with `LOOKED` records together, or all of them.
        needed = int(np.searchsorted(records.cumsum(), LOOKED)) + 1
        checks = FrameChecks(drawer)
        checks.add(first_parts(needed))
        checks.refuse_copies()
    return [table.sum(axis=0) for table in tables]


def refuse_partition(
    drawer: Drawer, checks: FrameChecks, totals: Sequence[Integers] | None
) -> None:
    """Raise InputError if a partition, of which all was seen, discloses what is protected."""
    checks.refuse_copies(IN_PARTITION)
    drawer.checks.refuse_order(IN_PARTITION, can_shuffle=False)
    drawer.checks.refuse_sorted(IN_PARTITION)
    if totals is None:
        return
    count = drawer.counts[0].sum()
    if not count:
        return
    tables: list[Integers] = []
    for here, whole in zip(drawer.counts, totals, strict=True):
        # Against the rest, not the whole: the partition is part of the whole. The table may have
        # changed since it was counted.
        elsewhere = np.maximum(whole - here, 0)
        tables.append(np.stack([here, elsewhere]))
    # All partitions together raise a false alarm with the chance of one look.
    looks = max(1.0, tables[0].sum() / count)
    _refuse_apart(drawer, tables, looks)


def _refuse_apart(drawer: Drawer, tables: Sequence[Integers], looks: float = 1) -> None:
    """Raise InputError if the symbols of a column differ between partitions by more than chance."""
    for name, table in zip(drawer.checks.orders, tables, strict=False):
        # Partitions are the contexts of the evidence.
        rows, columns = np.nonzero(table)
        evidence = log_evidence(rows, columns, table[rows, columns])
        if decisive(evidence, looks * len(drawer.checks.orders)):
            raise InputError(APART.format(quoted(name), round(1 / LEVEL)))
