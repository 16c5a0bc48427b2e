"""`sanitise`: the release of a table of any library or engine, with the draws of files.

The type of the table decides the adapter. A frame in memory (`eager`) is drawn at
once, entered in the ledger, and returned (`frame_jobs`). A table of an engine (`lazy_tables`) is
read twice for comparison and comes back lazy, so that it draws whenever it is computed.
"""

# The tables are those of seven libraries, which have no type in common.
from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Unpack

from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.frames.adapter import engine_errors
from mechdesign.frames.eager import adapter_of, arrow_columns, header_of
from mechdesign.frames.frame_jobs import (
    release_checked,
    released_table,
    sanitise_people,
    warnings_of_draws,
)
from mechdesign.frames.lazy_tables import find_lazy_table, release_lazy_table
from mechdesign.frames.people_guard import (
    refuse_people_of_frame,
    refuse_people_of_lazy_table,
)
from mechdesign.jobs.channel_recipe import OffersRecipe, recipe_of
from mechdesign.jobs.keyed_recipe import KeyedRecipe
from mechdesign.jobs.options import ReleaseKeywords, options_of
from mechdesign.jobs.recipe import Drawer, Recipe

__all__ = [
    "engine_errors",
    "sanitise",
]


def sanitise(
    frame: Any,
    channel: Channel | Sequence[Channel] | OffersRecipe,
    *,
    first_row: int = 0,
    **options: Unpack[ReleaseKeywords],
) -> Any:
    """A frame with each channel's X replaced by draws of Y; the old frame is unchanged.

    The output holds the released columns and those that `keep` names, in the rows of the frame. A
    released column of categories is one of categories, with all labels. The draw of a record
    depends on nothing but the key, the channel, and the record's identity: its place in the frame,
    a number in a column, or the text of identifiers. So the same record gets the same draw here, in
    a file, on Spark and on Dask, if key and identity are the same.

    A key belongs to one data set: records of two data sets with the same row numbers under the same
    key would have draws that depend on each other. The guarantee covers the released column alone:
    other columns that stay in the frame and disclose S or X void it.

    What a frame holds beside its columns is left out, or treated like a column. A pandas index
    stays with ``keep_index=True``, and one with a name where all columns do (``keep="all"``); it is
    examined as kept columns are, and a shuffled release has none. Otherwise rows are numbered anew.
    ``attrs`` and the notes in an arrow schema are left out. Categories that no released record has
    are left out; kept enumerations of lazy tables become text.

    Parameters
    ----------
    frame : pandas or polars DataFrame, pyarrow Table or RecordBatch; or, lazy, of polars, DuckDB, \
Spark or Dask
        Lazy tables come back lazy, need a key, and are released batch by batch whenever they are
        read. What is wrong with a record, and columns or an order that disclose X, are errors then
        (see `engine_errors`). A lazy table is read twice before it is released, and refused if the
        readings differ: it depends then on a random or time function, or on an order that nothing
        fixes. With polars and DuckDB every later reading is compared with the first. The rows of
        Spark have no order, so they need `identity` or `row_numbers`. A DuckDB relation comes back
        on a connection of its own; one made by ``connection.cursor()`` can be written to the
        database that it is read from.
    channel : Channel or sequence of Channel, or MechanismFile
        Channels each with columns of its own; or a mechanism for single records, which needs no key
        (for those that answer for groups see `answer_groups`).
    first_row : int
        Row number of the first record where the frame is a part of a table, and neither `identity`
        nor `row_numbers` is given.
    **options : fields of `ReleaseOptions`
        columns, key, ledger, identity, row_numbers, form, into, policy, keep_sensitive,
        correlated, drop, keep, keep_index, shuffle, keep_order, changed, fresh_draw,
        draws, unit, nights, insecure_seed; explained in
        ``help(mechdesign.jobs.options.ReleaseOptions)``.

    Raises
    ------
    InputError
        If this is no such frame, a column is not there or would stay and must not, a record has a
        symbol that the policy refuses, or no identity. The message names the column or the record.
    """
    asked = options_of("sanitise", ReleaseKeywords, options)
    if first_row and (asked.identifiers or asked.row_numbers is not None):
        raise InputError(
            "first_row numbers records by their place, but identity or row_numbers identify them"
        )
    recipe = recipe_of(channel, asked)
    if first_row and not recipe.draws:
        raise InputError("a mechanism draws nothing: leave out first_row")
    lazy = find_lazy_table(frame)
    if lazy is not None:
        if recipe.people is not None:
            raise InputError(
                "the records of people are folded in memory: give a pandas, polars or pyarrow "
                "table (collect the lazy one)"
            )
        refuse_people_of_lazy_table(frame, lazy, recipe)
        return release_lazy_table(lazy, recipe, first_row)
    done = release_frame(frame, recipe, first_row)
    for notice in done.notices:
        warnings.warn(notice, stacklevel=2)
    return done.frame


@dataclass(frozen=True)
class FrameRelease:
    """A released frame of one in memory.

    Attributes
    ----------
    frame : data frame
    notices : list of str
        What the user should know.
    drawer : Drawer
        What drew it, with the recipe as it was settled for these records.
    """

    frame: Any
    notices: list[str]
    drawer: Drawer


def release_frame(frame: Any, recipe: Recipe, first_row: int = 0) -> FrameRelease:
    """Release a frame in memory; `sanitise` explains what is refused."""
    if recipe.people is not None:
        if not isinstance(recipe, KeyedRecipe):
            raise TypeError("people are released through a channel")
        done = sanitise_people(frame, recipe, recipe.people, first_row)
        return FrameRelease(*done)
    options = recipe.options
    header = header_of(frame)
    columns = arrow_columns(frame)
    if recipe.draws and first_row and options.ledger is not None:
        raise InputError(
            "a ledger knows whole tables; give identity in place of first_row"
        )
    # This process warns of a second draw by what it remembers. A ledger knows more. So does whoever
    # releases a table in parts (`first_row`), and draws for tests need no warning.
    is_unrecorded = options.ledger is None and options.insecure_seed is None
    is_remembered = recipe.draws and is_unrecorded and not first_row and len(frame) > 0
    refuse_people_of_frame(frame, recipe)
    whole = [(adapter_of(frame).cells, len(frame))]
    recipe = recipe.settled(header, whole, is_whole=not first_row)

    drawers: list[Drawer] = []

    def release(drawer: Drawer) -> tuple[Any, list[str]]:
        drawers.append(drawer)
        released, notices = release_checked(frame, columns, drawer, first_row)
        if is_remembered:
            notices += warnings_of_draws(columns, len(frame), drawer)
        return released, notices

    released, notices = released_table(recipe, header, columns, len(frame), release)
    return FrameRelease(released, notices, drawers[-1])
