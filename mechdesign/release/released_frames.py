"""A frame with what a channel has drawn for its records, and nothing else.

Each released column is rebuilt in the type of the column that it replaces (`tables.rebuilding`).
They make a new frame of the same library. Nothing else is kept: every other column, and an index,
may disclose the row. For example, with sex given and job and age released:

    frame       sex F, job nurse, age 30, income low
    new frame   sex F, job clerk, age 30                 (job and age are drawn)

*People.* The frame is folded (`tables.people_source`), every person draws a sequence, and the
sequences are unfolded into a new frame of the same library: as many records as before in the same
order, with the released cells, a new number for each person and the place of each record in its
sequence. Nothing else is kept.
"""

# narwhals has no complete types.
# pyright: basic
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.formats.cells import Encoded
from mechdesign.release.drawing import NOT_FIXED, Release, fixed_records
from mechdesign.release.draws import Records, RowNumbers, identity_of, records_of
from mechdesign.release.samplers import NEAREST, REFUSE
from mechdesign.tables.people import People
from mechdesign.tables.people_source import FoldedTable, fold_frame
from mechdesign.tables.rebuilding import rebuild

# ---------------------------------------------------------------- records of the design


def fix_where_whole(
    release: Release, cells: Sequence[Encoded], records: Records, *, is_asked: bool
) -> None:
    """Fix the counts of the draws where the records are those of the table of the design."""
    is_whole = isinstance(records, RowNumbers) and records.first == 0
    counts = fixed_records(release.channel)
    if is_asked and counts is None:
        raise InputError(NOT_FIXED)
    if is_whole and counts is not None:
        codes = release.symbols_of(cells)
        found = np.bincount(codes, minlength=len(counts) + 2)
        if np.array_equal(found[: len(counts)], counts) and len(codes) == counts.sum():
            release.fix(codes)
            return
    if is_asked:
        raise InputError(
            "the entries are not the whole table of the design, so their counts cannot be fixed: "
            "leave draws out"
        )


# ------------------------------------------------------------------------------- frames


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


# ------------------------------------------------------------------------------- people


def apply_to_people(
    release: Release,
    people: People,
    frame: Any,
    *,
    identity: Sequence[str] | None,
    draws: str | None,
) -> Any:
    """The released frame; parameters and errors are those of `Channel.apply`."""
    policy = release.policy
    if policy.unknown not in (REFUSE, NEAREST) or policy.missing != REFUSE:
        raise InputError(
            "people whom the table of the channel does not have are refused, or released as the "
            "nearest ones (unknown='nearest'): another policy is not built for people with several "
            "records"
        )
    table = fold_frame(people, frame, policy.cell_form)
    first: list[int] = table.records.first.tolist()
    if identity is not None:
        texts = identity_of(identity, len(table.records.person_of))
        identity = [texts[place] for place in first]
    records = records_of(identity, 0, len(first))
    cells = [table.columns[name] for name in release.channel.released_columns]
    if draws != "independent":
        fix_where_whole(release, cells, records, is_asked=draws is not None)
    drawn = release.draw(cells, records)
    released: dict[str, Encoded] = {}
    for name, codes, texts in zip(release.names, drawn, release.texts, strict=True):
        released[name] = Encoded(codes, texts)
    return released_frame(table, frame, released)


def released_frame(
    table: FoldedTable,
    frame: Any,
    released: Mapping[str, Encoded],
    *,
    kept: Sequence[Any] = (),
    order: Integers | None = None,
    names: Mapping[str, str] | None = None,
) -> Any:
    """A frame of the kind of `frame` with the released records of people.

    Parameters
    ----------
    table : FoldedTable
        The people of the frame.
    released : mapping of folded column to (people,) column
    kept : sequence of column names
        Columns that stay as they are.
    order : (people,) array, optional
        The person of each new number; by default people are numbered as they appear.
    names : mapping of str to str
        The frame's name of a column that the channel calls otherwise.
    """
    import narwhals as nw

    native = nw.from_native(frame, eager_only=True)
    columns: dict[str, Any] = {}
    for column in table.long_form(
        native.columns, released, kept=kept, names=names, order=order
    ):
        like = native[column.source].to_native()
        if column.cells is None:
            columns[column.title] = like
            continue
        codes = np.asarray(column.cells.codes)
        texts = column.cells.texts
        columns[column.title] = rebuild(like, codes, texts, column.title, own=True)
    return frame_of(native, columns)
