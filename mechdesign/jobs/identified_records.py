"""Records with identifiers: their symbols are remembered, and old records under new identifiers
found.

*Symbols.* With an identity by columns the draw of a record follows from its identifier, in whatever
file it comes. Two things would break the promise that it is drawn once, from one symbol: another
symbol would meet the same random number, and another identifier would give a second draw. So the
ledger remembers, for each draw, the hash of every identifier with its symbol (encrypted), and how
it was spelled if that was not the plain way. `IdentifiedRecords` handles the records of one draw,
in this order:

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

*Other identifiers.* New identifiers give the records of an old release new draws, a second one
each. `notices_of_renewed` looks for such records by their other cells:

1. It takes the records whose identifiers are new in this job, without the identifiers.
2. It compares them with every release that may have had them (`ReleaseAtHand.may_renew`): each left
   a sample of its records without identifiers in the ledger (`bare_records`).
3. `likeness` says in bits how far their agreement is beyond chance. It is certain from 50 bits on.
4. The decision follows from the share of the new records that all certain releases had together:

   - at least half (`SAME_FROM`): an error;
   - less: a notice;
   - no release is certain, but one has equal numbers of every row, from 10 bits on (`NOTABLE`),
     which may be chance: a notice.

For example, 1,000 patients were released with the column ``patient`` as their identifier. Now the
same table comes with new numbers in ``patient``, so all 1,000 would be drawn a second time. Their
other cells are those of the release, which is worth some 990 bits if no two patients look alike: an
error. With 900 further patients in the table, 1,000 of 1,900 records are still an error; with 9,000
further ones, 1,000 of 10,000 are a notice.

The decision is made twice: when the records were drawn, and in the transaction that enters the
release, because another process may have released something in between.
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
from mechdesign.jobs.bare_records import (
    NOTABLE,
    BareContent,
    Likeness,
    likeness,
    share_of,
)
from mechdesign.jobs.earlier_releases import (
    RELEASED_MEANWHILE,
    DrawChoice,
    alike_records_notice,
    renamed_records_notice,
    renamed_records_refusal,
    second_draw_refusal,
)
from mechdesign.jobs.ledger import Drawn, Entry, Ledger, name_of_bare
from mechdesign.jobs.same_records import SAME_FROM, SHARE_ERROR, is_same, releases_of
from mechdesign.release.drawing import Release
from mechdesign.release.draws import Key
from mechdesign.release.identified_draws import OTHER_SPELLING, FirstSymbols

# ------------------------------------------------------------------------------ symbols


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
    release : Release
        The drawer's symbols: `seen` in this release and `earlier` in others.
    """

    ledger: Ledger
    drawn: Drawn
    key: Key
    release: Release

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
        same = releases_of(db, self.ledger, earlier, content, choice.file)
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


# -------------------------------------------------------------------- other identifiers


@dataclass(frozen=True)
class ReleaseAtHand:
    """A data set that is about to be released through one channel.

    Attributes
    ----------
    drawn : Drawn
        Which draw of the channel it gets.
    identity : tuple of str
        The columns that identify its records; none where their row numbers do.
    content : Content
        The hashes of its records, identifiers included.
    file : str or None
        The hash of its bytes.
    """

    drawn: Drawn
    identity: tuple[str, ...]
    content: Content
    file: str | None

    def may_renew(self, db: Connection, ledger: Ledger, entry: Entry) -> bool:
        """Whether these records may have been in an earlier release under other identifiers.

        Not if that release used another channel, if both know records by row number, or if it has
        another draw of the same job and some of these records as they are now.
        """
        old = entry.of(self.drawn.use.channel)
        if old is None:
            return False
        if not self.identity and not entry.identity:
            # No identifier can have changed: there was none, and there is none.
            return False
        is_further_draw = old.job == self.drawn.job and old.draw != self.drawn.draw
        if is_further_draw:
            # The user asked for a second draw of the records that this release has with their
            # identifiers of now, so these identifiers are not new.
            same = releases_of(db, ledger, [entry], self.content, self.file)
            return not same.entries
        return True

    def repeats(self, entries: Sequence[Entry]) -> bool:
        """Whether this very draw was made before, of the same records without identifiers."""
        if self.identity:
            return False
        for entry in entries:
            old = entry.of(self.drawn.use.channel)
            if old is None or entry.identity:
                continue
            same_draw = old.job == self.drawn.job and old.draw == self.drawn.draw
            if same_draw and is_same(entry, self.content, self.file):
                return True
        return False


def notices_of_renewed(
    db: Connection, ledger: Ledger, at_hand: ReleaseAtHand, new: BareContent
) -> tuple[str, ...]:
    """What the user should know of the records whose identifiers are new.

    Parameters
    ----------
    db, ledger
        A transaction of the ledger, for all earlier releases.
    at_hand
        The whole data set that is about to be released.
    new
        Those of its records whose identifiers no earlier release had, but for the identifiers.

    Raises
    ------
    InputError
        If at least half of them were released before under other identifiers, for certain.
    """
    entries = ledger.releases(db)
    if not new.records or at_hand.repeats(entries):
        return ()
    certain: list[tuple[Entry, Likeness]] = []
    notable: list[Entry] = []
    candidates = ledger.memory(db).alike_bare(db, new)
    for entry in entries:
        if name_of_bare(entry) not in candidates:
            continue
        if not at_hand.may_renew(db, ledger, entry):
            continue
        stored = ledger.bare(db, entry)
        # A release on a cluster, or of an earlier version, left none.
        if stored is None:
            continue
        alike = likeness(new, BareContent.from_bytes(stored))
        if alike.certain:
            certain.append((entry, alike))
        elif alike.whole and alike.bits >= NOTABLE:
            notable.append(entry)
    # What is certain counts together: each release may have had another part of the records.
    if certain:
        last = certain[-1][0]
        share = share_of(new, [alike for _, alike in certain])
        if share < SAME_FROM:
            return (renamed_records_notice(share, last),)
        raise InputError(_refusal(share, last, at_hand.identity))
    if notable:
        return (alike_records_notice(notable[-1]),)
    return ()


def _refusal(share: float, last: Entry, identity: Sequence[str]) -> str:
    """The error: other values in the same identifying columns, or another way to identify."""
    if identity and last.identity == tuple(identity):
        return renamed_records_refusal(share, last, identity)
    return second_draw_refusal(share, last, identity)
