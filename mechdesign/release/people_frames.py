"""A frame with the records of people, released through a channel for them.

The frame is folded (`tables.people_source`), every person draws a sequence, and the sequences are
unfolded into a new frame of the same library: as many records as before in the same order, with the
released cells, a new number for each person and the place of each record in its sequence. Nothing
else is kept.
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
from mechdesign.release.drawing import Release
from mechdesign.release.draws import identity_of, records_of
from mechdesign.release.policies import NEAREST, REFUSE
from mechdesign.release.released_frames import frame_of
from mechdesign.release.whole_tables import fix_where_whole
from mechdesign.tables.people import People
from mechdesign.tables.people_source import FoldedTable, fold_frame
from mechdesign.tables.rebuilding import rebuild


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
