"""Whether the records of a table depend on those before them, as in a time series.

What is promised for a population, and every interval, is about records that were drawn
independently. The readings of a meter are none: for minutes each one is that of the second before.
A table shows this by its order, as long as nobody has sorted or shuffled it. For example, of the
secrets on, on, on, off, off, on, on, off four in seven are those of the record before.

`Succession` counts how many records have the sensitive value of the record before, and how many
have all of its symbols. With the share a of the former, and the share e that chance gives, the sum
of the squares of all shares, the correlation of a record with the one before is (a - e) / (1 - e),
if values are compared as equal or not.

A table that was sorted by these columns tells nothing: it has each pair of symbols in one place.
One that was sorted by others may look like a series, which the note says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.wording import listed, percent
from mechdesign.formats.cells import Encoded

DEPENDENT = 0.5
"""Correlation with the record before from which on a note is made: of such a series 100 records
tell of a share what 33 independent ones do, since these are 100 (1 - 1/2) / (1 + 1/2)."""

FEWEST_RECORDS = 200
"""Records of which fewer are no evidence."""

SORTED = 1.1
"""Places of each pair of symbols, on average, up to which a table counts as sorted: it has one."""


MEANING = (
    "if this is a time series, or people have several records, they are not independent, and no "
    "promise, figure or interval for a population holds; if the table was sorted by other columns, "
    "that does no harm"
)
"""What follows from it."""


@dataclass
class Succession:
    """How many records have the values of the record before.

    Attributes
    ----------
    records : int
        The number of records so far.
    alike : int
        How many of them have the sensitive value of the record before.
    repeated : int
        How many have all symbols of it.
    """

    records: int = 0
    alike: int = 0
    repeated: int = 0
    _last: tuple[str, ...] = ()

    def add(self, columns: Sequence[Encoded], sensitive: int) -> None:
        """Add the next records, whose first `sensitive` columns are the secret."""
        size = len(columns[0])
        if not size:
            return
        same = np.ones(size - 1, np.bool_)
        for number, column in enumerate(columns):
            same &= column.codes[1:] == column.codes[:-1]
            if number == sensitive - 1:
                self.alike += int(np.count_nonzero(same))
        self.repeated += int(np.count_nonzero(same))
        # A batch begins with the record behind the last one.
        first = _texts_at(columns, 0)
        if self._last:
            self.alike += first[:sensitive] == self._last[:sensitive]
            self.repeated += first == self._last
        self._last = _texts_at(columns, size - 1)
        self.records += size

    def finding(
        self, names: Sequence[str], counts: NDArray[np.float64], pairs: int
    ) -> str | None:
        """How far records depend on the ones before, in words; None without evidence.

        Parameters
        ----------
        names : sequence of str
            The sensitive columns.
        counts : (|S|,) array
            The records of each sensitive value.
        pairs : int
            The number of different rows of symbols.
        """
        if self.records < FEWEST_RECORDS:
            return None
        shares = counts / counts.sum()
        by_chance = float(shares @ shares)
        share = self.alike / (self.records - 1)
        if by_chance == 1.0 or share - by_chance < DEPENDENT * (1.0 - by_chance):
            return None
        places = self.records - self.repeated
        if places <= SORTED * pairs:
            return None
        return (
            f"{percent(share)} of the records have the {listed(names)} of the record before them, "
            f"{percent(by_chance)} would by chance"
        )


def _texts_at(columns: Sequence[Encoded], position: int) -> tuple[str, ...]:
    """The cells of a record; a missing one is the empty text."""
    texts: list[str] = []
    for column in columns:
        code = int(column.codes[position])
        texts.append(column.texts[code] if code >= 0 else "")
    return tuple(texts)
