"""A frame released through a channel of boxes: given and released columns, nothing else.

The cells of the frame are encoded, the channel draws (`box_drawing`), and each released column is
rebuilt in the type of the column that it replaces (`tables.rebuilding`). They make a new frame of
the same library. Nothing else is kept: every other column, and an index, may disclose the row. For
example, with sex given and job and age released:

    frame       sex F, job nurse, age 30, income low
    new frame   sex F, job clerk, age 30                 (job and age are drawn)

`apply_to_frame` takes these steps in this order. A released column that the frame does not have,
such as 'box', gets the type of the first column that it replaces.
"""

# narwhals has no complete types.
# pyright: basic
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mechdesign.core.errors import InputError
from mechdesign.formats.cells import encoded_columns
from mechdesign.release.box_drawing import BoxRelease
from mechdesign.release.box_samplers import ReleasableBoxes
from mechdesign.release.draws import Identifiers, Records, RowNumbers
from mechdesign.tables.rebuilding import rebuild


def apply_to_frame(
    release: BoxRelease,
    frame: Any,
    *,
    identity: Sequence[str] | None,
    first_row: int,
) -> Any:
    """Draw a released row for every record; parameters and errors are those of `apply`."""
    import narwhals as nw

    channel = release.channel
    cells = encoded_columns(frame, channel.released_columns)
    count = len(cells[0])
    records: Records = RowNumbers(first_row, count)
    if identity is not None:
        records = Identifiers([list(identity)])
    if len(records) != count:
        raise InputError(
            f"the identity has {len(records)} entries and the frame {count} records"
        )
    drawn = release.draw(cells, records)
    table = nw.from_native(frame, eager_only=True)
    columns: dict[str, Any] = {}
    for column, codes in zip(release.columns, drawn, strict=True):
        source = column.name
        if source not in table.columns:
            # A level of several columns with free outputs, or the label of a box: one column, of
            # the type of the first that it replaces.
            source = _first_column(channel, column.group)
        native = table[source].to_native()
        columns[column.name] = rebuild(
            native, codes, column.texts, column.name, own=True
        )
    return frame_of(table, columns)


def _first_column(channel: ReleasableBoxes, group: int) -> str:
    """The first column of a group."""
    variables = channel.given + channel.levels
    return variables[group].columns[0]


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
