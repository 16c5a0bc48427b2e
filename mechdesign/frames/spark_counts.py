"""Counts of the symbols in each partition of a data frame of Spark.

Spark counts inside its executors: a function on batches of arrow adds up what each partition holds,
and only the counts come back to the driver. The batches of several partitions may come to one call,
so every record has the number of its partition.

`partition_counts` chooses one of two ways. Where the columns have few values, Spark groups first,
and one `_PartitionCounter` adds up rows such as (part 3, c0 'nurse', count 17) on the driver.
Otherwise each executor runs a counter over its records, each with the count 1. Both hand symbols
and counts to a drawer.
"""

# pyspark and pyarrow have no complete types.
# pyright: basic, reportMissingImports=false
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from mechdesign.core.integers import Integers
from mechdesign.formats.arrow_arrays import integers_of
from mechdesign.jobs.recipe import Drawer, Recipe


def partition_counts(
    flat: Any, recipe: Recipe, header: Sequence[Any], places: Sequence[int]
) -> list[Any]:
    """The counts of each partition.

    Where there are few symbols, Spark groups the records by them; otherwise each record is counted
    by itself, on the executors.

    Parameters
    ----------
    flat : DataFrame
        The frame with the columns c0, c1 and so on.
    recipe : Recipe
        The recipe of the release.
    header : sequence
        The user's names of the columns.
    places : sequence of int
        The numbers of the columns that are counted.
    """
    from pyspark.sql import functions as sf

    names = [f"c{at}" for at in places]
    texts: dict[str, Any] = {}
    for name in names:
        if flat.schema[name].dataType.typeName() == "string":
            # A cast to plain text, or a collation would group different texts.
            texts[name] = sf.col(name).cast("string")
    rows = flat.withColumns(texts).select(sf.spark_partition_id().alias("part"), *names)
    work = _PartitionCounter(recipe, tuple(header), tuple(places))
    # Groups of few symbols are few rows for the driver; groups of numbers would be all records.
    if _has_few_symbols(recipe.drawer(header)):
        groups = rows.groupBy("part", *names).count().toArrow().sort_by("part")
        counts = next(work.count(iter(groups.to_batches()))).to_pylist()
    else:
        single = rows.withColumn("count", sf.lit(1))
        counts = single.mapInArrow(work.count, "counts array<array<bigint>>").collect()
    return [row["counts"] for row in counts]


def _has_few_symbols(drawer: Drawer) -> bool:
    """Whether the useful columns have few values: those of channels without bins."""
    if not drawer.releases:
        return False
    return not any(release.has_bins for release in drawer.releases)


@dataclass(frozen=True)
class _PartitionCounter:
    """Counts the records of partitions, in batches that begin with the partition's number."""

    recipe: Recipe
    header: tuple[Any, ...]
    places: tuple[int, ...]

    def count(self, batches: Iterator[Any]) -> Iterator[Any]:
        """One batch with the counts of every partition that was met."""
        import pyarrow as pa

        drawer = self.recipe.drawer(self.header)
        counted: dict[int, list[Integers]] = {}
        for batch in batches:
            part = integers_of(batch.column(0))
            times = integers_of(batch.columns[-1]).astype(np.int64)
            # Where the records of one partition end and those of another begin.
            ends = np.flatnonzero(np.diff(part, append=-1)) + 1
            for first, end in pairwise([0, *ends.tolist()]):
                records = batch.slice(first, end - first)
                counts = self._added(drawer, records, times[first:end])
                number = int(part[first])
                if number not in counted:
                    counted[number] = counts
                    continue
                for total, count in zip(counted[number], counts, strict=True):
                    total += count
        tables: list[list[list[int]]] = []
        for counts in counted.values():
            tables.append([table.tolist() for table in counts])
        yield pa.RecordBatch.from_pydict({"counts": tables})

    def _added(self, drawer: Drawer, records: Any, times: Integers) -> list[Integers]:
        """What these records add to the counts of a drawer."""
        before = [table.copy() for table in drawer.counts]
        # The first column of a batch has the number of the partition.
        drawer.count(lambda at: records.column(1 + self.places.index(at)), times)
        pairs = zip(drawer.counts, before, strict=True)
        return [after - earlier for after, earlier in pairs]
