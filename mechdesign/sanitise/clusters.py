"""Sanitised frames of Spark and Dask: each partition by itself, with the draws of one machine.

Which partition a record is in tells of X where X differs between them. So X is counted where the data are, in a job of
its own that reads the useful columns alone, before a frame is given back; each partition is held against these counts
once more when it is released, for an engine may cut it in another way then. The order within each partition is an
error where it tells of X, and so is a kept column that stands for X there. One identifier with two symbols, or one
row number twice, is found where both records are in one batch of Spark, or one partition of Dask. The key travels
inside the function, which no plan, graph, report or log shows; where the network is not trusted, turn on
``spark.network.crypto.enabled``, or connect Dask with ``tls://``.
"""

# pyspark, dask, pandas and pyarrow tell too little of their types for the strict mode.
# pyright: basic, reportMissingImports=false
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any
from uuid import uuid4

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.core.numbers import quoted
from mechdesign.sanitise.evidence import LEVEL, LOOKED, decisive, log_evidence
from mechdesign.sanitise.frames import look_at, sanitised
from mechdesign.sanitise.recipe import stands_for

APART = (
    "the partitions tell of {} by which records they hold (of random ones at most one in {:,} does): put the records "
    "in random order over all partitions (on Spark orderBy(rand())), or keep this knowingly (--keep-order)"
)


HEAD = 8 * LOOKED
"""Records of each partition of Spark in which columns are looked at for what they tell of each other."""


def on_spark(frame: Any, recipe: Any, header: Sequence[Any]) -> Any:
    """The released Spark DataFrame: X becomes strings (or keeps its type, for symbols), all else stays.

    Only the columns that draws need go to Python, all others stay in the Java machine. What is drawn is null for
    records that are left out; the filter that takes them away reads it, so that no selection can leave it out.
    """
    import pyarrow as pa
    from pyspark.sql import functions as sf
    from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema
    from pyspark.sql.types import StringType, StructField, StructType

    schema, drawer = frame.schema, recipe.drawer(header)
    types, plan = to_arrow_schema(schema), drawer.plan
    sanitised(types.empty_table(), drawer)  # wrong types are found here, and not on an executor
    names = [f"c{at}" for at in range(len(header))]  # those of the user mean something in expressions
    flat, released = frame.toDF(*names), [column for column in plan.columns if column.release is not None]
    number, fields, columns = recipe.options.row_numbers, [], []
    for column in plan.columns:
        at = stands_for(plan, column)
        field, made = schema.fields[at], sf.col(names[at])
        if column.release is not None:
            own = drawer.own_type(column, lambda at: types.field(at).type)
            same = own == types.field(at).type
            kind = StringType() if own is None else field.dataType if same else from_arrow_type(own)
            made = sf.col("drawn").getField(name := f"d{len(fields)}")
            # What is never null says so, where X did.
            full = own is None and column.source is not None and not field.nullable
            made = sf.coalesce(made, sf.lit("")) if full else made
            fields.append(StructField(name, kind))
        columns.append(made.alias(column.name))
    wanted = {*plan.identity, *(at for places in plan.inputs for at in places)}
    wanted = sorted(wanted | ({header.index(number)} if number is not None else set()))
    totals = _totals(drawer, lambda places: _counted_on_spark(flat, recipe, header, places))

    def look_at_partition(batches: Iterator[Any]) -> Iterator[Any]:
        drawer, left = recipe.drawer(header), HEAD
        for batch in batches:
            look_at(batch.slice(0, left), drawer)
            if (left := left - len(batch)) <= 0:
                break
        drawer.refuse_twins("a partition: ")
        yield from ()

    def sanitise_partition(parts: Iterator[Any]) -> Iterator[Any]:
        drawer = recipe.drawer(header)
        for part in parts:
            cells = dict(zip(wanted, part, strict=False))
            drawn = drawer.draw(cells.__getitem__, len(part[0]))
            made = [
                drawer.rebuild(cells[stands_for(plan, each)], drawn[each.release], each.name)
                for each in released
            ]
            if (gone := drawer.dropped) is not None:
                at, gone = pa.array(np.cumsum(~gone) - 1, mask=gone), pa.array(gone)
                made = [each.take(at) for each in made]
            yield pa.StructArray.from_arrays(made, [field.name for field in fields], mask=gone)
        _end(drawer, totals)

    flat.mapInArrow(look_at_partition, "n int").collect()
    # Spark reads from the hints, which cannot name what is imported here, that it takes parts one after the other.
    hints: dict[str, Any] = {"parts": Iterator[tuple[pa.Array, ...]], "return": Iterator[pa.Array]}
    sanitise_partition.__annotations__ = hints
    arrow_udf: Any = sf.arrow_udf
    work = arrow_udf(sanitise_partition, StructType(fields))
    # Spark makes rows of batches of columns for the number of the partition; else it copies them cell by cell.
    rows = flat.withColumn("partition", sf.spark_partition_id())
    drawn = work.asNondeterministic()(*(names[at] for at in wanted), "partition").alias("drawn")
    return rows.select(*names, drawn).filter(sf.col("drawn").isNotNull()).select(*columns)


def _counted_on_spark(flat: Any, recipe: Any, header: Sequence[Any], places: Sequence[int]) -> Any:
    import pyarrow as pa

    def count_partition(batches: Iterator[Any]) -> Iterator[Any]:
        drawer = recipe.drawer(header)
        for batch in batches:
            drawer.count(lambda at, batch=batch: batch.column(places.index(at)), len(batch))
        yield pa.RecordBatch.from_pydict({"counts": [[each.tolist() for each in drawer.counts]]})

    useful = flat.select([f"c{at}" for at in places])
    return [row[0] for row in useful.mapInArrow(count_partition, "counts array<array<bigint>>").collect()]


def on_dask(frame: Any, recipe: Any, header: Sequence[Any], first_row: int) -> Any:
    """The released Dask DataFrame, with its divisions, index and types."""
    import dask

    def counted(places: Sequence[int]) -> Any:
        tools: Any = dask
        work = tools.delayed(_Counting(recipe, header, places), pure=False)
        return tools.compute(*map(work, frame[[header[at] for at in places]].to_delayed()))

    empty, drawer = frame._meta.iloc[:0], recipe.drawer(header)
    # What is wrong with the types is found before anything is read.
    meta = _PartitionWork(recipe, header, None)(empty, np.zeros(0, dtype=np.int64))
    work = _PartitionWork(recipe, header, _totals(drawer, counted))
    if not drawer.releases or recipe.options.identifiers or recipe.options.row_numbers is not None:
        return frame.map_partitions(work, meta=meta)
    # The row number of every record: a cumulated sum, so that no partition waits for those behind it.
    places = frame.map_partitions(_ones, meta=(None, np.dtype(np.int64))).cumsum() + (first_row - 1)
    return frame.map_partitions(work, places, meta=meta)


class _PartitionWork:
    """What a task does: a name for people, and nothing of the key in the names that Dask makes of arguments."""

    def __init__(self, recipe: Any, header: Sequence[Any], more: Any) -> None:
        self.__name__ = "sanitise_partition"
        self._recipe, self._header, self._more = recipe, header, more
        self._token = uuid4().hex

    def __dask_tokenize__(self) -> str:
        return self._token

    def __repr__(self) -> str:
        return self.__name__

    def __call__(self, part: Any, numbers: Any = None) -> Any:
        drawer = self._recipe.drawer(self._header)
        released = sanitised(part, drawer, numbers=numbers)
        look_at(part, drawer)
        drawer.refuse_twins("a partition: ")
        _end(drawer, self._more)
        return released


class _Counting(_PartitionWork):
    """Counts the symbols of a partition, of which only some columns are there."""

    def __call__(self, part: Any, numbers: Any = None) -> Any:
        drawer = self._recipe.drawer(self._header)
        drawer.count(lambda at: part.iloc[:, self._more.index(at)], len(part))
        return drawer.counts


def _totals(drawer: Any, counted: Callable[[Sequence[int]], Sequence[Any]]) -> Any:
    """How many records of all partitions have each symbol; refuses partitions that differ more than by chance."""
    if not drawer.orders:
        return None
    people = () if drawer.releases else drawer.plan.identity  # whom a mechanism counts in any case
    parts = counted(sorted({*people, *(at for places in drawer.plan.inputs for at in places)}))
    tables = [np.array(each, np.int64).reshape(len(parts), -1) for each in zip(*parts, strict=True)]
    _refuse_apart(drawer, tables)
    return [table.sum(axis=0) for table in tables]


def _refuse_apart(drawer: Any, tables: Sequence[Integers], looks: float = 1) -> None:
    for name, table in zip(drawer.orders, tables, strict=False):
        rows, columns = np.nonzero(table)
        if decisive(log_evidence(rows, columns, table[rows, columns]), looks * len(drawer.orders)):
            raise InputError(APART.format(quoted(name), round(1 / LEVEL)))


def _end(drawer: Any, totals: Sequence[Integers] | None) -> None:
    """Raise InputError if the records of a partition, of which all were drawn, tell what is protected."""
    drawer.refuse_order("a partition: ")
    if totals is not None and (count := drawer.counts[0].sum()):
        pairs = zip(drawer.counts, totals, strict=True)
        tables = [np.stack([own, np.maximum(whole - own, 0)]) for own, whole in pairs]
        # All partitions together raise a false alarm with the chance of one look.
        _refuse_apart(drawer, tables, max(1.0, tables[0].sum() / count))


def _ones(part: Any) -> Any:
    import pandas as pd

    return pd.Series(1, index=part.index, dtype=np.int64)
