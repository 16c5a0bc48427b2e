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

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.formats.cells import Encoded
from mechdesign.release.drawing import NOT_FIXED, Release, fixed_records
from mechdesign.release.draws import Records, RowNumbers, identity_of, records_of
from mechdesign.release.released_values import LABEL
from mechdesign.release.samplers import NEAREST, REFUSE
from mechdesign.tables.columns import is_frame
from mechdesign.tables.people import People
from mechdesign.tables.people_source import FoldedTable, fold_frame
from mechdesign.tables.rebuilding import rebuild_and_note

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


def released_like(
    release: Release, column: Any, drawn: Sequence[Any]
) -> tuple[Any, list[str]]:
    """The drawn cells in the kind of `column`, and a sentence for each released column that has
    another type than its source. A frame gives a frame, and tuples for crossed columns give tuples.
    """
    channel = release.channel
    if is_frame(column):
        columns: list[DrawnCells] = []
        for place, name in enumerate(release.names):
            own = channel.writes_symbols(place, LABEL)
            is_binned = channel.writes_bins(place)
            texts = release.texts[place]
            columns.append(DrawnCells(name, drawn[place], texts, own, is_binned))
        # A label has the type of the first column that it replaces.
        return frame_of_columns(column, columns, channel.hidden[0].columns[0])
    if len(channel.output_columns) > 1:
        return _tuples(drawn, release), []
    released, note = rebuild_and_note(
        column,
        drawn[0].astype(np.int64),
        channel.outputs,
        release.names[0],
        own=channel.releases_own_symbols,
        is_binned=channel.writes_bins(0),
    )
    return released, [] if note is None else [note]


def _tuples(drawn: Sequence[Any], release: Release) -> list[tuple[str, ...]]:
    """Released rows of records that came as tuples."""
    columns: list[list[str]] = []
    for codes, labels in zip(drawn, release.texts, strict=True):
        columns.append([labels[code] for code in codes.tolist()])
    return list(zip(*columns, strict=True))


@dataclass(frozen=True)
class DrawnCells:
    """A released column before it is one of a frame.

    Attributes
    ----------
    name : str
    codes : (n,) array
        The place of each record's text among the texts.
    texts : sequence of str
    own : bool
        Whether the texts are symbols of the source.
    is_binned : bool
        Whether they are bins of its numbers.
    """

    name: str
    codes: Any
    texts: Sequence[str]
    own: bool
    is_binned: bool


def frame_of_columns(
    frame: Any, drawn: Sequence[DrawnCells], first: str
) -> tuple[Any, list[str]]:
    """A frame of the kind of `frame` with the drawn columns alone, and a sentence for each that
    has another type than its source. A column that `frame` does not have takes that of `first`.
    """
    import narwhals as nw

    table = nw.from_native(frame, eager_only=True)
    columns: dict[str, Any] = {}
    notes: list[str] = []
    for column in drawn:
        source = column.name if column.name in table.columns else first
        columns[column.name], note = rebuild_and_note(
            table[source].to_native(),
            column.codes,
            column.texts,
            column.name,
            own=column.own,
            is_binned=column.is_binned,
        )
        if note is not None:
            notes.append(note)
    return frame_of(table, columns), notes


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
) -> tuple[Any, list[str]]:
    """The released frame, and a sentence for each column that has another type there; parameters
    and errors are those of `Channel.apply`.
    """
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
    binned: set[str] = set()
    for place, name in enumerate(release.names):
        released[name] = Encoded(drawn[place], release.texts[place])
        if release.channel.writes_bins(place):
            binned.add(name)
    return released_frame(table, frame, released, binned=binned)


def released_frame(
    table: FoldedTable,
    frame: Any,
    released: Mapping[str, Encoded],
    *,
    binned: Collection[str] = (),
    kept: Sequence[Any] = (),
    order: Integers | None = None,
    names: Mapping[str, str] | None = None,
) -> tuple[Any, list[str]]:
    """A frame of the kind of `frame` with the released records of people, and a sentence for each
    released column that has another type there.

    Parameters
    ----------
    table : FoldedTable
        The people of the frame.
    released : mapping of folded column to (people,) column
    binned : collection of str
        The folded columns that hold bins.
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
    notes: list[str] = []
    in_frame = names or {}
    bins: set[str] = set()
    for folded in binned:
        name = table.people.column_of[folded]
        bins.add(in_frame.get(name, name))
    for column in table.long_form(
        native.columns, released, kept=kept, names=names, order=order
    ):
        like = native[column.source].to_native()
        if column.cells is None:
            columns[column.title] = like
            continue
        codes = np.asarray(column.cells.codes)
        texts = column.cells.texts
        columns[column.title], note = rebuild_and_note(
            like, codes, texts, column.title, own=True, is_binned=column.source in bins
        )
        if note is not None:
            notes.append(note)
    return frame_of(native, columns), notes
