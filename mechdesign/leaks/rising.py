"""Kept columns that rise or fall with the place of a record: sorting by one brings the order back.

A release in random order hides what the order of the file disclosed, unless a column beside it is a
row number, a serial number or a time of entry.

`RisingColumns` takes an evenly spread sample of the records with their places, batch by batch
(`add`). In the end (`rising`) a column is named if its values, as numbers where they all are, have
nearly the order of the places: their rank correlation is at least `NEARLY`, in either direction.
A column with many records of each value is not, for sorting by it leaves their order open.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.integers import Integers
from mechdesign.formats.cells import Encoded

NEARLY = 0.95
"""The correlation of ranks (Spearman) from which on a column rises or falls with the place."""

SHARED = 8
"""Records of a value, on average, from which on sorting by the column leaves their order open."""

REPEATED = 0.9
"""Different values a record of the sample up to which values count as coming again."""

FEWEST = 20
"""Records of which fewer may rise by chance."""

SAMPLED = 1 << 13
"""Records of the sample, at most twice as many."""

BATCH = 1 << 10
"""Records that a batch gives, about."""

DIGITS = "0123456789"


class RisingColumns:
    """Collects a sample of the records with their places, and ranks the columns by both.

    Parameters
    ----------
    names : sequence
        The columns to test.
    """

    def __init__(self, names: Sequence[Any]) -> None:
        self._texts: dict[Any, list[str | None]] = {name: [] for name in names}
        self._places: list[int] = []
        self._records = 0

    def add(
        self, count: int, every: Callable[[int], Callable[[Any], Encoded | None]]
    ) -> None:
        """Take some of the next `count` records; ``every(step)`` gives the cells of every step-th
        of them.
        """
        if not self._texts or not count:
            return
        step = max(1, count // BATCH)
        column = every(step)
        self._places += range(self._records, self._records + count, step)
        self._records += count
        add_texts(self._texts, column)
        while len(self._places) > 2 * SAMPLED:
            self._halve()

    def _halve(self) -> None:
        """Keep every second record, so that the sample stays evenly spread."""
        self._places = self._places[::2]
        for name, texts in self._texts.items():
            self._texts[name] = texts[::2]

    def rising(self) -> list[Any]:
        """The columns that rise or fall with the place of the record."""
        places = np.array(self._places)
        rising: list[Any] = []
        for name, texts in self._texts.items():
            if _rises(texts, places, self._records):
                rising.append(name)
        return rising


def add_texts(
    texts_of: dict[Any, list[str | None]], column: Callable[[Any], Encoded | None]
) -> None:
    """Add the cells of further records to the texts of each column, as far as it has texts."""
    for name, texts in list(texts_of.items()):
        cells = column(name)
        if cells is None:
            # Lists, bytes and the like are not sorted by.
            del texts_of[name]
            continue
        # The code -1 of a missing cell leads to the None at the end.
        values = (*cells.texts, None)
        texts += [values[code] for code in cells.codes.tolist()]


def _rises(texts: Sequence[str | None], places: Integers, records: int) -> bool:
    """Whether the texts at some places of a file of so many records rise or fall."""
    has_text = np.array([bool(text) for text in texts], bool)
    present = [text for text in texts if text]
    if len(present) < FEWEST:
        return False
    values = comparable(present)
    distinct, ranks = np.unique(values, return_inverse=True)
    if len(distinct) < 2:
        return False
    # In an evenly spread sample values come again only if they have several records each.
    repeated = len(distinct) <= REPEATED * len(present)
    if repeated and SHARED * len(distinct) <= records:
        return False
    # Sorting twice gives ranks: the first one says which place comes k-th.
    order = np.argsort(places[has_text], kind="stable")
    place_ranks = np.argsort(order, kind="stable")
    correlation = np.corrcoef(ranks, place_ranks)[0, 1]
    return bool(abs(correlation) >= NEARLY)


def comparable(texts: Sequence[str]) -> NDArray[Any]:
    """Numbers where all texts are numbers, after a common beginning (``id9`` before ``id10``);
    else the texts, which sort dates.
    """
    # Digits in common belong to the numbers: of 101 and 102 nothing is taken off.
    beginning = len(_common_beginning(min(texts), max(texts)).rstrip(DIGITS))
    try:
        return np.array([float(text[beginning:]) for text in texts])
    except ValueError:
        return np.array(texts)


def _common_beginning(first: str, last: str) -> str:
    """What the first and the last of sorted texts, and so all of them, begin with."""
    length = 0
    for letter, other in zip(first, last, strict=False):
        if letter != other:
            break
        length += 1
    return first[:length]
