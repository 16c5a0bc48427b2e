"""The symbol that each identifier first came with, in a table of hashes of bounded size.

Records with one identifier share a draw, so their symbols must agree, within a release and with
earlier ones. `FirstSymbols` answers this for batch after batch: `look` remembers the identifiers of
a batch, `find` only asks. For example, after ``look`` of the hashes 5, 9, 5 with the codes 0, 1, 2
the first codes are 0, 1, 0: the third record shares its identifier with the first one, and has
another symbol.

The table is an open one with linear probing: an array of hashes (0 for a free slot), and beside it
one of codes. The search for a hash begins at the slot floor(hash * slots / 2^64), and ends where
the hash or a free slot is met. `_walk` does this for a batch, in a compiled loop
(`formats/_hashtable.c`). Where the table is four fifths full, `_grow` makes a larger one, up to the
size for `REMEMBERED` identifiers. Those that come after that are compared within their batch alone
(`full`).
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.integers import Integers
from mechdesign.formats import _rowhash
from mechdesign.formats.digests import Hashes

REMEMBERED = 1 << 22
"""Different identifiers that are remembered (63 MB at worst), so that memory is bounded."""

SLOTS = 1 << 16
"""Slots of a table of hashes at its beginning."""

PART = 1 << 17
"""Slots that are read at a time."""


class FirstSymbols:
    """The first symbol of each identifier, by its 64-bit hash.

    Two identifiers with one hash would give a false alarm, which is not to be expected: among
    four million identifiers it has probability 5e-7.

    Attributes
    ----------
    full : bool
        Whether an identifier came for which there was no room.
    """

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self.full = False
        self._room = remembered
        self._used = 0
        self._keys = np.zeros(SLOTS, np.uint64)
        self._codes = np.zeros(SLOTS, np.int32)

    @property
    def empty(self) -> bool:
        """Whether nothing is remembered."""
        return not self._used

    def reserve(self, count: int) -> None:
        """Make an empty table large enough for so many hashes.

        Sorted hashes would crowd in one place of a smaller table.
        """
        # Four fifths full at most: beyond that, linear probing gets slow.
        self._clear(max(SLOTS, min(count, self._room) * 5 // 4 + 1))

    def find(
        self, hashes: Hashes, codes: Integers
    ) -> tuple[NDArray[np.bool_], Integers]:
        """Which hashes are new, and the first codes of all; that of a new one is its own."""
        if not self._used:
            # The first batch of a job without earlier releases: everything is new.
            return np.ones(len(hashes), np.bool_), codes
        new, first_codes = self._walk(hashes, codes, -1)
        return new.view(np.bool_), first_codes

    def has_any(self, hashes: Hashes) -> bool:
        """Whether one of the hashes is remembered."""
        if not len(hashes):
            return False
        new, _ = self.find(hashes, np.zeros(len(hashes), np.int64))
        return not bool(new.all())

    def look(
        self, hashes: Hashes, codes: Integers
    ) -> tuple[NDArray[np.bool_], Integers]:
        """Which records are the first of their identifier, and the first codes; remember them."""
        if not self._used and len(hashes) > len(self._keys):
            # Growing step by step would take longer than the look-up itself.
            self.reserve(len(hashes))
        new, first_codes = self._walk(hashes, codes, self._room)
        late = np.flatnonzero(new == 2)
        if late.size:
            # There is no room for these, so they are compared with each other alone.
            self.full = True
            _, at, inverse = np.unique(
                hashes[late], return_index=True, return_inverse=True
            )
            first_codes[late] = codes[late[at]][inverse]
            new[late] = 0
            new[late[at]] = 1
        return new.view(np.bool_), first_codes

    def entries(self) -> Iterator[tuple[Hashes, Integers]]:
        """The hashes that are remembered, and their codes, in parts and in no order."""
        keys = self._keys
        codes = self._codes
        for start in range(0, len(keys), PART):
            part = slice(start, start + PART)
            used = keys[part] != 0
            yield keys[part][used], codes[part][used].astype(np.int64)

    def _clear(self, size: int) -> None:
        """An empty table of this size."""
        self._used = 0
        self._keys = np.zeros(size, np.uint64)
        self._codes = np.zeros(size, np.int32)

    def _walk(
        self, hashes: Hashes, codes: Integers, room: int
    ) -> tuple[NDArray[np.uint8], Integers]:
        """0 (remembered), 1 (new) or 2 (new, without room) for each hash, and its first code.

        Up to `room` hashes are remembered; a negative room remembers nothing. The compiled loop
        stops where the table is too full, and continues there in a larger one.
        """
        new = np.zeros(len(hashes), np.uint8)
        first_codes = np.zeros(len(hashes), np.int64)
        hashes = np.ascontiguousarray(hashes)
        codes = np.ascontiguousarray(codes, np.int64)
        position = 0
        while True:
            position, self._used = _rowhash.look(
                self._keys,
                self._codes,
                self._used,
                room,
                hashes,
                codes,
                new,
                first_codes,
                position,
            )
            if position == len(hashes):
                return new, first_codes
            self._grow()

    def _grow(self) -> None:
        """A table of four times the size, or of the largest."""
        # The copy keeps the arrays, and this table gets new ones.
        old = copy(self)
        size = 4 * len(self._keys)
        largest = self._room * 5 // 4 + 1
        # From half of the largest size on straight to it: while a table is copied, both are in
        # memory.
        if 2 * size >= largest:
            size = largest
        self._clear(size)
        for hashes, codes in old.entries():
            self._walk(hashes, codes, self._room)


def new_records(
    seen: FirstSymbols, earlier: FirstSymbols
) -> Iterator[tuple[Hashes, Integers]]:
    """Hashes and codes of `seen` that `earlier` does not have, in parts, each of them sorted."""
    for hashes, codes in seen.entries():
        new = np.flatnonzero(earlier.find(hashes, codes)[0])
        order = new[np.argsort(hashes[new], kind="stable")]
        yield hashes[order], codes[order]
