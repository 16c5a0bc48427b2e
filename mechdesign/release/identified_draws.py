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
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.integers import Integers
from mechdesign.core.wording import quoted
from mechdesign.formats.census import Hashes
from mechdesign.formats.digests import RowHasher
from mechdesign.release.draws import IDENTIFIERS, Identifiers, Key
from mechdesign.release.first_symbols import FirstSymbols, Spellings, new_records
from mechdesign.release.policies import REFUSE
from mechdesign.tables.columns import RecordFault

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
