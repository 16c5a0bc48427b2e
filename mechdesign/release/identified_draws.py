"""The draws of records with identifiers, which may come again: one draw for each of them.

The random numbers of such a record are a function of its identifier. So two records with one
identifier share them, and their outputs depend on each other unless they have the same symbol.
`IdentifiedDraws` is the memory that finds them. `first_codes` is called for every batch before it
is drawn:

1. Identifiers become hashes under a secret of the key, and those that differ in their spelling
   alone are refused (`Spellings`).
2. The symbols are compared with those that the identifiers first came with in this release
   (`seen`). Different ones are an error.
3. They are compared with those of earlier releases (`earlier`, which a job fills from its ledger).
   Where they differ, the rule `changed` decides.

For example, p7 came as nurse in the last release and is a clerk now. With ``refuse`` that is an
error. With ``keep`` p7 is drawn as a nurse once more, which gives its old output. With ``redraw``
it is drawn as a clerk, with random numbers that belong to this change (`key_of_change`).

*First symbols* of identifiers are kept in a table of hashes of bounded size. Records with one
identifier share a draw, so their symbols must agree, within a release and with earlier ones.
`FirstSymbols` answers this for batch after batch: `look` remembers the identifiers of a batch,
`find` only asks. For example, after ``look`` of the hashes 5, 9, 5 with the codes 0, 1, 2 the first
codes are 0, 1, 0: the third record shares its identifier with the first one, and has another
symbol.

The table is an open one with linear probing: an array of hashes (0 for a free slot), and beside it
one of codes. The search for a hash begins at the slot floor(hash * slots / 2^64), and ends where
the hash or a free slot is met. `_walk` does this for a batch, in a compiled loop
(`formats/_hashtable.c`). Where the table is four fifths full, `_grow` makes a larger one, up to the
size for `REMEMBERED` identifiers. Those that come after that are compared within their batch alone
(`full`).

*Spellings* of one identifier: 17, 017, 17.0, "17 ". The draw of a record follows from the text of
its identifier, byte for byte. A table that was saved by a spreadsheet has lost its leading zeros,
and every record would be drawn a second time. So the identifiers of a release are compared in their
plain spelling, and two texts with one plain spelling are refused. `formats.spellings` makes it by
replacements one after the other: " 017.0" becomes "017.0", then "017", then "17".

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

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.core.wording import quoted
from mechdesign.formats import _rowhash
from mechdesign.formats.digests import Hashes, RowHasher
from mechdesign.formats.spellings import plain_spelling
from mechdesign.release.draws import IDENTIFIERS, Identifiers, Key
from mechdesign.release.samplers import REFUSE
from mechdesign.tables.columns import RecordFault

# ------------------------------------------------------------------------ first symbols

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
        self._clear(SLOTS)

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


# ---------------------------------------------------------------------------- spellings

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


# -------------------------------------------------------------------------------- draws

KEEP = "keep"
REDRAW = "redraw"
CHANGES = (REFUSE, KEEP, REDRAW)
"""Treatments of a record whose symbol has changed since its last release: an error, its old output,
or a draw of its own.
"""


class IdentifiedDraws:
    """What a release remembers of records with identifiers.

    Parameters
    ----------
    key : Key
        The key of the channel, from which all draws of the release are derived.
    changed : {"refuse", "keep", "redraw"}
        The treatment of a record whose symbol has changed.

    Attributes
    ----------
    seen, earlier : FirstSymbols
        The symbol that each identifier first came with, in this release and in earlier ones. The
        symbol of a whole row is one number.
    are_new : (n,) array of bool
        Of the identified records that were drawn last, those that no earlier release had.
    changes : int
        How many records had another symbol in an earlier release.
    spellings : Spellings
        Identifiers of this release that are not in their plain spelling.
    """

    def __init__(self, key: Key, changed: str) -> None:
        self._key = key
        self._hasher = RowHasher(key.derived(IDENTIFIERS, "known").secret)
        self.changed = changed
        self.changes = 0
        self.seen = FirstSymbols()
        self.earlier = FirstSymbols()
        self.are_new: NDArray[np.bool_] = np.zeros(0, np.bool_)
        self.spellings = Spellings()

    def first_codes(
        self, codes: Integers, records: Identifiers, column: str = ""
    ) -> Integers:
        """The symbols of the first release of each record.

        Parameters
        ----------
        codes : (n,) array of int
            The symbols that the records have now.
        records : Identifiers
        column : str
            The name of the released columns, for messages; empty for rows of several columns.

        Raises
        ------
        RecordFault
            If records with different symbols share an identifier, or, where changes are refused,
            a record has another symbol than in an earlier release.
        """
        hashes = self._hasher.identifiers(records.columns)
        self.spellings.add(records.columns, hashes, self._hasher)
        _, first_here = self.seen.look(hashes, codes)
        self.are_new, first_ever = self.earlier.find(hashes, codes)
        # Two records with one identifier share a random number. With different symbols their
        # outputs are then dependent, which no promise covers.
        shared = np.flatnonzero(first_here != codes)
        if shared.size:
            of_column = f" of {quoted(column)}" if column else ""
            # By its place and not by its identifier, which is somebody's and ends in logs.
            raise RecordFault(
                int(shared[0]),
                f"the identifier belongs to records with different symbols{of_column}; name "
                "columns that identify a record",
            )
        changed = np.flatnonzero(first_ever != codes)
        self.changes += len(changed)
        if changed.size and self.changed == REFUSE:
            differs = "the symbols are other ones"
            if column:
                differs = f"the symbol of {quoted(column)} is another one"
            raise RecordFault(
                int(changed[0]),
                f"{differs} than when the record was released before: keep what was released "
                "(--changed keep), or draw it anew, which tells more of it (--changed redraw)",
            )
        return first_ever

    def key_of_change(self, code: int) -> Key:
        """The key of records that were first released with another symbol, and now have this one.

        Each further symbol has a key of its own, so its draws are independent of the draw of the
        first symbol, and of each other.
        """
        return self._key.derived("changed", str(code))

    def new_records(self) -> Iterator[tuple[Hashes, Integers]]:
        """Hashes and symbols of the records without earlier release, in parts, each sorted."""
        return new_records(self.seen, self.earlier)
