"""Sanitised frames of Spark and Dask: each partition by itself, with the draws of one machine."""

# pyspark, dask, pandas and pyarrow tell too little of their types for the strict mode.
# pyright: basic, reportMissingImports=false
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Unpack
from uuid import uuid4

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.sanitise.frames import all_different, header_of, sanitised
from mechdesign.sanitise.options import ReleaseKeywords, ReleaseOptions, takes
from mechdesign.sanitise.plan import FileChannel
from mechdesign.sanitise.recipe import Drawer, Recipe, stands_for
from mechdesign.sanitise.streams import engine_errors, lazy_recipe


@takes(ReleaseKeywords)
def sanitise_spark(
    frame: Any,
    channel: FileChannel | Sequence[FileChannel],
    **options: Unpack[ReleaseKeywords],
) -> Any:
    """The Spark DataFrame with each channel's X replaced by draws of Y, lazily and partition by partition.

    The same record gets the same draw as by `sanitise`, however the frame is partitioned, and in every attempt of a
    task. Released columns are strings; partitions and other columns stay. The executors need this package installed.
    Needed are a key (or `insecure_seed`, or `ledger` with `identity`), for Spark runs a plan again for any action, and
    `identity` or `row_numbers`, for the rows have no order. Row numbers are fixed with the data
    (``monotonically_increasing_id`` is not: it depends on the partitions).

    One identifier with two symbols, or one row number twice, is found only where both records are in one batch. The
    order within each partition is an error where it tells of X (unless `keep_order`); which records share a partition
    is not looked at. What is wrong with a record is found when Spark runs: `engine_errors` makes that an `InputError`.
    The key travels inside the function, which no plan, ``explain`` or log shows; where the network is not trusted, turn
    on ``spark.network.crypto.enabled``.

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
    from pyspark.sql.pandas.types import to_arrow_schema

    asked = ReleaseOptions(**options)
    if not asked.identifiers and asked.row_numbers is None:
        raise InputError(
            "the rows of a Spark DataFrame have no order that stays: name what identifies a record with identity, or a "
            "column of row numbers that is stored with the data with row_numbers"
        )
    recipe = Recipe.of(channel, asked)
    header = all_different(list(frame.columns))
    recipe = lazy_recipe(recipe, header)
    # What is wrong with the recipe or the types is found here, and not on an executor.
    drawer = Drawer(recipe, header)
    sanitised(to_arrow_schema(frame.schema).empty_table(), drawer)

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
        field = schema.fields[stands_for(drawer.plan, column)]
        if column.release is not None:
            own = drawer.own_type(column, lambda at: to_arrow_type(schema.fields[at].dataType))
            kind = StringType() if own is None else field.dataType
            field = StructField(column.name, kind, nullable=column.source is None or field.nullable)
        fields.append(field)
    return StructType(fields)


@takes(ReleaseKeywords)
def sanitise_dask(
    frame: Any,
    channel: FileChannel | Sequence[FileChannel],
    **options: Unpack[ReleaseKeywords],
) -> Any:
    """The Dask DataFrame with each channel's X replaced by draws of Y, lazily and partition by partition.

    The same record gets the same draw as by `sanitise`, whatever the partitions and the scheduler. Divisions, index,
    types and other columns stay; the workers need this package installed. A key is needed as by `sanitise_spark`, and
    what is told there of repeated identifiers and of the order holds for the partitions here.

    Without `identity` and `row_numbers` a record is known by its place in the whole frame: the partitions before it are
    counted in the same computation. That is right where the rows have the same order whenever they are computed (as
    read from files); after a shuffle, a merge or a groupby name an identity. The key travels inside the function, which
    no graph, report or log shows; where the network is not trusted, connect with ``tls://``.

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
