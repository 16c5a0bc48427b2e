"""A frame in memory as a job of its own: what is refused, what is warned of, and the ledger.

`released_table` is the frame of the job. It wraps a release in its entry of the ledger, if there is
one. `release_checked` is the usual release: it draws the labels, refuses columns that give X away,
and shuffles the records if asked. `sanitise` and the transformer of scikit-learn put them together,
and without a ledger `second_draws` compares the release with the last ones of this process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.formats.census import Content, Hashes
from mechdesign.formats.digests import RowHasher
from mechdesign.frames.eager import FrameChecks, reordered, sanitised
from mechdesign.jobs.recipe import Drawer, Recipe
from mechdesign.jobs.shuffling import random_words


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
