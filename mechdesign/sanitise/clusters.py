"""Sanitised frames of Spark and Dask: each partition by itself, with the draws of one machine."""

# pyspark, dask, pandas and pyarrow tell too little of their types for the strict mode.
# pyright: basic, reportMissingImports=false
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Unpack
from uuid import uuid4

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.core.numbers import quoted
from mechdesign.sanitise.frames import all_different, header_of, sanitised
from mechdesign.sanitise.options import ReleaseKeywords, ReleaseOptions, takes
from mechdesign.sanitise.plan import FileChannel, Plan
from mechdesign.sanitise.recipe import Drawer, Recipe, stands_for
from mechdesign.sanitise.streams import engine_errors, lazy_recipe

_NUMBERS = ("tinyint", "smallint", "int", "bigint")


@takes(ReleaseKeywords)
def sanitise_spark(
    frame: Any,
    channel: FileChannel | Sequence[FileChannel],
    **options: Unpack[ReleaseKeywords],
) -> Any:
    """The Spark DataFrame with each channel's X replaced by draws of Y, lazily and partition by partition.

    The same record gets the same draw as by `sanitise`, however the frame is partitioned, and in every attempt of a
    task. Released columns are strings; partitions and other columns stay. The executors need this package installed,
    and hold one batch of a partition at a time (``spark.sql.execution.arrow.maxRecordsPerBatch``).

    A key is required (unless `insecure_seed` is given): Spark runs a plan once for every action, and every run must
    draw the same. So is `identity` or `row_numbers`: the rows of a Spark DataFrame have no order, and so no numbers.
    Row numbers are fixed with the data (``monotonically_increasing_id`` is not: it depends on the partitions). One
    identifier with two symbols, or one row number twice, is found only where both records are in one batch.

    The order within each partition is looked at by itself, and is an error where it tells of X (unless `keep_order`);
    which records share a partition is an order, too, and is not looked at.

    What is wrong with a record is found when Spark runs, on an executor: `spark_errors` turns that into an
    `InputError`. The key travels to the executors inside the function, which no plan, ``explain`` or log shows; where
    the network is not trusted, turn on ``spark.network.crypto.enabled``.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    channel : Channel or sequence of Channel
        Each with columns of its own.

    Raises
    ------
    InputError
        As `sanitise`; at once for what the column names and types tell.
    """
    if not hasattr(frame, "mapInArrow"):
        raise InputError(
            f"the table must be a Spark DataFrame, not {type(frame).__name__}; others take sanitise"
        )
    asked = ReleaseOptions(**options)
    if not asked.identifiers and asked.row_numbers is None:
        raise InputError(
            "the rows of a Spark DataFrame have no order that stays: name what identifies a record with identity, or a "
            "column of row numbers that is stored with the data with row_numbers"
        )
    recipe = Recipe.of(channel, asked)
    header = all_different(list(frame.columns))
    recipe = lazy_recipe(recipe, header)
    drawer = Drawer(recipe, header)  # what can be wrong with the recipe is found here, and not on an executor
    _check_types(frame.schema, recipe, drawer.plan)

    def sanitise_partition(batches: Iterator[Any]) -> Iterator[Any]:
        drawer = Drawer(recipe, header)
        for batch in batches:
            yield sanitised(batch, drawer)
        drawer.refuse_order("a partition: ")

    return frame.mapInArrow(sanitise_partition, _schema(frame.schema, drawer))


spark_errors = engine_errors


def _schema(schema: Any, drawer: Drawer) -> Any:
    """The types of the output: strings in the place of X (or its own type, for symbols), all else as it was."""
    from pyspark.sql.pandas.types import to_arrow_type
    from pyspark.sql.types import StringType, StructField, StructType

    fields: list[Any] = []
    for column in drawer.plan.columns:
        if column.release is None:
            fields.append(schema.fields[column.source])
        else:
            had = schema.fields[stands_for(drawer.plan, column)].dataType
            own = drawer.own_type(column, lambda at: to_arrow_type(schema.fields[at].dataType))
            nullable = column.source is None or schema.fields[column.source].nullable
            kind = StringType() if own is None else had
            fields.append(StructField(column.name, kind, nullable=nullable))
    return StructType(fields)


def _check_types(schema: Any, recipe: Recipe, plan: Plan) -> None:
    """What would fail on an executor, at the first record."""
    from pyspark.sql.types import ArrayType, BinaryType, FractionalType, MapType, StructType

    for at in (*(at for places in plan.inputs for at in places), *plan.identity):
        kind = schema.fields[at].dataType
        name, shown = quoted(schema.fields[at].name), kind.simpleString()
        if isinstance(kind, (ArrayType, BinaryType, MapType, StructType)):
            raise InputError(f"the column {name} holds {shown}, which is no symbol; turn it into text first")
        if at in plan.identity and isinstance(kind, FractionalType):
            raise InputError(
                f"the column {name} holds {shown}, which has more than one text and identifies nothing; turn it into "
                "integers or text"
            )
    if recipe.options.row_numbers is not None:
        kind = schema[recipe.options.row_numbers].dataType.simpleString()
        if kind not in _NUMBERS:
            raise InputError(
                f"the column {quoted(recipe.options.row_numbers)} must hold an integer for every record, its row "
                f"number, and it holds {kind}"
            )


@takes(ReleaseKeywords)
def sanitise_dask(
    frame: Any,
    channel: FileChannel | Sequence[FileChannel],
    **options: Unpack[ReleaseKeywords],
) -> Any:
    """The Dask DataFrame with each channel's X replaced by draws of Y, lazily and partition by partition.

    The same record gets the same draw as by `sanitise`, whatever the partitions and the scheduler. Divisions, index,
    types and other columns stay.

    Without `identity` and `row_numbers` a record is known by its place in the whole frame: the partitions before it are
    counted as a part of the same computation. That is right where the frame has its rows in the same order whenever it
    is computed (as read from files); after a shuffle, a merge or a groupby name an identity.

    A key is required (unless `insecure_seed` is given): Dask computes a graph once for every request, and the same
    record must get the same draw in all. One identifier with two symbols, or one row number twice, is found only where
    both records are in one partition.

    The order within each partition is looked at by itself, and is an error where it tells of X (unless `keep_order`);
    which records share a partition is an order, too, and is not looked at.

    The workers need this package installed. The key travels to them inside the function, which no graph, report or log
    shows; where the network is not trusted, connect with ``tls://``.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
        Of pandas partitions.
    channel : Channel or sequence of Channel
        Each with columns of its own.

    Raises
    ------
    InputError
        As `sanitise`: at once for what the column names tell, and from a computation for what its records tell.
    """
    asked = ReleaseOptions(**options)
    recipe = Recipe.of(channel, asked)
    if not hasattr(frame, "map_partitions"):
        raise InputError(
            f"the table must be a Dask DataFrame, not {type(frame).__name__}; others take sanitise"
        )
    empty = frame._meta.iloc[:0]
    header = tuple(header_of(empty))
    work = _PartitionWork(lazy_recipe(recipe, header), header)
    if asked.identifiers or asked.row_numbers is not None:
        return frame.map_partitions(work, meta=work(empty))
    # The row number of every record: a cumulated sum, so that no partition waits for those behind it.
    places = frame.map_partitions(_ones, meta=(None, np.dtype(np.int64))).cumsum() - 1
    return frame.map_partitions(work, places, meta=work(empty, np.zeros(0, dtype=np.int64)))


class _PartitionWork:
    """What a task does: a name for people, and nothing of the key in the names that Dask makes of arguments."""

    def __init__(self, recipe: Recipe, header: tuple[Any, ...]) -> None:
        self.__name__ = "sanitise_partition"
        self._recipe, self._header = recipe, header
        self._token = uuid4().hex

    def __dask_tokenize__(self) -> str:
        return self._token

    def __repr__(self) -> str:
        return self.__name__

    def __call__(self, part: Any, numbers: Any = None) -> Any:
        drawer = Drawer(self._recipe, self._header)
        released = sanitised(part, drawer, numbers=numbers)
        drawer.refuse_order("a partition: ")
        return released


def _ones(part: Any) -> Any:
    import pandas as pd

    return pd.Series(1, index=part.index, dtype=np.int64)
