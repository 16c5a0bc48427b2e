"""Lazy tables that are released batch by batch: what polars and DuckDB have in common.

A lazy table is computed anew whenever it is read. If it changes from one reading to the next, a
record may be drawn twice, which discloses more than one draw. So the table is read twice before it
is released, and every later reading is compared with the first (`readings`).

1. The adapter of an engine makes a `BatchRelease`.
2. It calls `compare_readings` once, which refuses a table whose first two readings differ.
3. It calls `parts` with the batches of a new reading whenever the engine reads the release.

`parts` compares each batch, draws it with the row numbers of its place in the table, and yields it.
For example, the second of two batches of 1,000 records has the row numbers 1,000 to 1,999 if the
first record is number 0. Checks that need all records, such as whether another column gives X away,
can only be made at the end: they raise after the last batch.
"""

# Frames of three libraries have no type in common.
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from mechdesign.frames.eager import FrameChecks, sanitised
from mechdesign.frames.readings import Readings
from mechdesign.jobs.recipe import Recipe


class BatchRelease:
    """The release of a lazy table, which is repeated whenever the table is read.

    Parameters
    ----------
    recipe : Recipe
        The recipe, with keys that last.
    header : sequence
        The names of the columns of the table.
    first_row : int
        The row number of the first record.
    """

    def __init__(self, recipe: Recipe, header: Sequence[Any], first_row: int) -> None:
        self._recipe = recipe
        self._header = header
        self._first_row = first_row
        self._readings = Readings(recipe.drawer(header))

    def compare_readings(self, read: Callable[[], Iterable[Any]]) -> None:
        """Read the table twice; raises InputError if the readings differ.

        `read` starts a new reading, and returns its batches: data frames of polars, or record
        batches of Arrow. A recipe that draws nothing gives the same answer to the same number in
        every reading.
        """
        if self._recipe.draws:
            self._readings.compare_two(read)

    def parts(self, batches: Iterable[Any], *, whole: bool) -> Iterator[Any]:
        """The released batches of a reading, of the whole table or of its first records."""
        drawer = self._recipe.drawer(self._header)
        checks = FrameChecks(drawer)
        place = 0
        for batch in batches:
            # Before anything of the batch leaves: another reading would be a second draw.
            self._readings.check_part(batch, place)
            yield sanitised(batch, drawer, first_row=self._first_row + place)
            checks.add(batch)
            place += len(batch)
        # The first records alone are no whole reading, and end earlier.
        if whole:
            self._readings.check_length(place)
        drawer.checks.refuse(can_shuffle=False)
