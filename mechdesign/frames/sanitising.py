"""`sanitise`: the release of a table of any library or engine, with the draws of files.

The type of the table decides the adapter. A frame in memory (`eager`) is drawn at
once, entered in the ledger, and returned. A table of an engine (`lazy_tables`) is
read twice for comparison and comes back lazy, so that it draws whenever it is computed.

*A frame in memory is a job of its own*, with what is refused, what is warned of, and the ledger.
`released_table` is the frame of the job. It wraps a release in its entry of the ledger, if there is
one. `release_checked` is the usual release: it draws the labels, refuses columns that give X away,
and shuffles the records if asked. `sanitise` and the transformer of scikit-learn put them together,
and without a ledger `warnings_of_draws` compares the release with the last ones of this process.

*Second draws.* A ledger knows for good what was released. Without one a process remembers its last
releases, by hashes, and `warnings_of_draws` compares each new release with those through the same
channel, unless they were of another column of the table (`_warning`):

- the same records under another key, or identified otherwise: they were drawn twice;
- other rows under the same key, known by their place alone: they share random numbers.

For example, two calls of `sanitise` with the same frame and no key draw two keys. The second call
warns that both draws of a record together can disclose more than the budget.

*People.* To the recipe, the ledger and the checks a person is a record: they see the folded table
(`tables.people_source`). What they draw is unfolded into a frame of the kind that came.
"""

from __future__ import annotations

import secrets
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np

from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.formats.census import Content, Hashes
from mechdesign.formats.digests import RowHasher
from mechdesign.frames.adapter import engine_errors
from mechdesign.frames.eager import (
    FrameChecks,
    adapter_of,
    arrow_columns,
    header_of,
    reordered,
    sanitised,
)
from mechdesign.frames.lazy_tables import find_lazy_table, release_lazy_table
from mechdesign.frames.people_guard import (
    refuse_people_of_frame,
    refuse_people_of_lazy_table,
)
from mechdesign.jobs.channel_recipe import OffersRecipe, recipe_of
from mechdesign.jobs.keyed_recipe import KeyedRecipe
from mechdesign.jobs.keys import check_of
from mechdesign.jobs.options import ReleaseKeywords, options_of
from mechdesign.jobs.people_run import for_people, released_sequences, watch_order
from mechdesign.jobs.recipe import Drawer, Recipe
from mechdesign.jobs.same_records import SAME_FROM
from mechdesign.jobs.writing import random_words
from mechdesign.release.released_frames import released_frame
from mechdesign.tables.people import People
from mechdesign.tables.people_source import fold_frame, refuse_kept

# ------------------------------------------------------------------------- second draws

REMEMBERED = 64
"""Releases of this process that are remembered (2 MB)."""

FIRST = 16
"""Records of the beginning of a table that are compared: two parts of one table differ there."""

# The hashes are compared within this process alone, so their key need not last.
_HASHER = RowHasher(secrets.token_bytes(32))

_TWICE = (
    "these records were released through this channel before in this process, and have now been "
    "drawn a second time, which can tell far more than the budget: give one key (key=..) and, if "
    "their order changes, what identifies them (identity=..), or a ledger (ledger=..)"
)

_ROWS = (
    "this key was used on other rows, or on rows in another order, which are known by their place "
    "alone: records get the random numbers of others, and those that come again a second draw; "
    "name what identifies them (identity=.. or row_numbers=..), or say where a part of a table "
    "begins (first_row=..)"
)


def warnings_of_draws(
    columns: Sequence[Any], records: int, drawer: Drawer
) -> list[str]:
    """Warnings where this process has drawn for the same records before, or with the same row
    numbers for others.

    Every released column is compared with all remembered ones, and then remembered itself.
    """
    recipe = drawer.recipe
    content = _HASHER.content(columns, records)
    size = min(FIRST, records)
    # Without identifiers and row numbers the place of a record is its identity.
    has_places = not recipe.options.identifiers and recipe.options.row_numbers is None
    # A dict keeps the order, and each sentence once.
    sentences: dict[str, None] = {}
    for release, places in zip(drawer.releases, drawer.plan.inputs, strict=True):
        names: list[Any] = []
        first_cells: list[Any] = []
        for at in places:
            names.append(drawer.header[at])
            first_cells.append(columns[at][:size])
        drawn = _Drawn(
            channel=release.digest,
            identity=(check_of(recipe.keys[0]), *recipe.options.identifiers),
            columns=tuple(names),
            header={*drawer.header},
            content=content,
            beginning=_HASHER.columns(first_cells, size),
        )
        for earlier in _DRAWN:
            warning = _warning(drawn, earlier, has_places)
            if warning is not None:
                sentences[warning] = None
        _DRAWN.append(drawn)
    return list(sentences)


@dataclass(frozen=True)
class _Drawn:
    """The release of one column (or of columns that are crossed) in this process.

    Attributes
    ----------
    channel : str
        The digest of the channel.
    identity : tuple of str
        The check of the key, and the names of the identifiers.
    columns : tuple of str
        The names that the useful columns have in the table.
    header : set of str
        The names of all of its columns.
    content : Content
        The records.
    beginning : array of hashes
        The symbols of the first records.
    """

    channel: str
    identity: tuple[str, ...]
    columns: tuple[Any, ...]
    header: set[Any]
    content: Content
    beginning: Hashes

    def has_the_records_of(self, other: _Drawn) -> bool:
        """Whether at least the share `SAME_FROM` of the records is that of another release."""
        if other.content.unordered == self.content.unordered:
            return True
        return self.content.share_in([other.content.sample()]) >= SAME_FROM

    def is_of_another_column(self, other: _Drawn) -> bool:
        """Whether another release was of a column that this table has beside its own.

        One channel may release several columns of a table; a first draw of each is no second one.
        """
        if self.columns == other.columns or not {*other.columns} <= self.header:
            return False
        # The same symbols under another name are the same column, renamed.
        return not self.begins_like(other)

    def begins_like(self, other: _Drawn) -> bool:
        """Whether the first records have the same symbols."""
        size = min(len(self.beginning), len(other.beginning))
        return np.array_equal(self.beginning[:size], other.beginning[:size])


_DRAWN = deque[_Drawn](maxlen=REMEMBERED)
"""The last releases of this process."""


def _warning(drawn: _Drawn, earlier: _Drawn, has_places: bool) -> str | None:
    """What an earlier release of this process means for a new one; None where it means nothing."""
    if earlier.channel != drawn.channel or drawn.is_of_another_column(earlier):
        return None
    # Another key or other identifiers give new random numbers: bad for the same records.
    if earlier.identity != drawn.identity:
        if drawn.has_the_records_of(earlier):
            return _TWICE
        return None
    # The same random numbers again: bad for other records in the same places.
    if has_places and not drawn.begins_like(earlier):
        return _ROWS
    return None


# --------------------------------------------------------------------------------- jobs


def release_checked(
    frame: Any, columns: Sequence[Any], drawer: Drawer, first_row: int
) -> tuple[Any, list[str]]:
    """The released frame, and warnings.

    Parameters
    ----------
    frame : data frame
    columns : sequence of arrow columns
        All of its columns, for hashing.
    drawer : Drawer
        The drawer of the frame.
    first_row : int
        The row number of the first record.

    Raises
    ------
    InputError
        If a column that stays gives the released one away.
    """
    released = sanitised(frame, drawer, first_row=first_row)
    checks = FrameChecks(drawer)
    checks.add(frame)
    notices = disclosure_warnings(drawer, checks)
    if not drawer.recipe.options.shuffle:
        return released, notices
    # The order is a function of the key and of the records, so that a repeated job repeats it.
    key = drawer.recipe.keys[0].derived("order")
    content = RowHasher(key.secret).content(columns, len(frame))
    # The hash of the records in their order: other records get another permutation.
    digest = content.readings[-1].ordered
    words = random_words(key.derived(digest), 0, len(released))
    order = np.argsort(words, kind="stable")
    return reordered(released, order, drawer), notices


def disclosure_warnings(
    drawer: Drawer, checks: FrameChecks, *, can_shuffle: bool = True
) -> list[str]:
    """Warn where the order of the records gives the released column away, and of lost types;
    `can_shuffle` says if the release itself could shuffle them.

    Raises
    ------
    InputError
        If another column gives it away.
    """
    # Errors first: a warning about a release that is refused would confuse.
    checks.refuse_copies()
    drawer.checks.refuse_rising()
    drawer.checks.refuse_sorted()
    warning = drawer.checks.order_warning(can_shuffle=can_shuffle)
    if warning is None:
        return [*drawer.type_notes]
    # As an error of this package it speaks of keywords, not of options of the command line.
    return [str(InputError(warning)), *drawer.type_notes]


def released_table(
    recipe: Recipe,
    header: Sequence[Any],
    columns: Sequence[Any],
    records: int,
    release: Callable[[Drawer], tuple[Any, list[str]]],
) -> tuple[Any, list[str]]:
    """What `release` makes of a table, with its warnings and those of the ledger, if any.

    Parameters
    ----------
    recipe : Recipe
    header : sequence
        The names of the columns.
    columns : sequence of arrow columns
        All columns, which a ledger recognises the table by.
    records : int
        The number of records.
    release : callable
        Gives the released table and its warnings, by a drawer for the header.
    """

    def content(hasher: RowHasher, left_out: Sequence[str]) -> tuple[Content, Hashes]:
        return hasher.content_and_bare(columns, records, header, left_out)

    (released, warnings), notices = recipe.release_table(header, release, content)
    return released, [*warnings, *notices]


# ------------------------------------------------------------------------------- people


def sanitise_people(
    frame: Any, recipe: KeyedRecipe, people: People, first_row: int
) -> tuple[Any, list[str], Drawer]:
    """The released frame of one in memory, warnings, and what drew the people."""
    asked = recipe.options
    if first_row:
        raise InputError("people are drawn as a whole table: leave first_row out")
    if asked.keep_index:
        raise InputError(
            "the index numbers records, and people are numbered anew: leave keep_index out"
        )
    refuse_kept(people, asked.kept, header_of(frame))
    form = asked.rules.cell_form
    table = fold_frame(people, frame, form, asked.renamed, keep_waves=True)
    columns = list(table.batch.columns)
    recipe = replace(recipe, options=for_people(asked), table_of_people=table)
    count = len(table.records)
    recipe = recipe.settled(table.header, [(columns.__getitem__, count)])
    # This process warns of a second draw by what it remembers; a ledger knows more.
    is_remembered = asked.ledger is None and asked.insecure_seed is None
    drawers: list[Drawer] = []

    def release(drawer: Drawer) -> tuple[Any, list[str]]:
        drawers.append(drawer)
        drawn = drawer.draw(columns.__getitem__, count)
        drawer.checks.add(count, lambda step: table.batch.column)
        watch_order(drawer, table)
        drawer.checks.refuse_copies()
        notices: list[str] = []
        warning = drawer.checks.order_warning()
        if warning is not None:
            # As an error of this package it speaks of keywords, not of options.
            notices.append(str(InputError(warning)))
        if is_remembered and count:
            notices += warnings_of_draws(columns, count, drawer)
        released = released_sequences(drawer, drawn)
        order: Integers | None = None
        if asked.shuffle:
            order = _random_order(drawer, "people", count)
        result, changes = released_frame(
            table,
            frame,
            released,
            binned=drawer.binned,
            kept=asked.kept,
            order=order,
            names=asked.renamed,
        )
        notices += changes
        adapter = adapter_of(result)
        if asked.shuffle:
            places = _random_order(drawer, "order", len(adapter))
            adapter = adapter.taken(places)
        native = adapter.finished(asked.kept, keep_index=False, reordered=asked.shuffle)
        return native, notices

    released, notices = released_table(recipe, table.header, columns, count, release)
    return released, notices, drawers[-1]


def _random_order(drawer: Drawer, purpose: str, count: int) -> Integers:
    """A random order that follows from the key."""
    key = drawer.recipe.keys[0].derived("people", purpose)
    return np.argsort(random_words(key, 0, count), kind="stable")


# --------------------------------------------------------------------------- sanitising

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
    examined as kept columns are, and a shuffled release has none. Otherwise rows are numbered anew,
    but for a ``RangeIndex``, as that of a slice, which stays. ``attrs`` and the notes in an arrow
    schema are left out. Categories that no released record has are left out; kept enumerations of
    lazy tables become text.

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
        released, notices = release_lazy_table(lazy, recipe, first_row)
    else:
        done = release_frame(frame, recipe, first_row)
        released, notices = done.frame, done.notices
    for notice in notices:
        warnings.warn(notice, stacklevel=2)
    return released


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
