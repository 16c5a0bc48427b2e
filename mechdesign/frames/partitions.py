"""What the partitions of a table on a cluster disclose, each of which is released by itself.

The partition of a record discloses X where X differs between partitions: if the first holds the
nurses and the second the clerks, the number of the part alone gives the job. So X is counted where
the data are, in a job of its own that reads the useful columns alone: ::

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

# The drawers are those of channels and of mechanisms.
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.core.wording import quoted
from mechdesign.frames.eager import FrameChecks
from mechdesign.jobs.recipe import Drawer
from mechdesign.leaks.evidence import LEVEL, LOOKED, decisive, log_evidence

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
