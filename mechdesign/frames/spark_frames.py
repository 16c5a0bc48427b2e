"""Data frames of Spark, released partition by partition.

`_SparkRelease.frame` makes the released frame, which is lazy:

1. An empty frame of the same types is released, so that wrong types are found at once.
2. Unless it is a stream, the frame is read twice, and the readings compared by the number of
   records and the sum of their hashes (`_compare_readings`). X is counted in every partition
   (`partition_counts`, `readings`).
3. Expressions of Spark lead from the user's frame to the result, and one of them is a function of
   Python, which draws (`_PartitionWork.draw`): ::

    flat     c0, c1, ..                        the user's columns under plain names
    rows     c0, c1, .., looked                with the texts of examined records
    drawn    (d0, d1, ..), null if left out    one structure for each record, from Python
    output   the columns of the plan           c's that stay, d's under their new names

For example, of the columns id, job and city the id identifies a record and is left out, and job is
released. Python gets c0 and c1, and of some records the texts ["p7", "nurse", "Ulm"]. It gives back
the structure (clerk), and the output is (d0 as job, c2 as city). Only what is drawn from goes to
Python, and of other columns the records that are examined for copies (`_examined`). The rest stays
in the Java machine.

The key travels inside of the function, and no plan or log shows it. Where the network is not
trusted, turn on ``spark.network.crypto.enabled``.

*Counts of the symbols in each partition.* Spark counts inside its executors: a function on batches
of arrow adds up what each partition holds, and only the counts come back to the driver. The batches
of several partitions may come to one call, so every record has the number of its partition.

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
from inspect import signature
from itertools import pairwise
from typing import Any, ClassVar

import narwhals as nw
import numpy as np

from mechdesign.core.integers import Integers
from mechdesign.formats.arrow_arrays import arrow_integers, integers_of
from mechdesign.frames.adapter import NativeTable, engine_errors
from mechdesign.frames.eager import FrameChecks, sanitised
from mechdesign.frames.readings import (
    compared_columns,
    partition_totals,
    refuse_partition,
    repeated_row_number,
    unstable_error,
)
from mechdesign.jobs.output_columns import OutputColumn
from mechdesign.jobs.recipe import Drawer, Recipe
from mechdesign.leaks.evidence import LOOKED

SPARSELY = 16
"""In a partition the first `LOOKED` records are examined for copies, then one in so many."""

RELEASED = "sanitised by mechdesign"
"""What Spark calls the released frame; no column of a user."""

PLACE_BITS = (1 << 33) - 1
"""The bits of ``monotonically_increasing_id`` that number the records of a partition."""


@dataclass(frozen=True)
class SparkFrame(NativeTable):
    """A data frame of Spark as a `LazyTable`."""

    rows_have_places: ClassVar[bool] = False

    @staticmethod
    def is_native(frame: Any) -> bool:
        """True for a data frame of Spark, of a cluster far away too."""
        is_spark = nw.dependencies.is_pyspark_dataframe(frame)
        return is_spark or nw.dependencies.is_pyspark_connect_dataframe(frame)

    def released(self, recipe: Recipe, first_row: int) -> tuple[Any, list[str]]:
        """The released frame: X becomes text (or keeps its type, for symbols), the rest stays.

        With it come notes on lost types and missing cells.
        """
        with engine_errors():
            release = _SparkRelease(self.native, recipe, self.names)
            return release.frame(), release.notes()


class _SparkRelease:
    """The release of one frame of Spark: made for it, and used for one call of `frame`.

    Attributes
    ----------
    flat : DataFrame
        The frame with the columns c0, c1 and so on: the user's names mean something in expressions.
    types : pyarrow.Schema
        The types of the columns in Python.
    """

    def __init__(self, frame: Any, recipe: Recipe, header: Sequence[Any]) -> None:
        from pyspark.sql.pandas.types import to_arrow_schema

        self._source = frame
        self._recipe = recipe
        self._header = header
        self._drawer = recipe.drawer(header)
        self._names = [f"c{at}" for at in range(len(header))]
        self.flat = frame.toDF(*self._names)
        # Spark 4.2 or 4.3 asks for the time zone.
        takes_zone = "timezone" in signature(to_arrow_schema).parameters
        options: dict[str, Any] = {}
        if takes_zone:
            options["timezone"] = "UTC"
        self.types = to_arrow_schema(frame.schema, **options)

    def frame(self) -> Any:
        """The released frame."""
        from pyspark.sql import functions as sf

        # Wrong types are found here, and not on an executor.
        sanitised(self.types.empty_table(), self._recipe.drawer(self._header))
        fields, columns = self._output()
        texts = self._texts()
        if self._recipe.draws and not self._source.isStreaming:
            self._compare_readings()
        totals = partition_totals(
            self._drawer,
            lambda places: partition_counts(
                self.flat, self._recipe, self._header, places
            ),
            lambda parts: self.flat.limit(LOOKED).select(*texts).toArrow(),
        )
        draw = self._draw_function(fields, totals)
        rows = self.flat.withColumn("looked", self._examined(texts))
        inputs = [self._names[at] for at in self._read_columns()]
        drawn = draw(*inputs, "looked").alias("drawn")
        # What is drawn is null for records that are left out. The filter that takes them away
        # reads it, so that no selection can leave the draw out. The alias ends the search for
        # names that are not there: those of columns left out would be found below.
        return (
            rows.select(*self._names, drawn)
            .filter(sf.col("drawn").isNotNull())
            .select(*columns)
            .alias(RELEASED)
        )

    def notes(self) -> list[str]:
        """What the user should know of the types of the released frame."""
        return [*self._drawer.type_notes]

    def _output(self) -> tuple[list[Any], list[Any]]:
        """The fields of what Python draws, and the expressions of the columns of the output."""
        from pyspark.sql import functions
        from pyspark.sql.types import StructField

        sf: Any = functions
        fields: list[Any] = []
        columns: list[Any] = []
        for column in self._drawer.plan.columns:
            at = self._drawer.plan.origin(column)
            cells = sf.col(self._names[at])
            if column.release is not None:
                name = f"d{len(fields)}"
                fields.append(StructField(name, self._released_type(column)))
                cells = sf.col("drawn").getField(name)
                if self._is_never_null(column):
                    cells = sf.coalesce(cells, sf.lit(""))
            columns.append(cells.alias(column.name))
        return fields, columns

    def _released_type(self, column: OutputColumn) -> Any:
        """The type of a released column: text, or that of X for symbols."""
        from pyspark.sql.pandas.types import from_arrow_type
        from pyspark.sql.types import StringType

        at = self._drawer.plan.origin(column)
        own_type = self._drawer.own_type(column, lambda at: self.types.field(at).type)
        if own_type is None:
            return StringType()
        if own_type == self.types.field(at).type:
            return self._source.schema.fields[at].dataType
        return from_arrow_type(own_type)

    def _is_never_null(self, column: OutputColumn) -> bool:
        """Whether a released column of text stands in the place of one that is never null."""
        own_type = self._drawer.own_type(column, lambda at: self.types.field(at).type)
        if own_type is not None or column.source is None:
            return False
        return not self._source.schema.fields[column.source].nullable

    def _texts(self) -> list[Any]:
        """Every column as text; of any bytes, too."""
        from pyspark.sql import functions as sf

        texts: list[Any] = []
        for name in self._names:
            text = sf.make_valid_utf8(sf.col(name).cast("string"))
            texts.append(text.alias(name))
        return texts

    def _read_columns(self) -> list[int]:
        """The numbers of the columns that Python draws from."""
        plan = self._drawer.plan
        places = {*plan.identity}
        for group in plan.inputs:
            places.update(group)
        number = self._recipe.options.row_numbers
        if number is not None:
            places.add(self._header.index(number))
        return sorted(places)

    def _examined(self, texts: Sequence[Any]) -> Any:
        """The texts of the records that are examined for copies, null for the others."""
        from pyspark.sql import functions as sf

        # Spark is slow with null structures, and with long runs of null arrays.
        every = sf.array(*texts)
        if self._source.isStreaming:
            # The records of a stream have no places.
            return every
        place = sf.monotonically_increasing_id().bitwiseAND(PLACE_BITS)
        return sf.when((place < LOOKED) | (place % SPARSELY == 0), every)

    def _draw_function(
        self, fields: Sequence[Any], totals: Sequence[Integers] | None
    ) -> Any:
        """The function of Spark that draws for the records of a partition."""
        import pyarrow as pa
        from pyspark.sql import functions
        from pyspark.sql.types import StructType

        sf: Any = functions
        # The function is pickled, so it must not refer to this object, which holds the frame.
        work = _PartitionWork(
            recipe=self._recipe,
            header=tuple(self._header),
            read_columns=tuple(self._read_columns()),
            field_names=tuple(field.name for field in fields),
            totals=totals,
        )

        def sanitise_partition(parts: Iterator[Any]) -> Iterator[Any]:
            yield from work.draw(parts)

        # By these Spark knows the kind of the function.
        sanitise_partition.__annotations__ = {
            "parts": Iterator[tuple[pa.Array, ...]],
            "return": Iterator[pa.Array],
        }
        function = sf.arrow_udf(sanitise_partition, StructType(list(fields)))
        return function.asNondeterministic()

    def _compare_readings(self) -> None:
        """Read the compared columns twice; raises InputError if the readings differ."""
        first = self._reading()
        second = self._reading()
        name = self._recipe.options.row_numbers
        if name is not None and first["numbers"] != first["different"]:
            raise repeated_row_number(name, self._repeated_number(name))
        if first != second:
            raise unstable_error(self._drawer)

    def _reading(self) -> Any:
        """The number of records, and the sum of their hashes, which no order changes."""
        from pyspark.sql import functions as sf

        # As text, so that cells of every type have a hash that depends on their value alone.
        texts = self._texts()
        compared = [texts[at] for at in compared_columns(self._drawer)]
        # A null counts as a text of its own, or a missing cell would hash as nothing.
        cells = [sf.coalesce(text, sf.lit("\0")) for text in compared]
        # A sum of 64-bit integers needs more than 64 bits.
        hash_sum = sf.sum(sf.xxhash64(*cells).cast("decimal(38,0)"))
        aggregates = [sf.count("*").alias("records"), hash_sum.alias("hashes")]
        name = self._recipe.options.row_numbers
        if name is not None:
            number = sf.col(self._names[self._header.index(name)])
            aggregates.append(sf.count(number).alias("numbers"))
            aggregates.append(sf.count_distinct(number).alias("different"))
        return self.flat.agg(*aggregates).collect()[0]

    def _repeated_number(self, name: str) -> int:
        """The smallest row number that two records have."""
        from pyspark.sql import functions as sf

        number = self._names[self._header.index(name)]
        counts = self.flat.where(sf.col(number).isNotNull()).groupBy(number).count()
        repeated = counts.where(sf.col("count") > 1).orderBy(number).limit(1)
        return int(repeated.collect()[0][0])


@dataclass(frozen=True)
class _PartitionWork:
    """Draws for the records of a partition, which come in batches of columns of arrow."""

    recipe: Recipe
    header: tuple[Any, ...]
    read_columns: tuple[int, ...]
    field_names: tuple[str, ...]
    totals: Sequence[Integers] | None

    def draw(self, parts: Iterator[Any]) -> Iterator[Any]:
        """For each batch the released columns, as one array of structures."""
        drawer = self.recipe.drawer(self.header)
        checks = FrameChecks(drawer)
        for part in parts:
            *read, examined = part
            yield self._drawn(drawer, read, len(examined))
            checks.add(self._examined(examined))
        # An error after the last batch still fails the task, so Spark commits nothing of it.
        refuse_partition(drawer, checks, self.totals)

    def _drawn(self, drawer: Drawer, read: Sequence[Any], count: int) -> Any:
        """The released columns of a batch, as one array of structures; `read` are its cells."""
        import pyarrow as pa

        cells = dict(zip(self.read_columns, read, strict=True))
        drawn = drawer.draw(cells.__getitem__, count)
        columns: list[Any] = []
        for column in drawer.plan.columns:
            if column.release is not None:
                like = cells[drawer.plan.origin(column)]
                columns.append(drawer.rebuild(like, drawn[column.release], column.name))
        names = list(self.field_names)
        # Arrow takes the fields by their order: that of the plan, here and in `_output`.
        if drawer.dropped is None:
            return pa.StructArray.from_arrays(columns, names)
        # The released columns have no cells of the records that are left out; Spark wants as
        # many records as it gave, so those get null.
        # Record i is the cumulated number of records that stay up to i, less one.
        places = np.cumsum(~drawer.dropped) - 1
        indices = pa.array(places, mask=drawer.dropped)
        spread = [column.take(indices) for column in columns]
        gone = pa.array(drawer.dropped)
        return pa.StructArray.from_arrays(spread, names, mask=gone)

    def _examined(self, examined: Any) -> Any:
        """The examined records of a batch as a frame: their texts stand one behind another."""
        import pyarrow as pa

        texts = examined.flatten()
        width = len(self.header)
        columns: list[Any] = []
        for at in range(width):
            places = np.arange(at, len(texts), width)
            columns.append(texts.take(arrow_integers(places)))
        names = [f"c{at}" for at in range(width)]
        return pa.RecordBatch.from_arrays(columns, names)


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
