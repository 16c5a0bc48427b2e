"""The symbols of identified records: remembered with a release, and compared by the next ones.

With an identity by columns the draw of a record follows from its identifier, in whatever file it
comes. Two things would break the promise that it is drawn once, from one symbol: another symbol
would meet the same random number, and another identifier would give a second draw. So the ledger
remembers, for each draw, the hash of every identifier with its symbol (encrypted), and how it was
spelled if that was not the plain way. `IdentifiedRecords` handles the records of one draw, in this
order:

1. `recall` gives the drawer the earlier symbols, before the table is drawn. The drawer refuses,
   keeps or redraws records whose symbol has changed.
2. `refuse_other_spellings` and `refuse_renamed` look for the same records under other identifiers.
3. `remember` enters the new ones.

For example, the record 17 was released with the symbol ``clerk``. If it comes with ``nurse``, the
drawer refuses it by default. As ``017`` it is refused at step 2 for its spelling; as ``4711`` too,
if so many of the records came under new identifiers that they cannot all be new.

Steps 2 and 3 are in the transaction that enters the release. Another process may have released some
of the records since step 1; `remember` then refuses those that have another symbol there. Another
refusal may also be due to such a process, and `are_released_meanwhile` finds that out for its
message.

Hashes and symbols come as two arrays, part by part. `FirstSymbols.find` answers for a part which
hashes a table does not have, and which codes it has for the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Connection

import numpy as np

from mechdesign.core.errors import InputError, StartAgain
from mechdesign.core.integers import Integers
from mechdesign.formats.census import Content
from mechdesign.formats.digests import Hashes
from mechdesign.jobs.draw_choice import DrawChoice
from mechdesign.jobs.entries import Drawn, Entry
from mechdesign.jobs.ledger import Ledger
from mechdesign.jobs.ledger_notices import RELEASED_MEANWHILE, renamed_records_refusal
from mechdesign.jobs.recipe import RecordedDraws
from mechdesign.jobs.same_records import SHARE_ERROR, releases_of
from mechdesign.release.draws import Key
from mechdesign.release.first_symbols import FirstSymbols
from mechdesign.release.spellings import OTHER_SPELLING


@dataclass(frozen=True)
class IdentifiedRecords:
    """The identified records of a release that one channel draws.

    Attributes
    ----------
    ledger : Ledger
    drawn : Drawn
        Which draw of the channel it is.
    key : Key
        The key of that draw.
    release : RecordedDraws
        The drawer's symbols: `seen` in this release and `earlier` in others.
    """

    ledger: Ledger
    drawn: Drawn
    key: Key
    release: RecordedDraws

    def recall(self, db: Connection) -> None:
        """Give the drawer the symbols that records were released with before."""
        self._read_known(db, self.release.earlier)

    def refuse_other_spellings(self, db: Connection) -> None:
        """Refuse identifiers that differ from earlier ones in their spelling alone.

        One identifier in two ways of writing would get two draws.
        """
        # Three ways to meet an earlier release. For example, 017 after 0017, 017 after 17, and 17
        # after 017.
        spellings = self.release.spellings
        earlier_plain, earlier_written = self.ledger.spellings(db, self.drawn)
        if spellings.differ(earlier_plain, earlier_written):
            raise InputError(OTHER_SPELLING)
        if self.release.earlier.has_any(spellings.plain):
            raise InputError(OTHER_SPELLING)
        if self.release.seen.has_any(earlier_plain):
            raise InputError(OTHER_SPELLING)

    def refuse_renamed(
        self,
        db: Connection,
        entries: Sequence[Entry],
        content: Content,
        choice: DrawChoice,
    ) -> None:
        """Refuse records whose content is known, but too few of their identifiers.

        If a share s of n records was released before with this draw, at most (1 - s) n of their
        identifiers can be new. `SHARE_ERROR` allows for the error of the estimate of s: of 1,000
        records of which 900 were released before, 200 may have new identifiers.
        """
        earlier: list[Entry] = []
        for entry in entries:
            old = entry.of(self.drawn.use.channel)
            if old is None:
                continue
            # Releases with another draw are no second use of this one.
            if (old.job, old.draw) == (self.drawn.job, self.drawn.draw):
                earlier.append(entry)
        same = releases_of(db, earlier, content, choice.file)
        # Where identifiers were forgotten, those that are left would count too few records.
        if not same.entries or self.release.seen.full:
            return
        new, records = self._count_new(db)
        if new > (1 - same.share + SHARE_ERROR) * records:
            last = same.entries[-1]
            raise InputError(renamed_records_refusal(same.share, last, choice.identity))

    def are_released_meanwhile(self, db: Connection) -> bool:
        """Whether another process has released records of these since `recall`, with this draw."""
        for hashes, codes in self.ledger.known(db, self.drawn, self.key):
            is_other, _ = self.release.seen.find(hashes, codes)
            ours = ~is_other
            if self._any_late(hashes[ours], codes[ours]):
                return True
        return False

    def remember(self, db: Connection, entry: Entry) -> None:
        """Enter the symbols and spellings of the records that are new.

        Raises
        ------
        StartAgain
            If another process has released one of them with another symbol since `recall`.
        """
        for hashes, codes in self.ledger.known(db, self.drawn, self.key):
            # A record that is not in this release gets its own code back, and is no change.
            _, codes_here = self.release.seen.find(hashes, codes)
            changed = codes_here != codes
            # A change that `recall` showed was dealt with when the record was drawn.
            if self._any_late(hashes[changed], codes[changed]):
                raise StartAgain(RELEASED_MEANWHILE)
        for hashes, codes in self.release.new_records():
            self.ledger.remember(db, entry, self.drawn, self.key, hashes, codes)
        known, _ = self.ledger.spellings(db, self.drawn)
        plain, written = self.release.spellings.new_pairs(known)
        self.ledger.remember_spellings(db, entry, self.drawn, plain, written)

    def _count_new(self, db: Connection) -> tuple[int, int]:
        """How many identifiers the ledger does not have yet, and how many there are."""
        # Read again, for `earlier` lacks what other processes have entered since.
        known = FirstSymbols()
        self._read_known(db, known)
        new = 0
        records = 0
        for hashes, codes in self.release.seen.entries():
            is_new, _ = known.find(hashes, codes)
            new += int(np.count_nonzero(is_new))
            records += len(hashes)
        return new, records

    def _read_known(self, db: Connection, table: FirstSymbols) -> None:
        """Put the records of earlier releases, as the ledger has them, into an empty table."""
        known = self.ledger.known(db, self.drawn, self.key)
        # Room for all at once: the parts are sorted, and sorted hashes crowd in one place of a
        # small table, where each is searched for past all others.
        table.reserve(sum(len(hashes) for hashes, _ in known))
        for hashes, codes in known:
            table.look(hashes, codes)

    def _any_late(self, hashes: Hashes, codes: Integers) -> bool:
        """Whether one of these records of the ledger came there after `recall`."""
        # `earlier` has what the ledger had at `recall`.
        is_late, _ = self.release.earlier.find(hashes, codes)
        return bool(is_late.any())
