"""Sanitised frames of Spark and Dask: each partition by itself, with the draws of one machine.

The order within each partition is an error where it tells of X, and so is a kept column that stands for X there; which
records share a partition is not looked at. One identifier with two symbols, or one row number twice, is found where
both records are in one batch of Spark, or one partition of Dask. The key travels inside the function, which no plan,
graph, report or log shows; where the network is not trusted, turn on ``spark.network.crypto.enabled``, or connect
Dask with ``tls://``.
"""

# pyspark, dask, pandas and pyarrow tell too little of their types for the strict mode.
# pyright: basic, reportMissingImports=false
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import uuid4

import numpy as np

from mechdesign.sanitise.frames import look_at, sanitised
from mechdesign.sanitise.recipe import stands_for


def on_spark(frame: Any, recipe: Any, header: Sequence[Any]) -> Any:
    """The released Spark DataFrame: X becomes strings (or keeps its type, for symbols), all else stays."""
    from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema
    from pyspark.sql.types import StringType, StructField, StructType

    schema, drawer = frame.schema, recipe.drawer(header)
    types = to_arrow_schema(schema)
    sanitised(types.empty_table(), drawer)  # wrong types are found here, and not on an executor
    fields: list[Any] = []
    for column in drawer.plan.columns:
        at = stands_for(drawer.plan, column)
        field = schema.fields[at]
        if column.release is not None:
            own = drawer.own_type(column, lambda at: types.field(at).type)
            same = own is None or own == types.field(at).type
            kind = StringType() if own is None else field.dataType if same else from_arrow_type(own)
            field = StructField(column.name, kind, nullable=column.source is None or field.nullable)
        fields.append(field)

    def sanitise_partition(batches: Iterator[Any]) -> Iterator[Any]:
        drawer = recipe.drawer(header)
        for batch in batches:
            yield sanitised(batch, drawer)
            look_at(batch, drawer)
        drawer.refuse_twins("a partition: ")
        drawer.refuse_order("a partition: ")

    return frame.mapInArrow(sanitise_partition, StructType(fields))


def on_dask(frame: Any, recipe: Any, header: Sequence[Any], first_row: int) -> Any:
    """The released Dask DataFrame, with its divisions, index and types."""
    empty, work = frame._meta.iloc[:0], _PartitionWork(recipe, header)
    if recipe.options.identifiers or recipe.options.row_numbers is not None:
        return frame.map_partitions(work, meta=work(empty))
    # The row number of every record: a cumulated sum, so that no partition waits for those behind it.
    places = frame.map_partitions(_ones, meta=(None, np.dtype(np.int64))).cumsum() + (first_row - 1)
    return frame.map_partitions(work, places, meta=work(empty, np.zeros(0, dtype=np.int64)))


class _PartitionWork:
    """What a task does: a name for people, and nothing of the key in the names that Dask makes of arguments."""

    def __init__(self, recipe: Any, header: Sequence[Any]) -> None:
        self.__name__ = "sanitise_partition"
        self._recipe, self._header = recipe, header
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
        drawer.refuse_order("a partition: ")
        return released


def _ones(part: Any) -> Any:
    import pandas as pd

    return pd.Series(1, index=part.index, dtype=np.int64)
