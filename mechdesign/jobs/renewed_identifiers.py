"""Whether the records of a job were released before under other identifiers, or under none.

New identifiers give the records of an old release new draws, a second one each.
`notices_of_renewed` looks for such records by their other cells:

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

from mechdesign.core.errors import InputError
from mechdesign.formats.census import Content
from mechdesign.jobs.bare_records import BareContent
from mechdesign.jobs.entries import Drawn, Entry
from mechdesign.jobs.ledger import Ledger
from mechdesign.jobs.ledger_notices import (
    alike_records_notice,
    renamed_records_notice,
    renamed_records_refusal,
    second_draw_refusal,
)
from mechdesign.jobs.likeness import NOTABLE, Likeness, likeness, share_of
from mechdesign.jobs.same_records import SAME_FROM, is_same, releases_of


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

    def may_renew(self, db: Connection, entry: Entry) -> bool:
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
            return not releases_of(db, [entry], self.content, self.file).entries
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
    for entry in entries:
        if not at_hand.may_renew(db, entry):
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
