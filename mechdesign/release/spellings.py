"""Identifiers that differ in their spelling alone: 17, 017, 17.0, "17 ".

The draw of a record follows from the text of its identifier, byte for byte. A table that was saved
by a spreadsheet has lost its leading zeros, and every record would be drawn a second time. So the
identifiers of a release are compared in their plain spelling, and two texts with one plain spelling
are refused. `formats.cell_forms` makes it by replacements one after the other: " 017.0"
becomes "017.0", then "017", then "17".

`Spellings.add` is called for every batch. It remembers pairs of hashes, (plain, as written), and
only of texts that are not plain themselves: 017 gives (hash of 17, hash of 017). Two spellings of
one identifier are found in three ways:

- both are not plain, in one release: two pairs have the same first hash (`add`);
- both are not plain, in two releases: the pairs of the ledger differ from these (`differ`); the
  ledger gets the pairs that it does not have (`new_pairs`);
- one is plain, and has no pair: a job looks the plain hashes up among the identifiers of this
  release and of earlier ones (`FirstSymbols.has_any`), and finds 17 beside 017 there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.formats.cell_forms import plain_spelling
from mechdesign.formats.census import Hashes
from mechdesign.formats.digests import RowHasher
from mechdesign.release.first_symbols import REMEMBERED, FirstSymbols

TWO_SPELLINGS = (
    "two identifiers differ only in blanks, leading zeros, a sign, .0 or the Unicode form: nobody "
    "can tell whether they are one record, which would be drawn twice; spell all identifiers alike"
)

OTHER_SPELLING = (
    "records were released before under identifiers that differ from these only in blanks, leading "
    "zeros, a sign, .0 or the Unicode form, and would be drawn a second time: spell the "
    "identifiers as they were (a spreadsheet takes leading zeros away), or accept a second draw "
    "(--fresh-draw)"
)

FIRST_ROOM = 1 << 10
"""Pairs of hashes for which there is room at the beginning."""


class Spellings:
    """The identifiers of a release that are not in their plain spelling.

    The pairs lie one after the other, as they come, in arrays that are doubled when they are full.
    `_places` finds the pair of a plain hash by its place there. So a batch costs what its own
    records cost, however many came before. As many are kept as a release remembers identifiers
    (`REMEMBERED`); pairs that come after that are compared within their batch alone.
    """

    def __init__(self) -> None:
        self._places = FirstSymbols()
        self._pairs = np.zeros((2, FIRST_ROOM), np.uint64)
        """Rows: hashes of the plain spellings, and of the texts as written."""
        self._count = 0

    @property
    def plain(self) -> Hashes:
        """The hashes of the plain spellings, each of which occurs once."""
        return self._pairs[0, : self._count]

    @property
    def written(self) -> Hashes:
        """The hashes of the same identifiers as written."""
        return self._pairs[1, : self._count]

    def add(self, columns: Sequence[Any], hashes: Hashes, hasher: RowHasher) -> None:
        """Compare the next records.

        Parameters
        ----------
        columns : sequence of pyarrow arrays
            The columns that identify them.
        hashes : (n,) hashes
            Of these identifiers, under the hasher.
        hasher : RowHasher

        Raises
        ------
        InputError
            If two different texts have one plain spelling.
        """
        plain_columns: list[Any] = []
        has_unusual = False
        for column in columns:
            plain = plain_spelling(column)
            if plain is None:
                plain_columns.append(column)
            else:
                has_unusual = True
                plain_columns.append(plain)
        if not has_unusual:
            return
        plain_hashes = hasher.identifiers(plain_columns)
        differs = plain_hashes != hashes
        self._add_pairs(plain_hashes[differs], hashes[differs])

    def _add_pairs(self, plain: Hashes, written: Hashes) -> None:
        """Compare pairs with each other and with those before, and keep the new ones."""
        _, first, inverse = np.unique(plain, return_index=True, return_inverse=True)
        if (written[first][inverse] != written).any():
            raise InputError(TWO_SPELLINGS)
        # In the order of the records: sorted hashes would crowd in one place of a small table.
        first.sort()
        plain = plain[first]
        written = written[first]
        new, places = self._places.find(plain, np.zeros(len(plain), np.int64))
        if (self.written[places[~new]] != written[~new]).any():
            raise InputError(TWO_SPELLINGS)
        count = min(int(np.count_nonzero(new)), REMEMBERED - self._count)
        kept = np.flatnonzero(new)[:count]
        end = self._count + count
        self._places.look(plain[kept], np.arange(self._count, end))
        while end > self._pairs.shape[1]:
            self._pairs = np.concatenate([self._pairs, self._pairs], axis=1)
        self._pairs[0, self._count : end] = plain[kept]
        self._pairs[1, self._count : end] = written[kept]
        self._count = end

    def differ(self, plain: Hashes, written: Hashes) -> bool:
        """Whether one of these plain spellings is written in another way here.

        Parameters
        ----------
        plain, written : (k,) hashes
            The pairs of another release; each plain spelling occurs once.
        """
        _, here, there = np.intersect1d(
            self.plain, plain, assume_unique=True, return_indices=True
        )
        return bool((self.written[here] != written[there]).any())

    def new_pairs(self, earlier: NDArray[np.uint64]) -> tuple[Hashes, Hashes]:
        """The pairs whose plain spelling is not among the earlier ones."""
        new = ~np.isin(self.plain, earlier)
        return self.plain[new], self.written[new]
