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

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from inspect import signature
from itertools import pairwise
from typing import Any
from uuid import uuid4

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.core.wording import quoted
from mechdesign.formats.arrow_arrays import arrow_integers, integers_of
from mechdesign.frames.eager import look_at, sanitised
from mechdesign.leaks.evidence import LEVEL, LOOKED, decisive, log_evidence

APART = (
    "the partitions tell of {} by which records they hold (of random ones at most one in {:,} does): put the records "
    "in random order over all partitions (on Spark orderBy(rand())), or keep this knowingly (--keep-order)"
)


SPARSELY = 16
"""Of each partition of Spark every so manieth record is looked at for what columns tell of each other, and `LOOKED` at
its beginning."""


NAMED = "sanitised by mechdesign"
"""What Spark calls the released frame; nobody's column."""


def on_spark(frame: Any, recipe: Any, header: Sequence[Any]) -> Any:
    """The released Spark DataFrame: X becomes strings (or keeps its type, for symbols), all else stays.

    Only what is drawn from goes to Python, and of other columns the records that are looked at; the rest stays in the
    Java machine. What is drawn is null for records that are left out; the filter that takes them away reads it, so
    that no selection can leave it out.
    """
    import pyarrow as pa
    from pyspark.sql import functions
    from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema
    from pyspark.sql.types import StringType, StructField, StructType

    sf: Any = functions
    schema, drawer = frame.schema, recipe.drawer(header)
    asked = (
        "timezone" in signature(to_arrow_schema).parameters
    )  # since Spark 4.2 or 4.3
    how: Any = {"timezone": "UTC"} if asked else {}
    types, plan = to_arrow_schema(schema, **how), drawer.plan
    sanitised(
        types.empty_table(), drawer
    )  # wrong types are found here, and not on an executor
    names = [
        f"c{at}" for at in range(len(header))
    ]  # those of the user mean something in expressions
    flat, fields, columns = frame.toDF(*names), [], []
    for column in plan.columns:
        at = plan.origin(column)
        field, made = schema.fields[at], sf.col(names[at])
        if column.release is not None:
            own = drawer.own_type(column, lambda at: types.field(at).type)
            same = own == types.field(at).type
            kind = (
                StringType()
                if own is None
                else field.dataType
                if same
                else from_arrow_type(own)
            )
            made = sf.col("drawn").getField(name := f"d{len(fields)}")
            # What is never null says so, where X did.
            full = own is None and column.source is not None and not field.nullable
            made = sf.coalesce(made, sf.lit("")) if full else made
            fields.append(StructField(name, kind))
        columns.append(made.alias(column.name))
    number = recipe.options.row_numbers
    wanted = {*plan.identity, *(at for places in plan.inputs for at in places)}
    wanted = sorted(wanted | ({header.index(number)} if number is not None else set()))
    texts = [
        sf.make_valid_utf8(sf.col(name).cast("string")).alias(name) for name in names
    ]  # of any bytes
    totals = _totals(
        drawer,
        lambda places: _counted_on_spark(flat, recipe, header, places),
        lambda parts: flat.limit(LOOKED).select(*texts).toArrow(),
    )

    def sanitise_partition(parts: Iterator[Any]) -> Iterator[Any]:
        drawer = recipe.drawer(header)
        for *part, looked in parts:
            cells = dict(zip(wanted, part, strict=True))
            drawn = drawer.draw(cells.__getitem__, len(looked))
            made = [
                drawer.rebuild(cells[plan.origin(each)], drawn[each.release], each.name)
                for each in plan.columns
                if each.release is not None
            ]
            gone = None
            if drawer.dropped is not None:
                place = pa.array(np.cumsum(~drawer.dropped) - 1, mask=drawer.dropped)
                made, gone = (
                    [each.take(place) for each in made],
                    pa.array(drawer.dropped),
                )
            yield pa.StructArray.from_arrays(
                made, [field.name for field in fields], mask=gone
            )
            texts = looked.flatten()
            every = [
                texts.take(arrow_integers(np.arange(at, len(texts), len(names))))
                for at in range(len(names))
            ]
            look_at(pa.RecordBatch.from_arrays(every, names), drawer)
        _end(drawer, totals)

    sanitise_partition.__annotations__ = {  # by which Spark knows its kind
        "parts": Iterator[tuple[pa.Array, ...]],
        "return": Iterator[pa.Array],
    }
    draw = sf.arrow_udf(sanitise_partition, StructType(fields)).asNondeterministic()
    place = sf.monotonically_increasing_id().bitwiseAND(
        (1 << 33) - 1
    )  # of a record in its partition
    every = sf.array(
        *texts
    )  # Spark is slow with null structures, and with long runs of null arrays
    looked = sf.when((place < LOOKED) | (place % SPARSELY == 0), every)
    rows = flat.withColumn(
        "looked", every if frame.isStreaming else looked
    )  # streams have no places
    drawn = draw(*(names[at] for at in wanted), "looked").alias("drawn")
    # An alias ends the search for names that are not there: those of columns left out would be found below.
    return (
        rows.select(*names, drawn)
        .filter(sf.col("drawn").isNotNull())
        .select(*columns)
        .alias(NAMED)
    )


def _counted_on_spark(
    flat: Any, recipe: Any, header: Sequence[Any], places: Sequence[int]
) -> Any:
    """The counts of each partition: by Spark where there are few symbols, else of each record."""
    import pyarrow as pa
    from pyspark.sql import functions as sf

    names = [f"c{at}" for at in places]
    texts = [
        name for name in names if flat.schema[name].dataType.typeName() == "string"
    ]
    flat = flat.withColumns(
        {name: sf.col(name).cast("string") for name in texts}
    )  # or collations group them
    rows = flat.select(sf.spark_partition_id().alias("part"), *names)
    releases = recipe.drawer(header).releases
    few = releases and not any(release.has_bins for release in releases)
    rows = (
        rows.groupBy("part", *names).count()
        if few
        else rows.withColumn("count", sf.lit(1))
    )

    def count_parts(batches: Iterator[Any]) -> Iterator[Any]:
        drawer, counted = (
            recipe.drawer(header),
            defaultdict[int, Any](lambda: [0 * each for each in drawer.counts]),
        )
        for batch in batches:
            part, times = (
                integers_of(batch.column(0)),
                integers_of(batch.columns[-1]).astype(np.int64),
            )
            ends = (
                np.flatnonzero(np.diff(part, append=-1)) + 1
            )  # of what belongs to one partition
            for first, end in pairwise([0, *ends.tolist()]):
                cells, before = (
                    batch.slice(first, end - first),
                    [each.copy() for each in drawer.counts],
                )
                drawer.count(
                    lambda at, cells=cells: cells.column(1 + places.index(at)),
                    times[first:end],
                )
                sums = zip(counted[part[first]], drawer.counts, before, strict=True)
                counted[part[first]] = [old + new - known for old, new, known in sums]
        found = [[each.tolist() for each in counts] for counts in counted.values()]
        yield pa.RecordBatch.from_pydict({"counts": found})

    if few:
        found = next(
            count_parts(rows.toArrow().sort_by("part").to_batches())
        ).to_pylist()
    else:
        found = rows.mapInArrow(count_parts, "counts array<array<bigint>>").collect()
    return [each["counts"] for each in found]


def on_dask(frame: Any, recipe: Any, header: Sequence[Any], first_row: int) -> Any:
    """The released Dask DataFrame, with its divisions, index and types."""
    import dask

    def counted(places: Sequence[int]) -> Any:
        tools: Any = dask
        work = tools.delayed(_Counting(recipe, header, places), pure=False)
        return tools.compute(
            *map(work, frame[[header[at] for at in places]].to_delayed())
        )

    empty, drawer = frame._meta.iloc[:0], recipe.drawer(header)
    # What is wrong with the types is found before anything is read.
    meta = _PartitionWork(recipe, header, None)(empty)
    totals = _totals(drawer, counted, lambda parts: frame.partitions[:parts].compute())
    work = _PartitionWork(recipe, header, totals)
    if (
        not drawer.releases
        or recipe.options.identifiers
        or recipe.options.row_numbers is not None
    ):
        return frame.map_partitions(work, meta=meta)
    # Where each partition begins: a cumulated sum, so that no partition waits for those behind it.
    lengths = frame.map_partitions(_length, meta=(None, np.dtype(np.int64)))
    return frame.map_partitions(work, lengths.cumsum() - lengths + first_row, meta=meta)


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

    def __call__(self, part: Any, first_row: Any = ()) -> Any:
        drawer = self._recipe.drawer(self._header)
        released = sanitised(part, drawer, first_row=int(next(iter(first_row), 0)))
        look_at(part, drawer)
        _end(drawer, self._more)
        return released


class _Counting(_PartitionWork):
    """Counts the symbols of a partition, of which only some columns are there."""

    def __call__(self, part: Any, first_row: Any = ()) -> Any:
        drawer = self._recipe.drawer(self._header)
        drawer.count(
            lambda at: part.iloc[:, self._more.index(at)], np.ones(len(part), np.int64)
        )
        return drawer.counts


def _totals(
    drawer: Any,
    counted: Callable[[Sequence[int]], Sequence[Any]],
    first: Callable[[int], Any],
) -> Any:
    """How many records of all partitions have each symbol; refuses partitions that differ more than by chance.

    Where no partition has enough records to tell, those of the first so many partitions are looked at together.
    """
    if not drawer.checks.orders:
        return None
    people = (
        () if drawer.releases else drawer.plan.identity
    )  # whom a mechanism counts in any case
    parts = counted(
        sorted({*people, *(at for places in drawer.plan.inputs for at in places)})
    ) or [drawer.counts]
    tables = [
        np.array(each, np.int64).reshape(len(parts), -1)
        for each in zip(*parts, strict=True)
    ]
    _refuse_apart(drawer, tables)
    records = tables[0].sum(axis=1)
    if records.max() < LOOKED:
        look_at(first(int(np.searchsorted(records.cumsum(), LOOKED)) + 1), drawer)
        drawer.checks.refuse_copies()
    return [table.sum(axis=0) for table in tables]


def _refuse_apart(drawer: Any, tables: Sequence[Integers], looks: float = 1) -> None:
    for name, table in zip(drawer.checks.orders, tables, strict=False):
        rows, columns = np.nonzero(table)
        if decisive(
            log_evidence(rows, columns, table[rows, columns]),
            looks * len(drawer.checks.orders),
        ):
            raise InputError(APART.format(quoted(name), round(1 / LEVEL)))


def _end(drawer: Any, totals: Sequence[Integers] | None) -> None:
    """Raise InputError if something in a partition, of which all has been seen, tells what is protected."""
    drawer.checks.refuse_copies("a partition: ")
    drawer.checks.refuse_order("a partition: ")
    if totals is not None and (count := drawer.counts[0].sum()):
        pairs = zip(drawer.counts, totals, strict=True)
        tables = [np.stack([own, np.maximum(whole - own, 0)]) for own, whole in pairs]
        # All partitions together raise a false alarm with the chance of one look.
        _refuse_apart(drawer, tables, max(1.0, tables[0].sum() / count))


def _length(part: Any) -> Any:
    """As a column of one cell, which an empty partition has no index for."""
    import pandas as pd

    return pd.Series(len(part), index=part.index[:1], dtype=np.int64)
