"""A frame released through a channel of rows or boxes: given and released columns, nothing else.

The frame becomes arrow columns, the channel draws (`row_draws`), and the released columns go back
into a frame of the same library. Nothing else is kept: every other column may tell of the row.
"""

# narwhals tells too little of its types for the strict mode.
# pyright: basic
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mechdesign.core.errors import InputError
from mechdesign.formats.cells import encoded_columns
from mechdesign.release.draws import Identifiers, RowNumbers
from mechdesign.release.row_draws import RowDraws, RowsWithStrata
from mechdesign.tables.rebuilding import rebuild


def apply_to_frame(
    release: RowDraws,
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
    records = (
        RowNumbers(first_row, count)
        if identity is None
        else Identifiers([list(identity)])
    )
    if len(records) != count:
        raise InputError(
            f"the identity has {len(records)} entries and the frame {count} records"
        )
    drawn = release.draw(cells, records)
    table = nw.from_native(frame, eager_only=True)
    columns: dict[str, Any] = {}
    for column, codes in zip(release.columns, drawn, strict=True):
        # With free outputs a level of several columns has one output, of the kind of the first.
        source = column.name if column.name in table.columns else None
        if source is None:
            source = _first_column(channel, column.group)
        native = table[source].to_native()
        columns[column.name] = rebuild(
            native, codes, column.texts, column.name, own=True
        )
    return _frame_of(table, columns)


def _first_column(channel: RowsWithStrata, group: int) -> str:
    variables = channel.given + channel.levels
    return variables[group].columns[0]


def _frame_of(table: Any, columns: dict[str, Any]) -> Any:
    """A native frame of the kind of `table`."""
    implementation = table.implementation
    if implementation.is_pyarrow():
        import pyarrow as pa

        return pa.table(columns)
    if implementation.is_polars():
        import polars as pl

        return pl.DataFrame([series.alias(name) for name, series in columns.items()])
    import pandas as pd

    index = table.to_native().index
    if isinstance(index, pd.RangeIndex):
        return pd.DataFrame(columns, index=index)
    # Any other index may hold what is not released.
    series = {name: column.array for name, column in columns.items()}
    return pd.DataFrame(series)
