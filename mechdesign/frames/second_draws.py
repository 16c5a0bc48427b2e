"""Warnings of second draws: what this process remembers of its last releases in memory.

A ledger knows for good what was released. Without one a process remembers its last releases, by
hashes, and `warnings_of_draws` compares each new release with those through the same channel,
unless they were of another column of the table (`_warning`):

- the same records under another key, or identified otherwise: they were drawn twice;
- other rows under the same key, known by their place alone: they share random numbers.

For example, two calls of `sanitise` with the same frame and no key draw two keys. The second call
warns that both draws of a record together can disclose more than the budget.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mechdesign.formats.census import Content, Hashes
from mechdesign.formats.digests import RowHasher
from mechdesign.jobs.keys import check_of
from mechdesign.jobs.recipe import Drawer
from mechdesign.jobs.same_records import SAME_FROM

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
