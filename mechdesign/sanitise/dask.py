"""Sanitised Dask DataFrames: each partition by itself, with the draws of one machine."""

# dask and pandas tell too little of their types for the strict mode.
# pyright: basic
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack
from uuid import uuid4

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.sanitise.frames import cluster_recipe, header_of, sanitised
from mechdesign.sanitise.options import ReleaseKeywords, ReleaseOptions, takes
from mechdesign.sanitise.plan import FileChannel
from mechdesign.sanitise.recipe import Drawer, Recipe


@takes(ReleaseKeywords)
def sanitise_dask(
    frame: Any,
    channel: FileChannel | Sequence[FileChannel],
    **options: Unpack[ReleaseKeywords],
) -> Any:
    """The Dask DataFrame with each channel's X replaced by draws of Y, lazily and partition by partition.

    The same record gets the same draw as there,
    whatever the partitions and the scheduler. Divisions, index, types and other columns stay.

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
        As `frame.sanitise`: at once for what the column names tell, and from a computation for what its records tell.
    """
    asked = ReleaseOptions(**options)
    recipe = Recipe.of(channel, asked)
    if not hasattr(frame, "map_partitions"):
        raise InputError(
            f"the table must be a Dask DataFrame, not {type(frame).__name__}; others take sanitise"
        )
    empty = frame._meta.iloc[:0]
    header = tuple(header_of(empty))
    work = _PartitionWork(cluster_recipe(recipe, header), header)
    numbers = [] if asked.identifiers or asked.row_numbers is not None else [_places(frame)]
    return frame.map_partitions(
        work, *numbers, meta=work(empty, *(np.zeros(0, dtype=np.int64) for _ in numbers))
    )


class _PartitionWork:
    """What a task does: a name for people, and nothing of the key in the names that Dask makes of arguments."""

    def __init__(self, recipe: Recipe, header: tuple[Any, ...]) -> None:
        self.__name__ = "sanitise_partition"
        self._recipe = recipe
        self._header = header
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


def _places(frame: Any) -> Any:
    """The row number of every record: a cumulated sum, so that no partition waits for those behind it."""
    return frame.map_partitions(_ones, meta=(None, np.dtype(np.int64))).cumsum() - 1


def _ones(part: Any) -> Any:
    import pandas as pd

    return pd.Series(1, index=part.index, dtype=np.int64)
