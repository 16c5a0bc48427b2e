"""A frame in memory as a job of its own: what is refused and warned of, and what a ledger is told."""

# pyarrow tells too little of its types for the strict mode.
# pyright: basic
from __future__ import annotations

import secrets
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike
from mechdesign.core.wording import at_most, quoted
from mechdesign.formats.digests import Content, Hashes, RowHasher
from mechdesign.formats.urls import FRAME
from mechdesign.frames.eager import look_at, rows_of, sanitised
from mechdesign.jobs.job import KNOWN, Job, changes_told
from mechdesign.jobs.keys import check_of
from mechdesign.jobs.ledger import Ledger
from mechdesign.jobs.past_releases import charged
from mechdesign.jobs.recipe import Drawer, Looks, Recipe
from mechdesign.jobs.shuffling import random_words
from mechdesign.jobs.writing import uses_of
from mechdesign.nonstochastic.number_cells import NumbersDrawer


def weighed(frame: Any, columns: Sequence[Any], drawer: Any, first_row: int) -> Any:
    """The released frame; refuses columns that give the released one away, and warns of an order that does."""
    released = sanitised(frame, drawer, first_row=first_row)
    look_at(frame, drawer)
    heed(drawer, 5)
    if not drawer.recipe.options.shuffle:
        return released
    key = drawer.recipe.keys[0].derived("order")
    content = RowHasher(key.secret).content(columns, len(frame))
    order = np.argsort(
        random_words(key.derived(content.ordered), 0, len(released)), kind="stable"
    )
    # Row numbers that pandas gave the rows as an index are given anew.
    plain = (
        type(getattr(frame, "index", None)).__name__ == "RangeIndex"
        and frame.index.name is None
    )
    mixed = rows_of(released, order)
    return mixed.reset_index(drop=True) if plain else mixed


def heed(drawer: Looks, level: int) -> None:
    """Refuse columns that give the released one away, and warn of an order that does."""
    drawer.refuse_twins()
    if (told := drawer.ordered()) is not None:
        warnings.warn(str(InputError(told)), stacklevel=level)


REMEMBERED = 64
"""Releases of this process that are remembered (2 MB)."""

_HASHER = RowHasher(secrets.token_bytes(32))
_DRAWN = deque[tuple[str, tuple[str, ...], Content, Hashes]](maxlen=REMEMBERED)
"""Of each release its channel, its key and what identified the records, the records, and their first symbols."""

FIRST = 16
"""Records that tell the beginning of a table, which may be a part of it, from another part."""


def warn_of_draws(columns: Sequence[Any], records: int, drawer: Drawer) -> None:
    """Warn where this process has drawn for the same records before, or with the same row numbers for others."""
    content, recipe = _HASHER.content(columns, records), drawer.recipe
    how = (check_of(recipe.keys[0]), *recipe.options.identifiers)
    told: dict[str, None] = {}
    for release, places in zip(drawer.releases, drawer.plan.inputs, strict=True):
        name, size = release.digest, min(FIRST, records)
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
    for text in told:
        warnings.warn(text, stacklevel=4)


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


def by_ledger(
    columns: Sequence[Any],
    records: int,
    recipe: Recipe,
    header: Sequence[Any],
    release: Callable[[Drawer], Any],
    ledger: PathLike,
) -> Any:
    """What `release` gives with a drawer for the keys of a ledger, in which it is entered.

    Raises InputError if the records would be drawn a second time, and warns of what else is to be known.
    """
    book = Ledger(ledger)
    content = book.hasher.content(columns, records)
    uses = uses_of(recipe, recipe.plan(header), header)
    identity, fresh, channels = (
        recipe.options.identifiers,
        recipe.options.fresh_draw,
        recipe.channels,
    )
    job = Job(
        book,
        uses,
        content=content,
        identity=identity,
        fresh_draw=fresh,
        source=FRAME,
        channels=channels,
    )
    while (earlier := job.met(content)) is None:
        pass
    drawer = replace(recipe, keys=job.keys).drawer(header)
    job.prepare(drawer.releases)
    released = release(drawer)
    entry = job.entry(FRAME, None, content.records, content, earlier.joint)
    job.finish(entry, content, drawer.releases)
    job.done(entry)
    for notice in (*earlier.notices, *changes_told(drawer.releases)):
        warnings.warn(notice, stacklevel=3)
    return released


def quantised(frame: Any, columns: Sequence[Any], drawer: NumbersDrawer) -> Any:
    """The frame with numbers in cells; entered in a ledger, where one is named."""
    released, path = weighed(frame, columns, drawer, 0), drawer.recipe.options.ledger
    done = drawer.result(None)
    if path is not None:
        book = Ledger(path)
        done = charged(
            book,
            book.hasher.content(columns, len(frame)),
            done,
            source=FRAME,
            target=FRAME,
        )
        if done.releases > 1:
            text = f"all {done.releases} releases of {quoted(done.column)} of these records together tell at most "
            warnings.warn(
                f"{text}{at_most(done.releases_epsilon or 0)} bits of one individual",
                stacklevel=3,
            )
    return released
