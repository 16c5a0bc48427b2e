"""A frame in memory as a job of its own: what is refused, what is warned of, and its entry in a ledger."""

# pyarrow tells too little of its types for the strict mode.
# pyright: basic
from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.formats.digests import Content, Hashes, RowHasher
from mechdesign.frames.eager import look_at, rows_of, sanitised
from mechdesign.jobs.job import KNOWN
from mechdesign.jobs.keys import check_of
from mechdesign.jobs.recipe import Drawer, Recipe
from mechdesign.jobs.shuffling import random_words
from mechdesign.release.drawing import channel_digest


def weighed(
    frame: Any, columns: Sequence[Any], drawer: Drawer, first_row: int
) -> tuple[Any, list[str]]:
    """The released frame, and warnings; refuses columns that give the released one away."""
    released = sanitised(frame, drawer, first_row=first_row)
    look_at(frame, drawer)
    notices = checked(drawer)
    if not drawer.recipe.options.shuffle:
        return released, notices
    key = drawer.recipe.keys[0].derived("order")
    content = RowHasher(key.secret).content(columns, len(frame))
    order = np.argsort(
        random_words(key.derived(content.readings[-1].ordered), 0, len(released)), kind="stable"
    )
    # Row numbers that pandas gave the rows as an index are given anew.
    plain = (
        type(getattr(frame, "index", None)).__name__ == "RangeIndex"
        and frame.index.name is None
    )
    mixed = rows_of(released, order)
    return (mixed.reset_index(drop=True) if plain else mixed), notices


def checked(drawer: Drawer) -> list[str]:
    """Refuse columns that give the released one away; a warning if the order of the records does."""
    drawer.checks.refuse_copies()
    drawer.checks.refuse_rising()
    warning = drawer.checks.order_warning()
    if warning is None:
        return []
    return [str(InputError(warning))]


def released_table(
    recipe: Recipe,
    header: Sequence[Any],
    columns: Sequence[Any],
    records: int,
    release: Callable[[Drawer], tuple[Any, list[str]]],
) -> tuple[Any, list[str]]:
    """What `release` makes of a table, with its warnings and those of the ledger, if there is one."""
    (released, warnings), notices = recipe.release_table(
        header, release, lambda hasher: hasher.content(columns, records)
    )
    return released, [*warnings, *notices]


REMEMBERED = 64
"""Releases of this process that are remembered (2 MB)."""

_HASHER = RowHasher(secrets.token_bytes(32))
_DRAWN = deque[tuple[str, tuple[str, ...], Content, Hashes]](maxlen=REMEMBERED)
"""Of each release its channel, its key and what identified the records, the records, and their first symbols."""

FIRST = 16
"""Records that tell the beginning of a table, which may be a part of it, from another part."""


def warnings_of_draws(
    columns: Sequence[Any], records: int, drawer: Drawer
) -> list[str]:
    """Warnings where this process has drawn for the same records before, or with the same row numbers for others."""
    content, recipe = _HASHER.content(columns, records), drawer.recipe
    how = (check_of(recipe.keys[0]), *recipe.options.identifiers)
    told: dict[str, None] = {}
    for release, places in zip(drawer.releases, drawer.plan.inputs, strict=True):
        name, size = channel_digest(release.channel), min(FIRST, records)
        start = _HASHER.columns([columns[at][:size] for at in places], size)
        for _, other, found, begin in [each for each in _DRAWN if each[0] == name]:
            size = min(len(begin), len(start))
            if other != how and (
                found.unordered == content.unordered
                or content.share_in([found.sample()]) >= KNOWN
            ):
                told[_TWICE] = None
            elif other == how and len(how) == 1 and recipe.options.row_numbers is None:
                told |= (
                    {} if np.array_equal(begin[:size], start[:size]) else {_ROWS: None}
                )
        _DRAWN.append((name, how, content, start))
    return list(told)


_TWICE = (
    "these records were released through this channel before in this process, and have now been drawn a second time, "
    "which can tell far more than the budget: give one key (key=..) and, if their order changes, what identifies them "
    "(identity=..), or a ledger (ledger=..)"
)

_ROWS = (
    "this key was used on other rows, or on rows in another order, which are known by their place alone: records get "
    "the random numbers of others, and those that come again a second draw; name what identifies them (identity=.. or "
    "row_numbers=..), or say where a part of a table begins (first_row=..)"
)
