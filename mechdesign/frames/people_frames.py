"""A frame in memory with the records of people, released as a job of its own.

To the recipe, the ledger and the checks a person is a record: they see the folded table
(`tables.people_source`). What they draw is unfolded into a frame of the kind that came.
"""

# The frames are those of several libraries, which have no type in common.
# pyright: basic
from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.frames.eager import header_of
from mechdesign.frames.frame_jobs import released_table
from mechdesign.frames.libraries import adapter_of
from mechdesign.frames.second_draws import warnings_of_draws
from mechdesign.jobs.keyed_recipe import KeyedRecipe
from mechdesign.jobs.people_run import for_people, released_sequences, watch_order
from mechdesign.jobs.recipe import Drawer
from mechdesign.jobs.shuffling import random_words
from mechdesign.release.people_frames import released_frame
from mechdesign.tables.people import People
from mechdesign.tables.people_source import fold_frame, refuse_kept


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
        result = released_frame(
            table, frame, released, kept=asked.kept, order=order, names=asked.renamed
        )
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
