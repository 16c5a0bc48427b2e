"""A frame with what a channel has drawn for its records, and nothing else.

Each released column is rebuilt in the type of the column that it replaces (`tables.rebuilding`).
They make a new frame of the same library. Nothing else is kept: every other column, and an index,
may disclose the row. For example, with sex given and job and age released:

    frame       sex F, job nurse, age 30, income low
    new frame   sex F, job clerk, age 30                 (job and age are drawn)
"""

# narwhals has no complete types.
# pyright: basic
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mechdesign.tables.rebuilding import rebuild


def frame_of_columns(
    frame: Any,
    drawn: Sequence[Any],
    texts: Sequence[Sequence[str]],
    names: Sequence[str],
    first: str,
) -> Any:
    """A frame of the kind of `frame` with the drawn columns alone.

    Parameters
    ----------
    frame : pandas, polars or pyarrow table
    drawn : for each released column an array of places in its texts
    texts, names : the texts and the name of each released column
    first : str
        The column whose type a released column has that `frame` does not have.
    """
    import narwhals as nw

    table = nw.from_native(frame, eager_only=True)
    columns: dict[str, Any] = {}
    for codes, labels, name in zip(drawn, texts, names, strict=True):
        source = name if name in table.columns else first
        native = table[source].to_native()
        columns[name] = rebuild(native, codes, labels, name, own=True)
    return frame_of(table, columns)


def frame_of(table: Any, columns: dict[str, Any]) -> Any:
    """A native frame of these columns, of the kind of `table`, a frame of narwhals."""
    implementation = table.implementation
    if implementation.is_pyarrow():
        import pyarrow as pa

        return pa.table(columns)
    if implementation.is_polars():
        import polars as pl

        named = [series.alias(name) for name, series in columns.items()]
        return pl.DataFrame(named)
    import pandas as pd

    index = table.to_native().index
    if isinstance(index, pd.RangeIndex):
        return pd.DataFrame(columns, index=index)
    # Any other index may hold what is not released. Arrays, unlike Series, have none.
    arrays = {name: column.array for name, column in columns.items()}
    return pd.DataFrame(arrays)
